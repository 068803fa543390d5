"""Geodesic regressions: a curve with bands, and whether it moves at all (theory: regression). No data comes in here.

A release holds the averages of residuals e from a curve, of e times the covariate t, of their products, and of t and
t^2. One Gauss-Newton step from the curve makes the fit; the products give the covariance of the step's error.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray, open_fraction, positive_int, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidArgumentError
from dpmanifold.features.regression_features import ROOT3, Geodesic, MarkedMoments
from dpmanifold.inference.design import Design, as_marks, checked_range
from dpmanifold.inference.estimate import features_of
from dpmanifold.inference.hotelling import NoisyCovariance, ShrunkCovariance, squared_length
from dpmanifold.inference.inference_result import FromRelease, VarianceShares
from dpmanifold.linalg import from_vecd, symmetrize
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.privacy import cautions
from dpmanifold.release import BALL_COST, RELEASED, Release
from dpmanifold.serialization import array_to_json
from dpmanifold.summary import all_told, array_text, told

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
class GeodesicRegression(FromRelease, format="dpmanifold regression 2"):
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
        if not self.is_identifiable:
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
    def is_identifiable(self) -> bool:
        """Whether the released variance of the covariates is several times its own noise.

        Otherwise how steep the curve is cannot be told, and bands hold everything that curves here can reach; the test
        of slope holds all the same, as it divides by no variance.
        """
        return self._fit.design.is_told

    # ---------------------------------------------------------------- for people and machines

    @property
    def variance_shares(self) -> VarianceShares:
        """What the trace of the band's covariance in the middle of the range is made of."""
        middle = self._fit.error(self._fit.levers(np.zeros(1))[0])
        noise, sampling, total = (float(np.trace(part)) for part in (middle.noise, middle.surely, middle.covariance))
        return VarianceShares.of(noise, sampling, total)

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
            ("limited by", f"{self.dominant_source}; squared width of the band in the middle: {self.variance_shares}"),
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
        if not self.is_identifiable:
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
            **all_told(self, "speed", "statistic", "p_value", "is_identifiable", "covariate_public"),
        }


def _three(radii: FloatArray) -> str:
    return f"{radii[0]:.3g}, {radii[1]:.3g} and {radii[2]:.3g}"


# -------------------------------------------------------------------- the curve and its covariance


# With fewer units a spread cannot be told from chance; with fewer than dimensions, sampling may be this many times as
# large as noise before nothing can be said of it.
_FEWEST_UNITS = 8
_LARGEST_SHARE = 3.0
# Where Jacobi fields are looked at, to be written as polynomials of this degree.
_NODES = np.linspace(-1.0, 1.0, 7)
_DEGREE = 3
# How long a clipped residual was, on average, against the radius it is clipped to: of normal ones beyond a radius that
# holds nine tenths 1.25 on a line, 1.15 in three dimensions and less in more.
_BEYOND = 1.15


@dataclass(frozen=True, eq=False)
class Ellipsoids:
    """The law of an error in some coordinates: its covariance, and squared lengths that it stays below.

    Attributes
    ----------
    covariance : (k, k), to divide by
    error : the same in other coordinates, with its law
    surely : (k, k), the part of it that is sampling and cannot be noise
    noise : (k, k), the part of it that is noise
    """

    covariance: FloatArray
    error: ShrunkCovariance | NoisyCovariance
    surely: FloatArray
    noise: FloatArray

    def threshold(self, tail: float) -> float:
        """Return the squared length that an error exceeds with this probability."""
        return self.error.threshold(tail)

    def statistic(self, vector: FloatArray) -> float:
        """Return the squared length of a vector."""
        return float(squared_length(self.covariance, vector))

    def exceedance(self, statistic: float) -> float:
        """Return the probability that an error is longer."""
        return self.error.exceedance(statistic)


class CurveFit:
    """The curve that a released regression shows, and the covariance of its error.

    Parameters
    ----------
    release : statistic "regression"; its coarse fit is among its steps, or it is one itself
    steady : whether another step follows, so that a steady curve is better than one whose error is known

    Attributes
    ----------
    start : the curve that residuals were taken from, in the ball's frame
    radius : what residuals were clipped to
    design : how the covariate is spread
    """

    def __init__(self, release: Release, steady: bool = False) -> None:
        self.release, self.dim = release, release.ball.frame.dim
        coarse = coarse_of(release)
        self.start = Geodesic.resting(release.ball.frame) if coarse is None else curve_of(coarse)
        self.radius = radius_of(release)
        self.design = Design.of(release, steady)

    # ---------------------------------------------------------------- what was released

    @cached_property
    def _score(self) -> FloatArray:
        """The average of (e, sqrt(3) t e), (2d,), as drawn."""
        return np.asarray(self.release.value, dtype=np.float64)[: 2 * self.dim]

    @cached_property
    def _moment(self) -> FloatArray:
        """The average of its products, (2d, 2d), as drawn."""
        return np.asarray(from_vecd(np.asarray(self.release.value, dtype=np.float64)[2 * self.dim : -2]))

    @cached_property
    def _scales(self) -> tuple[float, float]:
        """Standard deviations of the noise on the score, and on vecd of the products."""
        units = MarkedMoments().units(self.dim, self.radius)
        return self.release.scale * float(units[0]), self.release.scale * float(units[2 * self.dim])

    @property
    def _variance(self) -> float:
        return self._scales[0] ** 2

    # ---------------------------------------------------------------- the step

    def _slope(self, moments: FloatArray) -> FloatArray:
        """How the score falls as the curve moves, (2d, 2d), given the moments of the covariate."""
        d = self.dim
        fields = self.start.derivative(np.zeros(d), np.zeros(d), _NODES)
        powers = np.polynomial.polynomial.polyfit(_NODES, fields.reshape(len(_NODES), -1), _DEGREE)
        powers = powers.reshape(_DEGREE + 1, d, 2 * d)
        first = np.tensordot(moments[: _DEGREE + 1], powers, axes=1)
        second = np.tensordot(moments[1 : _DEGREE + 2], powers, axes=1)
        return np.vstack([self._bent @ first, ROOT3 * self._bent @ second])

    @cached_property
    def _bent(self) -> FloatArray:
        """How residuals shorten as the curve comes nearer, (d, d): curvature, and those that were clipped."""
        space, d = self.release.ball.space, self.dim
        found = self.release.steps[0] if self.release.steps else None
        outside = 0.0 if found is None else 1 - found.details["units_inside"] / found.n
        clipped = 1 - min(max(outside, 0.0), 0.5) * (1 - (d - 1) / d / _BEYOND)
        if space.is_flat or self.start.rests:
            return clipped * np.eye(d)
        values, vectors = np.linalg.eigh(self._moment[:d, :d])
        low, high = space.hessian_bounds(min(self.radius, 0.9 * space.injectivity_radius))
        second = symmetrize((vectors * np.clip(values, 0.0, self.radius**2)) @ vectors.T)
        bends, axes = np.linalg.eigh(np.eye(d) - space.curvature_operator(second) / 3)
        return clipped * symmetrize((axes * np.clip(bends, low, high)) @ axes.T)

    @cached_property
    def _inverse(self) -> FloatArray:
        return np.asarray(np.linalg.pinv(self._slope(self.design.moments), rcond=1e-9))

    @cached_property
    def step(self) -> FloatArray:
        """How base point and velocity change, (2d,)."""
        return np.asarray(self._inverse @ self._score)

    @cached_property
    def _moves(self) -> tuple[FloatArray, FloatArray]:
        """The step as changes of base point and velocity, neither longer than twice the ball's radius."""
        longest = 2 * self.release.ball.radius
        return shorten(self.step[: self.dim], longest), shorten(self.step[self.dim :], longest)

    @cached_property
    def curve(self) -> Geodesic:
        """The fitted curve in the ball's frame, with base point and velocity shortened to the ball's radius."""
        return self.start.moved(*self._moves).within(self.release.ball.radius)

    # ---------------------------------------------------------------- its error

    @cached_property
    def _explained(self) -> FloatArray:
        """The products of scores that the step explains, (2d, 2d): they are no error."""
        d, moments = self.dim, self.design.moments
        if self.release.unit != "record":
            # Averages over a unit's records explain less; their own average is sure to be explained.
            return np.outer(self._score, self._score)
        a, b = self.step[:d], self.step[d:]
        aa, ab, bb = np.outer(a, a), np.outer(a, b) + np.outer(b, a), np.outer(b, b)
        by_power = [moments[k] * aa + moments[k + 1] * ab + moments[k + 2] * bb for k in range(3)]
        return np.block([[by_power[0], ROOT3 * by_power[1]], [ROOT3 * by_power[1], 3 * by_power[2]]])

    @cached_property
    def _sampling(self) -> FloatArray:
        """Covariance of the average score about the population's, (2d, 2d), as released."""
        spread = symmetrize(self._moment - self._explained + self._variance * np.eye(2 * self.dim))
        return np.asarray(spread / max(self.release.n - 2, 1))

    @cached_property
    def _sampling_noise(self) -> float:
        """Standard deviation of the noise in it, on vecd."""
        score, moment = self._scales
        drift = max(float(self._score @ self._score) - 2 * self.dim * score**2, 0.0)
        noise = math.sqrt(moment**2 + 4 * score**2 * drift / (2 * self.dim) + 2 * score**4)
        return noise / max(self.release.n - 2, 1)

    def _design_error(self, step: FloatArray, uncertain: FloatArray) -> FloatArray:
        """What noise on the moments of the covariate adds to the covariance of the score, (2d, 2d).

        Parameters
        ----------
        step : (2d,), what the moments multiply
        uncertain : (2d, 2d), the covariance of its error: noise times noise
        """
        d, (first, second) = self.dim, self.design.noise
        products = np.outer(step, step) + uncertain
        swapped = np.vstack([np.eye(2 * d)[d:], ROOT3 * np.eye(2 * d)[:d]])
        lower = np.vstack([np.zeros((d, 2 * d)), ROOT3 * np.eye(2 * d)[d:]])
        return first**2 * swapped @ products @ swapped.T + second**2 * lower @ products @ lower.T

    @cached_property
    def _known(self) -> FloatArray:
        """The covariance of the score but for what noise on the moments of the covariate adds, (2d, 2d)."""
        values, vectors = np.linalg.eigh(self._sampling)
        return np.asarray(self._variance * np.eye(2 * self.dim) + (vectors * np.maximum(values, 0.0)) @ vectors.T)

    @cached_property
    def _step_design(self) -> FloatArray:
        """What noise on the moments of the covariate adds to the covariance of the score about the step, (2d, 2d)."""
        first_order = self._design_error(self.step, self._inverse @ self._known @ self._inverse.T)
        return self.design.stretch**2 * first_order

    def error(self, lever: FloatArray) -> Ellipsoids:
        """Return the law of the error of some linear function of the step, given as rows, (k, 2d)."""
        return self._law(lever @ self._inverse, self._step_design)

    def _law(self, by_score: FloatArray, design: FloatArray) -> Ellipsoids:
        """Return the law of the error of some linear function of the score, given as rows, (k, 2d)."""
        values, vectors = np.linalg.eigh(by_score @ by_score.T)
        lengths = np.sqrt(np.maximum(values, max(float(values[-1]), 1e-300) * 1e-14))
        root = (vectors * lengths) @ vectors.T
        across = (vectors / lengths) @ vectors.T @ by_score  # rows of length 1, across each other
        error = self._error(symmetrize(across @ self._sampling @ across.T))
        surely = error.sampling if isinstance(error, ShrunkCovariance) else np.zeros_like(root)
        noise = self._variance * root @ root + by_score @ design @ by_score.T
        covariance = root @ error.safe(1.0) @ root + by_score @ design @ by_score.T
        return Ellipsoids(symmetrize(covariance), error, symmetrize(root @ surely @ root), symmetrize(noise))

    def expected(self, lever: FloatArray) -> float:
        """Return the squared length to expect of the error of a linear function of the step, (k, 2d): no bound."""
        by_score = lever @ self._inverse
        known = self._variance * float((by_score**2).sum()) + float(np.trace(by_score @ self._step_design @ by_score.T))
        return known + max(0.0, float(np.trace(by_score @ self._sampling @ by_score.T)))

    def _error(self, sampling: FloatArray) -> ShrunkCovariance | NoisyCovariance:
        """Return the law of the error of some coordinates of the score, given the covariance of their sampling."""
        n, k, known = self.release.n, len(sampling), self._variance
        most = (2 * self.radius) ** 2 / n
        enough = n - 2 > k + 1 or float(np.trace(sampling)) <= _LARGEST_SHARE * k * known
        if n < _FEWEST_UNITS or not enough:
            return NoisyCovariance((known + most) * np.eye(k), 0.0, math.inf)
        total = sampling + known * np.eye(k)
        return ShrunkCovariance(total, known, self._sampling_noise, 1 / (n - 2), most)

    def levers(self, t: FloatArray) -> FloatArray:
        """Return how the points of the curve at t (k,) move with the step, (k, d, 2d), carried to its base point."""
        return self.start.derivative(*self._moves, t)

    @cached_property
    def stillness(self) -> tuple[FloatArray, Ellipsoids]:
        """What is 0 on average if the mean does not move, (d,), with the law of its error.

        The step would then undo the velocity, and the score less what that explains be explained by the base point:
        its second half by its first. Nothing is divided by the variance of the covariate.
        """
        d, slope = self.dim, self._slope(self.design.drawn)
        still = -self.start.velocity
        left = self._score - slope[:, d:] @ still
        base = np.linalg.pinv(slope[:d, :d], rcond=1e-9)
        by_score = np.hstack([-slope[d:, :d] @ base, np.eye(d)])
        step = np.concatenate([base @ left[:d], still])
        uncertain = np.zeros((2 * d, 2 * d))
        # The mean of the covariate counts twice where it multiplies the velocity: its noise, squared.
        uncertain[:d, :d] = base @ self._known[:d, :d] @ base.T + 3 * self.design.noise[0] ** 2 * np.outer(still, still)
        return by_score @ left, self._law(by_score, self._design_error(step, uncertain))


def coarse_of(release: Release) -> Release | None:
    """Return the coarse regression that a released one starts from; None if it starts from the ball's centre."""
    if not release.steps:
        return None
    found = release.steps[0]
    if not isinstance(found.value, Ball) or [step.statistic for step in found.steps] != [release.statistic]:
        raise InvalidArgumentError(
            "release must be a regression by itself, or one with a radius about a coarse curve as its step, got other "
            "steps. private_regression makes one."
        )
    return found.steps[0]


def radius_of(release: Release) -> float:
    """Return what residuals were clipped to."""
    return release.ball.radius if coarse_of(release) is None else float(release.steps[0].value.radius)


def curve_of(release: Release) -> Geodesic:
    """Return the curve that a released regression shows, in its ball's frame: a function of the release alone.

    Where numbers fail, which takes a stranger's release, it is the one that stays at the ball's centre. Never raises.
    """
    rest = Geodesic.resting(release.ball.frame)
    with np.errstate(all="ignore"):
        try:
            found = CurveFit(release, steady=True).curve
        except (np.linalg.LinAlgError, DPManifoldError):
            return rest
    return found if np.isfinite(found.base).all() and np.isfinite(found.velocity).all() else rest
