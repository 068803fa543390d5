"""What "auto" takes on every space for every kind of promise, how it is drawn, and what exactness costs in error.

    python benchmarks/auto.py [DRAWS]

The last column is the mean distance of exact draws from the mean over that of the mechanism that would have been taken
before exactness counted (the smallest forecast, drawn in doubles), both about the same mean at half the radius from the
centre. Its standard error is about 0.01 at 2,000 draws.
"""

from __future__ import annotations

import math
import sys

import numpy as np

from dpmanifold import GDP, SPD, ZCDP, ApproxDP, Ball, Euclidean, Hyperbolic, KendallShapes, PureDP, Sphere
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import MECHANISMS, attempt, choose
from dpmanifold.noise import SystemSource

PROMISES = (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1), GDP(0.5))
SPACES = (
    (Euclidean(3), 1.0), (SPD(3), 2.0), (SPD(3, metric="riemann"), 1.5), (SPD(9), 2.0), (Sphere(2), 0.75),
    (Sphere(20), 0.75), (Hyperbolic(2), 2.0), (Hyperbolic(5), 1.0), (KendallShapes(8), 0.3), (KendallShapes(30), 0.3),
)  # fmt: skip
UNITS = 200


def smallest(ball, promise):
    """Return the mechanism with the smallest forecast whose running time is covered, and its calibration."""
    able = []
    for mechanism in MECHANISMS:
        if (
            mechanism.automatic
            and not mechanism.baseline
            and mechanism.covers_timing
            and mechanism.estimand == "frechet"
        ):
            found = attempt(mechanism, ball, UNITS, promise)
            if not isinstance(found, str):
                able.append((found[1].mean, mechanism, found[0]))
    return min(able, key=lambda row: row[0])[1:]


def main(draws: int) -> None:
    """Print the table."""
    source = SystemSource()
    print(f"{'space':26}{'promise':34}{'auto':22}{'arithmetic':11}{'doubles':22}{'error, exact/doubles':>20}")
    for space, radius in SPACES:
        ball = Ball(space, space.origin, radius)
        frame = ball.frame
        tangent = np.zeros(frame.dim)
        tangent[0] = radius / 2
        mean = frame.exp_coords(frame.origin, tangent)
        for promise in PROMISES:
            mechanism, calibration, _ = choose("auto", ball, UNITS, promise)
            other, other_calibration = smallest(ball, promise)
            exact = mechanism.offers_exact(ball, calibration)

            def exactly(mechanism=mechanism, calibration=calibration, mean=mean, ball=ball):
                return mechanism.place(
                    ball, mechanism.numbers(ball, calibration, mean, UnitPoints.of(mean[None], ball), source)
                )

            one = np.stack([exactly() for _ in range(draws)]) if exact else np.repeat(mean[None], draws, axis=0)
            two = np.asarray(
                other.law(ball, other_calibration, mean, UnitPoints.of(mean[None], ball)).sample(draws, rng=source)
            )
            ratio = frame.dist(mean, one).mean() / frame.dist(mean, two).mean() if exact else math.nan
            said = "exact" if exact else "float"
            print(f"{space!r:26}{promise!s:34}{mechanism.name:22}{said:11}{other.name:22}{ratio:20.3f}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
