"""`dpm check`: read everything that a release would read, and say what is wrong with it. For whoever holds the data."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.arguments import EACH, ball_of, kind_of, space_of
from dpmanifold.cli.command import how_of, shared_options
from dpmanifold.cli.failures import DATA_REFUSED, words_of
from dpmanifold.cli.options import at_work
from dpmanifold.cli.records import (
    Given,
    How,
    column_elsewhere,
    images_in,
    opened_whole,
    read,
)
from dpmanifold.cli.speech import say_answer, table_of, working
from dpmanifold.data.formats import files_in
from dpmanifold.data.inspection import inspect_pieces
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import Block, Piece, Source

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
    array: options.ArrayOrKey = None,
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
    words = {**words, "array": array}
    about_space = ("size", "radius", "center", "ball", "order", "coordinates", "mask")
    if space is None and (words["normalize"] or any(words[name] is not None for name in about_space)):
        raise InvalidArgumentError(
            "`space` is missing: `size`, `order`, `coordinates`, `mask`, `normalize` and the ball are about a space."
        )
    with at_work(words):
        asked = _Asked(words["path"], space, words["size"], units, labels, how_of(words))
        where = asked.space()
        inside = None
        if where is not None and not (words["radius"] is None and words["ball"] is None):
            inside = ball_of(where, words["radius"], words["center"], words["source"], words["ball"])
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

    paths: list[str]
    name: str | None
    size: str | None
    units: str | None
    labels: str | None
    how: How
    told: list[str] = field(default_factory=list)

    @property
    def words(self) -> dict[str, Any]:
        """What a Dataset takes."""
        return {name: getattr(self.how, name) for name in ("key", "order", "coordinates")} | {"columns": self.how.names}

    @cached_property
    def given(self) -> Given | None:
        """The records, where they are not files that are read in blocks: of another format, or a folder of images."""
        along = (self.units, self.labels)
        images = (len(self.paths) == 1 and data.is_bids(self.paths[0])) or images_in(self.paths)
        if not images and opened_whole(self.paths, kind_of(self.name or "euclidean"), self.how, along) is None:
            return None
        if self.name is None:
            raise InvalidArgumentError(
                "`space` is missing: {paths} is read as records of a space.", paths=self.paths[0]
            )
        return read(self.paths, self.name, self.size, self.how, along, self.told.append)

    @cached_property
    def first(self) -> data.Dataset | None:
        """The first file that can be opened."""
        for file in files_in(self.paths):
            with contextlib.suppress(InvalidDataError):
                return data.Dataset([file], **self.words)
        return None

    def space(self) -> Manifold | None:
        """Return the space, by its size or that of the records; None if it is not known."""
        if self.given is not None:
            return self.given.space
        if self.name is None:
            return None
        if self.size is not None or "(" in self.name:
            return space_of(self.name, self.size)
        if self.first is None:
            return None
        columns = (column if column in self.first.names else None for column in (self.units, self.labels))
        return space_of(self.name, None, *self.first.record_shape(kind_of(self.name), *columns))

    def inspected(self, space: Manifold | None, ball: Ball | None) -> data.Inspection:
        """Read everything."""
        if self.given is not None and space is not None:
            units = None if self.units in (None, EACH) else self.given.column(str(self.units), "--units")
            labels = None if self.labels is None else self.given.column(self.labels, "--labels")
            records = self.given.records
            pieces = (
                records.bound(space, units, labels)
                if isinstance(records, Source)
                else [Whole(self.paths[0], np.asarray(records), units)]
            )
            return inspect_pieces(pieces, space, units=units is not None, ball=ball)
        beside = {"units": self._column(self.units, "--units"), "labels": self._column(self.labels, "--labels")}
        return data.inspect_files(
            self.paths, space, ball=ball, normalize=self.how.normalize and space is not None, **beside, **self.words
        )

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
