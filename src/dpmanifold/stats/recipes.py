"""How releases are made: steps, and how the promise is shared out among them. `verify` reads a release against these.

Every statistic states its own recipes (`Statistic.recipes`); the steps that they rest on are recipes by themselves.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from dpmanifold._version import __version__
from dpmanifold.privacy import ApproxDP, Promise, PureDP, compose
from dpmanifold.release import NEIGHBOURS, NEIGHBOURS_BY_CLASS, Release
from dpmanifold.statistic import STATISTICS
from dpmanifold.stats.inputs import divide

# Versions whose releases are made by the recipes.
VERSIONS = (__version__,)

# What a mean by class states, and what of it says into how many shares the promise was divided.
TOUCHED = "classes a unit touches"
CLASSES = frozenset({"classes", TOUCHED})
# More classes than anybody lists: beyond, a number of them is taken for a wrong one.
MOST_CLASSES = 1_000_000

EITHER = (NEIGHBOURS, NEIGHBOURS_BY_CLASS)


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
    shaped : whether it states a public shape
    """

    statistic: str
    mechanisms: Container[str]
    shares: tuple[float, ...] = (1.0,)
    step: Recipe | None = None
    details: frozenset[str] = frozenset()
    optional: tuple[frozenset[str], ...] = ()
    projected: bool | None = None
    neighbours: tuple[str, ...] = EITHER
    corrected: bool = False
    shrinks: bool = False
    refined: str = ""
    shaped: bool = False

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
            promise = PureDP(promise.stated["epsilon"])
        return [promise] if len(self.shares) == 1 else divide(promise, self.shares)


def recipes_of(release: Release) -> list[Recipe]:
    """Return the recipes that make a release of this statistic from such steps; where two fit, by its own shares."""
    return [
        recipe
        for recipe in _recipes(release.statistic)
        if _has_steps(release, recipe.step)
        and recipe.suits(granted(release))
        and recipe.shaped == (release.shape is not None)
    ]


def _recipes(statistic: str) -> Iterator[Recipe]:
    """Give the recipes of a statistic by itself, and then those in which it is a step of others."""
    yield from STATISTICS.get(statistic).recipes()
    for other in STATISTICS.own():  # what others offer is not looked at for what the library makes
        for recipe in other.recipes():
            step = recipe.step
            while step is not None:
                if step.statistic == statistic:
                    yield step
                step = step.step


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
    return release.details.get(TOUCHED, 1.0)


def granted(release: Release) -> Promise:
    """Return the part of the promise that a release and its steps may cost together: a class gets its share."""
    touched = classes_touched(release)
    # The first of as many equal shares, without making a list of them: the number is a stranger's.
    return release.privacy if touched == 1 else divide(release.privacy, (1.0, touched - 1.0))[0]


def together(shares: list[Promise]) -> Promise:
    """Return what shares promise together; a single one as it is."""
    return shares[0] if len(shares) == 1 else compose(shares)
