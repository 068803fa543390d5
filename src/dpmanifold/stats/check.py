"""Checks of a result against what it states, by anybody who holds it: no data comes in here."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.release import Release, option_to_json
from dpmanifold.result import Result
from dpmanifold.statistic import REPLACE_ONE_UNIT_SAME_CLASSES, Kind
from dpmanifold.stats.examine import Findings, copy_faults, examine

R = TypeVar("R")

# What no check of a file can tell, each with a name.
CANNOT_KNOW = {
    "value": "that the value is the one that was drawn: any other that could have been drawn would pass as well",
    "source": "that the noise came from an unpredictable source: whether a seed was used, or found the ball, is the "
    "maker's word",
    "arithmetic": "that noise was drawn exactly: a draw on the grid can be made up for any value. The last digits of a "
    "point are not vouched for: make it anew from what was drawn",
    "request": "that this is what was asked for: the ball, the number of units, the guarantee and the options, changed "
    "together with all that follows from them, may agree with the same draws again",
    "people": "that units and classes are who they are said to be, and that the ball, its source and all that is "
    "stated beside the value were public",
    "outside": "that nothing else about the same data was released outside this promise: a step left out with its "
    "cost, another class, a ball found before",
    "counts": "how many units each class has, where labels are public: no fewer than its sums and the second moment "
    "show, and beyond that it is the maker's word; and so are the moments of a public covariate",
    "choices": "choices that no promise depends on: the level, and which of several mechanisms or estimators that are "
    "nearly as good was taken",
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
    ('scale: stated 0.111111, recomputed 0.222222',)
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
        examined = {name: _attempted(_as_read, one) for name, one in named.items()}
        for name, found in examined.items():
            findings.add(found, name and f"{name}: ")
        if len(named) > 1:
            findings.add(_attempted(_compared, list(named.values())), "")
        findings.add(_attempted(_apart, examined), "")
        findings.add(_attempted(lambda result: Findings([], _as_asked(result) + result.faults()), release), "")
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


def _record(release: Release) -> dict[str, Any]:
    """Return what the object's own entries read as; a subclass, be it of a step, may write something else.

    Without answers: they follow from the entries.
    """
    return {**Release.to_dict(release, answers=False), "steps": [_record(step) for step in release.steps]}


def _compared(releases: Sequence[Release]) -> Findings:
    """Return what groups say against each other: one call drew all of them, each about another of its groups."""
    found, first = Findings(), releases[0]
    asked = [{**request_of(one), "decisions": None, "group": None} for one in releases]
    found.require(all(one == asked[0] for one in asked), "the groups were not asked for together")
    for name in ("privacy", "unit", "adjacency", "receipt", "private"):
        same = all(getattr(one, name) == getattr(first, name) for one in releases)
        found.require(same, f"the groups have different entries of {name!r}")
    found.require(
        first.adjacency == REPLACE_ONE_UNIT_SAME_CLASSES,
        "the groups do not say that membership is public, without which their promises add up",
    )
    groups = [one.request.group if one.request else None for one in releases]
    counts = first.request.options.get("counts") if first.request else None
    found.require(
        groups == list(range(len(releases))) and (counts is None or len(counts) == len(releases)),
        "the groups are not the groups of one call, all of them and in their order",
    )
    shared = [[_record(step) for step in _shared(one)] for one in releases]
    found.require(
        all(one == shared[0] for one in shared),
        f"the groups do not share one ball that was found from {'both' if len(releases) == 2 else 'all of them'}",
    )
    return found


def request_of(release: Release) -> dict[str, Any]:
    """Return what a release says was asked for, as it is written."""
    return release.request.to_dict() if release.request else {}


def _as_asked(result: Result) -> list[str]:
    """Return in what a conclusion differs from the request that its releases state."""
    if isinstance(result, Release):
        return []
    classes = getattr(result, "classes", None)
    stated = {**({} if classes is None else {"classes": list(classes)}), **vars(result)}
    differing = [
        f"{name}: not what was asked for"
        for one in result.released
        for name, asked in (one.request.options if one.request else {}).items()
        if name in stated and option_to_json(stated[name], name) != option_to_json(asked, name)
    ]
    return list(dict.fromkeys(differing))


def _shared(release: Release) -> list[Release]:
    """Return the ball that a step of a group's release is about all groups."""
    below = [release]
    while below[-1].steps:
        below.append(below[-1].steps[0])
    return [one for one in below if one.definition.kind is Kind.BALL]


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


def _apart(named: dict[str, Findings]) -> Findings:
    """Return which outputs are copies of each other; the ball that groups share was drawn once."""
    outputs = []
    for place, (name, found) in enumerate(named.items()):
        for output in found.outputs:
            if place == 0 or output.step.definition.kind is not Kind.BALL:
                outputs.append((f"{name}: {output.step.statistic}" if name else output.step.statistic, output))
    return Findings([], copy_faults(outputs))
