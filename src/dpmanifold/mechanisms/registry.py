"""All mechanisms by name, and the choice of the best one: from public quantities alone.

Other distributions add theirs by entry points in the group `dpmanifold.mechanisms`, scripts by `MECHANISMS.register`.
They are used where they are asked for by name; "auto" only ever takes one of the library's own.
"""

from __future__ import annotations

from functools import lru_cache

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms.base import Calibration, Forecast, Mechanism, pure_epsilon
from dpmanifold.mechanisms.estimands import (
    ExtrinsicGaussianMechanism,
    ExtrinsicLaplaceMechanism,
    ExtrinsicMean,
    TangentMean,
)
from dpmanifold.mechanisms.kng import GradientMechanism
from dpmanifold.mechanisms.riemannian import (
    ExactGaussianMechanism,
    RiemannianGaussianMechanism,
    RiemannianLaplaceMechanism,
    TruncatedLaplaceMechanism,
)
from dpmanifold.mechanisms.shared import PROFILED
from dpmanifold.mechanisms.wrapped import (
    ClassicalGaussianMechanism,
    WrappedGaussianMechanism,
    WrappedLaplaceMechanism,
)
from dpmanifold.privacy import Profile, Promise, PromiseError, loss_profile
from dpmanifold.privacy.profile import Law
from dpmanifold.registry import Registry
from dpmanifold.sensitivity import Sensitivity

MECHANISMS: Registry[Mechanism] = Registry("mechanism", "dpmanifold.mechanisms", Mechanism)
"""All mechanisms, those of other distributions last."""

_OWN = (
    RiemannianLaplaceMechanism(),
    TruncatedLaplaceMechanism(),
    WrappedLaplaceMechanism(),
    GradientMechanism(),
    WrappedGaussianMechanism(),
    ClassicalGaussianMechanism(),
    RiemannianGaussianMechanism(),
    ExactGaussianMechanism(),
    TangentMean("laplace"),
    TangentMean("gaussian"),
    ExtrinsicMean("laplace"),
    ExtrinsicMean("gaussian"),
    ExtrinsicLaplaceMechanism(),
    ExtrinsicGaussianMechanism(),
)
for _mechanism in _OWN:
    MECHANISMS.register(_mechanism.name, _mechanism)

Choice = tuple[Mechanism, Calibration, Forecast]

AUTO = "auto"
# From this part of a flat ball's radius on, what can be saved after the draw counts for more than the noise itself.
_MUCH_NOISE = 0.25
ESTIMANDS = ("frechet", "tangent", "extrinsic")
"""Which means there are (theory: estimands)."""


def get(mechanism: str | Mechanism) -> Mechanism:
    """Return a mechanism by name, or the one that is given.

    One that is given need not be registered, but then its name must be its own: a release states the name, and whoever
    verifies it looks the name up.

    Examples
    --------
    >>> get("wrapped-gaussian").estimand
    'frechet'
    >>> get(get("wrapped-gaussian")).name
    'wrapped-gaussian'
    """
    if isinstance(mechanism, Mechanism):
        known = MECHANISMS.find(mechanism.name)
        if mechanism.name == AUTO or not (known is None or type(known) is type(mechanism)):
            raise InvalidArgumentError(
                f'`mechanism` has the name "{mechanism.name}", which stands for another one: give it a name of its own.'
            )
        return mechanism
    found = MECHANISMS.find(mechanism)
    if found is None:
        raise InvalidArgumentError(
            f'`mechanism` must be "auto", a Mechanism or one of {", ".join(sorted(MECHANISMS.names()))}, got '
            f"{shown(mechanism)}."
        )
    return found


def attempt(
    mechanism: Mechanism, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None
) -> tuple[Calibration, Forecast] | str:
    """Return calibration and forecast, or the reason why the mechanism cannot keep the promise there.

    `bound` is the sensitivity of another point-valued statistic than the mean, as in :meth:`Mechanism.calibrate`.
    """
    calibration = _calibrated(mechanism, ball, n, privacy, bound)
    if isinstance(calibration, str):
        return calibration
    forecast = _forecast(mechanism, ball, n, calibration)
    return forecast if isinstance(forecast, str) else (calibration, forecast)


def _calibrated(
    mechanism: Mechanism, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None
) -> Calibration | str:
    if ball.is_whole and mechanism.needs_ball:
        return "it needs a ball, and this is the whole space"
    reason = mechanism.refusal(ball, privacy)
    if reason is not None:
        return reason
    try:
        return mechanism.calibrate(ball, n, privacy, bound)
    except (InvalidArgumentError, PromiseError) as problem:
        return str(problem)


def forecast_of(mechanism: Mechanism, ball: Ball, n: int, calibration: Calibration) -> Forecast:
    """Return :meth:`Mechanism.forecast`, made once for all who ask: a record alone states six numbers of it.

    Examples
    --------
    >>> from dpmanifold import Ball, PureDP, Sphere
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> calibration, forecast = attempt(get("riemannian-laplace"), ball, 100, PureDP(1.0))
    >>> forecast_of(get("riemannian-laplace"), ball, 100, calibration) is forecast
    True
    """
    found = _forecast(mechanism, ball, n, calibration)
    return mechanism.forecast(ball, n, calibration) if isinstance(found, str) else found  # asked again, it raises


def _forecast(mechanism: Mechanism, ball: Ball, n: int, calibration: Calibration) -> Forecast | str:
    # The library's own never change. Another one may, and need not be hashable.
    own = any(mechanism is one for one in _OWN)
    return (_remembered_forecast if own else _new_forecast)(mechanism, ball, n, calibration)


def _new_forecast(mechanism: Mechanism, ball: Ball, n: int, calibration: Calibration) -> Forecast | str:
    try:
        return mechanism.forecast(ball, n, calibration)
    except (InvalidArgumentError, PromiseError) as problem:
        return str(problem)


# A function of public numbers: the same question is often asked again, and a release asks it twice.
_remembered_forecast = lru_cache(maxsize=1024)(_new_forecast)


def checked_estimand(estimand: object) -> str | None:
    """Return the name of a mean, or None; or say which there are.

    Examples
    --------
    >>> checked_estimand("tangent")
    'tangent'
    """
    if estimand is None or (isinstance(estimand, str) and estimand in ESTIMANDS):
        return estimand
    raise InvalidArgumentError(
        f"`estimand` must be one of {', '.join(ESTIMANDS)}, or None for what the mechanism estimates, got "
        f"{shown(estimand)}."
    )


def choose(
    name: str | Mechanism,
    ball: Ball,
    n: int,
    privacy: Promise,
    estimand: str | None = None,
    bound: Sensitivity | None = None,
) -> Choice:
    """Return the mechanism asked for, or with "auto" the best of those that keep the promise for the estimand.

    "auto" prefers exact draws to doubles, then a running time that does not depend on the data, and among equals takes
    the smallest expected noise.

    Parameters
    ----------
    name : of a mechanism, or a Mechanism, or "auto", which takes one of the library's own
    ball, n, privacy : public, as everywhere
    estimand : "frechet", "tangent" or "extrinsic"; None is the Fréchet mean with "auto", and with a name whatever that
        mechanism estimates. A mechanism of another mean is refused
    bound : the sensitivity of another statistic whose value is a point of the ball; of the mean if None

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.privacy import PureDP
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> choose("auto", ball, 500, PureDP(1.0))[0].name
    'riemannian-laplace'
    >>> choose("auto", ball, 500, PureDP(1.0), "tangent")[0].name
    'tangent-mean-laplace'
    """
    estimand = checked_estimand(estimand)
    if isinstance(name, Mechanism) or name != AUTO:
        mechanism = get(name)
        if estimand not in (None, mechanism.estimand):
            raise InvalidArgumentError(
                f'mechanism "{mechanism.name}" is for `estimand="{mechanism.estimand}"`, got `estimand="{estimand}"`. '
                "Change one of them, or leave `estimand` out."
            )
        if ball.is_whole and mechanism.needs_ball:
            raise InvalidArgumentError(
                f'mechanism "{mechanism.name}" needs a ball, got {ball!r}. Give a center and a radius; only extrinsic '
                "means do without."
            )
        found = attempt(mechanism, ball, n, privacy, bound)
        if isinstance(found, str):
            raise PromiseError(
                f'mechanism "{mechanism.name}" cannot keep {privacy!r} on {ball.space!r}: {found.rstrip(".")}. '
                f"{_nearest(ball, n, privacy, mechanism.estimand, bound)}"
            )
        return mechanism, *found
    # Spaces of others need not be told apart by what they say they are.
    best = (_best if ball.space.foreign else _remembered_best)(estimand, ball, n, privacy, bound)
    if not isinstance(best, str):
        return best
    if ball.is_whole and estimand != "extrinsic":
        raise InvalidArgumentError(
            f'this mean needs a ball, got {ball!r}. Give a center and a radius, or ask for `estimand="extrinsic"`.'
        )
    if estimand == "extrinsic" and ball.frame.embedding(ball.radius) is None:
        raise InvalidArgumentError(f'`estimand` must be "frechet" or "tangent" on {ball.space!r}: {best}.')
    raise PromiseError(
        f"no mechanism can keep {privacy!r} for n = {n} on {ball.space!r} in this ball: {best}. Use more units, a "
        "weaker promise, a smaller ball or another estimand."
    )


def _best(estimand: str | None, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None) -> Choice | str:
    """Return the first choice of :func:`preference`, or why there is none; who cannot win is not calibrated."""
    able = candidates(estimand)
    best: tuple[tuple[bool, bool, float, float, int], Choice] | None = None
    reasons: list[tuple[bool, int, str]] = []
    for mechanism in sorted(able, key=lambda one: (_likeliest_kind(one, ball), one.searches)):
        place = able.index(mechanism)
        if best is not None:
            of_best = best[0][:2]
            kind = _likeliest_kind(mechanism, ball)
            if kind > of_best or (kind == of_best and mechanism.exceeds(best[0][2], ball, n, privacy, bound)):
                continue
        calibration = _calibrated(mechanism, ball, n, privacy, bound)
        if isinstance(calibration, str):
            reasons.append((False, place, calibration))
            continue
        if best is not None and _kind(mechanism, ball, calibration) > best[0][:2]:
            continue
        forecast = _forecast(mechanism, ball, n, calibration)
        if isinstance(forecast, str):
            reasons.append((True, place, forecast))
            continue
        rank = (*preference(mechanism, ball, calibration, forecast), place)
        if best is None or rank < best[0]:
            best = rank, (mechanism, calibration, forecast)
    return best[1] if best else min(reasons)[2].rstrip(".")


# A function of public numbers, which the same ball is asked for again and again.
_remembered_best = lru_cache(maxsize=1024)(_best)


def _likeliest_kind(mechanism: Mechanism, ball: Ball) -> tuple[bool, bool]:
    """Return the best that :func:`_kind` can be, whatever the scale."""
    return not mechanism.may_be_exact(ball), not mechanism.covers_timing


def _kind(mechanism: Mechanism, ball: Ball, calibration: Calibration) -> tuple[bool, bool]:
    return not mechanism.offers_exact(ball, calibration), not mechanism.covers_timing


def _error(ball: Ball, calibration: Calibration, forecast: Forecast) -> tuple[float, float]:
    """Return what mechanisms are compared by: the expected noise, and its length.

    Where that is a large part of a flat ball, normal noise can be moved towards the centre afterwards, which saves more
    than the exact profile of the Laplace law does: that law then counts with what its pure promise would take.
    """
    error, length = _expected(forecast)
    if calibration.rule == PROFILED and ball.space.is_flat and error > _MUCH_NOISE * ball.radius:
        share = calibration.sensitivity.value / calibration.scale / pure_epsilon(calibration.privacy)
        return error * share, length * share
    return error, length


@lru_cache(maxsize=1024)
def _expected(forecast: Forecast) -> tuple[float, float]:
    return forecast.mean, forecast.length


def preference(
    mechanism: Mechanism, ball: Ball, calibration: Calibration, forecast: Forecast
) -> tuple[bool, bool, float, float]:
    """Return what "auto" and plans sort by: exact draws first, then covered timing, then the expected noise.

    At last the length of the noise where it is drawn: it tells mechanisms apart if no error can be promised at all.
    """
    return *_kind(mechanism, ball, calibration), *_error(ball, calibration, forecast)


def candidates(estimand: str | None = None, everything: bool = False) -> list[Mechanism]:
    """Return the mechanisms that "auto" looks at for a mean (the Fréchet mean if None), or everything that hides it.

    "auto" looks at the library's own; everything includes what other distributions offer.

    Examples
    --------
    >>> [mechanism.name for mechanism in candidates("extrinsic")]
    ['extrinsic-mean-laplace', 'extrinsic-mean-gaussian']
    """
    wanted = estimand or "frechet"
    if everything:
        return [m for m in MECHANISMS if m.estimand == wanted]
    return [m for m in _OWN if m.estimand == wanted and m.automatic and not m.baseline]


def usual(estimand: str = "frechet", *, noise: str, about: str = "") -> Mechanism:
    """Return the library's mechanism that others build on, by what it adds and where.

    Examples
    --------
    >>> usual(noise="gaussian", about="mean").name, usual("tangent", noise="laplace").name
    ('riemannian-gaussian', 'tangent-mean-laplace')
    """
    wanted = (estimand, noise, about, False)
    return next(m for m in _OWN if (m.estimand, m.noise, m.about, m.standalone) == wanted)


def _nearest(ball: Ball, n: int, privacy: Promise, estimand: str, bound: Sensitivity | None) -> str:
    able = [m.name for m in candidates(estimand) if not isinstance(attempt(m, ball, n, privacy, bound), str)]
    return f"These can: {', '.join(able)}." if able else "No mechanism can; weaken the promise or shrink the ball."


def profile_of(ball: Ball, calibration: Calibration) -> Profile:
    """Return delta(epsilon), as an upper bound, of a mechanism at the sensitivity it was calibrated to.

    For the Riemannian Laplace and Gaussian on spheres and planar shapes; refused elsewhere, with the reason.

    Parameters
    ----------
    ball : the public ball
    calibration : of a mechanism, or of a release (`release.calibration`)

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.mechanisms import get
    >>> from dpmanifold.privacy import GDP, gdp_delta
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.6)
    >>> calibration = get("riemannian-gaussian").calibrate(ball, 20, GDP(1.0))
    >>> bool(profile_of(ball, calibration).delta(0.5) <= gdp_delta(1.0, 0.5))
    True
    """
    mechanism = get(calibration.mechanism)
    if mechanism.about != "mean":
        known = ", ".join(other.name for other in MECHANISMS if other.about == "mean")
        raise InvalidArgumentError(f"the exact profile of {mechanism.name} is not known; it is for {known}.")
    law: Law = "laplace" if mechanism.noise == "laplace" else "gaussian"
    return loss_profile(ball.frame, law, calibration.scale, calibration.sensitivity.value)
