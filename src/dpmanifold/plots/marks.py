"""What every picture says about itself: whether it may be shown, what was promised, and about which ball."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import dataclass

from dpmanifold.ball import Ball
from dpmanifold.inference.joint import is_joint
from dpmanifold.privacy import Promise
from dpmanifold.release import Release
from dpmanifold.statistic import Kind

_DIGITS = 4


@dataclass(frozen=True)
class Mark:
    """A stamp on a picture.

    Parameters
    ----------
    text : what it says
    color, background : how it looks; the words carry the meaning without them

    Examples
    --------
    >>> PRIVATE.text
    'private release'
    """

    text: str
    color: str
    background: str


PRIVATE = Mark("private release", "#00664A", "#E5F5F0")
PUBLIC_NUMBERS = Mark("public numbers, no data used", "#444444", "#F4F4F4")
PUBLIC_DATA = Mark("public data", "#7A5300", "#FDF3DC")


def not_private(reason: str) -> Mark:
    """Return the stamp of a picture that must not be taken for a release.

    Examples
    --------
    >>> not_private("seeded").text
    'NOT PRIVATE: seeded'
    """
    return Mark(f"NOT PRIVATE: {reason}", "#A34700", "#FCEBE0")


def mark_of(releases: Sequence[Release]) -> Mark:
    """Return the stamp of a picture of releases: private only if all of them are, with all their steps.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> mark_of([dpm.private_mean([[0.1]] * 20, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, rng=0)]).text
    'NOT PRIVATE: seeded or revealed'
    """
    if any(_simulated(release) for release in releases):
        return not_private("simulated ball")
    if not all(_private(release) for release in releases):
        return not_private("seeded or revealed")
    return PRIVATE


def mark_of_ball(ball: Ball) -> Mark:
    """Return the stamp of a picture made from public numbers, if the ball is one.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> mark_of_ball(Ball(Euclidean(1), [0.0], 1.0)).text
    'public numbers, no data used'
    """
    return not_private("simulated ball") if ball.simulated else PUBLIC_NUMBERS


def footer_of(releases: Sequence[Release]) -> list[str]:
    r"""Return two lines: the promise with the number of units, and the ball with its source.

    The first says what was estimated, if it is not the Fréchet mean.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0, source="by definition")
    >>> release = dpm.private_mean([[0.1]] * 20, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> print("\n".join(footer_of([release])))
    GDP(mu=1.0) for each record, 20 of them. Mechanism: wrapped-gaussian.
    Ball: radius 1 on Euclidean(1), by definition.
    """
    first = releases[0]
    counts = " and ".join(f"{release.n:,}" for release in releases) + " of them"
    if len(releases) > 2:
        counts = f"{sum(release.n for release in releases):,} of them in {len(releases)} groups"
    names = list(dict.fromkeys(name for release in releases for name in _mechanisms(release)))
    said = f"Mechanism{'s' if len(names) > 1 else ''}: {', '.join(names)}."
    kinds = dict.fromkeys(kind for release in releases for kind in _estimands(release) if kind != "frechet mean")
    said += "".join(f" Estimand: the {kind}." for kind in kinds)
    return [f"{promise_text(first.privacy)} for each {first.unit}, {counts}. {said}", ball_line(first.ball)]


def promise_text(promise: Promise) -> str:
    """Return a promise with parameters of at most four digits, rounded up: what it says stays true.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> promise_text(GDP(1.0)), promise_text(GDP(0.23975221317824555))
    ('GDP(mu=1.0)', 'GDP(mu=0.2398)')
    >>> promise_text(GDP("0.3"))
    'GDP(mu=0.3)'
    """
    typed = {name: value for name, value in promise.stated.items() if isinstance(value, str)}
    said = (
        f"{name}={typed.get(name) or _rounded_up(value)}"
        for name, value in zip(promise.stated, promise.above, strict=True)
    )
    return f"{type(promise).__name__}({', '.join(said)})"


def _rounded_up(value: float) -> str:
    if len(repr(value)) <= _DIGITS + 2:
        return repr(value)
    # As decimals, exactly: a double may lie below what it prints as.
    context = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(value)):.{_DIGITS}g}"


def ball_line(ball: Ball) -> str:
    """Return a ball in one line, with the source that its owner stated.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean, Sphere
    >>> ball_line(Ball(Euclidean(1), [0.0], 1.0))
    'Ball: radius 1 on Euclidean(1), of unstated source.'
    >>> ball_line(Ball.whole(Sphere(2)))
    'No ball: the whole of Sphere(2).'
    """
    if ball.is_whole:
        return f"No ball: the whole of {ball.space!r}{', ' if ball.source else ''}{ball.source.rstrip('.')}."
    source = ball.source.rstrip(".") or "of unstated source"
    return f"Ball: radius {ball.radius:.4g} on {ball.space!r}, {source}."


def _private(release: Release) -> bool:
    """A file may claim what its steps deny: the steps decide."""
    return release.private and all(_private(step) for step in release.steps)


def _simulated(release: Release) -> bool:
    return release.ball.simulated or any(_simulated(step) for step in release.steps)


def _mechanisms(release: Release) -> list[str]:
    """Names in the order in which the steps were taken."""
    return [*(name for step in release.steps for name in _mechanisms(step)), release.mechanism]


def _estimands(release: Release) -> list[str]:
    """Which means were released, in the same order; of a point that is no mean, what it is and not what it rests on."""
    if release.estimand is None and release.definition.kind is Kind.POINT:
        return [release.definition.words.partition(" (")[0]]
    found = [kind for step in release.steps for kind in _estimands(step)]
    if is_joint(release) and not release.ball.space.is_flat:
        return [*found, "tangent mean"]
    return found if release.estimand is None else [*found, f"{release.estimand} mean"]
