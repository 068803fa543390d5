"""What stewards, auditors and everybody with an account do on pages of their own."""

import json
import re
import urllib.parse

import pytest
from sqlalchemy import update

import dpmanifold as dpm
from dpmanifold.errors import Message, message_to_record
from dpmanifold.service import tables
from dpmanifold.service.questions import Question
from dpmanifold.service.web.app import make_app
from dpmanifold.service.web.pages.overseeing import request_of
from service_reading import Page, Visitor, faults
from service_rooms import BALL, PASSWORD, desk_of, furnish, service_in, tensors
from service_web import ORIGIN, ask, cookie

pytestmark = pytest.mark.security

REF = "cohort/dti"
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("pages")) as made:
        furnish(made)
        yield made


@pytest.fixture(scope="module")
def app(service):
    return make_app(service)


@pytest.fixture
def ada(app, service):
    return Visitor(app, service, "ada")


@pytest.fixture
def sam(app, service):
    return Visitor(app, service, "sam")


@pytest.fixture
def ann(app, service):
    return Visitor(app, service, "ann")


def _spends(service, key):
    return [line for line in service.ledger.history("cohort", limit=1000).releases if line.key == key]


# -------------------------------------------------------------------- stewards


def test_a_steward_makes_caps_and_grants(service, sam):
    made = sam.post("/steward/populations", name="children", unit="child", kind="ApproxDP", amount="1", delta="1e-6")
    assert made.status == 303
    assert made["location"].startswith("/steward/populations/children")
    place = "/steward/populations/children"
    assert sam.post(f"{place}/cap", kind="ApproxDP", amount="2", delta="1e-6", reason="").status == 400
    assert sam.post(f"{place}/cap", kind="ApproxDP", amount="0.5", delta="1e-6", reason="why").status == 400
    assert sam.post(f"{place}/cap", kind="ApproxDP", amount="2", delta="1e-6", reason="a new study").status == 303
    granted = sam.post(f"{place}/grants", account="ada", kind="ApproxDP", amount="1", delta="1e-7", reason="protocol 3")
    assert granted.status == 303
    nobody = sam.post(f"{place}/grants", account="nobody", kind="ApproxDP", amount="1", delta="1e-7", reason="r")
    assert nobody.status == 400
    assert Page(nobody.body).one("input", id="grant-reason").get("value") == "r"
    page = sam.page(place)
    assert "epsilon 2" in page.one("main", id="content").text
    assert "ada" in page.all("table")[0].text


def test_a_steward_sets_terms_and_decides(service, sam, ada):
    place = "/steward/populations/cohort/terms/dti"
    assert sam.post(place, approval="yes", slot="never", note="n").status == 400
    assert sam.post(place, approval="yes", slot="", note="looked at first").status == 303
    try:
        fields = ada.page(ada.get(f"/confirm?data={REF}&amount=0.02")["location"]).fields("/ask")
        asked = [ada.post("/ask", **{**fields, "key": f"decide-{number}"})["location"] for number in (1, 2)]
        assert "approve" in ada.page(asked[0]).one("main", id="content").text
        ids = [path.rpartition("/")[2] for path in asked]
        assert "looked at first" in ada.page(f"/data/{REF}").one("main", id="content").text
        waiting = sam.page("/steward").one("main", id="content").text
        assert waiting.count("for ada") >= 2
        without = sam.post(f"/steward/approvals/{ids[0]}", decision="refuse", reason="")
        assert without.status == 400
        assert Page(without.body).alerts
        assert sam.post(f"/steward/approvals/{ids[0]}", decision="refuse", reason="too small").status == 303
        assert sam.post(f"/steward/approvals/{ids[1]}", decision="approve", reason="").status == 303
        assert "too small" in ada.page(asked[0]).one("main", id="content").text
        assert _spends(service, "decide-1") == []
        assert len(_spends(service, "decide-2")) == 1
    finally:
        sam.post(place, slot="", note=f"fitted {HOSTILE}")


def test_a_paused_data_set_is_said_to_be_and_resumed_with_a_reason(service, sam, ada):
    with service.database.writing() as connection:
        connection.execute(tables.pauses.insert().values(population="cohort", since=tables.now()))
    place = "/steward/populations/cohort"
    try:
        page = ada.page(f"/data/{REF}")
        text = page.one("main", id="content").text
        assert "Paused" in text
        assert "any of its data sets" in text
        assert "answered at once" not in text
        assert not [one for one in page.all("a") if one.text == "Plan a release"]
        assert "is paused" in ada.page(f"/plan/{REF}").one("section", id="cost").text
        assert faults(sam.page(place)) == []
        assert sam.post(f"{place}/resume", reason="").status == 400
    finally:
        assert sam.post(f"{place}/resume", reason="a disk was full").status == 303
    assert "Paused" not in ada.page(f"/data/{REF}").one("main", id="content").text
    again = sam.post(f"{place}/resume", reason="once more")
    assert again.status == 409


def test_a_slot_that_a_steward_has_set_stands_in_its_form(sam):
    place = "/steward/populations/cohort"
    assert sam.page(place).one("input", id="terms-dtislot").get("value") == ""
    sam.post(f"{place}/terms/dti", slot="42.5", note=f"fitted {HOSTILE}")
    assert sam.page(place).one("input", id="terms-dtislot").get("value") == "42.5"
    sam.post(f"{place}/terms/dti", slot="", note=f"fitted {HOSTILE}")


def test_a_registration_is_sent_as_it_was_typed(service, sam):
    typed = {"population": "cohort", "name": "eeg", "path": "eeg/c.csv", "space": "spd", "unit_kind": "column",
             "units": "subject", "radius": "2.5", "source": "an atlas", "labels": "arm", "classes": "a, b",
             "covariate": "age", "covariate_low": "20", "covariate_high": "80", "covariate_public": "yes"}  # fmt: skip
    sent = sam.post("/steward/registrations", **typed)
    assert sent.status == 303
    found = desk_of(service, "sam").registration(sent["location"].rpartition("/")[2]).request
    assert (found["units"], found["classes"], found["covariate_range"]) == ("subject", "a, b", [20.0, 80.0])
    assert (found["labels_public"], found["covariate_public"], found["confirm"]) == (False, True, False)
    page = sam.page(sent["location"])
    assert "an atlas" in page.one("main", id="content").text
    wrong = sam.post("/steward/registrations", **{**typed, "covariate_low": "", "size": ""})
    assert wrong.status == 400
    assert "range" in Page(wrong.body).alerts[0]
    assert Page(wrong.body).one("input", id="path").get("value") == "eeg/c.csv"
    assert sam.post("/steward/registrations", **{**typed, "radius": ""}).status == 400


def test_a_refused_registration_is_typed_once(service, sam, ada):
    typed = {"population": "cohort", "name": "again", "path": "a.csv", "space": "spd", "unit_kind": "each-record",
             "radius": "2.5", "labels": "arm", "classes": "a,b", "labels_public": "yes", "covariate": "age",
             "covariate_low": "20", "covariate_high": "80.5", "confirm": "yes"}  # fmt: skip
    sent = sam.post("/steward/registrations", **typed)["location"]
    made = sent.rpartition("/")[2]
    with service.database.writing() as connection:
        connection.execute(
            update(tables.registrations)
            .filter_by(id=made)
            .values(state="refused", message=json.dumps([message_to_record(Message("no"))]))
        )
    (link,) = [one.get("href") for one in sam.page(sent).all("a") if one.text == "Register again"]
    page = sam.page(link)
    for name in ("name", "path", "space", "radius", "labels", "classes", "covariate"):
        assert page.one("input", id=name).get("value") == typed[name]
    assert [float(page.one("input", id=f"covariate_{end}").get("value")) for end in ("low", "high")] == [20, 80.5]
    ticked = {one.get("id") for one in page.all("input") if one.get("checked") is not None}
    assert ticked == {"labels_public", "each-record"}
    assert ada.get(link).status in (403, 404)
    assert sam.get("/steward/register?again=nothing").status == 404


def test_classes_are_private_unless_a_steward_says_otherwise(sam):
    page = sam.page("/steward/register")
    assert page.one("input", id="labels_public").get("checked") is None
    assert "diagnosis" in page.one("span", id="labels_public-help").text


def test_every_record_can_be_a_unit():
    assert request_of({"unit_kind": "each-record", "units": "subject"})["units"] == "each-record"


# -------------------------------------------------------------------- where everybody lands


def test_what_is_left_is_said_once_for_a_population(service, ada):
    service.ledger.population("cohort").register("other", tensors(9), BALL, units="each-record", invalid="center")
    text = ada.page("/").one("main", id="content").text
    assert text.count("Left to you") == text.count("of the cap is spent") == 1
    assert "all data sets of cohort share it" in text


def test_everybody_is_told_what_to_do_next(service, sam, ada, ann, tmp_path):
    for who, place in ((sam, "/steward"), (ann, "/auditor")):
        main = who.page("/").one("main", id="content")
        assert place in [one.get("href") for one in who.page("/").all("a") if main.tag in [up.tag for up in one.inside]]
        assert "left to you" not in main.text.lower()
    with service_in(tmp_path) as empty:
        first = Visitor(make_app(empty), empty, "sam").page("/")
        assert faults(first) == []
        text = first.one("main", id="content").text
        assert "grants you" not in text
        assert text.index("Make a population") < text.index("Register their data")
        assert "grants you" in Visitor(make_app(empty), empty, "ada").page("/").one("main", id="content").text


# -------------------------------------------------------------------- accounts


def test_a_token_is_shown_once_and_can_be_revoked(service, ada):
    made = Page(ada.post("/account/tokens", label="notebook", days="30").body)
    secret = made.one("p", id="secret").text.strip()
    assert service.tokens.find(secret).name == "ada"
    again = ada.page("/account")
    assert secret not in again.one("main", id="content").text
    form = next(one for one in again.all("form") if one.get("action", "").endswith("/revoke"))
    assert ada.post(form.get("action")).status == 303
    wrong = Page(ada.post("/account/tokens", label="kept", days="many").body)
    assert "days must be" in wrong.alerts[0]
    assert wrong.one("input", id="label").get("value") == "kept"


def test_a_password_is_changed_and_the_login_goes_on(service, app):
    service.accounts.add("eve", "analyst", PASSWORD)
    eve = Visitor(app, service, "eve")
    new = "another four words"
    assert "two ways" in Page(eve.post("/account/password", old=PASSWORD, new=new, again="x").body).alerts[0]
    assert eve.post("/account/password", old="wrong", new=new, again=new).status == 400
    changed = eve.post("/account/password", old=PASSWORD, new=new, again=new)
    assert changed.status == 303
    assert "__Host-dpm=" in changed["set-cookie"]
    assert eve.get("/account").status == 303  # the old login has ended
    assert service.accounts.signed("eve", new, "192.0.2.9").name == "eve"


def test_signing_in_keeps_the_name_and_goes_on(service, app):
    start = ask(app, "GET", "/login?next=/releases")
    value = re.search(r"__Host-dpm-start=([\w-]+)", start["set-cookie"])[1]
    fields = Page(start.body).fields("/login")
    headers = [cookie(value, "__Host-dpm-start"), ("origin", ORIGIN),
               ("content-type", "application/x-www-form-urlencoded")]  # fmt: skip

    def sent(**more):
        body = urllib.parse.urlencode({**fields, **more}).encode()
        return ask(app, "POST", "/login", headers=headers, pieces=[body], address="192.0.2.77")

    wrong = sent(name="ada", password="not it at all")
    unknown = sent(name="nobody", password="not it at all")
    assert wrong.status == unknown.status == 401
    assert Page(wrong.body).alerts == Page(unknown.body).alerts != []
    assert Page(wrong.body).one("input", id="name").get("value") == "ada"
    assert faults(Page(wrong.body)) == []
    right = sent(name="ada", password=PASSWORD)
    assert right.status == 303
    assert right["location"] == "/releases"
    assert sent(name="ada", password=PASSWORD, next="//evil.example")["location"] == "/"


# -------------------------------------------------------------------- auditors


def test_an_auditor_verifies_and_has_no_form(service, ann):
    asked = desk_of(service, "ada").ask(REF, Question("mean", dpm.GDP("0.01")), "audited").id
    for path in (
        "/auditor",
        "/auditor/events",
        "/releases",
        f"/releases/{asked}",
        "/history/cohort",
        f"/data/{REF}",
    ):
        page = ann.page(path)
        assert [one.get("action") for one in page.all("form")] == ["/logout"]
    assert "follow from the one before" in ann.page("/auditor").one("main", id="content").text
    last = desk_of(service, "ann").audit().head
    assert last
    assert ann.page("/auditor").one("dd", id="last-hash").text == last
    export = ann.get("/auditor/export")
    assert "attachment" in export["content-disposition"]
    assert all(json.loads(line) for line in export.body.decode().splitlines())
    plan = ann.page(f"/plan/{REF}")
    assert not [one for one in plan.all("button") if one.get("formaction")]
