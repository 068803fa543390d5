"""What is said of records in the service's database: everything but their values.

A refusal may quote what it refuses, such as the name of a file. The web process reads the database, and so does whoever
took it over or stole a steward's login: they could register again and again and read a column out. So texts in quotes,
decimal numbers and names of files leave a message where they are neither the steward's own words nor columns of the
file. Counts and the numbers of lines stay. The whole message is in the vault.
"""

from __future__ import annotations

import contextlib
import pathlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from dpmanifold import data
from dpmanifold.errors import DPManifoldError

WITHHELD = "…"
# Not classes and no source, nor the numbers of a centre: a long list of guesses could be hidden in them, of which the
# one that is left in a message would be a value.
_WORDS = ("path", "units", "labels", "covariate", "columns", "array", "order", "coordinates", "space", "center")
_NUMBERS = ("radius", "size", "space", "covariate_range")
# What messages have in quotes themselves.
_OURS = frozenset({"camino", "center", "x1..x9", "lm_*", "participant_id"})
_LONGEST, _MOST_FILES = 100, 20

_FILE = re.compile(r"^(?P<file>[^\s:][^:\n]*\.\w{1,8})(?=: )")
_PARTICIPANT = re.compile(r"(?<!\w)sub-[^\s'\"]*[^\s'\".,;:]")
# As Python writes them: what is in them has its own quotes and backslashes marked by backslashes.
_QUOTED = re.compile(r"""(?<!\w)[bB]?(?P<mark>['"])(?P<text>(?:\\.|(?!(?P=mark))[^\\])*)(?P=mark)""", re.DOTALL)
_UNCLOSED = re.compile(r"""(?<!\w)[bB]?['"].*""", re.DOTALL)
_NUMBER = re.compile(
    r"(?<![\w.+-])[-+]?(?:(?:\d+(?:,\d{3})*)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?j?(?:[-:/]\d+)*(?!\w)|\b(?:nan|inf)\b"
)
_WHOLE = re.compile(r"\d+(?:,\d{3})*")
_PLACE = re.compile(r"(?:\b(?:line|row|index|record|group|columns?|of shape|than|most)|[A-Z][A-Za-z]*\(|\* )\s?$")
_COUNTED = re.compile(
    r" (?:of|records?|entries|columns?|values?|landmarks?|numbers?|axes|more|bytes|[KMG]iB|files?|points?|units?|"
    r"covariates?|labels?|participants?|names?|for|deep|rows?|arrays?|regions?|channels?|lines?)\b"
)
_SHAPE = re.compile(r"\((?:[.n]+, )?\d+(?:, \d+)*,?\)")


@final
@dataclass
class Discretion:
    """What may stay in messages about one registration.

    Parameters
    ----------
    request : what the steward asked for

    Examples
    --------
    >>> Discretion({"labels": "group"}).told("column 'group', line 7: 'HIV+' is 0.25 off.")
    "column 'group', line 7: … is … off."
    """

    request: Mapping[str, Any]
    _columns: set[str] = field(default_factory=set, init=False)
    _places: dict[str, str] = field(default_factory=dict, init=False)
    _files: list[str] = field(default_factory=list, init=False)

    def copied(self, path: pathlib.Path, asked: str) -> None:
        """Know what a steward named by where its copy is, and the columns of it."""
        self._places[str(path)] = asked
        if path.is_dir():
            files = sorted(one for one in path.rglob("*") if one.is_file())
            self._files = [one.name for one in files]  # people, maybe
            for one in files[:_MOST_FILES]:
                self._columns.update(_columns_of(one))
        else:
            self._columns.update(_columns_of(path))

    def told(self, message: str, *private: pathlib.Path) -> str:
        """Return a message without values of records, and without paths of the vault.

        Parameters
        ----------
        message : what may describe records
        private : folders whose paths are nobody's business
        """
        for path, asked in self._places.items():
            message = message.replace(path, asked)
        for folder in sorted({str(form) for one in private for form in (one, one.resolve())}, key=len, reverse=True):
            message = re.sub(re.escape(folder) + r"""[^\s'"]*""", WITHHELD, message)
        words = self._words()
        for name in sorted({one for one in self._files if one in message} - words, key=len, reverse=True):
            message = message.replace(name, WITHHELD)
        message = _FILE.sub(lambda found: found[0] if found["file"] in words else WITHHELD, message)
        said = "".join(self._pieces(message, words))
        return re.sub(f"{WITHHELD}(?:, {WITHHELD})+", f"{WITHHELD}", said)

    def _pieces(self, message: str, words: set[str]) -> Iterator[str]:
        """Yield what stands in quotes where it may stay, and what stands between."""
        end, kept = 0, words | self._columns | _OURS
        for found in _QUOTED.finditer(message):
            yield self._plain(message[end : found.start()], words)
            yield found[0] if found["text"] in kept and found[0][0] not in "bB" else WITHHELD
            end = found.end()
        yield self._plain(_UNCLOSED.sub(WITHHELD, message[end:]), words)

    def _plain(self, text: str, words: set[str]) -> str:
        text = _PARTICIPANT.sub(lambda found: found[0] if found[0] in words else WITHHELD, text)
        shapes = [found.span() for found in _SHAPE.finditer(text)]
        asked = self._numbers()

        def number(found: re.Match[str]) -> str:
            inside = any(start < found.start() < end and "," in text[start:end] for start, end in shapes)
            counts = _PLACE.search(text[: found.start()]) or _COUNTED.match(text, found.end()) or inside
            return found[0] if found[0] in asked or (_WHOLE.fullmatch(found[0]) and counts) else WITHHELD

        return _NUMBER.sub(number, text)

    def _words(self) -> set[str]:
        """Return the steward's own words, whole and by their parts."""
        found: set[str] = set()
        for name in _WORDS:
            given = self.request.get(name)
            for text in given if isinstance(given, (list, tuple)) else [given]:
                if isinstance(text, str):
                    found |= {text, *text.rpartition(":"), *text.rpartition("/")}
                    found |= {part.strip() for part in text.split(",")} if name == "columns" else set()
        return found - {"", ":", "/"}

    def _numbers(self) -> set[str]:
        given = (self.request.get(name) for name in _NUMBERS)
        return {number for text in given for number in _NUMBER.findall(str(text))}


def _columns_of(path: pathlib.Path) -> list[str]:
    """Return the names of columns or arrays; none where a first line might be a record."""
    names: list[str] = []
    with contextlib.suppress(DPManifoldError, OSError, ValueError):
        names = [str(name) for name in data.open_file(path).names]
    table = path.suffix.lower() not in (".npz", ".parquet", ".pq")
    if table and (len(names) == 1 or any(_NUMBER.fullmatch(name) for name in names)):
        return []
    return [repr(name)[1:-1] for name in names if len(name) <= _LONGEST]


__all__ = ["WITHHELD", "Discretion"]
