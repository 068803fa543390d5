"""Programs: what a private call draws, one output after the other, each chosen by those before it.

A program is a generator that never sees a record. It is given something hidden, says what is to be computed of it, and
yields a :class:`~dpmanifold.stats.draws.Draw` of that; it is sent what was drawn, and goes on from there. After the
draws of a step it yields the release that states them. Two things drive it: :func:`run`, which adds the noise and
charges every draw, and :func:`replay`, which takes the outputs from a release, looks at no record, and says where that
release differs from the one that the program makes of them.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from dpmanifold._check import FloatArray
from dpmanifold.errors import InvalidDataError, PromiseError
from dpmanifold.frechet import UnitPoints
from dpmanifold.privacy import ApproxDP, Promise, PureDP, compose, gdp_sufficient_for
from dpmanifold.privacy.amounts import added, cost_of, fits
from dpmanifold.release import Drawn, Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.draws import Bits, Draw, Hidden

S = TypeVar("S")
R = TypeVar("R")

Drawing = Generator[Any, Any, R]
"""Yields draws, and is sent their outputs; yields the release of a step, and is sent it as it is stated.

What is declared public it yields as :class:`Declared`, and is sent the numbers.
"""


def step_of(release: Release) -> Drawing[Release]:
    """Yield the release of a step, and return it as it is stated."""
    stated: Release = yield release
    return stated


class Declared(NamedTuple):
    """Numbers that are public because whoever holds the data says so: they leave as they are, among a step's details.

    Attributes
    ----------
    hidden : the numbers, one axis
    names : under which names the step states them
    faults : returns why such numbers cannot be
    """

    hidden: Hidden[FloatArray]
    names: Sequence[str]
    faults: Callable[[FloatArray], list[str]]


class Program(ABC, Generic[S]):
    """Every choice and every refusal of a private call, made from public numbers: behind it nothing raises.

    Attributes
    ----------
    header : what it is about
    """

    header: Header

    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """Return the draws to come, in their order, as public numbers foresee them."""

    @abstractmethod
    def draws(self, units: Hidden[S]) -> Drawing[Release]:
        """Draw, given the units' points; whatever they are, it never raises."""


class Parallel(ABC):
    """The same about each of several groups of units, after draws about all of them together if there are any.

    Parallel composition, where no unit is in more than one group.

    Attributes
    ----------
    header : what it is about, the number of units being that of all groups
    groups : how many there are
    touched : in how many of them a unit may be
    """

    header: Header
    groups: int
    touched: int = 1

    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """Return the draws to come, group by group, as public numbers foresee them."""

    def before(self, units: Hidden[Sequence[UnitPoints]]) -> Drawing[Any]:
        """Draw what is about all groups, and return what each of them is told; nothing, unless a subclass does."""
        yield from ()
        return ()

    @abstractmethod
    def branch(self, group: int, units: Hidden[UnitPoints], before: Any) -> Drawing[Release]:
        """Draw what is about one group, given what came of all of them."""


class Alone(Program[S]):
    """One step that is asked for by itself.

    Parameters
    ----------
    header : what it is about
    step : as public numbers foresee it
    drawing : makes the drawing of units
    """

    def __init__(self, header: Header, step: Step, drawing: Callable[[Hidden[S]], Drawing[Release]]) -> None:
        self.header, self._step, self._drawing = header, step, drawing

    def steps(self) -> tuple[Step, ...]:
        """Return the step."""
        return (self._step,)

    def draws(self, units: Hidden[S]) -> Drawing[Release]:
        """Draw it."""
        return self._drawing(units)


def together(shares: Sequence[Promise]) -> Promise:
    """Return what shares promise together; a single one as it is."""
    return shares[0] if len(shares) == 1 else compose(shares)


# -------------------------------------------------------------------- what it costs


class Meter:
    """What draws cost together, exactly: more than is promised is refused.

    Parameters
    ----------
    total : what is promised
    before : what was charged about all groups, where there are several
    times : how often draws about one group count: in so many groups a unit may be

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> meter = Meter(GDP(0.5))
    >>> meter.charge(GDP(0.3))
    >>> meter.charge(GDP(0.41))
    Traceback (most recent call last):
    ...
    dpmanifold.errors.PromiseError: the draws cost more than GDP(mu=0.5) together
    """

    def __init__(self, total: Promise, before: Sequence[Promise] = (), times: int = 1) -> None:
        self._total, self._before, self._times = total, tuple(before), times
        self.charged: list[Promise] = []

    def charge(self, share: Promise) -> None:
        """Charge a draw."""
        self.charged.append(share)
        self._require(self._total, self._times)

    def cover(self, stated: Promise) -> None:
        """Refuse a release that states less than its draws cost."""
        self._require(stated, 1)

    def _require(self, total: Promise, times: int) -> None:
        shares = [*self._before, *self.charged * times]
        if len(shares) == 1 and shares[0] is total:
            return  # a single draw that costs what is promised
        cap, kinds = total, set(map(type, shares))
        if isinstance(total, ApproxDP) and ApproxDP not in kinds:  # it was shared out as another kind
            cap = PureDP(total.stated["epsilon"]) if kinds == {PureDP} else gdp_sufficient_for(total)
        spent = reduce(added, (cost_of(share, cap) for share in shares))
        if not fits(spent, cost_of(cap, cap)):
            raise PromiseError(f"the draws cost more than {total} together")


# -------------------------------------------------------------------- driving


def run(program: Program[S] | Parallel, units: Hidden[S], bits: Bits) -> list[Release]:
    """Draw: one release, or one of each group. Every output is stated, by the step that it belongs to."""
    unstated: list[Drawn] = []

    def answer(meter: Meter, asked: Draw | Release | Declared) -> Drawn | Release | FloatArray:
        if isinstance(asked, Release):
            meter.cover(asked.privacy)
            if len(asked.draws) != len(unstated) or not all(map(operator.is_, asked.draws, unstated)):
                raise PromiseError(f"the step {asked.statistic!r} states other outputs than were drawn for it")
            unstated.clear()
            return asked if bits.private else replace(asked, private=False)
        if isinstance(asked, Declared):
            return asked.hidden.reveal()
        meter.charge(asked.share)
        unstated.append(asked.draw(bits))
        return unstated[-1]

    return _driven(program, units, answer, range(getattr(program, "groups", 1)))


def _driven(
    program: Program[Any] | Parallel, units: Hidden[Any], answer: Callable[[Meter, Any], Any], groups: Iterable[int]
) -> list[Release]:
    """Drive a program to its end, for these of its groups where it has several."""
    total = program.header.privacy
    meter = Meter(total)
    if isinstance(program, Program):
        return [exhausted(program.draws(units), partial(answer, meter))]
    before = exhausted(program.before(units), partial(answer, meter))
    return [
        exhausted(
            program.branch(group, units.then(operator.itemgetter(group)), before),
            partial(answer, Meter(total, meter.charged, program.touched)),
        )
        for group in groups
    ]


def exhausted(drawing: Drawing[R], answer: Callable[[Any], Any]) -> R:
    """Return what a drawing comes to, given what it is sent for each thing that it yields."""
    reply: Any = None
    while True:
        try:
            asked = drawing.send(reply)
        except StopIteration as end:
            result: R = end.value
            if isinstance(result, Release) and result is not reply:
                raise PromiseError("the release of a program must be that of its last step") from None
            return result
        reply = answer(asked)


# -------------------------------------------------------------------- replay


class Output(NamedTuple):
    """One output of a release: of which step it is, how it was drawn and what came."""

    step: Release
    draw: Draw
    drawn: Drawn


class Replayed(NamedTuple):
    """What a replay found.

    Attributes
    ----------
    steps : every step as the program makes it of the outputs, with the step as it is stated; the release last
    outputs : all outputs
    faults : what is declared public and cannot be, in words
    """

    steps: list[tuple[Release, Release]]
    outputs: list[Output]
    faults: list[str]


def replay(program: Program[Any] | Parallel, release: Release) -> Replayed:
    """Make a release again from the outputs that it states; no record is looked at.

    The program goes on from what is stated of each step: whether that is what it makes of the outputs is for whoever
    compares. Raises where steps, outputs or costs are others than the program's.
    """
    stated, found = list(_in_order(release)), Replayed([], [], [])
    left = [list(step.draws) for step in stated]

    def answer(meter: Meter, asked: Draw | Release | Declared) -> Drawn | Release | FloatArray:
        place = len(found.steps)
        if place == len(stated):
            raise InvalidDataError("there are more steps than it states")
        step = stated[place]
        if isinstance(asked, Release):
            if left[place]:
                raise InvalidDataError(f"more is stated to be drawn for the step {step.statistic!r} than is drawn")
            meter.cover(step.privacy)
            found.steps.append((asked, step))
            return step
        if isinstance(asked, Declared):
            numbers = np.array([step.details[name] for name in asked.names])
            found.faults.extend(asked.faults(numbers))
            return numbers
        if not left[place]:
            raise InvalidDataError(f"less is stated to be drawn for the step {step.statistic!r} than is drawn")
        meter.charge(asked.share)
        drawn = left[place].pop(0)
        found.outputs.append(Output(step, asked, drawn))
        return drawn

    groups = program.header.decisions.groups(program.groups) if isinstance(program, Parallel) else ()
    if len(groups) > 1:
        raise InvalidDataError(f"it is about one of {len(groups)} groups, and does not say which")
    nobody: Hidden[Any] = Hidden(_never)
    _driven(program, nobody, answer, groups)
    if len(found.steps) != len(stated):
        raise InvalidDataError("there are fewer steps than it states")
    return found


def _never() -> Any:
    raise AssertionError("a replay looks at no record")


def _in_order(release: Release) -> Iterator[Release]:
    """Yield the steps of a release in the order in which they were drawn, itself last."""
    for step in release.steps:
        yield from _in_order(step)
    yield release
