"""Large data: a hundred million tensors, workers of a cluster, the same bits everywhere, and CSV.

    python benchmarks/scale.py [hundred-million workers bits csv] [--tensors 1e8] [--folder FOLDER] [--old PATH]

Tensors are 3x3, in Parquet files of six columns and a column of ids, as pyarrow writes them unless told otherwise
(Snappy, a million rows in a row group); each file has other records, people come in random order and lie in all files.
Files are read once before anything is measured, so that no disk is in the times. Every case is a process of its own,
and what is timed is one call of private_mean on a data.Dataset: opening and checking the files, the mean, the draw.
Memory is the most that a process ever had (VmHWM), with Python and everything imported. Goals stand beside; nothing
here fails. Linux alone has these numbers.

hundred-million  --tensors of them in 100 files, and half and twice as many in as many files more or less
workers          16 % of --tensors: one thread, then clusters of one and of two workers, in turns, the best of --rounds
bits             0.2 % of --tensors: engines, formats, random partitions and orders, and a worker that is killed
csv              2.5 % of --tensors in one CSV file, against the version in --old
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from rich.console import Console
from rich.table import Table
from scaling import files
from scaling.cases import in_fresh_process, measured, name

from dpmanifold import linalg

CONSOLE = Console(width=120)
METRICS, UNITS = ("logeuclid", "riemann"), ("each-record", "people")
FILES = 100
PARTITIONS = 20
MEMORY_LIMIT = 1000  # MB per process
DOUBLING = (1.9, 2.1)
FASTER_BY_TWO, SLOWER_BY_ONE = 1.6, 1.4
CSV_FASTER = 8.0


def table_of(title: str, *headings: str) -> Table:
    table = Table(title=f"{title} ({linalg.level()}, {os.cpu_count()} cores)")
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left")
    return table


def met(good: bool) -> str:
    return "yes" if good else "NO"


# -------------------------------------------------------------------- a hundred million


def hundred_million(asked: argparse.Namespace, folder: pathlib.Path) -> None:
    n, people = int(asked.tensors), asked.people
    paths = files.write_parquet(folder / "files", 2 * n, 2 * FILES, people)
    size = files.warm(paths) / 2
    sizes = {0.5: paths[: FILES // 2], 1.0: paths[:FILES], 2.0: paths}
    for engine in asked.engines:
        table = table_of(
            f"{n:,} tensors in {FILES} files ({size / 1e9:.1f} GB), {people:,} people, 2 {engine}",
            "private mean", "tensors", "seconds", "ns each", "over half of it", f"{DOUBLING[0]} to {DOUBLING[1]}",
            "peak MB per process", f"<= {MEMORY_LIMIT}",
        )  # fmt: skip
        for call in asked.calls:
            found = best_of(asked.rounds_of_doubling, sizes, call, engine)
            for share, (seconds, memory) in found.items():
                half = found.get(share / 2)
                ratio = "" if half is None else f"{seconds / half[0]:.2f}"
                fits = "" if half is None else met(DOUBLING[0] <= seconds / half[0] <= DOUBLING[1])
                table.add_row(
                    name(*call), f"{int(share * n):,}", f"{seconds:.1f}", f"{1e9 * seconds / share / n:.0f}", ratio,
                    fits, " ".join(f"{each:.0f}" for each in memory), met(max(memory) <= MEMORY_LIMIT),
                )  # fmt: skip
        CONSOLE.print(table)


def best_of(rounds: int, sizes: dict[float, list[str]], call: tuple, engine: str) -> dict[float, tuple]:
    """Return the least seconds and the most memory for each size; the sizes take turns."""
    found: dict[float, tuple] = {}
    for _ in range(rounds):
        for share, paths in sizes.items():
            case = {"what": "time", "engine": engine, "workers": 2, "paths": paths, "calls": [call], "limit": "1GB"}
            result = in_fresh_process(case, threads=2 if engine == "threads" else 1)
            memory = [result["memory"], *result.get("workers", [])]
            seconds = result["seconds"][name(*call)]
            if share in found:
                seconds = min(seconds, found[share][0])
                memory = [max(pair) for pair in zip(memory, found[share][1], strict=True)]
            found[share] = seconds, memory
    return found


# -------------------------------------------------------------------- workers


def workers(asked: argparse.Namespace, folder: pathlib.Path) -> None:
    n = int(0.16 * asked.tensors)
    paths = files.write_parquet(folder / "workers", n, 16, asked.people)
    files.warm(paths)
    kinds = {"one thread": ("threads", 1), "1 worker": ("dask", 1), "2 workers": ("dask", 2)}
    rounds: dict[str, list] = {kind: [] for kind in kinds}
    for _ in range(asked.rounds):
        for kind, (engine, number) in kinds.items():
            case = {"what": "time", "engine": engine, "workers": number, "paths": paths, "first": paths}
            rounds[kind].append(in_fresh_process({**case, "calls": asked.calls}))
    table = table_of(
        f"{n:,} tensors in 16 files, {asked.people:,} people: seconds, best of {asked.rounds}",
        "private mean", *kinds, "1 worker / thread", f"<= {SLOWER_BY_ONE}", "1 -> 2", f">= {FASTER_BY_TWO}",
    )  # fmt: skip
    for call in (name(*each) for each in asked.calls):
        thread, one, two = (min(run["seconds"][call] for run in rounds[kind]) for kind in kinds)
        table.add_row(
            call, f"{thread:.2f}", f"{one:.2f}", f"{two:.2f}",
            f"{one / thread:.2f}", met(one / thread <= SLOWER_BY_ONE),
            f"{one / two:.2f}", met(one / two >= FASTER_BY_TWO),
        )  # fmt: skip
    for what, key in (("start of the cluster, not counted", "start"), ("peak MB of this process", "memory")):
        table.add_row(what, *(f"{min(run[key] for run in rounds[kind]):.1f}" for kind in kinds), "", "", "", "")
    peaks = ["", *(f"{max(max(run['workers']) for run in rounds[kind]):.1f}" for kind in list(kinds)[1:])]
    table.add_row("peak MB of a worker", *peaks, "", "", "", "")
    CONSOLE.print(table)


# -------------------------------------------------------------------- bits


def bits(asked: argparse.Namespace, folder: pathlib.Path) -> None:
    n, folder = max(1000, int(2e-3 * asked.tensors)), folder / "bits"
    paths = files.write_parquet(folder / "parquet", n, 8, max(10, n // 50))
    whole = pa.concat_tables(pyarrow.parquet.read_table(path) for path in paths)
    cases = {
        "serial": {"paths": paths},
        "2 threads": {"paths": paths, "workers": 2},
        "Dask, 1 worker": {"paths": paths, "engine": "dask"},
        "Dask, 2 workers": {"paths": paths, "engine": "dask", "workers": 2},
        "CSV": {"paths": [as_csv(whole, folder)], "workers": 2},
        ".npy": {"paths": as_npy(whole, folder), "workers": 2},
    }
    for number in range(PARTITIONS):
        cases[f"partition and order {number + 1}"] = {"paths": partition(whole, folder, number), "workers": 2}
    cases["Dask, a worker killed"] = {**cases["Dask, 2 workers"], "kill": True}
    found = {
        kind: in_fresh_process({"what": "bits", "calls": asked.calls, **case}, threads=case.get("workers", 1))["bits"]
        for kind, case in cases.items()
    }
    expected = found["serial"]
    table = table_of(
        f"{n:,} tensors: the mean before noise, and a seeded release", "private mean", "serial", "the same"
    )
    for call in (name(*each) for each in asked.calls):
        others = [kind for kind in found if found[kind][call] != expected[call]]
        same = f"all {len(found)} runs" if not others else f"NOT: {', '.join(f'{k} {found[k][call]}' for k in others)}"
        table.add_row(call, expected[call], same)
    CONSOLE.print(table)
    CONSOLE.print(
        "Runs:", ", ".join(kind for kind in found if "partition" not in kind), f"and {PARTITIONS} partitions."
    )


def as_csv(whole: pa.Table, folder: pathlib.Path) -> str:
    pyarrow.csv.write_csv(whole, folder / "records.csv")
    return str(folder / "records.csv")


def as_npy(whole: pa.Table, folder: pathlib.Path) -> list[str]:
    """Write matrices and ids in three files each."""
    X = files.matrices(np.stack([whole[column].to_numpy() for column in files.COLUMNS], axis=1))
    paths = []
    for number, (records, people) in enumerate(
        zip(np.array_split(X, 3), np.array_split(whole[files.PERSON].to_numpy(), 3), strict=True)
    ):
        paths.append(str(folder / f"records-{number}.npy"))
        np.save(paths[-1], records)
        np.save(folder / f"people-{number}.npy", people)
    return paths


def partition(whole: pa.Table, folder: pathlib.Path, seed: int) -> list[str]:
    """Write the same records in another order, cut at random places, in row groups of another size."""
    rng = np.random.default_rng(seed)
    mixed = whole.take(pa.array(rng.permutation(len(whole))))
    cuts = np.sort(rng.choice(np.arange(1, len(whole)), size=rng.integers(0, 12), replace=False))
    ends = [0, *map(int, cuts), len(whole)]
    paths = []
    for start, end in itertools.pairwise(ends):
        paths.append(str(folder / f"partition-{seed:02}-{start}.parquet"))
        rows = int(rng.integers(max(1, (end - start) // 10), end - start + 1))
        pyarrow.parquet.write_table(mixed.slice(start, end - start), paths[-1], row_group_size=rows)
    return paths


# -------------------------------------------------------------------- CSV


def csv(asked: argparse.Namespace, folder: pathlib.Path) -> None:
    n = int(0.025 * asked.tensors)
    path = files.write_csv(folder / "records.csv", n, asked.people)
    size = files.warm([path])
    table = table_of(
        f"{n:,} tensors in a CSV file of {size / 1e6:.0f} MB, {asked.people:,} people, 1 and 2 threads",
        "private mean", "threads", "before, s", "now, s", "ratio", f">= {CSV_FASTER:g}", "before, MB", "now, MB",
    )  # fmt: skip
    for call in asked.calls:
        for threads in (1, 2):
            case = {"what": "time", "paths": [path], "calls": [call], "workers": threads}
            now = in_fresh_process(case, threads)
            seconds = now["seconds"][name(*call)]
            row = [name(*call), str(threads), "", f"{seconds:.2f}", "", "", "", f"{now['memory']:.0f}"]
            if asked.old:
                before = in_fresh_process({**case, "old": True}, threads, source=str(pathlib.Path(asked.old) / "src"))
                ratio = before["seconds"][name(*call)] / seconds
                row[2], row[6] = f"{before['seconds'][name(*call)]:.2f}", f"{before['memory']:.0f}"
                row[4], row[5] = f"{ratio:.1f}", met(ratio >= CSV_FASTER)
            table.add_row(*row)
    CONSOLE.print(table)


TABLES = {"hundred-million": hundred_million, "workers": workers, "bits": bits, "csv": csv}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", default=list(TABLES), help=f"what to measure: {', '.join(TABLES)}; or all")
    parser.add_argument("--tensors", type=float, default=1e8, help="how many; 1e7 in a tenth of the time")
    parser.add_argument("--people", type=int, default=100_000, help="how many people own them")
    parser.add_argument("--rounds", type=int, default=3, help="turns of serial, 1 and 2 workers; the best counts")
    parser.add_argument("--rounds-of-doubling", type=int, default=1, help="turns of half, all and twice the tensors")
    parser.add_argument("--engines", nargs="+", default=["threads"], choices=["threads", "dask"], help="for the first")
    parser.add_argument("--metric", nargs="+", default=METRICS, choices=METRICS)
    parser.add_argument("--units", nargs="+", default=UNITS, choices=UNITS, help="whether people own records by ids")
    parser.add_argument("--folder", help="where files are made (12 GB for 1e8 tensors); a temporary folder if left out")
    parser.add_argument("--keep", action="store_true", help="leave the files there")
    parser.add_argument("--old", help="a checkout of an earlier version, its kernels built, to compare CSV with")
    parser.add_argument("--case", action="store_true", help=argparse.SUPPRESS)  # one, on stdin
    asked = parser.parse_args()
    asked.calls = [(metric, units == "people") for metric in asked.metric for units in asked.units]
    if asked.case:
        print(json.dumps(measured(json.load(sys.stdin))))
        return
    if unknown := set(asked.tables) - set(TABLES):
        parser.error(f"no table {', '.join(sorted(unknown))}; there are {', '.join(TABLES)}")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dpmanifold-scale-", dir=asked.folder))
    try:
        for table in asked.tables:
            (folder / table).mkdir()
            TABLES[table](asked, folder / table)
            if not asked.keep:
                shutil.rmtree(folder / table)
    finally:
        if asked.keep:
            CONSOLE.print(f"The files are in {folder}.")
        else:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
