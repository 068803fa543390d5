"""Two closed forms of comparison with a sphere: what bounds on curved spaces come down to (theory: mean, gradient).

Both are by Rauch's theorem and Hessian comparison, for a ball of radius r in a space whose sectional curvature is at
most kappa, r sqrt(kappa) < pi/4. Flat and negatively curved spaces have 2r in place of either.
"""

from __future__ import annotations

import math

# More halvings than a double has digits.
_HALVINGS = 60


def farthest_means(radius: float, kappa: float) -> float:
    """Bound n times the distance between the Fréchet means of neighbouring data: 2 tan(r sqrt(kappa))/sqrt(kappa).

    Attained in the limit of many records wherever a plane has curvature kappa (theory: mean).

    Examples
    --------
    >>> round(farthest_means(0.6, 1.0), 4), farthest_means(0.6, 0.0)
    (1.3683, 1.2)
    """
    if kappa <= 0:
        return 2 * radius
    root = math.sqrt(kappa)
    return 2 * math.tan(root * radius) / root


def farthest_logs(radius: float, kappa: float) -> float:
    """Bound |log_x p - log_x q| for any three points of the ball (theory: gradient).

    With kappa = 1 it is twice the root of the maximum over [0, r] of r^2 + 4t^2 - 4 r cot(r) t tan(t), rounded up.

    Examples
    --------
    >>> round(farthest_logs(0.6, 1.0), 4), farthest_logs(0.6, 0.0)
    (1.2772, 1.2)
    """
    if kappa <= 0:
        return 2 * radius
    r = math.sqrt(kappa) * radius
    weight = r / math.tan(r)
    low, high = 0.0, r
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if 2 * middle > weight * (math.tan(middle) + middle / math.cos(middle) ** 2):
            low = middle
        else:
            high = middle
    # Each term at the end of the interval where it is larger. Where rounding misplaced the interval, by eps/r at most,
    # the maximum is so flat that it is missed by eps^2.
    return 2 * math.sqrt(r * r + 4 * high * high - 4 * weight * low * math.tan(low)) / math.sqrt(kappa)


__all__ = ["farthest_logs", "farthest_means"]
