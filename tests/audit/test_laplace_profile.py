"""Laplace noise in several dimensions under (epsilon, delta), by its density: an integral made here, from nothing.

With density exp(-|z|/scale) the loss between two centres a distance apart is (|z - a| - |z|)/scale. The length |z| has
a Gamma law, the cosine of the angle with a the law of a coordinate of a uniform direction; delta is the integral of
(1 - exp(epsilon - loss))_+ over both. On neighbours whose averages are as far apart as the sensitivity says, a release
must keep its delta and use nearly all of it, and three per cent less noise must break it.
"""

import math

import numpy as np
import pytest
from scipy import special

import dpmanifold as dpm
from dpmanifold.mechanisms import get

# What the grids leave open.
QUADRATURE = 1e-5
NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def delta_of(dim, apart, epsilon):
    """Return delta(epsilon) of noise of scale 1 between centres this far apart, dim at least 2."""
    longest = special.gammaincinv(dim, 1 - 1e-13)
    r = (NODES + 1) / 2 * longest
    of_length = WEIGHTS / 2 * longest * np.exp((dim - 1) * np.log(r) - r - special.gammaln(dim))
    # The loss exceeds epsilon from this angle on.
    first = np.arccos(np.clip((apart**2 - epsilon**2 - 2 * epsilon * r) / (2 * apart * r), -1.0, 1.0))
    angle = math.pi - (math.pi - first[:, None]) * (1 - NODES) / 2
    loss = np.sqrt(np.maximum(r[:, None] ** 2 - 2 * apart * r[:, None] * np.cos(angle) + apart**2, 0.0)) - r[:, None]
    told = np.maximum(-np.expm1(epsilon - loss), 0.0) * np.sin(angle) ** (dim - 2)
    all_angles = math.sqrt(math.pi) * math.exp(special.gammaln((dim - 1) / 2) - special.gammaln(dim / 2))
    return float(of_length @ ((math.pi - first) / 2 * (told @ WEIGHTS))) / all_angles


@pytest.mark.parametrize("dim", [2, 6, 21])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (2.0, 1e-3)])
def test_delta_is_kept_and_used(dim, epsilon, delta):
    ball, privacy = dpm.Ball(dpm.Euclidean(dim), np.zeros(dim), 1.0), dpm.ApproxDP(epsilon, delta)
    calibration = get("wrapped-laplace").calibrate(ball, 40, privacy)
    apart = 2 * ball.radius / 40 / calibration.scale
    assert calibration.rule == "exact profile"
    assert 0.9 * delta <= delta_of(dim, apart, epsilon) <= delta * (1 + QUADRATURE)
    assert delta_of(dim, apart / 0.97, epsilon) > delta * 1.05


def test_the_integral_is_that_of_the_pure_law():
    """A pure promise is epsilon = apart, whatever the dimension: delta is 0 from there on, and not before."""
    for dim in (2, 6, 21):
        assert delta_of(dim, 1.0, 1.0) == 0
        assert delta_of(dim, 1.0, 0.0) > 0
