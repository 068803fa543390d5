"""How a file of records is read for a space: which columns are meant where none are named, and in which coordinates.

A space names its reader (:attr:`Manifold.table_reader`); "numbers" takes columns as they are. Another distribution adds
one by an entry point `dpmanifold.readers`.

Every record is read by itself. Whether columns look like another order, or a latitude like a longitude, shows in many
rows together: that is looked at in a source's first block alone, so that what else is in a block never matters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from dpmanifold._cells import REAL
from dpmanifold._check import Array
from dpmanifold.data.coordinates import coordinate_columns, from_coordinates
from dpmanifold.data.formats import read_array, refuse_option
from dpmanifold.data.landmarks import landmarks_of
from dpmanifold.data.matrix_columns import read_matrices
from dpmanifold.data.opened import DataFile
from dpmanifold.data.tables import Lists, Table
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from
from dpmanifold.registry import Registry

# From a table, the columns that were named, if any, and what other options its format takes, to rows.
Reader = Callable[..., Array]
READERS: Registry[Reader] = Registry("reader", "dpmanifold.readers")
READERS.register("numbers", lambda table, columns, **options: table.array(columns=columns, **options))
READERS.register("landmarks", lambda table, columns: landmarks_of(table, columns)[0])
READERS.register("matrices", read_matrices)


def read_for(
    kind: type[Manifold],
    file: DataFile,
    columns: Sequence[str] | None = None,
    coordinates: str | None = None,
    **options: Any,
) -> Array:
    r"""Return the rows of a file, (n, ...), as a space of this kind wants them; not yet in its shape.

    Parameters
    ----------
    kind : the class of the space
    file : the file, opened
    columns : names or patterns of columns of a table
    coordinates : a system of coordinates of the space; where columns of a table have the names of one, it is that
    options : what else the format takes; None for those that were not given

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dpmanifold.data.formats import open_file
    >>> from dpmanifold.manifolds import Sphere
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "sites.csv")
    ...     _ = path.write_text("site,lon,lat\nA,0,0\nB,90,0\n")
    ...     read_for(Sphere, open_file(path)).round(12) + 0.0
    array([[1., 0., 0.],
           [0., 1., 0.]])
    """
    array, coordinates = rows_for(kind, file, columns, coordinates, **options)
    return array if coordinates is None else from_coordinates(array, coordinates)


def rows_for(
    kind: type[Manifold],
    file: DataFile,
    columns: Sequence[str] | None = None,
    coordinates: str | None = None,
    **options: Any,
) -> tuple[Array, str | None]:
    """Return the rows of a file as they stand there, and the coordinates they are in; arguments of :func:`read_for`."""
    if isinstance(file, Table):
        if coordinates is None and kind.coordinates:
            columns, coordinates = coordinate_columns(file, columns, kind.coordinates)
        given = {name: value for name, value in options.items() if value is not None}
        for name in given:
            refuse_option(file, name)
        return READERS.get(kind.table_reader)(file, columns, **given), coordinates
    return read_array(file, columns=columns, **options), coordinates


@dataclass(frozen=True)
class Reading:
    """How rows become records: the words of :func:`load_array`, None where they were left out.

    Parameters
    ----------
    space : which the records are of
    columns : names or patterns of the columns that are numbers of a record, of tables
    order, coordinates : how they are written
    units, labels : the columns of ids and of classes, where they are columns

    Examples
    --------
    >>> import numpy as np
    >>> from dpmanifold.manifolds import SPD
    >>> Reading(SPD(2)).records(np.array([[2.0, 0.5, 1.0]])).tolist()
    [[[2.0, 0.5], [0.5, 1.0]]]
    """

    space: Manifold
    columns: str | Sequence[str] | None = None
    order: str | None = None
    coordinates: str | None = None
    units: str | None = None
    labels: str | None = None

    def records(self, rows: Table | Lists | Array, look: bool = False) -> Array:
        """Return records (m, *shape of one) of a table or an array that holds a block of them.

        `look` asks whether most of them seem to be written in another way than was said, and refuses them.
        """
        if isinstance(rows, Lists):
            return self._of_lists(rows)
        values, coordinates = rows, self.coordinates
        if isinstance(rows, Table):
            columns = [self.columns] if isinstance(self.columns, str) else self.columns
            values, coordinates = rows_for(type(self.space), rows, columns, coordinates)
        if coordinates is not None:
            values = from_coordinates(values, coordinates, look=look)
        return records_from(self.space, values, self.order, look)

    def _of_lists(self, rows: Lists) -> Array:
        """Return records of lists, each read in the form that its own length is; NaN where it is none."""
        if self.coordinates is not None:
            raise InvalidArgumentError("`coordinates`: lists must be of a type that says how long they are.")
        forms = [one for one in self.space.layouts() if one.kind == REAL and len(one.shape) == 1]
        widths = [one.shape[0] for one in forms if one.orders or self.order is None]
        records = np.full((len(rows), *self.space.record_shapes[REAL]), np.nan)
        for width in dict.fromkeys(widths):
            places, values = rows.of_width(width)
            records[places] = self.records(values)
        return records

    def try_out(self, shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> None:
        """Refuse rows of that shape and type that are no records of the space, before any are read."""
        self.records(np.empty((0, *shape), dtype=dtype))


@dataclass(frozen=True)
class Wanted:
    """Which columns are the records, and how they are written: the words of :func:`load_array`, None if left out."""

    columns: str | Sequence[str] | None = None
    order: str | None = None
    coordinates: str | None = None

    def reading(self, space: Manifold, units: str | None = None, labels: str | None = None) -> Reading:
        """Return how rows become records of a space."""
        return Reading(space, self.columns, self.order, self.coordinates, units, labels)


AS_FOUND = Wanted()  # where nobody chooses: the columns' own names tell
