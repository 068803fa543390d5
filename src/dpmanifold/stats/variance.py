"""The private Fréchet variance about a released or public point (theory section 6)."""

from __future__ import annotations

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import Array
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import choose, get
from dpmanifold.noise.source import Rng
from dpmanifold.privacy import Budget, Promise, PureDP, gaussian_scale, laplace_scale
from dpmanifold.release import DRAW_COVERED, Release
from dpmanifold.stats.curator import Curator
from dpmanifold.stats.draws import Bits, fresh_bits, noisy, refuse_inexact, stated
from dpmanifold.stats.inputs import Told, divide, prepare, spend
from dpmanifold.stats.mean import release_mean
from dpmanifold.stats.sealed import sealed

# Without a point to go by, half the promise pays for the mean and half for the variance.
VARIANCE_SHARES = (0.5, 0.5)


def private_variance(
    X: object,
    ball: Ball,
    privacy: Promise,
    *,
    units: object = None,
    about: object = None,
    mechanism: str = "auto",
    invalid: str = "raise",
    curator: Curator | None = None,
    confirm: bool = False,
    arithmetic: str = "auto",
    budget: Budget | None = None,
    rng: Rng = None,
) -> Release:
    """Release the mean squared distance of clipped records from a point, as an estimate of the Fréchet variance.

    About a released mean the moment exceeds the variance by the noise's own second moment, which is public and is
    subtracted (where it is exact and small against the ball). The value is never below 0.

    Parameters
    ----------
    X, ball, privacy, units, invalid, curator, confirm, arithmetic, budget, rng : as in :func:`private_mean`
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
    points = prepare(X, ball, privacy, units, invalid, Told(curator, confirm))
    n = len(points)
    require_ball(ball)
    if about is not None:
        point, excess = _reference(about, ball)
        frechet.default_tol(ball, n)  # refuses balls too large to tell distances in
        bits = fresh_bits(rng, ball, arithmetic)
        bits = bits._replace(private=bits.private and not (isinstance(about, Release) and not about.private))
        spend(budget, privacy, "variance")
        return _variance(points, privacy, privacy, point, excess, bits, ())
    shares = divide(privacy, VARIANCE_SHARES)
    chosen = choose(mechanism, ball, n, shares[0], "frechet")[:2]
    if chosen[0].baseline:
        raise InvalidArgumentError(f'mechanism "{chosen[0].name}" is a baseline whose mean need not be a point.')
    refuse_inexact(arithmetic, chosen[0], ball, chosen[1])
    bits = fresh_bits(rng, ball, arithmetic)
    spend(budget, privacy, "mean and variance")
    mean = release_mean(points, shares[0], chosen, True, bits)
    return release_variance(points, privacy, shares[1], mean, _reference(mean, ball)[1], bits)


def release_variance(
    points: UnitPoints,
    total: Promise,
    share: Promise,
    mean: Release,
    excess: float,
    bits: Bits,
) -> Release:
    """Release the variance about a mean that was released from the same points, which becomes its step."""
    return _variance(points, total, share, _reference(mean, points.ball)[0], excess, bits, (mean,))


def mean_power(points: UnitPoints, at: Array, reach: float, power: int) -> float:
    """Return the mean of a power of the units' distances from a point of the frame, none counted beyond `reach`."""
    frame = points.ball.frame
    found = points.mean_of(lambda block: np.minimum(frame.dist(at, block), reach)[:, None] ** power, reach**power)
    return float(found[0])


def located(ball: Ball, point: Array) -> tuple[Array, float]:
    """Return a released point in the ball's frame and its distance from the origin there. Never raises."""
    return sealed(lambda: ball.locate(point), lambda: (ball.frame.origin, 0.0))


def _reference(about: object, ball: Ball) -> tuple[Array, float]:
    """Return the point (clipped when it is moved into the frame) and the public excess of the moment about it."""
    if not isinstance(about, Release):
        return ball.space.as_points(about, "about", batch=False), 0.0
    if about.statistic != "mean" or about.ball.space != ball.space or get(about.mechanism).baseline:
        raise InvalidArgumentError(
            f"about must be the release of a mean on {ball.space!r}, got a {about.statistic} on {about.ball.space!r}."
        )
    # The excess is that of the draw itself, before it was moved towards the centre.
    point = about.value if about.raw is None else about.raw
    return np.asarray(point), excess_about(about, ball)


def excess_about(mean: Release, ball: Ball) -> float:
    """Return what noise on a released mean adds to a moment about it, where a simple correction is right."""
    forecast = get(mean.mechanism).forecast(mean.ball, mean.n, mean.calibration)
    # Moving the draw into the ball cuts noise that is large against it: no simple correction is right then.
    small = forecast.exact and forecast.second_moment <= ball.radius**2 / 4
    return forecast.second_moment if small else 0.0


def _variance(
    points: UnitPoints,
    total: Promise,
    share: Promise,
    point: Array,
    excess: float,
    bits: Bits,
    steps: tuple[Release, ...],
) -> Release:
    ball, n = points.ball, len(points)
    at, apart = located(ball, point)
    bound = sensitivity.of_variance(ball, n, away=apart)
    # Distances beyond what the bound allows are rounding: cut, so that the bound holds for what is computed.
    reach = np.sqrt(sensitivity.of_variance(ball, 1, away=apart).value)
    exact = sealed(lambda: mean_power(points, at, float(reach), 2), lambda: 0.0)
    if isinstance(share, PureDP):
        law, scale, rule = "laplace", laplace_scale(bound.value, share), "Delta/epsilon"
    else:
        law, scale, rule = "gaussian", gaussian_scale(bound.value, share), "Gaussian"
    moment = noisy(exact, law, scale, float(reach) ** 2, bits)
    value = max(0.0, float(moment.numbers[0]) - excess)
    return Release(
        statistic="variance",
        value=value,
        privacy=total,
        share=share,
        mechanism=law,
        scale=scale,
        rule=rule,
        sensitivity=bound,
        ball=ball,
        n=n,
        unit=points.unit,
        tol=frechet.default_tol(ball, n),
        projected=True,
        private=bits.private,
        timing=steps[0].timing if steps else DRAW_COVERED,
        steps=steps,
        details={"excess subtracted": excess, "reference to centre": apart},
        **stated(moment),
    )
