"""How a population stands: its cap, what was spent of it, and what one principal has left. Exact, from its entries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from dpmanifold.errors import BudgetError, LedgerError
from dpmanifold.ledger.bodies import Numbers, promise_from_body
from dpmanifold.ledger.chain import Reader
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.relying import believed, refuse_hidden, rests_on
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
    def left(self) -> Amount:
        """What the principal can still spend, in the cap's currency: the smaller of what cap and grant leave."""
        of_cap = left_of(cost_of(self.cap, self.cap), self.total)
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
        whole = cost_of(self.cap, self.cap)
        if not fits(total, whole):
            raise BudgetError(refusal(promise, self.cap, self.total, whole, of=f"population {population!r}"))
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
    cap_entry, spend, own, any_grant, grant = (None if row is None else believed(ledger, row) for row in rows)
    if cap_entry is None:
        raise LedgerError(f"the ledger has no population {population!r}.")
    cap = promise_from_body(cap_entry.facts["cap"])
    rests = rests_on(cap_entry, spend, own, grant)
    last = {"cap": cap_entry, "spend": spend, "own": own, "grant": any_grant}
    refuse_hidden(reader, ledger, population, rests, last)
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
