"""How a file of records is read for a space: which columns are meant where none are named, and in which coordinates.

A space names its reader (:attr:`Manifold.table_reader`); "numbers" takes columns as they are. Another distribution adds
one by an entry point `dpmanifold.readers`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpmanifold._check import Array
from dpmanifold.data.coordinates import coordinate_columns, from_coordinates
from dpmanifold.data.formats import read_array, refuse_option
from dpmanifold.data.landmarks import landmarks_of
from dpmanifold.data.matrix_columns import read_matrices
from dpmanifold.data.opened import DataFile
from dpmanifold.data.tables import Table
from dpmanifold.manifolds import Manifold
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
