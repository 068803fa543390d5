"""Which files can be read: the formats by name, and the one place where a file's name decides how it is read."""

from __future__ import annotations

import itertools
import pathlib
from typing import Any

from dpmanifold._check import Array
from dpmanifold.data._files import PathLike, checked_file, in_words, no_option, unknown_format
from dpmanifold.data.archives import NpyFile, NpzFile
from dpmanifold.data.camino import CaminoFile
from dpmanifold.data.csv_table import CsvTable
from dpmanifold.data.mne_epochs import EpochsFile
from dpmanifold.data.nifti import NiftiFile
from dpmanifold.data.opened import DataFile
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.tps import TpsFile
from dpmanifold.registry import Registry

LOADERS: Registry[type[DataFile]] = Registry("loader", "dpmanifold.loaders")
LOADERS.register("npy", NpyFile)
LOADERS.register("npz", NpzFile)
LOADERS.register("csv", CsvTable)
LOADERS.register("parquet", ParquetTable)
LOADERS.register("tps", TpsFile)
LOADERS.register("nifti", NiftiFile)
LOADERS.register("camino", CaminoFile)
LOADERS.register("epochs", EpochsFile)

# Said by name where an option is given to a format that does not take it.
_FOR = {"columns": "tables: ", "mask": "images of tensors: ", "id_column": "tables: "}


def loader_of(path: PathLike) -> type[DataFile] | None:
    """Return the format that a file's name says, or None; those of the library come first.

    Examples
    --------
    >>> loader_of("brain.NII.gz").__name__, loader_of("notes.txt")
    ('NiftiFile', None)
    """
    name = pathlib.Path(path).name.lower()
    # Lazily: what the library reads itself is found without looking at other distributions.
    return next((kind for kind in itertools.chain(LOADERS.own(), LOADERS) if name.endswith(kind.suffixes)), None)


def open_file(path: object) -> DataFile:
    r"""Open a file of records by its name, or say which formats are known.

    Parameters
    ----------
    path : the file

    Raises
    ------
    InvalidArgumentError : there is no such file, or its name does not say a format that is known
    InvalidDataError : it is damaged

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "visits.csv")
    ...     _ = path.write_text("person,x1,x2\nA,0.1,0.2\nB,0.3,0.4\n")
    ...     file = open_file(path)
    ...     print(list(file.names), file.array(columns="x*").shape, file.column("person").tolist())
    ['person', 'x1', 'x2'] (2, 2) ['A', 'B']
    """
    file = checked_file(path)
    kind = loader_of(file)
    if kind is None:
        raise unknown_format(file, in_words(known_suffixes()))
    return kind(file)


def known_suffixes(option: str | None = None) -> list[str]:
    """Return how names of files that can be read end; with an option, of those that take it."""
    return [end for kind in LOADERS for end in kind.suffixes if option is None or option in kind.options]


def read_array(file: DataFile, **options: Any) -> Array:
    """Return the records of an opened file, after refusing options that mean nothing for its format."""
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        refuse_option(file, name)
    return file.array(**given)


def refuse_option(file: DataFile, name: str) -> None:
    """Refuse an option that the format does not take, and say which ones do."""
    if name not in file.options:
        takers = known_suffixes(name)
        no_option(True, name, file.path, f"It is for {_FOR.get(name, '')}{in_words(takers)}." if takers else "")
