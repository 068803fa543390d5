"""Geodesic regressions: a curve with bands, and whether it moves at all (theory: regression)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray, open_fraction, positive_int, shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.facts import all_told, array_text, told
from dpmanifold.features.marked import MarkedMoments
from dpmanifold.inference.curve_fit import CurveFit, coarse_of
from dpmanifold.inference.design import as_marks, checked_range
from dpmanifold.inference.estimate import features_of
from dpmanifold.inference.hotelling import squared_length
from dpmanifold.inference.records import FromRelease, Parts
from dpmanifold.linalg import symmetrize
from dpmanifold.privacy import cautions
from dpmanifold.records import array_to_json
from dpmanifold.release import BALL_COST, RELEASED, Release

FORMAT = "dpmanifold regression 2"
# Where the curve is told to people and machines, as parts of the range.
_TOLD = (0.0, 0.25, 0.5, 0.75, 1.0)


class Band(NamedTuple):
    """A curve at some values of the covariate, with an ellipsoid about each of its points.

    Attributes
    ----------
    points : (k, *shape), on the curve
    covariance : (k, d, d), that the ellipsoids are drawn with: in coordinates of the ball's frame that are carried
        along the curve
    threshold : (k,), squared radii of the ellipsoids, in units of the covariance
    """

    points: Array
    covariance: FloatArray
    threshold: FloatArray

    @property
    def radius(self) -> FloatArray:
        """(k,), the longest half axes: how far off the population's curve may be, at the band's confidence."""
        largest = np.linalg.eigvalsh(self.covariance)[:, -1]
        return np.asarray(np.sqrt(self.threshold * np.maximum(largest, 0.0)))


@dataclass(frozen=True, eq=False, repr=False)
class GeodesicRegression(FromRelease, format=FORMAT):
    """A geodesic that the mean follows as a covariate changes, with confidence bands, computed from a release.

    The geodesic is that of the population of units clipped into the ball: the one whose residuals have mean 0, with
    and without the covariate as a weight (theory: regression). If the mean given the covariate follows a geodesic, it
    is this one.

    Parameters
    ----------
    release : statistic "regression", as :func:`private_regression` makes it
    covariate_range : the public range of the covariate
    level : the confidence of the bands, in (0, 1)

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> rng = np.random.default_rng(0)
    >>> age, ball = rng.uniform(0, 10, 2000), dpm.Ball(dpm.Euclidean(1), [0.0], 5.0)
    >>> X = (0.2 * age - 1 + 0.3 * rng.standard_normal(2000))[:, None]
    >>> found = dpm.private_regression(X, age, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, covariate_range=(0, 10))
    >>> bool(abs(found.slope[0] - 0.2) < 0.05), found.p_value < 1e-6
    (True, True)
    """

    release: Release
    covariate_range: tuple[float, float] = (-1.0, 1.0)
    level: float = 0.95

    def __post_init__(self) -> None:
        if not isinstance(features_of(self.release), MarkedMoments):
            raise InvalidArgumentError(
                f"release must be of a regression, got a {self.release.statistic}. private_regression makes one."
            )
        coarse_of(self.release)  # refuses steps that no regression has
        object.__setattr__(self, "level", open_fraction(self.level, "level"))
        object.__setattr__(self, "covariate_range", checked_range(self.covariate_range))

    @cached_property
    def _fit(self) -> CurveFit:
        return CurveFit(self.release)

    # ---------------------------------------------------------------- the curve

    def _t(self, x: npt.ArrayLike) -> FloatArray:
        """Return values of the covariate brought to [-1, 1]; beyond the range they are refused."""
        given = np.asarray(x, dtype=np.float64)
        low, high = self.covariate_range
        slack = 1e-9 * (high - low)
        if given.ndim != 1 or not np.all((given >= low - slack) & (given <= high + slack)):
            raise InvalidArgumentError(
                f"x must be values of the covariate, shape (k,), from {low:g} to {high:g}: nothing is known beyond the "
                f"range; got {shown(x)}."
            )
        return as_marks(given, self.covariate_range)

    def curve(self, x: npt.ArrayLike) -> Array:
        """Return the points of the curve at values x (k,) of the covariate, (k, *space.shape)."""
        return self.ball.from_frame(self._fit.curve.at(self._t(x)))

    @property
    def slope(self) -> FloatArray:
        """Change of the mean per unit of the covariate at the middle of the range, (d,).

        In coordinates at the curve's point there; those of the ball's frame.
        """
        low, high = self.covariate_range
        return self._fit.curve.velocity / (high / 2 - low / 2)

    @property
    def speed(self) -> float:
        """Length of the slope: how far the mean moves per unit of the covariate."""
        return float(np.linalg.norm(self.slope))

    @property
    def number_or_array(self) -> Array:
        """Points of the curve at both ends of the range and three values between, (5, *space.shape)."""
        return self.curve(self._at_parts())

    def _at_parts(self) -> FloatArray:
        low, high = self.covariate_range
        return np.array([low + part * (high - low) for part in _TOLD])

    # ---------------------------------------------------------------- bands

    def band(self, x: npt.ArrayLike, simultaneous: bool = False) -> Band:
        """Return the curve with its band at values x (k,) of the covariate.

        Parameters
        ----------
        x : values in the range
        simultaneous : False: at any one x, chosen beforehand, the ellipsoid holds the population's point with the
            confidence. True: all of them, over the whole range, hold it at once, with at least that (Scheffé)
        """
        t, fit, tail = self._t(x), self._fit, 1 - self.level
        on_curve = fit.curve.at(t)
        points = self.ball.from_frame(on_curve)
        if not self.can_tell:
            # Base points and velocities are no longer than the radius, so that no curve leaves twice the ball.
            frame = self.ball.frame
            reach = frame.dist(on_curve, np.broadcast_to(frame.origin, on_curve.shape)) + 2 * self.ball.radius
            return Band(points, np.tile(np.eye(fit.dim), (len(t), 1, 1)), np.asarray(reach**2))
        levers = fit.levers(t)
        if simultaneous:
            every = fit.error(np.eye(2 * fit.dim))
            covariance = np.stack([symmetrize(lever @ every.covariance @ lever.T) for lever in levers])
            return Band(points, covariance, np.full(len(t), every.threshold(tail)))
        errors = [fit.error(lever) for lever in levers]
        return Band(
            points,
            np.stack([error.covariance for error in errors]),
            np.array([error.threshold(tail) for error in errors]),
        )

    def outlines(self, x: npt.ArrayLike, count: int = 60, simultaneous: bool = False) -> Array:
        """Return points on the edges of the band's ellipsoids, (k, count, *space.shape): for drawing.

        Each where the plane of its two longest axes cuts it; on a line its two ends, over and over.

        Parameters
        ----------
        x, simultaneous : as in :meth:`band`
        count : how many points on each
        """
        t, band, curve = self._t(x), self.band(x, simultaneous), self._fit.curve
        turn = np.linspace(0.0, 2 * np.pi, positive_int(count, "count"))
        circle = np.stack([np.cos(turn), np.sin(turn)], axis=-1)
        found = []
        for at, covariance, threshold in zip(t, band.covariance, band.threshold, strict=True):
            values, vectors = np.linalg.eigh(covariance)
            axes = np.sqrt(threshold * np.maximum(values[::-1][:2], 0.0)) * vectors[:, ::-1][:, :2]
            found.append(self.ball.from_frame(curve.beside(float(at), circle[:, : axes.shape[1]] @ axes.T)))
        return np.stack(found)

    def contains(self, q: object, x: npt.ArrayLike, simultaneous: bool = False) -> Array:
        """Return whether points q (k, *space.shape) lie in the band at values x (k,) of the covariate.

        Parameters
        ----------
        q : points
        x, simultaneous : as in :meth:`band`
        """
        t, points = self._t(x), self.space.as_points(q, "q")
        if points.shape[0] != len(t):
            raise InvalidArgumentError(f"q must hold one point for each of the {len(t)} values x, got {len(points)}.")
        residuals = self._fit.curve.residuals(self.space.into_frame(self.ball.center, points), t)
        band = self.band(x, simultaneous)
        lengths = [squared_length(covariance, e) for covariance, e in zip(band.covariance, residuals, strict=True)]
        return np.asarray(np.array(lengths) <= band.threshold)

    # ---------------------------------------------------------------- does it move

    @cached_property
    def statistic(self) -> float:
        """The squared length of what a curve that stays at one point leaves of the scores, over its covariance."""
        left, law = self._fit.stillness
        return law.statistic(left)

    @property
    def p_value(self) -> float:
        """Of the hypothesis that the mean does not change with the covariate."""
        return self._fit.stillness[1].exceedance(self.statistic)

    @property
    def can_tell(self) -> bool:
        """Whether the released variance of the covariates is several times its own noise.

        Otherwise how steep the curve is cannot be told, and bands hold everything that curves here can reach; the test
        of slope holds all the same, as it divides by no variance.
        """
        return self._fit.design.is_told

    # ---------------------------------------------------------------- for people and machines

    @property
    def parts(self) -> Parts:
        """What the trace of the band's covariance in the middle of the range is made of."""
        middle = self._fit.error(self._fit.levers(np.zeros(1))[0])
        noise, sampling, total = (float(np.trace(part)) for part in (middle.noise, middle.surely, middle.covariance))
        return Parts.of(noise, sampling, total)

    @property
    def expected_error(self) -> float:
        """Root mean squared distance to expect between the curve and the population's, over the range: no bound."""
        levers = self._fit.levers(np.linspace(-1.0, 1.0, 9))
        return math.sqrt(float(np.mean([self._fit.expected(lever) for lever in levers])))

    @property
    def title(self) -> str:
        """What it is, in a few words."""
        return f"Geodesic regression with {100 * self.level:g} % bands"

    def _facts(self) -> list[tuple[str, str]]:
        low, high = self.covariate_range
        x = self._at_parts()[[0, 2, 4]]
        band, wide = self.band(x), self.band(x, simultaneous=True)
        points = [(f"at {value:g}", array_text(point, digits=4)) for value, point in zip(x, band.points, strict=True)]
        return [
            *points,
            ("slope", f"{self.speed:.4g} per unit of the covariate; from end to end {self.speed * (high - low):.4g}"),
            ("no change", f"p = {self.p_value:.3g} (statistic {self.statistic:.4g}, {self._fit.dim} directions)"),
            ("bands", f"within {_three(band.radius)} at {low:g}, {x[1]:g} and {high:g}, each by itself; "
                      f"{_three(wide.radius)} all at once"),
            ("limited by", f"{self.dominated_by}; squared width of the band in the middle: {self.parts}"),
            ("covariate", f"from {low:g} to {high:g}, {'public' if self.covariate_public else 'private'}"),
            ("promise", f"{self.privacy} for each {self.release.unit}, {self.n:,} of them"),
            ("ball", repr(self.ball)),
        ]  # fmt: skip

    @property
    def covariate_public(self) -> bool:
        """Whether neighbours have the same covariates."""
        return self._fit.design.noise == (0.0, 0.0)

    def notes(self) -> list[str]:
        """Say what a reader should know: where residuals were clipped, and where hardly anything is told."""
        found = [*self._worth(), *cautions(self.privacy, self.n)]
        if self.ball.source.startswith(RELEASED):
            found.append(BALL_COST)
        if self.release.steps:
            inside = self.release.steps[0].details["units_inside"] / self.n
            found.append(
                f"residuals were clipped to {self._fit.radius:.4g} about a coarse curve; the counts say that about "
                f"{max(0.0, 1 - inside):.1%} of them are longer"
            )
        elif self.release.details.keys() >= {"refinement_skipped"}:
            found.append("no coarse curve was looked for first: public numbers say that it could not help")
        if not (self.release.steps or self.space.is_flat):
            found.append(
                "one step from the ball's centre: on a curved space the curve is a straight line in coordinates there, "
                "near the geodesic of the regression and not equal to it. Where public numbers allow it refine=True "
                "goes on from there"
            )
        return found

    def _worth(self) -> list[str]:
        if not self.can_tell:
            return [
                "the covariates vary too little against the noise on their moments: how steep the curve is cannot be "
                "told, and bands hold everything that a curve can be. More units help, or a narrower covariate_range "
                "if public knowledge allows one; whether the mean moves at all is tested all the same"
            ]
        if self.expected_error >= self.ball.radius / 2:
            return ["the error to expect is half the ball or more: the public centre may well be the better answer"]
        return []

    def _numbers_told(self) -> dict[str, Any]:
        x = self._at_parts()
        return {
            "x": x.tolist(),
            "curve": array_to_json(self.curve(x)),
            "band_radius": told(lambda: self.band(x).radius),
            "simultaneous_band_radius": told(lambda: self.band(x, simultaneous=True).radius),
            "error": told(lambda: self.expected_error),
            **all_told(self, "speed", "statistic", "p_value", "can_tell", "covariate_public"),
        }


def _three(radii: FloatArray) -> str:
    return f"{radii[0]:.3g}, {radii[1]:.3g} and {radii[2]:.3g}"
