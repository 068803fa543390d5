"""What the Riemannian Laplace and Gaussian laws share: densities that depend on the distance from a footpoint.

With respect to the volume measure the density is exp(-phi(rho(footpoint, x))). In normal coordinates at the
footpoint the direction is uniform and the radius has a log-concave density: both are drawn exactly (theory
section 4). Coordinates are drawn without looking at the footpoint, which enters last, by an isometry: neither the
radius nor the work tells where it is. Only truncation to a ball changes that.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property, lru_cache

import numpy as np

from dpmanifold._check import Array, FloatArray, positive_float
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.manifolds import Euclidean, Manifold
from dpmanifold.manifolds.optional_properties import Area
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.noise.radial import RadialLaw
from dpmanifold.noise.source import (
    MAX_ROUNDS,
    RandomSource,
    Rng,
    SimulationSource,
    Size,
    as_shape,
    as_source,
)

# Scales outside this range make no sense, and their squares or reciprocals leave the doubles.
_SCALES = (1e-300, 1e300)


def checked_scale(scale: object) -> float:
    """Return a scale as a float in the range that makes sense, or say what is wrong with it.

    Examples
    --------
    >>> checked_scale(0.5)
    0.5
    """
    number = positive_float(scale, "scale")
    if not _SCALES[0] <= number <= _SCALES[1]:
        raise InvalidArgumentError(f"scale must be between {_SCALES[0]:g} and {_SCALES[1]:g}, got {number:g}.")
    return number


def area_of(space: Manifold) -> Area:
    """Return the area function of a space, or say that it has none.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Sphere
    >>> area = area_of(Sphere(2))
    >>> t = np.array([np.pi / 2])
    >>> bool(np.isclose(np.exp(area.log_shape(t) + area.log_factor), 2 * np.pi)[0])    # the equator's length
    True
    """
    area = space.sphere_area()
    if area is None:
        raise InvalidArgumentError(
            f"no noise law about a point is known on {space!r}: the area of its geodesic spheres is not. Use noise on "
            "tangent means, which every space has."
        )
    return area


# The probability that a draw lands where double precision cannot represent it must stay below this.
_LOST = 1e-30

# A truncated law is refused if fewer than this share of its draws would fall into the ball from its edge, judged by
# simulation with public parameters (less four standard errors, at a few extreme points of the edge: a heuristic, not
# a proof). With that share the rounds below all fail with a probability under 1e-17.
_LEAST_INSIDE = 0.01
_EDGE_DRAWS = 4000
_TRUNCATED_ROUNDS = 4000

# A footpoint may lie outside the ball by this share of the radius: rounding of whoever computed it. It is moved in.
_OUTSIDE = 1e-6

# A direction must be accepted this often, judged by simulation, or the law is refused: MAX_ROUNDS in vain then have
# a probability below 1e-9 even if the estimate were twice too high.
_LEAST_ACCEPTED = 0.2
_DIRECTION_DRAWS = 400

# How far rounding may carry the log of an acceptance probability above 0.
_EXCESS = 1e-9

# Numbers held at a time while sampling.
_BLOCK = 4_194_304


class DistanceLaw(ABC):
    """A law whose density is a function of the distance from a footpoint.

    Parameters
    ----------
    space : the space
    footpoint : one point of it
    scale : sigma of theory section 4, above 0
    ball : truncate to this ball; the whole space if left out. The footpoint must lie in it

    Attributes
    ----------
    normalized : whether `logpdf` includes the normaliser
    radius_is_exact : whether `radius` is the law of the distance, or one that is provably larger
    """

    def __init__(self, space: Manifold, footpoint: object, scale: float, ball: Ball | None = None) -> None:
        if not isinstance(space, Manifold):
            raise InvalidArgumentError(f"`space` must be a space such as SPD(3), got {type(space).__name__}.")
        self.space = space
        self.scale = checked_scale(scale)
        self.footpoint = space.as_points(footpoint, "footpoint", batch=False)
        self.ball = ball
        if float(space.dist(space.origin, self.footpoint)) > space.farthest:
            raise InvalidArgumentError("footpoint is too far from the origin for double precision. Rescale the data.")
        self._area = area_of(space)
        if ball is None:
            self._require_existence()
            self._end = self._area.end
            self._require_representable()
            self._require_acceptance()
        else:
            if ball.space != space:
                raise InvalidArgumentError(f"`ball` must lie in {space!r}, got one in {ball.space!r}.")
            if float(space.dist(ball.center, self.footpoint)) > ball.radius * (1 + _OUTSIDE):
                raise InvalidArgumentError("footpoint must lie in the ball. Clip it first (ball.clip).")
            self.footpoint = ball.pull_in(self.footpoint[None])[0]
            self._end = min(2 * ball.radius, self._area.end)
            self._require_acceptance()
            self._require_room()
        self.normalized = self.radius_is_exact = ball is None and self._area.log_ceiling is None

    def __repr__(self) -> str:
        where = "" if self.ball is None else f", truncated to radius {self.ball.radius:.6g}"
        return f"{type(self).__name__}({self.space!r}, scale={self.scale:.6g}{where})"

    # ---------------------------------------------------------------- the two laws differ in this

    @abstractmethod
    def _phi(self, t: FloatArray) -> FloatArray:
        """Minus the log density at distance t."""

    @staticmethod
    @abstractmethod
    def _log_radial(t: FloatArray, scale: float, rate: float) -> FloatArray:
        """Log of the radial density that is not area: rate * t - phi(t) up to a constant, without cancellation."""

    @staticmethod
    @abstractmethod
    def _radial_slope(t: FloatArray, scale: float, rate: float) -> FloatArray:
        """Derivative of the same."""

    @abstractmethod
    def _radial_constant(self, rate: float) -> float:
        """What `_log_radial` leaves out of rate * t - phi(t)."""

    @abstractmethod
    def _require_existence(self) -> None:
        """Refuse a scale at which the law has infinite mass, naming what to use instead."""

    @abstractmethod
    def _flat_coords(self, n: int, source: RandomSource) -> FloatArray:
        """Draw n coordinate vectors on a flat space."""

    # ---------------------------------------------------------------- radius

    @cached_property
    def radius(self) -> RadialLaw:
        """The law of the distance from the footpoint, before any truncation to a ball.

        Exact on flat and rank-one spaces (`radius_is_exact`). On affine-invariant matrices it is the ceiling that
        sampling starts from: the true radius is smaller in the sense of likelihood ratios, hence in mean and in
        every quantile, by a few percent at the scales that releases use. Truncated laws: see theory section 4.
        """
        return _radius_law(type(self), self.space, self.scale, self._end)

    def mean_radius(self) -> float:
        """Return the expected distance from the footpoint (an upper bound where `radius_is_exact` is False)."""
        return self.radius.mean()

    # ---------------------------------------------------------------- draws

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw points, shape (*size, *space.shape); one point if size is None.

        Parameters
        ----------
        size : int, tuple of ints or None
        rng : None for bits of the operating system; a seed, numpy Generator or RandomSource for simulations
        """
        return self.sample_counted(size, rng)[0]

    def sample_counted(self, size: Size | None = None, rng: Rng = None) -> tuple[Array, int]:
        """Draw points and say how many proposals that took (public, unless the law is truncated to a ball)."""
        shape = () if size is None else as_shape(size)
        source = as_source(rng)
        n = math.prod(shape)
        if self.ball is None:
            c, proposals = self.sample_coords(n, source)
            points = self._place(c)
        else:
            points, proposals = self._sample_truncated(self.ball, n, source)
        return points.reshape(*shape, *self.space.shape), proposals

    def sample_coords(self, n: int, source: RandomSource) -> tuple[FloatArray, int]:
        """Draw normal coordinates at the footpoint, (n, dim), before truncation; and the proposals taken.

        The footpoint plays no part: the same random bits give the same coordinates wherever it is.
        """
        if self.space.is_flat and math.isinf(self._end):
            return self._flat_coords(n, source), n
        return draw_coords(self.space, self._area, self.radius, n, source)

    def _place(self, c: FloatArray) -> Array:
        """Carry coordinates at the footpoint to the space."""
        if not self.space.is_flat:
            return self.space.exp_coords(self.footpoint, c)
        # On flat spaces one addition, and what cannot be represented is cut off afterwards: post-processing.
        origin = self.space.origin
        total = self.space.log_coords(origin, self.footpoint) + c
        return self.space.exp_coords(origin, shorten(total, self.space.farthest))

    def _sample_truncated(self, ball: Ball, n: int, source: RandomSource) -> tuple[Array, int]:
        points = np.empty((n, *self.space.shape), dtype=self.space.dtype)
        missing = np.arange(n)
        proposals = 0
        for _ in range(_TRUNCATED_ROUNDS):
            if missing.size == 0:
                return points, proposals
            c, tried = self.sample_coords(missing.size, source)
            drawn = self._place(c)
            proposals += tried
            inside = self.space.dist(ball.center, drawn) <= ball.radius
            points[missing[inside]] = drawn[inside]
            missing = missing[~inside]
        raise SamplerError(f"{self!r} did not end after {_TRUNCATED_ROUNDS} rounds.")

    # ---------------------------------------------------------------- density

    def logpdf(self, x: object) -> FloatArray:
        """Log density at points (..., *space.shape) with respect to the volume measure.

        Includes the normaliser where `normalized` says so; minus infinity outside the ball of a truncated law.
        """
        points = self.space.as_points(x, "x")
        value = -self._phi(self.space.dist(self.footpoint, points))
        if self.normalized:
            value = value - self.log_normalizer()
        if self.ball is not None:
            value = np.where(self.space.dist(self.ball.center, points) <= self.ball.radius, value, -np.inf)
        return np.asarray(value)

    def log_normalizer(self) -> float:
        """Log of the integral of exp(-phi) over the space; refused where it is not known."""
        if not self.normalized:
            raise InvalidArgumentError(f"the normaliser of {self!r} is not known in closed form.")
        return self.radius.log_normalizer() + self._area.log_factor + self._radial_constant(self._area.rate)

    # ---------------------------------------------------------------- refusals

    def _require_representable(self) -> None:
        """Refuse a law that would put draws where an exponential overflows."""
        if self.space.is_flat or math.isfinite(self._area.end):
            return
        if float(self.radius.sf(self.space.farthest)) > _LOST:
            raise InvalidArgumentError(
                f"scale = {self.scale:.4g} is too large on {self.space!r}: draws would leave what double precision can "
                "represent. Use more records, a weaker promise or a smaller ball."
            )

    def _require_acceptance(self) -> None:
        """Refuse a law whose directions would hardly ever be accepted; judged with public parameters."""
        if self._area.log_ceiling is None:
            return
        share = _accepted_directions(type(self), self.space, self.scale, self._end)
        if share < _LEAST_ACCEPTED:
            raise InvalidArgumentError(
                f"scale = {self.scale:.4g} is too large for exact draws on {self.space!r}: only {share:.2g} of the "
                "proposals would be accepted. Use a wrapped law, more records or a smaller ball."
            )

    def _require_room(self) -> None:
        """Refuse a truncation that would reject nearly everything, judged at the ball's edge by simulation."""
        assert self.ball is not None
        space, radius = self.space, self.ball.radius
        worst = _inside_from_edge(type(self), space, self.scale, self._end, radius)
        if worst < _LEAST_INSIDE:
            raise InvalidArgumentError(
                f"scale = {self.scale:.4g} is too large to truncate to a ball of radius {radius:.4g} on {space!r}: "
                f"from its edge only {worst:.2g} of the draws fall inside. Use the law on the whole space and move "
                "the draw into the ball afterwards, or a wrapped law."
            )


@lru_cache(maxsize=256)
def _radius_law(kind: type[DistanceLaw], space: Manifold, scale: float, end: float) -> RadialLaw:
    """Make the law of the radius, or take it from a cache: it depends on public parameters alone."""
    area = area_of(space)
    return RadialLaw(
        lambda t: area.log_shape(t) + kind._log_radial(t, scale, area.rate),
        lambda t: area.slope(t) + kind._radial_slope(t, scale, area.rate),
        [0.0, end],
    )


@lru_cache(maxsize=256)
def _accepted_directions(kind: type[DistanceLaw], space: Manifold, scale: float, end: float) -> float:
    """Estimate how often a direction is accepted against the ceiling of the volume density, by simulation."""
    area, source = area_of(space), SimulationSource(0)
    assert area.log_ceiling is not None
    t = _radius_law(kind, space, scale, end).sample(_DIRECTION_DRAWS, source)
    c = source.direction(_DIRECTION_DRAWS, space.dim) * t[:, None]
    return float(np.exp(space.log_volume_density(c) - area.log_ceiling(t)).mean())


@lru_cache(maxsize=256)
def _inside_from_edge(kind: type[DistanceLaw], space: Manifold, scale: float, end: float, radius: float) -> float:
    """Estimate, from below, how many draws about a point of a ball's edge fall into the ball."""
    law = _radius_law(kind, space, scale, end)
    draws = max(_EDGE_DRAWS // 10, min(_EDGE_DRAWS, 30_000 // space.dim))  # a plan must not take long
    c, _ = draw_coords(space, area_of(space), law, draws, SimulationSource(0))
    worst = 1.0
    for direction in space.edge_directions():
        edge = space.exp_coords(space.origin, radius * direction)
        share = float((space.dist(space.origin, space.exp_coords(edge, c)) <= radius).mean())
        worst = min(worst, share - 4 * math.sqrt(share * (1 - share) / draws))
    return worst


def draw_coords(space: Manifold, area: Area, radius: RadialLaw, n: int, source: RandomSource) -> tuple[FloatArray, int]:
    """Draw coordinates (n, dim) with a given law of the radius, and the number of proposals that took.

    Directions are uniform; where the volume density depends on them they are accepted against its ceiling.
    """
    result = np.empty((n, space.dim))
    proposals = 0
    missing = np.arange(n)
    step = max(1, _BLOCK // max(space.dim, 64))
    for _ in range(MAX_ROUNDS):
        if missing.size == 0:
            return result, proposals
        kept = np.ones(missing.size, dtype=bool)
        for start in range(0, missing.size, step):
            block = missing[start : start + step]
            t, tried = radius.sample_counted(block.size, source)
            c = source.direction(block.size, space.dim) * t[:, None]
            result[block] = c
            proposals += tried
            if area.log_ceiling is not None:
                log_ratio = space.log_volume_density(c) - area.log_ceiling(t)
                require_below_one(log_ratio)
                kept[start : start + step] = source.uniform(block.size) <= np.exp(log_ratio)
        missing = missing[~kept]
    raise SamplerError(f"coordinates on {space!r} were not drawn after {MAX_ROUNDS} rounds.")


def require_below_one(log_ratio: FloatArray) -> None:
    """Stop if an acceptance probability exceeds 1 by more than rounding (NaN included): a proof would be wrong."""
    if not (log_ratio <= _EXCESS).all():
        raise SamplerError("an acceptance probability rose above 1. Please report this.")


class RiemannianGaussian(DistanceLaw):
    """Density exp(-rho(footpoint, x)^2 / (2 scale^2)) with respect to the volume measure; exists for every scale.

    On a flat space it is the ordinary normal law. Parameters and attributes are those of :class:`DistanceLaw`.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import SPD
    >>> law = RiemannianGaussian(SPD(3, metric="riemann"), np.eye(3), scale=0.1)
    >>> law.sample(5, rng=0).shape
    (5, 3, 3)
    >>> law.radius_is_exact, round(law.mean_radius(), 3)
    (False, 0.235)
    """

    def _phi(self, t: FloatArray) -> FloatArray:
        return (t / self.scale) ** 2 / 2

    @staticmethod
    def _log_radial(t: FloatArray, scale: float, rate: float) -> FloatArray:
        # rate * t - t^2/(2 s^2), as a square about its maximum at rate * s^2.
        return -((t / scale - rate * scale) ** 2) / 2

    @staticmethod
    def _radial_slope(t: FloatArray, scale: float, rate: float) -> FloatArray:
        return -(t / scale - rate * scale) / scale

    def _radial_constant(self, rate: float) -> float:
        return (rate * self.scale) ** 2 / 2

    def _require_existence(self) -> None:
        return

    def _flat_coords(self, n: int, source: RandomSource) -> FloatArray:
        return source.normal((n, self.space.dim)) * self.scale


# Where the volume density is only known by a ceiling, draws are accepted too rarely below this multiple of its rate.
_CEILING_LIMIT = 1.5


class RiemannianLaplace(DistanceLaw):
    """Density exp(-rho(footpoint, x)/scale) with respect to the volume measure.

    On a flat space the radius is Gamma(dim, scale). On negatively curved spaces volume grows exponentially, and
    the law exists only for small scales: 1/scale > (d - 1) sqrt(c) on hyperbolic space; on affine-invariant
    matrices exact draws need 1/scale >= 1.5 N a, N = k(k-1)/2, a = 1/sqrt(2(k-1)).

    Parameters and attributes are those of :class:`DistanceLaw`.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> law = RiemannianLaplace(Sphere(2), [1.0, 0.0, 0.0], scale=0.1)
    >>> law.sample(5, rng=0).shape
    (5, 3)
    >>> round(law.mean_radius(), 4)
    0.198
    """

    def _phi(self, t: FloatArray) -> FloatArray:
        return t / self.scale

    @staticmethod
    def _log_radial(t: FloatArray, scale: float, rate: float) -> FloatArray:
        return -t * (1 / scale - rate)

    @staticmethod
    def _radial_slope(t: FloatArray, scale: float, rate: float) -> FloatArray:
        return np.full_like(t, rate - 1 / scale)

    def _radial_constant(self, rate: float) -> float:
        return 0.0

    def _require_existence(self) -> None:
        rate = self._area.rate
        if rate == 0:
            return
        bounded = self._area.log_ceiling is not None
        needed = rate * (_CEILING_LIMIT if bounded else 1.0)
        if 1 / self.scale <= needed:
            why = "exact draws become too rare" if bounded else "the law has infinite mass"
            raise InvalidArgumentError(
                f"scale must be below {1 / needed:.6g} for the Laplace law on {self.space!r}, got {self.scale:.6g}: "
                f"beyond it {why}. Use the wrapped Laplace law, which exists for every scale, or truncate to the ball."
            )

    def _flat_coords(self, n: int, source: RandomSource) -> FloatArray:
        d = self.space.dim
        length = source.gamma(float(d), n) if d > 1 else source.exponential(n)
        return source.direction(n, d) * (length * self.scale)[:, None]


def flat_law(law: str, dim: int, scale: float) -> DistanceLaw:
    """Return the law of noise in R^dim, about 0: "gaussian", or "laplace" of density exp(-|z|/scale).

    Examples
    --------
    >>> flat_law("gaussian", 3, 0.5)
    RiemannianGaussian(Euclidean(3), scale=0.5)
    """
    flat = Euclidean(dim)
    return (RiemannianGaussian if law == "gaussian" else RiemannianLaplace)(flat, flat.origin, scale)
