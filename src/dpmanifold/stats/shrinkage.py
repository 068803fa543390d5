"""Moving a noisy mean towards the public centre, where that can only help (theory section 8, shrinkage).

A draw about a mean that lies in a ball, with normal noise in flat coordinates, can be improved afterwards: noise is
more likely to have carried it outwards than inwards. Two estimators are known, and each is used only where its mean
squared error is below that of the draw wherever in the ball the mean lies:

- James and Stein's (1961), positive part: the draw y becomes max(0, 1 - (d - 2) sigma^2/|y|^2) y. Better than y for
  every mean if d >= 3; against the draw *moved into the ball* that depends on the dimension and on radius/sigma, and is
  computed.
- Marchand and Perron's (2001), the posterior mean for a uniform prior on the ball's edge: R A(R |y|/sigma^2) y/|y|,
  A = I_{d/2}/I_{d/2-1}. Better than the draw moved into the ball if R <= sigma sqrt(d), in every dimension: just where
  a draw says little.

Public numbers decide, and the draw is released too, so this costs no privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray
from dpmanifold.manifolds.base import vector_norm

JAMES_STEIN = "james-stein"
BOUNDED = "bounded"
# Beyond this many standard deviations per sqrt(d) there is nothing left to gain.
_LARGEST_RADIUS = 20.0
# The gain must show beyond the error of the sums below: from d = 3 on at most a third of this (theory section 8).
_MARGIN = 1e-3
_DISTANCES = 33
# Nodes along and across the mean's direction, and how many standard deviations they reach.
_ALONG, _ACROSS = 97, 145
_REACH = 7.2
_TABLE = 8193
# Below this a Bessel function has lost digits to underflow.
_LOST = 1e-280


@dataclass(frozen=True)
class Shrinkage:
    """A shrinkage estimator, James-Stein or bounded, that replaces the draw.

    For a ball of radius `radius` and noise of standard deviation `scale`.

    Examples
    --------
    >>> rule = Shrinkage("james-stein", 4, 2.0, 0.5)
    >>> rule(np.array([1.0, 0.0, 0.0, 0.0]))
    array([0.5, 0. , 0. , 0. ])
    """

    name: str
    dim: int
    radius: float
    scale: float

    def __call__(self, draw: Array) -> Array:
        """Return draws in coordinates about the centre, (..., dim), moved towards it."""
        length = vector_norm(draw) / self.scale
        moved = _length(self.name, length, self.dim, self.radius / self.scale)
        return np.asarray(draw * (moved / np.where(length > 0, length, 1.0))[..., None])


def best_shrinkage(dim: int, radius: float, scale: float, projected: bool) -> Shrinkage | None:
    """Return the estimator that public numbers allow, or None where neither can only help.

    Of two that can only help, the one with the smaller error on average over the inner half of the ball, where a mean
    is if the ball was chosen with some room.

    Parameters
    ----------
    dim : of the flat space
    radius : of the ball about whose centre the draw is, in which the mean lies
    scale : standard deviation of the noise in each coordinate
    projected : whether the draw is moved into the ball

    Examples
    --------
    >>> best_shrinkage(6, 1.0, 0.5, True).name, best_shrinkage(2, 1.0, 2.0, True).name
    ('james-stein', 'bounded')
    >>> best_shrinkage(6, 1.0, 0.01, True) is None
    True
    """
    ratio = radius / scale
    if not (math.isfinite(ratio) and 0 < ratio <= _LARGEST_RADIUS * math.sqrt(dim)):
        return None
    if not projected:
        return Shrinkage(JAMES_STEIN, dim, radius, scale) if dim >= 3 else None
    # Balls found at different radii under the same promise have the same ratio, up to rounding.
    name = _best(dim, float(f"{ratio:.9g}"))
    return None if name is None else Shrinkage(name, dim, radius, scale)


def admissible_shrinkage(dim: int, radius: float, scale: float) -> Callable[[str], bool]:
    """Return what says whether an estimator, or "none", is one whose error is known to fall in some such ball."""
    able = {"none", *([JAMES_STEIN] if dim >= 3 else []), *([BOUNDED] if radius <= scale * math.sqrt(dim) else [])}
    return able.__contains__


def shrunken_error(dim: int, radius: float, scale: float, away: float) -> float:
    """Return the root mean square error of a mean in a ball, moved into it and towards its centre where that is done.

    Parameters
    ----------
    dim, radius, scale : as in :func:`best_shrinkage`
    away : how far from the centre the mean lies, at most the radius

    Examples
    --------
    >>> round(shrunken_error(45, 1.0, 0.05, 0.2), 3), round(shrunken_error(45, 1.0, 0.001, 0.2), 4)
    (0.181, 0.0067)
    """
    ratio = radius / scale
    if not (math.isfinite(ratio) and 0 < ratio <= _LARGEST_RADIUS * math.sqrt(dim)):
        return scale * math.sqrt(dim)
    rule = best_shrinkage(dim, radius, scale, True)
    risks = _risks_of(None if rule is None else rule.name, dim, float(f"{ratio:.9g}"))
    return scale * math.sqrt(float(np.interp(away / radius, np.linspace(0.0, 1.0, _DISTANCES), risks)))


@lru_cache(maxsize=64)
def _risks_of(name: str | None, dim: int, ratio: float) -> tuple[float, ...]:
    return tuple(_risks(name, dim, ratio).tolist())


@lru_cache(maxsize=512)
def _best(dim: int, ratio: float) -> str | None:
    drawn = _risks(None, dim, ratio)
    candidates = [JAMES_STEIN] if dim >= 3 else []
    if ratio <= math.sqrt(dim):
        candidates.append(BOUNDED)
    found = {name: _risks(name, dim, ratio) for name in candidates}
    helpful = {
        name: float(risk[: _DISTANCES // 2].mean())
        for name, risk in found.items()
        if (risk <= drawn * (1 - _MARGIN)).all()
    }
    return min(helpful, key=lambda name: helpful[name]) if helpful else None


def _risks(name: str | None, dim: int, ratio: float) -> FloatArray:
    """Mean squared error over the mean's distance from the centre, 0 to `ratio`, in units of the noise.

    With the mean on the first axis, a draw is (t + z, s): z normal, s^2 chi-square with d - 1 degrees of freedom.
    """
    t = np.linspace(0.0, ratio, _DISTANCES)[:, None, None]
    z = np.linspace(-_REACH, _REACH, _ALONG)
    # Sums over an even grid, weighted by the densities: normal along, chi across (which is 0 on a line).
    middle = math.sqrt(max(dim - 1.5, 0.0))
    edges = np.linspace(max(0.0, middle - _REACH), middle + _REACH, _ACROSS)
    s = (edges[1:] + edges[:-1]) / 2 if dim > 1 else np.zeros(1)
    across = np.exp((dim - 2) * np.log(s / max(middle, 1.0)) - (s**2 - middle**2) / 2) if dim > 1 else np.ones(1)
    weight = np.outer(np.exp(-(z**2) / 2), across)
    along = t + z[None, :, None]
    length = np.sqrt(along**2 + s[None, None, :] ** 2)
    estimate = np.minimum(_tabulated(name, length, dim, ratio), ratio)
    cosine = along / np.maximum(length, 1e-300)
    loss = estimate**2 - 2 * t * estimate * cosine + t**2
    return np.asarray(np.einsum("tzs,zs->t", loss, weight) / weight.sum())


def _tabulated(name: str | None, length: FloatArray, dim: int, ratio: float) -> FloatArray:
    """Length of the estimate, of the draw itself without a name; Bessel functions from a table, to eight digits."""
    if name is None:
        return length
    if name == JAMES_STEIN:
        return _length(name, length, dim, ratio)
    grid = np.linspace(0.0, float(length.max()), _TABLE)
    return np.interp(length, grid, _length(name, grid, dim, ratio))


def _length(name: str, length: FloatArray, dim: int, ratio: float) -> FloatArray:
    """Length of the estimate for draws of a given length, in units of the noise."""
    if name == JAMES_STEIN:
        return np.asarray(np.maximum(length - (dim - 2) / np.maximum(length, 1e-300), 0.0))
    return np.asarray(ratio * bessel_ratio(dim / 2 - 1, ratio * length))


def bessel_ratio(order: float, x: FloatArray) -> FloatArray:
    """Return I_{order+1}(x)/I_order(x), also where both are too small for double precision.

    Examples
    --------
    >>> bessel_ratio(-0.5, np.array([1.0])).round(6), bessel_ratio(500.0, np.array([1.0])).round(7)
    (array([0.761594]), array([0.000998]))
    """
    with np.errstate(all="ignore"):
        upper, lower = special.ive(order + 1, x), special.ive(order, x)
        result = np.asarray(upper / lower)
        lost = ~((upper > _LOST) & (lower > _LOST))
    if lost.any():
        # Gauss' continued fraction, from far inside: it converges at once where the order is large against x.
        small, fraction = x[lost], np.zeros(int(lost.sum()))
        for k in range(60, 0, -1):
            fraction = small / (2 * (order + k) + small * fraction)
        result[lost] = fraction
    return result
