"""Where a value can lie: what units in the ball can give, and beyond it what noise surely stays below.

An honest release, all of its steps included, is refused with a probability below `FALSE_ALARM`, the data being what
they may: each draw gets a fortieth of it, and shares it out evenly among what is checked of that draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.features import FeatureMap
from dpmanifold.features.base import Cut, of_length
from dpmanifold.manifolds.base import EPS
from dpmanifold.noise.tails import Tail

FALSE_ALARM = 1e-9
"""The probability that ranges refuse an honest release, at most."""
# No program has more draws than this: a few of vectors and points, and the counts of up to three searches.
MOST_DRAWS = 40
# So many numbers, those that lie farthest outside, are looked at together.
_TOGETHER = 100
# And inequalities are looked for so often.
_ROUNDS = 20
# The same numbers made into a point on another machine: relative to the largest of them.
DRAWN_ROUNDING = 1e-9
# Integrals of a law, computed by quadrature.
QUADRATURE = 1e-10
# Noise stays below this quantile of its law, as far as a check is concerned.
SURELY = 1 - 1e-12
# A few operations with a relative error of eps each: sums and eigenvalues at the very edge of a range are rounded.
ROUNDING = 1e-12


def same_number(one: float, two: float) -> bool:
    """Return whether two numbers are equal to rounding: the same formula on another machine.

    Examples
    --------
    >>> same_number(1.0, 1.0 + 1e-15), same_number(1.0, 1.0 + 1e-9)
    (True, False)
    """
    return math.isclose(one, two, rel_tol=ROUNDING)


def near(number: float, tail: Tail) -> tuple[float, float]:
    """Return the ends between which a number surely lay before noise was added."""
    away = tail.length(1, FALSE_ALARM / MOST_DRAWS / 2)
    return number - away, number + away


class Limits(NamedTuple):
    """What numbers can be before noise is added to them.

    Attributes
    ----------
    low, high : the ends for each number by itself
    cuts : gives what is known of blocks of them, near given numbers
    """

    low: FloatArray
    high: FloatArray
    cuts: Callable[[FloatArray], Sequence[Cut]] = lambda numbers: ()

    def faults(self, what: str, numbers: FloatArray, tail: Tail) -> list[str]:
        """Return which numbers and blocks lie where no units and no noise carry them.

        Examples
        --------
        >>> limits = Limits(np.zeros(2), np.ones(2), lambda numbers: [Cut("sum", np.ones(2), 1.0)])
        >>> limits.faults("drawn", np.array([0.5, 9.5]), Tail("gaussian", 1.0, 2))
        ['drawn: no units in the ball and no noise of that scale come to its number 2']
        """
        cuts = self.cuts(numbers)
        alarm = FALSE_ALARM / MOST_DRAWS / (len(numbers) + len(cuts) + 1)
        rounding = ROUNDING * max(float(np.abs(part).max()) for part in (numbers, self.low, self.high))
        over = np.maximum(self.low - numbers, numbers - self.high)
        out = np.flatnonzero(~(over <= tail.length(1, alarm) + rounding))
        found = [f"number {out[0] + 1}"] if out.size else []
        rounding *= len(numbers)
        for cut in cuts:
            carried = tail.eigenvalue(cut.rows, alarm) if cut.rows else tail.length(cut.among, alarm)
            if not cut.over(numbers) <= np.linalg.norm(cut.combination) * (carried + rounding):
                found.append(cut.what)
        whole = tail.length(len(numbers), alarm) + rounding
        if not found and self._away(numbers, whole, rounding) > whole:
            found.append("numbers together")
        return [f"{what}: no units in the ball and no noise of that scale come to its {name}" for name in found]

    def _away(self, numbers: FloatArray, enough: float, rounding: float) -> float:
        """Return a distance that numbers are at least away from all that units can give; `enough` will do.

        For counts c of inequalities a . x <= h that are not negative, sum c (a . x - h) is at most |sum c a| times the
        distance from x to all that satisfies them. Which counts make the most of it, least squares tell; then further
        inequalities are looked for near what is nearest, as long as they may make it too far.
        """
        size, nearest = len(numbers), numbers
        rows: list[FloatArray] = []
        beyond: list[float] = []
        away = 0.0
        for _ in range(_ROUNDS):
            over = np.maximum(self.low - nearest, nearest - self.high)
            worst = np.argsort(over)[::-1][:_TOGETHER]
            for place in worst[over[worst] > 0]:
                above = nearest[place] > self.high[place]
                row = np.zeros(size)
                row[place] = 1.0 if above else -1.0
                rows.append(row)
                beyond.append(float(numbers[place] - self.high[place] if above else self.low[place] - numbers[place]))
            for cut in self.cuts(nearest):
                length = float(np.linalg.norm(cut.combination))
                if length > 0 and cut.over(nearest) > 0:
                    rows.append(cut.combination / length)
                    beyond.append(cut.over(numbers) / length)
            if not rows:
                return 0.0
            a, sizes = np.array(rows), np.array(beyond)
            unit = max(enough, float(np.abs(sizes).max()))
            try:
                counts = scipy.optimize.nnls(np.vstack([a.T, sizes / unit]), np.append(np.zeros(size), 1.0))[0]
            except RuntimeError:
                break  # it did not converge: what was not found refutes nothing
            together, left = counts @ a, 1 - float(counts @ sizes) / unit
            length = float(np.linalg.norm(together))
            # Inequalities that all but cancel each other say nothing: each is off by its rounding.
            if length > 0:
                away = max(away, float(counts @ (sizes - rounding)) / length)
            if not enough / 2 < away <= enough or left <= 0:
                break
            nearest = numbers - unit * together / left
        return away


def limits_of_length(size: int, middle: FloatArray | float = 0.0, most: float = 1.0) -> Limits:
    """Return what averages of vectors can be that are no farther from the middle than a length."""
    center = np.broadcast_to(np.asarray(middle, dtype=np.float64), (size,))

    def cuts(numbers: FloatArray) -> list[Cut]:
        cut = of_length("length", numbers - center)
        return [cut._replace(most=most + float(cut.combination @ center))]

    return Limits(center - most, center + most, cuts)


def limits_of_features(features: FeatureMap, dim: int) -> Limits:
    """Return what averages of features can be."""
    return Limits(*features.limits(dim), lambda numbers: features.cuts(numbers, dim))


def baseline_faults(ball: Ball, value: Array, noise: float) -> list[str]:
    """Return why stored numbers are farther from the centre's than the ball and noise up to this length allow.

    On a sphere numbers differ by no more than the distance; matrices, seen from the centre, by no more than exp(r) - 1.
    """
    if ball.space.stored is None:
        return [f"mechanism: no baseline is known on {ball.space!r}"]
    apart, far, slack = ball.space.stored.away(ball.center, value, ball.radius)
    return (
        []
        if apart <= far * (1 + ROUNDING) + noise + slack
        else ["drawn: no noise of that scale carries stored numbers so far"]
    )


def rounding_of(ball: Ball, point: Array) -> float:
    """Return how far rounding can move a distance from the centre: the distance's own, and that of stored numbers."""
    stored = 4 * math.sqrt(point.size) * EPS * float(np.abs(point).max())
    own = ball.space.dist_error(ball.center, ball.radius) + ball.frame.dist_error(ball.frame.origin, ball.radius)
    return own + stored


def is_beyond(ball: Ball, point: Array, far: float) -> bool:
    """Return whether a point is farther from the centre than this, rounding aside."""
    rounding = rounding_of(ball, point)
    if far > ball.radius:
        rounding += ball.space.dist_error(ball.center, far)
    # Where distances so large cannot be told at all, none is too large.
    return math.isfinite(rounding) and not ball.space.dist(ball.center, point) <= far + rounding
