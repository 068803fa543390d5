"""The commands that read what was released: check it, show it, draw it."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import (
    UNMARKED,
    check_targets,
    require_plots,
    result_text,
    save_array,
    save_picture,
    save_report,
)
from dpmanifold.cli.payer import READER, is_export, opened
from dpmanifold.cli.speech import complain, say, say_json
from dpmanifold.cli.views import Views
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.records import read_record
from dpmanifold.release import Release
from dpmanifold.result import Result, load
from dpmanifold.stats import Verification, verify
from dpmanifold.stats.answers import MEANS, answer_from_record

if TYPE_CHECKING:
    from dpmanifold.ledger.receipts import Compared

_File = Annotated[pathlib.Path, typer.Argument(help="A result that one of the private commands wrote.")]


@guarded
def verify_command(
    path: _File,
    ledger: Annotated[
        str | None,
        typer.Option(metavar="PATH|URL", help="Also check that this ledger, or an export of it, has paid for it."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Recompute what a release states: bounds, noise, promise, value and answers. Exits with 4 if it does not hold."""
    several = _several(path)
    if several:
        _verify_several(several, ledger, as_json)
        return
    result = load(path)
    found = verify(result)
    paid = None if ledger is None else _paid(result, ledger)
    if as_json:
        say_json(_checked_in_json(found, paid))
    else:
        say(repr(found))
        if paid is not None:
            say("\n".join(f"THE LEDGER DISAGREES: {fault}" for fault in paid.faults) or paid.shown)
    if not found.ok or (paid is not None and paid.faults):
        raise typer.Exit(PROMISE_IMPOSSIBLE)


def _several(path: pathlib.Path) -> dict[str, Release]:
    """Return the releases of a file with one for each class, as a service gives it; nothing for any other file."""
    record = read_record(path)
    if not isinstance(record, dict) or record.get("format") != MEANS:
        return {}
    return {str(name): release for name, release in answer_from_record(record).items()}


def _verify_several(releases: dict[str, Release], ledger: str | None, as_json: bool) -> None:
    """Check the release of each class, and say what came of it class by class."""
    found = {name: (verify(one), None if ledger is None else _paid(one, ledger)) for name, one in releases.items()}
    if as_json:
        say_json({name: _checked_in_json(*pair) for name, pair in found.items()})
    else:
        for name, (checked, paid) in found.items():
            wrong = [*checked.wrong, *(() if paid is None else paid.faults)]
            said = "; ".join(wrong) if wrong else repr(checked).partition("\n")[0]
            say(f"class {name}: {'NOT CONSISTENT: ' if wrong else ''}{said}")
    if any(not checked.ok or (paid is not None and paid.faults) for checked, paid in found.values()):
        raise typer.Exit(PROMISE_IMPOSSIBLE)


def _checked_in_json(found: Verification, paid: Compared | None) -> dict[str, Any]:
    record = {**dataclasses.asdict(found), "statement": repr(found).partition("\n")[0]}
    return record if paid is None else {**record, "ledger": _in_json(paid)}


def _paid(result: Result, where: str) -> Compared:
    """Hold a result against a ledger, or an export of one."""
    from dpmanifold.ledger.receipts import Compared, compared_with_export

    if any(release.receipt is None for release in result.released):
        return Compared(("it carries no receipt: no ledger paid for it.",), "")
    if is_export(where):
        return compared_with_export(result, where)
    with opened(where, READER) as book:
        return book.compared(result)


def _in_json(paid: Compared) -> dict[str, Any]:
    return {"ok": not paid.faults, "wrong": list(paid.faults), "shown": "" if paid.faults else paid.shown}


@guarded
def show(
    path: _File,
    html: options.Html = None,
    picture: options.Picture = None,
    links: options.Links = None,
    npy: options.Npy = None,
    coordinates: options.Coordinates = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show a result: in the terminal, as a picture, or as a report. Exits with 4 if it does not hold."""
    result = load(path)
    named = {"--html": html, "--picture": picture, "--npy": npy}
    targets = {option: target for option, target in named.items() if target is not None}
    check_targets(targets, force, {"the command": path})
    value = _value(result) if npy is not None else None
    if picture is not None or html is not None:
        require_plots()
    views = Views(coordinates, links).for_result(result, picture)
    found = verify(result)
    if not found.ok:
        for option in targets.keys() - {"--html"}:
            complain(f"{option} {targets[option]} is not written: only a report can be made of it.")
        _show_marked(path, result, found, html, as_json)
        raise typer.Exit(PROMISE_IMPOSSIBLE)
    if picture is not None:
        save_picture(result, picture, views)
    if html is not None:
        save_report(result, html)
    if npy is not None:
        save_array(value, npy)
    if as_json:
        say_json(result.to_dict())
        return
    say(result_text(result, html, picture, npy, views=views))


def _show_marked(
    path: pathlib.Path, result: Result, found: Verification, html: pathlib.Path | None, as_json: bool
) -> None:
    """Show what can be shown of a result that contradicts itself: marked, and without a picture.

    What it states may not even be computable, so whatever fails is left out and the file speaks for itself.
    """
    complain(f"{path} IS NOT CONSISTENT, do not rely on it: {'; '.join(found.wrong)}")
    if html is not None:
        save_report(result, html)
    if as_json:
        say_json(read_record(path))
        return
    try:
        shown = repr(result)
    except Exception:
        say_json(read_record(path))
    else:
        say(f"THE RELEASE IS NOT CONSISTENT: {'; '.join(found.wrong)}\n{shown}")


def _value(result: Result) -> Any:
    """Return the numbers of a result that an array can hold."""
    value = result.number_or_array
    if value is None:
        raise InvalidArgumentError("--npy holds one released value, and this result has none. Use --json.")
    if not result.private:
        raise InvalidArgumentError(UNMARKED)
    return value
