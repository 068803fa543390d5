import numpy as np
import pytest

from dpmanifold import Ball, Euclidean, InvalidArgumentError, InvalidDataError, Sphere
from laws.space_laws import SpaceLaws


class OnSphere(SpaceLaws):
    spread = 3.1
    longest = 0.95 * np.pi


class TestCircle(OnSphere):
    space = Sphere(1)


class TestS2(OnSphere):
    space = Sphere(2)


class TestS10(OnSphere):
    space = Sphere(10)


class TestCurvedS3(OnSphere):
    space = Sphere(3, curvature=4.0)
    spread = 1.5
    longest = 0.95 * np.pi / 2


def test_distance_is_rotation_invariant():
    rng = np.random.default_rng(0)
    space = Sphere(4)
    rotation = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    p, q = space.random_point(100, rng=1), space.random_point(100, rng=2)
    np.testing.assert_allclose(space.dist(p @ rotation.T, q @ rotation.T), space.dist(p, q), atol=1e-14)
    np.testing.assert_allclose(space.log(p @ rotation.T, q @ rotation.T), space.log(p, q) @ rotation.T, atol=1e-12)


def test_antipode_is_reached_along_a_fixed_geodesic_and_clips():
    space = Sphere(2)
    for p in np.vstack([np.eye(3), -np.eye(3)]):
        assert np.isclose(space.dist(p, -p), np.pi)
        assert np.isclose(np.linalg.norm(space.log_coords(p, -p)), np.pi)
        ball = Ball(space, p, 0.5)
        assert ball.contains(ball.clip(-p))
        assert np.isclose(space.dist(p, ball.clip(-p)), 0.5)


def test_flat_limit_is_euclidean():
    space, flat = Sphere(3, curvature=1e-12), Euclidean(3)
    rng = np.random.default_rng(3)
    c, e = rng.standard_normal((2, 50, 3))
    p, q = space.exp_coords(space.origin, c), space.exp_coords(space.origin, e)
    # The metric deviates from the flat one by curvature * length^2, points sit 1e6 from the centre (rounding 1e-10).
    np.testing.assert_allclose(space.dist(p, q), flat.dist(c, e), atol=1e-8)
    np.testing.assert_allclose(space.log_volume_density(c), 0, atol=1e-10)


def test_circle_has_no_curvature_and_a_wider_limit():
    assert Sphere(1).curvature == (0.0, 0.0)
    assert np.isclose(Sphere(1).radius_limit, np.pi / 2)
    assert np.isclose(Sphere(2).radius_limit, np.pi / 4)


@pytest.mark.parametrize("bad", [0, -1, 2.5, "3", True])
def test_dimension_must_be_a_whole_number(bad):
    with pytest.raises(InvalidArgumentError, match="d must be a whole number"):
        Sphere(bad)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf, "1"])
def test_curvature_must_be_positive(bad):
    with pytest.raises(InvalidArgumentError, match="curvature"):
        Sphere(2, curvature=bad)


def test_off_sphere_is_named_by_index_with_a_remedy():
    points = Sphere(2).random_point(4, rng=0)
    points[2] *= 1.5
    with pytest.raises(InvalidDataError, match=r"index 2 has length 1.5 instead of 1. Normalise"):
        Sphere(2).as_points(points)
    with pytest.raises(InvalidDataError, match="length 0"):
        Sphere(2).as_points(np.zeros(3))
