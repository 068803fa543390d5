"""Moments about a mean that Gaussian noise hides: what regions, intervals and tests rest on (theory 6, 7)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import choose, usual
from dpmanifold.privacy import Promise, PromiseError, PureDP
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.additive import refuse_overflow
from dpmanifold.stats.draws import Chosen, Hidden, mean_step, refuse_inexact
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.mean import MEAN, draw_mean
from dpmanifold.stats.moments import EXCESS, Moment
from dpmanifold.stats.program import Drawing, Program, together
from dpmanifold.stats.refine import Refinement, Wanted


@dataclass(frozen=True)
class Chain:
    """A mean by Gaussian noise and moments about it, each with what came before as its step.

    Attributes
    ----------
    header : what it is about; its ball may be one that was released before
    rest : what all of them may cost together; a ball that was found before is not in it
    weights, shares : how that is shared out
    moments : in their order
    chosen : the mechanism of the mean
    """

    header: Header
    rest: Promise
    weights: tuple[float, ...]
    moments: tuple[Moment, ...]
    shares: tuple[Promise, ...]
    chosen: Chosen

    @staticmethod
    def make(header: Header, rest: Promise, weights: tuple[float, ...], moments: tuple[Moment, ...]) -> Chain:
        """Choose, and refuse what double precision cannot hold."""
        shares = tuple(divide(gaussian(rest), weights))
        chosen = choose(mean_name(header.ball), header.ball, header.n, shares[0])
        found = Chain(header, rest, weights, moments, shares, chosen)
        refuse_overflow(chosen[1].scale, *(step.scale for step in found._moment_steps()))
        return found

    def suited(self, ball: Ball) -> Chain:
        """Return the chain on a ball that was released, or this one where that does not suit. Never raises."""
        if ball is self.header.ball:
            return self
        return with_fallback(
            lambda: Chain.make(self.header.inside(ball), self.rest, self.weights, self.moments), lambda: self,
            InvalidArgumentError, PromiseError,
        )  # fmt: skip

    def _moment_steps(self) -> tuple[Step, ...]:
        """Return the draws of the moments, about a mean at the edge: the largest."""
        pairs, radius = zip(self.moments, self.shares[1:], strict=True), self.header.ball.radius
        return tuple(moment.step(self.header, share, radius, exact=False) for moment, share in pairs)

    def steps(self) -> tuple[Step, ...]:
        """Return all draws, as public numbers foresee them."""
        return (mean_step(MEAN, self.header, self.chosen), *self._moment_steps())

    def draws(
        self, units: Hidden[UnitPoints], before: tuple[Release, ...], details: dict[str, float]
    ) -> Drawing[Release]:
        """Draw the mean, with what came before as its steps, then the moments about it."""
        paid = [step.privacy for step in before]

        def so_far(count: int) -> Header:
            every = count == len(self.shares)
            return self.header if every else self.header.promising(together([*paid, *self.shares[:count]]))

        last = mean = yield from draw_mean(units, so_far(1), self.chosen, True, before, details)
        for place, moment in enumerate(self.moments, start=1):
            extra = {EXCESS: 0.0} if EXCESS in moment.details else None
            about = np.asarray(mean.value)
            last = yield from moment.after(last).draws(
                units, so_far(place + 1), self.shares[place], about, (last,), extra
            )
        return last


class MomentsProgram(Program[UnitPoints]):
    """A smaller ball if one was asked for, a mean, and moments about it."""

    def __init__(
        self,
        header: Header,
        weights: tuple[float, ...],
        moments: tuple[Moment, ...],
        refine: bool = False,
        mechanism: object = "auto",
    ) -> None:
        ball = header.ball
        if mechanism not in ("auto", mean_name(ball)):
            raise InvalidArgumentError(f'`mechanism` must be "auto" or "{mean_name(ball)}" there, got {mechanism!r}.')
        require_ball(ball)
        self.header = header
        self._refinement = Refinement(header, gaussian(header.privacy), refine, Wanted(mean_name(ball)))
        self._chain = Chain.make(header, self._refinement.rest, weights, moments)
        refuse_inexact(header.arithmetic, self._chain.chosen[0], ball, self._chain.chosen[1])

    def steps(self) -> tuple[Step, ...]:
        """Return all draws; in the public ball, where a smaller one is looked for first."""
        return (*self._refinement.steps(), *self._chain.steps())

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Draw them one after the other."""
        ball, moved, before = yield from self._refinement.find(units)
        chain = self._chain.suited(ball)
        there = units if chain is self._chain else moved
        return (yield from chain.draws(there, before, self._refinement.details))


def gaussian(privacy: Promise) -> Promise:
    """Return a promise that Gaussian noise can keep, or refuse a pure one."""
    if isinstance(privacy, PureDP):
        raise PromiseError(
            f"privacy {privacy!r} cannot be kept by what was asked for: it needs Gaussian noise, which keeps no pure "
            "promise. Ask for GDP, ZCDP or ApproxDP."
        )
    return privacy


def mean_name(ball: Ball) -> str:
    """Return the Gaussian mechanism of a space."""
    return usual(noise="gaussian", about="center" if ball.space.is_hadamard else "mean").name
