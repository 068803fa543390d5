"""The witness laid beside a ledger's entries, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

from dpmanifold.ledger.entries import Entry

Lines = Iterable[tuple[int, Entry | None]]
"""Numbered lines of a witness; None for one that is no entry."""


class _Line(NamedTuple):
    number: int
    seq: int
    kind: str
    same: int  # hash of all of its fields: its own hash may be a lie


@final
class Beside:
    """Compares the witness's lines with entries as these pass.

    Where a ledger was reconciled, lines are left behind that the database had forgotten: each of them is named by a
    recovered entry. Any other line that is no entry of the database is a fault.

    Parameters
    ----------
    lines : all of them, or None where there is no witness at hand
    """

    def __init__(self, lines: Lines | None) -> None:
        self.faults: list[str] = []
        self._lines = None if lines is None else iter(lines)
        self._others: dict[str, _Line] = {}  # lines that are not the entry that was looked for, by their hashes
        self._recovered: set[str] = set()
        self._missing: list[Entry] = []  # entries that no line had, since the last that one had

    @property
    def ahead(self) -> int:
        """How many entries at the end the witness does not have yet."""
        return len(self._missing)

    def take(self, entry: Entry) -> None:
        """Look for an entry among the lines."""
        self._recovered.update(lost.hash for lost in stood_for(entry))
        if self._lines is None:
            return
        if not self._found(entry):
            self._missing.append(entry)
            return
        for lacking in self._missing:
            self.faults.append(f"{lacking.title} is not in the witness, and later ones are.")
        self._missing.clear()

    def finish(self) -> None:
        """Look at the lines that are left over."""
        for number, line in self._lines or ():
            self._put_aside(number, line)
        forgotten = [other for name, other in self._others.items() if name not in self._recovered]
        for one in forgotten:
            self.faults.append(
                f"entry {one.seq} ({one.kind}) of the witness, its line {one.number}, is not what the database has."
            )
        if forgotten:
            self._missing.clear()  # not late, but others in their place: said already

    def _found(self, entry: Entry) -> bool:
        other = self._others.get(entry.hash)
        if other is not None and other.same == hash(entry):
            del self._others[entry.hash]
            return True
        for number, line in self._lines or ():
            if line == entry:
                return True
            self._put_aside(number, line)
        return False

    def _put_aside(self, number: int, line: Entry | None) -> None:
        if line is None:
            self.faults.append(f"line {number} of the witness is no entry.")
        else:
            self._others[line.hash] = _Line(number, line.seq, line.kind, hash(line))


def lost_entry(entry: Entry) -> Entry:
    """Return the entry that a recovered one stands for; a ValueError where it names none."""
    return Entry.from_dict(entry.facts.get("entry"))


def stood_for(entry: Entry) -> Iterator[Entry]:
    """Yield what a recovered entry stands for: the lost one, and what that one stood for itself; nothing of others."""
    while entry.kind == "recovered":
        try:
            entry = lost_entry(entry)
        except ValueError:
            return
        yield entry


__all__ = ["Beside", "Lines", "lost_entry", "stood_for"]
