"""A mean whose noise is shaped like the data: by a public shape, or by one that was released first (theory: shaped)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import WEIGHT, Shape
from dpmanifold.frechet import UnitPoints
from dpmanifold.linalg import from_vecd
from dpmanifold.manifolds.vectors import vector_norm
from dpmanifold.mechanisms import Calibration, Forecast, attempt, get
from dpmanifold.mechanisms.embeddings import TangentEmbedding
from dpmanifold.privacy import Promise
from dpmanifold.release import REVEALED, Clipping, Release
from dpmanifold.statistic import STATISTICS, Header, Kind, Prepared, Statistic, Step
from dpmanifold.stats.additive import additive
from dpmanifold.stats.averaged import AveragePlan
from dpmanifold.stats.ball import moved_into
from dpmanifold.stats.draws import Bits, draw_mean, stated, timing_of
from dpmanifold.stats.grids import follows
from dpmanifold.stats.inputs import checked_flag
from dpmanifold.stats.joint_moments import FREE_WEIGHT, JOINT_MOMENTS
from dpmanifold.stats.mean import UNSHAPED, MeanPlan, checked_shrink, class_faults, placed, point_faults
from dpmanifold.stats.radius import radius_recipe
from dpmanifold.stats.ranges import ROUNDING, SURELY, same_number
from dpmanifold.stats.recipes import CLASSES, EITHER, Recipe, together
from dpmanifold.stats.refine import Wanted
from dpmanifold.stats.shaping import (
    NOBODY_VARIES,
    PRIVATE,
    PRIVATE_SHARES,
    PUBLIC_SHARES,
    SHAPED_BY,
    Shaping,
    checked,
    coverage_of,
    flat_ball,
    missing_directions,
    noise_of,
    settled,
    white_ball,
)
from dpmanifold.stats.shrinkage import JAMES_STEIN
from dpmanifold.stats.steps import mean_step

# Where units that a radius leaves out are taken to lie: a quarter of it beyond, as for a refined ball.
_BEYOND = 0.25


class ShapedMean(Statistic):
    """A mean with noise that is shaped like the data."""

    name, words, kind = "shaped mean", "mean with noise shaped like the data", Kind.POINT
    details = CLASSES | REVEALED

    def prepared(
        self,
        header: Header,
        *,
        shape: Any = PRIVATE,
        mechanism: Any = "auto",
        estimand: str | None = None,
        refine: bool = False,
        project: bool = True,
        shrink: str | None = "auto",
    ) -> Prepared:
        """Choose, or refuse; where public numbers say that a shape cannot help, plan the plain mean."""
        return plan_shaped(header, Wanted(mechanism, estimand), shape, refine, project, shrink)

    def recipes(self) -> Sequence[Recipe]:
        """Return: by a public shape, and by a private one."""
        other: dict[str, Any] = {"optional": (CLASSES, REVEALED), "neighbours": EITHER}
        radius = radius_recipe(PRIVATE_SHARES[:1])
        joint = Recipe(
            JOINT_MOMENTS.name, ("gaussian",), PRIVATE_SHARES[:2], radius, frozenset({WEIGHT}), projected=False,
            neighbours=EITHER,
        )  # fmt: skip
        second = radius_recipe(PRIVATE_SHARES[:3], joint)
        first = radius_recipe(PUBLIC_SHARES[:1])
        return (
            Recipe(self.name, SHAPED_BY, PUBLIC_SHARES, first, shaped=True, **other),
            Recipe(self.name, SHAPED_BY, PRIVATE_SHARES, second, **other),
        )

    # ---------------------------------------------------------------- what verify recomputes

    def setting(self, release: Release) -> tuple[Shape, Ball]:
        """Return the norm that it was drawn in, and the ball there: from what the release and its steps state."""
        return settled(release.ball, shape_of(release), release.steps[0].value)

    def calibrated(self, release: Release) -> tuple[Calibration, float]:
        """Return the noise in the norm, and what its length there surely stays below."""
        found = attempt(get(release.mechanism), self.setting(release)[1], release.n, release.share)
        assert not isinstance(found, str)
        return found[0], float(found[1].quantile(SURELY))

    def grid(self, release: Release, calibration: Calibration) -> int | None:
        """Return the mechanism's grid in the norm."""
        return get(release.mechanism).grid(self.setting(release)[1], calibration)

    def details_faults(self, release: Release, recipe: Recipe, shares: list[Promise]) -> list[str]:
        """Return what is wrong with classes, with what is revealed, and with a public shape."""
        shape, found = release.shape, class_faults(release)
        if shape is not None:
            values = np.linalg.eigvalsh(shape)
            if not np.allclose(shape, shape.T, rtol=ROUNDING, atol=0) or values[0] < -1e-8 * values[-1]:
                found.append("shape: it is no matrix of second moments")
        return found

    def value_faults(self, release: Release, noise: float) -> list[str]:
        """Return why a value is no point that a draw could have come to."""
        shape, inner = self.setting(release)
        ball = release.ball
        # A length in the norm, and what becomes of it where directions are stretched most.
        far = (inner.radius + noise) * float(shape.stretches.max()) + shape.away
        return point_faults(release, max(0.0, far - ball.radius))

    def drawn_faults(self, release: Release, noise: float) -> list[str]:
        """Return whether the draw is too far, or the value not made of it."""
        assert release.drawn is not None
        shape, inner = self.setting(release)
        if release.drawn.shape != (inner.space.dim,):
            return [f"drawn: there are {inner.space.dim} numbers in it"]
        if float(np.linalg.norm(release.drawn)) > (inner.radius + noise) * (1 + 1e-9):
            return ["drawn: no noise of that scale carries a draw so far"]
        y = get(release.mechanism).place(inner, release.drawn)
        made = placed(release.ball, carried_back(release.ball, shape, y), release.projected)
        return follows(release, release.value, made)

    def step_faults(self, release: Release, step: Release) -> list[str] | None:
        """Return what is wrong with the chain of steps: balls, norms and what the radii are asked to hold."""
        ball, shape = release.ball, shape_of(release)
        white, found = white_ball(ball, shape), []
        if (
            step.ball.space != white.space
            or np.any(step.ball.center)
            or not same_number(step.ball.radius, white.radius)
        ):
            found.append("step 'radius': it was not looked for in the norm of the shape")
        radii = [step]
        if release.shape is None:
            joint = step.steps[0]
            radii.append(joint.steps[0])
            if joint.steps[0].ball != ball:
                found.append("step 'radius': it was looked for in another ball")
            if joint.details[WEIGHT] != FREE_WEIGHT:
                found.append(f"step 'joint moments': {WEIGHT}: before a mean it is {FREE_WEIGHT:g}")
        for one in radii:
            if not same_number(one.details["coverage"], coverage_of(ball.space.dim, one.n, one.share, release.share)):
                found.append("step 'radius': it was to hold another share of the units")
        return found

    def timing(self, release: Release) -> str:
        """Say what the running time tells."""
        return timing_of(get(release.mechanism), release.steps)

    def hidden(self, release: Release, points: Callable[[], UnitPoints]) -> tuple[Array, float]:
        """Return the mean that was hidden, and the share of the units that were cut in the norm. NOT PRIVATE."""
        ball, (shape, inner) = release.ball, self.setting(release)
        outer = white_ball(ball, shape)
        white = _mapped(points(), ball, shape, outer)
        cut = white.each(vector_norm) > inner.radius * (1 + 1e-9)
        return placed(ball, carried_back(ball, shape, white.in_ball(inner).mean()), False), float(cut.mean())

    # ---------------------------------------------------------------- for people

    def estimand(self, release: Release) -> str | None:
        """Return the Fréchet mean on flat spaces, the tangent mean elsewhere."""
        return "frechet" if release.ball.space.is_flat else "tangent"

    def states_error(self, release: Release) -> bool:
        """Return True: bounds of the noise's length are known."""
        return True

    def forecast(self, release: Release) -> Forecast:
        """Bound how far the noise carries the value."""
        shape, _ = self.setting(release)
        mechanism = get(release.mechanism)
        return noise_of(release.ball, shape, mechanism, release.scale)

    def clipping(self, release: Release) -> Clipping | None:
        """Return what the noisy count of the units within the radius says about those that were cut."""
        shape, inner = self.setting(release)
        step, ball = release.steps[0], release.ball
        if inner != step.value:
            return None
        most = ball.radius + shape.away
        return Clipping.counted(step, release.n, min(inner.radius * shape.lengthening, most) * _BEYOND, most)

    def noise_covariance(self, release: Release) -> FloatArray:
        """Return the covariance of the noise in coordinates at the ball's centre, (d, d)."""
        shape, _ = self.setting(release)
        each = release.scale**2 * (1 if get(release.mechanism).noise == "gaussian" else release.ball.space.dim + 1)
        return np.asarray(each * (shape.vectors * shape.stretches**2) @ shape.vectors.T)

    def range(self, ball: Ball) -> float | None:
        """Return the radius."""
        return ball.radius

    def notes(self, release: Release) -> list[str]:
        """Say which shape the noise has, and how large it is."""
        shape, inner = self.setting(release)
        if inner != release.steps[0].value:
            notes = ["the radius found in the shape's norm is too large for it to help: the noise is round"]
        elif release.shape is not None:
            notes = ["the noise has the shape of public data; the radius was found privately in that norm"]
        elif shape.known == 0:
            notes = [
                "joint moments showed no direction above their noise: the noise is round, in a ball found with them"
            ]
        else:
            known = f"{shape.known} direction{'' if shape.known == 1 else 's'}"
            notes = [f"the noise has the shape that joint moments showed above their own noise, in {known}"]
        each = release.scale * (1.0 if get(release.mechanism).noise == "gaussian" else math.sqrt(len(shape.middle) + 1))
        low, high = each * float(shape.stretches.min()), each * float(shape.stretches.max())
        notes.append(
            f"the noise has standard deviations from {low:.3g} to {high:.3g} by direction, in coordinates at the "
            "ball's centre; scale and sensitivity are in the shape's norm"
        )
        missing = 0 if release.shape is None else missing_directions(release.shape)
        if missing:
            notes.append(NOBODY_VARIES.format(missing))
        if release.is_swamped:
            notes.append("the noise is as large as the ball: this says nothing. Use more units or a weaker promise")
        return notes


SHAPED = ShapedMean()
STATISTICS.register(SHAPED.name, SHAPED)


def carried_back(ball: Ball, shape: Shape, y: FloatArray) -> Array:
    """Return the point of the ball's frame that a vector in the norm stands for: post-processing."""
    return TangentEmbedding(ball).place(shape.back(y))


def learned_shape(joint: Release) -> Shape:
    """Return the shape that released joint moments show: a function of the release alone. Never raises."""
    d = joint.ball.space.dim

    def learned() -> Shape:
        noise = JOINT_MOMENTS.noise_scales(joint)
        return Shape.learned(joint.value[:d], from_vecd(joint.value[d:]), float(noise[0]), float(noise[d]))

    return with_fallback(learned, lambda: Shape.round(d))


def shape_of(release: Release) -> Shape:
    """Return the shape of a released shaped mean: the public one that it states, or what its steps show."""
    return learned_shape(release.steps[0].steps[0]) if release.shape is None else Shape.public(release.shape)


# -------------------------------------------------------------------- planning and drawing


def plan_shaped(
    header: Header,
    wanted: Wanted,
    shape: Any,
    refine: bool = False,
    project: bool = True,
    shrink: str | None = "auto",
    share: Promise | None = None,
    details: dict[str, float] | None = None,
) -> Prepared:
    """Return the plan of a shaped mean; that of the plain one where a shape cannot help; or refuse."""
    total = share or header.privacy
    if checked_shrink(shrink) == JAMES_STEIN:
        raise InvalidArgumentError(
            f'shrink="{JAMES_STEIN}" is for noise that is the same in all directions, and with a shape it is not: a '
            'shaped mean is never moved towards the centre. Leave shrink at "auto", or leave shape out.'
        )
    asked = checked(shape, header.ball, wanted, checked_flag(refine, "refine"), total)
    shaping = Shaping(header.ball, header.n, total, asked)
    if shaping.skipped is None:
        return ShapedPlan(header, shaping, project, details)
    flat = header.ball.space.is_flat
    plain = wanted if flat else Wanted("auto", "tangent")
    return MeanPlan(header, plain, False, project, shrink, share, {**(details or {}), UNSHAPED: 1.0})


class ShapedPlan(Prepared):
    """Every choice and every refusal of a shaped mean, from public numbers alone."""

    def __init__(
        self, header: Header, shaping: Shaping, project: bool = True, details: dict[str, float] | None = None
    ) -> None:
        self.header, self._shaping, self._details = header, shaping, details
        self._project = checked_flag(project, "project")

    def steps(self) -> tuple[Step, ...]:
        """Return the draws; the mean's with round noise in the whole ball, which is the most that it can have."""
        header, shaping = self.header, self._shaping
        first = shaping.first.step(header)
        ball = flat_ball(header.ball, header.ball.radius)
        most = replace(
            mean_step(SHAPED, header.inside(ball), shaping.choice(ball, shaping.rest), self._project), exact=False
        )
        if shaping.public is not None:
            return first, most
        joint = AveragePlan(JOINT_MOMENTS, header, self._joint(header.ball)).steps()
        second = shaping.search(flat_ball(header.ball, 2 * header.ball.radius), shaping.shares[2]).step(header)
        return first, *joint, second, most

    def _joint(self, ball: Ball) -> Calibration:
        return additive(JOINT_MOMENTS.sensitivity(ball, self.header.n), self._shaping.shares[1])

    # ---------------------------------------------------------------- drawing

    def release(self, points: UnitPoints, bits: Bits) -> Release:
        """Look for the shape if it is private, for the radius in its norm, and draw the mean there. Never raises."""
        header, ball, shaping = self.header, self.header.ball, self._shaping
        shape, steps = self._learn(points, bits) if shaping.public is None else (shaping.public, ())
        outer = white_ball(ball, shape)
        white = _mapped(points, ball, shape, outer)
        searched = shaping.search(outer, shaping.shares[-2])
        step = searched.release(white, header.promising(together(shaping.shares[:-1])), bits, steps)
        shape, inner = settled(ball, shape, step.value)
        mechanism, calibration, _ = shaping.choice(inner, shaping.rest)
        draw = draw_mean(inner, mechanism, calibration, _mapped(points, ball, shape, inner), bits)
        value = with_fallback(
            lambda: placed(ball, carried_back(ball, shape, draw.point), self._project), lambda: ball.center
        )
        return Release.of(
            SHAPED, value, header, calibration, (step,), self._details, tol=0.0, projected=self._project,
            private=bits.private, timing=timing_of(mechanism, (step,)), shape=shaping.asked.matrix, **stated(draw),
        )  # fmt: skip

    def _learn(self, points: UnitPoints, bits: Bits) -> tuple[Shape, tuple[Release, ...]]:
        """Release a radius about the centre and joint moments within it; return the shape that they show."""
        header, shaping = self.header, self._shaping
        first = shaping.first.release(points, header.promising(shaping.shares[0]), bits)
        near: Ball = first.value
        inside = header.inside(near).promising(together(shaping.shares[:2]))
        plan = AveragePlan(JOINT_MOMENTS, inside, self._joint(near))
        cut = moved_into(near, points)
        joint = plan.drawn(cut, JOINT_MOMENTS, bits, (first,), JOINT_MOMENTS.stating())
        return learned_shape(joint), (joint,)


def _mapped(points: UnitPoints, ball: Ball, shape: Shape, white: Ball) -> UnitPoints:
    """Return the units as vectors in the norm of a shape, cut to a ball of them. Never raises."""
    return with_fallback(lambda: points.through(shape.whitening(ball, white), white), lambda: points.at_center(white))
