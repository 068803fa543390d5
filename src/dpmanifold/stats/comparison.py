"""A release against the data it came from, where these are public. NOT PRIVATE."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import coordinates
from dpmanifold.inference.joint import CentralMean, estimate_of, is_joint
from dpmanifold.mechanisms import get
from dpmanifold.release import Release
from dpmanifold.sources import as_source
from dpmanifold.statistic import Kind
from dpmanifold.stats.draws import hidden_mean
from dpmanifold.stats.inputs import as_batch, checked_units, is_each_record, number_of_records


@dataclass(frozen=True)
class Comparison:
    """A release against public data. NOT PRIVATE: for data that may be shown.

    Attributes
    ----------
    error : distance of the released value from the Fréchet mean of the data (without a ball: from the mean that was
        hidden)
    noise : distance from the mean that was hidden, of the clipped data (clipped to the public ball and, if refined,
        units' averages to the smaller one)
    clipping : distance between that mean and the Fréchet mean of the data; for a tangent or extrinsic mean the
        difference of the two kinds is in it
    clipped : share of the units that a refined ball leaves out; else share of the records outside the ball
    private : always False
    """

    error: float
    noise: float
    clipping: float
    clipped: float
    private: bool = False


def compare(release: Release, X: object, *, units: object, public: bool = False) -> Comparison:
    """Compare a released mean with the data it came from, if these are public.

    Parameters
    ----------
    release : the release of a mean, or of joint moments, as `mean.release` of a region may be: their mean is compared,
        moved as the region's centre is
    X, units : the records and who owns them, as they were given to :func:`private_mean`; both required
    public : must be True

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import PureDP
    >>> from dpmanifold.stats import EACH_RECORD, private_mean
    >>> X = np.linspace(-1.5, 1.5, 101)[:, None]
    >>> release = private_mean(X, Ball(Euclidean(1), [0.0], 1.0), PureDP(1.0), units=EACH_RECORD)
    >>> round(compare(release, X, units=EACH_RECORD, public=True).clipped, 2)
    0.34
    """
    if public is not True:
        raise InvalidArgumentError(
            "public must be True: the true error tells about the data. Compare only where the data may be shown."
        )
    if not isinstance(release, Release):
        raise InvalidArgumentError(
            "release must be a Release, got {got}. Of a region, give mean.release.", got=shown(release)
        )
    joint = _joint_mean(release)
    if release.estimand is None and joint is None:
        raise InvalidArgumentError("release must be a mean, got a {statistic}.", statistic=release.statistic)
    if as_source(X) is not None:
        raise InvalidArgumentError("`X` must be an array or a list here, got a source of records. Read them into one.")
    ball, space = release.ball, release.ball.space
    X = as_batch(X, ball, units=units)
    checked_units(units, number_of_records(X))
    owners = None if is_each_record(units) else units
    released = release.value if joint is None else joint.value
    clipped_mean, outside = _hidden(release, joint, X, owners)
    # Data all over a sphere may have no Fréchet mean: without a ball the mean that was hidden is all there is.
    true_mean = clipped_mean if ball.is_whole else frechet.mean(X, space, units=owners).value
    return Comparison(
        error=float(space.dist(true_mean, released)),
        noise=float(space.dist(clipped_mean, released)),
        clipping=float(space.dist(true_mean, clipped_mean)),
        clipped=outside,
    )


def _hidden(release: Release, joint: CentralMean | None, X: Any, owners: Any) -> tuple[Array, float]:
    """Return the mean that a release hides, and the share of the units or records that were cut on the way to it."""
    ball = release.ball
    own = release.definition.hidden(release, lambda: frechet.unit_points(X, ball, units=owners))
    if own is not None:
        return own
    outer = next((step.ball for step in release.steps if step.definition.kind is Kind.BALL), ball)
    points = frechet.unit_points(X, outer, units=owners)
    outside = 1 - outer.contains(X).mean()
    if outer != ball:
        outside = 1 - points.each(lambda block: ball.contains(outer.from_frame(block))).mean()
        points = points.in_ball(ball)
    if joint is None:
        in_frame = hidden_mean(ball, get(release.mechanism), points)
    else:  # the tangent mean, moved as the released one was: what moves it is public
        in_frame = joint.placed(points.mean_of(lambda block: _logarithms(block, ball), ball.radius) / joint.middle)
    return ball.from_frame(in_frame[None])[0], float(outside)


def _joint_mean(release: Release) -> CentralMean | None:
    """Return the mean that joint moments hold; None of other releases, which are means themselves or have none."""
    if not is_joint(release):
        return None
    found = estimate_of(release).mean
    assert isinstance(found, CentralMean)
    return found


def _logarithms(block: Array, ball: Ball) -> FloatArray:
    return ball.radius * coordinates(block, ball)
