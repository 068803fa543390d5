"""What records are read from where they do not lie in one array: pieces, each read a block at a time, again and again.

What a user gives as X becomes a source, where it is one: each kind of object has an adapter, found by asking it.

A source is cut into pieces: a file, some of its row groups, a chunk. A piece is what one worker reads, so it can be
pickled; it holds the way to the records, and not the records. Reading it again gives the same blocks.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpmanifold._check import Array, Reticent
from dpmanifold._ids import as_sequence
from dpmanifold.errors import Argument, InvalidArgumentError, Public
from dpmanifold.linalg.cards.arrays import on_card
from dpmanifold.manifolds import Manifold
from dpmanifold.registry import Registry


class Block(NamedTuple):
    """Some records of a piece, in its order. Data: not private.

    Attributes
    ----------
    records : (m, ...), raw: what a user would give as X
    units : (m,), the id of each record's unit; None where every record is a unit of its own
    labels : (m,), the class of each record; None where there are none
    """

    records: Array
    units: Array | None = None
    labels: Array | None = None


class Piece(Reticent, ABC):
    """A part of a source that one worker reads.

    Attributes
    ----------
    name : where it is, for messages to the curator: a file, row groups of it
    rows : how many records it has, where that is known before it is read
    about : roughly how many it has, where `rows` does not say it: for choosing what to hold in memory
    first : the index of its first record in what `name` names, for messages
    """

    name: str
    rows: int | None = None
    about: int | None = None
    first: int = 0

    @abstractmethod
    def blocks(self) -> Iterator[Block]:
        """Yield all of its records, a block of bounded size at a time; the same ones each time it is called.

        Raises InvalidDataError, naming the file and the place in it, for what cannot be read; and
        :class:`~dpmanifold.errors.SourceChangedError` where it is not what it was when the source was opened.
        """


class Source(ABC):
    """Records that are read piece by piece: a folder of files, a data frame, a collection of Dask, chunks of an array.

    What :func:`as_source` makes of what a user gives as X. Opening one reads no records.

    Attributes
    ----------
    rows : how many records there are, where that is known before they are read
    index : the labels of its rows, where it has some (a data frame of pandas); else None
    """

    rows: int | None = None
    index: Any = None

    def numbers(self, name: str) -> Source | None:
        """Return a column of numbers as records of the line, in the same order; None where labels hold them as well."""
        return None

    @abstractmethod
    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return the pieces, to be read as records of a space, along with who owns them and their classes.

        Parameters
        ----------
        space : which decides how columns become records
        units : the name of a column, or one id per record in an array; None where every record is a unit of its own
        labels : likewise, the classes
        """


class ReadThrough(Source):
    """A source whose records are those of another one.

    Parameters
    ----------
    source : where they come from
    """

    def __init__(self, source: Source) -> None:
        self._source, self.rows, self.index = source, source.rows, source.index

    def numbers(self, name: str) -> Source | None:
        """Return the other's, as they are."""
        return self._source.numbers(name)


class SetApart(ReadThrough):
    """Records beside which a column of classes or of numbers stands, no part of them whoever asks for it.

    A table whose columns nobody has chosen has all of them in its records, but those that are asked for by name as ids
    or classes. Who asks for neither would get other records than who does.

    Parameters
    ----------
    source : where they come from
    name : of the column

    Examples
    --------
    >>> class Table(Source):
    ...     rows = 1
    ...     def bound(self, space, units=None, labels=None):
    ...         return [labels]
    >>> SetApart(Table(), "age").bound(None), SetApart(Table(), "age").bound(None, labels="group")
    (['age'], ['group'])
    """

    def __init__(self, source: Source, name: str) -> None:
        super().__init__(source)
        self._name = name

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return the other's pieces; blocks have the column as labels where no others are asked for."""
        return self._source.bound(space, units, self._name if labels is None else labels)


class ProjectedPiece(Piece):
    """A piece of another source, read through `space.project`."""

    def __init__(self, piece: Piece, space: Manifold) -> None:
        self._piece, self._space = piece, space
        self.name, self.rows, self.about, self.first = piece.name, piece.rows, piece.about, piece.first

    def blocks(self) -> Iterator[Block]:
        """Yield the other's blocks, with records moved onto the space."""
        for block in self._piece.blocks():
            with np.errstate(all="ignore"):
                yield block._replace(records=np.asarray(self._space.project(block.records)))


class Projected(ReadThrough):
    """Nearly valid records made valid as they are read, in blocks: unit length, symmetric. Each by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import Sphere
    >>> class Once(Piece):
    ...     name = "here"
    ...     def blocks(self):
    ...         yield Block(np.array([[3.0, 0.0, 4.0]]))
    >>> class One(Source):
    ...     rows = 1
    ...     def bound(self, space, units=None, labels=None):
    ...         return [Once()]
    >>> next(Projected(One()).bound(Sphere(2))[0].blocks()).records
    array([[0.6, 0. , 0.8]])
    """

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return the other's pieces, read through the space."""
        return [ProjectedPiece(piece, space) for piece in self._source.bound(space, units, labels)]


class InRows(Protocol):
    """One entry per record, cut by slices of rows: an array, or what reads itself (a zarr array)."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n,)."""

    def __getitem__(self, rows: slice, /) -> Array:
        """Return the entries of some rows."""


def ids_in_rows(ids: object, rows: int | None, name: str = "units") -> Array:
    """Return ids as an array (n,) that is cut alongside the records, or refuse what is not one per record.

    What the ids themselves are is looked at by whoever groups them, block by block.

    Parameters
    ----------
    ids : in a list, tuple, array, pandas Series, Index or Categorical, polars Series or pyarrow array
    rows : how many records there are, where that is known
    name : what to call the argument in messages

    Examples
    --------
    >>> ids_in_rows([3, 3, 1], 3), ids_in_rows(["a", "b"], None)
    (array([3, 3, 1]), array(['a', 'b'], dtype=object))
    >>> ids_in_rows(["a"], 2)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: units must have shape (2,), one id per record, got (1,).
    """
    found = as_sequence(ids, name)
    array = _in_array(found) if isinstance(found, list) else found
    if array.ndim != 1 or (rows is not None and len(array) != rows):
        wanted = "(n,)" if rows is None else f"({rows},)"
        raise InvalidArgumentError(
            "{name} must have shape {wanted}, one id per record, got {shape}.",
            name=Argument(name),
            wanted=Public(wanted),
            shape=Public(array.shape),
        )
    return array


def _in_array(ids: Sequence[Any]) -> Array:
    """Return a list as whole numbers, or as the objects it holds: numpy would make text of numbers next to text."""
    if ids and set(map(type, ids)) == {int} and min(ids) >= -(2**63) and max(ids) < 2**63:
        return np.array(ids, dtype=np.int64)
    array = np.empty(len(ids), dtype=object)
    array[:] = ids
    return array


Adapter = Callable[[object], Source | None]
"""Makes a source of an object of the kind it knows, and None of everything else; imports nothing to find out."""

ADAPTERS: Registry[Adapter] = Registry("source", "dpmanifold.sources", home="dpmanifold.data")


def as_source(X: object) -> Source | None:
    """Return X as a source; None where it is an array or a list, to be taken as it is.

    The library's own adapters are asked first, and those of other distributions only about what none of these knows.

    Examples
    --------
    >>> as_source([[1.0], [2.0]]) is None
    True
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, np.ndarray) or on_card(X):
        return None
    # Lists are the library's own: whoever has one of numbers needs no other distribution.
    adapters = ADAPTERS.own() if isinstance(X, list | tuple) else itertools.chain(ADAPTERS.own(), ADAPTERS)
    return next((found for adapter in adapters if (found := adapter(X)) is not None), None)


def is_a(X: object, package: str, *names: str) -> bool:
    """Return whether X is of a class that a package calls by one of these names; the package is not imported.

    Examples
    --------
    >>> import pathlib
    >>> is_a(pathlib.Path("x"), "pathlib", "PurePath"), is_a(3, "pandas", "DataFrame")
    (True, False)
    """
    return any(kind.__name__ in names and kind.__module__.split(".")[0] == package for kind in type(X).__mro__)


__all__ = [
    "ADAPTERS",
    "Adapter",
    "Block",
    "InRows",
    "Piece",
    "Projected",
    "SetApart",
    "Source",
    "as_source",
    "ids_in_rows",
    "is_a",
]
