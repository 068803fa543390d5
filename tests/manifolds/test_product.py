"""Products of spaces: laws, arrays, texts, bounds."""

import math

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
    Product,
    Sphere,
    frechet,
    sensitivity,
)
from dpmanifold.manifolds import space_from_text
from laws.adversary import largest_shift
from laws.space_laws import SpaceLaws

AFFINE = SPD(2, metric="riemann")


class OnProduct(SpaceLaws):
    spread = 1.0
    longest = 1.0

    def kappa(self, p):
        parts = zip(self.space.factors, self.space.split(p), strict=True)
        worst = [np.linalg.cond(part) for factor, part in parts if isinstance(factor, SPD)]
        return max([1.0, *worst]) * max(self.space.weights.max(), 1 / self.space.weights.min())


class TestMixed(OnProduct):
    """A factor of either sign, a complex one and a flat one, in one row of numbers."""

    space = Product([Sphere(2), AFFINE, KendallShapes(3), Euclidean(1)], weights=[1.0, 0.5, 2.0, 1.0])


class TestHadamard(OnProduct):
    space = Product([AFFINE] * 2 + [Hyperbolic(2)], weights=[1.0, 2.0, 1.0])


class TestClosed(OnProduct):
    space = Product([KendallShapes(4)] * 2)
    spread = longest = 0.7


class TestTorus(OnProduct):
    space = Product([Sphere(1)] * 2)


class TestOfProducts(OnProduct):
    space = Product(
        [Product([Sphere(2)] * 2, weights=[1.0, 2.0]), Product([Hyperbolic(1), SPD(2)])], weights=[2.0, 1.0]
    )


# -------------------------------------------------------------------- arrays


def test_points_are_stacked_or_in_a_row_and_tuples_are_taken():
    stacked, row = Product([SPD(2)] * 3), Product([SPD(2), KendallShapes(3), Euclidean(1)])
    assert stacked.shape == (3, 2, 2)
    assert row.shape == (4 + 6 + 1,)
    for space in (stacked, row):
        points = space.random_point(5, rng=0)
        parts = space.split(points)
        assert [part.shape[1:] for part in parts] == [factor.shape for factor in space.factors]
        np.testing.assert_array_equal(space.join(parts), points)
        np.testing.assert_array_equal(space.as_points(parts), points)
        assert space.dist(points[0], space.split(points[0])) <= 1e-12
    one_center = row.join((np.eye(2), parts[1], [1.0]))  # batches broadcast
    assert one_center.shape == (5, 11)


def test_a_list_is_points_and_a_tuple_factors():
    space = Product([SPD(2)] * 3)
    points = space.random_point(3, rng=0)
    np.testing.assert_array_equal(space.as_points(list(points)), points)
    np.testing.assert_array_equal(space.as_points(points), points)
    np.testing.assert_array_equal(space.as_points(space.split(points)), points)
    with pytest.raises(InvalidArgumentError, match="3 arrays, one for every factor; got 2 of them"):
        space.join((np.eye(2), np.eye(2)))
    with pytest.raises(InvalidArgumentError, match="batches of one shape"):
        space.join((np.ones((2, 2, 2)), np.ones((3, 2, 2)), np.eye(2)))


def test_landmarks_are_taken_stacked_and_in_a_row():
    landmarks = np.random.default_rng(0).standard_normal((5, 2, 4, 2))
    stacked, row = Product([KendallShapes(4)] * 2), Product([KendallShapes(4), KendallShapes(4), Euclidean(1)])
    shapes = stacked.as_points(landmarks)
    assert shapes.shape == (5, 2, 4)
    in_a_row = row.as_points(np.concatenate([landmarks.reshape(5, -1), np.ones((5, 1))], axis=1))
    np.testing.assert_array_equal(np.stack(row.split(in_a_row)[:2], axis=1), shapes)
    landmarks[2, 1] = 3.0
    assert stacked.degenerate(landmarks).tolist() == [False, False, True, False, False]
    with pytest.raises(InvalidDataError, match=r"factor 1, KendallShapes\(4\): all landmarks coincide at index 2"):
        stacked.as_points(landmarks)


def test_what_is_wrong_names_record_and_factor():
    space = Product([SPD(2)] * 3)
    points = space.random_point(4, rng=0)
    points[1, 2] = [[1.0, 2.0], [2.0, 1.0]]
    with pytest.raises(InvalidDataError, match=r"factor 2, SPD\(2\): the matrix at index 1 is not positive definite"):
        space.as_points(points, "X")
    assert space.valid(points).tolist() == [True, False, True, True]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SPD(3),), "factors must be a list of spaces"), (([],), "1 to 10000 spaces, got 0"),
        (([SPD(3), 2],), "got 2 among them"), (([SPD(3)] * 2, [1.0]), "2 of them, got 1"),
        (([SPD(3)] * 2, [1.0, -1.0]), "weights must be finite and above 0"),
        (([SPD(3)] * 2, [1.0, 1e9]), "between 1e-06 and 1e\\+06"), (([SPD(3)] * 2, "heavy"), "got 'heavy'"),
    ],
)  # fmt: skip
def test_arguments_are_checked(arguments, message):
    with pytest.raises(InvalidArgumentError, match=message):
        Product(*arguments)


# -------------------------------------------------------------------- bounds


@pytest.mark.slow
@pytest.mark.parametrize(
    "space",
    [
        Product([Sphere(2)] * 2, weights=[1.0, 2.0]), Product([Sphere(2), AFFINE]),
        Product([KendallShapes(4), Euclidean(1)], weights=[2.0, 1.0]), Product([AFFINE] * 2, weights=[1.0, 0.5]),
    ],
    ids=repr,
)  # fmt: skip
def test_an_adversary_never_exceeds_the_sensitivity(space):
    ball = Ball(space, space.origin, 0.95 * min(space.radius_limit, 2.0))
    found = largest_shift(ball, 20, np.random.default_rng(0), generations=60)
    bound = 20 * sensitivity.of_mean(ball, 20).value
    assert 0.4 * bound <= found <= bound
    # A bound without curvature is wrong, and the search shows it; so is one with the radius of one factor of two.
    assert found > 2 * ball.radius * (0.99 if space.is_hadamard else 1.05)


def test_beyond_the_limit_of_one_factor_a_ball_is_refused():
    space = Product([Sphere(2), Euclidean(1)], weights=[0.5, 1.0])
    assert space.radius_limit == pytest.approx(math.pi / 8)
    with pytest.raises(InvalidArgumentError, match=r"radius must be below 0\.3927"):
        Ball(space, space.origin, 0.4)


@pytest.mark.slow
def test_tangent_means_are_as_near_as_stated_where_signs_of_curvature_meet():
    """Three records, wherever they are; a bound from the negative factor alone would be exceeded."""
    space = Product([Sphere(2), SPD(2, metric="riemann")], weights=[1.0, 20.0])
    ball = Ball(space, space.origin, 0.75)
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(60):
        c = rng.standard_normal((3, space.dim)) * [3.0, 3.0, 1.0, 1.0, 1.0]
        c *= ball.radius * (1 - 1e-9) / np.linalg.norm(c, axis=1, keepdims=True)
        mean = frechet.mean(space.exp_coords(space.origin, c), ball).value
        apart = float(space.dist(mean, space.exp_coords(space.origin, c.mean(axis=0))))
        away = float(space.dist(mean, space.origin))
        assert apart <= frechet.tangent_gap(ball, away)
        worst = max(worst, apart / frechet.tangent_gap(ball, away))
    assert worst > 0.2
    steep = ball.radius / (20 * math.sqrt(2))
    negative = (steep / math.tanh(steep) - 1) * math.sinh(steep) / steep
    assert worst * frechet.tangent_gap(ball) > ball.radius * negative


def test_the_mean_is_that_of_the_factors_whatever_the_weights():
    factors = [Sphere(2), AFFINE, KendallShapes(4), Euclidean(2)]
    space = Product(factors, weights=[1.0, 0.5, 2.0, 3.0])
    c = 0.1 * np.random.default_rng(0).standard_normal((30, space.dim))
    X = space.exp_coords(space.origin, c)
    ball = Ball(space, space.origin, 0.75)
    assert ball.contains(X).all()
    joint = frechet.mean(X, ball).value
    for factor, part, mean in zip(factors, space.split(X), space.split(joint), strict=True):
        assert factor.dist(frechet.mean(part, factor).value, mean) <= 1e-9


# -------------------------------------------------------------------- facts


def test_the_metric_is_the_weighted_sum_of_squares():
    space = Product([Sphere(2), AFFINE], weights=[3.0, 0.5])
    p, q = space.random_point(6, rng=0), space.random_point(6, rng=1)
    apart = zip(space.factors, space.split(p), space.split(q), strict=True)
    squares = [factor.dist(a, b) ** 2 for factor, a, b in apart]
    np.testing.assert_allclose(space.dist(p, q) ** 2, 9 * squares[0] + 0.25 * squares[1], rtol=1e-12)
    assert space.curvature == (-2.0, 1 / 9)
    assert space.injectivity_radius == pytest.approx(3 * math.pi)
    assert space.radius_limit == pytest.approx(3 * math.pi / 4)
    assert not space.is_hadamard


def test_a_weight_is_a_change_of_units():
    """One sphere with weight 2 is the sphere of radius 2."""
    one, other = Product([Sphere(2)], weights=2.0), Sphere(2, curvature=0.25)
    assert one.curvature == other.curvature
    assert one.radius_limit == pytest.approx(other.radius_limit)
    c = np.random.default_rng(0).standard_normal((5, 2))
    np.testing.assert_allclose(one.log_volume_density(c), other.log_volume_density(c), rtol=1e-12)
    np.testing.assert_allclose(one.hessian_spectrum(c)[0], other.hessian_spectrum(c)[0], rtol=1e-12)
    moment = np.cov(c.T)
    np.testing.assert_allclose(one.curvature_operator(moment), other.curvature_operator(moment), rtol=1e-12)


def test_curvature_operators_are_block_by_block():
    space = Product([Sphere(2), AFFINE], weights=[2.0, 0.5])
    v = np.random.default_rng(1).standard_normal(5)
    found = space.curvature_operator(np.outer(v, v))
    assert not found[:2, 2:].any()
    np.testing.assert_allclose(found @ v, 0, atol=1e-12)
    np.testing.assert_allclose(found[2:, 2:], AFFINE.curvature_operator(np.outer(v[2:], v[2:]) / 0.25), rtol=1e-12)


def test_texts_are_short_and_come_back():
    fifty = Product([SPD(3)] * 50)
    assert repr(fifty) == "Product([SPD(3)] * 50)"
    weights = np.random.default_rng(0).random(50) + 0.5
    for space in (
        fifty, Product([SPD(3)] * 50, weights=weights), Product([Sphere(2), SPD(3), SPD(3), Sphere(1)], weights=0.1),
        Product([Product([Sphere(1)] * 2), Product([SPD(2)])]), Product([Sphere(1), Sphere(1), SPD(2), SPD(2)] * 200),
        Product([Sphere(1)] * 3000, weights=np.linspace(1.0, 2.0, 3000)),
    ):  # fmt: skip
        again = space_from_text(repr(space))
        assert again == space
        np.testing.assert_array_equal(again.weights, space.weights)


@pytest.mark.parametrize(
    "text",
    [
        "Product([SPD(3)] * 100000)", "Product([SPD(3)] * -1)", "Product(3 * [SPD(3)])", "Product([SPD(3)] * 2.0)",
        "Product([SPD(1500)] * 2)", "Product([SPD(3)] - [SPD(3)])", "Product([SPD(3)] * True)",
        "Product([[SPD(3)] * 9999] * 9999)", "Product('SPD(3)' * 2)", "Product(" + "[SPD(1)] + " * 1500 + "[SPD(1)])",
        "Product([Product([Euclidean(1)] * 9000)] * 9000)",
    ],
)  # fmt: skip
def test_other_texts_are_refused(text):
    with pytest.raises((InvalidDataError, InvalidArgumentError)):
        space_from_text(text)
