"""The command that tells what a saved discriminant says of records that may be shown."""

from __future__ import annotations

import csv
import pathlib
from typing import Annotated, Any

import numpy as np
import typer

from dpmanifold._check import Array, shown
from dpmanifold._labels import plain_labels
from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import check_targets
from dpmanifold.cli.records import Given, How, gathered, read
from dpmanifold.cli.speech import complain, say, say_json
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.files import whole_file
from dpmanifold.result import load
from dpmanifold.sources import Source
from dpmanifold.stats import EACH_RECORD, verify

# Classes that a message names at most.
_MOST_NAMED = 12


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
    how = How(columns, array, order, coordinates, mask, normalize)
    given = read(path, repr(found.ball.space), None, how, (units, labels))
    records, owners = gathered(given, EACH_RECORD if units is None else given.column(units, "--units"))
    true = None if labels is None else _true_classes(given, labels)
    told, probabilities = found.predict(records), found.predict_proba(records)
    score = None if true is None else found.score(records, _refuse_others(true, found, labels))
    with whole_file(out) as file:
        table = csv.writer(file, lineterminator="\n")
        beside = [[]] * len(told) if units is None else [[owner] for owner in np.asarray(owners).tolist()]
        table.writerow([*([] if units is None else ["unit"]), "class", *(f"p({name})" for name in found.classes)])
        table.writerows(
            [*who, name, *map(repr, row)]
            for who, name, row in zip(beside, told.tolist(), probabilities.tolist(), strict=True)
        )
    if as_json:
        say_json({"records": len(told), "score": score, "written": str(out)})
        return
    right = "" if score is None else f", {score:.1%} of them correctly"
    say(f"{len(told):,} records classified{right} (not private: about these records)\n  written      {out}")


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


def _true_classes(given: Given, labels: str) -> Array:
    """Return the class of every record, whether its column is read along or at once."""
    column = given.column(labels, "--labels")
    if not (isinstance(column, str) and isinstance(given.records, Source)):
        return np.asarray(column)
    pieces = given.records.bound(given.space, None, column)
    return np.concatenate([np.asarray(block.labels) for piece in pieces for block in piece.blocks()])
