"""Files of records looked through from end to end, for whoever holds them: what is damaged, and what is no point.

Nothing here is private. A file that cannot be read does not keep the others from being looked at.
"""

from __future__ import annotations

import functools
import pathlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.data._files import PathLike
from dpmanifold.data.dataset import Dataset
from dpmanifold.data.formats import files_in
from dpmanifold.engines import current_engine
from dpmanifold.errors import DPManifoldError, InvalidArgumentError, InvalidDataError, SourceChangedError
from dpmanifold.manifolds import Euclidean, Manifold
from dpmanifold.sources import Block, Piece, Projected

_INDEX = re.compile(r" at index \d+")


@dataclass(frozen=True)
class FileFound:
    """What was found in one file. NOT PRIVATE.

    Attributes
    ----------
    path : the file
    records : how many were read
    invalid : how many of them are no points of the space
    outside : how many points lie outside the ball; None where there is none
    problems : what is wrong, with the place in the file; empty if nothing is
    """

    path: str
    records: int = 0
    invalid: int = 0
    outside: int | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Inspection:
    """What was found in files of records. NOT PRIVATE: data about the data, for the curator alone.

    Attributes
    ----------
    files : one by one
    space : which the records should be of; None where only numbers were asked for
    units : how many there are; None where nobody was asked for, or the ids cannot be told apart
    most : how many records a unit has, at most
    problems : what is wrong with the files together: ids that look alike, columns that differ
    """

    files: tuple[FileFound, ...]
    space: str | None
    units: int | None = None
    most: int | None = None
    problems: tuple[str, ...] = ()

    @property
    def records(self) -> int:
        """How many were read."""
        return sum(file.records for file in self.files)

    @property
    def invalid(self) -> int:
        """How many are no points of the space, or have gaps where there is none."""
        return sum(file.invalid for file in self.files)

    @property
    def outside(self) -> int | None:
        """How many points lie outside the ball."""
        counts = [file.outside for file in self.files if file.outside is not None]
        return sum(counts) if counts else None

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong. Records outside the ball are no fault: they are clipped."""
        return not (self.problems or self.invalid or any(file.problems for file in self.files))

    def to_dict(self) -> dict[str, Any]:
        """Return it for machines."""
        counts = {"records": self.records, "invalid": self.invalid, "outside": self.outside}
        return {"private": False, "ok": self.ok, **counts, **asdict(self)}


# What was seen of a piece, until it ended or could not be read further: its place, and how many records each id has.
_Seen = tuple[int, FileFound, Counter[Any]]


def inspect_files(
    paths: PathLike | Sequence[PathLike],
    space: Manifold | None = None,
    *,
    units: object = None,
    labels: object = None,
    ball: Ball | None = None,
    normalize: bool = False,
    **how: Any,
) -> Inspection:
    r"""Read all files from end to end, and say what is wrong with them. NOT PRIVATE, for the curator alone.

    Parameters
    ----------
    paths : as in :class:`Dataset`
    space : which the records should be points of; if left out, tables are looked through for damage and gaps, and of
        arrays the header alone is read
    units, labels : the column of ids, or of classes; or one per record in an array
    ball : count also how many points lie outside
    normalize : move nearly valid records onto the space first
    how : columns, key, order and coordinates, as in :class:`Dataset`

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("who,x1,x2\nann,0.1,0.2\nbob,0.3,\n")
    >>> _ = (folder / "b.csv").write_text("who,x1,x2\nann,0.1,0.2\nann,0.3\n")
    >>> found = inspect_files(folder, Euclidean(2), units="who", columns="x*")
    >>> found.ok, found.records, found.units, found.invalid
    (False, 2, 2, 1)
    >>> found.files[1].problems
    ('b.csv: line 3 has 2 entries, the first line 3. Repair it; entries with separators in them belong in quotes.',)
    """
    files = files_in(paths)
    problems: dict[int, list[str]] = {place: [] for place in range(len(files))}
    good = list(_opened(files, problems, how))
    together: list[str] = []
    seen: list[_Seen] = []
    if good:
        dataset = Dataset([files[place] for place in good], **how)
        where = space or _numbers(dataset, units, labels)
        places = {files[place]: place for place in good}
        if where is not None:
            pieces = _pieces(dataset, where, units, labels, normalize, together)
            seen = _seen([(places[path], piece) for path, piece in pieces], where, ball)
    counts, doubts = _people(seen)
    found = tuple(
        _together(str(path), problems[place], [one for at, one, _ in seen if at == place], ball)
        for place, path in enumerate(files)
    )
    return _inspection(found, space, None if units is None else counts, [*together, *doubts])


def inspect_pieces(
    pieces: Sequence[Piece], space: Manifold, *, units: bool = False, ball: Ball | None = None
) -> Inspection:
    """Say of pieces of any source what :func:`inspect_files` says of files, piece by piece. NOT PRIVATE.

    Parameters
    ----------
    pieces : what `source.bound(space, units, labels)` gives
    space, ball : as in :func:`inspect_files`
    units : whether they come with ids

    Examples
    --------
    >>> from dpmanifold.data import from_blocks
    >>> blocks = from_blocks(lambda: iter([np.array([[1.0], [np.nan]])]))
    >>> found = inspect_pieces(blocks.bound(Euclidean(1)), Euclidean(1))
    >>> found.records, found.invalid, found.ok
    (2, 1, False)
    """
    seen = _seen(list(enumerate(pieces)), space, ball)
    counts, together = _people(seen)
    return _inspection(tuple(one for _, one, _ in seen), space, counts if units else None, together)


def _seen(items: Sequence[tuple[int, Piece]], space: Manifold, ball: Ball | None) -> list[_Seen]:
    """Look through pieces, wherever that is done."""
    task = functools.partial(_look, space=space, ball=ball)
    return sorted(current_engine().map(task, items, "checking"), key=lambda one: one[0])


def _people(seen: Sequence[_Seen]) -> tuple[Counter[Any], list[str]]:
    """Return how many records each id has, and what leaves doubt about them."""
    counts: Counter[Any] = Counter()
    for _, _, units in seen:
        counts.update(units)
    try:
        unit_ids(list(counts), len(counts))
    except InvalidArgumentError as problem:
        return counts, [_INDEX.sub("", str(problem))]
    return counts, []


def _inspection(
    files: tuple[FileFound, ...], space: Manifold | None, counts: Counter[Any] | None, together: Sequence[str]
) -> Inspection:
    known = counts if counts is not None and not together else None
    units, most = (None, None) if known is None else (len(known), max(known.values(), default=0))
    return Inspection(files, None if space is None else repr(space), units, most, tuple(together))


def _opened(files: Sequence[pathlib.Path], problems: dict[int, list[str]], how: dict[str, Any]) -> Iterator[int]:
    """Yield which files can be opened, and have what the first of them has; note what is wrong with the others."""
    first: pathlib.Path | None = None
    for place, path in enumerate(files):
        try:
            Dataset([path] if first is None else [first, path], **how)
        except (InvalidDataError, SourceChangedError) as problem:
            problems[place].append(problem.message)
            continue
        except InvalidArgumentError as problem:
            if first is None and len(files) == 1:
                raise
            problems[place].append(problem.message)
            continue
        first = first or path
        yield place


def _numbers(dataset: Dataset, units: object, labels: object) -> Manifold | None:
    """Return a space of rows of numbers, or None where records are arrays of another shape."""
    shape, kind = dataset.record_shape(Euclidean, units, labels)
    return Euclidean(shape[0]) if len(shape) == 1 and kind == "f" else None


def _pieces(
    dataset: Dataset, space: Manifold, units: object, labels: object, normalize: bool, problems: list[str]
) -> list[tuple[pathlib.Path, Piece]]:
    """Return the pieces of all files, each with its file; note why there are none."""
    try:
        own = dataset.bound(space, units, labels)
        pieces = Projected(dataset).bound(space, units, labels) if normalize else own
    except InvalidDataError as problem:
        problems.append(problem.message)
        return []
    return [(piece.path, through) for piece, through in zip(own, pieces, strict=True)]


def _look(item: tuple[int, Piece], space: Manifold, ball: Ball | None) -> _Seen:
    """Read a piece to its end, or as far as it can be read."""
    place, piece = item
    records = invalid = outside = 0
    units: Counter[Any] = Counter()
    problems: list[str] = []
    try:
        for block in piece.blocks():
            with np.errstate(all="ignore"):
                valid = np.asarray(space.valid(block.records))
                outside += 0 if ball is None else int((~ball.contains(block.records[valid])).sum())
            if not valid.all() and not invalid:
                problems.append(_first(piece, space, block, records, valid))
            invalid += int((~valid).sum())
            units += _counted(block.units)
            records += len(valid)
    except DPManifoldError as problem:
        problems.append(problem.message)
    return place, FileFound(piece.name, records, invalid, None if ball is None else outside, tuple(problems)), units


def _first(piece: Piece, space: Manifold, block: Block, before: int, valid: Array) -> str:
    """Say which record of a piece is the first that is no point, and why."""
    index = int(np.argmin(valid))
    reason = space.check(block.records[index]) or "it is no point."
    return f"{piece.name}: record {piece.first + before + index} (the first is 0) is no point of {space!r}: {reason}"


def _counted(units: Any) -> Counter[Any]:
    """Return how many records each id of a block has."""
    if units is None:
        return Counter()
    if hasattr(units, "dictionary"):  # text by a dictionary of pyarrow
        counts = np.bincount(np.asarray(units.indices), minlength=len(units.dictionary))
        return Counter({word: int(n) for word, n in zip(units.dictionary.to_pylist(), counts, strict=True) if n})
    found, counts = np.unique(np.asarray(units), return_counts=True)
    return Counter(dict(zip(found.tolist(), counts.tolist(), strict=True)))


def _together(path: str, problems: Sequence[str], seen: Sequence[FileFound], ball: Ball | None) -> FileFound:
    """Return what was found in the pieces of a file, after what was wrong with all of it."""
    return FileFound(
        path,
        sum(one.records for one in seen),
        sum(one.invalid for one in seen),
        None if ball is None else sum(one.outside or 0 for one in seen),
        (*problems, *(text for one in seen for text in one.problems)),
    )
