"""What to expect of a question, from public numbers alone: plans, and curves over a grid of promises."""

from __future__ import annotations

import collections
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar, final

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, PromiseError
from dpmanifold.ledger.datasets import InLedger
from dpmanifold.privacy import ApproxDP, Promise
from dpmanifold.privacy.promises import KINDS
from dpmanifold.serialization import ball_to_dict
from dpmanifold.service.questions import AMOUNTS, promise_from_json, promise_to_json
from dpmanifold.service.views import Curve
from dpmanifold.stats import Outlook, Plan, plan as planned, required_privacy, required_units
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.query import Query

T = TypeVar("T")

# Preferred numbers, twenty to a decade: short decimals at about equal ratios.
_STEPS = (
    "1", "1.12", "1.25", "1.4", "1.6", "1.8", "2", "2.24", "2.5", "2.8",
    "3.15", "3.55", "4", "4.5", "5", "5.6", "6.3", "7.1", "8", "9",
)  # fmt: skip
_MOST_KEPT = 512
USUAL_DELTA = "1e-6"


GRID = [*(f"{Decimal(step).scaleb(power):f}" for power in (-2, -1, 0) for step in _STEPS), "10"]
"""Amounts of epsilon, rho or mu for which curves are made, as they are typed."""


@final
class Forecasts:
    """Plans and curves; each is computed once, and the latest are kept. Threads may share it."""

    def __init__(self) -> None:
        self._kept: collections.OrderedDict[str, Future[Any]] = collections.OrderedDict()
        self._lock = threading.Lock()

    def _once(self, known_by: list[Any], make: Callable[[], T]) -> T:
        """Return what is kept, or make it; whoever wants the same meanwhile waits for it."""
        key = json.dumps(known_by)
        with self._lock:
            known = self._kept.get(key)
            mine: Future[Any] = Future() if known is None else known
            self._kept[key] = mine
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        if known is None:
            try:
                mine.set_result(make())
            except BaseException as problem:  # whoever waits is told, and the next one tries again
                with self._lock:
                    self._kept.pop(key, None)
                mine.set_exception(problem)
        found: T = mine.result()
        return found

    def plan(
        self, query: Query, data: InLedger, ball: Ball, privacy: Promise, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the record that `dpm plan --json` prints for the same numbers; refuse as that does.

        Parameters
        ----------
        query : what is asked
        data : the registered data set, whose public numbers are taken
        ball, privacy, options : of the question
        """
        key = ["plan", *_known_by(query, data, ball, options), promise_to_json(privacy)]
        return self._once(key, lambda: _plan(query, data, ball, privacy, options).to_dict())

    def curve(
        self, query: Query, data: InLedger, ball: Ball, kind: str, delta: str | None, options: Mapping[str, Any]
    ) -> Curve:
        """Return what to expect at each amount of the grid.

        Parameters
        ----------
        query, data, ball, options : as for a plan
        kind : of the promises: "PureDP", "ApproxDP", "ZCDP" or "GDP"
        delta : of ApproxDP, with one digit, from 1e-12 to 9e-3: a curve is much to compute. None for the usual one
        """
        if kind not in KINDS:
            raise InvalidArgumentError(f"kind must be one of {', '.join(KINDS)}, got {shown(kind)}.")
        fixed = known_delta(USUAL_DELTA if delta is None else delta) if kind == ApproxDP.__name__ else None
        if kind == ApproxDP.__name__ and fixed is None:
            raise InvalidArgumentError(
                f"delta of a curve must have one digit, from 1e-12 to 9e-3, such as 1e-6, got {shown(delta)}."
            )

        def make() -> Curve:
            delta_of = {} if fixed is None else {"delta": fixed}
            promises = (
                (amount, promise_from_json({"kind": kind, AMOUNTS[kind]: amount, **delta_of})) for amount in GRID
            )
            points = [_point(query, data, ball, amount, promise, options) for amount, promise in promises]
            return Curve(query.name, kind, fixed, points)

        return self._once(["curve", *_known_by(query, data, ball, options), kind, fixed], make)

    def needed(
        self, data: InLedger, ball: Ball, privacy: Promise, error: float, options: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return how many units, and which promise of the same kind, an expected error of a mean takes."""
        estimand = options.get("estimand")
        delta = privacy.stated["delta"] if isinstance(privacy, ApproxDP) else None

        def make() -> dict[str, Any]:
            promise = required_privacy(error, data.n, ball, type(privacy), delta=delta, estimand=estimand)
            return {
                "required_units": required_units(error, ball, privacy, estimand=estimand),
                "required_privacy": promise.to_dict(),
            }

        key = ["needed", error, data.n, ball_to_dict(ball), promise_to_json(privacy), estimand]
        return self._once(key, make)


_DELTAS = {Decimal(f"{digit}e-{place}"): f"{digit}e-{place}" for place in range(3, 13) for digit in range(1, 10)}


def known_delta(text: str) -> str | None:
    """Return a delta that curves are made for, as it is written here; None for any other.

    Examples
    --------
    >>> known_delta("0.0000050"), known_delta("1.5e-6"), known_delta("1e-99")
    ('5e-6', None, None)
    """
    try:
        return _DELTAS.get(Decimal(text))
    except (InvalidOperation, TypeError):  # no number, or a number that is none
        return None


def _known_by(query: Query, data: InLedger, ball: Ball, options: Mapping[str, Any]) -> list[Any]:
    """Return what a plan rests on besides a promise, to know it by: public numbers, and options as text."""
    said = {name: repr(value) for name, value in sorted(options.items())}
    return [query.name, query.planned(data, {}), data.facts.get("touched"), ball_to_dict(ball), said]


def _plan(query: Query, data: InLedger, ball: Ball, privacy: Promise, options: Mapping[str, Any]) -> Plan | Outlook:
    number, taken = query.planned(data, options)
    if query.plan_as:  # one of several that share the promise, where units are in several classes
        touched = int(data.facts["touched"])
        share = privacy if touched == 1 else divide(privacy, touched)[0]
        return planned(number, ball, share, statistic=query.plan_as, **taken)
    return planned(number, ball, privacy, statistic=query.name, **taken)


def _point(
    query: Query, data: InLedger, ball: Ball, amount: str, privacy: Promise, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return one point of a curve."""
    point: dict[str, Any] = {
        "amount": amount, "privacy": promise_to_json(privacy), "error": None, "of_radius": None, "mechanism": "",
        "verdict": "", "refused": None,
    }  # fmt: skip
    try:
        found = _plan(query, data, ball, privacy, options)
        if isinstance(found, Plan):
            best = found.best
            point |= {"error": best.error, "of_radius": best.of_radius, "mechanism": best.mechanism}
        else:
            last = found.deciding[0]
            point |= {"error": last.error, "of_radius": last.of_range, "mechanism": last.mechanism}
    except (InvalidArgumentError, PromiseError) as problem:
        return {**point, "refused": problem.message}
    return {**point, "verdict": found.verdict}
