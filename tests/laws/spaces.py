"""The spaces and the balls that tests run over: one list, so that a new space is tested everywhere by one line."""

import numpy as np

from dpmanifold import SPD, Ball, Euclidean, Hyperbolic, KendallShapes, Product, Sphere

# Every kind of space in several sizes, the smallest among them.
SPACES = [
    Euclidean(1), Euclidean(3), Sphere(1), Sphere(2), Sphere(10), Hyperbolic(1), Hyperbolic(2), Hyperbolic(5),
    KendallShapes(3), KendallShapes(4), KendallShapes(9), SPD(1), SPD(2), SPD(3), SPD(6),
    SPD(2, metric="riemann"), SPD(3, metric="riemann"), SPD(6, metric="riemann"),
    Product([SPD(2)] * 3), Product([SPD(2, metric="riemann"), Hyperbolic(2)], weights=[1.0, 0.5]),
]  # fmt: skip

# One ball on every kind of space, about no special point.
BALLS = [
    Ball(Euclidean(3), [1.0, 2.0, 3.0], 2.0, source="a range"),
    Ball(Sphere(2), [0.0, 0.6, 0.8], 0.6),
    Ball(Hyperbolic(2), Hyperbolic(2).random_point(rng=1), 1.0),
    Ball(KendallShapes(5), KendallShapes(5).random_point(rng=1), 0.3),
    Ball(SPD(3), np.diag([3.0, 2.0, 1.0]), 1.5),
    Ball(SPD(2, metric="riemann"), np.diag([3.0, 1.0]), 1.0),
    Ball(Product([Hyperbolic(2), Euclidean(1)], weights=[1.0, 2.0]), [*Hyperbolic(2).random_point(rng=1), 3.0], 1.0),
]

# The smallest spaces of each kind, where formulas have their limits.
SMALL_BALLS = [
    Ball(Euclidean(1), [3.0], 2.0),
    Ball(Sphere(1), [0.0, 1.0], 0.6),
    Ball(Hyperbolic(1), Hyperbolic(1).random_point(rng=1), 1.0),
    Ball(KendallShapes(3), KendallShapes(3).random_point(rng=1), 0.3),
    Ball(SPD(1), [[4.0]], 2.0),
]
