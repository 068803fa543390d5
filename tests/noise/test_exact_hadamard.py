"""Exact Laplace draws on hyperbolic spaces and affine-invariant matrices: laws, decisions, refinement, placing.

Radii on hyperbolic space are compared with the CDF of the law in doubles (by quadrature, itself tested elsewhere), on
matrices with draws in doubles, and single draws with a computation in 80 digits written from the formulas. False-alarm
rate 1e-6 per check; 1,500 draws by default, 20,000 in the slow tier. Wrong samplers are caught with 4,000.
"""

import dataclasses
import itertools
import math

import mpmath
import numpy as np
import pytest
from flint import acb_mat, arb, arb_mat, ctx
from scipy import stats

from dpmanifold import SPD, Ball, Euclidean, Hyperbolic, InvalidArgumentError, PureDP
from dpmanifold.frechet import UnitPoints
from dpmanifold.linalg import from_vecd
from dpmanifold.manifolds import exact_matrices
from dpmanifold.manifolds.exact_matrices import close_eigenvalues, near_eigenvalues, sinhc
from dpmanifold.manifolds.exact_points import precision_kept
from dpmanifold.mechanisms import get
from dpmanifold.noise import RandomSource, RiemannianLaplace, SimulationSource, exact_radii, exact_samplers, lazy
from dpmanifold.noise.exact_radii import BelowCeiling, exact_radius, proposal
from dpmanifold.noise.exact_vector_noise import grid_of
from laws.exact import place_point, riemannian_point, usable
from laws.fit import ALARM, assert_fits, rejects

SIZES = [1500, pytest.param(20_000, marks=pytest.mark.slow)]
CAUGHT = 4000
HYPERBOLIC = [
    (Hyperbolic(2), 0.3), (Hyperbolic(2), 0.7), (Hyperbolic(5), 0.15), (Hyperbolic(3, curvature=-4.0), 0.15),
    (Hyperbolic(10), 0.06),
]  # fmt: skip
# Scales at which about half of the proposals are turned down, and ordinary ones.
MATRICES = [(SPD(2, metric="riemann"), 0.8), (SPD(3, metric="riemann"), 0.3), (SPD(3, metric="riemann"), 0.02)]
GRID = -40


def footpoint_of(space, distance=1.5, seed=0):
    c = np.random.default_rng(seed).standard_normal(space.dim)
    return space.exp_coords(space.origin, c * distance / np.linalg.norm(c))


def points_of(space, footpoint, scale, n, seed=1):
    source = SimulationSource(seed)
    return np.array(
        [
            place_point(space, riemannian_point(space, footpoint, "laplace", scale, GRID, source))
            for _ in range(n)
        ]
    )  # fmt: skip


def agree(first, second):
    return stats.ks_2samp(first, second).pvalue >= ALARM


# -------------------------------------------------------------------- the law on hyperbolic space


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("case", HYPERBOLIC, ids=repr)
def test_hyperbolic_radius_and_direction(case, n):
    space, scale = case
    footpoint = footpoint_of(space)
    points = points_of(space, footpoint, scale, n)
    law = RiemannianLaplace(space, footpoint, scale)
    radius = space.dist(footpoint, points)
    assert_fits(radius, law.radius.cdf)
    d = space.dim
    # Any entry of a uniform direction, squared, is Beta(1/2, (d-1)/2); and its sign is fair.
    direction = space.log_coords(footpoint, points) / radius[:, None]
    for axis in (np.eye(d)[0], np.full(d, 1 / math.sqrt(d))):
        entry = direction @ axis
        assert_fits(entry, lambda x: 0.5 + np.sign(x) * stats.beta.cdf(x * x, 0.5, (d - 1) / 2) / 2)
    # Direction and radius are independent.
    assert agree(radius[direction[:, 0] > 0], radius[direction[:, 0] <= 0])


@pytest.mark.parametrize(("space", "scale"), HYPERBOLIC[:3], ids=repr)
def test_wrong_hyperbolic_radii_are_caught(space, scale):
    """All exponentials at the slowest rate (a proposal without rejection), or at the flat one; one too few."""
    d, source = space.dim, np.random.default_rng(3)
    cdf = RiemannianLaplace(space, space.origin, scale).radius.cdf
    slowest = 1 / scale - (d - 1)
    rates = slowest + 2 * np.arange(d)
    assert_fits((source.exponential(size=(CAUGHT, d)) / rates).sum(axis=1), cdf)
    assert rejects(source.gamma(d, size=CAUGHT) / slowest, cdf)
    assert rejects(source.gamma(d, size=CAUGHT) * scale, cdf)
    assert rejects((source.exponential(size=(CAUGHT, d)) / rates)[:, :-1].sum(axis=1), cdf)


@pytest.mark.slow
def test_directions_seen_from_the_origin_are_not_uniform():
    """What the test of directions would say of a draw that was not carried to the footpoint by an isometry."""
    space, scale = HYPERBOLIC[0]
    footpoint = footpoint_of(space, 3.0)
    points = points_of(space, footpoint, scale, CAUGHT)
    moved = space.log_coords(space.origin, points) - space.log_coords(space.origin, footpoint)
    entry = (moved / np.linalg.norm(moved, axis=1)[:, None])[:, 0]
    assert rejects(entry, lambda x: 0.5 + np.sign(x) * stats.beta.cdf(x * x, 0.5, 0.5) / 2)


# -------------------------------------------------------------------- the law on matrices


def features(space, footpoint, points):
    """What the law of S is told by: its norm, the spread of its eigenvalues, its trace; and an entry."""
    c = space.log_coords(footpoint, points)
    values = np.linalg.eigvalsh(from_vecd(c))
    return {
        "radius": np.linalg.norm(c, axis=1), "spread": values[:, -1] - values[:, 0], "largest": values[:, -1],
        "trace": values.sum(axis=1), "diagonal": c[:, 0], "off the diagonal": c[:, -1],
    }  # fmt: skip


def in_doubles(space, footpoint, scale):
    law = RiemannianLaplace(space, footpoint, scale)
    return features(space, footpoint, law.sample(40_000, rng=5))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize(
    ("space", "scale"), [MATRICES[0], *(pytest.param(*case, marks=pytest.mark.slow) for case in MATRICES[1:])], ids=repr
)
def test_law_on_matrices(space, scale, n):
    footpoint = footpoint_of(space)
    expected = in_doubles(space, footpoint, scale)
    for name, drawn in features(space, footpoint, points_of(space, footpoint, scale, n)).items():
        assert agree(drawn, expected[name]), name


def unrejected(self, uniforms, gaussian=None):
    return True


def low_ceiling(self, uniforms, gaussian):
    """A ceiling with half the stretch is below the volume density: acceptance is cut off at 1."""
    distance = self.distance(uniforms)
    volume = self._volume.at(distance, gaussian(), quick=False)
    ceiling = sinhc(self._volume.stretch() * distance / 2) ** self._volume.pairs
    return bool(uniforms.balls(1, 2)[0] * ceiling < volume)


@pytest.mark.parametrize(
    ("method", "wrong"),
    [
        pytest.param("accepted", unrejected, marks=pytest.mark.slow),
        ("direction_accepted", unrejected),
        pytest.param("direction_accepted", low_ceiling, marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(
    ("space", "scale"), [MATRICES[0], pytest.param(*MATRICES[1], marks=pytest.mark.slow)], ids=repr
)
def test_wrong_rejection_on_matrices_is_caught(space, scale, method, wrong, monkeypatch):
    monkeypatch.setattr(BelowCeiling, method, wrong)
    drawn = features(space, space.origin, points_of(space, space.origin, scale, CAUGHT))
    expected = in_doubles(space, space.origin, scale)
    assert not all(agree(drawn[name], expected[name]) for name in expected)


def test_acceptance_is_what_it_says(monkeypatch):
    """The share of radii that are accepted, against its formula; and no other power would do better."""
    space, scale = SPD(4, metric="riemann"), 0.1
    law, radius = RiemannianLaplace(space, space.origin, scale), exact_radius(space, "laplace", scale)
    plan, pairs = radius.plan, space.volume_ceiling()[0]
    share = exact_radii.radius_acceptance(law, 4, plan)
    source, n = SimulationSource(1), 2000
    with precision_kept():
        ctx.prec = 192
        taken = sum(radius.accepted(lazy.Uniforms(radius.needs, 128, source)) for _ in range(n))
    assert stats.binomtest(taken, n, share).pvalue >= ALARM
    assert stats.binomtest(taken, n, share * 0.8).pvalue < ALARM
    for power in range(1, pairs):
        top = exact_radii._bound(pairs, power, exact_radii._root(power / pairs))
        other = dataclasses.replace(plan, power=power, top=top)
        assert exact_radii.radius_acceptance(law, 4, other) <= share * (1 + 1e-9)


@pytest.mark.parametrize("k", [2, 3, 4, 9, 20])
def test_acceptance_probabilities_are_at_most_one(k):
    pairs = k * (k - 1) // 2
    x = np.geomspace(1e-6, 200, 4001)
    for power in {1, pairs // 3, pairs // 2, pairs - 1} - {0, pairs}:
        top = exact_radii._bound(pairs, power, exact_radii._root(power / pairs))
        log_ratio = pairs * np.log(-np.expm1(-x)) - power * np.log(x) - top
        assert -1e-3 < log_ratio.max() <= 1e-12
    # The ceiling of the volume density, at its worst: half the eigenvalues at either end, or evenly spaced ones.
    space, rng = SPD(k, metric="riemann"), np.random.default_rng(k)
    values = [np.where(np.arange(k) < k / 2, 1.0, -1.0), np.arange(k) - (k - 1) / 2, *rng.standard_normal((50, k))]
    for value, t in itertools.product(values, (1e-3, 1.0, 10.0, 100.0)):
        c = np.zeros(space.dim)
        c[:k] = value * t / np.linalg.norm(value)
        u = t / math.sqrt(2 * (k - 1))
        assert space.log_volume_density(c) <= pairs * (u + np.log(-np.expm1(-2 * u) / (2 * u))) * (1 + 1e-12) + 1e-12


# -------------------------------------------------------------------- the same draw by other means


class Recording(RandomSource):
    """A seeded source that remembers its words, call by call."""

    private = False

    def __init__(self, seed):
        self.source, self.calls = SimulationSource(seed), []

    def _words(self, n):
        drawn = self.source.bits(n)
        self.calls.append(drawn.tolist())
        return drawn


def uniforms_of(words, count):
    """The uniforms that one call's words stand for, by the middle of what they leave open."""
    each = len(words) // count
    numerators = [sum(w << (64 * (each - 1 - i)) for i, w in enumerate(words[each * j :][:each])) for j in range(count)]
    return [(mpmath.mpf(n) + mpmath.mpf(1) / 2) / mpmath.mpf(2) ** (64 * each) for n in numerators]


def normals_of(uniforms):
    drawn = []
    for a, b in zip(uniforms[::2], uniforms[1::2], strict=True):
        r = mpmath.sqrt(-2 * mpmath.log(a))
        drawn += [r * mpmath.cos(2 * mpmath.pi * b), r * mpmath.sin(2 * mpmath.pi * b)]
    return drawn


def on_grid(number):
    return float(mpmath.floor(number * mpmath.mpf(2) ** -GRID + mpmath.mpf(1) / 2) * mpmath.mpf(2) ** GRID)


@pytest.mark.parametrize(("space", "scale"), HYPERBOLIC, ids=repr)
def test_hyperbolic_draws_equal_a_computation_in_80_digits(space, scale):
    """The draw by Minkowski products: a point of the geodesic from the footpoint, along a boosted frame."""
    d = space.dim
    for seed in range(5):
        footpoint, source = footpoint_of(space, seed / 2 + 0.1, seed), Recording(seed)
        drawn = riemannian_point(space, footpoint, "laplace", scale, GRID, source)
        words = [word for call in source.calls for word in call]
        with mpmath.workdps(80):
            radius = mpmath.mpf(float(space.origin[0]))
            u = uniforms_of(words, d + d + d % 2)
            g = normals_of(u[d:])[:d]
            rate = radius / mpmath.mpf(scale) - (d - 1)
            t = sum(-mpmath.log(u[j]) / (rate + 2 * j) for j in range(d))
            x = [mpmath.mpf(entry) / radius for entry in footpoint[1:].tolist()]
            time = mpmath.sqrt(1 + sum(a * a for a in x))
            size = mpmath.sqrt(sum(a * a for a in g))
            along = sum(a * b for a, b in zip(x, g, strict=True)) / size
            tangent = [b / size + a * along / (1 + time) for a, b in zip(x, g, strict=True)]
            assert abs(-(along**2) + sum(a * a for a in tangent) - 1) < mpmath.mpf(10) ** -70
            end = [mpmath.cosh(t) * a + mpmath.sinh(t) * b for a, b in zip(x, tangent, strict=True)]
            far = mpmath.acosh(mpmath.cosh(t) * time + mpmath.sinh(t) * along)
            expected = [on_grid(radius * far * a / mpmath.sinh(far)) for a in end]
        assert drawn.tolist() == expected


@pytest.mark.parametrize(("k", "scale"), [(2, 0.8), (2, 0.1), (3, 0.3), (5, 0.05)])
def test_matrix_draws_equal_a_computation_in_80_digits(k, scale):
    """Every acceptance, by eigenvalues in 80 digits, and the draw by matrix functions of another library."""
    space = SPD(k, metric="riemann")
    for seed in range(5):
        footpoint, source = footpoint_of(space, seed / 2, seed), Recording(seed)
        drawn = riemannian_point(space, footpoint, "laplace", scale, GRID, source)
        with mpmath.workdps(80):
            s, calls = accepted_matrix(k, scale, source.calls)
            outer = mpmath.cholesky(mpmath.matrix(footpoint.tolist()))
            factor = mpmath.cholesky(outer * mpmath.expm(s) * outer.T)
            logs = [mpmath.log(factor[i, i]) for i in range(k)]
            rows = [factor[i, j] / factor[i, i] for i in range(k) for j in range(i)]
            expected = [on_grid(number) for number in logs + rows]
        assert calls == len(source.calls)
        assert drawn.tolist() == expected


def accepted_matrix(k, scale, calls):
    """Go through the proposals as the formulas have it; returns the accepted matrix and how many calls it took."""
    space = SPD(k, metric="riemann")
    plan = proposal(k, *space.volume_ceiling(), scale)
    pairs, stretch = k * (k - 1) // 2, 1 / mpmath.sqrt(2 * (k - 1))
    rate = 1 / mpmath.mpf(scale) - pairs * stretch
    taken = 0
    while True:
        u = uniforms_of(calls[taken], 2 + k + plan.power)
        taken += 1
        t = -sum(mpmath.log(a) for a in u[2:]) / rate
        x = 2 * stretch * t
        if u[0] > (1 - mpmath.exp(-x)) ** pairs * x**-plan.power / mpmath.exp(plan.top):
            continue
        g = normals_of(uniforms_of(calls[taken], space.dim + space.dim % 2))[: space.dim]
        taken += 1
        s = mpmath.diag(g[:k])
        for (i, j), z in zip(itertools.combinations(range(k), 2), g[k:], strict=True):
            s[i, j] = s[j, i] = z / mpmath.sqrt(2)
        s *= t / mpmath.sqrt(sum(z * z for z in g))
        volume = mpmath.mpf(1)
        for a, b in itertools.combinations(mpmath.eigsy(s, eigvals_only=True), 2):
            volume *= mpmath.sinh((a - b) / 2) / ((a - b) / 2)
        if u[1] < volume / (mpmath.sinh(stretch * t) / (stretch * t)) ** pairs:
            return s, taken


# -------------------------------------------------------------------- the footpoint enters last


@pytest.mark.parametrize(("space", "scale"), [*HYPERBOLIC, *MATRICES], ids=repr)
def test_radius_and_work_do_not_depend_on_the_footpoint(space, scale):
    for seed in range(10):
        radii, words = set(), set()
        for distance in (0.0, 0.7, 3.0):
            footpoint, source = footpoint_of(space, distance, seed), Recording(seed)
            point = place_point(space, riemannian_point(space, footpoint, "laplace", scale, GRID, source))
            radii.add(round(float(space.dist(footpoint, point)), 6))
            words.add(tuple(map(tuple, source.calls)))
        assert max(radii) - min(radii) <= 2e-6
        assert len(words) == 1


def test_numbers_are_a_function_of_the_drawn_matrix_alone():
    """They are read off the drawn matrix again: its triangular factor, whichever factor the footpoint had."""
    space = SPD(3, metric="riemann")
    for seed in range(10):
        numbers = riemannian_point(space, footpoint_of(space, 1.0, seed), "laplace", 0.1, GRID, SimulationSource(seed))
        factor = np.linalg.cholesky(place_point(space, numbers))
        diagonal = np.diagonal(factor)
        again = np.concatenate([np.log(diagonal), (factor / diagonal[:, None])[np.tril_indices(3, -1)]])
        np.testing.assert_allclose(numbers, again, atol=1e-11)


# -------------------------------------------------------------------- refinement


class Endless(lazy.Uniforms):
    """Uniforms whose bits are a function of their place alone: however many are drawn at first, they are the same."""

    made = refined = 0

    def __init__(self, count, bits, source):
        Endless.made += 1
        self.number, self.depth = Endless.made, 0
        super().__init__(count, Endless.first or bits, source)

    def add(self, count):
        start = len(self._numerators)
        self._numerators += [self._bits(start + i) >> (4096 - self.bits) for i in range(count)]

    def refine(self):
        Endless.refined += 1
        self.bits *= 2
        self._numerators = [self._bits(i) >> (4096 - self.bits) for i in range(len(self._numerators))]

    def _bits(self, i):
        return int.from_bytes(np.random.default_rng([self.number, i]).bytes(512), "big")


def drawn_from(first, space, scale, monkeypatch):
    monkeypatch.setattr(exact_samplers, "Uniforms", Endless)
    Endless.made = Endless.refined = 0
    Endless.first = first
    footpoint = footpoint_of(space)
    return [
        riemannian_point(space, footpoint, "laplace", scale, GRID, SimulationSource(0)).tolist() for _ in range(10)
    ], Endless.refined  # fmt: skip


@pytest.mark.parametrize(("space", "scale"), [HYPERBOLIC[0], HYPERBOLIC[2], *MATRICES], ids=repr)
def test_fewer_bits_at_first_are_refined_to_the_same_draws(space, scale, monkeypatch):
    """A bit, then 2, 4, ...: radii, directions and rounding are undecided at first, and decided alike."""
    expected, none = drawn_from(None, space, scale, monkeypatch)
    drawn, refined = drawn_from(1, space, scale, monkeypatch)
    assert none == 0
    assert refined >= 10
    assert drawn == expected


@pytest.mark.parametrize("near", [None, "overlapping"])
def test_eigenvalues_that_doubles_leave_open_are_computed_at_working_precision(near, monkeypatch):
    space, scale = MATRICES[1]
    expected, _ = drawn_from(None, space, scale, monkeypatch)
    wide = None if near is None else [arb(0, 1)] * 3
    monkeypatch.setattr(exact_matrices, "near_eigenvalues", lambda matrix: wide)
    assert drawn_from(None, space, scale, monkeypatch)[0] == expected


def test_decisions_cut_to_doubles_would_differ():
    """The same comparison with eigenvalues that are a tenth too small decides otherwise for some uniforms."""
    space = SPD(3, metric="riemann")
    radius, volume = exact_radius(space, "laplace", 0.3), space.exact_points.volume
    with precision_kept():
        ctx.prec = 192
        differ = 0
        for seed in range(300):
            uniforms = lazy.Uniforms(radius.needs, 128, SimulationSource(seed))
            uniforms.add(6)
            gaussian = lazy.normals(uniforms.balls(radius.needs))
            t = radius.distance(uniforms)
            ceiling = uniforms.balls(1, 2)[0] * sinhc(volume.stretch() * t) ** volume.pairs
            right = bool(ceiling < volume.at(t, gaussian, quick=False))
            assert right == radius.direction_accepted(uniforms, lambda gaussian=gaussian: gaussian)
            differ += right != bool(ceiling < volume.at(t * 0.9, gaussian, quick=False))
    assert differ > 0


# -------------------------------------------------------------------- eigenvalues


def test_eigenvalues_are_enclosed_even_if_multiple():
    """Rational symmetric matrices with known eigenvalues: reflections of diagonal ones."""
    rng = np.random.default_rng(0)
    for k, spectrum in [(2, [3, 3]), (3, [1, 1, -2]), (4, [5, 5, 5, 4]), (5, [0, 0, 1, 1, 7])]:
        v = rng.integers(-4, 5, k)
        v[0] = 5
        reflection = arb_mat(
            k, k, [arb(int(i == j)) - arb(int(2 * v[i] * v[j])) / int(v @ v) for i in range(k) for j in range(k)]
        )
        diagonal = arb_mat(k, k, [spectrum[i] if i == j else 0 for i in range(k) for j in range(k)])
        found = near_eigenvalues(reflection * diagonal * reflection)
        ordered = sorted(found, key=lambda value: float(value))
        for value, exact in zip(ordered, sorted(spectrum), strict=True):
            assert value.contains(exact)
            assert value.rad() < 1e-12
        assert close_eigenvalues(reflection * diagonal * reflection) is None


@pytest.mark.parametrize("k", [2, 3, 9])
def test_two_ways_to_eigenvalues_agree(k):
    for seed in range(20):
        a = np.random.default_rng(seed).standard_normal((k, k))
        matrix = arb_mat(k, k, (a + a.T).ravel().tolist())
        near = sorted(near_eigenvalues(matrix), key=lambda value: float(value))
        close = sorted(close_eigenvalues(matrix), key=lambda value: float(value))
        assert all(first.overlaps(second) for first, second in zip(near, close, strict=True))
        assert acb_mat(matrix).trace().real.overlaps(sum(near, start=arb(0)))


def test_eigenvalues_do_not_rest_on_the_doubles_being_right(monkeypatch):
    """Eigenvectors that are wrong, or not even orthogonal, widen the balls: they still hold the eigenvalues."""
    matrix = arb_mat([[2, 1], [1, 2]])
    for vectors in ([[1.0, 0.0], [0.0, 1.0]], [[0.8, 0.6], [-0.6, 0.81]], [[0.7, 0.7], [-0.7, 0.72]]):
        monkeypatch.setattr(np.linalg, "eigh", lambda a, vectors=vectors: (None, np.array(vectors)))
        found = near_eigenvalues(matrix)
        assert all(any(value.contains(exact) for value in found) for exact in (1, 3))
    assert near_eigenvalues(arb_mat([[2, arb("nan")], [1, 2]])) is None


# -------------------------------------------------------------------- places and refusals


@pytest.mark.parametrize(
    "space",
    [Hyperbolic(2), Hyperbolic(3, curvature=-1e-6), SPD(2, metric="riemann"), SPD(9, metric="riemann")],
    ids=repr,
)
def test_whatever_the_numbers_there_is_a_point(space):
    rng, largest = np.random.default_rng(0), np.finfo(float).max
    rows = [np.full(space.dim, value) for value in (0.0, largest, -largest, 5e-324, math.nan, math.inf)]
    rows += [rng.standard_normal(space.dim) * 10.0**power for power in range(-300, 301, 20) for _ in range(3)]
    rows += [rng.standard_normal(space.dim) * power for power in (0.1, 1.0, 3.0, 10.0, 30.0, 100.0)]
    for row in rows:
        point = place_point(space, row)
        assert point.shape == space.shape
        assert space.check(point) is None
    assert (place_point(space, np.full(space.dim, math.nan)) == space.origin).all()


def test_where_draws_are_offered():
    assert usable(Hyperbolic(1), "laplace", 1e3)
    assert usable(Hyperbolic(3, curvature=-4.0), "laplace", 0.2499)
    assert not usable(Hyperbolic(3, curvature=-4.0), "laplace", 0.25)
    assert not usable(Hyperbolic(2), "gaussian", 0.1)
    for flat in (Euclidean(2), SPD(3), SPD(1, metric="riemann")):
        assert usable(flat, "laplace", 1e3)


@pytest.mark.parametrize("k", [2, 3, 5, 9, 20])
def test_matrices_are_drawn_wherever_the_law_in_doubles_is(k):
    space = SPD(k, metric="riemann")
    for scale in np.geomspace(1e-12, 1.0, 40):
        try:
            law = RiemannianLaplace(space, space.origin, scale)
        except InvalidArgumentError:
            assert not usable(space, "laplace", scale)
            continue
        assert usable(space, "laplace", scale)
        plan = proposal(k, *space.volume_ceiling(), float(scale))
        assert 0.5 < exact_radii.radius_acceptance(law, k, plan) <= 1 + 1e-9


@pytest.mark.parametrize(
    ("space", "footpoint", "law", "scale", "said"),
    [
        (Hyperbolic(2), [1.0, 0.0, 0.0], "laplace", 1.0, "scale"),
        (Hyperbolic(2), [1.0, 0.0], "laplace", 0.1, "footpoint"),
        (Hyperbolic(2), [1.0, math.nan, 0.0], "laplace", 0.1, "footpoint"),
        (Hyperbolic(2), [1.0, 0.0, 0.0], "laplace", -1.0, "scale"),
        (SPD(2, metric="riemann"), np.eye(2), "laplace", 1.0, "scale"),
        (SPD(2, metric="riemann"), -np.eye(2), "laplace", 0.1, "footpoint"),
    ],
)
def test_bad_arguments_are_refused_and_the_precision_kept(space, footpoint, law, scale, said):
    before = ctx.prec
    with pytest.raises(InvalidArgumentError, match=said):
        riemannian_point(space, footpoint, law, scale, GRID, SimulationSource(0))
    assert ctx.prec == before


def test_bad_numbers_are_refused():
    with pytest.raises(InvalidArgumentError, match="numbers"):
        place_point(Hyperbolic(2), [0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    "space",
    [Hyperbolic(2), Hyperbolic(4, curvature=-0.3), SPD(2, metric="riemann"), SPD(4, metric="riemann")],
    ids=repr,
)
def test_the_mechanism_draws_exactly(space):
    mechanism, ball = get("riemannian-laplace"), Ball(space, space.origin, 1.0)
    calibration = mechanism.calibrate(ball, 200, PureDP(1.0))
    assert mechanism.offers_exact(ball, calibration)
    grid = mechanism.grid(ball, calibration)
    assert grid == grid_of(calibration.scale, ball.effective_radius)
    mean = footpoint_of(space, 0.5)
    numbers = mechanism.numbers(ball, calibration, mean, UnitPoints.of(mean[None], ball), SimulationSource(0))
    assert (np.ldexp(numbers, -grid) % 1 == 0).all()
    assert space.dist(mean, mechanism.place(ball, numbers)) < 60 * space.dim * calibration.scale
