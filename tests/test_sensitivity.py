import numpy as np
import pytest

from dpmanifold import (
    SPD,
    Ball,
    Euclidean,
    Hyperbolic,
    InvalidArgumentError,
    KendallShapes,
    Product,
    Sphere,
    frechet,
    sensitivity,
)
from laws.adversary import largest_shift
from laws.data import in_ball

BALLS = [
    Ball(Euclidean(3), np.zeros(3), 2.0),
    Ball(Sphere(1), [1.0, 0.0], 1.5),
    Ball(Sphere(2), [1.0, 0.0, 0.0], np.pi / 8),
    Ball(Sphere(2), [1.0, 0.0, 0.0], 0.6),
    Ball(Sphere(2), [1.0, 0.0, 0.0], 0.75),
    Ball(Sphere(10, curvature=4.0), Sphere(10, curvature=4.0).origin, 0.38),
    Ball(Hyperbolic(3), Hyperbolic(3).origin, 2.0),
    Ball(KendallShapes(4), KendallShapes(4).origin, 0.35),
    Ball(KendallShapes(30), KendallShapes(30).origin, 0.39),
    Ball(SPD(3), np.eye(3), 2.0),
    Ball(SPD(3, metric="riemann"), np.eye(3), 2.0),
]
SEARCHED = [
    Ball(Sphere(2), [1.0, 0.0, 0.0], np.pi / 8),
    Ball(Sphere(2), [1.0, 0.0, 0.0], 0.6),
    Ball(Sphere(2), [1.0, 0.0, 0.0], 0.75),
    Ball(SPD(2, metric="riemann"), np.diag([2.0, 0.5]), 2.0),
    Ball(Hyperbolic(2), Hyperbolic(2).origin, 2.0),
    Ball(KendallShapes(4), KendallShapes(4).random_point(rng=0), 0.36),
]

# Curvature of both signs: 4 at most.
MIXED = Product([Sphere(2), Hyperbolic(2), Sphere(2)], weights=[0.5, 1.0, 1.0])
PRODUCT = Ball(MIXED, MIXED.origin, 0.36)


@pytest.mark.parametrize("ball", [*BALLS, PRODUCT], ids=repr)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 200, 10**6])
def test_no_bound_exceeds_the_one_before(ball, n):
    names = ["sharp", "tight", "published"]
    for function in (sensitivity.of_mean, sensitivity.of_gradient):
        sharp, tight, published = (function(ball, n, bound=name) for name in names)
        assert 0 < sharp.value <= tight.value <= published.value
        assert [sharp.bound, tight.bound, published.bound] == names
        assert function(ball, n) == sharp
    for function in (sensitivity.of_variance, sensitivity.of_fourth_moment):
        assert function(ball, n, about=ball.center).value <= function(ball, n, bound="published").value
    assert sensitivity.of_mean(ball, n).value <= 2 * ball.effective_radius * (1 + 1e-12)


@pytest.mark.parametrize(
    ("radius", "ratios"),
    [(np.pi / 8, (0.898, 0.682, 0.759)), (0.6, (0.766, 0.347, 0.453)), (0.75, (0.640, 0.070, 0.109))],
)
def test_gain_on_the_sphere(radius, ratios):
    """The figures of theory section 3, for n = 200: sharp/tight, sharp/published, tight/published."""
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], radius)
    sharp, tight, published = (
        sensitivity.of_mean(ball, 200, bound=name).value for name in ("sharp", "tight", "published")
    )
    assert tuple(np.round([sharp / tight, sharp / published, tight / published], 3)) == ratios


def attack(space, radius, n):
    """Return neighbours: all but one at both ends of one great circle, the last moved across on another."""
    ends = radius * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    p, q, *others = space.exp_coords(space.origin, np.pad(ends, ((0, 0), (0, space.dim - 2))))
    common = [others[i % 2] for i in range(n - 1)]
    return np.array([*common, p]), np.array([*common, q])


@pytest.mark.parametrize("n", [21, 101])
@pytest.mark.parametrize("radius", [np.pi / 8, 0.6, 0.75])
def test_the_sharp_bound_is_attained(radius, n):
    """Within 2 %; so 3 % less, as a constant that was guessed too small would be, is broken."""
    ball = Ball(Sphere(2), Sphere(2).origin, radius)
    first, second = (frechet.mean(X, ball).value for X in attack(ball.space, radius, n))
    bound = sensitivity.of_mean(ball, n).value
    moved = ball.space.dist(first, second)
    assert 0.98 * bound <= moved <= bound
    assert moved > 0.97 * bound


@pytest.mark.parametrize("space", [Euclidean(2), SPD(2), SPD(2, metric="riemann"), Hyperbolic(2)], ids=repr)
def test_hadamard_spaces_have_the_flat_bound(space):
    ball = Ball(space, space.origin, 1.5)
    assert np.isclose(sensitivity.of_mean(ball, 50).value, 3 / 50, rtol=1e-6)


@pytest.mark.parametrize("ball", SEARCHED, ids=repr)
def test_adversary_never_exceeds_the_sharp_bound(ball):
    n = 20
    found = largest_shift(ball, n, np.random.default_rng(0), generations=40)
    bound = n * sensitivity.of_mean(ball, n).value
    assert found <= bound
    # The search is worth something: it comes close.
    assert found >= 0.5 * bound


def test_adversary_breaks_the_flat_bound_on_the_sphere():
    """A bound without the curvature's factor is wrong, and the same search shows it."""
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.75)
    assert largest_shift(ball, 20, np.random.default_rng(0), generations=40) > 2 * ball.radius * 1.05


@pytest.mark.slow
@pytest.mark.parametrize("ball", [*SEARCHED, PRODUCT], ids=repr)
def test_long_adversarial_search(ball):
    n = 200
    bound = n * sensitivity.of_mean(ball, n).value
    found = max(largest_shift(ball, n, np.random.default_rng(seed), generations=150) for seed in range(3))
    print(f"{ball!r}: found {found:.3f}/n, bound {bound:.3f}/n, share {found / bound:.3f}")
    assert 0.5 * bound <= found <= bound


def neighbours(ball, n, rng):
    X = in_ball(ball, n + 1, rng, edge=True)
    return X[:-1], np.concatenate([X[:-2], X[-1:]])


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_statistics_of_neighbours_stay_within_their_bounds(ball):
    space = ball.space
    rng = np.random.default_rng(1)
    for _ in range(20):
        X, Y = neighbours(ball, 3, rng)
        p = in_ball(ball, 1, rng)[0]
        bounds = {"about": p}
        v, w = (space.log_coords(p, Z) for Z in (X, Y))
        d2 = [(c**2).sum(axis=1) for c in (v, w)]
        assert abs(d2[0].mean() - d2[1].mean()) <= sensitivity.of_variance(ball, 3, **bounds).value
        moment = abs((d2[0] ** 2).mean() - (d2[1] ** 2).mean())
        assert moment <= sensitivity.of_fourth_moment(ball, 3, **bounds).value
        second = [np.einsum("ni,nj->ij", c, c) / 3 for c in (v, w)]
        assert np.linalg.norm(second[0] - second[1]) <= sensitivity.of_second_moment(ball, 3, **bounds).value
        hessians = []
        for c in (v, w):
            values, directions = space.hessian_spectrum(c)
            hessians.append(2 * np.einsum("nij,nj,nkj->ik", directions, values, directions) / 3)
        assert np.linalg.norm(hessians[0] - hessians[1]) <= sensitivity.of_hessian(ball, 3, **bounds).value + 1e-12
        gradient = np.linalg.norm(v.mean(axis=0) - w.mean(axis=0))
        assert gradient <= sensitivity.of_gradient(ball, 3).value
        means = [frechet.mean(Z, ball).value for Z in (X, Y)]
        assert space.dist(*means) <= sensitivity.of_mean(ball, 3).value


def test_hessian_bound_is_attained_and_a_smaller_one_fails():
    """Orthogonal geodesics of full length on S^2; without the factor sqrt 2 the bound is broken."""
    space = Sphere(2)
    ball = Ball(space, space.origin, 0.5)
    values, directions = space.hessian_spectrum(0.5 * np.eye(2))
    a, b = (2 * (directions[i] * values[i]) @ directions[i].T for i in range(2))
    bound = sensitivity.of_hessian(ball, 1, about=space.origin).value
    assert np.linalg.norm(a - b) <= bound
    assert np.linalg.norm(a - b) > 0.999 * bound
    assert np.linalg.norm(a - b) > bound / np.sqrt(2) * 1.01


def test_published_constants():
    ball = Ball(Euclidean(1), [0.0], 1.0)
    assert np.isclose(sensitivity.of_variance(ball, 10, bound="published").value, 0.4)
    assert np.isclose(sensitivity.of_fourth_moment(ball, 10, bound="published").value, 1.6)
    assert np.isclose(sensitivity.of_second_moment(ball, 10, about=[0.0], bound="published").value, 0.6)
    sphere = Ball(Sphere(2), [1.0, 0.0, 0.0], np.pi / 8)
    h = np.pi / 4
    assert np.isclose(sensitivity.of_mean(sphere, 10, bound="published").value, np.pi / 4 * (2 - h) / (10 * h))
    assert np.isclose(sensitivity.of_gradient(sphere, 10, bound="published").value, np.pi / 4 * (2 - h) / 10)


def test_larger_tolerance_costs_its_share():
    ball = Ball(Euclidean(1), [0.0], 1.0)
    assert np.isclose(sensitivity.of_mean(ball, 10, tol=1e-3).value, 0.2 + 2e-3)
    curved = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.7)
    low = 1.4 / np.tan(1.4)
    assert 1e-3 < sensitivity.solver_distance(curved, 10, tol=1e-3) < 1e-3 / low


def test_bad_arguments():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    for n in (0, -1, 1.5, "3"):
        with pytest.raises(InvalidArgumentError, match="n must be a whole number"):
            sensitivity.of_mean(ball, n)
    with pytest.raises(InvalidArgumentError, match='bound must be "sharp", "tight" or "published"'):
        sensitivity.of_mean(ball, 3, bound="best")
    with pytest.raises(InvalidArgumentError, match='bound must be "tight" or "published"'):
        sensitivity.of_variance(ball, 3, bound="sharp")
    with pytest.raises(InvalidArgumentError, match="ball must be a Ball, got Sphere"):
        sensitivity.of_mean(Sphere(2), 3)
    with pytest.raises(InvalidArgumentError, match=r"got ndarray of shape \(2, 3\)"):
        sensitivity.of_mean(ball, np.zeros((2, 3)))
    with pytest.raises(InvalidArgumentError, match="tol"):
        sensitivity.of_mean(ball, 3, tol=0.0)
    with pytest.raises(InvalidArgumentError, match="about must be nearer"):
        sensitivity.of_hessian(ball, 3, about=[-1.0, 0.0, 0.0])
    assert float(sensitivity.of_mean(ball, 3)) == sensitivity.of_mean(ball, 3).value
