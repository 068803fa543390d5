"""The first entry of a ledger: who it is, where its witness is, and by what its key of fingerprints is known."""

from __future__ import annotations

import uuid
from typing import Any

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.bodies import now
from dpmanifold.ledger.chain import Writer
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.fingerprints import key_check, new_key, read_key
from dpmanifold.ledger.places import Places
from dpmanifold.ledger.stores import Store
from dpmanifold.ledger.witness import Witness

FORMAT = "dpmanifold ledger 1"


def created(store: Store, places: Places, principal: str) -> Entry:
    """Make a ledger in tables that are there and empty, and return its first entry; or that of whoever was faster.

    Witness and key are made before it is committed, and taken as they are if an attempt before this one left them:
    a witness that is not empty belongs to a ledger, and is refused.
    """
    ledger = str(uuid.uuid4())

    def begin(writer: Writer) -> Entry:
        there = writer.entry(1)
        if there is not None:
            return there
        witness = places.new_witness()
        Witness(places.witness_path(witness), ledger).create()
        secret = places.secret_path(witness)
        key = read_key(secret) if secret.exists() else new_key(secret)
        body: dict[str, Any] = {
            "format": FORMAT,
            "ledger": ledger,
            "witness": witness,
            "key": key_check(key, ledger),
            "principal": principal,
            "time": now(),
        }
        return writer.append("created", "", "created", body)

    return store.write(ledger, begin)


def facts_of_ledger(entry: Entry) -> dict[str, Any]:
    """Return what the first entry says, or refuse what is not of a ledger that this version can read."""
    facts = entry.facts
    if entry.kind != "created" or facts.get("format") != FORMAT:
        raise LedgerError(f"the first entry is not that of a {FORMAT}. Upgrade dpmanifold, or give another database.")
    return facts
