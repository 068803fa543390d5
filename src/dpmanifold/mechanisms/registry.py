"""All mechanisms by name, and the choice of the best one: from public quantities alone."""

from __future__ import annotations

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms.base import Calibration, Forecast, Mechanism
from dpmanifold.mechanisms.extrinsic import ExtrinsicGaussianMechanism, ExtrinsicLaplaceMechanism
from dpmanifold.mechanisms.kng import GradientMechanism
from dpmanifold.mechanisms.riemannian_gaussian import (
    ExactGaussianMechanism,
    RiemannianGaussianMechanism,
)
from dpmanifold.mechanisms.riemannian_laplace import RiemannianLaplaceMechanism, TruncatedLaplaceMechanism
from dpmanifold.mechanisms.wrapped import (
    ClassicalGaussianMechanism,
    WrappedGaussianMechanism,
    WrappedLaplaceMechanism,
)
from dpmanifold.privacy import Promise, PromiseError

MECHANISMS: dict[str, Mechanism] = {
    mechanism.name: mechanism
    for mechanism in (
        RiemannianLaplaceMechanism(),
        TruncatedLaplaceMechanism(),
        WrappedLaplaceMechanism(),
        GradientMechanism(),
        WrappedGaussianMechanism(),
        ClassicalGaussianMechanism(),
        RiemannianGaussianMechanism(),
        ExactGaussianMechanism(),
        ExtrinsicLaplaceMechanism(),
        ExtrinsicGaussianMechanism(),
    )
}
_ALIASES = {"tangent-gaussian": "wrapped-gaussian"}


def get(name: str) -> Mechanism:
    """Return a mechanism by name or alias.

    Examples
    --------
    >>> get("tangent-gaussian").name
    'wrapped-gaussian'
    """
    known = _ALIASES.get(name, name) if isinstance(name, str) else ""
    if known not in MECHANISMS:
        raise InvalidArgumentError(
            f'mechanism must be "auto" or one of {", ".join(sorted([*MECHANISMS, *_ALIASES]))}, got {shown(name)}.'
        )
    return MECHANISMS[known]


def attempt(mechanism: Mechanism, ball: Ball, n: int, privacy: Promise) -> tuple[Calibration, Forecast] | str:
    """Return calibration and forecast, or the reason why the mechanism cannot keep the promise there."""
    reason = mechanism.refusal(ball, privacy)
    if reason is not None:
        return reason
    try:
        calibration = mechanism.calibrate(ball, n, privacy)
        return calibration, mechanism.forecast(ball, n, calibration)
    except (InvalidArgumentError, PromiseError) as problem:
        return str(problem)


def choose(name: str, ball: Ball, n: int, privacy: Promise) -> tuple[Mechanism, Calibration, Forecast]:
    """Return the mechanism asked for, or with "auto" the one with the smallest expected noise.

    "auto" takes a mechanism that draws doubles, or whose running time depends on the data, only if no other can keep
    the promise.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.privacy import PureDP
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)
    >>> choose("auto", ball, 500, PureDP(1.0))[0].name
    'riemannian-laplace'
    """
    if name != "auto":
        mechanism = get(name)
        found = attempt(mechanism, ball, n, privacy)
        if isinstance(found, str):
            raise PromiseError(
                f'mechanism "{mechanism.name}" cannot keep {privacy!r} on {ball.space!r}: {found.rstrip(".")}. '
                f"{_nearest(ball, n, privacy)}"
            )
        return mechanism, *found
    best: tuple[Mechanism, Calibration, Forecast] | None = None
    for mechanism in MECHANISMS.values():
        if mechanism.baseline or not mechanism.automatic:
            continue
        found = attempt(mechanism, ball, n, privacy)
        if isinstance(found, str):
            continue
        if best is None or preference(mechanism, ball, *found) < preference(best[0], ball, *best[1:]):
            best = (mechanism, *found)
    if best is None:
        raise PromiseError(
            f"no mechanism can keep {privacy!r} for n = {n} on {ball.space!r} in this ball. Use more units, a weaker "
            "promise or a smaller ball."
        )
    return best


def preference(
    mechanism: Mechanism, ball: Ball, calibration: Calibration, forecast: Forecast
) -> tuple[bool, bool, float]:
    """Return what "auto" and plans sort by: exact draws first, then covered timing, then the expected noise."""
    return not mechanism.offers_exact(ball, calibration), not mechanism.covers_timing, forecast.mean


def _nearest(ball: Ball, n: int, privacy: Promise) -> str:
    able = [
        m.name
        for m in MECHANISMS.values()
        if not m.baseline and m.automatic and not isinstance(attempt(m, ball, n, privacy), str)
    ]
    return f"These can: {', '.join(able)}." if able else "No mechanism can; weaken the promise or shrink the ball."
