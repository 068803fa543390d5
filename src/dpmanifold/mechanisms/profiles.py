"""The exact privacy profile of a calibrated mechanism, where one is known (docs/theory/profile.md)."""

from __future__ import annotations

from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms.base import Calibration
from dpmanifold.mechanisms.registry import MECHANISMS, get
from dpmanifold.privacy import Profile, loss_profile
from dpmanifold.privacy.profile import Law


def profile_of(ball: Ball, calibration: Calibration) -> Profile:
    """Return delta(epsilon), as an upper bound, of a mechanism at the sensitivity it was calibrated to.

    For the Riemannian Laplace and Gaussian on spheres and planar shapes; refused elsewhere, with the reason.

    Parameters
    ----------
    ball : the public ball
    calibration : of a mechanism, or of a release (`release.calibration`)

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> from dpmanifold.mechanisms import get
    >>> from dpmanifold.privacy import GDP, gdp_delta
    >>> ball = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.6)
    >>> calibration = get("riemannian-gaussian").calibrate(ball, 20, GDP(1.0))
    >>> bool(profile_of(ball, calibration).delta(0.5) <= gdp_delta(1.0, 0.5))
    True
    """
    mechanism = get(calibration.mechanism)
    if mechanism.about != "mean":
        known = ", ".join(other.name for other in MECHANISMS if other.about == "mean")
        raise InvalidArgumentError(f"the exact profile of {mechanism.name} is not known; it is for {known}.")
    law: Law = "laplace" if mechanism.noise == "laplace" else "gaussian"
    return loss_profile(ball.frame, law, calibration.scale, calibration.sensitivity.value)
