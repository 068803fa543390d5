"""The pages about the papers: they say what the code says, and no more than is proven."""

import pathlib
from importlib import resources

import pytest

from dpmanifold_papers.framework import text_file
from dpmanifold_papers.pages import write_pages
from dpmanifold_papers.registry import EXPERIMENTS, HEADLINES

DOCS = pathlib.Path(__file__).parents[2] / "docs" / "papers"
pytestmark = pytest.mark.skipif(not DOCS.is_dir(), reason="only in a checkout")

# More than is proven, or not true.
TOO_STRONG = (
    "None gives 25 %",
    "KNG must",
    "which cannot do with less than 2 Delta/epsilon",
    "the smallest scale that keeps the promise",
    'The gap is not "almost 10"',
    "is the sensitivity of the\n*arithmetic* mean",
    "6.96/n, the sensitivity of an *arithmetic* mean",
    "has the sensitivity 4 sin(r/2)/n",
    "it is the other way round",
    "From 1e-6 to 1e-9 the classical error grows",
    "the sensitivity is 1.83x too small |",
    "It comes from the truncation",
)


def page(experiment):
    return (DOCS / f"{experiment.name.partition('/')[0]}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("experiment", list(EXPERIMENTS.values()), ids=lambda e: e.name)
def test_a_page_has_the_discussion_of_the_code(experiment):
    assert experiment.discussion.strip() in page(experiment)


@pytest.mark.parametrize("experiment", list(EXPERIMENTS.values()), ids=lambda e: e.name)
def test_nothing_is_said_that_is_not_proven(experiment):
    for sentence in TOO_STRONG:
        assert sentence not in page(experiment)
        assert sentence not in experiment.discussion
        assert sentence not in (DOCS / "README.md").read_text(encoding="utf-8")


def test_headlines_of_the_summary_are_those_of_the_code():
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    for claims in HEADLINES.values():
        for claim, _ in claims:
            assert f"| {claim} | " in text


def test_pages_of_a_part_of_the_experiments_are_written(tmp_path):
    """What was not run is said not to have been run."""
    (written,) = write_pages(tmp_path / "results", tmp_path / "pages")
    text = written.read_text(encoding="utf-8")
    assert text.count("| not run | | |") == sum(len(claims) for claims in HEADLINES.values())


def test_the_summary_says_what_the_package_says():
    assert text_file("summary.md") in (DOCS / "README.md").read_text(encoding="utf-8")


def test_texts_of_the_package_are_those_of_the_experiments_and_narrow():
    folder = resources.files("dpmanifold_papers")
    found = {f"{paper.name}/{file.name}" for paper in folder.iterdir() if paper.is_dir() for file in paper.iterdir()}
    assert {name for name in found if name.endswith(".md")} == {f"{name}.md" for name in EXPERIMENTS}
    assert all(len(line) <= 120 for e in EXPERIMENTS.values() for line in e.discussion.splitlines())
