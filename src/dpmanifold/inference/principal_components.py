"""Principal components from released directions and variances (theory: pga).

Variances are averages of squares along released directions, with what noise and chance add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dpmanifold._check import Array, FloatArray, open_fraction, positive_int, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import WEIGHT, checked_weight
from dpmanifold.inference.estimate import ReleasedMean
from dpmanifold.inference.hotelling import average_error, spectral_noise, stretched, threshold
from dpmanifold.inference.inference_result import FromRelease, VarianceShares
from dpmanifold.linalg import from_vecd
from dpmanifold.release import Release
from dpmanifold.serialization import array_to_json
from dpmanifold.summary import all_told, array_text

COUNT = "n_components"
"""What a release states the number of directions as."""
# Of eigenvalues over the third root of n, within which they are not told apart.
_WIDTH = 1.4
# Noise on the mean that is no larger than this share of the total variance does not turn directions.
_SMALL_NOISE = 0.25


def principal_directions(release: Release, count: int) -> tuple[FloatArray, FloatArray]:
    """Return all eigenvalues of the released covariance of directions, (d,), and the leading eigenvectors, (count, d).

    The largest entry of each is positive, so that whoever computes them finds the same.

    Parameters
    ----------
    release : of statistic "signs"
    count : how many

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> X = np.random.default_rng(0).normal(0.0, [1.0, 0.2], (2000, 2))
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 5.0)
    >>> release = dpm.private_statistic(X, ball, dpm.GDP(1.0), statistic="signs", units=dpm.EACH_RECORD)
    >>> bool(principal_directions(release, 1)[1][0, 0] > 0.99)
    True
    """
    d, root = release.ball.frame.dim, math.sqrt(checked_weight(release.details[WEIGHT], WEIGHT))
    mean, products = np.split(np.asarray(release.value, dtype=np.float64), [d])
    # Noise on the mean of the directions adds its own variance to its squared length, which is known.
    length = float(mean @ mean)
    part = max(1 - d * release.scale**2 / length, 0.0) if length > 0 else 0.0
    values, vectors = np.linalg.eigh(from_vecd(products) / root - part * np.outer(mean, mean))
    found = vectors.T[::-1][:count]
    largest = np.abs(found).argmax(axis=1)
    return values[::-1], found * np.where(found[np.arange(len(found)), largest] < 0, -1.0, 1.0)[:, None]


def optimism(values: FloatArray, count: int, n: int) -> FloatArray:
    """Return which share of the variance along leading eigenvectors is chance: they were chosen on the same n units.

    Along its k-th eigenvector a sample varies more than the population, by (1 + c)^2 with c the sum of
    values[j]/(values[k] - values[j]) over all others, over n (theory: pga). Gaps are smoothed, so that no two
    eigenvalues are too close; sums below 0 count as none.

    Parameters
    ----------
    values : all eigenvalues, the largest first
    count : how many leading ones
    n : number of units

    Examples
    --------
    >>> optimism(np.array([4.0, 1.0, 1.0]), 1, 100).round(4), optimism(np.ones(50), 1, 10**6).round(4)
    (array([0.0128]), array([0.]))
    """
    leading, others = values[:count, None], np.maximum(values, 0.0)
    gaps = leading - values
    width = _WIDTH * leading / math.sqrt(n)
    chance = (others * gaps / np.maximum(gaps**2 + width**2, np.finfo(float).tiny)).sum(axis=1) / n
    return np.asarray(1 - 1 / (1 + np.maximum(chance, -0.5)) ** 2)


def fitting(values: FloatArray, total: float) -> FloatArray:
    """Return the nearest numbers that are not below 0 and add up to `total`, which is not below 0 either.

    Parameters
    ----------
    values : numbers
    total : their sum, or 0 where that is below 0

    Examples
    --------
    >>> fitting(np.array([3.0, 1.0, -1.0]), 3.0)
    array([2.5, 0.5, 0. ])
    """
    ordered = np.sort(values)[::-1]
    # What all of the m largest must lose to add up to the total; the others become 0.
    loss = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    found = np.maximum(values - loss[np.flatnonzero(ordered >= loss)[-1]], 0.0) if total > 0 else np.zeros(len(values))
    return np.asarray(found)


@dataclass(frozen=True, eq=False)
class Squares:
    """Means and second moments of squares along released directions and of the rest, in the data's own units.

    A number is asked for as weights w of the squares, (k + 1,): its mean is w . (variances), the rest last.
    """

    release: Release
    mean: ReleasedMean
    directions: FloatArray
    optimism: FloatArray

    @cached_property
    def _kept(self) -> FloatArray:
        """Which entries add up to 1, as 0 or 1: all, but for the rest where directions are all that there is."""
        kept = np.ones(len(self.directions) + 2)
        kept[-2] = float(len(self.directions) < self.directions.shape[1])
        return kept

    @cached_property
    def _numbers(self) -> tuple[FloatArray, FloatArray, float, float]:
        """Means and second moments of squares, and the standard deviations of the noise on each as it was drawn."""
        release, square = self.release, self.mean.reach**2
        value, root = np.asarray(release.value, dtype=np.float64), math.sqrt(release.details[WEIGHT])
        means, products = np.split(value, [len(self.directions) + 2])
        # They are known to add up to 1: what the noise adds to the sum is taken off in equal parts.
        means = self._kept * (means - (self._kept @ means - 1) / self._kept.sum())
        scale = release.scale * square
        return square * means[:-1], square**2 * from_vecd(products) / root, scale, scale * square / root

    def _known(self, weights: FloatArray) -> float:
        """Return the variance of the noise on a number, as far as it does not come from the mean."""
        kept = self._kept * np.append(weights, 0.0)
        return self._numbers[2] ** 2 * max(float(kept @ kept - kept.sum() ** 2 / self._kept.sum()), 0.0)

    @cached_property
    def _excess(self) -> FloatArray:
        """What noise on the mean adds to the variance along each direction, and to the rest: known."""
        noise = self.mean.noise
        along = ((self.directions @ noise) * self.directions).sum(axis=1)
        return np.append(along, max(float(np.trace(noise) - along.sum()), 0.0))

    @cached_property
    def _correction(self) -> float:
        return self.release.n / (self.release.n - 1)

    @cached_property
    def variances(self) -> FloatArray:
        """Estimates along each direction, and of the rest: what directions had from chance is given to the rest."""
        plain = (self._numbers[0] - self._excess) * self._correction
        chance = self.optimism * np.maximum(plain[:-1], 0.0)
        return np.asarray(plain - np.append(chance, -chance.sum()))

    def turned(self, weights: FloatArray) -> float:
        """Return what noise on the mean may add besides the excess, if it has turned the directions to itself.

        Nothing where it is small against the total: directions are then those of the units.
        """
        everywhere = float(np.trace(self.mean.noise))
        small = everywhere <= _SMALL_NOISE * max(float(self.variances.sum()), 0.0)
        return 0.0 if small else everywhere * float(weights.max()) - float(weights @ self._excess)

    def value(self, weights: FloatArray) -> float:
        """Return the estimate."""
        return float(weights @ self.variances)

    def error(self, weights: FloatArray, tail: float) -> tuple[float, float, VarianceShares]:
        """Return the variance of the estimate, its degrees of freedom and what it is made of."""
        means, second, _, second_scale = self._numbers
        n, length, seen = self.release.n, float(np.linalg.norm(weights)), float(weights @ means)
        # What noise on the mean adds is a quadratic form of it: its variance is twice the trace of a square.
        bent = (self.directions.T * (weights[:-1] - weights[-1])) @ self.directions
        form = (bent + weights[-1] * np.eye(len(bent))) @ self.mean.noise
        drawn = self._known(weights)
        known = drawn + 2 * float((form * form.T).sum())
        spread = float(weights @ second @ weights) - seen**2 + drawn
        noise = math.hypot(second_scale * length**2, 2 * seen * math.sqrt(drawn))
        span = max(float(weights.max()), 0.0) - min(float(weights.min()), 0.0)
        widest = (span * self.mean.reach**2) ** 2 / 4  # no number between such ends varies more
        total, free = average_error(spread, noise, known, widest, n, tail, 2 * seen**2 / n)
        sure = min(max(spread - noise, 0.0), widest) / n
        return total * self._correction**2, free, VarianceShares.of(known, sure, total)

    def off(self, weights: FloatArray, tail: float) -> float:
        """Return how far the estimate is from 0, squared, in units of what it stays below with 1 - tail, less 1."""
        total, free, _ = self.error(weights, tail)
        return self.value(weights) ** 2 / (threshold(tail, 1, free) * total) - 1


ELLIPTICAL = (
    "directions are those of the units' signs: the principal ones where the population is elliptical about its mean; "
    "for others, and among directions of equal variance, they need not be"
)


@dataclass(frozen=True, eq=False, repr=False)
class PrincipalComponents(FromRelease, format="dpmanifold pga 2"):
    """Principal directions about a released mean, with the population's variances along them.

    Directions are rows in an orthonormal frame at the released mean, in the order of their eigenvalues, which were
    drawn before the variances; so two of nearly equal variance may come in either order. Each interval holds the
    population's number for the directions as they were released, with the given confidence by itself, not all of
    them at once. The population is that of units clipped into the ball.

    Parameters
    ----------
    release : of statistic "components", whose step are the directions, whose step is the mean, as
        :func:`private_pga` makes them
    level : the confidence of each interval, in (0, 1)

    Examples
    --------
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD, private_pga
    >>> X = np.random.default_rng(0).normal(0.0, [1.0, 0.3, 0.2], (4000, 3))
    >>> found = private_pga(X, Ball(Euclidean(3), np.zeros(3), 4.0), GDP(1.0), units=EACH_RECORD, count=1)
    >>> low, high = found.share_intervals[0]
    >>> bool(0.6 < low < high <= 1), found.scores(X[:2]).shape, found.moved(0, [-1.0, 1.0]).shape
    (True, (2, 1), (2, 3))
    """

    release: Release
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", open_fraction(self.level, "level"))
        if COUNT not in self.release.details or len(self.release.steps) != 1:
            raise InvalidArgumentError(
                f"release must be of components about a released mean, got a {self.release.statistic}. "
                "private_pga makes one."
            )
        _ = self._squares  # refuses what is no Gaussian mean

    # ---------------------------------------------------------------- what was released

    @property
    def mean(self) -> ReleasedMean:
        """The released mean: `mean.value` is the point, and `mean.release` its release."""
        return self._squares.mean

    @property
    def center(self) -> Array:
        """The released mean, in the ball."""
        return self.mean.value

    @property
    def number_or_array(self) -> FloatArray:
        """The directions."""
        return self.directions

    @property
    def count(self) -> int:
        """How many components."""
        return int(self.release.details[COUNT])

    @cached_property
    def _spectrum(self) -> tuple[FloatArray, FloatArray]:
        return principal_directions(self.release.steps[0], self.count)

    @property
    def directions(self) -> FloatArray:
        """Orthonormal rows, (count, d), in the frame at the released mean."""
        return self._spectrum[1]

    @property
    def gaps(self) -> FloatArray:
        """How far each eigenvalue of the signs is above the next one, over the size of the noise on them, (count,).

        Below 1 the noise may have turned a direction towards the next one, or made it up.
        """
        values, step = self._spectrum[0], self.release.steps[0]
        noise = spectral_noise(step.scale / math.sqrt(step.details[WEIGHT]), len(values))
        below = np.append(values, 0.0)[1 : self.count + 1]
        return np.asarray((values[: self.count] - below) / noise)

    # ---------------------------------------------------------------- variances and shares

    @cached_property
    def _squares(self) -> Squares:
        values, directions = self._spectrum
        return Squares(self.release, ReleasedMean(self._means[0]), directions, optimism(values, self.count, self.n))

    @property
    def _together(self) -> FloatArray:
        """Weights of all components."""
        return np.append(np.ones(self.count), 0.0)

    @property
    def _everything(self) -> FloatArray:
        """Weights of the total; where there are as many components as dimensions nothing is left besides."""
        return np.append(np.ones(self.count), float(self.count < self.ball.frame.dim))

    @cached_property
    def _fitting(self) -> FloatArray:
        """Variances along each direction and of the rest that are not below 0 and add up to the total, (count + 1,).

        They are the nearest such numbers to the estimates, each of which alone may be below 0.
        """
        everything = self._everything > 0
        total = min(max(self._squares.value(self._everything), 0.0), self._squares.mean.reach**2)
        found = np.zeros(self.count + 1)
        found[everything] = fitting(self._squares.variances[everything], total)
        return found

    @cached_property
    def is_identifiable(self) -> bool:
        """Whether the total is told from 0 with the confidence asked for. Where not, no share of it is known."""
        squares, weights = self._squares, self._everything
        return squares.value(weights) > 0 and squares.off(weights, 1 - self.level) > 0

    @cached_property
    def _variances(self) -> list[tuple[float, float, float]]:
        """Value and ends of each variance, and last of the total."""
        rows = [*np.eye(self.count + 1)[:-1], self._everything]
        return [self._variance(row) for row in rows]

    def _variance(self, weights: FloatArray) -> tuple[float, float, float]:
        total, free, _ = self._squares.error(weights, 1 - self.level)
        half, value = math.sqrt(threshold(1 - self.level, 1, free) * total), self._squares.value(weights)
        most = self._squares.mean.reach**2
        low, high = value - half - self._squares.turned(weights), value + stretched(value, half)
        return _held(float(weights @ self._fitting), min(max(low, 0.0), most), min(max(high, 0.0), most))

    @cached_property
    def _shares(self) -> list[tuple[float, float, float]]:
        """Value and ends of each share, and last of that of all components together."""
        rows = [*np.eye(self.count + 1)[:-1], self._together]
        return [self._share(row) for row in rows]

    def _share(self, part: FloatArray) -> tuple[float, float, float]:
        """Return the shares s for which part - s total is not told from 0, and the estimate (Fieller)."""
        squares, tail, all_of_it = self._squares, 1 - self.level, self._everything
        if np.array_equal(part, all_of_it):
            return 1.0, 1.0, 1.0
        if not self.is_identifiable:
            return math.nan, 0.0, 1.0
        value = min(max(squares.value(part) / squares.value(all_of_it), 0.0), 1.0)

        def outside(share: float) -> float:
            return squares.off(part - share * all_of_it, tail)

        def end(limit: float) -> float:
            inside = outside(value) > 0 or outside(limit) <= 0
            return limit if inside else float(scipy.optimize.brentq(outside, value, limit, xtol=1e-12))

        return _held(min(float(part @ self._fitting) / self.total, 1.0), end(0.0), end(1.0))

    @property
    def variances(self) -> FloatArray:
        """The population's variance along each direction as estimated, (count,); never below 0, nor above the total."""
        return np.array([found[0] for found in self._variances[:-1]])

    @property
    def variance_intervals(self) -> FloatArray:
        """Lower and upper ends for each, (count, 2)."""
        return np.array([found[1:] for found in self._variances[:-1]])

    @property
    def total(self) -> float:
        """The Fréchet variance: the sum of the variances along all directions of the space."""
        return self._variances[-1][0]

    @property
    def total_interval(self) -> tuple[float, float]:
        """Lower and upper end for the total."""
        return self._variances[-1][1:]

    @property
    def shares(self) -> FloatArray:
        """The share of the total along each direction, (count,); nan where the total is not told from 0."""
        return np.array([found[0] for found in self._shares[:-1]])

    @property
    def share_intervals(self) -> FloatArray:
        """Lower and upper ends for each, (count, 2)."""
        return np.array([found[1:] for found in self._shares[:-1]])

    @property
    def explained(self) -> float:
        """The share of the total along all directions together; nan where the total is not told from 0."""
        return self._shares[-1][0]

    @property
    def explained_interval(self) -> tuple[float, float]:
        """Lower and upper end for it."""
        return self._shares[-1][1:]

    @property
    def variance_shares(self) -> VarianceShares:
        """What the squared width of the first variance's interval is made of."""
        return self._squares.error(np.eye(self.count + 1)[0], 1 - self.level)[2]

    # ---------------------------------------------------------------- along the directions

    def moved(self, component: int, deviations: Any = 1.0) -> Array:
        """Return the mean moved along a component by so many standard deviations, shape (*deviations, *space.shape).

        Parameters
        ----------
        component : from 0 on
        deviations : a number, or several in a row
        """
        number = positive_int(component, "component", minimum=0)
        if number >= self.count:
            raise InvalidArgumentError(f"component must be below {self.count}, got {number}: they count from 0.")
        steps = np.asarray(deviations, dtype=np.float64)
        if not np.isfinite(steps).all() or steps.ndim > 1:
            raise InvalidArgumentError(f"deviations must be a finite number or a row of them, got {shown(deviations)}.")
        mean, frame = self._squares.mean, self.ball.frame
        length = np.atleast_1d(steps) * math.sqrt(self.variances[number])
        length = np.clip(length, -0.99 * frame.injectivity_radius, 0.99 * frame.injectivity_radius)
        points = self.ball.from_frame(frame.exp_coords(mean.at, length[:, None] * self.directions[number]))
        return np.asarray(points if steps.ndim else points[0])

    def scores(self, X: Any) -> FloatArray:
        """Return the coordinates of points along the directions, (n, count). NOT PRIVATE where the points are not.

        Points are taken as they are: none is clipped to the ball.

        Parameters
        ----------
        X : points, (n, *space.shape): public ones, or those of whoever asks
        """
        mean, frame = self._squares.mean, self.ball.frame
        points = self.space.into_frame(self.ball.center, self.space.as_points(X, "X", batch=True))
        return np.asarray(frame.log_coords(mean.at, points) @ self.directions.T)

    # ---------------------------------------------------------------- for people and machines

    def _facts(self) -> list[tuple[str, str]]:
        rows = zip(self.variances, self.variance_intervals, self.shares, self.share_intervals, strict=True)
        facts = [
            (
                f"component {number}",
                f"variance {variance:.4g} ({low:.4g} to {high:.4g}), "
                f"share {_percent(share)} ({least:.1%} to {most:.1%})",
            )
            for number, (variance, (low, high), share, (least, most)) in enumerate(rows, start=1)
        ]
        least, most = self.explained_interval
        return [
            *facts,
            ("together", f"share of the total {_percent(self.explained)} ({least:.1%} to {most:.1%})"),
            ("total", f"{self.total:.4g} ({self.total_interval[0]:.4g} to {self.total_interval[1]:.4g})"),
            ("mean", array_text(self.center)),
            ("promise", f"{self.privacy} for each {self.release.unit}, {self.n:,} of them"),
            ("limited by", f"{self.dominant_source}; squared width of the first variance: {self.variance_shares}"),
            ("ball", repr(self.ball)),
        ]

    def _worth(self) -> list[str]:
        found = [ELLIPTICAL]
        blurred = [str(number) for number, gap in enumerate(self.gaps, start=1) if gap < 1]
        if blurred:
            found.append(
                f"component {', '.join(blurred)}: the eigenvalue is no farther above the next than noise alone may "
                "bring it, so that noise may have turned the direction, or made it up"
            )
        if self.count == self.ball.frame.dim:
            found.append(f"the space has {self.count} dimensions, and so there are no more components")
        remedy = (
            "Use "
            + ("" if self.mean.release.steps else "refine=True or a smaller ball, ")
            + "more units or a weaker promise"
        )
        if not self.is_identifiable:
            found.append(f"the total variance is not told from 0, so that shares of it are not known. {remedy}")
        elif self.explained_interval[1] - self.explained_interval[0] > 0.5:
            found.append(f"the explained share is not known to within a half. {remedy}")
        return found

    def arrays(self) -> dict[str, Array]:
        """Return the released mean, which facts tell."""
        return {"mean": self.center}

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        what = "One principal component" if self.count == 1 else f"{self.count} principal components"
        return f"{what} with {100 * self.level:g} % confidence intervals"

    def _numbers_told(self) -> dict[str, Any]:
        # Not the directions: their smallest entries are rounding, which another machine rounds otherwise.
        return {
            "center": array_to_json(self.center),
            **all_told(
                self, "variances", "variance_intervals", "shares", "share_intervals", "total", "total_interval",
                "explained", "explained_interval", "gaps", "is_identifiable",
            ),
        }  # fmt: skip


def _held(value: float, low: float, high: float) -> tuple[float, float, float]:
    """Return an estimate and its interval, widened where the estimate was moved out of it to fit the others."""
    return value, min(low, value), max(high, value)


def _percent(share: float) -> str:
    return "not known" if math.isnan(share) else f"{share:.1%}"
