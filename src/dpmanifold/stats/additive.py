"""Noise that is added to a number or a vector: its scale for a promise, and how far it carries (theory: averages)."""

from __future__ import annotations

import numpy as np

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Euclidean
from dpmanifold.mechanisms import Calibration, Forecast
from dpmanifold.noise import RiemannianGaussian, RiemannianLaplace
from dpmanifold.privacy import Promise, PromiseError, PureDP, gaussian_scale, laplace_scale
from dpmanifold.sensitivity import Sensitivity

ADDITIVE = ("laplace", "gaussian")
"""The laws by name: density proportional to exp(-|z|/scale), and the normal one."""
# The squares of larger numbers are no doubles.
_LARGEST_SCALE = 1e150


def additive(bound: Sensitivity, share: Promise, mechanism: object = "auto") -> Calibration:
    """Return the noise that hides a change of this length: Laplace's for pure promises, else normal.

    Examples
    --------
    >>> bound = Sensitivity(0.5, "average", "tight", "averages")
    >>> additive(bound, PureDP(2.0)).scale
    0.25
    """
    pure = isinstance(share, PureDP)
    law = ADDITIVE[0 if pure else 1]
    if mechanism not in ("auto", *ADDITIVE):
        raise InvalidArgumentError(f'`mechanism` must be "auto", "laplace" or "gaussian", got {shown(mechanism)}.')
    if mechanism not in ("auto", law):
        raise PromiseError(
            f'mechanism "{mechanism}" cannot keep {share!r}: numbers get Laplace noise under pure promises and '
            'Gaussian noise under others. Leave it at "auto".'
        )
    scale = laplace_scale(bound.value, share) if isinstance(share, PureDP) else gaussian_scale(bound.value, share)
    return Calibration(law, share, scale, bound, "Delta/epsilon" if pure else "Gaussian")


def additive_forecast(calibration: Calibration, size: int) -> Forecast:
    """Return the law of the length of such noise on a vector of `size` numbers: exact.

    Examples
    --------
    >>> bound = Sensitivity(0.5, "average", "tight", "averages")
    >>> round(additive_forecast(additive(bound, PureDP(2.0)), 3).mean, 6)  # three times the scale
    0.75
    """
    law = RiemannianLaplace if calibration.mechanism == ADDITIVE[0] else RiemannianGaussian
    return Forecast(law(Euclidean(size), np.zeros(size), calibration.scale).radius, exact=True)


def refuse_overflow(*scales: float) -> None:
    """Refuse noise whose square no double can hold, before anything is spent."""
    if not max(scales) < _LARGEST_SCALE:
        raise PromiseError(
            f"noise of scale {max(scales):.3g} is beyond double precision. Use more units, a weaker promise or a "
            "smaller ball."
        )
