"""What used a budget up: the releases of a ledger, one on top of the other, against the cap."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.ledger.history import LOST, History, Line
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import Mark, promise_text
from dpmanifold.privacy import GDP
from dpmanifold.privacy.amounts import cost_of

FROM_LEDGER = Mark("from the ledger, no data used", "#444444", "#F4F4F4")
_OTHERS = "others"
_MOST_POPULATIONS = 4
_MOST_KINDS = 6  # as many as a picture names; the rest is taken together
_LETTERS = 34  # of a name beside its bar
_PANEL, _REST = 2.5, 1.4  # inches: a population's panels; title, axis and footer


@dataclass(frozen=True)
class _Account:
    """The releases of one population in a picture, as shares of its cap."""

    name: str
    lines: Sequence[Line]
    shares: Any  # (n, 2): of the cap, before and after each release
    costs: Sequence[Fraction]  # of each release, as shares of the cap, exactly
    kinds: Sequence[str]  # what the colours stand for, the largest first
    caps: Sequence[tuple[int, float]]  # raised caps: after how many releases, and from which share

    def kind(self, line: Line) -> str:
        return line.about if line.about in self.kinds else _OTHERS


def history(page: History) -> canvas.Figure:
    """Draw what used up a population's cap: release by release, and what each statistic took.

    Layers are coloured by statistic and data, and hatched where releases were lost: their spends stand. Heights are
    shares of the cap as it is now, in the currency that adds up (of GDP, mu squared). Several populations are drawn one
    below the other.

    Parameters
    ----------
    page : what `history` of a ledger or a population returned

    Examples
    --------
    >>> from dpmanifold import GDP
    >>> from dpmanifold.ledger.entries import Entry
    >>> spend = {"principal": "ada", "key": "k", "statistic": "mean", "datasets": ["dti@1"], "privacy": {"mu": "0.3"},
    ...          "time": "2026-11-16T09:00:00Z", "cost": ["9/100"], "spent": ["9/100"]}
    >>> first = Entry.chained("a-ledger", None, "spend", "cohort", None, spend)
    >>> figure = history(History([first], caps={"cohort": GDP(0.6)}))
    >>> figure.texts[0].get_text(), figure.axes[0].get_ylabel()
    ('What used it up', 'share of the cap (%)')
    """
    canvas.require(page, History, "history draws a page of a ledger", "Give what ledger.history() returned.")
    names = list(dict.fromkeys(line.population for line in page.releases))
    if not names:
        raise InvalidArgumentError("there is nothing to draw: no release is among these entries.")
    if len(names) > _MOST_POPULATIONS:
        raise InvalidArgumentError(
            f"a picture has room for {_MOST_POPULATIONS} populations, got {len(names)}. Draw population.history()."
        )
    accounts = [_account(page, name) for name in names]
    figure = canvas.new_figure(
        "What used it up", _subtitle(accounts), FROM_LEDGER, _footer(page, accounts), _PANEL * len(names) + _REST
    )
    panels = figure.subplots(len(names), 2, width_ratios=[1.7, 1], squeeze=False)
    for account, (steps, sums) in zip(accounts, panels, strict=True):
        _draw_steps(steps, account)
        _draw_sums(sums, account)
        if len(names) > 1:
            canvas.caption(steps, account.name)
    return figure


def _account(page: History, name: str) -> _Account:
    """Return a population's releases as shares of its cap, in the dimension that is fuller at the end."""
    cap = page.caps[name]
    whole = cost_of(cap, cap)
    lines = [line for line in page.releases if line.population == name]
    fuller = max(range(len(whole)), key=lambda part: lines[-1].spent[part] / whole[part])
    after = np.array([float(line.spent[fuller] / whole[fuller]) for line in lines])
    taken = np.array([float(line.cost[fuller] / whole[fuller]) for line in lines])
    sums: dict[str, float] = {}
    for line, share in zip(lines, taken, strict=True):
        sums[line.about] = sums.get(line.about, 0.0) + share
    largest = sorted(sums, key=lambda about: -sums[about])
    room = _MOST_KINDS if len(largest) <= _MOST_KINDS else _MOST_KINDS - 1
    caps = [
        (sum(line.sequence < sequence for line in lines), float(cost_of(was, cap)[fuller] / whole[fuller]))
        for sequence, was in page.raised(name)
    ]
    costs = [line.cost[fuller] / whole[fuller] for line in lines]
    return _Account(name, lines, np.stack([after - taken, after], axis=1), costs, largest[:room], caps)


def _color(account: _Account, kind: str) -> str:
    return canvas.GREY if kind == _OTHERS else canvas.SERIES[list(account.kinds).index(kind)]


def _draw_steps(axes: canvas.Axes, account: _Account) -> None:
    """Draw what was spent with each release, in layers: a kind of release each, with its lost ones on top."""
    n = len(account.lines)
    places = np.arange(n + 1) + 0.5
    taken = 100 * (account.shares[:, 1] - account.shares[:, 0])
    floor = np.full(n + 1, 100 * account.shares[0, 0])
    if floor[0] > 0:
        axes.fill_between(places, 0, floor, color=canvas.PALE, linewidth=0)
        axes.annotate("spent before", (0.5, floor[0] / 2), xytext=(4, 0), textcoords="offset points", fontsize=7,
                      va="center", color=canvas.INK)  # fmt: skip
    # Whatever came first lies below: a layer is not moved by kinds that come later.
    for kind in dict.fromkeys(account.kind(line) for line in account.lines):
        for lost in (False, True):
            mine = np.array([account.kind(line) == kind and (line.state == LOST) == lost for line in account.lines])
            if mine.any():
                height = np.append(np.cumsum(np.where(mine, taken, 0.0)), 0.0)
                height[-1] = height[-2]  # a step reaches to the next place
                look = _look(_color(account, kind), lost, 0.4 if lost else 0.0)
                axes.fill_between(places, floor, floor + height, step="post", **look)
                floor = floor + height
    axes.plot(places, floor, drawstyle="steps-post", color=canvas.INK, linewidth=0.9)
    _draw_cap(axes, account, n)
    axes.set_xlim(0.5, n + 0.5)
    axes.set_ylim(0, 1.12 * max(100.0, float(floor.max())))
    ticks = sorted({int(place) for place in np.linspace(1, n, min(n, 5)).round()})
    days = {place: account.lines[place - 1].time[:10] for place in (1, n)}
    axes.set_xticks(ticks, [f"{place:,}\n{days.get(place, '')}" for place in ticks])
    canvas.tidy(axes, "release", "share of the cap (%)", grid="y")


def _draw_cap(axes: canvas.Axes, account: _Account, n: int) -> None:
    """Draw the cap as it was at each release, and its name."""
    ends = [*(after + 0.5 for after, _ in account.caps), n + 0.5]
    levels = [*(100 * share for _, share in account.caps), 100.0]
    start = 0.5
    for end, level in zip(ends, levels, strict=True):
        axes.plot([start, end], [level, level], color=canvas.INK, linewidth=1.4, linestyle="--")
        start = end
    axes.annotate("cap", (n + 0.5, 100), xytext=(-3, 3), textcoords="offset points", fontsize=7.5,
                  ha="right", va="bottom", color=canvas.INK)  # fmt: skip


def _draw_sums(axes: canvas.Axes, account: _Account) -> None:
    """Draw what each statistic took in all, with its name: the key of the colours."""
    taken = 100 * (account.shares[:, 1] - account.shares[:, 0])
    kinds = [*account.kinds, *([_OTHERS] if any(account.kind(line) == _OTHERS for line in account.lines) else [])]
    for row, kind in enumerate(kinds):
        mine = [(share, line.state == LOST) for share, line in zip(taken, account.lines, strict=True)
                if account.kind(line) == kind]  # fmt: skip
        kept, lost = (sum(share for share, gone in mine if gone == which) for which in (False, True))
        axes.barh(row, kept, height=0.42, **_look(_color(account, kind), False, 0.5))
        axes.barh(row, lost, left=kept, height=0.42, **_look(_color(account, kind), True, 0.5))
        exact = sum(cost for cost, line in zip(account.costs, account.lines, strict=True) if account.kind(line) == kind)
        said = f"{textwrap.shorten(kind, _LETTERS, placeholder='…')}, {100 * float(exact):.1f} %"
        said += f" ({sum(gone for _, gone in mine)} lost)" if lost else ""
        axes.annotate(said, (0, row - 0.27), fontsize=7.5, color=canvas.INK, va="bottom", parse_math=False)
    axes.set_ylim(max(len(kinds), 3) - 0.5, -0.8)
    axes.set_xlim(0, None)
    canvas.bare(axes, "of the cap (%), hatched: lost", grid=None)


def _look(color: str, lost: bool, edge: float) -> dict[str, Any]:
    """Return how a release looks: full, or hatched where it was lost."""
    if lost:
        return {"facecolor": "white", "edgecolor": color, "hatch": "//////", "linewidth": edge}
    return {"facecolor": color, "edgecolor": "white", "linewidth": edge}


def _subtitle(accounts: Sequence[_Account]) -> str:
    parts = []
    for account in accounts:
        lost = sum(line.state == LOST for line in account.lines)
        words = f"{len(account.lines):,} release{'' if len(account.lines) == 1 else 's'}"
        words += f", {lost:,} of them lost" if lost else ""
        parts.append(f"{account.name}: {100 * account.shares[-1, 1]:.1f} % of the cap is spent, by {words}")
    return "; ".join(parts)


def _footer(page: History, accounts: Sequence[_Account]) -> list[str]:
    caps = [f"{account.name} {promise_text(page.caps[account.name])}" for account in accounts]
    adds = " Squares of mu add up." if any(isinstance(page.caps[account.name], GDP) for account in accounts) else ""
    first, last = page[0].seq, page[-1].seq
    return [f"Cap{'s' if len(caps) > 1 else ''}: {', '.join(caps)}.{adds}", f"Entries {first:,} to {last:,}."]
