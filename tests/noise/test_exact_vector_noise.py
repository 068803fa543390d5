"""Exact draws: the law, every bit of the uniforms, forced refinement, threads, forks and hostile numbers.

Laws are compared with CDFs that scipy gives or that are integrated here from radius times direction (the sampler is a
mixture of normal laws, so the comparison is independent of it). False-alarm rate 1e-6 per check. By default 5,000
vectors; in the slow tier as many coordinates as it takes to miss a scale that is off by 1 % with probability 3e-5 at
most, by the mean square: a million of a Laplace law and 400,000 of a normal one, whatever d is; 1/d of that in vectors.
"""

import math
import os
import pathlib
import subprocess
import sys
import threading
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import ctx
from scipy import stats

import dpmanifold
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, SamplerError
from dpmanifold.manifolds.exact_points import precision_kept
from dpmanifold.noise import (
    RandomSource,
    SimulationSource,
    SystemSource,
    exact_vector_noise,
    grid_of,
    lazy,
    likeliest,
    noisy_vector,
)
from laws.fit import ALARM, assert_counts, assert_fits, assert_mean, rejects

LAWS = ["gaussian", "laplace"]
COORDINATES = {"gaussian": 250_000, "laplace": 600_000}
ONES = 2**64 - 1


def noisy_number(x, *how):
    """The same for one number."""
    return float(noisy_vector([x], *how)[0])


class Scripted(RandomSource):
    """Words from a list; an exception where the list ends."""

    private = False

    def __init__(self, words):
        self.words = list(words)

    def _words(self, n):
        if n > len(self.words):
            raise RuntimeError("no words left")
        taken, self.words = self.words[:n], self.words[n:]
        return np.array(taken, dtype=np.uint64)


class Recording(RandomSource):
    """A seeded source that remembers its words."""

    private = False

    def __init__(self, seed):
        self.source, self.words = SimulationSource(seed), []

    def _words(self, n):
        drawn = self.source.bits(n)
        self.words += drawn.tolist()
        return drawn


def words_of(*numerators, bits=128):
    return [(n >> (bits - 64 * (i + 1))) & ONES for n in numerators for i in range(bits // 64)]


def draws(d, law, n, source, scale=1.0, grid=-30, v=None):
    v = np.zeros(d) if v is None else v
    return np.array([noisy_vector(v, law, scale, grid, source) for _ in range(n)])


def coordinate_cdf(d, law):
    """CDF of one coordinate at scale 1: for the Laplace law, a Gamma(d) radius times a uniform direction's entry."""
    if law == "gaussian":
        return stats.norm.cdf
    if d == 1:
        return stats.laplace.cdf
    cosine = np.sqrt(stats.beta(0.5, (d - 1) / 2).ppf((np.arange(2000) + 0.5) / 2000))
    x = np.linspace(0, stats.gamma(d).isf(1e-9), 801)
    upper = np.array([stats.gamma(d).sf(at / cosine).mean() / 2 for at in x])
    return lambda t: np.where(t > 0, 1 - np.interp(np.abs(t), x, upper), np.interp(np.abs(t), x, upper))


# -------------------------------------------------------------------- the law


def check_radius(radius, d, law):
    """Kolmogorov-Smirnov, and the mean square, which sees a wrong scale sooner."""
    assert_fits(radius, stats.chi(d).cdf if law == "gaussian" else stats.gamma(d).cdf)
    second = d if law == "gaussian" else d * (d + 1)
    fourth = d * (d + 2) if law == "gaussian" else math.prod(range(d, d + 4))
    assert_mean(radius**2, second, math.sqrt(fourth - second**2))


@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [1, 2, 6, 45])
def test_law_of_radius_and_coordinates(d, law, long):
    n = COORDINATES[law] // d if long else 5000
    sample = draws(d, law, n, SimulationSource(d))
    radius = np.linalg.norm(sample, axis=1)
    check_radius(radius, d, law)
    # Coordinates of a Laplace vector depend on each other: one of each vector.
    assert_fits(sample.ravel() if law == "gaussian" else sample[:, -1], coordinate_cdf(d, law))
    # Many draws see a scale that is off by 1 %, 5,000 see 10 %.
    with pytest.raises(AssertionError):
        check_radius(radius * (1.01 if long else 1.1), d, law)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [2, 6, pytest.param(45, marks=pytest.mark.slow)])
def test_one_degree_of_freedom_less_is_caught(d, law):
    radius = np.linalg.norm(draws(d - 1, law, 5000, SimulationSource(d)), axis=1)
    check_radius(radius, d - 1, law)
    with pytest.raises(AssertionError):
        check_radius(radius, d, law)


@pytest.mark.parametrize("law", LAWS)
def test_other_law_is_caught(law):
    other = LAWS[1 - LAWS.index(law)]
    sample = draws(1, other, 5000, SimulationSource(3)).ravel()
    assert rejects(sample, coordinate_cdf(1, law))
    assert not rejects(sample, coordinate_cdf(1, other))


@pytest.mark.parametrize("n", [5000, pytest.param(250_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("law", LAWS)
def test_rounding_is_to_the_nearest_point_of_a_coarse_grid(law, n):
    """Steps as wide as half the scale, about a value between them: the law of each step is its interval's mass."""
    x, grid = 0.3, -1
    multiples = draws(1, law, n, SimulationSource(5), grid=grid, v=np.array([x])).ravel() * 2
    assert (multiples == np.round(multiples)).all()
    inner = np.arange(-3, 5)
    cdf = coordinate_cdf(1, law)

    def masses(shift):
        edges = (np.arange(inner[0], inner[-1] + 2) - 0.5 + shift) / 2 - x
        middle = np.diff(cdf(edges))
        return np.concatenate([[cdf(edges[0])], middle, [1 - cdf(edges[-1])]])

    counts = [(multiples < inner[0]).sum(), *((multiples == k).sum() for k in inner), (multiples > inner[-1]).sum()]
    assert_counts(counts, masses(0.0))
    # Rounding down instead of to the nearest; and a twentieth of a step off, which 250,000 miss with probability 3e-9.
    for shift in (0.5, 0.05) if n > 5000 else (0.5,):
        with pytest.raises(AssertionError, match="counts do not fit"):
            assert_counts(counts, masses(shift))


# -------------------------------------------------------------------- the bits


def matter(law, source_of, bits=110):
    """Which of the first bits of the second uniform change a draw on a grid of 2^-110."""
    rng = np.random.default_rng(11)
    words = [int(w) for w in rng.integers(0, 2**64, 40, dtype=np.uint64)]

    def drawn(words):
        return noisy_number(0.0, law, 1.0, -bits - 10, source_of(words))

    first = lazy.first_bits(1.0, -bits - 10) // 64  # words of the first uniform: the second starts after them
    unchanged = multiples(drawn, words)
    found = []
    for bit in range(bits):
        flipped = list(words)
        flipped[first + bit // 64] ^= 1 << (63 - bit % 64)
        found.append(multiples(drawn, flipped) != unchanged)
    return found


def multiples(drawn, words):
    """The whole numbers behind a draw: beyond 2^53 a double does not show them all."""
    seen = []
    kept = lazy.as_double

    def watch(whole, grid):
        seen.append(whole)
        return kept(whole, grid)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy, "as_double", watch)
        drawn(words)
    return seen


class Cut(Scripted):
    """Uniforms as generators of doubles make them: 53 bits and then zeros (4 words each)."""

    def _words(self, n):
        words = super()._words(n)
        keep = np.zeros(4, dtype=np.uint64)
        keep[0] = ONES - (2**11 - 1)
        return words & np.resize(keep, n)


@pytest.mark.parametrize("law", LAWS)
def test_every_bit_of_a_uniform_reaches_the_draw(law):
    assert lazy.first_bits(1.0, -120) == 256
    assert all(matter(law, Scripted))
    assert sum(matter(law, Cut)) == 53


@pytest.mark.parametrize("law", LAWS)
def test_low_bits_of_multiples_tell_nothing(law):
    """The low 6 bits of the multiples are uniform for two neighbouring values; with noise in single precision not."""
    n, grid = 6400, -30
    for x in (2.0**20, 2.0**20 + 1 / 3):
        low = (draws(1, law, n, SimulationSource(9), v=np.array([x])).ravel() * 2.0**30) % 64
        assert_counts(np.bincount(low.astype(int), minlength=64), np.full(64, 1 / 64))
        noise = np.random.default_rng(1).normal(size=n).astype(np.float32).astype(np.float64)
        rounded = np.round((x + noise) * 2.0**-grid) % 64
        with pytest.raises(AssertionError, match="counts do not fit"):
            assert_counts(np.bincount(rounded.astype(int), minlength=64), np.full(64, 1 / 64))


# -------------------------------------------------------------------- the same draw by other means


def by_mpmath(v, law, scale, grid, words, bits):
    """Round v + V computed from all bits that were drawn, in 400 digits, written from the formulas."""
    d = len(v)
    count = d + d % 2
    if law == "laplace":
        count += (d + 1) // 2 + 2 * ((d + 1) % 2)
    numerators, taken, known = [0] * count, 0, 0
    while known < bits:
        each = 2 if known == 0 else known // 64
        for i in range(count):
            for word in words[taken : taken + each]:
                numerators[i] = (numerators[i] << 64) | word
            taken += each
        known += 64 * each
    assert taken == len(words)
    with mpmath.workdps(400):
        u = [(mpmath.mpf(n) + mpmath.mpf(1) / 2) / mpmath.mpf(2) ** bits for n in numerators]

        def pair(a, b):
            r = mpmath.sqrt(-2 * mpmath.log(a))
            return [r * mpmath.cos(2 * mpmath.pi * b), r * mpmath.sin(2 * mpmath.pi * b)]

        z = [x for i in range(0, d + d % 2, 2) for x in pair(u[i], u[i + 1])][:d]
        factor = mpmath.mpf(scale)
        if law == "laplace":
            rest = u[d + d % 2 :]
            half = (d + 1) // 2
            square = -2 * sum(mpmath.log(a) for a in rest[:half])
            if (d + 1) % 2:
                square += pair(*rest[half:])[0] ** 2
            factor *= mpmath.sqrt(square)
        step = mpmath.mpf(2) ** grid
        return [
            float(mpmath.floor((mpmath.mpf(x) + factor * y) / step + 0.5) * step) for x, y in zip(v, z, strict=True)
        ]


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("d", [1, 2, 3, 6, 45])
def test_draws_equal_a_computation_in_400_digits(d, law):
    for seed in range(5):
        v = np.random.default_rng(seed).normal(size=d) * 10.0**seed
        source = Recording(seed)
        drawn = noisy_vector(v, law, 0.37, -33, source)
        assert drawn.tolist() == by_mpmath(v, law, 0.37, -33, source.words, 128)


def halfway(target, grid, scale, angular, bits):
    """The first bits of a radial uniform for which the draw about 0 lies halfway between two points of the grid."""
    with mpmath.workdps(400):
        z = (target + mpmath.mpf(1) / 2) * mpmath.mpf(2) ** grid / mpmath.mpf(scale)
        turn = 2 * mpmath.pi * (2 * angular + 1) / mpmath.mpf(2) ** (bits + 1)
        return int(mpmath.floor(mpmath.exp(-((z / mpmath.cos(turn)) ** 2) / 2) * mpmath.mpf(2) ** bits))


@pytest.mark.parametrize("tail", [0, ONES])
@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_rounding_undecided_at_first_is_refined_and_right(rounds, tail):
    """Words made so that the draw lies halfway to `rounds` doublings of the bits: the next words decide."""
    grid, scale, target = -30, 0.8, 2**29 + 12345
    bits = 128 * 2 ** (rounds - 1)
    # The angle's own bits go on in zeros: about its midpoint, as the halfway point is computed.
    angular = (1 << (bits - 4)) | (0x123456789ABCDEF << 40)
    radial = halfway(target, grid, scale, angular, bits)
    words, known = [], 0
    while known < bits:
        each = 128 if known == 0 else known
        for n in (radial, angular):
            part = (n >> (bits - known - each)) & ((1 << each) - 1)
            words += words_of(part, bits=each)
        known += each
    words += [tail] * (bits // 64) + words_of(1 << (bits - 1), bits=bits)
    source = Scripted(words)
    drawn = noisy_vector([0.0], "gaussian", scale, grid, source)
    assert source.words == []  # all of it was needed
    assert drawn.tolist() == by_mpmath([0.0], "gaussian", scale, grid, words, 2 * bits)
    assert drawn[0] * 2.0**30 == (target + 1 if tail == 0 else target)


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_refinement_is_as_rare_as_stated_whatever_the_value(law, monkeypatch):
    """With 64 bits on a grid of 2^-50 (a = 51) it can be counted: below b 2^(a-b) per coordinate, alike for all v."""
    counts = dict.fromkeys((0.0, 2.0**-51, 0.1, 1000.0), 0)
    kept, d, n = lazy.Uniforms.refine, 6, 2500
    monkeypatch.setattr(exact_vector_noise, "first_bits", lambda scale, grid: 64)
    for seed, v in enumerate(counts):

        def refine(self, v=v):
            counts[v] += 1
            kept(self)

        monkeypatch.setattr(lazy.Uniforms, "refine", refine)
        draws(d, law, n, SimulationSource(seed), grid=-50, v=np.full(d, v))
    stated = n * d * 64 * 2.0 ** (51 - 64) * (math.sqrt(d) if law == "laplace" else 1)
    assert 0 < sum(counts.values()) < 4 * stated
    assert stats.chisquare(list(counts.values())).pvalue > ALARM


def test_uniforms_next_to_0_and_1_are_refined():
    for words in ([0, 0, 1 << 63, 5], [ONES, ONES, 1 << 63, 5]):
        more = [12345, 678, 91011, 1213]
        drawn = noisy_vector([1.0], "gaussian", 1.0, -30, Scripted([*words, *more]))
        assert drawn.tolist() == by_mpmath([1.0], "gaussian", 1.0, -30, [*words, *more], 256)


def test_broken_source_is_reported_and_not_waited_for():
    class Zeros(RandomSource):
        private = False

        def _words(self, n):
            return np.zeros(n, dtype=np.uint64)

    with pytest.raises(SamplerError, match="must be broken"):
        noisy_number(0.0, "gaussian", 1.0, -30, Zeros())


# -------------------------------------------------------------------- flint's precision belongs to the process


@pytest.fixture
def precision():
    before = ctx.prec
    ctx.prec = 77
    yield 77
    ctx.prec = before


def test_precision_is_restored(precision):
    noisy_vector(np.zeros(3), "laplace", 1.0, -30, SystemSource())
    likeliest([Fraction(1), Fraction(2)], SystemSource())
    assert ctx.prec == precision


def test_precision_is_restored_after_an_exception_in_the_middle(precision):
    # A second round of bits is needed, and the source has none.
    with pytest.raises(RuntimeError, match="no words left"):
        noisy_vector([1.0], "gaussian", 1.0, -30, Scripted([0, 0, 1 << 63, 5]))
    assert ctx.prec == precision


def test_result_does_not_depend_on_the_precision_around_it(precision):
    drawn = []
    for prec in (2, 53, 5000):
        ctx.prec = prec
        drawn.append(noisy_vector(np.arange(4.0), "laplace", 1.0, -30, SimulationSource(1)).tolist())
    assert drawn[0] == drawn[1] == drawn[2]


def test_a_footpoint_is_looked_at_when_no_other_thread_draws(precision):
    """A matrix is checked at a precision of its own, which belongs to the process like any other."""
    space = dpmanifold.SPD(3, metric="riemann")
    look = threading.Thread(target=space.exact_points.require_footpoint, args=(space.origin,))
    with precision_kept():
        look.start()
        look.join(0.2)
        assert look.is_alive()
    look.join()
    assert ctx.prec == precision


def test_threads_share_one_precision(precision):
    """Eight threads draw from seeded sources: each gets what it gets alone."""
    alone = [draws(5, "laplace", 60, SimulationSource(i)) for i in range(8)]
    found = [None] * 8

    def work(i):
        found[i] = draws(5, "laplace", 60, SimulationSource(i))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert all((a == b).all() for a, b in zip(alone, found, strict=True))
    assert ctx.prec == precision


def test_source_may_draw_exactly_itself():
    class Nested(RandomSource):
        private = False

        def _words(self, n):
            noisy_number(0.0, "gaussian", 1.0, -30, SimulationSource(1))
            return SimulationSource(2).bits(n)

    expected = noisy_number(0.0, "gaussian", 1.0, -30, SimulationSource(2))
    assert noisy_number(0.0, "gaussian", 1.0, -30, Nested()) == expected


FORKS = """
import os, signal, threading
from flint import ctx
from dpmanifold.noise import SystemSource, noisy_vector

source, ended = SystemSource(), threading.Event()

def work():
    while not ended.is_set():
        noisy_vector([0.0] * 50, "gaussian", 1.0, -30, source)

thread = threading.Thread(target=work)
thread.start()
children = []
for _ in range(40):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)  # a deadlock ends here, and the child says nothing
        before = ctx.prec
        drawn = noisy_vector([0.0], "gaussian", 1.0, -30, source)[0]
        os.write(write, f"{before} {ctx.prec} {drawn!r}".encode())
        os._exit(0)
    os.close(write)
    children.append((child, read))
for child, read in children:
    print(os.read(read, 1000).decode())
    os.waitpid(child, 0)
ended.set()
thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_while_another_thread_draws():
    """Children neither wait for ever nor inherit a changed precision, and each draws its own numbers."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKS]
    folder = str(pathlib.Path(dpmanifold.__file__).parents[1])
    said = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True, env={**os.environ, "PYTHONPATH": folder}
    )
    lines = [line.split() for line in said.stdout.splitlines()]
    assert len(lines) == 40
    assert all(line[:2] == ["53", "53"] for line in lines)
    assert len({line[2] for line in lines}) == 40


# -------------------------------------------------------------------- hostile numbers


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e300, 1.7e308])
def test_extreme_scales(scale, law):
    grid = grid_of(scale, 0.0)
    drawn = draws(2, law, 200, SimulationSource(1), scale=scale, grid=grid)
    assert np.isfinite(drawn).all()
    assert all(Fraction(x) % Fraction(2) ** grid == 0 for x in drawn.ravel())
    if scale > 1e-320:
        ordinary = draws(2, law, 200, SimulationSource(1))
        seen = np.abs(drawn.ravel()) < 1e308
        assert np.allclose(drawn.ravel()[seen] / scale, ordinary.ravel()[seen], rtol=1e-8, atol=1e-8)


def test_extreme_values_and_grids():
    source = SystemSource()
    largest = sys.float_info.max
    assert noisy_number(largest, "gaussian", 1.0, -30, source) == largest
    assert noisy_number(1e300, "gaussian", 1.0, -1074, source) == 1e300
    assert noisy_number(5e-324, "gaussian", 1e-310, 0, source) == 0.0
    grid = grid_of(largest, largest)
    drawn = [noisy_number(largest, "gaussian", largest, grid, source) for _ in range(40)]
    assert max(drawn) == Fraction(2) ** 1024 - Fraction(2) ** grid  # half of them are beyond the doubles
    assert math.copysign(1.0, noisy_number(-1e-30, "gaussian", 1e-40, 0, source)) == 1.0  # one zero


def test_many_coordinates():
    for law in LAWS:
        drawn = noisy_vector(np.zeros(5000), law, 1.0, -30, SimulationSource(1))
        assert drawn.shape == (5000,)
        size = math.sqrt(5000) if law == "gaussian" else 5000.0
        assert abs(np.linalg.norm(drawn) / size - 1) < 0.15


@pytest.mark.parametrize("whole", [2**53 + 1, -(2**53) - 1, 2**1023 * 3, 10**4000, -(10**4000)], ids=range(5))
@pytest.mark.parametrize("grid", [-1074, -30, 0, 1023])
def test_a_multiple_becomes_the_nearest_double(whole, grid):
    exact = Fraction(whole) * Fraction(2) ** grid
    limit = min(Fraction(sys.float_info.max), Fraction(2) ** 1024 - Fraction(2) ** grid)
    assert lazy.as_double(whole, grid) == float(max(-limit, min(limit, exact)))


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (([], "gaussian", 1.0, -30), "v must be a real vector"),
        ((3.0, "gaussian", 1.0, -30), "v must be a real vector"),
        (([[1.0]], "gaussian", 1.0, -30), "v must be a real vector"),
        (([1j], "gaussian", 1.0, -30), "v must be a real vector"),
        (([math.nan], "gaussian", 1.0, -30), "v must hold finite"),
        (([math.inf, 1.0], "gaussian", 1.0, -30), "v must hold finite"),
        (([1.0], "normal", 1.0, -30), "law must be"),
        (([1.0], None, 1.0, -30), "law must be"),
        (([1.0], "gaussian", 0.0, -30), "scale must be"),
        (([1.0], "gaussian", math.nan, -30), "scale must be"),
        (([1.0], "gaussian", 1.0, -30.0), "grid must be"),
        (([1.0], "gaussian", 1.0, -1075), "grid must be"),
        (([1.0], "gaussian", 1.0, True), "grid must be"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, named):
    with pytest.raises(InvalidArgumentError, match=named):
        noisy_vector(*arguments, SystemSource())


def test_other_refusals():
    with pytest.raises(InvalidArgumentError, match="source must be"):
        noisy_vector([1.0], "gaussian", 1.0, -30, np.random.default_rng(0))
    with pytest.raises(InvalidDataError, match="v must be"):
        noisy_vector(["one"], "gaussian", 1.0, -30, SystemSource())
    with pytest.raises(InvalidArgumentError, match="scores must be"):
        likeliest([0.5, 1.0], SystemSource())
    with pytest.raises(InvalidArgumentError, match="scores must hold"):
        likeliest([], SystemSource())
    with pytest.raises(InvalidArgumentError, match="largest must be"):
        grid_of(1.0, math.inf)


@pytest.mark.parametrize("largest", [0.0, 1e-300, 1.0, 1e10, 1e308])
@pytest.mark.parametrize("scale", [5e-324, 1e-300, 0.75, 1.0, 1e10, 1e308])
def test_grid_is_fine_and_its_multiples_are_doubles(scale, largest):
    grid = grid_of(scale, largest)
    step = Fraction(2) ** grid
    assert step * 2**30 <= scale or step <= Fraction(largest) / 2**50 or grid == -1074
    assert Fraction(largest) + 2**20 * Fraction(scale) <= step * 2**53


# -------------------------------------------------------------------- the exponential mechanism


@pytest.mark.parametrize("n", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_likeliest_has_the_exponential_mechanisms_probabilities(n):
    scores = [Fraction(0), Fraction(1, 3), Fraction(-2), Fraction(1), Fraction(1)]
    source = SimulationSource(21)
    counts = np.bincount([likeliest(scores, source) for _ in range(n)], minlength=5)
    weights = np.exp([float(score) for score in scores])
    assert_counts(counts, weights / weights.sum())
    # Twice the epsilon would be caught, and a tenth more (100,000 draws miss it with probability 1e-27).
    for factor in (2.0, 1.1) if n > 20_000 else (2.0,):
        wrong = weights**factor
        with pytest.raises(AssertionError, match="counts do not fit"):
            assert_counts(counts, wrong / wrong.sum())


def test_likeliest_refines_a_tie():
    """Equal scores and equal words: the next words decide."""
    words = [7, 7, 7, 7]
    assert likeliest([Fraction(0)] * 2, Scripted([*words, 5, 0, 4, 0])) == 0
    assert likeliest([Fraction(0)] * 2, Scripted([*words, 4, 0, 5, 0])) == 1


def test_likeliest_of_any_scores_takes_one_round_of_bits():
    huge = Fraction(10**30_000)
    counts = np.bincount(
        [likeliest([huge, huge + Fraction(1, 2), -huge], source) for source in map(SimulationSource, range(400))],
        minlength=3,
    )
    assert counts[2] == 0
    assert stats.binomtest(int(counts[1]), 400, 1 / (1 + math.exp(-0.5))).pvalue > ALARM
    assert likeliest([huge, 3 * huge, 2 * huge], Scripted([1] * 6)) == 1
    assert likeliest([5], SystemSource()) == 0
