"""From words on the command line to spaces, balls, promises, records and units."""

from __future__ import annotations

import pathlib
import re
from typing import Any

import numpy as np

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.data.landmarks import column_of_specimens
from dpmanifold.data.readers import read_for
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import Manifold, space_from_text
from dpmanifold.manifolds.registry import spelled
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP
from dpmanifold.records import ball_from_dict, read_record
from dpmanifold.release import Release
from dpmanifold.stats import EACH_RECORD

WHOLE_SPACE = "whole-space"
EACH = "each-record"
_WHOLE = re.compile(r"-?[0-9]{1,15}")
# Where a message of the library begins with an argument, the command line has an option of that name.
_OPTION = re.compile(r"^(?=(?:key|columns|mask|order) )")
_MOST_CLASSES = 10_000


def space_of(name: str, size: str | None, records: Array | None = None) -> Manifold:
    """Return a space by name and size, or by its text in full; without a size, that of records (n, ...)."""
    if "(" in name:
        if size is not None:
            raise InvalidArgumentError(f"--space {name} brings its size with it: leave out --size.")
        return _in_full(name)
    kind, keywords = _spelled(name)
    sizes = _sizes(size)
    if size is None:
        if records is None:
            raise InvalidArgumentError(
                "--size must be given: the dimension d, landmarks k or matrix size k; several as in 5,2."
            )
        sizes = kind.sizes_of(records.shape[1:], records.dtype.kind)
        if sizes is None:
            raise InvalidArgumentError(
                f"--size must be given: records of shape {records.shape[1:]} do not tell which {name} they are of. Or "
                f"give the space in full, such as --space {kind(*kind.example, **keywords)!r}."
            )
    try:
        return kind(*(sizes or ()), **keywords)
    except TypeError:
        wanted = len(kind.example)
        raise InvalidArgumentError(
            f"--size {size} does not fit {name}, which has {wanted} size{'' if wanted == 1 else 's'}: such as "
            f"{kind(*kind.example, **keywords)!r}, which --space also takes in full."
        ) from None


def kind_of(name: str) -> type[Manifold]:
    """Return the class of a space by its name or its text in full."""
    return type(_in_full(name)) if "(" in name else _spelled(name)[0]


def _in_full(text: str) -> Manifold:
    try:
        return space_from_text(text)
    except InvalidDataError as problem:
        raise InvalidArgumentError(f"--space: {problem}") from None


def _spelled(name: str) -> tuple[type[Manifold], dict[str, Any]]:
    try:
        return spelled(name)
    except InvalidArgumentError as problem:
        raise InvalidArgumentError(f"--{problem}") from None


def _sizes(text: str | None) -> tuple[int, ...] | None:
    """Return the sizes of a space, such as 3, or 5,2 for a space with two."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(_WHOLE.fullmatch(part) for part in parts):
        raise InvalidArgumentError(f"--size must be a whole number, or several as in 5,2; got {text!r}.")
    return tuple(int(part) for part in parts)


def promise_of(epsilon: float | None, delta: float | None, mu: float | None, rho: float | None) -> Promise:
    """Return the promise that was asked for: exactly one kind."""
    kinds = [name for name, value in (("--epsilon", epsilon), ("--mu", mu), ("--rho", rho)) if value is not None]
    if delta is not None and epsilon is None:
        raise InvalidArgumentError("--delta needs --epsilon: together they are an approximate promise.")
    if len(kinds) != 1:
        raise InvalidArgumentError(
            "give one promise: --epsilon E (pure), --epsilon E --delta D (approximate), --mu M (Gaussian) or --rho R "
            f"(zero-concentrated); got {', '.join(kinds) if kinds else 'none'}."
        )
    if epsilon is not None:
        return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)
    return GDP(mu) if mu is not None else ZCDP(rho)  # type: ignore[arg-type]


def ball_of(space: Manifold, radius: float | None, center: str | None, source: str, file: str | None) -> Ball:
    """Return the public ball: from a file, or about a centre."""
    if file is not None:
        if radius is not None or center is not None or source:
            raise InvalidArgumentError("--ball brings centre, radius and source with it: leave out the others.")
        if file == WHOLE_SPACE:
            return Ball.whole(space)
        ball = read_ball(file)
        if ball.space != space:
            raise InvalidArgumentError(f"--ball holds a ball on {ball.space!r}, and the records are on {space!r}.")
        return ball
    if radius is None:
        raise InvalidArgumentError(
            "--radius is missing: how far records may lie from the center, from public knowledge. "
            f"Or give --ball FILE, such as one that dpm ball released, or for extrinsic means --ball {WHOLE_SPACE}."
        )
    return Ball(space, center_of(space, center), radius, source)


def center_of(space: Manifold, text: str | None) -> Array:
    """Return a centre: coordinates, a number times the identity, or a file that holds one point.

    Without one it is the identity or zero; directions and shapes have no such point, and it must be said.
    """
    if text is None:
        center = space.natural_center
        if center is None:
            raise InvalidArgumentError(
                f"--center is missing: {space!r} has no natural middle. Give numbers such as 0,0,1, or a file with one "
                "point that may be shown (a template, an axis of the instrument)."
            )
        return center
    try:
        numbers = np.array([float(part) for part in text.split(",")])
    except ValueError:
        numbers = np.asarray(data.load_array(text))
    try:
        return space.read_point(numbers)
    except InvalidDataError as problem:
        raise InvalidArgumentError(f"--center {text} is no point of {space!r}: {problem}") from None


def read_ball(path: str) -> Ball:
    """Return the ball a file holds: one released by `dpm ball`, or one written by `dpm ball --public`."""
    record = read_record(path)
    if isinstance(record, dict) and "space" in record and "center" in record:
        try:
            return ball_from_dict(record)
        except (KeyError, TypeError, ValueError, OverflowError) as problem:
            raise InvalidDataError(f"{path} holds a damaged ball: {str(problem).rstrip('.')}.") from problem
    release = Release.from_dict(record)
    if not isinstance(release.value, Ball):
        raise InvalidArgumentError(f"--ball {path} holds a {release.statistic}, not a ball.")
    return release.value


def records_of(
    file: data.DataFile,
    name: str,
    size: str | None,
    columns: str | None = None,
    normalize: bool = False,
    order: str | None = None,
    coordinates: str | None = None,
    **options: str | None,
) -> tuple[Array, Manifold]:
    """Return records of an opened file in the shape of their space, and the space. Arrays on disk stay there.

    Landmarks of a table are paired by the names of their columns, and directions in degrees are known by theirs. With
    `normalize` nearly valid records are moved onto the space, each by itself. `options` are the format's own.
    """
    wanted = None if columns is None else [part.strip() for part in columns.split(",")]
    kind = kind_of(name)
    if coordinates is not None and coordinates not in kind.coordinates:
        raise InvalidArgumentError(f"--coordinates {coordinates} means nothing for --space {name}. Leave it out.")
    if "order" in file.options:
        options, order = {**options, "order": order}, None
    try:
        array = read_for(kind, file, wanted, coordinates, **options)
        if array.ndim < 2:
            raise InvalidDataError(f"it must hold one record per row, got an array with {array.ndim} axes.")
        space = space_of(name, size, array)
        records = data.as_records(array, space, order)
    except InvalidDataError as problem:
        words = _as_options(str(problem))
        raise InvalidDataError(words if words.startswith(file.path.name) else f"{file.path}: {words}") from None
    except InvalidArgumentError as problem:
        raise InvalidArgumentError(_as_options(str(problem))) from None
    return (np.asarray(space.project(records)) if normalize else records), space


def _as_options(words: str) -> str:
    """Return a message of the library in the words of the command line."""
    return _OPTION.sub("--", words.replace("columns=", "--columns").replace("order=", "--order "))


def units_of(text: str, file: data.DataFile | None, n: int) -> Any:
    """Return who owns each record: everybody one, a column or key of the data file, or a file (FILE or FILE:COLUMN)."""
    return EACH_RECORD if text == EACH else column_of(text, file, n, "--units")


def column_of(text: str, opened: data.DataFile | None, n: int, option: str) -> Array:
    """Return one value per record: a column or key of the data file, or of another one (FILE or FILE:COLUMN).

    Of a table with a row per landmark, one value per specimen.
    """
    file, _, column = text.rpartition(":")
    labels = option == "--labels"
    if opened is not None and opened.names:
        try:
            found = opened.column(text, labels=labels)
            if len(found) != n and isinstance(opened, data.Table):
                by_specimen = column_of_specimens(opened, text, labels)
                found = found if by_specimen is None else by_specimen
            return _one_each(found, text, n, option)
        except InvalidArgumentError:
            # No such column: then it must be a file, or the message says which columns there are.
            if not (pathlib.Path(text).is_file() or (file and pathlib.Path(file).is_file())):
                raise
    if file and pathlib.Path(file).is_file():
        return _one_each(data.open_file(file).column(column, labels=labels), text, n, option)
    if pathlib.Path(text).is_file():
        return _one_each(data.load_column(text, labels=labels), text, n, option)
    raise InvalidArgumentError(
        f"{option} {text}: there is no such file, and {'the data' if opened is None else opened.path} has no columns. "
        f"Give a file with one id per record, or {EACH} for units of one record each."
    )


def _one_each(found: Array, text: str, n: int, option: str) -> Array:
    if found.shape != (n,):
        raise InvalidDataError(f"{option} {text} holds {found.shape[0]} values for {n} records. Give one per record.")
    return found


def class_words(text: str) -> list[str]:
    """Return a public list of classes as words: "a,b,c", or "0..9" for whole numbers. They become names of files."""
    first, dots, last = text.partition("..")
    if dots:
        if not (_WHOLE.fullmatch(first) and _WHOLE.fullmatch(last)) or int(last) - int(first) > _MOST_CLASSES:
            raise InvalidArgumentError(f"--classes {text}: expected a short range of whole numbers such as 0..9.")
        return [str(number) for number in range(int(first), int(last) + 1)]
    words = [part.strip() for part in text.split(",")]
    if any(not word or not word.isprintable() or word in (".", "..") or set(word) & set("/\\") for word in words):
        raise InvalidArgumentError(f"--classes {text}: a class must be a word without slashes, as it names a file.")
    return words


def classes_of(words: list[str], labels: Array) -> list[Any]:
    """Return classes of the kind the labels have: whole numbers or text."""
    if labels.dtype.kind not in "iu":
        return list(words)
    wrong = [word for word in words if not _WHOLE.fullmatch(word)]
    if wrong:
        raise InvalidArgumentError(f"--classes holds {wrong[0]!r}, and the labels are whole numbers.")
    return [int(word) for word in words]
