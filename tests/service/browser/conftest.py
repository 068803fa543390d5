"""A service that runs, and a browser that looks at it: Chromium, as the system has it."""

import os
import pathlib
import shutil

import pytest

import dpmanifold as dpm
from dpmanifold.service.web.sessions import COOKIE
from programs import missing
from service_rooms import PASSWORD, desk_of, service_in, write_tensors
from service_running import Nursery, Running, free_port, until

HERE = pathlib.Path(__file__).parent
AXE = HERE / "node_modules" / "axe-core" / "axe.min.js"
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SCREENSHOTS = os.environ.get("DPM_SCREENSHOTS")
HOSTILE = "<img src=x onerror=alert(1)>"
UNITS = 200
SECONDS = 15_000  # milliseconds, that is, for what a page has to wait for


REQUEST = {
    "path": "tensors.npz", "space": "spd", "array": "records", "units": "subject", "radius": "2", "source": "an atlas",
    "labels": "arm", "classes": [HOSTILE, "plain"], "labels_public": True,
}  # fmt: skip


class Visitor:
    """Somebody at a browser of their own. All that it asks of any host is written down."""

    def __init__(self, browser, url, **settings):
        self.url, self.requests, self.said = url, [], []
        self.context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 800}, **settings)
        self.context.set_default_timeout(SECONDS)
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("console", lambda word: self.said.append(word.text) if word.type == "error" else None)
        self.page.on("dialog", lambda dialog: self.said.append(f"dialog: {dialog.message}") or dialog.dismiss())

    def sign_in(self, name):
        self.page.goto("/login")
        self.page.get_by_label("Name").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def shot(self, name):
        """Keep a picture for the documentation, where one is wanted."""
        if SCREENSHOTS:
            folder = pathlib.Path(SCREENSHOTS)
            folder.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=folder / f"{name}.png", full_page=True)

    def close(self):
        """Close the browser, and look at what it did: nothing was asked elsewhere, and no script was stopped."""
        self.context.close()
        elsewhere = [one for one in self.requests if not one.startswith((f"{self.url}/", "data:"))]
        assert elsewhere == []
        # That an address answers 4xx is said as an error of the page, too, and wanted here and there.
        assert [text for text in self.said if not text.startswith("Failed to load resource")] == []


class Place:
    """The service, and whoever comes."""

    def __init__(self, service, running, browser):
        self.service, self.running, self.browser, self._visitors = service, running, browser, []
        self.url = service.settings.url

    def visitor(self, name=None, **settings):
        """Somebody who has signed in already, by the cookie that the form would have set."""
        found = Visitor(self.browser, self.url, **settings)
        self._visitors.append(found)
        if name is not None:
            value, _ = self.service.logins.begin(self.service.accounts.find(name))
            kept = {
                "name": COOKIE,
                "value": value,
                "domain": "127.0.0.1",
                "path": "/",
                "secure": True,
                "httpOnly": True,
            }
            found.context.add_cookies([{**kept, "sameSite": "Strict"}])
        return found

    def desk(self, name):
        return desk_of(self.service, name)

    def close(self):
        for visitor in self._visitors:
            visitor.close()


@pytest.fixture(scope="package")
def chromium():
    """Chromium. It ends with this folder: while it runs, no other test of this process could use an event loop."""
    from playwright.sync_api import sync_playwright  # takes a moment, which no other test needs

    path = shutil.which(os.environ.get("DPM_CHROMIUM", "chromium"))
    if path is None:
        missing("Chromium is not installed: apt-get install chromium, or name one in DPM_CHROMIUM")
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield opened
        opened.close()


@pytest.fixture(scope="package")
def running(tmp_path_factory, chromium):
    """Both processes of a service with three people, a population, and a file of records that nobody registered."""
    port = free_port()
    environ = {
        "DPM_SERVICE_WEB_PORT": str(port), "DPM_SERVICE_WEB_URL": f"http://127.0.0.1:{port}",
        "DPM_SERVICE_WORKER_SLOT": "1.2", "DPM_SERVICE_SERVICE_TITLE": "A study",
    }  # fmt: skip
    nursery = Nursery()
    with service_in(tmp_path_factory.mktemp("browser"), **environ) as service:
        subjects = [f"subject-{number // 2}" for number in range(2 * UNITS)]
        arms = [HOSTILE if number % 4 < 2 else "plain" for number in range(2 * UNITS)]
        write_tensors(service, 2 * UNITS, subject=subjects, arm=arms, age=[20 + number % 60 for number in range(400)])
        service.ledger.population("cohort", dpm.GDP("2"), "participant")
        started = Running(nursery, service.settings, environ)
        started.start()
        started.healthy()
        yield service, started
        started.stop()
    nursery.close()


@pytest.fixture
def place(running, chromium):
    made = Place(*running, chromium)
    yield made
    made.close()


@pytest.fixture
def registered(place):
    """The data set with a grant for ada; made at the desk where no page has made it."""
    sam = place.desk("sam")
    if not sam.datasets():
        asked = sam.register("cohort", "dti", REQUEST)
        until(lambda: sam.registration(asked.id).state == "done")
    if not sam.population("cohort").grants:
        sam.grant("cohort", "ada", dpm.GDP("1.5"), "the study")
    return place


@pytest.fixture(scope="session")
def axe():
    """What looks for barriers in a page."""
    if not AXE.exists():
        missing("axe-core is not installed: npm ci --prefix tests/service/browser")
    return AXE.read_text(encoding="utf-8")
