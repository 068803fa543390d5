"""Data frames and Arrow tables as records, with a choice of columns."""

from __future__ import annotations

from collections.abc import Sequence

from dpmanifold._check import shown
from dpmanifold.data.arrow_tables import ArrowRows
from dpmanifold.data.pandas_frames import PandasRows
from dpmanifold.data.polars_frames import PolarsRows
from dpmanifold.data.rows import Rows
from dpmanifold.data.tables_in_memory import TableSource, Wanted
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.sources import Source, as_source, is_a


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
        records), a Table or RecordBatch of pyarrow, a dask DataFrame. A column of lists of one length (Arrow
        FixedSizeList, polars Array) holds as many numbers of each record
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
            "frame must be a DataFrame of pandas, polars or dask, a LazyFrame, or a Table or RecordBatch of "
            "pyarrow, got {got}.",
            got=shown(frame),
        )
    return source.wanting(Wanted(columns, order, coordinates))


def rows_of_table(X: object) -> Rows | None:
    """Return a frame, table or batch that lies in memory as rows, and None of everything else."""
    if is_a(X, "pyarrow", "Table", "RecordBatch"):
        return ArrowRows(X)
    if is_a(X, "pandas", "DataFrame"):
        return PandasRows(X)
    return PolarsRows(X) if is_a(X, "polars", "DataFrame") else None


__all__ = ["from_frame"]
