"""What the experiments on simulated matrices share: sizes, promises, data, and draws by the hundred."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray
from dpmanifold.ball import Ball
from dpmanifold.frechet import UnitPoints
from dpmanifold.manifolds import SPD
from dpmanifold.mechanisms import Calibration, Mechanism, choose, get
from dpmanifold.privacy import ApproxDP, Promise, PureDP
from dpmanifold.stats.mean import shrinkage_of

SIZES = (2, 5, 10, 15, 20, 25, 30)
EPSILONS = (0.1, 0.2, 0.3, 0.4)
DELTA = 1e-6
UNITS = 500
# Eigenvalues are uniform in [exp(-HALF_WIDTH), exp(HALF_WIDTH)]; the paper calls it r.
HALF_WIDTH = 0.25


def simulated_matrices(k: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Return n matrices E D E' of size k: eigenvalues uniform in [e^-r, e^r], r = 1/4, and E of the Haar law.

    Examples
    --------
    >>> X = simulated_matrices(3, 10, np.random.default_rng(0))
    >>> bool((abs(np.log(np.linalg.eigvalsh(X))) <= 0.25 + 1e-12).all())
    True
    """
    values = rng.uniform(math.exp(-HALF_WIDTH), math.exp(HALF_WIDTH), (n, k))
    vectors, triangle = np.linalg.qr(rng.standard_normal((n, k, k)))
    # Without the signs the law of QR's factor depends on how it is computed (Mezzadri 2007).
    vectors *= np.sign(np.diagonal(triangle, axis1=1, axis2=2))[:, None, :]
    return np.asarray(np.einsum("nij,nj,nkj->nik", vectors, values, vectors))


def simulated_ball(k: int) -> Ball:
    """Return the public ball of those matrices: centre I, radius sqrt(k)/4. No smaller ball holds them all.

    Examples
    --------
    >>> simulated_ball(4).radius
    0.5
    """
    return Ball(SPD(k), np.eye(k), math.sqrt(k) * HALF_WIDTH, "eigenvalues in [exp(-1/4), exp(1/4)], by construction")


@lru_cache(maxsize=512)
def _automatic(ball: Ball, n: int, promise: Promise) -> Mechanism:
    """Return what "auto" takes: looking at every mechanism takes a while, and depends on public numbers alone."""
    return choose("auto", ball, n, promise)[0]


@dataclass(frozen=True)
class Case:
    """One line of a figure: a mechanism with its promise.

    Attributes
    ----------
    label : how it is called in tables
    mechanism : its name in the registry, or "auto" for the one a release takes, by what is public
    pure : whether it promises epsilon alone; else (epsilon, delta)
    factor : on the scale the library calibrates to
    project : move the draw into the ball, as our releases do
    shrink : move it towards the centre first where that never adds to the mean squared error, as our releases do. Left
        out for the simulated matrices: their mean is next to the centre by construction, which would flatter it
    """

    label: str
    mechanism: str
    pure: bool = False
    factor: float = 1.0
    project: bool = False
    shrink: bool = False

    def promise(self, epsilon: float, delta: float) -> Promise:
        """Return what it promises."""
        return PureDP(epsilon) if self.pure else ApproxDP(epsilon, delta)

    def chosen(self, ball: Ball, n: int, epsilon: float, delta: float) -> tuple[Mechanism, Calibration]:
        """Return the mechanism and its calibration."""
        promise = self.promise(epsilon, delta)
        mechanism = _automatic(ball, n, promise) if self.mechanism == "auto" else get(self.mechanism)
        found = mechanism.calibrate(ball, n, promise)
        return mechanism, replace(found, scale=self.factor * found.scale)

    def scale(self, ball: Ball, n: int, epsilon: float, delta: float) -> float:
        """Return the scale of its noise."""
        return self.chosen(ball, n, epsilon, delta)[1].scale

    def expected(self, ball: Ball, n: int, epsilon: float, delta: float) -> float:
        """Return the expected error, exactly, if the draw is not moved into the ball or towards its centre."""
        mechanism, calibration = self.chosen(ball, n, epsilon, delta)
        length = laplace_length if mechanism.name.endswith("laplace") else gaussian_length
        return calibration.scale * length(ball.space.dim)

    def draws(
        self, ball: Ball, mean: Array, n: int, epsilon: float, delta: float, size: int, rng: np.random.Generator
    ) -> FloatArray:
        """Draw noisy means in the ball's frame, (size, d), about `mean` there: what a release does, in one batch."""
        mechanism, calibration = self.chosen(ball, n, epsilon, delta)
        drawn = mechanism.law(ball, calibration, mean, UnitPoints.of(mean[None], ball)).sample(size, rng=rng)
        rule = shrinkage_of(ball, mechanism, calibration.scale, self.project) if self.shrink else None
        drawn = drawn if rule is None else rule(drawn)
        return ball.in_frame.pull_in(drawn) if self.project else drawn


LAPLACE = Case("Laplace", "riemannian-laplace", pure=True)
LAPLACE_TWICE = Case("Laplace, twice the scale", "riemannian-laplace", pure=True, factor=2.0)
CLASSICAL = Case("tangent Gaussian, classical", "wrapped-gaussian-classical")
ANALYTIC = Case("tangent Gaussian, analytic", "wrapped-gaussian")
OURS = Case("ours", "auto", project=True)
OURS_SHRUNK = Case("ours, shrunk", "auto", project=True, shrink=True)
OURS_PURE = Case("ours, pure", "auto", pure=True, project=True)


def dimension(k: int) -> int:
    """Return that of SPD(k)."""
    return k * (k + 1) // 2


def laplace_length(dim: int) -> float:
    """Return the mean length of noise of density exp(-|z|) on R^dim: Gamma(dim).

    Examples
    --------
    >>> laplace_length(3)
    3.0
    """
    return float(dim)


def gaussian_length(dim: int) -> float:
    """Return the mean length of standard normal noise on R^dim, sqrt(2) Gamma((dim + 1)/2)/Gamma(dim/2).

    Examples
    --------
    >>> round(gaussian_length(1), 6)  # sqrt(2/pi)
    0.797885
    """
    return float(math.sqrt(2) * np.exp(special.gammaln((dim + 1) / 2) - special.gammaln(dim / 2)))


def gap(k: int, epsilon: float, gaussian: Case, laplace: Case = LAPLACE, delta: float = DELTA) -> float:
    """Return how many times as long the Laplace noise is as the Gaussian: the exact ratio of expectations.

    The sensitivity cancels, so this holds for every ball and every number of units.

    Examples
    --------
    >>> round(gap(30, 0.1, CLASSICAL), 1), round(gap(30, 0.1, ANALYTIC), 1)
    (4.1, 5.9)
    """
    ball = simulated_ball(k)
    return laplace.expected(ball, UNITS, epsilon, delta) / gaussian.expected(ball, UNITS, epsilon, delta)
