"""Fréchet means of SPD matrices against pyRiemann at the same tolerance: ratios of medians, interleaved, one thread."""

import statistics
import time

import numpy as np
from pyriemann.geometry.mean import mean_logeuclid, mean_riemann
from rich.console import Console
from rich.table import Table

from dpmanifold import SPD, frechet

TOL = 1e-10
REPEATS = 5


def seconds(call) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def main() -> None:
    table = Table(title=f"Mean of 2,000 matrices to gradient {TOL:g}: seconds, and pyRiemann's over ours")
    for heading in ("metric", "k", "ours", "pyRiemann", "ratio", "our gradient", "its gradient"):
        table.add_column(heading, justify="right")
    for metric, reference in (("riemann", mean_riemann), ("logeuclid", mean_logeuclid)):
        for k in (3, 9):
            space = SPD(k, metric=metric)
            X = space.random_point(2000, rng=0)
            options = {"tol": TOL, "maxiter": 200} if metric == "riemann" else {}
            ours, theirs = [], []
            for _ in range(REPEATS):
                ours.append(seconds(lambda s=space, x=X: frechet.mean(x, s, tol=TOL)))
                theirs.append(seconds(lambda x=X, f=reference, o=options: f(x, **o)))
            gradients = [
                np.linalg.norm(space.log_coords(point, X).mean(axis=0))
                for point in (frechet.mean(X, space, tol=TOL).value, reference(X, **options))
            ]
            a, b = statistics.median(ours), statistics.median(theirs)
            shown = [f"{g:.0e}" for g in gradients]
            table.add_row(metric, str(k), f"{a:.4f}", f"{b:.4f}", f"{b / a:.2f}", *shown)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
