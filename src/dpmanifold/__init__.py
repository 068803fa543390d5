"""Differentially private statistics for data on curved spaces.

>>> import numpy as np
>>> import dpmanifold as dpm
>>> space = dpm.SPD(3)
>>> ball = dpm.Ball(space, center=np.eye(3), radius=2.0, source="tissue atlas")
>>> dpm.plan_mean(n=1000, ball=ball, privacy=dpm.GDP(mu=1.0)).best.mechanism
'wrapped-gaussian'
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpmanifold import (
    engines,
    features,
    frechet,
    linalg,
    mechanisms,
    noise,
    privacy,
    progress,
    sensitivity,
)
from dpmanifold._version import __version__
from dpmanifold.ball import Ball
from dpmanifold.errors import (
    CardError,
    ClusterError,
    ConvergenceError,
    DPManifoldError,
    InvalidArgumentError,
    InvalidDataError,
    LedgerError,
    MissingPackageError,
    ReleaseLostError,
    SamplerError,
    SourceChangedError,
)
from dpmanifold.inference import (
    ConfidenceRegion,
    GeodesicRegression,
    KSampleTest,
    LinearDiscriminant,
    PrincipalComponents,
    TwoSampleTest,
    VarianceInterval,
)
from dpmanifold.manifolds import SPD, Euclidean, Hyperbolic, KendallShapes, Manifold, Product, Sphere
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Budget, BudgetError, Promise, PromiseError, PureDP
from dpmanifold.release import Release
from dpmanifold.result import Result, load
from dpmanifold.statistic import STATISTICS, Statistic
from dpmanifold.stats import (
    EACH_RECORD,
    QUERIES,
    AveragedStatistic,
    Comparison,
    Notice,
    Option,
    Outlook,
    Plan,
    Query,
    Verification,
    compare,
    plan,
    plan_mean,
    private_ball,
    private_class_means,
    private_k_sample_test,
    private_lda,
    private_mean,
    private_median,
    private_pga,
    private_region,
    private_regression,
    private_statistic,
    private_two_sample_test,
    private_variance,
    private_variance_interval,
    required_privacy,
    required_units,
    verify,
)

if TYPE_CHECKING:
    from dpmanifold import data, plots, report
    from dpmanifold.ledger.ledger import Ledger
    from dpmanifold.remote.client import connect


def __getattr__(name: str) -> Any:
    """Import what not every call needs, or what needs an extra, when it is first asked for."""
    if name in ("data", "plots", "report"):
        return import_module(f"dpmanifold.{name}")
    if name == "Ledger":
        from dpmanifold.ledger import Ledger

        return Ledger
    if name == "connect":
        from dpmanifold.remote import connect

        return connect
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "EACH_RECORD",
    "GDP",
    "QUERIES",
    "SPD",
    "STATISTICS",
    "ZCDP",
    "ApproxDP",
    "AveragedStatistic",
    "Ball",
    "Budget",
    "BudgetError",
    "CardError",
    "ClusterError",
    "Comparison",
    "ConfidenceRegion",
    "ConvergenceError",
    "DPManifoldError",
    "Euclidean",
    "GeodesicRegression",
    "Hyperbolic",
    "InvalidArgumentError",
    "InvalidDataError",
    "KSampleTest",
    "KendallShapes",
    "Ledger",
    "LedgerError",
    "LinearDiscriminant",
    "Manifold",
    "MissingPackageError",
    "Notice",
    "Option",
    "Outlook",
    "Plan",
    "PrincipalComponents",
    "Product",
    "Promise",
    "PromiseError",
    "PureDP",
    "Query",
    "Release",
    "ReleaseLostError",
    "Result",
    "SamplerError",
    "SourceChangedError",
    "Sphere",
    "Statistic",
    "TwoSampleTest",
    "VarianceInterval",
    "Verification",
    "__version__",
    "compare",
    "connect",
    "data",
    "engines",
    "features",
    "frechet",
    "linalg",
    "load",
    "mechanisms",
    "noise",
    "plan",
    "plan_mean",
    "plots",
    "privacy",
    "private_ball",
    "private_class_means",
    "private_k_sample_test",
    "private_lda",
    "private_mean",
    "private_median",
    "private_pga",
    "private_region",
    "private_regression",
    "private_statistic",
    "private_two_sample_test",
    "private_variance",
    "private_variance_interval",
    "progress",
    "report",
    "required_privacy",
    "required_units",
    "sensitivity",
    "verify",
]
