"""How the rows of a table or an array become records of a space, block by block.

Every record is read by itself. Whether columns look like another order, or a latitude like a longitude, shows in many
rows together: that is looked at in a source's first block alone, so that what else is in a block never matters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from dpmanifold._cells import REAL
from dpmanifold._check import Array
from dpmanifold.data.coordinates import from_coordinates
from dpmanifold.data.readers import rows_for
from dpmanifold.data.tables import Lists, Table
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from


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


__all__ = ["Reading"]
