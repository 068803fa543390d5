"""Sensitivities of arithmetic means: no pair of points of the ball is farther apart, and one pair is that far."""

import math

import numpy as np
import pytest
from scipy import optimize

from dpmanifold.manifolds import Sphere
from dpmanifold_papers import simulation as sim
from dpmanifold_papers.diameters import cap_diameter, matrix_diameter


@pytest.mark.parametrize(("dim", "radius"), [(2, math.pi / 8), (2, 0.2), (5, 0.7)])
def test_the_longest_chord_of_a_cap(dim, radius):
    space = Sphere(dim)
    rng = np.random.default_rng(dim)
    c = rng.standard_normal((2, 20_000, dim))
    c *= radius * rng.random((2, 20_000, 1)) ** (1 / dim) / np.linalg.norm(c, axis=-1, keepdims=True)
    x, y = space.exp_coords(space.origin, c)
    assert np.linalg.norm(x - y, axis=-1).max() <= cap_diameter(radius)
    edge = np.zeros((2, dim))
    edge[:, 0] = radius, -radius
    x, y = space.exp_coords(space.origin, edge)
    assert np.linalg.norm(x - y) == pytest.approx(cap_diameter(radius), rel=1e-12)
    # Twice the chord from the centre is a bound, and no more than that: nothing attains it.
    assert cap_diameter(radius) < 4 * math.sin(radius / 2)


@pytest.mark.parametrize("radius", [0.3, 1.5, 2.5])
def test_the_largest_distance_of_two_matrices(radius):
    """A search over both pairs of eigenvalues, the angle between the frames, and inside the ball as well."""

    def negative(p):
        first, second = (np.exp(length * np.array([math.cos(t), math.sin(t)])) for t, length in (p[:2], p[2:4]))
        turn = np.array([[math.cos(p[4]), -math.sin(p[4])], [math.sin(p[4]), math.cos(p[4])]])
        return -np.linalg.norm(np.diag(first) - turn @ np.diag(second) @ turn.T)

    rng = np.random.default_rng(0)
    starts = rng.random((40, 5)) * [2 * np.pi, radius, 2 * np.pi, radius, np.pi]
    bounds = [(None, None), (0, radius), (None, None), (0, radius), (None, None)]
    largest = -min(optimize.minimize(negative, start, bounds=bounds).fun for start in starts)
    assert largest == pytest.approx(matrix_diameter(radius), rel=1e-6)
    assert matrix_diameter(radius) < 2 * math.expm1(radius)


def test_an_arithmetic_mean_moves_by_that():
    n = 40
    X = sim.wishart_records(1, n, np.random.default_rng(0))[0]
    assert matrix_diameter(1.5) == pytest.approx(5.1053, abs=1e-4)
    turn = optimize.minimize_scalar(lambda t: math.exp(-1.5 * math.sin(t)) - math.exp(1.5 * math.cos(t)),
                                    bounds=(0, 1.5), method="bounded").x  # fmt: skip
    corner = np.diag(np.exp(1.5 * (1 - 1e-12) * np.array([math.cos(turn), -math.sin(turn)])))
    assert sim.MATRICES.contains(corner)
    np.testing.assert_allclose(np.diag(corner), [4.38, 0.77], atol=0.005)
    Y = X.copy()
    X[-1], Y[-1] = corner, corner[::-1, ::-1]
    moved = float(np.linalg.norm(sim.vech(X.mean(axis=0) - Y.mean(axis=0))))
    assert n * moved == pytest.approx(matrix_diameter(1.5), rel=1e-6)
