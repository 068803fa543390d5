"""Which files can be read, and their records and ids as arrays: here alone a file's name decides how it is read.

What is read is private: nothing here prints a value, and messages are for the curator. Missing numbers become NaN and
are passed on; what to do about them is the statistic's business (`invalid=` of the private statistics).
"""

from __future__ import annotations

import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

from dpmanifold._check import Array, shown
from dpmanifold.data._files import DataFile, PathLike, checked_file, in_words, no_option, unknown_format
from dpmanifold.data.archives import NpyFile, NpzFile
from dpmanifold.data.csv_table import CsvTable
from dpmanifold.data.mne_epochs import EpochsFile
from dpmanifold.data.nifti import CaminoFile, NiftiFile
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.tps import TpsFile
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from
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


def load_array(
    path: PathLike, key: str | None = None, columns: str | Sequence[str] | None = None, **options: Any
) -> Array:
    r"""Return the numbers in a file, one record per row: arrays (.npy, .npz), tables (.csv, .tsv, .parquet) and more.

    - .npy, and .npz saved by `np.savez`: a read-only memory map (`np.memmap`) of the stored dtype and shape; what a
      release needs on top is said on the page of this module. .npz saved by `np.savez_compressed` is read. Pickled
      objects are always refused.
    - Tables: float64 of shape (n, number of columns). What is not a number becomes NaN, cell by cell: empty entries,
      NA, words, decimal commas. A CSV file has a first line of names, commas, semicolons or tabs between entries (tabs
      in .tsv), a decimal point, and is UTF-8; it may be gzipped (.csv.gz, .tsv.gz).
    - .tps: landmarks (n, k, 2), see :func:`load_landmarks`; .nii and .nii.gz: tensors (n, 3, 3), see
      :func:`load_tensors`; .Bdouble: tensors (n, 3, 3) as Camino's dtfit writes them, 8 numbers per voxel.
    - What other distributions add (`data.LOADERS`).

    Parameters
    ----------
    path : the file
    key : name of the array in an .npz file; not needed if there is one
    columns : names, or patterns, of columns of a table; all of them if left out. "x1..x9" counts from x1 to x9 (and
        "lm01..lm12" with the zeros); "x1..y9", whose ends differ in more than a number, takes what stands in the file
        from x1 to y9; "lm_*" takes what matches, in the file's order
    options : what else the format takes, such as mask= for .nii

    Raises
    ------
    InvalidArgumentError : no such file, key or column; the message lists those there are
    InvalidDataError : the content is not what the format asks for; the message has file, line and remedy

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tensors.csv")
    ...     _ = path.write_text("id,x1,x2,x3\nA,1.0,0.5,2.0\nB,3.0,,4.0\n")
    ...     load_array(path, columns="x1..x3")
    array([[1. , 0.5, 2. ],
           [3. , nan, 4. ]])
    """
    return read_array(open_file(path), key=key, columns=columns, **options)


def load_column(
    path: PathLike, column: str | None = None, key: str | None = None, text: bool = False, labels: bool = False
) -> Array:
    r"""Return one column of ids or labels, shape (n,): who owns which record, or its class.

    From a table it comes as int64 if every entry is a whole number (007 and +7 are text: they are not the id 7), as
    text otherwise, without blanks around it. Entries must not be missing (empty, or NA, NaN, null, None), since a
    record belongs to somebody. From .npy and .npz it comes as stored; a column of shape (n, 1) becomes (n,).

    Parameters
    ----------
    path : a table, .npy or .npz
    column : name of the column of a table; not needed if there is one
    key : name of the array in an .npz file; not needed if there is one
    text : True returns text even where all entries are whole numbers; then no single entry can change the type
    labels : True for classes, of which one may be called "none" or "NA": nothing counts as missing

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "visits.csv")
    ...     _ = path.write_text("person,x1\n12,0.1\n12,0.2\n7,0.3\n")
    ...     load_column(path, "person")
    array([12, 12,  7])
    """
    file = open_file(path)
    by_key = "key" in file.options
    name, other = (key, column) if by_key else (column, key)
    if other is not None:
        refuse_option(file, "columns" if by_key else "key")
    return file.column(name, text, labels)


def as_records(array: object, space: Manifold, order: str | None = None) -> Array:
    """Return records in the shape that `space` wants, (n, *shape), from flat columns or from what has it already.

    - SPD(k): k*k columns, row by row; or k(k+1)/2 columns, one triangle in the given order.
    - KendallShapes(k): 2k columns x1, y1, x2, y2, ... become (n, k, 2).
    - Other spaces: n rows of as many numbers as a point has, and what else the space lists (`space.layouts()`).

    Whether they are points of the space (symmetric, of unit length, ...) is checked by whatever takes them. Other
    coordinates (degrees, the Poincaré ball) go through :func:`from_coordinates` first.

    Parameters
    ----------
    array : the columns, or records
    space : the space they are to be points of
    order : which entries the columns of a triangle are, for matrices of size 3: "row" xx, xy, xz, yy, yz, zz, the upper
        triangle row by row, and "fsl" (`dtifit --save_tensor`) and "camino" (`dtfit`, without its first two numbers)
        are the same; "dipy" xx, xy, yy, xz, yz, zz, the lower triangle row by row; "mrtrix" xx, yy, zz, xy, xz, yz
        (`dwi2tensor`). If left out it is "row", refused where most matrices would be positive definite in another order
        only

    Examples
    --------
    >>> from dpmanifold.manifolds import SPD, KendallShapes
    >>> as_records([[2.0, 0.5, 1.0]], SPD(2))
    array([[[2. , 0.5],
            [0.5, 1. ]]])
    >>> as_records([[1.0, 2.0, 3.0, 0.1, 0.2, 0.3]], SPD(3), order="mrtrix")[0]
    array([[1. , 0.1, 0.2],
           [0.1, 2. , 0.3],
           [0.2, 0.3, 3. ]])
    >>> as_records([[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]], KendallShapes(3)).shape
    (1, 3, 2)
    """
    if not isinstance(space, Manifold):
        raise InvalidArgumentError(
            "`space` must be a space such as SPD(3) or KendallShapes(8), got {got}.", got=shown(space)
        )
    return records_from(space, array, order)
