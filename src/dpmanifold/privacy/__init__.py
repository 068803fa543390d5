"""The promises of differential privacy: conversion, composition, calibration and budgets (theory sections 1 and 5)."""

from dpmanifold.errors import BudgetError, PromiseError
from dpmanifold.privacy.budget_accounts import Account, Budget, Order, Receipt, Spend
from dpmanifold.privacy.calibrate import gaussian_promise, gaussian_scale, laplace_promise, laplace_scale
from dpmanifold.privacy.composition import compose, split
from dpmanifold.privacy.convert import (
    gdp_delta,
    gdp_epsilon,
    gdp_log_delta,
    gdp_sufficient_for,
    to_approx,
    to_gdp,
    to_pure,
    to_zcdp,
    zcdp_epsilon,
    zcdp_log_delta,
)
from dpmanifold.privacy.laplace_profile import laplace_delta
from dpmanifold.privacy.meaning import best_guess, cautions, in_plain_words
from dpmanifold.privacy.profile import Profile, calibrate_gaussian, loss_profile, tightest_mu
from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PureDP, promise_from_dict

__all__ = [
    "GDP",
    "ZCDP",
    "Account",
    "ApproxDP",
    "Budget",
    "BudgetError",
    "Order",
    "Profile",
    "Promise",
    "PromiseError",
    "PureDP",
    "Receipt",
    "Spend",
    "best_guess",
    "calibrate_gaussian",
    "cautions",
    "compose",
    "gaussian_promise",
    "gaussian_scale",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_log_delta",
    "gdp_sufficient_for",
    "in_plain_words",
    "laplace_delta",
    "laplace_promise",
    "laplace_scale",
    "loss_profile",
    "promise_from_dict",
    "split",
    "tightest_mu",
    "to_approx",
    "to_gdp",
    "to_pure",
    "to_zcdp",
    "zcdp_epsilon",
    "zcdp_log_delta",
]
