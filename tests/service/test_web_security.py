"""What every request passes and every answer carries; of each, a variant without it is rejected."""

import asyncio
import contextlib
import json
import re
import socket
import threading
import time

import jinja2
import pytest
from starlette.routing import Mount

from dpmanifold.errors import BudgetError, InvalidArgumentError, InvalidDataError, LedgerError, PromiseError
from dpmanifold.service.http_errors import Conflict, NotFound, TooMany
from dpmanifold.service.web import app as server, security, sessions
from dpmanifold.service.web.answers import Errors, as_json, document, download, planning, safe_name
from dpmanifold.service.web.app import server_of
from dpmanifold.service.web.security import (
    HEADERS,
    POLICY,
    REPORT_POLICY,
    Forwarded,
    KnownHosts,
    SecurityHeaders,
    WholeBody,
)
from dpmanifold.service.web.sessions import COOKIE, START_COOKIE, local_path
from service_rooms import service_in
from service_web import HOST, ORIGIN, app_of, ask, ask_json, cookie, rejected, without
from service_worker import until

pytestmark = pytest.mark.security

FORM = ("content-type", "application/x-www-form-urlencoded")
CANARY = "canary-31415926"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("web")) as made:
        yield made


@pytest.fixture
def login(service):
    value, known = service.logins.begin(service.accounts.find("ada"))
    return value, known.csrf


def _raising(error):
    def endpoint(_):
        raise error

    return endpoint


def _shown(request):
    return as_json({"name": sessions.signed_in(request).actor.name})


def _taken(request):
    return as_json(sessions.form(request))


def _start(request):
    if request.method == "GET":
        return sessions.start_page(request, "start.html")
    return sessions.sign_in(request, _ADA, sessions.start_form(request).get("next"))


_ADA = None


@pytest.fixture
def app(service, monkeypatch):
    monkeypatch.setitem(globals(), "_ADA", service.accounts.find("ada"))
    made = app_of(
        service, monkeypatch, shown=_shown, taken=_taken, start=_start,
        report=lambda _: document(b"<p>a report"), file=lambda _: download(b"x", 'a/b"\r\nX: y.npy'),
        broken=_raising(RuntimeError(CANARY)), ledger=_raising(LedgerError(CANARY)), conflict=_raising(Conflict("so.")),
        data=_raising(InvalidDataError(CANARY)), argument=_raising(InvalidArgumentError(CANARY)),
        nothing=_raising(NotFound()), many=_raising(TooMany("Wait.", retry_after=7)),
    )  # fmt: skip
    pages = {
        "start.html": "{{ csrf }}",
        "x.html": "{{ login }}{{ nowhere }}",
        "error.html": "{{ title }}: {{ message }}",
    }
    made.state.templates = jinja2.Environment(
        loader=jinja2.DictLoader(pages), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return made


# -------------------------------------------------------------------- headers

EVERYWHERE = [
    ("GET", "/shown", 303), ("GET", "/none", 404), ("POST", "/taken", 403), ("DELETE", "/shown", 404),
    ("GET", "/broken", 500), ("GET", "/ledger", 503), ("GET", "/conflict", 409), ("GET", "/many", 429),
    ("GET", "/report", 200), ("GET", "/file", 200), ("GET", "/health", 200), ("GET", "/api/v1/me", 401),
    ("GET", "/api/v1/openapi.json", 200), ("GET", "/api/v1/none", 401), ("GET", "/api", 404),
    ("GET", "/static/x/y", 404), ("HEAD", "/none", 404), ("OPTIONS", "/shown", 404),
    ("GET", "//shown", 404), ("GET", "/shown/", 404),
]  # fmt: skip


def _assert_headers(app, method, path, status):
    found = ask(app, method, path)
    assert found.status == status
    names = [name for name, _ in found.headers]
    assert len(names) == len(set(names))
    for name, value in HEADERS.items():
        assert found[name] == value
    assert found["content-security-policy"] == (REPORT_POLICY if path == "/report" else POLICY)
    assert found["cache-control"] == "no-store"
    assert not {"server", "date", "etag", "last-modified", "allow"} & set(names)


@pytest.mark.parametrize(("method", "path", "status"), EVERYWHERE)
def test_every_answer_has_the_headers(app, method, path, status):
    _assert_headers(app, method, path, status)


def test_an_application_without_that_layer_is_noticed(app):
    with rejected():
        _assert_headers(without(app, SecurityHeaders), "GET", "/none", 404)


def test_answers_to_foreign_hosts_and_large_requests_have_the_headers(app):
    for found in (ask(app, "GET", "/", host="evil.example"), ask(app, "POST", "/", pieces=[b"x" * 70_000])):
        assert all(found[name] == value for name, value in HEADERS.items())


def test_no_page_weakens_its_policy(app, service, monkeypatch):
    def weak(_):
        return as_json({}, headers={"content-security-policy": "default-src *", "cache-control": "public"})

    found = ask(app_of(service, monkeypatch, weak=weak), "GET", "/weak")
    assert (found["content-security-policy"], found["cache-control"]) == (POLICY, "no-store")


def test_the_policy_allows_nothing_inline():
    assert "unsafe" not in POLICY
    assert "default-src 'none'" in POLICY
    assert REPORT_POLICY.startswith("sandbox; default-src 'none'")
    assert "script" not in REPORT_POLICY


def test_only_https_is_remembered(tmp_path, monkeypatch):
    environ = {"DPM_SERVICE_WEB_URL": "https://stats.example.org", "DPM_SERVICE_WEB_BEHIND_PROXY": "true"}
    with service_in(tmp_path, **environ) as made:
        app = app_of(made, monkeypatch)
        assert ask(app, "GET", "/health", host="stats.example.org")["strict-transport-security"].startswith("max-age=")


def test_plain_http_asks_for_no_https(app):
    assert ask(app, "GET", "/health")["strict-transport-security"] == ""


def test_head_is_get_without_a_body(app):
    for path in ("/api/v1/openapi.json", "/file", "/none"):
        full, empty = ask(app, "GET", path), ask(app, "HEAD", path)
        assert (empty.status, empty.body) == (full.status, b"")
        assert empty.headers == full.headers


# -------------------------------------------------------------------- hosts


def _assert_hosts(app):
    for path in ("/", "/shown", "/health", "/api/v1/openapi.json", "/static/x/y"):
        for host in ("evil.example", "127.0.0.1:8000.evil.example", "127.0.0.1", "evil.example:8000", "", None):
            assert ask(app, "GET", path, host=host).status == 421
    twice = ask(app, "GET", "/health", headers=[("host", "evil.example")])
    assert twice.status == 421
    assert ask(app, "GET", "/health", host="LOCALHOST:8000").status == 200


def test_a_name_that_points_here_gets_no_answer(app):
    _assert_hosts(app)


def test_an_application_without_known_hosts_is_noticed(app):
    with rejected():
        _assert_hosts(without(app, KnownHosts))


def test_hosts_are_checked_before_bodies_and_logins(app, service, monkeypatch):
    monkeypatch.setattr(service.logins, "find", _raising(AssertionError))
    found = ask(app, "POST", "/taken", host="evil.example", headers=[cookie("x")], pieces=[b"x" * 70_000])
    assert found.status == 421


# -------------------------------------------------------------------- bodies


def _assert_sizes(app, path, limit):
    many = [b"x" * 1000] * (limit // 1000 + 1)
    assert ask(app, "POST", path, headers=[FORM], pieces=many).status == 413  # no length announced
    assert ask(app, "POST", path, headers=[FORM, ("content-length", str(limit + 1))], pieces=[None]).status == 413
    assert ask(app, "POST", path, headers=[FORM, ("content-length", "5")], pieces=many).status == 413  # a lie
    assert ask(app, "POST", path, headers=[FORM], pieces=[b"x" * limit]).status != 413


@pytest.mark.parametrize("path", ["/taken", "/start", "/api/v1/plans", "/none"])
def test_large_requests_are_refused_while_they_arrive(app, service, path):
    _assert_sizes(app, path, service.settings.body_limit)


def test_an_application_without_a_limit_is_noticed(app, service):
    with rejected():
        _assert_sizes(without(app, WholeBody), "/taken", service.settings.body_limit)


def test_slow_requests_end(app, monkeypatch):
    monkeypatch.setattr(security, "BODY_SECONDS", 0.05)
    assert ask(app, "POST", "/taken", headers=[FORM], pieces=[b"a=", None]).status == 408


def test_whoever_goes_away_is_not_answered(app):
    assert ask(app, "POST", "/taken", headers=[FORM], pieces=[]) is None


# -------------------------------------------------------------------- forms


def _post(app, login, *, origin=ORIGIN, site=None, csrf=None, kind=FORM, body=""):
    value, right = login
    headers = [kind, cookie(value)]
    headers += [] if origin is None else [("origin", origin)]
    headers += [] if site is None else [("sec-fetch-site", site)]
    field = f"csrf={right if csrf is None else csrf}"
    return ask(app, "POST", "/taken", headers=headers, pieces=[f"{field}&{body}".encode()])


def test_a_form_of_our_page_is_taken(app, login):
    for sender in (
        {},
        {"site": "same-origin"},
        {"origin": "null", "site": "same-origin"},
        {"origin": None, "site": "same-origin"},
    ):
        found = _post(app, login, body="label=a+b&note=", **sender)
        assert (found.status, found.json()) == (200, {"label": "a b", "note": ""})


def _assert_origins(app, login):
    foreign = ["https://evil.example", "null", "http://127.0.0.1:9000", f"https://{HOST}", f"{ORIGIN}.evil.example", ""]
    for origin in foreign:
        assert _post(app, login, origin=origin).status == 403
    for site in ("cross-site", "same-site", "none", ""):
        assert _post(app, login, site=site).status == 403
        assert _post(app, login, origin="null", site=site).status == 403
    assert _post(app, login, origin=None).status == 403
    for name, said in (("origin", [ORIGIN, "https://evil.example"]), ("sec-fetch-site", ["same-origin", "cross-site"])):
        for twice in (said, said[::-1], said[:1] * 2):
            headers = [FORM, cookie(login[0]), *((name, value) for value in twice)]
            headers += [("origin", "null")] if name != "origin" else []
            assert ask(app, "POST", "/taken", headers=headers, pieces=[f"csrf={login[1]}".encode()]).status == 403


def test_a_form_of_another_site_is_refused(app, login):
    _assert_origins(app, login)


def test_a_form_that_is_not_asked_where_it_came_from_is_noticed(app, login, monkeypatch):
    monkeypatch.setattr(sessions, "refuse_foreign", lambda *_: None)
    with rejected():
        _assert_origins(app, login)


def test_behind_a_proxy_forms_come_by_https(tmp_path, monkeypatch):
    environ = {"DPM_SERVICE_WEB_URL": "https://stats.example.org", "DPM_SERVICE_WEB_BEHIND_PROXY": "true"}
    with service_in(tmp_path, **environ) as made:
        app = app_of(made, monkeypatch, taken=_taken)
        value, known = made.logins.begin(made.accounts.find("ada"))
        statuses = [
            ask(app, "POST", "/taken", host=host, headers=[FORM, cookie(value), ("origin", origin)],
                pieces=[f"csrf={known.csrf}".encode()]).status
            for host, origin in [
                ("stats.example.org", "https://stats.example.org"),
                ("stats.example.org", "http://stats.example.org"),
                ("127.0.0.1:8000", "https://stats.example.org"),
            ]
        ]  # fmt: skip
    assert statuses == [200, 403, 403]


def _assert_csrf(app, login, other):
    for csrf in ("", "x", other, login[1] + "x", login[1][:-1], "%C3%A9"):
        assert _post(app, login, csrf=csrf).status == 403
    found = ask(app, "POST", "/taken", headers=[FORM, cookie(login[0]), ("origin", ORIGIN)], pieces=[b"label=x"])
    assert found.status == 403


def test_a_form_without_its_token_is_refused(app, login, service):
    _, other = service.logins.begin(service.accounts.find("bob"))
    _assert_csrf(app, login, other.csrf)


def test_a_form_whose_token_is_not_compared_is_noticed(app, login, monkeypatch):
    monkeypatch.setattr(sessions, "_checked", lambda fields, _: fields)
    with rejected():
        _assert_csrf(app, login, "y")


@pytest.mark.parametrize("kind", ["text/plain", "multipart/form-data; boundary=x", "application/json", ""])
def test_forms_come_as_forms(app, login, kind):
    assert _post(app, login, kind=("content-type", kind)).status == 415


@pytest.mark.parametrize("body", ["a=1&a=2", "csrf=x", "a=%00", "a=%FF", "&".join(f"f{k}=" for k in range(300))])
def test_fields_come_once_and_are_text(app, login, body):
    assert _post(app, login, body=body).status == 400


def test_a_form_of_nobody_leads_to_the_sign_in(app):
    found = _post(app, ("nobody", "x"))
    assert (found.status, found["location"]) == (303, "/login")


# -------------------------------------------------------------------- sign-in


def test_pages_know_who_is_signed_in(app, login, service):
    assert ask(app, "GET", "/shown", headers=[cookie(login[0])]).json() == {"name": "ada"}
    service.logins.end(login[0])
    assert ask(app, "GET", "/shown", headers=[cookie(login[0])]).status == 303


def _assert_cookies(app, login):
    ours = f"{COOKIE}={login[0]}"
    for taken in (ours, f"a=b; {ours}", f"a=b;{ours};c=d", f"\xa0{COOKIE}=evil; {ours}", f"{ours}; x{COOKIE}=y"):
        assert ask(app, "GET", "/shown", headers=[("cookie", taken)]).status == 200
    for refused in (*(f"a=b; {blank}{ours}" for blank in "\xa0\x85\x1c\x0b\x0c"), ours.replace("=", " ="),
                    f"{ours}; {ours}", f"{ours}; {COOKIE}=evil", f"{COOKIE}=evil; {ours}", f'{COOKIE}="{login[0]}"',
                    ours.upper(), f"{ours}\xe9"):  # fmt: skip
        assert ask(app, "GET", "/shown", headers=[("cookie", refused)]).status == 303
    assert ask(app, "GET", "/shown", headers=[("cookie", ours), ("cookie", ours)]).status == 303


def test_a_cookie_is_ours_by_its_bytes_and_once(app, login):
    _assert_cookies(app, login)


def test_a_reader_that_takes_blanks_off_names_is_noticed(app, login, monkeypatch):
    monkeypatch.setattr(sessions, "cookie_of", lambda request, name: request.cookies.get(name, ""))
    with rejected():
        _assert_cookies(app, login)


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/shown", "/login?next=/shown"),
        ("/shown?a=b&c=//d", "/login?next=/shown%3Fa%3Db%26c%3D//d"),
    ],
)
def test_whoever_is_not_comes_back_after_the_sign_in(app, path, location):
    found = ask(app, "GET", path, headers=[cookie("nobody")])
    assert (found.status, found["location"]) == (303, location)


@pytest.mark.parametrize(
    "path",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil", "evil", "", None, "/a\r\nX: y", "/\t/e"],
)
def test_nobody_is_led_elsewhere(path):
    assert local_path(path) == "/"


def _started(app):
    page = ask(app, "GET", "/start")
    (said,) = [value for name, value in page.headers if name == "set-cookie"]
    value = re.match(f"{START_COOKIE}=([^;]+); ", said)[1]
    return value, page.body.decode(), said


def test_signing_in_makes_cookies_that_only_this_host_gets(app, service):
    value, csrf, said = _started(app)
    assert {"HttpOnly", "Secure", "Path=/", "SameSite=strict"} <= set(said.split("; "))
    assert "Domain" not in said
    headers = [FORM, cookie(value, START_COOKIE), ("origin", ORIGIN)]
    found = ask(app, "POST", "/start", headers=headers, pieces=[f"csrf={csrf}&next=//evil.example".encode()])
    assert (found.status, found["location"]) == (303, "/")
    made = next(text for name, text in found.headers if name == "set-cookie" and text.startswith(f"{COOKIE}="))
    assert {"HttpOnly", "Secure", "Path=/", "SameSite=strict", "Max-Age=43200"} <= set(made.split("; "))
    assert "Domain" not in made
    assert service.logins.find(made.split("=", 1)[1].split(";")[0]).actor.name == "ada"


def test_an_older_login_ends_with_a_new_one(app, login, service):
    value, csrf, _ = _started(app)
    both = ("cookie", f"{START_COOKIE}={value}; {COOKIE}={login[0]}")
    assert (
        ask(app, "POST", "/start", headers=[FORM, both, ("origin", ORIGIN)], pieces=[f"csrf={csrf}".encode()]).status
        == 303
    )
    assert service.logins.find(login[0]) is None


def test_nobody_is_signed_in_by_another_site(app, service, monkeypatch):
    value, csrf, _ = _started(app)
    body = [f"csrf={csrf}".encode()]
    own, origin = cookie(value, START_COOKIE), ("origin", ORIGIN)
    assert (
        ask(app, "POST", "/start", headers=[FORM, own, ("origin", "https://evil.example")], pieces=body).status == 403
    )
    assert ask(app, "POST", "/start", headers=[FORM, origin], pieces=body).status == 403
    assert ask(app, "POST", "/start", headers=[FORM, cookie("x" * 43, START_COOKIE), origin], pieces=body).status == 403
    assert ask(app, "POST", "/start", headers=[FORM, own, origin], pieces=[b"csrf="]).status == 403
    other = app_of(service, monkeypatch, start=_start)  # another process has another key
    assert ask(other, "POST", "/start", headers=[FORM, own, origin], pieces=body).status == 403


def test_templates_escape_and_know_all_they_name(app, service, monkeypatch):
    own = app_of(service, monkeypatch).state.templates
    assert own.from_string("{{ label }}").render(label="<img onerror=x>") == "&lt;img onerror=x&gt;"
    with pytest.raises(jinja2.UndefinedError):
        own.from_string("{{ nowhere }}").render()


# -------------------------------------------------------------------- errors


@pytest.mark.parametrize("path", ["/broken", "/ledger", "/data", "/argument"])
def test_what_nobody_foresaw_is_a_number(app, path, capfd):
    found = ask(app, "GET", path)
    assert found.status == (503 if path == "/ledger" else 500)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert CANARY not in found.body.decode() + json.dumps(lines)
    (incident,) = [line for line in lines if line["event"] == "incident"]
    assert re.fullmatch(r"\w+\.py:\d+", incident["what"])
    assert path == "/ledger" or incident["incident"] in found.body.decode()


def test_an_application_that_lets_errors_through_is_noticed(app):
    with pytest.raises(RuntimeError, match=CANARY):
        ask(without(app, Errors), "GET", "/broken")


def test_errors_are_answered_even_if_their_page_is_broken(app):
    app.state.templates = None
    found = ask(app, "GET", "/conflict")
    assert found.status == 409
    assert b"so." in found.body


def test_waits_are_told(app):
    assert ask(app, "GET", "/many")["retry-after"] == "7"


def test_the_same_nothing_everywhere(app):
    first = ask(app, "GET", "/none")
    for method, path in [("GET", "/nothing"), ("PUT", "/shown"), ("GET", "/static/0/app.css"), ("BREW", "/taken")]:
        assert ask(app, method, path) == first


def test_only_planning_shows_what_the_library_refuses():
    for error, kind in [
        (InvalidArgumentError("a"), "invalid"),
        (InvalidDataError("a"), "invalid"),
        (OverflowError("b"), "invalid"),
        (PromiseError("a"), "guarantee"),
        (BudgetError("a"), "over-budget"),
    ]:
        with pytest.raises(Exception, match="a") as caught, planning():
            raise error
        assert caught.value.kind == kind
    for error in (LedgerError("a"), KeyError("a"), ZeroDivisionError("a")):
        with pytest.raises(type(error)), planning():
            raise error


# -------------------------------------------------------------------- files, log, server


def test_files_have_safe_names(app):
    found = ask(app, "GET", "/file")
    assert found["content-disposition"] == 'attachment; filename="a-b-X-y.npy"'
    assert found["x-content-type-options"] == "nosniff"
    assert [safe_name(name) for name in ("../../etc/passwd", "...", "é", "a" * 500)] == [
        "etc-passwd", "download", "download", "a" * 100,
    ]  # fmt: skip


def test_static_files_are_kept_for_long_and_change_their_address(service, monkeypatch, tmp_path):
    from dpmanifold.service.web.app import Assets

    (tmp_path / "app.css").write_text("a{}")
    (tmp_path / "secret.pem").write_text("no")
    first = Assets(tmp_path)
    (tmp_path / "app.css").write_text("b{}")
    assert Assets(tmp_path).url("app.css") != first.url("app.css")
    with pytest.raises(KeyError, match=r"secret\.pem"):
        first.url("secret.pem")
    app = app_of(service, monkeypatch)
    app.router.routes.insert(0, first.route)
    found = ask(app, "GET", first.url("app.css"))
    assert (found.status, found.body, found["content-type"]) == (200, b"a{}", "text/css; charset=utf-8")
    assert "immutable" in found["cache-control"]
    folder = first.url("app.css").rpartition("/")[0]
    for name in ("secret.pem", "../app.css", "..%2f..%2fapp.py", "%2e%2e/app.py", ""):
        assert ask(app, "GET", f"{folder}/{name}").status == 404


def test_the_log_says_how_and_not_who(app, login, service, capfd):
    _, secret = service.tokens.make(service.accounts.find("ada"), "log", 1)
    ask(app, "GET", f"/shown?who={CANARY}", headers=[cookie(login[0])])
    ask_json(app, "GET", f"/datasets/{CANARY}/x", secret)
    ask(app, "BREW", f"/{CANARY}", headers=[("user-agent", CANARY)])
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(line.get("method"), line.get("route"), line["status"], line.get("role")) for line in lines] == [
        ("GET", "/shown", 200, "analyst"),
        ("GET", "/api/v1/datasets/{population}/{name}", 404, "analyst"),
        ("other", None, 404, None),
    ]
    said = json.dumps(lines)
    assert not any(word in said for word in (CANARY, login[0], secret, "ada", "192.0.2"))


def test_health_says_yes_or_no(app, service, monkeypatch):
    found = ask(app, "GET", "/health")
    assert found.json() == {"status": "degraded", "database": True, "ledger": True, "worker": False}
    broken = app_of(service, monkeypatch)
    monkeypatch.setattr(service.ledger, "populations", _raising(LedgerError(CANARY)))
    found = ask(broken, "GET", "/health")
    assert (found.status, found.json()["ledger"]) == (503, False)
    assert CANARY not in found.body.decode()


def test_the_server_tells_nothing_of_itself_and_believes_no_proxy(service):
    config = server_of(service).config
    assert not config.server_header
    assert not config.date_header
    assert not config.proxy_headers
    assert not config.access_log
    assert (config.http, config.ws, config.lifespan) == (server.Patient, "none", "off")
    assert config.limit_concurrency
    assert config.timeout_graceful_shutdown


@contextlib.contextmanager
def running(made):
    """Run a server in a thread."""
    thread = threading.Thread(target=made.run)
    thread.start()
    while not made.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield made
    finally:
        made.should_exit = True
        thread.join()


@pytest.fixture
def listening(service):
    """The address of a running server."""
    made = server_of(service)
    made.config.port = 0
    with running(made):
        yield made.servers[0].sockets[0].getsockname()


def _sent(where, text, seconds=30.0):
    """What comes back until the connection ends; nothing where it does not in time."""
    with socket.create_connection(where, timeout=seconds) as connection:
        connection.sendall(text.encode())
        found = b""
        with contextlib.suppress(TimeoutError):
            while piece := connection.recv(65536):
                found += piece
            return found.decode("latin-1")
    return None


def _assert_patience(where, seconds):
    begun = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\n"
    assert _sent(where, "", seconds) == ""
    assert _sent(where, "GET /hea", seconds) == ""
    again = _sent(where, f"{begun}\r\n{begun}", seconds)  # a whole request, and half of another one
    assert again.startswith("HTTP/1.1 200")


def test_the_server_waits_so_long_and_not_longer(listening, monkeypatch):
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.1)
    _assert_patience(listening, 30)


def test_a_server_that_waits_for_ever_is_noticed(listening):
    with rejected():
        _assert_patience(listening, 1)


def _assert_nobody_stays_who_does_not_read(service, seconds):
    """Ask for much and read nothing: the place is free again."""
    asked = f"GET /api/v1/openapi.json HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
    made = server_of(service)
    made.config.port = 0
    with running(made), socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        reader.connect(made.servers[0].sockets[0].getsockname())
        reader.sendall(asked * 150)
        until(lambda: made.server_state.total_requests, 30)
        until(lambda: not made.server_state.connections, seconds)


def test_nobody_keeps_a_place_who_does_not_read(service, monkeypatch):
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.1)
    _assert_nobody_stays_who_does_not_read(service, 30)


def test_a_server_that_waits_for_readers_is_noticed(service, monkeypatch):
    monkeypatch.setattr(server, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(server, "_is_stuck", lambda before, now: now.answered and before == now and not now.unread)
    with rejected():
        _assert_nobody_stays_who_does_not_read(service, 0.7)


def test_what_is_read_goes_on():
    one, other = object(), object()
    seen, least = server._Seen, server.LEAST_READ
    stuck = [
        (seen(one, True, 9 * least), seen(one, True, 9 * least)),
        (seen(one, True, 9 * least), seen(one, True, 9 * least - 5)),
        (seen(one, True, 0), seen(one, True, 0)),
        (seen(None, True, 0), seen(None, True, 0)),
    ]
    not_stuck = [
        (seen(one, True, 9 * least), seen(one, True, 8 * least)),
        (seen(one, False, 0), seen(one, False, 0)),  # an answer that takes long
        (seen(one, False, 0), seen(one, True, 9 * least)),
        (seen(one, True, 5), seen(one, True, 0)),
        (seen(one, True, 0), seen(other, True, 0)),
        (seen(one, True, 9 * least), seen(other, True, 9 * least)),
    ]
    assert all(server._is_stuck(*pair) for pair in stuck)
    assert not any(server._is_stuck(*pair) for pair in not_stuck)


def test_an_address_holds_so_many_places(listening, monkeypatch):
    monkeypatch.setattr(server, "OF_ADDRESS", 3)
    with contextlib.ExitStack() as held:
        for _ in range(3):
            held.enter_context(socket.create_connection(listening))
        assert _sent(listening, "") == ""
    asked = f"GET /health HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n"
    until(lambda: _sent(listening, asked).startswith("HTTP/1.1 200"))


def test_the_server_refuses_what_is_no_request_and_what_is_too_much(listening, service):
    head = f"Host: {HOST}\r\nConnection: close\r\n"
    piece = "1000\r\n" + "x" * 4096 + "\r\n"
    chunks = piece * (service.settings.body_limit // 4096 + 1) + "0\r\n\r\n"
    chunked = f"POST /start HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n{chunks}"
    assert _sent(listening, chunked).startswith("HTTP/1.1 413")
    assert _sent(listening, f"GET / HTTP/1.1\r\nHost: evil\r\n{head}\r\n").startswith("HTTP/1.1 400")
    assert _sent(listening, "GET /health HTTP/1.0\r\n\r\n").startswith("HTTP/1.1 421")
    both = f"POST / HTTP/1.1\r\n{head}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    found = _sent(listening, both)
    assert "\r\nserver:" not in found.lower()
    assert "\r\ndate:" not in found.lower()


def test_an_error_within_an_answer_ends_it(app, service, monkeypatch, capfd):
    async def half(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise RuntimeError(CANARY)

    made = app_of(service, monkeypatch)
    made.router.routes.insert(0, Mount("/half", app=half))
    assert ask(made, "GET", "/half/x").body == b""
    said = capfd.readouterr().err
    assert '"incident"' in said
    assert CANARY not in said


PROXIED = {"DPM_SERVICE_WEB_HOST": "unix:web.sock", "DPM_SERVICE_WEB_BEHIND_PROXY": "true",
           "DPM_SERVICE_WEB_URL": "https://stats.example.org"}  # fmt: skip


@pytest.mark.parametrize("left_over", [False, True])
def test_a_socket_file_is_its_groups(tmp_path, left_over):
    path = tmp_path / "web.sock"
    if left_over:
        with socket.socket(socket.AF_UNIX) as old:
            old.bind(str(path))
        path.chmod(0o666)
    with service_in(tmp_path, **PROXIED) as made, running(server_of(made)):
        assert path.stat().st_mode & 0o777 == 0o660
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(b"GET /health HTTP/1.1\r\nHost: stats.example.org\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 200")


def test_a_proxy_limits_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "OF_ADDRESS", 0)
    with service_in(tmp_path, **PROXIED | {"DPM_SERVICE_WEB_HOST": "127.0.0.1"}) as made:
        proxied = server_of(made)
        proxied.config.port = 0
        with running(proxied):
            where = proxied.servers[0].sockets[0].getsockname()
            asked = "GET /health HTTP/1.1\r\nHost: stats.example.org\r\nConnection: close\r\n\r\n"
            assert _sent(where, asked).startswith("HTTP/1.1 200")


def _address_of(app, client, *values):
    """Which address an application behind a proxy sees."""
    seen = []

    async def noting(scope, receive, send):
        seen.append(scope["client"])

    headers = [(b"x-forwarded-for", value) for value in values]
    asyncio.run(app(noting)({"type": "http", "client": client, "headers": headers}, None, None))
    return None if seen[0] is None else seen[0][0]


def _assert_last_address(app):
    for near in (None, ("", 0), ("127.0.0.1", 9), ("::1", 9)):
        assert _address_of(app, near, b"198.51.100.1, 203.0.113.9") == "203.0.113.9"
        assert _address_of(app, near, b"203.0.113.9", b"198.51.100.1, 203.0.113.8:80") == "203.0.113.8"
        assert _address_of(app, near, b"203.0.113.9, x") == (None if near is None else near[0])
        assert _address_of(app, near) == (None if near is None else near[0])
    assert _address_of(app, ("192.0.2.1", 9), b"203.0.113.9") == "192.0.2.1"


def test_the_address_is_what_the_proxy_added():
    _assert_last_address(Forwarded)


def test_an_address_that_anybody_can_write_is_noticed():
    from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

    with rejected():
        _assert_last_address(lambda app: ProxyHeadersMiddleware(app, "*"))


def test_a_proxy_is_believed_where_there_is_one(tmp_path, service):
    with service_in(tmp_path, **PROXIED) as made:
        config = server_of(made).config
    assert config.uds == str(tmp_path / "web.sock")
    assert isinstance(config.app, Forwarded)
    assert not isinstance(server_of(service).config.app, Forwarded)
