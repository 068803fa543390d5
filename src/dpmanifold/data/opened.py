"""What every format of files has in common: a file that was opened, its records, and ids that stand beside them.

One class per format; :mod:`dpmanifold.data.formats` registers them. A new format is one class, and one line:
`LOADERS.register("name", MyFile)`, or an entry point `dpmanifold.loaders` of another distribution.
"""

from __future__ import annotations

import pathlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from dpmanifold._check import Array, shown
from dpmanifold.data._files import ARRAY, bad_file
from dpmanifold.errors import InvalidArgumentError, Names, Public


class DataFile(ABC):
    """A file of records that was opened. `DataFile(path)` opens it, and refuses what is damaged.

    Messages name the file, the place and a remedy, never a value: what stands in the file is private.

    Examples
    --------
    >>> class Pairs(DataFile):                            # a format of two numbers per line
    ...     suffixes = (".pairs",)
    ...     def array(self):
    ...         import numpy as np
    ...         return np.loadtxt(self.path, ndmin=2)
    >>> Pairs.options, len(Pairs.suffixes)
    ((), 1)
    """

    suffixes: ClassVar[tuple[str, ...]]
    """How names of such files end, in small letters."""
    options: ClassVar[tuple[str, ...]] = ()
    """Which options :meth:`array` takes: of "key", "columns", "mask", "order", or the format's own."""
    names: Sequence[str] = ()
    """Names of what :meth:`column` can be asked for: columns of a table, arrays of an archive."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    @abstractmethod
    def array(self, **options: Any) -> Array:
        """Return the records, one per row, (n, ...): a memory map where the file allows it, so that slices stream.

        Missing numbers are NaN and passed on. Options that are not given are None.
        """

    def keep(self, name: str) -> None:
        """Say that a column will be asked for: a format that is read from front to back reads it along with the rest.

        A hint: names that there are not are passed over.
        """
        return

    def column(self, name: str | None = None, text: bool = False, labels: bool = False) -> Array:
        """Return ids or labels, one per record, shape (n,); without a name, the only ones there are.

        `text` keeps numbers as text; `labels` takes words such as NA for what they are.
        """
        if name is not None:
            raise InvalidArgumentError(
                "column {got} is not in {name!r}, which has no columns.", got=shown(name), name=self.path.name
            )
        return one_column(self.array(), self.path, text)

    def ids(self) -> Array | None:
        """Return who the records are of, where the format itself says so; None where it does not."""
        return None


def one_column(stored: Array, path: pathlib.Path, text: bool = False) -> Array:
    """Return a stored array as one value per record, (n,), or refuse its shape."""
    if stored.ndim == 2 and stored.shape[1] == 1:
        stored = stored[:, 0]
    if stored.ndim != 1:
        raise bad_file(
            path,
            "a column has shape (n,), this array {shape}. Give {key}, or save one column.",
            shape=Public(stored.shape),
            key=ARRAY,
        )
    return stored.astype(str) if text else stored


def chosen_name(names: Sequence[str], name: object, path: pathlib.Path) -> str:
    """Return the name of a column; without one there must be one column only."""
    if name is None and len(names) == 1:
        return names[0]
    if name is None:
        raise InvalidArgumentError(
            "column is needed: {name!r} has the columns {names}.", name=path.name, names=Names(names)
        )
    if not (isinstance(name, str) and name in names):
        raise InvalidArgumentError(
            "column {got} is not in {name!r}, which has the columns {names}.",
            got=shown(name),
            name=path.name,
            names=Names(names),
        )
    return name
