"""What goes with a release: a picture and a report. Both follow from the release alone, and cost nothing."""

from __future__ import annotations

import html
import io
from collections.abc import Mapping
from typing import Any

from dpmanifold import plots
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.report import html_report

_DOTS = 150  # per inch: sharp on a screen with two dots for one


def picture_of(answer: Any) -> bytes:
    """Return the picture of an answer as PNG; of means by class, one that shows them all where there is one.

    Parameters
    ----------
    answer : a Result, or a dict of releases by class
    """
    sheet = io.BytesIO()
    _figure(answer).savefig(sheet, format="png", dpi=_DOTS)
    return sheet.getvalue()


def _figure(answer: Any) -> Any:
    if not isinstance(answer, Mapping):
        return plots.show(answer)
    try:
        return plots.show(answer)
    except InvalidArgumentError:
        return plots.show(next(iter(answer.values())))


def report_of(answer: Any) -> bytes:
    """Return the report of an answer, one HTML page; of means by class, their reports one after the other."""
    if not isinstance(answer, Mapping):
        return html_report(answer).encode("utf-8")
    pages = [(str(name), html_report(release)) for name, release in answer.items()]
    head, _, _ = pages[0][1].partition("<body>")
    parts = [f"<h1>Class {html.escape(name)}</h1>\n{_body(page)}" for name, page in pages]
    return f"{head}<body>\n{''.join(parts)}</body></html>\n".encode()


def _body(page: str) -> str:
    """Return what stands between the tags of a page's body; text in it has no tags of its own."""
    return page.partition("<body>")[2].rpartition("</body>")[0]


__all__ = ["picture_of", "report_of"]
