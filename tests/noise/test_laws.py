"""Every law on every space: radius, directions, eigenvalues, densities, refusals; and wrong samplers to be caught.

Radius laws are compared with CDFs tabulated here from the formulas of theory sections 2 and 4, independently of
RadialLaw. False-alarm rate 1e-6 per check; 20,000 draws by default, 200,000 in the slow tier.
"""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from dpmanifold import SPD, Ball, Euclidean, Hyperbolic, InvalidArgumentError, InvalidDataError, KendallShapes, Sphere
from dpmanifold.linalg import from_vecd
from dpmanifold.noise import (
    RiemannianGaussian,
    RiemannianLaplace,
    SimulationSource,
    SystemSource,
    WrappedGaussian,
    WrappedLaplace,
    distance,
)
from dpmanifold_papers.chains import flat_laplace_chain, metropolis
from laws.fit import assert_fits, assert_mean, rejects, tabulated_cdf

LAWS = {"laplace": RiemannianLaplace, "gaussian": RiemannianGaussian}
RANK_ONE = [
    Sphere(1), Sphere(2), Sphere(10), Sphere(45), Hyperbolic(2), Hyperbolic(10), KendallShapes(4), KendallShapes(8),
    KendallShapes(30), Sphere(3, curvature=4.0), Hyperbolic(3, curvature=-2.0), Hyperbolic(1), Euclidean(3),
    *(SPD(k) for k in (1, 2, 3, 5, 10, 20)), SPD(1, metric="riemann"),
]  # fmt: skip
SIZES = [20_000, pytest.param(200_000, marks=pytest.mark.slow)]


def scale_for(space, law, radius=0.5):
    """A scale at which the radius is about `radius`."""
    return radius / space.dim if law == "laplace" else radius / math.sqrt(space.dim)


def phi(law, scale, t):
    return t / scale if law == "laplace" else (t / scale) ** 2 / 2


def log_area(space, t):
    d = space.dim
    if space.is_flat:
        return (d - 1) * np.log(t)
    kappa = abs(space.curvature[1]) if space.curvature[1] else 1.0
    if isinstance(space, KendallShapes):
        return (d - 1) * np.log(np.sin(t)) + np.log(np.cos(t))
    if isinstance(space, Sphere):
        return (d - 1) * np.log(np.sin(np.sqrt(kappa) * t)) if d > 1 else np.zeros_like(t)
    return (d - 1) * np.log(np.sinh(np.sqrt(abs(space.curvature[0])) * t))


def end_of(space, law, scale):
    far = 60 * scale * max(1, space.dim) if law == "laplace" else scale * (40 + 4 * math.sqrt(space.dim))
    return min(far, space.injectivity_radius, 20.0)


def exact_cdf(space, law, scale):
    end = end_of(space, law, scale)
    # The even grid must resolve a radius of width mean/sqrt(dim).
    return tabulated_cdf(lambda t: log_area(space, t) - phi(law, scale, t), 0.0, end, points=200_001)


# -------------------------------------------------------------------- radius and directions


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("space", RANK_ONE, ids=repr)
def test_radius_and_directions(space, law, n):
    n = min(n, 5_000_000 // max(space.dim, 25))
    scale = scale_for(space, law)
    footpoint = space.random_point(rng=1)
    points = LAWS[law](space, footpoint, scale).sample(n, rng=2)
    radius = space.dist(footpoint, points)
    assert_fits(radius, exact_cdf(space, law, scale))
    c = space.log_coords(footpoint, points)
    direction = c / np.linalg.norm(c, axis=1, keepdims=True)
    if space.dim == 1:
        assert stats.binomtest(int((direction > 0).sum()), n).pvalue > 1e-6
        return
    # A coordinate of a uniform direction: (1 + u)/2 is Beta((d-1)/2, (d-1)/2).
    beta = stats.beta((space.dim - 1) / 2, (space.dim - 1) / 2)
    for i in {0, space.dim // 2, space.dim - 1}:
        assert_fits((1 + direction[:, i]) / 2, beta.cdf)
    # Radius and direction are independent.
    assert_mean(direction[:, 0] * (radius > np.median(radius)), 0.0, math.sqrt(0.5 / space.dim))


@pytest.mark.parametrize("space", [Sphere(10), Hyperbolic(10), KendallShapes(8), SPD(5)], ids=repr)
@pytest.mark.parametrize("law", LAWS)
def test_wrong_samplers_are_caught_by_the_radius(space, law):
    """The same check refuses a scale that is off by 3 %, and a radius drawn without the space's area."""
    n, scale = 20_000, scale_for(space, law, radius=0.8)
    cdf = exact_cdf(space, law, scale)
    footpoint = space.origin
    radius = space.dist(footpoint, LAWS[law](space, footpoint, scale).sample(n, rng=3))
    assert not rejects(radius, cdf)
    off = space.dist(footpoint, LAWS[law](space, footpoint, 1.03 * scale).sample(n, rng=3))
    assert rejects(off, cdf)
    if not space.is_flat:
        flat = Euclidean(space.dim)
        assert rejects(np.linalg.norm(LAWS[law](flat, flat.origin, scale).sample(n, rng=3), axis=1), cdf)


def test_wrong_directions_are_caught():
    rng = np.random.default_rng(0)
    skewed = rng.standard_normal((20_000, 5)) * [1.1, 1, 1, 1, 1]
    skewed /= np.linalg.norm(skewed, axis=1, keepdims=True)
    assert rejects((1 + skewed[:, 0]) / 2, stats.beta(2, 2).cdf)


@pytest.mark.parametrize("space", [Sphere(2), SPD(3, metric="riemann"), Euclidean(4)], ids=repr)
def test_system_bits_give_the_same_law(space):
    law = RiemannianGaussian(space, space.origin, 0.1)
    system = space.dist(space.origin, law.sample(20_000, rng=SystemSource()))
    seeded = space.dist(space.origin, law.sample(20_000, rng=0))
    assert stats.ks_2samp(system, seeded).pvalue > 1e-6


# -------------------------------------------------------------------- affine-invariant matrices


def eigenvalue_grid(k, law, scale, end, points):
    """Radius grid and, per radius, the mean volume factor over eigenvalue directions: deterministic quadrature."""
    if k == 2:
        angle = np.linspace(0, 2 * np.pi, 2001)[:-1]
        directions = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        weights = np.ones(len(angle))
    else:
        z, w = np.polynomial.legendre.leggauss(200)
        angle = np.linspace(0, 2 * np.pi, 401)[:-1]
        s = np.sqrt(1 - z**2)
        directions = np.stack(
            [np.outer(s, np.cos(angle)), np.outer(s, np.sin(angle)), np.outer(z, np.ones_like(angle))], axis=-1
        ).reshape(-1, 3)
        weights = np.repeat(w, len(angle))
    t = np.linspace(0, end, points + 1)[1:]
    rows, columns = np.triu_indices(k, 1)
    gaps = np.abs(directions[:, rows] - directions[:, columns])
    return t, directions, gaps, weights


def quadrature_tables(k, law, scale):
    """CDF of the radius and of the largest eigenvalue's share of it, by integration over eigenvalues."""
    end = 30 * scale * k if law == "laplace" else 12 * scale * k
    t, directions, gaps, weights = eigenvalue_grid(k, law, scale, end, 800)
    density = np.empty((len(t), len(directions)))
    for i, r in enumerate(t):
        # Lebesgue measure on eigenvalues gives r^(k-1); the Vandermonde factor and J together are hyperbolic sines
        # of half the gaps.
        density[i] = weights * np.sinh(gaps * r / 2).prod(axis=1)
        density[i] *= np.exp((k - 1) * np.log(r) - phi(law, scale, r))
    radial = density.sum(axis=1)
    cumulative = integrate.cumulative_trapezoid(radial, t, initial=0)
    by_direction = density.sum(axis=0)
    top = directions.max(axis=1)
    order = np.argsort(top)
    share = np.cumsum(by_direction[order])
    return (
        lambda x: np.interp(x, t, cumulative / cumulative[-1]),
        lambda x: np.interp(x, top[order], share / share[-1]),
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_affine_eigenvalues_follow_independent_quadrature(k, law, n):
    space = SPD(k, metric="riemann")
    scale = scale_for(space, law, radius=1.5)
    footpoint = space.random_point(rng=4)
    points = LAWS[law](space, footpoint, scale).sample(n, rng=5)
    c = space.log_coords(footpoint, points)
    radius = np.linalg.norm(c, axis=1)
    values, vectors = np.linalg.eigh(from_vecd(c))
    radius_cdf, top_cdf = quadrature_tables(k, law, scale)
    assert_fits(radius, radius_cdf)
    assert_fits(values[:, -1] / radius, top_cdf)
    # Eigenvectors are Haar distributed: a squared entry is Beta(1/2, (k-1)/2).
    assert_fits(vectors[:, 0, -1] ** 2, stats.beta(0.5, (k - 1) / 2).cdf)


def test_affine_sampler_with_acceptance_inverted_or_dropped_is_caught(monkeypatch):
    k, n, scale = 3, 20_000, 1.5
    space = SPD(k, metric="riemann")
    radius_cdf, top_cdf = quadrature_tables(k, "gaussian", scale)

    def caught():
        points = RiemannianGaussian(space, space.origin, scale).sample(n, rng=6)
        values = np.linalg.eigvalsh(from_vecd(space.log_coords(space.origin, points)))
        radius = np.linalg.norm(values, axis=1)
        return rejects(radius, radius_cdf) or rejects(values[:, -1] / radius, top_cdf)

    assert not caught()
    true_density = SPD.log_volume_density
    area = distance.area_of(space)
    monkeypatch.setattr(SPD, "log_volume_density", lambda self, c: area.log_ceiling(np.linalg.norm(c, axis=1)))
    assert caught()  # every proposal accepted: the Jacobian's dependence on the direction is lost

    def inverted(self, c):
        t = np.linalg.norm(c, axis=1)
        return area.log_ceiling(t) - 0.5 - (true_density(self, c) - area.log_ceiling(t))

    monkeypatch.setattr(
        SPD,
        "log_volume_density",
        lambda self, c: np.minimum(inverted(self, c), area.log_ceiling(np.linalg.norm(c, axis=1))),
    )
    assert caught()


def affine_radius_cdf(space, law, scale, directions=20_000):
    """CDF of the radius from the mean volume density over many directions; its own error is below 1e-3."""
    rng = np.random.default_rng(99)
    u = rng.standard_normal((directions, space.dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    values = np.linalg.eigvalsh(from_vecd(u))
    rows, columns = np.triu_indices(space.size, 1)
    gaps = (values[:, columns] - values[:, rows]) / 2
    end = 3.0
    t = np.linspace(0, end, 301)[1:]
    log_mean = np.empty(len(t))
    for i, r in enumerate(t):
        x = gaps * r
        log_j = (x + np.log(-np.expm1(-2 * x)) - np.log(2 * x)).sum(axis=1)
        log_mean[i] = np.log(np.mean(np.exp(log_j - log_j.max()))) + log_j.max()
    fine = np.linspace(0, end, 100_001)[1:]
    height = np.interp(fine, t, log_mean) + (space.dim - 1) * np.log(fine) - phi(law, scale, fine)
    mass = integrate.cumulative_trapezoid(np.exp(height - height.max()), fine, initial=0)
    return lambda x: np.interp(x, fine, mass / mass[-1])


@pytest.mark.parametrize(
    ("k", "n"), [(5, 20_000), pytest.param(10, 4_000, marks=pytest.mark.slow),
                 pytest.param(20, 1_000, marks=pytest.mark.slow), pytest.param(5, 200_000, marks=pytest.mark.slow),
                 pytest.param(10, 200_000, marks=pytest.mark.slow), pytest.param(20, 50_000, marks=pytest.mark.slow)]
)  # fmt: skip
@pytest.mark.parametrize("law", LAWS)
def test_affine_radius_for_larger_matrices(k, n, law):
    space = SPD(k, metric="riemann")
    scale = scale_for(space, law, radius=1.0)
    footpoint = space.exp_coords(space.origin, np.random.default_rng(7).standard_normal(space.dim) * 0.1)
    points = LAWS[law](space, footpoint, scale).sample(n, rng=8)
    directions = 20_000 if k < 20 else 5_000
    assert_fits(space.dist(footpoint, points), affine_radius_cdf(space, law, scale, directions))
    # Eigenvectors are Haar distributed: a squared entry is Beta(1/2, (k-1)/2).
    vectors = np.linalg.eigh(from_vecd(space.log_coords(footpoint, points)))[1]
    assert_fits(vectors[:, 0, -1] ** 2, stats.beta(0.5, (k - 1) / 2).cdf)


def gap_statistics(space, law, scale, n):
    """Draws' radius and relative eigenvalue spread, and the same with the direction's acceptance left out."""
    exact = LAWS[law](space, space.origin, scale)
    values = np.linalg.eigvalsh(from_vecd(exact.sample_coords(n, SimulationSource(21))[0]))
    source = SimulationSource(22)
    t = exact.radius.sample(n, source)
    dropped = np.linalg.eigvalsh(from_vecd(source.direction(n, space.dim) * t[:, None]))
    return [(np.linalg.norm(v, axis=1), np.ptp(v, axis=1) / np.linalg.norm(v, axis=1)) for v in (values, dropped)]


@pytest.mark.parametrize(("k", "scale"), [(5, 1.2), (10, 0.7)])
def test_dropping_the_acceptance_of_directions_is_seen_on_larger_matrices(k, scale):
    """At a scale where the step matters: weights from importance sampling say what the law should be."""
    space = SPD(k, metric="riemann")
    (radius, spread), (raw_radius, raw_spread) = gap_statistics(space, "gaussian", scale, 4000)
    rng = np.random.default_rng(23)
    u = rng.standard_normal((20_000, space.dim))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    law = RiemannianGaussian(space, space.origin, scale)
    t = law.radius.sample(20_000, SimulationSource(24))
    c = u * t[:, None]
    weights = np.exp(space.log_volume_density(c) - distance.area_of(space).log_ceiling(t))
    assert weights.mean() < 0.8
    values = np.linalg.eigvalsh(from_vecd(c))
    reference = np.ptp(values, axis=1) / t

    def differs(sample, target):
        order = np.argsort(target)
        cdf = np.cumsum(weights[order]) / weights.sum()
        gap = np.abs(np.arange(1, len(sample) + 1) / len(sample) - np.interp(np.sort(sample), target[order], cdf)).max()
        effective = weights.sum() ** 2 / (weights**2).sum()
        return gap > 2.7 * math.sqrt(1 / len(sample) + 1 / effective)

    assert not differs(radius, t)
    assert not differs(spread, reference)
    assert differs(raw_radius, t) or differs(raw_spread, reference)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_affine_draws_match_a_long_chain(law):
    space = SPD(5, metric="riemann")
    scale = scale_for(space, law, radius=1.5)
    exact_law = LAWS[law](space, space.origin, scale)
    step = (1.5 if law == "gaussian" else 0.6 * math.sqrt(space.dim)) * scale / math.sqrt(space.dim) * 1.2
    chained, accepted = metropolis(exact_law, steps=700, step=step, rng=9, chains=3000)
    assert 0.1 < accepted < 0.7
    exact = exact_law.sample(30_000, rng=10)
    for statistic in (
        lambda x: space.dist(space.origin, x),
        lambda x: np.ptp(np.log(np.linalg.eigvalsh(x)), axis=1),
        lambda x: np.log(np.linalg.eigvalsh(x)[:, 2]),
        lambda x: np.linalg.slogdet(x)[1],
    ):
        assert stats.ks_2samp(statistic(chained), statistic(exact)).pvalue > 1e-6


# -------------------------------------------------------------------- the noise does not see where the data are


@pytest.mark.parametrize(
    "space",
    [Euclidean(3), Sphere(2), Hyperbolic(3), KendallShapes(5), SPD(3), SPD(3, metric="riemann")],
    ids=repr,
)
@pytest.mark.parametrize("law", LAWS)
def test_moving_the_footpoint_changes_neither_radius_nor_work(space, law):
    scale = scale_for(space, law)
    drawn = []
    for footpoint in space.random_point(4, rng=11):
        one = LAWS[law](space, footpoint, scale)
        coords, proposals = one.sample_coords(500, SimulationSource(12))
        points, counted = one.sample_counted(500, rng=12)
        drawn.append((coords, proposals))
        assert counted == proposals
        np.testing.assert_allclose(space.dist(footpoint, points), np.linalg.norm(coords, axis=1), rtol=1e-6, atol=1e-9)
    for coords, proposals in drawn[1:]:
        np.testing.assert_array_equal(coords, drawn[0][0])
        assert proposals == drawn[0][1]


# -------------------------------------------------------------------- densities


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "space",
    [
        Sphere(1),
        Sphere(2),
        Sphere(5),
        Hyperbolic(2),
        Hyperbolic(4, curvature=-2.0),
        KendallShapes(3),
        KendallShapes(6),
        Euclidean(2),
        SPD(2),
    ],
    ids=repr,
)
def test_density_integrates_to_one(space, law):
    scale = scale_for(space, law)
    one = LAWS[law](space, space.origin, scale)
    assert one.normalized
    first = np.eye(space.dim)[0]
    unit = 2 * math.pi ** (space.dim / 2) / math.gamma(space.dim / 2)

    def integrand(t):
        height = float(one.logpdf(space.exp_coords(space.origin, t * first)))
        return unit * t ** (space.dim - 1) * math.exp(height + float(space.log_volume_density(t * first)))

    end = end_of(space, law, scale)
    total = integrate.quad(integrand, 0, end * (1 - 1e-12), limit=200, points=[scale, 0.5, end / 4])[0]
    np.testing.assert_allclose(total, 1.0, rtol=1e-6)


@pytest.mark.parametrize("kind", [WrappedGaussian, WrappedLaplace])
@pytest.mark.parametrize(
    "space",
    [Euclidean(3), Hyperbolic(10), *(SPD(k, metric=m) for m in ("logeuclid", "riemann") for k in (1, 3, 5, 10, 20))],
    ids=repr,
)
def test_wrapped_noise_has_its_law_in_the_tangent_space(space, kind):
    scale = 0.5 / space.dim
    shift = 0.5 * np.eye(space.dim)[0]
    law = kind(space, space.origin, space.exp_coords(space.origin, shift), scale)
    n = 20_000 if space.dim < 60 else 1_000
    length = np.linalg.norm(space.log_coords(space.origin, law.sample(n, rng=25)) - shift, axis=1)
    cdf = stats.chi(space.dim).cdf if kind is WrappedGaussian else stats.gamma(space.dim).cdf
    assert_fits(length / scale, cdf)


def test_wrapped_law_on_weakly_curved_space_is_not_cut():
    space = Hyperbolic(2, curvature=-1e-6)
    law = WrappedGaussian(space, space.origin, space.exp_coords(space.origin, [500.0, 0.0]), 1.0)
    z = space.log_coords(space.origin, law.sample(5000, rng=0)) - [500.0, 0.0]
    assert_fits(np.linalg.norm(z, axis=1), stats.chi(2).cdf)


@pytest.mark.parametrize("kind", [WrappedGaussian, WrappedLaplace])
@pytest.mark.parametrize("space", [Hyperbolic(2), SPD(2), SPD(2, metric="riemann")], ids=repr)
def test_wrapped_density_integrates_to_one_and_draws_follow_it(space, kind):
    rng = np.random.default_rng(13)
    value = space.exp_coords(space.origin, 0.5 * np.eye(space.dim)[0])
    law = kind(space, space.origin, value, 0.1)
    # Importance sampling in normal coordinates at the centre: the volume element is J dc.
    c = rng.uniform(-2.0, 3.0, (400_000, space.dim))
    weights = np.exp(law.logpdf(space.exp_coords(space.origin, c)) + space.log_volume_density(c)) * 5.0**space.dim
    error = weights.std() / math.sqrt(len(weights))
    assert abs(weights.mean() - 1) < 5 * error
    z = space.log_coords(space.origin, law.sample(20_000, rng=14)) - 0.5 * np.eye(space.dim)[0]
    length = np.linalg.norm(z, axis=1)
    if kind is WrappedGaussian:
        assert_fits(length / 0.1, stats.chi(space.dim).cdf)
    else:
        assert_fits(length, stats.gamma(space.dim, scale=0.1).cdf)
        assert rejects(length, stats.gamma(space.dim, scale=0.103).cdf)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "space",
    [Sphere(2), Euclidean(2), Hyperbolic(2), KendallShapes(4), SPD(2, metric="riemann")],
    ids=repr,
)
def test_truncated_law_is_the_law_given_the_ball(space, law):
    ball = Ball(space, space.random_point(rng=15), 0.35)
    footpoint = ball.clip(space.exp_coords(ball.center, 0.36 * np.eye(space.dim)[0]))  # on the edge
    scale = 0.2 / space.dim
    draws = LAWS[law](space, footpoint, scale, ball=ball).sample(20_000, rng=16)
    assert ball.contains(draws).all()
    whole = LAWS[law](space, footpoint, scale).sample(200_000, rng=17)
    inside = whole[ball.contains(whole)]
    for statistic in (lambda x: space.dist(footpoint, x), ball.distance_to_center):
        assert stats.ks_2samp(statistic(draws), statistic(inside)).pvalue > 1e-6
    assert (
        LAWS[law](space, footpoint, scale, ball=ball).logpdf(space.exp_coords(ball.center, 0.5 * np.eye(space.dim)[0]))
        == -np.inf
    )


# -------------------------------------------------------------------- refusals and extremes


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None])
@pytest.mark.parametrize("law", LAWS.values())
def test_scale_must_be_positive(law, bad):
    with pytest.raises(InvalidArgumentError, match="scale must be"):
        law(Sphere(2), [1.0, 0.0, 0.0], bad)


def test_laplace_beyond_existence_names_the_alternative():
    h3 = Hyperbolic(3)
    RiemannianLaplace(h3, h3.origin, 0.44)
    with pytest.raises(InvalidArgumentError, match="double precision"):
        RiemannianLaplace(h3, h3.origin, 0.49)  # it exists, but its draws overflow
    with pytest.raises(InvalidArgumentError, match=r"scale must be below 0.5 .*infinite mass.*wrapped Laplace"):
        RiemannianLaplace(h3, h3.origin, 0.5)
    for k in (2, 3, 9):
        space = SPD(k, metric="riemann")
        limit = 1 / (1.5 * k * (k - 1) / 2 / math.sqrt(2 * (k - 1)))
        law = RiemannianLaplace(space, space.origin, 0.999 * limit)
        assert law.sample(50, rng=0).shape == (50, k, k)
        with pytest.raises(InvalidArgumentError, match="wrapped Laplace"):
            RiemannianLaplace(space, space.origin, 1.001 * limit)
    with pytest.raises(InvalidArgumentError, match="flat or Hadamard"):
        WrappedLaplace(Sphere(2), [1.0, 0.0, 0.0], [1.0, 0.0, 0.0], 0.1)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    "space",
    [Euclidean(1), Euclidean(5000), Sphere(1), Sphere(2), Sphere(5000), KendallShapes(3), KendallShapes(200)],
    ids=repr,
)
@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e8, 1e300])
def test_extreme_scales_on_flat_and_closed_spaces(space, law, scale):
    draws = LAWS[law](space, space.origin, scale).sample(3, rng=18)
    assert np.isfinite(draws).all()
    if isinstance(space, Euclidean):
        assert (np.abs(draws) > 0).all()
    else:
        assert space.check(draws) is None


@pytest.mark.parametrize(
    "space",
    [Hyperbolic(2), Hyperbolic(300), SPD(1), SPD(3), SPD(3, metric="riemann"), SPD(1, metric="riemann")],
    ids=repr,
)
@pytest.mark.parametrize("law", [RiemannianLaplace, RiemannianGaussian, WrappedLaplace, WrappedGaussian])
@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e8, 1e300])
def test_extreme_scales_on_open_spaces_end_well_or_say_why(space, law, scale):
    arguments = (space, space.origin) if law in LAWS.values() else (space, space.origin, space.origin)
    flat = space.is_flat or law not in LAWS.values()
    too_wide = law is RiemannianGaussian and scale >= 1.0 and (space.dim > 200 or scale > 1.0)
    no_mass = law is RiemannianLaplace and 1 / scale <= (space.dim - 1 if isinstance(space, Hyperbolic) else 2.0)
    if not flat and (too_wide or no_mass):
        with pytest.raises(InvalidArgumentError, match="scale"):
            law(*arguments, scale)
        return
    draws = law(*arguments, scale).sample(3, rng=19)
    assert np.isfinite(draws).all()
    # Matrices drawn at scales beyond 1 may be singular to working precision, but never NaN or infinite.
    assert space.check(draws) is None or (isinstance(space, SPD) and scale > 1)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("space", [Sphere(10), Hyperbolic(10), KendallShapes(8), SPD(5, metric="riemann")], ids=repr)
def test_acceptance_at_release_scales_is_above_nine_tenths(space, law):
    _, proposals = LAWS[law](space, space.origin, scale_for(space, law, 0.9)).sample_counted(2000, rng=26)
    assert 2000 / proposals >= 0.9


def test_scales_without_acceptance_or_range_are_refused_when_the_law_is_made():
    for k, scale in ((3, 8.0), (5, 3.0), (10, 1.5), (20, 1.0)):
        space = SPD(k, metric="riemann")
        with pytest.raises(InvalidArgumentError, match="wrapped law"):
            RiemannianGaussian(space, space.origin, scale)
    for scale in (1e-310, 1e308):
        for kind, arguments in ((RiemannianLaplace, 2), (WrappedGaussian, 3)):
            with pytest.raises(InvalidArgumentError, match="scale must be between"):
                kind(*[SPD(2), np.eye(2), np.eye(2)][:arguments], scale)
    with pytest.raises(InvalidArgumentError, match="footpoint is too far"):
        RiemannianLaplace(SPD(2, metric="riemann"), 1e300 * np.eye(2), 0.1)


def test_truncation_that_rejects_nearly_everything_is_refused_up_front():
    space = Sphere(200)
    ball = Ball(space, space.origin, 0.3)
    with pytest.raises(InvalidArgumentError, match="too large to truncate"):
        RiemannianLaplace(space, space.origin, 1.0, ball=ball)
    with pytest.raises(InvalidArgumentError, match="footpoint must lie in the ball"):
        RiemannianLaplace(space, -space.origin, 1e-3, ball=ball)
    with pytest.raises(InvalidArgumentError, match="ball must lie in"):
        RiemannianLaplace(Sphere(2), [1.0, 0.0, 0.0], 1e-3, ball=ball)
    with pytest.raises(InvalidDataError, match="footpoint is not valid"):
        RiemannianLaplace(space, np.zeros(201), 1e-3)
    with pytest.raises(InvalidArgumentError, match="space must be"):
        RiemannianLaplace("sphere", space.origin, 1e-3)


def test_sizes_and_sources():
    law = RiemannianLaplace(Sphere(2), [1.0, 0.0, 0.0], 0.1)
    assert law.sample().shape == (3,)
    assert law.sample(0, rng=0).shape == (0, 3)
    assert law.sample((2, 5), rng=0).shape == (2, 5, 3)
    np.testing.assert_array_equal(law.sample(4, rng=3), law.sample(4, rng=np.random.default_rng(3)))
    assert not np.array_equal(law.sample(4), law.sample(4))
    with pytest.raises(InvalidArgumentError, match="rng"):
        law.sample(4, rng="seed")


def test_unknown_normaliser_is_not_invented():
    space = SPD(3, metric="riemann")
    law = RiemannianGaussian(space, space.origin, 0.1)
    assert not law.normalized
    assert not law.radius_is_exact
    with pytest.raises(InvalidArgumentError, match="normaliser"):
        law.log_normalizer()


def test_chain_baselines_reach_their_law():
    law = RiemannianLaplace(Sphere(2), [1.0, 0.0, 0.0], 0.2)
    points, accepted = metropolis(law, steps=200, step=0.25, rng=20, chains=3000)
    assert 0.2 < accepted < 0.8
    assert_fits(Sphere(2).dist(law.footpoint, points), exact_cdf(Sphere(2), "laplace", 0.2))
    lengths = [np.linalg.norm(flat_laplace_chain(3, 0.1, 300, 0.1, seed)[0]) for seed in range(400)]
    assert_fits(np.array(lengths), stats.gamma(3, scale=0.1).cdf)
