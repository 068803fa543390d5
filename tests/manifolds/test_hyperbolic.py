import numpy as np
import pytest

from dpmanifold import Euclidean, Hyperbolic, InvalidArgumentError, InvalidDataError
from laws.space_laws import SpaceLaws


class OnHyperbolic(SpaceLaws):
    spread = 8.0
    longest = 8.0

    def kappa(self, p):
        scaled = self.space.dist(self.space.origin, p) / np.linalg.norm(self.space.origin)
        return np.cosh(scaled) ** 2


class TestLine(OnHyperbolic):
    space = Hyperbolic(1)


class TestH2(OnHyperbolic):
    space = Hyperbolic(2)


class TestH10(OnHyperbolic):
    space = Hyperbolic(10)
    spread = 5.0


class TestCurvedH3(OnHyperbolic):
    space = Hyperbolic(3, curvature=-4.0)
    spread = 3.0
    longest = 3.0


def test_distance_is_invariant_under_rotations():
    space = Hyperbolic(3)
    turn = np.eye(4)
    turn[1:, 1:] = np.linalg.qr(np.random.default_rng(0).standard_normal((3, 3)))[0]
    p, q = space.random_point(100, rng=1), space.random_point(100, rng=2)
    np.testing.assert_allclose(space.dist(p @ turn.T, q @ turn.T), space.dist(p, q), atol=1e-12)


def test_flat_limit_is_euclidean():
    space, flat = Hyperbolic(3, curvature=-1e-12), Euclidean(3)
    rng = np.random.default_rng(3)
    c, e = rng.standard_normal((2, 50, 3))
    p, q = space.exp_coords(space.origin, c), space.exp_coords(space.origin, e)
    np.testing.assert_allclose(space.dist(p, q), flat.dist(c, e), atol=1e-9)


def test_distance_matches_the_textbook_formula_where_that_is_accurate():
    space = Hyperbolic(4)
    p, q = space.random_point(200, rng=1), space.random_point(200, rng=2)
    minkowski = p[:, 0] * q[:, 0] - (p[:, 1:] * q[:, 1:]).sum(axis=1)
    np.testing.assert_allclose(space.dist(p, q), np.arccosh(minkowski), rtol=1e-10)


def test_off_sheet_and_far_points_are_refused():
    space = Hyperbolic(2)
    points = space.random_point(3, rng=0)
    points[1, 0] += 1
    with pytest.raises(InvalidDataError, match="index 1 is not on the hyperboloid"):
        space.as_points(points)
    points[1] = [-1.0, 0.0, 0.0]
    with pytest.raises(InvalidDataError, match="index 1"):
        space.as_points(points)
    with pytest.raises(InvalidDataError, match="too far"):
        space.as_points([1e300, 1e300, 0.0])
    with pytest.raises(InvalidArgumentError, match="overflows"):
        space.exp_coords(space.origin, [1e4, 0.0])


@pytest.mark.parametrize("bad", [0.0, 1.0, np.nan, "x"])
def test_curvature_must_be_negative(bad):
    with pytest.raises(InvalidArgumentError, match="curvature"):
        Hyperbolic(2, curvature=bad)
