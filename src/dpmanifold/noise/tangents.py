"""Tangents of a log density given piece by piece: where they are best placed, and draws from below enough of them.

See :mod:`dpmanifold.noise.radial` for what they are for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.base import EPS
from dpmanifold.noise.source import RandomSource

Function = Callable[[FloatArray], FloatArray]
IntArray = npt.NDArray[np.int64]

# Levels at which tangents are placed: how far the log density has dropped below the piece's maximum. Squares,
# as a normal law drops by x^2/2 at x standard deviations; the last is 2.6e-18 of the maximum.
_LEVELS = np.arange(1.0, 10.0) ** 2 / 2
# A level need not be met exactly: to this share of it.
_LEVEL_TOLERANCE = 0.1

# The part of the half-line that is searched. A little inside the normal doubles, so that 1/t is one as well.
_SMALLEST, _LARGEST = 2.0**-1020, 2.0**1020
# Sections per round of a search over the bits of a double.
_MODE_SECTIONS, _LEVEL_SECTIONS = 64, 16
_MODE_ROUNDS, _LEVEL_ROUNDS = 11, 16

_NO_DECAY = (
    "log_density does not decrease towards the last break, inf, within the range of a double: the law has infinite "
    "mass or is too wide. Check the scale against the law's condition for existence."
)

# An infinite tail is cut here, in units of its decay length: e^-800 is 0 in double precision, and no exponential
# variate of a RandomSource is as long.
_TAIL = 800.0
# Tangents are added until the chords' area is this share of the envelope's. The density lies between the two,
# about twice as far from the chords as from the tangents: an acceptance of 0.98 to 0.99.
_CHORD_SHARE = 0.96
# Below this share after refining, function and derivative do not belong together.
_LEAST_SHARE = 0.9
_REFINEMENTS = 16

# The envelope is lifted by what rounding was seen to do, times 4, and by this much at least. The lift costs as
# much acceptance, and an envelope that must be lifted by more than the limit means that double precision does
# not know the density to one per cent.
LEAST_LIFT, LIFT_LIMIT = 1e-8, 0.01
# Doubles on either side of a tangent point, in units in the last place, at which rounding is looked at.
_NEIGHBOURS = np.array([1.0, 2.0, 5.0, 23.0, 101.0, 307.0])


class Curve:
    """The caller's two functions, with their results checked, and the pieces on which they are concave."""

    def __init__(self, log_density: Function, derivative: Function, breaks: FloatArray) -> None:
        self._value, self._slope = log_density, derivative
        self.left, self.right = breaks[:-1], breaks[1:]
        # Where searches begin and end in each piece: its first and last doubles, but for the extremes of the range.
        self.first = np.maximum(np.nextafter(self.left, np.inf), self.left + _SMALLEST)
        self.last = np.minimum(np.nextafter(self.right, -np.inf), _LARGEST)
        if not (self.first < self.last).all():
            i = int(np.argmin(self.first < self.last))
            raise InvalidArgumentError(
                f"breaks {self.left[i]} and {self.right[i]} are too close: there are no doubles between them to draw."
            )

    def piece(self, t: FloatArray) -> IntArray:
        """Return which piece a point inside a piece belongs to."""
        return np.searchsorted(self.left, t, side="left") - 1

    def value(self, t: FloatArray) -> FloatArray:
        """Log density, any shape."""
        return self._called(self._value, t, "log_density")

    def slope(self, t: FloatArray) -> FloatArray:
        """Its derivative, any shape."""
        return self._called(self._slope, t, "derivative")

    def _called(self, function: Function, t: FloatArray, name: str) -> FloatArray:
        result = np.asarray(function(t.ravel()))
        if result.shape != (t.size,) or result.dtype.kind not in "fiu":
            raise InvalidArgumentError(
                f"{name} must take an array of shape (n,) and return n real numbers, got {result.dtype} of shape "
                f"{result.shape} for n = {t.size}."
            )
        return result.astype(np.float64, copy=False).reshape(t.shape)

    # Searches run over the bits of u = t - left: positive doubles are ordered as their bits are, so halving the
    # bits halves the exponent first and the digits later, and 64 halvings reach any double from any other.

    def point(self, piece: IntArray, bits: IntArray) -> FloatArray:
        """Return the t that stands at `bits` in a piece."""
        u = np.ascontiguousarray(bits).view(np.float64)
        return np.clip(self.left[piece] + u, self.first[piece], self.last[piece])

    def ends(self) -> tuple[IntArray, IntArray]:
        """Bits of the first and the last point of each piece."""
        first, last = self.first - self.left, self.last - self.left
        return first.view(np.int64), last.view(np.int64)

    def modes(self) -> tuple[IntArray, FloatArray]:
        """Bits of each piece's maximum, by the sign of the derivative, and the log density there."""
        low, high = self.ends()
        piece = np.arange(low.size)
        steps = np.arange(_MODE_SECTIONS + 1)
        for _ in range(_MODE_ROUNDS):
            grid = _between(low[:, None], high[:, None], steps, _MODE_SECTIONS)
            slope = self.slope(self.point(piece[:, None], grid))
            # The last point that still rises, and the first after it that falls. NaN, which formulas may give at
            # the far ends (inf - inf), is neither, and so drops out.
            rising = np.where(slope > 0, steps, 0).max(axis=1)
            falling = np.where((slope < 0) & (steps >= rising[:, None]), steps, _MODE_SECTIONS).min(axis=1)
            low, high = grid[piece, rising], grid[piece, falling]
            if (high - low <= 1).all():
                break
        at_low, at_high = self.value(self.point(piece, low)), self.value(self.point(piece, high))
        better = (at_high > at_low) | np.isnan(at_low)
        return np.where(better, high, low), np.where(better, at_high, at_low)

    def tangent_points(self) -> FloatArray:
        """Where to touch each piece: at its maximum, at the levels below it, and at ends not far below it."""
        mode, top = self.modes()
        if self.right[-1] == np.inf and mode[-1] == self.ends()[1][-1]:
            raise InvalidArgumentError(_NO_DECAY)
        if np.isnan(top).any() or (top == np.inf).any():
            i = int(np.argmax(np.isnan(top) | (top == np.inf)))
            raise InvalidArgumentError(
                f"log_density must be a number on ({self.left[i]}, {self.right[i]}), got {top[i]} at its "
                "maximum. Check both functions for arrays inside the breaks."
            )
        # A piece without density is left out.
        kept = np.flatnonzero(top > -np.inf)
        if kept.size == 0:
            raise InvalidArgumentError("log_density is -inf everywhere: there is no mass to draw from.")
        mode, top, (first, last) = mode[kept], top[kept], self.ends()
        far_ends = np.stack([first[kept], last[kept]], axis=1)
        at_ends = self.value(self.point(kept[:, None], far_ends))
        points = [self.point(kept, mode)]
        near_end = at_ends >= (top - _LEVELS[-1])[:, None]
        points.append(self.point(kept[:, None], far_ends)[near_end])

        # One search for every level on either side of every mode at once.
        shape = (kept.size, 2, _LEVELS.size)
        target = np.broadcast_to(top[:, None, None] - _LEVELS, shape)
        crossed = ~(at_ends[:, :, None] >= target)
        index = np.broadcast_to(np.arange(kept.size)[:, None, None], shape)[crossed]
        target, allowed = target[crossed], np.broadcast_to(_LEVEL_TOLERANCE * _LEVELS, shape)[crossed]
        piece, near, height = kept[index], mode[index], top[index]
        far = np.broadcast_to(far_ends[:, :, None], shape)[crossed]
        steps = np.arange(1, _LEVEL_SECTIONS)
        for _ in range(_LEVEL_ROUNDS):
            open_ = np.flatnonzero((height - target > allowed) & (np.abs(far - near) > 1))
            if open_.size == 0:
                break
            grid = _between(near[open_, None], far[open_, None], steps, _LEVEL_SECTIONS)
            value = self.value(self.point(piece[open_, None], grid))
            # NaN counts as far below, for the same reason as above.
            inside = np.logical_and.accumulate(value >= target[open_, None], axis=1)
            count = inside.sum(axis=1)
            row = np.arange(open_.size)
            near[open_] = np.where(count > 0, grid[row, count - 1], near[open_])
            height[open_] = np.where(count > 0, value[row, count - 1], height[open_])
            ended = count == steps.size
            far[open_] = np.where(ended, far[open_], grid[row, np.minimum(count, steps.size - 1)])
        points.append(self.point(piece, near))
        return np.unique(np.concatenate(points))


def _between(start: IntArray, end: IntArray, step: IntArray, sections: int) -> IntArray:
    """Return start + (end - start) * step / sections in whole numbers that do not overflow."""
    whole, rest = np.divmod(end - start, sections)
    return np.asarray(start + whole * step + rest * step // sections, dtype=np.int64)


@dataclass
class Tangents:
    """Tangents to the log density (less its ceiling) at increasing points, and where they meet."""

    at: FloatArray
    height: FloatArray
    slope: FloatArray
    piece: IntArray
    start: FloatArray
    """Where each tangent takes over from the one before, or its piece begins."""
    end: FloatArray
    """Where it hands over to the next, or its piece ends (an infinite one at `_TAIL` decay lengths)."""
    first: FloatArray
    """The first double inside its piece."""
    last: FloatArray
    """The last double inside its piece."""

    @classmethod
    def make(cls, curve: Curve, at: FloatArray, height: FloatArray, slope: FloatArray) -> Tangents:
        """Return the tangents at given points of the curve, each with the interval on which it is the lower one."""
        piece = curve.piece(at)
        gap = at[1:] - at[:-1]
        meet = at[:-1] + (height[1:] - height[:-1] - slope[1:] * gap) / (slope[:-1] - slope[1:])
        # Any point between the two will do, as each tangent lies above the whole piece: where the slopes are
        # the same up to rounding, the middle is as good as what the quotient gives.
        meet = np.where(np.isfinite(meet), meet, at[:-1] + gap / 2)
        meet = np.clip(meet, at[:-1], at[1:])
        joined = piece[1:] == piece[:-1]
        start, end = curve.left[piece], curve.right[piece]
        first, last = np.nextafter(start, np.inf), np.nextafter(end, -np.inf)
        start[1:] = np.where(joined, meet, start[1:])
        end[:-1] = np.where(joined, meet, end[:-1])
        if end[-1] == np.inf:
            end[-1] = at[-1] - _TAIL / slope[-1] if slope[-1] < 0 else np.inf
            if not end[-1] < np.inf:
                raise InvalidArgumentError(_NO_DECAY)
        return cls(at, height, slope, piece, start, end, first, last)


def refined_tangents(curve: Curve) -> tuple[float, Tangents]:
    """Return the largest log density and tangents whose envelope is close to it (relative to that ceiling)."""
    at = curve.tangent_points()
    value, slope = curve.value(at), curve.slope(at)
    ceiling = float(value.max())
    # First of all, as nothing below makes sense on a curve that is mostly rounding.
    refuse_unresolved(float(rounding_at(curve, at[value == ceiling][:1])[0][0]))
    height = value - ceiling
    for _ in range(_REFINEMENTS):
        usable = np.isfinite(height) & np.isfinite(slope)
        if not usable.any():
            raise InvalidArgumentError("derivative must be a number inside the breaks, got NaN or inf.")
        tangents = Tangents.make(curve, at[usable], height[usable], slope[usable])
        more, share = _where_to_refine(tangents)
        if share >= _CHORD_SHARE:
            return ceiling, tangents
        more = more[~np.isin(more, at)]
        if more.size == 0:
            break
        at = np.concatenate([at, more])
        order = np.argsort(at)
        height = np.concatenate([height, curve.value(more) - ceiling])[order]
        slope = np.concatenate([slope, curve.slope(more)])[order]
        at = at[order]
    if share < _LEAST_SHARE:
        raise InvalidArgumentError(
            "derivative does not fit log_density: tangents drawn with it stay far above the curve. Check the "
            "derivative, and put a break where the density begins, ends or has a corner that points down."
        )
    return ceiling, tangents


def _where_to_refine(tangents: Tangents) -> tuple[FloatArray, float]:
    """Return points at which another tangent would help most, and the chords' share of the envelope's area."""
    at, height, slope = tangents.at, tangents.height, tangents.slope
    joined = tangents.piece[1:] == tangents.piece[:-1]
    before = log_area(height, -slope, at - tangents.start)
    after = log_area(height, slope, tangents.end - at)
    gap = np.where(joined, at[1:] - at[:-1], 1.0)
    chord = np.where(joined, log_area(height[:-1], (height[1:] - height[:-1]) / gap, gap), -np.inf)
    peak = max(before.max(), after.max())
    before, after, chord = np.exp(before - peak), np.exp(after - peak), np.exp(chord - peak)
    total = float(before.sum() + after.sum())
    # Between two tangent points: where the tangents meet. Outside the outermost: halfway to the end.
    excess = np.concatenate([
        np.where(joined, after[:-1] + before[1:] - chord, 0.0),
        np.where(np.append(True, ~joined), before, 0.0),
        np.where(np.append(~joined, True), after, 0.0),
    ])  # fmt: skip
    where = np.concatenate([tangents.end[:-1], (tangents.start + tangents.at) / 2, (tangents.at + tangents.end) / 2])
    excess = np.maximum(excess, 0.0)
    fair = (1 - _CHORD_SHARE) * total / max(1, int(np.count_nonzero(excess)))
    return np.unique(where[excess > fair / 2]), 1 - float(excess.sum()) / total


def rounding_at(curve: Curve, at: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return what rounding does to the log density and to its slope next to points of the pieces, shape (n,)."""
    piece = curve.piece(at)[:, None]
    step = np.spacing(at)[:, None] * _NEIGHBOURS
    step = np.where((at[:, None] - step > curve.left[piece]) & (at[:, None] + step < curve.right[piece]), step, 0.0)
    above, below = at[:, None] + step, at[:, None] - step
    # Over a few units in the last place both are straight lines: what the middle of two points on either side
    # differs from the point itself is rounding (and a curvature far below it).
    value = curve.value(at)
    bend = curve.value(above) / 2 + curve.value(below) / 2 - value[:, None]
    turn = curve.slope(above) / 2 + curve.slope(below) / 2 - curve.slope(at)[:, None]
    # The unit in the last place counts even where all neighbours happen to round alike.
    return np.abs(bend).max(axis=1) + np.spacing(np.abs(value)), np.abs(turn).max(axis=1)


def refuse_unresolved(rounding: float) -> None:
    """Refuse a curve that rounding moves by too much."""
    if not 4 * rounding <= LIFT_LIMIT:
        raise InvalidArgumentError(
            f"log_density is known only to {rounding:.2g} in double precision near its maximum: its terms are too "
            "large and cancel. Write it relative to its maximum, or choose a smaller scale."
        )


def log_area(height: FloatArray, slope: FloatArray, width: FloatArray) -> FloatArray:
    """Log of the integral of exp(height + slope x) over x from 0 to width."""
    rise = slope * width
    fall = np.abs(rise)
    # (1 - e^-fall)/fall, and its expansion where the quotient is 0/0.
    shape = np.where(fall > 1e-8, np.log(-np.expm1(-fall) / fall), -fall / 2)
    area = height + np.maximum(rise, 0.0) + np.log(width) + shape
    # inf - inf, inf * 0: only where the height is astronomically far below the ceiling.
    return np.where(np.isnan(area), -np.inf, area)


# What has less probability than this is not drawn in practice, whatever rounding does to it.
_INVISIBLE = 1e-16


class Envelope:
    """The lower of neighbouring tangents: a piecewise exponential density, and draws from it."""

    def __init__(self, tangents: Tangents, lift: float) -> None:
        self._at, self._height, self._slope = tangents.at, tangents.height + lift, tangents.slope
        self._first, self._last = tangents.first, tangents.last
        self._start, self._end = tangents.start, tangents.end
        self._width = tangents.end - tangents.start
        # Draws start at the higher end and go down by an exponential variate cut off at `fall`.
        self._falls = self._slope <= 0
        self._fall = np.abs(self._slope) * self._width
        log_mass = log_area(self._height + self._slope * (tangents.start - tangents.at), self._slope, self._width)
        peak = log_mass.max()
        cumulative = np.exp(log_mass - peak).cumsum()
        self._log_mass = log_mass
        self._cumulative = cumulative / cumulative[-1]
        self.log_total = float(peak + np.log(cumulative[-1]))
        # Rounding must not lead beyond the last segment that has mass.
        self._last_segment = int(np.searchsorted(self._cumulative, 1.0))

    def probabilities(self) -> FloatArray:
        """Probability of each segment."""
        return np.exp(self._log_mass - self.log_total)

    def log_density(self, t: FloatArray, segment: IntArray) -> FloatArray:
        """Log of the envelope at `t`, on given segments."""
        return self._height[segment] + self._slope[segment] * (t - self._at[segment])

    def segment(self, t: FloatArray) -> IntArray:
        """The segment `t` lies on."""
        return np.minimum(np.searchsorted(self._end, t), self._end.size - 1)

    def draw(self, n: int, source: RandomSource) -> tuple[FloatArray, FloatArray]:
        """Return n draws and the log of the envelope there."""
        segment = np.searchsorted(self._cumulative, source.uniform(n), side="right")
        segment = np.minimum(segment, self._last_segment)
        # An exponential law cut off at `fall`, by inversion: with E exponential, P(share below) is 1 - e^-E of
        # 1 - e^-fall. Two forms of the same expression, each accurate where it is used, so that neither end of
        # the segment is on a grid; where the fall is tiny the law is uniform to rounding, and the floor says so.
        fall = np.maximum(self._fall, 1e-18)
        complement = -np.expm1(-fall)
        variate = source.exponential(n)
        product = -np.expm1(-variate) * complement[segment]
        far = np.exp(-fall)[segment] + np.exp(-variate) * complement[segment]
        down = np.where(product < 0.5, -np.log1p(-product), -np.log(far))
        distance = np.minimum(down / fall[segment], 1.0) * self._width[segment]
        t = np.where(self._falls[segment], self._start[segment] + distance, self._end[segment] - distance)
        t = np.clip(t, self._first[segment], self._last[segment])
        return t, self.log_density(t, segment)


def lifted_envelope(curve: Curve, tangents: Tangents, ceiling: float, panels: Panels) -> tuple[Envelope, float]:
    """Return the envelope, raised by what rounding does to the curve, and how much that is."""
    bend, turn = rounding_at(curve, tangents.at)
    # An error of the slope counts with the length over which the tangent is used: all of it, or as far as the
    # tangent is above what can be seen.
    reach = np.maximum(tangents.end - tangents.at, tangents.at - tangents.start)
    rounding = bend + turn * np.minimum(reach, -math.log(_INVISIBLE) / np.abs(tangents.slope))
    visible = Envelope(tangents, 0.0).probabilities() > _INVISIBLE
    worst = float(rounding[visible].max())
    refuse_unresolved(worst)
    envelope = Envelope(tangents, max(LEAST_LIFT, 4 * worst))
    # The nodes of the quadrature are a second look, between the tangents.
    seen = panels.log_mass > panels.log_total + math.log(_INVISIBLE)
    t = panels.t[seen]
    excess = float((panels.height[seen] - envelope.log_density(t, envelope.segment(t))).max())
    if excess > LIFT_LIMIT:
        raise InvalidArgumentError(
            f"log_density rises above its own tangents (by {excess:.2g}): it is not concave between breaks, or "
            "derivative is not its derivative. Put a break wherever concavity ends."
        )
    if excess > 0:
        worst += excess
        refuse_unresolved(worst)
        envelope = Envelope(tangents, max(LEAST_LIFT, 4 * worst))
    return envelope, worst


# Quadrature goes on beyond the outermost tangent for 16 panels of 6 decay lengths: to 1e-59 of the maximum.
_TAIL_PANELS, _TAIL_STEP = 16, 6.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_NODES, _LOG_WEIGHTS = (1 + _NODES) / 2, np.log(_WEIGHTS / 2)

# Numbers held at a time in sampling and in quadrature.
_BLOCK = 262_144


class Panels:
    """Gauss-Legendre quadrature of the density between tangent points, in logs."""

    def __init__(self, curve: Curve, tangents: Tangents, ceiling: float) -> None:
        self._curve, self._ceiling = curve, ceiling
        self._edges = self._make_edges(curve, tangents)
        start, width = self._edges[:-1], np.diff(self._edges)
        self.t = _nodes(start, self._edges[1:])
        value = curve.value(self.t)
        if np.isnan(value).any() or (value == np.inf).any():
            where = float(self.t[np.isnan(value) | (value == np.inf)][0])
            raise InvalidArgumentError(
                f"log_density must be a number or -inf between breaks, got NaN or inf at {where!r}."
            )
        self.height = value - ceiling
        self.log_mass = np.log(width)[:, None] + _LOG_WEIGHTS + self.height
        self.log_total = float(_log_sum(self.log_mass.reshape(1, -1))[0])
        mass = np.exp(self.log_mass - self.log_total).sum(axis=1)
        mass /= mass.sum()
        self._below = np.concatenate([[0.0], mass.cumsum()])
        self._above = np.concatenate([mass[::-1].cumsum()[::-1], [0.0]])

    @staticmethod
    def _make_edges(curve: Curve, tangents: Tangents) -> FloatArray:
        # The first and last doubles of a piece stand for its ends and would make panels without width.
        first, last = curve.first[tangents.piece], curve.last[tangents.piece]
        inner = (tangents.at > first + 8 * np.spacing(first)) & (tangents.at < last - 8 * np.spacing(last))
        opens = np.flatnonzero(np.diff(tangents.piece, prepend=-1))
        closes = np.flatnonzero(np.diff(tangents.piece, append=curve.left.size))
        steps = _TAIL_STEP * np.arange(1, _TAIL_PANELS + 1)
        # Where the slope leads up instead of down these fall inside the piece, where one more edge does no harm.
        before = tangents.at[opens, None] - steps / np.abs(tangents.slope[opens, None])
        after = tangents.at[closes, None] + steps / np.abs(tangents.slope[closes, None])
        before = before[before > curve.left[tangents.piece[opens], None]]
        after = after[after < curve.right[tangents.piece[closes], None]]
        breaks = np.append(curve.left, curve.right[-1])
        edges: FloatArray = np.unique(np.concatenate([tangents.at[inner], before, after, breaks]))
        return edges[np.isfinite(edges)]

    def _partial(self, start: FloatArray, end: FloatArray) -> FloatArray:
        """Probability of [start, end], both inside one panel; shapes (n,)."""
        result = np.empty(start.size)
        block = _BLOCK // _NODES.size
        for i in range(0, start.size, block):
            a, b = start[i : i + block], end[i : i + block]
            height = self._curve.value(_nodes(a, b)) - self._ceiling
            result[i : i + block] = np.exp(np.log(b - a) + _log_sum(_LOG_WEIGHTS + height) - self.log_total)
        # Between neighbouring doubles there is nowhere to look, and nothing to find.
        return np.where(end > np.nextafter(start, np.inf), result, 0.0)

    def share(self, t: FloatArray, upper: bool) -> FloatArray:
        """Probability below (or above) each entry of `t`, shape (n,)."""
        inside = np.clip(t, self._edges[0], self._edges[-1])
        k = np.clip(np.searchsorted(self._edges, inside, side="right") - 1, 0, self._edges.size - 2)
        if upper:
            share = self._above[k + 1] + self._partial(inside, self._edges[k + 1])
            return np.where(t <= self._edges[0], 1.0, np.minimum(share, 1.0))
        share = self._below[k] + self._partial(self._edges[k], inside)
        return np.where(t >= self._edges[-1], 1.0, np.minimum(share, 1.0))

    def quantile(self, q: FloatArray) -> FloatArray:
        """Solve for the quantiles of q in (0, 1), shape (n,): Newton's method, kept inside a shrinking bracket."""
        upper = q > 0.5
        # From the nearer end, so that both tails keep their digits. 1 - q is exact above 1/2.
        wanted = np.where(upper, 1 - q, q)
        below = np.searchsorted(self._below, q, side="right") - 1
        above = self._above.size - 1 - np.searchsorted(self._above[::-1], wanted, side="left")
        k = np.clip(np.where(upper, above, below), 0, self._edges.size - 2)
        low, high = self._edges[k].copy(), self._edges[k + 1].copy()
        t: FloatArray = low + (high - low) / 2
        # Newton's steps need about six; were all of them refused, halving would have reached the last bit.
        for _ in range(64):
            near = np.where(upper, self._edges[k + 1], self._edges[k])
            base = np.where(upper, self._above[k + 1], self._below[k])
            mass = base + self._partial(np.minimum(near, t), np.maximum(near, t))
            surplus = np.where(upper, wanted - mass, mass - wanted)
            high, low = np.where(surplus > 0, t, high), np.where(surplus > 0, low, t)
            density = np.exp(self._curve.value(t) - self._ceiling - self.log_total)
            newton = t - surplus / density
            moved = np.where((newton >= low) & (newton <= high), newton, low + (high - low) / 2)
            settled = (np.abs(moved - t) <= 4 * EPS * t) | (np.abs(surplus) <= 4 * EPS * wanted)
            t = np.where(settled, t, moved)
            if settled.all():
                break
        return t

    def log_moment(self, k: float) -> float:
        """Log of the expectation of t^k."""
        log_power = k * np.log(self.t) if k > 0 else 0.0
        return float(_log_sum((self.log_mass + log_power).reshape(1, -1))[0]) - self.log_total


def _nodes(start: FloatArray, end: FloatArray) -> FloatArray:
    """Return the quadrature's nodes on intervals, shape (n, nodes); not on their ends, should rounding lead there."""
    start, end = start[:, None], end[:, None]
    return np.clip(start + (end - start) * _NODES, np.nextafter(start, np.inf), np.nextafter(end, -np.inf))


def _log_sum(values: FloatArray) -> FloatArray:
    """Log of the sum of exponentials over the last axis."""
    peak = values.max(axis=-1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)
    return np.asarray(peak[..., 0] + np.log(np.exp(values - peak).sum(axis=-1)))
