"""Spaces that state something wrong, each in one fact, and the law that says so."""

import math
from dataclasses import replace

import numpy as np

import dpmanifold as dpm
from dpmanifold.manifolds.optional_properties import RankOne, closed_area, flat_area
from dpmanifold.manifolds.sphere import SphereEmbedding
from dpmanifold.noise.exact_samplers import DistanceSampler
from dpmanifold_example.rotations import Rotations, inverse


class WrongRadial(Rotations):
    """Takes itself for the sphere of which it is half: exact profiles would promise mu = 0.5 and have 0.63."""

    rank_one = RankOne(2.0, 1.0, 2, 0, "sphere")


class NoOperator(Rotations):
    def curvature_operator(self, second_moment):
        return np.zeros((3, 3))


class NoRounding(Rotations):
    def dist_error(self, center, radius):
        return 0.0

    def log_error(self, radius):
        return 0.0


class WrongArea(Rotations):
    def sphere_area(self):
        return replace(flat_area(3), end=math.pi)


class KeptSign(Rotations):
    """A draw about a mean has the sign that the mean's array has."""

    def canonical(self, p):
        return p


class WrongCurvature(Rotations):
    curvature = (0.2, 0.2)


class ByBatch(Rotations):
    """Centres the coordinates of a batch and undoes it: rounding then depends on the batch."""

    def log_coords(self, p, q):
        c = super().log_coords(p, q)
        middle = c.mean(axis=0) if c.ndim > 1 else c
        return (c - middle) + middle


class KeptTurn(dpm.KendallShapes):
    """Moves shapes with the turn that they have: that of the private mean they were drawn about."""

    def from_origin(self, p, q):
        moved, q = super().from_origin(p, q), self._array(q)
        overlap = (np.conj(self.origin) * q).sum(axis=-1, keepdims=True)
        return moved * overlap / np.abs(overlap)


class FarEnd(Rotations):
    injectivity_radius = diameter = 3.3


class NearEnd(Rotations):
    """Noise about a point would never reach the points that are farthest from it."""

    injectivity_radius = diameter = 3.0

    def sphere_area(self):
        return replace(super().sphere_area(), end=3.0)


class HalfAngles(Rotations):
    """Takes angles of quaternions for those of rotations, wherever lengths come in."""

    def dist(self, p, q):
        return super().dist(p, q) / 2

    def log_coords(self, p, q):
        return super().log_coords(p, q) / 2

    def exp_coords(self, p, c):
        return super().exp_coords(p, 2 * self._coordinates(c))

    def coords(self, p, v):
        return super().coords(p, v) / 2

    def vector(self, p, c):
        return super().vector(p, 2 * self._coordinates(c))


class HalfDistance(Rotations):
    def dist(self, p, q):
        return super().dist(p, q) / 2


class WholeSphere(Rotations):
    """Counts q and -q, which are one rotation, as two."""

    def sphere_area(self):
        return closed_area(3, 0, 2.0, 2 * math.pi)


class HalfArea(Rotations):
    def sphere_area(self):
        return replace(super().sphere_area(), end=1.57)


class Backwards(Rotations):
    def from_origin(self, p, q):
        return inverse(super().from_origin(p, q))


class NotUniform(Rotations):
    def _random(self, batch, rng):
        return self.exp_coords(self.origin, rng.standard_normal((*batch, 3)))


class WrongGaussian(dpm.Hyperbolic):
    gaussian_proof = "normal-homogeneous"


class AsRoundAsIsAllowed(dpm.KendallShapes):
    """Its operator has curvatures in the stated range, and another shape."""

    def curvature_operator(self, second_moment):
        return 2.5 * (np.trace(second_moment) * np.eye(self.dim) - second_moment)


class FlatInName(dpm.Euclidean):
    """Distances of a cube's edges, and coordinates of none."""

    def dist(self, p, q):
        return np.abs(self._array(p) - self._array(q, "q")).sum(axis=-1)


class Bent(dpm.Euclidean):
    """Every geodesic goes on for ever, and distances do not."""

    def dist(self, p, q):
        return np.sin(np.minimum(super().dist(p, q), math.pi / 2))


class HalfOfItsText(dpm.Sphere):
    """Its curvature is not in its text: a release that is read back is about another space."""

    def _arguments(self):
        return str(self.dim)


class TooNear(dpm.Sphere):
    """Moves points by half the distance that is drawn."""

    def __init__(self, d):
        super().__init__(d)
        moved = self.exact_points.moved
        self.exact_points.moved = lambda p, distance, gaussian: moved(p, distance / 2, gaussian)


class TurnedNumbers(dpm.KendallShapes):
    """Writes shapes down with the turn that the footpoint has."""

    def __init__(self, k):
        super().__init__(k)
        moved = self.exact_points.moved

        def turned(p, distance, gaussian):
            overlap = np.vdot(self.origin, p)
            c, s = overlap.real / abs(overlap), overlap.imag / abs(overlap)
            numbers = moved(p, distance, gaussian)
            pairs = zip(numbers[::2], numbers[1::2], strict=True)
            return [part for x, y in pairs for part in (x * c - y * s, x * s + y * c)]

        self.exact_points.moved = turned


class OneSided(dpm.Hyperbolic):
    """Draws directions of one half alone."""

    def __init__(self, d):
        super().__init__(d)
        moved = self.exact_points.moved
        self.exact_points.moved = lambda p, distance, gaussian: moved(
            p, distance, [gaussian[0] * gaussian[0], *gaussian[1:]]
        )


class Stretched(dpm.Sphere):
    """Distances of another sphere, and draws about points as before."""

    def dist(self, p, q):
        return 2 * super().dist(p, q)


class TooLittleNoise(dpm.Sphere):
    """A sampler of its own, of half the scale."""

    def exact_sampler(self, law):
        class Half(DistanceSampler):
            def radius(self, scale):
                return super().radius(scale / 2)

        return Half(self, law, self.exact_points)


class NarrowEmbedding(dpm.Sphere):
    """Means of vectors get half the noise that they need."""

    def embedding(self, radius):
        class Narrow(SphereEmbedding):
            diameter = 0.1

        return Narrow(self, radius)


# The space and the law that finds it: the seven that a contributor is most likely to write come first.
WRONG = [
    (WrongRadial(), "radial facts are true"),
    (NoOperator(), "curvature is one story"),
    (NoRounding(), "rounding bounds hold"),
    (WrongArea(), "spheres have the stated area"),
    (KeptSign(), "a point leaves as one array"),
    (WrongCurvature(), "curvature is one story"),
    (ByBatch(), "bits do not depend on the batch"),
    (KeptTurn(4), "a point leaves as one array"),
    (FarEnd(), "geodesics stop where stated"),
    (NearEnd(), "geodesics stop where stated"),
    (HalfAngles(), "curvature is one story"),
    (HalfDistance(), "geodesics stop where stated"),
    (WholeSphere(), "spheres have the stated area"),
    (HalfArea(), "spheres have the stated area"),
    (Backwards(), "moving to the origin is undone"),
    (NotUniform(), "random points are uniform"),
    (WrongGaussian(2), "translations bend squares at most once"),
    (AsRoundAsIsAllowed(4), "curvature is one story"),
    (FlatInName(2), "flat spaces are their coordinates"),
    (Bent(2), "geodesics stop where stated"),
    (TooNear(2), "exact points are moved as points are"),
    (TurnedNumbers(4), "exact points are moved as points are"),
    (OneSided(3), "exact points are moved as points are"),
    (Stretched(2), "exact points are moved as points are"),
    (NarrowEmbedding(2), "embeddings keep their bounds"),
]
