"""A log density given piece by piece, and where its tangents are best placed (see :mod:`dpmanifold.noise.radial`)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidArgumentError

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

NO_DECAY = (
    "log_density does not decrease towards the last break, inf, within the range of a double: the law has infinite "
    "mass or is too wide. Check the scale against the law's condition for existence."
)


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
            raise InvalidArgumentError(NO_DECAY)
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
