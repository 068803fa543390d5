"""Clients of a ledger in processes of their own, to be raced and killed: started once, forked for every job.

The process reads jobs from its standard input, one JSON object a line, and answers each with one line. Every job runs
in a fork of its own, and so does every client of it: what they import is imported once.

What clients do is written down as it happens, one line at a time into one file: a line is there or not, whenever its
writer is killed.
"""

from __future__ import annotations

import concurrent.futures
import gc
import hashlib
import json
import os
import pathlib
import random
import resource
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


def race(job):
    """Several clients, each with several threads, and each of these asks for all keys; from the same moment on."""
    log = Log(job["log"])
    reader, writer = os.pipe()
    privacy = PureDP(job["cost"])

    def client(keys):
        cohort = opened(job)
        os.close(writer)

        def thread():
            os.read(reader, 1)  # until the other end is closed everywhere
            for key in keys:
                ask(cohort, log, key, privacy, job.get("pause", 0.0))

        with concurrent.futures.ThreadPoolExecutor(job["threads"]) as pool:
            for done in [pool.submit(thread) for _ in range(job["threads"])]:
                done.result()

    children = [forked(lambda keys=keys: client(keys), log) for keys in job["clients"]]
    os.close(reader)
    os.close(writer)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    return {"codes": codes}


def kills(job):
    """Clients that ask on and on, and are killed at random, from one of them to all; as many new ones start.

    Each asks for a new key, or for one that somebody asked for before, perhaps in vain. Some have opened the ledger
    themselves and some have it from the process that forked them. After every kill it is measured how long it takes
    until somebody is answered who began to ask after it.
    """
    log, chance = Log(job["log"]), random.Random(job["seed"])
    begun, living, numbers = time.monotonic(), [], iter(range(10**9))
    privacy, inherited = PureDP(job["cost"]), opened(job)

    def client(number):
        own = random.Random(f"{job['seed']} {number}")
        cohort = opened(job) if own.random() < 0.25 else inherited
        for turn in range(10**9):
            again = own.random() < 0.25
            key = f"{own.randrange(number + 1)}-{own.randrange(3)}" if again else f"{number}-{turn}"
            log.add("asks", key=key)
            ask(cohort, log, key, privacy)

    def start():
        number = next(numbers)
        living.append(forked(lambda: client(number), log))

    def kill():
        victim = living.pop(chance.randrange(len(living)))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)

    def answered(since):
        """Wait until somebody is answered who began to ask after a moment; return when. None if nobody is."""
        asking = {}
        while time.monotonic() < since + job["patience"]:
            for line in log.new():
                if line["what"] == "asks":
                    asking[line["pid"]] = line["time"]
                elif line["what"] in ("returned", "refused") and asking.get(line["pid"], 0) > since:
                    return line["time"]
                elif line["what"] == "failed":
                    return None
            time.sleep(0.002)
        return None

    for _ in range(job["processes"]):
        start()
    killed, waits = 0, []
    try:
        reached = answered(begun)
        while reached is not None and killed < job["kills"]:
            time.sleep(chance.random() * job["spread"])
            victims = min(chance.randint(1, job["processes"]), job["kills"] - killed)
            for _ in range(victims):
                kill()
            moment = time.monotonic()
            for _ in range(victims):
                start()
            killed += victims
            reached = answered(moment)
            if reached is not None:
                waits.append(reached - moment)
    finally:
        while living:
            kill()
    return {"waits": waits, "killed": killed, "went on": reached is not None}


def lines(job):
    """A client that is killed at the n-th line of the ledger's code that runs; for one n after the other.

    After each, somebody asks for something else, and then for the same again. Ends with the first n that is larger
    than the number of lines there are.
    """
    log, cohort, privacy = Log(job["log"]), opened(job), PureDP(job["cost"])
    room = str(pathlib.Path(sys.modules[Ledger.__module__].__file__).parent)
    waits = []

    def client(number):
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
        ask(cohort, log, f"line-{number}", privacy)
        sys.settrace(None)

    for number in range(job["first"], 10**9, job["step"]):
        _, status = os.waitpid(forked(lambda number=number: client(number), log), 0)
        if not os.WIFSIGNALED(status):
            return {"waits": waits, "killed": len(waits) // 2, "lines": number, "went on": status == 0}
        signal.alarm(job["patience"])
        try:
            for key in (f"next-{number}", f"line-{number}"):
                moment = time.monotonic()
                ask(cohort, log, key, privacy)
                waits.append(time.monotonic() - moment)
        except TimeoutError:
            return {"waits": waits, "killed": len(waits) // 2 + 1, "went on": False}
        signal.alarm(0)


JOBS = {"race": race, "kills": kills, "lines": lines}


def _give_up(number, frame):
    raise TimeoutError


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
    gc.freeze()  # so that forks share what was imported
    for line in sys.stdin:
        job = json.loads(line)
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                signal.signal(signal.SIGALRM, _give_up)
                BROKEN.get(job.get("broken"), lambda: None)()
                answer = JOBS[job["job"]](job)
                used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
                answer["cpu"] = sum(part.ru_utime + part.ru_stime for part in used)
                os.write(writer, json.dumps(answer).encode("ascii") + b"\n")
            finally:
                traceback.print_exc() if sys.exc_info()[0] else None
                os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as answer:
            print(answer.read().strip() or "null", flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
