"""The K-norm gradient mechanism of Soto, Bharath, Reimherr and Slavković (2022), drawn exactly."""

from __future__ import annotations

import math

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints, default_tol
from dpmanifold.mechanisms.base import Calibration, Forecast, Law, Mechanism, pure_epsilon
from dpmanifold.noise import GradientLaw, RadialLaw
from dpmanifold.noise.distance import area_of
from dpmanifold.noise.gradient import require_room
from dpmanifold.privacy import Promise, PureDP
from dpmanifold.privacy.calibrate import laplace_scale
from dpmanifold.sensitivity import Sensitivity, of_gradient


class GradientMechanism(Mechanism):
    """Density exp(-|grad F|/sigma) on the ball; sigma = 2 Delta_gradient/epsilon."""

    name = "kng"
    title = "K-norm gradient, on the ball"
    covers_timing = False
    needs_points = True
    needs_inside = True

    def refusal(self, ball: Ball, privacy: Promise) -> str | None:
        """Return why not: a ball so large that no bound on the error, and no bound on the work, is known."""
        if self._growth(ball) is None:
            return "in a ball this large the gradient's growth is not bounded well enough to forecast error and work"
        return None

    def sensitivity(self, ball: Ball, n: int) -> Sensitivity:
        """Bound the change of the gradient."""
        return of_gradient(ball, n)

    def calibrate(self, ball: Ball, n: int, privacy: Promise, bound: Sensitivity | None = None) -> Calibration:
        """Return 2 Delta/epsilon with the gradient's sensitivity."""
        sensitivity = self.bound(ball, n, bound)
        scale = laplace_scale(2 * sensitivity.value, PureDP(pure_epsilon(privacy)))
        require_room(ball, scale, default_tol(ball, n))
        return Calibration(self.name, privacy, scale, sensitivity, "2 Delta/epsilon")

    def may_be_exact(self, ball: Ball) -> bool:
        """Return False: the law depends on every unit's point."""
        return False

    @staticmethod
    def _growth(ball: Ball) -> float | None:
        """Return the least growth of |grad F| per unit of distance from the mean, if the ball is small enough.

        With the Hessian between h and H along a geodesic, |grad F|^2 grows by at least 2 h^2 t if H <= 3h, and
        |grad F| <= H t, so |grad F| grows by at least h^2/H (theory section 5).
        """
        low, high = ball.space.hessian_bounds(2 * ball.effective_radius)
        return low * low / high if high <= 3 * low else None

    def forecast(self, ball: Ball, n: int, calibration: Calibration) -> Forecast:
        """Return a law that dominates the distance from the mean: a bound."""
        growth = self._growth(ball)
        if growth is None:
            raise InvalidArgumentError("no forecast is known for the K-norm gradient law in a ball this large.")
        area = area_of(ball.frame)
        rate = growth / calibration.scale - area.rate
        end = min(2 * ball.effective_radius, area.end * (1 - 1e-9) if math.isfinite(area.end) else math.inf)
        law = RadialLaw(
            lambda t: area.log_shape(t) - rate * t, lambda t: area.slope(t) - np.full_like(t, rate), [0.0, end]
        )
        return Forecast(law, exact=False)

    def law(self, ball: Ball, calibration: Calibration, mean: Array, points: UnitPoints) -> Law:
        """Return the law of the units' points."""
        return GradientLaw(ball.in_frame, points, calibration.scale)
