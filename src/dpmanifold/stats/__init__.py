"""The questions users ask. Everything that touches data privately is called `private_*`."""

from dpmanifold.release import Clipping
from dpmanifold.stats.check import Verification, verify
from dpmanifold.stats.comparison import Comparison, compare
from dpmanifold.stats.curator import Notice
from dpmanifold.stats.inference import private_interval, private_region, private_test
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold.stats.mean import private_mean, private_means
from dpmanifold.stats.plan import Plan, PlanRow, RefinePlan, needed_promise, needed_units, plan_mean
from dpmanifold.stats.refine import private_ball
from dpmanifold.stats.variance import private_variance

__all__ = [
    "EACH_RECORD",
    "Clipping",
    "Comparison",
    "Notice",
    "Plan",
    "PlanRow",
    "RefinePlan",
    "Verification",
    "compare",
    "needed_promise",
    "needed_units",
    "plan_mean",
    "private_ball",
    "private_interval",
    "private_mean",
    "private_means",
    "private_region",
    "private_test",
    "private_variance",
    "verify",
]
