"""How sure a mean is, as an ellipsoid in coordinates at the mean: what every picture of a mean draws around it.

Of a region the ellipsoid is the region; of a bare mean it is the ball that the noise stays in; without a public ball
there is none. All of it comes from released and public numbers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import ConfidenceRegion, VarianceShares
from dpmanifold.inference.joint import estimate_of
from dpmanifold.manifolds.base import shorten
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.plots import canvas
from dpmanifold.release import Release
from dpmanifold.statistic import Kind

# Of a mean without a region: the probability with which its noise stays inside what is drawn.
NOISE_LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Spread:
    """A released mean and an ellipsoid of offsets {c : c' shape^-1 c <= 1} about it, c in an orthonormal frame.

    Parameters
    ----------
    release : the release of the mean
    center : the mean, a point of the space
    shape : (d, d), what is drawn around it; zeros if no error can be stated
    noise, sampling : its parts (d, d), in the same units; None if there is nothing but noise. What lies outside both
        together is an allowance: the spread of the data was released with noise too
    move : takes offsets (n, d) to points (n, *space.shape)
    variance_shares : shares of noise, sampling and allowance in its squared size; None if there is nothing but noise
    label : what the ellipsoid is, for a legend
    sentence : the same in words, with its size
    """

    release: Release
    center: Array
    shape: FloatArray
    noise: FloatArray | None
    sampling: FloatArray | None
    variance_shares: VarianceShares | None
    move: Callable[[FloatArray], Array]
    label: str
    sentence: str

    @property
    def what(self) -> str:
        """What the point is, in one word."""
        return (
            word_for(self.release) if self.variance_shares is None else "mean"
        )  # of a region, whatever it was drawn with

    def titled(self, what: str) -> str:
        """Return the title of a picture of it: "Mean shape", "Mean shape with its confidence region"."""
        region = "" if self.variance_shares is None else " with its confidence region"
        return f"{self.what.capitalize()} {what}{region}"

    @property
    def is_stated(self) -> bool:
        """Whether there is anything to draw around the mean: without a ball there is not."""
        return bool(self.shape.any())

    @property
    def legend(self) -> tuple[str, str, str, str]:
        """Names of its noise, its sampling, both together and the rest, with their shares of the squared size."""
        noise, sampling, rest = self.variance_shares.percent if self.variance_shares else (100, 0, 0)
        hidden = ": hidden by noise" if sampling == 0 else f", {sampling} %"
        return (
            f"its noise alone, {noise} %",
            f"its sampling alone{hidden}",
            "noise and sampling together",
            f"the rest: allowance for the noisy spread, {rest} %",
        )

    @property
    def together(self) -> FloatArray | None:
        """Noise and sampling without the allowance, (d, d), never beyond the whole; None if there is only noise."""
        if self.noise is None or self.sampling is None:
            return None
        # In coordinates in which the whole is a ball of radius 1, in which nothing may be longer.
        values, vectors = np.linalg.eigh(self.shape)
        root = (vectors * np.sqrt(values)) @ vectors.T
        inverse = (vectors / np.sqrt(values)) @ vectors.T
        shares, axes = np.linalg.eigh(inverse @ (self.noise + self.sampling) @ inverse)
        return np.asarray(root @ (axes * np.minimum(shares, 1.0)) @ axes.T @ root)

    @property
    def reach(self) -> float:
        """Length of the longest half axis."""
        return float(np.sqrt(np.linalg.eigvalsh(self.shape)[-1]))


def released_mean(result: object, picture: str) -> Release:
    """Return the release of a mean that a result is or holds, or say what the picture needs.

    Examples
    --------
    >>> released_mean(3, "sphere")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: sphere draws the Release of a mean or a ConfidenceRegion, got 3. Make one
    with private_mean or private_region; show(result) finds the picture of any other result.
    """
    if isinstance(result, ConfidenceRegion):
        return result.mean.release
    release = result
    if not isinstance(release, Release) or release.definition.kind is not Kind.POINT:
        got = f"the release of a {release.statistic}" if isinstance(release, Release) else shown(result)
        raise InvalidArgumentError(
            f"{picture} draws the Release of a mean or a ConfidenceRegion, got {got}. Make one with private_mean or "
            "private_region; show(result) finds the picture of any other result."
        )
    known = MECHANISMS.find(release.mechanism)  # noise that is added to numbers is none of them
    if known is not None and known.baseline:
        raise InvalidArgumentError(
            f"{picture} cannot draw a mean by {release.mechanism}: a baseline's value need not be a point of the "
            'space. Release it with `mechanism="auto"`.'
        )
    return release


def word_for(release: Release) -> str:
    """Return what a released point is: "mean", of whichever kind, or the name of another statistic.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> word_for(dpm.private_median([[0.1]] * 200, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD))
    'median'
    """
    return release.statistic if release.estimand is None else "mean"


def spread_of(result: Release | ConfidenceRegion, picture: str) -> Spread:
    """Return the mean with what is known about its error.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
    >>> release = dpm.private_mean([[0.1, 0.2]] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> spread = spread_of(release, "tangent")
    >>> spread.label, bool(np.isclose(spread.reach, release.noise_quantile(0.95)))
    ('noise, 95 %', True)
    """
    release = released_mean(result, picture)
    ball, space = release.ball, release.ball.space
    center = point_of(result)
    if isinstance(result, ConfidenceRegion):
        estimate, frame = estimate_of(result.release), ball.frame
        at, most = estimate.mean.at, min(frame.farthest / 2, 0.999 * frame.injectivity_radius)
        level = f"{100 * result.level:g} % confidence region"
        said = f"{level}, longest half axis {result.axes()[0][0]:.3g}; error to expect {result.expected_error:.3g}"
        if result.covers_ball:
            said = f"the {level} holds the whole ball: use more units or a weaker promise"
        return Spread(
            release,
            center,
            result.threshold * result.covariance,
            result.threshold * estimate.mean.noise,
            result.threshold * estimate.sampling_surely,
            result.variance_shares,
            lambda c: ball.from_frame(frame.exp_coords(at, shorten(c, most))),
            level,
            said,
        )
    most = min(space.farthest / 2, 0.999 * space.injectivity_radius)
    radius, label = 0.0, ""
    said = "without a ball no error can be stated: it depends on how closely the records agree"
    if not ball.is_whole:
        radius = min(float(release.noise_quantile(NOISE_LEVEL)), most)
        chance = f"{100 * NOISE_LEVEL:g} %"
        label = f"noise, {chance}"
        said = f"the noise added for privacy stays below {radius:.3g} with {chance}; sampling comes on top"
        besides = release.definition.besides_noise(release)
        if besides is not None:
            said = f"error to expect {release.error():.3g}: noise, {besides[1]}; sampling on top"
    return Spread(
        release,
        center,
        radius**2 * np.eye(space.dim),
        None,
        None,
        None,
        lambda c: space.exp_coords(center, shorten(c, most)),
        label,
        said,
    )


def point_of(result: Release | ConfidenceRegion) -> Array:
    """Return the mean that a picture shows, a point of the space.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> release = dpm.private_mean([[0.1]] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> point_of(release).shape
    (1,)
    """
    return result.center if isinstance(result, ConfidenceRegion) else np.asarray(result.value)


def parent_release(result: Release | ConfidenceRegion) -> Release:
    """Return the release whose promise covers everything that is drawn.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> release = dpm.private_mean([[0.1]] * 50, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> parent_release(release) is release
    True
    """
    return result.release if isinstance(result, ConfidenceRegion) else result


def ellipse(shape: FloatArray, count: int = 241) -> FloatArray:
    """Return the closed curve {c : c' shape^-1 c = 1} of a (2, 2) matrix, (count, 2); singular ones are flat.

    Examples
    --------
    >>> ellipse(np.diag([4.0, 1.0]), 5).round(6) + 0.0
    array([[ 2.,  0.], [ 0.,  1.], [-2.,  0.], [ 0., -1.], [ 2.,  0.]])
    """
    values, vectors = np.linalg.eigh(shape)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return np.asarray(circle(count) @ root)


def circle(count: int, closed: bool = True) -> FloatArray:
    """Return points on the unit circle, (count, 2), of which the last is the first again where it is closed.

    Examples
    --------
    >>> circle(5).round(6) + 0.0
    array([[ 1.,  0.], [ 0.,  1.], [-1.,  0.], [ 0., -1.], [ 1.,  0.]])
    """
    turn = np.linspace(0.0, 2 * np.pi, count, endpoint=closed)
    return np.stack([np.cos(turn), np.sin(turn)], axis=-1)


def draw_parts(
    axes: canvas.Axes,
    spread: Spread,
    curve: Callable[[FloatArray], FloatArray],
    widths: tuple[float, float],
    label: str | None,
) -> FloatArray:
    """Draw the whole of a spread, noise and sampling together in it, and its noise alone; returns its edge, (n, 2).

    Parameters
    ----------
    axes : where
    spread : what is drawn
    curve : takes a (d, d) matrix of offsets to a closed curve on the paper
    widths : of the lines around the whole and around the noise
    label : what the edge is, for the legend
    """
    edge = curve(spread.shape)
    axes.plot(*edge.T, color=canvas.ESTIMATE, linewidth=widths[0], label=label)
    noise, _, together, rest = spread.legend
    inner = spread.together
    axes.fill(*edge.T, color=canvas.ESTIMATE, alpha=0.12, linewidth=0, label=None if inner is None else rest)
    if inner is not None:
        axes.fill(*curve(inner).T, color=canvas.ESTIMATE, alpha=0.22, linewidth=0, label=together)
    if spread.noise is not None:
        axes.plot(*curve(spread.noise).T, color=canvas.NOISE, linewidth=widths[1], linestyle="--", label=noise)
    return edge
