"""One sheet for every picture: size, colours, title, mark and footer. Nothing global is touched.

matplotlib is imported when a figure is made, never before, so that the library works without it. Figures are made from
`matplotlib.figure.Figure`: they belong to whoever asked for them, and pyplot does not know them.
"""

from __future__ import annotations

import decimal
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from dpmanifold._check import optional_module, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference.joint import is_joint
from dpmanifold.privacy import Promise
from dpmanifold.release import RELEASED, Release
from dpmanifold.statistic import Kind

_DIGITS = 4


@dataclass(frozen=True)
class Mark:
    """A stamp on a picture.

    Parameters
    ----------
    text : what it says
    color, background : how it looks; the words carry the meaning without them

    Examples
    --------
    >>> PRIVATE.text
    'private release'
    """

    text: str
    color: str
    background: str


PRIVATE = Mark("private release", "#00664A", "#E5F5F0")
PUBLIC_NUMBERS = Mark("public numbers, no data used", "#444444", "#F4F4F4")
PUBLIC_DATA = Mark("public data", "#7A5300", "#FDF3DC")


def not_private(reason: str) -> Mark:
    """Return the stamp of a picture that must not be taken for a release.

    Examples
    --------
    >>> not_private("seeded").text
    'NOT PRIVATE: seeded'
    """
    return Mark(f"NOT PRIVATE: {reason}", "#A34700", "#FCEBE0")


def mark_of(releases: Sequence[Release]) -> Mark:
    """Return the stamp of a picture of releases: private only if all of them are, with all their steps.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> mark_of([dpm.private_mean([[0.1]] * 20, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, rng=0)]).text
    'NOT PRIVATE: seeded or revealed'
    """
    if any(_simulated(release) for release in releases):
        return not_private("simulated ball")
    if not all(_private(release) for release in releases):
        return not_private("seeded or revealed")
    return PRIVATE


def mark_of_ball(ball: Ball) -> Mark:
    """Return the stamp of a picture made from public numbers, if the ball is one.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> mark_of_ball(Ball(Euclidean(1), [0.0], 1.0)).text
    'public numbers, no data used'
    """
    return not_private("simulated ball") if ball.simulated else PUBLIC_NUMBERS


def footer_of(releases: Sequence[Release]) -> list[str]:
    r"""Return two lines: the promise with the number of units, and the ball with its source.

    The first says what was estimated, if it is not the Fréchet mean.

    Examples
    --------
    >>> import dpmanifold as dpm
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0, source="by definition")
    >>> release = dpm.private_mean([[0.1]] * 20, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)
    >>> print("\n".join(footer_of([release])))
    GDP(mu=1.0) for each record, 20 of them. Mechanism: wrapped-gaussian.
    Ball: radius 1 on Euclidean(1), by definition.
    """
    first = releases[0]
    counts = " and ".join(f"{release.n:,}" for release in releases) + " of them"
    if len(releases) > 2:
        counts = f"{sum(release.n for release in releases):,} of them in {len(releases)} groups"
    names = list(dict.fromkeys(name for release in releases for name in _mechanisms(release)))
    said = f"Mechanism{'s' if len(names) > 1 else ''}: {', '.join(names)}."
    kinds = dict.fromkeys(kind for release in releases for kind in _estimands(release) if kind != "frechet mean")
    said += "".join(f" Estimand: the {kind}." for kind in kinds)
    return [f"{promise_text(first.privacy)} for each {first.unit}, {counts}. {said}", ball_line(first.ball)]


def promise_text(promise: Promise) -> str:
    """Return a promise with parameters of at most four digits, rounded up: what it says stays true.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> promise_text(GDP(1.0)), promise_text(GDP(0.23975221317824555))
    ('GDP(mu=1.0)', 'GDP(mu=0.2398)')
    >>> promise_text(GDP("0.3"))
    'GDP(mu=0.3)'
    """
    typed = {name: value for name, value in promise.stated.items() if isinstance(value, str)}
    said = (
        f"{name}={typed.get(name) or _rounded_up(value)}"
        for name, value in zip(promise.stated, promise.above, strict=True)
    )
    return f"{type(promise).__name__}({', '.join(said)})"


def _rounded_up(value: float) -> str:
    if len(repr(value)) <= _DIGITS + 2:
        return repr(value)
    # As decimals, exactly: a double may lie below what it prints as.
    context = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_CEILING)
    return f"{float(context.create_decimal_from_float(value)):.{_DIGITS}g}"


def ball_line(ball: Ball) -> str:
    """Return a ball in one line, with the source that its owner stated.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean, Sphere
    >>> ball_line(Ball(Euclidean(1), [0.0], 1.0))
    'Ball: radius 1 on Euclidean(1), of unstated source.'
    >>> ball_line(Ball.whole(Sphere(2)))
    'No ball: the whole of Sphere(2).'
    """
    if ball.is_whole:
        return f"No ball: the whole of {ball.space!r}{', ' if ball.source else ''}{ball.source.rstrip('.')}."
    source = ball.source.rstrip(".") or "of unstated source"
    return f"Ball: radius {ball.radius:.4g} on {ball.space!r}, {source}."


def _private(release: Release) -> bool:
    """A file may claim what its steps deny: the steps decide."""
    return release.private and all(_private(step) for step in release.steps)


def _simulated(release: Release) -> bool:
    return release.ball.simulated or any(_simulated(step) for step in release.steps)


def _mechanisms(release: Release) -> list[str]:
    """Names in the order in which the steps were taken."""
    return [*(name for step in release.steps for name in _mechanisms(step)), release.mechanism]


def _estimands(release: Release) -> list[str]:
    """Which means were released, in the same order; of a point that is no mean, what it is and not what it rests on."""
    if release.estimand is None and release.definition.kind is Kind.POINT:
        return [release.definition.words.partition(" (")[0]]
    found = [kind for step in release.steps for kind in _estimands(step)]
    if is_joint(release) and not release.ball.space.is_flat:
        return [*found, "tangent mean"]
    return found if release.estimand is None else [*found, f"{release.estimand} mean"]


if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure as Figure

# Okabe and Ito (2008): eight colours that people with any kind of colour vision can tell apart. One meaning each.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"
GREY, PALE, INK = "#8A8A8A", "#E6E6E6", "#222222"
ESTIMATE, NOISE, SAMPLING, PUBLIC, BALL = BLUE, VERMILLION, GREEN, ORANGE, GREY
SERIES = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)

WIDTH, DPI = 6.5, 200  # inches: the text width of a page; dots per inch when saved without saying so
_HEADER, _FOOTER = 0.66, 0.5  # inches kept for title and mark, and for the promise
_MARGIN = 0.12
_TITLE_LETTER, _MARK_LETTER = 0.092, 0.07  # inches per letter
_SUBTITLE_LINE, _FOOTER_LINE = 96, 118  # letters per line
_KEY_ROW, _KEY_HANDLE, _KEY_LETTER = 0.19, 0.52, 0.061  # of a key, in inches: a row, a sample with gaps, a letter


def figure_class() -> type[Figure]:
    """Return matplotlib's Figure, or say how to get it.

    Examples
    --------
    >>> figure_class().__name__
    'Figure'
    """
    module = optional_module("matplotlib.figure", "plots", "a picture")
    found: type[Figure] = module.Figure
    return found


def new_figure(title: str, subtitle: str, mark: Mark, footer: Sequence[str], height: float = 4.2) -> Figure:
    """Return an empty sheet with title, mark and footer; what is drawn is laid out between them.

    Parameters
    ----------
    title : what is shown, in plain words
    subtitle : the main numbers, or nothing
    mark : whether this may be shown to anybody
    footer : what was promised, and about what; one or two lines
    height : in inches; the width is that of a page's text

    Examples
    --------
    >>> from dpmanifold.plots.canvas import PUBLIC_NUMBERS
    >>> sheet = new_figure("A title", "", PUBLIC_NUMBERS, ["GDP(mu=1.0)"])
    >>> [text.get_text() for text in sheet.texts]
    ['A title', 'public numbers, no data used', 'GDP(mu=1.0)']
    """
    sheet = figure_class()(figsize=(WIDTH, height), dpi=DPI, layout="constrained", facecolor="white")
    engine: Any = sheet.get_layout_engine()
    engine.set(
        rect=(_MARGIN / WIDTH, _FOOTER / height, 1 - 2 * _MARGIN / WIDTH, 1 - (_HEADER + _FOOTER) / height),
        w_pad=0.06,
        h_pad=0.06,
    )
    left, right, top = _MARGIN / WIDTH, 1 - _MARGIN / WIDTH, 1 - 0.13 / height
    # Names of balls, units and classes are the user's: a dollar sign in them is no mathematics.
    plain: dict[str, Any] = {"parse_math": False, "va": "top"}
    room = WIDTH - 4 * _MARGIN - _MARK_LETTER * len(mark.text)
    title = textwrap.shorten(title, int(room / _TITLE_LETTER), placeholder="…")
    sheet.text(left, top, title, fontsize=11.5, fontweight="bold", color=INK, **plain)
    if subtitle:
        subtitle = textwrap.shorten(subtitle, _SUBTITLE_LINE, placeholder="…")
        sheet.text(left, top - 0.25 / height, subtitle, fontsize=8.5, color="#444444", **plain)
    box = {"boxstyle": "round,pad=0.35", "facecolor": mark.background, "edgecolor": mark.color, "linewidth": 0.8}
    sheet.text(
        right - 0.06 / WIDTH, top - 0.02 / height, mark.text, fontsize=8, fontweight="bold", color=mark.color,
        ha="right", bbox=box, **plain,
    )  # fmt: skip
    for number, line in enumerate(footer):
        line = textwrap.shorten(line, _FOOTER_LINE, placeholder="…")
        sheet.text(left, (0.38 - 0.15 * number) / height, line, fontsize=7, color="#444444", **plain)
    return sheet


def released(title: str, subtitle: str, releases: Sequence[Release], height: float) -> Figure:
    """Return an empty sheet for what some releases say, with their mark and footer."""
    return new_figure(title, subtitle, mark_of(releases), footer_of(releases), height)


def require(result: object, kind: type[Any], draws: str, remedy: str) -> None:
    """Refuse what a picture does not draw.

    Examples
    --------
    >>> require(3, Ball, "ball draws a Ball", "Make one.")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: ball draws a Ball, got 3. Make one.
    """
    if not isinstance(result, kind):
        raise InvalidArgumentError(f"{draws}, got {shown(result)}. {remedy}")


def p_told(p_value: float) -> str:
    """Return a p-value in words.

    Examples
    --------
    >>> p_told(0.0371), p_told(1e-9)
    ('p = 0.037', 'p < 0.0001')
    """
    return "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.2g}"


def color_map(*colors: str) -> Colormap:
    """Return a colour map that runs evenly through colours, the default from blue through pale to vermillion.

    Examples
    --------
    >>> color_map()(0.0)[:3] == color_map(BLUE, BLACK)(0.0)[:3]
    True
    """
    from matplotlib.colors import LinearSegmentedColormap

    chosen = colors or (BLUE, SKY, "#F5EDD3", ORANGE, VERMILLION)
    return LinearSegmentedColormap.from_list("dpmanifold", list(chosen))


def tidy(axes: Axes, x: str = "", y: str = "", *, grid: str | None = None) -> Axes:
    """Label axes and take away what carries no information.

    Examples
    --------
    >>> tidy(figure_class()().subplots(), x="distance").get_xlabel()
    'distance'
    """
    axes.set_xlabel(x, fontsize=9)
    axes.set_ylabel(y, fontsize=9)
    axes.tick_params(labelsize=8, color=GREY, width=0.7, length=3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(GREY)
        axes.spines[side].set_linewidth(0.7)
    axes.set_axisbelow(True)
    if grid is not None:
        axes.grid(True, axis=grid, color=PALE, linewidth=0.6)  # type: ignore[arg-type]
    return axes


def bare(axes: Axes, x: str, *, grid: str | None = "x") -> None:
    """Label axes of which only the horizontal one carries numbers.

    Examples
    --------
    >>> axes = figure_class()().subplots()
    >>> bare(axes, "distance")
    >>> axes.get_yticks().tolist()
    []
    """
    axes.set_yticks([])
    tidy(axes, x, grid=grid)
    axes.spines["left"].set_visible(False)


def square(axes: Axes, limit: float) -> None:
    """Show as much to each side of the middle, at one scale.

    Examples
    --------
    >>> axes = figure_class()().subplots()
    >>> square(axes, 2.0)
    >>> tuple(map(float, axes.get_ylim()))
    (-2.0, 2.0)
    """
    axes.set_xlim(-limit, limit)
    axes.set_ylim(-limit, limit)
    axes.set_aspect("equal")


def named_rows(axes: Axes, names: Sequence[str]) -> None:
    """Name rows 0, -1, -2, ...; names are the user's, and no mathematics.

    Examples
    --------
    >>> axes = figure_class()().subplots()
    >>> named_rows(axes, ["$a", "b"])
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['$a', 'b']
    """
    axes.set_yticks([-row for row in range(len(names))], names)
    for text in axes.get_yticklabels():
        text.set_parse_math(False)
    axes.set_ylim(-len(names) + 0.4, 0.6)


def named_bars(axes: Axes, names: Sequence[str], x: str) -> None:
    """Name horizontal bars at 0, 1, 2, ..., the first at the top; names are the library's own.

    Examples
    --------
    >>> axes = figure_class()().subplots()
    >>> named_bars(axes, ["a", "b"], "distance")
    >>> [text.get_text() for text in axes.get_yticklabels()]
    ['a', 'b']
    """
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.45, -0.55)
    tidy(axes, x, grid="x")
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def shortened(name: str, letters: int) -> str:
    """Return a name of at most so many letters.

    Examples
    --------
    >>> shortened("cerebellum", 5)
    'cere…'
    """
    return name if len(name) <= letters else name[: letters - 1] + "…"


def caption(axes: Axes, text: str) -> None:
    """Put a small heading over one panel.

    Examples
    --------
    >>> axes = figure_class()().subplots()
    >>> caption(axes, "seen from the front")
    >>> axes.get_title(loc="left")
    'seen from the front'
    """
    axes.set_title(text, fontsize=8.5, color=INK, loc="left", pad=5, parse_math=False)


def keyed(sheet: Figure, *panels: Axes) -> Figure:
    """Explain the lines of some panels once, in rows between them and the footer; returns the sheet.

    Examples
    --------
    >>> from dpmanifold.plots.canvas import PUBLIC_NUMBERS
    >>> sheet = new_figure("A title", "", PUBLIC_NUMBERS, [])
    >>> axes = sheet.subplots()
    >>> _ = axes.plot([0, 1], label="a line")
    >>> [text.get_text() for text in keyed(sheet, axes).legends[0].get_texts()]
    ['a line']
    """
    entries: dict[str, Any] = {}
    for panel in panels:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if not entries:
        return sheet
    height, columns = float(sheet.get_figheight()), _columns(list(entries))
    rows = math.ceil(len(entries) / columns)
    engine: Any = sheet.get_layout_engine()
    left, bottom, width, tall = engine.get()["rect"]
    room = (rows * _KEY_ROW + 0.1) / height
    engine.set(rect=(left, bottom + room, width, tall - room))
    legend = sheet.legend(
        list(entries.values()), list(entries), loc="lower center", bbox_to_anchor=(0.5, bottom - 0.04 / height),
        ncols=min(columns, len(entries)), fontsize=7.5, frameon=False, handlelength=1.9, columnspacing=1.6,
        labelspacing=0.3, borderpad=0.2,
    )  # fmt: skip
    legend.set_in_layout(False)  # room was made for it above
    return sheet


def _columns(labels: list[str]) -> int:
    """Return how many columns fit the page; entries fill a key column by column, the first columns being longest."""
    for columns in range(len(labels), 1, -1):
        rows, longer = divmod(len(labels), columns)
        starts = [number * rows + min(number, longer) for number in range(columns + 1)]
        widths = [max(map(len, labels[a:b])) for a, b in pairwise(starts)]
        if sum(_KEY_HANDLE + _KEY_LETTER * letters for letters in widths) <= WIDTH - 2 * _MARGIN:
            return columns
    return 1


def ball_name(ball: Ball) -> str:
    """Say in a legend which ball it is: one that was public, or one that was released.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball_name(Ball(Euclidean(1), [0.0], 1.0, source="textbook"))
    'public ball'
    """
    return "released ball" if ball.source.startswith(RELEASED) else "public ball"
