"""The mathematics under regions: the free bound of the Hessian, charts, degrees of freedom."""

import numpy as np
import pytest

from dpmanifold import GDP, SPD, Ball, Euclidean, Hyperbolic, KendallShapes, Sphere, private_region
from dpmanifold.inference.estimate import Estimate, mean_hessian
from dpmanifold.inference.hotelling import degrees_of_freedom, exceedance, squared_length, threshold
from dpmanifold.stats import EACH_RECORD
from laws.data import in_ball

SPACES = [
    Euclidean(3), Sphere(1), Sphere(2), Sphere(5, curvature=2.0), Hyperbolic(3, curvature=-0.5), KendallShapes(3),
    KendallShapes(6), SPD(2, metric="riemann"), SPD(4, metric="riemann"), SPD(3),
]  # fmt: skip


def moments(space, reach, rng, n=30):
    """Vectors up to `reach`, their second moment and the exact mean Hessian of half the squared distances."""
    c = rng.standard_normal((n, space.dim)) * rng.random(space.dim) ** 2
    c *= (reach * rng.random(n) ** 0.3 / np.linalg.norm(c, axis=1))[:, None]
    values, directions = space.hessian_spectrum(c)
    return c.T @ c / n, np.einsum("nij,nj,nkj->ik", directions, values, directions) / n


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_second_moment_bounds_the_mean_hessian(space):
    rng = np.random.default_rng(0)
    for reach in (0.05, 0.4, 0.7):
        for _ in range(20):
            moment, hessian = moments(space, reach, rng)
            bound = mean_hessian(space, moment, moment, reach)
            gap = np.linalg.eigvalsh(hessian - bound)
            assert gap[0] > -1e-12
            # It is close: far closer than the bound from the curvature alone.
            low, high = space.hessian_bounds(reach)
            assert gap[-1] <= 0.35 * max(1 - low, high - 1) + 1e-12


def test_what_the_bound_of_the_hessian_gives_away_on_a_sphere():
    """The figures of the theory page: all records at one distance, in one direction or in all of a plane."""
    space = Sphere(2)
    for reach, most, hessian in ((0.7, 0.00143, 0.916), (0.9, 0.00411, 0.858)):
        gaps, values = [], []
        for length in np.linspace(0.01, reach, 200):
            values.append(space.hessian_spectrum(np.array([length, 0.0]))[0].min())
            moment = np.diag([length**2, 0.0])
            gaps.append(values[-1] - np.linalg.eigvalsh(mean_hessian(space, moment, moment, reach))[0])
        worst = int(np.argmax(gaps))
        assert np.isclose(gaps[worst], most, rtol=0.005)
        assert np.isclose(values[worst], hessian, rtol=0.005)
        assert np.isclose(gaps[worst], reach**4 / 180, rtol=0.2)
        # In all directions of the plane half the records are along any axis, where the Hessian and its bound are 1.
        moment = np.eye(2) * np.linspace(0.01, reach, 200)[worst] ** 2 / 2
        even = (1 + values[worst]) / 2 - mean_hessian(space, moment, moment, reach)[0, 0]
        assert np.isclose(even, most / 2, rtol=0.005)


@pytest.mark.parametrize("space", [s for s in SPACES if not s.is_flat and s.dim > 1], ids=repr)
def test_the_bound_would_fail_with_a_wrong_coefficient(space):
    """Wrong variant: the curvature operator twice as large on positive, and doubled gain on negative curvature."""
    rng = np.random.default_rng(1)
    moment, hessian = moments(space, 0.5, rng)
    bound = mean_hessian(space, moment, moment, 0.5)
    wrong = np.eye(space.dim) + (bound - np.eye(space.dim)) * (0.5 if space.curvature[1] > 0 else 2.0)
    assert np.linalg.eigvalsh(hessian - wrong)[0] < -1e-4


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_curvature_operator_is_the_curvature(space):
    """Second-order expansion of the Hessian: I - R_v/3 for short v; sectional curvatures within the stated range."""
    rng = np.random.default_rng(0)
    v = rng.standard_normal(space.dim)
    v /= np.linalg.norm(v)
    operator = space.curvature_operator(np.outer(v, v))
    values, directions = space.hessian_spectrum(1e-3 * v)
    hessian = (directions * values) @ directions.T
    assert np.allclose(np.eye(space.dim) - hessian, 1e-6 * operator / 3, atol=1e-10)
    assert np.allclose(operator @ v, 0, atol=1e-12)
    low, high = space.curvature
    spectrum = np.linalg.eigvalsh(operator)
    assert min(low, 0) - 1e-12 <= spectrum[0]
    assert spectrum[-1] <= max(high, 0) + 1e-12


def test_degrees_of_freedom_and_thresholds_agree_with_hotelling():
    rng = np.random.default_rng(0)
    S = np.cov(rng.standard_normal((4, 50)))
    assert np.isclose(degrees_of_freedom([(S, 30)], S), 29)
    assert degrees_of_freedom([(S, 30)], S + 100 * np.eye(4)) > 1000
    assert degrees_of_freedom([(0 * S, 30)], S) == np.inf
    for free in (12.0, 1e3, 1e9, np.inf):
        assert np.isclose(exceedance(threshold(0.1, 4, free), 4, free), 0.1)
        for tail in (1e-15, 1e-9, 1e-3, 0.5, 0.999, 1 - 1e-9):  # every tail that 1 - level can be
            for d in (1, 2, 6, 45):
                assert np.isclose(exceedance(threshold(tail, d, free + d), d, free + d), tail, rtol=1e-6)
    assert threshold(0.05, 3, 20.0) > threshold(0.05, 3, np.inf)
    assert np.isclose(threshold(0.05, 3, 1.1e7), threshold(0.05, 3, 0.9e7), rtol=1e-5)


@pytest.mark.parametrize(("d", "n"), [(2, 5), (6, 8), (6, 10), (6, 40)])
def test_few_units_do_not_make_the_test_liberal(d, n):
    """Normal data, hardly any noise: where the uncorrected degrees of freedom reject 8 to 10 % of true hypotheses."""
    rng = np.random.default_rng(0)
    spread = np.where(np.arange(d) < d / 2, 1.0, 1e-2)
    noise = 0.01 * np.eye(d) / n
    rejected = 0
    for _ in range(3000):
        X = rng.standard_normal((n, d)) * np.sqrt(spread)
        S = np.cov(X.T) / n
        total = S + noise
        free = degrees_of_freedom([(S, n)], total)
        apart = X.mean(axis=0) + np.sqrt(0.01 / n) * rng.standard_normal(d)
        rejected += squared_length(total, apart) > threshold(0.05, d, free)
    assert rejected / 3000 < 0.07


def test_squared_length_is_the_quadratic_form():
    rng = np.random.default_rng(0)
    a = rng.standard_normal((3, 3))
    covariance = a @ a.T + np.eye(3)
    v = rng.standard_normal((4, 5, 3))
    expected = np.einsum("...i,ij,...j", v, np.linalg.inv(covariance), v)
    assert np.allclose(squared_length(covariance, v), expected)


def test_the_noise_covariance_is_that_of_the_noise():
    """Far from the centre of a Hadamard ball, wrapped noise is stretched; its covariance says by how much."""
    space = SPD(2, metric="riemann")
    ball = Ball(space, np.eye(2), 4.0)
    far = space.exp_coords(np.eye(2), np.array([2.0, -2.0, 0.5]))
    X = np.repeat(far[None], 400, axis=0)
    region = private_region(X, ball, GDP(3.0), units=EACH_RECORD, rng=0)
    mean = Estimate(region.release).mean
    rng = np.random.default_rng(0)
    start = ball.frame.log_coords(ball.frame.origin, mean.at)
    noise = 1e-3 * rng.standard_normal((40_000, 3))
    moved = ball.frame.log_coords(mean.at, ball.frame.exp_coords(ball.frame.origin, start + noise))
    seen = np.cov(moved.T) / 1e-6
    assert np.allclose(seen, mean.noise / mean.release.scale**2, rtol=0.05, atol=0.05)
    assert np.linalg.eigvalsh(seen)[-1] > 2  # stretched, or the test says nothing


def test_region_does_not_depend_on_where_the_ball_sits():
    """The same data and noise, moved by an isometry: the same region."""
    for space in (Sphere(2), Hyperbolic(2), SPD(2, metric="riemann"), KendallShapes(4)):
        here = Ball(space, space.origin, 0.3)
        there = Ball(space, space.random_point(rng=5), 0.3)
        X = in_ball(here, 300, np.random.default_rng(0))
        moved = space.project(space.from_origin(there.center, X))
        a = private_region(X, here, GDP(1.0), units=EACH_RECORD, rng=1)
        b = private_region(moved, there, GDP(1.0), units=EACH_RECORD, rng=1)
        assert np.isclose(a.effective_radius, b.effective_radius, rtol=1e-6)
        assert np.isclose(a.volume, b.volume, rtol=1e-6)
