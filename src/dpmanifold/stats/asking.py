"""What every private call does, in this order: look at its sample, plan, take bits, rehearse, pay, draw.

And the call for any statistic. Arrays and sources are read when the sample is looked at; registered data are opened by
the draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account, Mark
from dpmanifold.progress import bar
from dpmanifold.registry import is_own, is_own_class
from dpmanifold.release import Release, Request
from dpmanifold.statistic import Header, Statistic, refuse_unknown, statistic_named
from dpmanifold.stats.curator import Curator, Told
from dpmanifold.stats.draws import Bits, Hidden, fresh_bits
from dpmanifold.stats.inputs import checked_question
from dpmanifold.stats.payment import Draw, Written, check_payer, settle
from dpmanifold.stats.program import Parallel, run
from dpmanifold.stats.query import QUERIES
from dpmanifold.stats.rehearsal import rehearse
from dpmanifold.stats.requests import Question
from dpmanifold.stats.samples import Sample, Units


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

    @cached_property
    def told(self) -> Told:
        """Whom to tell about records that do not count as they are."""
        return Told(self.curator, self.confirm)

    def check(self, ball: Ball) -> None:
        """Refuse what can be refused before records are looked at."""
        _ = self.told
        check_payer(self.budget, self.key, ball, self.rng)

    def settle(
        self,
        privacy: Promise,
        label: str,
        request: Callable[[Account], Written],
        draw: Draw,
        rehearse: Callable[[bool], None],
    ) -> Sequence[Release]:
        """Try what others contributed, pay, then draw (:func:`~dpmanifold.stats.payment.settle`)."""

        def rehearsed(account: Account) -> Written:
            asked = request(account)  # or it is refused for what cannot be written down
            rehearse(True)
            return asked

        if not isinstance(self.budget, Account):
            rehearse(False)
        return settle(self.budget, self.key, privacy, label, rehearsed, draw, self.curator)


class Drawn(NamedTuple):
    """What a private call drew, and what was public about its sample.

    Attributes
    ----------
    releases : what was drawn
    options : what the plan was told about the sample
    counts : how many units each class has, where that is public
    """

    releases: Sequence[Release]
    options: Mapping[str, Any]
    counts: tuple[float, ...] | None

    @property
    def release(self) -> Release:
        """The only release."""
        (release,) = self.releases
        return release


@bar("clipping and solving")
def ask(question: Question[Any], sample: Sample[Any], ball: Ball, privacy: Promise, terms: Terms) -> Drawn:
    """Release what a question asks of a sample, or refuse before anything is spent."""
    checked_question(ball, privacy, sample.arguments)
    terms.check(ball)
    bits = fresh_bits(terms.rng, ball, terms.arithmetic)
    foreseen: list[tuple[Header, Any]] = []

    def foresee(n: int) -> None:
        header = Header(ball, n, privacy, arithmetic=terms.arithmetic, private=bits.private)
        foreseen.append((header, question(header)))

    known = sample.known(ball, terms, foresee)
    asked = question.about(known.options)
    adjacency = sample.adjacency(known.options)
    header = Header(ball, known.n, privacy, known.unit, adjacency, terms.arithmetic, bits.private)
    planned = next((found for about, found in foreseen if about == header and not known.options), None)
    program = asked(header) if planned is None else planned
    touched = getattr(program, "touched", 1)
    same = program.header is header or replace(program.header, private=header.private) == header
    if not same or touched != known.options.get("touched", 1):
        raise InvalidArgumentError(
            "the plan of {name} must have the header that it is given, and know in how many groups a unit may be.",
            name=Public(question.name),
        )
    options, header = asked.stated(ball), program.header
    decided = dict(header.decisions.made)  # more is decided while it is drawn, and each time anew

    def request(account: Account) -> Written:
        data = known.data(account)
        return asked.request(header, [one.id for one in data]), tuple(d for d in data if isinstance(d, Mark))

    def drawn(points: Callable[[], Any], bits: Bits) -> list[Release]:
        header.decisions.made = dict(decided)
        found = enumerate(run(program, Hidden(points), bits))
        groups = [(place if isinstance(program, Parallel) else None, release) for place, release in found]
        return [
            replace(release, request=Request(asked.name, options, ball, header.n, group, header.decisions.about(group)))
            for group, release in groups
        ]

    def tried(stored: bool) -> None:
        parts = asked.contributed(*ball.space.foreign)
        parts += [] if is_own_class(type(sample)) else [type(sample)]
        if parts:
            rehearse(parts, asked, header, bits.exact, program.steps, lambda bits: drawn(known.public, bits), stored)

    releases = terms.settle(privacy, question.name, request, lambda: drawn(known.points, bits), tried)
    return Drawn(releases, known.options, known.counts)


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
    known, asked = QUERIES.find(chosen.name), {"mechanism": mechanism, **options}
    if known is not None and known.plan == chosen.prepared:
        question = known.asked(**asked)
    elif known is not None and not (known.is_own and is_own(chosen)):
        raise InvalidArgumentError(
            "the statistic and the query {name!r} have one name and are not the same.", name=Public(chosen.name)
        )
    else:
        question = Question(chosen.name, chosen.prepared, asked, chosen)
    return ask(question, Units(X), ball, privacy, terms).release
