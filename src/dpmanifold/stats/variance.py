"""The private Fréchet variance about a released or public point (theory section 6)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import get
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise
from dpmanifold.privacy.budget_accounts import Account
from dpmanifold.release import Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS, Header, Kind, Step
from dpmanifold.stats.asking import Terms, ask
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Hidden, checked_arithmetic, choose_for, mean_step, refuse_inexact
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.mean import MEAN, draw_mean
from dpmanifold.stats.moment_chain import EXCESS, REFERENCE, Moment, excess_about, located, mean_power
from dpmanifold.stats.program import Drawing, Program
from dpmanifold.stats.query import MECHANISM, Option, Query
from dpmanifold.stats.samples import Units

# Without a point to go by, half the promise pays for the mean and half for the variance.
VARIANCE_SHARES = (0.5, 0.5)


def private_variance(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object,
    about: object = None,
    mechanism: Any = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | Account | None = None,
    key: str | None = None,
    rng: Rng = None,
) -> Release:
    """Release the mean squared distance of clipped records from a point, as an estimate of the Fréchet variance.

    About a released mean the moment exceeds the variance by the noise's own second moment, which is public and is
    subtracted (where it is exact and small against the ball). The value is never below 0.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, key, rng : as in :func:`private_mean`
    about : a Release of the mean, or a public point; spends on the variance alone. Without it half the promise
        pays for a mean first, which comes back in `steps`
    mechanism : for the mean, if one is needed

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD
    >>> ball = Ball(Euclidean(1), [0.0], 4.0)
    >>> X = np.random.default_rng(0).standard_normal((4000, 1))
    >>> release = private_variance(X, ball, GDP(1.0), units=EACH_RECORD)
    >>> abs(release.value - 1) < 0.2
    True
    """
    terms = Terms(units, invalid, curator, confirm, arithmetic, budget, key, rng)
    question = VARIANCE_QUERY.asked(about=about, mechanism=mechanism)
    return ask(question, Units(X), ball, privacy, terms).release


class Variance(Moment):
    """The mean squared distance from a point, less what noise on that point adds."""

    name, words, kind = "variance", "Fréchet variance (squared distance)", Kind.NUMBER
    details = frozenset({REFERENCE, EXCESS})
    power = 2
    projected = True

    def prepared(self, header: Header, *, about: object = None, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Plan it about a point that is public or was released before, or about a mean that half the promise buys."""
        require_ball(header.ball)
        return _AboutMean(header, mechanism) if about is None else _AboutPoint(header, about)

    def sensitivity(self, ball: Ball, n: int, away: float) -> Sensitivity:
        """Bound its change."""
        return sensitivity.of_variance(ball, n, away=away)

    def exact(self, points: UnitPoints, at: Array, reach: float) -> FloatArray:
        """Return the mean squared distance."""
        return mean_power(points, at, reach, self.power)

    def value(self, numbers: FloatArray, details: dict[str, float]) -> float:
        """Return the number less the excess, never below 0."""
        return max(0.0, float(numbers[0]) - details[EXCESS])

    def limits(self, ball: Ball) -> tuple[float, float]:
        """Return 0 and the squared radius, which no variance in the ball exceeds."""
        return 0.0, ball.effective_radius**2


VARIANCE = Variance()
STATISTICS.register(VARIANCE.name, VARIANCE)


class _AboutPoint(Program[UnitPoints]):
    """A variance about a point that is public, or the release of a mean that was paid for before."""

    def __init__(self, header: Header, about: object) -> None:
        simulated = isinstance(about, Release) and not about.private
        # About a simulated mean nothing private comes out.
        self.header = replace(header, private=header.private and not simulated)
        self._point, self._excess = _reference(about, header.ball)
        frechet.default_tol(header.ball, header.n)  # refuses balls too large to tell distances in
        checked_arithmetic(header.arithmetic)
        self._step = VARIANCE.step(header, header.privacy, located(header.ball, self._point)[1], exact=True)

    def steps(self) -> tuple[Step, ...]:
        """Return the one draw."""
        return (self._step,)

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Draw it."""
        header = self.header
        return VARIANCE.draws(units, header, header.privacy, self._point, details={EXCESS: self._excess})


class _AboutMean(Program[UnitPoints]):
    """A mean, and the variance about it."""

    def __init__(self, header: Header, mechanism: Any) -> None:
        ball = header.ball
        self.header, self._shares = header, divide(header.privacy, VARIANCE_SHARES)
        self._chosen = choose_for(header, mechanism, self._shares[0], FRECHET)
        if self._chosen[0].baseline:
            raise InvalidArgumentError(
                f'mechanism "{self._chosen[0].name}" is a baseline whose mean need not be a point.'
            )
        refuse_inexact(header.arithmetic, self._chosen[0], ball, self._chosen[1])
        self._second = VARIANCE.step(header, self._shares[1], ball.radius, exact=False)

    def steps(self) -> tuple[Step, ...]:
        """Return both draws, the second about a mean at the edge: the largest."""
        return (mean_step(MEAN, self.header, self._chosen), self._second)

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Draw the mean, then the variance."""
        header = self.header
        mean: Release = yield from draw_mean(units, header.promising(self._shares[0]), self._chosen)
        point, excess = _reference(mean, header.ball)
        return (yield from VARIANCE.draws(units, header, self._shares[1], point, (mean,), {EXCESS: excess}))


def _reference(about: object, ball: Ball) -> tuple[Array, float]:
    """Return the point (clipped when it is moved into the frame) and the public excess of the moment about it."""
    if not isinstance(about, Release):
        return ball.space.as_points(about, "about", batch=False), 0.0
    if about.estimand is None or about.ball.space != ball.space or get(about.mechanism).baseline:
        raise InvalidArgumentError(
            f"`about` must be the release of a mean on {ball.space!r}, got a {about.statistic} on {about.ball.space!r}."
        )
    # The excess is that of the draw itself, before it was moved towards the centre.
    point = about.value if about.raw is None else about.raw
    return np.asarray(point), excess_about(about, ball)


ABOUT = Option(
    "about", "release", "About a released mean", "A mean that was released before: costs less.", planned=False
)
VARIANCE_QUERY = Query(
    name="variance",
    title="Fréchet variance",
    call=private_variance,
    sample=Units,
    plan=VARIANCE.prepared,
    options=(MECHANISM, ABOUT),
    releases=(VARIANCE.name,),
    views=(),
    squares=False,
)
