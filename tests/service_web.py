"""Ask an application what a network would ask it, header by header and piece by piece."""

import asyncio
import contextlib
import json
from dataclasses import dataclass

from sqlalchemy import update
from starlette.routing import Route

import dpmanifold as dpm
from dpmanifold.codec import answer_to_bytes
from dpmanifold.service import tables
from dpmanifold.service.questions import Question
from dpmanifold.service.web import app as web
from dpmanifold.service.web.sessions import COOKIE
from service_rooms import BALL, PEOPLE, desk_of, furnish, tensors

HOST = "127.0.0.1:8000"
ORIGIN = f"http://{HOST}"
REF = "cohort/dti"
SMALL = {"statistic": "mean", "privacy": {"kind": "GDP", "mu": "0.01"}}


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def json(self):
        return json.loads(self.body)

    def __getitem__(self, name):
        """All values of a header, in one text."""
        return ", ".join(value for key, value in self.headers if key == name)


def ask(app, method, path, **more):
    """Send one request, and wait for its answer."""
    return asyncio.run(asking(app, method, path, **more))


async def asking(app, method, path, *, headers=(), pieces=(b"",), host=HOST, address="192.0.2.1"):
    """Send one request; headers are (name, value), the body comes in pieces, of which None is never sent."""
    given = [(b"host", host.encode())] if host is not None else []
    given += [(name.lower().encode(), value.encode("latin-1")) for name, value in headers]
    path, _, query = path.partition("?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "scheme": "http",
        "path": path, "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "headers": given,
        "client": (address, 50000), "server": ("127.0.0.1", 8000),
    }  # fmt: skip
    waiting, sent = list(pieces), []

    async def receive():
        if not waiting:
            return {"type": "http.disconnect"}
        piece = waiting.pop(0)
        if piece is None:
            await asyncio.sleep(3600)
        return {"type": "http.request", "body": piece, "more_body": bool(waiting)}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    if not sent:
        return None
    found = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in sent[0]["headers"]]
    return Answer(sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:]))


def ask_json(app, method, path, token=None, body=None, **more):
    """Ask as a program does."""
    headers = [*more.pop("headers", ())]
    if token is not None:
        headers.append(("authorization", f"Bearer {token}"))
    if body is None:
        return ask(app, method, f"/api/v1{path}", headers=headers, **more)
    said = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers.append(("content-type", "application/json"))
    return ask(app, method, f"/api/v1{path}", headers=headers, pieces=[said], **more)


def cookie(value, name=COOKIE):
    return ("cookie", f"{name}={value}")


class Pages:
    """Stands where the pages do: routes of a test."""

    def __init__(self, **endpoints):
        self.ROUTES = [Route(f"/{name}", one, methods=["GET", "POST"]) for name, one in endpoints.items()]


def app_of(service, monkeypatch, **endpoints):
    """The application with a few pages of a test in the place of its own."""
    monkeypatch.setattr(web, "pages", Pages(**endpoints))
    return web.make_app(service)


def without(app, layer):
    """The same application without one of its layers."""
    kept = [one for one in app.user_middleware if one.cls is not layer]
    assert len(kept) == len(app.user_middleware) - 1
    app.user_middleware = kept
    return app


@contextlib.contextmanager
def rejected():
    """Whatever is done here must fail its assertion: it is done to a wrong variant."""
    try:
        yield
    except AssertionError:
        return
    raise AssertionError("a wrong variant passed")


class Rooms:
    """A service with something of everybody, and a token for each."""

    def __init__(self, service):
        self.service = furnish(service)
        self.tokens = {name: service.tokens.make(service.accounts.find(name), "tests", 1)[1] for name in PEOPLE}
        self.spare = service.tokens.make(service.accounts.find("ada"), "spare", 1)[0].id
        ada, sam = desk_of(service, "ada"), desk_of(service, "sam")
        self.release = self.published(ada)
        sam.set_terms(REF, approval=True)
        self.waiting = [ada.ask(REF, Question.from_dict(SMALL), f"waits-{number}").id for number in range(2)]
        sam.set_terms(REF, approval=False)
        request = {"path": "x.csv", "space": "spd", "units": "subject", "radius": "2"}
        self.registration = sam.register("cohort", "more", request).id

    def published(self, ada):
        """A release as the worker leaves it."""
        made = ada.ask(REF, Question.from_dict(SMALL), "published").id
        result = dpm.private_mean(tensors(60), BALL, dpm.GDP("0.01"), units="each-record")
        values = {"state": "released", "publishes": tables.later(tables.now(), -1), "result": answer_to_bytes(result),
                  "picture": b"\x89PNG", "report": b"<!doctype html><p>a report"}  # fmt: skip
        with self.service.database.writing() as connection:
            connection.execute(update(tables.releases).filter_by(id=made).values(**values))
        return made
