"""Geodesics with a parameter from -1 to 1: points on them, what is left of other points, and how they move.

Everything is written with exponentials and logarithms alone. On a symmetric space, as all of the library's are, the
reflection at a point is an isometry, and reflections carry vectors along a geodesic by parallel transport (theory:
regression).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.vectors import shorten

# Central differences: the error is of order step^2 and eps/step, in units of the radius of curvature.
_STEP = 1e-5


def reflected(frame: Manifold, at: Array, points: Array) -> Array:
    """Return points (b, *shape) reflected at others, (*shape) or (b, *shape): each by itself.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> reflected(Euclidean(1), np.array([1.0]), np.array([[0.0], [3.0]]))
    array([[ 2.],
           [-1.]])
    """
    return frame.exp_coords(at, -frame.log_coords(at, points))


@dataclass(frozen=True, eq=False)
class Geodesic:
    """The geodesic t -> exp_base(t velocity), t from -1 to 1, in a ball's frame.

    Parameters
    ----------
    frame : the space
    base : the point at t = 0
    velocity : (dim,), in coordinates at the base point

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> line = Geodesic(Euclidean(1), np.array([1.0]), np.array([2.0]))
    >>> line.at(np.array([-1.0, 0.5]))
    array([[-1.],
           [ 2.]])
    >>> line.residuals(np.array([[0.0], [2.5]]), np.array([-1.0, 0.5]))
    array([[1. ],
           [0.5]])
    """

    frame: Manifold
    base: Array
    velocity: FloatArray

    @staticmethod
    def resting(frame: Manifold) -> Geodesic:
        """Return the one that stays at the frame's origin."""
        return Geodesic(frame, np.asarray(frame.origin), np.zeros(frame.dim))

    @property
    def rests(self) -> bool:
        """Whether it stays where it is."""
        return not self.velocity.any()

    def at(self, t: FloatArray) -> Array:
        """Return its points at some parameters, (k, *shape)."""
        return self.frame.exp_coords(self.base, t[:, None] * self.velocity)

    def residuals(self, points: Array, t: FloatArray) -> FloatArray:
        """Return the logarithms of points (b, *shape) at its points at t (b,), carried to the base point, (b, dim).

        Each row depends on its own point and parameter alone. Finite, whatever they are.
        """
        frame = self.frame
        with np.errstate(all="ignore"):
            if self.rests:
                return np.nan_to_num(frame.log_coords(self.base, points))
            halfway = frame.exp_coords(self.base, (t / 2)[:, None] * self.velocity)
            # The reflection halfway takes the point at t to the base point, and turns what it carries round.
            return np.nan_to_num(-frame.log_coords(self.base, reflected(frame, halfway, points)))

    def beside(self, t: float, residuals: FloatArray) -> Array:
        """Return the points whose residuals at t these are, (b, *shape): undoes :meth:`residuals`."""
        frame = self.frame
        carried = frame.exp_coords(self.base, -residuals)
        return reflected(frame, frame.exp_coords(self.base, t / 2 * self.velocity), carried)

    def moved(self, a: FloatArray, b: FloatArray) -> Geodesic:
        """Return the one whose base point is moved by a, and whose velocity is changed by b, both (dim,).

        One that rests becomes the geodesic through exp(a) that is nearest to exp(a + t b).
        """
        base, velocity = self._moved(a[None], b[None])
        return Geodesic(self.frame, base[0], velocity[0])

    def _moved(self, a: FloatArray, b: FloatArray) -> tuple[Array, FloatArray]:
        """Return base points and velocities for several changes, (m, dim) each."""
        frame = self.frame
        base = frame.exp_coords(self.base, a)
        if self.rests and not frame.is_flat:
            ahead, behind = (frame.log_coords(base, frame.exp_coords(self.base, a + side * b)) for side in (1.0, -1.0))
            return base, (ahead - behind) / 2
        halfway = frame.exp_coords(self.base, a / 2)
        end = frame.exp_coords(self.base, self.velocity + b)
        return base, -frame.log_coords(base, reflected(frame, halfway, end))

    def within(self, radius: float) -> Geodesic:
        """Return it with its base point and its velocity shortened to a radius, seen from the frame's origin."""
        frame = self.frame
        base = frame.exp_coords(frame.origin, shorten(frame.log_coords(frame.origin, self.base), radius))
        return Geodesic(frame, base, shorten(self.velocity, radius))

    def derivative(self, a: FloatArray, b: FloatArray, t: FloatArray) -> FloatArray:
        """Return how the points at t (k,) of `moved(a, b)` move with (a, b), (k, dim, 2 dim): Jacobi fields.

        In coordinates that are carried to the base point of `moved(a, b)`; by central differences.
        """
        frame, d = self.frame, self.frame.dim
        if frame.is_flat or (self.rests and not (a.any() or b.any())):
            eye = np.eye(d)
            return np.stack([np.hstack([eye, each * eye]) for each in t])
        curvature = max(abs(bound) for bound in frame.curvature)
        step = _STEP / math.sqrt(curvature) if curvature else _STEP
        changes = step * np.vstack([np.eye(2 * d), -np.eye(2 * d)])
        base, velocity = self._moved(a + changes[:, :d], b + changes[:, d:])
        points = frame.exp_coords(np.repeat(base, len(t), axis=0), (velocity[:, None] * t[:, None]).reshape(-1, d))
        ends = self.moved(a, b).residuals(points, np.tile(t, 4 * d)).reshape(4 * d, len(t), d)
        return np.asarray(np.moveaxis(ends[: 2 * d] - ends[2 * d :], 0, -1) / (2 * step))
