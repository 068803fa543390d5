"""A private mean with a confidence region for the population's (theory section 7)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpmanifold._check import open_fraction, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.statistic import Decisions, Header
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.featured import FeatureProgram
from dpmanifold.stats.joint_moments import JOINT_MOMENTS, JointMomentsAboutCenter
from dpmanifold.stats.moment_chain import SECOND_MOMENT, gaussian
from dpmanifold.stats.program import Program
from dpmanifold.stats.prospects import joint_draws, smaller_in_one_draw
from dpmanifold.stats.query import ESTIMAND_OF_INFERENCE, LEVEL, REFINE, Query
from dpmanifold.stats.samples import Units

# On a line products are cheaper: they are free up to (11 + 5 sqrt 5)/8 (theory: features).
_LINE_WEIGHT = 2.75
_TANGENT = "tangent"


def private_region(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
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
) -> ConfidenceRegion:
    """Release the mean with a confidence region for the population's Fréchet mean (theory section 7).

    On flat spaces one draw holds the mean and a second moment about the ball's centre, and the mean has the noise that
    it would have by itself. Elsewhere this draw holds the tangent mean, and the region is grown by how far the Fréchet
    mean can be from it (`gap`), where public numbers say that it is clearly smaller so: with few units for the
    dimension. Otherwise four fifths of the promise pay for the mean and one fifth for a second moment about it; the
    mean Hessian costs nothing: its bound follows from the second moment.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`;
        ApproxDP, ZCDP or GDP
    level : the confidence, in (0, 1)
    estimand : which mean: "frechet", as is None, or "tangent", that of coordinates at the ball's centre, which one draw
        gives on every space, and exactly. On flat spaces the two are the same
    refine : spend a fifth of the promise on a smaller ball first, as in :func:`private_mean`; the region is then about
        the mean of the population clipped to that ball

    Examples
    --------
    >>> import numpy as np
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
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    question = REGION.asked(estimand=estimand, refine=refine)
    return ConfidenceRegion(ask(question, Units(X), ball, privacy, terms).release, level)


def region_plan(
    header: Header, *, estimand: str | None = None, refine: bool = False, mechanism: Any = "auto"
) -> Program[UnitPoints]:
    """Return what a region is made of: joint moments, or a mean and a second moment about it.

    Joint moments where their mean is the one asked for, or where the region is clearly smaller although it is grown by
    how far the two means can be apart; public numbers decide.

    Parameters
    ----------
    header : what is known before any data are seen
    estimand, refine : as in :func:`private_region`
    mechanism : "auto", or the name of the Gaussian noise; on curved spaces of that about a Fréchet mean, which then is
        released by itself
    """
    at_once = in_one_draw(header.ball, checked_estimand(estimand))
    if not at_once and mechanism != "auto":
        return SECOND_MOMENT.prepared(header, refine=refine, mechanism=mechanism)
    statistic = JointMomentsAboutCenter(weight_in(header.ball), about_frechet=not at_once)
    if at_once:
        return FeatureProgram(statistic, header, refine, mechanism)
    # Neither way may leave a decision behind of which it is not made.
    trial = FeatureProgram(statistic, replace(header, decisions=Decisions()), refine, mechanism)
    rest = gaussian(header.privacy)
    way = header.decide(
        "draws", lambda: "one" if smaller_in_one_draw(trial, rest) else "several", {"one", "several"}.__contains__
    )
    if way == "one":
        return FeatureProgram(statistic, header, refine, mechanism)
    return SECOND_MOMENT.prepared(header, refine=refine, mechanism=mechanism)


def checked_estimand(estimand: object) -> str | None:
    """Return which mean a region or a test is about, or refuse."""
    if estimand is None or (isinstance(estimand, str) and estimand in (FRECHET, _TANGENT)):
        return estimand
    raise InvalidArgumentError(
        '`estimand` must be "frechet" or "tangent" for a region or a test, got {got}.', got=shown(estimand)
    )


def in_one_draw(ball: Ball, estimand: str | None) -> bool:
    """Return whether joint moments about the ball's centre hold the mean that is asked for."""
    return ball.space.is_flat or estimand == _TANGENT


def weight_in(ball: Ball) -> float:
    """Return how much second moments count against means: as much as is free.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> weight_in(Ball(Euclidean(2), [0.0, 0.0], 1.0))
    0.5
    """
    return _LINE_WEIGHT if ball.frame.dim == 1 else JOINT_MOMENTS.weight


def joint_moments_in(ball: Ball) -> JointMomentsAboutCenter:
    """Return the joint moments that regions and tests in a ball are made of."""
    return JointMomentsAboutCenter(weight_in(ball))


REGION = Query(
    name="region",
    title="Mean with a confidence region",
    call=private_region,
    sample=Units,
    plan=region_plan,
    result=ConfidenceRegion,
    options=(LEVEL, ESTIMAND_OF_INFERENCE, REFINE),
    releases=(JOINT_MOMENTS.name, SECOND_MOMENT.name),
    figure="dpmanifold.plots.dispatch:picture_of_region",
    draws=joint_draws,
    views=("npy", "picture", "links"),
)
