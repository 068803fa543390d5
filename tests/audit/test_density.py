"""Privacy by density: on worst-case neighbours, the largest log ratio of densities over a fine set of outputs.

The neighbours are what the adversary's search (tests/laws/adversary.py) finds and, if that is worse, a pair across a
diameter. Normalisers of truncated and gradient laws are Monte Carlo integrals over the ball, and their error is allowed
for. How much of epsilon is used is printed (pytest -s).
"""

from functools import cache

import numpy as np
import pytest

from dpmanifold import GDP, SPD, Ball, Euclidean, Hyperbolic, KendallShapes, PureDP, Sphere, frechet
from dpmanifold.mechanisms import get
from dpmanifold.noise import GradientLaw, RiemannianGaussian, RiemannianLaplace, WrappedGaussian, WrappedLaplace
from dpmanifold.privacy import gdp_delta
from laws import adversary

EPSILON = 1.0


def beyond(loss, epsilon):
    """Summands whose mean is delta(epsilon), of privacy losses at draws from the first data set."""
    return np.clip(-np.expm1(np.minimum(epsilon - loss, 0.0)), 0.0, 1.0)


BALLS = [
    Ball(Euclidean(2), [0.0, 0.0], 1.0),
    Ball(Sphere(1), [1.0, 0.0], 1.2),
    Ball(Sphere(2), [1.0, 0.0, 0.0], 0.6),
    Ball(Hyperbolic(2), Hyperbolic(2).origin, 1.0),
    Ball(SPD(2, metric="riemann"), np.eye(2), 1.0),
    Ball(SPD(2), np.eye(2), 1.0),
    Ball(KendallShapes(3), KendallShapes(3).origin, 0.3),
]


@cache
def neighbours(ball, n=8):
    """The worse of the searched pair and the one across a diameter: whichever moves the mean farther."""
    searched = adversary.worst_neighbours(ball, n, np.random.default_rng(0), generations=40)[1:]
    return max(searched, across_a_diameter(ball, n), key=lambda pair: shift(ball, pair))


def shift(ball, pair):
    first, second = (frechet.mean(X, ball).in_frame for X in pair)
    return float(ball.frame.dist(first, second))


def across_a_diameter(ball, n):
    """Records on both edges across the replaced one's path, which pull Hessians down and the means apart."""
    d = ball.space.dim
    across = np.zeros((n - 1, d))
    across[:, min(1, d - 1)] = np.where(np.arange(n - 1) % 2, 1.0, -1.0)
    if d == 1 or ball.space.is_hadamard:
        across[:] = 0.0
    pair = np.zeros((2, d))
    pair[:, 0] = 1.0, -1.0
    r = 0.9999 * ball.radius
    common = ball.space.exp_coords(ball.center, r * across)
    ends = ball.space.exp_coords(ball.center, r * pair)
    return [ball.space.project(np.concatenate([common, end[None]])) for end in ends]


def output_grid(ball, m=40_000, seed=0):
    """Outputs inside and just outside the ball, as coordinates about the frame's origin, denser towards the axis."""
    rng = np.random.default_rng(seed)
    d = ball.space.dim
    c = rng.standard_normal((m, d)) * np.geomspace(1.0, 0.02, m)[:, None] ** (np.arange(d) > 0)
    c *= (ball.radius * rng.random(m) ** (1 / d) / np.linalg.norm(c, axis=1))[:, None]
    return c


def log_normalizer(law, ball, m=300_000):
    """Log of the integral of exp(logpdf) over the ball, by uniform points in normal coordinates; and its error."""
    rng = np.random.default_rng(5)
    d = ball.space.dim
    c = rng.standard_normal((m, d))
    c *= (ball.radius * rng.random(m) ** (1 / d) / np.linalg.norm(c, axis=1))[:, None]
    frame = ball.frame
    height = law.logpdf(frame.exp_coords(frame.origin, c * (1 - 1e-12))) + frame.log_volume_density(c)
    weights = np.exp(height - height.max())
    return np.log(weights.mean()) + height.max(), weights.std() / weights.mean() / np.sqrt(m)


def laws(name, ball, n, data):
    """The mechanism's law on each data set, in the ball's frame."""
    mechanism = get(name)
    calibration = mechanism.calibrate(ball, n, PureDP(EPSILON))
    inner, frame = ball.in_frame, ball.frame
    for X in data:
        points = frechet.unit_points(X, ball, units=None)
        mean = points.mean()
        if name == "kng":
            yield GradientLaw(inner, points, calibration.scale)
        elif name == "wrapped-laplace":
            yield WrappedLaplace(frame, frame.origin, mean, calibration.scale)
        else:
            truncated = inner if name.endswith("truncated") else None
            yield RiemannianLaplace(frame, mean, calibration.scale, ball=truncated)


@pytest.mark.parametrize(
    "name",
    [
        "riemannian-laplace",
        "wrapped-laplace",
        "riemannian-laplace-truncated",
        pytest.param("kng", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_pure_mechanisms_by_density(ball, name):
    n = 8
    if get(name).refusal(ball, PureDP(EPSILON)) is not None:
        assert name != "riemannian-laplace"
        return
    frame = ball.frame
    data = neighbours(ball, n)
    first, second = laws(name, ball, n, data)
    x = frame.exp_coords(frame.origin, output_grid(ball))
    ratio = first.logpdf(x) - second.logpdf(x)
    error = 0.0
    if name in ("kng", "riemannian-laplace-truncated"):
        (za, ea), (zb, eb) = log_normalizer(first, ball), log_normalizer(second, ball)
        ratio, error = ratio - za + zb, 5 * (ea + eb)
    used = np.abs(ratio[np.isfinite(ratio)]).max() / EPSILON
    print(f"{name:32s} {ball.space!r:28s} uses {used:.3f} of epsilon")
    assert used <= 1 + error
    # Below 0.4 noise would be wasted; truncated and gradient laws pay a factor 2 for their unknown normaliser, and the
    # bound on the mean's shift is not attained on positive curvature (docs/theory/mean.md): half of 0.8, at worst.
    assert used >= (0.25 if name in ("kng", "riemannian-laplace-truncated") else 0.4)


def test_half_the_noise_is_too_little():
    """The same check refuses a scale that is 10 % too small, where the bound is attained."""
    ball = BALLS[0]
    mechanism = get("riemannian-laplace")
    scale = 0.9 * mechanism.calibrate(ball, 8, PureDP(EPSILON)).scale
    means = [frechet.mean(X, ball).in_frame for X in neighbours(ball)]
    x = output_grid(ball)
    first, second = (RiemannianLaplace(ball.frame, mean, scale) for mean in means)
    assert np.abs(first.logpdf(x) - second.logpdf(x)).max() > EPSILON


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_gaussian_mechanisms_by_monte_carlo(ball, mu):
    """delta(epsilon) of the mechanism on worst-case neighbours stays below the curve of its promise."""
    n = 8
    name = "wrapped-gaussian" if ball.space.is_hadamard else "riemannian-gaussian"
    mechanism = get(name)
    scale = mechanism.calibrate(ball, n, GDP(mu)).scale
    frame = ball.frame
    means = [frechet.mean(X, ball).in_frame for X in neighbours(ball, n)]
    if name == "wrapped-gaussian":
        first, second = (WrappedGaussian(frame, frame.origin, mean, scale) for mean in means)
    else:
        first, second = (RiemannianGaussian(frame, mean, scale) for mean in means)
    x = first.sample(200_000, rng=3)
    loss = first.logpdf(x) - second.logpdf(x)
    for epsilon in (0.1 * mu, mu, 2 * mu):
        seen = beyond(loss, epsilon)
        assert seen.mean() <= gdp_delta(mu, epsilon) + 5 * seen.std() / np.sqrt(len(loss))
    # With 20 % less noise the promise is broken where the bound is attained.
    if ball.space.is_flat:
        x = WrappedGaussian(frame, frame.origin, means[0], 0.8 * scale)
        y = WrappedGaussian(frame, frame.origin, means[1], 0.8 * scale)
        draws = x.sample(200_000, rng=4)
        seen = beyond(x.logpdf(draws) - y.logpdf(draws), mu)
        assert seen.mean() > gdp_delta(mu, mu) * 1.05
