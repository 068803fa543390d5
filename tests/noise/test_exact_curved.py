"""Exact draws about a point of a sphere or a shape space: radius, directions, phase, acceptance, refinement.

Radii are compared with the CDF of the laws in doubles (RadialLaw, by quadrature, itself tested elsewhere), directions
with the Beta law of an entry's square. False-alarm rate 1e-6 per check; 1,500 draws by default, 20,000 in the slow
tier.
"""

import dataclasses
import math

import mpmath
import numpy as np
import pytest
from flint import ctx
from scipy import stats

from dpmanifold import InvalidArgumentError, KendallShapes, Sphere
from dpmanifold.manifolds import kendall
from dpmanifold.manifolds.exact_points import precision_kept
from dpmanifold.noise import (
    RandomSource,
    RiemannianGaussian,
    RiemannianLaplace,
    SimulationSource,
    SystemSource,
    exact_radii,
    exact_samplers,
    grid_of,
    lazy,
)
from dpmanifold.noise.exact_radii import ClosedRadius, WideCircle, exact_radius
from laws.exact import acceptance, place_point, riemannian_point, usable
from laws.fit import ALARM, assert_fits, rejects

LAWS = {"laplace": RiemannianLaplace, "gaussian": RiemannianGaussian}
SPACES = [
    Sphere(1), Sphere(2), Sphere(10), Sphere(3, curvature=4.0), KendallShapes(3), KendallShapes(4), KendallShapes(8)
]  # fmt: skip
SIZES = [1500, pytest.param(20_000, marks=pytest.mark.slow)]
GRID = -40


def scale_for(space, law, radius=1.0):
    """A scale at which the radius would be about `radius` in flat space: large, so that curvature shows."""
    size = radius * space.injectivity_radius / math.pi
    return size / space.dim if law == "laplace" else size / math.sqrt(space.dim)


def numbers_of(space, footpoint, law, scale, n, seed):
    source = SimulationSource(seed)
    return np.array([riemannian_point(space, footpoint, law, scale, GRID, source) for _ in range(n)])


def points_of(space, numbers):
    return np.array([place_point(space, row) for row in numbers])


# -------------------------------------------------------------------- the law


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_radius_and_directions(space, law, n):
    scale = scale_for(space, law, radius=2.0)
    footpoint = space.random_point(rng=1)
    numbers = numbers_of(space, footpoint, law, scale, n, seed=2)
    assert (numbers % 2.0**GRID == 0).all()
    points = points_of(space, numbers)
    assert_fits(space.dist(footpoint, points), LAWS[law](space, footpoint, scale).radius.cdf)
    coordinates = space.log_coords(footpoint, points)
    if space.dim == 1:
        assert stats.binomtest(int((coordinates > 0).sum()), n).pvalue > ALARM
        return
    shares = (coordinates / np.linalg.norm(coordinates, axis=1, keepdims=True)) ** 2
    for axis in (0, space.dim - 1):
        assert_fits(shares[:, axis], stats.beta(0.5, (space.dim - 1) / 2).cdf)
        assert stats.binomtest(int((coordinates[:, axis] > 0).sum()), n).pvalue > ALARM
    # Directions of coordinates stretched twofold along one axis.
    bent = coordinates * np.where(np.arange(space.dim) == 0, 2.0, 1.0)
    wrong = (bent / np.linalg.norm(bent, axis=1, keepdims=True)) ** 2
    assert rejects(wrong[:, 0], stats.beta(0.5, (space.dim - 1) / 2).cdf)


# Either space with one law by default, and with the other one in the slow tier.
@pytest.mark.parametrize(
    ("space", "law"),
    [
        (Sphere(10), "laplace"),
        (KendallShapes(4), "gaussian"),
        pytest.param(Sphere(10), "gaussian", marks=pytest.mark.slow),
        pytest.param(KendallShapes(4), "laplace", marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_the_radius_of_flat_space_is_caught(space, law, monkeypatch):
    """Proposals of the flat law, all accepted below the end."""
    scale, footpoint = scale_for(space, law, radius=3.0), space.origin
    cdf = LAWS[law](space, footpoint, scale).radius.cdf

    def radii():
        return space.dist(footpoint, points_of(space, numbers_of(space, footpoint, law, scale, 1500, seed=3)))

    assert_fits(radii(), cdf)
    end = math.pi / 2 if isinstance(space, KendallShapes) else math.pi
    flat = dataclasses.replace(exact_radius(space, law, scale), contact=0.0)
    monkeypatch.setattr(exact_samplers, "exact_radius", lambda *arguments: flat)
    monkeypatch.setattr(exact_samplers.DistanceSampler, "usable", lambda self, scale: True)  # as accepted below
    monkeypatch.setattr(ClosedRadius, "accepted", lambda self, uniforms: bool(self.angle(uniforms) < end))
    assert rejects(radii(), cdf)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_law_does_not_depend_on_the_point_of_contact(space, law):
    """Acceptance is the share of the target under the proposal: computed from another contact it changes, the law not.

    The product of acceptance and the proposal's ceiling is the target's mass, whatever the contact.
    """
    scale = scale_for(space, law)
    radial = exact_radius(space, law, scale)

    def mass(contact):
        made = dataclasses.replace(radial, contact=contact)
        descent, inverse = float(made._descent()), radial.facts.unit / radial.scale
        height = float(made._height(exact_radii.arb(contact))) if contact > 0 else 0.0
        if law == "gaussian":
            log_ceiling = height + descent * contact**2 - radial.dim / 2 * math.log(inverse**2 + 2 * descent)
        else:
            log_ceiling = height + descent * contact - radial.dim * math.log(inverse + descent)
        return made.acceptance * math.exp(log_ceiling)

    assert np.allclose([mass(contact) for contact in (0.3, 0.9, radial.contact)], mass(0.0), rtol=1e-7, atol=0)


# -------------------------------------------------------------------- shapes are drawn as shapes


def worst_pvalue(first, second):
    """The smallest of the two-sample p-values of all numbers, times how many there are."""
    pvalues = [stats.ks_2samp(a, b).pvalue for a, b in zip(first.T, second.T, strict=True)]
    return min(pvalues) * len(pvalues)


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
def test_numbers_do_not_tell_the_phase_of_the_footpoint(n, monkeypatch):
    space = KendallShapes(4)
    footpoint = space.random_point(rng=5)
    turned = footpoint * np.exp(1.3j)
    for law in LAWS:
        scale = scale_for(space, law)
        first, second = (numbers_of(space, p, law, scale, n, s) for p, s in ((footpoint, 6), (turned, 7)))
        assert worst_pvalue(first, second) > ALARM
    monkeypatch.setattr(kendall, "_aligned", lambda z, origin: z)
    first, second = (numbers_of(space, p, "laplace", 0.1, 1500, s) for p, s in ((footpoint, 6), (turned, 7)))
    assert worst_pvalue(first, second) < ALARM


def test_numbers_are_aligned_with_the_origin_and_centred():
    space = KendallShapes(5)
    for row in numbers_of(space, space.random_point(rng=8), "laplace", 0.2, 50, seed=9):
        z = row.view(np.complex128)
        overlap = np.vdot(space.origin, z)
        assert overlap.real > 0
        assert abs(overlap.imag) < 1e-11
        assert abs(z.sum()) < 1e-11
        assert abs(np.linalg.norm(z) - 1) < 1e-11


def test_where_the_footpoints_landmarks_are_centred_and_how_long_it_is_do_not_matter():
    """A footpoint a little off centre or off length is the same shape: the same bits give the same numbers, exactly."""
    space = KendallShapes(4)
    footpoint = np.array([0.5, -0.5, 0.5j, -0.5j])
    moved = footpoint + (2.0**-30 + 2.0**-31 * 1j)
    doubled = footpoint * (1 + 2.0**-40)
    plain, *others = (numbers_of(space, p, "gaussian", 0.1, 20, seed=4) for p in (footpoint, moved, doubled))
    assert all((plain == other).all() for other in others)
    sphere = Sphere(2)
    plain, other = (
        numbers_of(sphere, length * np.array([0.0, 0.6, 0.8]), "gaussian", 0.1, 20, seed=4) for length in (1.0, 0.5)
    )
    assert (plain == other).all()


# -------------------------------------------------------------------- work


@pytest.mark.parametrize("law", LAWS, ids=repr)
@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_acceptance_is_what_happens(space, law):
    scale = scale_for(space, law, radius=4.0)
    radial = exact_radius(space, law, scale)
    source, n = SimulationSource(12), 4000
    taken = 0
    with precision_kept():
        for _ in range(n):
            uniforms = lazy.Uniforms(radial.needs, 128, source)
            taken += lazy.settled(uniforms, lambda uniforms=uniforms: radial.accepted(uniforms))
    expected = acceptance(space, law, scale)
    assert stats.binomtest(taken, n, expected).pvalue > ALARM
    assert stats.binomtest(taken, n, 0.9 * expected).pvalue < ALARM


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1e-300, 1e-8, 0.01, 1.0, 100.0, 1e300])
@pytest.mark.parametrize(
    "space",
    [*SPACES, Sphere(465), KendallShapes(100), Sphere(2, curvature=1e-200), Sphere(2, curvature=1e200)],
    ids=repr,
)
def test_every_scale_is_usable(space, law, scale):
    assert usable(space, law, scale)
    assert 0.4 < acceptance(space, law, scale) <= 1 + 1e-6
    grid = grid_of(scale, float(np.abs(space.origin).max()))
    numbers = riemannian_point(space, space.random_point(rng=1), law, scale, grid, SystemSource())
    assert space.check(place_point(space, numbers)) is None


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_wide_noise_on_a_circle_has_its_law(law, monkeypatch):
    """Above one radius angles are proposed uniformly. Wrong variant: every proposal is accepted."""
    circle, footpoint = Sphere(1, curvature=0.25), np.array([0.0, 2.0])

    def distances(scale, seed):
        return circle.dist(footpoint, points_of(circle, numbers_of(circle, footpoint, law, scale, 1500, seed)))

    for scale in (2.2, 1e6):
        assert_fits(distances(scale, 11), LAWS[law](circle, footpoint, scale).radius.cdf)
    cdf = LAWS[law](circle, footpoint, 2.2).radius.cdf
    monkeypatch.setattr(WideCircle, "accepted", lambda self, uniforms: True)
    assert rejects(distances(2.2, 12), cdf)


def test_number_of_proposals_does_not_depend_on_the_footpoint():
    class Counting(RandomSource):
        private = False

        def __init__(self):
            self.source, self.calls = SimulationSource(3), []

        def _words(self, n):
            self.calls.append(n)
            return self.source.bits(n)

    space = KendallShapes(4)
    calls = []
    for seed in range(4):
        source = Counting()
        for _ in range(50):
            riemannian_point(space, space.random_point(rng=seed), "laplace", 1.0, GRID, source)
        calls.append(source.calls)
    assert calls[0] == calls[1] == calls[2] == calls[3]
    assert len(calls[0]) > 110  # some proposals were refused


# -------------------------------------------------------------------- forced refinement, refusals, places


class Scripted(RandomSource):
    private = False

    def __init__(self, *words):
        self.words = list(words)

    def _words(self, n):
        assert n <= len(self.words)
        taken, self.words = self.words[:n], self.words[n:]
        return np.array(taken, dtype=np.uint64)


@pytest.mark.parametrize(("tail", "accepted"), [(0, True), (2**64 - 1, False)])
def test_acceptance_undecided_at_first_is_refined_and_right(tail, accepted):
    """The deciding uniform starts with the 128 bits of the acceptance probability itself: the next bits decide."""
    scale = 0.7
    radial = exact_radius(Sphere(2), "gaussian", scale)
    proposal = (1 << 126) + 987654321
    with mpmath.workdps(100):
        contact = mpmath.mpf(radial.contact)
        descent = -(mpmath.cot(contact) - 1 / contact) / (2 * contact)
        # The proposal's later bits are 1000...: it lies in the middle of its first interval.
        uniform = (2 * proposal + 1) / mpmath.mpf(2) ** 129
        square = -2 * mpmath.log(uniform) / (1 / mpmath.mpf(scale) ** 2 + 2 * descent)
        u = mpmath.sqrt(square)
        ratio = (mpmath.sin(u) / u) / (mpmath.sin(contact) / contact) * mpmath.exp(descent * (square - contact**2))
        assert 0.1 < ratio < 1
        deciding = int(mpmath.floor(ratio * mpmath.mpf(2) ** 128))
    mask = 2**64 - 1
    source = Scripted(deciding >> 64, deciding & mask, proposal >> 64, proposal & mask, tail, tail, 1 << 63, 0)
    before = ctx.prec
    with precision_kept():
        uniforms = lazy.Uniforms(radial.needs, 128, source)
        assert lazy.settled(uniforms, lambda: radial.accepted(uniforms)) is accepted
    assert source.words == []
    assert ctx.prec == before


def test_footpoint_in_other_memory_layouts_is_read_alike():
    space = KendallShapes(4)
    point = space.random_point(rng=1)
    strided = np.repeat(point, 2)[::2]
    assert not strided.flags.c_contiguous
    first, second = (riemannian_point(space, p, "laplace", 0.1, GRID, SimulationSource(1)) for p in (point, strided))
    assert (first == second).all()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((Sphere(2), [1.0, 0.0], "laplace", 1.0, GRID), "footpoint must be"),
        ((Sphere(2), [0.0, 0.0, 0.0], "laplace", 1.0, GRID), "footpoint must be"),
        ((Sphere(2), [math.nan, 0.0, 1.0], "laplace", 1.0, GRID), "footpoint must be"),
        ((KendallShapes(3), [1.0, 0.0, 1.0], "laplace", 1.0, GRID), "footpoint must be"),
        ((KendallShapes(3), [1j, 1j, 1j], "laplace", 1.0, GRID), "footpoint must be"),
        ((Sphere(2), [1.0, 0.0, 0.0], "uniform", 1.0, GRID), "law must be"),
        ((Sphere(2), [1.0, 0.0, 0.0], "laplace", -1.0, GRID), "scale must be"),
        ((Sphere(2), [1.0, 0.0, 0.0], "laplace", 1.0, 0.5), "grid must be"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, named):
    with pytest.raises(InvalidArgumentError, match=named):
        riemannian_point(*arguments, SystemSource())


@pytest.mark.parametrize("space", [Sphere(1), Sphere(2, curvature=1e-6), KendallShapes(3), KendallShapes(8)], ids=repr)
def test_place_point_takes_all_numbers(space):
    size = space.shape[0] * (2 if isinstance(space, KendallShapes) else 1)
    rng = np.random.default_rng(1)
    for scale in (5e-324, 1e-200, 1.0, 1e200, 1.7e308):
        for _ in range(20):
            numbers = np.clip(rng.normal(size=size), -1, 1) * scale
            assert space.check(place_point(space, numbers)) is None
    for numbers in (np.zeros(size), np.full(size, math.nan), np.full(size, math.inf)):
        assert (place_point(space, numbers) == space.origin).all()
    if isinstance(space, KendallShapes):
        assert (place_point(space, np.full(size, 3.0)) == space.origin).all()
    with pytest.raises(InvalidArgumentError, match="numbers must be"):
        place_point(space, np.zeros(size + 1))
