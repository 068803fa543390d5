"""What to expect, before any data is touched: every mechanism with its scale and error, and what would be needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from dpmanifold import frechet
from dpmanifold._check import fraction, positive_float, positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, Message
from dpmanifold.mechanisms import attempt, candidates, checked_estimand, preference
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PromiseError, PureDP, cautions
from dpmanifold.release import EXACT, FLOAT, NO_ERROR
from dpmanifold.statistic import Header
from dpmanifold.stats.draws import checked_arithmetic, drawn_as, placed_forecast, refuse_inexact
from dpmanifold.stats.inputs import checked_flag
from dpmanifold.stats.refine import SMALL_FILL, Refinement, Wanted
from dpmanifold.stats.shaping import ShapePlan, plan_shape
from dpmanifold.summary import json_safe, table_text

if TYPE_CHECKING:
    from rich.table import Table

_MOST_UNITS = 10**12


@dataclass(frozen=True)
class PlanRow:
    """One mechanism in a plan.

    Attributes
    ----------
    mechanism, scale, rule : as a release would state them
    error, low, median, high : expected noise error and its 5, 50 and 95 % quantiles, as distances
    exact : True if these are the law of the error, False if they are proven upper bounds
    of_radius : error/radius
    factor : on SPD matrices, exp(error): by how much an eigenvalue may be off
    covers_timing : whether a draw takes as many steps whatever the data are
    arithmetic : "exact" or "float", how a release would draw its noise
    """

    mechanism: str
    scale: float
    rule: str
    error: float
    low: float
    median: float
    high: float
    exact: bool
    of_radius: float
    factor: float | None
    covers_timing: bool
    arithmetic: str

    @property
    def note(self) -> str:
        """What is not covered: "float" (digits of doubles), "leaks" (the steps of a draw), both or nothing."""
        leaks = [] if self.covers_timing else ["leaks"]
        return ", ".join(leaks if self.arithmetic == EXACT else [FLOAT, *leaks])


@dataclass(frozen=True)
class RefinePlan:
    """What `refine=True` would do. Public: no data was touched.

    Attributes
    ----------
    skipped : why it would be skipped, or None
    fill : the share of the radius within which the data are assumed to lie about their mean
    radius, error : the ball to expect then, and the expected error with it, clipping included
    filled : the expected error if the data fill the whole ball instead
    plain : the expected error without refinement
    """

    skipped: str | None
    fill: float
    radius: float
    error: float
    filled: float
    plain: float

    @property
    def verdict(self) -> Message:
        """Say in words whether to refine."""
        if self.skipped is not None:
            return Message(f"`refine=True` would be skipped, at no cost: {self.skipped}.")
        gain, loss = self.error / self.plain, self.filled / self.plain
        said = (
            f"`refine=True`: about {self.error:.3g} ({gain:.2f} times) if the data lie within {self.fill:g} of the "
            f"radius of their mean, in a ball of radius about {self.radius:.3g}; {self.filled:.3g} ({loss:.2f} times) "
            "if they fill the ball."
        )
        worth = " Worth it if the ball is generous." if gain < 0.9 else " Not worth it unless they lie closer."
        return Message(said + worth)


@dataclass(frozen=True)
class Plan:
    """What a private mean would cost in accuracy. Public: no data was touched.

    Attributes
    ----------
    rows : admissible mechanisms, in the order in which "auto" takes them: exact draws first, and those whose running
        time is not covered last
    refused : the others by name, with the reason
    estimand : which mean: "frechet", "tangent" or "extrinsic"
    best : the mechanism "auto" takes
    refined : what `refine=True` would do, if that was asked for
    shaped : what `noise_shape=` would do, if one was given
    verdict : the plan in one sentence
    """

    n: int
    ball: Ball
    privacy: Promise
    rows: tuple[PlanRow, ...]
    refused: dict[str, str]
    estimand: str = "frechet"
    refined: RefinePlan | None = None
    shaped: ShapePlan | None = None

    @property
    def best(self) -> PlanRow:
        """The row that "auto" takes: exact if possible, then covered timing, then the smallest expected error."""
        if not self.rows:
            raise PromiseError(f"no mechanism can keep {self.privacy} here: see plan.refused for the reasons.")
        return self.rows[0]

    @property
    def verdict(self) -> Message:
        """Say whether the answer will be worth having."""
        return Message(self._verdict())

    def _verdict(self) -> str:
        if not self.rows:
            if self.ball.is_whole:
                return 'This mean needs a ball. Give a center and a radius, or ask for `estimand="extrinsic"`.'
            first = next(iter(self.refused.values()), "there is none").rstrip(".")
            return f"No mechanism can keep {self.privacy} with {self.n:,} units in this ball: {first}."
        best = self.best
        if self.ball.is_whole:
            return (
                f"Without a ball no error can be promised: noise of scale {best.scale:.3g} ({best.mechanism}) is added "
                "to the average record, and how far it turns that depends on how closely the records agree."
            )
        word = "" if best.exact else "at most "
        of = "the ball's diameter" if best.error >= self.ball.diameter else f"{best.of_radius:.1%} of the radius"
        said = f"Expect noise of {word}{best.error:.3g} ({of}) with {best.mechanism}"
        if best.of_radius >= 0.5:
            said += ": no better than returning the centre. Use more units, a smaller ball or a weaker promise."
            return said + self._besides()
        if best.of_radius >= 0.1:
            hint = " A smaller ball may help: plan with `refine=True`." if self._may_refine() else ""
            return said + ": a rough answer; the public centre may be as near." + hint + self._besides()
        return said + "." + self._besides("clipping", "sampling error")

    def _may_refine(self) -> bool:
        """Return whether `refine=True` was not asked for, and would do something."""
        header, wanted = Header(self.ball, self.n, self.privacy), Wanted("auto", self.estimand)
        return self.refined is None and Refinement(header, self.privacy, True, wanted).skipped is None

    def _besides(self, *parts: str) -> str:
        """Name what noise leaves out: these parts, and for other means their distance from the Fréchet mean."""
        gap = 0.0
        if self.estimand != "frechet":
            gap = (frechet.tangent_gap if self.estimand == "tangent" else frechet.extrinsic_gap)(self.ball)
        if gap > 0:
            parts = (*parts, f"the distance from the Fréchet mean (at most {gap:.3g})")
        if not parts:
            return ""
        said = " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)
        return f" {said[0].upper()}{said[1:]} {'comes' if len(parts) == 1 else 'come'} on top."

    def __repr__(self) -> str:
        return table_text(self.table()) + "\n".join(self.sentences())

    def sentences(self) -> list[str]:
        """Return verdict, what `refine=True` and `noise_shape=` would do, and cautions about the promise, in words."""
        more = [found.verdict for found in (self.refined, self.shaped) if found is not None]
        return [self.verdict, *more, *(f"Caution: {text}" for text in cautions(self.privacy, self.n))]

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON, with everything that people see."""
        record: dict[str, Any] = {
            "n": self.n,
            "privacy": self.privacy.to_dict(),
            "estimand": self.estimand,
            "rows": json_safe([asdict(row) for row in self.rows]),
            "refused": self.refused,
        }
        for name, forecast in (("refined", self.refined), ("shaped", self.shaped)):
            if forecast is not None:
                record[name] = {**json_safe(asdict(forecast)), "verdict": forecast.verdict}
        return {**record, "verdict": self.verdict, "cautions": list(cautions(self.privacy, self.n))}

    def table(self) -> Table:
        """Return the plan as a table for a terminal (the other quantiles are in `rows`)."""
        mean = "mean" if self.estimand == "frechet" else f"{self.estimand} mean"
        title = f"Private {mean} of {self.n:,} units, {self.privacy}"
        headings = ["scale", "error", "95 %", "/radius"]
        if self.ball.space.distance_factor(0.0) is not None:
            headings.append("factor")
        table = plan_table(title, ["mechanism"], headings)
        for row in self.rows:
            mark = "" if row.exact else "≤"
            cells = [f"{row.scale:.3g}", f"{mark}{row.error:.3g}", f"{mark}{row.high:.3g}", f"{row.of_radius:.1%}"]
            if self.ball.is_whole:  # no error can be promised
                cells[1:] = ["-"] * 3
            if row.factor is not None:
                cells.append(f"{row.factor:.3g}")
            table.add_row(row.mechanism, *cells, row.note)
        return table


def plan_table(title: str, names: Sequence[str], headings: Sequence[str]) -> Table:
    """Return a table for a terminal without rows: columns of names, of numbers, and one of notes."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 0))
    # On a narrow terminal a long name goes on in the next line; no number is ever cut.
    for name in names:
        table.add_column(name, overflow="fold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("note", no_wrap=True)
    return table


def plan_mean(
    n: int,
    ball: Ball,
    privacy: Promise,
    *,
    estimand: str | None = None,
    everything: bool = False,
    refine: bool = False,
    noise_shape: Any = None,
    fill: float = SMALL_FILL,
    arithmetic: str = "auto",
    project: bool = True,
) -> Plan:
    """Return what to expect of a private mean of n units (theory section 5). Touches no data.

    Parameters
    ----------
    n : number of units
    ball : the public ball
    privacy : the promise
    estimand : which mean: "frechet" (also if left out), "tangent" or "extrinsic" (theory: estimands)
    everything : include mechanisms that "auto" leaves out: exact calibration, which may take seconds, and the papers'
        extrinsic baselines, whose error is in stored numbers and not a distance
    refine : also forecast what `refine=True` would do (theory section 8)
    noise_shape : also forecast what this shape would do, as in :func:`private_mean` (theory: shaped noise)
    fill : for that forecast, the share of the radius within which the data are assumed to lie about their mean
    arithmetic : as in :func:`private_mean`; with "exact", mechanisms that cannot be drawn so are among the refused
    project : as in :func:`private_mean`; a draw that is moved into the ball is never off by more than its diameter

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> plan = plan_mean(500, Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5), PureDP(1.0))
    >>> plan.best.mechanism, round(plan.best.error, 5)
    ('riemannian-laplace', 0.00437)
    >>> plan_mean(500, Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5), PureDP(1.0), estimand="tangent").best.mechanism
    'tangent-mean-laplace'
    >>> print(plan_mean(40, Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5), PureDP(0.5), refine=True).refined.verdict)
    refine=True would be skipped, at no cost: counting units privately may be off by 799, more than a quarter of all 40.
    """
    n = positive_int(n, "n", minimum=2)
    checked_public(ball, privacy)
    estimand = checked_estimand(estimand) or "frechet"
    checked_flag(refine, "refine")
    checked_flag(project, "project")
    checked_arithmetic(arithmetic)
    found_rows, refused = [], {}
    for mechanism in candidates(estimand, everything):
        found = attempt(mechanism, ball, n, privacy)
        if isinstance(found, str):
            refused[mechanism.name] = found
            continue
        calibration, forecast = found
        try:
            refuse_inexact(arithmetic, mechanism, ball, calibration)
        except PromiseError as problem:
            refused[mechanism.name] = str(problem)
            continue
        released = placed_forecast((mechanism, calibration, forecast), ball, project)
        low, median, high = (float(x) for x in released.quantile([0.05, 0.5, 0.95]))
        error = released.mean
        row = PlanRow(
            mechanism.name,
            calibration.scale,
            calibration.rule,
            error,
            low,
            median,
            high,
            released.exact,
            error / ball.radius,
            ball.space.distance_factor(error),
            mechanism.covers_timing,
            drawn_as(arithmetic, mechanism, ball, calibration),
        )
        found_rows.append((preference(mechanism, ball, calibration, forecast), row))
    rows = [row for _, row in sorted(found_rows, key=lambda pair: pair[0])]
    fill = fraction(fill, "fill")
    refined = _refined(n, ball, privacy, Wanted("auto", estimand), fill) if refine and rows else None
    shaped = None if noise_shape is None else plan_shape(ball, n, privacy, noise_shape, estimand, fill)
    return Plan(n, ball, privacy, tuple(rows), refused, estimand, refined, shaped)


def _refined(n: int, ball: Ball, privacy: Promise, wanted: Wanted, fill: float) -> RefinePlan:
    refinement = Refinement(Header(ball, n, privacy), privacy, True, wanted)
    plain = placed_forecast(wanted.choose(ball, n, privacy), ball).mean
    found, filled = refinement.forecast(fill), refinement.forecast(1.0)
    if found is None or filled is None:
        return RefinePlan(refinement.skipped, fill, ball.radius, plain, plain, plain)
    return RefinePlan(None, fill, found[0], found[1], filled[1], plain)


def required_units(error: float, ball: Ball, privacy: Promise, *, estimand: str | None = None) -> int:
    """Return the smallest number of units for which the expected noise error is at most `error`.

    Parameters
    ----------
    error : wanted expected distance
    ball : the public ball; without one (`Ball.whole`) no error can be stated, and this is refused
    privacy : the promise
    estimand : as in :func:`plan_mean`

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> required_units(0.01, Ball(Euclidean(1), [0.0], 1.0), PureDP(1.0))
    200
    """
    error = positive_float(error, "error")
    checked_public(ball, privacy)
    _refuse_whole(ball)
    wanted = Wanted("auto", checked_estimand(estimand))

    def enough(n: int) -> bool:
        try:
            return placed_forecast(wanted.choose(ball, n, privacy), ball).mean <= error * (1 + 1e-6)
        except (PromiseError, InvalidArgumentError):
            return False

    high = 2
    while not enough(high):
        if high >= _MOST_UNITS:
            wanted.choose(ball, high, privacy)  # where no mechanism will do at all, it says why
            raise PromiseError(f"no number of units up to {_MOST_UNITS:,} brings the error down to {error:g}.")
        high *= 2
    low = max(1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def required_privacy(
    error: float,
    n: int,
    ball: Ball,
    kind: type[Promise],
    *,
    delta: float | str | None = None,
    estimand: str | None = None,
) -> Promise:
    """Return the strongest promise of a kind, to nine digits, for which the expected noise error is at most `error`.

    Parameters
    ----------
    error : wanted expected distance
    n : number of units
    ball : the public ball; without one (`Ball.whole`) no error can be stated, and this is refused
    kind : PureDP, ApproxDP (give delta), ZCDP or GDP
    delta : of ApproxDP; a number, or text as in a promise
    estimand : as in :func:`plan_mean`

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> round(required_privacy(0.01, 200, Ball(Euclidean(1), [0.0], 1.0), PureDP).epsilon, 3)
    1.0
    """
    error = positive_float(error, "error")
    n = positive_int(n, "n", minimum=2)
    make = _maker(kind, delta)
    checked_public(ball, make(1.0))
    _refuse_whole(ball)
    wanted = Wanted("auto", checked_estimand(estimand))

    def enough(level: float) -> bool:
        try:
            return placed_forecast(wanted.choose(ball, n, make(level)), ball).mean <= error
        except (PromiseError, InvalidArgumentError):
            return False

    low, high = 1e-6, 1e-6
    while not enough(high):
        high *= 4
        if high > 1e6:
            wanted.choose(ball, n, make(high))  # as above
            raise PromiseError(f"no promise of that kind brings the error down to {error:g} with {n} units.")
    low = high / 4
    for _ in range(32):  # 4^(2^-32) is 1 + 3e-10, and `high` is enough wherever one stops
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return make(high)


def _maker(kind: type[Promise], delta: float | str | None) -> Callable[[float], Promise]:
    if kind is ApproxDP:
        if delta is None:
            raise InvalidArgumentError("delta must be given for ApproxDP.")
        return lambda level: ApproxDP(level, delta)
    if kind in (PureDP, ZCDP, GDP):
        return lambda level: kind(level)
    raise InvalidArgumentError(f"kind must be PureDP, ApproxDP, ZCDP or GDP, got {shown(kind)}.")


def _refuse_whole(ball: Ball) -> None:
    if ball.is_whole:
        raise InvalidArgumentError(f"`ball` must have a center and a radius, got {ball!r}: {NO_ERROR}.")


def checked_public(ball: object, privacy: object) -> None:
    """Refuse what is no ball or no promise."""
    if not isinstance(ball, Ball):
        raise InvalidArgumentError(f"`ball` must be a Ball, got {shown(ball)}. The arguments are (n, ball, privacy).")
    if not isinstance(privacy, Promise):
        raise InvalidArgumentError(f"`privacy` must be a promise such as PureDP(1.0), got {shown(privacy)}.")
