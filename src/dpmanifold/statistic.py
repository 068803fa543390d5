"""What a statistic is: one object that answers everything that differs from one statistic to the next.

How it is planned from public numbers, computed and drawn; what its value is in JSON; what its bound, scale, grid and
value must be when somebody recomputes them; what to tell people and what to draw. Everything else (reading, checking,
spending, writing, verifying, the command line, pictures, reports) asks the object and knows no names.

The library's own are in `stats/`, one file each. Another distribution adds one by an entry point in the group
`dpmanifold.statistics`, a script by `STATISTICS.register`. Most need no more than :class:`AveragedStatistic`.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.privacy import Promise
from dpmanifold.registry import Registry, is_own

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmanifold.frechet.points import UnitPoints
    from dpmanifold.release import Clipping, Release
    from dpmanifold.result import Result
    from dpmanifold.stats.draws import Bits
    from dpmanifold.stats.recipes import Recipe

NEIGHBOURS = "replace one unit; the number of units is public"
NEIGHBOURS_BY_CLASS = (
    "replace one unit by one with records in the same classes; labels, and which unit is in which class, are public"
)
NEIGHBOURS_WITH_LABELS = (
    "replace one unit, its records and their classes; the number of units and the list of classes are public"
)
NEIGHBOURS_BY_COVARIATE = (
    "replace one unit by one with as many records and the same covariates; covariates, and how many records a unit "
    "has, are public"
)
DRAW_COVERED = "a draw's steps do not depend on the data; the time of arithmetic, clipping and solving is not covered"
NOT_COVERED = "not covered: the draw's work depends on the data"


class Kind(Enum):
    """What a value is; its JSON has this name."""

    POINT = "point"
    VECTOR = "vector"
    MATRIX = "matrix"
    NUMBER = "number"
    BALL = "ball"


@dataclass(frozen=True)
class Header:
    """What a private call is about, all of it public: it travels as one object from the call to the release.

    Attributes
    ----------
    ball : the public (or released) ball
    n, unit : how many units, and what a unit is
    privacy : what the release states: all of its steps together
    neighbours : the neighbouring relation
    arithmetic : "auto", "exact" or "float", as it was asked for
    """

    ball: Ball
    n: int
    privacy: Promise
    unit: str = "record"
    neighbours: str = NEIGHBOURS
    arithmetic: str = "auto"

    def promising(self, privacy: Promise) -> Header:
        """Return the header of a step that states this promise."""
        return replace(self, privacy=privacy)

    def inside(self, ball: Ball) -> Header:
        """Return the header on another ball."""
        return replace(self, ball=ball)

    def about(self, n: int) -> Header:
        """Return the header of a group of n units."""
        return replace(self, n=n)


@dataclass(frozen=True)
class Step:
    """One draw of a private call, as public numbers foresee it.

    Attributes
    ----------
    statistic, mechanism, share, scale, rule : as the release of the step will state them
    error : how far the noise is expected to move what is released; None where no error can be stated
    range : the size that error is held against: the ball's radius, or the largest value; None where there is none
    exact : True if the scale is the one to come, False if it is a proven upper bound
    covers_timing : whether a draw takes as many steps whatever the data are
    arithmetic : "exact" or "float", how a release would draw its noise
    group : where groups are drawn one by one, which of them it is, in words
    error_exact : False if the error is an upper bound although the scale is exact: the draw is moved into the ball
    """

    statistic: str
    mechanism: str
    share: Promise
    scale: float
    rule: str
    error: float | None
    range: float | None
    exact: bool
    covers_timing: bool = True
    arithmetic: str = "exact"
    group: str = ""
    error_exact: bool = True

    @property
    def of_range(self) -> float | None:
        """The expected error as a part of the range, or None."""
        return None if self.error is None or not self.range else self.error / self.range


class Prepared(ABC):
    """Every choice and every refusal of a private call, made from public numbers: behind it nothing raises.

    Attributes
    ----------
    header : what it is about
    """

    header: Header

    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """Return the draws to come, in their order: the forecast."""

    @abstractmethod
    def release(self, points: UnitPoints, bits: Bits) -> Release:
        """Compute and draw; the budget is spent by now, and whatever the points are, it never raises."""


class Statistic(ABC):
    """A statistic: its name, and everything that depends on which one it is.

    Methods with `release` read what a release states and touch no data.
    """

    name: str
    """In JSON, on the command line and in Python."""
    words: str
    """What it is, in a few words for people, such as "Fréchet variance (squared distance)"."""
    kind: Kind
    """What its value is."""
    details: frozenset[str] = frozenset()
    """Names of the further public numbers that a release of it may state."""
    power: int = 0
    """Of a moment: the power of the distance that is averaged; else 0."""
    error_of: str = ""
    """What of the value the stated error is about, held against the radius; empty where it is about all of it."""

    # ---------------------------------------------------------------- asking

    @abstractmethod
    def prepared(self, header: Header, *_: Any, **options: Any) -> Prepared:
        """Choose how to release it, or refuse: from public numbers, before any data is seen.

        Every statistic takes `mechanism` ("auto", a name or an object) among the options; others are its own.
        """

    # ---------------------------------------------------------------- the value

    def shape(self, ball: Ball) -> tuple[int, ...]:
        """Return the shape of a value that is a point, a vector or a matrix."""
        return {Kind.POINT: ball.space.shape, Kind.MATRIX: (ball.space.dim, ball.space.dim)}.get(self.kind, ())

    def shape_stated(self, ball: Ball, details: Mapping[str, float]) -> tuple[int, ...]:
        """Return the same, where it depends on what a release states; an error tells of details that give none."""
        return self.shape(ball)

    # ---------------------------------------------------------------- what verify recomputes

    @abstractmethod
    def recipes(self) -> Sequence[Recipe]:
        """Return every way in which the library makes it: steps, shares of the promise, details."""

    @abstractmethod
    def calibrated(self, release: Release) -> tuple[Calibration, float]:
        """Return scale, bound and rule as they should be, and a length that noise on a point surely stays below."""

    @abstractmethod
    def grid(self, release: Release, calibration: Calibration) -> int | None:
        """Return the exponent of the grid that public numbers give; None if it cannot be drawn exactly."""

    @abstractmethod
    def value_faults(self, release: Release, noise: float) -> list[str]:
        """Return why the value could not have been released, if noise on a point is no longer than this."""

    @abstractmethod
    def drawn_faults(self, release: Release, noise: float) -> list[str]:
        """Return why an exact draw on its grid is not what the value was made of."""

    def as_drawn(self, release: Release) -> FloatArray | None:
        """Return the numbers that were drawn, one axis; None where neither draw nor value tells them."""
        return release.drawn

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return what is wrong with the further numbers."""
        return []

    def step_faults(self, release: Release, step: Release) -> list[str] | None:
        """Return what is wrong between a release and the step it rests on, besides units and promises.

        None stands for the rule: it is on the ball that the step is on, or that the step released.
        """
        return None

    def tolerance(self, release: Release) -> float:
        """Return the public tolerance of the solver, 0 where nothing is solved."""
        return 0.0

    def timing(self, release: Release) -> str:
        """Say what the running time tells: the draw's own, unless a step's depends on the data."""
        return release.steps[0].timing if release.steps else DRAW_COVERED

    # ---------------------------------------------------------------- for people

    def estimand(self, release: Release) -> str | None:
        """Return which mean it is: "frechet", "tangent" or "extrinsic"; None of what is no mean."""
        return None

    def states_error(self, release: Release) -> bool:
        """Return whether a release states how far noise is to be expected to move it; then `forecast` works."""
        return False

    def forecast(self, release: Release) -> Forecast:
        """Return the law of the noise as a distance between values; refuse where none can be stated."""
        raise InvalidArgumentError(
            f"noise_error is for what is a point or an average, this is a {self.name}: its noise has scale "
            f"{release.scale:g}."
        )

    def noise_scales(self, release: Release) -> FloatArray | float:
        """Return the scale of the noise on the value's numbers, in their own units: one for all, or one for each."""
        return release.scale

    def clipping(self, release: Release) -> Clipping | None:
        """Return how far clipping to a released ball may have moved the value; None if there was none."""
        return release.clipping_to_ball()

    def besides_noise(self, release: Release) -> tuple[float, str] | None:
        """Return how far the value is to be expected from what it stands for besides noise and clipping, in words too.

        None stands for nothing. `Release.error` adds it.
        """
        return None

    def hidden(self, release: Release, points: Callable[[], UnitPoints]) -> tuple[Array, float] | None:
        """Return the mean that noise hides, and the share of the units that were cut on the way to it. NOT PRIVATE.

        `points` makes the units' points in the ball's frame. None stands for what its mechanism hides.
        """
        return None

    def range(self, ball: Ball) -> float | None:
        """Return the size that noise is held against: with as much, the value says nothing. None if there is none."""
        return None

    def limits(self, ball: Ball) -> tuple[float, float]:
        """Return the ends between which a number lies before noise is added; infinite where there are none."""
        return -math.inf, math.inf

    def notes(self, release: Release) -> list[str]:
        """Say what a reader of the value should know besides the promise; post-processing."""
        return []

    def conclusion(self, release: Release) -> Result | None:
        """Return what the release is made for, where it is drawn for something else's sake."""
        return None

    def picture(self, release: Release) -> Figure | None:
        """Return a figure of its own; None stands for the picture of its kind."""
        return None


STATISTICS: Registry[Statistic] = Registry(
    "statistic", "dpmanifold.statistics", Statistic, brought_by="dpmanifold.queries", is_own=is_own
)
"""All statistics by name."""


def refuse_unknown(
    name: str, asked: Callable[..., object], options: Mapping[str, object], besides: Sequence[str] = ()
) -> None:
    """Refuse options that a statistic of this name does not take: a header is none, nor are others that are told."""
    taken = inspect.signature(asked).parameters
    known = [
        option
        for option, parameter in taken.items()
        if (parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty)
        and option not in besides
    ]
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in taken.values())
    for option in options:
        if option not in known and (option in taken or not open_ended):
            raise InvalidArgumentError(
                f"{option} is no option of the statistic {name!r}, which takes: {', '.join(known)}."
            )


def private_words(name: str) -> str:
    """Return the name of a statistic with "private" before it, and "a" where it is one thing.

    Examples
    --------
    >>> private_words("mean"), private_words("joint moments")
    ('a private mean', 'private joint moments')
    """
    several = name.endswith("s") and not name.endswith(("ss", "us", "is", "as"))
    return f"private {name}" if several else f"a private {name}"


def statistic_named(name: object) -> Statistic:
    """Return a statistic by name, where spaces may be written as hyphens, or the one that is given.

    One that is given need not be registered, and is not by this; but then its name must be its own: a release states
    the name, and whoever loads or verifies it looks the name up.

    Examples
    --------
    >>> import dpmanifold
    >>> statistic_named("second-moment").name, statistic_named("mean").kind
    ('second moment', <Kind.POINT: 'point'>)
    """
    if isinstance(name, Statistic):
        return STATISTICS.lend(getattr(name, "name", ""), name)
    spaced = name.replace("-", " ") if isinstance(name, str) and name not in STATISTICS else name
    return STATISTICS.get(spaced if spaced in STATISTICS else name)
