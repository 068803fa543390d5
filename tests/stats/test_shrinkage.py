"""Moving a draw towards the centre only ever helps, where it is done at all."""

import math

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, SPD, Ball, Euclidean, InvalidArgumentError, PureDP, Sphere
from dpmanifold.stats.shrinkage import BOUNDED, JAMES_STEIN, Shrinkage, best_shrinkage

DRAWS = 200_000


def simulated_risks(dim, ratio, rule, distance, seed=0, projected=True):
    """Mean squared errors of the draw and of the estimate, and the standard error of their difference (sigma = 1)."""
    rng = np.random.default_rng(seed)
    mean = np.zeros(dim)
    mean[0] = distance
    y = mean + rng.standard_normal((DRAWS, dim))
    estimate = rule(y)

    def moved_in(points):
        length = np.maximum(np.linalg.norm(points, axis=1), 1e-300)
        return points * (np.minimum(length, ratio) / length)[:, None] if projected else points

    drawn = ((moved_in(y) - mean) ** 2).sum(axis=1)
    shrunk = ((moved_in(estimate) - mean) ** 2).sum(axis=1)
    return drawn.mean(), shrunk.mean(), (shrunk - drawn).std() / math.sqrt(DRAWS)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dim", "ratio"), [(1, 0.5), (1, 1.0), (2, 1.0), (3, 1.7), (6, 2.4), (10, 3.9), (21, 9.0), (45, 20.0)]
)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_the_error_is_never_larger(dim, ratio, share):
    """Simulated wherever the mean may lie; five standard errors, false alarm rate below 1e-6 each."""
    rule = best_shrinkage(dim, ratio, 1.0, projected=True)
    assert rule is not None
    drawn, shrunk, error = simulated_risks(dim, ratio, rule, share * ratio)
    assert shrunk <= drawn + 5 * error


@pytest.mark.parametrize(("dim", "ratio"), [(6, 3.1), (10, 4.8), (21, 13.8)])
def test_where_it_could_hurt_nothing_is_shrunk(dim, ratio):
    """James and Stein's estimator moved into the ball is worse than the draw at the edge: the wrong variant."""
    assert best_shrinkage(dim, ratio, 1.0, projected=True) is None
    wrong = Shrinkage(JAMES_STEIN, dim, ratio, 1.0)
    drawn, shrunk, error = simulated_risks(dim, ratio, wrong, ratio)
    assert shrunk > drawn + 2 * error


def test_without_moving_in_the_classical_theorem_applies():
    for dim in (1, 2):
        assert best_shrinkage(dim, 5.0, 1.0, projected=False) is None
    for dim, ratio in ((3, 10.0), (6, 4.0)):
        rule = best_shrinkage(dim, ratio, 1.0, projected=False)
        for share in (0.0, 0.5, 1.0):
            drawn, shrunk, error = simulated_risks(dim, ratio, rule, share * ratio, projected=False)
            assert shrunk <= drawn + 5 * error


def test_the_posterior_mean_on_the_edge_is_right():
    """In one dimension it is R tanh(R y/sigma^2)."""
    rule = Shrinkage(BOUNDED, 1, 2.0, 0.5)
    assert math.isclose(float(rule(np.array([0.1]))[0]), 2.0 * math.tanh(2.0 * 0.1 / 0.25), rel_tol=1e-12)
    assert float(Shrinkage(BOUNDED, 1000, 1.0, 1.0)(np.full(1000, 0.1))[0]) > 0


def test_a_useless_mean_is_hardly_worse_than_the_centre():
    """Twelve people, SPD(9): the draw is off by three radii, the answer by hardly more than the centre is."""
    ball = Ball(SPD(9), np.eye(9), 3.0)
    coords = np.zeros((12, 45))
    coords[:, 0] = 1.0
    X = SPD(9).exp_coords(np.eye(9), coords)
    errors, raw = [], []
    for seed in range(40):
        release = dpm.private_mean(X, ball, GDP(0.5), units=EACH_RECORD, rng=seed)
        errors.append(float(ball.space.dist(release.value, X[0])))
        raw.append(float(ball.space.dist(ball.pull_in(release.raw[None])[0], X[0])))
        assert "says nothing" in repr(release)
    assert np.mean(errors) < 1.35  # the centre itself is off by 1
    assert np.mean(raw) > 2.5


def test_releases_keep_the_draw_and_can_be_checked():
    ball = Ball(Euclidean(6), np.zeros(6), 1.0)
    X = 0.1 * np.random.default_rng(0).standard_normal((8, 6))
    release = dpm.private_mean(X, ball, GDP(0.5), units=EACH_RECORD, rng=0)
    assert release.shrinkage
    assert release.raw is not None
    again = dpm.Release.from_dict(release.to_dict())
    assert np.array_equal(again.raw, release.raw)
    assert dpm.verify(again).ok
    never = dpm.private_mean(X, ball, GDP(0.5), units=EACH_RECORD, rng=0, shrinkage=None)
    assert (never.shrinkage, never.raw) == ("", None)
    np.testing.assert_allclose(never.value, ball.pull_in(release.raw[None])[0], atol=1e-12)


def test_only_gaussian_noise_on_flat_spaces_is_shrunk():
    rng = np.random.default_rng(0)
    sphere = Ball(Sphere(5), Sphere(5).origin, 0.5)
    for ball, privacy in ((sphere, GDP(0.1)), (Ball(Euclidean(6), np.zeros(6), 1.0), PureDP(0.1))):
        X = ball.space.exp_coords(ball.center, 0.01 * rng.standard_normal((12, ball.space.dim)))
        assert dpm.private_mean(X, ball, privacy, units=EACH_RECORD).raw is None
    region = dpm.private_region(
        0.1 * rng.standard_normal((12, 6)), Ball(Euclidean(6), np.zeros(6), 1.0), GDP(0.5), units=EACH_RECORD
    )
    assert all(step.raw is None for step in (region.release, *region.release.steps))  # regions use the draw itself
    with pytest.raises(InvalidArgumentError, match="shrinkage must be"):
        dpm.private_mean(rng.random((9, 6)) / 9, Ball(Euclidean(6), np.zeros(6), 1.0), GDP(0.5), units=EACH_RECORD,
                         shrinkage="always")  # fmt: skip
