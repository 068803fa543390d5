"""Tests that two populations, or several, have the same mean: Hotelling's T^2, unequal covariances.

Theory: section 7, region; and k-sample.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import scipy

from dpmanifold._cells import checked_names
from dpmanifold._check import Array, FloatArray, open_fraction, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference.estimate import FRECHET, TANGENT, Estimate, ReleasedMean, chart_derivative
from dpmanifold.inference.hotelling import NoisyCovariance, ShrunkCovariance, degrees_of_freedom
from dpmanifold.inference.inference_result import Conclusion, VarianceShares
from dpmanifold.inference.joint import CorrectedEstimate, JointEstimate, combined, estimate_of
from dpmanifold.inference.welch_james import Located, Omnibus, omnibus_of, omnibus_of_joint
from dpmanifold.linalg import symmetrize
from dpmanifold.release import Release
from dpmanifold.summary import all_told, told

MEANS_TOLD = {FRECHET: "Fréchet means", TANGENT: "tangent means at the ball's centre"}


class MeansCompared(Conclusion):
    """A test of equal means of groups that have nobody in common, computed from a release of each on one ball."""

    level: float

    @property
    @abstractmethod
    def released(self) -> tuple[Release, ...]:
        """The releases of the groups."""

    @property
    @abstractmethod
    def estimates(self) -> Sequence[Estimate | JointEstimate]:
        """The releases, read as means with their covariances."""

    @property
    @abstractmethod
    def p_value(self) -> float:
        """Probability of a statistic as large if the means were equal: the smallest size at which the test rejects."""

    @property
    def rejects(self) -> bool:
        """Whether equal means are rejected at 1 - level."""
        return self.p_value < 1 - self.level

    @property
    def means(self) -> tuple[ReleasedMean, ...]:
        """The released means: of each, `value` is the point, and `release` holds it."""
        return tuple(group.mean for group in self.estimates)

    @property
    def _means(self) -> tuple[Release, ...]:
        return tuple(mean.release for mean in self.means)

    @property
    def estimand(self) -> str:
        """Which means are compared: "frechet" or "tangent"."""
        return self.estimates[0].estimand


@dataclass(frozen=True, eq=False, repr=False)
class TwoSampleTest(MeansCompared, format="dpmanifold two-sample test 2"):
    """A test of equal means of two groups, computed from a release of each.

    The populations are those of units clipped into the ball. From joint moments the means are those of coordinates at
    the ball's centre: on flat spaces the Fréchet means, elsewhere the tangent means. Otherwise they are Fréchet means.

    Parameters
    ----------
    first, second : joint moments, or second moments whose step is the mean, as :func:`private_two_sample_test` makes
        them, on one ball
    level : the confidence of the interval for the distance, in (0, 1)

    Examples
    --------
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD, private_two_sample_test
    >>> X, Y = np.random.default_rng(0).standard_normal((2, 1000, 1)) + [[[0.0]], [[2.0]]]
    >>> test = private_two_sample_test(X, Y, Ball(Euclidean(1), [0.0], 5.0), GDP(1.0), units=EACH_RECORD)
    >>> test.p_value < 1e-6, 1.5 < test.low < test.distance < test.high < 2.5
    (True, True)
    """

    first: Release
    second: Release
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", open_fraction(self.level, "level"))
        if self.first.ball != self.second.ball:
            raise InvalidArgumentError("first and second must be releases on the same ball.")
        one, two = self.estimates  # refuses what is no second moment
        if isinstance(one, JointEstimate) != isinstance(two, JointEstimate):
            raise InvalidArgumentError("first and second must be releases of one kind, made in one call.")

    @cached_property
    def estimates(self) -> tuple[Estimate | JointEstimate, Estimate | JointEstimate]:
        """Both releases, read as means with their covariances."""
        one, two = (estimate_of(release) for release in (self.first, self.second))
        if isinstance(one, CorrectedEstimate) or isinstance(two, CorrectedEstimate):
            raise InvalidArgumentError(
                "first and second must be releases for a test, got joint moments for a region about a Fréchet mean. "
                "private_two_sample_test makes what a test takes."
            )
        return one, two

    # ---------------------------------------------------------------- the numbers

    @cached_property
    def pooled(self) -> Array:
        """The pooled mean in the ball's frame: between the two released ones, nearer to the one better known."""
        one, two = self.estimates
        first, second = (float(np.trace(group.covariance)) for group in (one, two))
        frame = self.ball.frame
        way = frame.log_coords(one.mean.at, two.mean.at)
        return frame.exp_coords(one.mean.at, first / (first + second) * way)

    def _difference(self, base: Array) -> tuple[FloatArray, NoisyCovariance | ShrunkCovariance]:
        """Difference of the means in coordinates at `base`, and its covariance; from joint moments at the centre."""
        joint = [group for group in self.estimates if isinstance(group, JointEstimate)]
        if joint:
            return joint[0].mean.drawn - joint[1].mean.drawn, combined(joint)
        one, two = (Located.about(group, base) for group in self.estimates if isinstance(group, Estimate))
        noise = one.noise + two.noise
        total = one.sampling + two.sampling + noise
        free = degrees_of_freedom([(one.sampling, one.n), (two.sampling, two.n)], total)
        if free > len(total) + 1:
            # The groups' noises are independent: their variances add up.
            return one.at - two.at, NoisyCovariance(total, math.hypot(one.hidden, two.hidden), free)
        return one.at - two.at, NoisyCovariance(one.most + two.most + noise, 0.0, math.inf)

    @cached_property
    def _test(self) -> tuple[float, float]:
        """The statistic and its p-value."""
        wrapped = self.estimates[0].mean.wrapped
        apart, error = self._difference(self.ball.frame.origin if wrapped else self.pooled)
        statistic = error.statistic(apart)
        return statistic, error.exceedance(statistic)

    @property
    def statistic(self) -> float:
        """Squared difference of the released means in units of its covariance, noise and allowance included."""
        return self._test[0]

    @property
    def p_value(self) -> float:
        """Probability of a statistic as large if the means were equal: the smallest size at which the test rejects."""
        return self._test[1]

    @property
    def distance(self) -> float:
        """The geodesic distance between the released means: noise and sampling alone carry them apart."""
        one, two = self.estimates
        return float(self.ball.frame.dist(one.mean.at, two.mean.at))

    @cached_property
    def _turned(self) -> FloatArray:
        """Takes differences of coordinates where `_difference` has them to coordinates at the pooled mean, (d, d)."""
        frame = self.ball.frame
        if self.estimand == FRECHET:  # on flat spaces coordinates differ alike at every point
            return np.eye(frame.dim)
        return np.asarray(np.linalg.inv(chart_derivative(frame, frame.origin, self.pooled)))

    @cached_property
    def _at_pooled(self) -> tuple[FloatArray, FloatArray, float]:
        """Difference of the means in coordinates at the pooled mean, its covariance at the level, and the bound."""
        apart, error = self._difference(self.pooled)
        turned, tail = self._turned, 1 - self.level
        return turned @ apart, symmetrize(turned @ error.safe(tail) @ turned.T), error.threshold(tail)

    @cached_property
    def _squared_distances(self) -> tuple[float, float]:
        """Squared distance as it was drawn, in coordinates at the pooled mean; what noise and sampling add to it."""
        apart, added = self._at_pooled[0], sum(sum(group.expected_error) for group in self.estimates)
        return float(apart @ apart), added * float((self._turned**2).sum()) / len(apart)

    @property
    def bias_corrected_distance(self) -> float:
        """Effect size: the root of the squared distance less what noise and sampling add to it on average.

        0 where they explain all of it; at most the ball's diameter. Sampling that the noise hides is not taken off.
        """
        drawn, added = self._squared_distances
        return min(math.sqrt(max(drawn - added, 0.0)), self.ball.diameter)

    @cached_property
    def _distance_range(self) -> tuple[float, float]:
        """Smallest and largest distance in the ellipsoid about the difference, in coordinates at the pooled mean."""
        apart, covariance, bound = self._at_pooled
        values, vectors = np.linalg.eigh(covariance)
        high = float(np.linalg.norm(apart)) + math.sqrt(bound * values[-1])
        low = 0.0 if not self.rejects else _nearest(vectors.T @ apart, values, bound)
        return low, min(high, self.ball.diameter)

    @property
    def low(self) -> float:
        """Lower end of the interval for the distance; 0 where the test does not reject."""
        return self._distance_range[0]

    @property
    def high(self) -> float:
        """Upper end of the interval for the distance, at most the ball's diameter."""
        return self._distance_range[1]

    @property
    def variance_shares(self) -> VarianceShares:
        """What the covariance of the difference is made of, at the level: noise, sampling and allowance."""
        noise = sum(float(np.trace(group.mean.noise)) for group in self.estimates)
        sampling = sum(float(np.trace(group.sampling_surely)) for group in self.estimates)
        return VarianceShares.of(noise, sampling, float(np.trace(self._at_pooled[1])))

    # ---------------------------------------------------------------- for people and machines

    @property
    def released(self) -> tuple[Release, ...]:
        """The releases of the two groups."""
        return self.first, self.second

    def released_by_name(self) -> dict[str, Release]:
        """Return the same by name."""
        return {"first group": self.first, "second group": self.second}

    def _facts(self) -> list[tuple[str, str]]:
        within = f"between {self.low:.4g} and {self.high:.4g} ({100 * self.level:g} %)"
        return [
            ("p-value", f"{self.p_value:.4g} (statistic {self.statistic:.4g}, dimension {self.ball.frame.dim})"),
            (
                "distance",
                f"about {self.bias_corrected_distance:.4g}, {within}; {self.distance:.4g} with noise and sampling",
            ),
            ("promise", f"{self.privacy} for each {self.first.unit}, {self.first.n:,} and {self.second.n:,} of them"),
            ("limited by", f"{self.dominant_source}; squared width: {self.variance_shares}"),
            ("groups", "who is in which is public, and nobody is in both"),
            ("ball", repr(self.ball)),
        ]

    def _worth(self) -> list[str]:
        drawn, added = self._squared_distances
        if added < drawn / 2:
            return self._excluding_little()
        return [
            *self._excluding_little(),
            f"the distance of {self.distance:.4g} is that of the released means, and mostly noise and sampling: "
            f"without these it is about {self.bias_corrected_distance:.4g}",
        ]

    def _excluding_little(self) -> list[str]:
        """Say where the interval for the distance leaves most of the ball open."""
        most = self.ball.diameter
        if self.low > most:
            return ["no distance that the ball allows fits the released means at this level: chance carried them apart"]
        if self.low <= 0.0 and self.high >= most:
            return [
                "the distance may be anything that the ball allows, and no difference is shown: this says nothing. Use "
                "more units or a weaker promise"
            ]
        if self.low <= 0.0 and self.high >= most / 2:
            return ["that no difference is shown says little: means half the ball's diameter apart are not excluded"]
        return []

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"Test of equal {MEANS_TOLD[self.estimand]}"

    def _numbers_told(self) -> dict[str, Any]:
        numbers = all_told(
            self, "p_value", "statistic", "rejects", "distance", "bias_corrected_distance", "low", "high"
        )
        return {**numbers, "dimension": self.ball.frame.dim, "estimand": self.estimand}


def _nearest(apart: FloatArray, variances: FloatArray, bound: float) -> float:
    """Return the smallest norm over {x: sum (x - apart)^2 / variances <= bound}, in the ellipsoid's own axes.

    The nearest point is s apart/(variance + s) for the s > 0 at which it lies on the boundary.
    """

    def outside(log_s: float) -> float:
        s = math.exp(log_s)
        return float((variances * (apart / (variances + s)) ** 2).sum()) - bound

    if float((apart**2 / variances).sum()) <= bound:
        return 0.0
    top = math.log(float(np.abs(apart).max()) ** 2 + float(variances.max())) + 40
    if outside(top) >= 0:  # an ellipsoid as small as a point
        return float(np.linalg.norm(apart))
    s = math.exp(scipy.optimize.brentq(outside, min(-700.0, top - 700), top))
    return float(np.linalg.norm(s * apart / (variances + s)))


# -------------------------------------------------------------------- several groups (theory: k-sample)


_USE_TANGENT = (
    "most of the width of intervals is an allowance for the noise on the spread. A test of the tangent means at the "
    'ball\'s centre takes one draw of each group and needs less of it (estimand="tangent")'
)
# Pairs that are shown to people; a record has them all.
_MOST_SHOWN = 15
# The pooled mean is found to this, in units of the ball's radius, or after so many steps.
_CLOSE, _STEPS = 1e-14, 100


class Pair(NamedTuple):
    """Two of the groups.

    Attributes
    ----------
    names : of the two groups
    test : their comparison, at the level that makes the intervals of all pairs hold together
    p_value : adjusted for the number of pairs (Holm 1979): where those below a size are taken to differ, the
        probability that any of them does not is at most that size
    """

    names: tuple[Any, Any]
    test: TwoSampleTest
    p_value: float

    def told(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""
        numbers = all_told(self.test, "distance", "bias_corrected_distance", "low", "high")
        return {"names": list(self.names), "p_value": told(lambda: self.p_value), **numbers}


@dataclass(frozen=True, eq=False, repr=False)
class KSampleTest(MeansCompared, format="dpmanifold k-sample test 2"):
    """A test of equal means of several groups, computed from a release of each, with all pairs of them.

    The populations are those of units clipped into the ball. From joint moments the means are those of coordinates at
    the ball's centre: on flat spaces the Fréchet means, elsewhere the tangent means. Otherwise they are Fréchet means.

    Parameters
    ----------
    groups : joint moments, or second moments whose step is the mean, as :func:`private_k_sample_test` makes them, on
        one ball, by the names of the groups
    level : the confidence that the intervals for the distances have together, in (0, 1)

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> labels = np.repeat([1, 2, 3], 500)
    >>> X = np.random.default_rng(0).standard_normal((1500, 1)) + labels[:, None]
    >>> ball = dpm.Ball(dpm.Euclidean(1), [2.0], 5.0)
    >>> found = dpm.private_k_sample_test(X, labels, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, classes=[1, 2, 3])
    >>> found.rejects, [pair.names for pair in found.pairs if pair.test.low > 1.5]
    (True, [(1, 3)])
    """

    groups: Mapping[Any, Release]
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", open_fraction(self.level, "level"))
        names = checked_names(self.groups)
        object.__setattr__(self, "groups", dict(zip(names, self.groups.values(), strict=True)))
        _ = self._tests  # refuses what cannot be compared

    # ---------------------------------------------------------------- what it rests on

    @property
    def classes(self) -> tuple[Any, ...]:
        """The groups' names, in their public order."""
        return tuple(self.groups)

    @property
    def released(self) -> tuple[Release, ...]:
        """The releases of the groups."""
        return tuple(self.groups.values())

    def released_by_name(self) -> dict[str, Release]:
        """Return the same by name."""
        return {f"group {name!r}": release for name, release in self.groups.items()}

    @cached_property
    def estimates(self) -> list[Estimate | JointEstimate]:
        """The releases, read as means with their covariances."""
        first = [test.estimates for test in self._tests[: len(self.groups) - 1]]  # those with the first group
        return [first[0][0], *(two for _, two in first)]

    # ---------------------------------------------------------------- all groups at once

    @cached_property
    def pooled(self) -> Array:
        """The pooled mean in the ball's frame: between the released ones, nearer to those better known."""
        frame = self.ball.frame
        weights = np.array([1 / max(float(np.trace(group.covariance)), 1e-300) for group in self.estimates])
        weights /= weights.sum()
        means = np.stack([group.mean.at for group in self.estimates])
        at = frame.exp_coords(frame.origin, weights @ frame.log_coords(frame.origin, means))
        for _ in range(_STEPS):
            step = weights @ frame.log_coords(at, means)
            at = frame.exp_coords(at, step)
            if float(np.linalg.norm(step)) <= _CLOSE * self.ball.radius:
                break
        return at

    @cached_property
    def _omnibus(self) -> Omnibus:
        joint = [group for group in self.estimates if isinstance(group, JointEstimate)]
        if joint:
            return omnibus_of_joint(joint)
        base = self.ball.frame.origin if self.estimates[0].mean.wrapped else self.pooled
        return omnibus_of([Located.about(group, base) for group in self.estimates if isinstance(group, Estimate)])

    @property
    def statistic(self) -> float:
        """Squared distances of the released means from their weighted mean, by their common covariance, added up."""
        return self._omnibus.statistic

    @property
    def dof(self) -> tuple[float, float]:
        """Degrees of freedom of the F variable that the statistic is compared with."""
        return self._omnibus.dof

    @property
    def p_value(self) -> float:
        """Probability of a statistic as large if all means were equal: the smallest size at which the test rejects."""
        return self._omnibus.p_value

    # ---------------------------------------------------------------- pairs

    @cached_property
    def _tests(self) -> list[TwoSampleTest]:
        """All pairs, each at a level by which all intervals hold together (Bonferroni)."""
        both = list(combinations(self.released, 2))
        level = 1 - (1 - self.level) / len(both)
        return [TwoSampleTest(one, two, level) for one, two in both]

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs of groups, in the order of their names: distances, intervals that hold together, adjusted p."""
        adjusted = holm([test.p_value for test in self._tests])
        return tuple(Pair(*found) for found in zip(combinations(self.classes, 2), self._tests, adjusted, strict=True))

    def pair(self, one: object, two: object) -> Pair:
        """Return the comparison of two groups, named in any order."""
        for found in self.pairs:
            if set(found.names) == {one, two}:
                return found
        raise InvalidArgumentError(
            f"one and two must be different groups of {shown(list(self.classes))}, got {shown(one)} and {shown(two)}."
        )

    @property
    def variance_shares(self) -> VarianceShares:
        """What the covariance of a difference is made of, on average over pairs: noise, sampling and allowance."""
        return VarianceShares(*np.mean([pair.test.variance_shares for pair in self.pairs], axis=0).tolist())

    # ---------------------------------------------------------------- for people and machines

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"Test of equal {MEANS_TOLD[self.estimand]} of {len(self.groups)} groups"

    def _facts(self) -> list[tuple[str, str]]:
        first, second = self.dof
        law = f"F with {first:.4g} and {second:.4g} degrees of freedom"
        numbers = ", ".join(f"{name}: {release.n:,}" for name, release in self.groups.items())
        return [
            ("p-value", f"{self.p_value:.4g} (statistic {self.statistic:.4g}, {law}; dimension {self.ball.frame.dim})"),
            ("distances", self._pairs_told()),
            ("promise", f"{self.privacy} for each {self.released[0].unit}, in all comparisons together"),
            ("units", numbers),
            ("limited by", f"{self.dominant_source}; squared width: {self.variance_shares}"),
            ("groups", "who is in which is public, and nobody is in two"),
            ("ball", repr(self.ball)),
        ]

    def _pairs_told(self) -> str:
        """Return the pairs a line each, the clearest first."""
        found = sorted(self.pairs, key=lambda pair: (pair.p_value, -pair.test.bias_corrected_distance))
        lines = [f"{100 * self.level:g} % intervals that hold together; p adjusted for the number of pairs"]
        for pair in found[:_MOST_SHOWN]:
            test = pair.test
            lines.append(
                f"{pair.names[0]}, {pair.names[1]}: about {test.bias_corrected_distance:.4g}, between {test.low:.4g} "
                f"and {test.high:.4g}; p = {pair.p_value:.3g}"
            )
        left = len(found) - _MOST_SHOWN
        return "\n".join([*lines, *([f"and {left} more pairs"] if left > 0 else [])])

    def _worth(self) -> list[str]:
        hidden = not self.ball.space.is_flat and self.estimand == FRECHET and self.variance_shares.allowance > 0.5
        return [*self._told_apart(), *([_USE_TANGENT] if hidden else [])]

    def _told_apart(self) -> list[str]:
        """Say where all groups at once and pairs disagree, or where nothing found says little."""
        differing = [pair for pair in self.pairs if pair.p_value < 1 - self.level]
        if self.rejects and not differing:
            return ["the means differ, but which of them do is not shown: no pair does by itself"]
        if differing and not self.rejects:
            return ["a pair differs, although all groups at once do not show it: pairs count by themselves"]
        farthest = max(pair.test.high for pair in self.pairs)
        if not self.rejects and farthest >= self.ball.effective_radius:
            return ["that no difference is shown says little: means half the ball's diameter apart are not excluded"]
        return []

    def _tells_clipping(self, mean: Release) -> bool:
        moved = [0.0 if one.clipping is None else one.clipping.bound for one in self._means]
        return mean is self._means[int(np.argmax(moved))]  # one note for all of them: about the mean that may move most

    def _numbers_told(self) -> dict[str, Any]:
        numbers = all_told(self, "p_value", "statistic", "dof", "rejects")
        pairs = [pair.told() for pair in self.pairs]
        return {**numbers, "dimension": self.ball.frame.dim, "estimand": self.estimand, "pairs": pairs}


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for how many there are (Holm 1979; step-down, Holm-Bonferroni).

    Examples
    --------
    >>> holm([0.01, 0.2, 0.02])
    [0.03, 0.2, 0.04]
    """
    order = np.argsort(values, kind="stable")
    adjusted, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = least
    return adjusted
