import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmanifold import SPD, Ball, Euclidean, InvalidArgumentError, InvalidDataError
from dpmanifold.linalg import congruence, expm, invsqrtm, logm, sqrtm
from dpmanifold.manifolds.base import EPS
from laws.space_laws import SpaceLaws, coordinates


class OnSPD(SpaceLaws):
    spread = 4.0
    longest = 5.0  # beyond, the stored end point itself loses its smallest eigenvalue to rounding

    def kappa(self, p):
        """Rounding is as large as the largest eigenvalue in each of k directions: sqrt(k) in the Frobenius norm."""
        return np.sqrt(len(p)) * np.linalg.cond(p)


class TestLogEuclid1(OnSPD):
    space = SPD(1)


class TestLogEuclid3(OnSPD):
    space = SPD(3)


class TestLogEuclid9(OnSPD):
    space = SPD(9)


class TestRiemann1(OnSPD):
    space = SPD(1, metric="riemann")


class TestRiemann2(OnSPD):
    space = SPD(2, metric="riemann")


class TestRiemann3(OnSPD):
    space = SPD(3, metric="riemann")


class TestRiemann9(OnSPD):
    space = SPD(9, metric="riemann")


def test_affine_metric_is_congruence_invariant():
    rng = np.random.default_rng(0)
    space = SPD(4, metric="riemann")
    a = rng.standard_normal((4, 4)) + 2 * np.eye(4)
    p, q = space.random_point(50, rng=1), space.random_point(50, rng=2)
    ap, aq = congruence(a, p), congruence(a, q)
    np.testing.assert_allclose(space.dist(ap, aq), space.dist(p, q), rtol=1e-9)
    np.testing.assert_allclose(space.log(ap, aq), congruence(a, space.log(p, q)), atol=1e-8 * np.abs(aq).max())
    inverse = np.linalg.inv
    np.testing.assert_allclose(space.dist(inverse(p), inverse(q)), space.dist(p, q), rtol=1e-9)


def test_log_euclidean_metric_is_similarity_invariant_and_flat():
    space = SPD(3)
    turn = 3.0 * np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    p, q = space.random_point(50, rng=1), space.random_point(50, rng=2)
    np.testing.assert_allclose(space.dist(congruence(turn, p), congruence(turn, q)), space.dist(p, q), rtol=1e-10)
    origin = space.log_coords(space.origin, q) - space.log_coords(space.origin, p)
    np.testing.assert_allclose(space.log_coords(p, q), origin, atol=1e-11)


@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_one_by_one_is_the_log_line(metric):
    space, line = SPD(1, metric=metric), Euclidean(1)
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 100, 1)) * 5
    p, q = np.exp(a)[..., None], np.exp(b)[..., None]
    np.testing.assert_allclose(space.dist(p, q), line.dist(a, b), atol=1e-13)
    np.testing.assert_allclose(space.log_coords(p, q), b - a, atol=1e-13)
    assert space.is_flat
    assert space.curvature == (0.0, 0.0)


@given(st.integers(0, 2**32 - 1), st.floats(0, 4))
def test_affine_log_is_accurate_at_condition_1e4_and_degrades_like_lapack(seed, exponent):
    rng = np.random.default_rng(seed)
    k = 5
    turn = np.linalg.qr(rng.standard_normal((k, k)))[0]
    p = (turn * np.logspace(0, exponent, k)) @ turn.T
    space = SPD(k, metric="riemann")
    c = coordinates(space, seed, 1.0)
    back = space.log_coords(p, space.exp_coords(p, c))
    assert np.linalg.norm(back - c) <= 1e-10


@given(st.integers(0, 2**32 - 1), st.floats(4, 10))
def test_affine_log_beyond_condition_1e4_loses_no_more_than_lapack(seed, exponent):
    rng = np.random.default_rng(seed)
    k = 5
    turn = np.linalg.qr(rng.standard_normal((k, k)))[0]
    p = (turn * np.logspace(0, exponent, k)) @ turn.T
    p = (p + p.T) / 2
    space = SPD(k, metric="riemann")
    c = coordinates(space, seed, 1.0)
    back = space.log_coords(p, space.exp_coords(p, c))
    # e = condition of the unit step's end point over that of p; k for the norm of the rounding matrix.
    assert np.linalg.norm(back - c) <= 4 * k * np.e**2 * EPS * 10**exponent


@pytest.mark.parametrize("scale", [1e-150, 1e150])
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_badly_scaled_matrices(scale, metric):
    space = SPD(3, metric=metric)
    p, q = space.random_point(20, rng=0), space.random_point(20, rng=1)
    np.testing.assert_allclose(space.dist(scale * p, scale * q), space.dist(p, q), rtol=1e-9)
    shift = np.sqrt(3) * abs(np.log(scale)) * 2
    np.testing.assert_allclose(space.dist(np.eye(3) / scale, scale * np.eye(3)), shift, rtol=1e-12)


def test_matrix_functions_agree_with_each_other():
    a = SPD(5).random_point(30, rng=0)
    np.testing.assert_allclose(expm(logm(a)), a, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(sqrtm(a) @ sqrtm(a), a, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(congruence(invsqrtm(a), a), np.broadcast_to(np.eye(5), a.shape), atol=1e-9)


def test_bad_matrices_are_named_by_index_with_a_remedy():
    space = SPD(3)
    good = space.random_point(4, rng=0)
    bad = good.copy()
    bad[3, 0, 1] += 1.0
    with pytest.raises(InvalidDataError, match=r"X is not valid.*index 3 is not symmetric.*symmetric part"):
        space.as_points(bad, "X")
    bad = good.copy()
    bad[2] = np.diag([1.0, 1.0, -0.5])
    with pytest.raises(InvalidDataError, match=r"index 2 is not positive definite.*-0.5.*ridge"):
        space.as_points(bad, "X")
    bad[2] = np.ones((3, 3))
    with pytest.raises(InvalidDataError, match="index 2 is not positive definite"):
        space.as_points(bad)
    with pytest.raises(InvalidDataError, match="index 2"):
        space.as_points(np.where(np.arange(4)[:, None, None] == 2, 0.0, good))
    with pytest.raises(InvalidDataError, match="real numbers"):
        space.as_points(good + 0j)
    with pytest.raises(InvalidArgumentError, match='"logeuclid" or "riemann"'):
        SPD(3, metric="euclid")
    with pytest.raises(InvalidArgumentError, match="overflow"):
        space.exp_coords(space.origin, np.full(6, 500.0))


def test_large_balls_are_refused_where_double_precision_ends():
    Ball(SPD(9), np.eye(9), 41.4)  # flat: statistics use coordinates, so conditioning does not enter
    Ball(SPD(9, metric="riemann"), np.eye(9), 15.0)
    with pytest.raises(InvalidArgumentError, match="double precision"):
        Ball(SPD(9, metric="riemann"), np.eye(9), 30.0)
