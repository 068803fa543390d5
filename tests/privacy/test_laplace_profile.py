"""Noise of density exp(-|z|/scale) under approximate promises: its exact profile, and what is made of it."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, special, stats

from dpmanifold import EACH_RECORD, GDP, SPD, ApproxDP, Ball, Budget, Euclidean, PureDP, Release, private_mean, verify
from dpmanifold.errors import BudgetError, InvalidArgumentError, PromiseError
from dpmanifold.mechanisms import choose, get
from dpmanifold.privacy import gaussian_scale, laplace_delta, laplace_scale

# (dim, shift, epsilon)
CASES = [(1, 1.2, 1.0), (3, 2.0, 1.0), (15, 3.0, 0.5)]
LONGER = [(2, 1.5, 0.3), (6, 1.1, 1.0), (45, 1.6, 1.0), (45, 9.0, 2.0)]
ALARM = 1e-6


def reference_delta(dim, shift, epsilon):
    """The same by another road: over the radius, with the share of directions by the incomplete beta function.

    delta = P(loss > epsilon) - e^epsilon P(loss < -epsilon); at radius t the loss |z - D| - |z| exceeds l where
    |z - D| > t + l: where the cosine of the angle is below (t^2 + D^2 - (t + l)^2)/(2 t D).
    """
    if dim == 1:
        return -np.expm1((epsilon - shift) / 2)

    def below(t, level):
        u = (t * t + shift * shift - (t + level) ** 2) / (2 * t * shift)
        return special.betainc((dim - 1) / 2, (dim - 1) / 2, np.clip((1 + u) / 2, 0, 1))

    def mass(of, start):
        # Split where the share starts to vary, as a root does; and in the bulk of the Gamma law.
        points = sorted({start, *(start + np.array([0.1, 1.0, 5.0, 20.0])), *stats.gamma(dim).ppf([0.01, 0.5, 0.99])})
        ends = [x for x in points if x >= start] + [start + 400.0]
        goal = {"epsabs": 1e-12 if dim < 45 else 1e-16, "epsrel": 1e-9, "limit": 200}
        return sum(
            integrate.quad(lambda s, a=a: 2 * s * of(a + s * s), 0, np.sqrt(b - a), **goal)[0]
            for a, b in pairwise(ends)
        )

    law = stats.gamma(dim)
    near, far = (shift - epsilon) / 2, (shift + epsilon) / 2
    own = law.cdf(near) + mass(lambda t: law.pdf(t) * below(t, epsilon), near)
    other = mass(lambda t: law.pdf(t) * (1 - below(t, -epsilon)), far)
    return own - np.exp(epsilon) * other


@pytest.mark.parametrize(
    ("dim", "shift", "epsilon"), CASES + [pytest.param(*case, marks=pytest.mark.slow) for case in LONGER]
)
def test_the_profile_is_that_of_an_independent_quadrature(dim, shift, epsilon):
    found, expected = laplace_delta(dim, shift, epsilon), reference_delta(dim, shift, epsilon)
    assert found == pytest.approx(expected, rel=1e-6)
    # And this tells a shift 3 % larger, which is what a scale 3 % too small amounts to.
    assert laplace_delta(dim, 1.03 * shift, epsilon) > 1.03 * expected


def test_delta_grows_with_the_shift_and_ends_where_the_pure_promise_begins():
    values = [laplace_delta(10, shift, 0.5) for shift in np.linspace(0.3, 8, 40)]
    assert (np.diff(values) >= 0).all()
    assert laplace_delta(10, 0.5, 0.5) == 0.0 < laplace_delta(10, 0.5 * (1 + 1e-6), 0.5)


def observed(dim, scale, epsilon, rng, draws=100_000):
    """Average, and its standard error, of what delta is the mean of, for values one apart."""
    z = rng.standard_normal((draws, dim))
    z *= (scale * rng.gamma(dim, size=draws) / np.linalg.norm(z, axis=1))[:, None]
    length = np.linalg.norm(z, axis=1)
    z[:, 0] -= 1.0
    loss = (np.linalg.norm(z, axis=1) - length) / scale
    part = np.maximum(0.0, -np.expm1(epsilon - loss))
    return part.mean(), part.std() / np.sqrt(draws)


@pytest.mark.parametrize("dim", [6, pytest.param(15, marks=pytest.mark.slow)])
def test_draws_keep_the_promise_and_three_percent_less_noise_does_not(dim):
    """A right scale fails with probability 1e-6 (normal approximation: 100,000 draws of numbers in [0, 1])."""
    promise, rng = ApproxDP(0.5, 0.05), np.random.default_rng(11)
    scale, threshold = laplace_scale(1.0, promise, dim=dim), stats.norm.isf(ALARM)
    average, error = observed(dim, scale, promise.epsilon, rng)
    assert average <= promise.delta + threshold * error
    assert average >= promise.delta - threshold * error  # and no more noise than it takes
    average, error = observed(dim, 0.97 * scale, promise.epsilon, rng)
    assert average > promise.delta + threshold * error


@pytest.mark.parametrize("dim", [1, 6, *(pytest.param(dim, marks=pytest.mark.slow) for dim in (2, 21, 45, 200))])
@pytest.mark.parametrize("promise", [ApproxDP(0.1, 1e-6), ApproxDP(1.0, 1e-9), ApproxDP(10.0, 1e-5)])
def test_the_scale_is_the_smallest_and_never_above_the_pure_one(dim, promise):
    scale = laplace_scale(1.0, promise, dim=dim)
    assert scale <= laplace_scale(1.0, PureDP(promise.epsilon))
    assert laplace_delta(dim, 1 / scale, promise.epsilon) <= promise.delta
    assert laplace_delta(dim, 1 / (0.9999 * scale), promise.epsilon) > promise.delta


@pytest.mark.parametrize(
    ("dim", "epsilon", "delta"),
    [(2, 1e-300, 1e-6), (10, 1e-9, 1e-300), (45, 1e-5, 0.9), (6, 1e6, 1e-6), (3, 900.0, 0.5), (5, 0.1, 1 - 1e-9)],
)
def test_extreme_promises_have_a_scale_too(dim, epsilon, delta):
    scale = laplace_scale(1.0, ApproxDP(epsilon, delta), dim=dim)
    assert 0 < scale <= 1 / epsilon * (1 + 1e-12)


@pytest.mark.parametrize(("dim", "low", "high"), [(6, 0.94, 0.99), (10, 0.82, 0.96), (21, 0.8, 0.93), (45, 0.86, 0.95)])
def test_it_beats_the_better_of_gaussian_and_pure_noise(dim, low, high):
    for promise in (ApproxDP(0.1, 1e-6), ApproxDP(3.0, 1e-6)):
        length = np.exp(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2)) * np.sqrt(2)
        best = min(gaussian_scale(1.0, promise) * length, dim / promise.epsilon)
        assert low <= dim * laplace_scale(1.0, promise, dim=dim) / best <= high


def test_other_promises_and_wrong_arguments_are_refused():
    with pytest.raises(PromiseError, match="dim="):
        laplace_scale(1.0, ApproxDP(1.0, 1e-6))
    with pytest.raises(PromiseError, match="GDP"):
        laplace_scale(1.0, GDP(1.0), dim=3)
    with pytest.raises(InvalidArgumentError, match="dim"):
        laplace_delta(0, 1.0, 1.0)


# -------------------------------------------------------------------- in mechanisms and releases

PROMISE = ApproxDP(0.5, 1e-6)


def released(mechanism="auto", estimand=None, space=None):
    space = space or Euclidean(15)
    ball = Ball(space, space.origin, 1.0)
    X = space.exp_coords(space.origin, np.full((60, space.dim), 0.02))
    return private_mean(X, ball, PROMISE, units=EACH_RECORD, mechanism=mechanism, estimand=estimand, shrinkage=None)


@pytest.mark.parametrize(
    ("mechanism", "space"),
    [
        ("auto", None), ("wrapped-laplace", None), ("riemannian-laplace", None), ("tangent-mean-laplace", None),
        ("wrapped-laplace", SPD(5, metric="riemann")),
    ],
)  # fmt: skip
def test_releases_state_the_rule_and_verify_and_less_noise_does_not(mechanism, space):
    release = released(mechanism, space=space)
    assert release.mechanism.endswith("laplace")
    assert (release.rule, release.privacy, release.share) == ("exact profile", PROMISE, PROMISE)
    assert release.scale < 0.83 * release.sensitivity.value / PROMISE.epsilon
    again = Release.from_dict(json.loads(json.dumps(release.to_dict())))
    assert verify(again).ok, verify(again).wrong
    assert any("scale" in text for text in verify(replace(release, scale=0.97 * release.scale)).wrong)


def test_on_curved_spaces_the_riemannian_law_keeps_its_pure_rule():
    ball = Ball(SPD(2, metric="riemann"), np.eye(2), 1.0)
    assert get("riemannian-laplace").calibrate(ball, 400, PROMISE).rule == "Delta/epsilon"


def test_auto_takes_it_and_the_budget_sees_an_approximate_promise():
    ball = Ball(Euclidean(15), np.zeros(15), 1.0)
    chosen, calibration, forecast = choose("auto", ball, 60, PROMISE)
    others = [choose(name, ball, 60, PROMISE)[2].mean for name in ("wrapped-gaussian",)]
    assert chosen.noise == "laplace"
    assert forecast.mean < 0.83 * min([*others, 15 * calibration.sensitivity.value / PROMISE.epsilon])
    budget = Budget(ApproxDP(1.0, 2e-6))
    private_mean(np.zeros((60, 15)), ball, PROMISE, units=EACH_RECORD, budget=budget)
    private_mean(np.zeros((60, 15)), ball, PROMISE, units=EACH_RECORD, budget=budget)
    with pytest.raises(BudgetError):
        private_mean(np.zeros((60, 15)), ball, ApproxDP(0.01, 1e-9), units=EACH_RECORD, budget=budget)
