"""Which files can be read, which are meant, and their records as arrays: a file's name decides here how it is read.

What is read is private: nothing here prints a value, and messages are for the curator. Missing numbers become NaN and
are passed on; what to do about them is the statistic's business (`invalid=` of the private statistics).
"""

from __future__ import annotations

import glob
import itertools
import os
import pathlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

from dpmanifold._check import Array, shown
from dpmanifold.data._files import DataFile, PathLike, checked_file, in_words, named_twice, no_option, unknown_format
from dpmanifold.data.archives import NpyFile, NpzFile
from dpmanifold.data.csv_table import CsvTable
from dpmanifold.data.mne_epochs import EpochsFile
from dpmanifold.data.nifti import CaminoFile, NiftiFile
from dpmanifold.data.parquet_table import ParquetTable
from dpmanifold.data.tps import TpsFile
from dpmanifold.errors import Argument, Either, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.manifolds.layouts import records_from
from dpmanifold.registry import Registry

LOADERS: Registry[type[DataFile]] = Registry("loader", "dpmanifold.loaders")
_OWN: dict[str, type[DataFile]] = {
    "npy": NpyFile, "npz": NpzFile, "csv": CsvTable, "parquet": ParquetTable,
    "tps": TpsFile, "nifti": NiftiFile, "camino": CaminoFile, "epochs": EpochsFile,
}  # fmt: skip
for _name, _kind in _OWN.items():
    LOADERS.register(_name, _kind)

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


def files_in(paths: object) -> list[pathlib.Path]:
    """Return the files that names, folders and patterns mean, or say what was found instead.

    Of a folder, and of what a pattern matches, those files are meant whose names say a format that is known; names
    that begin with a dot or an underscore (`_SUCCESS`, `_metadata`) are passed over. Files in folders below are meant
    by a pattern with `**`. A mixture is refused: files of several formats, or files beside folders with files of
    records in them, such as a table of ages beside folders of images. So are files whose names differ in their endings
    alone (`a.csv`, `a.parquet`): most often one was made from the other.

    Parameters
    ----------
    paths : the name of a file or of a folder, a pattern such as `study/*.parquet`, or a list of these

    Examples
    --------
    >>> import tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> for name in ("b.csv", "a.csv", "_SUCCESS", "readme.txt"):
    ...     _ = (folder / name).write_text("x")
    >>> [path.name for path in files_in(folder)]
    ['a.csv', 'b.csv']
    """
    given = paths if isinstance(paths, (list, tuple)) else [paths]
    if not given:
        raise InvalidArgumentError("`paths` must name at least one file, folder or pattern, got an empty list.")
    found = [path for one in given for path in _files_of(one)]
    _refuse_twice(found)
    return found


def _files_of(path: object) -> list[pathlib.Path]:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError(
            "`paths` must be names of files or folders, or patterns, got {got}.", got=shown(path)
        )
    name = os.fsdecode(path)
    one = pathlib.Path(name)
    try:
        if one.is_dir():
            return _known(sorted(one.iterdir()), f"the folder {name!r}", name)
        if one.is_file():
            return [one]
        if glob.has_magic(name):
            matches = [pathlib.Path(match) for match in sorted(glob.glob(name, recursive=True))]
            if not matches:
                raise InvalidArgumentError(
                    "`paths`: nothing has a name like {name!r}. Check it, and the folder.", name=name
                )
            return _known(matches, f"{name!r}", None if "**" in name else os.path.dirname(name))
        circular = one.is_symlink()
    except (OSError, RuntimeError):  # links that lead back to themselves, folders that may not be looked into
        circular = True
    if circular:
        raise InvalidArgumentError(
            "`paths`: {name!r} cannot be opened: a link that leads nowhere, or no permission.", name=name
        )
    raise InvalidArgumentError(
        "`paths`: there is no file or folder {name!r}. Check the name and the folder.", name=name
    )


def _known(candidates: Sequence[pathlib.Path], where: str, beside: str | None) -> list[pathlib.Path]:
    """Return the files among candidates that can be read; refuse to pass over what only looks like one.

    Parameters
    ----------
    candidates : files and folders
    where : what they were found in, for messages
    beside : the folder whose folders count as well; None where a pattern means what is in them by itself
    """
    seen = [path for path in candidates if not path.name.startswith((".", "_"))]
    taken = [path for path in seen if loader_of(path) is not None]
    for path in taken:
        if path.is_dir():
            raise InvalidArgumentError(
                "`paths`: {name!r} in {where} is a folder, although its name is that of a file. Name the folder "
                "itself, or remove it.",
                name=path.name,
                where=where,
            )
        if not path.is_file():
            raise InvalidArgumentError(
                "`paths`: {name!r} in {where} cannot be opened: a link that leads nowhere, or not a file.",
                name=path.name,
                where=where,
            )
    if not taken:
        kinds = Counter("folders" if path.is_dir() else path.suffix or "files without an ending" for path in seen)
        held = [Message("{count} {kind}", count=Public(count), kind=kind) for kind, count in sorted(kinds.items())]
        there = Names(held) if kinds else Message("nothing")
        raise InvalidArgumentError(
            "`paths`: there are no files of records in {where}, which holds {there}. Known are {in_words}.",
            where=where,
            there=there,
            in_words=Public(in_words(known_suffixes())),
        )
    _refuse_copies(taken)
    below = [] if beside is None else [path for path in seen if path not in taken and path.is_dir()]
    _refuse_mixture(taken, below, where, beside)
    return taken


def _refuse_mixture(
    taken: Sequence[pathlib.Path], below: Sequence[pathlib.Path], where: str, folder: str | None
) -> None:
    """Refuse files of several formats, and files beside folders that hold others: which are records is not guessed."""
    first: dict[object, pathlib.Path] = {}
    for path in taken:
        first.setdefault(loader_of(path), path)
    deeper = next(filter(None, map(_file_below, below)), None)
    if len(first) == 1 and deeper is None:
        return
    there = Message("{names}", names=Names(path.name for path in first.values()))
    if deeper is not None:
        below_it = os.path.relpath(deeper, folder or ".")
        there = Message("{there} and {below!r} in a folder below", there=there, below=below_it)
    ending = _ending(taken[0])
    pattern = os.path.join(folder or os.path.dirname(taken[0]), f"*{ending}")
    raise InvalidArgumentError(
        "`paths`: {where} holds files of several kinds, {there}, and which of them are records is not "
        "guessed. Name each file that is meant, or give a pattern such as {pattern!r}; {remedy}",
        where=where,
        there=there,
        remedy=Either(
            Message("images of tensors go through data.from_nifti, or data.from_bids."),
            Message("of images, a pattern that means them all."),
        ),
        pattern=pattern,
    )


def _file_below(folder: pathlib.Path) -> pathlib.Path | None:
    """Return a file in a folder, or in one below it, that could be read as records; None if there is none."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in sorted(files):
            if not name.startswith((".", "_")) and loader_of(name) is not None:
                return pathlib.Path(place, name)
    return None


def _refuse_copies(files: Sequence[pathlib.Path]) -> None:
    """Refuse `a.csv` beside `a.parquet` where nobody named the two: converted or unpacked records would count twice."""
    seen: dict[pathlib.Path, pathlib.Path] = {}
    for path in files:
        earlier = seen.setdefault(path.with_name(path.name[: -len(_ending(path))]), path)
        if earlier is not path:
            raise InvalidArgumentError(
                "`paths`: {earlier!r} and {path!r} differ in their endings alone. If one was made from the other, "
                "its records would count twice: move it, or say which are meant by a pattern such as "
                "'parts/*.parquet'. If both are meant, name each file.",
                earlier=str(earlier),
                path=str(path),
            )


def _ending(path: pathlib.Path) -> str:
    """Return how the name of a file of a known format ends."""
    return max((end for end in known_suffixes() if path.name.lower().endswith(end)), key=len)


def _refuse_twice(files: Sequence[pathlib.Path]) -> None:
    """Refuse a file that is named twice, also through links: its records would count twice."""
    try:
        twice = named_twice(files)
    except OSError as problem:
        name = os.path.basename(problem.filename)
        raise InvalidDataError(
            "{name}: it cannot be opened. It was removed, or may not be read.", name=Argument(name)
        ) from None
    if twice is not None:
        one, other = map(str, twice)
        raise InvalidArgumentError(
            "`paths`: {one!r} and {other!r} are one file, and its records would count twice. Name it once.",
            one=one,
            other=other,
        )
