"""What the service takes: plan, list and release at one and at eight clients, and what both processes hold afterwards.

    python benchmarks/service.py [--releases 1000] [--requests 200] [--slot 0.6] [--postgresql URL]

The real thing: `dpm service run` with its web process and its worker, records registered by the worker, clients with
tokens over loopback, each in a thread with a connection of its own. Times are those of whole requests, p50 and p95 in
milliseconds:

- list page: the first page of the web site, signed in; list: the same by the API
- plan page: the page with the slider; plan: one plan by the API, of a new promise each time; curve: the slider's
- ask: POST of a question, until it is paid for, committed and witnessed; published: from there until it is published,
  which is a slot's length by design where nobody else asks

Then releases are asked for until there are as many as wanted, and the memory (resident set) of the web process and of
the worker is measured at a tenth, and at the end: neither may grow with the number of releases.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import itertools
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
from rich.console import Console
from rich.table import Table

import dpmanifold as dpm
from dpmanifold.service.service import Service
from dpmanifold.service.settings import Settings

CONSOLE = Console(width=110)
CLIENTS = (1, 8)
PASSWORD = "four words of no sense"
REF = "cohort/tensors"
GROWTH = 1.1  # how much more memory the end may take than a tenth of the way
_fresh = itertools.count(1)


def main() -> None:
    asked = options()
    with tempfile.TemporaryDirectory(prefix="dpm-service-") as folder, serving(pathlib.Path(folder), asked) as place:
        times = {clients: measured(place, clients, asked.requests) for clients in CLIENTS}
        table = Table(title=f"Milliseconds, p50 / p95, {asked.requests} requests each")
        table.add_column("request")
        for clients in CLIENTS:
            table.add_column(f"{clients} client{'s' if clients > 1 else ''}", justify="right")
        for name in times[1]:
            table.add_row(name, *(quantiles(times[clients][name]) for clients in CLIENTS))
        CONSOLE.print(table)
        grown = filled(place, asked.releases)
    sys.exit(1 if grown else 0)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--releases", type=int, default=1000)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--slot", type=float, default=0.6)
    parser.add_argument("--postgresql", help="the address of a database for both the service and its ledger")
    return parser.parse_args()


class Place:
    """A service that runs, and how to ask it."""

    def __init__(self, url: str, tokens: list[str], process: subprocess.Popen[bytes], slot: float) -> None:
        self.url, self.tokens, self.process, self.slot = url, tokens, process, slot

    def client(self, number: int) -> httpx.Client:
        """Return a client of the API, in the name of one of the analysts."""
        token = self.tokens[number % len(self.tokens)]
        return httpx.Client(base_url=f"{self.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=60)

    def browser(self) -> httpx.Client:
        """Return a client that has signed in as a browser does."""
        client = httpx.Client(base_url=self.url, timeout=60, headers={"Origin": self.url})
        found = re.search(r'name="csrf" value="([^"]+)"', client.get("/login").text)
        assert found is not None
        # The cookies are Secure; browsers take them from loopback, and httpx is told to.
        for cookie in client.cookies.jar:
            cookie.secure = False
        done = client.post("/login", data={"csrf": found[1], "name": "ada", "password": PASSWORD})
        assert done.status_code == 303, done.text
        for cookie in client.cookies.jar:
            cookie.secure = False
        return client

    def processes(self) -> dict[str, int]:
        """The web process and the worker, by what they were started with."""
        found = {}
        for child in children(self.process.pid):
            words = pathlib.Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            for role in ("web", "worker"):
                if role.encode() in words:
                    found[role] = child
        return found


def children(process: int) -> list[int]:
    path = pathlib.Path(f"/proc/{process}/task/{process}/children")
    return [int(word) for word in path.read_text().split()]


@contextlib.contextmanager
def serving(folder: pathlib.Path, asked: argparse.Namespace) -> Iterator[Place]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    path = folder / "dpm-service.toml"
    Settings.write_example(path)
    url = f"http://127.0.0.1:{port}"
    environ = {
        "DPM_SERVICE_WEB_PORT": str(port),
        "DPM_SERVICE_WEB_URL": url,
        "DPM_SERVICE_WORKER_SLOT": str(asked.slot),
    }
    if asked.postgresql:
        environ |= {f"DPM_SERVICE_{table}_DATABASE": asked.postgresql for table in ("SERVICE", "LEDGER")}
    settings = Settings.read(path, environ)
    write_records(settings.root)
    with Service.create(settings) as service:
        tokens = furnished(service)
        command = [sys.executable, "-m", "dpmanifold.cli", "service", "run", "--config", str(path)]
        with open(folder / "log", "wb") as log:
            process = subprocess.Popen(command, env={**os.environ, **environ}, stdout=log, stderr=log)
        try:
            until(lambda: httpx.get(f"{url}/health").json()["status"] == "ok", 60)
            sam = service.desk(service.accounts.find("sam"))  # type: ignore[arg-type]
            wanted = {"path": "tensors.npy", "space": "spd", "units": "each-record", "radius": "2", "source": "a guess"}
            done = sam.register("cohort", "tensors", wanted)
            until(lambda: sam.registration(done.id).state in ("done", "refused"), 60)
            assert sam.registration(done.id).state == "done", sam.registration(done.id).message
            yield Place(url, tokens, process, asked.slot)
        finally:
            process.terminate()
            process.wait(60)


def write_records(root: pathlib.Path) -> None:
    root.mkdir(parents=True, exist_ok=True)
    parts = 0.3 * np.random.default_rng(0).standard_normal((2000, 3, 3))
    np.save(root / "tensors.npy", np.eye(3) + parts @ parts.swapaxes(1, 2))


def furnished(service: Service) -> list[str]:
    """Make the people, their grants and a token for each of eight analysts."""
    names = ["ada", *(f"analyst-{number}" for number in range(1, max(CLIENTS)))]
    service.accounts.add("sam", "steward", PASSWORD)
    sam = service.desk(service.accounts.find("sam"))  # type: ignore[arg-type]
    sam.make_population("cohort", dpm.GDP("100"), "record")
    tokens = []
    for name in names:
        actor = service.accounts.add(name, "analyst", PASSWORD)
        sam.grant("cohort", name, dpm.GDP("100"), "a benchmark")
        tokens.append(service.desk(actor).make_token("benchmark", 1)[1])
    return tokens


def until(holds: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(httpx.TransportError):
            if holds():
                return
        time.sleep(0.05)
    raise TimeoutError("the service did not come up")


# -------------------------------------------------------------------- times


def measured(place: Place, clients: int, requests: int) -> dict[str, list[float]]:
    """Return the times of each kind of request, in milliseconds, from so many clients at once."""
    first = place.browser()  # one sign-in; eight clients share it, each with a connection of its own
    cookies = dict(first.cookies)

    def pages(number: int) -> httpx.Client:
        return httpx.Client(base_url=place.url, cookies=cookies, timeout=60)

    plan_page = "/plan/cohort/tensors?statistic=mean"
    kinds: dict[str, tuple[Callable[[int], httpx.Client], Callable[[httpx.Client], httpx.Response]]] = {
        "list page": (pages, lambda client: client.get("/")),
        "list": (place.client, lambda client: client.get("/datasets")),
        "list of releases": (place.client, lambda client: client.get("/releases")),
        "plan page": (pages, lambda client: client.get(plan_page)),
        "plan": (place.client, lambda client: client.post("/plans", json=question())),
        "curve": (place.client, lambda client: client.get(f"/curves?dataset={REF}&statistic=mean&kind=GDP")),
    }
    found = {name: timed(*how, clients, requests) for name, how in kinds.items()}
    few = max(clients, min(requests, 40) // 8 * 8)
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        both = list(pool.map(lambda number: asked_and_waited(place, number), range(few)))
    found["ask"], found["published after ask"] = ([1000 * pair[which] for pair in both] for which in (0, 1))
    return found


def asked_and_waited(place: Place, number: int) -> tuple[float, float]:
    """Ask for a release and wait until it is out; return how long each took, in seconds."""
    seconds, answer, at = ask(place, number)
    return seconds, published(place, number, answer["id"]) - at


def question() -> dict[str, Any]:
    amount = f"0.1{next(_fresh):07d}"
    return {"dataset": REF, "question": {"statistic": "mean", "privacy": {"kind": "GDP", "mu": amount}}}


def timed(
    make: Callable[[int], httpx.Client], send: Callable[[httpx.Client], httpx.Response], clients: int, requests: int
) -> list[float]:
    def one(number: int) -> list[float]:
        times = []
        with make(number) as client:
            assert send(client).status_code == 200  # one that is not counted, which opens the connection
            for _ in range(requests // clients):
                begun = time.perf_counter()
                answer = send(client)
                times.append(1000 * (time.perf_counter() - begun))
                assert answer.status_code == 200, answer.text
        return times

    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return [time for times in pool.map(one, range(clients)) for time in times]


def ask(place: Place, number: int) -> tuple[float, dict[str, Any], float]:
    with place.client(number) as client:
        client.get("/me")
        body = {"key": f"k{next(_fresh)}", **question()}
        begun = time.perf_counter()
        answer = client.post("/releases", json=body)
        seconds = time.perf_counter() - begun
        assert answer.status_code == 202, answer.text
        return seconds, answer.json(), time.perf_counter()


def published(place: Place, number: int, release: str) -> float:
    """Wait until a release is out, and return when that was."""
    with place.client(number) as client:
        while True:
            seen = client.get(f"/releases/{release}").json()
            if seen["state"] == "released":
                return time.perf_counter()
            assert seen["state"] == "pending", seen
            time.sleep(max(0.02, min(seen["seconds"] or 0.02, 5.0)))


def quantiles(times: list[float]) -> str:
    return f"{np.quantile(times, 0.5):,.1f} / {np.quantile(times, 0.95):,.1f}"


# -------------------------------------------------------------------- memory


def filled(place: Place, releases: int) -> bool:
    """Ask for many releases, one after the other slot; return whether a process has grown."""
    seen: dict[str, list[float]] = {"web": [], "worker": []}
    begun = time.perf_counter()
    marks = {max(1, releases // 10), releases}
    lost = 0
    for number in range(1, releases + 1):
        _, answer, _ = ask(place, number)
        if number % 20 == 0 or number in marks:
            with place.client(number) as client:
                while (last := client.get(f"/releases/{answer['id']}").json())["state"] == "pending":
                    time.sleep(min(5.0, max(0.05, last["seconds"] or 0.05)))
                lost += last["state"] == "lost"
        if number in marks:
            for role, process in place.processes().items():
                seen[role].append(resident(process))
    spent = time.perf_counter() - begun
    table = Table(title=f"Megabytes in memory, {releases:,} releases in {spent:,.0f} s, slots of {place.slot:g} s")
    for heading in ("process", f"after {min(marks):,}", f"after {releases:,}", "ratio"):
        table.add_column(heading, justify="left" if heading == "process" else "right")
    grown = lost > 0
    for role, (first, last) in ((role, (sizes[0], sizes[-1])) for role, sizes in seen.items()):
        table.add_row(role, f"{first:,.0f}", f"{last:,.0f}", f"{last / first:.2f}")
        grown |= last > GROWTH * first
    CONSOLE.print(table)
    if lost:
        CONSOLE.print(f"{lost} of those looked at were lost: the slot is too short for this machine.")
    return grown


def resident(process: int) -> float:
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    main()
