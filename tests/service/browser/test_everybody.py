"""The pages for everybody: by keyboard, without script, on a small screen, in the dark, read by a program."""

import re

import pytest

import dpmanifold as dpm
from dpmanifold.service.questions import Question
from service.browser.conftest import HOSTILE
from service_running import until

REF = "cohort/dti"
PAGES = {
    None: ["/login"],
    "ada": ["/", f"/data/{REF}", f"/plan/{REF}", f"/plan/{REF}?statistic=variance&kind=ZCDP", f"/plan/{REF}?amount=x",
            f"/confirm?data={REF}&amount=0.1", "/releases", "/releases/{release}", "/history/cohort", "/account"],
    "sam": ["/steward", "/steward/populations/cohort", "/steward/register", "/steward/registrations/{registration}"],
    "ann": ["/auditor", "/auditor/events"],
}  # fmt: skip
# Barriers for whoever, by the rules of WCAG 2.2 at level AA and what axe holds to be good besides.
LOOK = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.map((one) => `${one.id}: ${one.help} (${one.nodes.map((node) => node.target).join(", ")})`);
}"""
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Texts that do not fit into what they are in, where that neither scrolls nor wraps.
CUT = """() => [...document.querySelectorAll("main *, header *")].filter((one) => {
  const style = getComputedStyle(one);
  const hidden = one.classList.contains("unseen") || one.closest(".unseen, .scroll, svg, select, input, textarea");
  return !hidden && one.children.length === 0 && one.scrollWidth > one.clientWidth + 1 && style.display !== "inline";
}).map((one) => one.outerHTML.slice(0, 120))"""


@pytest.fixture
def furnished(registered):
    """With a release that is there, whose picture and report are too, and a registration."""
    ada, sam = registered.desk("ada"), registered.desk("sam")
    release = ada.ask(REF, Question("region", dpm.GDP("0.4")), "for-everybody").id
    until(lambda: ada.release(release).reported)
    registered.names = {"release": release, "registration": sam.registrations()[0].id}
    return registered


def _looked_at(furnished, **settings):
    for who, paths in PAGES.items():
        visitor = furnished.visitor(who, **settings)
        for path in paths:
            visitor.page.goto(path.format(**furnished.names))
            yield visitor, path


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_a_barrier(furnished, axe, scheme):
    for visitor, path in _looked_at(furnished, color_scheme=scheme):
        visitor.page.evaluate(axe)
        assert (path, visitor.page.evaluate(LOOK)) == (path, [])


def test_the_page_of_a_plan_has_no_barrier(registered, axe):
    page = registered.visitor("ada").page
    page.goto(f"/plan/{REF}")
    page.locator("#slide[data-ready]").wait_for()
    page.evaluate(axe)
    assert page.evaluate(LOOK) == []
    page.evaluate("document.querySelector('#amount').labels[0].remove()")
    assert any("label" in fault for fault in page.evaluate(LOOK))  # a page that has one is told


@pytest.mark.slow
@pytest.mark.parametrize(
    ("width", "scheme"), [(360, "light"), (360, "dark"), (768, "light"), (1280, "light"), (1280, "dark")]
)
def test_nothing_is_cut_on_any_screen(furnished, width, scheme):
    for visitor, path in _looked_at(furnished, color_scheme=scheme):
        visitor.page.set_viewport_size({"width": width, "height": 800})
        assert (path, visitor.page.evaluate(OVERFLOW)) == (path, 0)
        assert (path, visitor.page.evaluate(CUT)) == (path, [])
        name = re.sub(r"\W+", "-", path.partition("?")[0]).strip("-") or "data-sets"
        visitor.shot(f"{name}-{width}-{scheme}" if "?" not in path else f"{name}-{len(path)}-{width}-{scheme}")


def test_a_plan_fits_a_small_screen(registered):
    page = registered.visitor("ada").page
    page.set_viewport_size({"width": 360, "height": 740})
    page.goto(f"/plan/{REF}")
    assert page.evaluate(OVERFLOW) == 0
    assert page.evaluate(CUT) == []


def _tab_to(page, words):
    """Go on with the tab key until something with these words has the focus, which must be seen."""
    for _ in range(80):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            """() => {
              const one = document.activeElement;
              const text = one.innerText || (one.labels && one.labels[0] && one.labels[0].innerText) || "";
              return [text.trim(), getComputedStyle(one).outlineStyle, one.closest(".card") !== null];
            }"""
        )
        if focused[0].startswith(words):
            assert focused[1] != "none" or focused[2]
            return
    raise AssertionError(f"the tab key does not lead to {words!r}")


@pytest.mark.slow
def test_the_keyboard_is_enough(registered):
    page = registered.visitor("ada").page
    page.goto("/")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    page.keyboard.press("Enter")
    _tab_to(page, "dti")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/data/{REF}")
    _tab_to(page, "Plan a release")
    page.keyboard.press("Enter")
    page.locator("#slide[data-ready]").wait_for()
    _tab_to(page, "How much")
    page.keyboard.press("Home")
    page.keyboard.press("PageUp")
    spoken = page.get_by_role("slider").get_attribute("aria-valuetext")
    assert spoken.startswith("mu 0.0")
    assert "expected error" in spoken
    page.locator("#content:not([aria-busy])").wait_for()
    _tab_to(page, "Go on to the price")
    page.keyboard.press("Enter")
    page.wait_for_url("**/confirm?**")
    _tab_to(page, "Spend mu 0.0")
    page.keyboard.press("Enter")
    page.wait_for_url("**/releases/*")
    page.get_by_role("heading", name="Paid for, and on its way").wait_for()


@pytest.mark.slow
def test_everything_but_the_slider_works_without_script(registered):
    page = registered.visitor("ada", java_script_enabled=False).page
    page.goto(f"/plan/{REF}")
    assert not page.locator("#slider").is_visible()
    page.get_by_label("Exactly mu").fill("0.045")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url(re.compile("amount=0[.]045"))
    before = float(page.locator('[data-live="error"]').get_attribute("data-value"))
    assert before == registered.desk("ada").plan(REF, Question("mean", dpm.GDP("0.045")))["rows"][0]["error"]
    page.get_by_role("button", name="Go on to the price").click()
    page.get_by_role("button", name=re.compile("^Spend")).click()
    page.get_by_role("heading", name="The answer").wait_for()  # the browser loads the page again by itself


@pytest.mark.security
def test_what_others_have_typed_is_text(registered):
    registered.desk("sam").set_terms(REF, approval=False, note=f"Fitted {HOSTILE}<script>alert(2)</script>")
    page = registered.visitor("ada").page
    page.goto(f"/data/{REF}")
    assert HOSTILE in page.locator(".note.info").inner_text()
    assert page.locator('main img, main script, img[src="x"]').count() == 0  # and no dialog came up, see conftest
