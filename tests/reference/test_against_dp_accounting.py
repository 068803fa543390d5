"""Calibration and conversion of promises against Google's dp-accounting.

Its Gaussian calibration is an independent implementation of the same exact condition, and stops within its own
tolerance: agreement means that ours is within 1e-6 of it, and that a promise of ours is one of theirs.

Run with `pytest -m reference tests/reference` in an environment of its own (requirements.txt).
"""

import itertools
import math

import pytest

from dpmanifold.privacy import GDP, ZCDP, ApproxDP, gaussian_promise, gaussian_scale, gdp_delta, to_approx

dp_accounting = pytest.importorskip("dp_accounting")
rdp = pytest.importorskip("dp_accounting.rdp")
pld = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")

pytestmark = pytest.mark.reference

EPSILONS = (1e-2, 0.1, 0.5, 1.0, 3.0, 10.0)
DELTAS = (1e-12, 1e-8, 1e-5, 1e-3, 0.1)


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_gaussian_scale(epsilon, delta):
    ours = gaussian_scale(1.0, ApproxDP(epsilon, delta))
    theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert ours == pytest.approx(theirs, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta"), list(itertools.product(EPSILONS, DELTAS)))
def test_gaussian_promise(epsilon, delta):
    scale = gaussian_scale(1.0, ApproxDP(epsilon, delta))
    assert dp_accounting.get_epsilon_gaussian(scale, delta) == pytest.approx(
        to_approx(gaussian_promise(1.0, scale), delta).epsilon, rel=1e-6
    )


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
def test_gaussian_curve(scale):
    noise = pld.GaussianPrivacyLoss(scale, sampling_prob=1.0)
    for epsilon in (0.0, 0.1, 1.0, 3.0):
        assert gdp_delta(1 / scale, epsilon) == pytest.approx(noise.get_delta_for_epsilon(epsilon), rel=1e-9)


@pytest.mark.parametrize(("mu", "delta"), list(itertools.product((0.1, 1.0, 3.0), (1e-10, 1e-5, 1e-2))))
def test_zcdp_to_approx(mu, delta):
    """Their best over a fine list of orders is at least ours over all of them, and close to it."""
    orders = [1 + math.exp(k / 50) for k in range(-100, 400)]
    theirs, _ = rdp.compute_epsilon(orders, [order * mu * mu / 2 for order in orders], delta)
    ours = to_approx(ZCDP(mu * mu / 2), delta).epsilon
    assert theirs * (1 - 1e-4) <= ours <= theirs * (1 + 1e-12)
    assert to_approx(GDP(mu), delta).epsilon <= ours
