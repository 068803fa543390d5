"""What every private call does, in this order: read, plan, take bits, spend, draw. And the call for any statistic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpmanifold.ball import Ball
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.progress import bar
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Prepared, Statistic, refuse_unknown, statistic_named
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import fresh_bits
from dpmanifold.stats.inputs import Told, checked_question, is_each_record, prepare, spend
from dpmanifold.stats.records import as_batch, known_number_of_records


@dataclass(frozen=True)
class Terms:
    """What every private call takes by keyword, whatever it asks; as in :func:`private_mean`."""

    units: object
    invalid: str = "raise"
    curator: Curator | None = None
    confirm: bool = False
    arithmetic: str = "auto"
    budget: Budget | None = None
    rng: Rng = None

    @property
    def told(self) -> Told:
        """Whom to tell about records that do not count as they are."""
        return Told(self.curator, self.confirm)


@bar("clipping and solving")
def ask(question: Callable[[Header], Prepared], X: object, ball: Ball, privacy: Promise, terms: Terms) -> Release:
    """Release what a question asks of records, or refuse before anything is spent."""
    checked_question(ball, privacy)
    X = as_batch(X, ball)
    n = known_number_of_records(X)
    plan = None
    if is_each_record(terms.units) and n is not None and n > 1:
        # What public numbers refuse is refused before the records are looked at.
        plan = question(Header(ball, n, privacy, arithmetic=terms.arithmetic))
    points = prepare(X, ball, privacy, terms.units, terms.invalid, terms.told)
    if plan is None or n != len(points):
        plan = question(Header(ball, len(points), privacy, points.unit, arithmetic=terms.arithmetic))
    bits = fresh_bits(terms.rng, ball, terms.arithmetic)
    spend(terms.budget, privacy, plan.label)
    return plan.release(points, bits)


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
    budget: Budget | None = None,
    rng: Rng = None,
    **options: Any,
) -> Release:
    """Release any statistic by name, those that other distributions and your own scripts add included.

    Parameters
    ----------
    X, ball, privacy, units, mechanism, invalid, curator, confirm, arithmetic, budget, rng : as in :func:`private_mean`
    statistic : a name, such as "mean" or "variance" (`dpm statistics` lists them), or a Statistic. One that is
        not registered (`dpm.STATISTICS.register`) can be released and saved; to load or verify it, register it
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
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, rng)
    return ask(lambda header: chosen.prepared(header, mechanism=mechanism, **options), X, ball, privacy, terms)
