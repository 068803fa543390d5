"""What every space offers, and the parts that are the same for all of them.

Points are arrays `(..., *space.shape)` with batches in front; the base point comes first and batches
broadcast. Tangent vectors are arrays of the same shape as points; their *coordinates* are taken in an
orthonormal frame, so that the Riemannian norm is the Euclidean norm of the coordinates.

Every space here is homogeneous: an isometry moves any base point to `space.origin`. A space therefore
describes its geometry at the origin, plus that isometry (`to_origin`, `from_origin`); the frame at a
point is the image of the frame at the origin. Volume density and Hessian depend on the normal
coordinates alone, not on the base point.

Geometry methods trust their input (they look at shapes only). `check` says what is wrong with a point
and `as_points` refuses it; everything that takes a user's data calls `as_points` first.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import Any, final

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.embedding import Embedding
from dpmanifold.manifolds.exact_points import ExactPoints
from dpmanifold.manifolds.optional_properties import Area, RankOne, StoredNumbers, flat_area, sinh_ceiling
from dpmanifold.manifolds.points import POINT_TOLERANCE
from dpmanifold.manifolds.throughput import Throughput
from dpmanifold.manifolds.vectors import EPS, shorten, unit_direction, vector_norm
from dpmanifold.registry import is_own

# Factors above exp(this) are not worth telling apart, and the next ones overflow.
_LARGEST_EXPONENT = 700.0

# Hyperbolic functions of about this many units still leave room for products of two of them.
_FARTHEST = 290.0


class Manifold(Throughput):
    """A homogeneous Riemannian manifold with exact exponential and logarithm."""

    shape: tuple[int, ...]
    """Shape of one point."""
    dtype: np.dtype[np.generic] = np.dtype(np.float64)
    """Type of a point's entries."""
    curvature: tuple[float, float]
    """Smallest and largest sectional curvature (0, 0 on one-dimensional spaces, which have none)."""
    injectivity_radius: float
    """Below this distance geodesics are shortest and unique."""
    is_flat: bool
    """Isometric to a Euclidean space: normal coordinates are an isometry."""
    is_hadamard: bool
    """Complete, simply connected, nowhere positively curved (flat spaces included)."""
    is_homogeneous: bool = True
    """An isometry moves any point to any other; true of every space here."""
    origin: Array
    """A fixed point, at which the geometry is written down."""

    # ---------------------------------------------------------------- facts that a space may know better

    diameter: float = math.inf
    """The largest distance between two points, if it is also the injectivity radius; infinite otherwise."""
    is_vector_space: bool = False
    """Points add entry by entry: exp_coords(p, c) is p + c, as stored."""
    smaller_ball: str = "Choose a smaller ball."
    """What to do where a ball is too large for double precision, as a sentence."""
    stored: StoredNumbers | None = None
    """How the papers' extrinsic baselines add noise to stored numbers; None where they do not."""
    rank_one: RankOne | None = None
    """Its radial facts, where all directions are alike: what laws of distance and exact profiles are made of."""
    exact_points: ExactPoints | None = None
    """How points are moved exactly; None where draws about a point are made in doubles."""

    @cached_property
    def farthest(self) -> float:
        """The length beyond which normal coordinates at the origin cannot be represented as a point."""
        bottom = self.curvature[0]
        return _FARTHEST / math.sqrt(-bottom) if bottom < 0 else math.inf

    @property
    def gaussian_proof(self) -> str:
        """Why noise of density exp(-rho^2/(2 sigma^2)) about a point keeps what it keeps on flat spaces; "" if unknown.

        "flat", "rank-one" (spheres and complex projective spaces), "product", or "normal-homogeneous": a compact group
        with a bi-invariant metric, or a quotient of one that has the quotient's metric (theory: profile, product). A
        space states it, as its curvature alone does not tell.
        """
        return "flat" if self.is_flat else ""

    @final
    @property
    def has_gaussian(self) -> bool:
        """Whether there is such a proof."""
        return self.gaussian_proof != ""

    def embedding(self, radius: float) -> Embedding | None:
        """Return a map to vectors whose average has a meaning, for the ball of this radius about the origin.

        The injectivity radius stands for the whole space. None where there is no such map: the default.
        """
        return None

    def exact_sampler(self, law: str) -> Any | None:
        """Return a :class:`~dpmanifold.noise.ExactSampler` of the space's own for a law, "laplace" or "gaussian".

        None, the default, where laws of the distance will do: they are made of `exact_points`.
        """
        return None

    def sphere_area(self) -> Area | None:
        """Return the area of geodesic spheres, or a ceiling of it; None where no law about a point is known.

        By default exact on flat spaces, and on other Hadamard spaces Bishop's ceiling (theory section 4, noise).
        """
        if self.is_flat:
            return flat_area(self.dim)
        if self.is_hadamard:
            return sinh_ceiling(self.dim, self.dim - 1, math.sqrt(-self.curvature[0]))
        return None

    def volume_ceiling(self) -> tuple[int, float]:
        """Return N and a such that J <= (sinh(a t)/(a t))^N at normal coordinates of length t, on Hadamard spaces.

        Bishop's volume comparison by default; a space that knows better says so. No pairs where J is 1.
        """
        return (0, 0.0) if self.is_flat else (self.dim - 1, math.sqrt(-self.curvature[0]))

    def edge_directions(self) -> list[FloatArray]:
        """Return unit vectors of coordinates in which a ball's edge is most unlike: where worst cases are looked for.

        One frame direction by default, which is enough where isometries take any direction to any other.
        """
        return [np.eye(self.dim)[0]]

    def distance_factor(self, distance: float) -> float | None:
        """Return what a distance means as a factor on `factor_of`; None where it means nothing of the kind."""
        return None if self.factor_of is None else math.exp(min(distance, _LARGEST_EXPONENT))

    # ---------------------------------------------------------------- facts that follow

    @cached_property
    def foreign(self) -> list[Manifold]:
        """It and the factors that it is a product of, as far as they are not the library's own."""
        factors = [part for factor in getattr(self, "factors", ()) for part in factor.foreign]
        return factors if is_own(self) else [self, *factors]

    @property
    def radius_limit(self) -> float:
        """The limit r* for the radius of a ball (theory section 1); infinite on Hadamard spaces.

        Below it the ball is convex, and the Fréchet mean of data in it exists, is unique and lies in it.
        """
        top = self.curvature[1]
        reach = math.pi / (2 * math.sqrt(top)) if top > 0 else math.inf
        return min(self.injectivity_radius, reach) / 2

    def hessian_bounds(self, distance: float) -> tuple[float, float]:
        """Bounds on the Hessian's eigenvalues of half the squared distance, up to `distance`.

        Hessian comparison with the extreme curvatures: `u cot u` below (u = sqrt(curvature) * distance), `u coth u`
        above; 1 where the sign of the curvature makes that the bound. Theory section 2.
        """
        bottom, top = self.curvature
        low = high = 1.0
        if top > 0:
            u = math.sqrt(top) * distance
            low = u / math.tan(u) if u > 0 else 1.0
        if bottom < 0:
            u = math.sqrt(-bottom) * distance
            high = u / math.tanh(u) if u > 0 else 1.0
        return low, high

    # ---------------------------------------------------------------- geometry

    @abstractmethod
    def dist(self, p: Array, q: Array) -> FloatArray:
        """Geodesic distance, batches broadcast."""

    @abstractmethod
    def to_origin(self, p: Array, q: Array) -> Array:
        """Move `q` by the isometry that takes `p` to the origin."""

    @abstractmethod
    def from_origin(self, p: Array, q: Array) -> Array:
        """Move `q` by the isometry that takes the origin to `p`; undoes :meth:`to_origin`."""

    def canonical(self, p: Array) -> Array:
        """Return points (..., *shape) as the one array that stands for each; as they are, where no other one does.

        Where several arrays are one point, which of them was computed tells how it was reached: a draw about a private
        mean would tell of that mean. Whatever leaves a ball's frame goes through here.
        """
        return p

    @final
    def into_frame(self, center: Array, q: Array) -> Array:
        """Move points as a ball's frame has them: to coordinates at its centre on a flat space, else to the origin."""
        return self.log_coords(center, q) if self.is_flat else self.to_origin(center, q)

    @final
    def out_of_frame(self, center: Array, q: Array) -> Array:
        """Move points of a ball's frame, about the origin, to the ball's place: each as its :meth:`canonical` array."""
        return self.canonical(self.project(self.from_origin(center, q)))

    @abstractmethod
    def exp_coords(self, p: Array, c: FloatArray) -> Array:
        """Return the point with normal coordinates `c` at `p`, by the exponential map; undoes :meth:`log_coords`."""

    @abstractmethod
    def coords(self, p: Array, v: Array) -> FloatArray:
        """Coordinates of the tangent vector `v` in the orthonormal frame at `p`, shape (..., dim)."""

    @abstractmethod
    def vector(self, p: Array, c: FloatArray) -> Array:
        """Return the tangent vector with coordinates `c` in the frame at `p`; undoes :meth:`coords`."""

    def log(self, p: Array, q: Array) -> Array:
        """Riemannian logarithm map: the tangent vector at `p` whose geodesic reaches `q` at time 1."""
        return self.vector(p, self.log_coords(p, q))

    def exp(self, p: Array, v: Array) -> Array:
        """Riemannian exponential map: where the geodesic from `p` with velocity `v` is at time 1."""
        return self.exp_coords(p, self.coords(p, v))

    def inner(self, p: Array, v: Array, w: Array) -> FloatArray:
        """Riemannian inner product of tangent vectors at `p`."""
        return np.asarray((self.coords(p, v) * self.coords(p, w)).sum(axis=-1))

    def norm(self, p: Array, v: Array) -> FloatArray:
        """Riemannian length of a tangent vector at `p`."""
        return vector_norm(self.coords(p, v))

    @abstractmethod
    def log_volume_density(self, c: FloatArray) -> FloatArray:
        """Log of the volume density of the exponential at normal coordinates `c` (theory section 2, J)."""

    @abstractmethod
    def hessian_spectrum(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Hessian of half the squared distance to a point with normal coordinates `c`.

        Returns eigenvalues (..., dim) and, as columns, their orthonormal directions (..., dim, dim) in the
        frame's coordinates. Theory section 2.
        """

    def hessian_diameter(self, distance: float) -> float:
        """Bound the Frobenius distance between two such Hessians at one point, both ends within `distance` of it.

        What one record can do to a mean Hessian (theory section 7, hessian): by default sqrt(d) times the width of
        the range of their eigenvalues.
        """
        low, high = self.hessian_bounds(distance)
        return math.sqrt(self.dim) * (high - low)

    @abstractmethod
    def curvature_operator(self, second_moment: FloatArray) -> FloatArray:
        """Mean of w -> R(w, v)v over vectors v with this matrix of second moments, (d, d) both ways.

        Linear in the second moment, and the same at every point; sectional curvatures are its entries for unit
        vectors. What a second moment tells about the mean Hessian (theory section 7, region).
        """

    def extrinsic_mean(self, points: Array, weights: FloatArray) -> Array:
        """Return a cheap point near the Fréchet mean of `points` (n, *shape): where solvers start.

        By default the exponential, at the origin, of the average logarithm there.
        """
        total, _ = self.weighted_log(self.origin, points, weights)
        return self.exp_coords(self.origin, total)

    # ---------------------------------------------------------------- rounding

    @abstractmethod
    def dist_error(self, center: Array, radius: float) -> float:
        """Forward error bound of `dist(center, x)` for stored x at a computed distance of at most `radius`.

        Theory: rounding. Infinite where double precision cannot tell.
        """

    @abstractmethod
    def log_error(self, radius: float) -> float:
        """Forward error bound of `log_coords(p, q)` for p, q within `radius` of the origin."""


__all__ = ["EPS", "POINT_TOLERANCE", "Manifold", "shorten", "unit_direction", "vector_norm"]
