"""One release held against its recipe: what the library would have stated in its place."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, field

import numpy as np

from dpmanifold import frechet, sensitivity
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import Calibration, attempt, get
from dpmanifold.privacy import Promise, PureDP, gaussian_scale, laplace_scale
from dpmanifold.release import DRAW_COVERED, NEIGHBOURS_BY_CLASS, RELEASED, Release
from dpmanifold.stats.draws import timing_of, tolerance_of
from dpmanifold.stats.grids import arithmetic_faults
from dpmanifold.stats.mean import shrinkage_of, shrunken
from dpmanifold.stats.ranges import baseline_faults, is_beyond, moment_faults, rounding_of, tail_of, within
from dpmanifold.stats.recipes import (
    CLASSES,
    MOST_CLASSES,
    REVEALED,
    SKIPPED,
    VERSIONS,
    Recipe,
    classes_touched,
    granted,
    recipes_of,
    together,
)
from dpmanifold.stats.refine import (
    LEAST_INSIDE,
    REFINE_COVERAGE,
    WORTH_IT,
    level_of,
    search_of,
    source_of,
)
from dpmanifold.stats.variance import excess_about, located

# The same formula on another machine: a few operations with a relative error of eps each.
_ROUNDING = 1e-12
# Integrals of a law, computed by quadrature.
_QUADRATURE = 1e-10
# Noise stays below this quantile of its law, as far as a check is concerned.
_SURELY = 1 - 1e-12
_TOO_FAR = "{}: no noise of that scale carries a draw so far from the ball"

# Statistics about a released point, with the bound that their noise must cover.
_MOMENTS = {
    "variance": sensitivity.of_variance,
    "second moment": sensitivity.of_second_moment,
    "fourth moment": sensitivity.of_fourth_moment,
}


@dataclass
class Findings:
    """What was recomputed and agrees, and what is wrong, in words."""

    good: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def add(self, other: Findings, name: str) -> None:
        """Take over what was found about a part."""
        self.good += [name + text for text in other.good]
        self.wrong += [name + text for text in other.wrong]

    def same(self, what: str, stated: float, computed: float) -> None:
        """Compare a number with what it should be, to rounding."""
        if _close(stated, computed):
            self.good.append(f"{what}: {computed:.6g}")
            return
        short, full = (f"{stated:.6g}", f"{computed:.6g}"), (repr(stated), repr(computed))
        told, right = short if short[0] != short[1] else full
        self.wrong.append(f"{what}: stated {told}, recomputed {right}")

    def same_words(self, what: str, stated: str, computed: str) -> None:
        """Compare words with what they should be."""
        self.require(stated == computed, f"{what}: stated {stated!r}, recomputed {computed!r}")

    def require(self, holds: object, otherwise: str) -> None:
        """Note what is wrong if something does not hold."""
        if not holds:
            self.wrong.append(otherwise)


def examine(release: Release) -> Findings:
    """Return what a release that stands by itself states rightly and wrongly."""
    found = recipes_of(release)
    if not found:
        steps = ", ".join(step.statistic for step in release.steps) or "none"
        raise InvalidArgumentError(f"the library makes no {release.statistic} from these steps: {steps}")
    total = granted(release)
    fitting = [recipe for recipe in found if same_promise(release.share, recipe.divided(total)[recipe.before])]
    recipe = fitting[0] if fitting else found[0]
    shares = recipe.divided(total)
    findings = _against(release, recipe, shares)
    # The counts of a ball are the one cost that no release of their own states.
    kept = together([release.share, *(step.privacy for step in release.steps), *shares[recipe.before + 1 :]])
    said = f"the shares together promise {kept}, which"
    if kept.implies(total) or same_promise(kept, total):
        findings.good.append(f"{said} implies the stated {release.privacy}{_of_classes(release)}")
    else:
        findings.wrong.append(f"{said} does not imply the stated {release.privacy}{_of_classes(release)}")
    if _first_ball(release).source.startswith(RELEASED):
        findings.good.append("the ball was itself released before: what that cost comes on top of this promise")
    return findings


def _of_classes(release: Release) -> str:
    touched = classes_touched(release)
    return "" if touched == 1 else f" over the {touched:g} classes that a unit may be in"


def _first_ball(release: Release) -> Ball:
    """Return the ball that everything started with."""
    return _first_ball(release.steps[0]) if release.steps else release.ball


def _against(release: Release, recipe: Recipe, shares: list[Promise]) -> Findings:
    """Return what a release states rightly and wrongly, given its recipe and the shares it was to keep."""
    _refuse_other_details(release, recipe)
    findings = Findings()
    own = shares[recipe.before]
    if same_promise(release.share, own):
        findings.good.append(f"share of the promise: {own}")
    else:
        findings.wrong.append(f"share of the promise: stated {release.share}, recomputed {own}")
    calibration, noise = _calibrated(release)
    findings.same("sensitivity", release.sensitivity.value, calibration.sensitivity.value)
    findings.same("scale", release.scale, calibration.scale)
    findings.same("tolerance", release.tol, _tolerance(release))
    _compare_words(release, recipe, calibration, findings)
    _compare_marks(release, recipe, findings)
    findings.wrong += _details_faults(release, recipe, shares)
    faults = _value_faults(release, noise) + arithmetic_faults(release, calibration, noise)
    findings.wrong += faults
    if not faults:
        findings.good.append("value: one that could have been released")
        if release.drawn is not None:
            findings.good.append(f"arithmetic: exact; the value follows from multiples of 2^{release.grid}")
    if recipe.step is not None:
        _compare_step(release, recipe, shares, findings)
    return findings


# -------------------------------------------------------------------- noise and words


def _calibrated(release: Release) -> tuple[Calibration, float]:
    """Return scale, bound and rule as they should be, and a length that the noise on a point surely stays below."""
    ball, n, share = release.ball, release.n, release.share
    if release.statistic not in _MOMENTS:
        found = attempt(get(release.mechanism), ball, n, share)
        if isinstance(found, str):
            raise InvalidArgumentError(f"{release.mechanism} cannot keep {share} there: {found}")
        calibration, forecast = found
        # A draw that was moved into the ball, and is not stated, may have been anywhere.
        shown = release.raw is not None or release.drawn is not None or not release.projected
        return calibration, float(forecast.quantile(_SURELY)) if shown else math.inf
    bound = _MOMENTS[release.statistic](ball, n, away=release.details["reference to centre"])
    if isinstance(share, PureDP):
        return Calibration("laplace", share, laplace_scale(bound.value, share), bound, "Delta/epsilon"), 0.0
    return Calibration("gaussian", share, gaussian_scale(bound.value, share), bound, "Gaussian"), 0.0


def _tolerance(release: Release) -> float:
    """Return the public tolerance of the solver, 0 where nothing was solved."""
    if release.statistic in _MOMENTS:
        return frechet.default_tol(release.ball, release.n)
    return tolerance_of(get(release.mechanism), release.ball, release.n)


def _compare_words(release: Release, recipe: Recipe, calibration: Calibration, findings: Findings) -> None:
    """Compare what a release says in words with what the library says."""
    before = len(findings.wrong)
    bound = calibration.sensitivity
    findings.same_words("mechanism", release.mechanism, calibration.mechanism)
    findings.require(
        release.mechanism in recipe.mechanisms, f"mechanism: {release.mechanism} draws no such {release.statistic}"
    )
    findings.same_words("rule", release.rule, calibration.rule)
    findings.same_words("sensitivity of", release.sensitivity.statistic, bound.statistic)
    findings.same_words("bound", release.sensitivity.bound, bound.bound)
    findings.same_words("proof", release.sensitivity.proof, bound.proof)
    findings.same_words("timing", release.timing, _timing(release))
    findings.require(release.version in VERSIONS, f"version: {release.version!r} is not one whose recipes are known")
    findings.require(release.unit in ("record", "unit"), f"unit: a {release.unit!r} is not what the library protects")
    findings.require(
        release.neighbours in recipe.neighbours, f"neighbours: no {release.statistic} is promised for such neighbours"
    )
    if len(findings.wrong) == before:
        findings.good.append("mechanism, rule, bound, proof, timing, unit, neighbours and version are the library's")


def _timing(release: Release) -> str:
    """Say what the running time tells: the draw's own, unless a step's depends on the data."""
    if release.statistic not in _MOMENTS:
        return timing_of(get(release.mechanism), release.steps)
    return release.steps[0].timing if release.steps else DRAW_COVERED


def _compare_marks(release: Release, recipe: Recipe, findings: Findings) -> None:
    """Compare what a release says about itself, its ball and its steps with each other."""
    findings.require(
        recipe.projected in (None, release.projected),
        f"projected: no {release.statistic} there says {release.projected}",
    )
    findings.require(recipe.shrinks or not release.shrinkage, "shrinkage: no such step is moved towards the centre")
    revealed = release.details.keys() >= REVEALED
    findings.require(
        not (release.private and (release.ball.simulated or revealed)),
        "it calls itself private but rests on a simulation, or shows something of the data",
    )
    findings.require(
        revealed or all(step.private == release.private for step in release.steps),
        "it calls itself private, or not, and its steps say the opposite",
    )


# -------------------------------------------------------------------- details


def _refuse_other_details(release: Release, recipe: Recipe) -> None:
    """Refuse details that are missing or that come without their fellows: nothing else could be recomputed."""
    stated = set(release.details)
    whole = set(recipe.details).union(*(group for group in recipe.optional if group <= stated))
    if stated != whole:
        named = ", ".join(sorted(stated ^ whole))
        raise InvalidArgumentError(f"details of a {release.statistic} are missing or do not belong there: {named}")


def _details_faults(release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
    """Return what is wrong with the further numbers."""
    numbers, found = release.details, []
    if numbers.keys() >= CLASSES:
        touched, classes = classes_touched(release), numbers["classes"]
        if not (1 <= touched <= classes <= MOST_CLASSES and touched.is_integer() and classes.is_integer()):
            found.append(f"classes: a unit touches a whole number of them, at least 1 of at most {MOST_CLASSES:,}")
        if release.neighbours != NEIGHBOURS_BY_CLASS:
            found.append("neighbours: a mean by class is promised for neighbours in the same classes")
    if numbers.keys() >= REVEALED and not (
        numbers["revealed error"] >= 0 and 0 <= numbers["revealed share clipped"] <= 1
    ):
        found.append("what is revealed is no distance and no share")
    if numbers.keys() >= SKIPPED and numbers["refine skipped"] != 1:
        found.append("refine skipped: it is stated as 1, or not at all")
    if release.statistic == "ball":
        found += _search_faults(release, recipe, shares[recipe.before + 1])
    if release.statistic in _MOMENTS:
        found += _reference_faults(release, recipe)
    return found


def _search_faults(release: Release, recipe: Recipe, share: Promise) -> list[str]:
    """Return what a search for a radius would not have stated."""
    numbers, found = release.details, []
    if not 0 < numbers["coverage"] <= 1 or (recipe.refined and numbers["coverage"] != REFINE_COVERAGE):
        return ["coverage: it is a share above 0 and at most 1, and a fixed one where a statistic follows"]
    if not _close(numbers["search share"], level_of(share)):
        found.append(f"search share: stated {numbers['search share']:.6g}, recomputed {level_of(share):.6g}")
    search = search_of(release)
    if not _close(numbers["count noise"], search.count_noise):
        found.append(f"count noise: stated {numbers['count noise']:.6g}, recomputed {search.count_noise:.6g}")
    least = LEAST_INSIDE if recipe.refined else 0.0
    if release.value != release.ball and numbers["units inside"] < least * release.n - 2 * search.count_noise:
        found.append("units inside: a ball that seems to hold so few is not used")
    if not within(numbers["units inside"], 0.0, release.n, tail_of(search.share) * search.count_noise):
        found.append("units inside: no count of the units and no noise of that scale come to it")
    return found


def _reference_faults(release: Release, recipe: Recipe) -> list[str]:
    """Return whether a moment was not taken about the mean that its steps released, on their ball."""
    away, ball = release.details["reference to centre"], release.ball
    excess = release.details.get("excess subtracted", 0.0)
    found = []
    if recipe.step is None:
        right, excess_right = 0 <= away <= ball.radius, 0 <= excess <= ball.radius**2 / 4
    else:
        mean = release.steps[0]
        while mean.statistic != "mean":
            mean = mean.steps[0]
        right = abs(away - located(ball, mean.value)[1]) <= rounding_of(ball, mean.value)
        computed = excess_about(mean, ball) if recipe.corrected else 0.0
        excess_right = math.isclose(excess, computed, rel_tol=_QUADRATURE)
    if not right:
        found.append("reference to centre: it is not the distance of the point that the moment is about")
    if not excess_right:
        found.append("excess subtracted: it is not what noise on the mean adds")
    return found


# -------------------------------------------------------------------- values


def _value_faults(release: Release, noise: float) -> list[str]:
    """Return why a value could not have been released, if noise on a point is no longer than this."""
    match release.statistic:
        case "mean" if get(release.mechanism).baseline:
            # Stored numbers plus noise: they need not be a point, and are never moved into the ball.
            if release.projected:
                return ["projected: a baseline's numbers are not moved into the ball"]
            return baseline_faults(release.ball, release.value, noise)
        case "mean":
            return _point_faults(release, noise) + _shrinkage_faults(release, noise)
        case "ball":
            return _ball_faults(release)
    return moment_faults(release)


def _point_faults(release: Release, noise: float) -> list[str]:
    """Return why a value is no point that a draw could have come to."""
    value, ball, space = release.value, release.ball, release.ball.space
    far = ball.radius if release.projected else ball.radius + noise
    reason = space.check(value)
    # Noise so large that points come out singular to working precision is no fault of the value.
    if reason is not None and math.isfinite(space.dist_error(ball.center, far)):
        return [f"value: it is no point of {space!r}: {reason.split('. ')[0]}"]
    if not np.allclose(space.project(value), value, rtol=0, atol=_ROUNDING * float(np.abs(value).max())):
        return [f"value: it is no point of {space!r} to rounding"]
    if release.projected and is_beyond(ball, value, far):
        return ["value: it is outside the ball that it was moved into"]
    return [_TOO_FAR.format("value")] if is_beyond(ball, value, far) else []


def _shrinkage_faults(release: Release, noise: float) -> list[str]:
    """Return whether the value is not what moving the draw towards the centre gives."""
    if not release.shrinkage:
        return []
    ball = release.ball
    rule = shrinkage_of(ball, get(release.mechanism), release.scale, release.projected)
    if rule is None or rule.name != release.shrinkage:
        return ["shrinkage: public numbers do not say so"]
    found = [_TOO_FAR.format("raw")] if is_beyond(ball, release.raw, ball.radius + noise) else []
    moved = shrunken(rule, ball, release.raw, release.projected)
    if not ball.space.dist(moved, release.value) <= rounding_of(ball, release.value):
        found.append("value: it is not the draw moved towards the centre")
    return found


def _ball_faults(release: Release) -> list[str]:
    """Return why a search could not have ended with this ball."""
    value, outer = release.value, release.ball
    if value == outer:
        return []
    found = []
    if value.space != outer.space or not outer.distance_to_center(value.center) <= outer.radius + rounding_of(
        outer, value.center
    ):
        return ["value: the released centre lies outside the outer ball"]
    search = search_of(release)
    radii = search.radii * search.stretch
    if not np.isclose(value.radius, radii[radii < WORTH_IT * outer.radius], rtol=_ROUNDING, atol=0).any():
        found.append("value: the radius is not one that the search tries")
    if value.source != source_of(release.privacy, outer):
        found.append("value: the ball's source is not this release")
    if value.simulated == release.private:
        found.append("value: the ball does not say of itself what its release says: private, or simulated")
    return found


# -------------------------------------------------------------------- steps


def _compare_step(release: Release, recipe: Recipe, shares: list[Promise], findings: Findings) -> None:
    """Examine the step that a release rests on, and whether it is about the same units and ball."""
    assert recipe.step is not None
    step = release.steps[0]
    paid = together(shares[: recipe.before])
    name = f"step '{step.statistic}': "
    findings.add(_against(step, recipe.step, shares[: recipe.before]), name)
    findings.require(
        same_promise(step.privacy, paid), f"{name}it states {step.privacy}, where its shares come to {paid}"
    )
    # The two groups of a test share one ball, which was found from both.
    same_units = step.n == release.n or (
        step.n > release.n and step.statistic == "ball" and release.neighbours == NEIGHBOURS_BY_CLASS
    )
    findings.require(
        same_units and (step.unit, step.neighbours) == (release.unit, release.neighbours),
        f"{name}it is about other units",
    )
    if step.statistic != "ball":
        findings.require(release.ball == step.ball, f"{name}it is on another ball")
    elif release.ball != step.value:
        # Where the released ball does not suit the mechanism, the outer one is used.
        suits = not isinstance(attempt(get(release.mechanism), step.value, release.n, release.share), str)
        findings.require(release.ball == step.ball and not suits, "the ball is not the one that was released")


def same_promise(one: Promise, two: Promise) -> bool:
    """Return whether two promises are of one kind and equal to rounding (shares are rounded down, sums up)."""
    mine, theirs = astuple(one), astuple(two)
    return type(one) is type(two) and all(map(_close, mine, theirs))


def _close(one: float, two: float) -> bool:
    return math.isclose(one, two, rel_tol=_ROUNDING)
