"""Attacks on the way from records to a mean: extreme records, awkward balls, and what one unit can do to others.

Every record here passes `space.check`. Warnings are errors in the whole suite, so none may come from the data path.
"""

import mpmath as mp
import numpy as np
import pytest

from dpmanifold import (
    SPD,
    Ball,
    Euclidean,
    Hyperbolic,
    InvalidArgumentError,
    KendallShapes,
    Sphere,
    frechet,
    sensitivity,
)
from laws.data import in_ball

pytestmark = pytest.mark.security


def shapes(scale, shift=0.0):
    return scale * (np.random.default_rng(0).standard_normal((3, 4, 2)) + shift)


H2 = Hyperbolic(2)
EXTREME = {
    "huge and small": (Ball(SPD(2, "riemann"), 1e-3 * np.eye(2), 2.0), [1e-3 * np.eye(2), 0.8e308 * np.eye(2)]),
    "huge matrix": (Ball(SPD(2, "riemann"), np.eye(2), 2.0), [np.eye(2), 1e308 * np.eye(2)]),
    "huge matrix, flat": (Ball(SPD(2), np.eye(2), 2.0), [np.eye(2), 1e308 * np.eye(2)]),
    "tiny centre": (Ball(SPD(2, "riemann"), 1e-160 * np.eye(2), 2.0), [1e160 * np.eye(2), 1e-160 * np.eye(2)]),
    "tiny record": (Ball(SPD(2, "riemann"), 1e300 * np.eye(2), 2.0), [1e-300 * np.eye(2), 1e300 * np.eye(2)]),
    "tiny centre, flat": (Ball(SPD(2), 1e-300 * np.eye(2), 2.0), [1e300 * np.eye(2), 1e-300 * np.eye(2)]),
    "ill-conditioned": (Ball(SPD(2, "riemann"), np.eye(2), 2.0), [np.diag([1.0, 1e-15]), np.eye(2)]),
    "far hyperbolic": (
        Ball(H2, H2.exp_coords(H2.origin, [8.0, 0.0]), 2.0),
        [H2.exp_coords(H2.origin, [-299.0, 0.0]), H2.exp_coords(H2.origin, [8.0, 0.0])],
    ),
    "subnormal landmarks": (Ball(KendallShapes(4), KendallShapes(4).origin, 0.3), shapes(1e-310)),
    "huge landmarks": (
        Ball(KendallShapes(4), KendallShapes(4).origin, 0.3),
        [1.7e308 * np.array([[1, 1], [1, 1], [1, -1], [-1, 0.9]])] * 2,
    ),
    "far landmarks": (Ball(KendallShapes(4), KendallShapes(4).origin, 0.3), shapes(1.0, 1e10)),
    "largest vectors": (Ball(Euclidean(2), [0.0, 0.0], 1.0), [[1.7e308, 1.7e308], [0.0, 5e-324]]),
    "antipodes": (Ball(Sphere(2), [0.0, 0.0, 1.0], 0.7), [[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXTREME)
def test_extreme_records_end_in_the_ball(name):
    ball, records = EXTREME[name]
    assert ball.space.check(records) is None
    moved = ball.to_frame(records)
    assert np.isfinite(moved).all()
    assert (ball.frame.dist(ball.frame.origin, moved) <= ball.radius).all()
    clipped = ball.clip(records)
    assert ball.space.check(clipped) is None
    assert ball.contains(clipped).all()
    result = frechet.mean(records, ball)
    assert np.isfinite(result.value).all()
    assert ball.contains(result.value)


def test_flat_records_far_out_keep_their_direction():
    ball = Ball(Euclidean(2), [0.0, 0.0], 1.0)
    np.testing.assert_allclose(ball.to_frame([[1.7e308, 1.7e308]]), [[np.sqrt(0.5)] * 2])


@pytest.mark.parametrize(
    "ball",
    [
        Ball(Euclidean(1), [1e16], 10.0),
        Ball(Euclidean(1), [1e7], 1.0),
        Ball(SPD(2), np.diag([1.0, 1e-10]), 1.0),
        Ball(SPD(2, "riemann"), np.diag([1.0, 1e-9]), 1.0),
        Ball(H2, H2.exp_coords(H2.origin, [11.0, 0.0]), 2.0),
    ],
    ids=repr,
)
def test_neighbours_about_awkward_centres_stay_within_the_bound(ball):
    """Where moving back to the space rounds coarsely, the bound is about the frame, and holds there."""
    n = 100
    first = np.zeros(ball.space.dim)
    first[0] = 0.999 * ball.radius
    edges = ball.space.project(ball.space.exp_coords(ball.center, np.stack([first, -first])))
    X = np.broadcast_to(ball.center, (n, *ball.space.shape)).copy()
    X[: n // 2] = edges[0]
    Y = X.copy()
    X[-1], Y[-1] = edges
    means = [frechet.mean(Z, ball) for Z in (X, Y)]
    assert ball.frame.dist(means[0].in_frame, means[1].in_frame) <= sensitivity.of_mean(ball, n).value
    for mean in means:
        assert ball.frame.dist(ball.frame.origin, mean.in_frame) <= ball.effective_radius
        assert ball.contains(mean.value)


def test_bound_of_the_mean_holds_in_exact_arithmetic():
    """Opposite edges of a large affine-invariant ball, distance of the two means by 50-digit arithmetic."""
    space = SPD(2, "riemann")
    ball = Ball(space, np.eye(2), 6.0)
    n = 10
    edge = np.array([6.0 / np.sqrt(2), -6.0 / np.sqrt(2), 0.0])
    X = np.broadcast_to(np.eye(2), (n, 2, 2)).copy()
    Y = X.copy()
    X[-1], Y[-1] = space.exp_coords(space.origin, np.stack([edge, -edge]))
    a, b = (frechet.mean(Z, ball).in_frame for Z in (X, Y))
    with mp.workdps(50):
        inverse = mp.inverse(mp.cholesky(mp.matrix(a.tolist())))
        white = inverse * mp.matrix(b.tolist()) * inverse.T
        distance = mp.sqrt(mp.fsum(mp.log(v) ** 2 for v in mp.eigsy((white + white.T) / 2, eigvals_only=True)))
    bound = sensitivity.of_mean(ball, n).value
    assert 0.99 * 12 / n < float(distance) <= bound


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("radius", [3.0, 5.0, 7.0])
def test_computed_moments_about_an_edge_stay_within_their_bounds(k, radius):
    """One record opposite the point it is seen from: the whole reach, and the worst rounding."""
    space = SPD(k, "riemann")
    ball = Ball(space, np.eye(k), radius)
    rng = np.random.default_rng(k)
    for _ in range(30):
        turn = np.linalg.qr(rng.standard_normal((k, k)))[0]
        values = np.zeros(k)
        values[0], values[-1] = radius / np.sqrt(2), -radius / np.sqrt(2)
        about, record = ((turn * np.exp(s * values)) @ turn.T for s in (1, -1))
        about, record = ball.clip(space.project(np.stack([about, record])))
        variance = frechet.variance(record[None], ball, about=about)
        for where in (about, None):
            assert variance <= sensitivity.of_variance(ball, 1, about=where).value
            assert variance**2 <= sensitivity.of_fourth_moment(ball, 1, about=where).value
            second = np.linalg.norm(space.log_coords(about, record)) ** 2
            assert second * np.sqrt(2) <= sensitivity.of_second_moment(ball, 1, about=where).value


def test_log_euclidean_bounds_stay_finite_in_large_balls():
    ball = Ball(SPD(9), np.eye(9), 41.4)
    assert np.isclose(sensitivity.of_variance(ball, 100, about=np.eye(9)).value, 41.4**2 / 100, rtol=1e-6)
    assert sensitivity.of_hessian(ball, 100, about=np.eye(9)).value == 0


@pytest.mark.parametrize("space", [Sphere(2), Hyperbolic(3), KendallShapes(5), SPD(3, "riemann"), SPD(3)], ids=repr)
def test_a_unit_does_not_change_the_averages_of_others(space):
    ball = Ball(space, space.random_point(rng=1), min(2.0, 0.9 * space.radius_limit))
    rng = np.random.default_rng(2)
    X = in_ball(ball, 200, rng)
    units = np.arange(200) % 40
    before = frechet.unit_means(X, ball, units=units)
    more = np.concatenate([X, in_ball(ball, 3000, rng, edge=True)])
    after = frechet.unit_means(more, ball, units=np.concatenate([units, np.full(3000, 39)]))
    np.testing.assert_array_equal(before[:39], after[:39])
    assert not np.array_equal(before[39], after[39])


def test_small_balls_keep_their_resolution_with_units():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 1e-10)
    X = ball.space.exp_coords(ball.center, [[0.9e-10, 0.0]] * 4)
    mean = frechet.mean(X, ball, units=[0, 0, 1, 1]).in_frame
    assert np.isclose(ball.space.dist(ball.space.origin, mean), 0.9e-10, rtol=1e-3)


def test_a_record_is_mapped_the_same_in_every_batch():
    for space in (Sphere(10), Hyperbolic(3), KendallShapes(7), SPD(4), SPD(4, "riemann"), Euclidean(3)):
        ball = Ball(space, space.random_point(rng=3), min(0.8, 0.9 * space.radius_limit))
        X = space.project(
            space.exp_coords(ball.center, np.random.default_rng(4).standard_normal((37, space.dim)) * 0.3)
        )
        together = ball.to_frame(X)
        for i in (0, 17, 36):
            np.testing.assert_array_equal(ball.to_frame(X[i]), together[i])
        np.testing.assert_array_equal(ball.to_frame(X[::-1]), together[::-1])
        np.testing.assert_array_equal(ball.to_frame(np.asfortranarray(X)), together)
        np.testing.assert_array_equal(ball.clip(X[5:9]), ball.clip(X)[5:9])


def test_numbers_beyond_reason_are_refused():
    ball = Ball(Euclidean(1), [0.0], 1.0)
    with pytest.raises(InvalidArgumentError, match="n must be at most"):
        sensitivity.of_mean(ball, 10**400)
    with pytest.raises(InvalidArgumentError, match="tol must be at least"):
        sensitivity.of_mean(ball, 10, tol=1e-300)
    for radius in (1e-200, 1e200):
        with pytest.raises(InvalidArgumentError, match="double precision"):
            Ball(Euclidean(1), [0.0], radius)
    for space, radius in ((SPD(2), 400.0), (Hyperbolic(1), 690.0)):
        with pytest.raises(InvalidArgumentError, match="cannot represent"):
            Ball(space, space.origin, radius)
    with pytest.raises(InvalidArgumentError, match="weights must be finite"):
        frechet.mean([[0.0], [1.0]], ball, weights=[np.inf, 1.0])
    assert np.isclose(frechet.mean([[0.0], [1.0]], ball, weights=[1e308, 1e308]).value, 0.5)


def test_equal_balls_have_equal_hashes():
    assert hash(Ball(Euclidean(1), [0.0], 1.0)) == hash(Ball(Euclidean(1), [-0.0], 1.0))


def test_clip_returns_an_array_of_its_own():
    X = np.zeros((2, 1))
    assert not np.shares_memory(Ball(Euclidean(1), [0.0], 1.0).clip(X), X)


def test_validity_of_a_matrix_does_not_depend_on_its_batch():
    eps = np.finfo(float).eps
    doubtful = np.array([[1.0, 1.0], [1.0, 1.0 + 6 * eps]])
    alone = SPD(2).check(doubtful)
    beside = SPD(2).check(np.stack([np.eye(2), doubtful, -np.eye(2)]))
    assert (alone is None) == ("index 2 is" in beside)
