"""From a question to an order that is paid for: the one way by which anything is spent here.

A row in the service's table comes first, then the payment in the ledger, then the slot. Whoever dies in between leaves
a row that the next one finishes: payments are known by their keys, and one that is there costs nothing again.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, select

from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidArgumentError, InvalidDataError
from dpmanifold.ledger.datasets import DataSet
from dpmanifold.ledger.population import Population
from dpmanifold.ledger.standing import Standing
from dpmanifold.manifolds import Manifold
from dpmanifold.privacy.accounts import Account, Order
from dpmanifold.privacy.amounts import cost_of, in_words, share_of
from dpmanifold.release import EXACT, Release
from dpmanifold.service import tables
from dpmanifold.service.counter import order_of
from dpmanifold.service.errors import NotFound
from dpmanifold.service.kept import Kept, Opener
from dpmanifold.service.questions import Question
from dpmanifold.service.schedule import duration, schedule
from dpmanifold.service.service import Service
from dpmanifold.stats.answers import answer_from_bytes

_MOST_DIGITS = 9  # of a version
_LARGEST_RADIUS = 1e100
SMALLEST_SHARE = 1e-6
"""Of the cap, what a release costs at least."""


class Ref(NamedTuple):
    """Which data set is meant: population, name, and the version, None for the latest."""

    population: str
    name: str
    version: int | None = None

    @staticmethod
    def read(text: str) -> Ref:
        """Read "population/name" or "population/name@version"; anything else is not found.

        Examples
        --------
        >>> Ref.read("cohort/dti@2")
        Ref(population='cohort', name='dti', version=2)
        """
        population, slash, rest = text.partition("/")
        name, at, version = rest.partition("@")
        whole = version.isascii() and version.isdigit() and len(version) <= _MOST_DIGITS
        if not (population and slash and name) or (at and not whole):
            raise NotFound
        return Ref(population, name, int(version) if at else None)


def population_named(service: Service, name: str) -> Population:
    """Return a population of the ledger, or nothing that anybody may see."""
    found = next((one for one in service.ledger.populations() if one.name == name), None)
    if found is None:
        raise NotFound
    return found


def data_set(population: Population, name: str, version: int | None = None) -> DataSet:
    """Return a version of a data set that was registered by name, the latest where none is given."""
    found = [one for one in population.datasets() if one.about and one.name == name and version in (None, one.version)]
    if not found:
        raise NotFound
    return found[-1]


class Asking(NamedTuple):
    """A question about a data set, with everything that it names looked up.

    Attributes
    ----------
    question, data : what is asked of what
    account : the population, in the name of whoever asks
    ball, options : as the private call takes them
    """

    question: Question
    data: Kept
    account: Population
    ball: Ball
    options: Mapping[str, Any]

    def call(self, account: Account, key: str, **more: Any) -> Any:
        """Make the private call, which the account given here pays for."""
        # Whoever asks reads every digit: what cannot be drawn exactly is refused before it is paid for.
        terms = {**self.options, "budget": account, "key": key, **more, "arithmetic": EXACT}
        return self.question.query.of_registered(self.data, self.ball, self.question.privacy, **terms)

    def order(self, key: str) -> Order:
        """Return the order for the ledger, or refuse as the private call does. Spends nothing."""
        return order_of(lambda account: self.call(account, key), self.account)

    def seconds(self, service: Service) -> float:
        """Return how long the slot of an answer is."""
        own = terms_of(service, self.data.population, self.data.name)["slot"]
        return duration(self.question.query, self.data, self.ball.space.dim, service.settings.slot, own)


def asking(service: Service, who: str, ref: Ref, question: Question, opener: Opener | None = None) -> Asking:
    """Look up what a question names: data set, ball and released mean.

    Parameters
    ----------
    service : where
    who : the analyst, whose own releases it may name
    ref : the data set
    question : the question
    opener : opens the records, in the process that can
    """
    account = population_named(service, ref.population).as_principal(who)
    data = Kept(account, data_set(account, ref.name, ref.version), opener)
    if not question.query.sample.fits(data):
        raise InvalidArgumentError(
            f"{question.statistic} cannot be asked of {data.id}: it is not registered with the "
            f"{question.query.sample.brings or 'facts'} that this takes."
        )
    options = dict(question.options)
    if "about" in options:
        options["about"] = _released(service, who, options["about"])
    return Asking(question, data, account, _ball(service, who, question, data), options)


def _released(service: Service, who: str, release: str) -> Release:
    """Return an analyst's own release that a question names."""
    found = service.database.by_id(tables.releases, release)
    if found is None or found.account != who or found.state != "released" or found.publishes > tables.now():
        raise NotFound
    answer = answer_from_bytes(found.result)
    if not isinstance(answer, Release):
        raise InvalidArgumentError(f"release {release} is no single release: name a mean or a ball.")
    return answer


def _ball(service: Service, who: str, question: Question, data: Kept) -> Ball:
    """Return the ball of a question: the registered one, a released one, or one that is said to be public."""
    if question.ball is None:
        return data.ball
    if "release" in question.ball:
        found = _released(service, who, str(question.ball["release"])).value
        if not isinstance(found, Ball):
            raise InvalidArgumentError(f"`ball`: release {question.ball['release']} holds no ball.")
        return found
    radius, center = question.ball["radius"], question.ball["center"]
    if isinstance(radius, bool) or not isinstance(radius, (int, float)) or not 0 < radius < _LARGEST_RADIUS:
        raise InvalidArgumentError(f"ball radius must be a number above 0 and below {_LARGEST_RADIUS:g}.")
    return Ball(data.ball.space, _point(data.ball.space, center), float(radius), str(question.ball.get("source", "")))


def _point(space: Manifold, center: object) -> Any:
    try:
        numbers = np.asarray(center, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InvalidArgumentError(f"ball center must be numbers in the shape {space.shape}.") from None
    if np.iscomplexobj(space.origin) and numbers.shape == (*space.shape, 2):
        numbers = numbers[..., 0] + 1j * numbers[..., 1]
    try:
        return space.as_points(numbers, "ball center", batch=False)
    except InvalidDataError as problem:  # which is about what was asked here, and not about records
        raise InvalidArgumentError(str(problem)) from None


def terms_of(service: Service, population: str, name: str) -> dict[str, Any]:
    """Return what a steward has set for a data set: approval, slot and note."""
    wanted = (tables.terms.c.population == population) & (tables.terms.c.name == name)
    found = service.database.row(select(tables.terms).where(wanted))
    if found is None:
        return {"approval": service.settings.approval, "slot": None, "note": ""}
    return {"approval": bool(found.approval), "slot": found.slot, "note": found.note}


def asked_before(service: Service, row: Row[Any], opener: Opener | None = None) -> Asking:
    """Return the question of a row, as it was asked."""
    name, _, version = row.dataset.partition("@")
    question = Question.from_dict(json.loads(row.question))
    return asking(service, row.account, Ref(row.population, name, int(version)), question, opener)


def refuse_negligible(asked: Asking, standing: Standing) -> None:
    """Refuse what costs next to nothing of the cap: of such there would be no end."""
    if share_of(standing.cap, cost_of(asked.question.privacy, standing.cap)) < SMALLEST_SHARE:
        raise InvalidArgumentError(
            f"privacy {in_words(asked.question.privacy)} costs less than a millionth of the cap, "
            f"{in_words(standing.cap)}: what it gives is nothing but noise. Ask for more. Nothing was spent."
        )


def pay(service: Service, row: Row[Any], asked: Asking, order: Order) -> None:
    """Pay for a row's order, and give it its slot.

    Raises
    ------
    BudgetError : it is more than what is left. Nothing was spent
    """
    asked.account.pay(order)
    schedule(service, row.id, asked.seconds(service))


def catch_up(service: Service) -> None:
    """Finish rows whose payer died: those that are paid for, and those that were approved to be."""
    for row in service.database.rows(select(tables.releases).where(tables.releases.c.state == "asked")):
        with contextlib.suppress(DPManifoldError):  # of one row: the others go on
            asked = asked_before(service, row)
            if asked.account.status(row.key) is not None:
                schedule(service, row.id, asked.seconds(service))
            elif row.decided_by is not None:  # approved, by a process that died before it paid
                pay(service, row, asked, asked.order(row.key))
