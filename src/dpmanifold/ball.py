"""The public ball: where records are promised to live, and the map that keeps that promise.

Every sensitivity rests on a ball that was fixed without looking at the private data. Records outside it
are moved onto it one by one (theory section 1), which costs no privacy because each record is moved by a
rule that knows nothing of the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, fraction, positive_float, shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.manifolds.base import EPS, Manifold, shorten, vector_norm
from dpmanifold.manifolds.euclidean import Euclidean
from dpmanifold.manifolds.laws import refuse_contradictions

# A ball whose distances double precision cannot tell to this share of the radius is refused.
_WORST_ROUNDING = 0.01
# Clipping leaves a record within rounding of the edge; what lies there by itself is counted with them.
_ON_EDGE = 1e-9
# Squares and fourth powers of radii in this range stay well inside the doubles.
_SMALLEST, _LARGEST = 1e-70, 1e70


@dataclass(frozen=True, eq=False, repr=False)
class Ball:
    """A geodesic ball given as public knowledge (theory section 1).

    Parameters
    ----------
    space : the space it lies in
    center : one point of the space
    radius : above 0 and below `space.radius_limit`; or `space.diameter`, which is the whole of a sphere or of the
        planar shapes (:meth:`whole`), and enough for extrinsic means alone
    source : where this knowledge comes from, in words; releases repeat it
    simulated : True if a seeded simulation found it: nothing made with it is private

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> ball = Ball(Sphere(2), center=[1.0, 0.0, 0.0], radius=0.5, source="the northern camera's field of view")
    >>> bool(ball.contains([1.0, 0.0, 0.0]))
    True
    >>> ball.clip([0.0, 1.0, 0.0]).round(4)
    array([0.8776, 0.4794, 0.    ])
    """

    space: Manifold
    center: Array
    radius: float
    source: str = ""
    simulated: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.space, Manifold):
            raise InvalidArgumentError(
                "`space` must be a space such as Sphere(2) or SPD(3), got {got}.", got=shown(self.space)
            )
        if not self.space.is_homogeneous:
            raise InvalidArgumentError(
                "`space` must be homogeneous, and {space!r} says that it is not: sensitivities and laws of noise "
                "rest on isometries that move any point to any other.",
                space=Public(self.space),
            )
        refuse_contradictions(self.space)
        center = self.space.as_points(self.center, "center", batch=False).copy()
        center.flags.writeable = False
        radius = positive_float(self.radius, "radius")
        object.__setattr__(self, "center", center)
        object.__setattr__(self, "radius", radius)
        object.__setattr__(self, "source", str(self.source))
        with np.errstate(all="ignore"):  # what overflows is not finite, and refused below
            self._refuse_unusable(radius)

    def _refuse_unusable(self, radius: float) -> None:
        """Refuse radii beyond the limit, and balls that double precision cannot hold or tell apart."""
        limit = self.space.radius_limit
        if self.is_whole:
            return
        if not radius < limit:
            angle = math.radians(radius)
            degrees = f"If {radius:.4g} is in degrees, give radians: {angle:.4g}. Else choose"
            raise InvalidArgumentError(
                "`radius` must be below {limit:.4f} on {space!r}, got {radius:.4g}: beyond it the mean need not "
                "be unique. {detail} a smaller ball.",
                limit=Public(limit),
                space=Public(self.space),
                radius=Public(radius),
                detail=degrees if angle < limit else Message("Choose"),
            )
        error = 0.0 if self.space.is_flat else self.space.dist_error(self.center, radius)
        if not (_SMALLEST <= radius <= _LARGEST and error <= _WORST_ROUNDING * radius):
            raise InvalidArgumentError(
                "radius {radius:.4g} about this center is outside what double precision can tell on {space!r}: "
                "distances could be wrong by more than 1 % of it. Choose a {detail}",
                radius=Public(radius),
                space=Public(self.space),
                detail=Message("larger ball.")
                if radius < 1e-6
                else Message("smaller ball, or a center that is better conditioned."),
            )
        if not self.effective_radius < limit:
            raise InvalidArgumentError(
                "radius {radius!r} is within rounding of the limit {limit!r} on {space!r}. Make it a little smaller.",
                radius=Public(radius),
                limit=Public(limit),
                space=Public(self.space),
            )
        try:
            first = np.zeros((2, self.space.dim))
            first[:, 0] = radius, -radius
            edge = self.space.exp_coords(self.center, first)
        except InvalidArgumentError as problem:
            raise InvalidArgumentError(
                "radius {radius:.4g} about this center reaches points of {space!r} that double precision cannot "
                "represent. Choose a smaller ball.",
                radius=Public(radius),
                space=Public(self.space),
            ) from problem
        if not np.isfinite(edge).all():
            raise InvalidArgumentError(
                "radius {radius:.4g} about this center overflows on {space!r}. Choose a smaller ball, or other "
                "units for the records.",
                radius=Public(radius),
                space=Public(self.space),
            )

    def __repr__(self) -> str:
        said = f", source={self.source!r}" if self.source else ""
        said += ", NOT PRIVATE (simulated)" if self.simulated else ""
        size = "the whole space" if self.is_whole else f"radius={self.radius:.6g}"
        return f"Ball({self.space!r}, {size}{said})"

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Ball)
            and self.space == other.space
            and self.radius == other.radius
            and self.source == other.source
            and self.simulated == other.simulated
            and bool(np.array_equal(self.center, other.center))
        )

    @cached_property
    def kept(self) -> dict[Any, Any]:
        """What was made of this ball and is asked for again and again, for whoever makes it."""
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "kept"}

    def __deepcopy__(self, memo: object) -> Ball:
        """Return the ball itself: it never changes, and a copy's centre could be written to."""
        return self

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.space, self.radius, self.source, (self.center + 0.0).tobytes()))

    @staticmethod
    def whole(space: Manifold, source: str = "") -> Ball:
        """Return the ball that holds a whole sphere, or all planar shapes: nothing is clipped.

        For extrinsic means, which need no public knowledge of where the records lie (theory: estimands); everything
        else refuses it.

        Parameters
        ----------
        space : a space of finite size
        source : as for a ball

        Examples
        --------
        >>> from dpmanifold.manifolds import Sphere
        >>> Ball.whole(Sphere(2))
        Ball(Sphere(2), the whole space)
        """
        if not (isinstance(space, Manifold) and math.isfinite(space.diameter)):
            raise InvalidArgumentError(
                "`space` must be of finite size, such as Sphere(2) or KendallShapes(8), got {got}. Elsewhere one "
                "record could move a mean without bound: give a ball.",
                got=shown(space),
            )
        return Ball(space, space.origin, space.diameter, source)

    @cached_property
    def is_whole(self) -> bool:
        """Whether it is the whole space."""
        return self.radius == self.space.diameter

    @property
    def _limit(self) -> float:
        """The computed distance beyond which a record is moved: in the whole space there is none."""
        return math.inf if self.is_whole else self.radius

    @cached_property
    def frame(self) -> Manifold:
        """The space in which statistics of this ball are computed, about its origin (theory: rounding).

        Flat spaces are their coordinates, `Euclidean(dim)`; other spaces are themselves, moved by the isometry that
        takes the centre to the origin, where the geometry is best conditioned.
        """
        return Euclidean(self.space.dim) if self.space.is_flat else self.space

    @cached_property
    def in_frame(self) -> Ball:
        """The same ball in its frame: about the frame's origin."""
        if self.frame is self.space and np.array_equal(self.center, self.frame.origin):
            return self
        return Ball(self.frame, self.frame.origin, self.radius, self.source, self.simulated)

    @cached_property
    def effective_radius(self) -> float:
        """The radius that is true of what the program computes; sensitivities use this one.

        Records are clipped by their *computed* distance from the frame's origin; their true distance may exceed the
        radius by the forward error of `dist` there. Theory: rounding.
        """
        frame = self.frame
        return self.radius + frame.dist_error(frame.origin, self.radius)

    @cached_property
    def farthest(self) -> float:
        """The longest coordinates at the center whose point can be written down."""
        return self.space.farthest - float(self.space.dist(self.space.origin, self.center))

    @property
    def diameter(self) -> float:
        """Twice the effective radius: no two points of the ball are farther apart."""
        return 2 * self.effective_radius

    def distance_to_center(self, X: object) -> FloatArray:
        """Return the distance of points (..., *shape) from the centre, shape (...). Not private.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Ball(Euclidean(1), [0.0], 1.0).distance_to_center([[3.0], [-1.0]])
        array([3., 1.])
        """
        return self.space.dist(self.center, self.space.as_points(X, "X"))

    def contains(self, X: object) -> Array:
        """Return whether points (..., *shape) are in the closed ball, a boolean each. Not private.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Ball(Euclidean(1), [0.0], 1.0).contains([[3.0], [-1.0]])
        array([False,  True])
        """
        return np.asarray(self.distance_to_center(X) <= self._limit)

    def clip(self, X: object) -> Array:
        """Move points outside onto the ball, along the geodesic to the centre; (..., *shape) both ways.

        Defined for every finite record: from the cut locus of the centre one fixed geodesic is taken, and a
        configuration without a shape (all landmarks coincide) counts as the centre. The computed distance of
        what comes back never exceeds the radius; points inside come back unchanged.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Ball(Euclidean(1), [0.0], 1.0).clip([[3.0], [-0.5]])
        array([[ 1. ],
               [-0.5]])
        """
        return self.pull_in(self._records(X))

    def pull_in(self, points: Array) -> Array:
        """Clip points without looking whether they are any: what the program itself computed. Never raises.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Ball(Euclidean(1), [0.0], 1.0).pull_in(np.array([[3.0], [np.nan]]))
        array([[1.],
               [0.]])
        """
        with np.errstate(all="ignore"):
            return _pull_in(self.space, self.center, points, self._limit)

    def to_frame(self, X: object) -> Array:
        """Clip records and move them into the ball's frame; (..., *shape) -> (..., *frame.shape).

        This is the per-record map that every statistic starts with. Whatever rounding it has is part of the map; what
        comes back has a computed distance of at most the radius from the frame's origin, for every finite record.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> Ball(SPD(1), [[4.0]], 2.0).to_frame([[[4.0]], [[1e9]]])
        array([[0.],
               [2.]])
        """
        return self.into_frame(self._records(X))

    def take_over(self, outer: Ball, points: Array) -> Array:
        """Move points from another ball's frame into this one's, clipped to this ball. A map of each point alone.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> outer, inner = Ball(Euclidean(1), [0.0], 9.0), Ball(Euclidean(1), [2.0], 1.0)
        >>> inner.take_over(outer, np.array([[2.5], [-4.0]]))
        array([[ 0.5],
               [-1. ]])
        """
        if not self.space.is_flat:
            return self.into_frame(outer.from_frame(points))
        frame = self.frame
        shift = self.space.log_coords(outer.center, self.center)
        return _pull_in(frame, frame.origin, points - shift, self.radius)

    def into_frame(self, records: Array) -> Array:
        """Do what :meth:`to_frame` does without looking whether records are points: what the program computed itself.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> Ball(SPD(1), [[4.0]], 2.0).into_frame(np.array([[[4.0]]]))
        array([[0.]])
        """
        return self.moved(records)[0]

    def moved(self, records: Array) -> tuple[Array, int]:
        """Return what :meth:`into_frame` does, and how many records lie outside the ball or on its edge.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Ball(Euclidean(1), [4.0], 2.0).moved(np.array([[4.0], [9.0]]))
        (array([[0.], [2.]]), 1)
        """
        frame, origin = self.frame, self.frame.origin
        flat = records.reshape(-1, *self.space.shape)
        # Warnings of numpy would tell about single records: none, and what is not finite counts as the centre.
        with np.errstate(all="ignore"):
            points = self.space.into_frame(self.center, flat)
            away = frame.dist(origin, points)
            # "not <=": what has no distance, or too large a one to be moved, is outside as well.
            outside = np.flatnonzero(~(away <= self._limit))
            if outside.size:
                points = np.array(points)
                if not self.space.is_flat:
                    c = self.space.log_coords(self.center, flat[outside])
                    points[outside] = self.space.exp_coords(origin, shorten(np.nan_to_num(c), self.radius))
                points[outside] = _pull_in(frame, origin, points[outside], self._limit)
                away[outside] = frame.dist(origin, points[outside])
            edge = 0 if self.is_whole else int(np.count_nonzero(away > self.radius * (1 - _ON_EDGE)))
            return points.reshape(*records.shape[: records.ndim - len(self.space.shape)], *frame.shape), edge

    def locate(self, point: Array) -> tuple[Array, float]:
        """Return a released or public point clipped into the frame, and its computed distance from the origin there.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> Ball(Euclidean(1), [2.0], 1.0).locate(np.array([2.5]))
        (array([0.5]), 0.5)
        """
        at = self.into_frame(np.asarray(point)[None])[0]
        return at, float(self.frame.dist(self.frame.origin, at))

    def from_frame(self, points: Array) -> Array:
        """Move points of the frame back to the space; (..., *frame.shape) -> (..., *shape).

        Post-processing as far as privacy goes: it knows the ball alone.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD
        >>> Ball(SPD(1), [[4.0]], 2.0).from_frame(np.array([[0.0]]))
        array([[[4.]]])
        """
        if self.space.is_flat:
            return self.space.exp_coords(self.center, points)
        return self.space.out_of_frame(self.center, points)

    def _records(self, X: object) -> Array:
        """Return X as valid points, records without any meaning replaced by the centre."""
        reason = self.space.check(X)
        if reason is None:
            return self.space.project(X)
        # The only reason that clipping mends is a degenerate record; everything else is the caller's to fix.
        points = np.array(self.space.project(X)) if _has_numbers(X) else None
        if points is not None:
            degenerate = self.space.degenerate(X)  # type: ignore[arg-type]
            if degenerate.any():
                points[degenerate] = self.center
                return self.space.as_points(points, "X")
        raise InvalidDataError("`X` is not valid on {space!r}: {reason}", space=Public(self.space), reason=reason)

    @staticmethod
    def from_public(space: Manifold, X_public: object, coverage: float = 1.0, margin: float = 0.1) -> Ball:
        """Build a ball from data that is itself public (an atlas, a phantom, a consented pilot study).

        The centre comes from a minimum enclosing ball (steps towards the farthest covered point, Arnaudon and
        Nielsen 2013), which is smaller than a ball about the mean. Never use private data here: the ball would
        tell about them.

        Parameters
        ----------
        space : the space of the data
        X_public : public points, shape (n, *shape)
        coverage : share of the points the ball should hold before the margin is added, in (0, 1]
        margin : share by which the radius is then enlarged, at least 0

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean
        >>> ball = Ball.from_public(Euclidean(1), [[0.0], [1.0], [4.0]], margin=0.5)
        >>> bool(ball.contains([[0.0], [4.0]]).all()), ball.source
        (True, 'from public data: 3 points, coverage 1, margin 0.5')
        """
        points = space.as_points(X_public, "X_public", batch=True)
        coverage = fraction(coverage, "coverage")
        if not (isinstance(margin, (int, float)) and math.isfinite(margin) and margin >= 0):
            raise InvalidArgumentError(
                "margin must be a finite number of at least 0, got {margin!r}.", margin=Public(margin)
            )
        if len(points) == 0:
            raise InvalidDataError("X_public is empty. Give at least one point.")
        center = _enclosing_center(space, points, coverage)
        radius = _covering_distance(space.dist(center, points), coverage) * (1 + margin)
        distinct = bool((points != points[0]).any())
        # What rounding makes of one point in two forms is no distance: a ball of that size would clip everybody.
        if not distinct or radius <= _ROUNDING * max(1.0, float(space.dist(space.origin, center))):
            found = f"points within {radius:.2g}, the size of rounding" if distinct else "a single distinct point"
            raise InvalidDataError(
                "X_public holds {found}: it says nothing about a radius. Give records of several people (with a "
                "larger coverage, if that was small), or a radius from public knowledge: Ball(space, center, "
                "radius).",
                found=found,
            )
        if radius >= space.radius_limit:
            raise InvalidDataError(
                "X_public needs a ball of radius {radius:.4g}, and on {space!r} it must stay below "
                "{radius_limit:.4f}. Lower coverage or margin, or use other data.",
                radius=Public(radius),
                space=Public(space),
                radius_limit=Public(space.radius_limit),
            )
        said = f"from public data: {len(points)} points, coverage {coverage:g}, margin {margin:g}"
        return Ball(space, center, radius, said)


_ROUNDING = 1e-13


def require_ball(ball: Ball) -> None:
    """Refuse the whole space, for everything that is only bounded or unique in a ball.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> require_ball(Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5))
    """
    if ball.is_whole:
        raise InvalidArgumentError(
            "this statistic needs a ball, got {ball!r}. Give a center and a radius; only extrinsic means of "
            "records that are units of their own do without.",
            ball=ball,
        )


def _has_numbers(X: object) -> bool:
    """Return whether X is a numeric array without NaN, so that looking at single records makes sense."""
    try:
        return bool(np.isfinite(np.asarray(X)).all())
    except (TypeError, ValueError):
        return False


def _pull_in(space: Manifold, center: Array, points: Array, radius: float) -> Array:
    """Move points farther than `radius` from the centre onto the ball, by their computed distance."""
    result = points.reshape(-1, *space.shape).copy()
    result[~np.isfinite(result).all(axis=tuple(range(1, result.ndim)))] = center
    # "not <=": what has no distance is outside as well, and ends at the centre.
    outside = np.flatnonzero(~(space.dist(center, result) <= radius))
    if not outside.size:
        return result.reshape(points.shape)
    c = space.log_coords(center, result[outside])
    result[outside] = center
    usable = np.isfinite(c).all(axis=1) & (np.abs(c).max(axis=1, initial=0.0) > 0)
    outside, c = outside[usable], c[usable]
    c = c / np.abs(c).max(axis=1, keepdims=True)  # first, so that no norm overflows
    c = c / vector_norm(c)[:, None]
    # Rounding may leave a point just outside; each round aims a little lower, and the last one at the centre.
    shortfall = 2 * EPS
    while outside.size and shortfall < 1:
        result[outside] = space.exp_coords(center, c * (radius * (1 - shortfall)))
        left = ~(space.dist(center, result[outside]) <= radius)
        outside, c = outside[left], c[left]
        shortfall *= 4
    result[outside] = center
    return result.reshape(points.shape)


def _covering_distance(distances: FloatArray, coverage: float) -> float:
    """Return the smallest distance that covers at least the given share of the points."""
    rank = max(1, math.ceil(coverage * distances.size - 1e-9))
    return float(np.partition(distances, rank - 1)[rank - 1])


def _enclosing_center(space: Manifold, points: Array, coverage: float, steps: int = 60) -> Array:
    """Approach the centre of the smallest ball that holds the given share of the points."""
    rank = max(1, math.ceil(coverage * len(points) - 1e-9)) - 1
    center = space.extrinsic_mean(points, np.full(len(points), 1 / len(points)))
    best, best_radius = center, math.inf
    for step in range(2, steps + 2):
        distances = space.dist(center, points)
        farthest = np.argpartition(distances, rank)[rank]
        if distances[farthest] < best_radius:
            best, best_radius = center, float(distances[farthest])
        center = space.exp_coords(center, space.log_coords(center, points[farthest]) / step)
    return best


__all__ = ["Ball", "require_ball"]
