"""Differentially private statistics for data on curved spaces.

>>> import numpy as np
>>> import dpmanifold as dpm
>>> space = dpm.SPD(3)
>>> ball = dpm.Ball(space, center=np.eye(3), radius=2.0, source="tissue atlas")
>>> dpm.plan_mean(n=1000, ball=ball, privacy=dpm.GDP(mu=1.0)).best.mechanism
'wrapped-gaussian'
"""

from dpmanifold import data, frechet, linalg, mechanisms, noise, plots, privacy, sensitivity
from dpmanifold._version import __version__
from dpmanifold.ball import Ball
from dpmanifold.errors import (
    ConvergenceError,
    DPManifoldError,
    InvalidArgumentError,
    InvalidDataError,
    MissingPackageError,
    SamplerError,
)
from dpmanifold.inference import Interval, Region, TwoSampleTest, load
from dpmanifold.manifolds import SPD, Euclidean, Hyperbolic, KendallShapes, Manifold, Sphere
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Budget, BudgetError, Promise, PromiseError, PureDP
from dpmanifold.release import Release
from dpmanifold.stats import (
    EACH_RECORD,
    Notice,
    compare,
    needed_promise,
    needed_units,
    plan_mean,
    private_ball,
    private_interval,
    private_mean,
    private_means,
    private_region,
    private_test,
    private_variance,
    verify,
)

__all__ = [
    "EACH_RECORD",
    "GDP",
    "SPD",
    "ZCDP",
    "ApproxDP",
    "Ball",
    "Budget",
    "BudgetError",
    "ConvergenceError",
    "DPManifoldError",
    "Euclidean",
    "Hyperbolic",
    "Interval",
    "InvalidArgumentError",
    "InvalidDataError",
    "KendallShapes",
    "Manifold",
    "MissingPackageError",
    "Notice",
    "Promise",
    "PromiseError",
    "PureDP",
    "Region",
    "Release",
    "SamplerError",
    "Sphere",
    "TwoSampleTest",
    "__version__",
    "compare",
    "data",
    "frechet",
    "linalg",
    "load",
    "mechanisms",
    "needed_promise",
    "needed_units",
    "noise",
    "plan_mean",
    "plots",
    "privacy",
    "private_ball",
    "private_interval",
    "private_mean",
    "private_means",
    "private_region",
    "private_test",
    "private_variance",
    "sensitivity",
    "verify",
]
