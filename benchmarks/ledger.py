"""What a spend takes: in a ledger of ten, ten thousand and a million entries, with one, two and eight writers.

    python benchmarks/ledger.py [sqlite postgresql] [--quick] [--folder FOLDER] [--address URL --writer ROLE]

A spend is one call of `population.settle` whose work takes no time: it is paid for, begun and drawn, each of them a
commit and then a write to the witness, all on the disk when the call returns. Writers are processes, each with the
ledger opened by itself, that spend from one population as fast as they can. What the ledger is filled up with is what
spends of the same population and principals leave; it is a chain as any other, and is audited at the end.

Beside it stands what users call: private_mean with a Budget, and with the ledger's population.

The goal is checked: that p50 of one writer at a million entries is at most 1.5 times that at ten thousand. The exit
code is 1 where it is missed. --quick: a hundred thousand entries at most, and fewer spends.

SQLite lies in --folder: its disk is what is measured. PostgreSQL is a cluster in a temporary folder, or the server with
--address, that of a role that may make schemas, and --writer, that of the role that writes to them.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import itertools
import multiprocessing
import operator
import pathlib
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import psycopg
import psycopg.conninfo
from rich.console import Console
from rich.table import Table

import dpmanifold as dpm
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.entries import FIELDS, Entry, now, promise_to_body
from dpmanifold.ledger.entry_access import found_by
from dpmanifold.privacy.amounts import cost_of
from dpmanifold.privacy.budget_accounts import Order, random_key

CONSOLE = Console(width=110)
CAP, SHARE = dpm.GDP("1000"), dpm.GDP("0.001")
(COST,) = cost_of(SHARE, CAP)
WRITERS = (1, 2, 8)
GOAL = 1.5
VALUES = operator.attrgetter(*FIELDS)
_PIECE = 30_000  # entries in one transaction while filling up
_COLUMNS = (*FIELDS, "sets", "subject")
Times = dict[tuple[int, int], list[float]]
Rates = dict[tuple[int, int], float]
Calls = dict[tuple[int, str], list[float]]
BALL = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.5, source="a benchmark")
X = dpm.Sphere(2).exp_coords(BALL.center, 0.1 * np.random.default_rng(0).standard_normal((500, 2)))


def main() -> None:
    asked = options()
    missed = []
    for engine in asked.engines:
        with tempfile.TemporaryDirectory(dir=asked.folder, prefix="dpm-ledger-") as folder:
            missed += measured(engine, pathlib.Path(folder), asked)
    sys.exit(1 if missed else 0)


def measured(engine: str, folder: pathlib.Path, asked: argparse.Namespace) -> list[str]:
    """Measure one engine and print what was found; return what misses the goal."""
    sizes = (10, 10_000, 100_000 if asked.quick else 1_000_000)
    with places_of(engine, sizes, folder, asked) as places:
        full = dict(zip(sizes, places, strict=True))
        for size, place in full.items():
            began = time.perf_counter()
            fill(place, size)
            CONSOLE.print(f"{engine}: a ledger of {size:,} entries made in {time.perf_counter() - began:.1f} s")
        times, rates, calls = timed(full, asked.quick)
        middle = {size: median(times[size, 1]) for size in sizes}
        show(engine, times, rates, calls)
        began = time.perf_counter()
        with Ledger(full[sizes[-1]].address, principal="ada") as ledger:
            audit = ledger.audit()
        CONSOLE.print(f"Audit of {audit.entries:,} entries: ok is {audit.ok}, {time.perf_counter() - began:.0f} s.")
    ratio = middle[sizes[-1]] / middle[10_000]
    verdict = "met" if ratio <= GOAL else "MISSED"
    CONSOLE.print(f"p50 at {sizes[-1]:,} entries is {ratio:.2f} times that at 10,000; goal {GOAL}: {verdict}.\n")
    return [engine] if ratio > GOAL or not audit.ok else []


def timed(full: dict[int, Place], quick: bool) -> tuple[Times, Rates, Calls]:
    """Take turns, so that what else the machine does meanwhile meets all sizes alike."""
    rounds, spends = (3, 24) if quick else (5, 160)
    times: Times = {}
    rates: Rates = {}
    calls: Calls = {}
    for _ in range(rounds):
        for size, place in full.items():
            for writers in WRITERS:
                each, rate = spent_by(place.address, writers, spends)
                times.setdefault((size, writers), []).extend(each)
                rates[size, writers] = rates.get((size, writers), 0.0) + rate / rounds
            means(place.address, 4, calls, size)
    return times, rates, calls


def show(engine: str, times: Times, rates: Rates, calls: Calls) -> None:
    table = Table(title=f"{engine}: ms per spend (population.settle), and p50 of a private mean")
    for heading in ("entries", "writers", "p50", "p95", "spends/s", "mean, Budget", "mean, ledger"):
        table.add_column(heading, justify="right")
    for (size, writers), each in times.items():
        p50, p95 = (f"{1000 * float(np.quantile(each, level)):.2f}" for level in (0.5, 0.95))
        rest = [f"{1000 * median(calls[size, name]):.1f}" if writers == 1 else "" for name in ("Budget", "ledger")]
        table.add_row(f"{size:,}", str(writers), p50, p95, f"{rates[size, writers]:.0f}", *rest)
    CONSOLE.print(table)


# -------------------------------------------------------------------- what is timed


def spent_by(address: str, writers: int, spends: int) -> tuple[list[float], float]:
    """Have writers spend at the same time; return how long each spend took, and how many there were in a second."""
    context = multiprocessing.get_context("fork")
    start = context.Barrier(writers)
    with context.Pool(writers, _ready, (start,)) as pool:
        found = pool.starmap(_spend, [(address, spends // writers)] * writers, chunksize=1)
    times = [seconds for _, _, each in found for seconds in each]
    whole = max(end for _, end, _ in found) - min(begin for begin, _, _ in found)
    return times, len(times) / whole


def _ready(start: Any) -> None:
    global _start
    _start = start


def _spend(address: str, count: int) -> tuple[float, float, list[float]]:
    times = []
    with Ledger(address, principal="ada") as ledger:
        cohort = ledger.population("cohort")
        for number in range(-3, count):  # the first three are not counted
            if number == 0:
                _start.wait()
                begin = time.monotonic()
            order = Order(SHARE, "a mean", random_key(), {"statistic": "mean", "data": ["dti@1"]})
            before = time.perf_counter()
            cohort.settle(order, lambda receipt: b"answer")
            times.append(time.perf_counter() - before)
    return begin, time.monotonic(), times[3:]


def means(address: str, count: int, calls: Calls, size: int) -> None:
    """Add the times of private means of 500 directions, with a Budget and with the ledger; the first is not counted."""
    with Ledger(address, principal="ada") as ledger:
        for name, budget in (("Budget", dpm.Budget(CAP)), ("ledger", ledger.population("cohort"))):
            found = []
            for _ in range(count + 1):
                before = time.perf_counter()
                dpm.private_mean(X, BALL, SHARE, units=dpm.EACH_RECORD, budget=budget)
                found.append(time.perf_counter() - before)
            calls.setdefault((size, name), []).extend(found[1:])


def median(times: list[float]) -> float:
    return float(np.median(times))


# -------------------------------------------------------------------- ledgers that are full


def fill(place: Place, size: int) -> None:
    """Make a ledger and its witness with this number of entries."""
    with Ledger(place.address, witness=place.witness, principal="ada") as ledger:
        ledger.population("cohort", cap=CAP, unit="record")
        *_, head = ledger.entries()
        entries = lost_spends(ledger.id, head, size)
    with place.witness.open("a", encoding="ascii") as lines:
        while piece := list(itertools.islice(entries, _PIECE)):
            by = {entry.kind: found_by(entry) for entry in piece[:3]}
            place.insert([(*VALUES(entry), *by[entry.kind]) for entry in piece])
            lines.writelines(entry.line() + "\n" for entry in piece)


def lost_spends(ledger: str, head: Entry, size: int) -> Iterator[Entry]:
    """Yield entries that follow the last one, until there are `size`: spends that were begun and lost."""
    moment, spent, promise = now(), Fraction(0), promise_to_body(SHARE)
    cap, before = head.seq, 0  # the population was made last
    while head.seq + 3 <= size:
        spent += COST
        key = hashlib.sha256(str(head.seq).encode()).hexdigest()[:32]
        spend = Entry.chained(
            ledger,
            head,
            "spend",
            "cohort",
            f"key:cohort:ada:{key}",
            {
                "principal": "ada",
                "key": key,
                "request": 2 * key,
                "label": "a mean",
                "statistic": "mean",
                "datasets": ["dti@1"],
                "privacy": promise,
                "cost": [str(COST)],
                "spent": [str(spent)],
                "of_grant": [str(spent)],
                "rests_on": {"cap": cap, "spend": before, "own": before, "grant": 0},
                "token": key[:16],
                "time": moment,
            },
        )
        before = spend.seq
        step = {"spend": spend.seq, "time": moment}
        started = Entry.chained(ledger, spend, "started", "cohort", f"started:{spend.seq}", {**step, "token": key})
        head = Entry.chained(ledger, started, "lost", "cohort", f"outcome:{spend.seq}", step)
        yield from (spend, started, head)


@dataclass(frozen=True)
class Place:
    """Where a ledger and its witness are, and a quick way to put entries there."""

    address: str
    witness: pathlib.Path
    insert: Callable[[list[tuple[Any, ...]]], None]


@contextlib.contextmanager
def places_of(
    engine: str, sizes: Sequence[int], folder: pathlib.Path, asked: argparse.Namespace
) -> Iterator[list[Place]]:
    """Have a place for a ledger of each size."""
    witnesses = [folder / f"{size}.witness" for size in sizes]
    if engine == "sqlite":
        paths = [folder / f"{size}.db" for size in sizes]
        yield [
            Place(str(path), witness, functools.partial(into_sqlite, path))
            for path, witness in zip(paths, witnesses, strict=True)
        ]
        return
    with contextlib.ExitStack() as stack:
        owner, writer = (asked.address, asked.writer) if asked.address else stack.enter_context(server())
        names = [f"benchmark_{size}" for size in sizes]
        for name, witness in zip(names, witnesses, strict=True):
            stack.enter_context(schema(owner, name))
            role = psycopg.conninfo.conninfo_to_dict(writer)["user"]
            Ledger.create(within(owner, name), witness=witness, writer=role, principal="steward").close()
        yield [
            Place(within(writer, name), witness, functools.partial(into_postgres, within(writer, name)))
            for name, witness in zip(names, witnesses, strict=True)
        ]


def into_sqlite(path: pathlib.Path, rows: list[tuple[Any, ...]]) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        marks = ", ".join("?" * len(_COLUMNS))
        connection.executemany(f"INSERT INTO entries ({', '.join(_COLUMNS)}) VALUES ({marks})", rows)


def into_postgres(address: str, rows: list[tuple[Any, ...]]) -> None:
    with (
        psycopg.connect(address) as connection,
        connection.cursor().copy(f"COPY entries ({', '.join(_COLUMNS)}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row(row)


@contextlib.contextmanager
def server() -> Iterator[tuple[str, str]]:
    """Start the cluster of the tests; return the addresses of the roles that own and write."""
    sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
    from ledger.conftest import running_cluster

    with running_cluster() as found:
        yield found.address("owner"), found.address("writer")


@contextlib.contextmanager
def schema(owner: str, name: str) -> Iterator[None]:
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        try:
            yield
        finally:
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def within(address: str, name: str) -> str:
    """Return an address with another schema."""
    bare = address.split("&options=")[0]
    return f"{bare}{'&' if '?' in bare else '?'}options=-csearch_path%3D{name}"


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", default=["sqlite", "postgresql"])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--folder", type=pathlib.Path)
    parser.add_argument("--address")
    parser.add_argument("--writer")
    return parser.parse_args()


if __name__ == "__main__":
    main()
