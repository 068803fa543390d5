"""What a database has forgotten and its witness has not: taken back as recovered entries, which count and give nothing.

The witness shows that somebody paid, and perhaps saw an answer. So every lost spend is counted, even beyond the cap,
and no answer comes back: the bytes are gone, and drawing anew would buy two draws with one payment. Where both have
entries of their own after what they have in common, the database's stay as they are and the witness's are added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from dpmanifold.errors import PromiseError
from dpmanifold.ledger.entries import RESTS, Entry, many, now, promise_from_body
from dpmanifold.ledger.entry_access import Writer
from dpmanifold.ledger.standing import standing_of
from dpmanifold.privacy.amounts import Amount, added, amount_to_text, cost_of, fits, left_of

_STEPS = ("started", "drawn", "lost")
_PROMISES = {"cap": "cap", "grant": "privacy"}


@final
@dataclass(frozen=True)
class Reconciled:
    """What was done to have a database and its witness agree.

    Attributes
    ----------
    common : the number of the last entry that both had
    own : how many entries the database had of its own after it: they stay
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
        spends = sum(entry.acts_as == "spend" for entry in self.recovered)
        what = many(len(self.recovered), "entry", "entries")
        lines = [
            f"Recovered from the witness: {what}, {many(spends, 'spend', 'spends')} among them. Spends count; what was "
            "released then is lost here."
        ]
        if self.own:
            own = many(self.own, "entry", "entries")
            lines.append(f"The database had {own} of its own since entry {self.common}, which stay.")
        lines += [f"More than the cap of {name!r} is spent now: nothing is left of it." for name in self.over]
        return "\n".join(lines)


def recover(writer: Writer, common: int, lost: Sequence[Entry], reason: str, principal: str) -> Reconciled:
    """Append what a witness alone remembers, in one transaction of its own; what was appended before is left as it is.

    Parameters
    ----------
    writer : the transaction
    common : the number of the last entry that both have
    lost : what the witness has after it
    reason : why they differ, for whoever audits the ledger
    principal : who says so
    """
    head = writer.head()
    own = 0 if head is None else head.seq - common
    recovery = _Recovery(writer, common, lost, {"reason": reason, "by": principal, "time": now()})
    for entry in lost:
        recovery.take(entry)
    names = dict.fromkeys(entry.population for entry in writer.appended if entry.acts_as == "spend")
    over = [name for name in names if standing_of(writer, writer.ledger, name, "").over]
    return Reconciled(common, own, tuple(writer.appended), tuple(over))


class _Recovery:
    """Takes lines that the witness alone has, one after the other.

    A line may itself be a recovered entry, of a database that was then put back as well. What counts is what happened
    at first: what it means is decided anew, by what this database has.
    """

    def __init__(self, writer: Writer, common: int, lost: Sequence[Entry], said: dict[str, str]) -> None:
        self._writer, self._common, self._said = writer, common, said
        self._known = {before.hash for entry in writer.of_kind("recovered") for before in entry.stood_for()}
        self._named = {one.hash: one for line in lost for one in (line, *line.stood_for())}

    def take(self, lost: Entry) -> None:
        """Append what stands for a lost entry, unless that is there: by a reconciliation that was cut short."""
        if lost.hash in self._known:
            return
        kind, once, facts = self._meaning(lost)
        body = facts | self._said | {"kind": kind, "entry": lost.to_dict()}
        entry = self._writer.append("recovered", lost.population, once or f"recovered:{lost.hash}", **body)
        self._known.update(before.hash for before in entry.stood_for())

    def _meaning(self, lost: Entry) -> tuple[str, str | None, dict[str, Any]]:
        """Return what a lost entry does here, as what it may be looked up, and its facts."""
        first = _first(lost)
        facts = first.facts
        if any(before.hash in self._known or self._has(before) for before in lost.stood_for()):
            return "note", None, facts  # counted, or lost, where it stands
        once = first.once if first.once is not None and self._writer.once(first.once) is None else None
        if first.kind == "spend":
            return "spend", once, facts | self._counted(first.population, facts)
        if lost.kind == "recovered" and lost.acts_as == "spend":  # a second draw, which was paid for
            return "spend", None, lost.facts | self._counted(lost.population, lost.facts)
        if first.kind in _STEPS:
            return self._step(first, facts)
        if first.kind in ("population", "dataset"):
            return ("note" if once is None else first.kind), once, facts
        if first.kind in ("cap", "grant") and self._in_force(first.population, first.kind, facts):
            return first.kind, None, facts
        return "note", None, facts

    def _has(self, entry: Entry) -> bool:
        return self._writer.entry(entry.seq) == entry

    def _counted(self, population: str, facts: dict[str, Any]) -> dict[str, Any]:
        """Return what a spend costs, and the totals after it, which may exceed the cap and the grant."""
        standing = standing_of(self._writer, self._writer.ledger, population, facts["principal"])
        more: dict[str, Any] = {RESTS: standing.rests}
        try:
            cost: Amount = cost_of(promise_from_body(facts["privacy"]), standing.cap)
        except PromiseError:
            # Both have a population of this name, with caps of different kinds: nobody can add them. Nothing is left.
            cost = left_of(standing.whole, standing.total)
            more["uncounted"] = True
        totals = {"spent": added(standing.total, cost), "of_grant": added(standing.mine, cost), "cost": cost}
        return more | {name: amount_to_text(amount) for name, amount in totals.items()}

    def _step(self, step: Entry, facts: dict[str, Any]) -> tuple[str, str | None, dict[str, Any]]:
        """Return what a step of a release means here.

        If the database has the spend and not what came of it, it is lost: what was drawn then must not be drawn again.
        If it has drawn itself, there were two draws for one payment, and the second is paid for now.
        """
        spend = _first(self._paid_by(step))
        if spend.kind != "spend" or not self._has(spend):
            return "note", None, facts  # its spend is recovered too, and lost by that
        outcome = f"outcome:{spend.seq}"
        there = self._writer.once(outcome)
        if there is None:
            return "lost", outcome, facts | {"spend": spend.seq}
        if there.kind == "drawn" and step.kind == "drawn":
            return "spend", None, facts | spend.facts | self._counted(step.population, spend.facts)
        return "note", None, facts

    def _paid_by(self, step: Entry) -> Entry:
        """Return the entry that a step names by its number: numbers count along the step's own chain."""
        wanted: int = step.facts["spend"]
        entry = step
        while entry.seq > wanted:
            before = self._named.get(entry.prev)
            if before is None:  # from here on the chain is the database's
                return self._writer.entry(wanted) or step
            entry = before
        return entry

    def _in_force(self, population: str, kind: str, facts: dict[str, Any]) -> bool:
        """Return whether a lost cap or grant is to be in force: not if the database has set one of its own since."""
        wanted = [(kind, facts["principal"] if kind == "grant" else None), ("cap", None)]
        last, cap_entry = self._writer.latest(population, wanted)
        if cap_entry is None:
            return False
        if last is not None and last.seq > self._common and last.kind != "recovered" and last.hash not in self._named:
            return False
        cap, new = (promise_from_body(body) for body in (cap_entry.facts["cap"], facts[_PROMISES[kind]]))
        return type(new) is type(cap) and (kind == "grant" or fits(cost_of(cap, cap), cost_of(new, cap)))


def _first(entry: Entry) -> Entry:
    """Return what an entry stood for at first: itself, if it is not recovered."""
    for before in entry.stood_for():
        entry = before
    return entry
