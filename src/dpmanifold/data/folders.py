"""Which files are meant: by names, folders and patterns, each file once and in the order of their names."""

from __future__ import annotations

import glob
import os
import pathlib
from collections import Counter
from collections.abc import Sequence

from dpmanifold._check import shown
from dpmanifold.data._files import in_words, named_twice
from dpmanifold.data.formats import known_suffixes, loader_of
from dpmanifold.errors import Argument, Either, InvalidArgumentError, InvalidDataError, Message, Names, Public


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
