"""The questions users ask. Everything that touches data privately is called `private_*`."""

from dpmanifold.release import Clipping
from dpmanifold.stats.asking import Terms, ask, private_statistic
from dpmanifold.stats.averaged import AveragedStatistic, AverageProgram
from dpmanifold.stats.ball_estimation import BALL_QUERY, RADIUS as RADIUS, private_ball
from dpmanifold.stats.check import Verification, verify
from dpmanifold.stats.comparison import Comparison, compare
from dpmanifold.stats.curator import Notice
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold.stats.joint_moments import JOINT_DISTANCES, JOINT_LENGTHS, JOINT_MOMENTS
from dpmanifold.stats.k_sample import K_SAMPLE, private_k_sample_test
from dpmanifold.stats.lda import LDA, private_lda
from dpmanifold.stats.mean_plan import Plan, PlanRow, RefinePlan, plan_mean, required_privacy, required_units
from dpmanifold.stats.means import CLASS_MEANS, MEAN_QUERY, private_class_means, private_mean
from dpmanifold.stats.median import MEDIAN_QUERY, private_median
from dpmanifold.stats.outlook import Outlook, plan
from dpmanifold.stats.pair import Pair
from dpmanifold.stats.pga import PGA, private_pga
from dpmanifold.stats.program import Parallel, Program
from dpmanifold.stats.query import QUERIES, Option, Query
from dpmanifold.stats.region import REGION, private_region
from dpmanifold.stats.regression import REGRESSION_QUERY, private_regression
from dpmanifold.stats.samples import Groups, Labelled, Units, WithCovariate
from dpmanifold.stats.shaped import SHAPED as SHAPED
from dpmanifold.stats.shaping import ShapePlan
from dpmanifold.stats.two_sample import TWO_SAMPLE, private_two_sample_test
from dpmanifold.stats.variance import VARIANCE_QUERY, private_variance
from dpmanifold.stats.variance_interval import VARIANCE_INTERVAL, private_variance_interval

for _query in (  # in the order in which people are shown them
    MEAN_QUERY, MEDIAN_QUERY, REGION, VARIANCE_QUERY, VARIANCE_INTERVAL, PGA, BALL_QUERY, CLASS_MEANS, TWO_SAMPLE,
    K_SAMPLE, LDA, REGRESSION_QUERY,
):  # fmt: skip
    QUERIES.register(_query.name, _query)

__all__ = [
    "EACH_RECORD",
    "JOINT_DISTANCES",
    "JOINT_LENGTHS",
    "JOINT_MOMENTS",
    "QUERIES",
    "AverageProgram",
    "AveragedStatistic",
    "Clipping",
    "Comparison",
    "Groups",
    "Labelled",
    "Notice",
    "Option",
    "Outlook",
    "Pair",
    "Parallel",
    "Plan",
    "PlanRow",
    "Program",
    "Query",
    "RefinePlan",
    "ShapePlan",
    "Terms",
    "Units",
    "Verification",
    "WithCovariate",
    "ask",
    "compare",
    "plan",
    "plan_mean",
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
    "required_privacy",
    "required_units",
    "verify",
]
