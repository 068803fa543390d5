"""The commands that touch no data: what there is, what one record can do, what to expect."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.table import Table

from dpmanifold import sensitivity
from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.arguments import ball_of, class_words, promise_of, shape_of, space_of
from dpmanifold.cli.build import planned_options
from dpmanifold.cli.command import dressed, parameter
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.outputs import check_targets, require_plots, save_picture
from dpmanifold.cli.speech import say, say_json, say_table
from dpmanifold.cli.wording import words_of
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.registry import examples
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.statistic import STATISTICS
from dpmanifold.stats import Outlook, needed_promise, needed_units
from dpmanifold.stats import plan as planned
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
    if as_json:
        facts = [
            {
                "name": name,
                "example": repr(space),
                "dim": space.dim,
                "shape": list(space.shape),
                "curvature": list(space.curvature),
                "radius_limit": None if math.isinf(space.radius_limit) else space.radius_limit,
                "largest_radius": _largest_radius(space),
                "flat": space.is_flat,
                "hadamard": space.is_hadamard,
            }
            for name, space in examples().items()
        ]
        say_json(facts)
        return
    table = Table(title="Spaces", box=box.SIMPLE)
    for heading in ("name", "in Python", "point", "curvature", "radius <"):
        table.add_column(heading, no_wrap=True)
    for name, space in examples().items():
        low, high = space.curvature
        most = _largest_radius(space)
        told = f"{most:.4f}" if most == space.radius_limit else f"about {math.floor(most or 0)}"
        limit = "any" if most is None else told
        curvature = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        shape = " x ".join(map(str, space.shape))
        table.add_row(name, repr(space), shape, curvature, limit)
    say_table(table)
    say("Below the limits with four digits a mean is unique; where it says about, double precision ends.")
    say("Several at once: product:NAME for stacks of points, or in full, such as 'Product([SPD(3)] * 50)'.")


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
        found.append((mechanism, where, kept, ", ".join(notes)))
    if as_json:
        rows = [
            {"name": m.name, "title": m.title, "estimand": m.estimand, "spaces": where, "promises": kept, "note": note}
            for m, where, kept, note in found
        ]
        say_json(rows)
        return
    for estimand, title in _TITLES.items():
        table = Table(title=title, box=box.SIMPLE)
        for heading in ("name", "spaces", "promises", "note"):
            table.add_column(heading, no_wrap=heading == "name")
        for m, where, kept, note in found:
            if m.estimand == estimand:
                shown = "all" if len(where) == len(balls) else ", ".join(where)
                table.add_row(m.name, shown, ", ".join(kept) if len(kept) < len(promises) else "all", note)
        say_table(table)
    say(
        'Of those for the mean asked for that keep the promise, "auto" takes one that can be drawn exactly if there\n'
        "is one, then one whose steps do not depend on the data, then the one with the smallest expected noise: see "
        "dpm plan."
    )


@guarded
def statistics(as_json: options.Json = False) -> None:
    """List the statistics that dpm statistic and dpm plan --statistic take, those of other packages included."""
    rows = [{"name": one.name, "words": one.words, "kind": one.kind.value} for one in STATISTICS]
    if as_json:
        say_json(rows)
        return
    table = Table(title="Statistics", box=box.SIMPLE)
    for heading in ("name", "what it is", "value"):
        table.add_column(heading, no_wrap=heading == "name")
    for row in rows:
        table.add_row(row["name"].replace(" ", "-"), row["words"], row["kind"])
    say_table(table)
    say(
        f"dpm plan --statistic also takes {', '.join(name for name in QUERIES.names() if name not in STATISTICS)}, "
        "which are made of some of them."
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
    if said["ball"] is None and said["center"] is None and said["radius"] is not None:
        chosen = Ball(where, where.origin, said["radius"], said["source"])  # the same plan wherever the centre is
    else:
        chosen = ball_of(where, said["radius"], said["center"], said["source"], said["ball"])
    privacy = promise_of(said["epsilon"], said["delta"], said["mu"], said["rho"])
    if picture is not None:
        check_targets({"--picture": picture}, said["force"], {"--center": said["center"], "--ball": said["ball"]})
        require_plots()
    given = {**{name: said[name] for name in _TOLD}, "classes": _number_of_classes(said["classes"])}
    asked = {name: value for name, value in given.items() if value is not None}
    if "shape" in asked:
        asked["shape"] = shape_of(asked["shape"])
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
    if said["as_json"]:
        say_json({**found.to_dict(), **needs})
        return
    say_table(found.table())
    factor = [] if where.factor_of is None else [_FACTOR.format(where.factor_of)]
    columns = [] if isinstance(found, Outlook) else [_COLUMNS, *factor, ""]
    say("\n".join([*columns, *map(words_of, found.sentences()), *sentences]))


plan = dressed(_plan, _PLAN, "plan", _plan.__doc__)


def _number_of_classes(text: str | None) -> int | None:
    """Return how many classes were meant: a number of them, or as many as are listed."""
    if text is None:
        return None
    return int(text) if text.isdecimal() else len(class_words(text))


def _needs(
    error: float, units: int, ball: Ball, privacy: Promise, estimand: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Return how many units, and which promise, an expected error would take: for machines and for people."""
    people = needed_units(error, ball, privacy, estimand=estimand)
    delta = privacy.stated["delta"] if isinstance(privacy, ApproxDP) else None
    promise = needed_promise(error, units, ball, type(privacy), delta=delta, estimand=estimand)
    return {"needed_units": people, "needed_promise": promise.to_dict()}, [
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
    if as_json:
        found = [
            {"statistic": name, "published": published, "tight": tight, "ours": ours.value, "bound": ours.bound}
            for name, published, tight, ours in rows
        ]
        say_json({"space": repr(chosen), "radius": radius, "n": units, "bounds": found})
        return
    table = Table(title=f"One unit of {units:,} in a ball of radius {radius:g} on {chosen!r}")
    for heading in ("statistic", "published", "ours", "ours / published"):
        table.add_column(heading, justify="left" if heading == "statistic" else "right")
    for name, published, _, ours in rows:
        shown = "-" if published is None else f"{published:.6g}"
        ratio = "-" if not published else f"{ours.value / published:.2f}"
        table.add_row(name, shown, f"{ours.value:.6g}", ratio)
    say_table(table)
    say("Published bounds are for any point of the ball, and for the covariance instead of the second moment.")


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
