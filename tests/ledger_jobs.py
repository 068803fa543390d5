"""Jobs for clients of a ledger: races, kills, full disks. A process that imports all it needs once, and forks for each.

It reads jobs from its standard input, one JSON object a line, and answers each with one line; see
`ledger_clients.Clients`. Every job runs in a fork of its own, and so does every client of it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import importlib.util
import itertools
import json
import os
import pathlib
import random
import resource
import select
import signal
import sqlite3
import subprocess
import sys
import time
import traceback

import numpy as np
import sqlalchemy

import dpmanifold as dpm
from dpmanifold import PureDP
from dpmanifold.errors import LedgerError
from dpmanifold.ledger import Ledger
from ledger_broken import BROKEN
from ledger_clients import Log, Notes, ask, forked, opened
from ledger_recorder import Recorder


def race(job):
    """Several clients, each with several threads, and each of these asks for all keys; from the same moment on."""
    log = Log(job["log"])
    reader, writer = os.pipe()
    privacy = PureDP(job["cost"])
    inherited = opened(job) if job.get("inherited") else None

    def client(keys):
        signal.alarm(job.get("patience", 0))
        cohort = opened(job) if inherited is None else inherited
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
    begun, living, numbers, job_process = time.monotonic(), [], itertools.count(), os.getpid()
    privacy, inherited = PureDP(job["cost"]), None
    while inherited is None:
        with contextlib.suppress(*[LedgerError] * bool(job.get("server ends"))):
            inherited = opened(job)

    def client(number):
        own = random.Random(f"{job['seed']} {number}")
        cohort = opened(job) if own.random() < 0.25 and not job.get("server ends") else inherited
        for turn in itertools.takewhile(lambda _: os.getppid() == job_process, itertools.count()):
            again = own.random() < 0.25
            key = f"{own.randrange(number + 1)}-{own.randrange(3)}" if again else f"{number}-{turn}"
            log.add("asks", key=key, new=not again)
            try:
                ask(cohort, log, key, privacy)
            except LedgerError:
                if not job.get("server ends"):
                    raise
                log.add("failing", key=key)

    def start():
        number = next(numbers)
        living.append(forked(lambda: client(number), log))

    def kill():
        victim = living.pop(chance.randrange(len(living)))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)

    def answered(since):
        """Wait until somebody is answered who began to ask for something new after a moment; return that line, or None.

        The answer is a release that was paid for; or a refusal, once the cap is spent.
        """
        asking = {}
        while time.monotonic() < since + job["patience"]:
            for line in log.new():
                if line["what"] == "asks":
                    asking[line["pid"]] = line["time"] if line["new"] else 0
                elif line["what"] in ("returned", "refused") and asking.get(line["pid"], 0) > since:
                    return line
                elif line["what"] == "failed":
                    return None
            time.sleep(0.002)
        return None

    for _ in range(job["processes"]):
        start()
    killed, paid, waits = 0, 0, []
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
                waits.append(reached["time"] - moment)
                paid += reached["what"] == "returned"
    finally:
        while living:
            kill()
    return {"waits": waits, "paid": paid, "killed": killed, "went on": reached is not None}


def lines(job):
    """A client that is killed at the n-th line of the ledger's code that runs; for one n after the other.

    After each, somebody asks for something else, and then for the same again. Ends with the first n that is larger
    than the number of lines there are. Where the job says so, lines are counted from the draw on.
    """
    log, cohort, privacy = Log(job["log"]), opened(job), PureDP(job["cost"])
    room = str(pathlib.Path(sys.modules[Ledger.__module__].__file__).parent)
    waits = []

    def client(number):
        left, notes = [number], []

        class Noting:
            """The log, and whether anything was drawn."""

            @staticmethod
            def add(what, **facts):
                notes.append(what)
                log.add(what, **facts)

        def trace(frame, event, argument):
            if not frame.f_code.co_filename.startswith(room):
                return None
            if event == "line" and (notes or not job.get("from the draw")):
                left[0] -= 1
                if left[0] < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return trace

        sys.settrace(trace)
        ask(cohort, Noting, f"line-{number}", privacy)
        sys.settrace(None)

    for number in itertools.count(job["first"], job["step"]):
        _, status = os.waitpid(forked(lambda number=number: client(number), log), 0)
        if not os.WIFSIGNALED(status):
            break
        signal.alarm(job["patience"])
        try:
            for key in (f"next-{number}", f"line-{number}"):
                moment = time.monotonic()
                ask(cohort, log, key, privacy)
                waits.append(time.monotonic() - moment)
        except TimeoutError:
            return {"waits": waits, "killed": len(waits) // 2 + 1, "went on": False}
        signal.alarm(0)
    return {"waits": waits, "killed": len(waits) // 2, "lines": number, "went on": status == 0}


def recorded(job):
    """One release of registered data in a file, while the client records what it does, or strace attends to it."""
    log, report = Log(job["log"]), job["log"] + ".strace"
    reader, writer = os.pipe()

    def client():
        cohort = opened(job)
        data = cohort.dataset("study", lambda: np.load(job["records"]))
        recorder = Recorder(job["witness"], job["records"]) if job["layer"] == "within" else None
        os.close(writer)
        os.read(reader, 1)
        dpm.private_mean(data, data.ball, dpm.GDP("0.1"), units=None, budget=cohort, key="mean")
        log.add("returned", steps=recorder and recorder.steps)

    def attended(child):
        calls = "trace=openat,open,write,pwrite64,fsync,fdatasync,sendto,recvfrom"
        command = ["strace", "-f", "-y", "-s", "4096", "-e", calls, "-o", report, "-p", str(child)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            said = tracer.stderr.readline()
            end(child)
            tracer.wait()
        return said

    def end(child):
        os.close(reader)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        codes.append(os.waitstatus_to_exitcode(status))

    codes, child = [], forked(client, log)
    said = end(child) if job["layer"] == "within" else attended(child)
    return {"code": codes[0], "strace": said, "report": report}


def limited(job):
    """Clients whose files may grow to some size at most; each asks twice more once they may grow again.

    The size is that of one file as it is, and so many bytes more.
    """
    log, privacy = Log(job["log"]), PureDP(job["cost"])
    no_limit = resource.getrlimit(resource.RLIMIT_FSIZE)

    def client(more):
        if "://" not in job["where"]:  # what SQLite has written ahead is copied into place: the log is short
            connection = sqlite3.connect(job["where"])
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            connection.close()
        cohort, notes = opened(job), Notes()
        size = pathlib.Path(job["file"]).stat().st_size + more
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, no_limit[1]))
        try:
            ask(cohort, notes, f"limit-{more}", privacy)
            failed = False
        except LedgerError:
            failed = True
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, no_limit)
        notes.into(log)
        if failed:
            log.add("failing", key=f"limit-{more}", state=cohort.status(f"limit-{more}"))
        ask(cohort, log, f"limit-{more}", privacy)
        ask(cohort, log, f"next-{more}", privacy)

    for more in job["more"]:
        os.waitpid(forked(lambda more=more: client(more), log), 0)
    return {}


JOBS = {"race": race, "kills": kills, "lines": lines, "recorded": recorded, "limited": limited}


def _give_up(number, frame):
    raise TimeoutError


def main():
    """Answer one job after the other."""
    for dialect in ("sqlite", *["postgresql+psycopg"] * bool(importlib.util.find_spec("psycopg"))):
        sqlalchemy.create_engine(f"{dialect}://")  # imports what forks would have to import
    gc.freeze()
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
        if sys.stdin in select.select([sys.stdin, reader], [], [])[0]:  # whoever gave the job is gone
            os.kill(child, signal.SIGKILL)
        with os.fdopen(reader) as answer:
            print(answer.read().strip() or "null", flush=True)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
