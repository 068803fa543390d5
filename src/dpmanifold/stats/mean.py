"""The mean: how it is planned, drawn and recomputed (theory 1, 3, 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds.base import shorten
from dpmanifold.mechanisms import MECHANISMS, Forecast, Mechanism, choose, get
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.mechanisms.registry import forecast_of
from dpmanifold.privacy import Promise, PromiseError
from dpmanifold.release import NO_ERROR, REVEALED, TANGENT_GAP, Drawn, Release
from dpmanifold.statistic import STATISTICS, Header, Kind, Statistic, Step
from dpmanifold.stats.draws import (
    Chosen,
    Hidden,
    PointDraw,
    choose_for,
    is_candidate,
    mean_step,
    refuse_inexact,
    tolerance_of,
)
from dpmanifold.stats.inputs import checked_flag
from dpmanifold.stats.mean_plan import Plan, plan_mean
from dpmanifold.stats.program import Drawing, Program, step_of
from dpmanifold.stats.refine import (
    SKIPPED,
    SMALL_FILL,
    STANDS_IN,
    TANGENT,
    Refinement,
    Wanted,
    aims_at_frechet,
    gap_of,
    stand_in,
    stated_gap,
)
from dpmanifold.stats.shrinkage import JAMES_STEIN, Shrinkage, admissible_shrinkage, best_shrinkage

# Mechanisms whose noise is normal in the frame of a flat ball.
UNSHAPED = "noise_shape_skipped"
"""What a release states where a shape was given and could not help."""


class Mean(Statistic):
    """A mean of the units: the Fréchet mean, or another by name."""

    name, words, kind = "mean", "mean (Fréchet, tangent or extrinsic)", Kind.POINT
    details = REVEALED | SKIPPED | {UNSHAPED} | STANDS_IN

    def prepared(
        self,
        header: Header,
        *,
        mechanism: Any = "auto",
        estimand: str | None = None,
        refine: bool = False,
        noise_shape: Any = None,
        project: bool = True,
        shrinkage: str | None = "auto",
    ) -> Program[UnitPoints]:
        """Choose, or refuse."""
        if noise_shape is not None:
            return STATISTICS.get("shaped mean").prepared(
                header, noise_shape=noise_shape, mechanism=mechanism, estimand=estimand or "frechet", refine=refine,
                project=project, shrinkage=shrinkage,
            )  # fmt: skip
        return MeanProgram(header, Wanted(mechanism, estimand), refine, project, shrinkage)

    def comparison(
        self,
        header: Header,
        *,
        mechanism: Any = "auto",
        estimand: str | None = None,
        refine: bool = False,
        noise_shape: Any = None,
        project: bool = True,
        shrinkage: str | None = "auto",
        everything: bool = False,
        fill: float | None = None,
    ) -> Plan | None:
        """Return every mechanism with its error; of one by name, None: its draws are listed."""
        if mechanism != "auto":
            return None
        checked_shrink(shrinkage)  # which changes neither the mechanisms nor their noise
        return plan_mean(
            header.n, header.ball, header.privacy, estimand=estimand, everything=everything, refine=refine,
            noise_shape=noise_shape, fill=SMALL_FILL if fill is None else fill, arithmetic=header.arithmetic,
            project=project,
        )  # fmt: skip

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
            notes.append("no shape was used: public numbers say that it could not help (dpm plan --noise-shape)")
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


# -------------------------------------------------------------------- planning and drawing


class MeanProgram(Program[UnitPoints]):
    """A mean, after a smaller ball if one was asked for.

    `share` is what the mean and, with `refine`, the ball before it may cost together: all that the header promises
    unless it is less, as for one class of several.
    """

    def __init__(
        self,
        header: Header,
        wanted: Wanted,
        refine: bool = False,
        project: bool = True,
        shrinkage: str | None = "auto",
        share: Promise | None = None,
        details: dict[str, float] | None = None,
    ) -> None:
        # A tangent mean by name that is to stand for the Fréchet mean needs a ball near it.
        self._stands_in = checked_flag(refine, "refine") and aims_at_frechet(wanted.mechanism, wanted.estimand)
        self.header = header
        self._wanted = wanted = Wanted(wanted.mechanism) if self._stands_in else wanted
        self._project, self._shrink = checked_flag(project, "project"), checked_shrink(shrinkage)
        self._refinement = Refinement(header, share or header.privacy, refine, wanted)
        self._details = {**(details or {}), **self._refinement.details}
        self.chosen = self._suiting(choose_for(header, wanted.mechanism, self._refinement.rest, wanted.estimand))
        _refuse_shrinkage(self._shrink, self.chosen, header.ball)

    def _suiting(self, chosen: Chosen, header: Header | None = None) -> Chosen:
        refuse_inexact(self.header.arithmetic, chosen[0], (header or self.header).ball, chosen[1])
        return chosen

    def steps(self) -> tuple[Step, ...]:
        """Return the draws; the mean's in the public ball, where a smaller one is looked for first."""
        return (*self._refinement.steps(), mean_step(MEAN, self.header, self.chosen, self._project))

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Find a ball if that was planned, and draw the mean in it."""
        header, chosen, moved = self.header, self.chosen, units
        ball, inside, before = yield from self._refinement.find(units)
        if before:
            # Where the released ball does not suit the mechanism the outer one is used: decided by the release.
            suited = with_fallback(
                lambda: self._in_released(header.inside(ball), before), lambda: None, InvalidArgumentError, PromiseError
            )
            if suited is not None:
                header, chosen, moved = header.inside(ball), suited, inside
        aims = self._stands_in or (self._wanted.is_auto and chosen[0].estimand == TANGENT)
        return (
            yield from draw_mean(
                moved, header, chosen, self._project, before, self._details, self._shrink, states_gap=aims
            )
        )

    def _in_released(self, header: Header, before: tuple[Release, ...]) -> Chosen:
        """Return what draws the mean in a ball that was released, or refuse."""
        share, wanted = self._refinement.rest, self._wanted
        if wanted.mechanism != "auto":
            return self._suiting(wanted.choose(header.ball, header.n, share), header)
        found: list[Chosen] = []

        def best() -> str:
            usual = self._suiting(wanted.choose(header.ball, header.n, share), header)
            # A tangent mean may be taken for the Fréchet mean: decided by what was released, too.
            instead = None
            if wanted.is_auto and header.ball != self.header.ball:
                instead = with_fallback(
                    lambda: stand_in(usual, header.ball, header.n, share, gap_of(header.ball, header.n, before)),
                    lambda: None, InvalidArgumentError, PromiseError,
                )  # fmt: skip
            found.append(instead or usual)
            return found[0][0].name

        means = (wanted.estimand, TANGENT) if wanted.is_auto else (wanted.estimand,)
        name = header.decide("mechanism_in_released_ball", best, lambda name: is_candidate(name, *means))
        return found[0] if found else choose(name, header.ball, header.n, share)


def draw_mean(
    units: Hidden[UnitPoints],
    header: Header,
    chosen: Chosen,
    project: bool = True,
    steps: tuple[Release, ...] = (),
    details: dict[str, float] | None = None,
    shrinkage: str | None = None,
    states_gap: bool = False,
) -> Drawing[Release]:
    """Draw a mean in the frame of the header's ball, and move it back.

    Parameters
    ----------
    units : the units' points in that frame
    header : what it is about; its promise is the total, the calibration's the step's share
    chosen : the mechanism
    project, shrinkage : as in :func:`private_mean`
    steps, details : what the release states besides
    states_gap : whether it stands for the Fréchet mean and states how far the two can be apart
    """
    mechanism, calibration, _ = chosen
    ball = header.ball
    draw = PointDraw(ball, chosen, units)
    drawn: Drawn = yield draw
    point = draw.place(drawn)
    if mechanism.baseline:
        value, project = with_fallback(lambda: _baseline_value(ball, point), lambda: ball.center), False
    else:
        value = with_fallback(lambda: placed(ball, point, project), lambda: ball.center)
    rule = _decided_shrinkage(header, chosen, project, shrinkage)
    raw = None
    if rule is not None:
        raw = with_fallback(lambda: placed(ball, point, False), lambda: ball.center)
        value = shrunken(rule, ball, raw, project)
    release = Release.of(
        MEAN,
        value,
        header,
        calibration,
        (drawn,),
        steps,
        details,
        tol=tolerance_of(mechanism, ball, header.n),
        projected=project,
        covers_timing=mechanism.covers_timing,
        shrinkage="" if rule is None else rule.name,
        raw=raw,
    )
    if states_gap:
        gap = with_fallback(lambda: stated_gap(release), lambda: ball.diameter)
        release = replace(release, details={**release.details, TANGENT_GAP: gap})
    return (yield from step_of(release))


def _decided_shrinkage(header: Header, chosen: Chosen, project: bool, shrinkage: str | None) -> Shrinkage | None:
    """Return how a draw is moved towards the centre; with "auto" a decision."""
    mechanism, calibration, _ = chosen
    ball, scale = header.ball, calibration.scale
    if shrinkage != "auto" or not can_shrink(ball, mechanism):
        return shrinkage_of(ball, mechanism, scale, project, shrinkage)
    best = shrinkage_of(ball, mechanism, scale, project)
    name = header.decide(
        "shrinkage", lambda: best.name if best else "none", admissible_shrinkage(ball.space.dim, ball.radius, scale)
    )
    return None if name == "none" else Shrinkage(name, ball.space.dim, ball.radius, scale)


def can_shrink(ball: Ball, mechanism: Mechanism) -> bool:
    """Return whether draws of a mechanism may be moved towards the centre: normal noise in flat coordinates."""
    return ball.space.is_flat and (mechanism.noise, mechanism.about) == ("gaussian", "center")


def shrinkage_of(
    ball: Ball, mechanism: Mechanism, scale: float, project: bool, shrinkage: str | None = "auto"
) -> Shrinkage | None:
    """Return how a draw by this mechanism may be moved towards the centre, from public numbers; None if it may not."""
    if shrinkage is None or not can_shrink(ball, mechanism):
        return None
    if shrinkage == JAMES_STEIN:
        return Shrinkage(JAMES_STEIN, ball.space.dim, ball.radius, scale) if ball.space.dim >= 3 else None
    return best_shrinkage(ball.space.dim, ball.radius, scale, project)


def shrunken(rule: Shrinkage, ball: Ball, raw: Array, project: bool) -> Array:
    """Move a released draw towards the ball's centre: a function of the release alone. Never raises."""
    return with_fallback(
        lambda: placed(ball, rule(ball.space.log_coords(ball.center, raw)), project), lambda: ball.center
    )


def checked_shrink(shrinkage: object) -> str | None:
    """Return how to move draws towards the centre, or say what may be asked for."""
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage in ("auto", JAMES_STEIN)):
        return shrinkage
    raise InvalidArgumentError(f'`shrinkage` must be "auto", "{JAMES_STEIN}" or None, got {shown(shrinkage)}.')


def _refuse_shrinkage(shrinkage: str | None, chosen: Chosen, ball: Ball) -> None:
    """Refuse to be asked by name for what is not proven there."""
    if shrinkage == JAMES_STEIN and shrinkage_of(ball, chosen[0], chosen[1].scale, True, shrinkage) is None:
        raise InvalidArgumentError(
            f'shrinkage="{JAMES_STEIN}" is for normal noise on flat spaces of dimension 3 or more, got '
            f'{chosen[0].name} on {ball.space!r}. Leave it at "auto".'
        )


def placed(ball: Ball, draw: Array, project: bool) -> Array:
    """Move a draw from the frame to the space, into the ball if asked for: post-processing."""
    value = to_space(ball, ball.in_frame.pull_in(draw) if project else draw)
    return ball.pull_in(value) if project and not ball.space.is_flat else value


def to_space(ball: Ball, point: Array) -> Array:
    """Move a draw from the frame to the space; coordinates too long to represent are shortened: post-processing."""
    if ball.space.is_flat:
        point = shorten(point[None], ball.farthest)[0]
    return np.asarray(ball.from_frame(point[None])[0])


def _baseline_value(ball: Ball, stored: Array) -> Array:
    """Carry a baseline's noisy numbers back by the linear map that moves points: what comes out may be no point."""
    assert ball.space.stored is not None  # or the mechanism had refused
    return ball.space.stored.carried(ball.center, stored)
