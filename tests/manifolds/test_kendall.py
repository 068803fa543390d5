import numpy as np
import pytest

from dpmanifold import Ball, InvalidArgumentError, InvalidDataError, KendallShapes, Sphere
from laws.space_laws import SpaceLaws


class OnShapes(SpaceLaws):
    spread = 1.5
    longest = 0.95 * np.pi / 2


class TestTriangles(OnShapes):
    space = KendallShapes(3)


class TestQuadrilaterals(OnShapes):
    space = KendallShapes(4)


class TestEightLandmarks(OnShapes):
    space = KendallShapes(8)


def test_shape_ignores_position_size_and_rotation():
    rng = np.random.default_rng(0)
    space = KendallShapes(6)
    z = rng.standard_normal((50, 6)) + 1j * rng.standard_normal((50, 6))
    scale = np.exp(rng.standard_normal((50, 1)) + 1j * rng.uniform(0, 2 * np.pi, (50, 1)))
    shift = rng.standard_normal((50, 1)) + 1j * rng.standard_normal((50, 1))
    p, moved = space.project(z), space.project(scale * z + shift)
    assert space.dist(p, moved).max() < 1e-14
    q = space.random_point(50, rng=1)
    np.testing.assert_allclose(space.dist(p, q), space.dist(moved, q), atol=1e-14)
    np.testing.assert_allclose(space.log_coords(p, q), space.log_coords(moved, q), atol=1e-12)
    np.testing.assert_allclose(space.log_coords(q, p), space.log_coords(q, moved), atol=1e-12)


def test_triangles_are_a_sphere_of_curvature_four():
    shapes, sphere = KendallShapes(3), Sphere(2, curvature=4.0)
    p, q = shapes.random_point(300, rng=1), shapes.random_point(300, rng=2)
    # Hopf map: pre-shapes in the plane of centred triangles (C^2) to the sphere of radius 1/2.
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])

    def hopf(z):
        a, b = (z @ basis.T).T
        w = np.conj(a) * b
        return np.stack([w.real, w.imag, (np.abs(a) ** 2 - np.abs(b) ** 2) / 2], axis=-1)

    np.testing.assert_allclose(shapes.dist(p, q), sphere.dist(hopf(p), hopf(q)), atol=1e-13)
    c = np.random.default_rng(0).standard_normal((20, 2)) * 0.3
    np.testing.assert_allclose(shapes.log_volume_density(c), sphere.log_volume_density(c), atol=1e-13)
    np.testing.assert_allclose(shapes.hessian_spectrum(c)[0], sphere.hessian_spectrum(c)[0], atol=1e-12)
    assert shapes.curvature == sphere.curvature
    assert np.isclose(shapes.radius_limit, sphere.radius_limit)


def test_landmarks_and_preshapes_are_the_same_points():
    space = KendallShapes(5)
    landmarks = np.random.default_rng(0).standard_normal((7, 5, 2)) * 30 + 5
    points = space.as_points(landmarks)
    assert points.shape == (7, 5)
    np.testing.assert_allclose(points.sum(axis=1), 0, atol=1e-15)
    assert space.dist(points, space.project(landmarks[..., 0] + 1j * landmarks[..., 1])).max() < 1e-15


def test_raw_landmarks_are_taken_wherever_points_are():
    space = KendallShapes(5)
    raw = np.random.default_rng(0).standard_normal((2, 7, 5, 2)) * 30 + 5
    p, q = space.project(raw)
    c = space.log_coords(p, q)
    v = space.vector(p, c)
    np.testing.assert_allclose(space.dist(*raw), space.dist(p, q), atol=1e-14)
    np.testing.assert_allclose(space.log_coords(*raw), c, atol=1e-13)
    np.testing.assert_allclose(space.log(*raw), space.log(p, q), atol=1e-13)
    np.testing.assert_allclose(space.coords(raw[0], v), c, atol=1e-13)
    np.testing.assert_allclose(space.norm(raw[0], v), space.norm(p, v), atol=1e-13)
    for call in (space.to_origin, space.from_origin):
        assert space.dist(call(*raw), call(p, q)).max() < 1e-13
    assert space.dist(space.exp_coords(raw[0], c), q).max() < 1e-13


def test_landmarks_come_back_level():
    space = KendallShapes(6)
    p = space.random_point(20, rng=0)
    landmarks = space.to_landmarks(p)
    assert landmarks.shape == (20, 6, 2)
    assert space.dist(landmarks, p).max() < 1e-14
    spread = landmarks.var(axis=1)
    assert (spread[:, 0] >= spread[:, 1]).all()
    np.testing.assert_allclose((landmarks[..., 0] * landmarks[..., 1]).sum(axis=1), 0, atol=1e-14)


def test_cut_locus_and_degenerate_records_clip():
    space = KendallShapes(4)
    p = space.random_point(rng=0)
    far = space.exp_coords(p, np.pi / 2 * np.eye(4)[0])
    assert np.isclose(space.dist(p, far), np.pi / 2)
    ball = Ball(space, p, 0.3)
    assert ball.contains(ball.clip(far))
    records = np.random.default_rng(1).standard_normal((3, 4, 2))
    records[1] = 7.0
    clipped = ball.clip(records)
    np.testing.assert_array_equal(clipped[1], ball.center)
    assert ball.contains(clipped).all()


def test_coincident_landmarks_are_named_by_index():
    records = np.random.default_rng(1).standard_normal((3, 4, 2))
    records[1] = 7.0
    with pytest.raises(InvalidDataError, match="all landmarks coincide at index 1"):
        KendallShapes(4).as_points(records)


def test_ambiguous_arrays_are_refused():
    space = KendallShapes(4)
    with pytest.raises(InvalidDataError, match="expected real landmarks"):
        space.as_points(np.zeros((5, 4)))
    with pytest.raises(InvalidDataError, match=r"index 0 \(and 1 more\) is not centred"):
        space.as_points(np.arange(8.0).reshape(2, 4) + 0j)
    with pytest.raises(InvalidArgumentError, match="at least 3"):
        KendallShapes(2)
