"""NOTHING IN THIS PACKAGE IS PRIVATE: Fréchet means, medians and variances, residuals and iteration counts are data.

The Fréchet mean minimises F(x) = (1/2n) sum dist(x, x_i)^2. With a ball it is solved, for every possible
input, to a tolerance on the gradient that is fixed in advance (theory: solver): fast Barzilai-Borwein steps
first, and where they do not end in time, a descent with a proven iteration cap. Private callers may rely on
the tolerance, and must show neither the residual nor the number of iterations.
"""

from dpmanifold.frechet.points_from_sources import MadeOf, made_of
from dpmanifold.frechet.points_per_unit import InClass, LabelledPoints, UnitPoints, made_by_class, made_from
from dpmanifold.frechet.reading import Reading
from dpmanifold.frechet.record_blocks import Records
from dpmanifold.frechet.solver import safe_step_and_cap
from dpmanifold.frechet.statistics import (
    FrechetMean,
    FrechetMedian,
    mean,
    median,
    unit_means,
    unit_points,
    variance,
)
from dpmanifold.frechet.tolerances import (
    default_tol,
    extrinsic_gap,
    gradient_rounding,
    hessian_range,
    lowest_tol,
    public_tol,
    tangent_gap,
)

__all__ = [
    "FrechetMean",
    "FrechetMedian",
    "InClass",
    "LabelledPoints",
    "MadeOf",
    "Reading",
    "Records",
    "UnitPoints",
    "default_tol",
    "extrinsic_gap",
    "gradient_rounding",
    "hessian_range",
    "lowest_tol",
    "made_by_class",
    "made_from",
    "made_of",
    "mean",
    "median",
    "public_tol",
    "safe_step_and_cap",
    "tangent_gap",
    "unit_means",
    "unit_points",
    "variance",
]
