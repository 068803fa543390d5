"""What a comparison of groups draws: a smaller ball for all of them, and a mean and a second moment of each."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from dpmanifold.ball import require_ball
from dpmanifold.features import WEIGHT
from dpmanifold.frechet import UnitPoints
from dpmanifold.privacy import Promise
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.averaged import AveragePlan
from dpmanifold.stats.chain import Chain, gaussian, mean_name
from dpmanifold.stats.draws import Bits, refuse_inexact
from dpmanifold.stats.featured import FeaturePlan
from dpmanifold.stats.joint_moments import JOINT_MOMENTS
from dpmanifold.stats.refine import Refinement, Wanted
from dpmanifold.stats.region import checked_estimand, in_one_draw, joint_moments_in, weight_in
from dpmanifold.stats.second_moment import REGION_SHARES, SECOND_MOMENT


class GroupsPlan:
    """A smaller ball for all groups if one was asked for, and a mean and a second moment of each.

    Every choice and every refusal, from public numbers; the header's n is that of all groups together. On flat spaces,
    and for tangent means on all of them, mean and second moment of a group are one draw. Each unit is in one group, and
    each group keeps the whole promise.
    """

    label = "groups"
    draws: list[AveragePlan]
    """One of joint moments for each group; none where means are solved first."""

    def __init__(
        self, header: Header, counts: Sequence[int], *, estimand: str | None = None, refine: bool = False
    ) -> None:
        ball = header.ball
        require_ball(ball)
        self.header = header
        joint = in_one_draw(ball, checked_estimand(estimand, "test"))
        wanted = Wanted("tangent-mean-gaussian" if joint else mean_name(ball))
        self._refinement = Refinement(ball, header.n, gaussian(header.privacy), refine, wanted)
        rest = self._refinement.rest
        self.draws = [self._joint(header.about(n), rest) for n in counts] if joint else []
        self._chains = [Chain.make(ball, n, rest, REGION_SHARES, (SECOND_MOMENT,)) for n in counts if not joint]
        for chain in self._chains:
            refuse_inexact(header.arithmetic, chain.chosen[0], ball, chain.chosen[1])

    @staticmethod
    def _joint(header: Header, rest: Promise) -> AveragePlan:
        """Plan the one draw of a group, by what a search for a ball leaves."""
        statistic = joint_moments_in(header.ball)
        checked = FeaturePlan(JOINT_MOMENTS, statistic, header.promising(rest), refine=False, mechanism="auto")
        return AveragePlan(statistic, header, checked.calibration)

    def steps(self) -> tuple[Step, ...]:
        """Return all draws, group by group."""
        chains = [(chain.n, chain.steps(self.header.about(chain.n))) for chain in self._chains]
        drawn = chains + [(draw.header.n, draw.steps()) for draw in self.draws]
        by_group = [
            replace(step, group=f"group {number} ({n:,} units)")
            for number, (n, steps) in enumerate(drawn, start=1)
            for step in steps
        ]
        return (*self._refinement.steps(self.header), *by_group)

    def release(self, groups: Sequence[UnitPoints], bits: Bits) -> tuple[Release, ...]:
        """Release a second moment of each group. Never raises."""
        ball = self.header.ball
        steps = self._refinement.find(functools.reduce(UnitPoints.joined, groups), self.header, bits)
        if self.draws:
            return tuple(
                draw.drawn(
                    self._refinement.move(steps, points) if steps else points,
                    JOINT_MOMENTS,
                    bits,
                    steps,
                    {WEIGHT: weight_in(ball), **self._refinement.details},
                )
                for draw, points in zip(self.draws, groups, strict=True)
            )
        suited = [chain.suited(steps) for chain in self._chains]
        # One ball for all: distances between the means are taken in it.
        used = suited if all(chain.ball is not ball for chain in suited) else self._chains
        return tuple(
            chain.release(
                points if chain.ball is ball else self._refinement.move(steps, points),
                self.header.about(chain.n),
                bits,
                steps,
                self._refinement.details,
            )
            for chain, points in zip(used, groups, strict=True)
        )
