"""A disk that is full at any byte: nothing is handed out that is not in the ledger; with room again it goes on."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import tempfile
from collections import Counter
from fractions import Fraction

import pytest

import dpmanifold as dpm
from dpmanifold import PureDP
from dpmanifold.errors import LedgerError
from dpmanifold.ledger import Ledger
from ledger_clients import POPULATION, Notes, ask, order
from ledger_seen import faults

BALL = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0, source="an atlas")
COST = "0.0001"


def population(ledger):
    return ledger.population(POPULATION, cap=PureDP("1"), unit="participant")


@pytest.fixture
def limited(clients, ledger_url, tmp_path):
    """Lets clients ask while a file may grow by so many bytes; returns what is wrong, and the states that were left."""

    def run(file, more, **facts):
        answer, seen = clients.run("limited", ledger_url, tmp_path, file=str(file), more=list(more), cost=COST, **facts)
        with Ledger.open(ledger_url, principal="ada") as ledger:
            found = faults(ledger, seen, Fraction(1))
        happened = Counter(line["what"] for line in seen)
        states = Counter(line["state"] for line in seen if line["what"] == "failing")
        print(f"{len(more)} sizes, {dict(happened)}, {dict(states)}, {answer['cpu']:.1f} s CPU")
        return found, states

    return run


@pytest.mark.parametrize(
    ("ledger_url", "points"),
    [
        ("sqlite", 4),
        pytest.param("sqlite", 60, marks=pytest.mark.slow),
        pytest.param("postgresql", 60, marks=pytest.mark.slow),
    ],
    indirect=["ledger_url"],
)
def test_a_witness_that_is_full_at_any_byte(limited, ledger_url, points):
    """The witness is the longest file there is, so that it alone is in the way."""
    with Ledger.open(ledger_url, principal="ada") as ledger:
        cohort, path = population(ledger), ledger.witness.path
        classes = ["x" * 150_000, "y" * 150_000]  # which are public, and in the entry of the data
        cohort.register("long", [[0.0]] * 4, BALL, units="each-record", labels=2 * classes, classes=classes)
        before = path.stat().st_size
        cohort.settle(order("limit-some", PureDP(COST)), lambda receipt: b"before")
        length = path.stat().st_size - before
    found, states = limited(path, [length * point // points for point in range(points)])
    assert found == []
    assert sum(states.values()) == points
    assert {"spent", "lost", "released"} <= set(states)  # it failed at every step


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("points", [8, pytest.param(60, marks=pytest.mark.slow)])
def test_a_log_that_is_full_at_any_byte(limited, ledger_url, points):
    with Ledger.open(ledger_url, principal="ada") as ledger:
        population(ledger)
    # The largest first: the witness grows with every client, and must not be what is in the way.
    found, states = limited(f"{ledger_url}.key", [160_000 * point // points for point in reversed(range(points))])
    assert found == []
    assert {None, "spent", "lost"} <= set(states)


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_a_ledger_that_hands_out_what_it_could_not_keep_is_found_out(limited, ledger_url):
    with Ledger.open(ledger_url, principal="ada") as ledger:
        population(ledger)
    broken = "hands_out_what_it_could_not_keep"
    found, _ = limited(f"{ledger_url}.key", range(50_000, 110_000, 10_000), broken=broken)
    assert any("was answered with what the ledger does not have" in fault for fault in found), found


# ----------------------------------------------------------------------------------- a small disk of its own


class SmallDisk:
    """A file system in memory, filled up so that so many bytes are free."""

    def __init__(self, folder):
        self.folder = folder
        self._ballast = folder / "ballast"

    def leave(self, free):
        """Have so many bytes free; None for all there are."""
        self._ballast.unlink(missing_ok=True)
        if free is not None:
            state = os.statvfs(self.folder)
            self._ballast.write_bytes(bytes(max(0, state.f_bavail * state.f_frsize - free)))


@pytest.fixture
def small_disk():
    """Sixteen megabytes that others can reach; where nothing can be mounted, what needs it is skipped."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="dpm-small-"))
    command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        done = subprocess.CompletedProcess(command, 127, stderr="there is no command mount")
    if done.returncode:
        folder.rmdir()
        pytest.skip(f"a small disk cannot be mounted here (it takes root, and the right to mount): {done.stderr}")
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def starved(ledger_url, disk, steps, page, tries):
    """Ask while so many pages are free, until it fails; then with room again. Return what is wrong, and what happened.

    Parameters
    ----------
    tries : how many are asked for at most with so little room
    """
    notes = Notes()
    with Ledger.open(ledger_url, principal="ada") as ledger:
        cohort = population(ledger)
        for pages in steps:
            disk.leave(pages * page)
            key = ""
            try:
                for number in range(tries):
                    key = f"{pages}-{number}"
                    ask(cohort, notes, key, PureDP(COST))
            except LedgerError:
                notes.add("failing")
            disk.leave(None)
            ask(cohort, notes, key, PureDP(COST))
            ask(cohort, notes, f"next-{pages}", PureDP(COST))
    with Ledger.open(ledger_url, principal="ada") as ledger:
        found = faults(ledger, notes.lines(), Fraction(1))
    happened = Counter(line["what"] for line in notes.lines())
    print(f"{len(steps)} steps, {dict(happened)}")
    return found, happened


@pytest.mark.parametrize("steps", [range(0, 24, 8), pytest.param(range(40), marks=pytest.mark.slow)])
def test_a_full_disk_under_database_and_witness(small_disk, steps):
    where = str(small_disk.folder / "study.db")
    Ledger.create(where, principal="ada").close()
    found, happened = starved(where, small_disk, steps, page=4096, tries=1)
    assert found == []
    assert happened["failing"] > 1


@pytest.mark.parametrize("steps", [range(2), pytest.param(range(5), marks=pytest.mark.slow)])
def test_a_full_disk_under_the_servers_tables(small_disk, cluster, postgres_url, steps):
    if cluster.prefix:
        shutil.chown(small_disk.folder, "postgres")
    schema = postgres_url.rpartition("%3D")[2]
    cluster.sql(f"CREATE TABLESPACE small LOCATION '{small_disk.folder}'")
    try:
        for table in ("entries", "results"):
            cluster.sql(f"ALTER TABLE {schema}.{table} SET TABLESPACE small")
        found, happened = starved(postgres_url, small_disk, steps, page=8192, tries=30)
        assert found == []
        assert happened["failing"] > 1
    finally:
        small_disk.leave(None)
        cluster.sql(f"DROP SCHEMA {schema} CASCADE")
        cluster.sql("DROP TABLESPACE small")
