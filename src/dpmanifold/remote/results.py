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

    exit_code = 4


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
    balls, public = list(map(first_ball, releases)), expected.ball
    wrong = {
        "the answer says itself that it is not private": not all(result.private for result in results)
        or any(ball.simulated for ball in balls),
        f"{expected.privacy} was asked for, and the answer promises {releases[0].privacy}": any(
            one.privacy != expected.privacy for one in releases
        ),
        f"a {name} was asked for, and the answer is a {releases[0].statistic}": any(
            one.statistic not in expected.query.releases for one in releases
        ),
        **_option_faults(answer, releases, expected),
        **_number_faults(answer, releases, expected),
        "the answer is of another ball than was asked": public is not None
        and not all(same_place(ball, public) for ball in balls),
        **_receipt_faults(releases, expected),
    }
    return [words for words, holds in wrong.items() if holds]


def first_ball(release: Release) -> Ball:
    """Return the ball that a release began with: a smaller one comes of a step in the public one."""
    while release.steps:
        release = release.steps[0]
    return release.ball


def same_place(one: Ball, two: Ball) -> bool:
    """Return whether two balls are the same, whoever says where they come from."""
    return one.space == two.space and one.radius == two.radius and np.array_equal(one.center, two.center)


def _option_faults(answer: Any, releases: list[Release], expected: Expected) -> dict[str, bool]:
    """Return which options that were asked the answer shows not to be taken."""
    said, first = expected.options, releases[0]
    level, count = (getattr(answer, name, said.get(name)) for name in ("level", "count"))
    mechanism, wanted = said.get("mechanism", "auto"), said.get("estimand") or _FRECHET
    curved = expected.query in (MEAN_QUERY, CLASS_MEANS) and not first.ball.space.is_flat
    return {
        f"level {said.get('level')} was asked for, and the answer has {level}": level != said.get("level", level),
        f"{said.get('count')} components were asked for, and the answer has {count}": "count" in said
        and count > said["count"],
        f"mechanism {mechanism} was asked for, and the answer is of {first.mechanism}": mechanism != "auto"
        and not any(mechanism == step.mechanism for one in releases for step in _steps(one)),
        f"the {wanted} mean was asked for, and the answer is the {first.estimand} mean": mechanism == "auto"
        and curved
        and any(one.estimand != wanted for one in releases),
    }


def _steps(release: Release) -> list[Release]:
    return [release, *(one for step in release.steps for one in _steps(step))]


def _number_faults(answer: Any, releases: list[Release], expected: Expected) -> dict[str, bool]:
    """Return where an answer is of other units than the data set has, or of other classes."""
    counts, by_class, total = [one.n for one in releases], expected.by_class, None
    of_classes = None if by_class is None else list(by_class.values())
    whole = isinstance(answer, dict) and by_class is not None
    if expected.n is not None and not whole and (by_class is not None or len(releases) == 1):
        total = {"n": expected.n, **({} if by_class is None else {"units_by_class": of_classes})}
    named = answer if isinstance(answer, dict) else getattr(answer, "groups", None)
    ends, wanted = getattr(answer, "covariate_range", None), expected.covariate_range
    return {
        f"a unit is a {expected.unit}, and in the answer a {releases[0].unit}": expected.unit is not None
        and any(one.unit != expected.unit for one in releases),
        "the answer is of other numbers of units than the classes have": whole and counts != of_classes,
        f"the data set has {expected.n or 0:,} units, and the answer is of others": total is not None
        and not expected.query.sample.are_counts(counts, [total]),
        "the answer is of other classes than the data set has": by_class is not None
        and isinstance(named, Mapping)
        and list(named) != list(by_class),
        "the answer is of another range of the covariate than the data set has": ends is not None
        and wanted is not None
        and tuple(ends) != wanted,
    }


def _receipt_faults(releases: list[Release], expected: Expected) -> dict[str, bool]:
    receipts = [one.receipt for one in releases]
    first = receipts[0]
    if first is None or any(one != first for one in receipts):
        return {"the answer has not one receipt of a ledger: nobody can show that it was paid for": True}
    paid, stated = expected.population, expected.receipt
    return {
        f"population {paid} was asked, and {first.population} paid": bool(paid) and first.population != paid,
        "the answer has another receipt than the service states": stated is not None and first.to_dict() != stated,
    }
