"""What a database has forgotten and its witness has not: taken back as recovered entries, which count and give nothing.

The witness shows that somebody paid, and perhaps saw an answer. So every lost spend is counted, even beyond the cap,
and no answer comes back: the bytes are gone, and drawing anew would buy two draws with one payment. Where both have
entries of their own behind what they have in common, the database's stay as they are and the witness's are added.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from dpmanifold.errors import PromiseError
from dpmanifold.ledger.beside import stood_for
from dpmanifold.ledger.bodies import now, promise_from_body
from dpmanifold.ledger.chain import Writer
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.standing import standing_of
from dpmanifold.privacy.amounts import Amount, added, amount_to_text, cost_of, fits, left_of

_STEPS = ("started", "drawn", "lost")


@final
@dataclass(frozen=True)
class Reconciled:
    """What was done to have a database and its witness agree.

    Attributes
    ----------
    common : the number of the last entry that both had
    own : how many entries the database had of its own behind it: they stay
    recovered : the entries that stand for what only the witness had
    over : the populations of which more is spent now than their cap allows: nothing is left of them
    """

    common: int = 0
    own: int = 0
    recovered: tuple[Entry, ...] = ()
    over: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if not self.recovered:
            return "The database has all that the witness has: nothing was to be recovered."
        spends = sum(entry.facts["kind"] == "spend" for entry in self.recovered)
        lines = [
            f"{len(self.recovered):,} entries that only the witness had were recovered, {spends:,} of them spends. "
            "They count; what was released then is lost here."
        ]
        if self.own:
            lines.append(f"The database had {self.own:,} entries of its own since entry {self.common}: they stay.")
        lines += [f"More than the cap of {name!r} is spent now: nothing is left of it." for name in self.over]
        return "\n".join(lines)


def recover(writer: Writer, common: int, lost: Iterable[Entry], reason: str, principal: str) -> Reconciled:
    """Append what a witness alone remembers, in one transaction; what was appended before is left as it is.

    Parameters
    ----------
    writer : the transaction
    common : the number of the last entry that both have
    lost : what the witness has behind it
    reason : why they differ, for whoever audits the ledger
    principal : who says so
    """
    head = writer.head()
    own = 0 if head is None else head.seq - common
    recovery = _Recovery(writer, common, {"reason": reason, "by": principal, "time": now()})
    for entry in lost:
        recovery.take(entry)
    names = dict.fromkeys(entry.population for entry in recovery.appended if entry.facts["kind"] == "spend")
    over = [name for name in names if _over(writer, name)]
    return Reconciled(common, own, tuple(recovery.appended), tuple(over))


def _over(writer: Writer, population: str) -> bool:
    standing = standing_of(writer, population, "")
    return not fits(standing.total, cost_of(standing.cap, standing.cap))


class _Recovery:
    """Takes entries that the witness alone has, one after the other."""

    def __init__(self, writer: Writer, common: int, said: dict[str, str]) -> None:
        self._writer, self._common, self._said = writer, common, said
        self.appended: list[Entry] = []

    def take(self, lost: Entry) -> None:
        """Append what stands for a lost entry, unless that is there."""
        kind = lost.facts["kind"] if lost.kind == "recovered" else lost.kind
        once = self._once(lost, kind)
        there = None if once is None else self._writer.once(once)
        spare = f"recovered:{lost.hash}"
        if self._writer.once(spare) is not None or (there is not None and lost in stood_for(there)):
            return  # by a reconciliation that was cut short
        facts: dict[str, Any] = lost.facts
        if any(self._writer.entry(before.seq) == before for before in stood_for(lost)):
            kind = "note"  # what it stood for is in this database: counted there
        elif kind == "spend":
            facts = facts | self._counted(lost.population, facts)
        elif kind in _STEPS:
            kind, facts = self._step(lost, facts, there)
        elif there is not None or self._set_anew(lost.population, kind, facts):
            kind = "note"
        body = facts | self._said | {"kind": kind, "entry": lost.to_dict()}
        entry = self._writer.append("recovered", lost.population, once if once and there is None else spare, body)
        self.appended.append(entry)

    def _once(self, lost: Entry, kind: str) -> str | None:
        """Return under which text others look for an entry; None where they do not.

        Numbers of entries mean something else in the database, behind what both have in common.
        """
        if kind in _STEPS:
            spend = lost.facts["spend"]
            return f"outcome:{spend}" if spend <= self._common else None
        return lost.once if lost.once is not None and kind in ("population", "dataset", "spend") else None

    def _counted(self, population: str, facts: dict[str, Any]) -> dict[str, Any]:
        """Return what a spend costs, and the totals after it, which may exceed the cap and the grant."""
        standing = standing_of(self._writer, population, facts["principal"])
        more: dict[str, Any] = {}
        try:
            cost: Amount = cost_of(promise_from_body(facts["promise"]), standing.cap)
        except PromiseError:
            # Both have a population of this name, with caps of different kinds: nobody can add them. Nothing is left.
            cost = left_of(cost_of(standing.cap, standing.cap), standing.total)
            more["uncounted"] = True
        totals = {"spent": added(standing.total, cost), "of grant": added(standing.mine, cost), "cost": cost}
        return more | {name: amount_to_text(amount) for name, amount in totals.items()}

    def _step(self, lost: Entry, facts: dict[str, Any], there: Entry | None) -> tuple[str, dict[str, Any]]:
        """Return what a step of a release means here.

        If the database has the spend and not what came of it, it is lost: what was drawn then must not be drawn again.
        If it has drawn itself, there were two draws for one payment, and the second is paid for now.
        """
        if facts["spend"] > self._common:
            return "note", facts  # its spend is recovered too, and lost by that
        if there is None:
            return "lost", facts
        if there.kind == "drawn" and lost.kind == "drawn":
            spend = self._writer.entry(facts["spend"])
            if spend is not None and spend.kind == "spend":
                return "spend", facts | spend.facts | self._counted(lost.population, spend.facts)
        return "note", facts

    def _set_anew(self, population: str, kind: str, facts: dict[str, Any]) -> bool:
        """Return whether the database has set a cap or a grant of its own since: it stays in force."""
        if kind not in ("cap", "grant"):
            return kind not in ("population", "dataset")
        wanted = [(kind, facts["principal"] if kind == "grant" else None), ("cap", None)]
        last, cap = self._writer.latest(population, wanted)
        own = last is not None and last.seq > self._common and last.kind != "recovered"
        promise = promise_from_body(facts["promise" if kind == "grant" else "cap"])
        return own or cap is None or type(promise) is not type(promise_from_body(cap.facts["cap"]))


__all__ = ["Reconciled", "recover"]
