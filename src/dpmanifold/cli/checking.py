"""`dpm check`: read everything that a release would read, and say what is wrong with it. For whoever holds the data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.command import selection_of, shared_options
from dpmanifold.cli.failures import DATA_REFUSED, words_of
from dpmanifold.cli.options import at_work
from dpmanifold.cli.speech import say_answer, table_of, working
from dpmanifold.data.formats import files_in
from dpmanifold.data.inspection import inspect_pieces
from dpmanifold.data.selected import Selected, column_elsewhere, images_in, opened_whole
from dpmanifold.data.selection import Selection
from dpmanifold.data.specifications import EACH, kind_of, space_of
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Block, Piece, Source
from dpmanifold.stats.inputs import is_each_record

_NOT_PRIVATE = "NOT PRIVATE: data about the data, for the curator alone."
# Files without a fault are listed up to so many.
_MOST_LINES = 30


# What only a release needs.
_OF_RELEASES = (
    "out", "epsilon", "delta", "mu", "rho", "arithmetic", "invalid", "confirm", "notice", "seed", "npy", "picture",
    "links", "html", "force", "ledger", "population", "key", "dataset", "principal",
    "secret",
)  # fmt: skip


@shared_options(*_OF_RELEASES)
def check(
    words: dict[str, Any],
    array: options.Array = None,
    space: Annotated[str | None, typer.Option(help="As in dpm mean: also check that records are its points.")] = None,
    units: Annotated[str | None, typer.Option(help="As in dpm mean: also check and count the ids.")] = None,
    labels: Annotated[
        str | None, typer.Option(help="As in dpm class-means: a column of classes, to be read as well.")
    ] = None,
) -> None:
    """Read all files and say what is wrong with them: formats, columns, damage, ids. NOT PRIVATE: for the curator.

    With --space also which records are no points of it, and with --radius or --ball how many lie outside the ball.
    Releases nothing and spends nothing. Exits with 3 if something is wrong.
    """
    chosen = selection_of({**words, "array": array, "space": space, "units": units, "labels": labels})
    if space is None and chosen.says_more_than("columns", "array", "units", "labels", "source"):
        raise InvalidArgumentError(
            "`space` is missing: `size`, `order`, `coordinates`, `mask`, `normalize` and the ball are about a space."
        )
    with at_work(words):
        asked = _Asked(chosen)
        where = asked.space()
        inside = None if where is None or (chosen.radius is None and chosen.ball is None) else chosen.ball_on(where)
        with working("checking", quiet=words["quiet"]):
            found = asked.inspected(where, inside)
    table = _table(found)
    told = [_NOT_PRIVATE, *([table] if table.row_count else []), *asked.told, *_sentences(found)]
    say_answer({**found.to_dict(), "notes": asked.told}, words["as_json"], *told)
    if not found.ok:
        raise typer.Exit(DATA_REFUSED)


@dataclass(frozen=True, repr=False)
class Whole(Piece):
    """Records of a file that was read at once."""

    name: str
    records: Array
    units: Array | None

    def blocks(self) -> Iterator[Block]:
        """Yield all of them."""
        yield Block(self.records, self.units)


@dataclass(frozen=True)
class _Asked:
    """Which files to look through, and as what."""

    chosen: Selection
    told: list[str] = field(default_factory=list)

    @cached_property
    def given(self) -> Selected | None:
        """The records, where they are not files that are read in blocks: of another format, or a folder of images."""
        chosen, paths = self.chosen, self.chosen.paths
        kind = kind_of(chosen.space_text if chosen.space else "euclidean")
        images = (len(paths) == 1 and data.is_bids(paths[0])) or images_in(paths)
        if not images and opened_whole(chosen, kind) is None:
            return None
        if chosen.space is None:
            raise InvalidArgumentError("`space` is missing: {paths} is read as records of a space.", paths=paths[0])
        return chosen.open(tell=self.told.append)

    @cached_property
    def first(self) -> data.Dataset | None:
        """The first file that can be opened."""
        for file in files_in(list(self.chosen.paths)):
            with contextlib.suppress(InvalidDataError):
                return replace(self.chosen, paths=[str(file)]).dataset()
        return None

    def space(self) -> Manifold | None:
        """Return the space, by its size or that of the records; None if it is not known."""
        chosen = self.chosen
        if self.given is not None:
            return self.given.space
        if chosen.space is None:
            return None
        if self.first is None or chosen.sized_space is not None:
            return chosen.sized_space
        columns = (column if column in self.first.names else None for column in (chosen.units, chosen.labels))
        return space_of(chosen.space_text, None, *self.first.record_shape(kind_of(chosen.space_text), *columns))

    def inspected(self, space: Manifold | None, ball: Ball | None) -> data.Inspection:
        """Read everything."""
        chosen, given = self.chosen, self.given
        if given is not None and space is not None:
            units = None if is_each_record(given.units) else given.units
            pieces = (
                given.records.bound(space, units, given.labels)
                if isinstance(given.records, Source)
                else [Whole(chosen.paths[0], np.asarray(given.records), units)]
            )
            return inspect_pieces(pieces, space, units=units is not None, ball=ball)
        return data.inspect_files(
            list(chosen.paths), space, ball=ball, normalize=chosen.normalize and space is not None,
            units=self._column(chosen.units, "units"), labels=self._column(chosen.labels, "labels"),
            columns=chosen.columns, key=chosen.array, order=chosen.order, coordinates=chosen.coordinates,
        )  # fmt: skip

    def _column(self, text: str | None, option: str) -> Any:
        """Return the name of a column, or what a file of its own holds."""
        if text is None or text == EACH or self.first is None or text in self.first.names:
            return None if text == EACH else text
        return column_elsewhere(text, self.first.names, None, option)


def _table(found: data.Inspection) -> Table:
    """Return the files one by one; of many, those alone with which something is wrong."""
    shown = [file for file in found.files if file.problems or len(found.files) <= _MOST_LINES]
    headings = ("file", "records", *([] if found.outside is None else ["outside"]), "what is wrong")
    counts = [[f"{count:,}" for count in (file.records, file.outside) if count is not None] for file in shown]
    rows = [
        (file.path, *numbers, "\n".join(map(words_of, file.problems)) or "-")
        for file, numbers in zip(shown, counts, strict=True)
    ]
    numbers = ("records", "outside")
    return table_of(headings, rows, whole=numbers, right=numbers)


def _sentences(found: data.Inspection) -> list[str]:
    """Say in words what was found in all."""
    bad = sum(bool(file.problems) for file in found.files)
    faults = f", of which {_many(bad, 'has', 'have')} faults" if bad else ""
    lines = [f"{_many(found.records, 'record', 'records')} in {_many(len(found.files), 'file', 'files')}{faults}."]
    if len(found.files) > _MOST_LINES:
        lines.append(f"Files without a fault are not listed: {len(found.files) - bad:,}.")
    if found.units is not None and found.most is not None:
        lines.append(
            f"{_many(found.units, 'unit', 'units')}, with at most {_many(found.most, 'record', 'records')} each."
        )
    if found.space is None:
        lines.append("Whether records are points of a space was not checked: give --space.")
    elif found.invalid:
        lines.append(
            f"{_many(found.invalid, 'record is no point', 'records are no points')} of {found.space}: refused by every "
            "release, or with --invalid center counted as the center."
        )
    elif found.records:
        lines.append(f"All that were read are points of {found.space}.")
    if found.outside is not None:
        lines.append(f"{_many(found.outside, 'lies', 'lie')} outside the ball, to be moved to its edge.")
    lines += map(words_of, found.problems)
    return [*lines, "Nothing is wrong." if found.ok else "SOMETHING IS WRONG."]


def _many(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"
