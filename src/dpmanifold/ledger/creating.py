"""The first entry of a ledger: who it is, where its witness is, and by what its key of fingerprints is known."""

from __future__ import annotations

import os
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

FORMAT = "dpmanifold ledger 2"


def created(store: Store, places: Places, principal: str) -> Entry:
    """Make a ledger in tables that are there and empty, and return its first entry; or that of whoever was faster.

    Witness and key are made before it is committed, the witness first. A creation that was cut short leaves an empty
    witness, and perhaps a key that no entry names: these are taken. A key without such a witness, a witness with lines
    and attempts are of a ledger that was here: refused.
    """
    ledger = str(uuid.uuid4())

    def begin(writer: Writer) -> Entry:
        there = writer.entry(1)
        if there is not None:
            return there
        witness = places.new_witness()
        refuse_remains(places)
        Witness(places.witness_path(witness), ledger).create()
        secret = places.secret_path(witness)
        key = read_key(secret, own=True) if secret.exists() else new_key(secret)
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


def refuse_remains(places: Places) -> None:
    """Refuse to begin a ledger where other files tell that there was one: see :func:`created`."""
    stored = places.new_witness()
    witness, secret = places.witness_path(stored), places.secret_path(stored)
    left = [path for path in (witness,) if path.exists() and path.stat().st_size]
    if not witness.exists() or left:
        left += [path for path in (secret,) if os.path.lexists(path)]
    if not places.is_address:
        left += [path for path in (places.attempts_path,) if os.path.lexists(path)]
    if left:
        places.refuse_as_gone(left)


def facts_of_ledger(entry: Entry) -> dict[str, Any]:
    """Return what the first entry says, or refuse what is not of a ledger that this version can read."""
    facts = entry.facts
    if entry.kind != "created" or facts.get("format") != FORMAT:
        raise LedgerError(f"the first entry is not that of a {FORMAT}. Upgrade dpmanifold, or give another database.")
    return facts
