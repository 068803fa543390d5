"""The commands that need no data: what there is, and what one record can do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Annotated

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from dpmanifold import __version__, sensitivity
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError
from dpmanifold.manifolds import SPD, Euclidean, Hyperbolic, KendallShapes, Manifold, Sphere

app = typer.Typer(
    name="dpm",
    help="Differentially private statistics for data on curved spaces.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    add_completion=False,
)

_BAD_ARGUMENTS = 2

_SPACES: dict[str, Callable[[int], Manifold]] = {
    "euclidean": Euclidean,
    "sphere": Sphere,
    "hyperbolic": Hyperbolic,
    "kendall": KendallShapes,
    "spd": SPD,
    "spd-riemann": lambda k: SPD(k, metric="riemann"),
}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dpmanifold {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Differentially private statistics for data on curved spaces."""


@app.command()
def spaces(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """List the spaces with their facts, each at a small size."""
    examples: list[tuple[str, Manifold]] = [
        ("euclidean", Euclidean(3)),
        ("sphere", Sphere(2)),
        ("hyperbolic", Hyperbolic(2)),
        ("kendall", KendallShapes(8)),
        ("spd", SPD(3)),
        ("spd-riemann", SPD(3, metric="riemann")),
    ]
    if as_json:
        facts = [
            {
                "name": name,
                "example": repr(space),
                "dim": space.dim,
                "shape": list(space.shape),
                "curvature": list(space.curvature),
                "radius_limit": None if math.isinf(space.radius_limit) else space.radius_limit,
                "flat": space.is_flat,
                "hadamard": space.is_hadamard,
            }
            for name, space in examples
        ]
        typer.echo(json.dumps(facts, indent=2))
        return
    table = Table(title="Spaces", box=box.SIMPLE)
    for heading in ("name", "in Python", "point", "curvature", "radius <"):
        table.add_column(heading, no_wrap=True)
    for name, space in examples:
        low, high = space.curvature
        limit = "any" if math.isinf(space.radius_limit) else f"{space.radius_limit:.4f}"
        curvature = f"{low:g}" if low == high else f"{low:g} to {high:g}"
        shape = " x ".join(map(str, space.shape))
        table.add_row(name, repr(space), shape, curvature, limit)
    Console().print(table)


@app.command(name="sensitivity")
def sensitivity_command(
    space: Annotated[str, typer.Option(help="One of: " + ", ".join(_SPACES) + ".")],
    size: Annotated[int, typer.Option(help="Dimension d, number of landmarks k, or size k of the matrices.")],
    radius: Annotated[float, typer.Option(help="Radius of the public ball.")],
    units: Annotated[int, typer.Option("-n", "--units", help="Number of units (people), public.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Say how far one unit can move each statistic: the published bound and ours. Touches no data."""
    try:
        if space not in _SPACES:
            raise DPManifoldError(f"--space must be one of {', '.join(_SPACES)}, got {space!r}.")
        chosen = _SPACES[space](size)
        ball = Ball(chosen, chosen.origin, radius)
        rows = _sensitivity_rows(ball, units)
    except DPManifoldError as problem:
        typer.echo(f"dpm: {problem}", err=True)
        raise typer.Exit(_BAD_ARGUMENTS) from None
    if as_json:
        found = [{"statistic": name, "published": published, "tight": tight} for name, published, tight in rows]
        typer.echo(json.dumps({"space": repr(chosen), "radius": radius, "n": units, "bounds": found}, indent=2))
        return
    table = Table(title=f"One unit of {units:,} in a ball of radius {radius:g} on {chosen!r}")
    for heading in ("statistic", "published", "ours", "ours / published"):
        table.add_column(heading, justify="left" if heading == "statistic" else "right")
    for name, published, tight in rows:
        shown = "-" if published is None else f"{published:.6g}"
        ratio = "-" if not published else f"{tight / published:.2f}"
        table.add_row(name, shown, f"{tight:.6g}", ratio)
    console = Console()
    console.print(table)
    console.print(
        "Published bounds are for any point of the ball, and for the covariance instead of the second moment."
    )


def _sensitivity_rows(ball: Ball, n: int) -> list[tuple[str, float | None, float]]:
    """Return (name, published bound if there is one, our bound) for every statistic about the centre."""
    about = ball.center
    return [
        ("mean", sensitivity.of_mean(ball, n, bound="published").value, sensitivity.of_mean(ball, n).value),
        (
            "gradient (KNG)",
            sensitivity.of_gradient(ball, n, bound="published").value,
            sensitivity.of_gradient(ball, n).value,
        ),
        (
            "variance about the centre",
            sensitivity.of_variance(ball, n, bound="published").value,
            sensitivity.of_variance(ball, n, about=about).value,
        ),
        (
            "fourth moment about the centre",
            sensitivity.of_fourth_moment(ball, n, bound="published").value,
            sensitivity.of_fourth_moment(ball, n, about=about).value,
        ),
        (
            "second moment at the centre",
            sensitivity.of_second_moment(ball, n, about=about, bound="published").value,
            sensitivity.of_second_moment(ball, n, about=about).value,
        ),
        ("mean Hessian at the centre", None, sensitivity.of_hessian(ball, n, about=np.asarray(about)).value),
    ]
