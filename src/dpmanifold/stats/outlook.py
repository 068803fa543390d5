"""What to expect of any private call, before any data is touched: its draws, their noise, or why it is refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dpmanifold._check import positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, Message
from dpmanifold.privacy import Promise, cautions
from dpmanifold.release import EXACT, FLOAT
from dpmanifold.statistic import (
    REPLACE_ONE_UNIT_SAME_CLASSES,
    STATISTICS,
    Header,
    Statistic,
    Step,
    private_words,
    refuse_unknown,
    statistic_named,
)
from dpmanifold.stats.draws import checked_arithmetic
from dpmanifold.stats.mean import MEAN
from dpmanifold.stats.mean_plan import Plan, checked_public, plan_table
from dpmanifold.stats.moment_chain import SECOND_MOMENT
from dpmanifold.stats.prospects import USUAL_FILL, Prospect, prospect
from dpmanifold.stats.query import QUERIES, Query, of_statistic, query_named
from dpmanifold.summary import json_safe, table_text

if TYPE_CHECKING:
    from rich.table import Table

# What to ask for where noise on the spread is more than the spread, by whether groups are compared.
_IN_ONE_DRAW = {
    False: Message(
        "A region for the tangent mean at the ball's centre takes one draw and allows for less noise: "
        '`estimand="tangent"`.'
    ),
    True: Message(
        "A test of the tangent means at the ball's centre takes one draw of each group and allows for less noise: "
        '`estimand="tangent"`.'
    ),
}


@dataclass(frozen=True)
class Outlook:
    """What a private call would draw, and how far noise would carry it. Public: no data was touched.

    Attributes
    ----------
    statistic : what was asked for
    n, ball, privacy : as they were given; for a test, n is that of both groups together
    steps : the draws in their order, each with its share of the promise, its scale and its expected error
    best : the draw that gives the answer; of several groups the one with most noise
    prospect : of a region or a test, what it would be worth for data of an assumed spread, or why that is not known;
        None for everything else, of which the verdict says all
    verdict : the outlook in one sentence
    """

    statistic: str
    n: int
    ball: Ball
    privacy: Promise
    steps: tuple[Step, ...]
    prospect: Prospect | None = None

    @property
    def verdict(self) -> str:
        """Say what the last draw, which gives the answer, is to be expected to be worth."""
        last, whose = self.deciding
        if last.error is None:
            return f"No error can be stated: noise of scale {last.scale:.3g} ({last.mechanism}) is added."
        word = "" if last.exact and last.error_exact else "at most "
        part, known = last.of_range, STATISTICS.find(last.statistic)
        about = "" if known is None else known.error_of
        of = "" if part is None else f" ({part:.1%} of the {'radius' if about else 'largest value'})"
        if about and last.error >= self.ball.diameter:
            of = " (the ball's diameter)"
        where = f"{about} in the {last.statistic}" if about else last.statistic
        said = f"Expect noise of {word}{last.error:.3g}{of} on the {where}{whose} with {last.mechanism}"
        if part is None or part < 0.5:
            return said + ". Clipping and sampling error come on top."
        compares = self._groups > 1
        if self._allows_for_the_last:
            wide = "find large differences only" if compares else "be wide"
            return said + f": the {'test' if compares else self.statistic} would allow for all of it, and {wide}."
        if compares:
            return said + ": distances would be largely noise. Whether the means differ may still be found."
        return said + ": it would say next to nothing. Use more units, a smaller ball or a weaker promise."

    @property
    def deciding(self) -> tuple[Step, str]:
        """The draw that gives the answer, and of which group it is: of several the one with most noise."""
        last = self.steps[-1]
        alike = [step for step in self.steps if step.group and step.statistic == last.statistic]
        if len({step.error for step in alike}) < 2:
            return last, " of each group" if alike else ""
        most = max(alike, key=lambda step: step.error or 0.0)
        return most, f" of {most.group}, the most of all groups,"

    @property
    def best(self) -> Step:
        """The draw that gives the answer: with its `mechanism`, `scale` and `error`, as `best` of a plan of a mean."""
        return self.deciding[0]

    @property
    def _allows_for_the_last(self) -> bool:
        """Whether it is about Fréchet means on a curved space: the last draw tells the spread alone."""
        return self.statistic in QUERIES and self.steps[-1].statistic == SECOND_MOMENT.name

    @property
    def _groups(self) -> float:
        """How many groups of units it is about."""
        query = QUERIES.find(self.statistic)
        return 1 if query is None else query.sample.groups

    def sentences(self) -> list[str]:
        """Return the outlook in words: verdict, what a region or a test would be worth, cautions about the promise."""
        worth = [] if self.prospect is None else [self.prospect.verdict]
        # Noise beyond this is more than data that fill the usual share of the radius spread.
        wide = self._allows_for_the_last and (self.steps[-1].of_range or 0.0) >= USUAL_FILL**2
        if wide:
            worth.append(_IN_ONE_DRAW[self._groups > 1])
        return [self.verdict, *worth, *(f"Caution: {text}" for text in cautions(self.privacy, self.n))]

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""
        steps = [{**vars(step), "share": step.share.to_dict(), "of_range": step.of_range} for step in self.steps]
        steps = [{name: value for name, value in step.items() if value or name != "group"} for step in steps]
        worth = self.prospect
        return {
            "statistic": self.statistic,
            "n": self.n,
            "privacy": self.privacy.to_dict(),
            "steps": json_safe(steps),
            "verdict": self.verdict,
            **({} if worth is None else {"prospect": json_safe({**vars(worth), "verdict": worth.verdict})}),
            "cautions": list(cautions(self.privacy, self.n)),
        }

    def table(self) -> Table:
        """Return the draws as a table for a terminal."""
        query = QUERIES.find(self.statistic)
        what = private_words(self.statistic).capitalize() if query is None else query.title
        title = f"{what}: {self.n:,} units, {self.privacy}"
        table = plan_table(title, ["draw", "mechanism"], ["scale", "error", "/largest"])
        for step in self.steps:
            mark = "" if step.exact else "≤"
            error = "-" if step.error is None else f"{mark if step.error_exact else '≤'}{step.error:.3g}"
            part = "-" if step.of_range is None else f"{step.of_range:.1%}"
            notes = ([] if step.arithmetic == EXACT else [FLOAT]) + ([] if step.covers_timing else ["leaks"])
            drawn = f"{step.statistic}, {step.group}" if step.group else step.statistic
            table.add_row(drawn, step.mechanism, f"{mark}{step.scale:.3g}", error, part, ", ".join(notes))
        return table

    def __repr__(self) -> str:
        return table_text(self.table()) + "\n".join(self.sentences())


def plan(
    n: int | Sequence[int],
    ball: Ball,
    privacy: Promise,
    *,
    statistic: str | Statistic = MEAN.name,
    arithmetic: str = "auto",
    **options: Any,
) -> Plan | Outlook:
    """Return what to expect of any private call, or refuse as the call itself would. Touches no data.

    Parameters
    ----------
    n : number of units; for a test of groups the units of each
    ball : the public ball
    privacy : the promise
    statistic : the name of a query ("mean", "region", "k-sample-test", ...; docs/reference/queries.md lists them), that
        of a statistic (`dpm statistics`), or a Statistic
    arithmetic : as in :func:`private_mean`
    options : what the call takes by keyword besides, such as `refine`, `coverage`, `about`, `count`, `classes` (of a
        discriminant, a list or how many), `labels_public` and `covariate_public`; for the mean those of
        :func:`private_mean` and of :func:`plan_mean`; for a region or a test `fill`, the share of the radius within
        which 95 % of the data are assumed to lie about their mean (0.5), so that its worth can be told

    Returns
    -------
    a Plan of the mechanisms for a mean; else an Outlook on the draws

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, Sphere
    >>> from dpmanifold.privacy import GDP, PureDP
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> plan(500, ball, PureDP(1.0)).best.mechanism
    'riemannian-laplace'
    >>> [step.statistic for step in plan(500, ball, GDP(1.0), statistic="variance-interval").steps]
    ['mean', 'variance', 'fourth moment']
    >>> tensors = Ball(SPD(3), SPD(3).origin, 1.0)
    >>> print(plan((40, 40), tensors, GDP(1.0), statistic="two-sample-test").prospect.verdict)
    If the data lie within 0.5 of the radius of their mean, the test finds means that are 0.316 apart in 80 of 100
    studies; without noise 0.121 would do.
    >>> plan(500, ball, PureDP(1.0), statistic="region")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.PromiseError: privacy PureDP(epsilon=1.0) cannot be kept by what was asked for: it
    needs Gaussian noise, which keeps no pure promise. Ask for GDP, ZCDP or ApproxDP.
    """
    checked_public(ball, privacy)
    checked_arithmetic(arithmetic)
    query = _query_of(statistic)
    groups = query.sample.groups
    counts = {"counts": _counts(n, groups)} if groups > 1 else {}
    if counts:
        header = Header(
            ball, sum(counts["counts"]), privacy, adjacency=REPLACE_ONE_UNIT_SAME_CLASSES, arithmetic=arithmetic
        )
    else:
        header = Header(ball, positive_int(n, "n", minimum=2), privacy, arithmetic=arithmetic)
    if query.compare is not None:
        refuse_unknown(query.name, query.compare, options)
        compared: Plan | None = query.compare(header, **options)
        if compared is not None:
            return compared
    fill = options.pop("fill", USUAL_FILL) if query.draws else USUAL_FILL
    refuse_unknown(query.name, query.plan, options, besides=tuple(counts))
    missing = [name for name in query.needed if name not in {**counts, **options}]
    if missing:
        raise InvalidArgumentError(f"a plan of {query.name} needs {', '.join(missing)}.")
    asked = query.plan(header, **counts, **options)
    worth = None if query.draws is None else prospect(query.draws(asked), fill, groups > 1, ball.space.dim)
    steps = asked.steps()
    if query.name in QUERIES:
        steps = tuple(_placed(step, ball) for step in steps)
    return Outlook(query.name, header.n, ball, privacy, steps, worth)


def _query_of(statistic: object) -> Query:
    """Return the query of this name, or that of a statistic: a conclusion from several draws as well."""
    if isinstance(statistic, Statistic):
        statistic = statistic_named(statistic)
        known = QUERIES.find(statistic.name)
        return known if known is not None and known.plan == statistic.prepared else of_statistic(statistic)
    query = query_named(statistic)
    return QUERIES.get(query.plan_as) if query.plan_as else query


def _placed(step: Step, ball: Ball) -> Step:
    """Return a draw as a query reads it: the mean that joint moments hold is moved into the ball."""
    known = STATISTICS.find(step.statistic)
    if step.error is None or step.error <= ball.diameter or known is None or not known.error_of:
        return step
    return replace(step, error=ball.diameter, error_exact=False)


def _counts(n: object, groups: float) -> tuple[int, ...]:
    """Return how many units each group has, or refuse."""
    several = n if isinstance(n, Sequence) and not isinstance(n, str) else None
    if math.isinf(groups):
        if several is None or len(several) < 2:
            got = shown(n) if several is None else f"{len(several)} of them"
            raise InvalidArgumentError(
                f"`n` must be the units of each group, a list of two or more numbers, got {got}."
            )
    elif several is None or len(several) != groups:
        raise InvalidArgumentError(f"`n` must be a pair for a test, the units of each group, got {shown(n)}.")
    return tuple(positive_int(one, "n", minimum=2) for one in several)
