"""Exact draws: how often proposals are accepted, and how much faster than the papers' chains a draw is.

Scales are those of releases: a mean radius of at most 1. One thread; times are medians of interleaved repeats.
"""

import statistics
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from dpmanifold import SPD, Ball, Hyperbolic, KendallShapes, Sphere, sensitivity
from dpmanifold.noise import GradientLaw, RiemannianGaussian, RiemannianLaplace, SystemSource
from dpmanifold_papers.chains import flat_laplace_chain, metropolis

CONSOLE = Console(width=110)


def acceptance(law, n=2000) -> float:
    """Accepted share of proposals, radius and direction together."""
    return n / law.sample_counted(n, rng=0)[1]


def laws_table() -> None:
    table = Table(title="Acceptance of the exact samplers (Laplace / Gaussian), by mean radius")
    radii = (0.1, 0.5, 1.0)
    table.add_column("space")
    for radius in radii:
        table.add_column(f"radius {radius}", justify="right")
    spaces = [Sphere(2), Sphere(45), Hyperbolic(2), Hyperbolic(10), KendallShapes(8), KendallShapes(30)]
    spaces += [SPD(k, metric="riemann") for k in (2, 3, 5, 10, 20)]
    for space in spaces:
        cells = []
        for radius in radii:
            shown = []
            for law, scale in ((RiemannianLaplace, radius / space.dim), (RiemannianGaussian, radius / space.dim**0.5)):
                try:
                    shown.append(f"{acceptance(law(space, space.origin, scale)):.3f}")
                except ValueError:
                    shown.append("beyond limit")
            cells.append(" / ".join(shown))
        table.add_row(repr(space), *cells)
    CONSOLE.print(table)


def limit_table() -> None:
    """Near the end of the affine-invariant Laplace law: 1/scale as a multiple of the sampler's rate N a."""
    table = Table(title='Laplace on SPD "riemann" near its limit: acceptance at 1/scale = c N a (refused below 1.5)')
    table.add_column("k")
    multiples = (1.5, 2.0, 3.0, 5.0)
    for c in multiples:
        table.add_column(f"c = {c}", justify="right")
    for k in (2, 3, 5, 9, 20):
        space = SPD(k, metric="riemann")
        rate = k * (k - 1) / 2 / np.sqrt(2 * (k - 1))
        row = [f"{acceptance(RiemannianLaplace(space, np.eye(k), 0.9999 / (c * rate)), 1000):.2f}" for c in multiples]
        table.add_row(str(k), *row)
    CONSOLE.print(table)


def gradient_table() -> None:
    table = Table(title="K-norm gradient law: acceptance at epsilon = 1, records uniform in radius")
    for heading in ("space", "radius", "n", "acceptance"):
        table.add_column(heading, justify="right")
    cases = [
        (Sphere(2), np.pi / 8, 200),
        (Sphere(2), 0.6, 200),
        (Sphere(10), np.pi / 8, 500),
        (Sphere(30), np.pi / 8, 1000),
    ]
    cases += [(KendallShapes(8), 0.3, 167), (SPD(2, metric="riemann"), 1.5, 600), (SPD(3, metric="riemann"), 1.5, 600)]
    for space, radius, n in cases:
        rng = np.random.default_rng(0)
        c = rng.standard_normal((n, space.dim))
        c *= (radius * rng.random(n) / np.linalg.norm(c, axis=1))[:, None]
        ball = Ball(space, space.origin, radius)
        X = space.project(space.exp_coords(space.origin, c))
        law = GradientLaw(ball, X, 2 * sensitivity.of_gradient(ball, n).value)
        table.add_row(repr(space), f"{radius:.3f}", str(n), f"{acceptance(law, 500):.3f}")
    CONSOLE.print(table)


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def chain_table() -> None:
    """A draw in coordinates (what the flat chain gives as well), one at a time and in a batch, and as a point."""
    table = Table(title="One draw against the papers' chain of 50,000 steps: chain's time over ours")
    for heading in ("law", "chain, s", "coordinates, 1,000 at once", "coordinates, one call", "a point, one call"):
        table.add_column(heading, justify="right")
    flat, curved = SPD(30), SPD(10, metric="riemann")
    laws = [RiemannianLaplace(space, space.origin, 1 / space.dim) for space in (flat, curved)]
    chains = [
        lambda: flat_laplace_chain(flat.dim, laws[0].scale, 50_000, laws[0].scale, 0),
        lambda: metropolis(laws[1], 50_000, laws[1].scale, 0),
    ]
    source = SystemSource()
    for law, chain in zip(laws, chains, strict=True):
        law.sample(rng=0)
        times = {"chain": [], "batch": [], "one": [], "point": []}
        for _ in range(3):
            times["chain"].append(seconds(chain))
            times["batch"].append(seconds(lambda law=law: law.sample_coords(1000, source)) / 1000)
            times["one"].append(seconds(lambda law=law: [law.sample_coords(1, source) for _ in range(50)]) / 50)
            times["point"].append(seconds(lambda law=law: [law.sample() for _ in range(50)]) / 50)
        chain_time, *ours = (statistics.median(values) for values in times.values())
        cells = [f"{chain_time / t:,.0f}x ({1e6 * t:,.0f} us)" for t in ours]
        table.add_row(repr(law.space), f"{chain_time:.2f}", *cells)
    CONSOLE.print(table)


if __name__ == "__main__":
    laws_table()
    limit_table()
    gradient_table()
    chain_table()
