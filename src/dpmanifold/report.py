"""A report of a result in one HTML file: what was promised in plain words, the numbers, the pictures, how to check it.

Nothing is loaded from a network. Everything in it follows from the result, so it costs no privacy.
"""

from __future__ import annotations

import base64
import html
import io
import json

from dpmanifold.inference import Conclusion, Interval, Region, TwoSampleTest
from dpmanifold.privacy import in_plain_words
from dpmanifold.release import Release
from dpmanifold.stats import verify

_STYLE = """
body { font: 16px/1.5 Georgia, serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #222; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; width: 100%; } caption { display: none; }
th { text-align: left; vertical-align: top; padding: .25rem 1rem .25rem 0; white-space: nowrap; font-weight: normal;
     color: #666; } td { padding: .25rem 0; } td pre { margin: 0; white-space: pre-wrap; }
pre, code { font: 13px/1.45 ui-monospace, Menlo, Consolas, monospace; } img { max-width: 100%; }
.mark { padding: .6rem .9rem; border-left: 5px solid; }
.good { border-color: #009E73; background: #eef8f4; } .bad { border-color: #D55E00; background: #fdf1ea; }
footer { margin-top: 3rem; color: #666; font-size: .85rem; }
"""


def html_report(result: Release | Conclusion) -> str:
    """Return a report as one HTML page.

    Parameters
    ----------
    result : a Release, Region, Interval or TwoSampleTest

    Examples
    --------
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0, origin="a scale from -1 to 1")
    >>> release = dpm.private_variance(np.zeros((50, 1)), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> page = html_report(release)
    >>> page.startswith("<!DOCTYPE html>"), "a scale from -1 to 1" in page
    (True, True)
    """
    base = _base(result)
    title = _title(result)
    checked = verify(result)  # type: ignore[arg-type]
    findings = "".join(f"<li>{html.escape(text)}</li>" for text in checked.findings)
    unknown = "".join(f"<li>{html.escape(text)}</li>" for text in checked.cannot_know)
    picture = _picture(result)
    record = html.escape(json.dumps(result.to_dict(), indent=1))
    verdict = "Everything it states was recomputed and agrees." if checked.ok else "IT IS NOT CONSISTENT."
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title><style>{_STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
{_mark(result.private)}
<h2>What was promised</h2>
<p>{html.escape(base.privacy.describe())}</p>
<p>{html.escape(in_plain_words(base.privacy))}</p>
<p>Protected is each {html.escape(base.unit)}; there are {base.n:,}{_others(result)}.
Two data sets count as neighbours if one differs from the other so: {html.escape(base.neighbours)}.</p>
<h2>What was released</h2>
{result._repr_html_()}
{picture}
<h2>What it rests on</h2>
<p>Records were moved into a public ball: {html.escape(repr(base.ball))}.
Whoever lies outside counts as if on its edge, so the numbers are about the clipped records.
{html.escape(_origin(base))}</p>
<h2>How to check it</h2>
<p class="mark {"good" if checked.ok else "bad"}">{verdict}</p>
<ul>{findings}</ul>
<p>Save the record below as <code>release.json</code> and run <code>dpm verify release.json</code>, which recomputes
this. What no check can know:</p><ul>{unknown}</ul>
<p>Not covered by the promise: attacks on the low bits of floating-point noise, and running time
({html.escape(base.timing)}).</p>
<details><summary>The record</summary><pre>{record}</pre></details>
<footer>dpmanifold {html.escape(base.version)}</footer>
</body></html>
"""


def _base(result: Release | Conclusion) -> Release:
    """Return the release whose promise the result states."""
    if isinstance(result, Release):
        return result
    if isinstance(result, (Region, Interval)):
        return result.release
    assert isinstance(result, TwoSampleTest)
    return result.first


def _title(result: Release | Conclusion) -> str:
    title = f"A private {result.statistic}" if isinstance(result, Release) else result.title
    return title if result.private else f"{title} that is NOT private"


def _others(result: Release | Conclusion) -> str:
    return f" in the first group and {result.second.n:,} in the second" if isinstance(result, TwoSampleTest) else ""


def _origin(base: Release) -> str:
    return "" if base.ball.origin else "The release does not say where this knowledge came from: ask."


def _mark(private: bool) -> str:
    if private:
        return '<p class="mark good">Private: noise was drawn from the operating system, and nothing was revealed.</p>'
    return '<p class="mark bad">NOT PRIVATE: a seed was used, or something was revealed. For simulations only.</p>'


def _picture(result: Release | Conclusion) -> str:
    """Return the result's picture, embedded."""
    from dpmanifold import plots

    figure = plots.show(result)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=150)
    code = base64.b64encode(buffer.getvalue()).decode("ascii")
    return f'<p><img alt="The released result as a picture" src="data:image/png;base64,{code}"></p>'
