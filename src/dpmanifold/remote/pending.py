"""A release that was asked for: when it will be published, whether it is, and what it says."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from dpmanifold.ball import Ball
from dpmanifold.codec import answer_from_bytes
from dpmanifold.errors import BudgetError, DPManifoldError, Either, InvalidArgumentError, PromiseError, ReleaseLostError
from dpmanifold.privacy import Promise
from dpmanifold.progress import bar
from dpmanifold.release import Release
from dpmanifold.remote.journal import Journal
from dpmanifold.remote.transport import RemoteError, Transport, entry, printable, quoted
from dpmanifold.result import Result
from dpmanifold.stats import verify
from dpmanifold.stats.means import CLASS_MEANS, MEAN_QUERY
from dpmanifold.stats.payment import KEY_NOTE
from dpmanifold.stats.query import Query

R_co = TypeVar("R_co", covariant=True)

_WAITING, _REFUSED, _PENDING, _RELEASED, _LOST = "waiting", "refused", "pending", "released", "lost"
_STATES = (_WAITING, _REFUSED, _PENDING, _RELEASED, _LOST)
_FINAL = (_REFUSED, _RELEASED, _LOST)
# What an answer can break that is not what it should be.
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Seconds between looks: at most while the time is known, at least, and how far they grow once it has passed.
_LONGEST, _SHORTEST, _GROWTH = 15.0, 0.2, 1.5
# A service that is later than this has nobody at work.
_LATE = 600.0


class StillPendingError(RemoteError):
    """A release is not published yet: a steward has to approve it first, or the time to wait was over.

    Attributes
    ----------
    pending : the handle, whose `result()` waits again
    """

    def __init__(self, pending: Pending[Any], template: str, /, **values: object) -> None:
        super().__init__(template, **values)
        self.pending = pending


class Pending(Generic[R_co]):
    """A release that was asked for, from before it is approved until long after it is published.

    Attributes
    ----------
    view : what the service said about it when it was last asked, by name
    id, key : by which the service knows it, and under which it was asked
    publishes : when it will be published, or was, in UTC; None while nothing was paid
    """

    def __init__(
        self, transport: Transport, journal: Callable[[], Journal], view: Any, expect: Callable[[Any], Expected]
    ) -> None:
        self._transport, self._journal, self._expect = transport, journal, expect
        self.id: str = entry(view, "id", str)
        self.key: str = entry(view, "key", str)
        self.view: dict[str, Any] = self._checked(view)
        self._answer: Any = None

    def _checked(self, view: Any) -> dict[str, Any]:
        """Return what is said about this release, and about no other."""
        if (entry(view, "id", str), entry(view, "key", str)) != (self.id, self.key):
            raise AnswerError(f"the service was asked about release {self.id}, and tells about another one.")
        told = [view["id"], view["key"], view.get("publishes") or ""]
        shown = all(isinstance(one, str) and one.isprintable() for one in told)
        if entry(view, "state", str) not in _STATES or not shown:
            raise RemoteError("the service tells of a release what is not known here: it may be of another version.")
        return dict(view)

    @property
    def publishes(self) -> str | None:
        """When it will be published, or was, in UTC; None while nothing was paid."""
        return self.view.get("publishes")

    @property
    def state(self) -> str:
        """Looked up: "waiting" (for a steward), "refused", "pending" (until it is published), "released" or "lost"."""
        if self.view["state"] not in _FINAL:
            self.view = self._checked(self._transport.get(quoted("releases", self.id)))
        return str(self.view["state"])

    def result(self, timeout: float | None = None) -> R_co:
        """Wait until it is published, and return what was released, after checking it.

        Parameters
        ----------
        timeout : how many seconds to wait at most; None waits for the publication, but not for a steward's approval

        Raises
        ------
        StillPendingError : it is not published yet; waiting again costs nothing
        ReleaseLostError : it was paid for, and nothing will be released under its key
        AnswerError : the service's answer does not hold, or is not what was asked
        """
        if self._answer is None:
            self._answer = self._handed_over(timeout)
        answer: R_co = self._answer
        return answer

    def _handed_over(self, timeout: float | None) -> Any:
        """Return what was released, with its key answered in the journal; raise where there is nothing."""
        with naming(self.key):
            state = self._waited(timeout)
            answer = self._received() if state == _RELEASED else None
            with contextlib.suppress(InvalidArgumentError):  # else the same call gets it once more, at no cost
                self._journal().answered(self.key)
        if state == _LOST:
            raise ReleaseLostError.of(self.key)
        if state == _REFUSED:
            reason = printable(str(self.view.get("reason") or "no reason is given"))
            raise RemoteError(f"release {self.id} was refused by a steward: {reason}. Nothing was spent.")
        return answer

    def _received(self) -> Any:
        """Return what was released, or refuse what does not hold or was not asked."""
        try:
            answer = answer_from_bytes(self._transport.bytes_of(quoted("releases", self.id, "result")))
            wrong = faults(answer, self._expect(self.view))
        except (DPManifoldError, *_DAMAGE) as problem:
            if isinstance(problem, RemoteError):
                raise
            raise AnswerError(f"the service's answer cannot be read: {problem}") from None
        if wrong:
            raise AnswerError(f"the service's answer is not to be relied on: {'; '.join(wrong)}.")
        return answer

    def _waited(self, timeout: float | None) -> str:
        """Return the state that it ends in, once it has."""
        begun = time.monotonic()
        end = begun + (math.inf if timeout is None else timeout)
        state, late, pause = self.state, None, _SHORTEST
        left = _number(self.view.get("seconds"))
        with contextlib.ExitStack() as shown:
            total = math.ceil(left) if state == _PENDING and left else None
            advance, done = shown.enter_context(bar("waiting for publication", total)), 0
            while state not in _FINAL:
                now = time.monotonic()
                late = (late or now) if left == 0 else None
                self._give_up(state, timeout, now >= end or (late is not None and now > late + _LATE))
                pause = min(left, _LONGEST) if left else min(pause * _GROWTH, _LONGEST)
                _sleep(max(_SHORTEST, min(pause, end - now)))
                advance(int(time.monotonic() - begun) - done)
                done = int(time.monotonic() - begun)
                state, left = self.state, _number(self.view.get("seconds"))
        return state

    def _give_up(self, state: str, timeout: float | None, over: bool) -> None:
        """Raise where there is no point in waiting on."""
        if state == _WAITING and timeout is None:
            raise StillPendingError(
                self,
                "release {id} waits for a steward's approval, and nothing was spent yet. {again}",
                id=self.id,
                again=self._again("The same call later asks under the same key"),
            )
        if over:
            raise StillPendingError(
                self,
                "release {id} is not published yet{when}. {again}",
                id=self.id,
                when=f" (publication: {self.publishes})" if self.publishes else "",
                again=self._again("The same call asks under the same key, which pays nothing twice"),
            )

    def _again(self, call: str) -> Either:
        """Say how to get it later."""
        return Either(
            f"{call}; or keep pending of this error and call its result().",
            f"Fetch it later, at no cost, with: dpm remote fetch {self.id} --out FILE",
        )

    def __repr__(self) -> str:
        said = {name: self.view.get(name) for name in ("statistic", "ref", "privacy_words", "state", "publishes")}
        return f"Pending({self.id!r}, {', '.join(f'{name}={value!r}' for name, value in said.items())})"


def _number(value: Any) -> float | None:
    return max(0.0, float(value)) if isinstance(value, (int, float)) and math.isfinite(value) else None


@contextlib.contextmanager
def naming(key: str) -> Iterator[None]:
    """Have whatever goes wrong in the block say the key of the request: it may be paid for."""
    try:
        yield
    except (BudgetError, InvalidArgumentError, PromiseError, StillPendingError):
        raise  # which say themselves what became of it
    except RemoteError as problem:
        raise type(problem)("{problem} {key}", problem=problem, key=_named(key)) from None
    except BaseException as problem:
        problem.add_note(_named(key))
        raise


def _named(key: str) -> str:
    return f"{KEY_NOTE} {key!r}: the same call asks under it again, and pays nothing twice."


_sleep = time.sleep


# -------------------------------------------------------------------- what a service answers

# It is read strictly and held against what was asked. A result states how it was made, and whatever can be recomputed
# from it is (dpmanifold.verify). Besides, it must be about what was asked: the statistic, the promise, the ball, the
# number of units, and paid for in the right ledger's population. That the noise was drawn, and that the records are who
# they are said to be, no answer can show.


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
