"""The K-norm gradient law against quadrature and importance sampling; false-alarm rate 1e-6 per check."""

import itertools

import numpy as np
import pytest
from scipy import stats

from dpmanifold import (
    SPD,
    Ball,
    Euclidean,
    Hyperbolic,
    InvalidArgumentError,
    InvalidDataError,
    KendallShapes,
    Sphere,
    sensitivity,
)
from dpmanifold.errors import SamplerError
from dpmanifold.noise import GradientLaw, gradient
from laws.data import in_ball
from laws.fit import assert_counts, assert_fits, rejects

SIZES = [20_000, pytest.param(200_000, marks=pytest.mark.slow)]


def skewed_data(ball, n, seed=0):
    """Records crowded to one side, so that the mean is off the centre and the law is not symmetric."""
    rng = np.random.default_rng(seed)
    X = in_ball(ball, n, rng)
    c = ball.space.log_coords(ball.center, X)
    c[:, 0] = np.abs(c[:, 0])
    return ball.space.project(ball.space.exp_coords(ball.center, c))


def polar_probabilities(law, ball, radii, angles, fine=40):
    """Probability of each polar cell about the centre of a ball on S^2, by the midpoint rule on a fine grid."""
    space = ball.space
    t_edges = np.concatenate([np.linspace(a, b, fine + 1)[:-1] for a, b in itertools.pairwise(radii)])
    t = t_edges + np.repeat(np.diff(radii) / fine, fine) / 2
    width = np.repeat(np.diff(radii) / fine, fine)
    per = fine // 4
    a = (np.arange(per * (len(angles) - 1)) + 0.5) * (2 * np.pi / (per * (len(angles) - 1)))
    tt, aa = np.meshgrid(t, a, indexing="ij")
    c = np.stack([tt * np.cos(aa), tt * np.sin(aa)], axis=-1)
    density = np.exp(law.logpdf(space.exp_coords(ball.center, c)).reshape(tt.shape))
    mass = density * np.sin(tt) * width[:, None]
    cells = mass.reshape(len(radii) - 1, fine, len(angles) - 1, per).sum(axis=(1, 3))
    return cells / cells.sum()


def cell_counts(ball, points, radii, angles):
    c = ball.space.log_coords(ball.center, points)
    angle = np.arctan2(c[:, 1], c[:, 0]) % (2 * np.pi)
    return np.histogram2d(np.linalg.norm(c, axis=1), angle, bins=[radii, angles])[0]


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(("radius", "scale"), [(np.pi / 8, 0.05), (0.7, 0.1)])
def test_sphere_against_quadrature(radius, scale, n):
    ball = Ball(Sphere(2), [0.0, 0.6, 0.8], radius)
    law = GradientLaw(ball, skewed_data(ball, 60), scale)
    radii, angles = np.linspace(0, radius, 7), np.linspace(0, 2 * np.pi, 9)
    # The last ring's outer edge must hold draws at the edge exactly.
    radii[-1] = radius * (1 + 1e-12)
    probabilities = polar_probabilities(law, ball, radii, angles).ravel()
    counts = cell_counts(ball, law.sample(n, rng=1), radii, angles).ravel()
    keep = probabilities * n >= 10
    rest = 1 - probabilities[keep].sum()
    if rest * n >= 10:
        assert_counts(np.append(counts[keep], counts[~keep].sum()), np.append(probabilities[keep], rest))
    else:
        assert_counts(counts[keep], probabilities[keep] / probabilities[keep].sum())


@pytest.mark.slow
def test_wrong_gradient_samplers_are_caught_by_the_quadrature():
    """A scale that is off by 3 %, and a law without its acceptance step where that matters."""
    ball = Ball(Sphere(2), [0.0, 0.6, 0.8], 0.7)
    X = skewed_data(ball, 60)
    law = GradientLaw(ball, X, 0.1)
    radii, angles = np.linspace(0, 0.7 * (1 + 1e-12), 5), np.linspace(0, 2 * np.pi, 5)
    probabilities = polar_probabilities(law, ball, radii, angles).ravel()
    wrong = GradientLaw(ball, X, 0.103).sample(200_000, rng=2)
    with pytest.raises(AssertionError, match="counts do not fit"):
        assert_counts(cell_counts(ball, wrong, radii, angles).ravel(), probabilities)

    def accept_everything(n, source):
        drawn, _, tried = GradientLaw._propose(law, n, source)
        return drawn, space.dist(space.origin, drawn) <= ball.radius, tried

    space = ball.frame
    law._propose = accept_everything
    with pytest.raises(AssertionError, match="counts do not fit"):
        assert_counts(cell_counts(ball, law.sample(200_000, rng=3), radii, angles).ravel(), probabilities)


@pytest.mark.parametrize("space", [Euclidean(3), SPD(2)], ids=repr)
def test_flat_gradient_law_is_the_laplace(space):
    ball = Ball(space, space.origin, 5.0)
    X = in_ball(ball, 40, np.random.default_rng(4))
    law = GradientLaw(ball, X, 0.02)
    center = space.exp_coords(space.origin, space.log_coords(space.origin, X).mean(axis=0))
    assert_fits(space.dist(center, law.sample(20_000, rng=5)), stats.gamma(3, scale=0.02).cdf)
    assert rejects(space.dist(center, law.sample(20_000, rng=5)), stats.gamma(3, scale=0.0206).cdf)


def weighted_ks(draws, reference, weights):
    """Largest distance between the ECDF of draws and a weighted one, and the threshold at false-alarm rate 1e-6."""
    order = np.argsort(reference)
    cdf = np.cumsum(weights[order]) / weights.sum()
    grid = np.sort(draws)
    theirs = np.interp(grid, reference[order], cdf)
    ours = np.arange(1, len(grid) + 1) / len(grid)
    effective = weights.sum() ** 2 / (weights**2).sum()
    # Two-sample Kolmogorov-Smirnov with the effective sample size of the weighted side.
    return np.abs(ours - theirs).max(), 2.7 * np.sqrt(1 / len(grid) + 1 / effective), effective


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ball", "scale"),
    [
        (Ball(KendallShapes(4), KendallShapes(4).random_point(rng=6), 0.36), 0.05),
        (Ball(SPD(2, metric="riemann"), np.diag([2.0, 0.5]), 1.0), 0.1),
        (Ball(SPD(3, metric="riemann"), np.eye(3), 1.0), 0.08),
        (Ball(Hyperbolic(2), Hyperbolic(2).origin, 1.5), 0.1),
    ],
    ids=lambda x: repr(x) if isinstance(x, Ball) else None,
)
def test_curved_gradient_law_against_importance_sampling(ball, scale):
    space = ball.space
    X = skewed_data(ball, 30)
    law = GradientLaw(ball, X, scale)
    draws = law.sample(8_000, rng=7)
    assert ball.contains(draws).all()
    rng = np.random.default_rng(8)
    c = rng.standard_normal((150_000, space.dim))
    c *= (ball.radius * rng.random(len(c)) ** (1 / space.dim) / np.linalg.norm(c, axis=1))[:, None]
    points = space.project(space.exp_coords(ball.center, c))
    log_weights = law.logpdf(points) + space.log_volume_density(c)
    weights = np.exp(log_weights - log_weights.max())
    axis = np.eye(space.dim)[0]
    for statistic in (ball.distance_to_center, lambda x: space.log_coords(ball.center, x) @ axis):
        distance, threshold, effective = weighted_ks(statistic(draws), statistic(points), weights)
        assert effective > 1000
        assert distance <= threshold
    # A law that is 15 % wider is told apart.
    wider = GradientLaw(ball, X, 1.15 * scale).sample(8_000, rng=7)
    first, second = ball.distance_to_center, lambda x: space.log_coords(ball.center, x) @ axis
    assert any(
        weighted_ks(statistic(wider), statistic(points), weights)[0]
        > weighted_ks(statistic(wider), statistic(points), weights)[1]
        for statistic in (first, second)
    )


BENT = [
    Ball(Sphere(2), [1.0, 0.0, 0.0], 0.77),
    Ball(Sphere(10), Sphere(10).origin, 0.5),
    Ball(KendallShapes(8), KendallShapes(8).origin, 0.38),
    Ball(SPD(3, metric="riemann"), np.eye(3), 2.0),
    Ball(Hyperbolic(3), Hyperbolic(3).origin, 2.0),
]


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("ball", BENT, ids=repr)
def test_gradient_never_falls_below_its_floor(ball, share):
    """The inequality the sampler rests on, at random points and for data in the middle, anywhere and on the edge."""
    space = ball.space
    X = in_ball(ball, 25, np.random.default_rng(9), edge=share == 1.0)
    if share == 0.5:
        X[:20] = X[0]
    law = GradientLaw(ball, X, 0.2 / space.dim**2)
    points = ball.to_frame(in_ball(ball, 4_000, np.random.default_rng(10)))
    t = space.dist(law._mean, points)
    floor = np.interp(t, law._knots, law._floor)
    assert (law._gradient_norm(points) >= floor - law.tol).all()
    # A floor 1.6 times as high is broken somewhere: the check is not vacuous.
    assert (law._gradient_norm(points) < 1.6 * floor + law.tol).any()


def test_an_invalid_floor_is_noticed(monkeypatch):
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.7)
    X = in_ball(ball, 25, np.random.default_rng(9), edge=True)
    monkeypatch.setattr(gradient, "u_cot_u", lambda u: np.full_like(u, 1.5))
    with pytest.raises(SamplerError, match="above 1"):
        GradientLaw(ball, X, 0.05).sample(500, rng=0)


def test_acceptance_at_release_scales():
    """Theory section 4: 0.9 and more on S^2, 0.5 and more at d = 30, n = 1000, r = pi/8."""
    for space, n, least in ((Sphere(2), 200, 0.9), (Sphere(30), 1000, 0.5)):
        ball = Ball(space, space.origin, np.pi / 8)
        scale = 2 * sensitivity.of_gradient(ball, n).value
        _, proposals = GradientLaw(ball, in_ball(ball, n, np.random.default_rng(11)), scale).sample_counted(400, rng=12)
        assert 400 / proposals >= least


def test_bad_input():
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    X = in_ball(ball, 4, np.random.default_rng(0))
    with pytest.raises(InvalidArgumentError, match="ball must be a Ball"):
        GradientLaw(Sphere(2), X, 0.1)
    with pytest.raises(InvalidDataError, match="at least one record"):
        GradientLaw(ball, np.zeros((0, 3)), 0.1)
    for scale in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InvalidArgumentError, match="scale"):
            GradientLaw(ball, X, scale)
    with pytest.raises(InvalidArgumentError, match="tol"):
        GradientLaw(ball, X, 0.1, tol=1e-30)


@pytest.mark.parametrize("scale", [1e-6, 1e-3, 1e3, 1e300])
def test_extreme_scales(scale):
    ball = Ball(Sphere(2), [1.0, 0.0, 0.0], 0.5)
    draws = GradientLaw(ball, in_ball(ball, 10, np.random.default_rng(0)), scale).sample(20, rng=0)
    assert ball.contains(draws).all()


def test_hopeless_laws_are_refused_from_public_numbers_alone():
    """Whatever the data are: the same refusal for records at the centre and at the edge, and before any draw."""
    for space, radius, scale in (
        (Sphere(2), 0.5, 1e-300),
        (Euclidean(2), 0.5, 1e-300),
        (Euclidean(20), 1.0, 4.0),
        (Hyperbolic(10), 5.0, 4.0),
        (SPD(5, metric="riemann"), 5.0, 2.0),
        (Sphere(30), np.pi / 8, 0.02),
    ):
        ball = Ball(space, space.origin, radius)
        edge = space.project(space.exp_coords(space.origin, 0.99 * radius * np.eye(space.dim)[:1]))
        for record in (space.origin[None], edge):
            with pytest.raises(InvalidArgumentError, match="scale"):
                GradientLaw(ball, np.repeat(record, 10, axis=0), scale)


def test_records_without_a_shape_do_not_stop_the_law():
    shapes = KendallShapes(5)
    ball = Ball(shapes, shapes.origin, 0.3)
    X = np.random.default_rng(0).standard_normal((5, 5, 2))
    X[0] = 3.0
    assert GradientLaw(ball, X, 0.01).sample(3, rng=0).shape == (3, 5)
