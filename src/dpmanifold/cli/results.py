"""The commands that read what was released: check it, show it, draw it."""

from __future__ import annotations

import json
import pathlib
from typing import Annotated

import typer

from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import check_targets, console, require_plots, save_picture, save_report, show_result
from dpmanifold.inference import load
from dpmanifold.stats import verify

_File = Annotated[pathlib.Path, typer.Argument(help="A result that one of the private commands wrote.")]


@guarded
def verify_command(path: _File, as_json: options.Json = False) -> None:
    """Recompute what a release states: bounds, noise and promise. Exits with 4 if it does not hold."""
    found = verify(load(path))  # type: ignore[arg-type]
    if as_json:
        typer.echo(json.dumps({"ok": found.ok, "findings": found.findings, "cannot_know": found.cannot_know}, indent=2))
    else:
        console().print(repr(found), markup=False)
    if not found.ok:
        raise typer.Exit(PROMISE_IMPOSSIBLE)


@guarded
def show(
    path: _File,
    html: options.Html = None,
    picture: options.Picture = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show a result: in the terminal, as a picture, or as a report."""
    result = load(path)
    named = {"--html": html, "--picture": picture}
    check_targets({option: target for option, target in named.items() if target is not None}, force)
    if picture is not None or html is not None:
        require_plots()
    if picture is not None:
        save_picture(result, picture)
    if html is not None:
        save_report(result, html)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    show_result(result, html, picture)
