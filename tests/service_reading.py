"""Read a page as a browser and as a screen reader would: what is wrong with it, and what it says."""

import urllib.parse
from html.parser import HTMLParser

from service_web import ORIGIN, ask, cookie

VOID = {"meta", "link", "input", "br", "hr", "img", "circle", "rect", "path", "line"}
CONTROLS = {"input", "select", "textarea"}


class Element:
    """A tag with its attributes, its place and the text in it."""

    def __init__(self, tag, attributes, inside):
        self.tag, self.inside, self.text = tag, inside, ""
        self.attributes = {name: "" if value is None else value for name, value in attributes}

    def get(self, name, otherwise=None):
        return self.attributes.get(name, otherwise)


class Page(HTMLParser):
    """The elements of a page, in order."""

    def __init__(self, body):
        super().__init__(convert_charrefs=True)
        self.elements, self._open, self.wrong = [], [], []
        self.feed(body.decode("utf-8") if isinstance(body, bytes) else body)
        if self._open:
            self.wrong.append(f"{self._open[-1].tag} is not closed")

    def handle_starttag(self, tag, attrs):
        found = Element(tag, attrs, tuple(self._open))
        self.elements.append(found)
        if tag not in VOID:
            self._open.append(found)

    def handle_startendtag(self, tag, attrs):
        self.elements.append(Element(tag, attrs, tuple(self._open)))

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        if not self._open or self._open[-1].tag != tag:
            self.wrong.append(f"{tag} is closed where {self._open[-1].tag if self._open else 'nothing'} is open")
        else:
            self._open.pop()

    def handle_data(self, data):
        for one in self._open:
            one.text += data

    def all(self, tag, **attributes):
        """All elements of a tag that have these attributes."""
        wanted = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
        return [one for one in self.elements
                if one.tag == tag and all(one.get(name) == value for name, value in wanted.items())]  # fmt: skip

    def one(self, tag, **attributes):
        (found,) = self.all(tag, **attributes)
        return found

    def live(self, name):
        """The full number of a place that the slider moves."""
        (found,) = [one for one in self.elements if one.get("data-live") == name]
        return found.get("data-value") if found.get("data-value") is not None else found.text

    def fields(self, action):
        """The fields of the form that is sent to an address, with what stands in them."""
        whole = self.one("form", action=action)
        return {one.get("name"): one.get("value", "") for one in self.elements
                if one.tag == "input" and whole in one.inside and one.get("name")}  # fmt: skip

    @property
    def alerts(self):
        return [one.text.strip() for one in self.elements if one.get("role") == "alert"]


def faults(page):
    """Return what is wrong with a page, for everybody who does not see it as its author does; one text for each."""
    found = list(page.wrong)
    ids = [one.get("id") for one in page.elements if one.get("id") is not None]
    found += [f"id {name} is there twice" for name in sorted({name for name in ids if ids.count(name) > 1})]
    labelled = {one.get("for") for one in page.all("label")}
    for one in page.elements:
        if one.tag in CONTROLS and one.get("type") not in ("hidden", "submit") and one.get("hidden") is None:
            found += [] if one.get("id") in labelled else [f"no label for {one.attributes}"]
        found += [f"{one.tag} names #{name}, which is not there" for name in _named(one) if name not in ids]
        found += [f"inline {name} in {one.tag}" for name in one.attributes if name == "style" or name.startswith("on")]
        if one.tag in ("img", "svg") and one.get("alt") is None and one.get("aria-label") is None:
            found += [] if one.get("aria-hidden") == "true" else [f"{one.tag} says nothing"]
        if one.tag in ("a", "button") and not (one.text.strip() or one.get("aria-label")):
            found.append(f"{one.tag} without words: {one.attributes}")
        if one.tag == "form" and one.get("method") == "post":
            found += [] if any(_is_token(other) and one in other.inside for other in page.elements) else ["no csrf"]
        if one.tag == "table" and one.get("class") != "matrix":
            found += _table_faults(page, one)
    found += [f"{tag} is there {len(page.all(tag))} times" for tag in ("h1", "main") if len(page.all(tag)) != 1]
    found += [] if page.one("html").get("lang") == "en" else ["no language"]
    found += [] if page.all("a", href="#content") else ["no way to skip to the content"]
    return found


def _is_token(one):
    return one.tag == "input" and one.get("name") == "csrf" and one.get("value")


def _named(one):
    """The ids that an element refers to."""
    names = [one.get(name, "") for name in ("aria-labelledby", "aria-describedby", "for", "form")]
    return [name for text in names for name in text.split()]


def _table_faults(page, table):
    inside = {other.tag for other in page.elements if table in other.inside}
    heads = [other for other in page.elements if other.tag == "th" and table in other.inside]
    found = [] if "caption" in inside else ["a table without a caption"]
    found += [] if heads else ["a table without headers"]
    return found + ["a header without a scope" for other in heads if other.get("scope") not in ("row", "col")]


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
