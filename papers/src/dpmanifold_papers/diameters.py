"""How far apart two points of a ball are in the surrounding space.

One n-th of it is the sensitivity of the *arithmetic* mean of n points: it moves by (x - x')/n, whatever the others are.
"""

from __future__ import annotations

import math

from scipy import optimize


def cap_diameter(radius: float) -> float:
    """Return 2 sin r: the longest chord of a cap of radius r <= pi/2 on a unit sphere of any dimension.

    Points at the same angle r from the pole and opposite to one another. Shapes turned to fit a centre are such a cap.
    The chord from the pole to the edge, 2 sin(r/2), gives the larger 4 sin(r/2) by the triangle inequality.

    Examples
    --------
    >>> round(cap_diameter(math.pi / 8), 4), round(4 * math.sin(math.pi / 16), 4)
    (0.7654, 0.7804)
    """
    return 2 * math.sin(radius)


def matrix_diameter(radius: float) -> float:
    """Return the largest Frobenius distance in the affine-invariant ball of a radius about I in SPD(2), numerically.

    For given eigenvalues |P - Q|^2 = |P|^2 + |Q|^2 - 2 tr PQ is largest if both are diagonal, the eigenvalues of one
    ascending, of the other descending. A search over both pairs of eigenvalues finds the same pair twice, on the edge:
    sqrt(2) max (e^(r cos t) - e^(-r sin t)). The matrices are diagonal, so the distance of plain entries is the same.

    Examples
    --------
    >>> round(matrix_diameter(1.5), 4), round(2 * math.expm1(1.5), 4)
    (5.1053, 6.9634)
    """

    def negative(turn: float) -> float:
        return math.exp(-radius * math.sin(turn)) - math.exp(radius * math.cos(turn))

    found = optimize.minimize_scalar(negative, bounds=(0.0, math.pi / 2), method="bounded", options={"xatol": 1e-10})
    return float(-math.sqrt(2) * found.fun)
