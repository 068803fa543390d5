"""What takes computing waits for its turn, and nothing else waits for it."""

import asyncio
import threading
import time

import pytest
from starlette.concurrency import run_in_threadpool

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service import forecasts
from dpmanifold.service.desk import Desk
from dpmanifold.service.forecasts import Forecasts
from dpmanifold.service.http_errors import TooMany
from dpmanifold.service.web import turns
from dpmanifold.service.web.app import make_app
from dpmanifold.service.web.turns import CURVE, PLAN, Turns
from service_rooms import desk_of, service_in
from service_web import REF, SMALL, Rooms, app_of, asking, cookie, rejected

pytestmark = pytest.mark.security


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("turns")) as service:
        yield Rooms(service)


class Work:
    """Calls that take a moment, and how many there were at once."""

    def __init__(self):
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self):
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.01)
        with self._lock:
            self.now -= 1
        return self.most


async def _all_at_once(made, asked, work):
    return await asyncio.gather(*(made.run(who, kind, work) for who, kind in asked), return_exceptions=True)


@pytest.mark.parametrize(
    ("asked", "most"),
    [
        ([("ada", CURVE)] * 6, 1),
        ([("ada", CURVE)] * 3 + [("ada", PLAN)] * 3, 2),
        ([(f"person-{number}", CURVE) for number in range(8)], 2),
    ],
    ids=["one person", "plans do not wait for curves", "many people"],
)
def test_a_few_compute_at_once_and_of_each_person_one(asked, most):
    made, work = Turns(), Work()
    found = asyncio.run(_all_at_once(made, asked, work))
    assert all(isinstance(one, int) for one in found)
    assert work.most == most
    assert not made._of  # nobody is remembered who waits for nothing
    assert not made._held


def test_who_gets_no_turn_is_told_when_to_come_back(monkeypatch):
    monkeypatch.setattr(turns, "PATIENCE", 0.05)
    begun = threading.Event()
    made = Turns()

    async def both():
        first = asyncio.create_task(made.run("ada", CURVE, lambda: begun.wait(5)))
        await asyncio.sleep(0.01)
        with pytest.raises(TooMany) as caught:
            await made.run("ada", CURVE, lambda: None)
        assert caught.value.retry_after >= 1
        assert await made.run("bob", CURVE, lambda: "his") == "his"
        begun.set()
        await first

    asyncio.run(both())
    assert not made._of


def _bearer(rooms, name):
    return [("authorization", f"Bearer {rooms.tokens[name]}")]


async def _under_curves(rooms, app, over):
    """Ask for more curves than there are threads, then for something else; return how that was answered."""
    path = f"/api/v1/curves?dataset={REF}&statistic=mean"
    waiting = [asyncio.create_task(asking(app, "GET", path, headers=_bearer(rooms, "ada"))) for _ in range(45)]
    page = f"/plan/{REF}/curve.json"
    value, _ = rooms.service.logins.begin(rooms.service.accounts.find("sam"))
    waiting += [asyncio.create_task(asking(app, "GET", page, headers=[cookie(value)])) for _ in range(5)]
    await asyncio.sleep(0.1)
    rest = ("/health", "/login", "/api/v1/me", "/api/v1/datasets")
    found = [(await asking(app, "GET", where, headers=_bearer(rooms, "ann"))).status for where in rest]
    answered = not over.is_set()
    await asyncio.sleep(turns.PATIENCE)
    over.set()
    return found, answered, [one.status for one in await asyncio.gather(*waiting)]


def _assert_the_rest_goes_on(rooms, monkeypatch, seconds):
    monkeypatch.setattr(turns, "PATIENCE", 0.2)
    over = threading.Event()

    def curve(*_, **__):
        if not over.wait(seconds):
            over.set()  # nobody answered all the rest meanwhile
        raise InvalidArgumentError("not so.")

    monkeypatch.setattr(Desk, "curve", curve)
    found, answered, curves = asyncio.run(_under_curves(rooms, make_app(rooms.service), over))
    assert found == [200] * 4
    assert answered
    assert sorted(curves) == [400] * 2 + [429] * 48  # all but one of either person


def test_signing_in_and_looking_things_up_do_not_wait_for_curves(rooms, monkeypatch):
    _assert_the_rest_goes_on(rooms, monkeypatch, 60)


def test_an_application_whose_curves_take_all_threads_is_noticed(rooms, monkeypatch):
    async def at_once(self, who, kind, make):
        return await run_in_threadpool(make)

    monkeypatch.setattr(Turns, "run", at_once)
    with rejected():
        _assert_the_rest_goes_on(rooms, monkeypatch, 1.5)


@pytest.mark.parametrize("path", ["/plans", "/prices", "/releases"])
def test_whatever_computes_waits_for_its_turn(rooms, monkeypatch, path):
    asked = []

    async def noted(self, who, kind, make):
        asked.append((who, kind))
        raise TooMany("Wait.", retry_after=5)

    monkeypatch.setattr(Turns, "run", noted)
    app = app_of(rooms.service, monkeypatch)
    body = f'{{"dataset": "{REF}", "question": {str(SMALL).replace(chr(39), chr(34))}'
    body += ', "key": "turn"}' if path == "/releases" else "}"
    headers = [*_bearer(rooms, "ada"), ("content-type", "application/json")]
    found = asyncio.run(asking(app, "POST", f"/api/v1{path}", headers=headers, pieces=[body.encode()]))
    assert (found.status, found["retry-after"]) == (429, "5")
    assert asked == [("ada", PLAN)]


# -------------------------------------------------------------------- what is computed


def test_what_several_want_is_computed_once():
    made, calls, barrier = Forecasts(), [], threading.Barrier(6)

    def make():
        calls.append(1)
        time.sleep(0.05)
        return {"made": 1}

    def wanted():
        barrier.wait()
        found.append(made._once("key", make))

    found = []
    threads = [threading.Thread(target=wanted) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert calls == [1]
    assert found == [{"made": 1}] * 6


def test_what_was_refused_is_tried_again():
    made = Forecasts()

    def refused():
        raise InvalidArgumentError("not so.")

    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match="not so"):
            made._once("key", refused)
    assert made._once("key", lambda: 3) == 3


@pytest.mark.parametrize("delta", ["1.0001e-7", "12e-8", "1e-13", "1e-2", "0", "-1e-6", "nan", "sNaN", "x", ""])
def test_curves_are_of_a_few_deltas(rooms, delta):
    with pytest.raises(InvalidArgumentError, match="delta of a curve must have one digit"):
        desk_of(rooms.service, "ada").curve(REF, "mean", "ApproxDP", delta=delta)


def test_a_delta_is_the_same_however_it_is_written(rooms, monkeypatch):
    monkeypatch.setattr(forecasts, "GRID", ["1"])
    ada = desk_of(rooms.service, "ada")
    assert ada.curve(REF, "variance", "ApproxDP", delta="0.0000010") is ada.curve(REF, "variance", "ApproxDP")
