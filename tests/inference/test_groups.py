"""The test of several means: its law, its special cases, and the pairs (theory: k-sample).

Sizes are counted in seeded simulations and compared with the largest that a size of 0.06 allows with probability
0.9999; the wrong variants are found out by the same bound.
"""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

import dpmanifold as dpm
from dpmanifold._cells import checked_names
from dpmanifold.inference.hotelling import _second_order, exceedance
from dpmanifold.inference.mean_tests import holm
from dpmanifold.inference.welch_james import Located, SeveralErrors, omnibus_of

EACH = {"units": dpm.EACH_RECORD}


def in_ball(n, d, rng):
    v = rng.standard_normal((n, d))
    return v * (rng.random(n) ** (1 / d) / np.linalg.norm(v, axis=1))[:, None]


def groups(numbers, ball, axes=0.3, at=0.0, seed=0, **options):
    """Release groups of units in ellipsoids about points in coordinates at the centre."""
    rng, d = np.random.default_rng(seed), ball.space.dim
    axes, at = np.broadcast_to(axes, (len(numbers), d)), np.broadcast_to(at, (len(numbers), d))
    parts = [a + in_ball(n, d, rng) * size for n, size, a in zip(numbers, axes, at, strict=True)]
    labels = np.repeat(np.arange(len(numbers)), numbers)
    X = ball.space.exp_coords(ball.center, ball.radius * np.concatenate(parts))
    terms = {"rng": rng, "privacy": dpm.GDP(1.0), **options}
    return dpm.private_k_sample_test(X, labels, ball, classes=range(len(numbers)), confirm=True, **EACH, **terms)


FLAT = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 1.0)
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5)
MATRICES = dpm.Ball(dpm.SPD(2, metric="riemann"), np.eye(2), 1.0)


# -------------------------------------------------------------------- two groups


@pytest.mark.parametrize(("ball", "estimand"), [(FLAT, None), (CAP, None), (CAP, "tangent"), (MATRICES, None)])
def test_two_groups_are_a_two_sample_test(ball, estimand):
    for numbers in ((80, 150), (22, 19), (3, 40)):
        found = groups(numbers, ball, at=[[0.0], [0.1]], estimand=estimand)
        test = dpm.TwoSampleTest(*found.released)
        if numbers[0] == 3 and not (ball is FLAT or estimand):  # public bounds, here in the widest direction
            assert found.p_value >= test.p_value
            continue
        assert found.p_value == pytest.approx(test.p_value, rel=1e-9)
        assert found.statistic == pytest.approx(test.statistic, rel=1e-9)
        (pair,) = found.pairs
        assert (pair.p_value, pair.test.level) == (test.p_value, pytest.approx(test.level))


# -------------------------------------------------------------------- the law


def test_one_error_has_the_law_of_hotelling():
    for d, free in ((1, 5.0), (3, 20.0), (6, 300.0), (2, math.inf)):
        error = SeveralErrors(np.eye(d), 0.0, free, 1, float(d))
        for statistic in (0.5, 3.0, 20.0):
            assert error.exceedance(statistic) == pytest.approx(exceedance(statistic, d, free), rel=1e-9)


def test_several_errors_have_the_law_of_a_trace():
    """A ratio of Wishart matrices, drawn; false alarms one in a thousand, and chi-square is found out."""
    rng, d, m, free, count = np.random.default_rng(1), 3, 4, 25, 4000
    roots = rng.standard_normal((count, free, d))
    spreads = np.einsum("kni,knj->kij", roots, roots) / free
    errors = rng.standard_normal((count, m, d))
    traces = np.einsum("kmi,kij,kmj->k", errors, np.linalg.inv(spreads), errors)
    law = SeveralErrors(np.eye(d), 0.0, float(free), m, float(m * d))
    uniform = np.array([law.exceedance(trace) for trace in traces])
    assert stats.kstest(uniform, "uniform").pvalue > 0.001
    assert stats.kstest(special.chdtrc(m * d, traces), "uniform").pvalue < 1e-6


def test_what_small_noise_must_add_is_exact_to_second_order():
    """By quadrature over the noise: one dimension and any number of errors, and two errors in two dimensions."""
    s, (nodes, weights) = 0.02, np.polynomial.hermite_e.hermegauss(12)
    weights = weights / weights.sum()
    for m, c in itertools.product((1, 2, 5), (4.0, 12.0)):
        tail = float(special.chdtrc(m, c))
        b = _second_order(1, tail, m)

        def seen(b, m=m, c=c):
            return float(weights @ special.chdtrc(m, c * (1 + b * s**2 + s * nodes)))

        assert seen(b) == pytest.approx(tail, rel=3e-5)
        assert abs(seen(b + 0.25) / tail - 1) > 1e-4  # the wrong variant
    x, y, z = np.meshgrid(nodes, nodes, nodes)
    product = np.einsum("i,j,k->ijk", weights, weights, weights).swapaxes(0, 1)
    for c in (6.0, 14.0):
        tail = float(special.chdtrc(4, c))
        middle, half = 1 + s * (x + y) / 2, s * np.hypot((x - y) / 2, z / math.sqrt(2))

        def seen_twice(b, c=c, middle=middle, half=half):
            rates = (middle + b * s**2 + half) * c / 2, (middle + b * s**2 - half) * c / 2
            with np.errstate(invalid="ignore"):
                mixed = (rates[0] * np.exp(-rates[1]) - rates[1] * np.exp(-rates[0])) / (rates[0] - rates[1])
            one = (1 + rates[0]) * np.exp(-rates[0])
            return float((product * np.where(np.abs(rates[0] - rates[1]) < 1e-7, one, mixed)).sum())

        assert seen_twice(_second_order(2, tail, 2)) == pytest.approx(tail, rel=3e-5)
        assert abs(seen_twice(_second_order(2, tail, 1)) / tail - 1) > 1e-4


def drawn(numbers, scales, d, rng):
    """Return groups without noise, of normal units: what a trusted analyst would have."""
    found = []
    for n, scale in zip(numbers, scales, strict=True):
        X = scale * rng.standard_normal((n, d))
        covariance = np.cov(X.T).reshape(d, d) / n
        found.append(Located(X.mean(axis=0), 1e-12 * np.eye(d), covariance, np.eye(d), 0.0, n))
    return found


def test_on_a_line_it_is_the_test_of_welch():
    rng = np.random.default_rng(0)
    for _ in range(20):
        given = drawn((12, 20, 40, 15), (1.0, 3.0, 0.5, 2.0), 1, rng)
        weights = np.array([1 / one.covariance[0, 0] for one in given])
        means, share = np.array([one.at[0] for one in given]), weights / weights.sum()
        a = sum((1 - s) ** 2 / (one.n - 1) for s, one in zip(share, given, strict=True))
        statistic = float((weights * (means - share @ means) ** 2).sum()) / 3 / (1 + 2 * (4 - 2) / 15 * a)
        welch = float(special.fdtrc(3, 15 / (3 * a), statistic))
        assert omnibus_of(given).p_value == pytest.approx(welch, rel=0.03, abs=1e-4)


def taken_for_equal(given):
    """Return the p-value of the usual test, Lawley and Hotelling's, which takes covariances for equal."""
    numbers = np.array([one.n for one in given])
    means, d, m = np.array([one.at for one in given]), len(given[0].at), len(given) - 1
    pooled = np.sum([one.n * (one.n - 1) * one.sampling for one in given], axis=0) / (numbers.sum() - len(given))
    away = np.sqrt(numbers)[:, None] * (means - numbers @ means / numbers.sum())
    law = SeveralErrors(pooled, 0.0, float(numbers.sum() - len(given)), m, float(m * d))
    return law.exceedance(law.statistic(away))


SIZES = {
    "unequal scales": ((25, 60, 120), (3.0, 1.0, 0.3), 2),
    "few in the widest": ((20, 40, 80, 30), (4.0, 1.0, 1.0, 2.0), 3),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_hold_for_unequal_numbers_and_covariances(name):
    numbers, scales, d = SIZES[name]
    rng, count = np.random.default_rng(2), 300
    cases = [drawn(numbers, scales, d, rng) for _ in range(count)]
    most = stats.binom.ppf(0.9999, count, 0.06)
    assert sum(omnibus_of(given).p_value < 0.05 for given in cases) <= most
    assert sum(taken_for_equal(given) < 0.05 for given in cases) > most  # the wrong variant


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ball", "numbers", "estimand"),
    [(FLAT, (60, 100, 250), None), (FLAT, (40, 60, 100, 200), None), (CAP, (60, 100, 150), "tangent")],
)
def test_sizes_of_private_tests_hold(ball, numbers, estimand):
    d, count = ball.space.dim, 700
    line = np.linspace(1.0, 0.1, d)
    axes = [(0.25 + 0.15 * k) * (line if k % 2 else line[::-1]) for k in range(len(numbers))]
    found = [
        groups(numbers, ball, axes, 0.3 * np.eye(d)[0], seed, estimand=estimand).p_value < 0.05 for seed in range(count)
    ]
    assert sum(found) <= stats.binom.ppf(0.9999, count, 0.06)


def test_names_and_order_do_not_matter():
    found = groups((50, 80, 120, 60), FLAT, at=[[0.0], [0.1], [0.0], [0.05]])
    for order in ((3, 2, 1, 0), (1, 0, 3, 2), (2, 3, 0, 1)):
        again = dpm.KSampleTest({f"group {k}": found.groups[k] for k in order})
        assert again.p_value == pytest.approx(found.p_value, rel=1e-9)
    far = groups((50, 80, 120, 60), FLAT, at=[[0.0], [0.3], [0.0], [0.0]])
    assert far.p_value < 1e-6


def test_too_few_units_to_tell_are_compared_by_public_numbers():
    for numbers in ((2, 2, 2), (3, 300, 40)):
        for ball, estimand in ((FLAT, None), (CAP, None), (CAP, "tangent")):
            p = [groups(numbers, ball, seed=seed, estimand=estimand).p_value for seed in range(2)]
            assert min(p) > 0.001


# -------------------------------------------------------------------- pairs


def test_holm_adjusts_as_it_is_known_to():
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = rng.random(7) ** 3
        order = np.argsort(p)
        expected = np.minimum(np.maximum.accumulate(p[order] * np.arange(7, 0, -1)), 1.0)
        assert np.allclose(np.array(holm(p.tolist()))[order], expected)


def test_pairs_are_tests_at_a_level_that_all_of_them_keep():
    found = groups((90, 120, 150), FLAT, at=[[0.0], [0.0], [0.25]])
    assert [pair.names for pair in found.pairs] == [(0, 1), (0, 2), (1, 2)]
    for pair in found.pairs:
        one = dpm.TwoSampleTest(*(found.groups[name] for name in pair.names), 1 - 0.05 / 3)
        assert (one.low, one.high, one.p_value) == (pair.test.low, pair.test.high, pair.test.p_value)
        assert pair.p_value >= pair.test.p_value
        assert found.pair(*reversed(pair.names)) is pair
    assert found.pair(0, 2).p_value < 0.01 < found.pair(0, 1).p_value
    with pytest.raises(dpm.InvalidArgumentError, match="different groups of"):
        found.pair(0, 0)


@pytest.mark.slow
def test_intervals_of_all_distances_hold_together():
    """0.95 is promised; at most 0.91 in 250 cases has a probability of 0.006 then, and a level of 0.5 is found out."""
    at = 0.3 * np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0]])
    true = [float(np.linalg.norm(at[a] - at[b])) for a, b in itertools.combinations(range(4), 2)]

    def held(level):
        count = 0
        for seed in range(250):
            pairs = groups((60, 80, 100, 150), FLAT, at=at, seed=seed, level=level).pairs
            count += all(p.test.low <= away <= p.test.high for p, away in zip(pairs, true, strict=True))
        return count / 250

    assert held(0.95) > 0.91
    assert held(0.5) < 0.91


# -------------------------------------------------------------------- records


def test_files_say_what_was_released_and_nothing_that_does_not_follow(tmp_path):
    found = groups((40, 60, 50), CAP, estimand="tangent")
    found.save(tmp_path / "groups.json")
    again = dpm.load(tmp_path / "groups.json")
    assert isinstance(again, dpm.KSampleTest)
    assert again.to_dict() == found.to_dict()
    for change in (
        lambda r: r["answers"].update(p_value=0.5 * found.p_value),
        lambda r: r["answers"]["pairs"][0].update(low=0.2),
        lambda r: r["classes"].pop(),
        lambda r: r["classes"].__setitem__(0, 1),
        lambda r: r.update(level=1.5),
        lambda r: r.update(extra=1),
        lambda r: r.update(groups={}),
    ):
        record = json.loads(json.dumps(found.to_dict()))
        change(record)
        with pytest.raises(dpm.DPManifoldError):
            dpm.KSampleTest.from_dict(record)


SLOW = [pytest.param(kind, marks=pytest.mark.slow) for kind in ("curved", "refined")]


@pytest.mark.parametrize("kind", ["flat", *SLOW])
def test_groups_that_do_not_belong_together_are_found_out(kind):
    ball = CAP if kind == "curved" else dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 20.0)
    numbers = (1500, 1200, 900) if kind == "refined" else (60, 50, 40)
    found, other = (groups(numbers, ball, 0.02, seed=k, rng=None, refine=kind == "refined") for k in range(2))
    assert found.verify().ok
    assert found.private
    assert (kind == "refined") == bool(found.means[0].release.steps)
    a, b, c = found.released
    for wrong in (
        {0: a, 1: b, 2: replace(b)},
        {0: a, 1: b, 2: replace(c, n=c.n + 1)},
        {0: a, 1: b, 2: replace(c, privacy=dpm.GDP(2.0))},
        {0: a, 1: b, 2: replace(c, scale=c.scale / 2)},
        {0: a, 1: b, 2: replace(c, unit="person")},
        {0: a, 1: b, 2: replace(c, adjacency="others")},
        {0: a, 1: b, 2: replace(c, private=False)},
        {0: a, 1: b},
        {1: a, 0: b, 2: c},
        {0: a, 1: b, "c": c},
    ):
        assert not dpm.verify(dpm.KSampleTest(wrong)).ok, wrong
    if kind == "refined":
        with pytest.raises(dpm.InvalidArgumentError, match="same ball"):
            dpm.KSampleTest({"a": a, "b": b, "c": other.groups[2]})


def test_what_cannot_be_compared_is_refused():
    flat, curved = groups((40, 60), FLAT), groups((40, 60), CAP)
    with pytest.raises(dpm.InvalidArgumentError, match="same ball"):
        dpm.KSampleTest({"a": flat.groups[0], "b": curved.groups[0]})
    mean = dpm.private_mean(np.zeros((9, 3)), FLAT, dpm.GDP(1.0), **EACH)
    with pytest.raises(dpm.InvalidArgumentError):
        dpm.KSampleTest({"a": mean, "b": mean})
    for names in ("ab", ["a"], ["a", "a"], [1.0, math.nan], [("a",), "b"], 7, None, [1, True]):
        with pytest.raises(dpm.InvalidArgumentError, match="classes must be"):
            checked_names(names)
    with pytest.raises(dpm.InvalidArgumentError, match="level"):
        dpm.KSampleTest(dict(flat.groups), 95)


def test_what_a_refined_ball_cuts_off_is_told_once():
    """For the smallest group, which it may move most."""
    found = groups((60, 400, 400), FLAT, refine=True)
    told = [note for note in found.notes() if "clipped to the refined ball" in note]
    assert len(told) == 1
    assert f"at most by {max(mean.release.clipping.bound for mean in found.means):.4g} with" in told[0]
    assert found.means[0].release.clipping.bound == max(mean.release.clipping.bound for mean in found.means)


def test_it_says_what_its_reader_should_know():
    nothing = groups((8, 9, 10), FLAT, privacy=dpm.GDP(0.1))
    assert any("says little" in note for note in nothing.notes())
    far = groups((200, 200, 200), FLAT, at=[[0.0], [0.0], [0.3]], level=0.9)
    assert (far.rejects, far.notes()) == (True, [])
    assert far.title == "Test of equal Fréchet means of 3 groups"
    many = groups([30] * 7, FLAT)
    assert "and 6 more pairs" in repr(many)
    assert len(many.answers()["pairs"]) == 21
