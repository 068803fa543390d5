"""The spaces: one file each, one set of methods (theory section 2)."""

from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.euclidean import Euclidean
from dpmanifold.manifolds.hyperbolic import Hyperbolic
from dpmanifold.manifolds.kendall import KendallShapes
from dpmanifold.manifolds.spd import SPD
from dpmanifold.manifolds.sphere import Sphere

__all__ = ["SPD", "Euclidean", "Hyperbolic", "KendallShapes", "Manifold", "Sphere"]
