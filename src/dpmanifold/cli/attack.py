"""`dpm audit`: attacks on a mechanism, on data made from public numbers."""

from __future__ import annotations

from typing import Annotated

import typer

from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.arguments import ball_of, promise_of, space_of
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import check_targets, require_plots, save_figure
from dpmanifold.cli.speech import say, say_json, working


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
    arithmetic: options.Arithmetic = "auto",
    runs: Annotated[int, typer.Option(help="Releases to make in all; more of them show more.")] = 10_000,
    confidence: Annotated[float, typer.Option(help="That all bounds hold together, between 0 and 1.")] = 0.999,
    quiet: options.Quiet = False,
    picture: options.Picture = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Attack a private mean on this machine, and print lower bounds beside the promise. Touches no data.

    Exits with 4 if the promise was refuted.
    """
    from dpmanifold.audit import audit_mean
    from dpmanifold.audit import picture as drawn

    where = space_of(space, size)
    if ball is None and center is None and radius is not None:
        chosen = Ball(where, where.origin, radius, source)  # as in dpm plan
    else:
        chosen = ball_of(where, radius, center, source, ball)
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
    if as_json:
        say_json(found.to_dict())
    else:
        say("\n".join([repr(found), *([] if picture is None else [f"  written      {picture}"])]))
    if found.refuted:
        raise typer.Exit(PROMISE_IMPOSSIBLE)
