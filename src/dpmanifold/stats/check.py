"""Checks of a result against what it states, by anybody who holds it: no data comes in here."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeVar

import numpy as np

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.release import NEIGHBOURS_BY_CLASS, Release
from dpmanifold.result import Result, serves
from dpmanifold.stats.copies import copy_faults, draws_of
from dpmanifold.stats.examine import Findings, examine

R = TypeVar("R")

# What no check of a file can tell, each with a name.
CANNOT_KNOW = {
    "value": "that the value is the one that was drawn: any other that could have been drawn would pass as well",
    "source": "that the noise came from an unpredictable source: whether a seed was used, or found the ball, is the "
    "maker's word",
    "arithmetic": "that noise was drawn exactly: a draw on the grid can be made up for any value, or left out. The "
    "last digits of a point are not vouched for: make it anew from what was drawn",
    "numbers": "that the ball, a public shape, the number of units and the promise are those that were used: changed "
    "together, with all that follows from them, they agree again",
    "people": "that units and classes are who they are said to be, and that the ball, its source and all that is "
    "stated beside the value were public",
    "outside": "that nothing else about the same data was released outside this promise: a step left out with its "
    "cost, another class, a ball found before",
    "reference": "which point a variance was taken about, where no step states it",
    "neighbours": "that the neighbours are the right ones: where no classes are stated, a mean or a second moment for "
    "neighbours in the same classes reads as one for any neighbours, and the other way round",
    "refinement": "that a smaller ball or a shape was asked for: that it was skipped can be added or left out",
    "shrinkage": "that the value was not moved towards the centre: that it was, and the draw before, can be left out",
    "counts": "how many units each class has, where labels are public: no fewer than its sums and the second moment "
    "show, and beyond that it is the maker's word",
    "covariate": "which range of the covariate was brought to [-1, 1]: another goes with the same release, and moves "
    "and stretches the axis of the curve; and the moments of a public covariate, beyond what was drawn shows",
    "choices": "choices that no promise depends on: the level, the coverage asked for, whether a value inside the "
    "ball was moved there, which group of a test comes first, how much second and higher moments count where doubles "
    "were drawn",
}
WHAT_WOULD = (
    "A signature of the maker would show that nothing was changed afterwards, and a ledger's receipt what else was "
    "released. Whether the maker told the truth, no check of a file can show."
)


@dataclass(frozen=True)
class Verification:
    """What a check of a result found.

    Attributes
    ----------
    ok : True if everything that can be recomputed was, and agrees
    recomputed : what was recomputed and agrees, in words
    wrong : what contradicts the library, the result itself or its steps, in words; empty if ok
    cannot_know : what no check of the result can tell; always the same list
    private : False if the result says itself that it is not private
    """

    ok: bool
    recomputed: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    cannot_know: tuple[str, ...] = tuple(CANNOT_KNOW.values())
    private: bool = True

    @property
    def findings(self) -> tuple[str, ...]:
        """What is wrong, and then what was recomputed."""
        return self.wrong + self.recomputed

    def __repr__(self) -> str:
        good = (
            "The release is consistent."
            if self.private
            else "The release is consistent, and says that it is NOT PRIVATE."
        )
        lines = [good if self.ok else "THE RELEASE IS NOT CONSISTENT."]
        for title, texts in (
            ("What is wrong:", self.wrong),
            ("What was recomputed and agrees:", self.recomputed),
            ("What this cannot know:", self.cannot_know),
        ):
            lines += [title, *(f"  - {text}" for text in texts)] if texts else []
        return "\n".join([*lines, WHAT_WOULD])


@serves("verify")
def verify(release: Result) -> Verification:
    """Recompute whatever a result states that can be recomputed, and say what cannot. Touches no data.

    Steps, shares, bounds, scales, tolerances and words are compared with what the library would have stated; every
    number and block of what was drawn must be what units in the ball and noise can come to, and no draw a copy of
    another. An honest release is refused with a probability below 1e-9, for copies below 1e-8 (theory: features). Never
    raises for a result, however it was made.

    Parameters
    ----------
    release : what a private call returned: a Release, or a conclusion such as a ConfidenceRegion

    Examples
    --------
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import PureDP
    >>> from dpmanifold.stats import EACH_RECORD, private_mean
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> release = private_mean(np.zeros((9, 1)), ball, PureDP(1.0), units=EACH_RECORD)
    >>> verify(release).ok
    True
    >>> from dataclasses import replace
    >>> verify(replace(release, scale=release.scale / 2)).wrong
    ('scale: stated 0.111111, recomputed 0.222222', 'grid: stated -33, recomputed -34')
    """
    if not isinstance(release, Result):
        raise InvalidArgumentError(
            f"release must be a result, as private calls return them, got {shown(release)}. "
            "Read one from a file with dpmanifold.load."
        )
    findings = Findings()
    with np.errstate(all="ignore"):
        named: dict[str, Release] = {}
        findings.add(_attempted(lambda result: _made_of(result, named), release), "")
        for name, one in named.items():
            findings.add(_attempted(_as_read, one), name and f"{name}: ")
        if len(named) > 1:
            findings.add(_attempted(_compared, release), "")
        findings.add(_attempted(lambda _: _apart(named), release), "")
        findings.add(_attempted(lambda result: Findings([], result.faults()), release), "")
    private = release.private is True
    if not private:
        findings.good.append(
            "the release says itself that it is NOT PRIVATE: a seed was used, something was revealed, or the data were "
            "declared public"
        )
    return Verification(not findings.wrong, tuple(findings.good), tuple(findings.wrong), private=private)


def _attempted(check: Callable[[R], Findings], result: R) -> Findings:
    """Return what a check finds. A stranger's numbers may fail anywhere; a check that failed found nothing good."""
    try:
        return check(result)
    except Exception as problem:
        return Findings([], [f"what the release states cannot be recomputed: {problem}"])


def _as_read(release: Release) -> Findings:
    """Examine a release as it reads from a file, whatever its object was made of."""
    return examine(Release.from_dict(_record(release)))


def _record(release: Release, answers: bool = True) -> dict[str, Any]:
    """Return what the object's own entries read as; a subclass, be it of a step, may write something else."""
    steps = [_record(step, answers=False) for step in release.steps]
    return {**Release.to_dict(release, answers), "steps": steps}


def _compared(test: Result) -> Findings:
    """Return what groups say against each other; each unit is in one of them, so that promises do not add."""
    groups, found = test.released, Findings()
    first, others = groups[0], groups[1:]
    found.require(all(first.privacy == one.privacy for one in others), "the groups were promised different things")
    found.require(all(first.unit == one.unit for one in others), "the groups have different kinds of units")
    found.require(
        all(first.receipt == one.receipt for one in others),
        f"the groups have different receipts: one call pays for {'both' if len(groups) == 2 else 'all of them'}",
    )
    found.require(
        all(first.private == one.private for one in others),
        "one group is private and the other is not: they have one source",
    )
    found.require(
        all(one.neighbours == NEIGHBOURS_BY_CLASS for one in groups),
        "the groups do not say that membership is public, without which their promises add up",
    )
    means = [mean.release for mean in getattr(test, "means", ())] or list(groups)
    pairs = combinations(zip(groups, means, strict=True), 2)
    found.require(
        not any(np.array_equal(one.value, two.value) or _same_draw(a, b) for (one, a), (two, b) in pairs),
        "one group is a copy of the other: two draws are never equal to the last bit",
    )
    balls = [mean.steps[0] for mean in means if mean.steps]
    found.require(
        not balls or (_same_record(balls, len(groups)) and balls[0].n == sum(one.n for one in groups)),
        f"the groups do not share one ball that was found from {'both' if len(groups) == 2 else 'all of them'}",
    )
    return found


def _made_of(result: Result, named: dict[str, Release]) -> Findings:
    """Name the releases that a result is made of, each of which is examined; there must be one."""
    if isinstance(result, Release):
        named[""] = result
        return Findings()
    found, released = result.released_by_name(), result.released
    named.update({f"release {place}": one for place, one in enumerate(released, start=1)})
    if len(found) == len(released) and all(map(operator.is_, found.values(), released)):
        named.clear()
        named.update(found)
    return Findings([], [] if named else ["there is no release that it is made of"])


def _apart(named: dict[str, Release]) -> Findings:
    """Return which draws are copies of each other; the ball that groups share was drawn once."""
    draws = [
        drawn
        for number, (name, release) in enumerate(named.items())
        for drawn in draws_of(release, name and f"{name}: ", balls=number == 0)
    ]
    return Findings([], copy_faults(draws))


def _same_record(releases: list[Release], count: int) -> bool:
    return len(releases) == count and all(_record(one) == _record(releases[0]) for one in releases[1:])


def _same_draw(one: Release, two: Release) -> bool:
    """Return whether two means are equal where equal draws do not happen: inside the ball, and told apart by doubles.

    On the ball's edge they can be equal: that is where draws far outside are moved to.
    """
    if not np.array_equal(one.value, two.value):
        return False
    inside = one.ball.distance_to_center(one.value) < one.ball.radius * (1 - 1e-9)
    return bool(inside) and one.scale > 1e-6 * float(np.abs(one.value).max())
