"""From a question to an order that is paid for: the one way by which anything is spent here.

A row in the service's table comes first, then the payment in the ledger, then the slot. Whoever dies in between leaves
a row that the next one finishes: payments are known by their keys, and one that is there costs nothing again.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, NoReturn, final

import numpy as np
from sqlalchemy import Connection, Row, func, insert, select, update

from dpmanifold.ball import Ball
from dpmanifold.codec import answer_from_bytes
from dpmanifold.errors import DPManifoldError, InvalidArgumentError, InvalidDataError
from dpmanifold.ledger.datasets import DataSet, InLedger, RegisteredData
from dpmanifold.ledger.population import Population
from dpmanifold.ledger.standing import Standing
from dpmanifold.manifolds import Manifold
from dpmanifold.privacy.amounts import cost_of, in_words, share_of
from dpmanifold.privacy.budget_accounts import Account, Order, Receipt
from dpmanifold.release import EXACT, Release
from dpmanifold.service import tables
from dpmanifold.service.http_errors import Conflict, NotFound
from dpmanifold.service.questions import Question
from dpmanifold.service.service import Service
from dpmanifold.stats.query import Query
from dpmanifold.stats.registered_data import Opened, Registered

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


Opener = Callable[[], Opened]
"""Opens the canonical files of a data set; called after the spend."""


class Asking(NamedTuple):
    """A question about a data set, with everything that it names looked up.

    Attributes
    ----------
    question, data : what is asked of what
    account : the population, in the name of whoever asks
    ball, options : as the private call takes them
    """

    question: Question
    data: InLedger
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
    known = data_set(account, ref.name, ref.version)
    data = InLedger(account, known) if opener is None else RegisteredData(account, known, opener)
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


def _ball(service: Service, who: str, question: Question, data: InLedger) -> Ball:
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


# -------------------------------------------------------------------- when a release comes out

# Fixed when it is paid for, from public numbers, so that no clock tells about records. Every release has a slot of
# its own: work begins when it starts, its outcome comes to light when it ends, and no two slots overlap. What is not
# done by then is lost, which is the one bit that running time can tell. Whoever could ask again and again would have
# as many bits; so after a loss all data of the same people wait until a steward, who holds the records, has found out
# why.


MARGIN = 0.25
"""Seconds at the end of a slot for what follows the work: to commit, and to tell the witness."""
# Seconds beyond the shortest slot: for each unit and dimension, and for each number that is drawn. Both are about ten
# times what the slowest statistic was seen to take.
_EACH, _DRAWN = 4e-6, 1e-4


def duration(query: Query, data: Registered, dim: int, shortest: float, own: float | None = None) -> float:
    """Return how long a slot is, in seconds: from what is public about the data.

    Parameters
    ----------
    query, data, dim : what is asked, of what, in how many dimensions
    shortest : the service's shortest slot
    own : what the steward says about this data set, whose units may have many records each; None for no word. It makes
        slots longer, never shorter
    """
    drawn = (dim**2 if query.squares else dim) * query.parts(data)
    return max(shortest + _EACH * query.passes * data.n * dim + _DRAWN * drawn, own or 0.0)


def free_from(connection: Connection, at: str) -> str:
    """Return when the next slot can start: now, or when the last one ends."""
    rows = select(func.max(tables.releases.c.publishes)).where(tables.releases.c.publishes > at)
    found = connection.execute(rows).scalar()
    return at if found is None else str(found)


def schedule(service: Service, release: str, seconds: float, anew: bool = False) -> None:
    """Give a release that was paid for its slot, if it has none; `anew` another one, where nobody has begun it."""
    chosen = tables.releases.c.id == release
    with service.database.writing() as connection:
        row = connection.execute(select(tables.releases).where(chosen)).one_or_none()
        if row is None or (row.publishes is not None and not anew):
            return
        starts = free_from(connection, tables.now())
        ends = tables.later(starts, seconds)
        slot = {"starts": starts, "publishes": ends, "due": tables.later(ends, -MARGIN)}
        connection.execute(update(tables.releases).where(chosen).values(state="paid", **slot))


def lost(service: Service, release: str, pause: bool = True) -> None:
    """Say that nothing will come of a release that was paid for, and pause its population.

    Parameters
    ----------
    service, release : which
    pause : False where its records were never opened, so that its loss tells nothing about them
    """
    chosen = tables.release_in(release, "paid")
    with service.database.writing() as connection:
        row = connection.execute(select(tables.releases).where(chosen)).one_or_none()
        connection.execute(update(tables.releases).where(chosen).values(state="lost"))
        if row is None or not pause:
            return
        there = select(tables.pauses).where(tables.pauses.c.population == row.population)
        if connection.execute(there).one_or_none() is None:
            connection.execute(insert(tables.pauses).values(population=row.population, since=row.publishes))


def paused_since(service: Service, population: str) -> str | None:
    """Return since when nothing is released about a population; None for not at all."""
    wanted = select(tables.pauses.c.since).where(tables.pauses.c.population == population)
    since: str | None = service.database.value(wanted)
    return since


def is_paused(service: Service, population: str) -> bool:
    """Return whether people are told that a population is paused: from when the loss is published."""
    since = paused_since(service, population)
    return since is not None and since <= tables.now()


def refuse_paused(service: Service, population: str) -> None:
    """Refuse a population that is paused. Nothing is spent."""
    if is_paused(service, population):
        raise Conflict(
            f"{population} is paused: a release about it was lost, and a steward has to look into that first. Nothing "
            "was spent."
        )


# -------------------------------------------------------------------- two accounts that stand before a population's own

# One only takes the order down, one keeps to a timetable. A private call checks everything, writes its request down and
# then turns to its account. The web process wants all of this but the work, which is another process's: its account
# hands the order back. The worker wants the work as well, but nobody is to see how long it took: its account lets the
# outcome out when the time comes, not before.


Call = Callable[[Account], object]
"""A private call about registered data, with the account that pays."""


class _Before(Population):
    """A population's account that is the same but for :meth:`settle`."""

    def __init__(self, account: Population) -> None:
        super().__init__(account._ledger, account.name, account.unit, account.principal)


class _TakenDown(BaseException):
    """Carries an order out of a private call; not an Exception, so that nothing on the way takes it for a failure."""

    def __init__(self, order: Order) -> None:
        self.order = order


@final
class _Counter(_Before):
    """An account that takes orders down, and settles none."""

    def settle(self, order: Order, work: Callable[[Receipt], bytes]) -> NoReturn:
        raise _TakenDown(order)


def order_of(call: Call, account: Population) -> Order:
    """Return the order that a private call would settle, or refuse as the call itself does. Spends and opens nothing.

    Parameters
    ----------
    call : the private call, given the account that pays
    account : the population, in the name of whoever will pay
    """
    try:
        call(_Counter(account))
    except _TakenDown as taken:
        return taken.order
    raise AssertionError("a private call about registered data turns to its account")


@final
class Punctual(_Before):
    """A population's account whose work comes to light at a fixed time, whatever came of it.

    Parameters
    ----------
    account : the population, in the name of whoever pays
    due : when bytes or failure come out, in seconds since the epoch
    ready : called once the work is over, before the wait
    """

    def __init__(self, account: Population, due: float, ready: Callable[[], object]) -> None:
        super().__init__(account)
        self._due, self._ready = due, ready

    def settle(self, order: Order, work: Callable[[Receipt], bytes]) -> bytes:
        """Settle the order; its work ends when it is due."""

        def punctual(receipt: Receipt) -> bytes:
            try:
                return work(receipt)
            finally:
                self._ready()
                time.sleep(max(0.0, self._due - time.time()))

        return super().settle(order, punctual)
