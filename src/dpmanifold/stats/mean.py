"""The mean: how it is planned, drawn and recomputed (theory 1, 3, 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.base import shorten
from dpmanifold.mechanisms import MECHANISMS, Calibration, Forecast, Mechanism, get
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.mechanisms.registry import forecast_of
from dpmanifold.privacy import Promise, PromiseError
from dpmanifold.release import NEIGHBOURS_BY_CLASS, NO_ERROR, REVEALED, TANGENT_GAP, Release
from dpmanifold.statistic import STATISTICS, Header, Kind, Prepared, Statistic, Step
from dpmanifold.stats.ball import grid_of_point, recalibrated
from dpmanifold.stats.draws import Bits, draw_mean, refuse_inexact, stated, timing_of, tolerance_of
from dpmanifold.stats.grids import follows
from dpmanifold.stats.inputs import checked_flag
from dpmanifold.stats.mean_plan import Plan, plan_mean
from dpmanifold.stats.ranges import ROUNDING, baseline_faults, is_beyond, rounding_of
from dpmanifold.stats.recipes import CLASSES, MOST_CLASSES, Recipe, classes_touched
from dpmanifold.stats.refine import SKIPPED, SMALL_FILL, Refinement, Wanted, in_smaller_ball
from dpmanifold.stats.shrinkage import JAMES_STEIN, Shrinkage, best_shrinkage
from dpmanifold.stats.stand_in import STANDS_IN, aims_at_frechet, gap_of, stand_in, stand_in_faults, stated_gap
from dpmanifold.stats.steps import Chosen, mean_step

# Mechanisms whose noise is normal in the frame of a flat ball.
_NORMAL_NOISE = ("wrapped-gaussian", "wrapped-gaussian-classical")
UNSHAPED = "shape skipped"
"""What a release states where a shape was given and could not help."""
_TOO_FAR = "{}: no noise of that scale carries a draw so far from the ball"


class Mean(Statistic):
    """A mean of the units: the Fréchet mean, or another by name."""

    name, words, kind = "mean", "mean (Fréchet, tangent or extrinsic)", Kind.POINT
    details = CLASSES | REVEALED | SKIPPED | {UNSHAPED} | STANDS_IN

    def prepared(
        self,
        header: Header,
        *,
        mechanism: Any = "auto",
        estimand: str | None = None,
        refine: bool = False,
        shape: Any = None,
        project: bool = True,
        shrink: str | None = "auto",
    ) -> Prepared:
        """Choose, or refuse."""
        if shape is not None:
            return STATISTICS.get("shaped mean").prepared(
                header, shape=shape, mechanism=mechanism, estimand=estimand or "frechet", refine=refine,
                project=project, shrink=shrink,
            )  # fmt: skip
        return MeanPlan(header, Wanted(mechanism, estimand), refine, project, shrink)

    def comparison(
        self,
        header: Header,
        *,
        mechanism: Any = "auto",
        estimand: str | None = None,
        refine: bool = False,
        shape: Any = None,
        project: bool = True,
        shrink: str | None = "auto",
        everything: bool = False,
        fill: float | None = None,
    ) -> Plan | None:
        """Return every mechanism with its error; of one by name, None: its draws are listed."""
        if mechanism != "auto":
            return None
        checked_shrink(shrink)  # which changes neither the mechanisms nor their noise
        return plan_mean(
            header.n, header.ball, header.privacy, estimand=estimand, everything=everything, refine=refine,
            shape=shape, fill=SMALL_FILL if fill is None else fill, arithmetic=header.arithmetic, project=project,
        )  # fmt: skip

    def recipes(self) -> Sequence[Recipe]:
        """Return: by itself, and in a smaller ball that either way of sharing out the promise pays for."""
        other = (CLASSES, REVEALED, SKIPPED, frozenset({UNSHAPED}), STANDS_IN)
        plain = Recipe(self.name, MECHANISMS, optional=other, shrinks=True)
        return plain, in_smaller_ball(plain, "pure"), in_smaller_ball(plain)

    # ---------------------------------------------------------------- what verify recomputes

    def calibrated(self, release: Release) -> tuple[Calibration, float]:
        """Return the mechanism's noise."""
        return recalibrated(release)

    def tolerance(self, release: Release) -> float:
        """Return the tolerance it is solved to, 0 of a mean that is not solved."""
        return tolerance_of(get(release.mechanism), release.ball, release.n)

    def timing(self, release: Release) -> str:
        """Say what the running time tells."""
        return timing_of(get(release.mechanism), release.steps)

    def grid(self, release: Release, calibration: Calibration) -> int | None:
        """Return the mechanism's grid."""
        return grid_of_point(release, calibration)

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return what is wrong with classes, with what is revealed, and with a search that was skipped."""
        numbers, found = release.details, class_faults(release)
        if numbers.keys() >= SKIPPED and numbers["refine skipped"] != 1:
            found.append("refine skipped: it is stated as 1, or not at all")
        if numbers.get(UNSHAPED, 1) != 1:
            found.append(f"{UNSHAPED}: it is stated as 1, or not at all")
        return found + stand_in_faults(release)

    def value_faults(self, release: Release, noise: float) -> list[str]:
        """Return why a value is no point that a draw could have come to."""
        if not get(release.mechanism).baseline:
            return point_faults(release, noise) + _shrinkage_faults(release, noise)
        # Stored numbers plus noise: they need not be a point, and are never moved into the ball.
        if release.projected:
            return ["projected: a baseline's numbers are not moved into the ball"]
        return baseline_faults(release.ball, release.value, noise)

    def drawn_faults(self, release: Release, noise: float) -> list[str]:
        """Return whether the draw is too far, or the value not made of it."""
        assert release.drawn is not None
        ball = release.ball
        point = get(release.mechanism).place(ball, release.drawn)
        if is_beyond(ball, placed(ball, point, False), ball.radius + noise):
            return [_TOO_FAR.format("drawn")]
        given = release.value if release.raw is None else release.raw
        return follows(release, given, placed(ball, point, release.projected and release.raw is None))

    # ---------------------------------------------------------------- for people

    def estimand(self, release: Release) -> str | None:
        """Return which mean its mechanism hides, or stands for; None of a mechanism that is not known here."""
        known = MECHANISMS.find(release.mechanism)
        if known is not None and release.details.keys() >= STANDS_IN:
            return FRECHET
        return None if known is None else known.estimand

    def states_error(self, release: Release) -> bool:
        """Return whether the noise can be told as a distance: of means that are points, in a ball."""
        known = MECHANISMS.find(release.mechanism)
        return not release.ball.is_whole and known is not None and not known.baseline

    def forecast(self, release: Release) -> Forecast:
        """Return what the mechanism's noise does to a point of the ball."""
        if release.ball.is_whole:
            raise InvalidArgumentError(f"{NO_ERROR}. Release with a ball to have one stated.")
        return forecast_of(get(release.mechanism), release.ball, release.n, release.calibration)

    def range(self, ball: Ball) -> float | None:
        """Return the radius."""
        return None if ball.is_whole else ball.radius

    def notes(self, release: Release) -> list[str]:
        """Say what became of a smaller ball, and how the noise compares with the ball."""
        ball = release.ball
        if ball.is_whole:
            return [*release.notes_on_the_ball(), NO_ERROR]
        if not self.states_error(release):
            return []
        notes = release.notes_on_the_ball()
        if UNSHAPED in release.details:
            notes.append("no shape was used: public numbers say that it could not help (dpm plan --shape)")
        if release.shrinkage:
            notes.append("the draw was moved towards the public centre, where the error can only fall; it is in raw")
        if release.is_swamped:
            notes.append("the noise is as large as the ball: this says nothing. Use more units or a weaker promise")
        elif self.forecast(release).mean >= ball.radius / 2:
            notes.append("the noise is half the ball or more: the public centre may well be the better answer")
        elif ball.space.dist(ball.center, release.value) >= ball.radius * (1 - 1e-9):
            notes.append("the mean lies on the ball's edge: check the centre, the radius and the units of measurement")
        return notes


MEAN = Mean()
STATISTICS.register(MEAN.name, MEAN)


def class_faults(release: Release) -> list[str]:
    """Return what is wrong with classes, and with what is revealed."""
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
    return found


def point_faults(release: Release, noise: float) -> list[str]:
    """Return why a value is no point of the ball, if noise on a point is no longer than this."""
    value, ball, space = release.value, release.ball, release.ball.space
    far = ball.radius if release.projected else ball.radius + noise
    reason = space.check(value)
    # Noise so large that points come out singular to working precision is no fault of the value.
    if reason is not None and math.isfinite(space.dist_error(ball.center, far)):
        return [f"value: it is no point of {space!r}: {reason.split('. ')[0]}"]
    if not np.allclose(space.project(value), value, rtol=0, atol=ROUNDING * float(np.abs(value).max())):
        return [f"value: it is no point of {space!r} to rounding"]
    if release.projected and is_beyond(ball, value, far):
        return ["value: it is outside the ball that it was moved into"]
    return [_TOO_FAR.format("value")] if is_beyond(ball, value, far) else []


def _shrinkage_faults(release: Release, noise: float) -> list[str]:
    """Return whether the value is not what moving the draw towards the centre gives."""
    if not release.shrinkage:
        return []
    ball = release.ball
    made = (ball, get(release.mechanism), release.scale, release.projected)
    rules = [shrinkage_of(*made), shrinkage_of(*made, JAMES_STEIN)]
    rule = next((rule for rule in rules if rule is not None and rule.name == release.shrinkage), None)
    if rule is None:
        return ["shrinkage: public numbers do not say so"]
    found = [_TOO_FAR.format("raw")] if is_beyond(ball, release.raw, ball.radius + noise) else []
    moved = shrunken(rule, ball, release.raw, release.projected)
    if not ball.space.dist(moved, release.value) <= rounding_of(ball, release.value):
        found.append("value: it is not the draw moved towards the centre")
    return found


# -------------------------------------------------------------------- planning and drawing


class MeanPlan(Prepared):
    """Every choice and every refusal of a private mean, from public numbers alone, before anything is spent.

    `share` is what the mean and, with `refine`, the ball before it may cost together: all that the header promises
    unless it is less, as for one class of several.
    """

    def __init__(
        self,
        header: Header,
        wanted: Wanted,
        refine: bool = False,
        project: bool = True,
        shrink: str | None = "auto",
        share: Promise | None = None,
        details: dict[str, float] | None = None,
    ) -> None:
        # A tangent mean by name that is to stand for the Fréchet mean needs a ball near it.
        self._stands_in = checked_flag(refine, "refine") and aims_at_frechet(wanted.mechanism, wanted.estimand)
        self.header = header
        self._wanted = wanted = Wanted(wanted.mechanism) if self._stands_in else wanted
        self._project, self._shrink = checked_flag(project, "project"), checked_shrink(shrink)
        self._refinement = Refinement(header.ball, header.n, share or header.privacy, refine, wanted)
        self._details = {**(details or {}), **self._refinement.details}
        self.chosen = self._chosen(header.ball)
        _refuse_shrinkage(self._shrink, self.chosen, header.ball)

    def _chosen(self, ball: Ball) -> Chosen:
        chosen = self._wanted.choose(ball, self.header.n, self._refinement.rest)
        refuse_inexact(self.header.arithmetic, chosen[0], ball, chosen[1])
        return chosen

    def steps(self) -> tuple[Step, ...]:
        """Return the draws; the mean's in the public ball, where a smaller one is looked for first."""
        return (*self._refinement.steps(self.header), mean_step(MEAN, self.header, self.chosen, self._project))

    def release(self, points: UnitPoints, bits: Bits) -> Release:
        """Find a ball if that was planned, and draw the mean in it."""
        chosen, header = self.chosen, self.header
        steps = self._refinement.find(points, header, bits)
        if steps:
            # Where the released ball does not suit the mechanism the outer one is used: decided by the release.
            suited = with_fallback(
                lambda: self._chosen(steps[0].value), lambda: None, InvalidArgumentError, PromiseError
            )
            if suited is not None:
                points, chosen = self._refinement.move(steps, points), suited
        here = header.inside(points.ball)
        instead = None
        if steps and here.ball != header.ball and self._wanted.is_auto:
            # A tangent mean may be taken for the Fréchet mean: decided by what was released, too.
            rest, n, usual = self._refinement.rest, header.n, chosen
            instead = with_fallback(
                lambda: stand_in(usual, here.ball, n, rest, gap_of(here.ball, n, steps)), lambda: None,
                InvalidArgumentError, PromiseError,
            )  # fmt: skip
        release = release_mean(points, here, instead or chosen, self._project, bits, steps, self._details, self._shrink)
        if not self._stands_in and instead is None:
            return release
        gap = with_fallback(lambda: stated_gap(release), lambda: here.ball.diameter)
        return replace(release, details={**release.details, TANGENT_GAP: gap})


def release_mean(
    points: UnitPoints,
    header: Header,
    chosen: Chosen,
    project: bool,
    bits: Bits,
    steps: tuple[Release, ...] = (),
    details: dict[str, float] | None = None,
    shrink: str | None = None,
) -> Release:
    """Solve, draw in the frame, move back; the header's promise is the total, the calibration's the step's share.

    Never raises: nothing behind the spend does.
    """
    mechanism, calibration, _ = chosen
    ball = header.ball
    draw = draw_mean(ball, mechanism, calibration, points, bits)
    if mechanism.baseline:
        value, project = with_fallback(lambda: _baseline_value(ball, draw.point), lambda: ball.center), False
    else:
        value = with_fallback(lambda: placed(ball, draw.point, project), lambda: ball.center)
    rule = shrinkage_of(ball, mechanism, calibration.scale, project, shrink)
    raw = None
    if rule is not None:
        raw = with_fallback(lambda: placed(ball, draw.point, False), lambda: ball.center)
        value = shrunken(rule, ball, raw, project)
    return Release.of(
        MEAN,
        value,
        header,
        calibration,
        steps,
        details,
        tol=tolerance_of(mechanism, ball, header.n),
        projected=project,
        private=bits.private,
        timing=timing_of(mechanism, steps),
        shrinkage="" if rule is None else rule.name,
        raw=raw,
        **stated(draw),
    )


def shrinkage_of(
    ball: Ball, mechanism: Mechanism, scale: float, project: bool, shrink: str | None = "auto"
) -> Shrinkage | None:
    """Return how a draw by this mechanism may be moved towards the centre, from public numbers; None if it may not."""
    if shrink is None or not ball.space.is_flat or mechanism.name not in _NORMAL_NOISE:
        return None
    if shrink == JAMES_STEIN:
        return Shrinkage(JAMES_STEIN, ball.space.dim, ball.radius, scale) if ball.space.dim >= 3 else None
    return best_shrinkage(ball.space.dim, ball.radius, scale, project)


def shrunken(rule: Shrinkage, ball: Ball, raw: Array, project: bool) -> Array:
    """Move a released draw towards the ball's centre: a function of the release alone. Never raises."""
    return with_fallback(
        lambda: placed(ball, rule(ball.space.log_coords(ball.center, raw)), project), lambda: ball.center
    )


def checked_shrink(shrink: object) -> str | None:
    """Return how to move draws towards the centre, or say what may be asked for."""
    if shrink is None or (isinstance(shrink, str) and shrink in ("auto", JAMES_STEIN)):
        return shrink
    raise InvalidArgumentError(f'`shrink` must be "auto", "{JAMES_STEIN}" or None, got {shown(shrink)}.')


def _refuse_shrinkage(shrink: str | None, chosen: Chosen, ball: Ball) -> None:
    """Refuse to be asked by name for what is not proven there."""
    if shrink == JAMES_STEIN and shrinkage_of(ball, chosen[0], chosen[1].scale, True, shrink) is None:
        raise InvalidArgumentError(
            f'shrink="{JAMES_STEIN}" is for normal noise on flat spaces of dimension 3 or more, got '
            f'{chosen[0].name} on {ball.space!r}. Leave it at "auto".'
        )


def placed(ball: Ball, draw: Array, project: bool) -> Array:
    """Move a draw from the frame to the space, into the ball if asked for: post-processing."""
    value = to_space(ball, ball.in_frame.pull_in(draw) if project else draw)
    return ball.pull_in(value) if project and not ball.space.is_flat else value


def to_space(ball: Ball, point: Array) -> Array:
    """Move a draw from the frame to the space; coordinates too long to represent are shortened: post-processing."""
    if ball.space.is_flat:
        point = shorten(point[None], _farthest(ball))[0]
    return np.asarray(ball.from_frame(point[None])[0])


@lru_cache(maxsize=256)
def _farthest(ball: Ball) -> float:
    """Return the longest coordinates at the centre whose point can be written down."""
    return ball.space.farthest - float(ball.space.dist(ball.space.origin, ball.center))


def _baseline_value(ball: Ball, stored: Array) -> Array:
    """Carry a baseline's noisy numbers back by the linear map that moves points: what comes out may be no point."""
    assert ball.space.stored is not None  # or the mechanism had refused
    return ball.space.stored.carried(ball.center, stored)
