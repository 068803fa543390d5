"""Rows that a spend is decided by, looked at before they are believed.

Whoever can write to the file of a database can take its triggers away and edit a row. An audit finds that; but a spend
should not have to wait for one. So each row that decides about a spend is compared with its hash and with the columns
it was found by, and each spend names the entries that it was decided by: a row that was put out of sight is missed by
those that name it. That takes as long among a million entries as among ten. What it cannot see is in
docs/theory/ledger.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.bodies import RESTS, Numbers
from dpmanifold.ledger.chain import Reader, Row
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.schema import found_by


def believed(ledger: str, row: Row) -> Entry:
    """Return the entry of a row, or refuse if it is not what was written, or filed under what it does not say."""
    entry, filed = row
    refuse_edited(ledger, entry)
    if found_by(entry) != filed:
        _refuse(entry, "is filed under what it does not say")
    return entry


def refuse_edited(ledger: str, entry: Entry) -> None:
    """Refuse an entry whose hash is of something else."""
    if entry.hash != entry.hash_in(ledger):
        _refuse(entry, "is not what was written")


def rests_on(cap: Entry, spend: Entry | None, own: Entry | None, grant: Entry | None) -> Numbers:
    """Return the numbers of what decides about a spend: cap, last spend, the same principal's, a grant."""
    parts = {"cap": cap, "spend": spend, "own": own, "grant": grant}
    return {name: 0 if entry is None else entry.seq for name, entry in parts.items()}


def refuse_hidden(
    reader: Reader, ledger: str, population: str, numbers: Mapping[str, int], last: Mapping[str, Entry | None]
) -> None:
    """Refuse where entries name others that were not found: they are there no more, or out of sight.

    Parameters
    ----------
    reader : the transaction
    ledger : the ledger's id
    population : whose entries they are
    numbers : of what was found for one principal, as :func:`rests_on` gives them
    last : what was found as the last of its kind, whoever it is about: "cap", "spend", "grant"; and the principal's
        own spend, "own"
    """
    found = {kind: 0 if entry is None else entry.seq for kind, entry in last.items()}
    row = reader.last_row(population)
    if row is not None:
        newest = believed(ledger, row)
        sets, named = row[1][0], newest.seq
        if sets in ("started", "drawn", "lost"):
            sets, named = "spend", newest.facts["spend"]
        if named > found.get(sets, named):
            _refuse(newest, f"follows a {sets} that is not to be found")
    before = []
    for kind, mine in (("spend", False), ("own", True)):
        spend = last[kind]
        if spend is None:
            continue
        said = spend.facts[RESTS]
        before.append(said[kind])
        grant = numbers["grant"] if mine else found["grant"]
        if said["cap"] > found["cap"] or (said["grant"] > grant if mine else bool(said["grant"] and not grant)):
            _refuse(spend, "rests on a cap or a grant that is not to be found")
    wanted = {seq for seq in before if seq}
    rows = reader.rows(wanted)
    for one in rows:
        believed(ledger, one)
    if len(rows) < len(wanted):
        raise LedgerError(f"a spend of population {population!r} is missing: {_OTHER_HANDS}")


_OTHER_HANDS = (
    "the database was written to by other hands, and nothing is spent from it. Run the audit command (dpm ledger "
    "audit); then restore a backup and reconcile it with the witness."
)


def _refuse(entry: Entry, fault: str) -> NoReturn:
    raise LedgerError(f"{entry.title} {fault}: {_OTHER_HANDS}")


__all__ = ["believed", "refuse_edited", "refuse_hidden", "rests_on"]
