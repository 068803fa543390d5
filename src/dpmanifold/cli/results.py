"""The commands that read what was released: check it, show it, draw it."""

from __future__ import annotations

import math
import pathlib
from dataclasses import replace
from typing import Annotated, Any

import typer

from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, fail, guarded
from dpmanifold.cli.outputs import check_targets, require_plots, save_array, save_picture, save_report, show_result
from dpmanifold.cli.speech import complain, say, say_json
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import Conclusion, load
from dpmanifold.release import Release, read_record
from dpmanifold.stats import verify
from dpmanifold.stats.check import Verification

_File = Annotated[pathlib.Path, typer.Argument(help="A result that one of the private commands wrote.")]
# Numbers that are computed again on another machine agree to this, and forgers want more.
_SAME = 1e-6


@guarded
def verify_command(path: _File, as_json: options.Json = False) -> None:
    """Recompute what a release states: bounds, noise, promise and answers. Exits with 4 if it does not hold."""
    found = _checked(path, load(path))
    if as_json:
        statement = repr(found).partition("\n")[0]
        record = {"ok": found.ok, "private": found.private, "statement": statement, "findings": list(found.findings)}
        say_json({**record, "cannot_know": list(found.cannot_know)})
    else:
        say(repr(found))
    if not found.ok:
        raise typer.Exit(PROMISE_IMPOSSIBLE)


def _checked(path: pathlib.Path, result: Release | Conclusion) -> Verification:
    """Check a result, and that the answers in its file are those its numbers give."""
    found = verify(result)  # type: ignore[arg-type]
    wrong = _differences(read_record(path).get("answers"), result.answers())
    if not wrong:
        return found
    said = f"the file states answers that its numbers do not give: {', '.join(wrong)}"
    return replace(found, ok=False, findings=(said, *found.findings))


def _differences(stated: Any, computed: dict[str, Any]) -> list[str]:
    """Return the names of answers in a file that are not those its numbers give; a file need not hold any."""
    if stated is None:
        return []
    if not isinstance(stated, dict):
        return ["answers"]
    return [name for name in sorted({*stated, *computed}) if not _same(stated.get(name), computed.get(name))]


def _same(one: Any, other: Any) -> bool:
    """Return whether two answers agree: numbers up to rounding, everything else exactly."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    numbers = [isinstance(x, (int, float)) and not isinstance(x, bool) for x in (one, other)]
    return math.isclose(one, other, rel_tol=_SAME, abs_tol=1e-300) if all(numbers) else bool(one == other)


@guarded
def show(
    path: _File,
    html: options.Html = None,
    picture: options.Picture = None,
    npy: options.Npy = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Show a result: in the terminal, as a picture, or as a report. Exits with 4 if it is not consistent."""
    result = load(path)
    named = {"--html": html, "--picture": picture, "--npy": npy}
    targets = {option: target for option, target in named.items() if target is not None}
    check_targets(targets, force, {"the command": path})
    value = _value(result) if npy is not None else None
    if picture is not None or html is not None:
        require_plots()
    found = _checked(path, result)
    if not found.ok:
        if targets.keys() - {"--html"}:
            fail(_distrust(path, found) + " Only a report (--html) can be made of it.", PROMISE_IMPOSSIBLE)
        complain(_distrust(path, found))
    if picture is not None:
        save_picture(result, picture)
    if html is not None:
        save_report(result, html)
    if npy is not None:
        save_array(value, npy)
    if as_json:
        say_json(result.to_dict())
    else:
        show_result(result, html, picture, npy)
    if not found.ok:
        raise typer.Exit(PROMISE_IMPOSSIBLE)


def _distrust(path: pathlib.Path, found: Verification) -> str:
    return f"{path} IS NOT CONSISTENT, do not rely on it: {found.findings[0]}. See dpm verify {path}."


def _value(result: Release | Conclusion) -> Any:
    """Return the numbers of a result that an array can hold."""
    value = result.value if isinstance(result, Release) else getattr(result, "center", None)
    if value is None or isinstance(value, Ball):
        raise InvalidArgumentError("--npy holds one released value, and this result has none. Use --json.")
    if not result.private:
        raise InvalidArgumentError("--npy holds numbers alone and could not be marked NOT PRIVATE. Leave it out.")
    return value
