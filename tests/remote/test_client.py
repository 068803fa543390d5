"""The client against a service with faults and lies: nobody pays twice, and what arrives is what was asked."""

import inspect
import json
import logging
import os
import signal
import ssl
import subprocess
import sys
import threading
import time

import client_stub
import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.codec import answer_to_record
from dpmanifold.errors import InvalidArgumentError, MissingPackageError
from dpmanifold.remote import AnswerError, Client, Pending, RemoteError, StillPendingError, transport
from dpmanifold.remote.client import _latest
from dpmanifold.remote.journal import Journal
from dpmanifold.stats.query import QUERIES
from remote.fake_service import BALL, BY_CLASS, PLAIN, SPACE, TOKEN, serving

pytestmark = pytest.mark.security

PROMISE = dpm.GDP("0.7")
EVERY = [*PLAIN, *BY_CLASS, "two-sample-test", "regression"]


# -------------------------------------------------------------------- results


@pytest.mark.parametrize("name", EVERY)
def test_every_call_returns_what_the_service_has_stored(client, service, name):
    found = getattr(client, name.replace("-", "_"))("cohort/dti", PROMISE)
    stored = next(iter(service.rows.values()))["record"]
    assert answer_to_record(found) == stored
    assert isinstance(found, QUERIES.get(name).result)
    assert len(service.payments) == 1


@pytest.mark.parametrize("name", [name for name in EVERY if "refine" in QUERIES.get(name).defaults])
def test_with_and_without_a_smaller_ball(client, service, name):
    default = QUERIES.get(name).defaults["refine"]
    found = getattr(client, name.replace("-", "_"))("cohort/dti", PROMISE, refine=not default)
    assert next(iter(service.rows.values()))["asked"][1]["options"] == {"refine": not default}
    assert answer_to_record(found) == next(iter(service.rows.values()))["record"]


def test_any_registered_statistic_by_name(client):
    assert client.statistic("cohort/dti", PROMISE, statistic="variance").statistic == "variance"
    with pytest.raises(InvalidArgumentError, match="no such"):
        client.statistic("cohort/dti", PROMISE, statistic="no such")


@pytest.mark.parametrize("query", QUERIES.own(), ids=lambda query: query.name)
def test_options_are_those_of_the_library(query):
    method = getattr(Client, query.name.replace("-", "_"))
    here, there = inspect.signature(method).parameters, inspect.signature(query.call).parameters
    assert list(here) == ["self", "dataset", "privacy", "ball", "key", "wait", "timeout", *query.defaults]
    assert all(here[option].default == there[option].default for option in query.defaults)
    assert query.call.__name__ == f"private_{method.__name__}"
    assert query.call.__name__ in method.__doc__


def test_types_of_the_methods_are_those_of_the_queries():
    """`python tools/client_stub.py` writes them anew."""
    assert client_stub.STUB.read_text(encoding="utf-8") == client_stub.stub()


def test_there_is_no_call_without_a_query(client):
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        client.no_such("cohort/dti", PROMISE)


@pytest.mark.parametrize("option", ["units", "invalid", "rng", "budget", "confirm", "curator", "project", "arithmetic"])
def test_what_is_about_records_cannot_be_said(client, service, option):
    with pytest.raises(InvalidArgumentError, match=option):
        client.mean("cohort/dti", PROMISE, **{option: None})
    assert service.rows == {}


def test_options_are_plain_and_only_what_differs_is_said(client, service):
    client.region("cohort/dti", PROMISE, level=np.float64(0.9), estimand=None, refine=False)
    assert next(iter(service.rows.values()))["asked"][1] == {
        "statistic": "region", "privacy": {"kind": "GDP", "mu": "0.7"}, "options": {"level": 0.9}, "ball": None,
    }  # fmt: skip
    with pytest.raises(InvalidArgumentError, match="shape must be text or a number"):
        client.mean("cohort/dti", PROMISE, noise_shape=np.eye(3))
    with pytest.raises(InvalidArgumentError, match="level must be text or a number"):
        client.region("cohort/dti", PROMISE, level=float("nan"))


def test_a_mechanism_is_said_by_its_name(client, service):
    found = client.mean("cohort/dti", PROMISE, mechanism=dpm.mechanisms.MECHANISMS.get("riemannian-laplace"))
    assert found.mechanism == "riemannian-laplace"


def test_a_public_ball_is_said(client, service):
    ball = dpm.Ball(SPACE, 1.1 * np.eye(2), 1.5, "another atlas")
    assert client.mean("cohort/dti", PROMISE, ball=ball).ball == ball
    with pytest.raises(InvalidArgumentError, match="must be on the space"):
        client.mean("cohort/dti", PROMISE, ball=dpm.Ball(dpm.SPD(2, metric="riemann"), np.eye(2), 1.0))


def test_a_released_ball_and_a_released_mean_are_said_by_id_handle_or_release(client, service):
    small = client.ball("cohort/dti", dpm.GDP(3.0))
    mean = client.mean("cohort/dti", PROMISE)
    handle = client.releases()[1]
    assert handle.view["statistic"] == "ball"
    for given in (small, handle, handle.id):
        assert client.mean("cohort/dti", PROMISE, ball=given).ball.radius == small.value.radius
    assert client.variance("cohort/dti", PROMISE, about=mean).steps == ()
    local = dpm.private_mean(np.zeros((9, 1)), dpm.Ball(dpm.Euclidean(1), [0.0], 1.0), PROMISE, units=dpm.EACH_RECORD)
    with pytest.raises(InvalidArgumentError, match="about must have been released at this service"):
        client.variance("cohort/dti", PROMISE, about=local)


def test_what_there_is(client):
    assert [one["ref"] for one in client.datasets()] == ["cohort/dti"]
    assert client.dataset("cohort/dti")["n"] == 600
    assert client.dataset("cohort/dti@1")["id"] == "dti@1"
    assert [line["sequence"] for line in client.history("cohort")["lines"]] == [1, 2, 3]
    plan = client.plan("cohort/dti", PROMISE, statistic="region", level=0.9)
    assert (plan["path"], plan["question"]["options"]) == ("plans", {"level": 0.9})
    assert client.plan("cohort/dti", PROMISE, error=0.1)["error"] == 0.1
    assert client.price("cohort/dti", PROMISE)["path"] == "prices"


@pytest.mark.parametrize("ref", ["dti", "a/b/c", "/dti", "cohort/", 7])
def test_a_data_set_is_named_by_population_and_name(client, ref):
    with pytest.raises(InvalidArgumentError, match="population/name"):
        client.mean(ref, PROMISE)


def test_pages_of_releases(client, service):
    for number in range(3):
        client.mean("cohort/dti", PROMISE, key=f"k{number}")
    first = client.releases(limit=2)
    assert [one.key for one in first] == ["k2", "k1"]
    assert [one.key for one in client.releases(before=first[-1].id)] == ["k0"]
    assert client.release(first[0].id).result().to_dict() == service.rows["k2"]["record"]


# -------------------------------------------------------------------- nobody pays twice


def pays_once(client, service, faults):
    """Ask until there is an answer, as a person would; return whether one payment was made, under one key."""
    service.faults.extend(faults)
    for _ in range(5):
        try:
            client.mean("cohort/dti", PROMISE)
            break
        except RemoteError:
            continue
    keys = {json.loads(body)["key"] for method, _, _, body in service.seen if method == "POST"}
    return len(service.payments) == 1 and len(keys) == 1


TROUBLE = {
    "dropped before": ["before"],
    "dropped after paying": ["after"],
    "half an answer": ["half"],
    "delivered twice": ["twice"],
    "storm": [503] * 6,
    "storm and drop": [503, 502, "after", 503, "half"],
    "longer than the patience": ["after", *[503] * 20],
    "dropped while waiting": [None, "before", "half", 502],
}


@pytest.mark.parametrize("faults", TROUBLE.values(), ids=TROUBLE)
def test_whatever_breaks_it_is_paid_for_once(client, service, faults):
    assert pays_once(client, service, faults)


class NewKeyOnRetry(Client):
    """Wrong: whatever is sent again has a key of its own."""

    def _post(self, path, record):
        from dpmanifold.privacy.budget_accounts import random_key

        for _ in range(4):
            try:
                return self._transport.post(path, json.dumps(record).encode(), "it")
            except RemoteError:
                record = {**record, "key": random_key()}
        raise RemoteError("no answer")


class KeyAfterSending(Client):
    """Wrong: the key is written down once the service has taken it."""

    @property
    def _journal(self):
        journal, late = Journal.of(self.url, self.account), self

        class Late(Journal):
            def key_for(self, request, key=None):
                from dpmanifold.privacy.budget_accounts import random_key

                late.asked = request, random_key()
                return late.asked[1]

        return Late(journal.path)

    def _post(self, path, record):
        found = super()._post(path, record)
        Journal.of(self.url, self.account).key_for(*self.asked)
        return found


@pytest.mark.parametrize("wrong", [NewKeyOnRetry, KeyAfterSending])
def test_wrong_clients_are_found_out(url, service, wrong, monkeypatch):
    if wrong is NewKeyOnRetry:  # its own attempts are the only ones
        monkeypatch.setattr(transport, "PAUSES", ())
    client = wrong(dpm.connect(url, TOKEN)._transport)
    assert not pays_once(client, service, ["after", *[503] * 20] if wrong is KeyAfterSending else ["after"])


def test_wrong_clients_are_well_where_nothing_breaks(url, service):
    assert pays_once(NewKeyOnRetry(dpm.connect(url, TOKEN)._transport), service, [])


def test_the_key_is_on_the_disk_when_the_service_sees_it(client, service):
    journal, seen = Journal.of(client.url, "ada"), []

    def look(handler):
        asked = json.loads(service.seen[-1][3])
        seen.append((asked["key"], journal.find(asked["key"])))
        handler.send(503, {})

    service.faults.append(look)
    client.mean("cohort/dti", PROMISE)
    (key, noted), payments = seen[0], service.payments
    assert payments == [key]
    assert noted.request["question"]["statistic"] == "mean"
    assert journal.find(key).answered


def test_once_answered_the_same_call_is_a_new_release(client, service):
    one, two = client.mean("cohort/dti", PROMISE), client.mean("cohort/dti", PROMISE)
    assert len(set(service.payments)) == 2
    assert one.to_dict() != two.to_dict()


def test_a_key_that_is_given_is_used_and_gives_the_same_again(client, service):
    one = client.mean("cohort/dti", PROMISE, key="mean-v1")
    assert client.mean("cohort/dti", PROMISE, key="mean-v1").to_dict() == one.to_dict()
    assert service.payments == ["mean-v1"]
    with pytest.raises(InvalidArgumentError, match=r"another question\. The key is 'mean-v1'"):
        client.mean("cohort/dti", dpm.GDP("0.8"), key="mean-v1")


def test_a_service_that_does_not_answer_is_left_and_the_key_is_told(client, service, pauses):
    service.faults.extend(["after", *[503] * 6])
    with pytest.raises(RemoteError, match="does not answer, after 7 attempts") as caught:
        client.mean("cohort/dti", PROMISE)
    assert repr(service.payments[0]) in str(caught.value)
    assert len([wait for wait in pauses if wait >= 0.25]) == 6
    assert pauses[-1] > 4 * pauses[0]
    assert client.mean("cohort/dti", PROMISE).receipt is not None
    assert len(service.payments) == 1


def test_a_service_says_how_long_to_wait(client, service, pauses):
    service.faults.append(lambda handler: handler.send(429, {}, Retry_After="7"))
    client.mean("cohort/dti", PROMISE)
    assert 7 <= max(pauses) <= 7 * 1.25


def test_an_interrupted_call_leaves_its_key(client, service, monkeypatch):
    service.polls = 10**6

    def interrupted(seconds):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("dpmanifold.remote.pending._sleep", interrupted)
        with pytest.raises(KeyboardInterrupt) as caught:
            client.mean("cohort/dti", PROMISE)
    assert any(repr(service.payments[0]) in note for note in caught.value.__notes__)
    service.rows[service.payments[0]]["polls"] = 0
    assert client.mean("cohort/dti", PROMISE).receipt is not None
    assert len(service.payments) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("when", ["paid", "waiting"])
def test_a_killed_client_pays_once(service, url, home, when):
    """Killed when the service has paid and before it answers, or while it waits for the publication."""
    gate = threading.Event()
    if when == "paid":

        def hang(handler):
            service.ask(json.loads(service.seen[-1][3]))
            gate.wait(60)

        service.faults.append(hang)
    else:
        service.polls = 10**6
    code = (
        "import dpmanifold as dpm\n"
        f"dpm.connect({url!r}, {TOKEN!r}).mean('cohort/dti', dpm.GDP('0.7'))\n"
    )  # fmt: skip
    environment = {**os.environ, "XDG_STATE_HOME": str(home / "state")}
    with subprocess.Popen([sys.executable, "-c", code], env=environment) as process:
        deadline = time.monotonic() + 60
        while not service.payments and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.2)
        process.kill()
    gate.set()
    assert len(service.payments) == 1
    service.rows[service.payments[0]]["polls"] = 0
    again = dpm.connect(url, TOKEN).mean("cohort/dti", PROMISE)
    assert again.to_dict() == service.rows[service.payments[0]]["record"]
    assert len(service.payments) == 1


def test_threads_that_ask_the_same_share_a_release(client, service):
    found, barrier = [], threading.Barrier(4)
    service.slot = 0.5

    def ask():
        barrier.wait()
        found.append(client.mean("cohort/dti", PROMISE).to_dict())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(service.payments) == 1
    assert all(one == found[0] for one in found)


def test_without_a_journal_nothing_is_sent(client, service, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(InvalidArgumentError, match="nothing was sent"):
        client.mean("cohort/dti", PROMISE)
    assert not any(method == "POST" for method, *_ in service.seen)


def test_an_answer_is_returned_even_if_the_journal_is_gone(client, service, monkeypatch):
    def broken(self, key):
        raise InvalidArgumentError("the journal cannot be written")

    monkeypatch.setattr(Journal, "answered", broken)
    one, two = client.mean("cohort/dti", PROMISE), client.mean("cohort/dti", PROMISE)
    assert one.to_dict() == two.to_dict()
    assert len(service.payments) == 1


def test_a_new_token_has_the_same_journal(client, service, url):
    service.faults.extend(["after", *[503] * 6])
    with pytest.raises(RemoteError):
        client.mean("cohort/dti", PROMISE)
    service.token = "dpm_another"
    dpm.connect(url, "dpm_another").mean("cohort/dti", PROMISE)
    assert len(service.payments) == 1


# -------------------------------------------------------------------- what becomes of it


def test_a_handle_for_those_who_do_not_wait(client, service):
    service.polls = 3
    handle = client.mean("cohort/dti", PROMISE, wait=False)
    assert isinstance(handle, Pending)
    assert handle.publishes.startswith("2026")
    assert handle.state == "pending"
    again = client.mean("cohort/dti", PROMISE, wait=False)
    assert again.id == handle.id  # its answer was not taken yet
    assert handle.result().to_dict() == service.rows[handle.key]["record"]
    assert handle.state == "released"
    assert handle.result() is handle.result()
    assert client.mean("cohort/dti", PROMISE, wait=False).id != handle.id
    assert handle.id in repr(handle)


def test_a_time_that_is_over(client, service):
    service.polls = 10**6
    with pytest.raises(StillPendingError, match="not published yet") as caught:
        client.mean("cohort/dti", PROMISE, timeout=0.05)
    service.rows[service.payments[0]]["polls"] = 0
    assert caught.value.pending.result().receipt is not None
    assert len(service.payments) == 1


def test_waiting_for_approval_is_said(client, service):
    service.state = "waiting"
    with pytest.raises(StillPendingError, match="approval") as caught:
        client.mean("cohort/dti", PROMISE)
    assert service.payments == []
    assert caught.value.pending.state == "waiting"
    with pytest.raises(StillPendingError):
        client.mean("cohort/dti", PROMISE, timeout=0.05)
    assert len(service.rows) == 1  # under the same key
    next(iter(service.rows.values()))["state"] = "refused"
    with pytest.raises(RemoteError, match=r"refused by a steward: too much\. Nothing was spent"):
        client.mean("cohort/dti", PROMISE)


def test_a_lost_release(client, service):
    service.state = "lost"
    with pytest.raises(dpm.ReleaseLostError, match="is lost") as caught:
        client.mean("cohort/dti", PROMISE, key="mean-v1")
    assert "mean-v1" in str(caught.value)


def test_refusals_have_the_classes_of_the_library(client, service):
    with pytest.raises(dpm.BudgetError, match="more than what is left"):
        client.mean("cohort/dti", dpm.GDP(9.5))
    for kind, error in (("invalid", InvalidArgumentError), ("guarantee", dpm.PromiseError)):
        service.faults.append(lambda handler, kind=kind: handler.send(400, {"error": {"kind": kind, "message": "No."}}))
        with pytest.raises(error, match=r"^No\.$"):
            client.mean("cohort/dti", PROMISE)
    assert service.payments == []
    with pytest.raises(InvalidArgumentError, match="datasets/cohort/none"):
        client.dataset("cohort/none")


def test_a_fault_of_the_service_names_the_key(client, service):
    message = {"error": {"kind": "fault", "message": f"incident 7\x1b[31m {TOKEN}"}}
    service.faults.append(lambda handler: handler.send(500, message))
    with pytest.raises(RemoteError, match=r"status 500: incident 7 \[31m \(the token\)") as caught:
        client.mean("cohort/dti", PROMISE)
    assert "The request has the key" in str(caught.value)


# -------------------------------------------------------------------- lies


def changed(record, **entries):
    """Return a record that says something else, without the answers that would give it away."""
    return {name: entry for name, entry in {**record, **entries}.items() if name != "answers"}


def another(service, **what):
    """Return the record of another release, honestly made."""
    question = {"statistic": "mean", "options": {}, "ball": None, **what}
    privacy = what.pop("privacy", PROMISE)
    key = f"other-{len(service.payments)}-{sorted(what)}"
    return json.loads(json.dumps(answer_to_record(service.released(question, privacy, key))))


LIES = {
    "another promise": lambda service, record: another(service, privacy=dpm.GDP("0.9")),
    "another statistic": lambda service, record: another(service, statistic="median"),
    "another class": lambda service, record: another(service, statistic="region"),
    "another ball": lambda service, record: another(
        service, ball={"center": np.eye(2).tolist(), "radius": 1.0, "source": ""}
    ),
    "another mean": lambda service, record: another(service, options={"estimand": "tangent"}),
    "another number of units": lambda service, record: json.loads(
        json.dumps(
            dpm.private_mean(
                SPACE.random_point(50, rng=0), BALL, PROMISE, units=dpm.EACH_RECORD, budget=service.cohort
            ).to_dict()
        )
    ),
    "another release": lambda service, record: another(service),
    "no receipt": lambda service, record: {name: record[name] for name in record if name != "receipt"},
    "another population": lambda service, record: changed(record, receipt={**record["receipt"], "population": "x"}),
    "less noise": lambda service, record: changed(record, scale=record["scale"] / 2),
    "not private": lambda service, record: changed(record, private=False),
    "an entry more": lambda service, record: changed(record, note="hello"),
    "no result": lambda service, record: {"format": "something else"},
    "a list": lambda service, record: [record],
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_service_that_lies_is_found_out(client, service, lie):
    service.lie_result = lambda record: lie(service, record)
    with pytest.raises(AnswerError) as caught:
        client.mean("cohort/dti", PROMISE)
    assert "The request has the key" in str(caught.value)
    service.lie_result = lambda record: record
    assert client.mean("cohort/dti", PROMISE).receipt is not None  # the key was kept: nothing is paid again
    assert len([key for key in service.payments if not key.startswith("other")]) == 1


def test_answers_without_lies_are_taken(client, service):
    """So that the lies above are refused for what they are."""
    service.lie_result = lambda record: json.loads(json.dumps(record))
    assert client.mean("cohort/dti", PROMISE).receipt is not None


@pytest.mark.parametrize(
    "lie",
    [
        {"key": "another"},
        {"ref": "cohort/other"},
        {"privacy": dpm.GDP(3.0).to_dict()},
        {"statistic": "median"},
        {"state": "strange"},
        {"id": 7},
        {"receipt": {}},
        {"publishes": "\x1b[31m"},
        {"privacy": {"kind": "GDP"}},
        {"options": []},
        {"population": "other"},
    ],
    ids=str,
)
def test_a_service_that_tells_about_another_release_is_found_out(client, service, lie):
    service.lie = lambda view: {**view, **lie}
    with pytest.raises(RemoteError):
        client.mean("cohort/dti", PROMISE)


@pytest.mark.parametrize("lie", [{"classes": 5}, {"n": "many"}, {"ball": {}}, {"covariate": {"range": 3}}], ids=str)
def test_a_data_set_that_is_none_is_found_out(client, service, lie):
    honest = service.dataset()
    service.dataset = lambda: {**honest, **lie}
    with pytest.raises(RemoteError):
        client.mean("cohort/dti", PROMISE)


def test_a_level_that_was_not_asked_is_found_out(client, service):
    def lie(stored):
        return json.loads(
            json.dumps(dpm.ConfidenceRegion(dpm.ConfidenceRegion.from_dict(stored).release, 0.5).to_dict())
        )

    service.lie_result = lie
    with pytest.raises(AnswerError, match=r"level 0\.95 was asked"):
        client.region("cohort/dti", PROMISE)


# -------------------------------------------------------------------- the way


def test_a_token_is_in_one_header_and_nowhere_else(client, service, caplog):
    with caplog.at_level(logging.DEBUG):
        client.mean("cohort/dti", PROMISE)
        service.token = "dpm_another"
        with pytest.raises(RemoteError, match="does not take the token") as caught:
            client.datasets()
    told = [caplog.text, repr(client), str(client), str(caught.value), *map(str, vars(client).values())]
    assert not any(TOKEN in text for text in told)
    for _, path, headers, body in service.seen:
        assert headers["Authorization"] == f"Bearer {TOKEN}"
        assert TOKEN not in path
        assert TOKEN.encode() not in body
        assert not any(TOKEN in value for name, value in headers.items() if name != "Authorization")
        assert headers["User-Agent"] == f"dpmanifold/{dpm.__version__}"
    import pickle

    with pytest.raises(TypeError, match="token"):
        pickle.dumps(client)


@pytest.mark.parametrize(
    "url",
    ["http://data.example.org", "http://10.0.0.1", "http://127.0.0.1.example.org", "ftp://localhost", "localhost", "",
     7, "https://", "https://a b", "http://[::2]:80", "https://data.example.org:99999"],
)  # fmt: skip
def test_only_encrypted_or_on_this_machine(url):
    with pytest.raises(InvalidArgumentError, match="url"):
        dpm.connect(url, TOKEN)


@pytest.mark.parametrize(
    "url", ["https://ada:pw@data.example.org", "https://data.example.org/?token=dpm_x", "https://a#b"]
)
def test_an_address_holds_no_secrets(url):
    with pytest.raises(InvalidArgumentError, match="an address alone") as caught:
        dpm.connect(url, TOKEN)
    assert "pw" not in str(caught.value)
    assert "dpm_x" not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:1", "http://127.0.0.1:1/", "http://[::1]:1", "https://data.example.org/x/"]
)
def test_addresses_that_are_taken(url):
    assert dpm.connect(url, TOKEN).url == url.rstrip("/")


def test_redirects_are_not_followed(client, service, url):
    service.faults.append(lambda handler: handler.send(307, b"", Location=f"{url}/elsewhere"))
    with pytest.raises(RemoteError, match="sends elsewhere"):
        client.mean("cohort/dti", PROMISE)
    assert not any("elsewhere" in path for _, path, *_ in service.seen)


def test_answers_are_bounded(client, service, monkeypatch):
    monkeypatch.setattr(transport, "LARGEST", 1 << 20)
    service.faults.append(lambda handler: handler.send(200, b" " * (1 << 21)))
    with pytest.raises(RemoteError, match="more than 1 MiB"):
        client.mean("cohort/dti", PROMISE)


def test_packed_answers_are_refused(client, service):
    service.faults.append(lambda handler: handler.send(200, b"x", Content_Encoding="gzip"))
    with pytest.raises(RemoteError, match="encoding"):
        client.mean("cohort/dti", PROMISE)


@pytest.mark.parametrize("body", [b"<html>", b"\xff", b"[]", b'{"id": 1, "id": 2}', b"[" * 10**5])
def test_answers_that_are_none(client, service, body):
    service.faults.append(lambda handler: handler.send(200, body))
    with pytest.raises(RemoteError):
        client.mean("cohort/dti", PROMISE)


def test_an_environment_s_proxy_does_not_get_the_token_of_this_machine(service, url, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert dpm.connect(url, TOKEN).account == "ada"


@pytest.fixture
def certified(tmp_path):
    """Return a context and its certificate, which nobody knows."""
    pytest.importorskip("cryptography")
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False)
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    (tmp_path / "ca.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (tmp_path / "key.pem").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "ca.pem", tmp_path / "key.pem")
    return context, tmp_path / "ca.pem"


def test_certificates_are_always_checked(service, certified, tmp_path):
    context, ca = certified
    with serving(service, context) as url:
        with pytest.raises(RemoteError, match="CERTIFICATE"):
            _ = dpm.connect(url, TOKEN).account
        assert service.seen == []  # nobody saw the token
        assert dpm.connect(url, TOKEN, ca=ca).account == "ada"
    with pytest.raises(InvalidArgumentError, match="ca must be a file"):
        dpm.connect(url, TOKEN, ca=tmp_path / "none.pem")


def test_where_tokens_come_from(url, monkeypatch, home):
    from dpmanifold.remote.tokens import store, tokens_file

    with pytest.raises(InvalidArgumentError, match="token is missing"):
        dpm.connect(url)
    path = store(url, TOKEN)
    store("https://data.example.org", "dpm_\\x", ca="/etc/ca.pem")
    assert path == tokens_file()
    assert path.stat().st_mode & 0o777 == 0o600
    assert dpm.connect(url).account == "ada"
    monkeypatch.setenv("DPM_TOKEN", "dpm_wrong")
    with pytest.raises(RemoteError, match="does not take the token"):
        _ = dpm.connect(url).account
    assert dpm.connect(url, TOKEN).account == "ada"
    monkeypatch.delenv("DPM_TOKEN")
    path.chmod(0o644)
    with pytest.raises(InvalidArgumentError, match="chmod 600"):
        dpm.connect(url)


@pytest.mark.parametrize("token", ["two words", "line\nbreak", "é"])
def test_a_token_that_no_header_takes(url, token):
    with pytest.raises(InvalidArgumentError, match="token must be") as caught:
        dpm.connect(url, token)
    assert token not in str(caught.value)


def test_the_bare_install_says_what_is_missing(monkeypatch, url):
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(MissingPackageError, match=r"dpmanifold\[client\]"):
        dpm.connect(url, TOKEN)


def test_importing_the_library_imports_no_client():
    code = "import sys, dpmanifold, dpmanifold.cli; sys.exit('httpx' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_after_a_fork_there_are_new_connections(client, service):
    assert client.datasets()
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    child = os.fork()
    if child == 0:
        os._exit(0 if client.datasets() else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert client.datasets()


def test_versions_of_data_sets():
    assert _latest("cohort/dti@2") == _latest("cohort/dti") == "cohort/dti"
