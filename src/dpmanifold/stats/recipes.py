"""How every release is made: its steps, and how the promise is shared out among them. One table, which `verify` reads.

Whoever adds a statistic, a step, a share or a detail adds it here (and names of details to `records.DETAILS`).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace

from dpmanifold._version import __version__
from dpmanifold.inference.estimate import GAUSSIAN_MEANS
from dpmanifold.mechanisms import MECHANISMS, candidates
from dpmanifold.privacy import ApproxDP, Promise, PureDP, compose
from dpmanifold.release import NEIGHBOURS, NEIGHBOURS_BY_CLASS, Release
from dpmanifold.stats.inference import INTERVAL_SHARES, REGION_SHARES
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.refine import BALL_SHARES, PURE_REFINE_SHARES, REFINE_SHARES
from dpmanifold.stats.variance import VARIANCE_SHARES

# Versions whose releases are made by the recipes below.
VERSIONS = (__version__,)

CLASSES = frozenset({"classes", "classes a unit touches"})
REVEALED = frozenset({"revealed error", "revealed share clipped"})
SKIPPED = frozenset({"refine skipped"})

# More classes than anybody lists: beyond, a number of them is taken for a wrong one.
MOST_CLASSES = 1_000_000

_MOMENT_NOISE = ("laplace", "gaussian")
_POINTS = tuple(m.name for m in candidates(everything=True) if not m.baseline)
_AUTOMATIC = tuple(m.name for m in candidates())
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
    shrinks : whether the draw may be moved towards the centre
    refined : whether its promise was first shared with a ball: "pure" the way pure promises are, "other" as others are
    """

    statistic: str
    mechanisms: Container[str]
    shares: tuple[float, ...] = (1.0,)
    step: Recipe | None = None
    details: frozenset[str] = frozenset()
    optional: tuple[frozenset[str], ...] = ()
    projected: bool | None = None
    neighbours: tuple[str, ...] = _EITHER
    corrected: bool = False
    shrinks: bool = False
    refined: str = ""

    def suits(self, promise: Promise) -> bool:
        """Whether a promise of that kind is divided in this way; an approximate one may be refined either way."""
        return (
            isinstance(promise, ApproxDP) or not self.refined or (self.refined == "pure") == isinstance(promise, PureDP)
        )

    @property
    def before(self) -> int:
        """How many of the shares its step takes."""
        return 0 if self.step is None else len(self.step.shares)

    def divided(self, promise: Promise) -> list[Promise]:
        """Return the shares of a promise, as whoever follows the recipe divides it."""
        if self.refined == "pure" and isinstance(promise, ApproxDP):
            promise = PureDP(promise.epsilon)
        return [promise] if len(self.shares) == 1 else divide(promise, self.shares)


def _mean(mechanisms: Container[str]) -> Recipe:
    return Recipe("mean", mechanisms, optional=(SKIPPED,), projected=True)


def _variance(shares: tuple[float, ...], step: Recipe | None, corrected: bool) -> Recipe:
    names = frozenset({"reference to centre", "excess subtracted"})
    return Recipe("variance", _MOMENT_NOISE, shares, step, names, (), True, (NEIGHBOURS,), corrected)


def _moment(statistic: str, shares: tuple[float, ...], step: Recipe, relations: tuple[str, ...]) -> Recipe:
    return Recipe(statistic, ("gaussian",), shares, step, frozenset({"reference to centre"}), (), False, relations)


def _ball(shares: tuple[float, ...]) -> Recipe:
    names = frozenset({"search share", "count noise", "coverage", "units inside"})
    return Recipe("ball", _AUTOMATIC, shares, None, names, (), True)


def _in_smaller_ball(recipe: Recipe, way: str = "other") -> Recipe:
    """Return the recipe with a ball found first, which takes all but the last of the shares of refinement."""
    *ball, rest = PURE_REFINE_SHARES if way == "pure" else REFINE_SHARES
    weights = (*ball, *(rest * share / sum(recipe.shares) for share in recipe.shares))

    def after(part: Recipe) -> Recipe:
        step = replace(_ball(tuple(ball)), refined=way) if part.step is None else after(part.step)
        optional = tuple(group for group in part.optional if group != SKIPPED)
        return replace(part, shares=weights[: len(ball) + len(part.shares)], step=step, optional=optional, refined=way)

    return after(recipe)


def _steps_first(recipe: Recipe) -> Recipe:
    assert recipe.step is not None
    return recipe.step


_MEAN = Recipe("mean", MECHANISMS, optional=(CLASSES, REVEALED, SKIPPED), shrinks=True)
_GROUP_MEAN = _mean(GAUSSIAN_MEANS)
_INTERVAL_VARIANCE = _variance(INTERVAL_SHARES[:2], _GROUP_MEAN, corrected=False)
_SECOND_MOMENT = _moment("second moment", REGION_SHARES, _GROUP_MEAN, _EITHER)
_FOURTH_MOMENT = _moment("fourth moment", INTERVAL_SHARES, _INTERVAL_VARIANCE, (NEIGHBOURS,))

# Every release that a user can hold, steps of others included; where two fit, the one whose shares agree is meant.
RECIPES = (
    _MEAN,
    _in_smaller_ball(_MEAN, "pure"),
    _in_smaller_ball(_MEAN),
    _ball(BALL_SHARES),
    replace(_ball(PURE_REFINE_SHARES[:2]), refined="pure"),
    replace(_ball(REFINE_SHARES[:2]), refined="other"),
    _variance((1.0,), None, corrected=False),
    _variance(VARIANCE_SHARES, _mean(_POINTS), corrected=True),
    _INTERVAL_VARIANCE,
    _SECOND_MOMENT,
    _FOURTH_MOMENT,
    *(_in_smaller_ball(recipe) for recipe in (_SECOND_MOMENT, _FOURTH_MOMENT)),
    # Their steps by themselves.
    _steps_first(_in_smaller_ball(_SECOND_MOMENT)),
    _steps_first(_in_smaller_ball(_FOURTH_MOMENT)),
    _steps_first(_steps_first(_in_smaller_ball(_FOURTH_MOMENT))),
)


def recipes_of(release: Release) -> list[Recipe]:
    """Return the recipes that make a release of this statistic from such steps."""
    return [
        r
        for r in RECIPES
        if r.statistic == release.statistic and _has_steps(release, r.step) and r.suits(granted(release))
    ]


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
