"""What every private call does, in this order: read, plan, take bits, rehearse what others contributed, pay, draw.

And the call for any statistic. Registered data change places: what is public about them is known, so that the call
plans, takes bits and pays before it reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpmanifold.ball import Ball
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.accounts import Account
from dpmanifold.progress import bar
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Prepared, Statistic, refuse_unknown, statistic_named
from dpmanifold.stats.content import content_of
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Bits, fresh_bits
from dpmanifold.stats.inputs import Told, checked_question, is_each_record, prepare
from dpmanifold.stats.records import as_batch, known_number_of_records
from dpmanifold.stats.registered import Registered
from dpmanifold.stats.registering import facts_of, opened_points, refuse_elsewhere
from dpmanifold.stats.rehearsal import Rehearsal, public_units
from dpmanifold.stats.requests import Question
from dpmanifold.stats.settling import Draw, Payment, Request


@dataclass(frozen=True)
class Terms:
    """What every private call takes by keyword, whatever it asks; as in :func:`private_mean`."""

    units: object
    invalid: str = "raise"
    curator: Curator | None = None
    confirm: bool = False
    arithmetic: str = "auto"
    budget: Budget | Account | None = None
    key: str | None = None
    rng: Rng = None

    @property
    def told(self) -> Told:
        """Whom to tell about records that do not count as they are."""
        return Told(self.curator, self.confirm)

    def check(self, ball: Ball) -> None:
        """Refuse what can be refused before records are looked at."""
        Payment(self.budget, self.key).check(ball, self.rng)

    def settle(
        self,
        privacy: Promise,
        label: str,
        request: Callable[[Account], Request],
        draw: Draw,
        rehearsal: Rehearsal,
    ) -> Sequence[Release]:
        """Try what others contributed, pay, then draw (:meth:`Payment.settle`)."""

        def rehearsed(account: Account) -> Request:
            asked = request(account)  # or it is refused for what cannot be written down
            rehearsal.run(stored=True)
            return asked

        if not isinstance(self.budget, Account):
            rehearsal.run(stored=False)
        return Payment(self.budget, self.key).settle(privacy, label, rehearsed, draw, self.curator)


@bar("clipping and solving")
def ask(question: Question[Prepared], X: object, ball: Ball, privacy: Promise, terms: Terms) -> Release:
    """Release what a question asks of records, or refuse before anything is spent."""
    checked_question(ball, privacy)
    terms.check(ball)
    if isinstance(X, Registered):
        return _ask_registered(question, X, ball, privacy, terms)
    X = as_batch(X, ball, units=terms.units)
    n = known_number_of_records(X)
    plan = None
    if is_each_record(terms.units) and n is not None and n > 1:
        # What public numbers refuse is refused before the records are looked at.
        plan = question(Header(ball, n, privacy, arithmetic=terms.arithmetic))
    points = prepare(X, ball, privacy, terms.units, terms.invalid, terms.told)
    if plan is None or n != len(points):
        plan = question(Header(ball, len(points), privacy, points.unit, arithmetic=terms.arithmetic))
    bits = fresh_bits(terms.rng, ball, terms.arithmetic)
    made = plan

    def request(account: Account) -> Request:
        data = account.marked(content_of(X, ball, terms.units), facts_of(ball, points))
        return question.request(made.header, [data.id]), (data,)

    rehearsal = _rehearsal(question, made, bits)
    return terms.settle(privacy, made.label, request, lambda: [made.release(points, bits)], rehearsal)[0]


def _ask_registered(question: Question[Prepared], X: Registered, ball: Ball, privacy: Promise, terms: Terms) -> Release:
    """Plan from what is registered, pay, and only then open the records."""
    refuse_elsewhere(X, ball, terms.units, terms.invalid, terms.budget)
    told = terms.told
    plan = question(Header(ball, X.n, privacy, X.unit, arithmetic=terms.arithmetic))
    bits = fresh_bits(terms.rng, ball, terms.arithmetic)

    def draw() -> list[Release]:
        return [plan.release(opened_points(X, ball, told)[0], bits)]

    def request(account: Account) -> Request:
        return question.request(plan.header, [X.id]), ()

    return terms.settle(privacy, plan.label, request, draw, _rehearsal(question, plan, bits))[0]


def _rehearsal(question: Question[Prepared], plan: Prepared, bits: Bits) -> Rehearsal:
    """Return how the call is made with public points."""
    header = plan.header
    return Rehearsal(
        question, header, bits.exact, plan.steps,
        lambda bits: [plan.release(public_units(header.ball, header.n, header.unit), bits)],
    )  # fmt: skip


def private_statistic(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    statistic: str | Statistic,
    units: object,
    mechanism: Any = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
    **options: Any,
) -> Release:
    """Release any statistic by name, those that other distributions and your own scripts add included.

    Parameters
    ----------
    X, ball, privacy, units, mechanism, invalid, curator, confirm, arithmetic, budget, key, rng : as in
        :func:`private_mean`
    statistic : a name, such as "mean" or "variance" (`dpm statistics` lists them), or a Statistic. One that is
        not registered (`dpm.STATISTICS.register`) can be released and saved; to load or verify it, or to have an
        account pay for it, register it
    options : further keywords of that statistic alone

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> release = private_statistic(np.zeros((99, 1)), ball, dpm.GDP(1.0), statistic="variance", units=dpm.EACH_RECORD)
    >>> release.statistic, release.steps[0].statistic
    ('variance', 'mean')
    """
    chosen = statistic_named(statistic)
    refuse_unknown(chosen.name, chosen.prepared, options)
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    question = Question(chosen.name, chosen.prepared, {"mechanism": mechanism, **options}, chosen)
    return ask(question, X, ball, privacy, terms)
