"""What is stored of a refused registration: the message without values of records.

The web process reads the database, and so does whoever took it over or stole a steward's login: they could register
again and again and read a column out. So a message is stored as its template and those of its values that are public,
or the steward's own words, or names of columns. The whole message is in the vault.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Mapping
from typing import Any, final

from dpmanifold import data
from dpmanifold._cells import real_cell
from dpmanifold.errors import WITHHELD, DPManifoldError, Either, Wording, message_to_record
from dpmanifold.service import tables

# Not classes and no source, nor the numbers of a center: a long list of guesses could be hidden in them, of which the
# one that is left in a message would be a value.
_WORDS = ("path", "units", "labels", "covariate", "columns", "array", "order", "coordinates", "space", "center")
_NUMBERS = ("radius", "size", "covariate_range")
_LONGEST_NAME, _MOST_FILES = 100, 20


@final
class Redaction(Wording):
    """Messages about one registration, without what depends on records.

    Parameters
    ----------
    request : what the steward asked for

    Examples
    --------
    >>> from dpmanifold.errors import Message, Public
    >>> said = Message("column {column!r}: {entry!r} in line {line}.", column="group", entry="HIV+", line=Public(7))
    >>> print(Redaction({"labels": "group"}).message(said))
    column 'group': … in line 7.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._known = {*_steward_words(request), *(str(request[name]) for name in _NUMBERS if name in request)}
        self._copies: dict[str, str] = {}
        self.withheld = False

    def copied(self, path: pathlib.Path, asked: str) -> None:
        """Know what a steward named by where its copy is, and the columns of it."""
        self._copies[str(path)] = asked
        files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
        for one in files[:_MOST_FILES]:
            self._known.update(_columns_of(one))

    def private(self, value: object, text: str) -> str:
        """Return a value that the steward knows anyway."""
        if str(value) in self._copies:
            return text.replace(str(value), self._copies[str(value)])
        if {str(value), str(value)[1:-1]} & self._known:  # as it is, or in quotes
            return text
        self.withheld = True
        return WITHHELD

    def either(self, said: Either) -> object:
        """Return what is not for Python."""
        return said.elsewhere

    def record(self, problem: DPManifoldError) -> tuple[dict[str, Any], bool]:
        """Return a message ready for JSON, and whether something is missing in it."""
        self.withheld = False
        return message_to_record(problem.message, self), self.withheld


def _steward_words(request: Mapping[str, Any]) -> set[str]:
    """Return the words of a request, whole and by their parts."""
    found: set[str] = set()
    for name in _WORDS:
        given = request.get(name)
        for text in given if isinstance(given, (list, tuple)) else [given]:
            if isinstance(text, str):
                found |= {text, *text.rpartition(":"), *text.rpartition("/")}
                found |= {part.strip() for part in text.split(",")} if name == "columns" else set()
    return found - {"", ":", "/"}


def _columns_of(path: pathlib.Path) -> list[str]:
    """Return the names of columns or arrays; none where a first line might be a record."""
    names: list[str] = []
    with contextlib.suppress(DPManifoldError, OSError, ValueError):
        names = [str(name) for name in data.open_file(path).names]
    table = path.suffix.lower() not in (".npz", ".parquet", ".pq")
    if table and (len(names) == 1 or any(real_cell(name) == real_cell(name) for name in names)):
        return []
    return [name for name in names if len(name) <= _LONGEST_NAME]


NOTICES = "notices"
"""The folder of the vault."""


def write_notice(vault: pathlib.Path, name: str, text: str) -> str:
    """Write a notice about a release or a registration, and return where in the vault.

    That it cannot be written changes nothing.

    Parameters
    ----------
    vault : the worker's folder
    name : the id of what it is about, after registration- where it is one
    text : what may describe records
    """
    folder = vault / NOTICES
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(folder / f"{name}.txt", flags, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{tables.now()} {text}\n")
    return f"{NOTICES}/{name}.txt"
