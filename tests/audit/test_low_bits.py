"""Attacks on the doubles themselves: floating-point noise loses, and noise that is rounded once from reals does not.

An attacker who knows both candidate statistics sees outputs of either data set and guesses. What an arithmetic must
keep is stated once, in `keeps`; whoever adds one adds it to ARITHMETICS, and every test here judges it.
"""

from fractions import Fraction

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import frechet
from dpmanifold.audit import (
    certified_epsilon,
    low_bit_scores,
    tangent_word_log_ratio,
    word_log_likelihood,
    word_log_ratio,
)
from dpmanifold.audit.mean_audit import hidden_in_frame, neighbours
from dpmanifold.mechanisms import choose, get
from dpmanifold.noise.source import SimulationSource
from dpmanifold.privacy import best_guess

pytestmark = pytest.mark.usefixtures("solved_once")

# The words that `private_*` functions take for an arithmetic. "float" is the variant that loses.
ARITHMETICS = {"float": {"arithmetic": "float"}, "exact": {"arithmetic": "exact"}}

GAUSSIAN, PURE = dpm.GDP(0.1), dpm.PureDP(0.1)
N = 10


def release(X, ball, privacy, rng, arithmetic, function=dpm.private_mean, **options):
    """One release, the draw itself: the only place that says how an arithmetic is asked for."""
    if function is dpm.private_mean:
        options = {"project": False, "shrinkage": None, **options}
    given = {**options, **ARITHMETICS[arithmetic]}
    return function(X, ball, privacy, units=dpm.EACH_RECORD, confirm=True, rng=rng, **given)


def statistic_in_frame(X, ball):
    """The Fréchet mean in the ball's frame, and the points there."""
    return hidden_in_frame(X, ball, get("riemannian-laplace"))


def means(pair, ball, privacy, arithmetic, runs, seed, mechanism="auto"):
    """Released means on both data sets of a pair, (runs, *shape) each; and the two candidates in the frame."""
    rng = np.random.default_rng(seed)
    name = choose(mechanism, ball, len(pair.first), privacy)[0].name
    outputs = [
        np.stack([release(X, ball, privacy, rng, arithmetic, mechanism=name).value for _ in range(runs)])
        for X in (pair.first, pair.second)
    ]
    return outputs, tuple(statistic_in_frame(X, ball)[0] for X in (pair.first, pair.second))


def won(first, second):
    """The advantage of guessing the first data set where the score is above 0; a tie is a coin."""
    return float(np.mean([(np.sign(a) - np.sign(b)) / 2 for a, b in zip(first, second, strict=True)]))


def judge(arithmetic, advantage, runs, privacy, loses_by):
    """A lossless arithmetic stays within 3 standard errors of what is allowed; "float" must lose by so much.

    A right arithmetic fails with probability 0.0013 before the seed is fixed, and never after.
    """
    allowed = 2 * best_guess(privacy) - 1
    print(f"{arithmetic}: advantage {advantage:.3f}, allowed {allowed:.3f}")
    if arithmetic == "float":
        assert advantage > loses_by > allowed
    else:
        assert advantage <= allowed + 3 * np.sqrt(0.5 / runs)


def euclidean(d, kind="generic", data=0):
    ball = dpm.Ball(dpm.Euclidean(d), np.zeros(d), 1.0)
    return ball, next(pair for pair in neighbours(ball, N, data) if pair.name == kind)


def words_won(d, arithmetic, runs, seed=0, privacy=GAUSSIAN, data=0):
    ball, pair = euclidean(d, data=data)
    outputs, candidates = means(pair, ball, privacy, arithmetic, runs, seed)
    scale = choose("auto", ball, N, privacy)[1].scale
    law = "laplace" if isinstance(privacy, dpm.PureDP) else "gaussian"
    return [word_log_ratio(values, *candidates, scale, law=law) for values in outputs]


# ------------------------------------------------------------ counting random words


@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_the_count_finds_every_word_that_was_used(law):
    """Whatever the sampler drew is possible under its own statistic, near 0 and in the tails, whatever the centre."""
    source = SimulationSource(5)
    z = source.normal(5_000) if law == "gaussian" else source.direction(5_000, 1)[:, 0] * source.exponential(5_000)
    for x, scale, center in ((0.0, 1.0, 0.0), (0.3, 7.0, 0.0), (-1e3, 1.0, 0.0), (0.1, 1e-3, 5.0), (1.0, 0.2, -2.5)):
        y = center + (x + z * scale)
        found = word_log_likelihood(y[:, None], [x], scale, law=law, center=center)
        assert np.isfinite(found).all()


def test_counted_likelihoods_add_up_to_the_density():
    """Over all doubles of a short interval the shares are the law's probability of it: none twice, none lost."""
    first = np.float64(1.3).view(np.int64)
    y = (first + np.arange(20_000)).view(np.float64)
    for x, scale in ((0.3, 1.5), (-2.0, 3.0)):
        share = np.exp(word_log_likelihood(y[:, None], [x], scale)).sum()
        z = (1.3 - x) / scale
        expected = (y[-1] - y[0]) / scale * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
        assert share == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize(("d", "runs", "loses_by"), [(1, 400, 0.4), (3, 300, 0.75), (10, 150, 0.95)])
def test_random_words_give_a_vector_away(d, runs, loses_by, arithmetic):
    judge(arithmetic, won(*words_won(d, arithmetic, runs)), runs, GAUSSIAN, loses_by)


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize(
    ("d", "runs", "loses_by"), [(1, 8000, 0.5), (3, 8000, 0.85), (10, 3000, 0.995), (50, 500, 0.99)]
)
def test_random_words_give_a_vector_away_long(d, runs, loses_by, arithmetic):
    """Over the first four pairs of data: how much one gives away depends on the last digits of its means."""
    pairs = [won(*words_won(d, arithmetic, runs // 4, seed=1 + 10 * data, data=data)) for data in range(4)]
    judge(arithmetic, float(np.mean(pairs)), runs, GAUSSIAN, loses_by)


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_a_pure_promise_has_impossible_outputs_in_floats(arithmetic):
    """A fifth of the doubles under one data set cannot occur under the other; confidence 0.999 in all, seeded.

    What the attack can see depends on the last digits of the two means, so it is tried on the first four pairs of data.
    """
    pairs = range(4)
    found = (
        certified_epsilon(*words_won(1, arithmetic, 600, privacy=PURE, data=data), confidence=1 - 0.001 / len(pairs))
        for data in pairs
    )
    if arithmetic == "float":
        assert any(epsilon > 10 * PURE.epsilon for epsilon in found)  # one pair is enough, and ends it
    else:
        assert max(found) <= PURE.epsilon


def rounded_once(x, scale, m, seed):
    """Stand-in for exact noise: x + V in rationals with 100 bits, rounded once to a grid. For one coordinate each."""
    source = SimulationSource(seed)
    grid = Fraction(2) ** (int(np.floor(np.log2(scale))) - 30)
    z = source.normal((m, len(x)))
    finer = source.uniform((m, len(x)))
    return np.array(
        [
            [
                float(round((Fraction(a) + Fraction(scale) * (Fraction(v) + Fraction(u * 2.0**-50))) / grid) * grid)
                for a, v, u in zip(x, row, more, strict=True)
            ]
            for row, more in zip(z, finer, strict=True)
        ]
    )


@pytest.mark.parametrize("d", [1, 10])
def test_the_attack_finds_nothing_where_noise_is_rounded_once(d):
    """What `judge` asks of a lossless arithmetic can be met, by words and by the classifier."""
    ball, pair = euclidean(d)
    runs = 600
    candidates = tuple(statistic_in_frame(X, ball)[0] for X in (pair.first, pair.second))
    scale = choose("auto", ball, N, GAUSSIAN)[1].scale
    outputs = [rounded_once(x, scale, runs, seed) for seed, x in enumerate(candidates)]
    judge("rounded", won(*(word_log_ratio(values, *candidates, scale) for values in outputs)), runs, GAUSSIAN, 1.0)
    half = runs // 2
    scores = [score[half:] for score in low_bit_scores(*outputs, ball, candidates)]
    judge("rounded", won(*scores), half, GAUSSIAN, 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_random_words_give_a_variance_away(arithmetic):
    """About the public centre; releases that were cut at 0 tell nothing by their bits and count as coins."""
    ball, pair = euclidean(2)
    runs, rng = 400, np.random.default_rng(3)
    made = [
        [release(X, ball, GAUSSIAN, rng, arithmetic, dpm.private_variance, about=ball.center) for _ in range(runs)]
        for X in (pair.first[:-1], np.vstack([pair.first[:-2], [[0.01, 0.02]]]))
    ]
    exact = [
        float((ball.frame.dist(ball.frame.origin, frechet.unit_points(X, ball, units=None).array()) ** 2).mean())
        for X in (pair.first[:-1], np.vstack([pair.first[:-2], [[0.01, 0.02]]]))
    ]
    values = [np.array([[one.value] for one in side]) for side in made]
    ratios = [word_log_ratio(value, [exact[0]], [exact[1]], made[0][0].scale) for value in values]
    ratios = [np.where(value[:, 0] > 0, ratio, 0.0) for value, ratio in zip(values, ratios, strict=True)]
    judge(arithmetic, won(*ratios), runs, GAUSSIAN, 0.15)


def mean_product(vectors):
    return vectors.T @ vectors / len(vectors)


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_random_words_give_the_diagonal_of_a_second_moment_away(arithmetic):
    """A second moment about a released mean: the attacker computes both candidates about that mean."""
    ball, pair = euclidean(3)
    runs, rng, privacy = 150, np.random.default_rng(4), dpm.GDP(0.2)
    ratios = []
    for X in (pair.first, pair.second):
        made = [
            release(X, ball, privacy, rng, arithmetic, dpm.private_statistic, statistic="second moment")
            for _ in range(runs)
        ]
        about = np.stack([one.steps[0].value for one in made])
        candidates = [
            np.stack([np.diag(mean_product(frechet.unit_points(Z, ball, units=None).array() - at)) for at in about])
            for Z in (pair.first, pair.second)
        ]
        drawn = np.stack([np.diag(one.value) for one in made])
        scales = np.array([one.scale for one in made])
        ratios.append(
            np.array(
                [
                    word_log_ratio(y[None], a, b, scale)[0]
                    for y, a, b, scale in zip(drawn, *candidates, scales, strict=True)
                ]
            )
        )
    judge(arithmetic, won(*ratios), runs, privacy, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize("arithmetic", ARITHMETICS)
def test_random_words_give_the_centre_of_a_ball_away(arithmetic):
    """A ball found privately: its centre is a mean. (Its count has few bits below the noise, and tells nothing.)"""
    outer, privacy, runs = dpm.Ball(dpm.Euclidean(6), np.zeros(6), 10.0), dpm.GDP(1.0), 100
    rng = np.random.default_rng(5)
    X = 0.2 * rng.standard_normal((400, 6))
    Y = np.vstack([X[:-1], [rng.uniform(1.0, 3.0, 6)]])
    candidates = [statistic_in_frame(Z, outer)[0] for Z in (X, Y)]
    ratios = []
    for Z in (X, Y):
        made = [release(Z, outer, privacy, rng, arithmetic, dpm.private_ball) for _ in range(runs)]
        ratios.append(word_log_ratio(np.stack([one.value.center for one in made]), *candidates, made[0].scale))
    judge(arithmetic, won(*ratios), runs, privacy, 0.7)


def about_origin(space, radius):
    return dpm.Ball(space, space.origin, radius)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize(
    ("ball", "n", "reach", "runs", "loses_by"),
    [
        pytest.param(about_origin(dpm.Hyperbolic(2), 1.0), 10, 4, 150, 0.5, marks=pytest.mark.slow),
        pytest.param(dpm.Ball(dpm.SPD(2), [[1.0, 0.2], [0.2, 0.8]], 1.0), 100, 6, 300, 0.1, marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_random_words_behind_a_point_give_it_away(ball, n, reach, runs, loses_by, arithmetic):
    _, pair = neighbours(ball, n)
    outputs, candidates = means(pair, ball, GAUSSIAN, arithmetic, runs, 6, "wrapped-gaussian")
    scale = choose("wrapped-gaussian", ball, n, GAUSSIAN)[1].scale
    ratios = [tangent_word_log_ratio(values, ball, *candidates, scale, reach=reach) for values in outputs]
    judge(arithmetic, won(*ratios), runs, GAUSSIAN, loses_by)


# ------------------------------------------------------------ the classifier


def classifier_won(ball, privacy, arithmetic, runs, seed=0, kind="generic"):
    pair = next(pair for pair in neighbours(ball, N) if pair.name == kind)
    outputs, candidates = means(pair, ball, privacy, arithmetic, runs, seed)
    return won(*(score[runs // 2 :] for score in low_bit_scores(*outputs, ball, candidates)))


# By how much floating-point noise loses to the classifier; None where it does not (words say more there, see above).
CLASSIFIED = [
    (about_origin(dpm.Sphere(2), 0.75), PURE, 300, 0.25),
    (about_origin(dpm.Sphere(2), 0.75), GAUSSIAN, 3000, 0.35),
    (about_origin(dpm.Sphere(5), 0.7), PURE, 3000, 0.3),
    (about_origin(dpm.Hyperbolic(2), 1.0), GAUSSIAN, 2000, None),
    (about_origin(dpm.KendallShapes(5), 0.3), PURE, 2000, None),
    (about_origin(dpm.SPD(3), 2.0), PURE, 2000, None),
    (about_origin(dpm.SPD(3), 2.0), GAUSSIAN, 2000, None),
    (about_origin(dpm.SPD(3, metric="riemann"), 1.0), GAUSSIAN, 2000, None),
    (about_origin(dpm.SPD(9), 2.0), GAUSSIAN, 1000, None),
]


@pytest.mark.parametrize(
    ("arithmetic", "ball", "privacy", "runs", "loses_by"),
    [
        pytest.param(arithmetic, *case, marks=[pytest.mark.slow])
        for arithmetic in ARITHMETICS
        for case in CLASSIFIED
        if arithmetic != "float" or case[-1] is not None
    ],
    ids=repr,
)
def test_low_bits_give_a_point_away(arithmetic, ball, privacy, runs, loses_by):
    """A classifier that knows nothing of the sampler: releases about the right mean come back when undone."""
    judge(arithmetic, classifier_won(ball, privacy, arithmetic, runs), runs // 2, privacy, loses_by)


@pytest.mark.parametrize("arithmetic", ARITHMETICS)
@pytest.mark.parametrize("project", [True, False])
def test_the_rotation_of_a_released_shape_tells_nothing(project, arithmetic):
    """A representative aligned with the private mean would name it to the last digit: it is aligned with the centre."""
    space = dpm.KendallShapes(5)
    ball = dpm.Ball(space, space.project([0, 1, 1 + 1j, 1j, -0.3 + 0.4j]), 0.3)
    _, pair = neighbours(ball, 400)
    mean = ball.from_frame(statistic_in_frame(pair.first, ball)[0][None])[0]
    rng = np.random.default_rng(7)
    drawn = [release(pair.first, ball, dpm.GDP(1.0), rng, arithmetic, project=project).value for _ in range(20)]

    def turned_against(point):
        return np.abs(np.angle(np.array([np.vdot(point, value) for value in drawn])))

    assert turned_against(ball.center).max() < 1e-14
    assert turned_against(mean).min() > 1e-10
