"""A test that several populations have the same mean, and how far apart which of them are (theory: k-sample)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from dpmanifold._cells import checked_names
from dpmanifold._check import Array, open_fraction, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.facts import all_told, told
from dpmanifold.inference.estimate import FRECHET, Estimate
from dpmanifold.inference.joint import JointEstimate
from dpmanifold.inference.records import Parts
from dpmanifold.inference.two_sample import MEANS_TOLD, MeansCompared, TwoSampleTest
from dpmanifold.inference.welch_james import Located, Omnibus, omnibus_of, omnibus_of_joint
from dpmanifold.release import Release

FORMAT = "dpmanifold k-sample test 2"
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
        numbers = all_told(self.test, "distance", "corrected_distance", "low", "high")
        return {"names": list(self.names), "p_value": told(lambda: self.p_value), **numbers}


@dataclass(frozen=True, eq=False, repr=False)
class KSampleTest(MeansCompared, format=FORMAT):
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
    def names(self) -> tuple[Any, ...]:
        """The groups, in their public order."""
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
    def freedom(self) -> tuple[float, float]:
        """Degrees of freedom of the F variable that the statistic is compared with."""
        return self._omnibus.freedom

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
        return tuple(Pair(*found) for found in zip(combinations(self.names, 2), self._tests, adjusted, strict=True))

    def pair(self, one: object, two: object) -> Pair:
        """Return the comparison of two groups, named in any order."""
        for found in self.pairs:
            if set(found.names) == {one, two}:
                return found
        raise InvalidArgumentError(
            f"one and two must be different groups of {shown(list(self.names))}, got {shown(one)} and {shown(two)}."
        )

    @property
    def parts(self) -> Parts:
        """What the covariance of a difference is made of, on average over pairs: noise, sampling and allowance."""
        return Parts(*np.mean([pair.test.parts for pair in self.pairs], axis=0).tolist())

    # ---------------------------------------------------------------- for people and machines

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"Test of equal {MEANS_TOLD[self.estimand]} of {len(self.groups)} groups"

    def _facts(self) -> list[tuple[str, str]]:
        first, second = self.freedom
        law = f"F with {first:.4g} and {second:.4g} degrees of freedom"
        numbers = ", ".join(f"{name}: {release.n:,}" for name, release in self.groups.items())
        return [
            ("p-value", f"{self.p_value:.4g} (statistic {self.statistic:.4g}, {law}; dimension {self.ball.frame.dim})"),
            ("distances", self._pairs_told()),
            ("promise", f"{self.privacy} for each {self.released[0].unit}, in all comparisons together"),
            ("units", numbers),
            ("limited by", f"{self.dominated_by}; squared width: {self.parts}"),
            ("groups", "who is in which is public, and nobody is in two"),
            ("ball", repr(self.ball)),
        ]

    def _pairs_told(self) -> str:
        """Return the pairs a line each, the clearest first."""
        found = sorted(self.pairs, key=lambda pair: (pair.p_value, -pair.test.corrected_distance))
        lines = [f"{100 * self.level:g} % intervals that hold together; p adjusted for the number of pairs"]
        for pair in found[:_MOST_SHOWN]:
            test = pair.test
            lines.append(
                f"{pair.names[0]}, {pair.names[1]}: about {test.corrected_distance:.4g}, between {test.low:.4g} and "
                f"{test.high:.4g}; p = {pair.p_value:.3g}"
            )
        left = len(found) - _MOST_SHOWN
        return "\n".join([*lines, *([f"and {left} more pairs"] if left > 0 else [])])

    def _worth(self) -> list[str]:
        hidden = not self.ball.space.is_flat and self.estimand == FRECHET and self.parts.allowance > 0.5
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
        numbers = all_told(self, "p_value", "statistic", "freedom", "rejects")
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
