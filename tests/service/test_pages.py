"""The pages: readable by everybody, with the numbers of the command line, and nothing paid for twice."""

import importlib.resources
import json
import re
import urllib.parse

import numpy as np
import pytest
from sqlalchemy import update
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app as shell
from dpmanifold.service import tables
from dpmanifold.service.answers import answer_to_bytes
from dpmanifold.service.askable import askable, listed
from dpmanifold.service.forecasts import GRID
from dpmanifold.service.ordering import set_terms
from dpmanifold.service.questions import Question
from dpmanifold.service.web.app import make_app
from dpmanifold.service.web.pages import pictures, words
from dpmanifold.service.web.pages.registering import request_of
from service_reading import Page, faults
from service_rooms import BALL, PASSWORD, desk_of, furnish, service_in, tensors
from service_web import ORIGIN, ask, cookie

REF = "cohort/dti"
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
STATIC = importlib.resources.files("dpmanifold.service.web") / "static"
PLAN = ["plan", "--space", "spd", "--size", "2", "--radius", "2", "-n", "60", "--json"]


class Visitor:
    """Somebody who has signed in, and looks at pages."""

    def __init__(self, app, service, name):
        self._app = app
        self.cookie, login = service.logins.begin(service.accounts.find(name))
        self.csrf = login.csrf

    def get(self, path):
        return ask(self._app, "GET", path, headers=[cookie(self.cookie)])

    def page(self, path, status=200):
        found = self.get(path)
        assert found.status == status, found.body[:500]
        return Page(found.body)

    def post(self, path, /, **fields):
        body = urllib.parse.urlencode({"csrf": self.csrf, **fields}).encode()
        headers = [cookie(self.cookie), ("origin", ORIGIN), ("content-type", "application/x-www-form-urlencoded")]
        return ask(self._app, "POST", path, headers=headers, pieces=[body])


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("pages")) as made:
        furnish(made)
        desk_of(made, "sam").set_terms(REF, approval=False, note=f"fitted {HOSTILE}")
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


def _release(service, key, statistic="mean", amount="0.01", **state):
    made = desk_of(service, "ada").ask(REF, Question(statistic, dpm.GDP(amount)), key).id
    if state:
        with service.database.writing() as connection:
            connection.execute(update(tables.releases).filter_by(id=made).values(**state))
    return made


@pytest.fixture(scope="module")
def released(service):
    result = dpm.private_mean(tensors(60), BALL, dpm.GDP("0.01"), units="each-record")
    return _release(
        service, "released", state="released", publishes=tables.later(tables.now(), -1), picture=b"\x89PNG",
        result=answer_to_bytes(result), report=b"<!doctype html><p>a report",
    )  # fmt: skip


def _spends(service, key):
    return [line for line in service.ledger.history("cohort", limit=1000).releases if line.key == key]


# -------------------------------------------------------------------- for everybody


def test_pages_can_be_read_by_everybody(service, ada, sam, ann, released):
    """Labels, headers, captions, landmarks, words for pictures; no script or style in a page."""
    pending = _release(service, "pending-for-all")
    sam_desk = desk_of(service, "sam")
    registration = sam_desk.register("cohort", "more", {"path": "x.csv", "space": "spd", "units": "a", "radius": "2"})
    pages = {
        ada: ["/", f"/data/{REF}", f"/plan/{REF}", f"/plan/{REF}?statistic=region&kind=ZCDP&amount=0.1",
              f"/plan/{REF}?error=0.1", f"/plan/{REF}?amount=x", f"/confirm?data={REF}&statistic=mean&amount=0.1&key=k",
              "/releases", f"/releases/{released}", f"/releases/{pending}", "/history/cohort", "/account", "/nowhere"],
        sam: ["/steward", "/steward/populations/cohort", "/steward/register", "/releases", f"/data/{REF}",
              f"/plan/{REF}", f"/steward/registrations/{registration.id}"],
        ann: ["/auditor", "/auditor/events", "/releases", f"/releases/{released}", "/history/cohort"],
    }  # fmt: skip
    for visitor, paths in pages.items():
        for path in paths:
            assert (path, faults(Page(visitor.get(path).body))) == (path, [])


def test_the_reader_of_pages_sees_what_is_wrong():
    bare = '<html lang="en"><a href="#content">skip</a><main><h1>x</h1>{}</main></html>'
    assert faults(Page(bare.format(""))) == []
    for part, fault in {
        "<input name=a>": "no label",
        "<table><tr><td>1</td></tr></table>": "caption",
        '<p style="color: red">x</p>': "inline style",
        "<button onclick=alert()>x</button>": "inline onclick",
        "<img src=a.png>": "says nothing",
        '<form method="post"></form>': "csrf",
        "<h1>y</h1>": "h1 is there 2 times",
        '<p id="a"></p><p id="a"></p>': "twice",
    }.items():
        assert any(fault in text for text in faults(Page(bare.format(part)))), part


def _tokens(sheet):
    """The colours of the sheet, light and dark."""
    light = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", sheet.split("@media (prefers-color-scheme: dark)")[0]))
    dark = sheet.split("@media (prefers-color-scheme: dark)")[1].split("/* -----")[0]
    return {"light": light, "dark": {**light, **dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", dark))}}


def contrast(first, second):
    """The ratio of WCAG 2."""

    def luminance(color):
        parts = np.array([int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    low, high = sorted([luminance(first), luminance(second)])
    return (high + 0.05) / (low + 0.05)


TEXTS = {
    "ground": ("ink", "soft", "accent", "accent-strong"),
    "sheet": ("ink", "soft", "accent", "accent-strong", "noise", "bad"),
    "inset": ("ink", "accent", "soft"),
    "accent": ("on-accent",),
    "accent-strong": ("on-accent",),
    "accent-tint": ("ink", "accent", "accent-strong"),
    "good-tint": ("ink", "good", "accent"),
    "bad-tint": ("ink", "bad", "accent"),
    "warn-tint": ("ink", "warn", "accent"),
}
# What is no text and must be seen against its ground: edges of controls, and what pictures are made of.
SHAPES = {
    "sheet": ("edge", "accent", "noise", "others", *(f"series-{number}" for number in range(1, 7))),
    "inset": ("edge", "soft", "noise", "others"),
    "ground": ("accent",),
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_and_shapes_have_contrast(scheme):
    colors = _tokens((STATIC / "app.css").read_text(encoding="utf-8"))[scheme]
    for least, pairs in ((4.5, TEXTS), (3.0, SHAPES)):
        for ground, found in pairs.items():
            for one in found:
                ratio = contrast(colors[one], colors[ground])
                assert ratio >= least, f"{one} on {ground} ({scheme}): {ratio:.2f}"


def test_contrast_is_that_of_the_standard():
    assert contrast("#000000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # known to fall just short


def test_nothing_is_loaded_from_elsewhere():
    for path in [*STATIC.iterdir(), *(STATIC.parent / "templates").iterdir()]:
        text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|@import|//[\w.-]+\.\w+/", text), path.name


def test_motion_can_be_switched_off_and_focus_is_seen():
    sheet = (STATIC / "app.css").read_text(encoding="utf-8")
    assert "prefers-reduced-motion: reduce" in sheet
    assert ":focus-visible { outline: 3px" in sheet


# -------------------------------------------------------------------- plans


@pytest.mark.parametrize(
    ("query", "options"),
    [
        ("amount=0.3", ["--mu", "0.3"]),
        ("kind=PureDP&amount=1&option-estimand=tangent", ["--epsilon", "1", "--estimand", "tangent"]),
        ("kind=ApproxDP&amount=0.5&delta=1e-5", ["--epsilon", "0.5", "--delta", "1e-5"]),
        ("statistic=variance&kind=ZCDP&amount=0.2", ["--rho", "0.2", "--statistic", "variance"]),
        ("statistic=region&amount=0.5", ["--mu", "0.5", "--statistic", "region"]),
    ],
)
def test_the_numbers_are_those_of_the_command_line(ada, query, options):
    plan = json.loads(CliRunner().invoke(shell, [*PLAN, *options]).stdout)
    page = ada.page(f"/plan/{REF}?{query}")
    main = plan["rows"][0] if "rows" in plan else plan["steps"][-1]
    share = main["of_radius"] if "rows" in plan else main["of_range"]
    assert json.loads(page.live("error")) == main["error"]
    assert json.loads(page.live("share")) == share
    assert page.live("mechanism") == main["mechanism"]
    assert page.live("verdict") == plan["verdict"]
    shown = [json.loads(cell.get("data-value")) for cell in page.all("td") if cell.get("data-value")]
    assert all(row["error"] in shown for row in plan.get("rows", plan.get("steps")))


def test_the_slider_says_what_the_page_says(ada):
    points = ada.get(f"/plan/{REF}/curve.json?statistic=mean&kind=GDP").json()["points"]
    assert [point["amount"] for point in points] == GRID
    for place in (0, 30, 60):
        page = ada.page(f"/plan/{REF}?amount={GRID[place]}")
        assert json.loads(page.live("error")) == points[place]["error"]
        assert [one.text for one in page.elements if one.get("data-live") == "error"] == [points[place]["error_text"]]
        assert page.one("input", id="slider").get("value") == str(place)
        disc = page.one("circle", data_live="disc")
        assert float(disc.get("r")) == pytest.approx(pictures.BALL * points[place]["of_radius"], abs=1e-3)


@pytest.mark.parametrize("statistic", [name for name, one in askable().items() if listed(one)])
@pytest.mark.parametrize("kind", ["GDP", "PureDP"])
def test_everything_that_can_be_asked_has_a_plan_or_a_reason(ada, statistic, kind):
    found = ada.get(f"/plan/{REF}?statistic={statistic}&kind={kind}&amount=2")
    assert found.status in (200, 400)
    page = Page(found.body)
    assert faults(page) == []
    assert (found.status == 400) == bool(page.alerts)
    assert found.status == 200 or kind == "PureDP"


def test_an_error_leads_to_the_promise_that_gives_it(ada):
    wanted = json.loads(CliRunner().invoke(shell, [*PLAN, "--mu", "0.25", "--error", "0.4"]).stdout)
    page = ada.page(f"/plan/{REF}?amount=0.25&error=0.4")
    (link,) = [one.get("href") for one in page.all("a") if one.text == "Plan with it"]
    assert urllib.parse.parse_qs(link.partition("?")[2])["amount"] == [str(wanted["needed_promise"]["mu"])]
    assert json.loads(ada.page(link).live("error")) <= 0.4 * (1 + 1e-9)


def test_a_named_mechanism_has_its_own_numbers(ada):
    plan = json.loads(CliRunner().invoke(shell, [*PLAN, "--mu", "0.5"]).stdout)
    named = next(row for row in plan["rows"] if row["mechanism"] == "riemannian-laplace")
    page = ada.page(f"/plan/{REF}?amount=0.5&option-mechanism=riemannian-laplace")
    assert json.loads(page.live("error")) == named["error"] != plan["rows"][0]["error"]
    assert page.one("div", id="slide").get("data-curve") == ""


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("amount=abc", "mu must be"),
        ("amount=-1", "mu must be"),
        ("kind=Nothing", "kind must be"),
        ("statistic=everything", "statistic must be"),
        ("statistic=region&option-level=wide", "level must be a number"),
        ("kind=ApproxDP&amount=1&delta=2", "delta must be below 1"),
        ("statistic=region&kind=PureDP&amount=1", "Gaussian noise"),
    ],
)
def test_what_is_wrong_is_said_beside_the_form(ada, query, reason):
    page = ada.page(f"/plan/{REF}?{query}", status=400)
    assert any(reason in text for text in page.alerts)
    if query.startswith("amount"):
        assert page.one("input", id="amount").get("value") == query.removeprefix("amount=")


def test_options_are_kept_where_the_kind_of_promise_changes(ada):
    page = ada.page(f"/plan/{REF}?amount=0.5&option-estimand=tangent&option-refine=yes")
    chosen = [one.get("value") for one in page.all("option") if one.get("selected") is not None]
    assert "tangent" in chosen
    assert "yes" in chosen
    other = next(one.get("href") for one in page.all("a") if one.text == "rho")
    assert "option-estimand=tangent" in other
    assert "amount" not in other


def test_more_than_what_is_left_is_said_before_it_is_asked(ada):
    page = ada.page(f"/plan/{REF}?amount=10")
    assert not [one for one in page.all("button") if one.get("formaction")]
    assert "remain" in page.one("section", id="cost").text or "left" in page.one("section", id="cost").text


# -------------------------------------------------------------------- paying


def test_a_price_page_has_one_key_however_often_it_is_loaded(ada):
    first = ada.get(f"/confirm?data={REF}&statistic=mean&kind=GDP&amount=0.02")
    assert first.status == 303
    assert "key=" in first["location"]
    keys = {ada.page(first["location"]).fields("/ask")["key"] for _ in range(3)}
    assert len(keys) == 1
    assert ada.get(f"/confirm?data={REF}&statistic=mean&kind=GDP&amount=0.02")["location"] != first["location"]


def test_two_clicks_the_back_button_and_a_reload_pay_once(service, ada):
    where = ada.get(f"/confirm?data={REF}&statistic=mean&kind=GDP&amount=0.02")["location"]
    fields = ada.page(where).fields("/ask")
    answers = [ada.post("/ask", **fields) for _ in range(3)]
    assert {answer.status for answer in answers} == {303}
    assert len({answer["location"] for answer in answers}) == 1
    back = ada.page(where)
    assert "already" in back.one("main", id="content").text
    assert not back.all("form", action="/ask")
    assert answers[0]["location"] in [one.get("href") for one in back.all("a")]
    assert len(_spends(service, fields["key"])) == 1


def test_another_question_under_the_same_key_is_refused(service, ada):
    where = ada.get(f"/confirm?data={REF}&statistic=mean&kind=GDP&amount=0.02")["location"]
    fields = ada.page(where).fields("/ask")
    ada.post("/ask", **fields)
    other = ada.post("/ask", **{**fields, "amount": "0.03"})
    assert other.status == 409
    assert any("another question" in text for text in Page(other.body).alerts)
    assert len(_spends(service, fields["key"])) == 1


def test_what_does_not_fit_is_refused_beside_the_price(service, ada):
    answer = ada.post("/ask", data=REF, statistic="mean", kind="GDP", amount="5", key="too-much")
    assert answer.status == 409
    assert Page(answer.body).alerts
    assert _spends(service, "too-much") == []


# -------------------------------------------------------------------- releases


def test_a_release_on_its_way_says_when_and_nothing_else(service, ada):
    made = _release(service, "pending", state="released", result=b"{}", publishes=tables.later(tables.now(), 500))
    body = ada.get(f"/releases/{made}").body.decode()
    page = Page(body)
    assert '<noscript><meta http-equiv="refresh"' in body
    poll = next(one.get("data-poll") for one in page.elements if one.get("data-poll"))
    assert ada.get(poll).json()["state"] == "pending"
    assert page.all("h2", id="wait")
    assert not page.all("h2", id="answer")


def test_a_lost_release_is_said_to_be_paid_for(service, ada):
    made = _release(service, "lost", state="lost", publishes=tables.later(tables.now(), -1))
    text = ada.page(f"/releases/{made}").one("main", id="content").text
    assert "was lost" in text
    assert "promise is spent" in text


def test_a_release_shows_numbers_picture_report_and_downloads(ada, released):
    page = ada.page(f"/releases/{released}")
    answer = json.loads(ada.get(f"/releases/{released}/result.json").body)
    facts = dict(dpm.Release.from_dict(answer).facts())
    shown = {row.text.strip() for row in page.all("td")} | {row.text.strip() for row in page.all("pre")}
    assert facts["noise error"] in shown
    assert facts["value"] in shown
    for place in ("picture.png", "report.html", "result.json", "value.npy"):
        address = f"/releases/{released}/{place}"
        assert address in [one.get("href") for one in page.all("a")]
        assert ada.get(address).status == 200
    assert "sandbox" in ada.get(f"/releases/{released}/report.html")["content-security-policy"]


def test_history_draws_the_numbers_of_its_table(service, app, ada):
    desk_of(service, "sam").grant("cohort", "bob", dpm.GDP("0.5"), "another study")
    desk_of(service, "bob").ask(REF, Question("variance", dpm.GDP("0.2")), "of-bob")
    page = ada.page("/history/cohort")
    rows = [row for row in page.all("tr") if "others" in row.text]
    assert len(rows) == 1
    assert "variance" not in rows[0].text
    assert "bob" not in page.one("main", id="content").text
    lines = desk_of(service, "ada").history("cohort").lines
    shown = [float(cell.get("data-value")) for cell in page.all("td") if cell.get("data-value")]
    assert shown == [number for line in lines for number in (line.share, line.total_share)]
    key = page.one("ul", class_="key").text
    assert all(words.percent(sum(line.share for line in lines if line.what == what)) in key
               for what in {line.what for line in lines if line.what})  # fmt: skip


# -------------------------------------------------------------------- what others have typed


def test_what_others_have_typed_is_text(service, ada, sam):
    body = ada.get(f"/data/{REF}").body.decode()
    assert "<img src=x" not in body
    assert "<script>alert" not in body
    assert "&lt;img src=x" in body
    made = ada.post("/account/tokens", label=HOSTILE[:80], days="3").body.decode()
    assert "&lt;img src=x" in made
    assert "<img src=x" not in made
    wrong = sam.post("/steward/populations", name=HOSTILE, unit="x", kind="GDP", amount="1", delta="").body.decode()
    assert "<img src=x" not in wrong
    assert Page(wrong).one("input", id="name").get("value") == HOSTILE
    named = ada.get(f"/plan/{REF}?{urllib.parse.urlencode({'statistic': HOSTILE, 'amount': HOSTILE})}").body.decode()
    assert "<img src=x" not in named


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
        set_terms(connection, service, "cohort", "dti", paused=tables.now())
    place = "/steward/populations/cohort"
    try:
        page = ada.page(f"/data/{REF}")
        assert "Paused" in page.one("main", id="content").text
        assert not [one for one in page.all("a") if one.text == "Plan a release"]
        assert "is paused" in ada.page(f"/plan/{REF}").one("section", id="cost").text
        assert faults(sam.page(place)) == []
        assert sam.post(f"{place}/resume/dti", reason="").status == 400
    finally:
        assert sam.post(f"{place}/resume/dti", reason="a disk was full").status == 303
    assert "Paused" not in ada.page(f"/data/{REF}").one("main", id="content").text
    again = sam.post(f"{place}/resume/dti", reason="once more")
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
    assert (found["units"], found["classes"], found["covariate_range"]) == ("subject", ["a", "b"], [20.0, 80.0])
    assert (found["labels_public"], found["covariate_public"], found["confirm"]) == (False, True, False)
    page = sam.page(sent["location"])
    assert "an atlas" in page.one("main", id="content").text
    wrong = sam.post("/steward/registrations", **{**typed, "covariate_low": "", "size": ""})
    assert wrong.status == 400
    assert "range" in Page(wrong.body).alerts[0]
    assert Page(wrong.body).one("input", id="path").get("value") == "eeg/c.csv"
    assert sam.post("/steward/registrations", **{**typed, "radius": ""}).status == 400


def test_every_record_can_be_a_unit():
    assert request_of({"unit_kind": "each-record", "units": "subject"})["units"] == "each-record"


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


def test_an_auditor_verifies_and_has_no_form(ann, released):
    for path in (
        "/auditor",
        "/auditor/events",
        "/releases",
        f"/releases/{released}",
        "/history/cohort",
        f"/data/{REF}",
    ):
        page = ann.page(path)
        assert [one.get("action") for one in page.all("form")] == ["/logout"]
    assert "follow from the one before" in ann.page("/auditor").one("main", id="content").text
    export = ann.get("/auditor/export")
    assert "attachment" in export["content-disposition"]
    assert all(json.loads(line) for line in export.body.decode().splitlines())
    plan = ann.page(f"/plan/{REF}")
    assert not [one for one in plan.all("button") if one.get("formaction")]
