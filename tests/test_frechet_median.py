"""The geometric median without privacy: stationary, unmoved by order, and the middle number on a line."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import Ball, Euclidean, InvalidArgumentError, frechet
from dpmanifold.errors import ConvergenceError
from laws import spaces


def points(space, n=60, seed=0, spread=0.2):
    return space.exp_coords(space.origin, spread * np.random.default_rng(seed).normal(size=(n, space.dim)))


def average_direction(space, at, X):
    v = space.log_coords(at, X)
    return float(np.linalg.norm((v / np.linalg.norm(v, axis=1, keepdims=True)).mean(axis=0)))


@pytest.mark.parametrize("space", spaces.SPACES, ids=repr)
def test_directions_cancel_at_the_median_and_not_at_the_mean(space):
    """On a line an odd number of points has one in the middle, and its neighbours pull as much: 1/n is left."""
    X = points(space, 61)
    X[:20] = space.exp_coords(space.origin, np.eye(space.dim)[0] * 0.6 + 0.01 * np.arange(20)[:, None])
    found = frechet.median(X, space)
    assert average_direction(space, found.value, X) <= (1e-6 if space.dim > 1 else 1 / 61 + 1e-6)
    assert average_direction(space, frechet.mean(X, space).value, X) > 0.02  # the wrong variant
    assert found.residual <= found.tol or space.dim == 1
    assert np.array_equal(found.value, frechet.median(X[::-1], space).value)
    assert found.distance <= float(space.dist(frechet.mean(X, space).value, X).mean())


@pytest.mark.parametrize("n", [1, 2, 5, 101])
def test_on_a_line_it_is_a_middle_number(n):
    X = np.random.default_rng(n).normal(size=(n, 1))
    value = frechet.median(X, Euclidean(1)).value[0]
    low, high = np.sort(X[:, 0])[[(n - 1) // 2, n // 2]]
    assert low - 1e-9 <= value <= high + 1e-9


def test_it_may_be_one_of_the_points_or_all_of_them():
    X = np.concatenate([np.full((30, 2), 7.0), np.random.default_rng(0).normal(size=(29, 2))])
    np.testing.assert_allclose(frechet.median(X, Euclidean(2)).value, [7.0, 7.0], atol=1e-5)
    nearly = np.concatenate([np.full((49, 2), 7.0), np.random.default_rng(0).normal(size=(51, 2))])
    assert np.linalg.norm(frechet.median(nearly, Euclidean(2)).value) < 5
    same = frechet.median(np.ones((9, 2)), Euclidean(2))
    np.testing.assert_allclose(same.value, [1.0, 1.0], atol=1e-12)


def test_units_count_once_and_a_ball_clips():
    X = np.concatenate([np.zeros((40, 2)), np.random.default_rng(1).normal(5.0, 0.1, (3, 2))])
    units = [*(["one"] * 40), "two", "three", "four"]
    assert frechet.median(X, Euclidean(2), units=units).value.min() > 4
    ball = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    found = frechet.median(X, ball, units=units)
    assert found.n == 4
    assert np.linalg.norm(found.value) <= 1.0


def test_few_steps_are_refused_and_so_is_what_is_no_number():
    X = points(dpm.Sphere(2), 50)
    with pytest.raises(ConvergenceError, match="max_iter = 2 steps"):
        frechet.median(X, dpm.Sphere(2), max_iter=2)
    with pytest.raises(InvalidArgumentError, match="tol must be"):
        frechet.median(X, dpm.Sphere(2), tol=0.0)
    with pytest.raises(InvalidArgumentError, match="where must be"):
        frechet.median(X, "sphere")
