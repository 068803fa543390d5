"""Peak memory of private means of a large file: 2.5 million 3x3 tensors in a memory-mapped .npy, ids in random order.

    python benchmarks/memory.py [--records 2500000] [--people 100000] [--metric logeuclid riemann] [--ids text]

Each case runs in a process of its own. Counted is anonymous memory (RssAnon of /proc/self/status, sampled every two
milliseconds) above what the process held before the call, with records mapped, ids read and everything imported and
used once: pages of the file itself belong to the operating system, which may drop them. The goal is 0.35 of the input
plus 100 MB; it is printed beside, nothing fails. Linux alone has these numbers.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from rich.console import Console
from rich.table import Table

from dpmanifold import EACH_RECORD, GDP, SPD, Ball, private_mean

BLOCK = 100_000
METRICS = ("logeuclid", "riemann")
IDS = ("each record", "whole numbers", "text")
SHARE, CONSTANT = 0.35, 100e6


def anonymous() -> int:
    """Anonymous memory of this process now, in bytes."""
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


class Peak(threading.Thread):
    """The largest anonymous memory while it runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.largest, self.over = 0, threading.Event()

    def run(self) -> None:
        """Look until it is over."""
        while not self.over.wait(0.002):
            self.largest = max(self.largest, anonymous())


def write_records(folder: pathlib.Path, n: int, people: int) -> None:
    """Write records and both kinds of ids, a block at a time."""
    space, rng = SPD(3), np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "records.npy", "w+", np.float64, (n, 3, 3))
    for start in range(0, n, BLOCK):
        count = min(BLOCK, n - start)
        X[start : start + count] = space.exp_coords(space.origin, 0.4 * rng.standard_normal((count, space.dim)))
    X.flush()
    owners = rng.permutation(np.arange(n) % people)
    np.save(folder / "whole numbers.npy", owners)
    np.save(folder / "text.npy", np.char.add("person ", owners.astype("U8")))


def measure(folder: pathlib.Path, metric: str, ids: str) -> None:
    """Make one release in this process and print what it took."""
    X = np.load(folder / "records.npy", mmap_mode="r")
    units = EACH_RECORD if ids == IDS[0] else np.load(folder / f"{ids}.npy")
    space = SPD(3, metric=metric)
    ball = Ball(space, space.origin, 2.0, source="benchmark")
    private_mean(X[:1000], ball, GDP(1.0), units=units if units is EACH_RECORD else units[:1000])
    before, peak = anonymous(), Peak()
    peak.start()
    start = time.perf_counter()
    private_mean(X, ball, GDP(1.0), units=units)
    took = time.perf_counter() - start
    peak.over.set()
    peak.join()
    print(json.dumps({"seconds": took, "extra": max(peak.largest, anonymous()) - before}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=2_500_000)
    parser.add_argument("--people", type=int, default=100_000)
    parser.add_argument("--metric", nargs="+", default=METRICS, choices=METRICS)
    parser.add_argument("--ids", nargs="+", default=IDS, choices=IDS)
    parser.add_argument("--inside", nargs=3, metavar=("FOLDER", "METRIC", "IDS"), help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.inside:
        measure(pathlib.Path(asked.inside[0]), *asked.inside[1:])
        return
    size = asked.records * 9 * 8
    allowed = SHARE * size + CONSTANT
    table = Table(title=f"{asked.records:,} tensors ({size / 1e6:.0f} MB), {asked.people:,} people: anonymous memory")
    for heading in ("metric", "ids", "seconds", "extra, MB", "of the input", "goal, MB", "met"):
        table.add_column(heading, justify="left" if heading in ("metric", "ids") else "right")
    with tempfile.TemporaryDirectory() as name:
        write_records(pathlib.Path(name), asked.records, asked.people)
        for metric in asked.metric:
            for ids in asked.ids:
                command = [sys.executable, __file__, "--inside", name, metric, ids]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                found = json.loads(done.stdout)
                extra, met = found["extra"], "yes" if found["extra"] <= allowed else "no"
                sizes = f"{extra / 1e6:.0f}", f"{extra / size:.2f}", f"{allowed / 1e6:.0f}"
                table.add_row(metric, ids, f"{found['seconds']:.1f}", *sizes, met)
    Console(width=110).print(table)


if __name__ == "__main__":
    main()
