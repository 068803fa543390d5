"""A release against a ledger, or an export of it: was it paid for, is the payment there, and is it what was drawn."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.ledger.entries import Entry, promise_from_body
from dpmanifold.ledger.export import ExportReader
from dpmanifold.privacy.amounts import amount_from_text, as_promise_up
from dpmanifold.privacy.budget_accounts import Receipt
from dpmanifold.privacy.promises import ApproxDP, PureDP
from dpmanifold.release import Release
from dpmanifold.stats.payment import outcome_of, releases_in
from dpmanifold.stats.query import find_query
from dpmanifold.storage.chain import sha256_of_bytes

if TYPE_CHECKING:
    from dpmanifold.ledger.entry_access import Reader

    Pages = Reader | ExportReader  # what of a ledger is looked at: of a database, or of an export, which has no results


@dataclass(frozen=True)
class Compared:
    """What came of holding a release against a ledger.

    Attributes
    ----------
    faults : what is wrong, in sentences
    shown : what is shown where nothing is wrong, and what is not, in sentences
    """

    faults: tuple[str, ...]
    shown: str


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


def receipt_faults(receipt: Receipt, ledger: str, pages: Pages) -> list[str]:
    """Return what is wrong with a receipt, in sentences: [] if the ledger has the entry that it names, unchanged.

    Parameters
    ----------
    receipt : of a release
    ledger : the ledger's id
    pages : what to look at
    """
    if receipt.ledger != ledger:
        return [f"the receipt is of ledger {receipt.ledger}, and this is ledger {ledger}."]
    entry = _payment(receipt, pages)
    if entry is None:
        there = "has no such entry" if pages.entry(receipt.sequence) is None else "has another entry there"
        return [
            f"the receipt names entry {receipt.sequence} with the hash {receipt.hash}, and the ledger {there}: the "
            "ledger was written anew or put back to an older state since, or the receipt was edited."
        ]
    if entry.hash_in(ledger) != entry.hash:
        return [_edited(entry)]
    if entry.acts_as != "spend":
        return [f"entry {receipt.sequence}, which the receipt names, paid for nothing: it is of kind {entry.kind}."]
    named, mine, paid = f"entry {receipt.sequence}", receipt.population, entry.population
    wrong = {
        f"{named} was paid by {paid!r}, and not by {mine!r}.": paid != mine,
        f"the receipt says that {receipt.promise} was spent by {named}, which it was not.": not _same_total(
            receipt, entry
        ),
    }
    return [fault for fault, holds in wrong.items() if holds]


def _payment(receipt: Receipt, pages: Pages) -> Entry | None:
    """Return the entry that a receipt names, or the one that was lost and recovered since."""
    entry = pages.entry(receipt.sequence)
    if entry is not None and entry.hash == receipt.hash:
        return entry
    lost = (lost for one in pages.of_kind("recovered") for lost in one.stood_for())
    return next((one for one in lost if one.hash == receipt.hash), None)


def _edited(entry: Entry) -> str:
    return f"{entry.title} is not what was written: its hash is of something else."


def _same_total(receipt: Receipt, entry: Entry) -> bool:
    """Whether a receipt states the total of its entry as it is rounded there."""
    stated, total = receipt.promise, amount_from_text(entry.facts["spent"])
    if (
        isinstance(stated, PureDP) and len(total) == 2 and total[1] == 0
    ):  # of an approximate cap without any delta spent
        total = total[:1]
    parts = 2 if isinstance(stated, ApproxDP) else 1
    return len(total) == parts and as_promise_up(stated, total) == stated


def compared(thing: object, ledger: str, pages: Pages) -> Compared:
    """Hold a release, a result made of releases, or a receipt against a ledger.

    The entry that paid must be there, unchanged, and must have paid for such a release: this promise, this statistic,
    as many units as the data set has. And the release must be what was drawn for it, bit for bit, wherever the pages
    can tell.

    Parameters
    ----------
    thing : a release, a result made of releases, or a receipt
    ledger : the ledger's id
    pages : what to look at
    """
    faults: list[str] = []
    unseen = ""
    for receipt in receipts_of(thing):
        found = receipt_faults(receipt, ledger, pages)
        if not found and not isinstance(thing, Receipt):
            parts = [part for part in getattr(thing, "released", ()) if part.receipt == receipt]
            found, more = _release_faults(parts, receipt, ledger, pages)
            unseen = unseen or more
        faults += found
    where = "export" if isinstance(pages, ExportReader) else "ledger"
    if isinstance(thing, Receipt):
        shows = f"The {where} has the entry that the receipt names."
    elif unseen:
        paid = f"The {where} has an entry that paid for such a release, of this statistic and this promise."
        shows = f"{paid} NOT shown: {unseen}."
    else:
        shows = f"The {where} has the entry that paid for it, and it is what was drawn then, bit for bit."
    return Compared(tuple(faults), shows)


def _release_faults(releases: Sequence[Release], receipt: Receipt, ledger: str, pages: Pages) -> tuple[list[str], str]:
    """Return what is wrong with the releases of one receipt that holds, and what cannot be told about them."""
    spend = _payment(receipt, pages)
    assert spend is not None  # the receipt holds
    faults = list(_promise_faults(releases, spend))
    here = pages.entry(receipt.sequence)
    if here is None or here.hash != receipt.hash:
        return faults, "which data, and that it is what was drawn: the payment was recovered, and no results ever are"
    faults += _number_faults(releases, spend, ledger, pages)
    drawn = pages.once(f"outcome:{receipt.sequence}")
    if drawn is not None and drawn.hash_in(ledger) != drawn.hash:
        return [*faults, _edited(drawn)], ""
    if drawn is None or drawn.kind != "drawn":
        return [*faults, "nothing was drawn for the entry that the receipt names, or it was lost."], ""
    not_drawn = f"the release is not what was drawn in entry {drawn.seq}: it was edited."
    if not isinstance(pages, ExportReader):
        content = pages.result(drawn.seq)
        if content is None or sha256_of_bytes(content) != drawn.facts["sha256"]:
            return [*faults, f"{drawn.title} has not the bytes that were drawn: its result was changed."], ""
        kept = [one.to_dict(answers=False) for one in releases_in(content)]
        return faults + [not_drawn for release in releases if release.to_dict(answers=False) not in kept], ""
    if sha256_of_bytes(outcome_of(releases)) == drawn.facts["sha256"]:
        return faults, ""
    query = find_query(spend.facts["statistic"])
    if query is not None and query.result is dict:  # a file has one of them
        one_hash = "an export has one hash for the releases of all classes, and no results. The ledger itself can tell"
        return faults, f"that it is what was drawn: {one_hash}"
    return [*faults, not_drawn], ""


def _promise_faults(releases: Sequence[Release], spend: Entry) -> Iterator[str]:
    """Yield where releases are not of the statistic and the promise that were paid for."""
    asked, promise = str(spend.facts["statistic"]), promise_from_body(spend.facts["privacy"])
    query = find_query(asked)
    made_of = (asked,) if query is None else query.releases  # of a distribution that is gone
    for release in releases:
        if release.statistic not in made_of:
            yield f"entry {spend.seq} paid for a {asked}, and the release is of a {release.statistic}."
        if release.privacy != promise:
            yield f"entry {spend.seq} paid for {promise}, and the release promises {release.privacy}."


def _number_faults(releases: Sequence[Release], spend: Entry, ledger: str, pages: Pages) -> list[str]:
    """Return where releases are of another number of units than the data sets that were paid for have."""
    names = (str(name).rpartition("@") for name in spend.facts["datasets"])
    entries = [pages.once(f"dataset:{spend.population}:{plain}:{version}") for plain, _, version in names]
    sets = [entry for entry in entries if entry is not None]
    if len(sets) < len(entries):
        return [f"entry {spend.seq} paid for data that the ledger does not have."]
    changed = [_edited(entry) for entry in sets if entry.hash_in(ledger) != entry.hash]
    if changed:
        return changed
    found, facts = [release.n for release in releases], [entry.facts["facts"] for entry in sets]
    query = find_query(spend.facts["statistic"])
    if query is None or query.sample.are_counts(found, facts):
        return []
    return [f"the release is of another number of units than the data that entry {spend.seq} paid for."]


def verify_receipt(thing: object, export: str | os.PathLike[str]) -> list[str]:
    """Return what is wrong with a release against an export of the ledger that paid for it; [] if nothing is.

    Of a single release, a region, an interval and a test everything is compared (:func:`compared`): what was drawn by
    its hash. Of one class of :func:`~dpmanifold.private_class_means` the payment alone, with its promise and number of
    units: there is one hash for all classes. An export tells what the ledger says as long as it is the ledger's:
    compare its last hash (:func:`verify_export`).

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
    ...     mean = dpm.private_mean(np.zeros((9, 1)), ball, dpm.GDP("0.5"), units=np.arange(9), budget=cohort)
    ...     entries = ledger.export(folder / "study.jsonl")
    >>> verify_receipt(mean, folder / "study.jsonl")
    []
    """
    return list(compared_with_export(thing, export).faults)


def compared_with_export(thing: object, export: str | os.PathLike[str]) -> Compared:
    """Hold a release, a result made of releases, or a receipt against an export: see :func:`verify_receipt`."""
    pages = ExportReader(export)
    return compared(thing, pages.ledger, pages)
