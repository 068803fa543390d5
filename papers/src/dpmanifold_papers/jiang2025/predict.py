"""What the formulas of Jiang, Chang and Hu (2025) predict for the numbers they print: no simulation, no data."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special

from dpmanifold.manifolds import Sphere
from dpmanifold.privacy import loss_profile
from dpmanifold_papers.jiang2025.populations import SPHERE_RADIUS, UNITS, facts
from dpmanifold_papers.jiang2025.printed import DISTANCE, MEANT_UNIT, MU, REPETITIONS

_LOG_S = np.linspace(-66.0, 66.0, 1321)


def expected_length(variances: Sequence[float]) -> float:
    """Return the mean length of a normal vector with independent entries of these variances.

    E sqrt(Q) is the integral of (1 - E exp(-s Q)) s^(-3/2) over s > 0, over 2 sqrt(pi).

    Examples
    --------
    >>> round(expected_length([4.0, 4.0]), 6) == round(2 * math.sqrt(math.pi / 2), 6)
    True
    """
    v = np.asarray(variances, dtype=np.float64)
    scale = float(v.mean())
    step = float(_LOG_S[1] - _LOG_S[0])
    s = np.exp(_LOG_S)
    decay = -np.expm1(-0.5 * np.log1p(2 * s[:, None] * (v / scale)).sum(axis=1))
    # In log s the integrand is analytic and falls off exponentially: equal weights are exact to rounding.
    return math.sqrt(scale) * float((decay / np.sqrt(s)).sum()) * step / (2 * math.sqrt(math.pi))


def length_error(variances: Sequence[float], repetitions: int = REPETITIONS) -> float:
    """Return the Monte Carlo error that a mean of such lengths has."""
    return math.sqrt((sum(variances) - expected_length(variances) ** 2) / repetitions)


def published_sensitivity(name: str, radius: float | None = None) -> float:
    """Return n times the published sensitivity of the mean, their equation (1).

    Examples
    --------
    >>> round(published_sensitivity("sphere"), 4), published_sensitivity("spd")
    (1.2146, 3.0)
    """
    r = facts(name).radius if radius is None else radius
    return 2 * math.tan(2 * r) - 2 * r if name == "sphere" else 2 * r


def mean_variances(name: str, noise: float, plain: bool = False) -> list[float]:
    """Return the variances of a released mean's error by direction, for noise of this standard deviation in each.

    With `plain`, of the entries a11, a22, a12 of a matrix as they stand, noise on each: no factor sqrt 2 on a12.
    """
    sampling = [error / UNITS for error in facts(name).mean_errors]
    if plain:
        sampling[-1] /= 2
    return [error + noise**2 for error in sampling]


def mean_distance_at(name: str, mu: float, split: float = 3.0, plain: bool = False) -> float:
    """Return E rho(released mean, truth) with the published sensitivity at mu/sqrt(split).

    Distances are small: sampling and noise are taken as Gaussian in the tangent space. An infinite mu is sampling
    alone; with `plain`, the length of the plain entries.

    Examples
    --------
    >>> round(1e4 * mean_distance_at("sphere", 0.1)), round(1e4 * mean_distance_at("sphere", 0.1, split=1))
    (451, 273)
    >>> round(1e3 * mean_distance_at("spd", 0.1)), round(1e3 * mean_distance_at("spd", 0.1, plain=True))
    (144, 143)
    """
    noise = published_sensitivity(name) / UNITS * math.sqrt(split) / mu
    return expected_length(mean_variances(name, noise, plain))


def variance_distance_at(name: str, mu: float, split: float = 3.0) -> float:
    """Return E |released variance - truth| at mu/sqrt(split) each for mean and variance, 4 r^2/n for the latter.

    The moment about a noisy mean is too large by tr(H Sigma), and that about the sample mean too small by V/n.

    Examples
    --------
    >>> round(1e4 * variance_distance_at("sphere", 0.1)), round(1e3 * variance_distance_at("spd", 0.1))
    (145, 209)
    """
    known, n = facts(name), UNITS
    noise = published_sensitivity(name) / n * math.sqrt(split) / mu
    bias = sum(h * (noise**2 - error / n) for h, error in zip(known.hessians, known.mean_errors, strict=True))
    released = 4 * known.radius**2 / n * math.sqrt(split) / mu
    effect = sum(2 * (h * noise**2) ** 2 for h in known.hessians)
    spread = math.sqrt((known.fourth - known.variance**2) / n + released**2 + effect)
    shift = bias / spread
    folded = math.sqrt(2 / math.pi) * math.exp(-(shift**2) / 2) + shift * (1 - 2 * float(special.ndtr(-shift)))
    return spread * folded


def distance_at(name: str, what: str, mu: float, split: float = 3.0) -> float:
    """Return the mean distance of a table: of means or of variances."""
    return mean_distance_at(name, mu, split) if what == "mean" else variance_distance_at(name, mu, split)


def implied_noise(name: str, printed: float, mu: float, plain: bool = False) -> tuple[float, float]:
    """Return n mu times the noise that a printed mean distance stands for, and its Monte Carlo error.

    A mechanism with sensitivity Delta at mu would give n Delta, one at mu/sqrt 3 would give sqrt(3) n Delta. Where
    the printed number is below sampling alone, 0 and infinity.

    Examples
    --------
    >>> value, error = implied_noise("spd", 144e-3, 0.1)
    >>> round(value, 1), round(math.sqrt(3) * published_sensitivity("spd"), 1)
    (5.2, 5.2)
    """
    if printed <= expected_length(mean_variances(name, 0.0, plain)):
        return 0.0, math.inf
    low, high = 0.0, printed
    for _ in range(50):
        middle = (low + high) / 2
        short = expected_length(mean_variances(name, middle, plain)) < printed
        low, high = (middle, high) if short else (low, middle)
    step = 1e-4 * high
    slope = (expected_length(mean_variances(name, high + step, plain)) - printed) / step
    return UNITS * mu * high, UNITS * mu * length_error(mean_variances(name, high, plain)) / slope


def misfit(name: str, factor: float, plain: bool = False) -> float:
    """Return chi^2 of the nine printed mean distances if n mu times the noise were `factor`: about 9 where it fits."""
    key, total = (name, "mean"), 0.0
    for mu, printed in zip(MU, DISTANCE[key][:-1], strict=True):
        variances = mean_variances(name, factor / UNITS / mu, plain)
        gap = expected_length(variances) - printed * MEANT_UNIT[key]
        total += (gap / length_error(variances)) ** 2
    return total


def calibrations(name: str) -> dict[str, tuple[float, bool]]:
    """Return, by what might have been done, n mu times the noise, and whether plain entries are measured."""
    whole, root, r = published_sensitivity(name), math.sqrt(3), SPHERE_RADIUS
    low = 2 * r / math.tan(2 * r)  # h of theory section 3
    if name == "spd":
        return {
            "as stated: 2r/n at mu/sqrt 3, distance rho": (root * whole, False),
            "2r/n at mu, distance rho": (whole, False),
            "2r/n at mu/sqrt 3, noise and length of plain entries": (root * whole, True),
        }
    return {
        "as stated: published sensitivity at mu/sqrt 3": (root * whole, False),
        "published sensitivity at mu": (whole, False),
        "2r/n, without curvature, at mu/sqrt 3": (root * 2 * r, False),
        "2r/n, without curvature, at mu": (2 * r, False),
        "published sensitivity at mu times sqrt 3": (whole / root, False),
        "published sensitivity of radius pi/16 at mu/sqrt 3": (root * published_sensitivity(name, r / 2), False),
        "tan(r)/n at mu/sqrt 3": (root * math.tan(r), False),
        "sin(2r)/n at mu": (math.sin(2 * r), False),
        "r/n at mu/sqrt 3": (root * r, False),
        "half the published sensitivity at mu": (whole / 2, False),
        "half the published sensitivity at mu/sqrt 3": (root * whole / 2, False),
        "our tight sensitivity at mu": (4 * r**2 / math.sin(2 * r) / (1 - (1 - low) / 4), False),
    }


def attained_mu(sigma: float, distance: float) -> float:
    """Return the mu that the likelihood-ratio test with equal errors reaches on S^2: a lower bound of the exact one.

    Examples
    --------
    >>> round(attained_mu(0.3, 0.03) / 0.1, 4), round(expanded_mu(0.3, 0.03) / 0.1, 4)
    (0.985, 0.985)
    """
    profile = loss_profile(Sphere(2), "gaussian", sigma, distance)
    return -2 * float(special.ndtri_exp(profile.tails(np.zeros(1))[1][0]))


def expanded_mu(sigma: float, distance: float) -> float:
    """Return (distance/sigma)(1 - sigma^2/6), the first terms of the same on S^2."""
    return distance / sigma * (1 - sigma**2 / 6)
