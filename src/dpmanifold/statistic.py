"""What a statistic is: one object that answers everything that differs from one statistic to the next.

How it is planned from public numbers, computed and drawn; what its value is in JSON; what to tell people and what to
draw. Everything else (reading, checking, spending, writing, verifying, the command line, pictures, reports) asks the
object and knows no names.

The library's own are in `stats/`, one file each. Another distribution adds one by an entry point in the group
`dpmanifold.statistics`, a script by `STATISTICS.register`. Most need no more than :class:`AveragedStatistic`.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.mechanisms import Forecast
from dpmanifold.privacy import Promise
from dpmanifold.registry import Registry, is_own

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpmanifold.frechet.points_per_unit import UnitPoints
    from dpmanifold.release import Clipping, Release
    from dpmanifold.result import Result
    from dpmanifold.stats.program import Program

REPLACE_ONE_UNIT = "replace-one-unit"
REPLACE_ONE_UNIT_SAME_CLASSES = "replace-one-unit-same-classes"
REPLACE_ONE_UNIT_AND_LABELS = "replace-one-unit-and-labels"
REPLACE_ONE_UNIT_SAME_COVARIATES = "replace-one-unit-same-covariates"
#: Which data sets are adjacent: the names that releases state, and what they mean.
ADJACENCY = {
    REPLACE_ONE_UNIT: "replace one unit; the number of units is public",
    REPLACE_ONE_UNIT_SAME_CLASSES: (
        "replace one unit by one with records in the same classes; labels, and which unit is in which class, are public"
    ),
    REPLACE_ONE_UNIT_AND_LABELS: (
        "replace one unit, its records and their classes; the number of units and the list of classes are public"
    ),
    REPLACE_ONE_UNIT_SAME_COVARIATES: (
        "replace one unit by one with as many records and the same covariates; covariates, and how many records a "
        "unit has, are public"
    ),
}
DRAW_COVERED = "a draw's steps do not depend on the data; the time of arithmetic, clipping and solving is not covered"
NOT_COVERED = "not covered: the draw's work depends on the data"


class Kind(Enum):
    """What a value is; its JSON has this name."""

    POINT = "point"
    VECTOR = "vector"
    MATRIX = "matrix"
    NUMBER = "number"
    BALL = "ball"


class Decisions:
    """What was chosen where public or released numbers leave a choice, by name.

    A call makes decisions and its release states them. Whoever replays it takes them as stated and checks that they
    could be made: two that are nearly as good change places on another machine.

    Parameters
    ----------
    stated : those of a release; None for a call, which makes its own
    group : which of several groups that release is about
    """

    def __init__(self, stated: Mapping[str, str] | None = None, group: int | None = None) -> None:
        self._group = group
        self.made = dict(stated or {})
        self.asked: set[str] = set()
        self._replayed = stated is not None

    def make(self, name: str, choose: Callable[[], str], admissible: Callable[[str], bool]) -> str:
        """Return what is chosen, or what a release states if it is admissible."""
        self.asked.add(name)
        if not self._replayed:
            self.made[name] = choose()
        elif name not in self.made:
            choose()  # where nothing can be chosen nothing is stated, and this says why
            raise InvalidDataError(f"the decision {name!r} is not stated")
        elif not admissible(self.made[name]):
            raise InvalidDataError(f"the decision {name!r} cannot have been {shown(self.made[name])}")
        return self.made[name]

    def groups(self, count: int) -> Sequence[int]:
        """Return the groups to plan: all of them, of a replay the one that it is about."""
        if self._group is None:
            return range(count)
        if not 0 <= self._group < count:
            raise InvalidDataError(f"it is about group {self._group + 1} of {count}")
        return [self._group]

    def about(self, group: int | None) -> dict[str, str]:
        """Return those that a release of one of several groups rests on."""
        ours = _of_group(group, "")
        return {name: one for name, one in self.made.items() if name.startswith(ours) or not name.startswith("group_")}


def _of_group(group: int | None, name: str) -> str:
    return name if group is None else f"group_{group + 1}_{name}"


@dataclass(frozen=True)
class Header:
    """What a private call is about, all of it public: it travels as one object from the call to the release.

    Attributes
    ----------
    ball : the public (or released) ball
    n, unit : how many units, and what a unit is
    privacy : what the release states: all of its steps together
    adjacency : which data sets are adjacent, by name (:data:`~dpmanifold.statistic.ADJACENCY`)
    arithmetic : "auto", "exact" or "float", as it was asked for
    private : False where a seed or a generator is used, or the ball comes from a simulation
    group : which of several groups it is about; None where there is one
    decisions : what is chosen on the way
    """

    ball: Ball
    n: int
    privacy: Promise
    unit: str = "record"
    adjacency: str = REPLACE_ONE_UNIT
    arithmetic: str = "auto"
    private: bool = True
    group: int | None = None
    decisions: Decisions = field(default_factory=Decisions, compare=False, repr=False)

    def promising(self, privacy: Promise) -> Header:
        """Return the header of a step that states this promise."""
        return replace(self, privacy=privacy)

    def inside(self, ball: Ball) -> Header:
        """Return the header on another ball."""
        return replace(self, ball=ball)

    def about(self, group: int, n: int) -> Header:
        """Return the header of one of several groups, which has n units."""
        return replace(self, group=group, n=n)

    def decide(self, name: str, choose: Callable[[], str], admissible: Callable[[str], bool]) -> str:
        """Return what is chosen under a name, for each group by itself (:class:`Decisions`)."""
        return self.decisions.make(_of_group(self.group, name), choose, admissible)


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
    def prepared(self, header: Header, *_: Any, **options: Any) -> Program[Any]:
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
