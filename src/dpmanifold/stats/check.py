"""Checks of a release: against what it states, by anybody; against the data, if these are public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold._check import shown
from dpmanifold.errors import DPManifoldError, InvalidArgumentError
from dpmanifold.inference import Interval, Region, TwoSampleTest
from dpmanifold.mechanisms import attempt, get
from dpmanifold.privacy import Promise, PureDP, compose, gaussian_scale, laplace_scale
from dpmanifold.release import DRAW_COVERED, NEIGHBOURS, NEIGHBOURS_BY_CLASS, NOT_COVERED, Release
from dpmanifold.stats.inputs import checked_units
from dpmanifold.stats.refine import search_of

CANNOT_KNOW = (
    "that noise was really drawn, and from an unpredictable source",
    "that the ball and the number of units were public, and the units are who they are said to be",
    "that nothing else about the same data was released outside this promise",
)

# Statistics about a released point, with the bound that their noise must cover.
_MOMENTS = {
    "variance": sensitivity.of_variance,
    "second moment": sensitivity.of_second_moment,
    "fourth moment": sensitivity.of_fourth_moment,
}


@dataclass(frozen=True)
class Verification:
    """What a check of a release found.

    Attributes
    ----------
    ok : True if everything the release states can be recomputed and agrees
    findings : what was recomputed, or what is wrong, in words
    cannot_know : what no check of the release can tell
    private : False if the release says itself that it is not private
    """

    ok: bool
    findings: tuple[str, ...]
    cannot_know: tuple[str, ...] = CANNOT_KNOW
    private: bool = True

    def __repr__(self) -> str:
        good = (
            "The release is consistent."
            if self.private
            else "The release is consistent, and says that it is NOT PRIVATE."
        )
        lines = [good if self.ok else "THE RELEASE IS NOT CONSISTENT."]
        lines += [f"  - {text}" for text in self.findings]
        lines += ["What this cannot know:"] + [f"  - {text}" for text in self.cannot_know]
        return "\n".join(lines)


def verify(release: Release | Region | Interval | TwoSampleTest) -> Verification:
    """Recompute sensitivity, scale and promise from what a release states. Touches no data.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.stats import EACH_RECORD, private_mean
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> verify(private_mean(np.zeros((9, 1)), ball, PureDP(1.0), units=EACH_RECORD)).ok
    True
    """
    if isinstance(release, (Region, Interval)):
        return verify(release.release)
    if isinstance(release, TwoSampleTest):
        return _verify_pair(release)
    if not isinstance(release, Release):
        raise InvalidArgumentError(f"release must be a Release, got {shown(release)}. Read one with Release.load.")
    try:
        return _checked(release)
    except (DPManifoldError, ArithmeticError, KeyError, TypeError, ValueError) as problem:
        return Verification(False, (f"what the release states cannot be recomputed: {problem}",))


def _checked(release: Release) -> Verification:
    """Recompute everything, or raise what stands in the way."""
    good: list[str] = []
    bound, scale = _recomputed(release)
    bad = _contradictions(release)
    _compare("sensitivity", release.sensitivity.value, bound, good, bad)
    _compare("scale", release.scale, scale, good, bad)
    parts: list[Promise] = [release.share, *_other_costs(release)]
    total = compose(parts) if len(parts) > 1 else parts[0]
    if total.implies(release.privacy) or _within_rounding(total, release.privacy):
        good.append(f"the steps together promise {total}, which implies the stated {release.privacy}")
    else:
        bad.append(f"the steps together promise only {total}, which does not imply the stated {release.privacy}")
    for step in release.steps:
        inner = verify(step)
        said = "consistent" if inner.ok else "; ".join(inner.findings)
        (good if inner.ok else bad).append(f"step '{step.statistic}': {said}")
    if release.ball.origin.startswith("released under") and not release.steps:
        good.append("the ball was itself released: what that cost comes on top of this promise")
    if not release.private:
        good.append("the release says itself that it is NOT PRIVATE: a seed was used or something was revealed")
    return Verification(not bad, tuple(bad + good), private=release.private)


def _verify_pair(test: TwoSampleTest) -> Verification:
    """Check both groups; each unit is in one of them, so the promises do not add up."""
    found = [verify(test.first), verify(test.second)]
    bad = []
    if test.first.privacy != test.second.privacy:
        bad.append("the groups were promised different things")
    if test.first.unit != test.second.unit:
        bad.append("the groups have different kinds of units")
    if test.first.neighbours != NEIGHBOURS_BY_CLASS or test.second.neighbours != NEIGHBOURS_BY_CLASS:
        bad.append("the groups do not say that membership is public, without which their promises add up")
    texts = [
        f"{name} group: {text}" for name, one in zip(("first", "second"), found, strict=True) for text in one.findings
    ]
    return Verification(not bad and all(one.ok for one in found), (*bad, *texts), private=test.private)


def _recomputed(release: Release) -> tuple[float, float]:
    """Return sensitivity and scale as they should be, or raise what is wrong."""
    if release.statistic in ("mean", "ball"):
        found = attempt(get(release.mechanism), release.ball, release.n, release.share)
        if isinstance(found, str):
            raise InvalidArgumentError(f"{release.mechanism} cannot keep {release.share} there: {found}")
        return found[0].sensitivity.value, found[0].scale
    if release.statistic not in _MOMENTS:
        raise InvalidArgumentError(f"there is no statistic {release.statistic!r}")
    pure = isinstance(release.share, PureDP)
    if release.mechanism != ("laplace" if pure else "gaussian"):
        raise InvalidArgumentError(f"{release.mechanism} noise does not keep {release.share}")
    away = release.details["reference to centre"]
    bound = _MOMENTS[release.statistic](release.ball, release.n, away=away).value
    return bound, laplace_scale(bound, release.share) if pure else gaussian_scale(bound, release.share)


def _contradictions(release: Release) -> list[str]:
    """Return what the release states against itself, its steps or the library."""
    found = []
    if release.neighbours not in (NEIGHBOURS, NEIGHBOURS_BY_CLASS):
        found.append("the neighbouring relation is not one that the library promises for")
    if release.arithmetic != "float":
        found.append("the arithmetic is not what this library does")
    if not release.tol <= frechet.default_tol(release.ball, release.n) * (1 + 1e-9):
        found.append("the mean was solved to a larger tolerance than the sensitivity allows for")
    if release.private and (release.ball.simulated or not all(step.private for step in release.steps)):
        found.append("it calls itself private but rests on a simulation")
    if release.timing not in (DRAW_COVERED, NOT_COVERED) or release.unit not in ("record", "unit"):
        found.append("it describes its timing or its units in words that are not the library's")
    if any(
        (step.n, step.unit, step.neighbours) != (release.n, release.unit, release.neighbours) for step in release.steps
    ):
        found.append("its steps are about other units")
    first = release.steps[0] if release.steps else None
    if first is not None and first.statistic == "ball" and release.ball not in (first.value, first.ball):
        found.append("the ball is not the one that was released")
    if release.statistic in _MOMENTS and first is not None:
        found += _misplaced(release, first)
    if release.statistic == "ball":
        search = search_of(release)
        if release.details["count noise"] != search.count_noise:
            found.append("the counts do not carry the noise that their share needs")
        if release.value != release.ball and not np.isclose(search.radii * search.stretch, release.value.radius).any():
            found.append("the released radius is none that is looked for")
        if release.value != release.ball and not bool(release.ball.contains(release.value.center)):
            found.append("the released centre lies outside the outer ball")
    return found


def _misplaced(release: Release, step: Release) -> list[str]:
    """Return whether a moment was not taken about the mean that its steps released."""
    while step.statistic != "mean" and step.steps:
        step = step.steps[0]
    if step.statistic != "mean" or step.ball != release.ball:
        return ["it is not about a mean that its steps released on the same ball"]
    apart = release.ball.locate(step.value)[1]
    if not release.details["reference to centre"] >= apart * (1 - 1e-9) - 1e-12 * release.ball.radius:
        return ["the released mean is farther from the centre than the sensitivity allows for"]
    return []


def _other_costs(release: Release) -> list[Promise]:
    """Return what else the release paid for: its steps, and for a ball the counts."""
    costs = [step.privacy for step in release.steps]
    if release.statistic == "ball":
        costs.append(search_of(release).share)
    return costs


def _within_rounding(total: Promise, stated: Promise) -> bool:
    """Whether a composition misses the stated promise by rounding alone (shares are rounded down, sums up)."""
    mine, theirs = total.to_dict(), stated.to_dict()
    if mine.keys() != theirs.keys():
        return False
    return all(
        mine[key] == theirs[key]
        or (isinstance(mine[key], float) and float(mine[key]) <= float(theirs[key]) * (1 + 1e-12))
        for key in mine
    )


def _compare(what: str, stated: float, computed: float, good: list[str], bad: list[str]) -> None:
    """A stated number may be larger than needed, never smaller than recomputed (beyond rounding)."""
    if stated >= computed * (1 - 1e-9):
        good.append(f"{what}: stated {stated:.6g}, needed {computed:.6g}")
    else:
        bad.append(f"{what}: stated {stated:.6g} is smaller than the {computed:.6g} that is needed")


@dataclass(frozen=True)
class Comparison:
    """A release against public data. NOT PRIVATE: for data that may be shown.

    Attributes
    ----------
    error : distance of the released value from the mean of the data
    noise : distance from the mean of the clipped data
    clipping : distance between the mean of the clipped data and that of the data
    clipped : share of the records outside the ball
    private : always False
    """

    error: float
    noise: float
    clipping: float
    clipped: float
    private: bool = False


def compare(release: Release, X: object, *, units: object = None, public: bool = False) -> Comparison:
    """Compare a released mean with the data it came from, if these are public.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.stats import EACH_RECORD, private_mean
    >>> X = np.linspace(-1.5, 1.5, 101)[:, None]
    >>> release = private_mean(X, Ball(Euclidean(1), [0.0], 1.0), PureDP(1.0), units=EACH_RECORD)
    >>> round(compare(release, X, public=True).clipped, 2)
    0.34
    """
    if public is not True:
        raise InvalidArgumentError(
            "public must be True: the true error tells about the data. Compare only where the data may be shown."
        )
    if release.statistic != "mean":
        raise InvalidArgumentError(f"release must be a mean, got a {release.statistic}.")
    ball, space = release.ball, release.ball.space
    ids = None if units is None else checked_units(units, len(space.as_points(X, "X", batch=True)))
    clipped_mean = frechet.mean(X, ball, units=ids).value
    true_mean = frechet.mean(X, space, units=ids).value
    return Comparison(
        error=float(space.dist(true_mean, release.value)),
        noise=float(space.dist(clipped_mean, release.value)),
        clipping=float(space.dist(true_mean, clipped_mean)),
        clipped=float(1 - ball.contains(X).mean()),
    )
