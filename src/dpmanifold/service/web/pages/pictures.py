"""Pictures that a page draws itself, as SVG: what a plan looks like on synthetic points, and what used a cap up.

Nothing here has seen a record. Styles are in the sheet, so that pictures are light and dark as the page is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from markupsafe import Markup

from dpmanifold.service.views import LineView
from dpmanifold.service.web.pages.words import percent

BALL = 100.0
"""Radius of the ball in the picture of a plan."""
_VIEW = 116
_POINTS, _SPREAD, _SEED = 70, 0.24, 20261117
_OFF_CENTRE = (0.22, 0.14)
_BAND = 460.0  # length of the line from nothing to the largest value
_MOST_KINDS = 6
_WIDEST = 70.0  # bar of a history
_WIDTH, _HEIGHT, _LEFT, _TOP, _BOTTOM = 640.0, 320.0, 78.0, 30.0, 38.0


@functools.cache
def synthetic() -> tuple[tuple[float, float], ...]:
    """Return made-up points in the unit disc, the same for everybody and always."""
    rng = np.random.default_rng(_SEED)
    points = np.array(_OFF_CENTRE) + _SPREAD * rng.standard_normal((_POINTS, 2))
    lengths = np.linalg.norm(points, axis=1, keepdims=True)
    return tuple((float(x), float(y)) for x, y in points / np.maximum(1.0, lengths / 0.98))


def disc(share: float | None) -> Markup:
    """Draw the ball's edge, made-up points, their mean, and a disc of the expected error about it.

    Parameters
    ----------
    share : the expected error as a share of the radius; None where none is stated
    """
    x, y = np.mean(synthetic(), axis=0)
    points = "".join(
        f'<circle class="point" cx="{BALL * a:.1f}" cy="{-BALL * b:.1f}" r="1.7"/>' for a, b in synthetic()
    )
    radius = "0" if share is None else f"{BALL * min(share, 10.0):.3f}"
    said = (
        "The expected error about the mean of seventy synthetic points in the ball"
        if share is None
        else f"A disc of {percent(share)} of the ball's radius about the mean of seventy synthetic points"
    )
    return Markup(
        f'<figure><svg class="picture" viewBox="{-_VIEW} {-_VIEW} {2 * _VIEW} {2 * _VIEW}" role="img" '
        f'aria-label="{said}"><circle class="ball" r="{BALL:g}"/>{points}'
        f'<circle class="mean" cx="{BALL * x:.1f}" cy="{-BALL * y:.1f}" r="1.2"/>'
        f'<circle class="disc" data-live="disc" data-scale="{BALL:g}" cx="{BALL * x:.1f}" cy="{-BALL * y:.1f}" '
        f'r="{radius}"/></svg>'
        "<figcaption>Synthetic points, not your data: the ball's edge, made-up points in it with their mean, and a "
        "disc as large as the error to expect.</figcaption></figure>"
    )


def band(share: float | None) -> Markup:
    """Draw the error as a part of the line from nothing to the largest value, for what is no point of the space."""
    width = 0.0 if share is None else _BAND * min(share, 1.0)
    said = "No error is stated" if share is None else f"An error of {percent(share)} of the largest value"
    return Markup(
        f'<figure><svg class="picture" viewBox="-4 0 {_BAND + 8:g} 70" role="img" aria-label="{said}">'
        f'<rect class="ball" x="0" y="6" width="{_BAND:g}" height="26" rx="3"/>'
        f'<rect class="disc" data-live="band" data-scale="{_BAND:g}" x="0" y="6" width="{width:.3f}" height="26"/>'
        f'<text x="0" y="58">0</text><text x="{_BAND:g}" y="58" text-anchor="end">largest value</text></svg>'
        "<figcaption>The error to expect, against the largest value that the answer can have. No data were used."
        "</figcaption></figure>"
    )


@final
@dataclass(frozen=True)
class _Bars:
    """Where the bars of a history are."""

    lines: Sequence[LineView]
    kinds: Sequence[str]

    @property
    def before(self) -> float:
        return max(0.0, self.lines[0].total_share - self.lines[0].share)

    @property
    def top(self) -> float:
        """The largest share that is drawn."""
        return max(1.0, self.lines[-1].total_share) * 1.06

    def x(self, place: float) -> float:
        return _LEFT + place * (_WIDTH - _LEFT - 8) / len(self.lines)

    def y(self, share: float) -> float:
        return _TOP + (1 - share / self.top) * (_HEIGHT - _TOP - _BOTTOM)

    def kind(self, line: LineView) -> int:
        """Return the number of a line's colour; 0 for what is taken together."""
        return self.kinds.index(line.what) + 1 if line.what in self.kinds else 0

    def bar(self, place: int, low: float, high: float) -> str:
        cell = self.x(1) - self.x(0)
        width = min(_WIDEST, cell * (0.72 if len(self.lines) <= 60 else 1.0))
        x = self.x(place) + (cell - width) / 2
        return f"M{x:.1f} {self.y(high):.2f}h{width:.2f}V{self.y(low):.2f}h{-width:.2f}z"


def history(lines: Sequence[LineView]) -> Markup:
    """Draw what was spent with each release, one on top of the other, against the cap.

    Parameters
    ----------
    lines : in the order of the ledger; what belongs to others has no name
    """
    sums: dict[str, float] = {}
    for line in lines:
        if line.what:
            sums[line.what] = sums.get(line.what, 0.0) + line.share
    bars = _Bars(lines, sorted(sums, key=lambda what: -sums[what])[:_MOST_KINDS])
    drawn: list[list[str]] = [[] for _ in range(len(bars.kinds) + 1)]
    spent = [0.0] * (len(bars.kinds) + 1)
    for place, line in enumerate(lines):
        spent[bars.kind(line)] += line.share
        floor = bars.before
        for kind, share in enumerate(spent):
            if share:
                drawn[kind].append(bars.bar(place, floor, floor + share))
                floor += share
    base = "".join(bars.bar(place, 0.0, bars.before) for place in range(len(lines))) if bars.before else ""
    paths = "".join(
        f'<path class="segment series-{kind}" d="{"".join(parts)}"/>' for kind, parts in enumerate(drawn) if parts
    )
    before = f'<path class="segment before" d="{base}"/>' if base else ""
    last = percent(lines[-1].total_share)
    return (
        Markup(
            f'<figure class="history"><svg class="picture" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
            f'aria-label="Bars that grow with each of {len(lines)} releases, up to {last} of the cap; '
            'the table below has the numbers">'
            f"{_axes(bars)}{before}{paths}{_cap(bars)}</svg>"
        )
        + _key(bars, sums)
        + Markup("</figure>")
    )


def _axes(bars: _Bars) -> str:
    step = 0.25 if bars.top < 2 else math.ceil(bars.top) / 4
    ticks = [step * place for place in range(int(bars.top / step) + 1)]
    lines = "".join(
        f'<line class="rule" x1="{_LEFT:g}" x2="{_WIDTH - 8:g}" y1="{bars.y(tick):.1f}" y2="{bars.y(tick):.1f}"/>'
        f'<text x="{_LEFT - 8:g}" y="{bars.y(tick) + 4:.1f}" text-anchor="end">{percent(tick)}</text>'
        for tick in ticks
    )
    first, last = bars.lines[0].time[:10], bars.lines[-1].time[:10]
    days = f'<text x="{_LEFT:g}" y="{_HEIGHT - 10:g}">{first}</text>'
    if last != first:
        days += f'<text x="{_WIDTH - 8:g}" y="{_HEIGHT - 10:g}" text-anchor="end">{last}</text>'
    return lines + days


def _cap(bars: _Bars) -> str:
    y = bars.y(1.0)
    return (
        f'<line class="cap" x1="{_LEFT:g}" x2="{_WIDTH - 8:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="strong" x="{_WIDTH - 8:g}" y="{y - 6:.1f}" text-anchor="end">cap</text>'
    )


def _key(bars: _Bars, sums: dict[str, float]) -> Markup:
    """Say what the colours stand for, and how much each took."""
    entries: list[tuple[str, str, float]] = [
        (f"series-{place + 1}", what, sums[what]) for place, what in enumerate(bars.kinds)
    ]
    rest = sum(line.share for line in bars.lines if bars.kind(line) == 0)
    if rest:
        entries.append(("series-0", "others", rest))
    if bars.before:
        entries.append(("before", "spent before", bars.before))
    return Markup('<ul class="key">{}</ul>').format(Markup("").join(_entry(*entry) for entry in entries))


def _entry(look: str, words: str, share: float) -> Markup:
    square: Any = Markup('<svg viewBox="0 0 10 10" class="picture" aria-hidden="true"><rect class="{}" width="10" '
                         'height="10" rx="2"/></svg>').format(look)  # fmt: skip
    return Markup("<li>{}<span>{}, {}</span></li>").format(square, words, percent(share))
