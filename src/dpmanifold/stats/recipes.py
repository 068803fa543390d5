"""How every release is made: its steps, and how the promise is shared out among them. One table, which `verify` reads.

Whoever adds a statistic, a step, a share or a detail adds it here (and names of details to `records.DETAILS`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpmanifold._version import __version__
from dpmanifold.inference.estimate import GAUSSIAN_MEANS
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.privacy import Promise, compose
from dpmanifold.release import NEIGHBOURS, NEIGHBOURS_BY_CLASS, Release
from dpmanifold.stats.inference import INTERVAL_SHARES, REGION_SHARES
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.refine import BALL_SHARES, REFINE_SHARES
from dpmanifold.stats.variance import VARIANCE_SHARES

# Versions whose releases are made by the recipes below.
VERSIONS = (__version__,)

CLASSES = frozenset({"classes", "classes a unit touches"})
REVEALED = frozenset({"revealed error", "revealed share clipped"})

_MOMENT_NOISE = ("laplace", "gaussian")
_POINTS = tuple(mechanism.name for mechanism in MECHANISMS.values() if not mechanism.baseline)
_AUTOMATIC = tuple(m.name for m in MECHANISMS.values() if m.automatic and not m.baseline)
_EITHER = (NEIGHBOURS, NEIGHBOURS_BY_CLASS)


@dataclass(frozen=True)
class Recipe:
    """One way in which the library makes a statistic.

    Attributes
    ----------
    statistic : its name
    mechanisms : those it may be drawn with
    shares : how its promise is divided, in the order of use: what the step takes, what this statistic's own noise
        takes, and for a ball what its counts take
    step : the recipe of the one release that it rests on, if it rests on any
    details : the names it states
    optional : further names, each group stated as a whole or not at all
    projected : whether the draw is moved into the ball; None where the caller chooses
    neighbours : the relations it may state
    corrected : whether a variance subtracts what noise on its step's mean adds
    """

    statistic: str
    mechanisms: tuple[str, ...]
    shares: tuple[float, ...] = (1.0,)
    step: Recipe | None = None
    details: frozenset[str] = frozenset()
    optional: tuple[frozenset[str], ...] = ()
    projected: bool | None = None
    neighbours: tuple[str, ...] = _EITHER
    corrected: bool = False

    @property
    def before(self) -> int:
        """How many of the shares its step takes."""
        return 0 if self.step is None else len(self.step.shares)

    def divided(self, promise: Promise) -> list[Promise]:
        """Return the shares of a promise, as whoever follows the recipe divides it."""
        return [promise] if len(self.shares) == 1 else divide(promise, self.shares)


def _mean(mechanisms: tuple[str, ...]) -> Recipe:
    return Recipe("mean", mechanisms, projected=True)


def _variance(shares: tuple[float, ...], step: Recipe | None, corrected: bool) -> Recipe:
    names = frozenset({"reference to centre", "excess subtracted"})
    return Recipe("variance", _MOMENT_NOISE, shares, step, names, (), True, (NEIGHBOURS,), corrected)


def _moment(statistic: str, shares: tuple[float, ...], step: Recipe, relations: tuple[str, ...]) -> Recipe:
    return Recipe(statistic, ("gaussian",), shares, step, frozenset({"reference to centre"}), (), False, relations)


def _ball(shares: tuple[float, ...]) -> Recipe:
    return Recipe("ball", _AUTOMATIC, shares, None, frozenset({"count noise", "counts", "coverage"}), (), True)


def _in_smaller_ball(recipe: Recipe, shares: tuple[float, ...]) -> Recipe:
    """Return the recipe with a ball found first: the last of these shares is left for it, the others are the ball's."""
    *ball, rest = shares
    weights = (*ball, *(rest * share / sum(recipe.shares) for share in recipe.shares))

    def after(part: Recipe) -> Recipe:
        step = _ball(tuple(ball)) if part.step is None else after(part.step)
        return replace(part, shares=weights[: len(ball) + len(part.shares)], step=step)

    return after(recipe)


_MEAN = Recipe("mean", tuple(MECHANISMS), optional=(CLASSES, REVEALED))
_INTERVAL_VARIANCE = _variance(INTERVAL_SHARES[:2], _mean(GAUSSIAN_MEANS), corrected=False)

# Every release that a user can hold; where two fit, the one whose shares agree is meant.
RECIPES = (
    _MEAN,
    _in_smaller_ball(_MEAN, REFINE_SHARES),
    _ball(BALL_SHARES),
    _ball(REFINE_SHARES[:2]),
    _variance((1.0,), None, corrected=False),
    _variance(VARIANCE_SHARES, _mean(_POINTS), corrected=True),
    _INTERVAL_VARIANCE,
    _moment("second moment", REGION_SHARES, _mean(GAUSSIAN_MEANS), _EITHER),
    _moment("fourth moment", INTERVAL_SHARES, _INTERVAL_VARIANCE, (NEIGHBOURS,)),
)


def recipes_of(release: Release) -> list[Recipe]:
    """Return the recipes that make a release of this statistic from such steps."""
    return [r for r in RECIPES if r.statistic == release.statistic and _has_steps(release, r.step)]


def _has_steps(release: Release, step: Recipe | None) -> bool:
    if step is None:
        return not release.steps
    return (
        len(release.steps) == 1
        and release.steps[0].statistic == step.statistic
        and _has_steps(release.steps[0], step.step)
    )


def classes_touched(release: Release) -> float:
    """Return how many classes a unit may be in, by what the release states: 1 if it states none."""
    return release.details.get("classes a unit touches", 1.0)


def granted(release: Release) -> Promise:
    """Return the part of the promise that a release and its steps may cost together: a class gets its share."""
    touched = classes_touched(release)
    # The first of as many equal shares, without making a list of them: the number is a stranger's.
    return release.privacy if touched == 1 else divide(release.privacy, (1.0, touched - 1.0))[0]


def together(shares: list[Promise]) -> Promise:
    """Return what shares promise together; a single one as it is."""
    return shares[0] if len(shares) == 1 else compose(shares)
