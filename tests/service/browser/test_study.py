"""A study from its first registration to its audit, in a real browser with both real processes.

The tests build on each other, as the people in them do: what a test needs and is not there yet, it makes.
"""

import json
import re
import subprocess
import sys

import pytest

import dpmanifold as dpm
from dpmanifold.service.forecasts import GRID
from dpmanifold.service.questions import Question
from dpmanifold.service.web.pages.words import _FIELDS
from service.browser.conftest import HOSTILE, UNITS
from service_running import until

REF = "cohort/dti"


def _spends(place, key):
    return [line for line in place.service.ledger.history("cohort", limit=1000).releases if line.key == key]


def _planned(*options):
    """What `dpm plan --json` prints."""
    words = ["plan", "--space", "spd", "--size", "2", "--radius", "2", "-n", str(UNITS), "--json", *options]
    found = subprocess.run([sys.executable, "-m", "dpmanifold.cli", *words], check=True, capture_output=True, text=True)
    return json.loads(found.stdout)


def _live(page, name):
    return json.loads(page.locator(f'[data-live="{name}"]').get_attribute("data-value"))


def _wait_until_settled(page):
    page.locator("#content:not([aria-busy])").wait_for()


def _price(page, amount):
    """Go from a plan to its price."""
    page.goto(f"/plan/{REF}?statistic=mean&kind=GDP&amount={amount}")
    page.get_by_role("button", name="Go on to the price").click()
    page.get_by_role("button", name=re.compile("^Spend")).wait_for()
    return page.locator('form[action="/ask"] input[name="key"]').get_attribute("value")


def test_a_steward_registers_and_grants(place):
    visitor = place.visitor()
    visitor.sign_in("sam")
    page = visitor.page
    page.goto("/steward/register?population=cohort")
    page.get_by_label("Name of the data set").fill("dti")
    page.get_by_label("File or folder").fill("tensors.npz")
    page.get_by_text("How records are read").click()
    page.get_by_label("Array").fill("records")
    page.get_by_label("Column of ids").fill("subject")
    page.get_by_label("Radius").fill("2")
    page.get_by_label("Why this ball").fill("an atlas")
    page.get_by_label("Column of classes").fill("arm")
    page.get_by_label("The classes").fill(f"{HOSTILE}, plain")
    page.get_by_role("button", name="Register").click()
    page.get_by_text("registered", exact=True).wait_for()  # the page looks again by itself
    page.get_by_role("link", name="grant somebody a share").click()
    page.get_by_label("Analyst", exact=True).select_option("ada")
    page.get_by_label("May spend in all (mu)").fill("1.5")
    page.locator("#grant-reason").fill("protocol 12")
    page.get_by_role("button", name="Grant").click()
    page.get_by_text("The grant is in the ledger.").wait_for()
    assert place.desk("ada").dataset(REF).granted["mu"] == 1.5
    page.goto(f"/data/{REF}")
    assert HOSTILE in page.get_by_text("Classes").locator("xpath=following-sibling::dd[1]").inner_text()
    assert page.locator('img[src="x"]').count() == 0


def test_an_analyst_moves_the_slider_and_sees_the_numbers_of_the_command_line(registered):
    visitor = registered.visitor("ada")
    page = visitor.page
    page.goto("/")
    page.get_by_role("link", name="dti").click()
    page.get_by_role("link", name="Plan a release").click()
    page.locator("#slide[data-ready]").wait_for()
    slider = page.get_by_role("slider")
    slider.focus()
    before = _live(page, "error")
    for _ in range(4):
        slider.press("ArrowRight")
    amount = page.get_by_label("Exactly mu").input_value()
    plan = _planned("--mu", amount)
    best = plan["rows"][0]
    assert _live(page, "error") == best["error"] < before
    assert _live(page, "share") == best["of_radius"]
    _wait_until_settled(page)
    assert (_live(page, "error"), _live(page, "share")) == (best["error"], best["of_radius"])
    assert page.locator('[data-live="verdict"]').inner_text() == plan["verdict"].replace(
        "refine=True", f'"{_FIELDS["refine"]}"'
    )
    assert page.locator('[data-live="mechanism"]').inner_text() == best["mechanism"]
    assert best["mechanism"] in slider.evaluate("it => it.closest('main').querySelector('tr.chosen').innerText")
    cells = page.locator("#below tbody td[data-value]").evaluate_all("them => them.map(it => Number(it.dataset.value))")
    drawn = [row for row in plan["rows"] if row["arithmetic"] == "exact" and row["covers_timing"]]
    assert all(row["error"] in cells and row["high"] in cells for row in drawn)
    assert len(drawn) > 1
    assert f"amount={amount}" in page.url
    page.get_by_label("Exactly mu").fill("0.1234")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("amount=0[.]1234"))
    _wait_until_settled(page)
    asked = Question("mean", dpm.GDP("0.1234"))
    assert _live(page, "error") == registered.desk("ada").plan(REF, asked)["rows"][0]["error"]
    assert slider.get_attribute("aria-valuetext") == "mu 0.1234"
    assert abs(float(GRID[int(slider.input_value())]) / 0.1234 - 1) < 0.1  # it stands at the nearest amount
    visitor.shot("plan")


@pytest.mark.slow
def test_a_promise_is_found_for_the_options_that_were_just_set(registered):
    page = registered.visitor("ada").page
    page.goto(f"/plan/{REF}?amount=0.3")
    page.locator("#slide[data-ready]").wait_for()
    page.get_by_text("Options", exact=True).click()
    page.get_by_label("Which mean").select_option("tangent")
    _wait_until_settled(page)
    page.get_by_label("Or: I need an error of").fill("0.2")
    page.get_by_role("button", name="Find the promise").click()
    page.get_by_role("link", name="Plan with it").click()
    page.wait_for_url(re.compile("amount=(?!0.3&)"))
    assert "option-estimand=tangent" in page.url
    assert page.get_by_label("Which mean").input_value() == "tangent"


@pytest.mark.slow
def test_a_click_right_after_typing_is_not_lost(registered):
    """What is typed is asked about while the button is pressed, and the answer must not take the button away."""
    page = registered.visitor("ada").page
    page.goto(f"/plan/{REF}")
    page.locator("#slide[data-ready]").wait_for()
    page.get_by_label("Exactly mu").fill("0.077")
    button = page.get_by_role("button", name="Go on to the price")
    button.scroll_into_view_if_needed()
    place = button.bounding_box()
    page.mouse.move(place["x"] + 20, place["y"] + 10)
    with page.expect_response(re.compile("amount=0.077")):
        page.mouse.down()
    page.wait_for_timeout(300)
    page.mouse.up()
    page.wait_for_url(re.compile("/confirm[?].*amount=0[.]077"))


def test_a_release_comes_with_picture_report_and_receipt(registered):
    visitor = registered.visitor("ada")
    page = visitor.page
    key = _price(page, "0.5")
    visitor.shot("price")
    page.get_by_role("button", name=re.compile("^Spend")).click()
    page.get_by_role("heading", name="Paid for, and on its way").wait_for()
    visitor.shot("pending")
    page.get_by_role("heading", name="The answer").wait_for()
    release = page.url.rpartition("/")[2]
    until(lambda: registered.desk("ada").release(release).reported)
    page.reload()
    picture = page.locator("img.released")
    picture.wait_for()
    assert picture.evaluate("it => it.decode().then(() => it.naturalWidth)") > 400
    receipt = registered.desk("ada").release(release).receipt
    text = page.get_by_role("region", name="Receipt").inner_text()
    assert receipt["hash"] in text
    assert str(receipt["sequence"]) in text
    assert receipt["ledger"] in text
    assert len(_spends(registered, key)) == 1
    with page.expect_download() as taken:
        page.get_by_role("link", name="Result").click()
    assert dpm.load(taken.value.path()).n == UNITS
    visitor.shot("release")
    page.get_by_role("link", name="Report").click()
    page.get_by_text("Everything that can be recomputed was").wait_for()


@pytest.mark.slow
def test_the_back_button_a_reload_and_two_clicks_pay_once(registered):
    page = registered.visitor("ada").page
    key = _price(page, "0.11")
    address = page.url
    page.reload()
    assert page.locator('form[action="/ask"] input[name="key"]').get_attribute("value") == key
    page.get_by_role("button", name=re.compile("^Spend")).dblclick()
    page.wait_for_url("**/releases/*")
    first = page.url
    page.reload()
    page.go_back()
    page.wait_for_url("**/confirm?**")
    page.get_by_role("link", name="See the release").wait_for()
    page.goto(address)
    page.get_by_role("link", name="See the release").click()
    page.wait_for_url(first)
    # Even a form that was left open in another tab pays nothing.
    with_fields = {"data": REF, "statistic": "mean", "kind": "GDP", "amount": "0.11", "key": key}
    page.evaluate(
        """async (fields) => {
          const csrf = document.querySelector('input[name="csrf"]').value;
          await fetch("/ask", {method: "POST", body: new URLSearchParams({csrf, ...fields})});
        }""",
        with_fields,
    )
    assert len(_spends(registered, key)) == 1
    assert sum(one.key == key for one in registered.desk("ada").releases()) == 1


@pytest.mark.security
def test_an_auditor_verifies_and_cannot_write(registered):
    visitor = registered.visitor("ann")
    page = visitor.page
    page.goto("/auditor")
    page.get_by_text("follow from the one before").wait_for()
    visitor.shot("audit")
    assert [form.get_attribute("action") for form in page.locator("form").all()] == ["/logout"]
    with page.expect_download() as taken:
        page.get_by_role("link", name="Export the ledger").click()
    lines = taken.value.path().read_text(encoding="utf-8").splitlines()
    assert all(json.loads(line) for line in lines)
    before = registered.service.ledger.audit().entries
    own = ("started", "drawn")  # of the worker, about what was asked before
    steward = "/steward/populations"
    for path in ("/ask", steward, f"{steward}/cohort/cap", f"{steward}/cohort/grants"):
        status = page.evaluate(
            """async (path) => {
              const csrf = document.querySelector('input[name="csrf"]').value;
              const fields = {csrf, data: "cohort/dti", statistic: "mean", kind: "GDP", amount: "3", key: "k",
                              name: "mine", unit: "x", reason: "r", account: "ada"};
              return (await fetch(path, {method: "POST", body: new URLSearchParams(fields)})).status;
            }""",
            path,
        )
        assert (path, status) == (path, 404)
    assert all(entry.kind in own for entry in registered.service.ledger.entries(before + 1))
