"""Moments about a mean that Gaussian noise hides: what regions, intervals and tests rest on (theory 6, 7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference.estimate import GAUSSIAN_MEANS
from dpmanifold.mechanisms import choose
from dpmanifold.privacy import Promise, PromiseError, PureDP, compose
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Prepared, Step
from dpmanifold.stats.additive import refuse_overflow
from dpmanifold.stats.draws import Bits, refuse_inexact
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.mean import MEAN, release_mean
from dpmanifold.stats.moments import EXCESS, Moment
from dpmanifold.stats.recipes import Recipe
from dpmanifold.stats.refine import SKIPPED, Refinement, Wanted, in_smaller_ball
from dpmanifold.stats.steps import Chosen, mean_step


@dataclass(frozen=True)
class Chain:
    """A mean by Gaussian noise and moments about it, each with what came before as its step.

    `rest` is what all of them may cost together; a ball that was found before is not in it.
    """

    ball: Ball
    n: int
    rest: Promise
    weights: tuple[float, ...]
    moments: tuple[Moment, ...]
    shares: tuple[Promise, ...]
    chosen: Chosen

    @staticmethod
    def make(ball: Ball, n: int, rest: Promise, weights: tuple[float, ...], moments: tuple[Moment, ...]) -> Chain:
        """Choose, and refuse what double precision cannot hold."""
        shares = tuple(divide(gaussian(rest), weights))
        found = Chain(ball, n, rest, weights, moments, shares, choose(mean_name(ball), ball, n, shares[0]))
        refuse_overflow(found.chosen[1].scale, *(step.scale for step in found._moment_steps(Header(ball, n, rest))))
        return found

    def suited(self, steps: tuple[Release, ...]) -> Chain:
        """Return the chain on the ball that was released, or this one where that does not suit. Never raises."""
        if not steps or steps[0].value is self.ball:
            return self
        inner: Ball = steps[0].value
        return with_fallback(
            lambda: Chain.make(inner, self.n, self.rest, self.weights, self.moments), lambda: self,
            InvalidArgumentError, PromiseError,
        )  # fmt: skip

    def _moment_steps(self, header: Header) -> tuple[Step, ...]:
        """Return the draws of the moments, about a mean at the edge: the largest."""
        pairs = zip(self.moments, self.shares[1:], strict=True)
        return tuple(moment.step(header, share, self.ball.radius, exact=False) for moment, share in pairs)

    def steps(self, header: Header) -> tuple[Step, ...]:
        """Return all draws, as public numbers foresee them."""
        return (mean_step(MEAN, header.inside(self.ball), self.chosen), *self._moment_steps(header))

    def release(
        self,
        points: UnitPoints,
        header: Header,
        bits: Bits,
        before: tuple[Release, ...],
        details: dict[str, float],
    ) -> Release:
        """Release the mean, with what came before as its steps, then the moments about it. Never raises."""
        paid = [step.privacy for step in before]
        inside = header.inside(self.ball)

        def so_far(count: int) -> Promise:
            parts = [*paid, *self.shares[:count]]
            return parts[0] if len(parts) == 1 else compose(parts)

        mean = release_mean(points, inside.promising(so_far(1)), self.chosen, True, bits, before, details)
        last = mean
        for number, moment in enumerate(self.moments, start=1):
            total = header.privacy if number == len(self.moments) else so_far(number + 1)
            extra = {EXCESS: 0.0} if EXCESS in moment.details else None
            last = moment.after(last).release(
                points, inside.promising(total), self.shares[number], np.asarray(mean.value), bits, (last,), extra
            )
        return last


class AboutMean(Prepared):
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
        self._refinement = Refinement(ball, header.n, gaussian(header.privacy), refine, Wanted(mean_name(ball)))
        self._chain = Chain.make(ball, header.n, self._refinement.rest, weights, moments)
        refuse_inexact(header.arithmetic, self._chain.chosen[0], ball, self._chain.chosen[1])

    def steps(self) -> tuple[Step, ...]:
        """Return all draws; in the public ball, where a smaller one is looked for first."""
        return (*self._refinement.steps(self.header), *self._chain.steps(self.header))

    def release(self, points: UnitPoints, bits: Bits) -> Release:
        """Release them one after the other."""
        steps = self._refinement.find(points, self.header, bits)
        chain = self._chain.suited(steps)
        moved = points if chain.ball is self.header.ball else self._refinement.move(steps, points)
        return chain.release(moved, self.header, bits, steps, self._refinement.details)


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
    return "wrapped-gaussian" if ball.space.is_hadamard else "riemannian-gaussian"


def gaussian_mean_recipe() -> Recipe:
    """Return how the mean that moments are about is made."""
    return Recipe(MEAN.name, GAUSSIAN_MEANS, optional=(SKIPPED,), projected=True)


def moment_recipes(moment: Moment, shares: tuple[float, ...], step: Recipe, relations: Sequence[str]) -> list[Recipe]:
    """Return how a moment by Gaussian noise is made, by itself and in a smaller ball."""
    plain = Recipe(moment.name, ("gaussian",), shares, step, moment.details, (), moment.projected, tuple(relations))
    return [plain, in_smaller_ball(plain)]
