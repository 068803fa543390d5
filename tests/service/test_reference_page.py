"""Pages that list what the code has: the API as its OpenAPI document says it, and the settings of a service."""

import pathlib
import re

import pytest

from dpmanifold.service import settings
from dpmanifold.service.web.api import SCHEMAS, Api
from dpmanifold.service.web.openapi import openapi_document

pytestmark = pytest.mark.security

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "service.md").read_text(encoding="utf-8")
OPERATING = (DOCS / "how-to" / "operate-service.md").read_text(encoding="utf-8")
DOCUMENT = openapi_document("Private statistics", Api("Private statistics").endpoints, SCHEMAS)
ROWS = {}
for row in re.findall(r"^\| `[A-Z]+ /api/.*$", PAGE, re.MULTILINE):
    request, who, sends, gets = (cell.strip() for cell in row.strip("|").split("|"))
    ROWS[tuple(request.strip("`").split())] = (who, sends, gets)
OPERATIONS = {
    (method.upper(), path): said for path, methods in DOCUMENT["paths"].items() for method, said in methods.items()
}
VIEWS = sorted(set(DOCUMENT["components"]["schemas"]) - {"PrivacyGuarantee", "Question", "Error"})


def names_in(text):
    """Words in backticks."""
    return set(re.findall(r"`([^`]+)`", text))


def test_every_endpoint_is_on_the_page_and_no_other():
    assert set(ROWS) == set(OPERATIONS)


@pytest.mark.parametrize(("method", "path"), sorted(OPERATIONS))
def test_the_page_says_who_may_ask_with_what(method, path):
    said = OPERATIONS[method, path]
    who, sends, gets = ROWS[method, path]
    assert who.split(", ") == said.get("x-roles", ["anybody"])
    body = said.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    wanted = {name: name in body.get("required", []) for name in body.get("properties", {})}
    wanted |= {one["name"]: one["required"] for one in said.get("parameters", []) if one["in"] == "query"}
    shown = {name: not optional for name, optional in re.findall(r"`(\w+)`(\?)?", re.sub(r"\([^)]*\)", "", sends))}
    assert shown == wanted
    usual = next(iter(said["responses"]))
    assert usual == "200" or gets.startswith(usual)


@pytest.mark.parametrize("view", VIEWS)
def test_the_page_names_every_field_of_what_comes_back(view):
    section = re.search(rf"^### {view}\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert section is not None
    fields = {name for row in re.findall(r"^\| (`[^|]*) \|", section[1], re.MULTILINE) for name in names_in(row)}
    assert fields == set(DOCUMENT["components"]["schemas"][view]["properties"])


def test_every_setting_is_on_the_operators_page():
    shown = set(re.findall(r"^\| `(\w+\.\w+)` \|", OPERATING, re.MULTILINE))
    assert shown == {f"{table}.{name}" for table, lines in settings._KNOWN.items() for name in lines}
