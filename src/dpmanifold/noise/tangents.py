"""Tangents of a piecewise concave log density: enough of them to lie close to it everywhere.

See :mod:`dpmanifold.noise.radial` for what they are for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.noise.curve import NO_DECAY, Curve, IntArray

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
                raise InvalidArgumentError(NO_DECAY)
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
