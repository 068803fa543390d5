"""Shaped means as public numbers foresee them: norm, balls, shares, and whether to make one (theory: shaped noise)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dpmanifold._check import FloatArray, shown
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError, Message
from dpmanifold.features import Shape, checked_shape
from dpmanifold.manifolds import Euclidean
from dpmanifold.mechanisms import Forecast, Mechanism, choose, usual
from dpmanifold.mechanisms.error_forecasts import shaped_forecast
from dpmanifold.privacy import Promise, PromiseError, PureDP
from dpmanifold.stats.ball_estimation import RadiusPlan
from dpmanifold.stats.draws import Chosen
from dpmanifold.stats.inputs import divide
from dpmanifold.stats.refine import SMALL_FILL, Wanted
from dpmanifold.stats.search import RadiusSearch
from dpmanifold.stats.shrinkage import shrunken_error

# About another centre the ball is up to twice as large, which must still be a ball.
_LARGEST_RADIUS = 1e69
PRIVATE = "private"
# Fixed in advance: what the radius and the mean get, of epsilon or of mu^2; and with a private shape what a first
# radius, joint moments, the radius in their norm and the mean get.
PUBLIC_SHARES = (0.15, 0.85)
PRIVATE_SHARES = (0.05, 0.15, 0.1, 0.7)
# A search whose counts may be off by more than this share of the units is not made.
MOST_MISCOUNTED = 0.4
# Shares of the units that a radius is asked to hold, at least and at most. In between: as many as are not lost in the
# noise of counts, and as are worth the noise that reaching farther for them costs.
_FEWEST, _MOST, _COUNTS, _NOISE = 0.6, 0.97, 1.7, 2.0
# A shape is not used where data that have it would not gain this much.
_LEAST_GAIN = 0.95
# How far beyond a radius those that it leaves out are expected to lie, as a part of it: so far in normal data.
_BEYOND = 0.1
# How far from the ball's centre the mean is expected to lie, against the root mean square distance of the data.
_AWAY = 0.5
# An eigenvalue below this part of the largest is none.
_NOTHING = 1e-10

NOBODY_VARIES = (
    "by the matrix nobody varies in {} directions: if it was made of few records, give those, which are believed less"
)


def flat_ball(ball: Ball, radius: float) -> Ball:
    """Return a ball of vectors about 0, as public as the ball whose coordinates they are."""
    return Ball(Euclidean(ball.space.dim), np.zeros(ball.space.dim), radius, ball.source, ball.simulated)


def white_ball(ball: Ball, shape: Shape) -> Ball:
    """Return a ball that holds the coordinates of every record in the norm of a shape: none grows longer there."""
    return flat_ball(ball, ball.radius + shape.away)


def settled(ball: Ball, shape: Shape, found: Ball) -> tuple[Shape, Ball]:
    """Return the norm to use, and the ball in it, given the radius that was released: the round one if better."""
    if found.radius * shape.growth < ball.radius:
        return shape, found
    return Shape.round(ball.space.dim), flat_ball(ball, ball.radius)


def coverage_of(dim: int, n: int, search: Promise, rest: Promise) -> float:
    """Return the share of the units that a radius is asked to hold, given the promises of its search and of the mean.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> coverage_of(6, 100, GDP(0.4), GDP(0.9)), coverage_of(6, 10**6, GDP(0.4), GDP(0.9)) > 0.96
    (0.885, True)
    """
    counts = RadiusSearch(dim, n, 1.0, search, _MOST).count_noise / n
    noise = choose(law_of("auto", rest), Ball(Euclidean(dim), np.zeros(dim), 1.0), n, rest)[2].mean
    return max(_FEWEST, min(_MOST, _MOST - _COUNTS * counts, 1 - _NOISE * noise))


def law_of(mechanism: str, promise: Promise) -> str:
    """Return the name of the mechanism that draws the noise; "auto" takes Laplace's for pure promises only."""
    if mechanism != "auto":
        return mechanism
    return usual(noise="laplace" if isinstance(promise, PureDP) else "gaussian", about="center").name


def noise_of(ball: Ball, shape: Shape, mechanism: Mechanism, scale: float) -> Forecast:
    """Return how far noise in the norm of a shape carries a point of the ball, once it is carried back."""
    return shaped_forecast(ball, scale * shape.stretches, mechanism.noise)


def missing_directions(matrix: FloatArray) -> int:
    """Return the number of directions in which a positive semidefinite matrix says that nobody varies.

    Examples
    --------
    >>> missing_directions(np.diag([1.0, 0.0, 1e-6])), missing_directions(np.ones((3, 3)))
    (1, 2)
    """
    values = np.linalg.eigvalsh(matrix)
    return int((values <= _NOTHING * values[-1]).sum())


class Found(NamedTuple):
    """What a search for a radius may end with, if data have a shape: radii, how likely they are, what they cut off."""

    radii: FloatArray
    chances: FloatArray
    cut: FloatArray

    @staticmethod
    def foreseen(shape: Shape, plan: RadiusPlan) -> Found:
        """Return what to expect if the data are normal about the middle, with the shape's second moments.

        Squared lengths in the norm are taken for multiples of chi-square numbers with the right first two moments.
        `cut` is by how much vectors are shortened on average, lengthened again as data of the shape are.
        """
        variances = shape.values / shape.stretches**2
        half = float(variances.sum() ** 2 / (variances**2).sum()) / 2

        def within(radii: FloatArray, more: float = 0.0) -> FloatArray:
            return np.asarray(special.gammainc(half + more, half * (radii / shape.length) ** 2))

        radii = plan.radii
        mean = shape.length * math.exp(special.gammaln(half + 0.5) - special.gammaln(half)) / math.sqrt(half)
        cut = mean * (1 - within(radii, 0.5)) - radii * (1 - within(radii))
        chances = plan.search.chances(plan.n * within(plan.search.radii))
        return Found(radii, chances, shape.lengthening * np.maximum(cut, 0.0))


class Asked(NamedTuple):
    """What was asked for, checked: a public matrix or None for a private shape, and the mechanism's name."""

    matrix: FloatArray | None
    mechanism: str

    @property
    def weights(self) -> tuple[float, ...]:
        """How the promise is shared out."""
        return PRIVATE_SHARES if self.matrix is None else PUBLIC_SHARES


def checked(noise_shape: Any, ball: Ball, wanted: Wanted, refine: bool, privacy: Promise) -> Asked:
    """Return what was asked for, or say why it cannot be: from public numbers, before anything is spent."""
    require_ball(ball)
    if ball.radius > _LARGEST_RADIUS:
        raise InvalidArgumentError(
            f"`ball` must have a radius of at most {_LARGEST_RADIUS:g} with a shape, got "
            f"{ball.radius:g}. Rescale the data."
        )
    if wanted.estimand == "extrinsic":
        raise InvalidArgumentError(
            "`noise_shape` is for averages of coordinates at the ball's centre, and an extrinsic mean is none. Ask for "
            'estimand="tangent", or leave noise_shape out.'
        )
    if wanted.estimand == "frechet" and not ball.space.is_flat:
        raise InvalidArgumentError(
            f"`noise_shape` is for averages of coordinates at the ball's centre, and the Fréchet mean on "
            f'{ball.space!r}, which is curved, is none. Ask for `estimand="tangent"`, or leave noise_shape out.'
        )
    if refine:
        raise InvalidArgumentError(
            "`refine` must be False with a shape, which has a search of its own, about the ball's centre. If the mean "
            "may lie far from there, release a ball first (private_ball) and give the shape in that one."
        )
    able = ["auto", *(usual(noise=noise, about="center").name for noise in ("gaussian", "laplace"))]
    if wanted.mechanism not in able:
        raise InvalidArgumentError(
            f"`mechanism` must be one of {', '.join(able)} with a shape, got {shown(wanted.mechanism)}."
        )
    if isinstance(noise_shape, str) and noise_shape != PRIVATE:
        raise InvalidArgumentError(
            f'`noise_shape` must be "private", a covariance or public records, got {shown(noise_shape)}.'
        )
    if isinstance(noise_shape, str) and isinstance(privacy, PureDP):
        raise PromiseError(
            f'noise_shape="private" cannot keep {privacy!r}: joint moments need Gaussian noise. Give a public shape, '
            "or ask for GDP, ZCDP or ApproxDP."
        )
    return Asked(None if isinstance(noise_shape, str) else checked_shape(noise_shape, ball), str(wanted.mechanism))


class Shaping:
    """How a shaped mean would be made, and whether to make it: from public numbers alone.

    Parameters
    ----------
    ball, n : the public ball, the number of units
    total : what all steps may cost together
    asked : the shape

    Attributes
    ----------
    public : the public shape; None if it is private
    shares, rest : the promise's parts, and the last of them, the mean's
    first : the first search for a radius: in the norm of a public shape, or in the ball itself
    """

    def __init__(self, ball: Ball, n: int, total: Promise, asked: Asked) -> None:
        self.ball, self.n, self.total, self.asked = ball, n, total, asked
        self.public = None if asked.matrix is None else Shape.public(asked.matrix)
        self.shares = divide(total, asked.weights)
        self.rest = self.shares[-1]
        whole = flat_ball(ball, ball.radius)
        self.first = self.search(ball if self.public is None else whole, self.shares[0])

    @cached_property
    def plain(self) -> float:
        """The expected error of the mean without a shape, moved towards the centre where that is done."""
        return self.without(None if self.public is not None else SMALL_FILL * self.ball.radius)

    @cached_property
    def skipped(self) -> str | None:
        """Why a shape cannot help, or None."""
        found = self.first.obstacle(MOST_MISCOUNTED)
        if found is not None:
            return found
        radius = None if self.public is not None else SMALL_FILL * self.ball.radius
        if self.expected(radius) > _LEAST_GAIN * self.plain:
            whose = "that fill a tenth of the ball" if self.public is None else "of that shape"
            return f"even data {whose} would gain hardly anything"
        return None

    def search(self, outer: Ball, share: Promise) -> RadiusPlan:
        """Return the search for a radius in a ball."""
        return RadiusPlan(outer, self.n, share, coverage_of(self.ball.space.dim, self.n, share, self.rest))

    def choice(self, inner: Ball, share: Promise) -> Chosen:
        """Return the mechanism, its scale and what to expect of it, in a ball of vectors."""
        return choose(law_of(self.asked.mechanism, share), inner, self.n, share)

    def _noise(self, shape: Shape, chosen: Chosen) -> float:
        return noise_of(self.ball, shape, chosen[0], chosen[1].scale).mean

    def away(self, radius: float | None = None) -> float:
        """Return how far from the centre the mean is taken to lie, if the data have the shape, or are so far away."""
        if radius is None:
            assert self.public is not None
            radius = math.sqrt(float(self.public.values.sum()))
        return _AWAY * min(radius, self.ball.radius)

    def without(self, radius: float | None = None) -> float:
        """Return the error to expect of a mean without a shape, moved towards the centre where that is done.

        The best noise counts: under approximate promises that may be Laplace's. What lies beyond the ball is moved
        into it.
        """
        ball, away = self.ball, self.away(radius)
        whole = flat_ball(ball, ball.radius)
        chosen = self.choice(whole, self.total)
        best = choose("auto", whole, self.n, self.total)[2].mean
        noise = min(self._noise(Shape.round(ball.space.dim), chosen), best)
        if ball.space.is_flat and chosen[0].noise == "gaussian":
            noise = min(noise, shrunken_error(ball.space.dim, ball.radius, chosen[1].scale, away))
        return min(noise, math.hypot(ball.radius, away))

    def expected(self, radius: float | None = None) -> float:
        """Return the error to expect, clipping included, if the data have the shape; or if the radius found is this.

        Of a private shape nothing is known before: it counts as round.
        """
        if radius is None:
            return self._foreseen()
        ball = self.ball
        shape, inner = settled(ball, self.public or Shape.round(ball.space.dim), flat_ball(ball, radius))
        noise = self._noise(shape, self.choice(inner, self.rest))
        if inner.radius == ball.radius:
            return noise
        cut = min(radius * shape.lengthening, ball.radius)
        return noise + (1 - self.first.coverage) * _BEYOND * cut

    def _foreseen(self) -> float:
        """Return the root mean square error over all that the search may end with, for data that have the shape."""
        ball, shape = self.ball, self.public
        assert shape is not None
        found = Found.foreseen(shape, self.first)
        used = found.radii * shape.growth < ball.radius
        chance = float(found.chances[used].sum())
        square = (1 - chance) * self.expected(ball.radius) ** 2
        if chance > 0:
            # Noise is in proportion to the radius; what is cut off has the mean's direction, as far as it adds up.
            likely = found.chances[used] / chance
            radius = math.sqrt(float(likely @ found.radii[used] ** 2))
            noise = self._noise(shape, self.choice(flat_ball(ball, radius), self.rest))
            square += chance * (noise**2 + _AWAY**2 * float(likely @ found.cut[used] ** 2))
        return min(math.sqrt(square), math.hypot(ball.radius, self.away()))


@dataclass(frozen=True)
class ShapePlan:
    """What `noise_shape=` would do. Public: no data was touched.

    Attributes
    ----------
    private : whether the shape is to be found privately
    skipped : why it would be skipped, or None
    error : the expected error, clipping included: of normal data that have the shape, and whose mean lies half as far
        from the centre as they do; with a private one, of data that lie within `fill` of the radius of the centre and
        have no shape at all
    filled : the expected noise of data that fill the ball
    plain : the expected error of the same data without a shape, moved towards the centre where that is done
    fill : that share of the radius
    missing : number of directions in which a matrix that was given says that nobody varies
    """

    private: bool
    skipped: str | None
    error: float
    filled: float
    plain: float
    fill: float
    missing: int = 0

    @property
    def verdict(self) -> Message:
        """Say in words whether to give the shape."""
        if self.skipped is not None:
            return Message(f"`noise_shape` would be skipped, at no cost: {self.skipped}.")
        gain, loss = self.error / self.plain, self.filled / self.plain
        if self.private:
            whose = (
                f"for data within {self.fill:g} of the radius of the centre, and less the fewer directions they have"
            )
        else:
            whose = "if the data have that shape"
        caution = f" Caution: {NOBODY_VARIES.format(self.missing)}." if self.missing else ""
        return Message(
            f"`noise_shape`: about {self.error:.3g} ({gain:.2f} times) {whose}; at most {self.filled:.3g} ({loss:.2f} "
            f"times) and clipping if not.{caution}"
        )


def plan_shape(ball: Ball, n: int, privacy: Promise, noise_shape: Any, estimand: str, fill: float) -> ShapePlan:
    """Return what a shape would do, or refuse as the release would."""
    asked = checked(noise_shape, ball, Wanted("auto", estimand), False, privacy)
    made = Shaping(ball, n, privacy, asked)
    if made.skipped is not None:
        return ShapePlan(asked.matrix is None, made.skipped, made.plain, made.plain, made.plain, fill)
    radius = fill * ball.radius if asked.matrix is None else None
    error, plain = made.expected(radius), made.without(radius)
    missing = 0 if asked.matrix is None else missing_directions(asked.matrix)
    return ShapePlan(asked.matrix is None, None, error, made.expected(ball.radius), plain, fill, missing)
