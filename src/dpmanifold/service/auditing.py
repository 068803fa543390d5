"""What an auditor reads: everything but records. Nothing here writes."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Mapping

from dpmanifold.ledger.auditing import Totals
from dpmanifold.service import events
from dpmanifold.service.accounts import AccountView
from dpmanifold.service.person import AUDITOR, STEWARD, Person
from dpmanifold.service.views import AuditView, EventView


class Auditing(Person):
    """The auditor's part of a desk. Stewards may ask for an audit, too."""

    def audit(self) -> AuditView:
        """Look at every entry of the ledger, its witness, and every line of the audit log."""
        self.require(AUDITOR, STEWARD)
        found = self.service.ledger.audit()
        faults = events.verify(self.service.database)
        return AuditView(
            ok=found.ok and not faults,
            entries=found.entries,
            head=found.head,
            faults=list(found.faults),
            event_faults=faults,
            notes=[*found.notes, *_recovered(found.populations)],
            populations={name: totals.to_dict() for name, totals in found.populations.items()},
        )

    def events(self, after: int = 0, limit: int = 100) -> list[EventView]:
        """Return a page of the audit log, from behind a number on."""
        self.require(AUDITOR)
        page = events.page(self.service.database, after, max(1, min(limit, 1000)))
        return [EventView(one.seq, one.at, one.kind, one.who, dict(one.facts)) for one in page]

    def accounts(self) -> list[AccountView]:
        """Return all accounts, without passwords."""
        self.require(AUDITOR)
        return self.service.accounts.listed()

    def export(self) -> bytes:
        """Return the ledger as JSON lines, which `dpm ledger verify-export` checks."""
        self.require(AUDITOR)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ledger.jsonl"
            self.service.ledger.export(path)
            return path.read_bytes()


def _recovered(populations: Mapping[str, Totals]) -> list[str]:
    """Say which spends the database had forgotten: it was put back from a backup."""
    return [
        f"{totals.recovered} of the spends of {name} were recovered from the witness, after the ledger had been put "
        "back from a backup; what they released is lost. Why it was put back stands in the export."
        for name, totals in populations.items()
        if totals.recovered
    ]
