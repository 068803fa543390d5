"""Exact noise: milliseconds for one vector, against OpenDP's vector Gaussian, and what it adds to a private mean.

OpenDP runs in an environment of its own, .venv-opendp beside this repository's others, which is made on first use
(python -m venv, pip install opendp). A process there draws on request, so that both are timed in turn, in one run. It
draws a discrete Gaussian of the same scale on the same grid; an L2-Laplace law it does not have.
Processor time on one thread, which a busy machine disturbs least; medians.
"""

import pathlib
import statistics
import subprocess
import sys
import time
import venv

import numpy as np
from rich.console import Console
from rich.table import Table

from dpmanifold import EACH_RECORD, GDP, SPD, Ball, private_mean
from dpmanifold.noise import SystemSource, grid_of, noisy_vector

ROOT = pathlib.Path(__file__).resolve().parents[1]
ENVIRONMENT = ROOT / ".venv-opendp"
CONSOLE = Console(width=100)
SIZES = (6, 45, 465)
ROUNDS = 15

# Reads "d n" and answers with the processor seconds that n draws of d numbers took.
OTHER = """
import sys, time
import opendp.prelude as dp
dp.enable_features("contrib")
made = {}
for line in sys.stdin:
    d, n = map(int, line.split())
    if d not in made:
        space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=d), dp.l2_distance(T=float)
        made[d] = dp.m.make_gaussian(*space, scale=SCALE, k=GRID)
        made[d]([0.0] * d)
    started = time.process_time()
    for _ in range(n):
        made[d]([0.0] * d)
    print(time.process_time() - started, flush=True)
"""


def python_of_opendp() -> str:
    python, ready = ENVIRONMENT / "bin" / "python", ENVIRONMENT / ".ready"
    if not ready.exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, "opendp"], check=True)
        ready.touch()
    return str(python)


def ours(d: int, n: int, law: str, source: SystemSource, grid: int) -> float:
    v = np.zeros(d)
    started = time.process_time()
    for _ in range(n):
        noisy_vector(v, law, 1.0, grid, source)
    return time.process_time() - started


def main() -> None:
    source, grid = SystemSource(), grid_of(1.0, 0.0)
    script = OTHER.replace("SCALE", "1.0").replace("GRID", str(grid))
    table = Table(title=f"One exact vector, ms of processor time: scale 1 on a grid of 2^{grid}")
    for heading in ("d", "Gaussian", "L2-Laplace", "OpenDP's Gaussian", "OpenDP / Gaussian", "OpenDP / L2-Laplace"):
        table.add_column(heading, justify="right")
    with subprocess.Popen(
        [python_of_opendp(), "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        for d in SIZES:
            n = max(2, 600 // d)
            times: dict[str, list[float]] = {"gaussian": [], "laplace": [], "opendp": []}
            for _ in range(ROUNDS):
                for law in ("gaussian", "laplace"):
                    times[law].append(ours(d, n, law, source, grid) / n)
                other.stdin.write(f"{d} {n}\n")
                other.stdin.flush()
                answer = other.stdout.readline()
                if not answer:
                    sys.exit("OpenDP's process ended; its own message is above.")
                times["opendp"].append(float(answer) / n)
            gaussian, laplace, opendp = (1000 * statistics.median(values) for values in times.values())
            cells = [f"{t:.3f}" for t in (gaussian, laplace, opendp)]
            table.add_row(str(d), *cells, f"{opendp / gaussian:.1f}", f"{opendp / laplace:.1f}")
        other.stdin.close()
    CONSOLE.print(table)
    overhead()


def overhead(n: int = 100_000, k: int = 9, rounds: int = 9) -> None:
    """Print the time of whole releases of n matrices, exact over doubles, in turn."""
    space = SPD(k)
    ball = Ball(space, np.eye(k), 3.0)
    X = space.exp_coords(ball.center, 0.1 * np.random.default_rng(0).standard_normal((n, space.dim)))
    times: dict[str, list[float]] = {"exact": [], "float": []}
    for number in range(rounds + 1):
        for arithmetic, taken in times.items():
            started = time.process_time()
            private_mean(X, ball, GDP(1.0), units=EACH_RECORD, arithmetic=arithmetic)
            if number:  # the first round warms up
                taken.append(time.process_time() - started)
    exact, doubles = (statistics.median(taken) for taken in times.values())
    CONSOLE.print(
        f"private_mean of {n:,} matrices, k = {k}: exact {1000 * exact:.0f} ms, doubles {1000 * doubles:.0f} ms, "
        f"ratio {exact / doubles:.3f}"
    )


if __name__ == "__main__":
    main()
