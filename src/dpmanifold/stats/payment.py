"""The one door at which private calls pay: nothing, a budget in memory, or an account that remembers.

Every check comes before this door, and every draw behind it. A :class:`~dpmanifold.privacy.Budget` is spent, and then
the call draws. An account is handed the request and the work: it pays, commits, tells its witness, marks the work as
started, lets it be done once, and keeps its bytes. What the call returns is made from those bytes, the first time and
whenever the same request comes again under the same key, so that the answers are equal in every bit.

Behind the door numerical maps have a value for everything (`_fallback.py`). Whatever else goes wrong there, a lack of
memory, a time-out, a signal or a fault of a program, is a loss, whoever pays: nothing is released and nothing is drawn
again. Nothing may be seen of it but that there was one: neither its words, nor a warning, nor where it happened.
Whoever holds the data may give `curator=` and is told.
"""

from __future__ import annotations

import contextlib
import json
import pathlib
import re
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import (
    BudgetError,
    CardError,
    ClusterError,
    InvalidArgumentError,
    InvalidDataError,
    PromiseError,
    ReleaseLostError,
    SourceChangedError,
)
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account, Mark, Order, Receipt, checked_text, random_key
from dpmanifold.release import Release
from dpmanifold.serialization import record_from_text
from dpmanifold.stats.curator import Curator, Notice

OUTCOME = "dpmanifold outcome 1"
KEY_NOTE = "The request has the key"
"""How the note begins that an error has which ended a call whose request may be paid for."""

T = TypeVar("T")

# No record can cause them. Whoever pays from memory holds the data, and reads what to do.
_TOLD = (SourceChangedError, ClusterError, CardError)
_AFTERWARDS = " The budget was spent, and nothing was released."

Written = tuple[dict[str, Any], tuple[Mark, ...]]
"""A request written down, and what the account knows data by that were not registered before."""
Draw = Callable[[], Sequence[Release]]
"""Opens records where they are not open yet, computes and draws."""


def check_payer(budget: object, key: str | None, ball: Ball, rng: Rng) -> None:
    """Refuse what no budget and no account can be asked, before records are looked at; as in :func:`private_mean`."""
    if not (budget is None or isinstance(budget, (Budget, Account))):
        raise InvalidArgumentError(
            f"`budget` must be a Budget, an account such as a ledger's population, or None, got {shown(budget)}."
        )
    if not isinstance(budget, Account):
        if key is not None:
            raise InvalidArgumentError(
                "`key` goes with an account, such as a ledger's population: a Budget, or none, keeps no answers. "
                "Leave it out."
            )
        return
    if key is not None:
        checked_text(key, "key")
    if rng is not None:
        raise InvalidArgumentError(
            "`rng` must be None where an account pays: what a seed draws is no release. Simulate without a budget."
        )
    if ball.simulated:
        raise InvalidArgumentError(
            "`ball` was found by a simulation, and a release in it is not private: no account pays for that. Give "
            "a public ball, or one that private_ball released."
        )


def settle(
    budget: Budget | Account | None,
    key: str | None,
    privacy: Promise,
    label: str,
    request: Callable[[Account], Written],
    draw: Draw,
    curator: Curator | None = None,
) -> Sequence[Release]:
    """Pay, then draw; every check has been made by now.

    Parameters
    ----------
    budget, key : who pays, and under which key, as in :func:`private_mean`
    privacy : what is paid
    label : what it is for
    request : writes the request down for an account
    draw : opens, computes and draws
    curator : who is told why a release was lost
    """
    if not isinstance(budget, Account):
        if budget is not None:
            budget.spend(privacy, label)
        return _released(draw, curator)
    asked, data = request(budget)
    order = Order(privacy, label, random_key() if key is None else key, asked, data)
    stored = _settled(budget, order, partial(_work, draw, curator))
    return releases_in(stored)


class _Silence:
    """No warnings of the calls that are at work, in whichever threads they work; those of others are left alone.

    The filters are one for all threads, and another thread's `warnings.catch_warnings` that ends meanwhile puts its own
    back. So no others are put back here: a filter that applies to calls at work alone comes and goes. And the one door
    that every warning goes through to be shown, which no such block puts back, is shut for them.
    """

    pattern = "(?!)"  # whoever hands filters on, as joblib does to its threads, hands on one that matches nothing

    def __init__(self) -> None:
        self._lock, self._working = threading.Lock(), set[int]()
        self._filter: Any = ("ignore", self, Warning, None, 0)
        # Threads that do a part of the work are given the context of the call.
        self._here = ContextVar("at work behind a payment", default=False)

    def match(self, text: str) -> bool:
        """Return whether this is a call at work: what a filter asks of its pattern."""
        return self._here.get()

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return re.compile, (self.pattern,)

    def __enter__(self) -> None:
        # Each step may be done again: one that a signal cut short is made up for by the next call.
        with self._lock:
            self._working.add(threading.get_ident())
            self._filter_by(self._filter)
            shown = getattr(warnings, _DOOR)
            if shown != self._show:
                self._shown = shown
                setattr(warnings, _DOOR, self._show)
        self._here.set(True)

    def __exit__(self, *problem: object) -> None:
        self._here.set(False)
        with self._lock:
            self._working.discard(threading.get_ident())
            if not self._working:
                self._filter_by()
                if getattr(warnings, _DOOR) == self._show:
                    setattr(warnings, _DOOR, self._shown)

    def _filter_by(self, *own: Any) -> None:
        """Have this filter in front of all others, or nowhere."""
        filters: Any = warnings.filters
        found = [*own, *[one for one in filters if one is not self._filter]]
        if list(map(id, found)) != list(map(id, filters)):
            filters[:] = found
            getattr(warnings, "_filters_mutated", lambda: None)()  # what was decided before is decided anew

    def _show(self, message: Any) -> None:
        """Show a warning that is not of a call at work."""
        if not self._here.get():
            self._shown(message)


_DOOR = "_showwarnmsg"  # what the interpreter calls with every warning that the filters let through


_SILENCE = _Silence()


@dataclass(frozen=True)
class _Done(Generic[T]):
    """What came of work behind the payment: its result; or what ended it, and what of that may be seen.

    Attributes
    ----------
    result : None if it was ended
    ending : what the program is to be ended with, without anything about data; None where nothing asks for that
    told : what whoever holds the data may read; None if nothing may be seen
    """

    result: T | None = None
    ending: BaseException | None = None
    told: Exception | None = None


def _attempted(work: Callable[[], T], curator: Curator | None) -> _Done[T]:
    """Do work behind the payment, once and in silence.

    What ended it is left here, with its words and the frames that it went through: whoever raises something in its
    place does so where no other error is being handled, so that it carries none along.
    """
    try:
        with np.errstate(all="ignore"), _SILENCE:
            return _Done(work())
    except (KeyboardInterrupt, GeneratorExit):
        return _Done(ending=KeyboardInterrupt())
    except SystemExit as ending:
        return _Done(ending=_by_signal(ending))
    except BaseException as problem:  # whatever it is: panics of other libraries are no Exceptions
        _tell(curator, problem)
        if isinstance(problem, _TOLD):
            return _Done(told=type(problem)(str(problem).removesuffix(_AFTERWARDS) + _AFTERWARDS))
        return _Done()


def _by_signal(ending: SystemExit) -> SystemExit:
    """Return what the handler of a signal ends the program with, 128 and its number; any other code could tell."""
    code = ending.code
    if isinstance(code, int) and code - 128 in set(map(int, signal.valid_signals())):
        return type(ending)(code)
    return SystemExit(1)


def _tell(curator: Curator | None, problem: BaseException) -> None:
    """Tell whoever holds the data why a release is lost, and where in the program that was."""
    if curator is None:
        return
    with contextlib.suppress(Exception):
        last = traceback.extract_tb(problem.__traceback__)[-1]
        said = f"{type(problem).__name__}: {problem} ({pathlib.PurePath(last.filename).name}, line {last.lineno})"
        curator(Notice(0, 0, 0, problem=said))


def _released(draw: Draw, curator: Curator | None) -> Sequence[Release]:
    """Return what is drawn, where a budget in memory has paid or nobody had to."""
    done = _attempted(draw, curator)
    if done.result is not None:
        return done.result
    raise done.ending or done.told or ReleaseLostError.of()


def _work(draw: Draw, curator: Curator | None, receipt: Receipt) -> bytes:
    """Do the work of an order, and return it as bytes; of a failure nothing comes out but that it was one."""

    def stored() -> bytes:
        stored = outcome_of([replace(release, receipt=receipt) for release in draw()])
        releases_in(stored)  # what nobody could read again is no answer
        return stored

    done = _attempted(stored, curator)
    if done.result is not None:
        return done.result
    raise done.ending or RuntimeError("lost")


def _settled(account: Account, order: Order, work: Callable[[Receipt], bytes]) -> bytes:
    """Return what the account has stored; whatever it raises about a request that may be paid for names the key."""
    try:
        return account.settle(order, work)
    except ReleaseLostError:
        pass  # and is made anew below: this one may still hold what went wrong
    except (BudgetError, InvalidArgumentError, PromiseError):
        raise  # nothing was spent
    except BaseException as problem:
        problem.add_note(f"{KEY_NOTE} {order.key!r}: ask again under it to learn what became of it.")
        raise
    raise ReleaseLostError.of(order.key)


def outcome_of(releases: Sequence[Release]) -> bytes:
    """Return releases as the bytes that an account stores."""
    record = {"format": OUTCOME, "releases": [release.to_dict(answers=False) for release in releases]}
    return json.dumps(record, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")


def releases_in(stored: bytes) -> list[Release]:
    """Return the releases that an account has stored, bit for bit as they were drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> release = dpm.private_mean(np.zeros((9, 1)), ball, dpm.PureDP(1.0), units=dpm.EACH_RECORD)
    >>> releases_in(outcome_of([release]))[0].to_dict() == release.to_dict()
    True
    """
    record = record_from_text(stored.decode("utf-8"))
    if not isinstance(record, dict) or record.get("format") != OUTCOME or not isinstance(record.get("releases"), list):
        raise InvalidDataError(f"what the account has stored is not of format {OUTCOME!r}: it is no answer of a call.")
    return [Release.from_dict(release) for release in record["releases"]]
