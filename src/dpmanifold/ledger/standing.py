"""How a population stands: its cap, what was spent of it, and what one principal has left. Exact, from its entries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn, final

from dpmanifold.errors import BudgetError, LedgerError
from dpmanifold.ledger.entries import RESTS, Entry, Numbers, promise_from_body
from dpmanifold.ledger.entry_access import Reader, Row, found_by
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import Amount, added, amount_from_text, cost_of, fits, left_of, nothing, refusal


@final
@dataclass(frozen=True)
class Standing:
    """How a population stood at one moment, for one principal.

    Attributes
    ----------
    cap : the cap
    total : what was spent of it
    mine : what the principal spent of it
    granted : whether the population has grants, so that who has none has nothing
    grant : what the principal may spend in all; None without a grant
    rests : the numbers of the entries that say so, which the next spend names
    """

    cap: Promise
    total: Amount
    mine: Amount
    granted: bool
    grant: Promise | None
    rests: Numbers

    @property
    def whole(self) -> Amount:
        """What may be spent in all, in the cap's currency."""
        return cost_of(self.cap, self.cap)

    @property
    def over(self) -> bool:
        """Whether more was spent than the cap allows: only what was recovered can do that."""
        return not fits(self.total, self.whole)

    @property
    def left(self) -> Amount:
        """What the principal can still spend, in the cap's currency: the smaller of what cap and grant leave."""
        of_cap = left_of(self.whole, self.total)
        if not self.granted:
            return of_cap
        if self.grant is None:
            return nothing(self.cap)
        of_grant = left_of(cost_of(self.grant, self.cap), self.mine)
        return tuple(min(pair) for pair in zip(of_cap, of_grant, strict=True))

    def after(self, promise: Promise, population: str, principal: str) -> tuple[Amount, Amount, Amount]:
        """Return what a promise costs, and both totals after it; a BudgetError where it does not fit."""
        cost = cost_of(promise, self.cap)
        total, mine = added(self.total, cost), added(self.mine, cost)
        if not fits(total, self.whole):
            raise BudgetError(refusal(promise, self.cap, self.total, self.whole, of=f"population {population!r}"))
        if self.granted and self.grant is None:
            raise BudgetError(
                f"{principal!r} has no grant of population {population!r}, and others have: nothing was spent. Ask its "
                "steward for one."
            )
        if self.grant is not None and not fits(mine, cost_of(self.grant, self.cap)):
            of = f"grant of {principal!r}"
            raise BudgetError(refusal(promise, self.grant, self.mine, cost_of(self.grant, self.cap), of=of))
        return cost, total, mine


def standing_of(reader: Reader, ledger: str, population: str, principal: str) -> Standing:
    """Return how a population stands, for a principal; refuse where what says so is not what was written.

    Parameters
    ----------
    reader : the transaction
    ledger : the ledger's id
    population, principal : their names
    """
    wanted = [("cap", None), ("spend", None), ("spend", principal), ("grant", None), ("grant", principal)]
    rows = reader.latest_rows(population, wanted)
    cap_entry, spend, own, any_grant, grant = (None if row is None else _believed(ledger, row) for row in rows)
    if cap_entry is None:
        raise LedgerError(f"the ledger has no population {population!r}.")
    cap = promise_from_body(cap_entry.facts["cap"])
    last = {"cap": cap_entry, "spend": spend, "own": own, "grant": any_grant}
    rests = _numbers({**last, "grant": grant})
    _refuse_hidden(reader, ledger, population, rests, last)
    return Standing(
        cap,
        _amount(spend, "spent", cap),
        _amount(own, "of_grant", cap),
        any_grant is not None,
        None if grant is None else promise_from_body(grant.facts["privacy"]),
        rests,
    )


def _amount(entry: Entry | None, name: str, cap: Promise) -> Amount:
    return nothing(cap) if entry is None else amount_from_text(entry.facts[name])


def _numbers(last: Mapping[str, Entry | None]) -> Numbers:
    """Return the numbers of entries, 0 where there is none."""
    return {kind: 0 if entry is None else entry.seq for kind, entry in last.items()}


# ------------------------------------------------- rows that a spend is decided by, looked at before they are believed
#
# Whoever can write to the file of a database can take its triggers away and edit a row. An audit finds that; but a
# spend should not have to wait for one. So each row that decides about a spend is compared with its hash and with the
# columns it was found by, and each spend names the entries that it was decided by: a row that was put out of sight is
# missed by those that name it. That takes as long among a million entries as among ten. What it cannot see is in
# docs/theory/ledger.md.


def _believed(ledger: str, row: Row) -> Entry:
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


def _refuse_hidden(
    reader: Reader, ledger: str, population: str, rests: Numbers, last: Mapping[str, Entry | None]
) -> None:
    """Refuse where entries name others that were not found: they are there no more, or out of sight.

    Parameters
    ----------
    reader : the transaction
    ledger : the ledger's id
    population : whose entries they are
    rests : the numbers of what was found for one principal
    last : what was found as the last of its kind, whoever it is about: "cap", "spend", "grant"; and the principal's
        own spend, "own"
    """
    found = _numbers(last)
    row = reader.last_row(population)
    if row is not None:
        newest = _believed(ledger, row)
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
        grant = rests["grant"] if mine else found["grant"]
        if said["cap"] > found["cap"] or (said["grant"] > grant if mine else bool(said["grant"] and not grant)):
            _refuse(spend, "rests on a cap or a grant that is not to be found")
    wanted = {seq for seq in before if seq}
    rows = reader.rows(wanted)
    for one in rows:
        _believed(ledger, one)
    if len(rows) < len(wanted):
        raise LedgerError(f"a spend of population {population!r} is missing: {_OTHER_HANDS}")


_OTHER_HANDS = (
    "the database was written to by other hands, and nothing is spent from it. Run the audit command (dpm ledger "
    "audit); then restore a backup and reconcile it with the witness."
)


def _refuse(entry: Entry, fault: str) -> NoReturn:
    raise LedgerError(f"{entry.title} {fault}: {_OTHER_HANDS}")
