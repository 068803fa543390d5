"""Tables of other packages as records: data frames of pandas and polars, also lazy ones, and tables of pyarrow.

A column is one of Arrow, and read in one way, whichever library it comes from; pandas has its own, and of objects each
cell is read by itself. pandas and polars are never imported: who has a frame has imported it. Pieces are views: nothing
is copied but a block at a time.
"""

from __future__ import annotations

import contextlib
import copy
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from dpmanifold._cells import REAL, numbers_of, objects
from dpmanifold._check import Array, shown
from dpmanifold.data.pieces import Rows, RowsPiece, SteadyPiece, named_or_beside, rows_of_block, spans
from dpmanifold.data.readers import AS_FOUND, Wanted, places_of
from dpmanifold.data.table_files import Column, Entries, arrow_column, arrow_numbers, words_of
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.sources import ADAPTERS, Piece, Source, as_source, is_a

# Entries of a column of objects that tell what it holds.
_LOOKED_AT = 1000

_NUMPY_KINDS = {"i": "whole", "u": "whole", "f": "number", "c": "complex", "b": "truth", "O": "object"}
# Types of polars that Arrow has not, and what they hold.
_NOT_OF_ARROW = {"Object": "object", "Int128": "whole", "UInt128": "whole"}
_LAZY = "the LazyFrame"


class FrameRows(Rows):
    """Rows of a table, of which any column is one of Arrow.

    Parameters
    ----------
    frame : a pyarrow.Table, or what a subclass reads
    columns : what is known of its columns, where somebody has looked
    """

    def __init__(self, frame: Any, columns: Sequence[Column] | None = None) -> None:
        self.frame, self.columns = frame, columns or self.described(frame)

    def __len__(self) -> int:
        return len(self.frame)

    @staticmethod
    def described(frame: Any) -> list[Column]:
        """Return what is known of the columns."""
        return [arrow_column(field.name, field.type) for field in frame.schema]

    def cut(self, start: int, stop: int) -> Rows:
        """Return a view."""
        return type(self)(self.frame.slice(start, stop - start), self.columns)

    def numbers(self, places: Sequence[int], kind: str = REAL) -> Array:
        """Return the columns side by side, each cell read by itself."""
        return np.concatenate([self.column(place, kind) for place in places], axis=1)

    def missing(self, place: int) -> int | None:
        """Ask the frame."""
        gaps = self.gaps(place)
        return int(np.argmax(gaps)) if gaps.any() else None

    def cells(self, place: int) -> Any:
        """Return one column, of Arrow, or an array of objects that Arrow does not have."""
        return self.frame.column(place)

    def column(self, place: int, kind: str) -> Array:
        """Return the numbers of one column, (m, width)."""
        cells = self.cells(place)
        if isinstance(cells, np.ndarray):
            return numbers_of(cells, kind)[:, None]
        return arrow_numbers(cells, self.columns[place].width, kind)

    def entries(self, place: int) -> Entries:
        """Return text by the words that occur, and everything else as it is."""
        cells = self.cells(place)
        if self.columns[place].kind == "text":
            return words_of(cells)
        encoded = not isinstance(cells, np.ndarray) and pa.types.is_dictionary(cells.type)
        return np.asarray(cells.cast(cells.type.value_type) if encoded else cells)

    def gaps(self, place: int) -> Array:
        """Return where nothing stands in a column, (m,)."""
        cells = self.cells(place)
        if isinstance(cells, np.ndarray):
            return np.array([cell is None for cell in cells], dtype=bool)
        return np.asarray(cells.is_null())


class PandasRows(FrameRows):
    """Rows of a frame of pandas."""

    @staticmethod
    def described(frame: Any) -> list[Column]:
        """Return what is known of the columns, also of one of dask; of objects, whether they seem to be text."""
        found = [
            Column(str(name), _pandas_kind(dtype)) for name, dtype in zip(frame.columns, frame.dtypes, strict=True)
        ]
        if not isinstance(getattr(frame, "shape", (None,))[0], int):
            return found  # dask's rows are not here
        for place, column in enumerate(found):
            if column.kind == "object" and _seems_text(np.asarray(frame.iloc[:_LOOKED_AT, place]).tolist()):
                found[place] = Column(column.name, "text")
        return found

    def cut(self, start: int, stop: int) -> Rows:
        """Return a view."""
        return type(self)(self.frame.iloc[start:stop], self.columns)

    def column(self, place: int, kind: str) -> Array:
        """Return the numbers of one column, (m, 1)."""
        column = self.frame.iloc[:, place]
        dtype = column.dtype
        if not isinstance(dtype, np.dtype) and dtype.kind in "iufb":
            column = column.to_numpy(dtype=np.float64, na_value=np.nan)  # one of pandas' own types, with gaps
        cells = np.asarray(column, dtype=None if isinstance(dtype, np.dtype) else object)
        return numbers_of(cells, kind)[:, None]

    def entries(self, place: int) -> Entries:
        """Return text by the words that occur, and everything else as it is."""
        column = self.frame.iloc[:, place]
        if self.columns[place].kind == "text":
            # Not all of it may be text after all: whoever groups ids says so.
            with contextlib.suppress(pa.ArrowException, ValueError, TypeError):
                return words_of(pa.array(column, from_pandas=True))
        return np.asarray(column)

    def gaps(self, place: int) -> Array:
        """Ask pandas."""
        return np.asarray(self.frame.iloc[:, place].isna())


def _seems_text(entries: list[Any]) -> bool:
    """Return whether there is text among the first entries and nothing else but gaps: pandas 2 has no type for text."""
    kinds = {type(entry).__name__ for entry in entries if not (isinstance(entry, float) and entry != entry)}
    return kinds - {"NoneType", "NAType", "NaTType"} == {"str"}


def _pandas_kind(dtype: Any) -> str:
    """Return in a word what a column of a dtype holds: numpy's, or one of pandas' own."""
    if isinstance(dtype, np.dtype):
        return _NUMPY_KINDS.get(dtype.kind, "something else")
    if hasattr(dtype, "categories"):
        return "text" if _pandas_kind(dtype.categories.dtype) == "text" else "object"
    arrow = str(getattr(dtype, "pyarrow_dtype", ""))
    if arrow.startswith("decimal"):
        return "number"
    if arrow.startswith("dictionary"):
        return "object"
    return "text" if dtype.type is str else _NUMPY_KINDS.get(dtype.kind.replace("O", ""), "something else")


class PolarsRows(FrameRows):
    """Rows of a frame of polars, which has types that Arrow has not."""

    @staticmethod
    def described(frame: Any) -> list[Column]:
        """Return what is known of the columns."""
        return [
            Column(column.name, _NOT_OF_ARROW[str(column.dtype)])
            if str(column.dtype) in _NOT_OF_ARROW
            else arrow_column(column.name, column.to_arrow().type)
            for column in frame.clear().get_columns()
        ]

    def cells(self, place: int) -> Any:
        """Return one column as Arrow has it, or as objects."""
        column = self.frame.to_series(place)
        return objects(column.to_list()) if str(column.dtype) in _NOT_OF_ARROW else column.to_arrow()


class ArrowRows(FrameRows):
    """Rows of a table of pyarrow."""

    def __getstate__(self) -> tuple[bytes, Sequence[Column]]:
        # Pickled as it is, a part would bring along all of the table that it was cut from.
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.frame.schema) as stream:
            stream.write_table(self.frame)
        return sink.getvalue().to_pybytes(), self.columns

    def __setstate__(self, state: tuple[bytes, Sequence[Column]]) -> None:
        self.frame, self.columns = pa.ipc.open_stream(state[0]).read_all(), state[1]


def rows_of_table(X: object) -> FrameRows | None:
    """Return a frame, table or batch that lies in memory as rows, and None of everything else."""
    if is_a(X, "pandas", "DataFrame"):
        return PandasRows(X)
    if is_a(X, "polars", "DataFrame"):
        return PolarsRows(X)
    if isinstance(X, pa.RecordBatch):
        return ArrowRows(pa.Table.from_batches([X]))
    return ArrowRows(X) if isinstance(X, pa.Table) else None


class TableSource(Source):
    """Records in the rows of a table, by a choice of columns."""

    _wanted: Wanted = AS_FOUND

    def wanting(self, wanted: Wanted) -> TableSource:
        """Return the same table with a choice of columns."""
        found = copy.copy(self)
        found._wanted = wanted
        return found


class FrameSource(TableSource):
    """A table that lies in memory, cut into pieces without being copied.

    Parameters
    ----------
    table : all of it
    """

    def __init__(self, table: FrameRows) -> None:
        self._table, self.rows = table, len(table)
        self._where = "the Table" if isinstance(table, ArrowRows) else "the DataFrame"
        self.index = table.frame.index if isinstance(table, PandasRows) else None

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return pieces of about 4 million numbers; names of several levels can be left alone, but not asked for."""
        (unit, label), beside = named_or_beside(units, labels, self.rows)
        named = self._wanted.columns is not None or unit is not None or label is not None
        if named and isinstance(self._table, PandasRows) and self._table.frame.columns.nlevels > 1:
            raise InvalidArgumentError(
                "columns of the DataFrame have names of several levels. Join them: "
                "frame.columns = ['_'.join(map(str, name)) for name in frame.columns]."
            )
        places = places_of(self._wanted.reading(space, unit, label), self._table.columns, self._where)
        return [
            RowsPiece(
                self._where, places, beside.cut(*span), span[0], span[1] - span[0],
                partial(iter, (self._table.cut(*span),)),
            )
            for span in spans(len(self._table), space)
        ]  # fmt: skip


class LazyTable(TableSource):
    """A query of polars: computed again for each pass over the records, a batch at a time.

    Parameters
    ----------
    frame : polars.LazyFrame
    """

    def __init__(self, frame: Any) -> None:
        self._frame = frame

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return the query as one piece: polars itself works on it with several threads."""
        (unit, label), beside = named_or_beside(units, labels, None)
        try:
            schema = self._frame.collect_schema()
        except Exception:
            # Whatever a query raises; its message may quote data.
            raise InvalidDataError(
                "{lazy} cannot be computed. Try frame.collect_schema().", lazy=Public(_LAZY)
            ) from None
        columns = PolarsRows.described(sys.modules["polars"].DataFrame(schema=schema))
        needed, places = places_of(self._wanted.reading(space, unit, label), columns, _LAZY).narrowed()
        # What is not asked for is not computed.
        frame = self._frame.select([columns[place].name for place in needed])
        return [SteadyPiece(_LAZY, places, beside, read=partial(_batches, frame, rows_of_block(space)))]


def _batches(frame: Any, size: int) -> Iterator[Rows]:
    """Yield the rows of a query in their order; a polars that cannot do that in batches computes all of it at once."""
    try:
        if not hasattr(frame, "collect_batches"):
            yield PolarsRows(frame.collect())
            return
        for batch in frame.collect_batches(chunk_size=size, maintain_order=True):
            yield PolarsRows(batch)
    except sys.modules["polars"].exceptions.PolarsError:
        raise InvalidDataError("{lazy} cannot be computed. Try frame.collect().", lazy=Public(_LAZY)) from None


def frame_source(X: object) -> TableSource | None:
    """Return a frame, a table or a batch as a source, and None of everything else."""
    if is_a(X, "polars", "LazyFrame"):
        return LazyTable(X)
    rows = rows_of_table(X)
    return None if rows is None else FrameSource(rows)


def from_frame(
    frame: object,
    columns: str | Sequence[str] | None = None,
    *,
    order: str | None = None,
    coordinates: str | None = None,
) -> Source:
    """Return the rows of a data frame as records, for every call that takes X.

    A frame may also be given as it is: then the records are the columns that the space knows by their names (longitude
    and latitude, x1, y1, x2, y2, ... of landmarks, xx, xy, ... of matrices), or else all columns but the ids and the
    labels. What a column holds never decides: each cell is read by itself, one that is not a number becomes NaN, and
    `invalid=` of the statistic says what to do about its record. Nothing is copied but a block at a time.

    Parameters
    ----------
    frame : a DataFrame of pandas or polars, a LazyFrame of polars (computed again, in batches, for each pass over the
        records), a Table or RecordBatch of pyarrow, a dask DataFrame, a table of any library that has Arrow's protocol
        of streams (`__arrow_c_stream__`: a relation of DuckDB; asked for its batches for each pass). A column of lists
        of one length (Arrow FixedSizeList, polars Array) holds as many numbers of each record
    columns : names, or patterns such as "x1..x9" and "lm_*", as in :func:`load_array`
    order : of a tensor's six numbers, as in :func:`as_records`
    coordinates : "lonlat", "decinc" or another system of :func:`from_coordinates`

    Raises
    ------
    InvalidArgumentError : no such column, or more of them than a record has numbers; the message lists those there are
    InvalidDataError : a column is of dates, structs or another type that has no numbers

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import dpmanifold as dpm
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=["x1", "x2"])
    >>> frame = frame.assign(age=40, person=np.arange(400) % 200)
    >>> source = from_frame(frame, columns="x1..x2")
    >>> [piece] = source.bound(dpm.Euclidean(2), units="person")
    >>> [block.records.shape for block in piece.blocks()]
    [(400, 2)]
    """
    source = as_source(frame)
    if not isinstance(source, TableSource):
        raise InvalidArgumentError(
            "frame must be a DataFrame of pandas, polars or dask, a LazyFrame, a Table or RecordBatch of pyarrow, "
            "or another table with Arrow's protocol of streams, got {got}.",
            got=shown(frame),
        )
    return source.wanting(Wanted(columns, order, coordinates))


ADAPTERS.register("frame", frame_source)
