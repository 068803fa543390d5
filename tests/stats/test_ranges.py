"""What `verify` lets a draw be: nothing that units give is outside, and honest noise is refused as rarely as stated."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, Ball, Euclidean, PureDP, Sphere, verify
from dpmanifold.errors import DPManifoldError
from dpmanifold.features import (
    ClassMoments,
    Directions,
    Distances,
    JointMoments,
    Lengths,
    MarkedMoments,
    Signs,
    Squares,
    Tangent,
)
from dpmanifold.noise.tails import Tail
from dpmanifold.stats import ranges
from dpmanifold.stats.examine import COPY_ALARM, copy_faults, examine
from dpmanifold.stats.ranges import FALSE_ALARM, MOST_DRAWS, limits_of_features

MAPS = {
    "tangent": Tangent(),
    "joint moments": JointMoments(0.5),
    "heavy joint moments": JointMoments(10.0),
    "lengths": Lengths(1.5, 1.025),
    "lengths without a fourth power": Lengths(2.0),
    "distances": Distances(),
    "signs": Signs(10.0),
    "directions": Directions(0.5),
    "classes": ClassMoments(3, 1.0, 0.25),
    "classes with public labels": ClassMoments(3, 1.0, 0.0),
    "marked moments": MarkedMoments(),
    "squares": Squares(np.eye(5)[:2], 1 / 3),
}
NAMES = list(MAPS)


def units(name, dim, many, rng, lengths=(0.0, 1.0, 1.0, 0.4, 0.9)):
    """Features of units anywhere in the ball, often at its edge, at its centre, or all in one place."""
    v = rng.normal(size=(many, dim))
    v *= rng.choice(lengths, (many, 1)) / np.linalg.norm(v, axis=1, keepdims=True)
    v = v[np.zeros(many, dtype=int)] if rng.uniform() < 0.2 else v
    found = MAPS[name]
    if isinstance(found, ClassMoments):
        return found.of(np.hstack([v, rng.integers(0, 3, (many, 1)) * float(rng.uniform() < 0.8)]))
    if isinstance(found, MarkedMoments):
        scores = found.scores(v, rng.choice([-1.0, 1.0, 0.0, rng.uniform(-1, 1)], many))
        return found.of(scores.reshape(many // 2, 2, -1).mean(axis=1) if many % 2 == 0 else scores)
    if isinstance(found, Squares):
        turned = np.linalg.qr(rng.normal(size=(dim, dim)))[0][: min(2, dim)]
        return Squares(turned, found.weight).of(v)
    return found.of(v)


def features_in(name, dim):
    return Squares(np.eye(dim)[: min(2, dim)], 1 / 3) if name == "squares" else MAPS[name]


@pytest.mark.parametrize("dim", [1, 2, 4])
@pytest.mark.parametrize("name", NAMES)
def test_no_average_of_units_is_outside(name, dim):
    """Every range and every inequality holds without noise, wherever it was looked for."""
    rng, found = np.random.default_rng(dim), features_in(name, dim)
    low, high = found.limits(dim)
    for _ in range(200):
        average = units(name, dim, int(rng.choice([1, 2, 3, 12])), rng).mean(axis=0)
        assert np.all(low - 1e-13 <= average)
        assert np.all(average <= high + 1e-13)
        near = average + rng.choice([0.0, 0.05, 1.0]) * rng.normal(size=average.shape)
        for cut in found.cuts(near, dim):
            assert cut.over(average) <= 1e-12 * max(1.0, float(np.abs(cut.combination).max())), cut.what


@pytest.mark.slow
@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("name", NAMES)
def test_every_inequality_is_reached(name, dim):
    """No end is farther out than units are: each is nearly attained by some average (a wider one would see less)."""
    rng, found = np.random.default_rng(7 + dim), features_in(name, dim)
    low, high = found.limits(dim)
    averages = np.array([units(name, dim, int(rng.choice([1, 1, 2, 3])), rng).mean(axis=0) for _ in range(1500)])
    cuts = {cut.what: -math.inf for cut in found.cuts(averages[0], dim)}
    for average in averages:
        for cut in found.cuts(average, dim):
            cuts[cut.what] = max(cuts[cut.what], cut.over(average))
    assert min(cuts.values()) > -0.05, cuts
    assert np.all(averages.max(axis=0) > high - 0.2 * (high - low) - 0.02)
    assert np.all(averages.min(axis=0) < low + 0.2 * (high - low) + 0.02)


def refusals(name, tail, draws=300, dim=2, scale=0.2, seed=0):
    """How many honest draws are refused, by checks that expect the noise of a tail; units lie at the edge."""
    rng, found = np.random.default_rng(seed), features_in(name, dim)
    limits = limits_of_features(found, dim)
    refused = 0
    for _ in range(draws):
        average = units(name, dim, 1, rng, lengths=(1.0,)).mean(axis=0)
        refused += bool(limits.faults("drawn", average + scale * rng.normal(size=average.shape), tail(len(average))))
    return refused


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_honest_draws_are_refused_no_more_often_than_stated(name, monkeypatch):
    """With a false alarm of 0.1 instead of 1e-10 a draw: at most 1 in 10 is refused. More noise than stated is seen.

    By a binomial bound the first fails by chance with probability below 1e-6, were the stated probability reached.
    """
    assert refusals(name, lambda size: Tail("gaussian", 0.2, size)) == 0
    monkeypatch.setattr(ranges, "FALSE_ALARM", 0.1 * MOST_DRAWS)
    assert refusals(name, lambda size: Tail("gaussian", 0.2, size)) <= stats.binom.isf(1e-6, 300, 0.1)
    assert refusals(name, lambda size: Tail("gaussian", 0.05, size)) > stats.binom.isf(1e-6, 300, 0.1)


def test_no_query_has_more_draws_than_share_the_false_alarm():
    """The most: a median in a ball found first, by two searches of six halvings each and a count at the end of both."""
    far, X = Ball(Euclidean(2), [0.0, 0.0], 50.0), np.random.default_rng(0).normal(3.0, 0.05, (50_000, 2))
    median = dpm.private_median(X, far, GDP(2.0), refine=True, units=EACH_RECORD)
    outputs = examine(median).outputs
    assert len(outputs) == (1 + 6 + 1) + 1 + (6 + 1) + 1
    # One share is left for what a conclusion checks besides: the counts of classes.
    assert len(outputs) <= MOST_DRAWS - 1
    assert FALSE_ALARM == 1e-9


# -------------------------------------------------------------------- tails


@pytest.mark.parametrize("alarm", [0.3, 1e-3, 1e-12])
def test_tails_of_one_number_are_known_in_closed_form(alarm):
    assert Tail("gaussian", 2.0, 5).length(1, alarm) == pytest.approx(2 * stats.norm.isf(alarm / 2), rel=1e-9)
    assert Tail("laplace", 2.0, 1).length(1, alarm) == pytest.approx(-2 * math.log(alarm), rel=1e-9)
    # In three dimensions one coordinate exceeds t with probability (2 + t) exp(-t)/2.
    t = Tail("laplace", 1.0, 3).length(1, alarm)
    assert (2 + t) * math.exp(-t) / 2 == pytest.approx(alarm, rel=1e-6)


@pytest.mark.parametrize(("size", "among"), [(2, 1), (4, 2), (6, 5), (40, 3)])
def test_tails_of_a_part_of_laplace_noise_are_integrals(size, among):
    """The squared length of a part is a beta share of that of all: integrated here over the length of all."""
    alarm = 1e-9
    t = Tail("laplace", 1.0, size).length(among, alarm)

    def density(r):
        return stats.gamma.pdf(r, size) * stats.beta.sf((t / r) ** 2, among / 2, (size - among) / 2)

    assert integrate.quad(density, t, 40 * size + 200, limit=2000, epsabs=0)[0] == pytest.approx(alarm, rel=1e-4)


@pytest.mark.parametrize("rows", [1, 2, 6, 30])
def test_eigenvalues_of_noise_stay_below_their_tail(rows):
    rng = np.random.default_rng(rows)
    largest = []
    for _ in range(2000):
        noise = np.zeros((rows, rows))
        noise[np.triu_indices(rows, 1)] = math.sqrt(0.5) * rng.normal(size=rows * (rows - 1) // 2)
        largest.append(np.linalg.eigvalsh(noise + noise.T + np.diag(rng.normal(size=rows)))[-1])
    assert np.mean(np.array(largest) > Tail("gaussian", 1.0, 1000).eigenvalue(rows, 0.01)) < 0.02
    assert np.mean(np.array(largest) > 0.5 * Tail("gaussian", 1.0, 1000).eigenvalue(rows, 0.01)) > 0.02


def test_rounding_to_a_grid_is_allowed_for():
    fine, coarse = Tail("gaussian", 1.0, 4), Tail("gaussian", 1.0, 4, grid=1)
    assert coarse.length(4, 1e-9) == fine.length(4, 1e-9) + 2.0  # half a step of 2 in each of four coordinates
    assert coarse.nearest(1e-9) < 0 < fine.nearest(1e-9)


# -------------------------------------------------------------------- draws that come near each other


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.parametrize("size", [1, 2, 5])
def test_draws_come_as_near_as_stated_and_no_nearer(law, size):
    """The nearest they come is when they are about the same numbers: a share `alarm` of them, to 5 standard errors."""
    rng, alarm, many = np.random.default_rng(size), 0.05, 40_000
    noise = rng.normal(size=(many, size))
    if law == "laplace":
        noise *= (rng.gamma(size, size=many) / np.linalg.norm(noise, axis=1))[:, None]
    near = np.mean(np.linalg.norm(noise, axis=1) <= Tail(law, 1.0, size).nearest(alarm))
    elsewhere = np.mean(np.linalg.norm(noise - 1.0, axis=1) <= Tail(law, 1.0, size).nearest(alarm))
    error = math.sqrt(alarm * (1 - alarm) / many)
    assert abs(near - alarm) < 5 * error
    assert elsewhere < alarm


@pytest.mark.parametrize(
    ("ball", "estimand"),
    [(Ball(Euclidean(1), [0.0], 1.0), None), (Ball(Sphere(2), [0.0, 0.0, 1.0], 0.6), "frechet")],
    ids=["line", "sphere"],
)
def test_honest_groups_are_no_copies_even_with_equal_units(ball, estimand, monkeypatch):
    """All groups hold the same records: their draws are as near as draws come. A looser rule takes some for copies."""
    X = ball.space.exp_coords(ball.center, np.full((60, ball.space.dim), 0.1))

    def named(number, outputs):
        return [(f"{number}: {output.step.statistic}", output) for output in outputs]

    def drawn(seed):
        test = dpm.private_k_sample_test(
            X, np.arange(60) % 3, ball, GDP(1.0), classes=[0, 1, 2], estimand=estimand, units=EACH_RECORD, rng=seed,
            arithmetic="exact",
        )  # fmt: skip
        return [one for number, group in enumerate(test.released) for one in named(number, examine(group).outputs)]

    draws = [drawn(seed) for seed in range(60)]
    assert not any(copy_faults(found) for found in draws)
    assert COPY_ALARM == 1e-8
    monkeypatch.setattr("dpmanifold.stats.examine.COPY_ALARM", 0.5)
    refused = sum(bool(copy_faults(found)) for found in draws)
    assert 0 < refused <= stats.binom.isf(1e-6, 60, 0.5)


# -------------------------------------------------------------------- whole releases


def asked(X, ball, promise, kw):
    """Every kind of release that is a vector or a matrix, asked for one by one."""
    names = "joint moments", "joint lengths", "joint distances", "signs", "components", "second moment", "variance"
    n = len(X)
    t = np.where(np.arange(n) % 2 == 0, -1.0, 1.0)
    labelled = {"labels": np.arange(n) % 3, "classes": [0, 1, 2]}
    calls = [(dpm.private_statistic, (promise,), {"statistic": name}) for name in names]
    calls += [(dpm.private_lda, (promise,), {**labelled, "labels_public": public}) for public in (False, True)]
    calls += [
        (dpm.private_regression, (promise,), {"covariate": t, "covariate_range": (-1, 1)}),
        (dpm.private_variance, (PureDP(1.0),), {}),
        (dpm.private_variance_interval, (promise,), {}),
    ]
    for call, (promised,), options in calls:
        try:
            yield call(X, ball=ball, privacy=promised, **options, **kw)
        except DPManifoldError:  # what public numbers refuse is not drawn
            continue


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_honest_releases_of_extreme_units_verify(seed):
    """Units at the edge, at the centre, all in one place; few and many; little noise and much: none is refused."""
    rng = np.random.default_rng(seed)
    balls = Ball(Euclidean(2), [0.0, 0.0], 2.0), Ball(Euclidean(1), [0.0], 1.0), Ball(Sphere(2), [0.0, 0.6, 0.8], 0.6)
    many = 0
    for ball in balls:
        for shape in range(4):
            n, d = int(rng.choice([3, 20, 400])), ball.space.dim
            c = [rng.normal(size=(n, d)) * 9, np.zeros((n, d)), np.ones((n, d)), rng.uniform(-0.5, 0.5, (n, d))][shape]
            c *= np.minimum(1, ball.radius / np.maximum(np.linalg.norm(c, axis=1, keepdims=True), 1e-300))
            promise = GDP(float(rng.choice([0.1, 1.0, 10.0])))
            kw = {"units": EACH_RECORD, "rng": seed, "confirm": True}
            for result in asked(ball.space.exp_coords(ball.center, c), ball, promise, kw):
                many += 1
                assert verify(result).ok, verify(result).wrong
    assert many > 100


def test_a_search_that_does_not_converge_refutes_nothing(monkeypatch):
    """scipy gives up after so many steps; an honest release is no less honest then."""

    def gives_up(*arguments):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr("scipy.optimize.nnls", gives_up)
    ball = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 1.0)
    X = np.random.default_rng(0).normal(size=(40, 3))
    asked = {"covariate_range": (0, 10), "confirm": True, "units": dpm.EACH_RECORD}
    for seed in range(5):
        found = dpm.private_regression(X, np.arange(40.0), ball, dpm.GDP(0.01), rng=seed, arithmetic="exact", **asked)
        assert found.verify().ok
