"""A report of a result in one HTML file: what was promised in plain words, the numbers, the pictures, how to check it.

It is written for people: numbers are rounded, matrices are tables, and a result that fails its check says so first. The
record at its end holds every digit. Nothing is loaded from a network. Everything in it follows from the result, so it
costs no privacy.
"""

from __future__ import annotations

import base64
import html
import io
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from dpmanifold.ball import Ball
from dpmanifold.inference.inference_result import Conclusion
from dpmanifold.privacy import in_plain_words
from dpmanifold.release import NO_ERROR, RELEASED, Release
from dpmanifold.result import Result
from dpmanifold.statistic import ADJACENCY, Kind, private_words
from dpmanifold.stats import verify
from dpmanifold.stats.check import Verification
from dpmanifold.summary import array_text

_STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
table.facts { border-collapse: collapse; width: 100%; }
.facts > tbody > tr > th { text-align: left; vertical-align: top; padding: .25rem 1.2rem .25rem 0; width: 8rem;
     font-weight: normal; color: #666; } .facts > tbody > tr > td { padding: .25rem 0; }
table.matrix { border-collapse: collapse; border-left: 1px solid #444; border-right: 1px solid #444; }
.matrix td { padding: 0 .6rem; text-align: right; font-variant-numeric: tabular-nums; }
pre, code { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; } pre { overflow-x: auto; margin: 0; }
img { max-width: 100%; }
.mark { padding: .6rem .9rem; border-left: 5px solid; } .mark ul { margin: .4rem 0; padding-left: 1.2rem; }
.good { border-color: #009E73; background: #eef8f4; } .bad { border-color: #C00000; background: #fdeaea; }
footer { margin-top: 3rem; color: #666; font-size: .85rem; }
"""
# Matrices with more rows or columns are shortened as numpy shortens them.
_LARGEST_TABLE = 12
_LONG_NUMBER = re.compile(r"\d+\.\d{6,}(?:[eE][-+]?\d+)?")
# What other sections of the report say in words.
_ELSEWHERE = ("promise", "ball", "not covered")
_SIMULATED = " A SEEDED SIMULATION FOUND IT."


def html_report(result: Result) -> str:
    """Return a report as one HTML page.

    Parameters
    ----------
    result : what a private call returned

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0, source="a scale from -1 to 1")
    >>> release = dpm.private_variance(np.zeros((50, 1)), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> page = html_report(release)
    >>> page.startswith("<!DOCTYPE html>"), "a scale from -1 to 1" in page
    (True, True)
    """
    base = _base(result)
    checked = verify(result)
    title = _title(result, checked.ok)
    record = html.escape(json.dumps(result.to_dict(), indent=1))
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
{_verdict(result, checked)}
<h2>What was promised</h2>
<p>{html.escape(base.privacy.describe())}</p>
<p>{html.escape(in_plain_words(base.privacy))}</p>
<p>Protected is each {html.escape(base.unit)}; there are {base.n:,}{_others(result)}.
Two data sets are adjacent if one differs from the other so:
{html.escape(ADJACENCY.get(base.adjacency, base.adjacency))}.</p>
<h2>What was released</h2>
{_tried(lambda: _released(result), "The numbers of this record cannot be shown.")}
{_tried(lambda: _picture(result), "There is no picture of it.") if checked.ok else ""}
<h2>What it rests on</h2>
{_rests_on(base)}
<h2>How to check it</h2>
{_check(checked)}
<p>{_arithmetic(result, checked)} Not covered by the promise: running time ({html.escape(base.timing)}).
{_tried(lambda: html.escape(_in_no_error(result)), "")}</p>
<details><summary>The record, with every digit</summary><pre>{record}</pre></details>
<footer>dpmanifold {html.escape(base.version)}</footer>
</body></html>
"""


# -------------------------------------------------------------------- what kind of result, and whether it holds


def _base(result: Result) -> Release:
    """Return the release whose promise the result states."""
    found = result.released[0]
    assert isinstance(found, Release)
    return found


def _title(result: Result, ok: bool) -> str:
    words = private_words(result.statistic) if isinstance(result, Release) else result.title
    title = words[0].upper() + words[1:]
    if not ok:
        return f"NOT CONSISTENT: {title[0].lower()}{title[1:]}"
    return title if result.private else f"{title} that is NOT private"


def _verdict(result: Result, checked: Verification) -> str:
    """Return the box at the top: red with the findings, red for what is not private, or green."""
    if not checked.ok:
        return (
            '<div class="mark bad"><b>THIS RESULT IS NOT CONSISTENT. Do not rely on it.</b> What it states was '
            f"recomputed, and this is wrong:{_list(checked.wrong)}</div>"
        )
    if not result.private:
        return (
            '<p class="mark bad">NOT PRIVATE: a seed was used, something was revealed, or the data were declared '
            "public. For simulations and for public data only.</p>"
        )
    return (
        '<p class="mark good">Private, by its own account: noise from the operating system, and nothing revealed. '
        "What can be recomputed of it was, and agrees.</p>"
    )


def _check(checked: Verification) -> str:
    """Return how the result was checked, and what no check can know."""
    found = (
        "" if not checked.ok else f"<p>Everything that can be recomputed was, and agrees:</p>{_list(checked.findings)}"
    )
    return (
        f"{found}<p>Save the record below as <code>release.json</code> and run <code>dpm verify release.json</code>, "
        f"which recomputes this. What no check can know:</p>{_list(checked.cannot_know)}"
    )


def _in_no_error(result: Result) -> str:
    """Say what no stated error includes, as the result itself does."""
    said = dict(result.facts())["not covered"].partition("; ")[2]
    return said[:1].upper() + said[1:] + "."


def _arithmetic(result: Result, checked: Verification) -> str:
    """Say what the promise is worth against somebody who reads every digit."""
    if result.is_exact:
        if not checked.ok:
            return "It states that the noise was drawn exactly; as it is not consistent, that is worth nothing."
        if not result.private:
            return "The noise was rounded to a public grid as exact noise is, but this result is not private."
        return "The noise was drawn exactly: the promise holds for every digit that is shown here."
    return (
        "The noise was drawn in double precision: somebody who reads all its digits, and knows everybody else's "
        "records, may tell more than was promised."
    )


def _list(texts: tuple[str, ...]) -> str:
    return "<ul>" + "".join(f"<li>{_prose(text)}</li>" for text in texts) + "</ul>"


def _others(result: Result) -> str:
    if len(result.released) == 1:
        return ""
    if len(result.released) > 2:
        others = ", ".join(f"{release.n:,}" for release in result.released[1:])
        return f" in the first group and {others} in the others"
    return f" in the first group and {result.released[1].n:,} in the second"


# -------------------------------------------------------------------- numbers for people


def _released(result: Result) -> str:
    """Return what was released as a table of names and numbers."""
    value = result.value if isinstance(result, Release) else result.number_or_array
    arrays, rows = result.arrays() if isinstance(result, Conclusion) else {}, []
    for name, text in result.facts():
        if name in _ELSEWHERE or (name == "center" and isinstance(result, Release)):
            continue
        # Columns of a matrix stay below each other.
        shown = f"<pre>{_prose(text)}</pre>" if text.startswith("[") else _prose(text).replace("\n", "<br/>")
        if name in ("value", "center"):
            shown = _inner_ball(result) if isinstance(result, Release) and isinstance(value, Ball) else _numbers(value)
        elif name in arrays:
            shown = _numbers(arrays[name])
        rows.append(f"<tr><th>{html.escape(name)}</th><td>{shown}</td></tr>")
    return f'<table class="facts">{"".join(rows)}</table>'


def _numbers(value: Any) -> str:
    """Return a number as text, and a vector or a matrix as a table; complex entries as rows of two coordinates."""
    array = np.asarray(value)
    if array.ndim == 0:
        return f"{float(array):.5g}"
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    grid = np.atleast_2d(array)
    if grid.ndim > 2 or max(grid.shape) > _LARGEST_TABLE:
        return f"<pre>{html.escape(array_text(array))}</pre>"
    digits = max(0, 4 - int(np.floor(np.log10(max(np.abs(grid).max(), 1e-12)))))
    while digits and np.array_equal(np.round(grid, digits - 1), np.round(grid, digits)):
        digits -= 1  # zeros at the end of every entry
    rows = ("".join(f"<td>{entry + 0.0:.{digits}f}</td>" for entry in row) for row in np.round(grid, digits))
    return '<table class="matrix">' + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"


def _prose(text: str) -> str:
    """Return a text for people: escaped, and with long numbers rounded."""
    return html.escape(_LONG_NUMBER.sub(lambda number: f"{float(number[0]):.6g}", text))


def _inner_ball(release: Release) -> str:
    """Say which ball was released."""
    outer = release.ball if release.value != release.ball else None
    return _ball_words(release.value, outer) + _numbers(release.value.center)


def _outer(release: Release) -> Ball | None:
    """Return the public ball inside which a step of the release found its ball, if one did."""
    step = release
    while step.steps:
        step = step.steps[0]
    if release.ball == step.ball:
        return None
    if step.definition.kind is Kind.BALL and step.value == release.ball:
        return step.ball
    # About a released mean: of a median, and of what else takes a step from one.
    about_a_mean = release.ball.source.startswith(RELEASED) and release.ball.space == step.ball.space
    return step.ball if about_a_mean else None


def _rests_on(base: Release) -> str:
    """Say in a paragraph where records may lie, and what became of those that do not."""
    ball, outer = base.ball, _outer(base)
    if ball.is_whole:
        stated = f" Stated about it: {_prose(ball.source)}." if ball.source else ""
        mark = _SIMULATED if ball.simulated else ""
        return (
            f"<p>There is no ball: records may lie anywhere, and none was moved. They are "
            f"{html.escape(ball.space.describe())}.{stated}{mark} It needs no public knowledge of where records "
            f"lie; but {NO_ERROR}.</p>"
        )
    return (
        f"<p>Records were moved into a {'released' if outer else 'public'} ball: {_ball_words(ball, outer)} Whoever "
        "lies outside counts as if on its edge, so the numbers are about the clipped records.</p>"
        f'<table class="facts"><tr><th>centre of the ball</th><td>{_numbers(ball.center)}</td></tr></table>'
    )


def _ball_words(ball: Ball, outer: Ball | None = None) -> str:
    """Say in a sentence which ball it is and where it comes from."""
    source = f"It comes from: {_prose(ball.source)}." if ball.source else "Nothing says where it comes from: ask."
    if outer is not None:
        known = f" ({_prose(outer.source)})" if outer.source else ""
        source = (
            f"It was found privately, as part of this promise, in a public one of radius {outer.radius:.5g}{known}."
        )
    mark = _SIMULATED if ball.simulated else ""
    return f"{html.escape(ball.space.describe())}, radius {ball.radius:.5g}. {source}{mark}"


# -------------------------------------------------------------------- the picture


def _picture(result: Result) -> str:
    """Return the result's picture, embedded."""
    from dpmanifold import plots

    figure = plots.show(result)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    code = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<p><img alt="The released result as a picture" src="data:image/png;base64,{code}"></p>'


def _tried(make: Callable[[], str], otherwise: str) -> str:
    """Return a part of the report, or a sentence in its place: what is wrong with a record is told all the same."""
    try:
        return make()
    except Exception:
        return f"<p>{otherwise}</p>"
