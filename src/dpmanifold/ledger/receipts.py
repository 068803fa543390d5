"""A release's receipt against a ledger, or an export of it: was it paid for, and is the payment still there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.ledger.beside import stood_for
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.export import entry_in_export
from dpmanifold.privacy.accounts import Receipt
from dpmanifold.privacy.amounts import amount_from_text, as_promise_up
from dpmanifold.privacy.promises import ApproxDP, PureDP
from dpmanifold.release import Release
from dpmanifold.stats.settling import releases_in

EntryAt = Callable[[int], Entry | None]


def receipts_of(thing: object) -> list[Receipt]:
    """Return the receipts of a release, of whatever is made of releases, or of a receipt; refuse what has none.

    Parameters
    ----------
    thing : a Receipt, a Release, or a result that is made of them
    """
    if isinstance(thing, Receipt):
        return [thing]
    releases = getattr(thing, "released", None)
    if releases is None:
        raise InvalidArgumentError(f"a release or a receipt is needed, got {shown(thing)}.")
    found = [getattr(release, "receipt", None) for release in releases]
    if not found or any(receipt is None for receipt in found):
        raise InvalidArgumentError(
            "the release carries no receipt: no ledger paid for it. Those made with budget=ledger.population(...) do."
        )
    receipts = [receipt for receipt in found if isinstance(receipt, Receipt)]
    return [receipt for i, receipt in enumerate(receipts) if receipt not in receipts[:i]]


def receipt_faults(
    receipt: Receipt, ledger: str, entry_at: EntryAt, recovered: Callable[[], Iterable[Entry]]
) -> list[str]:
    """Return what is wrong with a receipt, in sentences: [] if the ledger has the entry that it names.

    Parameters
    ----------
    receipt : of a release
    ledger : the ledger's id
    entry_at : gives its entry of a number, None where there is none
    recovered : gives its recovered entries: a payment that the database had forgotten is one of them
    """
    if receipt.ledger != ledger:
        return [f"the receipt is of ledger {receipt.ledger}, and this is ledger {ledger}."]
    entry = entry_at(receipt.sequence)
    if entry is None or entry.hash != receipt.hash:
        before = (lost for one in recovered() for lost in stood_for(one) if lost.hash == receipt.hash)
        there = "has no such entry" if entry is None else "has another entry there"
        entry = next(before, None)
        if entry is None:
            return [
                f"the receipt names entry {receipt.sequence} with the hash {receipt.hash}, and the ledger {there}: the "
                "ledger was written anew or put back to an older state since, or the receipt was edited."
            ]
    if entry.kind != "spend" and not (entry.kind == "recovered" and entry.facts.get("kind") == "spend"):
        return [f"entry {receipt.sequence}, which the receipt names, paid for nothing: it is of kind {entry.kind}."]
    wrong = []
    if entry.population != receipt.population:
        wrong.append(f"entry {receipt.sequence} was paid by {entry.population!r}, and not by {receipt.population!r}.")
    if not _same_total(receipt, entry):
        wrong.append(
            f"the receipt says that {receipt.promise} was spent by entry {receipt.sequence}, which it was not."
        )
    return wrong


def _same_total(receipt: Receipt, entry: Entry) -> bool:
    """Whether a receipt states the total of its entry as it is rounded there."""
    stated, total = receipt.promise, amount_from_text(entry.facts["spent"])
    if (
        isinstance(stated, PureDP) and len(total) == 2 and total[1] == 0
    ):  # of an approximate cap without any delta spent
        total = total[:1]
    parts = 2 if isinstance(stated, ApproxDP) else 1
    return len(total) == parts and as_promise_up(stated, total) == stated


def content_faults(release: Release, content: bytes | None, drawn: Entry | None) -> list[str]:
    """Return what is wrong with a release as the outcome of its payment: it must be among what was drawn.

    Parameters
    ----------
    release : one that has a receipt
    content : the bytes that the ledger keeps of it, None where it has none
    drawn : the outcome of the entry that paid, None where there is none
    """
    if drawn is None or drawn.kind != "drawn" or content is None:
        return ["nothing was drawn for the entry that the receipt names, or it was lost."]
    if hashlib.sha256(content).hexdigest() != drawn.facts["sha256"]:
        return [f"entry {drawn.seq} (drawn) has not the bytes that were drawn: its result was changed."]
    kept = [one.to_dict(answers=False) for one in releases_in(content)]
    return (
        []
        if release.to_dict(answers=False) in kept
        else [f"the release is not what was drawn in entry {drawn.seq}: it was edited."]
    )


def verify_receipt(thing: object, export: str | os.PathLike[str]) -> list[str]:
    """Return what is wrong with the receipts of a release against an export of the ledger; [] if nothing is.

    Parameters
    ----------
    thing : a release, a result made of releases, or a receipt
    export : the path of a file that `Ledger.export` wrote

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import dpmanifold as dpm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    >>> with dpm.Ledger(folder / "study.db", principal="ada") as ledger:
    ...     cohort = ledger.population("cohort", cap=dpm.GDP("1"), unit="participant")
    ...     mean = dpm.private_mean(np.zeros((9, 1)), ball, dpm.GDP("0.5"), units=dpm.EACH_RECORD, budget=cohort)
    ...     entries = ledger.export(folder / "study.jsonl")
    >>> verify_receipt(mean, folder / "study.jsonl")
    []
    """
    ledger, entry_at, recovered = entry_in_export(export)
    return [fault for receipt in receipts_of(thing) for fault in receipt_faults(receipt, ledger, entry_at, recovered)]


__all__ = ["content_faults", "receipt_faults", "receipts_of", "verify_receipt"]
