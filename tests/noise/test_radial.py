"""Radial laws: fit at ordinary and extreme parameters, integrals against closed forms and mpmath, hostile input.

False-alarm rate 1e-6 for each statistical test; seeded, but for the system's source, which has no seed.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import special, stats

from dpmanifold.errors import InvalidArgumentError, SamplerError
from dpmanifold.noise import RadialLaw, SimulationSource, SystemSource, tangents
from laws.fit import assert_fits, assert_mean, rejects, tabulated_cdf

SIZES = [20_000, pytest.param(200_000, marks=pytest.mark.slow)]


@pytest.fixture(params=["system", "simulation"])
def source(request):
    return SystemSource() if request.param == "system" else SimulationSource(20_240_607)


# -------------------------------------------------------------------- the laws of theory section 4


def log_sinh(x):
    return x + np.log(-np.expm1(-2 * x)) - math.log(2)


def flat_laplace(d, s):
    return lambda t: (d - 1) * np.log(t) - t / s, lambda t: (d - 1) / t - 1 / s, [0, np.inf]


def flat_gauss(d, s):
    return lambda t: (d - 1) * np.log(t) - (t / s) ** 2 / 2, lambda t: (d - 1) / t - t / s / s, [0, np.inf]


def sphere_laplace(d, s):
    return lambda t: (d - 1) * np.log(np.sin(t)) - t / s, lambda t: (d - 1) / np.tan(t) - 1 / s, [0, np.pi]


def sphere_gauss(d, s):
    return (
        lambda t: (d - 1) * np.log(np.sin(t)) - (t / s) ** 2 / 2,
        lambda t: (d - 1) / np.tan(t) - t / s / s,
        [0, np.pi],
    )


def hyperbolic_laplace(d, s):
    return lambda t: (d - 1) * log_sinh(t) - t / s, lambda t: (d - 1) / np.tanh(t) - 1 / s, [0, np.inf]


def hyperbolic_gauss(d, s):
    return lambda t: (d - 1) * log_sinh(t) - (t / s) ** 2 / 2, lambda t: (d - 1) / np.tanh(t) - t / s / s, [0, np.inf]


def hyperbolic_gauss_centred(d, s):
    """The same with the square completed: what a caller writes for scales at which the plain form cancels."""
    return (
        lambda t: (d - 1) * np.log(-np.expm1(-2 * t)) - (t / s - (d - 1) * s) ** 2 / 2,
        lambda t: (d - 1) / np.tanh(t) - t / s / s,
        [0, np.inf],
    )


def kendall_laplace(m, s):
    return (
        lambda t: (2 * m - 1) * np.log(np.sin(t)) + np.log(np.cos(t)) - t / s,
        lambda t: (2 * m - 1) / np.tan(t) - np.tan(t) - 1 / s,
        [0, np.pi / 2],
    )


def spd_laplace(k, s):
    pairs, a = k * (k - 1) // 2, 1 / math.sqrt(2 * (k - 1))
    return (
        lambda t: (k - 1) * np.log(t) + pairs * log_sinh(a * t) - t / s,
        lambda t: (k - 1) / t + pairs * a / np.tanh(a * t) - 1 / s,
        [0, np.inf],
    )


def chords(pieces, d, s):
    """What KNG proposes from: chords H of a concave G on a grid, exp(-H/s) times the sphere's area."""
    grid = np.linspace(0, np.pi / 4, pieces + 1)
    values = np.sin(1.3 * grid) / 1.3
    slopes = np.diff(values) / np.diff(grid)

    def piece(t):
        return np.clip(np.searchsorted(grid, t) - 1, 0, pieces - 1)

    def height(t):
        i = piece(t)
        return (d - 1) * np.log(np.sin(t)) - (values[i] + slopes[i] * (t - grid[i])) / s

    return height, lambda t: (d - 1) / np.tan(t) - slopes[piece(t)] / s, grid


def jumps():
    """Three exponential pieces with jumps between them, one of them negligible, and their exact integrals."""
    edges, heights, slopes = np.array([0.5, 1.0, 2.0, 5.0]), np.array([0.3, -900.0, 1.2]), np.array([2.0, 5.0, -0.7])

    def piece(t):
        return np.clip(np.searchsorted(edges, t) - 1, 0, 2)

    def height(t):
        return heights[piece(t)] + slopes[piece(t)] * (t - edges[piece(t)])

    def mass_to(t):
        total = 0.0
        for start, end, h, g in zip(edges[:-1], edges[1:], heights, slopes, strict=True):
            total = total + np.exp(h) * np.expm1(g * (np.clip(t, start, end) - start)) / g
        return total

    return (height, lambda t: slopes[piece(t)], edges), mass_to


FAMILIES = {
    "flat laplace": flat_laplace,
    "flat gauss": flat_gauss,
    "sphere laplace": sphere_laplace,
    "sphere gauss": sphere_gauss,
    "hyperbolic gauss": hyperbolic_gauss,
    "kendall laplace": kendall_laplace,
}

# Laws with a CDF in closed form: (arguments, cdf).
CLOSED = {
    "flat laplace d=1": (flat_laplace(1, 0.3), stats.gamma(1, scale=0.3).cdf),
    "flat laplace d=2": (flat_laplace(2, 1e-3), stats.gamma(2, scale=1e-3).cdf),
    "flat laplace d=45": (flat_laplace(45, 7.0), stats.gamma(45, scale=7.0).cdf),
    "flat laplace d=5000": (flat_laplace(5000, 1.0), stats.gamma(5000).cdf),
    "flat gauss d=1": (flat_gauss(1, 0.3), stats.chi(1, scale=0.3).cdf),
    "flat gauss d=10": (flat_gauss(10, 2.0), stats.chi(10, scale=2.0).cdf),
    "flat gauss d=1000": (flat_gauss(1000, 2.0), stats.chi(1000, scale=2.0).cdf),
    "sphere area d=2": (sphere_laplace(2, 1e300), lambda t: np.sin(t / 2) ** 2),
    "sphere area d=30": (
        sphere_gauss(30, 1e300),
        lambda t: np.where(
            t < np.pi / 2,
            special.betainc(15, 0.5, np.sin(t) ** 2) / 2,
            1 - special.betainc(15, 0.5, np.sin(t) ** 2) / 2,
        ),
    ),
    "sphere laplace d=2": (
        sphere_laplace(2, 0.4),
        lambda t: (1 - np.exp(-t / 0.4) * (np.cos(t) + np.sin(t) / 0.4)) / (1 + np.exp(-np.pi / 0.4)),
    ),
    "kendall area m=4": (kendall_laplace(4, 1e300), lambda t: np.sin(t) ** 8),
    "hyperbolic laplace d=2": (
        hyperbolic_laplace(2, 0.5),
        lambda t: 1 - 1.5 * np.exp(-t) + 0.5 * np.exp(-3 * t),
    ),
    "interval": ((np.zeros_like, np.zeros_like, [1.0, 3.0]), stats.uniform(1, 2).cdf),
    "jumps": (jumps()[0], lambda t: jumps()[1](t) / jumps()[1](5.0)),
}

# Laws without one: compared with a table.
TABULATED = {
    "sphere laplace d=10": sphere_laplace(10, 0.05),
    "sphere laplace d=300": sphere_laplace(300, 0.02),
    "sphere gauss d=2": sphere_gauss(2, 0.7),
    "sphere gauss d=1": sphere_gauss(1, 2.0),
    "hyperbolic gauss d=2": hyperbolic_gauss(2, 1.0),
    "hyperbolic gauss d=10": hyperbolic_gauss(10, 3.0),
    "hyperbolic laplace d=5": hyperbolic_laplace(5, 0.2),
    "kendall laplace m=1": kendall_laplace(1, 0.5),
    "kendall laplace m=10": kendall_laplace(10, 0.05),
    "spd laplace k=3": spd_laplace(3, 0.2),
    "spd laplace k=9": spd_laplace(9, 0.02),
    "spd laplace near its limit": spd_laplace(3, 0.66),
    "8 chords d=2": chords(8, 2, 0.05),
    "32 chords d=30": chords(32, 30, 0.01),
}


# -------------------------------------------------------------------- goodness of fit


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CLOSED)
def test_draws_follow_the_closed_form(name, n, source):
    arguments, cdf = CLOSED[name]
    law = RadialLaw(*arguments)
    draws = law.sample(n, source)
    assert_fits(draws, cdf)
    assert_mean(draws, law.mean(), math.sqrt(law.moment(2) - law.mean() ** 2))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", TABULATED)
def test_draws_follow_the_tabulated_law(name, n, source):
    law = RadialLaw(*TABULATED[name])
    # The window only has to be wide enough: outside of it lies 1e-12 of the law.
    low, high = law.quantile(1e-12), law.quantile(1 - 1e-12)
    draws = law.sample(n, source)
    assert_fits(draws, tabulated_cdf(TABULATED[name][0], low, high))
    assert_mean(draws, law.mean(), math.sqrt(law.moment(2) - law.mean() ** 2))


@pytest.mark.parametrize("s", [1e-300, 1e-150, 1e150, 1e300])
@pytest.mark.parametrize("d", [1, 2, 50, 5000])
def test_draws_follow_the_law_at_extreme_scales(d, s):
    draws = RadialLaw(*flat_laplace(d, s)).sample(20_000, SimulationSource(d))
    assert_fits(draws / s, stats.gamma(d).cdf)


def test_nothing_is_on_a_grid_near_zero():
    # Laplace in one dimension: a grid of 2^-53 scales would show as repeated or zero values once magnified.
    draws = RadialLaw(*flat_laplace(1, 1.0)).sample(200_000, SimulationSource(5))
    small = np.sort(draws)[:2000]
    assert np.unique(draws).size == draws.size
    digits = np.frexp(small)[0].view(np.int64) & 0xFF
    assert np.unique(digits).size > 250  # the last 8 bits of 2000 numbers take nearly all of 256 values


# -------------------------------------------------------------------- acceptance and work

SCALES = [1e-300, 1e-150, 1e-10, 1e-3, 0.03, 0.3, 1.0, 4.0, 50.0, 1e4, 1e10, 1e150, 1e300]


@pytest.mark.parametrize("d", [1, 2, 3, 7, 30, 400, 5000])
@pytest.mark.parametrize("family", FAMILIES)
def test_acceptance_at_every_dimension_and_scale(family, d):
    for s in SCALES:
        arguments = FAMILIES[family](d, s)
        if family == "hyperbolic gauss" and d > 1 and d * s > 3e5:
            # Its terms, (d s)^2, cancel, and the largest mode is beyond the largest double.
            with pytest.raises(InvalidArgumentError, match="double"):
                RadialLaw(*arguments)
            continue
        law = RadialLaw(*arguments)
        draws = law.sample(100, SimulationSource(1))
        assert law.acceptance() > 0.98, (d, s)
        assert ((draws > 0) & (draws < arguments[2][-1])).all(), (d, s)


@pytest.mark.parametrize("k", [2, 3, 9, 30, 100])
def test_acceptance_of_spd_laws_up_to_their_limit(k):
    limit = k * (k - 1) / 2 / math.sqrt(2 * (k - 1))
    for rate in [1e300, 1e6 * limit, 10 * limit, 2 * limit, 1.05 * limit, (1 + 1e-6) * limit]:
        law = RadialLaw(*spd_laplace(k, 1 / rate))
        law.sample(2000, SimulationSource(1))
        assert law.acceptance() > 0.98


@pytest.mark.parametrize("s", [1e-300, 1e-5, 1e-2, 1.0, 1e300])
@pytest.mark.parametrize("d", [1, 2, 30, 1000])
@pytest.mark.parametrize("pieces", [1, 8, 64])
def test_acceptance_of_many_pieces(pieces, d, s):
    law = RadialLaw(*chords(pieces, d, s))
    draws = law.sample(2000, SimulationSource(1))
    assert law.acceptance() > 0.98
    assert_fits(draws, law.cdf)


def test_envelope_holds_where_the_callers_formula_cancels():
    # At (1 + 1e-8) of its limit the terms are 1e9 and their difference 20: rounding moves the density by 1e-6.
    limit = 3 / math.sqrt(4)
    law = RadialLaw(*spd_laplace(3, 1 / (limit * (1 + 1e-8))))
    assert 1e-8 < law.rounding < 1e-5
    assert_fits(law.sample(200_000, SimulationSource(2)), law.cdf)


def test_proposals_are_counted(source):
    law = RadialLaw(*sphere_gauss(10, 0.3))
    n = 20_000
    draws, proposals = law.sample_counted((n // 100, 100), source)
    assert draws.shape == (n // 100, 100)
    # The number of failures before n successes is negative binomial.
    failures = stats.nbinom(n, law.acceptance())
    assert failures.ppf(1e-6) <= proposals - n <= failures.isf(1e-6)


def test_work_does_not_depend_on_the_scale():
    # The same law in other units: the same number of proposals from the same bits, but for rounding.
    counts = [RadialLaw(*flat_laplace(10, s)).sample_counted(20_000, SimulationSource(3))[1] for s in (1e-200, 1e200)]
    assert abs(counts[0] - counts[1]) < 100


# -------------------------------------------------------------------- integrals

RTOL = 1e-10  # what RadialLaw promises


@pytest.mark.parametrize("name", CLOSED)
def test_cdf_and_quantile_against_closed_forms(name):
    arguments, cdf = CLOSED[name]
    law = RadialLaw(*arguments)
    # From 1e-3: below, some of the closed forms cancel themselves.
    q = np.array([[1e-3, 0.01, 0.1], [0.5, 0.9, 0.999]])
    t = law.quantile(q)
    assert t.shape == q.shape
    assert np.allclose(cdf(t), q, rtol=RTOL, atol=0)
    assert np.allclose(law.cdf(t), q, rtol=RTOL, atol=0)
    assert np.allclose(law.sf(t), 1 - q, rtol=RTOL, atol=0)


@pytest.mark.parametrize("s", [1e-250, 1e-3, 1.0, 1e300])  # 1e-45 of the smallest must still be a double
@pytest.mark.parametrize("d", [1, 2, 10, 1000])
def test_flat_laplace_normalizer_moments_and_tails(d, s):
    law = RadialLaw(*flat_laplace(d, s))
    exact = special.gammaln(d) + d * math.log(s)
    # The terms of the log density are d log s: the log of the normaliser is known to their last place.
    assert law.log_normalizer() == pytest.approx(exact, rel=4e-16, abs=RTOL)
    assert law.mean() / s == pytest.approx(d, rel=RTOL)
    gamma = stats.gamma(d)
    tail = np.array([1e-6, 1e-15, 1e-30, 1e-45])
    assert np.allclose(law.sf(gamma.isf(tail) * s), tail, rtol=RTOL, atol=0)
    assert np.allclose(law.cdf(gamma.ppf(tail) * s), tail, rtol=RTOL, atol=0)
    assert np.allclose(law.quantile([1e-12, 0.5, 0.99]) / s, gamma.ppf([1e-12, 0.5, 0.99]), rtol=RTOL, atol=0)


@pytest.mark.parametrize("k", [0, 1, 2, 3.5, 8, 20])
def test_moments_of_the_exponential_law(k):
    law = RadialLaw(*flat_laplace(1, 0.1))
    assert law.moment(k) == pytest.approx(math.gamma(k + 1) * 0.1**k, rel=RTOL, abs=0)


def test_a_moment_beyond_the_range_of_a_double_is_infinite_or_zero_without_a_warning():
    assert RadialLaw(*flat_laplace(2, 1e300)).moment(2) == math.inf
    assert RadialLaw(*flat_laplace(2, 1e-300)).moment(2) == 0.0


def mp_sin_laplace(d, s):
    return lambda t: mpmath.sin(t) ** (d - 1) * mpmath.exp(-t / mpmath.mpf(s))


def mp_sinh_gauss(d, s):
    return lambda t: mpmath.sinh(t) ** (d - 1) * mpmath.exp(-(t**2) / (2 * mpmath.mpf(s) ** 2))


def mp_spd(k, s):
    a = 1 / mpmath.sqrt(2 * (k - 1))
    return lambda t: t ** (k - 1) * mpmath.sinh(a * t) ** (k * (k - 1) // 2) * mpmath.exp(-t / mpmath.mpf(s))


def mp_kendall(m, s):
    return lambda t: mpmath.sin(t) ** (2 * m - 1) * mpmath.cos(t) * mpmath.exp(-t / mpmath.mpf(s))


@pytest.mark.parametrize(
    ("arguments", "density"),
    [
        pytest.param(sphere_laplace(2, 0.05), mp_sin_laplace(2, 0.05), id="sphere d=2"),
        pytest.param(sphere_laplace(30, 0.1), mp_sin_laplace(30, 0.1), id="sphere d=30"),
        pytest.param(sphere_laplace(5000, 1e-3), mp_sin_laplace(5000, 1e-3), id="sphere d=5000"),
        pytest.param(sphere_laplace(3, 1e300), mp_sin_laplace(3, 1e300), id="sphere area"),
        pytest.param(hyperbolic_gauss(2, 1.0), mp_sinh_gauss(2, 1.0), id="hyperbolic d=2"),
        pytest.param(hyperbolic_gauss(10, 2.0), mp_sinh_gauss(10, 2.0), id="hyperbolic d=10"),
        pytest.param(spd_laplace(3, 0.2), mp_spd(3, 0.2), id="spd k=3"),
        pytest.param(spd_laplace(9, 0.02), mp_spd(9, 0.02), id="spd k=9"),
        pytest.param(kendall_laplace(5, 0.2), mp_kendall(5, 0.2), id="kendall m=5"),
    ],
)
def test_integrals_against_mpmath(arguments, density):
    law = RadialLaw(*arguments)
    last = arguments[2][-1]
    with mpmath.workdps(30):
        # Panels by hand: even steps over the bulk, then what is left on both sides.
        low, median, high = (mpmath.mpf(float(law.quantile(q))) for q in (1e-20, 0.5, 1 - 1e-15))
        end = min(mpmath.mpf(last), high + 2 * (high - low)) if math.isfinite(last) else high + 2 * (high - low)
        left = [0, low / 2, *mpmath.linspace(low, median, 17)]
        right = [*mpmath.linspace(median, high, 17), (high + end) / 2, end]

        def integral(function, panels):
            return mpmath.quad(function, panels, method="gauss-legendre")

        below, above = integral(density, left), integral(density, right)
        total = below + above
        first = integral(lambda t: t * density(t), left + right[1:])
        assert law.log_normalizer() == pytest.approx(float(mpmath.log(total)), rel=4e-16, abs=RTOL)
        assert float(law.cdf(float(median))) == pytest.approx(float(below / total), rel=RTOL)
        assert float(law.sf(float(median))) == pytest.approx(float(above / total), rel=RTOL)
        assert law.mean() == pytest.approx(float(first / total), rel=RTOL)


def test_jumps_between_pieces_and_a_negligible_piece():
    arguments, mass_to = jumps()
    law = RadialLaw(*arguments)
    assert law.log_normalizer() == pytest.approx(math.log(mass_to(5.0)), rel=0, abs=RTOL)
    assert law.acceptance() > 1 - 1e-6  # exponential pieces are their own envelope, up to the lift
    draws = law.sample(20_000, SimulationSource(4))
    assert not ((draws > 1) & (draws < 2)).any()


def test_a_tall_narrow_piece_beside_a_wide_low_one():
    height = 20.0
    law = RadialLaw(lambda t: np.where(t < 1e-9, height, 0.0) - t, lambda t: -np.ones_like(t), [0, 1e-9, 1.0, np.inf])
    spike = math.exp(height) * -math.expm1(-1e-9)
    share = spike / (spike + math.exp(-1e-9))
    assert float(law.cdf(1e-9)) == pytest.approx(share, rel=RTOL)
    draws = law.sample(20_000, SimulationSource(4))
    assert_mean(draws < 1e-9, share, math.sqrt(share * (1 - share)))
    assert_fits(draws[draws > 1e-9], stats.expon.cdf)


def test_a_piece_without_density_is_left_out():
    law = RadialLaw(lambda t: np.where(t < 1, -np.inf, -t), lambda t: np.where(t < 1, np.nan, -1.0), [0, 1, np.inf])
    assert law.mean() == pytest.approx(2.0, rel=RTOL)
    assert law.sample(1000, SimulationSource(1)).min() > 1
    assert float(law.cdf(1.0)) == 0.0


def test_ends_of_the_law():
    law = RadialLaw(*sphere_laplace(3, 0.3))
    assert law.quantile([0.0, 1.0]).tolist() == [0.0, np.pi]
    assert law.cdf([-1.0, 0.0, np.pi, 9.0, np.inf]).tolist() == [0, 0, 1, 1, 1]
    assert law.sf([-1.0, 0.0, np.pi, 9.0, np.inf]).tolist() == [1, 1, 0, 0, 0]
    assert RadialLaw(*flat_laplace(3, 0.3)).quantile(1.0) == np.inf
    one = RadialLaw(*flat_laplace(1, 1.0))
    assert one.cdf(5e-324) < 1e-300  # nothing is evaluated at the break itself


# -------------------------------------------------------------------- hostile input


@pytest.mark.parametrize(("size", "shape"), [(0, (0,)), ((), ()), ((0, 3), (0, 3)), ((2, 3), (2, 3))])
def test_sizes_are_numpys(size, shape):
    draws, proposals = RadialLaw(*flat_laplace(2, 1.0)).sample_counted(size, SimulationSource(1))
    assert isinstance(draws, np.ndarray)
    assert draws.shape == shape
    assert proposals >= draws.size


@pytest.mark.parametrize("size", [-1, 2.5, None, True, (3, -2), "4"])
def test_wrong_sizes_are_refused(size):
    with pytest.raises(InvalidArgumentError, match="size"):
        RadialLaw(*flat_laplace(2, 1.0)).sample(size, SimulationSource(1))


@pytest.mark.parametrize("source", [None, 7, np.random.default_rng(1)])
def test_a_source_is_required(source):
    with pytest.raises(InvalidArgumentError, match="as_source"):
        RadialLaw(*flat_laplace(2, 1.0)).sample(3, source)


@pytest.mark.parametrize(
    "breaks",
    [
        [],
        [0],
        0.0,
        [1, 0],
        [0, 0],
        [0, 1, 1],
        [0, np.nan],
        [np.nan, 1],
        [-1, 1],
        [0, np.inf, np.inf],
        [np.inf, np.inf],
        [[0, 1]],
        "ab",
        None,
        [0, None],
        [1, np.nextafter(1, 2)],
        [0, 1e-320],
    ],
)
def test_wrong_breaks_are_refused(breaks):
    with pytest.raises(InvalidArgumentError, match="breaks"):
        RadialLaw(lambda t: -t, lambda t: -np.ones_like(t), breaks)


def ones(t):
    return -np.ones_like(t)


@pytest.mark.parametrize(
    ("log_density", "derivative", "breaks", "message"),
    [
        pytest.param(lambda t: np.nan * t, ones, [0, 1], "log_density must be a number", id="NaN density"),
        pytest.param(lambda t: -t, lambda t: np.nan * t, [0, 1], "derivative must be a number", id="NaN derivative"),
        pytest.param(lambda t: np.nan * t, lambda t: np.nan * t, [0, 1], "log_density must be", id="NaN both"),
        pytest.param(
            lambda t: np.where(abs(t - 0.5) < 0.1, np.nan, -t), ones, [0, 1], "NaN or inf at", id="NaN inside"
        ),
        pytest.param(lambda t: np.inf + t, ones, [0, 1], "log_density must be a number", id="inf density"),
        pytest.param(lambda t: -np.inf * t, ones, [0, 1], "no mass", id="no mass"),
        pytest.param(lambda t: -np.inf * t, lambda t: np.nan * t, [0, 1, np.inf], "no mass", id="no mass, NaN"),
        pytest.param(lambda t: t, lambda t: -ones(t), [0, np.inf], "infinite mass", id="increasing to infinity"),
        pytest.param(np.zeros_like, np.zeros_like, [0, np.inf], "infinite mass", id="flat to infinity"),
        pytest.param(lambda t: -t, lambda t: -1.0, [0, 1], "derivative must take", id="scalar derivative"),
        pytest.param(lambda t: 0j - t, ones, [0, 1], "log_density must take", id="complex density"),
        pytest.param(lambda t: t[:1], ones, [0, 1], "log_density must take", id="wrong shape"),
        pytest.param(lambda t: 9 * (t - 0.5) ** 2, lambda t: 18 * (t - 0.5), [0, 1], "not concave", id="convex"),
        pytest.param(lambda t: -np.abs(t - 1), lambda t: 0 * t - 0.2, [0, 2], "rises above|fit", id="wrong slope"),
        pytest.param(
            lambda t: -((t - 1) ** 2) * 50, lambda t: -1000 * (t - 1), [0, 2], "rises above|fit", id="slope too steep"
        ),
        pytest.param(lambda t: np.where(t > 1, -np.inf, -t), ones, [0, 9], "put a break", id="hidden end"),
    ],
)
def test_wrong_functions_are_refused(log_density, derivative, breaks, message):
    with pytest.raises(InvalidArgumentError, match=message):
        RadialLaw(log_density, derivative, breaks)


@pytest.mark.parametrize("s", [0.5, 0.51, 10.0])
def test_a_laplace_law_beyond_its_limit_is_refused(s):
    with pytest.raises(InvalidArgumentError, match="infinite mass"):
        RadialLaw(*hyperbolic_laplace(3, s))


@pytest.mark.parametrize(("d", "s"), [(5000, 1e3), (100, 1e5), (2, 1e10), (2, 1e150), (5000, 1e150)])
def test_a_density_lost_to_rounding_is_refused(d, s):
    with pytest.raises(InvalidArgumentError, match="double precision"):
        RadialLaw(*hyperbolic_gauss(d, s))


@pytest.mark.parametrize(("d", "s"), [(5000, 1e3), (100, 1e5), (5000, 1e5)])
def test_the_same_density_is_fine_when_written_about_its_mode(d, s):
    law = RadialLaw(*hyperbolic_gauss_centred(d, s))
    assert law.acceptance() > 0.98
    # Far out the area is exponential and the law normal, with mean (d - 1) s^2.
    assert_fits((law.sample(20_000, SimulationSource(6)) - (d - 1) * s * s) / s, stats.norm.cdf)


def test_a_curve_above_its_envelope_is_an_internal_error():
    # A bump too narrow for any of the points looked at when the law is made, but not for 200,000 draws.
    def bumped(t):
        return -t + 0.01 * (np.abs(t - 0.7123) < 2e-4)

    law = RadialLaw(bumped, lambda t: -np.ones_like(t), [0, np.inf])
    with pytest.raises(SamplerError, match="envelope"):
        law.sample(200_000, SimulationSource(1))


def test_sampling_gives_up_after_its_last_round(monkeypatch):
    law = RadialLaw(*flat_laplace(2, 1.0))
    monkeypatch.setattr(RadialLaw, "_propose", lambda self, n, source: (np.ones(n), np.zeros(n, dtype=bool)))
    with pytest.raises(SamplerError, match="rounds"):
        law.sample(3, SimulationSource(1))


@pytest.mark.parametrize("q", [-0.1, 1.1, np.nan, [0.5, 2.0]])
def test_wrong_probabilities_are_refused(q):
    with pytest.raises(InvalidArgumentError, match="q must be"):
        RadialLaw(*flat_laplace(2, 1.0)).quantile(q)


@pytest.mark.parametrize("k", [-1, np.nan, np.inf, "2", None, True])
def test_wrong_powers_are_refused(k):
    with pytest.raises(InvalidArgumentError, match="k must be"):
        RadialLaw(*flat_laplace(2, 1.0)).moment(k)


@pytest.mark.parametrize("method", ["cdf", "sf"])
def test_cdf_refuses_nan(method):
    with pytest.raises(InvalidArgumentError, match="t must be"):
        getattr(RadialLaw(*flat_laplace(2, 1.0)), method)([0.5, np.nan])


# -------------------------------------------------------------------- tests of the tests


def test_a_scale_off_by_three_per_cent_is_rejected(source):
    draws = RadialLaw(*flat_laplace(10, 1.03)).sample(20_000, source)
    assert rejects(draws, stats.gamma(10).cdf)


def test_a_dropped_area_factor_is_rejected(source):
    # exp(-t/s) on the sphere without sin^(d-1): against the right law already in two dimensions.
    draws = RadialLaw(*sphere_laplace(1, 0.4)).sample(20_000, source)
    assert rejects(draws, CLOSED["sphere laplace d=2"][1])


def test_a_flat_area_on_the_sphere_is_rejected(source):
    # t^(d-1) instead of sin(t)^(d-1): small next to the footpoint, plain at ordinary scales.
    s = 0.1
    law = RadialLaw(lambda t: 9 * np.log(t) - t / s, lambda t: 9 / t - 1 / s, [0, np.pi])
    right = sphere_laplace(10, s)
    assert rejects(law.sample(20_000, source), tabulated_cdf(right[0], 0.0, np.pi))


def test_accepting_everything_is_rejected_and_rejection_puts_it_right(source, monkeypatch):
    # With five tangents the envelope is far from the law: rejection has something to do.
    monkeypatch.setattr(tangents, "_LEVELS", np.array([2.0, 40.0]))
    monkeypatch.setattr(tangents, "_CHORD_SHARE", 0.2)
    law = RadialLaw(*flat_laplace(10, 1.0))
    assert law.acceptance() < 0.9
    assert rejects(law._envelope.draw(20_000, source)[0], stats.gamma(10).cdf)
    assert_fits(law.sample(20_000, source), stats.gamma(10).cdf)
