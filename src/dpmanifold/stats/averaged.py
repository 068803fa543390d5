"""Statistics that are averages: of a bounded vector, or a number, that each unit's point gives by itself.

A subclass says what that vector is and how long it can be, and that is all: the library cuts every unit's vector to the
bound itself, so that no mistake in the map can break the promise as long as it maps each point by itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray, positive_float, shown
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import DPManifoldError, InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.base import shorten
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.noise.exact import grid_of
from dpmanifold.privacy import Promise
from dpmanifold.records import value_from_json, value_to_json
from dpmanifold.release import DRAW_COVERED, EXACT, FLOAT, NEIGHBOURS, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import Header, Kind, Prepared, Statistic, Step
from dpmanifold.stats.additive import ADDITIVE, additive, additive_forecast, refuse_overflow
from dpmanifold.stats.draws import Bits, checked_arithmetic, noisy, stated
from dpmanifold.stats.grids import DOES_NOT_FOLLOW
from dpmanifold.stats.ranges import ROUNDING, SURELY, within
from dpmanifold.stats.recipes import Recipe
from dpmanifold.stats.sealed import sealed

_KINDS = (Kind.NUMBER, Kind.VECTOR, Kind.MATRIX)


class AveragedStatistic(Statistic):
    """The average over units of a bounded vector that each unit's point gives by itself.

    A subclass states `name`, `words` and `kind` (NUMBER, VECTOR or MATRIX) and the methods below; it is then planned,
    released, written, read, verified, drawn and reported like every other. Noise is added to the average: Laplace's
    under pure promises, normal under others (theory: averages).

    Examples
    --------
    The share of the units that lie in the inner half of a ball:

    >>> import dpmanifold as dpm
    >>> from dpmanifold.statistic import Kind
    >>> class InnerHalf(AveragedStatistic):
    ...     name, words, kind = "inner half", "share of the units within half the radius", Kind.NUMBER
    ...     def per_unit(self, block, ball):
    ...         return ball.frame.dist(ball.frame.origin, block)[:, None] <= ball.radius / 2
    ...     def bound(self, ball):
    ...         return 0.5
    ...     def middle(self, ball):
    ...         return np.array([0.5])
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> X = np.linspace(-1, 1, 2001)[:, None]
    >>> inner_half = dpm.STATISTICS.register("inner half", InnerHalf())
    >>> release = dpm.private_statistic(X, ball, dpm.PureDP(1.0), statistic="inner half", units=dpm.EACH_RECORD)
    >>> abs(release.value - 0.5) < 0.05, dpm.verify(release).ok
    (True, True)
    """

    proof: str = "docs/theory/averages.md"
    """Where the bound is proven; a subclass with a page of its own names that."""

    @abstractmethod
    def per_unit(self, block: Array, ball: Ball) -> FloatArray:
        """Return one vector per unit, (b, size), given units' points (b, *frame.shape) in the ball's frame.

        Each row may depend on that row's point alone, bit for bit, however many there are: vectors that are the same
        for a point by itself and among others. `ball.from_frame(block)` are the points in the space;
        `ball.frame.log_coords(ball.frame.origin, block)` their coordinates at the centre. What is not finite, or
        raises, counts as the middle.
        """

    @abstractmethod
    def bound(self, ball: Ball) -> float:
        """Return how far from the middle a unit's vector can lie; one that lies farther is moved there."""

    def middle(self, ball: Ball) -> FloatArray:
        """Return the vector (size,) that units' vectors lie about: public; zero unless a subclass says otherwise."""
        return np.zeros(self.size(ball))

    def size(self, ball: Ball) -> int:
        """Return how many numbers a unit's vector has; 1 unless a subclass says otherwise."""
        return 1

    def value(self, numbers: FloatArray, ball: Ball) -> Any:
        """Return what people get from the noisy average, (size,): post-processing. The numbers themselves, if plain."""
        return float(numbers[0]) if self.kind is Kind.NUMBER else numbers.reshape(self.shape(ball))

    def numbers(self, value: Any, ball: Ball) -> FloatArray:
        """Return the numbers that a value stands for: undoes `value`."""
        return np.atleast_1d(np.asarray(value, dtype=np.float64)).ravel()

    # ---------------------------------------------------------------- the same for all of them

    def shape(self, ball: Ball) -> tuple[int, ...]:
        """Return the shape of a value."""
        return (self.size(ball),) if self.kind is Kind.VECTOR else super().shape(ball)

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound how far one unit moves the average: twice the bound over n, and rounding (theory: averages)."""
        bound = positive_float(self.bound(ball), f"bound of {self.name!r}")
        offset = float(np.linalg.norm(self.middle(ball)))
        return sensitivity.of_average(bound, n, self.name, self.proof, size=self.size(ball), offset=offset)

    def prepared(self, header: Header, *, mechanism: Any = "auto") -> Prepared:
        """Choose the noise, or refuse; look once, at public points, whether `per_unit` keeps its word."""
        require_ball(header.ball)
        checked_arithmetic(header.arithmetic)
        self._refuse_wrong_value(header.ball)
        self._refuse_wrong_map(header.ball)
        calibration = additive(self.sensitivity(header.ball, header.n), header.privacy, mechanism)
        refuse_overflow(calibration.scale)
        return AveragePlan(self, header, calibration)

    def _refuse_wrong_value(self, ball: Ball) -> None:
        """Refuse a kind that averages are not, and values that could not be saved: behind the spend nothing raises."""
        if self.kind not in _KINDS:
            able = ", ".join(f"Kind.{kind.name}" for kind in _KINDS)
            raise InvalidArgumentError(f"kind of {self.name!r} must be one of {able}, got {shown(self.kind)}.")
        kind, middle = self.kind.value, self.middle(ball)
        if np.shape(middle) != (self.size(ball),):
            raise InvalidArgumentError(
                f"middle of {self.name!r} must have shape ({self.size(ball)},), got {np.shape(middle)}."
            )
        value = self.value(middle, ball)
        try:
            read = value_from_json(value_to_json(value, kind), kind, ball.space, self.shape(ball))
            same = np.array_equal(np.asarray(read), np.asarray(value))
        except (DPManifoldError, ArithmeticError, AttributeError, TypeError, ValueError):
            same = False
        if not same:
            what = "a finite number" if self.kind is Kind.NUMBER else f"finite numbers of shape {self.shape(ball)}"
            raise InvalidArgumentError(
                f"value of {self.name!r} must return {what}, as its kind says, got {shown(value)} of the middle."
            )

    def _refuse_wrong_map(self, ball: Ball) -> None:
        frame, size = ball.frame, self.size(ball)
        steps = np.concatenate([np.zeros((1, frame.dim)), ball.radius / 2 * np.eye(frame.dim)[:2]])
        probes = frame.exp_coords(frame.origin, steps)
        together = np.asarray(self.per_unit(probes, ball), dtype=np.float64)
        if together.shape != (len(probes), size):
            raise InvalidArgumentError(
                f"per_unit of {self.name!r} must return shape (b, {size}) for b points, got {together.shape} for "
                f"{len(probes)}."
            )
        alone = [np.asarray(self.per_unit(probe[None], ball), dtype=np.float64) for probe in probes]
        if not np.array_equal(together, np.concatenate(alone), equal_nan=True):
            raise InvalidArgumentError(
                f"per_unit of {self.name!r} must map each point by itself: a point alone gives other numbers than "
                "among others, and one record would change what others count for."
            )

    def vectors(self, block: Array, ball: Ball) -> FloatArray:
        """Return what units count for, seen from the middle and cut to the bound, (b, size). Never raises."""
        try:
            with np.errstate(all="ignore"):
                found = np.asarray(self.per_unit(block, ball), dtype=np.float64)
                found = found.reshape(len(block), self.size(ball)) - self.middle(ball)
        except Exception:
            # One point's failure must not show in what others count for: each by itself.
            if len(block) == 1:
                return np.zeros((1, self.size(ball)))
            return np.concatenate([self.vectors(point[None], ball) for point in block])
        found = np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)
        return shorten(found, self.bound(ball))

    # ---------------------------------------------------------------- what verify recomputes

    def recipes(self) -> Sequence[Recipe]:
        """Return the one way it is made: a draw of its own, with the whole promise."""
        return (Recipe(self.name, ADDITIVE, projected=False, neighbours=(NEIGHBOURS,)),)

    def calibrated(self, release: Release) -> tuple[Calibration, float]:
        """Return the noise that the stated share asks for, and what its length surely stays below."""
        calibration = additive(self.sensitivity(release.ball, release.n), release.share)
        surely = float(additive_forecast(calibration, self.size(release.ball)).quantile(SURELY))
        return calibration, surely

    def _largest(self, ball: Ball) -> float:
        return self.bound(ball) + float(np.linalg.norm(self.middle(ball)))

    def grid(self, release: Release, calibration: Calibration) -> int | None:
        """Return the exponent of the grid."""
        return grid_of(release.scale, self._largest(release.ball))

    def value_faults(self, release: Release, noise: float) -> list[str]:
        """Return whether the value lies where no average and no noise carry it."""
        return self._faults("value", self.numbers(release.value, release.ball), release.ball, noise)

    def drawn_faults(self, release: Release, noise: float) -> list[str]:
        """Return whether the draw is too far, or the value not made of it."""
        drawn, ball = release.drawn, release.ball
        if drawn is None or drawn.shape != (self.size(ball),):
            return [f"drawn: there are {self.size(ball)} numbers in it"]
        found = self._faults("drawn", drawn, ball, noise)
        made = np.asarray(self.value(drawn, ball))
        follows = np.allclose(np.asarray(release.value), made, rtol=ROUNDING, atol=0)
        return found if follows else [*found, DOES_NOT_FOLLOW]

    def _faults(self, what: str, numbers: FloatArray, ball: Ball, noise: float) -> list[str]:
        away = float(np.linalg.norm(numbers - self.middle(ball)))
        fits = within(away, 0.0, self.bound(ball), noise)
        return [] if fits else [f"{what}: no {self.name} there and no noise of that scale come to it"]

    # ---------------------------------------------------------------- for people

    def states_error(self, release: Release) -> bool:
        """Return True: the law of the noise is known."""
        return True

    def forecast(self, release: Release) -> Forecast:
        """Return the law of the length of the noise."""
        return additive_forecast(release.calibration, self.size(release.ball))

    def range(self, ball: Ball) -> float | None:
        """Return the bound: noise as large leaves nothing."""
        return self.bound(ball)

    def limits(self, ball: Ball) -> tuple[float, float]:
        """Return the ends of the range of a number."""
        middle, bound = float(self.middle(ball)[0]), self.bound(ball)
        return middle - bound, middle + bound

    def notes(self, release: Release) -> list[str]:
        """Say where a released ball cost something, and where the noise is as large as what it hides can be."""
        swamped = "the noise is as large as the value can be: this says nothing. Use more units or a weaker promise"
        return release.notes_on_the_ball() + ([swamped] if release.is_swamped else [])


class AveragePlan(Prepared):
    """One draw: an average with noise of a scale that public numbers gave."""

    def __init__(self, statistic: AveragedStatistic, header: Header, calibration: Calibration) -> None:
        self.statistic, self.header, self.calibration = statistic, header, calibration
        self.label = statistic.name

    @property
    def share(self) -> Promise:
        """All of the promise."""
        return self.calibration.privacy

    def steps(self) -> tuple[Step, ...]:
        """Return the one draw."""
        ball, calibration = self.header.ball, self.calibration
        error = additive_forecast(calibration, self.statistic.size(ball)).mean
        arithmetic = FLOAT if self.header.arithmetic == FLOAT else EXACT
        return (
            Step(
                self.statistic.name, calibration.mechanism, self.share, calibration.scale, calibration.rule, error,
                self.statistic.range(ball), exact=True, arithmetic=arithmetic,
            ),
        )  # fmt: skip

    def release(self, points: UnitPoints, bits: Bits) -> Release:
        """Average and draw."""
        statistic, ball = self.statistic, self.header.ball
        bound, middle = statistic.bound(ball), statistic.middle(ball)
        average = sealed(
            lambda: points.mean_of(lambda block: statistic.vectors(block, ball), bound) + middle, lambda: middle
        )
        calibration = self.calibration
        drawn = noisy(average, calibration.mechanism, calibration.scale, statistic._largest(ball), bits)
        value = sealed(lambda: statistic.value(drawn.numbers, ball), lambda: statistic.value(middle, ball))
        return Release.of(
            statistic, value, self.header, calibration, tol=0.0, projected=False,
            private=bits.private, timing=DRAW_COVERED, **stated(drawn),
        )  # fmt: skip
