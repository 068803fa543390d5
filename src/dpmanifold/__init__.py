"""Differentially private statistics for data on curved spaces.

>>> import numpy as np
>>> import dpmanifold as dpm
>>> space = dpm.SPD(3)
>>> ball = dpm.Ball(space, center=np.eye(3), radius=2.0, source="tissue atlas")
>>> dpm.plan_mean(n=1000, ball=ball, privacy=dpm.GDP(mu=1.0)).best.mechanism
'wrapped-gaussian'
"""

from typing import TYPE_CHECKING, Any

from dpmanifold import (
    data,
    engines,
    features,
    frechet,
    linalg,
    mechanisms,
    noise,
    plots,
    privacy,
    progress,
    report,
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
from dpmanifold.inference import Components, Discriminant, GroupsTest, Interval, Region, Regression, TwoSampleTest
from dpmanifold.manifolds import SPD, Euclidean, Hyperbolic, KendallShapes, Manifold, Product, Sphere
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Budget, BudgetError, Promise, PromiseError, PureDP
from dpmanifold.release import Release
from dpmanifold.result import Result, load
from dpmanifold.statistic import STATISTICS, Statistic
from dpmanifold.stats import (
    EACH_RECORD,
    AveragedStatistic,
    Comparison,
    Notice,
    Outlook,
    Plan,
    Verification,
    compare,
    needed_promise,
    needed_units,
    plan,
    plan_mean,
    private_ball,
    private_classes,
    private_components,
    private_groups,
    private_interval,
    private_mean,
    private_means,
    private_median,
    private_region,
    private_regression,
    private_statistic,
    private_test,
    private_variance,
    verify,
)

if TYPE_CHECKING:
    from dpmanifold.ledger.ledger import Ledger
    from dpmanifold.remote.client import connect


def __getattr__(name: str) -> Any:
    """Import what needs an extra when it is first asked for."""
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
    "Components",
    "ConvergenceError",
    "DPManifoldError",
    "Discriminant",
    "Euclidean",
    "GroupsTest",
    "Hyperbolic",
    "Interval",
    "InvalidArgumentError",
    "InvalidDataError",
    "KendallShapes",
    "Ledger",
    "LedgerError",
    "Manifold",
    "MissingPackageError",
    "Notice",
    "Outlook",
    "Plan",
    "Product",
    "Promise",
    "PromiseError",
    "PureDP",
    "Region",
    "Regression",
    "Release",
    "ReleaseLostError",
    "Result",
    "SamplerError",
    "SourceChangedError",
    "Sphere",
    "Statistic",
    "TwoSampleTest",
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
    "needed_promise",
    "needed_units",
    "noise",
    "plan",
    "plan_mean",
    "plots",
    "privacy",
    "private_ball",
    "private_classes",
    "private_components",
    "private_groups",
    "private_interval",
    "private_mean",
    "private_means",
    "private_median",
    "private_region",
    "private_regression",
    "private_statistic",
    "private_test",
    "private_variance",
    "progress",
    "report",
    "sensitivity",
    "verify",
]
