"""The two populations of the simulations of Jiang, Chang and Hu (2025), and what is known about them exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import integrate

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.manifolds import SPD, Sphere

UNITS = 600
SPHERE_RADIUS, SPD_RADIUS = math.pi / 8, 1.5


def sphere_data(n: int, rng: np.random.Generator) -> tuple[Array, Ball]:
    """Return n points, uniform in a ball of radius pi/8 about a random point of S^2, and that ball."""
    space = Sphere(2)
    center = space.random_point(rng=rng)
    height = 1 - rng.random(n) * (1 - math.cos(SPHERE_RADIUS))
    turn = 2 * np.pi * rng.random(n)
    c = np.arccos(height)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return space.exp_coords(center, c), Ball(space, center, SPHERE_RADIUS)


def spd_data(n: int, rng: np.random.Generator) -> tuple[Array, Ball]:
    """Return n matrices of SPD(2): exponentials of vectors uniform in the ball of radius 1.5 at I, and that ball."""
    space = SPD(2, metric="riemann")
    v = rng.standard_normal((n, 3))
    v *= (SPD_RADIUS * rng.random(n) ** (1 / 3) / np.linalg.norm(v, axis=1))[:, None]
    return space.exp_coords(np.eye(2), v), Ball(space, np.eye(2), SPD_RADIUS)


DATA = {"sphere": sphere_data, "spd": spd_data}


@dataclass(frozen=True)
class Facts:
    """A population by its numbers.

    Attributes
    ----------
    dim : dimension of the space
    radius : of the ball
    variance : the Fréchet variance, E rho^2 to the centre, which by symmetry is the mean
    fourth : E rho^4
    hessians : eigenvalues of the mean Hessian of half the squared distance; on SPD(2) along I, along diag(1, -1) and
        along the off-diagonal entry
    """

    dim: int
    radius: float
    variance: float
    fourth: float
    hessians: tuple[float, ...]

    @property
    def mean_errors(self) -> tuple[float, ...]:
        """Variance of the sample mean by direction, times n."""
        return tuple(self.variance / self.dim / h**2 for h in self.hessians)


@lru_cache
def facts(name: str) -> Facts:
    """Return the numbers of a population, by quadrature.

    Examples
    --------
    >>> round(facts("spd").variance, 4), round(facts("sphere").variance, 5)
    (1.35, 0.07677)
    """
    if name == "spd":
        r = SPD_RADIUS
        # A vector is a multiple of I and a traceless part of length s, whose density is 3 s sqrt(r^2 - s^2)/r^3; the
        # Hessian is 1 along both, and x coth x across, with x = s/sqrt 2.
        across = _integral(lambda s: 3 * s * math.sqrt(max(r * r - s * s, 0.0)) / r**3 * _x_coth_x(s / math.sqrt(2)), r)
        turned = (1 + across) / 2
        return Facts(3, r, 3 / 5 * r**2, 3 / 7 * r**4, (1.0, turned, turned))
    r = SPHERE_RADIUS
    density = 1 / (1 - math.cos(r))  # of the distance t, times sin t
    variance = density * _integral(lambda t: t**2 * math.sin(t), r)
    fourth = density * _integral(lambda t: t**4 * math.sin(t), r)
    hessian = density * _integral(lambda t: (math.sin(t) + t * math.cos(t)) / 2, r)
    return Facts(2, r, variance, fourth, (hessian, hessian))


def true_variance(name: str) -> float:
    """Return the Fréchet variance of a population."""
    return facts(name).variance


def _integral(f: Callable[[float], float], end: float) -> float:
    return float(integrate.quad(f, 0.0, end)[0])


def _x_coth_x(x: float) -> float:
    return x / math.tanh(x) if x > 1e-6 else 1.0
