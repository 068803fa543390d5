"""What users call against pyRiemann's non-private means of the same matrices: ratios of medians, one thread, in turns.

    python benchmarks/end_to_end.py [--repeats 11] [--k 2 3 9 16 30] [--radius 2.0] [--only private people]

Time is the processor's, so that other jobs on the machine do not count. Everything is in it: checking, clipping,
choosing a mechanism, noise, the result's record of itself. Goals stand beside the ratios; nothing here fails.
pyRiemann's affine mean stops at a gradient of 1e-10 and starts from whichever of the Euclidean and the log-Euclidean
mean is faster; ours goes on to the tolerance that its sensitivity allows for, which is below that.
The last table is for spaces that pyRiemann does not have.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from pyriemann.geometry.mean import mean_logeuclid, mean_riemann
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from dpmanifold import EACH_RECORD, GDP, SPD, Ball, Hyperbolic, KendallShapes, Sphere, frechet, linalg, private_mean

CONSOLE = Console(width=120)
PROMISE = GDP(1.0)
RECORDS = {2: 100_000, 3: 100_000, 9: 30_000, 16: 10_000, 30: 10_000}
PEOPLE = 1000
TOL = 1e-10  # pyRiemann's
GOALS = {
    "frechet": {2: 28, 3: 20, 9: 11, 16: 10, 30: 10},
    "private": {2: 15, 3: 15, 9: 9, 16: 9, 30: 9},
    "affine": {2: 15, 3: 15, 9: 12, 16: 12, 30: 10},
}
PEOPLE_SHARE = 0.7  # of the private mean's goal


def seconds(call) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def medians(calls: dict, repeats: int) -> dict[str, float]:
    """Median time of each call by name; the calls take turns, after one turn that does not count."""
    for call in calls.values():
        call()
    times = [{name: seconds(call) for name, call in calls.items()} for _ in range(repeats)]
    return {name: statistics.median(turn[name] for turn in times) for name in calls}


def records(space, n: int, radius: float):
    """Points about the origin whose distance from it is about half the radius; nearly all lie in the ball."""
    c = np.random.default_rng(0).standard_normal((n, space.dim))
    return space.project(space.exp_coords(space.origin, c * (0.5 * radius / np.sqrt(space.dim))))


def faster_start(X):
    """Return pyRiemann's affine mean from the start that takes it there sooner."""

    def from_euclid():
        return mean_riemann(X, tol=TOL, maxiter=200)

    def from_logeuclid():
        return mean_riemann(X, tol=TOL, maxiter=200, init=mean_logeuclid(X))

    return min((from_euclid, from_logeuclid), key=seconds)


def flat_rows(k: int, radius: float, only: list[str], repeats: int) -> list[tuple]:
    """Rows of the log-Euclidean calls: what, seconds, pyRiemann's seconds, goal."""
    space, n = SPD(k), RECORDS[k]
    ball, X = Ball(space, space.origin, radius, source="benchmark"), records(space, n, radius)
    people = np.random.default_rng(1).permutation(np.arange(n) % PEOPLE)
    calls, goals = {"pyRiemann": lambda: mean_logeuclid(X)}, {}
    if "frechet" in only:
        calls["frechet.mean, space"] = lambda: frechet.mean(X, space)
        calls["frechet.mean, ball"] = lambda: frechet.mean(X, ball)
        goals |= dict.fromkeys(("frechet.mean, space", "frechet.mean, ball"), GOALS["frechet"][k])
    if "private" in only:
        calls["private_mean, each record"] = lambda: private_mean(X, ball, PROMISE, units=EACH_RECORD)
        goals["private_mean, each record"] = GOALS["private"][k]
    if "people" in only:
        name = f"private_mean, {PEOPLE:,} people"
        calls[name] = lambda: private_mean(X, ball, PROMISE, units=people)
        goals[name] = PEOPLE_SHARE * GOALS["private"][k]
    if len(calls) == 1:
        return []
    found = medians(calls, repeats)
    return [(f"log-Euclidean {name}", found[name], found["pyRiemann"], goal) for name, goal in goals.items()]


def affine_rows(k: int, radius: float, only: list[str], repeats: int) -> list[tuple]:
    """Row of the affine call."""
    if "affine" not in only:
        return []
    space = SPD(k, metric="riemann")
    ball, X = Ball(space, space.origin, radius, source="benchmark"), records(space, RECORDS[k], radius)
    calls = {
        "ours": lambda: private_mean(X, ball, PROMISE, units=EACH_RECORD),
        "pyRiemann": faster_start(X),
    }
    found = medians(calls, max(1, repeats // 3))
    return [("affine private_mean, each record", found["ours"], found["pyRiemann"], GOALS["affine"][k])]


def compared(sizes: list[int], radius: float, only: list[str], repeats: int) -> None:
    table = Table(title=f"{linalg.level()}, one thread, ball of radius {radius:g}: pyRiemann's time over ours")
    for heading in ("call", "k", "n", "ours, us each", "pyRiemann's", "ratio", "goal"):
        table.add_column(heading, justify="left" if heading == "call" else "right")
    for rows in (flat_rows, affine_rows):
        for k in sizes:
            for name, ours, theirs, goal in rows(k, radius, only, repeats):
                each = [f"{1e6 * taken / RECORDS[k]:.3f}" for taken in (ours, theirs)]
                table.add_row(name, str(k), f"{RECORDS[k]:,}", *each, f"{theirs / ours:.1f}", f"{goal:g}")
    CONSOLE.print(table)


def alone(repeats: int) -> None:
    table = Table(title="Other spaces, one thread: nanoseconds per record")
    for heading in ("space", "n", "frechet.mean, ball", "private_mean, each record", f"{PEOPLE:,} people"):
        table.add_column(heading, justify="left" if heading == "space" else "right")
    for space, radius, n in ((Sphere(2), 0.6, 100_000), (KendallShapes(8), 0.3, 30_000), (Hyperbolic(5), 1.5, 30_000)):
        ball, X = Ball(space, space.origin, radius, source="benchmark"), records(space, n, radius)
        people = np.random.default_rng(1).permutation(np.arange(n) % PEOPLE)
        found = medians(
            {
                "mean": lambda X=X, ball=ball: frechet.mean(X, ball),
                "private": lambda X=X, ball=ball: private_mean(X, ball, PROMISE, units=EACH_RECORD),
                "people": lambda X=X, ball=ball, ids=people: private_mean(X, ball, PROMISE, units=ids),
            },
            repeats,
        )
        table.add_row(repr(space), f"{n:,}", *(f"{1e9 * taken / n:,.0f}" for taken in found.values()))
    CONSOLE.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=11, help="turns per call; a third of it for affine means")
    parser.add_argument("--k", type=int, nargs="+", default=list(RECORDS), choices=RECORDS, help="sizes of matrices")
    parser.add_argument("--radius", type=float, default=2.0, help="of the public ball about the identity")
    parts = ("frechet", "private", "people", "affine", "spaces")
    parser.add_argument("--only", nargs="+", default=parts, choices=parts, help="parts to measure")
    asked = parser.parse_args()
    with threadpool_limits(limits=1):
        if set(asked.only) - {"spaces"}:
            compared(asked.k, asked.radius, asked.only, asked.repeats)
        if "spaces" in asked.only:
            alone(asked.repeats)


if __name__ == "__main__":
    main()
