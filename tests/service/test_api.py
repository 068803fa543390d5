"""What programs can ask: every endpoint by every role about everybody's things, and one answer for all that is not."""

import itertools
import json

import pytest
from typer.testing import CliRunner

from dpmanifold.cli import app as cli
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, LedgerError
from dpmanifold.service import accounts
from dpmanifold.service.desk import Desk
from dpmanifold.service.web import api
from dpmanifold.service.web.api import ENDPOINTS, SCHEMAS, parsed
from dpmanifold.service.web.openapi import fault, openapi_document
from dpmanifold.stats.query import Option
from service_rooms import desk_of, service_in
from service_web import REF, SMALL, Rooms, app_of, ask, ask_json, cookie, rejected

pytestmark = pytest.mark.security

ASKED = {"dataset": REF, "question": SMALL}
NOWHERE = {"dataset": "cohort/none", "question": SMALL}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("api")) as service:
        yield Rooms(service)


@pytest.fixture
def app(rooms, monkeypatch):
    return app_of(rooms.service, monkeypatch)


# -------------------------------------------------------------------- every endpoint, every role

EVERYBODY = (401, 200, 200, 200, 200)
SEEN = (401, 200, 404, 200, 200)  # an analyst without a grant does not see it
STEWARDS, AUDITORS, BOTH = (401, 404, 404, 200, 404), (401, 404, 404, 404, 200), (401, 404, 404, 200, 200)
WHO = (None, "ada", "bob", "sam", "ann")  # nobody, an analyst with a grant, one without, steward, auditor


def _made(status, statuses):
    return tuple(status if one == 200 else one for one in statuses)


def _fresh(**body):
    """A body that is new each time."""
    return lambda: {
        name: value.format(next(_numbers)) if isinstance(value, str) else value for name, value in body.items()
    }


GRANT = {"account": "ada", "privacy": {"kind": "GDP", "mu": "1"}, "reason": "more"}
# method, path, body, statuses for WHO. Names in brackets are replaced by things that are there.
TABLE = [
    ("GET", "/openapi.json", None, (200,) * 5),
    ("GET", "/me", None, EVERYBODY),
    ("GET", "/tokens", None, EVERYBODY),
    ("DELETE", "/tokens/{token}", None, (401, 204, 404, 404, 404)),
    ("GET", "/datasets", None, EVERYBODY),
    ("GET", "/datasets/cohort/dti", None, SEEN),
    ("PUT", "/datasets/cohort/dti/terms", {"approval": False, "slot": None, "note": "x"}, STEWARDS),
    ("POST", "/populations/cohort/resume", {"reason": "x"}, tuple(409 if status == 200 else status
                                                                  for status in STEWARDS)),  # it is not paused
    ("POST", "/plans", ASKED, SEEN),
    ("POST", "/plans", {**ASKED, "error": 1.0}, SEEN),
    ("GET", "/curves?dataset=cohort/dti&statistic=mean&kind=ZCDP", None, SEEN),
    ("POST", "/prices", ASKED, (401, 200, 404, 404, 404)),
    ("POST", "/releases", _fresh(**ASKED, key="matrix-{}"), (401, 202, 404, 404, 404)),
    ("GET", "/releases", None, EVERYBODY),
    ("GET", "/releases?limit=1", None, EVERYBODY),
    ("GET", "/releases?before={release}", None, SEEN),
    ("GET", "/releases/{release}", None, SEEN),
    ("GET", "/releases/{release}/result", None, SEEN),
    ("GET", "/releases/{release}/picture", None, SEEN),
    ("GET", "/releases/{release}/report", None, SEEN),
    ("GET", "/releases/{release}/array", None, SEEN),
    ("GET", "/history/cohort?after=0&limit=5", None, SEEN),
    ("GET", "/populations", None, BOTH),
    ("POST", "/populations", _fresh(name="people-{}", cap={"kind": "GDP", "mu": "1"}, unit="person"),
     _made(201, STEWARDS)),
    ("GET", "/populations/cohort", None, BOTH),
    ("POST", "/populations/cohort/cap", {"cap": {"kind": "GDP", "mu": "3"}, "reason": "a new wave"}, STEWARDS),
    ("POST", "/populations/cohort/grants", GRANT, STEWARDS),
    ("GET", "/registrations", None, STEWARDS),
    ("POST", "/registrations", {"population": "cohort", "name": "more", "request": {
        "path": "x.csv", "space": "spd", "units": "subject", "radius": "2"}}, _made(202, STEWARDS)),
    ("GET", "/registrations/{registration}", None, STEWARDS),
    ("GET", "/approvals", None, BOTH),
    ("POST", "/approvals/{waiting}", {"decision": "refuse", "reason": "not now"}, STEWARDS),
    ("GET", "/audit", None, BOTH),
    ("GET", "/events?after=1&limit=3", None, AUDITORS),
    ("GET", "/accounts", None, AUDITORS),
    ("GET", "/export", None, AUDITORS),
]  # fmt: skip
# The same about what is not there: nobody gets anything else than nothing.
NOTHING = [
    ("DELETE", "/tokens/none", None), ("GET", "/datasets/cohort/none", None), ("GET", "/datasets/none/dti", None),
    ("GET", "/datasets/cohort/dti@7", None), ("PUT", "/datasets/none/dti/terms", {"approval": True}),
    ("PUT", "/datasets/cohort/none/terms", {"approval": True}), ("POST", "/plans", NOWHERE),
    ("POST", "/populations/none/resume", {"reason": "x"}),
    ("POST", "/prices", NOWHERE), ("POST", "/releases", {**NOWHERE, "key": "none"}),
    ("GET", "/curves?dataset=none/dti&statistic=mean", None),
    ("GET", "/releases?before=none", None), ("GET", "/releases/none", None), ("GET", "/releases/none/result", None),
    ("GET", "/releases/none/picture", None), ("GET", "/releases/none/report", None),
    ("GET", "/releases/none/array", None), ("GET", "/history/none", None), ("GET", "/populations/none", None),
    ("POST", "/populations/none/cap", {"cap": {"kind": "GDP", "mu": "3"}, "reason": "x"}),
    ("POST", "/populations/none/grants", GRANT), ("GET", "/registrations/none", None),
    ("POST", "/registrations", {"population": "none", "name": "x", "request": {}}),
    ("POST", "/approvals/none", {"decision": "approve", "reason": ""}),
    # No addresses at all, addresses by another method, and names that are none.
    ("GET", "/none", None), ("GET", "", None), ("GET", "/", None), ("GET", "/me/", None), ("GET", "//me", None),
    ("POST", "/me", {}), ("PATCH", "/me", None), ("OPTIONS", "/me", None), ("DELETE", "/populations/cohort", None),
    ("PUT", "/releases/x", {}), ("BREW", "/me", None), ("GET", "/plans", None), ("GET", "/datasets//dti", None),
    ("GET", "/releases/a\x00b", None), ("GET", "/releases/../me", None), ("TRACE", "/export", None),
]  # fmt: skip


def _filled(path, rooms):
    return path.format(
        token=rooms.spare, release=rooms.release, registration=rooms.registration, waiting=rooms.waiting[0]
    )


def _endpoint(method, path):
    """The line of the table that an address belongs to."""
    (found,) = [one for one in ENDPOINTS if one.matched(method, path.partition("?")[0]) is not None]
    return found


def _nothing(app, rooms):
    """The one answer, as the auditor gets it for an address that there is not."""
    return ask_json(app, "GET", "/there-is-no-such-thing", rooms.tokens["ann"])


@pytest.mark.parametrize(("method", "path", "body", "statuses"), TABLE, ids=[f"{line[0]} {line[1]}" for line in TABLE])
def test_every_endpoint_answers_whom_it_is_for(rooms, app, method, path, body, statuses):
    nothing = _nothing(app, rooms)
    for name, status in zip(WHO, statuses, strict=True):
        said = body() if callable(body) else body
        token = None if name is None else rooms.tokens[name]
        found = ask_json(app, method, _filled(path, rooms), token, said)
        assert (name, found.status, found.body if found.status >= 500 else "") == (name, status, "")
        if status == 404:
            assert found == nothing
        if status == 401:
            assert found["www-authenticate"] == "Bearer"
        if status in (200, 201, 202) and found["content-type"] == "application/json" and path != "/openapi.json":
            schema = _endpoint(method, path).answer
            assert fault(found.json(), schema, SCHEMAS) is None


def test_every_endpoint_is_in_that_table(app):
    tried = {_endpoint(method, path).name for method, path, *_ in TABLE if path != "/openapi.json"}
    assert tried == {one.name for one in ENDPOINTS}


def _assert_nothing(rooms, app):
    nothing = _nothing(app, rooms)
    assert nothing.status == 404
    assert "allow" not in {name for name, _ in nothing.headers}
    for name in WHO[1:]:
        for method, path, body in NOTHING:
            assert (name, method, path, ask_json(app, method, path, rooms.tokens[name], body)) == (
                name,
                method,
                path,
                nothing,
            )


def test_what_is_not_there_is_one_answer_to_the_byte(rooms, app):
    _assert_nothing(rooms, app)


def test_an_interface_that_tells_of_other_methods_is_noticed(rooms, app, monkeypatch):
    right = api.Api._found

    def telling(self, method, path):
        found = right(self, method, path)
        if found[0] is None and any(one.matched(one.method, path) is not None for one in self.endpoints):
            raise InvalidArgumentError("not by this method")
        return found

    monkeypatch.setattr(api.Api, "_found", telling)
    with rejected():
        _assert_nothing(rooms, app)


def test_a_desk_that_shows_what_is_somebody_elses_is_noticed(rooms, app, monkeypatch):
    shown = desk_of(rooms.service, "sam").row_seen(rooms.release)
    monkeypatch.setattr(Desk, "row_seen", lambda self, release: shown)
    line = next(line for line in TABLE if line[1] == "/releases/{release}")
    with rejected():
        test_every_endpoint_answers_whom_it_is_for(rooms, app, *line)


def test_without_a_token_all_addresses_are_alike(rooms, app):
    first = ask_json(app, "GET", "/me")
    assert first.status == 401
    for method, path, body in [*NOTHING, ("GET", "/export", None), ("POST", "/plans", {})]:
        assert ask_json(app, method, path, None, body) == first


# -------------------------------------------------------------------- tokens


def test_cookies_mean_nothing_here(rooms, app):
    value, _ = rooms.service.logins.begin(rooms.service.accounts.find("ann"))
    assert ask_json(app, "GET", "/me", headers=[cookie(value)]).status == 401
    found = ask_json(app, "GET", "/me", rooms.tokens["ada"], headers=[cookie(value)])
    assert found.json() == {"name": "ada", "role": "analyst"}


def test_a_revoked_token_is_refused_at_once(rooms, app):
    view, secret = desk_of(rooms.service, "bob").make_token("short", 1)
    assert ask_json(app, "GET", "/me", secret).status == 200
    assert ask_json(app, "DELETE", f"/tokens/{view.id}", secret).status == 204
    found = ask_json(app, "GET", "/me", secret)
    assert (found.status, found["www-authenticate"]) == (401, "Bearer")


def test_a_token_makes_no_tokens(rooms, app):
    """Whoever finds one has it until it ends or is revoked, and not a day longer."""
    found = ask_json(app, "POST", "/tokens", rooms.tokens["ada"], {"label": "another", "days": 366})
    assert found == _nothing(app, rooms)
    assert not any(one.label == "another" for one in desk_of(rooms.service, "ada").tokens())


@pytest.mark.parametrize(
    "said", ["", "Bearer", "Bearer ", "Basic YWRhOng=", "Bearer dpm_x", "Bearer x y", "dpm_" + "x" * 43]
)
def test_what_is_no_token_is_refused(rooms, app, said):
    assert ask_json(app, "GET", "/me", headers=[("authorization", said)]).status == 401


def test_two_tokens_are_none(rooms, app):
    both = [("authorization", f"Bearer {rooms.tokens[name]}") for name in ("ada", "ann")]
    assert ask_json(app, "GET", "/me", headers=both).status == 401


def _assert_guesses(rooms, app, where):
    guess = "dpm_" + "A" * 43
    for _ in range(3):
        assert ask_json(app, "GET", "/me", guess, address=where).status == 401
    found = ask_json(app, "GET", "/me", guess, address=where)
    assert (found.status, found.json()["error"]["kind"]) == (429, "too-many")
    assert 0 < int(found["retry-after"]) <= accounts.WINDOW
    assert ask_json(app, "GET", "/me", rooms.tokens["ada"], address=where).status == 200  # one that is known is taken
    assert ask_json(app, "GET", "/me", address=where).status == 401  # nothing was shown, nothing guessed
    assert ask_json(app, "GET", "/me", guess, address="198.51.100.1").status == 401


def test_tokens_cannot_be_guessed(rooms, app, monkeypatch, clock):
    monkeypatch.setattr(accounts, "OF_TOKENS", 3)
    _assert_guesses(rooms, app, "203.0.113.1")
    clock.forward(minutes=15)
    assert ask_json(app, "GET", "/me", "dpm_" + "A" * 43, address="203.0.113.1").status == 401


def test_an_interface_that_does_not_count_guesses_is_noticed(rooms, app, monkeypatch):
    monkeypatch.setattr(accounts, "OF_TOKENS", 3)
    monkeypatch.setattr(accounts, "count_guess", lambda *_: None)
    with rejected():
        _assert_guesses(rooms, app, "203.0.113.2")


# -------------------------------------------------------------------- what is sent


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_only_json_is_read(rooms, app, kind):
    headers = [("authorization", f"Bearer {rooms.tokens['ada']}"), ("content-type", kind)]
    found = ask(app, "POST", "/api/v1/plans", headers=headers, pieces=[json.dumps(ASKED).encode()])
    assert (found.status, found.json()["error"]["kind"]) == (415, "wrong-type")


WRONG = [
    b"", b"{", b"[]", b"null", b'"x"', b'{"approval": true, "note": "x", "note": "y"}',
    b'{"approval": true, "slot": NaN}', b'{"approval": true, "slot": Infinity}', b'{"approval": true, "slot": 1e999}',
    b'{"approval": 1}', b'{"approval": "true"}', b'{"approval": true, "slot": true}', b'{"note": "x"}',
    b'{"approval": true, "more": 1}', b'{"approval": true, "slot": "1"}', b'{"approval": true, "slot": -1}',
    b'{"approval": true, "note": "\\ud800"}', b'{"approval": true, "note": "a\\u0000b"}',
    b'{"approval": true, "note": "\xff"}', b'{"approval": true, "note": "' + b"x" * 2001 + b'"}', b"[" * 60_000,
    b'{"a":' * 10_000, b"1" * 5000, b'{"approval": true, "note": null}', '{"approval": true}'.encode("utf-16"),
]  # fmt: skip


@pytest.mark.parametrize("body", WRONG, ids=range(len(WRONG)))
def test_bodies_say_one_thing(rooms, app, body):
    found = ask_json(app, "PUT", f"/datasets/{REF}/terms", rooms.tokens["sam"], body)
    assert (found.status, found.json()["error"]["kind"]) == (400, "invalid")


HUGE = 10**400
IDENTITY = [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "more",
    [
        {"error": HUGE}, {"question": {**SMALL, "statistic": "variance-interval", "options": {"level": HUGE}}},
        {"question": {**SMALL, "statistic": "variance-interval", "options": {"level": 1e300}}},
        {"question": {**SMALL, "statistic": "ball", "options": {"coverage": HUGE}}},
        {"question": {**SMALL, "statistic": "pga", "options": {"count": 10**300}}},
        {"question": {**SMALL, "ball": {"radius": HUGE, "center": IDENTITY}}},
        {"question": {**SMALL, "ball": {"radius": 1, "center": [[HUGE, 0], [0, 1]]}}},
        {"question": {**SMALL, "ball": {"radius": 1, "center": [[-1, 0], [0, 1]]}}},
        {"question": {**SMALL, "ball": {"radius": 1, "center": [[1e308, 0], [0, 1e308]]}}},
        {"question": {**SMALL, "privacy": {"kind": "GDP", "mu": HUGE}}},
    ],
)  # fmt: skip
def test_absurd_numbers_are_refused(rooms, app, more):
    found = ask_json(app, "POST", "/plans", rooms.tokens["ada"], {**ASKED, **more})
    assert (found.status, found.json()["error"]["kind"]) == (400, "invalid")


@pytest.mark.parametrize(
    "more", [{"radius": "9" * 101}, {"radius": HUGE}, {"center": "1," * 10_001}, {"path": "x" * 4001}]
)
def test_absurd_registrations_are_refused_at_the_door(rooms, app, more):
    asked = {"path": "x.csv", "space": "spd", "units": "subject", "radius": "2", **more}
    body = {"population": "cohort", "name": "more", "request": asked}
    assert ask_json(app, "POST", "/registrations", rooms.tokens["sam"], body).status == 400


@pytest.mark.parametrize("value", [HUGE, -HUGE, 1e300, float("nan"), float("inf"), True, "1"])
def test_options_are_numbers_of_use(value):
    option = Option("level", "number", "", "")
    assert option.checked(1) == 1.0
    with pytest.raises(InvalidArgumentError, match="level must be a number of at most"):
        option.checked(value)


def test_brackets_in_texts_do_not_count():
    assert parsed(json.dumps({"a": "[" * 100 + '"\\'}).encode()) == {"a": "[" * 100 + '"\\'}


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=x", "limit=1&limit=2", "other=1", "limit=1001", "limit=-1", "before=%00", "a=%ff"]
)
def test_queries_are_held_to_the_table(rooms, app, query):
    assert ask_json(app, "GET", f"/releases?{query}", rooms.tokens["ada"]).status == 400


def test_roles_are_asked_before_bodies(rooms, app):
    nothing = _nothing(app, rooms)
    for name in ("ada", "ann"):
        assert ask_json(app, "POST", "/populations", rooms.tokens[name], b"{") == nothing


# -------------------------------------------------------------------- what is answered


def test_a_key_is_202_once_and_200_afterwards(rooms, app):
    body = {**ASKED, "key": "twice"}
    first, second = (ask_json(app, "POST", "/releases", rooms.tokens["ada"], body) for _ in range(2))
    assert (first.status, second.status) == (202, 200)
    assert first.json()["id"] == second.json()["id"]
    other = {**body, "question": {**SMALL, "statistic": "variance"}}
    found = ask_json(app, "POST", "/releases", rooms.tokens["ada"], other)
    assert (found.status, found.json()["error"]["kind"]) == (409, "conflict")


def test_plans_are_those_of_the_command_line(rooms, app):
    question = {"statistic": "mean", "privacy": {"kind": "GDP", "mu": "0.5"}}
    found = ask_json(app, "POST", "/plans", rooms.tokens["ada"], {"dataset": REF, "question": question})
    words = ["plan", "--space", "spd", "--size", "2", "--radius", "2", "-n", "60", "--mu", "0.5", "--json"]
    assert found.json() == json.loads(CliRunner().invoke(cli, words).stdout)


@pytest.mark.parametrize(
    ("question", "status", "kind"),
    [
        ({"statistic": "mode", "privacy": SMALL["privacy"]}, 400, "invalid"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "-1"}}, 400, "invalid"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1e99999"}}, 400, "invalid"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "0.1"}, "options": {"seed": 1}}, 400, "invalid"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "0.1"}, "options": {"reveal": True}}, 400, "invalid"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1.5"}}, 409, "over-budget"),
        ({"statistic": "mean", "privacy": {"kind": "ApproxDP", "epsilon": "1", "delta": "1e-6"}}, 400, "guarantee"),
    ],
)
def test_what_cannot_be_planned_or_paid_is_said(rooms, app, question, status, kind):
    for path, more in (("/prices", {}), ("/releases", {"key": "refused"})):
        found = ask_json(app, "POST", path, rooms.tokens["ada"], {"dataset": REF, "question": question, **more})
        assert (found.status, found.json()["error"]["kind"]) == (status, kind)


def test_files_are_served_as_what_they_are(rooms, app):
    kinds = {"result": "application/json", "picture": "image/png", "report": "text/html; charset=utf-8",
             "array": "application/octet-stream"}  # fmt: skip
    for name, kind in kinds.items():
        found = ask_json(app, "GET", f"/releases/{rooms.release}/{name}", rooms.tokens["ada"])
        assert found["content-type"] == kind
        assert found["x-content-type-options"] == "nosniff"
        if name in ("result", "array"):
            assert found["content-disposition"].startswith('attachment; filename="')
    assert (
        "sandbox"
        in ask_json(app, "GET", f"/releases/{rooms.release}/report", rooms.tokens["ada"])["content-security-policy"]
    )


def test_nothing_is_served_before_it_is_published(rooms, app):
    nothing = _nothing(app, rooms)
    for name in ("result", "picture", "report", "array"):
        assert ask_json(app, "GET", f"/releases/{rooms.waiting[1]}/{name}", rooms.tokens["ada"]) == nothing


@pytest.mark.parametrize("error", [InvalidDataError, InvalidArgumentError, RuntimeError, LedgerError, KeyError])
def test_what_goes_wrong_outside_of_plans_is_not_shown(rooms, app, monkeypatch, error):
    def broken(*_, **__):
        raise error("canary-2718")

    monkeypatch.setattr(Desk, "view_of_release", broken)
    found = ask_json(app, "GET", "/releases", rooms.tokens["ada"])
    assert (found.status, found.json()["error"]["kind"]) == (
        (503, "unavailable") if error is LedgerError else (500, "broken")
    )
    assert "canary" not in found.body.decode()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/populations/cohort/cap", {"cap": {"kind": "GDP", "mu": "0.5"}, "reason": "less"}),
        ("/populations/cohort/cap", {"cap": {"kind": "PureDP", "epsilon": "9"}, "reason": "another kind"}),
        ("/populations/cohort/cap", {"cap": {"kind": "GDP", "mu": "9"}, "reason": ""}),
        ("/populations/cohort/grants", {"account": "sam", "privacy": {"kind": "GDP", "mu": "1"}, "reason": "x"}),
        ("/populations", {"name": "a/b", "cap": {"kind": "GDP", "mu": "1"}, "unit": "person"}),
        ("/populations", {"name": "fine", "cap": {"kind": "GDP", "mu": "0"}, "unit": "person"}),
        ("/registrations", {"population": "cohort", "name": "x", "request": {"path": "x.csv"}}),
        ("/registrations", {"population": "cohort", "name": "x", "request": {"other": 1}}),
    ],
)
def test_stewards_are_told_what_is_wrong(rooms, app, path, body):
    found = ask_json(app, "POST", path, rooms.tokens["sam"], body)
    assert (found.status, found.json()["error"]["kind"]) in [(400, "invalid"), (400, "guarantee")]


def test_a_population_that_is_there_is_a_conflict(rooms, app):
    body = {"name": "cohort", "cap": {"kind": "GDP", "mu": "1"}, "unit": "person"}
    assert ask_json(app, "POST", "/populations", rooms.tokens["sam"], body).status == 409


def test_an_approval_pays(rooms, app):
    found = ask_json(
        app, "POST", f"/approvals/{rooms.waiting[1]}", rooms.tokens["sam"], {"decision": "approve", "reason": ""}
    )
    assert (found.status, found.json()["state"]) == (200, "pending")
    again = ask_json(
        app, "POST", f"/approvals/{rooms.waiting[1]}", rooms.tokens["sam"], {"decision": "refuse", "reason": "x"}
    )
    assert again.status == 409


# -------------------------------------------------------------------- the document


def test_the_document_has_every_route_and_no_other(rooms, app):
    found = ask_json(app, "GET", "/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    said = {(method.upper(), path) for path, methods in found["paths"].items() for method in methods}
    assert said == {(one.method, f"/api/v1{one.path}") for one in ENDPOINTS} | {("GET", "/api/v1/openapi.json")}
    names = [one["operationId"] for methods in found["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))
    for methods in found["paths"].values():
        for one in methods.values():
            assert one["summary"].endswith(".")
            assert "default" in one["responses"]


def test_references_of_the_document_lead_somewhere():
    said = openapi_document("x", ENDPOINTS, SCHEMAS)
    known = {f"#/components/schemas/{name}" for name in said["components"]["schemas"]}

    def references(value):
        inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        yield from (value["$ref"],) if isinstance(value, dict) and "$ref" in value else ()
        for one in inner:
            yield from references(one)

    assert set(references(said)) <= known


def test_an_answer_that_differs_from_its_schema_is_noticed(rooms, app):
    view = ask_json(app, "GET", "/datasets/cohort/dti", rooms.tokens["ada"]).json()
    schema = SCHEMAS["DataSetView"]
    assert fault(view, schema, SCHEMAS) is None
    less = {name: value for name, value in view.items() if name != "n"}
    for wrong in (less, {**view, "more": 1}, {**view, "n": "60"}, {**view, "classes": 3}, {**view, "statistics": [1]}):
        assert fault(wrong, schema, SCHEMAS) is not None


def test_every_error_is_as_the_document_says(rooms, app):
    schema = {"$ref": "#/components/schemas/Error"}
    known = openapi_document("x", ENDPOINTS, SCHEMAS)["components"]["schemas"]
    for found in (
        ask_json(app, "GET", "/me"),
        _nothing(app, rooms),
        ask_json(app, "POST", "/plans", rooms.tokens["ada"], b"{"),
    ):
        assert fault(found.json(), schema, known) is None
