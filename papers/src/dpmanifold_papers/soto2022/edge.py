"""What KNG on a ball has to pay at least: two data sets at the edge, where its normaliser changes.

All n records are at one point p of the edge; then one of them moves to the opposite point, 2r away. The noise has the
scale 1/n, on which a large n makes space flat and the ball a half-space: KNG is a Laplace law about p, then about a
point 2r/n inside, both cut off at the edge. The loss at p is the change of the exponent plus that of the normaliser.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy import integrate, optimize, special

# Density of one coordinate under the density exp(-|z|)/constant on R^2 and R^3.
_COORDINATE: dict[int, Callable[[float], float]] = {
    2: lambda u: float(u * special.k1(u)) / math.pi if u > 0 else 1 / math.pi,
    3: lambda u: (1 + u) * math.exp(-u) / 4,
}


def edge_loss(shift: float, dim: int) -> float:
    """Return the privacy loss of a Laplace law on a half-space whose centre moves inwards from the edge.

    Density exp(-|u - w|) on {u_1 <= 0}, dim = 2 or 3; w moves from 0 by `shift`, in units of the scale. At u = 0 the
    exponent changes by `shift`, the normaliser by the factor 2 P(z_1 <= shift), z of density exp(-|z|). For small
    shifts the loss is 1 + 2/pi (plane) or 1 + 1/2 (space) times the shift.

    Examples
    --------
    >>> round(edge_loss(1e-4, 2) / 1e-4, 3), round(edge_loss(0.05, 2) / 0.05, 3), round(edge_loss(1e-4, 3) / 1e-4, 3)
    (1.637, 1.626, 1.5)
    """
    return shift + math.log(1 + 2 * integrate.quad(_COORDINATE[dim], 0.0, shift)[0])


def least_factor(epsilon: float, dim: int) -> float:
    """Return k such that KNG of a scale below k (2r/n)/epsilon is not epsilon-DP, for large n.

    Examples
    --------
    >>> round(least_factor(1.0, 2), 3), round(least_factor(1.0, 3), 3), round(least_factor(0.05, 2), 2)
    (1.481, 1.406, 1.63)
    """
    shift = optimize.brentq(lambda x: edge_loss(x, dim) - epsilon, 1e-9 * epsilon, epsilon)
    return float(epsilon / shift)
