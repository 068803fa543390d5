"""The order of things as the operating system sees it: commit, witness on the disk, and only then the records."""

from __future__ import annotations

import pathlib
import re
import shutil

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.ledger import Ledger
from ledger_clients import POPULATION

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0, source="an atlas")
STEPS = [
    *("commit", "witness spend", "sync"),
    *("commit", "witness started", "sync"),
    "records",
    *("commit", "witness drawn", "sync"),
    "answer",
]


def steps(calls):
    """Return what a client did, in order, from its system calls as strace reports them.

    A commit is one that is on the disk (SQLite: the log, written to and synced) or that the server has answered
    (PostgreSQL: after an INSERT), and is listed if the witness is told of something after it.
    """
    done, written, committed = [], False, False
    for call in calls:
        if re.search(r"pwrite64\(.*-wal>|sendto\(.*INSERT INTO entries", call):
            written, committed = True, False
        elif re.search(r"f(data)?sync\(.*-wal>\) += 0|recvfrom\(.*\\vCOMMIT", call):
            written, committed = False, committed or written
        elif re.search(r"write\(\d+<[^>]*\.witness>", call):
            kinds = re.findall(r'\\"kind\\":\\"(\w+)\\"', call)
            done += [*["commit"] * committed, f"witness {' '.join(kinds)}"]
            committed = False
        elif re.search(r"fsync\(.*\.witness>\) += 0", call) and done and done[-1].startswith("witness"):
            done.append("sync")
        elif re.search(r"open(at)?\(.*records\.npy", call):
            done.append("records")
        elif re.search(r"write\(\d+<[^>]*\.log>.*returned", call):
            done.append("answer")
    return done


@pytest.fixture
def done(clients, ledger_url, tmp_path):
    """Releases a mean of registered records in a file, and returns what its client did, in order."""
    records = tmp_path / "records.npy"
    np.save(records, np.random.default_rng(0).normal(0.0, 0.5, (60, 2)))
    with Ledger(ledger_url, principal="ada") as ledger:
        cohort = ledger.population(POPULATION, cap=dpm.GDP("1"), unit="participant")
        cohort.register("study", np.load(records), BALL, units="each-record")

    def run(layer, broken=None):
        files = {"records": str(records), "witness": str(ledger.witness.path)}
        answer, seen = clients.run("recorded", ledger_url, tmp_path, layer=layer, broken=broken, **files)
        if layer == "strace" and "attached" not in answer["strace"]:
            pytest.skip(f"strace may not attend to other processes here: {answer['strace']}")
        assert (answer["code"], [line["what"] for line in seen]) == (0, ["returned"])
        if layer == "within":
            return [*seen[0]["steps"], "answer"]
        return steps(pathlib.Path(answer["report"]).read_text().splitlines())

    return run


with_strace = pytest.param("strace", marks=pytest.mark.skipif(not shutil.which("strace"), reason="needs strace"))


@pytest.mark.parametrize("layer", ["within", with_strace])
def test_commit_witness_and_records_come_in_this_order(done, layer):
    assert done(layer) == STEPS


WRONG = {
    "opens_before_it_pays": ["records", *STEPS],
    "leaves_the_witness_to_the_system": [step for step in STEPS if step != "sync"],
    "tells_the_witness_at_the_end": ["records", "commit", "witness spend started drawn", "sync", "answer"],
    "leaves_commits_to_the_system": [step for step in STEPS if step != "commit"],
}


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
def test_records_that_are_opened_early_are_found_out(done):
    assert done("within", "opens_before_it_pays") == WRONG["opens_before_it_pays"]


@pytest.mark.slow
@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("broken", WRONG)
def test_every_other_order_is_found_out(done, broken):
    if not shutil.which("strace"):
        pytest.skip("needs strace: whether a commit is synced shows in system calls alone")
    assert done("strace", broken) == WRONG[broken]
