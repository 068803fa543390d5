"""What a service answers, read strictly and held against what was asked.

A result states how it was made, and whatever can be recomputed from it is (:func:`dpmanifold.verify`). Besides, it must
be about what was asked: the statistic, the promise, the ball, the number of units, and paid for in the right ledger's
population. That the noise was drawn, and that the records are who they are said to be, no answer can show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmanifold.ball import Ball
from dpmanifold.privacy import Promise
from dpmanifold.release import Release
from dpmanifold.remote.transport import RemoteError
from dpmanifold.result import Result
from dpmanifold.stats import verify
from dpmanifold.stats.means import CLASS_MEANS, MEAN_QUERY
from dpmanifold.stats.query import Query

_FRECHET = "frechet"


class AnswerError(RemoteError):
    """A service's answer does not hold, or is not what was asked. Do not rely on it; tell whoever runs the service."""


@dataclass(frozen=True)
class Expected:
    """What an answer must be about.

    Attributes
    ----------
    query : what was asked
    privacy : the promise
    options : of the call, those that were left out included
    population : whose cap pays
    receipt : where the service says that it stands in the ledger; None where it says nothing
    ball : the public ball; None where it is not known here
    n, unit, by_class : how many units there are, what one is, and how many each class has; None where it is not known
    covariate_range : of the covariate that the data set has; None where it has none
    """

    query: Query
    privacy: Promise
    options: Mapping[str, Any] = field(default_factory=dict)
    population: str = ""
    receipt: Mapping[str, Any] | None = None
    ball: Ball | None = None
    n: int | None = None
    unit: str | None = None
    by_class: Mapping[Any, int] | None = None
    covariate_range: tuple[float, ...] | None = None


def faults(answer: Any, expected: Expected) -> list[str]:
    """Return what is wrong with an answer, in words; [] if nothing that can be seen from here."""
    name = expected.query.name
    if not isinstance(answer, expected.query.result):
        return [f"a {name} was asked for, and the answer is a {type(answer).__name__}"]
    results: list[Result] = list(answer.values()) if isinstance(answer, dict) else [answer]
    found = [fault for result in results for fault in verify(result).wrong]
    if found:
        return found
    releases: list[Release] = [one for result in results for one in result.released]
    if not all(result.private for result in results) or any(first_ball(one).simulated for one in releases):
        found.append("the answer says itself that it is not private")
    if any(one.privacy != expected.privacy for one in releases):
        found.append(f"{expected.privacy} was asked for, and the answer promises {releases[0].privacy}")
    if any(one.statistic not in expected.query.releases for one in releases):
        found.append(f"a {name} was asked for, and the answer is a {releases[0].statistic}")
    found += _option_faults(answer, releases, expected)
    found += _number_faults(answer, releases, expected)
    if expected.ball is not None and not all(same_place(first_ball(one), expected.ball) for one in releases):
        found.append("the answer is of another ball than was asked")
    return found + _receipt_faults(releases, expected)


def first_ball(release: Release) -> Ball:
    """Return the ball that a release began with: a smaller one comes of a step in the public one."""
    while release.steps:
        release = release.steps[0]
    return release.ball


def same_place(one: Ball, two: Ball) -> bool:
    """Return whether two balls are the same, whoever says where they come from."""
    return one.space == two.space and one.radius == two.radius and np.array_equal(one.center, two.center)


def _option_faults(answer: Any, releases: list[Release], expected: Expected) -> list[str]:
    """Return options that were asked and that the answer shows not to be taken."""
    found, said = [], expected.options
    if "level" in said and getattr(answer, "level", said["level"]) != said["level"]:
        found.append(f"level {said['level']} was asked for, and the answer has {answer.level}")
    if "count" in said and getattr(answer, "count", said["count"]) > said["count"]:
        found.append(f"{said['count']} components were asked for, and the answer has {answer.count}")
    mechanism = said.get("mechanism", "auto")
    if mechanism != "auto" and not any(mechanism == step.mechanism for one in releases for step in _steps(one)):
        found.append(f"mechanism {mechanism} was asked for, and the answer is of {releases[0].mechanism}")
    if expected.query in (MEAN_QUERY, CLASS_MEANS) and mechanism == "auto" and not releases[0].ball.space.is_flat:
        wanted = said.get("estimand") or _FRECHET
        if any(one.estimand != wanted for one in releases):
            found.append(f"the {wanted} mean was asked for, and the answer is the {releases[0].estimand} mean")
    return found


def _steps(release: Release) -> list[Release]:
    return [release, *(one for step in release.steps for one in _steps(step))]


def _number_faults(answer: Any, releases: list[Release], expected: Expected) -> list[str]:
    """Return where an answer is of other units than the data set has, or of other classes."""
    found, by_class = [], expected.by_class
    if expected.unit is not None and any(one.unit != expected.unit for one in releases):
        found.append(f"a unit is a {expected.unit}, and in the answer a {releases[0].unit}")
    if isinstance(answer, dict) and by_class is not None:
        if [one.n for one in releases] != list(by_class.values()):
            found.append("the answer is of other numbers of units than the classes have")
    elif expected.n is not None and (by_class is not None or len(releases) == 1):
        facts = {"n": expected.n, **({} if by_class is None else {"units_by_class": list(by_class.values())})}
        if not expected.query.sample.are_counts([one.n for one in releases], [facts]):
            found.append(f"the data set has {expected.n:,} units, and the answer is of others")
    named = answer if isinstance(answer, dict) else getattr(answer, "groups", None)
    if by_class is not None and isinstance(named, Mapping) and list(named) != list(by_class):
        found.append("the answer is of other classes than the data set has")
    ends = getattr(answer, "covariate_range", None)
    if ends is not None and expected.covariate_range is not None and tuple(ends) != expected.covariate_range:
        found.append("the answer is of another range of the covariate than the data set has")
    return found


def _receipt_faults(releases: list[Release], expected: Expected) -> list[str]:
    receipts = [one.receipt for one in releases]
    first = receipts[0]
    if first is None or any(one != first for one in receipts):
        return ["the answer has not one receipt of a ledger: nobody can show that it was paid for"]
    found = []
    if expected.population and first.population != expected.population:
        found.append(f"population {expected.population} was asked, and {first.population} paid")
    if expected.receipt is not None and first.to_dict() != expected.receipt:
        found.append("the answer has another receipt than the service states")
    return found
