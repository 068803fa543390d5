"""The promises of differential privacy: conversion, composition, calibration and budgets (theory sections 1 and 5)."""

from dpmanifold.privacy.budget import Budget, BudgetError, Spend
from dpmanifold.privacy.calibrate import gaussian_promise, gaussian_scale, laplace_promise, laplace_scale
from dpmanifold.privacy.compose import compose, split
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
from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PromiseError, PureDP, promise_from_dict

__all__ = [
    "GDP",
    "ZCDP",
    "ApproxDP",
    "Budget",
    "BudgetError",
    "Promise",
    "PromiseError",
    "PureDP",
    "Spend",
    "compose",
    "gaussian_promise",
    "gaussian_scale",
    "gdp_delta",
    "gdp_epsilon",
    "gdp_log_delta",
    "gdp_sufficient_for",
    "laplace_promise",
    "laplace_scale",
    "promise_from_dict",
    "split",
    "to_approx",
    "to_gdp",
    "to_pure",
    "to_zcdp",
    "zcdp_epsilon",
    "zcdp_log_delta",
]
