"""What keeps a ledger honest: audits, exports, receipts, and the mending of a database that has forgotten."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TypeVar

from dpmanifold.ledger.auditing import Audit, audited
from dpmanifold.ledger.chain import Reader, Writer
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.export import write_export
from dpmanifold.ledger.receipts import Compared, Pages, compared
from dpmanifold.ledger.reconciling import Reconciled, recover
from dpmanifold.ledger.schema import found_by
from dpmanifold.ledger.stores import Store
from dpmanifold.ledger.witness import Witness
from dpmanifold.privacy.accounts import checked_text
from dpmanifold.storage.filesystems import same_volume

T = TypeVar("T")

_TOGETHER = (
    "the witness is on the database's own volume: if both are restored together, nothing here notices. Keep the last "
    "hash elsewhere."
)


class Keeping(ABC):
    """The part of a ledger that an auditor and a steward use. See :class:`Ledger`."""

    id: str
    principal: str
    store: Store
    witness: Witness

    @property
    @abstractmethod
    def where(self) -> str:
        """The path or the address it was opened with."""

    @abstractmethod
    def entries(self, first: int = 1) -> Iterator[Entry]:
        """Yield all entries from a number on, in order."""

    @abstractmethod
    def write(self, action: Callable[[Writer], T]) -> T:
        """Append in one transaction."""

    def audit(self) -> Audit:
        """Look at every entry once: hashes, sums, caps, grants, outcomes, results, and the witness line by line.

        Reading holds nobody up. What is written meanwhile is left to the next audit.
        """
        lines = self.witness.lines()  # as it is now: all of it must be in the database
        head = self.store.read(Reader.head)
        kept: dict[int, bytes] = {}
        misfiled: list[str] = []

        def entries() -> Iterator[Entry]:
            for entry, filed, content in self.store.pages(Reader.whole_rows, 0, lambda row: row[0].seq):
                if head is None or entry.seq > head.seq:
                    return
                kept.clear()
                if content is not None:
                    kept[entry.seq] = content
                if _found_by(entry) not in (filed, None):
                    misfiled.append(f"{entry.title} is filed under what it does not say.")
                yield entry

        guards = [
            f"the trigger {name} is missing, or is not the one that the ledger made: entries could be changed."
            for name in self.store.broken_guards()
        ]
        found = audited(self.id, entries(), kept.get, lines).with_faults([*misfiled, *guards])
        together = "://" not in self.where and same_volume(self.where, self.witness.path)
        return found.with_notes([_TOGETHER] if together else [])

    def reconcile(self, reason: str) -> Reconciled:
        """Have the database take back what only its witness remembers: after a backup was put back, for one.

        Spends that the database had forgotten count again, even beyond the cap; then nothing is left. What was
        released for them does not come back: whoever asks again under their keys is told that it is lost. Entries that
        the database has of its own stay. Done again, it changes nothing.

        A ledger that has to be reconciled refuses to be opened: `Ledger(where, reconcile=reason)` does both.

        Parameters
        ----------
        reason : why they differ, for whoever audits the ledger
        """
        words = checked_text(reason, "reason")
        done = [Reconciled()]

        def take_back(common: int, lost: list[Entry]) -> None:
            done.append(self.write(lambda writer: recover(writer, common, lost, words, self.principal)))

        with self.store.witnessing():
            self.witness.reconcile(self.entries, take_back)
        return done[-1]

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all entries as JSON lines, and return how many there are; :func:`verify_export` checks the file.

        Parameters
        ----------
        path : of the file, which is written whole or not at all
        """
        head = self.store.read(Reader.head)
        assert head is not None  # a ledger has its first entry
        return write_export(path, self.id, head, self.entries())

    def verify(self, release: object) -> list[str]:
        """Return what is wrong with a release as this ledger knows it, in sentences; [] if nothing is.

        It was paid for by the entry that its receipt names, and it is what was drawn then. A payment that was recovered
        counts; what was drawn for it is no longer there to be compared.

        Parameters
        ----------
        release : a release, a result made of releases, or a receipt alone
        """
        return list(self.compared(release).faults)

    def compared(self, release: object) -> Compared:
        """Hold a release against this ledger: what is wrong, and what is shown; as :meth:`verify`.

        Parameters
        ----------
        release : a release, a result made of releases, or a receipt alone
        """
        pages = Pages(
            self.id,
            lambda seq: self.store.read(lambda reader: reader.entry(seq)),
            lambda text: self.store.read(lambda reader: reader.once(text)),
            lambda: self.store.read(lambda reader: reader.of_kind("recovered")),
            lambda seq: self.store.read(lambda reader: reader.result(seq)),
        )
        return compared(release, pages)


def _found_by(entry: Entry) -> tuple[str, str] | None:
    """Return what an entry should be found by; None where its body cannot be read, which is said elsewhere."""
    try:
        return found_by(entry)
    except (ValueError, AttributeError):
        return None


__all__ = ["Keeping"]
