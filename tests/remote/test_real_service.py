"""The client against the service itself, as two processes: what arrives is what the service has stored, bit for bit."""

import json
import threading
import time

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app
from dpmanifold.codec import answer_to_record
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.remote import RemoteError, StillPendingError
from dpmanifold.stats.query import QUERIES
from service_rooms import desk_of, service_in, write_tensors
from service_running import Nursery, Running, free_port, until

SLOT, N = 1.5, 400
# One of them every time, and all of them in the slow tier.
OFTEN = ("region",)
NAMES = [query.name for query in QUERIES.own()]
STATISTICS = [pytest.param(name, marks=() if name in OFTEN else pytest.mark.slow) for name in NAMES]
REQUEST = {
    "path": "tensors.npz", "array": "records", "space": "spd", "units": "each-record", "radius": "2",
    "labels": "side", "classes": ["left", "right"], "labels_public": True, "covariate": "age",
    "covariate_range": [0, 100],
}  # fmt: skip


@pytest.fixture(autouse=True)
def pauses():
    """Wait as long as people do: a process that was killed needs a while."""


class Office:
    """A service that runs, with data, a grant and a token."""

    def __init__(self, service, running):
        self.service, self.running = service, running
        self.ada, self.sam = desk_of(service, "ada"), desk_of(service, "sam")
        self.token = self.ada.make_token("test", 1)[1]
        self.url = service.settings.url

    def client(self):
        return dpm.connect(self.url, self.token)

    def spends(self):
        return len(self.ada.history("cohort").lines)


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    port = free_port()
    environ = {
        "DPM_SERVICE_WEB_PORT": str(port), "DPM_SERVICE_WEB_URL": f"http://127.0.0.1:{port}",
        "DPM_SERVICE_WORKER_SLOT": str(SLOT),
    }  # fmt: skip
    nursery = Nursery()
    with service_in(tmp_path_factory.mktemp("service"), **environ) as service:
        sides = np.where(np.arange(N) % 3 == 0, "left", "right")
        write_tensors(service, N, side=sides, age=np.linspace(20, 80, N))
        running = Running(nursery, service.settings, environ)
        running.start()
        running.healthy()
        found = Office(service, running)
        found.sam.make_population("cohort", dpm.GDP("40"), "record")
        found.sam.grant("cohort", "ada", dpm.GDP("40"), "a test")
        for name in ("dti", "careful"):
            asked = found.sam.register("cohort", name, REQUEST)
            until(lambda asked=asked: found.sam.registration(asked.id).state in ("done", "refused"))
            assert found.sam.registration(asked.id).state == "done", found.sam.registration(asked.id).message
        found.sam.set_terms("cohort/careful", approval=True)
        yield found
        running.stop()
    nursery.close()


@pytest.mark.parametrize("name", STATISTICS)
def test_what_arrives_is_what_is_stored(office, name):
    with office.client() as client:
        before = office.spends()
        found = getattr(client, name.replace("-", "_"))("cohort/dti", dpm.GDP("1.5"))
        handle = client.releases(limit=1)[0]
    assert isinstance(found, QUERIES.get(name).result)
    stored = office.ada.result(handle.id)
    assert answer_to_record(found) == json.loads(stored)
    assert json.dumps(answer_to_record(found), ensure_ascii=False).encode() == stored
    assert office.spends() == before + 1


def test_a_release_is_the_one_that_the_ledger_has(office):
    with office.client() as client:
        found = client.mean("cohort/dti", dpm.GDP("0.3"))
    assert office.service.ledger.compared(found).faults == ()
    assert found.privacy == dpm.GDP("0.3")


@pytest.mark.slow
def test_plans_are_those_of_the_command_line(office):
    with office.client() as client:
        ball = client.dataset("cohort/dti")["ball"]
        found = client.plan("cohort/dti", dpm.GDP("0.3"), error=0.2)
        price = client.price("cohort/dti", dpm.GDP("0.3"))
    words = ["plan", "-n", N, "--space", "spd", "--size", "2", "--radius", ball["radius"], "--mu", "0.3"]
    local = CliRunner().invoke(app, [str(word) for word in [*words, "--error", "0.2", "--json"]])
    assert found == json.loads(local.stdout)
    assert price["cost_words"]


@pytest.mark.slow
def test_balls_and_means_that_were_released_are_used(office):
    with office.client() as client:
        small = client.ball("cohort/dti", dpm.GDP("3"))
        inside = client.mean("cohort/dti", dpm.GDP("1"), ball=small)
        spread = client.variance("cohort/dti", dpm.GDP("1"), about=client.mean("cohort/dti", dpm.GDP("1")))
        other = client.mean("cohort/dti", dpm.GDP("1"), ball=dpm.Ball(dpm.SPD(2), 1.1 * np.eye(2), 1.8, "mine"))
    assert inside.ball.radius == small.value.radius
    assert spread.steps == ()
    assert other.ball.source == "mine"


@pytest.mark.slow
def test_a_web_process_that_is_killed_costs_nothing(office):
    before = office.spends()
    found = []

    def ask():
        with office.client() as client:
            found.append(client.mean("cohort/dti", dpm.GDP("0.4")))

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: office.spends() > before)
    office.running.kill("web")
    time.sleep(0.3)
    office.running.start("web")
    asking.join(60)
    office.running.healthy()
    assert office.spends() == before + 1
    assert office.service.ledger.compared(found[0]).faults == ()


def test_what_waits_for_approval(office):
    with office.client() as client:
        before = office.spends()
        with pytest.raises(StillPendingError, match="approval") as caught:
            client.mean("cohort/careful", dpm.GDP("0.2"))
        assert office.spends() == before
        office.sam.approve(caught.value.pending.id, "fine")
        found = client.mean("cohort/careful", dpm.GDP("0.2"))  # the same call, under the same key
        assert office.service.ledger.compared(found).faults == ()
        assert office.spends() == before + 1
        with pytest.raises(StillPendingError) as caught:
            client.mean("cohort/careful", dpm.GDP("0.2"))
        office.sam.refuse(caught.value.pending.id, "not today")
        with pytest.raises(RemoteError, match="not today"):
            caught.value.pending.result()


def test_refusals(office):
    with office.client() as client:
        with pytest.raises(dpm.BudgetError):
            client.mean("cohort/dti", dpm.GDP("40.1"))
        with pytest.raises(dpm.PromiseError):
            client.region("cohort/dti", dpm.PureDP("0.5"))
        with pytest.raises(InvalidArgumentError, match="nothing here"):
            client.mean("cohort/other", dpm.GDP("0.1"))
        client.mean("cohort/dti", dpm.GDP("0.1"), key="first")
        with pytest.raises(InvalidArgumentError, match="stands for another question"):
            client.mean("cohort/dti", dpm.GDP("0.2"), key="first")
    with pytest.raises(RemoteError, match="does not take the token"):
        dpm.connect(office.url, "dpm_wrong").datasets()


@pytest.mark.slow
def test_the_command_line(office, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words, stdin=None):
        done = CliRunner().invoke(app, ["remote", *map(str, words)], input=stdin, env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        return done.output

    call("login", office.url, stdin=f"{office.token}\n")
    assert "cohort/dti" in call("datasets")
    assert "It costs" in call("plan", "mean", "cohort/dti", "--mu", "0.3")
    assert "more like it" in call("plan", "region", "cohort/dti", "--mu", "0.3")
    call("submit", "mean", "cohort/dti", "--mu", "0.3", "--out", "mean.json", "--picture", "mean.png", "--quiet")
    handle = json.loads(call("releases", "--json", "--limit", "1"))[0]
    assert json.loads((tmp_path / "mean.json").read_text()) == json.loads(office.ada.result(handle["id"]))
    call("fetch", handle["id"], "--out", "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "mean.json").read_bytes()
    assert "released" in call("history", "cohort")
