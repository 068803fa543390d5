"""Gauss-Legendre quadrature of a log density between tangent points (see :mod:`dpmanifold.noise.radial`)."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds.base import EPS
from dpmanifold.noise.curve import Curve
from dpmanifold.noise.tangents import Tangents

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
