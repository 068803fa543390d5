"""Clients of a ledger in processes of their own, to be raced and killed: started once, forked for every job.

The process reads jobs from its standard input, one JSON object a line, and answers each with one line. Every job runs
in a fork of its own, and so does every client of it: what they import is imported once.

What clients do is written down as it happens, one line at a time into one file: a line is there or not, whenever its
writer is killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
import traceback

from dpmanifold import GDP, PureDP
from dpmanifold.errors import BudgetError, ReleaseLostError
from dpmanifold.ledger import Ledger
from dpmanifold.privacy.accounts import Order
from ledger_broken import BROKEN

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


def forked(action, log, broken=None):
    """Run an action in a child that ends with it, without a word; what it raises is written down."""
    child = os.fork()
    if child:
        return child
    try:
        if broken is not None:
            BROKEN[broken]()
        action()
        os._exit(0)
    except BaseException:
        log.add("failed", error=traceback.format_exc())
    finally:
        os._exit(1)


def race(job):
    """Several clients, each asking for all of its keys, from the same moment on."""
    log = Log(job["log"])
    reader, writer = os.pipe()
    privacy = PureDP(job["cost"])

    def client(keys):
        cohort = opened(job)
        os.close(writer)
        os.read(reader, 1)  # until the other end is closed everywhere
        for key in keys:
            ask(cohort, log, key, privacy, job.get("pause", 0.0))

    children = [forked(lambda keys=keys: client(keys), log, job.get("broken")) for keys in job["clients"]]
    os.close(reader)
    os.close(writer)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return {"codes": codes}


def kills(job):
    """Clients that ask on and on, and are killed at random; for each one that is killed a new one starts.

    Each asks for a new key, or for one that somebody asked for before, perhaps in vain. After every kill it is measured
    how long it takes until somebody is answered who began to ask after it.
    """
    log, chance = Log(job["log"]), random.Random(job["seed"])
    living, numbers = [], iter(range(10**9))
    privacy = PureDP(job["cost"])

    def client(number):
        own = random.Random(f"{job['seed']} {number}")
        cohort = opened(job)
        for turn in range(10**9):
            again = own.random() < 0.25
            key = f"{own.randrange(number + 1)}-{own.randrange(4)}" if again else f"{number}-{turn}"
            log.add("asks", key=key)
            ask(cohort, log, key, privacy)

    def start():
        number = next(numbers)
        living.append(forked(lambda: client(number), log, job.get("broken")))

    def answered(since):
        """Wait until somebody is answered, one way or the other, who began to ask after a moment; return when."""
        asking = {}
        while time.monotonic() < since + job["patience"]:
            for line in log.new():
                if line["what"] == "asks":
                    asking[line["pid"]] = line["time"]
                elif line["what"] in ("returned", "refused") and asking.get(line["pid"], 0) > since:
                    return line["time"]
                elif line["what"] == "failed":
                    return None
            time.sleep(0.001)
        return None

    for _ in range(job["processes"]):
        start()
    waits = []
    try:
        answered(time.monotonic())
        for _ in range(job["kills"]):
            time.sleep(chance.random() * job["spread"])
            victim = living.pop(chance.randrange(len(living)))
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            os.waitpid(victim, 0)
            start()
            after = answered(killed)
            if after is None:
                break
            waits.append(after - killed)
    finally:
        for child in living:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return {"waits": waits}


def lines(job):
    """Settle one order and be killed at the n-th line of the ledger's code that runs; for one n after the other.

    Ends with the first n that is larger than the number of lines.
    """
    log = Log(job["log"])
    room = str(pathlib.Path(sys.modules["dpmanifold.ledger"].__file__).parent)
    waits = []

    def client(number):
        cohort = opened(job)
        left = [number]

        def trace(frame, event, argument):
            if not frame.f_code.co_filename.startswith(room):
                return None
            if event == "line":
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        ask(cohort, log, f"line-{number}", PureDP(job["cost"]))
        sys.settrace(None)

    number = job["first"]
    while True:
        log.add("asks", key=f"line-{number}")
        _, status = os.waitpid(forked(lambda number=number: client(number), log, job.get("broken")), 0)
        if not os.WIFSIGNALED(status):
            return {"waits": waits, "lines": number, "code": os.waitstatus_to_exitcode(status)}
        killed = time.monotonic()
        cohort = opened(job)
        ask(cohort, log, f"next-{number}", PureDP(job["cost"]))
        waits.append(time.monotonic() - killed)
        ask(cohort, log, f"line-{number}", PureDP(job["cost"]))
        number += job["step"]


JOBS = {"race": race, "kills": kills, "lines": lines}


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
            command = [sys.executable, __file__]
            here = os.pathsep.join(filter(None, [*sys.path, os.environ.get("PYTHONPATH")]))
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": here}
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


def main():
    """Answer one job after the other."""
    for line in sys.stdin:
        job = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                os.write(writer, json.dumps(JOBS[job["job"]](job)).encode("ascii") + b"\n")
            finally:
                traceback.print_exc() if sys.exc_info()[0] else None
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            print(answer.read().strip() or "null", flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
