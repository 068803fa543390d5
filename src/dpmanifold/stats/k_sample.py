"""A private test that several groups have the same mean (theory: k-sample)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from dpmanifold._check import open_fraction
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import KSampleTest
from dpmanifold.mechanisms import usual
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import Release
from dpmanifold.statistic import Header, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.averaged import AverageProgram
from dpmanifold.stats.ball_estimation import moved_into
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Hidden, refuse_inexact
from dpmanifold.stats.featured import FeatureProgram
from dpmanifold.stats.joint_moments import JOINT_MOMENTS
from dpmanifold.stats.moment_chain import REGION_SHARES, SECOND_MOMENT, Chain, gaussian, mean_name
from dpmanifold.stats.program import Drawing, Parallel
from dpmanifold.stats.prospects import joint_draws
from dpmanifold.stats.query import ESTIMAND_OF_INFERENCE, LEVEL, REFINE, Query
from dpmanifold.stats.refine import Refinement, Wanted
from dpmanifold.stats.region import checked_estimand, in_one_draw, joint_moments_in
from dpmanifold.stats.samples import Groups

# More groups than anybody compares: beyond, a number of them in a file is taken for a wrong one.
MOST_GROUPS = 1000


def private_k_sample_test(
    X: object,
    labels: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    classes: Sequence[Any],
    level: float = 0.95,
    estimand: str | None = None,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> KSampleTest:
    """Test whether several groups have the same mean, and say which differ and how far (theory: k-sample).

    Labels are public, and nobody is in two groups: each group's mean and second moment keep the whole promise, released
    as for :func:`private_region`, so that all comparisons together cost what one of them would. A unit with records in
    two groups is refused before anything is spent.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`;
        ApproxDP, ZCDP or GDP
    labels : one group per record; or the name of a column, where X has columns; None where X is registered with them
    classes : the public list of groups, two or more; a label outside it is an error
    level : the confidence of the intervals for the distances between means, of all of them together, in (0, 1)
    estimand : which mean: "frechet", the default, or "tangent", that of coordinates at the ball's centre, which takes
        one draw of each group on every space. On flat spaces they are the same
    refine : spend a fifth of the promise on one smaller ball for all groups first, found from all units together

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> labels = np.repeat(["a", "b", "c"], 400)
    >>> X = np.random.default_rng(0).standard_normal((1200, 2)) + 2.0 * (labels == "c")[:, None]
    >>> ball = Ball(Euclidean(2), [0.0, 0.0], 6.0)
    >>> found = private_k_sample_test(X, labels, ball, GDP(1.0), units=EACH_RECORD, classes=["a", "b", "c"])
    >>> found.p_value < 1e-6, [pair.names for pair in found.pairs if pair.p_value < 1e-6]
    (True, [('a', 'c'), ('b', 'c')])
    """
    level = open_fraction(level, "level")
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    sample = Groups(X, labels, classes)
    releases = ask(K_SAMPLE.asked(estimand=estimand, refine=refine), sample, ball, privacy, terms).releases
    return KSampleTest(dict(zip(sample.names, releases, strict=True)), level)


class GroupsProgram(Parallel):
    """A smaller ball for all groups if one was asked for, and a mean and a second moment of each.

    On flat spaces, and for tangent means on all of them, mean and second moment of a group are one draw. Each unit is
    in one group, and each group keeps the whole promise.

    Parameters
    ----------
    header : what all groups are about
    counts : how many units each group has
    classes : the names of the groups, where they are classes of one data set: a part of requests
    estimand, refine : as in :func:`private_k_sample_test`
    """

    joint: list[AverageProgram]
    """Joint moments of each group in one draw; none where means are solved first."""

    def __init__(
        self,
        header: Header,
        *,
        counts: Sequence[int],
        classes: Sequence[Any] = (),
        estimand: str | None = None,
        refine: bool = False,
    ) -> None:
        if classes and len(classes) != len(counts):
            raise InvalidArgumentError(
                "counts must be one per group, got {n_counts} for {n_classes} groups.",
                n_counts=Public(len(counts)),
                n_classes=Public(len(classes)),
            )
        if header.n != sum(counts):
            raise InvalidArgumentError("counts must add up to the number of units.")
        ball = header.ball
        require_ball(ball)
        self.header, self.groups = header, len(counts)
        joint = in_one_draw(ball, checked_estimand(estimand))
        wanted = Wanted(usual("tangent", noise="gaussian").name if joint else mean_name(ball))
        self._refinement = Refinement(header, gaussian(header.privacy), refine, wanted)
        if len(counts) > MOST_GROUPS:
            raise InvalidArgumentError(
                "`classes` must be at most {most:,}, got {many:,}.", most=Public(MOST_GROUPS), many=Public(len(counts))
            )
        rest, about = self._refinement.rest, [header.about(group, n) for group, n in enumerate(counts)]
        self.joint = [self._at_once(one, rest) for one in about if joint]
        self._chains = [Chain.make(one, rest, REGION_SHARES, (SECOND_MOMENT,)) for one in about if not joint]
        for chain in self._chains:
            refuse_inexact(header.arithmetic, chain.chosen[0], ball, chain.chosen[1])

    @staticmethod
    def _at_once(header: Header, rest: Promise) -> AverageProgram:
        """Plan the one draw of a group, by what a search for a ball leaves."""
        checked = FeatureProgram(joint_moments_in(header.ball), header.promising(rest), refine=False)
        return AverageProgram(checked.statistic, header, checked.calibration)

    def steps(self) -> tuple[Step, ...]:
        """Return all draws, group by group."""
        planned = [(one.header, one.steps()) for one in self._chains] + [
            (one.header, one.steps()) for one in self.joint
        ]
        by_group = [
            replace(step, group=f"group {number} ({header.n:,} units)")
            for number, (header, steps) in enumerate(planned, start=1)
            for step in steps
        ]
        return (*self._refinement.steps(), *by_group)

    def before(self, units: Hidden[Sequence[UnitPoints]]) -> Drawing[tuple[tuple[Release, ...], Ball, list[Chain]]]:
        """Draw a smaller ball for all groups, if that was planned; return it, and the chains in it that suit it."""
        ball, _, steps = yield from self._refinement.find(units.then(partial(reduce, UnitPoints.joined)))
        suited = [chain.suited(ball) for chain in self._chains]
        # One ball for all: distances between the means are taken in it.
        used = all(chain.header.ball is not self.header.ball for chain in suited)
        return steps, ball, suited if used else []

    def branch(self, group: int, units: Hidden[UnitPoints], before: Any) -> Drawing[Release]:
        """Draw the mean and the second moment of a group."""
        steps, ball, suited = before
        moved, details = moved_into(ball, units) if steps else units, self._refinement.details
        if self.joint:
            one = self.joint[group]
            return one.statistic.draws(moved, one.header.inside(ball), one.calibration, steps, details)
        chain: Chain = (suited or self._chains)[group]
        return chain.draws(moved if suited else units, steps, details)


K_SAMPLE = Query(
    name="k-sample-test",
    title="Test of several groups",
    call=private_k_sample_test,
    sample=Groups,
    plan=GroupsProgram,
    result=KSampleTest,
    options=(LEVEL, ESTIMAND_OF_INFERENCE, REFINE),
    releases=(JOINT_MOMENTS.name, SECOND_MOMENT.name),
    figure="dpmanifold.plots.group_comparisons:groups",
    views=("picture",),
    draws=joint_draws,
    passes=1.5,
)
