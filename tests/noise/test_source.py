"""Sources of randomness: both through the same tests. False-alarm rate 1e-6 each; the system's bits have no seed."""

import copy
import math
import pickle

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.noise import RandomSource, SimulationSource, SystemSource, as_source
from laws.fit import assert_counts, assert_fits, assert_mean, rejects

SIZES = [20_000, pytest.param(200_000, marks=pytest.mark.slow)]
ALL_ONES = 2**64 - 1


@pytest.fixture(params=["system", "simulation"])
def source(request):
    return SystemSource() if request.param == "system" else SimulationSource(20_240_607)


class Scripted(RandomSource):
    """Words from a list, to reach the corners that chance never reaches."""

    private = False

    def __init__(self, *words):
        self.words = list(words)

    def _words(self, n):
        taken, self.words = self.words[:n], self.words[n:]
        return np.array(taken, dtype=np.uint64)


def word(significand=0, coins=0, low=1):
    """One word as `_fraction` reads it: 1.significand, two coins, and bits whose trailing zeros are the exponent."""
    return (significand << 12) | (coins << 10) | low


SMALLEST = [word(low=0)] + [0] * 16  # 10 + 16 * 64 zeros: as small as a fraction can be, without a coin
SMALL = [word(low=0), 0, 0, 1 << 50]  # 10 + 64 + 64 + 50 zeros: 2^-189


# -------------------------------------------------------------------- bits


@pytest.mark.parametrize("n", SIZES)
def test_every_bit_is_a_fair_coin(source, n):
    words = source.bits(n)
    assert words.dtype == np.uint64
    assert words.shape == (n,)
    ones = np.array([int(((words >> np.uint64(i)) & np.uint64(1)).sum()) for i in range(64)])
    worst = np.abs(ones - n / 2).max() / math.sqrt(n / 4)
    assert worst < stats.norm.isf(1e-6 / (2 * 64))  # 64 two-sided tests share the rate


def test_system_source_keeps_nothing():
    source = SystemSource()
    source.normal(5)
    assert vars(source) == {}
    assert not np.array_equal(copy.deepcopy(source).bits(4), pickle.loads(pickle.dumps(source)).bits(4))
    assert not np.array_equal(source.bits(4), source.bits(4))


def test_simulation_source_repeats_with_its_seed():
    for draw in (lambda s: s.bits(9), lambda s: s.normal(9), lambda s: s.gamma(0.5, 9), lambda s: s.direction(3, 2)):
        assert np.array_equal(draw(SimulationSource(3)), draw(SimulationSource(3)))
        assert not np.array_equal(draw(SimulationSource(3)), draw(SimulationSource(4)))


def test_simulation_source_advances_the_generator_it_was_given():
    rng = np.random.default_rng(5)
    first = SimulationSource(rng).uniform(4)
    second = SimulationSource(rng).uniform(4)
    assert not np.array_equal(first, second)


def test_simulation_source_takes_64_bits_from_a_32_bit_generator():
    words = SimulationSource(np.random.Generator(np.random.MT19937(1))).bits(1000)
    assert int(words.max()) > 2**63


def test_wrong_words_are_an_internal_error():
    class Short(RandomSource):
        private = False

        def _words(self, n):
            return np.zeros(n, dtype=np.uint32)

    with pytest.raises(SamplerError, match="uint64"):
        Short().bits(2)


# -------------------------------------------------------------------- uniform


@pytest.mark.parametrize("n", SIZES)
def test_uniform_law(source, n):
    u = source.uniform(n)
    assert ((u > 0) & (u < 1)).all()
    assert_fits(u, stats.uniform.cdf)
    assert_mean(u, 0.5, math.sqrt(1 / 12))


@pytest.mark.parametrize("n", SIZES)
def test_uniform_exponent_is_geometric_and_digits_are_uniform(source, n):
    digits, exponent = np.frexp(source.uniform(n))
    top = int(math.log2(n / 10))
    counts = np.bincount(np.minimum(-exponent, top), minlength=top + 1)
    assert_counts(counts, [2.0 ** -(k + 1) for k in range(top)] + [2.0**-top])
    assert_fits(2 * digits - 1, stats.uniform.cdf)


def test_uniform_never_reaches_its_ends():
    assert Scripted(ALL_ONES).uniform(1)[0] == 1 - 2.0**-53
    assert Scripted(*SMALLEST).uniform(1)[0] == 2.0**-1022


def test_uniform_keeps_all_digits_near_zero():
    digits = 0x89ABCDEF01234
    u = Scripted(word(digits, low=0), 0, 1 << 3).uniform(1)[0]
    assert u == math.ldexp(2**52 + digits, -(53 + 10 + 64 + 3))


@pytest.mark.parametrize("n", SIZES)
def test_coins_are_independent_of_the_fraction_they_come_with(source, n):
    fraction, coins = source._fraction(n)
    assert_counts(np.bincount(coins, minlength=4), [0.25] * 4)
    for value in range(4):
        assert_fits(fraction[coins == value], stats.uniform.cdf)


@pytest.mark.parametrize("n", SIZES)
def test_neighbouring_draws_are_uncorrelated(source, n):
    z = source.normal((n, 2))
    assert_mean(z[:, 0] * z[:, 1], 0.0, 1.0)
    assert_mean((z[:, 0] ** 2 - 1) * (z[:, 1] ** 2 - 1), 0.0, 2.0, alarm=1e-7)  # heavier tails than the limit's


# -------------------------------------------------------------------- exponential and normal


@pytest.mark.parametrize("n", SIZES)
def test_exponential_law(source, n):
    e = source.exponential(n)
    assert (e > 0).all()
    assert_fits(e, stats.expon.cdf)
    assert_mean(e, 1.0, 1.0)


@pytest.mark.parametrize("n", SIZES)
def test_normal_law(source, n):
    z = source.normal(n)
    assert_fits(z, stats.norm.cdf)
    assert_fits(np.abs(z), stats.halfnorm.cdf)
    assert_mean(z, 0.0, 1.0)
    assert_mean(z**2, 1.0, math.sqrt(2))
    # The two halves that are inverted separately meet at the quartile of |z|.
    assert_counts(np.histogram(np.abs(z), [0, 0.6, 0.67, 0.68, 0.75, 40])[0],
                  np.diff(stats.halfnorm.cdf([0, 0.6, 0.67, 0.68, 0.75, 40])))  # fmt: skip


def test_exponential_has_full_resolution_at_both_ends():
    # The uniform's distance from either end is half of the fraction, 2^-189.
    near_zero = Scripted(*SMALL).exponential(1)[0]
    assert near_zero == pytest.approx(2.0**-190, rel=1e-15, abs=0)
    far = Scripted(SMALL[0] | word(coins=1, low=0), *SMALL[1:]).exponential(1)[0]
    assert far == pytest.approx(190 * math.log(2), rel=1e-15, abs=0)


# Rounding of the special functions: a few units in the last place.
@pytest.mark.parametrize("digits", [0, 0x8000000000000, 0xFFFFFFFFFFFFF])
@pytest.mark.parametrize("tail", [[], [1 << 60], [0, 1 << 50], [0] * 7 + [1]])
def test_normal_is_the_inverse_of_its_law_near_zero_and_in_the_tails(digits, tail):
    low = 0 if tail else 1
    u = Scripted(word(digits, low=low), *tail).uniform(1)[0]
    inner = Scripted(word(digits, coins=1, low=low), *tail).normal(1)[0]
    outer = Scripted(word(digits, coins=0, low=low), *tail).normal(1)[0]
    with mpmath.workdps(40):
        # For u this small the inverse is a power series: erfinv(x) = sqrt(pi)/2 x up to x^3.
        x = mpmath.mpf(u) / 2
        exact = mpmath.sqrt(2) * (mpmath.erfinv(x) if u > 1e-10 else mpmath.sqrt(mpmath.pi) / 2 * x)
        assert inner == pytest.approx(float(exact), rel=4e-15, abs=0)
        # P(|Z| > z) = u/2, to the relative change that the last digits of z make: about z^2 of them.
        assert float(mpmath.erfc(outer / mpmath.sqrt(2)) / (mpmath.mpf(u) / 2)) == pytest.approx(1, rel=1e-11)
    assert Scripted(word(digits, coins=3, low=low), *tail).normal(1)[0] == -inner


# -------------------------------------------------------------------- gamma


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("shape", [0.05, 0.3, 0.99, 1.0, 1.5, 3.0, 45.0, 5000.0, 5e6])
def test_gamma_law(source, shape, n):
    g = source.gamma(shape, n)
    assert_fits(g, stats.gamma(shape).cdf)
    if shape >= 0.3:  # below, the mean is far from its normal limit
        assert_mean(g, shape, math.sqrt(shape))


def test_gamma_of_tiny_shape_underflows_to_zero_in_silence(source):
    assert (source.gamma(1e-300, 50) == 0).all()


def test_gamma_gives_up_when_nothing_is_ever_accepted():
    class Refusing(RandomSource):
        private = False

        def _words(self, n):
            # The outermost normal (coin 0, negative) makes the proposal impossible.
            return np.tile(np.array([word(coins=2, low=1 << 9)], dtype=np.uint64), n)

    with pytest.raises(SamplerError, match="rounds"):
        Refusing().gamma(1.0, 1)


# -------------------------------------------------------------------- directions


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("d", [2, 3, 10])
def test_direction_is_uniform_on_the_sphere(source, d, n):
    v = source.direction(n, d)
    assert v.shape == (n, d)
    assert np.allclose(np.linalg.norm(v, axis=1), 1, rtol=0, atol=4e-16 * d)
    # Any projection x of a uniform direction has (1 + x)/2 ~ Beta((d-1)/2, (d-1)/2).
    law = stats.beta((d - 1) / 2, (d - 1) / 2)
    for axis in (np.eye(d)[0], np.eye(d)[-1], np.ones(d) / math.sqrt(d)):
        assert_fits(np.clip((1 + v @ axis) / 2, 0, 1), law.cdf)


def test_direction_in_one_dimension_is_a_sign(source):
    v = source.direction(20_000, 1)[:, 0]
    assert set(v) == {-1.0, 1.0}
    assert_counts([(v < 0).sum(), (v > 0).sum()], [0.5, 0.5])


def test_direction_in_many_dimensions_has_unit_length(source):
    assert np.allclose(np.linalg.norm(source.direction(3, 5000), axis=1), 1, rtol=0, atol=1e-13)


# -------------------------------------------------------------------- sizes and arguments

DRAWS = {
    "uniform": lambda s, size: s.uniform(size),
    "exponential": lambda s, size: s.exponential(size),
    "normal": lambda s, size: s.normal(size),
    "gamma": lambda s, size: s.gamma(2.5, size),
    "gamma below one": lambda s, size: s.gamma(0.5, size),
    "direction": lambda s, size: s.direction(size, 3)[..., 0],
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize(
    ("size", "shape"), [(0, (0,)), ((), ()), (4, (4,)), ((2, 3), (2, 3)), ((2, 0), (2, 0)), (np.int64(2), (2,))]
)
def test_sizes_are_numpys(source, name, size, shape):
    draws = DRAWS[name](source, size)
    assert isinstance(draws, np.ndarray)
    assert draws.dtype == np.float64
    assert draws.shape == shape


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("size", [-1, 2.0, "3", None, True, (2, -1), [2, 3]])
def test_wrong_sizes_are_refused(name, size):
    with pytest.raises(InvalidArgumentError, match="size"):
        DRAWS[name](SimulationSource(1), size)


@pytest.mark.parametrize("shape", [0.0, -1.0, math.nan, math.inf, "2", None, True])
def test_wrong_gamma_shapes_are_refused(shape):
    with pytest.raises(InvalidArgumentError, match="shape"):
        SimulationSource(1).gamma(shape, 3)


@pytest.mark.parametrize("d", [0, -1, 2.0, True])
def test_wrong_dimensions_are_refused(d):
    with pytest.raises(InvalidArgumentError, match="d must"):
        SimulationSource(1).direction(3, d)


def test_as_source():
    assert isinstance(as_source(None), SystemSource)
    assert as_source(None).private
    assert isinstance(as_source(7), SimulationSource)
    assert not as_source(7).private
    assert np.array_equal(as_source(np.int32(7)).bits(3), as_source(np.random.default_rng(7)).bits(3))
    source = SystemSource()
    assert as_source(source) is source


@pytest.mark.parametrize("rng", [-1, 1.0, True, "seed", np.random, np.random.RandomState(1), SystemSource])
def test_as_source_refuses_anything_else(rng):
    with pytest.raises(InvalidArgumentError, match="rng must be"):
        as_source(rng)


# -------------------------------------------------------------------- tests of the tests

# Each is 0.037 or more away from the law: the check's threshold (0.019) plus five standard deviations (0.0035).


@pytest.mark.parametrize(
    ("wrong", "cdf"),
    [
        pytest.param(lambda s, n: 1.03 * s.gamma(10.0, n), stats.gamma(10).cdf, id="scale off by 3 %"),
        pytest.param(lambda s, n: s.gamma(9.7, n), stats.gamma(10).cdf, id="shape off by 3 %"),
        pytest.param(lambda s, n: s.normal(n) + 0.15, stats.norm.cdf, id="shifted normal"),
        pytest.param(lambda s, n: 1.2 * s.normal(n), stats.norm.cdf, id="normal of the wrong width"),
        pytest.param(lambda s, n: s.uniform(n) ** 1.2, stats.uniform.cdf, id="skewed uniform"),
        pytest.param(lambda s, n: np.abs(s.normal(n)), stats.norm.cdf, id="lost sign"),
        pytest.param(lambda s, n: s.direction(n, 3)[:, 0], stats.uniform(-1, 1.9).cdf, id="truncated range"),
    ],
)
def test_the_check_rejects_wrong_samplers(source, wrong, cdf):
    assert rejects(wrong(source, 20_000), cdf)
