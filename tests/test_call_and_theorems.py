"""The page on how the library is built names functions: they exist, run in that order, and cover the theory."""

import importlib
import pathlib
import re
import sys

import numpy as np
import pytest

import dpmanifold as dpm

DOCS = pathlib.Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
STEPS = PAGE.partition("## From the call to the file")[2].partition("\n## ")[0]
TABLE = PAGE.partition("## Where each theorem is")[2].partition("\n## ")[0]
ROWS = [line.split("|")[1:4] for line in TABLE.splitlines() if line.startswith("| ") and "statement" not in line]
STATEMENT = re.compile(r"^\*\*(Theorem|Lemma|Proposition|Corollary)\b")


def named(dotted):
    """Return what has this name below the package."""
    parts = dotted.split(".")
    for count in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["dpmanifold", *parts[:count]]))
        except ModuleNotFoundError:
            continue
        for part in parts[count:]:
            found = getattr(found, part)
        return found
    raise AssertionError(dotted)


def steps():
    """Return the function of each step, by its full name."""
    found = re.findall(r"^\d+\. \*\*[^*]+\*\* `([\w.]+)`", STEPS, re.MULTILINE)
    return [f"{one.__module__}.{one.__qualname__}" for one in map(named, found)]


def called(work):
    """Return the functions that ran, in the order of their first calls."""
    seen = {}

    def look(frame, event, argument):
        if event == "call":
            seen.setdefault(f"{frame.f_globals.get('__name__', '')}.{frame.f_code.co_qualname}")

    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(None)
    return list(seen)


def test_a_private_mean_takes_the_steps_of_the_page_in_their_order(tmp_path):
    space = dpm.Sphere(2)
    ball = dpm.Ball(space, [0.0, 0.0, 1.0], 0.7, source="test")
    X = space.exp_coords(ball.center, np.random.default_rng(0).normal(scale=0.1, size=(60, 2)))

    def work():
        dpm.private_mean(X, ball, dpm.GDP(1.0), units=np.repeat(np.arange(30), 2)).save(tmp_path / "mean.json")

    order, expected = called(work), steps()
    assert len(expected) == 12
    assert set(expected) <= set(order)
    assert [name for name in order if name in expected] == expected


def anchor(heading):
    """Return what a heading is linked by."""
    return re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading.lstrip("# ").strip()).lower())


def anchors(page):
    return {anchor(line) for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("#")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].strip())
def test_a_row_of_the_table_leads_to_a_section_and_to_functions(row):
    target = re.search(r"\]\(([^)#]+)(?:#([^)]+))?\)", row[1])
    page = DOCS / target[1]
    assert page.is_file()
    assert target[2] is None or target[2] in anchors(page)
    names = re.findall(r"`([\w.]+)`", row[2])
    assert names
    for name in names:
        assert named(name).__doc__


def test_every_statement_of_the_theory_has_a_row():
    rows = [re.search(r"\]\(theory/([^)#]+)(?:#([^)]+))?\)", where).groups() for _, where, _ in ROWS]
    for page in sorted((DOCS / "theory").glob("*.md")):
        section = None
        for line in page.read_text(encoding="utf-8").splitlines():
            section = anchor(line) if line.startswith("#") else section
            if STATEMENT.match(line):
                assert {(page.name, None), (page.name, section)} & set(rows), f"{page.name}: {line[:60]}"
