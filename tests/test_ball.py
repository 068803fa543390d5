import numpy as np
import pytest

from dpmanifold import (
    SPD,
    Ball,
    Euclidean,
    Hyperbolic,
    InvalidArgumentError,
    InvalidDataError,
    KendallShapes,
    Sphere,
    linalg,
)


@pytest.mark.parametrize("radius", [0, 0.0, -1.0, np.nan, np.inf, "1", None, True])
def test_radius_must_be_a_positive_number(radius):
    with pytest.raises(InvalidArgumentError, match="radius must be"):
        Ball(Sphere(2), [1.0, 0.0, 0.0], radius)


@pytest.mark.parametrize(
    ("space", "limit"),
    [
        (Sphere(2), np.pi / 4),
        (Sphere(3, curvature=4.0), np.pi / 8),
        (Sphere(1), np.pi / 2),
        (KendallShapes(3), np.pi / 8),
        (KendallShapes(8), np.pi / 8),
    ],
)
def test_radius_beyond_the_limit_is_refused_with_the_reason(space, limit):
    assert Ball(space, space.origin, 0.999 * limit).radius < limit
    for radius in (limit, 1.2 * limit):
        with pytest.raises(
            InvalidArgumentError, match=rf"radius must be below {limit:.4f}.*need not be unique.*smaller"
        ):
            Ball(space, space.origin, radius)
    with pytest.raises(InvalidArgumentError, match="within rounding of the limit"):
        Ball(space, space.origin, np.nextafter(limit, 0))


def test_radii_that_rounding_swamps_are_refused():
    with pytest.raises(InvalidArgumentError, match="double precision"):
        Ball(Sphere(2), [1.0, 0.0, 0.0], 1e-13)
    with pytest.raises(InvalidArgumentError, match="double precision"):
        Ball(Hyperbolic(2), Hyperbolic(2).exp_coords([1.0, 0.0, 0.0], [30.0, 0.0]), 30.0)


def test_center_must_be_one_point_of_the_space():
    with pytest.raises(InvalidDataError, match=r"center is not valid.*length"):
        Ball(Sphere(2), [2.0, 0.0, 0.0], 0.5)
    with pytest.raises(InvalidDataError, match=r"center is not valid.*NaN"):
        Ball(Sphere(2), [np.nan, 0.0, 0.0], 0.5)
    with pytest.raises(InvalidDataError, match="center must be one point"):
        Ball(Sphere(2), np.eye(3), 0.5)
    with pytest.raises(InvalidDataError, match=r"center is not valid.*positive definite"):
        Ball(SPD(2), np.zeros((2, 2)), 0.5)
    with pytest.raises(InvalidArgumentError, match="space must be a space"):
        Ball("sphere", [1.0, 0.0, 0.0], 0.5)


def test_a_ball_cannot_be_changed_and_compares_by_value():
    ball = Ball(Euclidean(2), [0.0, 0.0], 1.0, source="a map")
    with pytest.raises(AttributeError):
        ball.radius = 2.0
    with pytest.raises(ValueError, match="read-only"):
        ball.center[0] = 1.0
    same = Ball(Euclidean(2), [0.0, 0.0], 1.0, source="a map")
    assert ball == same
    assert hash(ball) == hash(same)
    assert ball != Ball(Euclidean(2), [0.0, 0.0], 1.5, source="a map")
    assert repr(ball) == "Ball(Euclidean(2), radius=1, source='a map')"


def test_clip_refuses_what_is_not_a_record():
    ball = Ball(SPD(2), np.eye(2), 1.0)
    with pytest.raises(InvalidDataError, match="index 1 is not positive definite"):
        ball.clip(np.stack([np.eye(2), -np.eye(2)]))
    with pytest.raises(InvalidDataError, match="NaN"):
        ball.clip(np.full((1, 2, 2), np.nan))
    with pytest.raises(InvalidDataError, match="numbers"):
        ball.clip([["a", "b"], ["b", "a"]])


def test_clip_handles_empty_single_and_nested_batches():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    assert ball.clip(np.zeros((0, 3))).shape == (0, 3)
    assert ball.clip([0.0, 1.0, 0.0]).shape == (3,)
    nested = Sphere(2).random_point((4, 5), rng=0)
    assert ball.contains(ball.clip(nested)).all()
    assert ball.clip(nested).shape == nested.shape


def test_extreme_matrices_clip():
    tiny, huge = np.diag([1e-300, 1e-290]), np.diag([1e300, 1e299])
    for metric in ("logeuclid", "riemann"):
        ball = Ball(SPD(2, metric=metric), np.diag([1e3, 1e-3]), 2.0)
        clipped = ball.clip(np.stack([tiny, huge, np.eye(2)]))
        assert ball.contains(clipped).all()


@pytest.mark.parametrize(
    "space", [Euclidean(3), Sphere(2), Hyperbolic(2), SPD(3), SPD(3, metric="riemann"), KendallShapes(5)]
)
def test_ball_from_public_data_holds_them_and_says_so(space):
    rng = np.random.default_rng(0)
    X = space.exp_coords(space.random_point(rng=5), 0.05 * rng.standard_normal((200, space.dim)))
    X = space.project(X)
    full = Ball.from_public(space, X, margin=0.0)
    assert full.contains(X).all()
    assert "public data: 200 points" in full.source
    half = Ball.from_public(space, X, coverage=0.5, margin=0.0)
    assert half.contains(X).sum() >= 100
    assert half.radius < full.radius
    # A minimum enclosing ball is no larger than the ball about the mean.
    about_mean = space.dist(space.extrinsic_mean(X, np.full(200, 1 / 200)), X).max()
    assert full.radius <= about_mean
    assert np.isclose(Ball.from_public(space, X, margin=0.5).radius, 1.5 * full.radius)


def test_ball_from_public_refuses_nonsense():
    space = Euclidean(1)
    with pytest.raises(InvalidDataError, match="empty"):
        Ball.from_public(space, np.zeros((0, 1)))
    with pytest.raises(InvalidDataError, match="single distinct point"):
        Ball.from_public(space, np.zeros((3, 1)))
    with pytest.raises(InvalidArgumentError, match="coverage"):
        Ball.from_public(space, [[0.0], [1.0]], coverage=1.5)
    with pytest.raises(InvalidArgumentError, match="margin"):
        Ball.from_public(space, [[0.0], [1.0]], margin=-0.1)
    with pytest.raises(InvalidDataError, match="Lower coverage"):
        Ball.from_public(Sphere(2), Sphere(2).random_point(50, rng=0))


@pytest.mark.parametrize("space", [SPD(3), SPD(3, metric="riemann"), Sphere(2), Euclidean(2)], ids=repr)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_pulling_in_never_raises(space, bad):
    ball = Ball(space, space.origin, 0.5)
    points = np.stack([space.origin, np.full(space.shape, bad)])
    np.testing.assert_array_equal(ball.pull_in(points), np.stack([space.origin, space.origin]))


@pytest.mark.parametrize("name", linalg.backends())
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
@pytest.mark.parametrize("size", [2, 9])
def test_matrices_that_overflow_on_their_way_are_clipped_like_others(size, metric, name):
    ball = Ball(SPD(size, metric=metric), np.diag(np.geomspace(0.01, 1.0, size)), 2.0)
    X = np.stack([scale * np.eye(size) for scale in (1e308, 1e-308, 0.1)])
    with linalg.backend(name):
        moved = ball.to_frame(X)
        assert np.array_equal(moved, [ball.to_frame(one) for one in X])
        assert np.allclose(ball.frame.dist(ball.frame.origin, moved)[:2], 2.0)


@pytest.mark.parametrize("name", linalg.backends())
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
@pytest.mark.parametrize("center", [[[1e308, 0.0], [0.0, 1e308]], [[1e308, 9e307], [9e307, 1e308]]], ids=str)
def test_centers_that_overflow_are_refused_without_a_warning(center, metric, name):
    with linalg.backend(name), pytest.raises(InvalidArgumentError, match="smaller ball"):
        Ball(SPD(2, metric=metric), center, 1.0)
