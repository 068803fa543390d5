"""The K-norm gradient law: density exp(-|grad F(x)|/scale) on a ball, F the Fréchet function of the data.

Soto, Bharath, Reimherr and Slavković (2022) draw from it with a Markov chain and call an exact sampler an open
problem. Here is one (theory section 4): along geodesics from the mean the gradient grows at least as fast as an
integral of Hessian bounds, which gives a law of the radius that dominates; draws from that are accepted or not.
How often depends on the data, so the running time of this law tells about them.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, SamplerError
from dpmanifold.manifolds.optional_properties import Area
from dpmanifold.manifolds.vectors import u_cot_u, vector_norm
from dpmanifold.noise.distance import area_of, checked_scale, draw_coords, require_below_one
from dpmanifold.noise.radial import RadialLaw
from dpmanifold.noise.source import RandomSource, Rng, SimulationSource, Size, as_shape, as_source

# Pieces of the lower bound of the gradient on positively curved spaces; more of them gain less than 1 %.
_PIECES = 64
# A law is refused if, for data at the ball's edge, fewer proposals than this share would be accepted, judged by
# simulation with public parameters (a heuristic for the worst case, not a proof). With it, the rounds below all fail
# with a probability under 1e-80; a failure would depend on the data.
_LEAST_ACCEPTED = 0.002
_EDGE_DRAWS = 2000
_ROUNDS = 100_000
_BLOCK = 4_194_304


class GradientLaw:
    """Density exp(-|grad F(x)|/scale) on the ball, F(x) = (1/2n) sum dist(x, x_i)^2.

    Parameters
    ----------
    ball : the public ball, and the support of the law
    X : the records, one per unit, (n, *shape); clipped into the ball. Or UnitPoints in the ball's frame
    scale : sigma of theory section 4, above 0
    tol : public bound on the gradient left at the computed mean; `frechet.default_tol` by default

    Attributes
    ----------
    normalized : False: the normaliser depends on the data and is not known

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.4)
    >>> X = Sphere(2).project([1.0, 0.0, 0.0] + 0.2 * np.random.default_rng(0).standard_normal((50, 3)))
    >>> law = GradientLaw(ball, X, scale=0.05)
    >>> bool(ball.contains(law.sample(10, rng=0)).all())
    True
    """

    normalized = False

    def __init__(self, ball: Ball, X: object, scale: float, tol: float | None = None) -> None:
        if not isinstance(ball, Ball):
            raise InvalidArgumentError(f"`ball` must be a Ball, got {type(ball).__name__}.")
        self.ball = ball
        self.space = ball.space
        self.scale = checked_scale(scale)
        self._frame = ball.frame
        self._points = X.array() if isinstance(X, frechet.UnitPoints) else ball.to_frame(X)
        if self._points.ndim != 1 + len(self._frame.shape) or len(self._points) == 0:
            raise InvalidDataError(f"`X` must be a batch of at least one record, got shape {np.shape(self._points)}.")
        self.tol = frechet.public_tol(ball, len(self._points), tol)
        require_room(ball, self.scale, self.tol)
        if isinstance(X, frechet.UnitPoints) and tol is None:
            self._mean = X.mean()
        else:
            self._mean = frechet.mean(self._points, ball.in_frame, tol=self.tol).in_frame
        self._area = area_of(self._frame)
        if 2 * ball.radius >= self._area.end:
            raise InvalidArgumentError(f"the ball of radius {ball.radius:.4g} reaches around {self.space!r}.")
        self._knots, self._floor = self._gradient_floor()
        slopes = np.diff(self._floor) / np.diff(self._knots)
        self._radius = _radius_law(self._area, self._knots, self._floor, slopes, self.scale)

    def __repr__(self) -> str:
        return f"GradientLaw({self.ball!r}, scale={self.scale:.6g})"

    # ---------------------------------------------------------------- the dominating law

    def _gradient_floor(self) -> tuple[FloatArray, FloatArray]:
        """Return knots and values of H: |grad F(x)| >= H(rho(mean, x)) - tol for x in the ball."""
        reach = 2 * self.ball.effective_radius
        top = self.space.curvature[1]
        if top <= 0:
            return np.array([0.0, reach]), np.array([0.0, reach])
        knots = np.linspace(0.0, reach, _PIECES + 1)
        width = knots[1]
        away = self._frame.dist(self._mean, self._points)
        total = np.zeros(_PIECES)
        root = math.sqrt(top)
        for start in range(0, len(away), _BLOCK // (8 * _PIECES)):
            distance = away[start : start + _BLOCK // (8 * _PIECES), None] + knots
            hessian = u_cot_u(root * np.minimum(distance, reach))
            # Concave and decreasing up to the cap: the chord is below it. Across the cap, its value at the right end.
            capped = distance[:, 1:] > reach
            piece = np.where(capped, hessian[:, 1:], (hessian[:, :-1] + hessian[:, 1:]) / 2)
            total += piece.sum(axis=0)
        return knots, np.concatenate([[0.0], np.cumsum(total * width / len(away))])

    # ---------------------------------------------------------------- draws

    def sample(self, size: Size | None = None, rng: Rng = None) -> Array:
        """Draw points of the ball, shape (*size, *space.shape); one point if size is None.

        Parameters
        ----------
        size : int, tuple of ints or None
        rng : None for bits of the operating system; a seed, numpy Generator or RandomSource for simulations
        """
        return self.sample_counted(size, rng)[0]

    def sample_counted(self, size: Size | None = None, rng: Rng = None) -> tuple[Array, int]:
        """Draw points and say how many proposals that took. The number is data: never show it."""
        shape = () if size is None else as_shape(size)
        n = math.prod(shape)
        source = as_source(rng)
        points = np.empty((n, *self._frame.shape), dtype=self._frame.dtype)
        missing = np.arange(n)
        proposals = 0
        for _ in range(_ROUNDS):
            if missing.size == 0:
                return self.ball.pull_in(self.ball.from_frame(points)).reshape(*shape, *self.space.shape), proposals
            drawn, kept, tried = self._propose(missing.size, source)
            proposals += tried
            points[missing[kept]] = drawn[kept]
            missing = missing[~kept]
        raise SamplerError(f"{self!r} did not end after {_ROUNDS} rounds.")

    def _propose(self, n: int, source: RandomSource) -> tuple[Array, Array, int]:
        """Return proposals in the ball's frame and which are accepted, with the same H in both steps."""
        c, tried = draw_coords(self._frame, self._area, self._radius, n, source)
        drawn = self._frame.exp_coords(self._mean, c)
        inside = self._frame.dist(self._frame.origin, drawn) <= self.ball.radius
        log_ratio = np.full(n, -np.inf)
        floor = np.interp(vector_norm(c[inside]), self._knots, self._floor)
        excess = self._gradient_norm(drawn[inside]) - floor + self.tol
        log_ratio[inside] = -excess / self.scale
        require_below_one(log_ratio)
        return drawn, source.uniform(n) <= np.exp(log_ratio), tried

    # ---------------------------------------------------------------- density

    def _gradient_norm(self, points: Array) -> FloatArray:
        """Norm of the gradient at points of the ball's frame, (m, *shape) -> (m,)."""
        if self.space.is_flat:
            return vector_norm(points - self._mean)
        result = np.empty(len(points))
        n, d = len(self._points), max(self._frame.dim, math.prod(self._frame.shape))
        step = max(1, _BLOCK // (8 * n * d))
        for start in range(0, len(points), step):
            block = points[start : start + step]
            total = np.zeros((len(block), self._frame.dim))
            inner = max(1, _BLOCK // (8 * len(block) * d))
            for first in range(0, n, inner):
                records = self._points[first : first + inner]
                total += self._frame.log_coords(block[:, None], records[None]).sum(axis=1)
            result[start : start + step] = vector_norm(total / n)
        return result

    def logpdf(self, x: object) -> FloatArray:
        """Log density at points (..., *shape), up to its constant; minus infinity outside the ball."""
        points = self.space.as_points(x, "x")
        batch = points.shape[: points.ndim - len(self.space.shape)]
        flat = points.reshape(-1, *self.space.shape)
        value = -self._gradient_norm(self.space.into_frame(self.ball.center, flat)) / self.scale
        inside = self.space.dist(self.ball.center, flat) <= self.ball.radius
        return np.where(inside, value, -np.inf).reshape(batch)


def require_room(ball: Ball, scale: float, tol: float) -> None:
    """Refuse, from public numbers, a scale at which draws would be accepted too rarely for some data.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> require_room(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5), scale=0.01, tol=1e-9)
    """
    if tol > scale:
        raise InvalidArgumentError(
            f"scale = {scale:.3g} is below the tolerance {tol:.3g} of the mean: the law is not known that finely. "
            "Use a larger scale or a smaller ball."
        )
    # The same about every centre: the frame has it at its origin.
    share = _worst_acceptance(Ball(ball.space, ball.space.origin, ball.radius), scale)
    if share < _LEAST_ACCEPTED:
        raise InvalidArgumentError(
            f"scale = {scale:.3g} is not suited to the K-norm gradient law in a ball of radius {ball.radius:.3g} on "
            f"{ball.space!r}: for data at its edge only {share:.1g} of the proposals would be accepted. Use the "
            "Riemannian or wrapped Laplace law."
        )


def _radius_law(area: Area, knots: FloatArray, floor: FloatArray, slopes: FloatArray, scale: float) -> RadialLaw:
    """Return the law of the radius that dominates, of density area(t) exp(-floor(t)/scale), floor piecewise linear."""

    def slope(t: FloatArray) -> FloatArray:
        piece = np.minimum(np.searchsorted(knots, t, side="right") - 1, len(slopes) - 1)
        return area.slope(t) + area.rate - slopes[piece] / scale

    return RadialLaw(lambda t: area.log_shape(t) + area.rate * t - np.interp(t, knots, floor) / scale, slope, knots)


@lru_cache(maxsize=2048)
def _worst_acceptance(ball: Ball, scale: float) -> float:
    """Estimate the share of accepted proposals when the mean is at the ball's edge, from public numbers.

    The mean squared distance of the records from the mean is at most r^2, so at arc length s the mean Hessian is at
    least 1 - (1 - h) min(1, (r + s)^2/(4r^2)) and at most c(r + s) (theory sections 3 and 4): proposals are made with
    the integral of the first, and the gradient is at most that of the second.
    """
    frame, r = ball.frame, ball.effective_radius
    area = area_of(frame)
    low = ball.space.hessian_bounds(2 * r)[0]
    knots = np.linspace(0.0, 2 * r, 2 if ball.space.is_flat else _PIECES + 1)
    middle = (knots[:-1] + knots[1:]) / 2
    slopes = 1 - (1 - low) * np.minimum(1.0, (r + middle) ** 2 / (4 * r * r))
    steepest = np.array([ball.space.hessian_bounds(r + s)[1] for s in middle])
    floor, ceiling = (np.concatenate([[0.0], np.cumsum(x * np.diff(knots))]) for x in (slopes, steepest))

    source = SimulationSource(0)
    draws = max(_EDGE_DRAWS // 10, min(_EDGE_DRAWS, 30_000 // frame.dim))  # a plan must not take long
    t = _radius_law(area, knots, floor, slopes, scale).sample(draws, source)
    c = source.direction(draws, frame.dim) * t[:, None]
    weight = np.exp(-(np.interp(t, knots, ceiling) - np.interp(t, knots, floor)) / scale)
    if area.log_ceiling is not None:
        weight *= np.exp(frame.log_volume_density(c) - area.log_ceiling(t))
    edge = frame.exp_coords(frame.origin, ball.radius * np.eye(frame.dim)[0])
    inside = frame.dist(frame.origin, frame.exp_coords(edge, c)) <= ball.radius
    return float((weight * inside).mean())
