"""Every page by every role about everybody's things; every form without its token and from elsewhere."""

import pytest

from dpmanifold.service.web import sessions
from dpmanifold.service.web.app import make_app
from dpmanifold.service.web.pages import ROUTES
from service_rooms import service_in
from service_web import ORIGIN, Rooms, ask, cookie, rejected

pytestmark = pytest.mark.security

FORM = ("content-type", "application/x-www-form-urlencoded")
WHO = (None, "ada", "bob", "sam", "ann")  # nobody, an analyst with a grant, one without, steward, auditor
EVERYBODY, SEEN = (303, 200, 200, 200, 200), (303, 200, 404, 200, 200)
ANALYSTS, STEWARDS = (303, 200, 404, 404, 404), (303, 404, 404, 200, 404)
AUDITORS = (303, 404, 404, 404, 200)
# Page, statuses for WHO. Names in brackets are replaced by things that are there.
TABLE = {
    "/": EVERYBODY,
    "/data/cohort/dti": SEEN,
    "/history/cohort": SEEN,
    "/plan/cohort/dti": SEEN,
    "/plan/cohort/dti/curve.json?statistic=mean&kind=GDP": SEEN,
    "/confirm?data=cohort/dti&statistic=mean&kind=GDP&amount=0.01&key=k": ANALYSTS,
    "/releases": EVERYBODY,
    "/releases/{release}": SEEN,
    "/releases/{release}/state.json": SEEN,
    "/releases/{release}/picture.png": SEEN,
    "/releases/{release}/report.html": SEEN,
    "/releases/{release}/result.json": SEEN,
    "/releases/{release}/value.npy": SEEN,
    "/account": EVERYBODY,
    "/steward": STEWARDS,
    "/steward/populations/cohort": STEWARDS,
    "/steward/register": STEWARDS,
    "/steward/registrations/{registration}": STEWARDS,
    "/steward/registrations/{registration}/state.json": STEWARDS,
    "/auditor": AUDITORS,
    "/auditor/events": AUDITORS,
    "/auditor/export": AUDITORS,
}
FORMS = sorted(route.path for route in ROUTES if "POST" in route.methods and route.path != "/login")


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("pages")) as service:
        made = Rooms(service)
        made.logins = {name: service.logins.begin(service.accounts.find(name)) for name in WHO[1:]}
        yield made


@pytest.fixture
def app(rooms):
    return make_app(rooms.service)


def _seen(rooms, app, name, path, method="GET"):
    headers = [] if name is None else [cookie(rooms.logins[name][0])]
    return ask(app, method, path, headers=headers)


def _sent(rooms, app, name, path, origin=ORIGIN, **fields):
    headers = [FORM, ("origin", origin)] + ([] if name is None else [cookie(rooms.logins[name][0])])
    return ask(app, "POST", path, headers=headers, pieces=["&".join(f"{k}={v}" for k, v in fields.items()).encode()])


def _filled(path, rooms):
    return path.format(release=rooms.release, registration=rooms.registration)


@pytest.mark.parametrize(("path", "statuses"), TABLE.items(), ids=list(TABLE))
def test_every_page_is_shown_to_whom_it_is_for(rooms, app, path, statuses):
    for name, status in zip(WHO, statuses, strict=True):
        found = _seen(rooms, app, name, _filled(path, rooms))
        assert (name, found.status) == (name, status)
        if status == 404:
            assert found == _seen(rooms, app, name, "/there-is-no-such-page")


def test_every_page_is_in_that_table():
    tried = {path.partition("?")[0].split("/")[1] + str(path.partition("?")[0].count("/")) for path in TABLE}
    shown = [route.path for route in ROUTES if "GET" in route.methods and route.path != "/login"]
    assert {path.split("/")[1] + str(path.count("/")) for path in shown} <= tried
    assert len(shown) == len(TABLE)


def test_what_is_not_there_is_one_page(rooms, app):
    gone = [path.replace("cohort", "none").format(release="none", registration="none") for path in TABLE]
    for name in WHO[1:]:
        nothing = _seen(rooms, app, name, "/there-is-no-such-page")
        assert nothing.status == 404
        for path in gone:
            if "none" in path:
                assert (path, _seen(rooms, app, name, path)) == (path, nothing)


def _assert_guarded(rooms, app):
    for path in FORMS:
        for name in WHO[1:]:
            csrf = rooms.logins[name][1].csrf
            assert (path, _sent(rooms, app, name, path, csrf="x").status) == (path, 403)
            assert (path, _sent(rooms, app, name, path).status) == (path, 403)
            assert (path, _sent(rooms, app, name, path, origin="https://evil.example", csrf=csrf).status) == (path, 403)
        assert (path, _sent(rooms, app, None, path, csrf="x").status) == (path, 303)


def test_every_form_has_its_token_and_comes_from_here(rooms, app):
    _assert_guarded(rooms, app)


def test_a_form_without_a_guard_is_noticed(rooms, app, monkeypatch):
    monkeypatch.setattr(sessions, "refuse_foreign", lambda *_: None)
    with rejected():
        _assert_guarded(rooms, app)


@pytest.mark.parametrize("name", ["ada", "bob", "ann"])
@pytest.mark.parametrize("path", [path for path in FORMS if path.startswith("/steward")])
def test_forms_of_stewards_are_nothing_to_others(rooms, app, path, name):
    csrf = rooms.logins[name][1].csrf
    there = path.format(population="cohort", name="dti", release=rooms.waiting[0])
    assert _sent(rooms, app, name, there, csrf=csrf) == _seen(rooms, app, name, "/there-is-no-such-page")


def test_nobody_revokes_a_token_of_another(rooms, app):
    path = f"/account/tokens/{rooms.spare}/revoke"
    for name in ("bob", "sam", "ann"):
        assert _sent(rooms, app, name, path, csrf=rooms.logins[name][1].csrf).status == 404
    assert _sent(rooms, app, "ada", path, csrf=rooms.logins["ada"][1].csrf).status in (200, 303)
