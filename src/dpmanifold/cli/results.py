"""The commands that read what was released: check it, show it, draw it, tell classes by it."""

from __future__ import annotations

import csv
import dataclasses
import pathlib
from typing import Annotated, Any

import numpy as np
import typer

from dpmanifold._cells import plain_labels
from dpmanifold._check import Array, shown
from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import (
    UNMARKED,
    Views,
    check_targets,
    require_plots,
    result_text,
    save_array,
    save_picture,
    save_report,
)
from dpmanifold.cli.payer import READER, is_export, opened
from dpmanifold.cli.speech import complain, say, say_answer, say_json
from dpmanifold.codec import MEANS, answer_from_record
from dpmanifold.data import Selection
from dpmanifold.data.specifications import EACH
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.files import whole_file
from dpmanifold.ledger.receipts import Compared, compared_with_export
from dpmanifold.release import Release
from dpmanifold.result import Result, load
from dpmanifold.serialization import read_record
from dpmanifold.stats import Verification, verify

# Classes that a message names at most.
_MOST_NAMED = 12
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
        checked = {name: _Checked.of(release, ledger) for name, release in several.items()}
        told = [f"class {name}: {one.in_a_line}" for name, one in checked.items()]
        say_answer({name: one.to_dict() for name, one in checked.items()}, as_json, *told)
    else:
        one = _Checked.of(load(path), ledger)
        checked = {"": one}
        told = (
            []
            if one.paid is None
            else [f"THE LEDGER DISAGREES: {fault}" for fault in one.paid.faults] or [one.paid.shown]
        )
        say_answer(one.to_dict(), as_json, repr(one.found), *told)
    if any(one.wrong for one in checked.values()):
        raise typer.Exit(PROMISE_IMPOSSIBLE)


@dataclasses.dataclass(frozen=True)
class _Checked:
    """A result that was checked, and held against the ledger that is to have paid for it, where one was named."""

    found: Verification
    paid: Compared | None

    @staticmethod
    def of(result: Result, ledger: str | None) -> _Checked:
        return _Checked(verify(result), None if ledger is None else _paid(result, ledger))

    @property
    def wrong(self) -> list[str]:
        return [*self.found.wrong, *(() if self.paid is None else self.paid.faults)]

    @property
    def statement(self) -> str:
        return repr(self.found).partition("\n")[0]

    @property
    def in_a_line(self) -> str:
        return f"NOT CONSISTENT: {'; '.join(self.wrong)}" if self.wrong else self.statement

    def to_dict(self) -> dict[str, Any]:
        record = {**dataclasses.asdict(self.found), "statement": self.statement}
        if self.paid is None:
            return record
        shown = "" if self.paid.faults else self.paid.shown
        return {**record, "ledger": {"ok": not self.paid.faults, "wrong": list(self.paid.faults), "shown": shown}}


def _several(path: pathlib.Path) -> dict[str, Release]:
    """Return the releases of a file with one for each class, as a service gives it; nothing for any other file."""
    record = read_record(path)
    if not isinstance(record, dict) or record.get("format") != MEANS:
        return {}
    return {str(name): release for name, release in answer_from_record(record).items()}


def _paid(result: Result, where: str) -> Compared:
    """Hold a result against a ledger, or an export of one."""
    if any(release.receipt is None for release in result.released):
        return Compared(("it carries no receipt: no ledger paid for it.",), "")
    if is_export(where):
        return compared_with_export(result, where)
    with opened(where, READER) as book:
        return book.compared(result)


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


# -------------------------------------------------------------------- discriminants


@guarded
def predict(
    result: Annotated[pathlib.Path, typer.Argument(help="What dpm lda wrote.")],
    path: options.Data,
    out: Annotated[pathlib.Path, typer.Option(help="A .csv: the class of each record, and probabilities.")],
    labels: Annotated[
        str | None, typer.Option(help="True classes, as in dpm lda: also say how many are classified correctly.")
    ] = None,
    units: Annotated[
        str | None, typer.Option(help="Who each record is of, as in dpm lda: a column of --out, too.")
    ] = None,
    array: options.Array = None,
    columns: options.Columns = None,
    order: options.Order = None,
    coordinates: options.Coordinates = None,
    mask: options.Mask = None,
    normalize: options.Normalize = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Tell the class of records by a saved discriminant. NOT PRIVATE: about records that may be shown."""
    check_targets(
        {"--out": out}, force, {"the data": path, "--labels": labels, "--units": units, "the discriminant": result}
    )
    if out.suffix.lower() != ".csv":
        raise InvalidArgumentError(f"--out {out}: the name must end in .csv.")
    found: Any = load(result)
    if not hasattr(found, "predict_proba"):
        raise InvalidDataError(f"{result} holds another result ({found.title}). Give what dpm lda wrote.")
    checked = verify(found)
    if not checked.ok:
        complain(f"{result} IS NOT CONSISTENT, do not rely on it: {'; '.join(checked.wrong)}")
        raise typer.Exit(PROMISE_IMPOSSIBLE)
    units = None if units == EACH else units
    chosen = Selection(
        path, found.ball.space, units=units, columns=columns, array=array, order=order, coordinates=coordinates,
        normalize=normalize, labels=labels, mask=mask,
    )  # fmt: skip
    given = chosen.open().gathered()
    told, probabilities = found.predict(given.records), found.predict_proba(given.records)
    true = np.asarray(given.labels)
    score = None if labels is None else found.score(given.records, _refuse_others(true, found, labels))
    with whole_file(out) as file:
        table = csv.writer(file, lineterminator="\n")
        beside = [[]] * len(told) if units is None else [[owner] for owner in np.asarray(given.units).tolist()]
        table.writerow([*([] if units is None else ["unit"]), "class", *(f"p({name})" for name in found.classes)])
        table.writerows(
            [*who, name, *map(repr, row)]
            for who, name, row in zip(beside, told.tolist(), probabilities.tolist(), strict=True)
        )
    right = "" if score is None else f", {score:.1%} of them correctly"
    words = f"{len(told):,} records classified{right} (not private: about these records)\n  written      {out}"
    say_answer({"records": len(told), "score": score, "written": str(out)}, as_json, words)


def _refuse_others(true: Array, found: Any, labels: str | None) -> Array:
    """Return labels if all of them are classes of a discriminant, or say how many are not."""
    written = set(map(str, found.classes))
    others = [label for label in plain_labels(true) if label not in found.classes and str(label) not in written]
    if others:
        names = ", ".join(map(str, found.classes[:_MOST_NAMED])) + (", ..." if len(found.classes) > _MOST_NAMED else "")
        raise InvalidDataError(
            f"--labels {labels}: {len(others):,} of {len(true):,} are none of the classes ({names}), such as "
            f"{shown(others[0])}. Give the column of the true classes, spelled as in --classes."
        )
    return true
