"""Clients of a ledger in processes of their own, and what they write down while they are raced, killed and starved.

What clients do is written down as it happens, one line at a time into one file: a line is there or not, whenever its
writer is killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import time
import traceback

from dpmanifold import GDP
from dpmanifold.errors import BudgetError, ReleaseLostError
from dpmanifold.ledger import Ledger
from dpmanifold.privacy.budget_accounts import Order

POPULATION = "cohort"


def order(key, privacy=None, statistic="mean"):
    """An order for something that costs little."""
    return Order(GDP("0.1") if privacy is None else privacy, "a mean", key, {"statistic": statistic})


class Log:
    """Lines that several processes append to a file."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        self._handle = os.open(path, os.O_CREAT | os.O_APPEND | os.O_RDWR)
        self._seen = 0

    def add(self, what, **facts):
        line = json.dumps({"what": what, "pid": os.getpid(), "time": time.monotonic(), **facts}) + "\n"
        os.write(self._handle, line.encode("ascii"))

    def new(self):
        """What was added since this was last called."""
        content = os.pread(self._handle, os.fstat(self._handle).st_size - self._seen, self._seen)
        whole = content[: content.rfind(b"\n") + 1]
        self._seen += len(whole)
        return [json.loads(line) for line in whole.splitlines()]

    def close(self):
        os.close(self._handle)


class Notes:
    """Lines that wait until there is room for them."""

    def __init__(self):
        self._lines = []

    def add(self, what, **facts):
        self._lines.append((what, facts))

    def into(self, log):
        for what, facts in self._lines:
            log.add(what, **facts)

    def lines(self):
        return [{"what": what, **facts} for what, facts in self._lines]


def ask(cohort, log, key, privacy=None, pause=0.0):
    """Ask for something under a key, and write down what was drawn and what came of it."""

    def work(receipt):
        content = os.urandom(16)
        log.add("drawn", key=key, sequence=receipt.sequence, sha256=hashlib.sha256(content).hexdigest())
        time.sleep(pause)
        return content

    try:
        content = cohort.settle(order(key, privacy), work)
    except BudgetError:
        log.add("refused", key=key)
    except ReleaseLostError:
        log.add("lost", key=key)
    else:
        log.add("returned", key=key, sha256=hashlib.sha256(content).hexdigest())


def opened(job, principal="ada"):
    return Ledger.open(job["where"], principal=principal).population(POPULATION)


def forked(action, log):
    """Run an action in a child that ends with it, without a word; what it raises is written down."""
    child = os.fork()
    if child:
        return child
    try:
        action()
        os._exit(0)
    except BaseException:
        log.add("failed", error=traceback.format_exc())
    finally:
        os._exit(1)


class Clients:
    """The process, seen from a test."""

    def __init__(self):
        self._process = None
        self._logs = 0

    def run(self, job, where, folder, **facts):
        """Run a job and return what it answers, and what its clients wrote down."""
        self._logs += 1
        path = folder / f"clients-{self._logs}.log"
        if self._process is None:
            command = [sys.executable, str(pathlib.Path(__file__).with_name("ledger_jobs.py"))]
            here = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")]))
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": here},
            )
        self._process.stdin.write(json.dumps({"job": job, "where": where, "log": str(path), **facts}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        log = Log(path)
        seen = log.new()
        log.close()
        return answer, seen

    def close(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.wait()
