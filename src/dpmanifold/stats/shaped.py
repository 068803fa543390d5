"""A mean whose noise is shaped like the data: by a public shape, or by one that was released first (theory: shaped)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._fallback import with_fallback
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import Shape
from dpmanifold.frechet import UnitPoints
from dpmanifold.linalg import from_vecd
from dpmanifold.manifolds.embedding import TangentMap
from dpmanifold.manifolds.vectors import vector_norm
from dpmanifold.mechanisms import Calibration, Forecast, get
from dpmanifold.privacy import Promise
from dpmanifold.release import REVEALED, Clipping, Drawn, Release
from dpmanifold.statistic import STATISTICS, Header, Kind, Statistic, Step
from dpmanifold.stats.ball_estimation import moved_into
from dpmanifold.stats.draws import Hidden, PointDraw, additive, mean_step
from dpmanifold.stats.inputs import checked_flag
from dpmanifold.stats.joint_moments import JOINT_MOMENTS
from dpmanifold.stats.mean import UNSHAPED, MeanProgram, checked_shrink, placed
from dpmanifold.stats.program import Drawing, Program, step_of, together
from dpmanifold.stats.refine import Wanted
from dpmanifold.stats.shaping import (
    NOBODY_VARIES,
    PRIVATE,
    Shaping,
    checked,
    flat_ball,
    missing_directions,
    noise_of,
    settled,
    white_ball,
)
from dpmanifold.stats.shrinkage import JAMES_STEIN

# Where units that a radius leaves out are taken to lie: a quarter of it beyond, as for a refined ball.
_BEYOND = 0.25


class ShapedMean(Statistic):
    """A mean with noise that is shaped like the data."""

    name, words, kind = "shaped mean", "mean with noise shaped like the data", Kind.POINT
    details = REVEALED

    def prepared(
        self,
        header: Header,
        *,
        noise_shape: Any = PRIVATE,
        mechanism: Any = "auto",
        estimand: str | None = None,
        refine: bool = False,
        project: bool = True,
        shrinkage: str | None = "auto",
    ) -> Program[UnitPoints]:
        """Choose, or refuse; where public numbers say that a shape cannot help, plan the plain mean."""
        return plan_shaped(header, Wanted(mechanism, estimand), noise_shape, refine, project, shrinkage)

    def setting(self, release: Release) -> tuple[Shape, Ball]:
        """Return the norm that it was drawn in, and the ball there: from what the release and its steps state."""
        return settled(release.ball, shape_of(release), release.steps[0].value)

    def hidden(self, release: Release, points: Callable[[], UnitPoints]) -> tuple[Array, float]:
        """Return the mean that was hidden, and the share of the units that were cut in the norm. NOT PRIVATE."""
        ball, (shape, inner) = release.ball, self.setting(release)
        outer = white_ball(ball, shape)
        white = mapped_points(points(), ball, shape, outer)
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
        public = public_shape(release)
        if inner != release.steps[0].value:
            notes = ["the radius found in the shape's norm is too large for it to help: the noise is round"]
        elif public is not None:
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
        missing = 0 if public is None else missing_directions(public)
        if missing:
            notes.append(NOBODY_VARIES.format(missing))
        if release.is_swamped:
            notes.append("the noise is as large as the ball: this says nothing. Use more units or a weaker promise")
        return notes


SHAPED = ShapedMean()
STATISTICS.register(SHAPED.name, SHAPED)


def carried_back(ball: Ball, shape: Shape, y: FloatArray) -> Array:
    """Return the point of the ball's frame that a vector in the norm stands for: post-processing."""
    return TangentMap(ball.frame, ball.radius).place(shape.back(y))


def learned_shape(joint: Release) -> Shape:
    """Return the shape that released joint moments show: a function of the release alone. Never raises."""
    d = joint.ball.space.dim

    def learned() -> Shape:
        noise = JOINT_MOMENTS.noise_scales(joint)
        return Shape.learned(joint.value[:d], from_vecd(joint.value[d:]), float(noise[0]), float(noise[d]))

    return with_fallback(learned, lambda: Shape.round(d))


def shape_of(release: Release) -> Shape:
    """Return the shape of a released shaped mean: the public one that it states, or what its steps show."""
    public = public_shape(release)
    return learned_shape(release.steps[0].steps[0]) if public is None else Shape.public(public)


def public_shape(release: Release) -> FloatArray | None:
    """Return the public second moments that a mean was asked with; None where they were released first."""
    asked = None if release.request is None else release.request.options.get("noise_shape")
    return None if asked is None or isinstance(asked, str) else np.asarray(asked)


# -------------------------------------------------------------------- planning and drawing


def plan_shaped(
    header: Header,
    wanted: Wanted,
    noise_shape: Any,
    refine: bool = False,
    project: bool = True,
    shrinkage: str | None = "auto",
    share: Promise | None = None,
) -> Program[UnitPoints]:
    """Return the plan of a shaped mean; that of the plain one where a shape cannot help; or refuse."""
    total = share or header.privacy
    if checked_shrink(shrinkage) == JAMES_STEIN:
        raise InvalidArgumentError(
            f'shrinkage="{JAMES_STEIN}" is for noise that is the same in all directions, and with a shape it is not: a '
            'shaped mean is never moved towards the centre. Leave shrinkage at "auto", or leave noise_shape out.'
        )
    asked = checked(noise_shape, header.ball, wanted, checked_flag(refine, "refine"), total)
    shaping = Shaping(header.ball, header.n, total, asked)
    used = header.decide(
        "noise_shape", lambda: "used" if shaping.skipped is None else "skipped", {"used", "skipped"}.__contains__
    )
    if used == "used":
        return ShapedProgram(header, shaping, project)
    plain = wanted if header.ball.space.is_flat else Wanted("auto", "tangent")
    return MeanProgram(header, plain, False, project, shrinkage, share, {UNSHAPED: 1.0})


class ShapedProgram(Program[UnitPoints]):
    """A shape if it is private, a radius in its norm, and the mean there."""

    def __init__(self, header: Header, shaping: Shaping, project: bool = True) -> None:
        self.header, self._shaping = header, shaping
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
        joint = JOINT_MOMENTS.step(header, self._joint(header.ball))
        second = shaping.search(flat_ball(header.ball, 2 * header.ball.radius), shaping.shares[2]).step(header)
        return first, joint, second, most

    def _joint(self, ball: Ball) -> Calibration:
        return additive(JOINT_MOMENTS.sensitivity(ball, self.header.n), self._shaping.shares[1])

    def draws(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Look for the shape if it is private, for the radius in its norm, and draw the mean there."""
        header, ball, shaping = self.header, self.header.ball, self._shaping
        shape, steps = shaping.public, tuple[Release, ...]()
        if shape is None:
            joint: Release = yield from self._learn(units)
            shape, steps = learned_shape(joint), (joint,)
        outer = white_ball(ball, shape)
        paid = header.promising(together(shaping.shares[:-1]))
        searched = shaping.search(outer, shaping.shares[-2])
        step: Release = yield from searched.draws(_mapped(units, ball, shape, outer), paid, steps)
        shape, inner = settled(ball, shape, step.value)
        mechanism, calibration, _ = chosen = shaping.choice(inner, shaping.rest)
        draw = PointDraw(inner, chosen, _mapped(units, ball, shape, inner))
        drawn: Drawn = yield draw
        back, place = shape, draw.place(drawn)
        value = with_fallback(lambda: placed(ball, carried_back(ball, back, place), self._project), lambda: ball.center)
        return (
            yield from step_of(Release.of(
                SHAPED, value, header, calibration, (drawn,), (step,), tol=0.0, projected=self._project,
                covers_timing=mechanism.covers_timing,
            ))
        )  # fmt: skip

    def _learn(self, units: Hidden[UnitPoints]) -> Drawing[Release]:
        """Release a radius about the centre, and joint moments within it."""
        header, shaping = self.header, self._shaping
        first: Release = yield from shaping.first.draws(units, header.promising(shaping.shares[0]))
        near: Ball = first.value
        inside = header.inside(near).promising(together(shaping.shares[:2]))
        return (yield from JOINT_MOMENTS.draws(moved_into(near, units), inside, self._joint(near), (first,)))


def _mapped(units: Hidden[UnitPoints], ball: Ball, shape: Shape, white: Ball) -> Hidden[UnitPoints]:
    """Return the units as vectors in the norm of a shape, cut to a ball of them."""
    return units.then(
        lambda points: points.through(shape.whitening(ball, white), white), lambda points: points.at_center(white)
    )


def mapped_points(points: UnitPoints, ball: Ball, shape: Shape, white: Ball) -> UnitPoints:
    """Return the same of points that may be looked at. NOT PRIVATE."""
    return _mapped(Hidden(lambda: points), ball, shape, white).reveal()
