"""One release held against its recipe: what the library would have stated in its place."""

from __future__ import annotations

from dataclasses import astuple, dataclass, field

from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, PromiseError
from dpmanifold.mechanisms import Calibration
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import cost_of, fits
from dpmanifold.release import NEIGHBOURS_BY_CLASS, RELEASED, REVEALED, Release
from dpmanifold.statistic import Kind
from dpmanifold.stats.ball import attempted
from dpmanifold.stats.grids import arithmetic_faults
from dpmanifold.stats.ranges import same_number
from dpmanifold.stats.recipes import VERSIONS, Recipe, classes_touched, granted, recipes_of, together


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
        if same_number(stated, computed):
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
    fitting = [recipe for recipe in fitting if not _other_details(release, recipe)] or fitting or found[:1]
    findings = _by_first_that_fits(release, fitting, total)
    if _first_ball(release).source.startswith(RELEASED):
        findings.good.append("the ball was itself released before: what that cost comes on top of this promise")
    _compare_receipt(release, findings)
    return findings


def _by_first_that_fits(release: Release, recipes: list[Recipe], total: Promise) -> Findings:
    """Return what is found by the recipe that it was made by: several may share alike, and differ in what came before.

    Of none it was made by, what the first of them says.
    """
    found: list[Findings] = []
    refused: list[InvalidArgumentError] = []
    for recipe in recipes:
        try:
            found.append(_by_recipe(release, recipe, total))
        except InvalidArgumentError as problem:  # of the details of a step
            refused.append(problem)
        else:
            if not found[-1].wrong:
                return found[-1]
    if not found:
        raise refused[0]
    return found[0]


def _by_recipe(release: Release, recipe: Recipe, total: Promise) -> Findings:
    """Return what a release states rightly and wrongly if it was made in this way."""
    shares = recipe.divided(total)
    findings = _against(release, recipe, shares)
    # The counts of a ball are the one cost that no release of their own states.
    kept = together([release.share, *(step.privacy for step in release.steps), *shares[recipe.before + 1 :]])
    said = f"the shares together promise {kept}, which"
    if kept.implies(total) or same_promise(kept, total):
        findings.good.append(f"{said} implies the stated {release.privacy}{_of_classes(release)}")
    else:
        findings.wrong.append(f"{said} does not imply the stated {release.privacy}{_of_classes(release)}")
    return findings


def _compare_receipt(release: Release, findings: Findings) -> None:
    """Say whether a receipt can be of this release; whether it is true, the ledger knows."""
    if release.receipt is None:
        return
    spent = release.receipt.promise
    try:
        paid = fits(cost_of(release.privacy, spent), cost_of(spent, spent))
    except PromiseError:
        findings.wrong.append(f"receipt: no such cap as {spent} was spent from pays for {release.privacy}")
        return
    findings.require(paid, "receipt: less was spent than this release promises")
    findings.require(release.private, "receipt: no account pays for what is not private")
    if paid and release.private:
        findings.good.append(f"receipt: it may be of this release (total spent so far: {spent}); the ledger can tell")


def _of_classes(release: Release) -> str:
    touched = classes_touched(release)
    return "" if touched == 1 else f" over the {touched:g} classes that a unit may be in"


def _first_ball(release: Release) -> Ball:
    """Return the ball that everything started with."""
    return _first_ball(release.steps[0]) if release.steps else release.ball


def _against(release: Release, recipe: Recipe, shares: list[Promise]) -> Findings:
    """Return what a release states rightly and wrongly, given its recipe and the shares it was to keep."""
    other = _other_details(release, recipe)
    if other:  # nothing else could be recomputed
        raise InvalidArgumentError(
            f"details of a {release.statistic} are missing or do not belong there: {', '.join(other)}"
        )
    findings = Findings()
    own = shares[recipe.before]
    if same_promise(release.share, own):
        findings.good.append(f"share of the promise: {own}")
    else:
        findings.wrong.append(f"share of the promise: stated {release.share}, recomputed {own}")
    statistic = release.definition
    calibration, noise = statistic.calibrated(release)
    findings.same("sensitivity", release.sensitivity.value, calibration.sensitivity.value)
    findings.same("scale", release.scale, calibration.scale)
    findings.same("tolerance", release.tol, statistic.tolerance(release))
    _compare_words(release, recipe, calibration, findings)
    _compare_marks(release, recipe, findings)
    findings.wrong += statistic.details_faults(release, recipe, shares)
    faults = statistic.value_faults(release, noise) + arithmetic_faults(release, calibration, noise)
    findings.wrong += faults
    if not faults:
        findings.good.append("value: one that could have been released")
        if release.drawn is not None:
            findings.good.append(f"arithmetic: exact; the value follows from multiples of 2^{release.grid}")
    if recipe.step is not None:
        _compare_step(release, recipe, shares, findings)
    return findings


# -------------------------------------------------------------------- words


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
    findings.same_words("timing", release.timing, release.definition.timing(release))
    findings.require(release.version in VERSIONS, f"version: {release.version!r} is not one whose recipes are known")
    findings.require(release.unit in ("record", "unit"), f"unit: a {release.unit!r} is not what the library protects")
    findings.require(
        release.neighbours in recipe.neighbours, f"neighbours: no {release.statistic} is promised for such neighbours"
    )
    if len(findings.wrong) == before:
        findings.good.append("mechanism, rule, bound, proof, timing, unit, neighbours and version are the library's")


def _compare_marks(release: Release, recipe: Recipe, findings: Findings) -> None:
    """Compare what a release says about itself, its ball and its steps with each other."""
    findings.require(
        recipe.projected in (None, release.projected),
        f"projected: no {release.statistic} there says {release.projected}",
    )
    findings.require(recipe.shrinks or not release.shrinkage, "shrinkage: no such step is moved towards the centre")
    findings.require(recipe.shaped == (release.shape is not None), f"shape: no {release.statistic} there states one")
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


def _other_details(release: Release, recipe: Recipe) -> list[str]:
    """Return details that are missing, or that come without their fellows."""
    stated = set(release.details)
    whole = set(recipe.details).union(*(group for group in recipe.optional if group <= stated))
    return sorted(stated ^ whole)


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
        step.n > release.n and step.definition.kind is Kind.BALL and release.neighbours == NEIGHBOURS_BY_CLASS
    )
    findings.require(
        same_units and (step.unit, step.neighbours) == (release.unit, release.neighbours),
        f"{name}it is about other units",
    )
    own = release.definition.step_faults(release, step)
    if own is not None:
        findings.wrong += own
    elif step.definition.kind is not Kind.BALL:
        findings.require(release.ball == step.ball, f"{name}it is on another ball")
    elif release.ball != step.value:
        # Where the released ball does not suit the mechanism, the outer one is used.
        suits = not isinstance(attempted(release, step.value), str)
        findings.require(release.ball == step.ball and not suits, "the ball is not the one that was released")


def same_promise(one: Promise, two: Promise) -> bool:
    """Return whether two promises are of one kind and equal to rounding (shares are rounded down, sums up)."""
    mine, theirs = astuple(one), astuple(two)
    return type(one) is type(two) and all(map(same_number, mine, theirs))
