"""The spaces: one file each, one set of methods (theory section 2)."""

from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.euclidean import Euclidean
from dpmanifold.manifolds.hyperbolic import Hyperbolic
from dpmanifold.manifolds.kendall import KendallShapes
from dpmanifold.manifolds.layouts import Layout
from dpmanifold.manifolds.product import Product
from dpmanifold.manifolds.registry import SPACES, space_from_text
from dpmanifold.manifolds.spd import SPD
from dpmanifold.manifolds.sphere import Sphere

__all__ = [
    "SPACES",
    "SPD",
    "Euclidean",
    "Hyperbolic",
    "KendallShapes",
    "Layout",
    "Manifold",
    "Product",
    "Sphere",
    "space_from_text",
]
