"""Exact privacy profiles of the Riemannian Gaussian and Laplace laws on spheres and planar shape spaces.

The hockey-stick divergence delta(epsilon) = int (p - e^epsilon p')_+ for footpoints at a given distance, by quadrature,
with an error bound that is added; the smallest mu such that mu-GDP holds at every epsilon; and the smallest scale that
keeps a promise. Comments quote the numbers (1)-(8) of docs/theory/profile.md, which has the proofs. Not here: flat
spaces, where there is a closed form, and spaces without one for the law of direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Literal, final

import numpy as np
import numpy.typing as npt
from scipy import special

from dpmanifold._check import FloatArray, positive_float, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.optional_properties import RankOne
from dpmanifold.manifolds.vectors import EPS
from dpmanifold.privacy.convert import gdp_sufficient_for, to_gdp
from dpmanifold.privacy.promises import GDP, ApproxDP, Promise, PureDP

Law = Literal["gaussian", "laplace"]
Integrand = Callable[[FloatArray, bool], FloatArray]

# What lies this far below an integrand's peak, as a log, is left to the error bound: 6e-19 of it.
_DROP, _ZOOMS, _ZOOM_POINTS = 42.0, 3, 40
# Gauss-Legendre nodes per panel, the coarse rule measuring the error of the fine one; and on arcs of CP^m.
_PANELS, _NODES, _ARC_NODES = 4, {False: 20, True: 32}, {False: 14, True: 24}
# Radii below this share of the scale are not unfolded: there is 1e-6 of the mass, on which the panels suffice.
_FLOOR = 1e-2
_BLOCK = 32  # epsilons at a time: their numbers fit the processor's cache
# Relative accuracy of mu and of calibrated scales; how many epsilons a certificate may look at; and the gain below
# which that many would not do, so that it is not searched for (8).
_TOLERANCE, _MOST_POINTS, _NOT_WORTH_IT = 1e-6, 4000, 1e-3
_ROUND_MU, _ROUND_CORNER = 1 + 1e-9, 1e-12  # of the normal law's inverse; of a corner's log size and log power


@dataclass(frozen=True)
class _Pair:
    """Two footpoints on the unit sphere (m = 0, end = pi) or on CP^m (end = pi/2), `around` the other way round."""

    law: Law
    dim: int
    m: int
    scale: float
    distance: float
    end: float
    around: float

    def log_radial(self, t: FloatArray) -> FloatArray:
        """Log density of the distance from the footpoint, not normalised (theory section 4)."""
        result = -t / self.scale if self.law == "laplace" else -((t / self.scale) ** 2) / 2
        if self.dim > 1:
            result = result + (self.dim - 1) * np.log(np.sin(t))
        return np.asarray(result + np.log(np.cos(t)) if self.m else result)


@dataclass(frozen=True)
class _Cut:
    """The region {sign * loss > level}, its boundary between radii |turn| and far; one row of (n, 1) per level (3)."""

    pair: _Pair
    sign: int
    shift: FloatArray
    turn: FloatArray
    far: FloatArray

    def log_share(self, t: FloatArray, rise: FloatArray, fall: FloatArray, fine: bool) -> FloatArray:
        """Log of the share of directions in the region at radius t = |turn| + rise = far - fall (3)."""
        pair, d, e = self.pair, self.pair.distance, self.pair.around
        if pair.dim == 1:
            return np.full_like(t, math.log(0.5))
        if pair.law == "gaussian":
            other, past = np.sqrt(np.maximum(t * t + self.shift, 0.0)), t + np.abs(self.turn)
            # What vanishes on the boundary is written with t - |turn| and far - t: nothing cancels.
            larger = np.maximum(d + self.shift / (other + t), other + t - d)
            smaller = 2 * d * np.where(self.turn < 0, past, rise) / larger
            behind = 2 * d * np.where(self.turn < 0, rise, past) / (d + t + other)
            closing = 2 * e * fall / (e - t + other)
        else:
            other, larger, smaller, behind, closing = t + self.shift, d + self.shift, 2 * rise, 2 * self.turn, 2 * fall
        area = np.sin(t) * math.sin(d)
        facing = np.cos(closing / 2) if pair.m else np.sin(closing / 2)
        plus = np.maximum(2 * facing * np.sin(behind / 2) / area, 0.0)
        minus = np.maximum(2 * np.sin(larger / 2) * np.sin(smaller / 2) / area, 0.0)
        if not pair.m:
            return _log_half_beta((pair.dim - 1) / 2, np.minimum((plus if self.sign > 0 else minus) / 2, 1.0))
        radius, center = np.cos(np.minimum(other, pair.end)) / area, 1 / np.tan(t) / math.tan(d)
        excess = 2 * np.sin(closing / 2) * np.cos(behind / 2) / area
        return _log_disc(pair.m, self.sign, (plus, minus, radius, center, excess), _ARC_NODES[fine])


def _log_half_beta(a: float, x: FloatArray) -> FloatArray:
    """Log of the incomplete beta function I_x(a, a), also where it is below the smallest double."""
    value = special.betainc(a, a, x)
    result, tiny = np.log(value), value < 1e-280
    if (y := x[tiny]).size:
        lead = a * (np.log(y) + np.log1p(-y)) - math.log(a) - special.betaln(a, a)
        result[tiny] = lead + np.log(special.hyp2f1(2 * a, 1.0, a + 1, y))
    return np.asarray(result)


def _log_disc(m: int, sign: int, circle: tuple[FloatArray, ...], nodes: int) -> FloatArray:
    """Log of the share of the unit disc's law (m-1)/pi (1-|z|^2)^(m-2) inside |z + center| < radius, or outside (4).

    `circle` holds 1 + u, 1 - u (u = radius - center), radius, center and radius + center - 1. Of the two forms of
    (4), integrals over an arc, the first is smooth for every u, the second keeps small shares exact.
    """
    plus, minus, radius, center, excess = circle
    inner, u = plus * minus, np.where(plus < 1, plus - 1, 1 - minus)
    arc = 2 * np.arctan2(np.sqrt(inner), np.sqrt(np.maximum(excess * (2 + excess), 0.0)))
    x, weight = _rule(nodes)
    half = np.sin(arc[..., None] * x / 2) ** 2
    growth = 4 * (center * radius)[..., None] * half
    square = np.clip(u[..., None] ** 2 + growth, 1e-300, 1.0)
    swept = radius[..., None] * (u[..., None] + 2 * center[..., None] * half) * arc[..., None] * weight / math.pi
    whole = 2 / math.pi * np.arctan2(np.sqrt(plus * np.maximum(excess, 0.0)), np.sqrt(minus * (2 + excess)))
    inside = whole + (-np.expm1((m - 1) * np.log1p(-square)) / square * swept).sum(-1)
    log_smooth = np.log(np.clip(inside if sign > 0 else 1 - inside, 0.0, 1.0))
    rest = np.maximum(1 - growth / np.maximum(inner, 1e-300)[..., None], 0.0)
    edge = -sign * (rest ** (m - 1) / square * swept).sum(-1)
    lead = (m - 1) * np.log(inner)
    log_small = lead + np.log(np.maximum(edge, 0.0))
    log_large = np.log1p(np.maximum(np.exp(lead) * np.minimum(edge, 0.0), -1.0))
    exact = np.where((u < 0) == (sign > 0), log_small, log_large)
    return np.asarray(np.where(np.abs(u) < 0.5, log_smooth, exact))


@lru_cache(maxsize=8)
def _rule(nodes: int) -> tuple[FloatArray, FloatArray]:
    x, weight = np.polynomial.legendre.leggauss(nodes)
    return (1 + x) / 2, weight / 2


def _integrate(log_g: Integrand, low: FloatArray, high: FloatArray, least: float) -> tuple[FloatArray, FloatArray]:
    """Log of the integrals of exp(log_g) over [low, high], (n,), and of a bound on their errors (5)."""
    rows, width, grid = np.arange(low.size), high - low, np.linspace(0.0, 1.0, _ZOOM_POINTS)
    for _ in range(_ZOOMS):
        v = low[:, None] + (high - low)[:, None] * grid
        g = log_g(v, False)
        g = np.where(np.isnan(g), -np.inf, g)  # 0 * inf at the very ends, for which their neighbours speak
        peak = g.max(axis=1, keepdims=True)
        if (peak + np.log(width[:, None]) < least).all():  # where nothing counts, a bound will do
            return np.full_like(width, -np.inf), peak[:, 0] + np.log(width)
        seen = g >= peak - _DROP
        low = v[rows, np.maximum(seen.argmax(axis=1) - 1, 0)]
        high = v[rows, np.minimum(_ZOOM_POINTS - seen[:, ::-1].argmax(axis=1), _ZOOM_POINTS - 1)]
    peak, sums = np.maximum(peak, -1e300), {}
    for fine, nodes in _NODES.items():
        x, weight = _rule(nodes)
        x = ((np.arange(_PANELS)[:, None] + x) / _PANELS).ravel()
        g = log_g(low[:, None] + (high - low)[:, None] * x, fine)
        mass = np.exp(g - peak).reshape(rows.size, _PANELS, nodes) @ weight
        sums[fine] = mass * (high - low)[:, None] / _PANELS
    error = np.abs(sums[True] - sums[False]).sum(axis=1) + width * math.exp(-_DROP)
    return peak[:, 0] + np.log(sums[True].sum(axis=1)), peak[:, 0] + np.log(error)


def _log_tail(pair: _Pair, sign: int, level: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Log of the mass where sign * loss > level under the footpoint's law, not normalised, and of its error (3)."""
    d, e, end, normal = pair.distance, pair.around, pair.end, pair.law == "gaussian"
    shift = sign * (2 * pair.scale**2 if normal else pair.scale) * level[:, None]
    turn, gap = ((d * d - shift) / (2 * d), (d * e + shift) / (2 * e)) if normal else ((d - shift) / 2, (d + shift) / 2)
    near, far = np.abs(turn), np.maximum(end - np.maximum(gap, 0.0), np.abs(turn))
    cut, middle, zero = _Cut(pair, sign, shift, turn, far), (near + far) / 2, np.zeros_like(near)
    # The share varies on the scale of near itself, however small: cosh unfolds that, and the root at near; likewise
    # at the far end. On a circle it is constant.
    floor = (1.0 if pair.dim == 1 else _FLOOR) * min(pair.scale, 1.0)
    unit, far_unit = np.maximum(near, floor), np.maximum(end - far, floor)

    def unfolded(v: FloatArray, fine: bool, outward: bool) -> FloatArray:
        scale = unit if outward else far_unit
        step = 2 * scale * np.sinh(v / 2) ** 2
        rise, fall = (step, far - near - step) if outward else (far - near - step, step)
        t = near + step if outward else far - step
        return np.asarray(pair.log_radial(t) + cut.log_share(t, rise, fall, fine) + np.log(scale * np.sinh(v)))

    def plain(t: FloatArray, fine: bool) -> FloatArray:
        return pair.log_radial(t) + (cut.log_share(t, t - near, far - t, fine) if pair.m else 0.0)

    pieces: list[tuple[Integrand, FloatArray, FloatArray]] = [
        (lambda v, fine: unfolded(v, fine, True), zero, np.arccosh(1 + (middle - near) / unit)),
        (lambda v, fine: unfolded(v, fine, False), zero, np.arccosh(1 + (far - middle) / far_unit)),
    ]
    if sign > 0:  # about the footpoint every direction loses more, while the level is below phi(distance)
        pieces.insert(0, (lambda t, _: pair.log_radial(t), zero, np.where(turn > 0, near, zero)))
    if sign < 0 or pair.m:  # on CP^m and sign > 0 until the sphere about the other footpoint is used up
        last = np.sqrt(np.maximum(end**2 - shift, 0.0)) if normal else end - shift
        pieces.append((plain, far, np.maximum(last, far) if sign > 0 else zero + end))
    value = error = np.full(level.size, -np.inf)
    for log_g, low, high in pieces:
        more, inexact = _integrate(log_g, low[:, 0], high[:, 0], float(value.min()) - _DROP)
        value, error = np.logaddexp(value, more), np.logaddexp(error, inexact)
    return value, error


def _bounded_delta(pair: _Pair, epsilon: FloatArray, log_total: float) -> FloatArray:
    """Return the four rows of :meth:`Profile.tails` for epsilons below the largest loss."""
    (own, own_error), (other, other_error) = (_log_tail(pair, sign, epsilon) for sign in (1, -1))
    ratio = np.exp(epsilon + other - own)
    # Rounding of sines and of the beta function, and of the exponent at the mass that counts (5).
    rounding = EPS * (256 + 16 * pair.dim + 8 * np.abs(own))
    error = np.exp(own_error - own) + ratio * np.exp(other_error - other) + rounding * (1 + ratio)
    main = np.maximum(1 - ratio, 0.0)
    upper = np.minimum(own - log_total + np.log(main + error), 0.0)
    upper = np.nan_to_num(upper, nan=0.0)  # should anything have failed, 1 is a bound
    return np.stack([own - log_total, other - log_total, upper, error / (main + error)])


@final
@dataclass(frozen=True)
class Profile:
    """The profile of a law between footpoints `distance` apart, by :func:`loss_profile`; 0 from `largest_loss` on."""

    space: Manifold
    law: Law
    scale: float
    distance: float
    largest_loss: float
    _pair: _Pair = field(repr=False)

    def delta(self, epsilon: npt.ArrayLike) -> FloatArray:
        """Return an upper bound of delta at each epsilon (any sign, any shape): quadrature plus its error bound."""
        return np.asarray(np.exp(self.log_delta(epsilon)))

    def log_delta(self, epsilon: npt.ArrayLike) -> FloatArray:
        """Return the log of :meth:`delta`, which goes on where delta is below the smallest double."""
        e = np.asarray(epsilon, dtype=np.float64)
        size, upper = np.abs(e), self.tails(np.abs(e).ravel())[2].reshape(e.shape)
        # (2): delta(-epsilon) = 1 - e^-epsilon + e^-epsilon delta(epsilon).
        return np.where(e < 0, np.log(np.where(e < 0, -np.expm1(-size) + np.exp(upper - size), 1.0)), upper)

    def error(self, epsilon: npt.ArrayLike) -> FloatArray:
        """Return what :meth:`delta` added for quadrature and rounding, as a share of delta (at |epsilon|)."""
        e = np.asarray(epsilon, dtype=np.float64)
        return self.tails(np.abs(e).ravel())[3].reshape(e.shape)

    def tails(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Return logs of both laws' mass of {loss > epsilon} (no bounds), of delta's bound, and its share of error."""
        if np.isnan(epsilon).any():
            raise InvalidArgumentError("epsilon must be a number or an array of numbers without NaN.")
        result = np.repeat([[-np.inf], [-np.inf], [-np.inf], [0.0]], epsilon.size, axis=1)
        inside, pair = np.flatnonzero(epsilon < self.largest_loss), self._pair
        with np.errstate(all="ignore"):
            total = _integrate(lambda t, _: pair.log_radial(t), np.zeros(1), np.full(1, pair.end), -np.inf)[0]
            for rows in (inside[i : i + _BLOCK] for i in range(0, inside.size, _BLOCK)):
                result[:, rows] = _bounded_delta(pair, epsilon[rows], float(total[0]))
        return result[0], result[1], result[2], result[3]


def loss_profile(space: Manifold, law: Law, scale: float, distance: float) -> Profile:
    """Return the exact privacy profile of a Riemannian law whose footpoint moves by at most `distance`.

    Theory section 5 (profile). delta grows with the distance of the footpoints (1), so the largest speaks for all;
    an isometry exchanges the two laws (2), so one order of them speaks for both.

    Parameters
    ----------
    space : Sphere or KendallShapes
    law : "gaussian" or "laplace"
    scale : sigma of theory section 4
    distance : the sensitivity; below the injectivity radius

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> profile = loss_profile(Sphere(2), "gaussian", scale=0.3, distance=0.3)
    >>> profile.delta([0.0, 1.0]).round(6).tolist(), bool(profile.error(1.0) < 1e-11)
    ([0.377613, 0.121649], True)
    """
    if law not in ("gaussian", "laplace"):
        raise InvalidArgumentError(f"law must be 'gaussian' or 'laplace', got {shown(law)}.")
    scale, distance = positive_float(scale, "scale"), positive_float(distance, "distance")
    facts = _rank_one(space)
    if distance >= space.injectivity_radius:
        raise InvalidArgumentError(
            f"distance must be below {space.injectivity_radius:.6g} on {space!r}, got {distance!r}: no two points are "
            "farther apart. Take the sensitivity of the statistic."
        )
    # Shapes of triangles are a sphere of curvature 4; a sphere of any curvature is a unit sphere in other units.
    shapes = facts.triangle == "complex" and space.dim > 2
    end = math.pi / 2 if shapes else math.pi
    unit = facts.reach / end
    s, d = scale / unit, distance / unit
    largest = d / s if law == "laplace" else d / s * ((2 * end - d) / s) / 2
    pair = _Pair(law, space.dim, space.dim // 2 if shapes else 0, s, d, end, 2 * end - d)
    return Profile(space, law, scale, distance, largest, pair)


def tightest_mu(space: Manifold, law: Law, scale: float, distance: float) -> float:
    """Return the smallest mu, to 1e-6 and rounded up, such that the law keeps mu-GDP at every epsilon.

    Certified by a polygon about all tests (6): the staircase of theory section 5 with chords for steps. Never above
    what holds without quadrature: distance/scale for the Gaussian (7), the mu of distance/scale-DP for the Laplace
    law; that is returned where it is within 1e-3 of the exact one (8). Parameters as in :func:`loss_profile`.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> round(tightest_mu(Sphere(10), "gaussian", scale=1.0, distance=0.1) / 0.1, 4)
    0.4629
    """
    profile = loss_profile(space, law, scale, distance)
    proven = distance / scale * _ROUND_MU if law == "gaussian" else to_gdp(PureDP(distance / scale)).mu
    if _mu_at_zero(profile) * (1 + _NOT_WORTH_IT) >= proven:
        return proven
    return min(proven, _certified_mu(profile, None))


def calibrate_gaussian(space: Manifold, distance: float, promise: Promise) -> float:
    """Return the smallest scale, to 1e-6 and rounded up, at which the Riemannian Gaussian keeps GDP or ApproxDP.

    Never above distance/mu, which always keeps GDP(mu) (7), and is returned where nothing better is worth it or
    certified (8). Theory section 5; parameters are those of :func:`loss_profile`.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> round(calibrate_gaussian(Sphere(10), 0.1, GDP(0.2)), 4), 0.1 / 0.2
    (0.4036, 0.5)
    """
    profile = partial(loss_profile, space, "gaussian", distance=distance)
    if isinstance(promise, ApproxDP):
        epsilon, log_delta = promise.epsilon, math.log(promise.delta)
        start = distance / gdp_sufficient_for(promise).mu * _ROUND_MU
        return _smallest(lambda scale: float(profile(scale=scale).log_delta(epsilon)) <= log_delta, start)
    if not isinstance(promise, GDP):
        raise InvalidArgumentError(f"promise must be GDP or ApproxDP, got {shown(promise)}.")
    mu, start = promise.mu, distance / promise.mu * _ROUND_MU
    least = _smallest(lambda scale: _mu_at_zero(profile(scale=scale)) <= mu, start)
    if least * (1 + _NOT_WORTH_IT) >= start:
        return start
    # Losses near 0 decide in every case seen. Where too many others come close, part of the gain may be certified.
    guesses = (least ** (1 - kept) * start**kept * (1 + _TOLERANCE / 2) for kept in (0.0, 0.25, 0.5))
    return next((guess for guess in guesses if _certified_mu(profile(scale=guess), mu) <= mu), start)


def _smallest(holds: Callable[[float], bool], start: float) -> float:
    """Return a scale that holds, just above one that does not; `start` holds by proof."""
    low = start / 2
    while holds(low):
        start, low = low, low / 2
    while start > low * (1 + _TOLERANCE / 4):
        middle = math.sqrt(low) * math.sqrt(start)
        low, start = (low, middle) if holds(middle) else (middle, start)
    return start


def _mu_at_zero(profile: Profile) -> float:
    """Return what the likelihood test reaches, whose errors are alike (2): a lower bound of mu, but for rounding."""
    return -2 * float(special.ndtri_exp(profile.tails(np.zeros(1))[1][0]))


def _certified_mu(profile: Profile, target: float | None) -> float:
    """Return a mu that no test exceeds (6), within the tolerance of one that a test reaches, or at most `target`.

    Tests lie under the lines y = delta(epsilon) + e^epsilon x; those of neighbouring epsilons meet in the corners
    of a polygon. Corners that are too high are cut off by more lines in between.
    """
    end, bulk = profile.largest_loss, 6 * _mu_at_zero(profile)
    more = np.concatenate([np.linspace(0, bulk, 25), np.geomspace(bulk, max(end, 2 * bulk), 17)[1:-1]])
    more, known = more[more < end], np.empty((4, 0))
    while True:
        known = np.hstack([known, [more, *profile.tails(more)[:3]]])
        known = known[:, np.argsort(known[0])]
        edges = np.append(known[0], end)
        # delta does not grow: a bound at a smaller epsilon is one as well.
        height = np.append(np.minimum.accumulate(known[3]), -np.inf)
        with np.errstate(all="ignore"):
            size = height[:-1] + np.log(-np.expm1(np.diff(height)) / np.expm1(np.diff(edges))) - edges[:-1]
            power = np.minimum(np.logaddexp(height[:-1], edges[:-1] + size) + _ROUND_CORNER, 0.0)
            corner = special.ndtri_exp(power) - special.ndtri_exp(size - _ROUND_CORNER)
            corner = np.where(np.isnan(corner), np.inf, corner * _ROUND_MU)
            local = special.ndtri_exp(known[1]) - special.ndtri_exp(known[2])
            local, reached = np.fmax(local, np.append(local[1:], -np.inf)), float(np.nanmax(local))
        goal = reached * (1 + _TOLERANCE) if target is None else target
        high = np.flatnonzero(corner > goal)
        if high.size == 0 or reached > goal:
            return float(corner.max())
        # A corner's excess over its neighbours falls with the square of the distance between lines.
        excess = np.minimum((corner - local)[high], reached) / np.maximum((goal - local)[high], _TOLERANCE / 8 * goal)
        parts = np.clip(np.ceil(np.sqrt(excess)), 2, 8).astype(int)
        if edges.size + (parts - 1).sum() > _MOST_POINTS:
            return float(corner.max())
        splits = zip(edges[high], edges[high + 1], parts, strict=True)
        more = np.concatenate([np.linspace(a, b, n + 1)[1:-1] for a, b, n in splits])


def has_exact_profile(space: Manifold) -> bool:
    """Return whether the law of direction is known in closed form: on spheres and complex projective spaces.

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, Sphere
    >>> has_exact_profile(Sphere(2)), has_exact_profile(SPD(2))
    (True, False)
    """
    return space.rank_one is not None and space.rank_one.triangle in ("sphere", "complex")


def _rank_one(space: Manifold) -> RankOne:
    """Return the radial facts that the profiles are made of, or say why there are none."""
    if isinstance(space, Manifold) and space.rank_one is not None and has_exact_profile(space):
        facts = space.rank_one
        if not math.isclose(facts.reach, space.injectivity_radius, rel_tol=1e-12):
            raise InvalidArgumentError(
                f"`space` must be a Sphere or KendallShapes, got {space!r}: its rank_one closes at {facts.reach:.6g}, "
                f"and its geodesics at {space.injectivity_radius:.6g}. Leave rank_one out."
            )
        return facts
    reason, remedy = "its law of direction is not known in closed form", "Use the wrapped laws"
    if isinstance(space, Manifold) and space.is_flat:
        reason, remedy = "the profile is that of a normal law", "Use dpmanifold.privacy.gaussian_scale"
    elif isinstance(space, Manifold) and space.curvature[0] == space.curvature[1] < 0:
        reason = "volume grows so fast that distance/mu is too small a scale and small mu out of reach at any scale"
    raise InvalidArgumentError(f"`space` must be a Sphere or KendallShapes, got {space!r}: {reason}. {remedy}.")
