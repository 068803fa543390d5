"""Write the reference page of the queries from their table: docs/reference/queries.md.

    python tools/queries_page.py

A test holds the page against what this writes.
"""

from __future__ import annotations

import pathlib
import textwrap

from dpmanifold.stats.query import QUERIES, Query

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/reference/queries.md"
_HEAD = """# The queries

What can be asked, under one name everywhere: the Python call is `private_` and the name, with underscores; the command
`dpm` and the name; `dpm plan --statistic` and [`dpm.plan`](private.md) plan it; a [client](remote.md) has a method
of the name; a [service](../how-to/service.md) offers it where the data have what it takes. Installed distributions
add theirs (CONTRIBUTING.md in the repository).
"""
_SAMPLES = {
    "Units": "records",
    "SpanningGroups": "records with public classes; a unit may be in several",
    "Groups": "records with public classes; a unit is in one",
    "Labelled": "records with classes, private unless they are said to be public",
    "Pair": "records of two groups; a unit is in one",
    "WithCovariate": "records with a number each",
}


def page() -> str:
    """Return the text of the page."""
    return "\n".join([_HEAD, *(line for query in QUERIES.own() for line in _section(query))])


def _section(query: Query) -> list[str]:
    result = "a `Release` for each class" if query.result is dict else f"`{query.result.__name__}`"
    made_of = ", ".join(query.releases)
    found = [
        f"## {query.name}",
        "",
        textwrap.fill(
            f"{query.title}: [`{query.call.__name__}`](private.md). Takes {_SAMPLES[query.sample.__name__]}. Returns "
            f"{result}, made of: {made_of}.",
            120,
            break_on_hyphens=False,
        ),
        "",
    ]
    if query.options:
        found += ["| option | default | |", "|---|---|---|"]
        found += [f"| `{one.name}` | `{one.default!r}` | {one.help} |" for one in query.options]
        found += [""]
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
