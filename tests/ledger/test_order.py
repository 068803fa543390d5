"""The order of things as the operating system sees it: commit, witness on the disk, and only then the records."""

from __future__ import annotations

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
def calls(clients, ledger_url, tmp_path):
    """Releases a mean of registered records in a file, and returns the client's system calls as lines."""
    if not shutil.which("strace"):
        pytest.skip("strace is not installed")
    records = tmp_path / "records.npy"
    np.save(records, np.random.default_rng(0).normal(0.0, 0.5, (60, 2)))
    with Ledger(ledger_url, principal="ada") as ledger:
        cohort = ledger.population(POPULATION, cap=dpm.GDP("1"), unit="participant")
        cohort.register("study", np.load(records), BALL, units="each-record")

    def run(broken=None):
        answer, _ = clients.run("recorded", ledger_url, tmp_path, records=str(records), broken=broken)
        if not answer["attached"]:
            pytest.skip(f"strace may not attend to other processes here: {answer['strace']}")
        assert answer["code"] == 0
        (report,) = tmp_path.glob("*.strace")
        return report.read_text().splitlines()

    return run


def test_commit_witness_and_records_come_in_this_order(calls):
    assert steps(calls()) == STEPS


@pytest.mark.parametrize("ledger_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("broken", "wrong"),
    [
        ("leaves_the_witness_to_the_system", [step for step in STEPS if step != "sync"]),
        ("opens_before_it_pays", ["records", *STEPS]),
        pytest.param(
            *("leaves_commits_to_the_system", [step for step in STEPS if step != "commit"]), marks=pytest.mark.slow
        ),
        pytest.param(
            *("tells_the_witness_at_the_end", ["records", "commit", "witness spend started drawn", "sync", "answer"]),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_another_order_is_found_out(calls, broken, wrong):
    assert steps(calls(broken)) == wrong
