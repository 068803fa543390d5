"""What spaces say of themselves agrees with their geometry; one that says nothing gets what holds everywhere."""

import math

import numpy as np
import pytest
from scipy import stats

from dpmanifold import (
    GDP,
    SPD,
    Ball,
    Hyperbolic,
    InvalidArgumentError,
    PromiseError,
    PureDP,
    Sphere,
    frechet,
    sensitivity,
)
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms import candidates, choose
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace, SimulationSource
from dpmanifold.noise.exact_samplers import exact_sampler
from dpmanifold.privacy import loss_profile
from laws.spaces import SPACES

CURVED = [space for space in SPACES if not space.is_flat]


def directions(space, n, seed=0):
    c = np.random.default_rng(seed).standard_normal((n, space.dim))
    return c / np.linalg.norm(c, axis=1, keepdims=True)


def radii(space, n=40):
    return np.linspace(0.02, 0.98, n) * min(space.injectivity_radius, 4.0)


# -------------------------------------------------------------------- areas


@pytest.mark.parametrize("space", CURVED, ids=repr)
def test_the_default_ceiling_holds_on_every_hadamard_space(space):
    """Bishop and Gromov: J over the ceiling is at most 1, and falls along every ray."""
    area = Manifold.sphere_area(space)
    if not space.is_hadamard:
        assert area is None
        return
    t = radii(space)
    for u in directions(space, 20):
        log_ratio = space.log_volume_density(t[:, None] * u) - area.log_ceiling(t)
        assert (log_ratio <= 1e-12).all()
        assert (np.diff(log_ratio) <= 1e-12).all()
    # A ceiling for spaces that are curved half as much is none here.
    low = np.array([space.log_volume_density(t[:, None] * u) for u in directions(space, 200)]).max(axis=0)
    assert (low > (space.dim - 1) * (np.log(np.sinh(0.1 * t)) - np.log(0.1 * t))).all()


# -------------------------------------------------------------------- spaces that say nothing


class PlainPlane(Hyperbolic):
    """A hyperbolic space that knows no area of its own, nor how points are moved exactly."""

    sphere_area = Manifold.sphere_area
    farthest = Manifold.farthest

    def __init__(self, d):
        super().__init__(d)
        self.exact_points = None


class PlainMatrices(SPD):
    """Affine-invariant matrices that know no area of their own."""

    sphere_area = Manifold.sphere_area


class Mute(Sphere):
    """A closed space of which only the geometry is known."""

    sphere_area = Manifold.sphere_area
    gaussian_proof, embedding = "", Manifold.embedding

    def __init__(self, d):
        super().__init__(d)
        self.rank_one = self.stored = self.exact_points = None
        self.diameter = math.inf


@pytest.mark.parametrize("kind", [RiemannianLaplace, RiemannianGaussian])
def test_laws_drawn_below_the_default_ceiling_are_the_laws(kind):
    """The same law with two ceilings (1e-6 false alarms); without the acceptance of directions it is another one."""
    scale = 0.25 if kind is RiemannianLaplace else 0.8
    plain, known = (space(2, metric="riemann") for space in (PlainMatrices, SPD))
    n = 20_000
    draws = [kind(space, space.origin, scale).sample_coords(n, SimulationSource(seed))[0]
             for seed, space in enumerate((plain, known))]  # fmt: skip

    def told(c):
        values = np.linalg.eigvalsh(SPD(2).vector(np.eye(2), c))
        return np.linalg.norm(c, axis=1), np.ptp(values, axis=1)

    for one, other in zip(*map(told, draws), strict=True):
        assert stats.ks_2samp(one, other).pvalue > 1e-6
    source = SimulationSource(3)
    radius = kind(plain, plain.origin, scale).radius.sample(n, source)
    accepted_all = source.direction(n, plain.dim) * radius[:, None]
    assert min(
        stats.ks_2samp(a, b).pvalue for a, b in zip(told(accepted_all), told(draws[1]), strict=True)
    ) < 1e-6  # fmt: skip


def test_where_the_ceiling_is_the_area_nothing_is_rejected():
    plain = PlainPlane(3)
    law = RiemannianLaplace(plain, plain.origin, 0.2)
    c, _ = law.sample_coords(5_000, SimulationSource(1))
    exact = RiemannianLaplace(Hyperbolic(3), Hyperbolic(3).origin, 0.2)
    assert law.mean_radius() == pytest.approx(exact.mean_radius(), rel=1e-9)
    assert not law.radius_is_exact  # it cannot know
    assert np.linalg.norm(c, axis=1).mean() == pytest.approx(exact.mean_radius(), rel=0.05)


def test_a_hadamard_space_gets_the_wrapped_laws_exactly_and_others_in_doubles():
    ball = Ball(PlainPlane(2), PlainPlane(2).origin, 1.0)
    chosen, calibration, _ = choose("auto", ball, 400, PureDP(1.0))
    assert chosen.name == "wrapped-laplace"
    assert chosen.offers_exact(ball, calibration)
    about, calibration, forecast = choose("riemannian-laplace", ball, 400, PureDP(1.0))
    assert not about.offers_exact(ball, calibration)
    assert exact_sampler(ball.space, "laplace") is None
    point = about.draw(ball, calibration, ball.frame.origin, None, SimulationSource(1))
    assert ball.space.check(point) is None
    assert ball.space.dist(ball.frame.origin, point) < forecast.quantile(1 - 1e-9)


def test_a_closed_space_that_knows_nothing_has_tangent_means_and_refuses_the_rest_in_words():
    ball = Ball(Mute(2), Mute(2).origin, 0.5)
    for promise in (PureDP(1.0), GDP(1.0)):
        assert choose("auto", ball, 400, promise, "tangent")[0].offers_exact(ball, None)
        with pytest.raises(PromiseError, match="no noise law about a point is known"):
            choose("auto", ball, 400, promise)
    for mechanism in candidates(everything=True):
        with pytest.raises(PromiseError):
            choose(mechanism, ball, 400, GDP(0.5))
    with pytest.raises(InvalidArgumentError, match="tangent"):
        choose("auto", ball, 400, GDP(1.0), "extrinsic")
    with pytest.raises(InvalidArgumentError, match="Ask for the tangent mean"):
        sensitivity.of_extrinsic_mean(ball, 400)
    with pytest.raises(InvalidArgumentError, match="must lie in a space with extrinsic means"):
        frechet.extrinsic_gap(ball)
    with pytest.raises(InvalidArgumentError, match="must be a Sphere or KendallShapes"):
        loss_profile(ball.space, "gaussian", 0.3, 0.2)
    with pytest.raises(InvalidArgumentError, match="finite size"):
        Ball.whole(Mute(2))


# -------------------------------------------------------------------- other facts


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_points_exist_as_far_out_as_a_space_says(space):
    assert space.farthest > 10
    if math.isfinite(space.farthest):
        for u in space.edge_directions():
            end = space.exp_coords(space.origin, 0.999 * space.farthest * u)
            assert np.isfinite(end).all()


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_edge_directions_are_unit_vectors(space):
    np.testing.assert_allclose(np.linalg.norm(space.edge_directions(), axis=1), 1.0, atol=1e-15)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_diameter_is_reached_and_never_passed(space):
    points = space.random_point(200, rng=0)
    assert space.dist(points[:100], points[100:]).max() <= space.diameter
    if math.isfinite(space.diameter):
        first = np.eye(space.dim)[0]
        far = space.exp_coords(space.origin, space.diameter * first)
        assert space.dist(space.origin, far) == pytest.approx(space.diameter, rel=1e-12)


@pytest.mark.parametrize("space", CURVED, ids=repr)
def test_default_bounds_hold_where_a_space_has_sharper_ones(space):
    for distance in (0.1, 0.4 * min(space.radius_limit, 2.0)):
        assert space.hessian_diameter(distance) <= Manifold.hessian_diameter(space, distance) * (1 + 1e-12)


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_the_default_start_of_a_solver_is_near_the_mean(space):
    ball = Ball(space, space.origin, 0.3 * min(space.radius_limit, 1.0))
    c = ball.radius * directions(space, 30) * np.random.default_rng(1).random((30, 1))
    points = space.project(space.exp_coords(space.origin, c))
    start = Manifold.extrinsic_mean(space, points, np.full(30, 1 / 30))
    assert space.dist(start, frechet.mean(points, ball).value) < 0.05 * ball.radius


@pytest.mark.parametrize("space", [Sphere(2), Sphere(3, curvature=4.0), SPD(3), SPD(2, metric="riemann")], ids=repr)
def test_stored_numbers_stay_within_their_bounds(space):
    numbers, radius = space.stored, 0.5 * min(space.radius_limit, 2.0)
    center = 2.0 * space.origin if isinstance(space, SPD) else space.random_point(rng=1)
    ball = Ball(space, center, radius)
    c = ball.radius * (1 - 1e-9) * directions(space, 50)
    points = space.project(space.exp_coords(center, c))
    assert numbers.refusal(center) is None
    stored = [numbers.from_frame(p) for p in ball.to_frame(points)]
    for point, here in zip(points, stored, strict=True):
        np.testing.assert_allclose(numbers.carried(center, here), point, atol=1e-12)
        apart, far, slack = numbers.away(center, point, radius)
        assert apart <= far + slack + 1e-12
    gaps = np.linalg.norm(np.diff(np.array(stored), axis=0).reshape(49, -1), axis=1)
    moved = space.dist(points[:-1], points[1:])
    assert (gaps <= numbers.stretch(radius) * moved * (1 + 1e-12)).all()
    noise = np.random.default_rng(2).standard_normal((4, numbers.size))
    noisy = numbers.with_noise(stored[0], noise)
    np.testing.assert_allclose(
        np.linalg.norm((noisy - stored[0]).reshape(4, -1), axis=1), np.linalg.norm(noise, axis=1), rtol=1e-12
    )
