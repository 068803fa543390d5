"""The commands that touch no data: what there is, what one record can do, what to expect, what attacks show.

The papers' experiments come in a distribution of their own, and are found by entry point.
"""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.table import Table

from dpmanifold import sensitivity
from dpmanifold._version import __version__
from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.build import planned_options
from dpmanifold.cli.command import dressed, parameter
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded, words_of
from dpmanifold.cli.options import promise_of, shape_of
from dpmanifold.cli.outputs import check_targets, refuse_stdout, require_plots, save_figure, save_picture
from dpmanifold.cli.speech import say_answer, table_of, working
from dpmanifold.data.specifications import ball_of, class_words, space_of
from dpmanifold.errors import InvalidArgumentError, MissingPackageError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.registry import examples
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP
from dpmanifold.registry import Registry
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS
from dpmanifold.stats import Outlook, plan as planned, required_privacy, required_units
from dpmanifold.stats.means import MEAN_QUERY
from dpmanifold.stats.prospects import USUAL_FILL
from dpmanifold.stats.query import QUERIES, query_named
from dpmanifold.stats.refine import SMALL_FILL

_COLUMNS = """\
error: how far the noise is expected to move the mean, as a distance; 95 %: what it stays below in 95 of 100 releases
note: float: all digits of the noise together can tell more than is promised; leaks: how many steps a draw takes depends
on the data"""
_FACTOR = "factor: exp(error): a mean that is off by the error has every {} within this factor of the true one"
_TITLES = {
    "frechet": "Mechanisms for the Fréchet mean",
    "tangent": "For the tangent mean (--estimand tangent)",
    "extrinsic": "For the extrinsic mean (--estimand extrinsic)",
}
# How many units the limits of double precision are shown for; they hardly depend on it.
_MANY = 1000


@guarded
def spaces(as_json: options.Json = False) -> None:
    """List the spaces with their facts, each at a small size."""
    facts, rows = [], []
    for name, space in examples().items():
        (low, high), limit, most = space.curvature, space.radius_limit, _largest_radius(space)
        facts.append(
            {
                "name": name,
                "example": repr(space),
                "dim": space.dim,
                "shape": list(space.shape),
                "curvature": [low, high],
                "radius_limit": None if math.isinf(limit) else limit,
                "largest_radius": most,
                "flat": space.is_flat,
                "hadamard": space.is_hadamard,
            }
        )
        told = f"{most:.4f}" if most == limit else f"about {math.floor(most or 0)}"
        curvature = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        rows.append((name, repr(space), " x ".join(map(str, space.shape)), curvature, "any" if most is None else told))
    headings = ("name", "in Python", "point", "curvature", "radius <")
    say_answer(
        facts,
        as_json,
        table_of(headings, rows, whole=headings, overflow="ellipsis", title="Spaces"),
        "Below the limits with four digits a mean is unique; where it says about, double precision ends.",
        "Several at once: product:NAME for stacks of points, or in full, such as 'Product([SPD(3)] * 50)'.",
    )


def _largest_radius(space: Manifold) -> float | None:
    """Return below which radius about the origin a mean can be released; None where any will do."""
    if space.is_flat or not math.isinf(space.radius_limit):
        return None if space.is_flat else space.radius_limit
    low, high = 1.0, 1e3
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        try:
            sensitivity.of_mean(Ball(space, space.origin, middle), _MANY)
        except InvalidArgumentError:
            high = middle
        else:
            low = middle
    return low


@guarded
def mechanisms(as_json: options.Json = False) -> None:
    """List the mechanisms: on which spaces, and for which promises, each can be used."""
    promises = {
        "pure": PureDP(0.5), "approximate": ApproxDP(0.5, 1e-6), "zCDP": ZCDP(0.5), "Gaussian": GDP(1.0),
    }  # fmt: skip
    balls = {name: Ball(space, space.origin, 0.3) for name, space in examples().items()}
    found = []
    for mechanism in MECHANISMS:
        able = [
            (name, kind)
            for name, ball in balls.items()
            for kind, promise in promises.items()
            if mechanism.refusal(ball, promise) is None
        ]
        where = [name for name in balls if name in {place for place, _ in able}]
        kept = [kind for kind in promises if kind in {what for _, what in able}]
        notes = ["baseline"] if mechanism.baseline else [] if mechanism.automatic else ["by name only"]
        notes += [] if mechanism.covers_timing else ["its steps depend on the data"]
        facts = {"name": mechanism.name, "title": mechanism.title, "estimand": mechanism.estimand}
        found.append({**facts, "spaces": where, "promises": kept, "note": ", ".join(notes)})
    tables = []
    for estimand, title in _TITLES.items():
        rows = [
            (one["name"], _all_or(one["spaces"], balls), _all_or(one["promises"], promises), one["note"])
            for one in found
            if one["estimand"] == estimand
        ]
        tables.append(_table(title, ("name", "spaces", "promises", "note"), rows))
    say_answer(
        found,
        as_json,
        *tables,
        'Of those for the mean asked for that keep the promise, "auto" takes one that can be drawn exactly if there\n'
        "is one, then one whose steps do not depend on the data, then the one with the smallest expected noise: see "
        "dpm plan.",
    )


def _all_or(names: Sequence[str], every: Collection[str]) -> str:
    return "all" if len(names) == len(every) else ", ".join(names)


def _table(title: str, headings: Sequence[str], rows: Iterable[Iterable[object]]) -> Table:
    """Return a table whose names stay in one piece."""
    return table_of(headings, rows, whole=("name",), overflow="ellipsis", title=title)


@guarded
def statistics(as_json: options.Json = False) -> None:
    """List the statistics that dpm statistic and dpm plan --statistic take, those of other packages included."""
    rows = [{"name": one.name, "words": one.words, "kind": one.kind.value} for one in STATISTICS]
    told = [(row["name"].replace(" ", "-"), row["words"], row["kind"]) for row in rows]
    say_answer(
        rows,
        as_json,
        _table("Statistics", ("name", "what it is", "value"), told),
        f"dpm plan --statistic also takes {', '.join(name for name in QUERIES.names() if name not in STATISTICS)}, "
        "which are made of some of them.",
    )


_PLAN = (
    parameter(
        "units",
        Annotated[
            list[int],
            typer.Option("-n", "--number", help="Number of units (people), public; one -n for each group of a test."),
        ],
    ),
    parameter("space", options.Space),
    parameter("size", options.SizeAlone, None),
    parameter("radius", options.Radius, None),
    parameter("center", options.Center, None),
    parameter("source", options.Source, ""),
    parameter("ball", options.BallFile, None),
    parameter("epsilon", options.Epsilon, None),
    parameter("delta", options.Delta, None),
    parameter("mu", options.Mu, None),
    parameter("rho", options.Rho, None),
    parameter(
        "statistic",
        Annotated[str, typer.Option(help="What to plan: a private command, or a name from dpm statistics.")],
        MEAN_QUERY.name,
    ),
    parameter(
        "classes",
        Annotated[str | None, typer.Option(help="Of a discriminant: the public list, a,b,c or 0..9, or how many.")],
        None,
    ),
    *planned_options(),
    parameter(
        "error", Annotated[float | None, typer.Option(help="Also say what an expected error of this size needs.")], None
    ),
    parameter(
        "everything",
        Annotated[bool | None, typer.Option("--all", help="Also mechanisms that are taken by name only.")],
        None,
    ),
    parameter(
        "labels_public",
        Annotated[bool | None, typer.Option("--labels-public", help="Of a discriminant, as there.")],
        None,
    ),
    parameter(
        "covariate_public",
        Annotated[bool | None, typer.Option("--covariate-public", help="Of a regression, as there.")],
        None,
    ),
    parameter(
        "fill",
        Annotated[
            float | None,
            typer.Option(
                help=f"The data lie within this share of the radius of their mean: for --refine ({SMALL_FILL:g} if "
                f"left out), regions and tests ({USUAL_FILL:g})."
            ),
        ],
        None,
    ),
    parameter("picture", options.Picture, None),
    parameter("force", options.Force, False),
    parameter("as_json", options.Json, False),
)
# What a plan is told as it is said.
_TOLD = ("everything", "labels_public", "covariate_public", "fill", *(option.name for option in planned_options()))


def _plan(
    units: list[int], space: str, statistic: str, error: float | None, picture: pathlib.Path | None, **said: Any
) -> None:
    """Say what to expect of a private mean, or of another statistic: noise and refusals. Touches no data."""
    where = space_of(space, said["size"])
    chosen = _ball_of(where, said["radius"], said["center"], said["source"], said["ball"])
    privacy = promise_of(said["epsilon"], said["delta"], said["mu"], said["rho"])
    if picture is not None:
        check_targets({"--picture": picture}, said["force"], {"--center": said["center"], "--ball": said["ball"]})
        require_plots()
    given = {**{name: said[name] for name in _TOLD}, "classes": _number_of_classes(said["classes"])}
    asked = {name: value for name, value in given.items() if value is not None}
    if "noise_shape" in asked:
        asked["noise_shape"] = shape_of(asked["noise_shape"])
    groups = query_named(statistic).sample.groups
    _refuse_counts(len(units), groups)
    found = planned(units if groups > 1 else units[0], chosen, privacy, statistic=statistic, **asked)
    needs: dict[str, Any] = {}
    sentences: list[str] = []
    if error is not None:
        if isinstance(found, Outlook):
            raise InvalidArgumentError("--error is about means: leave it out for another statistic.")
        needs, sentences = _needs(error, units[0], chosen, privacy, said["estimand"])
    if picture is not None:
        save_picture(found, picture)
    factor = [] if where.factor_of is None else [_FACTOR.format(where.factor_of)]
    columns = [] if isinstance(found, Outlook) else [_COLUMNS, *factor, ""]
    told = [*columns, *map(words_of, found.sentences()), *sentences]
    say_answer({**found.to_dict(), **needs}, said["as_json"], found.table(), "\n".join(told))


plan = dressed(_plan, _PLAN, "plan", _plan.__doc__)


def _ball_of(space: Manifold, radius: float | None, center: str | None, source: str, file: str | None) -> Ball:
    """Return the public ball; where no centre is said, about any: it is the same wherever that is."""
    if file is None and center is None and radius is not None:
        return Ball(space, space.origin, radius, source)
    return ball_of(space, radius, center, source, file)


def _number_of_classes(text: str | None) -> int | None:
    """Return how many classes were meant: a number of them, or as many as are listed."""
    if text is None:
        return None
    return int(text) if text.isdecimal() else len(class_words(text))


def _needs(
    error: float, units: int, ball: Ball, privacy: Promise, estimand: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return how many units, and which promise, an expected error would take: for machines and for people."""
    people = required_units(error, ball, privacy, estimand=estimand)
    delta = privacy.stated["delta"] if isinstance(privacy, ApproxDP) else None
    promise = required_privacy(error, units, ball, type(privacy), delta=delta, estimand=estimand)
    return {"required_units": people, "required_privacy": promise.to_dict()}, [
        f"An expected error of {error:g} takes {people:,} units under {privacy}.",
        f"With {units:,} units it takes {promise}.",
    ]


@guarded
def sensitivity_command(
    space: options.Space,
    radius: Annotated[float, typer.Option(help="Radius of the public ball.")],
    units: Annotated[int, typer.Option("-n", "--number", help="Number of units (people), public.")],
    size: options.SizeAlone = None,
    as_json: options.Json = False,
) -> None:
    """Say how far one unit can move each statistic: the published bound and ours. Touches no data."""
    chosen = space_of(space, size)
    rows = _sensitivity_rows(Ball(chosen, chosen.origin, radius), units)
    bounds = [
        {"statistic": name, "published": published, "tight": tight, "ours": ours.value, "bound": ours.bound}
        for name, published, tight, ours in rows
    ]
    told = [
        (
            name,
            "-" if published is None else f"{published:.6g}",
            f"{ours.value:.6g}",
            "-" if not published else f"{ours.value / published:.2f}",
        )
        for name, published, _, ours in rows
    ]
    title, numbers = (
        f"One unit of {units:,} in a ball of radius {radius:g} on {chosen!r}",
        ("published", "ours", "ours / published"),
    )
    say_answer(
        {"space": repr(chosen), "radius": radius, "n": units, "bounds": bounds},
        as_json,
        table_of(("statistic", *numbers), told, right=numbers, overflow="ellipsis", title=title, box=box.HEAVY_HEAD),
        "Published bounds are for any point of the ball, and for the covariance instead of the second moment.",
    )


def _refuse_counts(given: int, groups: float) -> None:
    """Refuse another number of -n than the statistic has groups; infinitely many stand for two or more."""
    if given == groups or (math.isinf(groups) and given > 1):
        return
    wanted = {
        1: "once, unless groups are compared",
        2: "twice: once for each of the two groups",
        math.inf: "once for each of the groups, which are two or more",
    }[groups]
    raise InvalidArgumentError(f"-n is given {'once' if given == 1 else f'{given} times'}. Give it {wanted}.")


def _sensitivity_rows(ball: Ball, n: int) -> list[tuple[str, float | None, float, Sensitivity]]:
    """Return (name, published bound if there is one, tight bound, what is calibrated to), moments about the centre."""
    hessian = sensitivity.of_hessian(ball, n, about=np.asarray(ball.center))
    bounds: list[tuple[str, Callable[[str], Sensitivity], str]] = [
        ("mean", lambda bound: sensitivity.of_mean(ball, n, bound=bound), "sharp"),
        ("gradient (KNG)", lambda bound: sensitivity.of_gradient(ball, n, bound=bound), "sharp"),
        ("variance about the centre", _about_center(sensitivity.of_variance, ball, n), "tight"),
        ("fourth moment about the centre", _about_center(sensitivity.of_fourth_moment, ball, n), "tight"),
        ("second moment at the centre", _about_center(sensitivity.of_second_moment, ball, n), "tight"),
    ]
    rows = [(name, of("published").value, of("tight").value, of(ours)) for name, of, ours in bounds]
    return [*rows, ("mean Hessian at the centre", None, hessian.value, hessian)]


def _about_center(function: Callable[..., Sensitivity], ball: Ball, n: int) -> Callable[[str], Sensitivity]:
    return lambda bound: function(ball, n, about=ball.center, bound=bound)


@guarded
def audit(
    units: Annotated[int, typer.Option("-n", "--number", help="Number of units (people); 10 to 100 are enough.")],
    space: options.Space,
    size: options.SizeAlone = None,
    radius: options.Radius = None,
    center: options.Center = None,
    source: options.Source = "",
    ball: options.BallFile = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    estimand: options.Estimand = None,
    mechanism: options.Mechanism = "auto",
    picture: options.Picture = None,
    arithmetic: options.Arithmetic = "auto",
    runs: Annotated[int, typer.Option(help="Releases to make in all; more of them show more.")] = 10_000,
    confidence: Annotated[float, typer.Option(help="That all bounds hold together, between 0 and 1.")] = 0.999,
    quiet: options.Quiet = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Attack a private mean on this machine, and print lower bounds beside the promise. Touches no data.

    Exits with 4 if the promise was refuted.
    """
    from dpmanifold.audit import audit_mean, picture as drawn

    chosen = _ball_of(space_of(space, size), radius, center, source, ball)
    privacy = promise_of(epsilon, delta, mu, rho)
    if picture is not None:
        check_targets({"--picture": picture}, force, {"--center": center, "--ball": ball})
        require_plots()
    with working("attacks", 2 * runs, quiet) as advance:
        found = audit_mean(
            units, chosen, privacy, estimand=estimand, mechanism=mechanism, arithmetic=arithmetic, runs=runs,
            confidence=confidence, progress=advance,
        )  # fmt: skip
    if picture is not None:
        save_figure(drawn(found), picture)
    say_answer(found.to_dict(), as_json, repr(found), *([] if picture is None else [f"  written      {picture}"]))
    if found.refuted:
        raise typer.Exit(PROMISE_IMPOSSIBLE)


PAPERS: Registry[Callable[..., None]] = Registry("command of the papers", "dpmanifold.papers")


@guarded
def reproduce(
    name: Annotated[str, typer.Argument(help="list, all, a paper, or paper/experiment.")],
    out: Annotated[pathlib.Path, typer.Option(help="Folder for CSV, PNG and Markdown.")] = pathlib.Path("reproduced"),
    data: Annotated[pathlib.Path | None, typer.Option(envvar="DPM_DATA", help="Folder with data sets.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A version of seconds, to see that it runs.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many run at once; all processors if left out.")
    ] = None,
    pages: Annotated[
        pathlib.Path | None, typer.Option(help="Also write one page per paper into this folder, from the results.")
    ] = None,
) -> None:
    """Rerun the papers: published / their formula / ours. Seeded, hence NOT PRIVATE; goes on where it was stopped."""
    refuse_stdout("--out", out)
    command = PAPERS.find("reproduce")
    if command is None:
        raise MissingPackageError(
            "the papers' experiments are a distribution of their own, which is not installed. Run: pip install "
            f"dpmanifold-papers=={__version__}, or, in a checkout of the repository, pip install --editable ./papers."
        )
    command(name, out=out, data=data, quick=quick, processes=processes, pages=pages)
