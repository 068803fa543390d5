"""Our bounds against the published ones: noise is proportional to them, so the ratio is the gain.

The last column is what an adversary (tests/laws/adversary.py) attains of our bound: the rest is slack.
"""

import pathlib
import sys

import numpy as np
from rich.console import Console
from rich.table import Table

from dpmanifold import SPD, Ball, Hyperbolic, KendallShapes, Sphere, sensitivity

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
from laws.adversary import largest_shift

N = 200


def main() -> None:
    balls = [Ball(Sphere(2), Sphere(2).origin, radius) for radius in (np.pi / 8, 0.6, 0.75)]
    balls += [Ball(KendallShapes(k), KendallShapes(k).origin, 0.36) for k in (4, 8)]
    balls += [Ball(Hyperbolic(2), Hyperbolic(2).origin, 2.0), Ball(SPD(2, metric="riemann"), np.eye(2), 2.0)]
    table = Table(title=f"Sensitivity of the Fréchet mean, n = {N}")
    for heading in ("space", "radius", "published x n", "ours x n", "ours / published", "attained / ours"):
        table.add_column(heading, justify="right")
    for ball in balls:
        ours = sensitivity.of_mean(ball, N).value
        published = sensitivity.of_mean(ball, N, bound="published").value
        found = largest_shift(ball, N, np.random.default_rng(0), generations=60)
        table.add_row(
            repr(ball.space),
            f"{ball.radius:.3f}",
            f"{N * published:.3f}",
            f"{N * ours:.3f}",
            f"{ours / published:.2f}",
            f"{found / (N * ours):.2f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
