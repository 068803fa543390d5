"""Web process and worker are killed again and again while analysts ask: the ledger's invariants hold."""

import random
import secrets
import threading
import time
from collections import Counter

import httpx
import pytest

import dpmanifold as dpm
from dpmanifold.service.questions import Question
from service_rooms import desk_of, service_in, write_tensors
from service_running import Running, free_port, until

SLOT = 0.8
KILLS = [pytest.param(3, 2, id="3"), pytest.param(200, 8, id="200", marks=pytest.mark.slow)]


def analyst(running, token, seed, asked, over):
    """Ask for one release after the other and wait for each; whatever fails on the way is sent again."""
    rng = random.Random(seed)
    while not over.is_set():
        key = secrets.token_hex(8)
        question = Question(rng.choice(["mean", "region"]), dpm.GDP("0.01")).to_dict()
        body = {"dataset": "cohort/dti", "question": question, "key": key}
        asked[key] = None
        state = "pending"
        while state == "pending" and not over.is_set():
            try:
                with running.client(token) as client:
                    found = client.post("/releases", json=body)
                    if found.status_code in (200, 202):
                        asked[key], state = found.json()["id"], found.json()["state"]
                    else:
                        assert found.status_code >= 500 or "paused" in found.text, found.text
            except httpx.TransportError:
                pass
            over.wait(rng.uniform(0.02, 0.2))


@pytest.mark.parametrize(("kills", "analysts"), KILLS)
def test_kills_leave_every_payment_with_one_outcome(tmp_path, nursery, kills, analysts):
    port = free_port()
    environ = {
        "DPM_SERVICE_WEB_PORT": str(port), "DPM_SERVICE_WEB_URL": f"http://127.0.0.1:{port}",
        "DPM_SERVICE_WORKER_SLOT": str(SLOT),
    }  # fmt: skip
    with service_in(tmp_path, **environ) as service:
        sam = desk_of(service, "sam")
        sam.make_population("cohort", dpm.GDP("2"), "record")
        names = [f"analyst-{number}" for number in range(analysts)]
        tokens = []
        for name in names:
            actor = service.accounts.add(name, "analyst", "four words of no sense")
            sam.grant("cohort", name, dpm.GDP("2"), "a test")
            tokens.append(service.desk(actor).make_token("test", 1)[1])
        write_tensors(service, 200)
        running = Running(nursery, service.settings, environ)
        running.start()
        running.healthy()
        registered = sam.register("cohort", "dti", {"path": "tensors.npy", "space": "spd", "units": "each-record",
                                                    "radius": "2"})  # fmt: skip
        until(lambda: sam.registration(registered.id).state == "done")

        over, asked = threading.Event(), [{} for _ in names]
        threads = [
            threading.Thread(target=analyst, args=(running, token, number, asked[number], over), daemon=True)
            for number, token in enumerate(tokens)
        ]
        for thread in threads:
            thread.start()
        rng = random.Random(kills)
        for _ in range(kills):
            time.sleep(rng.uniform(0.05, 1.0))
            part = rng.choice(["web", "worker"])
            running.kill(part)
            running.start(part)
            if sam.dataset("cohort/dti").paused:  # an attempt was killed with its worker
                sam.resume("cohort", "the worker was killed")
        until(lambda: any(row is not None for keys in asked for row in keys.values()), 60)
        over.set()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()

        # The next release succeeds as soon as those before it have had their slots.
        running.healthy()

        def resumed(desk, release):
            if sam.dataset("cohort/dti").paused:
                sam.resume("cohort", "the worker was killed")
            return desk.release(release).state != "pending"

        last = service.desk(service.accounts.find(names[0]))
        if sam.dataset("cohort/dti").paused:
            sam.resume("cohort", "the worker was killed")
        final = last.ask("cohort/dti", Question("mean", dpm.GDP("0.01")), "the last")
        until(lambda: resumed(last, final.id), 60, 0.1)
        ann = desk_of(service, "ann")
        seen = {name: service.desk(service.accounts.find(name)) for name in names}

        def settled():
            if sam.dataset("cohort/dti").paused:
                sam.resume("cohort", "the worker was killed")
            rows = [row for desk in seen.values() for row in desk.releases(limit=200)]
            # A payment whose payer was killed right after it has no slot yet: the worker finds it within seconds.
            paid = service.ledger.history("cohort", limit=100_000).releases
            ends = [row.state for row in rows if row.publishes is not None] + [line.state for line in paid]
            return set(ends) <= {"released", "lost"}

        until(settled, 60, 0.2)
        running.stop()

        assert ann.audit().ok
        lines = service.ledger.history("cohort", limit=100_000).releases
        assert max(Counter((line.principal, line.key) for line in lines).values()) == 1
        assert len(lines) * dpm.GDP("0.01").exact["mu"] ** 2 == lines[-1].spent[0]
        states = {(line.principal, line.key): line.state for line in lines}
        assert set(states.values()) <= {"released", "lost"}
        answered = {(name, key): row for name, keys in zip(names, asked, strict=True)
                    for key, row in keys.items() if row is not None}  # fmt: skip
        assert answered
        assert set(answered) <= set(states)
        for (name, key), row in answered.items():
            found = seen[name].release(row)
            assert (found.key, found.state) == (key, states[name, key])
            if found.state == "released":
                answer = seen[name].answer(row)
                assert service.ledger.verify(answer) == []
                assert dpm.verify(answer).ok
        released = sum(state == "released" for state in states.values())
        assert released > 0
