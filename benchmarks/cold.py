"""How long a first private mean takes in a fresh process, import included and apart, beside other commits.

    python benchmarks/cold.py [--rounds 15] [COMMIT ...]          # f372e828 and 17e8e6fd if none is named

Each round starts one process for every tree and every case in turn, so that all of them see the same machine. Seconds
are those of the processor, on one thread, so that other work on the machine counts for little; the smallest and the
median of the rounds are printed. "import" is the import of the package, "first call" the first private mean after it,
"both" their sum; the start of Python, and numpy, are left out. Files are in the cache of the operating system.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

CASES = {
    "SPD(3), people": "space = SPD(3); r = 2.5; units = np.repeat(np.arange(400), 5); privacy = dpm.ApproxDP(1, 1e-6)",
    "Sphere(2)": "space = Sphere(2); r = 0.7; units = dpm.EACH_RECORD; privacy = dpm.PureDP(1.0)",
    "SPD(3) affine": "space = SPD(3, metric='riemann'); r = 1.5; units = dpm.EACH_RECORD; privacy = dpm.GDP(0.5)",
    "KendallShapes(8)": "space = KendallShapes(8); r = 0.3; units = dpm.EACH_RECORD; privacy = dpm.ZCDP(0.1)",
}
SCRIPT = """
import json, sys, time
import numpy as np
start = time.process_time()
import dpmanifold as dpm
from dpmanifold import SPD, KendallShapes, Sphere
imported = time.process_time()
{case}
ball = dpm.Ball(space, space.origin, r, source="textbook")
X = space.exp_coords(space.origin, np.random.default_rng(0).normal(scale=0.05, size=(2000, space.dim)))
ready = time.process_time()
release = dpm.private_mean(X, ball, privacy, units=units)
done = time.process_time()
print(json.dumps([imported - start, done - ready, imported - start + done - ready, release.mechanism]))
"""


def measured(tree: pathlib.Path, case: str) -> tuple[list[float], str]:
    """Return the seconds of one fresh process, and the mechanism that it took."""
    environ = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    script = SCRIPT.format(case=case)
    done = subprocess.run([sys.executable, "-c", script], env=environ, check=True, capture_output=True, text=True)
    *seconds, mechanism = json.loads(done.stdout)
    return seconds, mechanism


def checkout():
    """Return what checks a commit out beside the working tree: `tools/snapshot.py` has it."""
    spec = importlib.util.spec_from_file_location("snapshot", ROOT / "tools" / "snapshot.py")
    snapshot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(snapshot)
    return snapshot.checkout


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", default=["f372e828", "17e8e6fd"])
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    with contextlib.ExitStack() as stack:
        checked_out = checkout()
        trees = {commit: stack.enter_context(checked_out(commit)) for commit in asked.commits}
        trees["here"] = ROOT
        found = {(name, case): [] for case in CASES for name in trees}
        taken = {}
        for round_ in range(asked.rounds + 1):
            for case, text in CASES.items():
                for name, tree in trees.items():
                    seconds, taken[name, case] = measured(tree, text)
                    if round_:  # the first one compiles bytecode
                        found[name, case].append(seconds)
    print(f"{'':18}{'':10}{'import':>18}{'first call':>18}{'both':>18}  faster  mechanism")
    for case in CASES:
        here = min(both for _, _, both in found["here", case])
        for name in trees:
            rounds = list(zip(*found[name, case], strict=True))
            cells = "".join(f"{min(part):9.3f} ({statistics.median(part):.3f})" for part in rounds)
            print(f"{case:18}{name:10}{cells:54}{min(rounds[2]) / here:7.2f}  {taken[name, case]}")


if __name__ == "__main__":
    main()
