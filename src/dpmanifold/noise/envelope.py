"""The piecewise exponential envelope above a log density, and draws from it (see :mod:`dpmanifold.noise.radial`)."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.noise.curve import Curve, IntArray
from dpmanifold.noise.quadrature import Panels
from dpmanifold.noise.source import RandomSource
from dpmanifold.noise.tangents import LEAST_LIFT, LIFT_LIMIT, Tangents, log_area, refuse_unresolved, rounding_at

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
