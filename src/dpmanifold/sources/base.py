"""What records are read from where they do not lie in one array: pieces, each read a block at a time, again and again.

A source is cut into pieces: a file, some of its row groups, a chunk. A piece is what one worker reads, so it can be
pickled; it holds the way to the records, and not the records. Reading it again gives the same blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from dpmanifold._check import Array
from dpmanifold.manifolds import Manifold


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


class Piece(ABC):
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"  # task lists and logs show it: nothing about where or what it is


class Source(ABC):
    """Records that are read piece by piece: a folder of files, a data frame, a collection of Dask, chunks of an array.

    What :func:`as_source` makes of what a user gives as X. Opening one reads no records.

    Attributes
    ----------
    index : the labels of its rows, where it has some (a data frame of pandas); else None
    """

    index: Any = None

    @property
    @abstractmethod
    def rows(self) -> int | None:
        """How many records there are, where that is known before they are read."""

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


__all__ = ["Block", "Piece", "Source"]
