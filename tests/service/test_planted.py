"""Records that are planted to be noticed are not: what leaves the service is the same, but for what was drawn.

Two services differ in three records: one is no number, one lies far outside of the ball, one holds a number that nobody
else has. Everything that an analyst and an auditor can see of both is compared: status, headers, keys of JSON, states,
how long a slot is, and the lines of the log; and the number is looked for everywhere.
"""

import json

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.service import tables
from service_rooms import desk_of, service_in, tensors
from service_running import Running, free_port, until

pytestmark = pytest.mark.security

CANARY = 0.7358241109
STATISTICS = ["mean", "region", "variance", "k-sample-test", "lda", "regression"]


def _records(planted):
    records = tensors(120)
    if planted:
        records[3] = np.nan
        records[50] = 1e12 * np.eye(2)
        records[77] = [[1.0, CANARY], [CANARY, 1.0]]
    people = np.array([f"person-{number // 2}" for number in range(120)])
    side = np.array(["left" if number % 4 < 2 else "right" for number in range(120)])
    return {"records": records, "who": people, "side": side, "age": np.linspace(20, 80, 120)}


def _shape(value):
    """What JSON is like, without values; what is read off a draw (answers: numbers, or why there is none) is one."""
    if isinstance(value, dict):
        told = ("state", "kind", "statistic", "format")
        return {key: value[key] if key in told else _shape(value[key]) for key in sorted(value) if key != "answers"}
    if isinstance(value, list):
        return [_shape(entry) for entry in value]
    return value if isinstance(value, bool) else type(value).__name__


class Seen:
    """Everything that came out of one service."""

    def __init__(self):
        self.answers, self.content, self.slots = [], [], []

    def take(self, answer):
        headers = sorted(name for name in answer.headers)
        kind = answer.headers["content-type"]
        shape = _shape(answer.json()) if kind.startswith("application/json") else kind
        self.answers.append((str(answer.request.method), answer.status_code, headers, shape))
        self.content.append(answer.content)
        return answer


def _run(folder, nursery, planted):
    """Register, plan, ask and read, as people would; return what they saw, the log, and all that is stored."""
    port = free_port()
    environ = {
        "DPM_SERVICE_WEB_PORT": str(port), "DPM_SERVICE_WEB_URL": f"http://127.0.0.1:{port}",
        "DPM_SERVICE_WORKER_SLOT": "1.6",
    }  # fmt: skip
    with service_in(folder, **environ) as service:
        sam, ada, ann = (desk_of(service, name) for name in ("sam", "ada", "ann"))
        sam.make_population("cohort", dpm.GDP("20"), "participant")
        sam.grant("cohort", "ada", dpm.GDP("20"), "a study")
        np.savez(service.settings.root / "all.npz", **_records(planted))
        running = Running(nursery, service.settings, environ)
        running.start()
        running.healthy()
        asked = {"path": "all.npz", "array": "records", "space": "spd", "units": "who", "radius": "2",
                 "labels": "side", "classes": ["left", "right"], "labels_public": True, "covariate": "age",
                 "covariate_range": [0, 100]}  # fmt: skip
        registered = sam.register("cohort", "dti", asked)
        until(lambda: sam.registration(registered.id).state in ("done", "refused"))
        assert sam.registration(registered.id).state == "done", sam.registration(registered.id).message
        seen = Seen()
        tokens = {desk: desk.make_token("test", 1)[1] for desk in (ada, ann)}
        with running.client(tokens[ada]) as client, running.client(tokens[ann]) as auditor:
            seen.take(client.get("/datasets"))
            releases = []
            for statistic in STATISTICS:
                question = {"statistic": statistic, "privacy": {"kind": "GDP", "mu": "1"}}
                body = {"dataset": "cohort/dti", "question": question, "key": statistic}
                seen.take(client.post("/plans", json={"dataset": "cohort/dti", "question": question}))
                releases.append(seen.take(client.post("/releases", json=body)).json()["id"])
            for release in releases:
                until(lambda: client.get(f"/releases/{release}").json()["reported"], 90)  # noqa: B023
                seen.take(client.get(f"/releases/{release}"))
                seen.take(client.get(f"/releases/{release}/result"))
                with service.database.reading() as connection:
                    found = connection.execute(tables.releases.select().filter_by(id=release)).one()
                length = tables.moment(found.publishes) - tables.moment(found.starts)
                seen.slots.append((found.state, round(length.total_seconds(), 6)))
            for path in ("/history/cohort", "/releases", "/releases/none"):
                seen.take(client.get(path))
            for path in ("/audit", "/events", "/releases", "/accounts", "/history/cohort"):
                seen.take(auditor.get(path))
            seen.content.append(auditor.get("/export").content)
        for release in ada.releases():
            seen.content += [ada.report(release.id), ada.picture(release.id), ada.result(release.id)]
        running.stop()
        log = {
            json.dumps({key: line[key] for key in sorted(line) if key not in ("time", "milliseconds")})
            for line in running.lines()
        }
        seen.content.append(running.log.read_bytes())
        seen.content += [path.read_bytes() for path in (folder / "state").glob("service.db*") if path.is_file()]
    return seen, log


@pytest.fixture(scope="module")
def both(tmp_path_factory, nursery):
    return [_run(tmp_path_factory.mktemp(name), nursery, planted)
            for name, planted in (("clean", False), ("planted", True))]  # fmt: skip


def test_planted_records_change_nothing_but_what_is_drawn(both):
    (clean, plain_log), (planted, planted_log) = both
    assert planted.slots == clean.slots
    assert {state for state, _ in clean.slots} == {"released"}
    assert planted.answers == clean.answers
    assert planted_log == plain_log


def test_a_planted_number_is_nowhere(both):
    canary = [CANARY, np.float32(CANARY)]
    forms = {str(CANARY).encode(), repr(CANARY)[2:9].encode(), CANARY.hex().encode()[4:14]}
    forms |= {np.asarray(one).tobytes() for one in canary}
    for content in both[1][0].content:
        assert not [form for form in forms if form in content]


def test_the_comparison_notices_what_it_looks_for(both):
    """Wrong would be a comparison that sees no difference where there is one."""
    clean = both[0][0]
    other = json.loads(json.dumps(clean.answers))
    other[0][3]["clipped"] = "int"
    assert other != json.loads(json.dumps(clean.answers))
    assert _shape({"state": "lost"}) != _shape({"state": "released"})
    assert _shape({"a": 1}) == _shape({"a": 2})
    assert _shape({"a": 1}) != _shape({"a": None})
