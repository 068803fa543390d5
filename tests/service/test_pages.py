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
from dpmanifold.codec import answer_to_bytes
from dpmanifold.errors import Message
from dpmanifold.service import tables
from dpmanifold.service.forecasts import GRID
from dpmanifold.service.questions import Question
from dpmanifold.service.web.app import make_app
from dpmanifold.service.web.pages import pictures, words
from dpmanifold.service.web.pages.planning import Headline
from dpmanifold.stats.query import offered
from service_reading import Page, Visitor, faults
from service_rooms import BALL, desk_of, furnish, service_in, tensors

pytestmark = pytest.mark.security

REF = "cohort/dti"
HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>'
STATIC = importlib.resources.files("dpmanifold.service.web") / "static"
PLAN = ["plan", "--space", "spd", "--size", "2", "--radius", "2", "-n", "60", "--json"]


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
    drawn = [row for row in plan.get("rows", plan.get("steps")) if row["arithmetic"] == "exact"]  # of which all are
    assert all(row["error"] in shown for row in drawn)


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


@pytest.mark.parametrize("statistic", [query.name for query in offered()])
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
    assert urllib.parse.parse_qs(link.partition("?")[2])["amount"] == [str(wanted["required_privacy"]["mu"])]
    assert json.loads(ada.page(link).live("error")) <= 0.4 * (1 + 1e-9)


def test_a_promise_is_found_for_the_options_that_are_set_now(ada):
    """The error is a field of the plan's own form: there is no copy of its options that a live update leaves behind."""
    page = ada.page(f"/plan/{REF}?amount=0.25")
    assert not [one for one in page.all("form") if one.get("method") == "get" and one.get("id") != "plan"]
    sent = page.fields(f"/plan/{REF}")
    assert "error" in sent
    assert page.one("form", id="plan") in page.one("select", id="option-estimand").inside
    found = ada.page(f"/plan/{REF}?{urllib.parse.urlencode({**sent, 'option-estimand': 'tangent', 'error': '0.4'})}")
    (link,) = [one.get("href") for one in found.all("a") if one.text == "Plan with it"]
    assert "option-estimand=tangent" in link
    assert '"need"' in (STATIC / "app.js").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("query", "options", "says"),
    [
        ("option-refine=yes", ["--refine"], '"Look for a smaller ball first"'),
        ("option-noise_shape=private", ["--noise-shape", "private"], '"Shape of the noise"'),
    ],
)
def test_what_a_smaller_ball_or_a_shape_would_do_is_said(ada, query, options, says):
    plan = json.loads(CliRunner().invoke(shell, [*PLAN, "--mu", "1", *options]).stdout)
    (verdict,) = [plan[name]["verdict"] for name in ("refined", "shaped") if name in plan]
    text = ada.page(f"/plan/{REF}?amount=1&{query}").one("section", id="result").text
    assert verdict.replace("refine=True", says).replace("noise_shape", says) in text
    assert says in text
    assert "refine=True" not in text


def test_the_error_of_several_groups_is_that_of_the_sentence():
    step = {"of_range": 0.1, "mechanism": "m", "statistic": "mean", "group": "a"}
    steps = [{**step, "error": 0.7}, {**step, "error": 0.2, "group": "b"}]
    assert Headline.of({"steps": steps, "verdict": "v"}).error == 0.7
    alone = [{**one, "group": None} for one in steps]
    assert Headline.of({"steps": alone, "verdict": "v"}).error == 0.2


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
    assert "by the time fixed" not in text
    assert "Published" not in text


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


def test_a_new_release_is_looked_at_again_until_it_is_complete(service, ada, released):
    result = dpm.private_mean(tensors(60), BALL, dpm.GDP("0.01"), units="each-record")
    publishes = tables.later(tables.now(), -1)
    made = _release(service, "bare", state="released", publishes=publishes, result=answer_to_bytes(result))
    follow = [one.get("data-follow") for one in ada.page(f"/releases/{made}").elements if one.get("data-follow")]
    assert follow == [f"/releases/{made}/state.json"]
    assert ada.get(follow[0]).json()["complete"] is False
    page = ada.page(f"/releases/{released}")
    assert not [one for one in page.elements if one.get("data-follow")]
    assert ada.get(f"/releases/{released}/state.json").json()["complete"] is True
    assert all(one.get("tabindex") == "0" for one in page.all("pre"))  # they scroll, by keys too


def test_tables_that_scroll_show_it_and_rows_of_numbers_are_not_broken():
    sheet = (STATIC / "app.css").read_text(encoding="utf-8")
    assert re.search(r"\.scroll, td\.long pre \{\s+background:.*?no-repeat local.*?no-repeat scroll;", sheet, re.S)
    assert "td.long pre { white-space: pre;" in sheet


def test_the_factor_is_explained(ada):
    assert "this many times too large" in ada.page(f"/plan/{REF}").one("div", id="below").text


@pytest.mark.parametrize(
    ("template", "shown"),
    [
        ('is for `estimand="tangent"`, got', 'is for "Which mean" "tangent", got'),
        ("Choose the columns with `columns=`.", 'Choose the columns with "Columns".'),
        ("`confirm=True` goes on", '"the last box" goes on'),
        ("`picks` has none", "picks has none"),
    ],
)
def test_arguments_are_called_as_their_fields_are(template, shown):
    assert words.in_form(Message(template)) == shown
    assert words.in_form(template) == template


def test_a_refusal_names_fields(ada):
    query = "amount=0.3&option-mechanism=wrapped-gaussian&option-estimand=tangent"
    (said,) = ada.page(f"/confirm?data={REF}&key=k&{query}", status=400).alerts
    assert '"Which mean" "tangent"' in said
    assert "estimand" not in said


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
