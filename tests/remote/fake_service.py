"""A service for tests of its client: as much of one as a client sees, with faults and lies on demand.

Releases are real, made by the library and paid for by an account, so that they carry receipts and hold. What is counted
is how often somebody was made to pay.
"""

import collections
import contextlib
import http.server
import itertools
import json
import re
import socket
import threading
import time
import urllib.parse

import numpy as np

import dpmanifold as dpm
from dpmanifold.codec import answer_to_record
from dpmanifold.privacy.budget_accounts import Account, Mark, Receipt
from dpmanifold.serialization import ball_to_dict
from dpmanifold.service.worker import receipt_in

TOKEN = "dpm_secret-of-the-tests"
SPACE = dpm.SPD(2)
BALL = dpm.Ball(SPACE, np.eye(2), 2.0, "atlas")
N = 600
LABELS = np.repeat(["a", "b"], [350, 250])
X = SPACE.exp_coords(np.eye(2), 0.2 * np.random.default_rng(0).standard_normal((N, 3)))
AGE = np.random.default_rng(1).uniform(0.0, 1.0, N)
BY_CLASS = {"class-means": dpm.private_class_means, "k-sample-test": dpm.private_k_sample_test, "lda": dpm.private_lda}
PLAIN = {
    "mean": dpm.private_mean, "median": dpm.private_median, "variance": dpm.private_variance, "ball": dpm.private_ball,
    "pga": dpm.private_pga, "region": dpm.private_region, "variance-interval": dpm.private_variance_interval,
}  # fmt: skip


class Cohort(Account):
    """An account that pays for everything, and remembers what it stored."""

    ledger, name, unit, privacy, spent, remaining = "a-ledger", "cohort", "record", dpm.GDP(100), None, dpm.GDP(100)

    def __init__(self):
        self.stored, self.numbers = {}, itertools.count(1)

    def marked(self, content, facts):
        number = next(self.numbers)
        return Mark(f"dti@{number}", f"records {number}")

    def known(self, order):
        return self.stored.get(order.key)

    def settle(self, order, work):
        if order.key not in self.stored:
            number = len(self.stored) + 1
            receipt = Receipt(self.ledger, number, f"{number:064x}", self.name, order.privacy.to_dict())
            self.stored[order.key] = work(receipt)
        return self.stored[order.key]


class DroppedError(Exception):
    """The connection ends here, without an answer."""


class FakeService:
    """One data set, one account, one token.

    Attributes
    ----------
    payments : the key of every payment, in order
    seen : every request: method, path, headers, body
    faults : what goes wrong with the next requests for releases, one each: "before" and "after" (drop the connection
        before or after paying), "half" (half an answer), "twice" (delivered twice), a status, or a function
    polls : how often a release is still pending when it is looked at
    lie : changes what is answered about a release, and what was released
    """

    def __init__(self):
        self.cohort = Cohort()
        self.rows, self.payments, self.seen = {}, [], []
        self.faults, self.polls, self.slot = collections.deque(), 0, 0.0
        self.state, self.token, self.name = None, TOKEN, "ada"
        self.lie = lambda view: view
        self.lie_result = lambda record: record
        self.lock = threading.Lock()

    # ---------------------------------------------------------------- what it does

    def dataset(self):
        return {
            "ref": "cohort/dti", "population": "cohort", "name": "dti", "version": 1, "id": "dti@1",
            "space": repr(SPACE), "ball": ball_to_dict(BALL), "n": N, "unit": "record", "protects": "record",
            "classes": ["a", "b"], "units_by_class": [350, 250], "labels_public": True,
            "covariate": {"range": [0.0, 1.0], "public": False}, "cap": dpm.GDP("100").to_dict(),
            "granted": None, "left": dpm.GDP("9").to_dict(), "left_words": "GDP(mu=9)", "spent_share": 0.25,
            "approval": False, "slot": 0.0, "note": "",
            "statistics": [*PLAIN, *BY_CLASS, "two-sample-test", "regression"],
        }  # fmt: skip

    def ask(self, body):
        """Take a request: pay once for a key."""
        with self.lock:
            key, question = body["key"], body["question"]
            known = self.rows.get(key)
            if known is not None:
                if known["asked"] != (body["dataset"], question):
                    return 409, _error("conflict", "the key stands for another question.")
                return 200, self.view(known)
            privacy = _promise(question["privacy"])
            if privacy == dpm.GDP(9.5):
                return 409, _error("over-budget", "GDP(mu=9.5) is more than what is left. Nothing was spent.")
            if self.state != "waiting":
                self.payments.append(key)
            row = {
                "id": f"r{len(self.rows)}", "asked": (body["dataset"], question), "key": key, "privacy": privacy,
                "begun": time.monotonic(), "polls": self.polls, "record": None, "state": self.state,
            }  # fmt: skip
            if self.state is None:
                row["record"] = answer_to_record(self.released(question, privacy, key))
            self.rows[key] = row
            return 202, self.view(row)

    def released(self, question, privacy, key):
        name, options, ball = question["statistic"], dict(question["options"]), BALL
        if question["ball"] is not None and "release" in question["ball"]:
            ball = dpm.Release.from_dict(self.row(question["ball"]["release"])["record"]).value
        elif question["ball"] is not None:
            ball = dpm.Ball(SPACE, question["ball"]["center"], question["ball"]["radius"], question["ball"]["source"])
        if "about" in options:
            options["about"] = dpm.Release.from_dict(self.row(options["about"])["record"])
        terms = {"units": dpm.EACH_RECORD, "budget": self.cohort, "key": key, **options}
        if name in PLAIN:
            return PLAIN[name](X, ball, privacy, **terms)
        if name in BY_CLASS:
            return BY_CLASS[name](X, LABELS, ball, privacy, classes=["a", "b"], **terms)
        if name == "two-sample-test":
            return dpm.private_two_sample_test(X[LABELS == "a"], X[LABELS == "b"], ball, privacy, **terms)
        if name == "regression":
            return dpm.private_regression(X, AGE, ball, privacy, covariate_range=(0.0, 1.0), **terms)
        return dpm.private_statistic(X, ball, privacy, statistic=name, **terms)

    def row(self, id):
        return next(row for row in self.rows.values() if row["id"] == id)

    def view(self, row):
        left = max(0.0, row["begun"] + self.slot - time.monotonic())
        pending = row["polls"] > 0 or left > 0
        state = row["state"] or ("pending" if pending else "released")
        record = row["record"]
        return self.lie({
            "id": row["id"], "ref": row["asked"][0], "dataset": "dti@1", "population": "cohort",
            "statistic": row["asked"][1]["statistic"], "title": "A title", "options": row["asked"][1]["options"],
            "privacy": row["privacy"].to_dict(), "privacy_words": str(row["privacy"]), "key": row["key"],
            "analyst": self.name, "state": state, "asked": "2026-11-17T03:00:00.000000Z",
            "publishes": "2026-11-17T03:00:05.000000Z", "seconds": left, "decided_by": None, "decided": None,
            "reason": "too much" if state == "refused" else None,
            "receipt": _receipt(record) if state == "released" else None, "pictured": False, "reported": False,
        })  # fmt: skip

    def get(self, path, query):
        if path == "me":
            return 200, {"name": self.name, "role": "analyst"}
        if path == "datasets":
            return 200, {"datasets": [self.dataset()]}
        if path in ("datasets/cohort/dti", "datasets/cohort/dti@1"):
            return 200, self.dataset()
        if path == "releases":
            rows = sorted(self.rows.values(), key=lambda row: -row["begun"])
            ids = [row["id"] for row in rows]
            start = ids.index(query["before"]) + 1 if "before" in query else 0
            return 200, {"releases": [self.view(row) for row in rows[start : start + int(query.get("limit", 50))]]}
        if path == "history/cohort":
            after = int(query.get("after", 0))
            line = {"sequence": after + 1, "time": "2026", "analyst": "ada", "what": "mean", "privacy": "GDP(mu=1)",
                    "share": 0.1, "total_share": 0.1, "state": "released", "release": None}  # fmt: skip
            return 200, {"population": "cohort", "cap": {}, "cap_words": "", "lines": [line],
                         "after": after + 1 if after < 2 else None}  # fmt: skip
        found = re.fullmatch(r"releases/(\w+)(/result)?", path)
        row = next((row for row in self.rows.values() if found and row["id"] == found[1]), None)
        if row is None:
            return 404, _error("not-found", "There is nothing here, or nothing that you may see.")
        if found[2] is None:
            row["polls"] -= 1
            return 200, self.view(row)
        return 200, self.lie_result(json.loads(json.dumps(row["record"])))


def _receipt(record):
    return receipt_in(json.dumps(record).encode())


def _promise(record):
    kind = getattr(dpm, record["kind"])
    return kind(**{name: value for name, value in record.items() if name != "kind"})


def _error(kind, message):
    return {"error": {"kind": kind, "message": message}}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service = None

    def log_message(self, *words):
        pass

    def do_GET(self):
        split = urllib.parse.urlsplit(self.path)
        path = urllib.parse.unquote(split.path.removeprefix("/api/v1/"))
        self.answered(lambda: self.service.get(path, dict(urllib.parse.parse_qsl(split.query))), path, b"")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.removeprefix("/api/v1/")
        if path == "releases":
            self.answered(lambda: self.service.ask(json.loads(body)), path, body)
        else:
            asked = json.loads(body)
            self.answered(lambda: (200, {"path": path, **asked, "verdict": "fine"}), path, body)

    def answered(self, answer, path, body):
        service = self.service
        service.seen.append((self.command, self.path, dict(self.headers), body))
        if self.headers["Authorization"] != f"Bearer {service.token}":
            return self.send(401, _error("not-signed-in", "no"))
        fault = service.faults.popleft() if service.faults and path.startswith("releases") else None
        try:
            if callable(fault):
                return fault(self)
            if fault == "before":
                raise DroppedError
            if fault == "twice":
                answer()
            if isinstance(fault, int):
                return self.send(fault, _error("unavailable", "later"))
            status, record = answer()
            if fault == "after":
                raise DroppedError
            self.send(status, record, half=fault == "half")
        except DroppedError:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        return None

    def send(self, status, record, half=False, **headers):
        body = record if isinstance(record, bytes) else json.dumps(record).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body[: len(body) // 2] if half else body)
        if half:
            raise DroppedError


@contextlib.contextmanager
def serving(service, context=None):
    """Have a service listen on this machine; gives its address."""
    handler = type("Handler", (_Handler,), {"service": service})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    server.handle_error = lambda *words: None
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http{'' if context is None else 's'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
