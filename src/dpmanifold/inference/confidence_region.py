"""Confidence regions for a Fréchet mean: Hotelling's T^2 ellipsoids (theory section 7, region)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray, open_fraction, positive_int
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference.estimate import TANGENT, Estimate, ReleasedMean
from dpmanifold.inference.hotelling import squared_length
from dpmanifold.inference.inference_result import FromRelease, VarianceShares
from dpmanifold.inference.joint import CorrectedEstimate, Grown, JointEstimate, estimate_of
from dpmanifold.linalg import symmetrize
from dpmanifold.manifolds.base import shorten
from dpmanifold.release import Release
from dpmanifold.serialization import array_to_json
from dpmanifold.summary import all_told, array_text, told

TANGENT_HINT = (
    "most of the region is an allowance for the noise on the spread. A region for the tangent mean at the ball's "
    'centre needs less of it: estimand="tangent"'
)
GAP_HINT = (
    "a quarter or more of the region's squared size is an allowance for how far the tangent mean that was drawn may be "
    'from the Fréchet mean. A region for the tangent mean needs none: estimand="tangent"'
)


@dataclass(frozen=True, eq=False, repr=False)
class ConfidenceRegion(FromRelease, format="dpmanifold region 2"):
    """A region that holds the population's Fréchet mean with a given confidence, computed from a release.

    An ellipsoid in coordinates: at the ball's centre on flat and Hadamard spaces, where the noise is exactly Gaussian,
    and at the released mean elsewhere. The population is that of units clipped into the ball. From joint moments the
    mean is that of coordinates at the ball's centre: on flat spaces the Fréchet mean, elsewhere the tangent mean, or
    the Fréchet mean if the release was made for it, and then the region is grown by how far the two can be apart.

    Parameters
    ----------
    release : joint moments, or a second moment whose step is the mean, as :func:`private_region` makes them
    level : the confidence, in (0, 1)

    Examples
    --------
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.stats import EACH_RECORD, private_region
    >>> X = np.random.default_rng(0).standard_normal((2000, 2))
    >>> region = private_region(X, Ball(Euclidean(2), [0.0, 0.0], 4.0), GDP(1.0), units=EACH_RECORD)
    >>> bool(region.contains([9.0, 9.0])), region.dominant_source
    (False, 'sampling')
    """

    release: Release
    level: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "level", open_fraction(self.level, "level"))
        _ = self._estimate  # refuses what is no second moment

    @cached_property
    def _estimate(self) -> Estimate | JointEstimate | CorrectedEstimate:
        return estimate_of(self.release)

    # ---------------------------------------------------------------- what was released

    @property
    def mean(self) -> ReleasedMean:
        """The released mean: `mean.value` is the point, and `mean.release` holds it, by itself or in joint moments."""
        return self._estimate.mean

    @property
    def estimand(self) -> str:
        """Which mean it is about: "frechet" or "tangent"."""
        return self._estimate.estimand

    @property
    def center(self) -> Array:
        """The released mean, in the ball."""
        return self.mean.value

    @property
    def number_or_array(self) -> Array:
        """The released mean."""
        return self.center

    # ---------------------------------------------------------------- the ellipsoid

    @cached_property
    def _ellipsoid(self) -> tuple[FloatArray, float]:
        """Covariance in the frame at the released mean, and the squared radius in its units (theory section 7)."""
        estimate, tail = self._estimate, 1 - self.level
        return estimate.safe(tail), estimate.threshold(tail)

    @cached_property
    def _in_chart(self) -> tuple[FloatArray, FloatArray]:
        """Centre and covariance of the ellipsoid in the coordinates in which the noise is Gaussian."""
        estimate, mean = self._estimate, self._estimate.mean
        center = mean.coordinates(mean.base)
        if not isinstance(estimate, Estimate):  # made there: to the mean and back would lose digits in large balls
            return center, estimate.at_center(1 - self.level)
        inner = mean.derivative(mean.base)
        return center, symmetrize(inner @ self.covariance @ inner.T)

    @property
    def hessian(self) -> FloatArray:
        """Lambda, the mean Hessian of the squared distance at the released mean, bounded from below; (d, d)."""
        return 2 * self._estimate.hessian

    @property
    def covariance(self) -> FloatArray:
        """Covariance the ellipsoid is drawn with, (d, d), in an orthonormal frame at the released mean.

        Sampling plus noise, and an allowance for the noise on the second moment, which grows with the level; with it
        the one for `gap`, where there is one.
        """
        return self._ellipsoid[0]

    @property
    def threshold(self) -> float:
        """The squared radius of the ellipsoid, in units of the covariance: of chi-square, Hotelling's law or F."""
        return self._ellipsoid[1]

    @property
    def effective_radius(self) -> float:
        """Size of the region whatever its shape: the root of its covariance's trace."""
        return float(np.sqrt(np.trace(self.covariance)))

    @property
    def gap(self) -> float | None:
        """How far the tangent mean that was drawn can be from the Fréchet mean, which the region allows for.

        None where no other mean stands for the one that it is about.
        """
        return None if self._grown is None else self._grown.gap

    @cached_property
    def _grown(self) -> Grown | None:
        estimate = self._estimate
        return estimate.grown(1 - self.level) if isinstance(estimate, CorrectedEstimate) else None

    @property
    def expected_error(self) -> float:
        """Root mean squared distance to expect between the released mean and the population's: no bound.

        The region is wider than this by its level and its allowance. Above the farthest that a point of the ball can
        be, it is that (theory section 7, region).
        """
        return min(math.sqrt(sum(self._estimate.expected_error)), self._estimate.mean.reach)

    @property
    def volume(self) -> float:
        """Volume of the ellipsoid in the tangent space at the released mean."""
        d = len(self.covariance)
        log_unit = d / 2 * math.log(math.pi) - float(special.gammaln(d / 2 + 1))
        log_volume = log_unit + d / 2 * math.log(self.threshold) + np.linalg.slogdet(self.covariance)[1] / 2
        return float(np.exp(min(log_volume, 700.0)))

    @property
    def variance_shares(self) -> VarianceShares:
        """What the covariance's trace is made of: noise, sampling, and an allowance for the noise on the spread.

        The allowance for `gap` is in the last.
        """
        estimate = self._estimate
        noise, sampling = (float(np.trace(part)) for part in (estimate.mean.noise, estimate.sampling_surely))
        return VarianceShares.of(noise, sampling, float(np.trace(self.covariance)))

    @property
    def covers_ball(self) -> bool:
        """Whether the region holds the whole public ball: then it says no more than the ball did."""
        center, covariance = self._in_chart
        mean = self._estimate.mean
        far = self.ball.radius + float(np.linalg.norm(center)) if mean.wrapped else mean.reach
        return bool(far**2 <= self.threshold * np.linalg.eigvalsh(covariance)[0])

    # ---------------------------------------------------------------- questions

    def contains(self, q: object) -> Array:
        """Return whether points (..., *space.shape) are in the region, a boolean each."""
        space, frame = self.space, self.ball.frame
        points = space.as_points(q, "q")
        center, covariance = self._in_chart
        c = frame.log_coords(self._estimate.mean.base, space.into_frame(self.ball.center, points)) - center
        return np.asarray(squared_length(covariance, c) <= self.threshold)

    def axes(self) -> tuple[FloatArray, Array]:
        """Return the half axes at the released mean, longest first: lengths (d,) and unit tangent vectors (d, *shape).

        `space.exp(region.center, t * vector)` for t from minus to plus the length is the axis as a geodesic.
        """
        values, vectors = np.linalg.eigh(self.covariance)
        # Of an ellipsoid that is flat but for rounding the shortest may come out below 0.
        lengths = np.sqrt(self.threshold * np.maximum(values[::-1], 0.0))
        frame, at = self.ball.frame, self._estimate.mean.at
        # Along each axis a short geodesic in the frame, moved to the space: its logarithm there is the direction.
        step = 1e-3 * min(1.0, self.ball.radius)
        ends = self.ball.from_frame(frame.exp_coords(at, step * vectors.T[::-1]))
        home = self.ball.from_frame(at[None])[0]
        directions = self.space.log(np.broadcast_to(home, ends.shape), ends)
        return lengths, np.asarray(directions / step)

    def boundary(self, count: int = 200, plane: tuple[int, int] = (0, 1)) -> Array:
        """Return points on the region's boundary for drawing, (count, *shape): where a plane of two axes cuts it.

        Parameters
        ----------
        count : how many points
        plane : which two principal axes, 0 the longest; on a line the two end points come back
        """
        count = positive_int(count, "count")
        center, covariance = self._in_chart
        values, vectors = np.linalg.eigh(covariance)
        reach = np.sqrt(self.threshold * values[::-1])[:, None] * vectors.T[::-1]
        d = len(reach)
        if d == 1:
            offsets = np.array([[-1.0], [1.0]]) * reach
        else:
            first, second = plane
            if not (0 <= first < d and 0 <= second < d and first != second):
                raise InvalidArgumentError(f"plane must be two different axes from 0 to {d - 1}, got {plane!r}.")
            turn = np.linspace(0.0, 2 * np.pi, count)
            offsets = np.cos(turn)[:, None] * reach[first] + np.sin(turn)[:, None] * reach[second]
        frame = self.ball.frame
        # A region as large as the space is drawn up to where coordinates, or doubles, end.
        longest = self.space.farthest - float(self.space.dist(self.space.origin, self.ball.center))
        c = shorten(center + offsets, min(0.999 * longest, 0.999 * frame.injectivity_radius))
        return self.ball.from_frame(frame.exp_coords(self._estimate.mean.base, c))

    # ---------------------------------------------------------------- for people and machines

    def _facts(self) -> list[tuple[str, str]]:
        lengths = self.axes()[0]
        axes = f"{lengths[0]:.4g}" + (f" to {lengths[-1]:.4g}" if len(lengths) > 1 else "")
        grown, about = self._grown, []
        if grown is not None:
            off = f"the Fréchet mean, by a tangent mean that may be {grown.gap:.4g} off after correction"
            about = [("estimand", f"{off}: {grown.share:.0%} of the squared size, counted as allowance")]
        return [
            ("center", array_text(self.center)),
            ("promise", f"{self.privacy} for each {self.release.unit}, {self.n:,} of them"),
            *about,
            ("error", f"{self.expected_error:.4g} expected, noise and sampling together"),
            ("half axes", f"{axes}; squared size: {self.variance_shares}"),
            ("ball", repr(self.ball)),
        ]

    def _worth(self) -> list[str]:
        grown, hints = self._grown, []
        if grown is not None and grown.share >= 0.25:
            hints = [GAP_HINT]
        elif isinstance(self._estimate, Estimate) and not self.space.is_flat and self.variance_shares.allowance > 0.5:
            hints = [TANGENT_HINT]
        return [*self._beside_the_ball(), *hints]

    def _beside_the_ball(self) -> list[str]:
        """Say where the region, or the error to expect, is no smaller than the ball."""
        if self.covers_ball:
            return ["the region holds the whole ball: more units or a weaker promise would tell more"]
        shortest = math.sqrt(self.threshold * float(np.linalg.eigvalsh(self._in_chart[1])[0]))
        if max(shortest, self.expected_error) >= self.ball.radius:
            what = "region" if shortest >= self.ball.radius else "error to expect"
            return [f"the {what} is as large as the ball: it says hardly more. Use more units or a weaker promise"]
        if self.expected_error >= self.ball.radius / 2:
            return ["the error to expect is half the ball or more: the public centre may well be the better answer"]
        return []

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        which = "tangent mean at the ball's centre" if self.estimand == TANGENT else "mean"
        return f"{100 * self.level:g} % confidence region for a {which}"

    def _numbers_told(self) -> dict[str, Any]:
        return {
            "center": array_to_json(self.center),
            "error": told(lambda: self.expected_error),
            "half_axes": told(lambda: self.axes()[0]),
            **all_told(self, "threshold", "volume", "covers_ball"),
            "estimand": self.estimand,
            **({} if self.gap is None else {"gap": told(lambda: self.gap)}),
        }
