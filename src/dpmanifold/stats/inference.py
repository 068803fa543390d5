"""Private regions, intervals and tests: the releases they rest on (theory sections 6 and 7)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TypeVar

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import FloatArray, open_fraction
from dpmanifold._ids import unit_ids
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import Interval, Region, TwoSampleTest
from dpmanifold.linalg import from_vecd
from dpmanifold.manifolds.base import shorten
from dpmanifold.mechanisms import Calibration, Mechanism, choose
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise, PromiseError, PureDP, compose, gaussian_scale
from dpmanifold.release import NEIGHBOURS, NEIGHBOURS_BY_CLASS, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Bits, Noisy, fresh_bits, noisy, refuse_inexact, stated
from dpmanifold.stats.inputs import Told, divide, is_each_record, number_of_records, prepare, spend
from dpmanifold.stats.mean import release_mean
from dpmanifold.stats.refine import Refinement, Wanted
from dpmanifold.stats.sealed import sealed
from dpmanifold.stats.variance import located, mean_power, release_variance

# Fixed in advance, as shares of mu^2 (or rho): the mean and the second moment of a region or a test; the mean, the
# variance and the fourth moment of an interval.
REGION_SHARES = (0.8, 0.2)
INTERVAL_SHARES = (0.25, 0.55, 0.2)
_LARGEST_SCALE = 1e150


def private_region(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object = None,
    level: float = 0.95,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Region:
    """Release the mean with a confidence region for the population's Fréchet mean (theory section 7).

    Four fifths of the promise pay for the mean and one fifth for a second moment about it. The mean Hessian costs
    nothing: its bound follows from the second moment.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, rng : as in :func:`private_mean`; ApproxDP,
        ZCDP or GDP
    level : the confidence, in (0, 1)
    refine : spend a fifth of the promise on a smaller ball first, as in :func:`private_mean`; the region is then about
        the mean of the population clipped to that ball

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> X = Sphere(2).exp_coords(ball.center, 0.1 * np.random.default_rng(0).standard_normal((500, 2)))
    >>> region = private_region(X, ball, GDP(1.0), units=EACH_RECORD)
    >>> bool(region.contains(region.center)), region.effective_radius < 0.05
    (True, True)
    """
    level = open_fraction(level, "level")
    points = prepare(X, ball, privacy, units, invalid, Told(curator, confirm))
    require_ball(ball)
    refinement = Refinement(ball, len(points), _gaussian(privacy), refine, Wanted(_mean_name(ball)))
    plan = _Moments(ball, len(points), refinement.rest)
    refuse_inexact(arithmetic, plan.chosen[0], ball, plan.chosen[1])
    bits = fresh_bits(rng, ball, arithmetic)
    spend(budget, privacy, "region")
    steps = refinement.find(points, bits)
    plan = _suited(plan, steps)
    moved = refinement.move(steps, points) if plan.ball is not ball else points
    return Region(plan.release(moved, privacy, bits, NEIGHBOURS, steps, refinement.details), level)


def private_interval(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object = None,
    level: float = 0.95,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Interval:
    """Release the Fréchet variance with a confidence interval for the population's (theory section 6).

    A quarter of the promise pays for the mean, 0.55 of it for the variance and a fifth for a fourth moment.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, rng : as in :func:`private_mean`; ApproxDP,
        ZCDP or GDP
    level : the confidence, in (0, 1)
    refine : spend a fifth of the promise on a smaller ball first, as in :func:`private_mean`; the interval is then
        about the variance of the population clipped to that ball

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(SPD(2), np.eye(2), 2.0)
    >>> X = SPD(2).random_point(2000, rng=0)
    >>> interval = private_interval(X, ball, GDP(1.0), units=EACH_RECORD)
    >>> 1 < interval.low < interval.high < 4
    True
    """
    level = open_fraction(level, "level")
    points = prepare(X, ball, privacy, units, invalid, Told(curator, confirm))
    require_ball(ball)
    refinement = Refinement(ball, len(points), _gaussian(privacy), refine, Wanted(_mean_name(ball)))
    plan = _Spread(ball, len(points), refinement.rest)
    refuse_inexact(arithmetic, plan.chosen[0], ball, plan.chosen[1])
    bits = fresh_bits(rng, ball, arithmetic)
    spend(budget, privacy, "interval")
    steps = refinement.find(points, bits)
    plan = _suited(plan, steps)
    moved = refinement.move(steps, points) if plan.ball is not ball else points
    return Interval(plan.release(moved, privacy, bits, NEIGHBOURS, steps, refinement.details), level)


def private_test(
    X: object,
    Y: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object = None,
    level: float = 0.95,
    refine: bool = False,
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> TwoSampleTest:
    """Test whether two groups have the same Fréchet mean (theory section 7).

    Who is in which group is public, and nobody is in both: each group's mean and second moment keep the whole promise,
    shared out as for :func:`private_region`. The noise is part of the test's variance.

    Parameters
    ----------
    X, Y : records of the two groups, shapes (n, *space.shape) and (m, *space.shape)
    ball, privacy, invalid, curator, confirm, arithmetic, budget, rng : as in :func:`private_mean`; ApproxDP, ZCDP or
        GDP
    units : EACH_RECORD, or a pair: one id per record of X, one id per record of Y
    level : the confidence of the interval for the distance between the means, in (0, 1)
    refine : spend a fifth of the promise on one smaller ball for both groups first, found from all units together

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> X, Y = np.zeros((2, 300, 1))
    >>> private_test(X, Y, Ball(Euclidean(1), [0.0], 1.0), GDP(1.0), units=EACH_RECORD).ball.radius
    1.0
    """
    level = open_fraction(level, "level")
    first_units, second_units = _paired_units(units, X, Y)
    told = Told(curator, confirm)
    groups = [
        prepare(X, ball, privacy, first_units, invalid, told, "first group"),
        prepare(Y, ball, privacy, second_units, invalid, told, "second group"),
    ]
    require_ball(ball)
    everybody = groups[0].joined(groups[1])
    refinement = Refinement(ball, len(everybody), _gaussian(privacy), refine, Wanted(_mean_name(ball)))
    plans = [_Moments(ball, len(points), refinement.rest) for points in groups]
    for plan in plans:
        refuse_inexact(arithmetic, plan.chosen[0], ball, plan.chosen[1])
    bits = fresh_bits(rng, ball, arithmetic)
    spend(budget, privacy, "two-sample test")
    steps = refinement.find(everybody, bits, NEIGHBOURS_BY_CLASS)
    suited = [_suited(plan, steps) for plan in plans]
    # One ball for both: distances between the means are taken in it.
    used = suited if all(plan.ball is not ball for plan in suited) else plans
    first, second = (
        plan.release(
            refinement.move(steps, points) if plan.ball is not ball else points,
            privacy,
            bits,
            NEIGHBOURS_BY_CLASS,
            steps,
            refinement.details,
        )
        for plan, points in zip(used, groups, strict=True)
    )
    return TwoSampleTest(first, second, level)


class _About(ABC):
    """Moments about a released mean: choices and refusals from public numbers, before anything is spent.

    `rest` is what the mean and its moments may cost together; a ball that was found before is not in it.
    """

    def __init__(self, ball: Ball, n: int, rest: Promise) -> None:
        self.ball, self.n, self.rest = ball, n, rest
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Choose, and refuse what double precision cannot hold."""

    @abstractmethod
    def release(
        self,
        points: UnitPoints,
        total: Promise,
        bits: Bits,
        neighbours: str,
        before: tuple[Release, ...],
        details: dict[str, float],
    ) -> Release:
        """Release the mean, with what came before as its steps, then the moments about it. Never raises."""


A = TypeVar("A", bound=_About)


def _suited(plan: A, steps: tuple[Release, ...]) -> A:
    """Return the plan on the ball that was released, or the one at hand where that does not suit."""
    if not steps or steps[0].value is plan.ball:
        return plan
    inner: Ball = steps[0].value
    return sealed(lambda: type(plan)(inner, plan.n, plan.rest), lambda: plan)


class _Moments(_About):
    """A mean and a second moment."""

    def _prepare(self) -> None:
        self.shares = divide(_gaussian(self.rest), REGION_SHARES)
        self.chosen = _gaussian_mean(self.ball, self.n, self.shares[0])
        # About a mean at the edge: the largest.
        farthest = sensitivity.of_second_moment(self.ball, self.n, away=self.ball.radius)
        _refuse_overflow(self.chosen[1].scale, gaussian_scale(farthest.value, self.shares[1]))

    def release(
        self,
        points: UnitPoints,
        total: Promise,
        bits: Bits,
        neighbours: str,
        before: tuple[Release, ...],
        details: dict[str, float],
    ) -> Release:
        """Release the mean, then the second moment about it with the mean as its step."""
        ball, n, share = self.ball, self.n, self.shares[1]
        cost = compose([*(step.privacy for step in before), self.shares[0]]) if before else self.shares[0]
        mean = release_mean(points, cost, self.chosen, True, bits, before, neighbours, details)
        at, apart = located(ball, mean.value)
        bound = sensitivity.of_second_moment(ball, n, away=apart)
        # Longer than the bound allows would be rounding: cut, so that the bound holds for what is computed.
        reach, dim = sensitivity.reach(ball, away=apart), ball.frame.dim
        exact = sealed(
            lambda: points.mean_of(
                lambda block: frechet.outer_products(shorten(ball.frame.log_coords(at, block), reach)), reach**2
            ),
            lambda: np.zeros(dim * (dim + 1) // 2),
        )
        scale = gaussian_scale(bound.value, share)
        moment = noisy(exact, "gaussian", scale, reach**2, bits)
        numbers = (scale, bound, apart)
        return _moment_release(
            "second moment", from_vecd(moment.numbers), moment, ball, n, points.unit, (total, share), numbers,
            bits.private, (mean,), neighbours,
        )  # fmt: skip


class _Spread(_About):
    """A mean, a variance and a fourth moment."""

    def _prepare(self) -> None:
        ball, n = self.ball, self.n
        self.shares = divide(_gaussian(self.rest), INTERVAL_SHARES)
        self.chosen = _gaussian_mean(ball, n, self.shares[0])
        _refuse_overflow(
            self.chosen[1].scale,
            gaussian_scale(sensitivity.of_variance(ball, n, away=ball.radius).value, self.shares[1]),
            gaussian_scale(sensitivity.of_fourth_moment(ball, n, away=ball.radius).value, self.shares[2]),
        )

    def release(
        self,
        points: UnitPoints,
        total: Promise,
        bits: Bits,
        neighbours: str,
        before: tuple[Release, ...],
        details: dict[str, float],
    ) -> Release:
        """Release the mean, the variance about it, and the fourth moment with both as its steps."""
        ball, n, shares = self.ball, self.n, self.shares
        paid = [step.privacy for step in before]
        cost = compose([*paid, shares[0]]) if before else shares[0]
        mean = release_mean(points, cost, self.chosen, True, bits, before, neighbours, details)
        both = compose([*paid, *shares[:2]])
        variance = release_variance(points, both, shares[1], mean, 0.0, bits)
        at, apart = located(ball, mean.value)
        bound = sensitivity.of_fourth_moment(ball, n, away=apart)
        reach = sensitivity.reach(ball, away=apart)
        exact = sealed(lambda: mean_power(points, at, reach, 4), lambda: 0.0)
        scale = gaussian_scale(bound.value, shares[2])
        moment = noisy(exact, "gaussian", scale, reach**4, bits)
        numbers = (scale, bound, apart)
        return _moment_release(
            "fourth moment", float(moment.numbers[0]), moment, ball, n, points.unit, (total, shares[2]), numbers,
            bits.private, (variance,),
        )  # fmt: skip


def _moment_release(
    statistic: str,
    value: FloatArray | float,
    moment: Noisy,
    ball: Ball,
    n: int,
    unit: str,
    promises: tuple[Promise, Promise],
    numbers: tuple[float, Sensitivity, float],
    private: bool,
    steps: tuple[Release, ...],
    neighbours: str = NEIGHBOURS,
) -> Release:
    scale, bound, apart = numbers
    return Release(
        statistic=statistic,
        value=value,
        privacy=promises[0],
        share=promises[1],
        mechanism="gaussian",
        scale=scale,
        rule="Gaussian",
        sensitivity=bound,
        ball=ball,
        n=n,
        unit=unit,
        tol=frechet.default_tol(ball, n),
        projected=False,
        private=private,
        neighbours=neighbours,
        steps=steps,
        details={"reference to centre": apart},
        **stated(moment),
    )


def _gaussian(privacy: Promise) -> Promise:
    if isinstance(privacy, PureDP):
        raise PromiseError(
            f"privacy {privacy!r} cannot be kept: regions, intervals and tests need Gaussian noise, which keeps no "
            "pure promise. Ask for GDP, ZCDP or ApproxDP."
        )
    return privacy


def _gaussian_mean(ball: Ball, n: int, share: Promise) -> tuple[Mechanism, Calibration]:
    """Choose the Gaussian mechanism of the space, or refuse."""
    return choose(_mean_name(ball), ball, n, share)[:2]


def _mean_name(ball: Ball) -> str:
    return "wrapped-gaussian" if ball.space.is_hadamard else "riemannian-gaussian"


def _paired_units(units: object, X: object, Y: object) -> tuple[object, object]:
    """Return the units of each group; a unit in both would not be protected by each group's promise alone."""
    if is_each_record(units) or units is None:
        return units, units
    if not (isinstance(units, (tuple, list)) and len(units) == 2):
        raise InvalidArgumentError(
            "units must be EACH_RECORD or a pair: one id per record of X, one id per record of Y."
        )
    if any(is_each_record(part) or part is None for part in units):
        raise InvalidArgumentError(
            "units must be ids for both groups, or EACH_RECORD alone: one kind of unit for both."
        )
    first = unit_ids(units[0], number_of_records(X), "units of X")
    second = unit_ids(units[1], number_of_records(Y), "units of Y")
    if first.shares_a_unit(second):
        raise InvalidArgumentError(
            "units of X and Y overlap: a unit in both groups would be counted once where it is touched twice. "
            "Leave such units out of one group."
        )
    return first.group, second.group


def _refuse_overflow(*scales: float) -> None:
    """Refuse noise whose square no double can hold, before anything is spent."""
    if not max(scales) < _LARGEST_SCALE:
        raise PromiseError(
            f"noise of scale {max(scales):.3g} is beyond double precision. Use more units, a weaker promise or a "
            "smaller ball."
        )
