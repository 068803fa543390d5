"""A ledger as one file of JSON lines, which anybody can check without the database, and with nothing but Python.

The first line says what it is; each further line is an entry, as in the witness. There is nothing in it that is not
public within the institution: no records, no hash of them without the key, no results.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
from collections.abc import Iterable, Iterator
from typing import Any, final

from dpmanifold._version import __version__
from dpmanifold.errors import InvalidDataError
from dpmanifold.files import whole_file
from dpmanifold.ledger.auditing import Audit, Lines, audited
from dpmanifold.ledger.entries import Entry, now
from dpmanifold.privacy.budget_accounts import canonical_json
from dpmanifold.storage.chain import BEFORE_ALL, read_canonical

FORMAT = "dpmanifold ledger export 2"


def write_export(path: str | os.PathLike[str], ledger: str, head: Entry, entries: Iterable[Entry]) -> int:
    """Write all entries up to `head` as JSON lines, whole or not at all, and return how many there are.

    Parameters
    ----------
    path : of the new file
    ledger : the ledger's id
    head : the last entry that goes in: what is committed meanwhile stays out
    entries : in order, from the first on

    Examples
    --------
    >>> import tempfile
    >>> first = Entry.chained("a-ledger", None, "created", "", None, {"ledger": "a-ledger"})
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "study.jsonl"
    >>> write_export(path, "a-ledger", first, [first])
    1
    >>> verify_export(path).ok
    True
    """
    header = {
        "format": FORMAT,
        "ledger": ledger,
        "entries": head.seq,
        "head": head.hash,
        "version": __version__,
        "time": now(),
    }
    with whole_file(path) as file:
        file.write(canonical_json(header) + "\n")
        for entry in entries:
            if entry.seq > head.seq:
                break
            file.write(entry.line() + "\n")
    return head.seq


def read_export(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Iterator[Entry]]:
    """Return what an export says of itself, and its entries, read as they are asked for.

    Raises
    ------
    InvalidDataError : it is no export, or a line of it is no entry
    """
    target = pathlib.Path(path)
    lines = _lines(target)
    header: Any = None
    with contextlib.suppress(ValueError):
        header = read_canonical(next(lines, ""))
    if not isinstance(header, dict) or header.get("format") != FORMAT or not isinstance(header.get("ledger"), str):
        raise InvalidDataError(f"{target} is not an export of a ledger. Write one: dpm ledger export, Ledger.export.")
    return header, _entries(target, lines)


@final
class ExportReader:
    """Looks things up in an export, which is read again for each.

    Parameters
    ----------
    path : of the file
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        self.ledger: str = read_export(path)[0]["ledger"]

    def entry(self, seq: int) -> Entry | None:
        """Return the entry of this number; None where there is none."""
        return next((entry for entry in read_export(self._path)[1] if entry.seq == seq), None)

    def once(self, text: str) -> Entry | None:
        """Return the entry of what may happen once; None where it has not happened."""
        return next((entry for entry in read_export(self._path)[1] if entry.once == text), None)

    def of_kind(self, kind: str) -> Iterator[Entry]:
        """Yield all entries of a kind, in order."""
        return (entry for entry in read_export(self._path)[1] if entry.kind == kind)


def verify_export(path: str | os.PathLike[str], witness: Lines | None = None) -> Audit:
    """Audit an export: no database is needed. What was drawn is not in it, so that results are not compared.

    Whether it is the whole ledger the file cannot know: compare `Audit.head` with what the ledger says, or give the
    lines of its witness.

    Parameters
    ----------
    path : of the file
    witness : `Witness(path, ledger).lines()`, where it is at hand

    Examples
    --------
    >>> import tempfile
    >>> import dpmanifold as dpm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with dpm.Ledger(folder / "study.db", principal="ada") as ledger:
    ...     cohort = ledger.population("cohort", cap=dpm.GDP("1"), unit="participant")
    ...     ledger.export(folder / "study.jsonl")
    2
    >>> found = verify_export(folder / "study.jsonl")
    >>> found.ok, found.entries, found.faults
    (True, 2, ())
    """
    header, entries = read_export(path)
    found = audited(header["ledger"], entries, witness=witness)
    said, last = header.get("entries"), found.head or BEFORE_ALL
    wrong = {
        f"the export says that it has {said} entries, and has {found.entries:,}.": said != found.entries,
        "the last entry of the export is not the one that its first line names.": header.get("head") != last,
    }
    return found.with_more(fault for fault, holds in wrong.items() if holds)


def _lines(path: pathlib.Path) -> Iterator[str]:
    try:
        with path.open(encoding="ascii", newline="\n") as file:
            for line in file:
                yield line.removesuffix("\n")
    except UnicodeDecodeError:
        raise InvalidDataError(f"{path} is not an export of a ledger: it is not text.") from None


def _entries(path: pathlib.Path, lines: Iterator[str]) -> Iterator[Entry]:
    for number, line in enumerate(lines, 2):
        try:
            yield Entry.from_line(line)
        except ValueError:
            raise InvalidDataError(
                f"{path}: line {number} is no entry of a ledger. The file was cut or edited."
            ) from None
