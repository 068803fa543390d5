"""Statistics that are averages: of a bounded vector, or a number, that each unit's point gives by itself.

A subclass says what that vector is and how long it can be, and that is all: the library cuts every unit's vector to the
bound itself, so that no mistake in the map can break the promise as long as it maps each point by itself, bit for bit.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from dpmanifold import sensitivity
from dpmanifold._check import Array, FloatArray, positive_float, positive_int, shown
from dpmanifold._fallback import NUMERICAL, with_fallback
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.vectors import shorten, vector_norm
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.registry import is_own
from dpmanifold.release import Drawn, Release
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.serialization import LONGEST_VECTOR, value_from_json, value_to_json
from dpmanifold.statistic import STATISTICS, Header, Kind, Statistic, Step
from dpmanifold.stats.draws import (
    Hidden,
    VectorDraw,
    additive,
    additive_forecast,
    additive_step,
    checked_arithmetic,
    refuse_overflow,
)
from dpmanifold.stats.program import Drawing, Program, step_of
from dpmanifold.stats.ranges import Limits, limits_of_length

# What a stranger's map may raise because of the numbers that it is given; anything else is a fault, and a loss.
_ABOUT_A_VALUE = (ArithmeticError, ValueError, LookupError)
# Points that a map is given at a time: few enough that looking for one that raises stays cheap.
_PIECE = 1024
# Public points on which a map is tried, and the batches of them that must give what they give together.
_PROBES = _PIECE
_BATCHES = (*((i, i + 1) for i in range(16)), (1, 3), (5, 8), (3, 11), (7, 71), (2, 67), (1, 1001), (512, _PROBES))


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

    proof: str = "averages"
    """Where the bound is proven; a subclass with a page of its own names that."""

    @abstractmethod
    def per_unit(self, block: Array, ball: Ball) -> FloatArray:
        """Return one vector per unit, (b, size), given units' points (b, *frame.shape) in the ball's frame.

        Each row may depend on that row's point alone, bit for bit, however many there are and in whatever place: use
        operations on entries and sums along the last axis, not matrix products (`@`, `einsum`, `dot`), whose rounding
        depends on the length of the batch. That is tried on public points, and refused where it shows; so is a map
        that raises on one of them. `block` cannot be written to. `ball.from_frame(block)` are the points in the space,
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

    def placed(self, numbers: FloatArray, ball: Ball) -> Any:
        """Return `value`, or that of the middle where there is none of this kind for what was drawn."""
        return with_fallback(
            lambda: self._checked_value(numbers, ball), lambda: self._checked_value(self.middle(ball), ball),
            *_ABOUT_A_VALUE,
        )  # fmt: skip

    def _checked_value(self, numbers: FloatArray, ball: Ball) -> Any:
        """Return a value that is written and read back as it is."""
        value, kind = self.value(numbers, ball), self.kind.value
        read = value_from_json(value_to_json(value, kind), kind, ball.space, self.shape(ball))
        if not np.array_equal(np.asarray(read), np.asarray(value)):
            raise InvalidDataError(f"it reads back as {shown(read)}")
        return read

    # ---------------------------------------------------------------- the same for all of them

    def shape(self, ball: Ball) -> tuple[int, ...]:
        """Return the shape of a value."""
        return (self.size(ball),) if self.kind is Kind.VECTOR else super().shape(ball)

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound how far one unit moves the average: twice the bound over n, and rounding (theory: averages)."""
        bound = positive_float(self.bound(ball), f"bound of {self.name!r}")
        offset = float(np.linalg.norm(self.middle(ball)))
        return sensitivity.of_average(bound, n, self.name, self.proof, size=self.size(ball), offset=offset)

    def prepared(self, header: Header, *, mechanism: Any = "auto") -> Program[UnitPoints]:
        """Choose the noise, or refuse; look once, at public points, whether `per_unit` keeps its word."""
        require_ball(header.ball)
        checked_arithmetic(header.arithmetic)
        self.refuse_wrong_words(header.ball)
        self.refuse_wrong_map(header.ball)
        calibration = additive(self.sensitivity(header.ball, header.n), header.privacy, mechanism)
        refuse_overflow(calibration.scale)
        return AverageProgram(self, header, calibration)

    def refuse_wrong_words(self, ball: Ball) -> None:
        """Refuse a definition that could be spent on and then not be written, read or shown."""
        for name in ("name", "words"):
            text = getattr(self, name, None)
            if not (isinstance(text, str) and text and text.isprintable()):
                raise InvalidArgumentError(
                    f"{name} of a statistic must be a text that can be printed, got {shown(text)}."
                )
        kind, size = getattr(self, "kind", None), positive_int(self.size(ball), f"size of {self.name!r}")
        if kind not in (Kind.NUMBER, Kind.VECTOR, Kind.MATRIX):
            raise InvalidArgumentError(f"kind of {self.name!r} must be NUMBER, VECTOR or MATRIX, got {shown(kind)}.")
        if size > LONGEST_VECTOR:
            raise InvalidArgumentError(
                f"size of {self.name!r} must be at most {LONGEST_VECTOR:,} to be read again, got {size:,} on "
                f"{ball.space!r}. Choose a space of fewer dimensions."
            )
        needed = math.prod(self.shape(ball))
        if size != needed:
            raise InvalidArgumentError(f"size of {self.name!r} must be {needed} for a {kind.value}, got {size}.")
        middle = np.asarray(self.middle(ball), dtype=np.float64)
        if middle.shape != (size,) or not np.isfinite(middle).all():
            raise InvalidArgumentError(
                f"middle of {self.name!r} must be {size} finite numbers, shape ({size},), got {shown(middle)}."
            )
        try:
            self._checked_value(middle, ball)
        except Exception as problem:
            what = "a finite number" if kind is Kind.NUMBER else f"finite numbers of shape {self.shape(ball)}"
            raise InvalidArgumentError(
                f"value of {self.name!r} must return {what}, as its kind says, and does not for the middle: {problem}."
            ) from problem

    def refuse_wrong_map(self, ball: Ball) -> None:
        """Look at public points, anywhere in the ball: alone, and in batches of several lengths and beginnings."""
        frame, size = ball.frame, self.size(ball)
        steps = np.random.default_rng(0).uniform(-1.0, 1.0, (_PROBES, frame.dim))
        steps *= ball.radius * np.linspace(0.0, 0.999, _PROBES)[:, None] / vector_norm(steps)[:, None]
        probes = frame.exp_coords(frame.origin, steps)
        together = self._tried(probes, ball)
        if together.shape != (len(probes), size):
            raise InvalidArgumentError(
                f"per_unit of {self.name!r} must return shape (b, {size}) for b points, got {together.shape} for "
                f"{len(probes)}."
            )
        if not np.isfinite(together).all():
            raise InvalidArgumentError(
                f"per_unit of {self.name!r} must give finite numbers, and does not for some of {_PROBES:,} public "
                "points of the ball: such a unit would count as the middle. Say what it counts for "
                "(np.nan_to_num does, for 0)."
            )
        for first, last in _BATCHES:
            if not np.array_equal(together[first:last], self._tried(probes[first:last], ball), equal_nan=True):
                raise InvalidArgumentError(
                    f"per_unit of {self.name!r} must map each point by itself, bit for bit: a point alone gives other "
                    "numbers than among others, and one record would change what others count for. Matrix products "
                    "do that: write (block * weights).sum(axis=-1) for block @ weights."
                )

    def _tried(self, points: Array, ball: Ball) -> FloatArray:
        """Return what the map makes of public points, which it may not change; or say that it fails."""
        try:
            return self._mapped(points.copy(), ball)
        except Exception as problem:
            raise InvalidArgumentError(
                f"per_unit of {self.name!r} fails on points of the ball: {problem}. It must give a vector for every "
                "point, and change none."
            ) from problem

    def _mapped(self, points: Array, ball: Ball) -> FloatArray:
        """Call the map. It is a stranger's: it may neither write to points nor say anything about them."""
        points.flags.writeable = False
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return np.asarray(self.per_unit(points, ball), dtype=np.float64)

    def vectors(self, block: Array, ball: Ball) -> FloatArray:
        """Return what units count for, seen from the middle and cut to the bound, (b, size). Never raises."""
        return shorten(self.seen(block, ball), self.bound(ball))

    def seen(self, block: Array, ball: Ball) -> FloatArray:
        """Return the same before it is cut; a unit whose vector is not finite counts as the middle. Never raises."""
        found = np.zeros((len(block), self.size(ball)))
        for start in range(0, len(block), _PIECE):
            part = block[start : start + _PIECE]
            self._fill(found[start : start + _PIECE], part, ball, 0, len(part))
        return np.where(np.isfinite(found).all(axis=1, keepdims=True), found, 0.0)

    def stating(self) -> dict[str, float]:
        """Return what a release states of the options: its details, from which `as_stated` finds them again."""
        return {}

    @property
    def registered(self) -> Statistic:
        """The statistic as it is registered, whose options releases state; itself, if it has none."""
        return (STATISTICS.find(self.name) or self) if self.stating() else self

    def average(self, points: UnitPoints) -> FloatArray:
        """Return the average of what units count for, (size,). NOT PRIVATE, and it may raise."""
        ball = points.ball
        return points.mean_of(lambda block: self.vectors(block, ball), self.bound(ball)) + self.middle(ball)

    @property
    def is_own(self) -> bool:
        """Whether the map is the library's own."""
        return is_own(self)

    def _fill(self, found: FloatArray, block: Array, ball: Ball, first: int, last: int) -> None:
        """Compute rows first to last of a block; a row whose numbers make the map raise stays 0.

        One point's failure must not show in what others count for, to the last bit: they are computed again in a batch
        of the same length and at the same places, the others being the centre.
        """
        expected: tuple[type[Exception], ...] = NUMERICAL if self.is_own else _ABOUT_A_VALUE
        shown = np.broadcast_to(ball.frame.origin, block.shape).copy()
        shown[first:last] = block[first:last]
        try:
            found[first:last] = (self._mapped(shown, ball).reshape(found.shape) - self.middle(ball))[first:last]
        except expected:
            if last - first > 1:
                middle = (first + last) // 2
                self._fill(found, block, ball, first, middle)
                self._fill(found, block, ball, middle, last)

    def as_stated(self, release: Release) -> Self:
        """Return the statistic with the options that a release states in its details; itself, if it has none."""
        return self

    def largest(self, ball: Ball) -> float:
        """Return a bound on the length of averages, for the grid."""
        return self.bound(ball) + float(np.linalg.norm(self.middle(ball)))

    def limits_of(self, ball: Ball) -> Limits:
        """Return what averages of units in the ball can be: no farther from the middle than the bound."""
        return limits_of_length(self.size(ball), self.middle(ball), self.bound(ball))

    def step(self, header: Header, calibration: Calibration) -> Step:
        """Return the one draw, as public numbers foresee it."""
        ball = header.ball
        return additive_step(self, header, calibration, self.error(ball, calibration).mean, self.range(ball))

    def draws(
        self,
        units: Hidden[Any],
        header: Header,
        calibration: Calibration,
        steps: tuple[Release, ...] = (),
        details: dict[str, float] | None = None,
    ) -> Drawing[Release]:
        """Average and draw, in the ball of the header, which is the one that the units' points are in."""
        ball = header.ball
        hidden = units.then(self.average, lambda points: self.middle(ball))
        drawn: Drawn = yield VectorDraw(hidden, calibration, self.largest(ball), lambda: self.limits_of(ball))
        value = self.placed(drawn.numbers, ball)
        stated = {**self.stating(), **(details or {})}
        return (
            yield from step_of(
                Release.of(
                    self.registered, value, header, calibration, (drawn,), steps, stated, tol=0.0, projected=False
                )
            )
        )

    # ---------------------------------------------------------------- for people

    def states_error(self, release: Release) -> bool:
        """Return True: the law of the noise is known."""
        return True

    def forecast(self, release: Release) -> Forecast:
        """Return the law of the error of the value."""
        return self.as_stated(release).error(release.ball, release.calibration)

    def error(self, ball: Ball, calibration: Calibration) -> Forecast:
        """Return the law of the error of the value, by noise so calibrated: that of its length on the average."""
        return additive_forecast(calibration, self.size(ball))

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


class AverageProgram(Program[Any]):
    """One draw: an average with noise of a scale that public numbers gave.

    A query about records with something beside them says by `scores` what is averaged.
    """

    def __init__(
        self,
        statistic: AveragedStatistic,
        header: Header,
        calibration: Calibration,
        scores: Callable[[Any], Any] | None = None,
    ) -> None:
        self.statistic, self.header, self.calibration, self._scores = statistic, header, calibration, scores

    def steps(self) -> tuple[Step, ...]:
        """Return the one draw."""
        return (self.statistic.step(self.header, self.calibration),)

    def draws(self, units: Hidden[Any]) -> Drawing[Release]:
        """Average and draw."""
        scored = units if self._scores is None else units.then(self._scores)
        return self.statistic.draws(scored, self.header, self.calibration)
