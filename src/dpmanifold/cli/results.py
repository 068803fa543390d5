"""The commands that read what was released: check it, show it, draw it."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Annotated

import typer

from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import check_targets, console, require_plots, save_picture, save_report, show_result
from dpmanifold.inference import Conclusion, load
from dpmanifold.records import read_record
from dpmanifold.release import Release
from dpmanifold.stats import Verification, verify

_File = Annotated[pathlib.Path, typer.Argument(help="A result that one of the private commands wrote.")]


@guarded
def verify_command(path: _File, as_json: options.Json = False) -> None:
    """Recompute what a release states: bounds, noise, promise and value. Exits with 4 if it does not hold."""
    found = verify(load(path))  # type: ignore[arg-type]
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(found), indent=2))
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
    """Show a result: in the terminal, as a picture, or as a report. Exits with 4 if it does not hold."""
    result = load(path)
    named = {"--html": html, "--picture": picture}
    check_targets({option: target for option, target in named.items() if target is not None}, force)
    if picture is not None or html is not None:
        require_plots()
    found = verify(result)  # type: ignore[arg-type]
    if not found.ok:
        if picture is not None:
            typer.echo(f"dpm: no picture is drawn of it: {picture} is not written.", err=True)
        _show_marked(path, result, found, html, as_json)
        raise typer.Exit(PROMISE_IMPOSSIBLE)
    if picture is not None:
        save_picture(result, picture)
    if html is not None:
        save_report(result, html)
    if as_json:
        typer.echo(json.dumps(result.to_dict(), indent=2))
        return
    show_result(result, html, picture)


def _show_marked(
    path: pathlib.Path, result: Release | Conclusion, found: Verification, html: pathlib.Path | None, as_json: bool
) -> None:
    """Show what can be shown of a result that contradicts itself: marked, and without a picture.

    What it states may not even be computable, so whatever fails is left out and the file speaks for itself.
    """
    said = f"THE RELEASE IS NOT CONSISTENT: {'; '.join(found.wrong)}"
    if html is not None:
        try:
            save_report(result, html)
        except Exception:
            typer.echo(f"dpm: no report could be made of it: {html} is not written.", err=True)
    if as_json:
        typer.echo(f"dpm: {said}", err=True)
        typer.echo(json.dumps(read_record(path), indent=2))
        return
    try:
        shown = repr(result)
    except Exception:
        shown = json.dumps(read_record(path), indent=1)
    console().print(f"{said}\n{shown}", markup=False)
