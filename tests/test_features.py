"""Feature maps: diameters that hold and are attained, for the numbers that the program computes (theory: features)."""

import math
from fractions import Fraction

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import features, frechet
from dpmanifold.features import Distances, JointMoments, Lengths, Tangent
from dpmanifold.features.base import largest_on_unit_interval, root_up
from laws.feature_laws import broken_laws, widest_pair

DIMENSIONS = [1, 2, 3, 6]
OTHERS = [JointMoments(0.1), JointMoments(1.0), JointMoments(5.0), Lengths(2.7725), Lengths(4.0), Lengths(1.0, 1.345),
          Lengths(1.5, 1.025), Lengths(2.0, 0.657), Lengths(3.0, 3.0), Distances(1.0, 0.5, 0.1, 0.1),
          Distances(9.0, 0.01, 4.0, 1.0)]  # fmt: skip
FREE_PAIRS = [(2.0, 0.657), (1.5, 1.025), (1.0, 1.345)]
EPS = 2.0**-52


def told(found):
    return f"{found.name} {vars(found)}"


def claiming(found, diameter):
    """Return the same map with another diameter."""
    made = type("Claiming", (type(found),), {"diameter": lambda self, dim: diameter(dim)})
    wrong = made.__new__(made)
    vars(wrong).update(vars(found))
    return wrong


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("found", features.FEATURES.values(), ids=told)
def test_the_laws_of_a_feature_map(found, dim):
    """Seeded; the diameter is attained by every map, and the search comes within 1 % of it."""
    assert broken_laws(found, dim, np.random.default_rng(dim)) == []


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("found", OTHERS, ids=told)
def test_the_laws_with_other_weights(found, dim):
    assert broken_laws(found, dim, np.random.default_rng(dim)) == []


@pytest.mark.parametrize("dim", DIMENSIONS)
@pytest.mark.parametrize("found", features.FEATURES.values(), ids=lambda found: found.name)
def test_a_diameter_two_percent_too_small_is_found_out(found, dim):
    wrong = claiming(found, lambda d: 0.98 * found.diameter(d))
    assert any("apart" in text for text in broken_laws(wrong, dim, np.random.default_rng(dim)))


@pytest.mark.parametrize("dim", DIMENSIONS[1:])
@pytest.mark.parametrize("found", [JointMoments(0.51), JointMoments(0.6), Lengths(2.78), Lengths(1.0, 1.36)])
def test_weights_that_are_just_not_free_are_found_out(found, dim):
    wrong = claiming(found, lambda d: 2.0)
    assert any("apart" in text for text in broken_laws(wrong, dim, np.random.default_rng(dim)))


def test_other_broken_maps_are_found_out():
    class Batched(Tangent):
        def of(self, v):
            return v @ (np.ones((v.shape[1], v.shape[1])) / v.shape[1]) * (1 + 1e-9 * (len(v) % 2))

    class Steep(JointMoments):
        degree = 1

    rng = np.random.default_rng(0)
    assert any("among others" in text for text in broken_laws(Batched(), 3, rng))
    assert any("degree" in text for text in broken_laws(Steep(1.0), 3, rng))


# -------------------------------------------------------------------- closed forms and certificates


def test_products_are_free_up_to_one_half():
    assert [JointMoments(weight).diameter(4) for weight in (1e-3, 0.25, 0.5)] == [2.0, 2.0, 2.0]
    for weight in (0.5000001, 0.75, 1.0, 3.0):
        exact = 2 + 2 * Fraction(weight) + 1 / (2 * Fraction(weight))
        assert exact <= Fraction(JointMoments(weight).diameter(4)) ** 2 <= exact * (1 + Fraction(4 * EPS))


def test_squared_lengths_are_free_up_to_the_golden_weight():
    most = (11 + 5 * math.sqrt(5)) / 8
    assert Lengths(most - 1e-9).diameter(2) == 2.0 == JointMoments(most - 1e-9).diameter(1)
    assert Lengths(most + 1e-6).diameter(2) > 2.0


@pytest.mark.parametrize(("square", "fourth"), FREE_PAIRS)
def test_the_free_pairs_are_certified(square, fourth):
    """In exact arithmetic: 2 is the diameter itself; a little more weight, and it is not."""
    assert Lengths(square, fourth).diameter(3) == 2.0
    assert Lengths(square, fourth + 0.002).diameter(3) > 2.0


def test_bounds_of_polynomials_hold_and_are_close():
    rng = np.random.default_rng(1)
    t = np.linspace(0, 1, 4001)
    for _ in range(20):
        coefficients = [Fraction(int(c), 16) for c in rng.integers(-40, 40, 7)]
        coefficients[0] += 10
        seen = np.polynomial.polynomial.polyval(t, [float(c) for c in coefficients]).max()
        bound = float(largest_on_unit_interval(coefficients))
        assert seen * (1 - 1e-12) <= bound <= seen * (1 + 1e-5)


def test_roots_are_rounded_up():
    for number in (2, 3, 5, Fraction(1, 3), Fraction(10**30 + 1, 7)):
        root = root_up(Fraction(number))
        assert Fraction(root) ** 2 >= number > Fraction(math.nextafter(math.nextafter(root, 0), 0)) ** 2


def test_products_beyond_a_half_are_refused_because_opposite_vectors_are_then_not_the_farthest():
    with pytest.raises(dpm.InvalidArgumentError, match=r"products must be at most 0\.5"):
        Distances(products=0.6)
    wrong = Distances(square=0.1, products=0.5, third=0.01, fourth=0.1)
    wrong.products = 2.0
    assert any("apart" in text for text in broken_laws(wrong, 2, np.random.default_rng(0)))


# -------------------------------------------------------------------- what the program computes


def squared_distance(v, w):
    """Between vectors of doubles, each standing for the number it is: exact."""
    return sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(v.tolist(), w.tolist(), strict=True))


@pytest.mark.parametrize("dim", [1, 2, 6])
@pytest.mark.parametrize("found", [*features.FEATURES.values(), JointMoments(1.0), Lengths(1.0, 1.345)],
                         ids=told)  # fmt: skip
def test_computed_features_obey_the_bound_to_the_last_bit(found, dim):
    """Near the widest pair, after clipping in doubles, in exact arithmetic. Without what rounding adds, some do not."""
    rng = np.random.default_rng(3)
    ball = dpm.Ball(dpm.Euclidean(dim), np.zeros(dim), 0.3)
    _, v, w = widest_pair(found, dim, rng)
    nudges = 1 + 1e-12 * rng.normal(size=(60, dim))
    # Vectors at the length they are cut to stay there; those beyond are cut.
    x, y = (found.of(features.coordinates(u * nudges * ball.radius * 1.001, ball)) for u in (v, w))
    bound = Fraction(features.computed_diameter(found, dim)) ** 2
    assert all(squared_distance(a, b) <= bound for a, b in zip(x, y, strict=True))


def test_without_rounding_the_bound_would_not_hold():
    rng = np.random.default_rng(4)
    ball = dpm.Ball(dpm.Euclidean(6), np.zeros(6), 0.3)
    x = features.coordinates(rng.normal(size=(200, 6)), ball)
    assert any(squared_distance(v, -v) > 4 for v in x)


def test_coordinates_are_clipped_one_by_one_whatever_they_are():
    ball = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 2.0)
    rng = np.random.default_rng(5)
    block = np.vstack([rng.normal(size=(50, 3)), [[np.nan, 0, 0], [np.inf, 1, 1], [1e308, -1e308, 0]]])
    seen = features.coordinates(block, ball)
    assert np.isfinite(seen).all()
    assert np.linalg.norm(seen, axis=1).max() <= 1 + 11 * EPS
    assert np.array_equal(seen, np.vstack([features.coordinates(row[None], ball) for row in block]))


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, 1e9, 1e-9, "x"])
def test_a_weight_that_is_none_is_refused(weight):
    for make in (JointMoments, Lengths):
        with pytest.raises(dpm.InvalidArgumentError, match=r"weight|square"):
            make(weight)


def test_the_average_is_that_of_every_unit_by_itself():
    ball = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
    X = ball.space.exp_coords(ball.center, np.random.default_rng(6).normal(0, 0.2, (500, 2)))
    points = frechet.unit_points(X, ball, units=None)
    c = ball.space.log_coords(ball.center, ball.clip(X))
    found = features.average(points, JointMoments(1.0)) * JointMoments(1.0).units(2, ball.radius)
    np.testing.assert_allclose(np.linalg.norm(found[:2]), np.linalg.norm(c.mean(axis=0)), rtol=1e-9)
    np.testing.assert_allclose(found[2] + found[3], (c * c).sum(axis=1).mean(), rtol=1e-9)
    shuffled = frechet.unit_points(X[::-1], ball, units=None)
    assert np.array_equal(features.average(points, Lengths()), features.average(shuffled, Lengths()))
