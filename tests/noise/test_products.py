"""Gaussian noise about a point of a product of round and flat spaces."""

import numpy as np
import pytest
from scipy import stats

from dpmanifold import (
    GDP,
    SPD,
    Ball,
    Euclidean,
    InvalidArgumentError,
    KendallShapes,
    Product,
    Sphere,
    private_mean,
    sensitivity,
)
from dpmanifold.mechanisms import candidates, choose
from dpmanifold.noise import RiemannianGaussian, SimulationSource, exact_sampler, products
from dpmanifold.stats import EACH_RECORD
from laws import replay
from laws.adversary import worst_neighbours
from laws.mechanism_laws import MechanismLaws

ROUND = Product([Sphere(2)] * 2, weights=[1.0, 3.0])
WITH_FLAT = Product([Product([KendallShapes(4), Sphere(1)]), SPD(2)], weights=[2.0, 0.3])
SCALE = 0.2
SAMPLER = exact_sampler(ROUND, "gaussian")


def balls():
    return [Ball(space, space.random_point(rng=1), 0.8 * min(space.radius_limit, 1.0)) for space in (ROUND, WITH_FLAT)]


class TestOnProducts(MechanismLaws):
    """The laws of all mechanisms, with neighbours that differ in all factors at once."""

    name = "riemannian-gaussian"
    balls = balls()

    def neighbours(self, ball, calibration):
        frame, half = ball.frame, calibration.sensitivity.value / 2
        step = half * frame.edge_directions()[-1]
        means = frame.exp_coords(frame.origin, np.stack([step, -step]))
        return tuple(self.mechanism.law(ball, calibration, mean, None) for mean in means)


def lengths(space, points):
    """Distances of the factors from the origin's, in their own units, (m, n)."""
    parts = zip(space.factors, space.split(space.origin), space.split(points), strict=True)
    return np.array([factor.dist(origin, part) for factor, origin, part in parts])


def test_exact_draws_have_the_law_of_independent_factors_of_scale_over_weight():
    """Kolmogorov and Smirnov against draws in doubles, 1e-6 false alarms; the scale without the weight is rejected."""
    source = SimulationSource(1)
    numbers = [SAMPLER.draw(ROUND.origin, SCALE, -40, source) for _ in range(700)]
    found = lengths(ROUND, np.stack([SAMPLER.place(one) for one in numbers]))
    for drawn, a in zip(found, ROUND.weights, strict=True):
        law = RiemannianGaussian(Sphere(2), Sphere(2).origin, SCALE / a)
        true = Sphere(2).dist(Sphere(2).origin, law.sample(20_000, rng=2))
        assert stats.ks_2samp(drawn, true).pvalue > 1e-6
    unweighted = RiemannianGaussian(Sphere(2), Sphere(2).origin, SCALE).sample(20_000, rng=2)
    assert stats.ks_2samp(found[1], Sphere(2).dist(Sphere(2).origin, unweighted)).pvalue < 1e-6
    assert stats.spearmanr(*found).pvalue > 1e-6


def test_draws_in_doubles_and_densities_agree_with_the_factors():
    """Mean lengths within 5 %, six standard errors: false alarms 1e-8; the scale without the weight is rejected."""
    law = products.ProductGaussian(ROUND, ROUND.origin, SCALE)
    points = law.sample(4000, rng=3)
    found = lengths(ROUND, points)

    def agrees(drawn, scale):
        true = RiemannianGaussian(Sphere(2), Sphere(2).origin, scale).radius
        return abs(drawn.mean() / true.mean() - 1) < 0.05

    assert all(agrees(drawn, SCALE / a) for drawn, a in zip(found, ROUND.weights, strict=True))
    assert not agrees(found[1], SCALE)
    apart = np.diff(law.logpdf(points[:2]))[0]
    squares = ROUND.dist(ROUND.origin, points[:2]) ** 2
    assert apart == pytest.approx(-np.diff(squares)[0] / (2 * SCALE**2), rel=1e-9)


def test_grids_are_as_fine_for_every_factor():
    """Numbers of a factor with a large weight are multiplied by a power of two, and come back."""
    heavy = Product([Sphere(2), Euclidean(2)], weights=[1000.0, 0.001])
    sampler = exact_sampler(heavy, "gaussian")
    numbers = sampler.draw(heavy.origin, 0.01, -37, SimulationSource(2))
    assert (numbers % 2.0**-37 == 0).all()
    away = lengths(heavy, sampler.place(numbers))
    assert 1e-6 < away[0] < 1e-4  # noise of 1e-5 in its own units
    assert 1 < away[1] < 60
    assert sampler.size == len(numbers)
    assert sampler.largest(0.5) >= 512


def test_where_it_is_not_known_it_is_refused_in_words():
    mixed = Product([Sphere(2), SPD(2, metric="riemann")])
    assert not mixed.has_gaussian
    with pytest.raises(InvalidArgumentError, match="tangent space of a public centre"):
        products.ProductGaussian(mixed, mixed.origin, SCALE)
    assert exact_sampler(ROUND, "laplace") is None
    assert exact_sampler(mixed, "gaussian") is None
    ball = Ball(ROUND, ROUND.origin, 0.5)
    assert choose("auto", ball, 400, GDP(1.0))[0].name == "riemannian-gaussian"
    exact = next(one for one in candidates(everything=True) if one.name == "riemannian-gaussian-exact")
    assert "exact profiles are known on spheres" in exact.refusal(ball, GDP(1.0))


def test_releases_on_round_products_are_exact_and_verify():
    ball = balls()[1]
    X = WITH_FLAT.exp_coords(ball.center, 0.02 * np.random.default_rng(0).standard_normal((300, WITH_FLAT.dim)))
    release = private_mean(X, ball, GDP(1.0), units=EACH_RECORD)
    assert release.verify().ok
    assert release.is_exact


def test_what_draws_tell_together_stays_within_the_promise(monkeypatch):
    """On the worst neighbours that a search finds: each factor's draw tells its distance over its scale."""
    ball = Ball(ROUND, ROUND.origin, 0.9 * ROUND.radius_limit)
    found, X, Y = worst_neighbours(ball, 20, np.random.default_rng(0), generations=40)

    def call(records):
        return private_mean(records, ball, GDP(1.0), units=EACH_RECORD, arithmetic="exact", confirm=True)

    draws = replay.told(call, X, Y, monkeypatch)
    assert [(draw.kind, draw.law) for draw in draws] == [("curved", "gaussian")] * 2
    together = float(np.linalg.norm([draw.loss for draw in draws]))
    expected = found / 20 / sensitivity.of_mean(ball, 20).value
    assert together == pytest.approx(expected, rel=1e-6)
    assert 0.5 < together <= 1
