"""The questions users ask. Everything that touches data privately is called `private_*`."""

from dpmanifold.release import Clipping
from dpmanifold.stats.asking import private_statistic
from dpmanifold.stats.averaged import AveragedStatistic
from dpmanifold.stats.ball import private_ball
from dpmanifold.stats.check import Verification, verify
from dpmanifold.stats.classes import private_classes
from dpmanifold.stats.comparison import Comparison, compare
from dpmanifold.stats.components import private_components
from dpmanifold.stats.curator import Notice
from dpmanifold.stats.groups import private_groups
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold.stats.interval import private_interval
from dpmanifold.stats.joint_distances import JOINT_DISTANCES
from dpmanifold.stats.joint_lengths import JOINT_LENGTHS
from dpmanifold.stats.joint_moments import JOINT_MOMENTS
from dpmanifold.stats.mean_plan import Plan, PlanRow, RefinePlan, needed_promise, needed_units, plan_mean
from dpmanifold.stats.means import private_mean, private_means
from dpmanifold.stats.median import private_median
from dpmanifold.stats.outlook import Outlook, plan
from dpmanifold.stats.radius import RADIUS as RADIUS
from dpmanifold.stats.region import private_region
from dpmanifold.stats.regression import private_regression
from dpmanifold.stats.shaped import SHAPED as SHAPED
from dpmanifold.stats.shaping import ShapePlan
from dpmanifold.stats.test import private_test
from dpmanifold.stats.variance import private_variance

__all__ = [
    "EACH_RECORD",
    "JOINT_DISTANCES",
    "JOINT_LENGTHS",
    "JOINT_MOMENTS",
    "AveragedStatistic",
    "Clipping",
    "Comparison",
    "Notice",
    "Outlook",
    "Plan",
    "PlanRow",
    "RefinePlan",
    "ShapePlan",
    "Verification",
    "compare",
    "needed_promise",
    "needed_units",
    "plan",
    "plan_mean",
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
    "verify",
]
