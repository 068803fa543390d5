"""Honest results of every kind, on every space, with every mechanism and promise: all of them verify."""

import json
from dataclasses import replace

import numpy as np
import pytest

from dpmanifold import (
    EACH_RECORD,
    GDP,
    SPD,
    ZCDP,
    ApproxDP,
    Ball,
    Euclidean,
    Hyperbolic,
    PureDP,
    Sphere,
    private_ball,
    private_class_means,
    private_mean,
    private_region,
    private_two_sample_test,
    private_variance,
    private_variance_interval,
    verify,
)
from dpmanifold.linalg import backend, backends
from dpmanifold.mechanisms import MECHANISMS, attempt, get
from dpmanifold.serialization import record_from_text
from laws import spaces
from laws.data import in_ball

BALLS = [Ball(Euclidean(1), [1e4], 2.0), *spaces.BALLS]
# A flat space, a sphere and matrices; on the others the same takes seconds.
USUAL = [
    ball if number in (1, 2, 5) else pytest.param(ball, marks=pytest.mark.slow) for number, ball in enumerate(BALLS)
]
PROMISES = [PureDP(1.0), ApproxDP(0.5, 1e-6), ZCDP(0.5), GDP(1.0)]
EACH = {"units": EACH_RECORD}


def written_and_read(result):
    """The result as whoever gets the file has it."""
    return type(result).from_dict(record_from_text(json.dumps(result.to_dict(), allow_nan=False)))


def assert_honest(result):
    for one in (result, written_and_read(result)):
        found = verify(one)
        assert found.ok, found
        assert found.wrong == ()
        assert found.recomputed
        assert found.private == result.private


# -------------------------------------------------------------------- honest results


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS.names())
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_means_by_every_mechanism_verify(ball, mechanism):
    X = in_ball(ball, 200, np.random.default_rng(0))
    able = [p for p in PROMISES if not isinstance(attempt(get(mechanism), ball, 200, p), str)]
    for privacy in able:
        for options in ({}, {"project": False}, {"rng": 1}):
            assert_honest(private_mean(X, ball, privacy, mechanism=mechanism, **EACH, **options))
    if able and not get(mechanism).baseline:
        mean = private_mean(X, ball, able[0], mechanism=mechanism, **EACH)
        assert_honest(private_variance(X, ball, able[0], about=mean, **EACH))


# Seconds each: the other kinds of promise take the same way.
@pytest.mark.parametrize(
    "privacy",
    [p if isinstance(p, GDP) else pytest.param(p, marks=pytest.mark.slow) for p in PROMISES],
    ids=repr,
)
@pytest.mark.parametrize("ball", USUAL, ids=repr)
def test_every_kind_of_result_verifies_with_its_steps(ball, privacy):
    rng = np.random.default_rng(1)
    X = in_ball(ball, 1200, rng)
    narrow = ball.space.project(
        ball.space.exp_coords(ball.center, 0.02 * ball.radius * rng.standard_normal((1200, ball.space.dim)))
    )
    person, label = np.repeat(np.arange(400), 3), np.tile([0, 1, 2], 400)
    found = [
        private_mean(X, ball, privacy, refine=True, **EACH),
        private_mean(narrow, ball, privacy, refine=True, **EACH),
        private_ball(narrow, ball, privacy, **EACH),
        private_variance(X, ball, privacy, **EACH),
        private_variance(X, ball, privacy, about=ball.center, **EACH),
        private_variance(narrow, ball, privacy, rng=3, **EACH),
    ]
    for refine in (False, True):
        found += private_class_means(X, label, ball, privacy, classes=[0, 1, 2], units=person, refine=refine).values()
        found += private_class_means(X, label, ball, privacy, classes=[0, 1, 2], refine=refine, **EACH).values()
    if not isinstance(privacy, PureDP):
        found += [
            *(
                private_region(data, ball, privacy, refine=refine, **EACH)
                for data in (X, narrow)
                for refine in (False, True)
            ),
            *(private_variance_interval(data, ball, privacy, level=0.9, refine=True, **EACH) for data in (X, narrow)),
            private_variance_interval(X, ball, privacy, level=0.9, **EACH),
            private_two_sample_test(X, narrow, ball, privacy, **EACH),
            private_two_sample_test(narrow, narrow[:900], ball, privacy, refine=True, **EACH),
            private_two_sample_test(X, X, ball, privacy, rng=2, **EACH),
        ]
    for result in found:
        assert_honest(result)


def test_results_on_a_released_ball_verify_and_say_that_it_had_its_price():
    ball = Ball(Euclidean(2), [0.0, 0.0], 50.0)
    X = np.random.default_rng(0).standard_normal((3000, 2))
    released = private_ball(X, ball, GDP(1.0), **EACH).value
    assert released.radius < ball.radius
    for function in (private_mean, private_variance, private_region, private_variance_interval, private_ball):
        result = function(X, released, GDP(1.0), **EACH)
        assert_honest(result)
        assert any("comes on top" in text for text in verify(result).recomputed)
    refined = private_mean(X, ball, GDP(1.0), refine=True, **EACH)
    assert not any("comes on top" in text for text in verify(refined).recomputed)


@pytest.mark.parametrize(
    "ball",
    [
        Ball(Euclidean(2), [1e12, -1e12], 1e-2),
        Ball(Sphere(2), [0.0, 0.6, 0.8], 1e-6),
        pytest.param(
            Ball(Hyperbolic(2), Hyperbolic(2).exp_coords(Hyperbolic(2).origin, np.array([6.0, 0.0])), 4.0),
            marks=pytest.mark.slow,
        ),
        Ball(SPD(2), np.diag([1.0, 1e-12]), 1.0),
        Ball(SPD(3), np.eye(3), 20.0),
        pytest.param(Ball(SPD(3, metric="riemann"), np.diag([3.0, 1.0, 1e-6]), 3.0), marks=pytest.mark.slow),
        pytest.param(Ball(SPD(2, metric="riemann"), np.eye(2), 10.0), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_draws_on_the_edge_and_far_outside_verify_in_badly_conditioned_balls(ball):
    X = np.repeat(ball.center[None], 20, axis=0)
    for mu in (0.05, 1.0):
        for seed in range(6):
            for project in (True, False):
                assert_honest(private_mean(X, ball, GDP(mu), project=project, rng=seed, **EACH))
            assert_honest(private_variance(X, ball, GDP(mu), rng=seed, **EACH))
    many = np.repeat(ball.center[None], 1000, axis=0)
    for seed in range(6):
        assert_honest(private_ball(many, ball, GDP(0.5), rng=seed, **EACH))


def test_a_fallback_to_the_outer_ball_verifies_only_where_the_released_one_does_not_suit(monkeypatch):
    ball = Ball(Euclidean(2), [0.0, 0.0], 50.0)
    X = np.random.default_rng(0).standard_normal((3000, 2))
    refined = private_mean(X, ball, GDP(1.0), refine=True, **EACH)
    assert refined.ball != ball
    total, share = refined.privacy, refined.share
    plain = private_mean(X, ball, share, mechanism=refined.mechanism, **EACH)
    fallen = replace(plain, privacy=total, steps=refined.steps)
    fallen = replace(fallen, request=refined.request)
    assert any(text.startswith("ball: stated") for text in verify(fallen).wrong)
    kind = type(get("wrapped-gaussian"))
    monkeypatch.setattr(kind, "refusal", lambda self, ball, privacy: "elsewhere" if ball.center.any() else None)
    chosen = private_mean(X, ball, GDP(1.0), refine=True, mechanism="wrapped-gaussian", **EACH)
    assert chosen.ball == ball != chosen.steps[0].value
    assert_honest(chosen)


def test_means_that_meet_on_the_edge_of_the_ball_are_no_copies():
    # On a circle two large draws end at the same point of the edge; inside, equal draws do not happen.
    X = np.tile([0.0, 1.0], (40, 1))
    found = [
        private_two_sample_test(X, X, Ball(Sphere(1), X[0], 0.5), GDP(1e-3), rng=seed, **EACH) for seed in range(20)
    ]
    assert any(np.array_equal(*(mean.value for mean in test.means)) for test in found)
    for test in found:
        assert_honest(test)


@pytest.mark.parametrize("ball", USUAL, ids=repr)
def test_what_one_backend_made_every_other_one_verifies(ball):
    X = in_ball(ball, 1000, np.random.default_rng(0))
    for made in backends():
        with backend(made):
            found = [
                f(X, ball, GDP(0.5), rng=1, **EACH) for f in (private_mean, private_variance_interval, private_ball)
            ]
        for checked in backends():
            with backend(checked):
                for result in found:
                    assert_honest(result)
