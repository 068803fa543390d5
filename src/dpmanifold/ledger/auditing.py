"""An audit: every entry of a ledger looked at once, its hashes, its sums and what it was allowed to do.

Nothing is taken on trust but the rules. Amounts are added anew, exactly; caps and grants are those that the entries
before set; what may happen once is seen to have happened once. An entry that was edited is named by its hash. A chain
that was written anew as a whole is right in itself: only the witness, or a receipt, tells it from the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, final

from dpmanifold.errors import DPManifoldError
from dpmanifold.ledger.entries import RESTS, Entry, Numbers, many, promise_from_body
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import (
    Amount,
    added,
    amount_from_text,
    amount_to_text,
    as_promise_up,
    cost_of,
    fits,
    in_words,
    nothing,
)
from dpmanifold.storage.chain import sha256_of_bytes
from dpmanifold.summary import facts_text

MOST = 100
"""Faults that are listed; how many there are is counted beyond that."""

Lines = Iterable[tuple[int, Entry | None]]
"""Numbered lines of a witness; None for one that is no entry."""

Content = Callable[[int], bytes | None]
"""Gives the stored bytes of a drawn entry, None where there are none."""


@final
@dataclass
class Totals:
    """What entries say about one population, added up anew.

    Attributes
    ----------
    cap, unit : the cap in force, and what a unit is
    total : what was spent, in the cap's currency
    stated : the same as the last entry states it
    spends, recovered : how many spends there are, and how many of them the witness alone had remembered
    """

    cap: Promise
    unit: str
    total: Amount
    stated: Amount
    spends: int = 0
    recovered: int = 0
    mine: dict[str, Amount] = field(default_factory=dict)
    grants: dict[str, Promise] = field(default_factory=dict)
    last: dict[tuple[str, str], int] = field(default_factory=dict)  # numbers of the last cap, grant and spend, by whom

    def rests(self, who: str) -> Numbers:
        """Return the numbers that a spend of a principal must name now."""
        wanted = {"cap": ("cap", ""), "spend": ("spend", ""), "own": ("spend", who), "grant": ("grant", who)}
        return {name: self.last.get(of, 0) for name, of in wanted.items()}

    @property
    def over(self) -> bool:
        """Whether more was spent than the cap allows: only what was recovered can do that."""
        return not fits(self.total, cost_of(self.cap, self.cap))

    @property
    def spent(self) -> Promise | None:
        """What was spent, rounded up; None for nothing."""
        return as_promise_up(self.cap, self.total)

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        spent = self.spent
        return {
            "cap": self.cap.to_dict(),
            "unit": self.unit,
            "spent": None if spent is None else spent.to_dict(),
            "amount": amount_to_text(self.total),
            "over": self.over,
            "spends": self.spends,
            "recovered": self.recovered,
        }


@final
@dataclass(frozen=True)
class Audit:
    """What an audit found.

    Attributes
    ----------
    ledger : the ledger's id
    entries : how many there are
    head : the hash of the last one: who notes it can tell later whether anything before it was changed
    populations : what each has spent, added up anew
    faults : sentences that name the entry, the first 100; none if all is well
    more : how many faults there are beyond these
    notes : what an auditor should know and is no fault
    """

    ledger: str
    entries: int
    head: str
    populations: Mapping[str, Totals]
    faults: tuple[str, ...]
    more: int = 0
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no fault was found."""
        return not self.faults

    def with_more(self, faults: Iterable[str], notes: Iterable[str] = ()) -> Audit:
        """Return the same audit with what was found around the entries."""
        return replace(self, faults=(*self.faults, *faults), notes=(*self.notes, *notes))

    def facts(self) -> list[tuple[str, str]]:
        """Names and texts to show."""
        found = [("ledger", self.ledger), ("entries", f"{self.entries:,}"), ("last hash", self.head)]
        for name, account in self.populations.items():
            spent = "nothing" if account.spent is None else in_words(account.spent)
            over = ", MORE THAN THE CAP" if account.over else ""
            recovered = f", {account.recovered:,} of them recovered" if account.recovered else ""
            spends = many(account.spends, "spend", "spends")
            found.append((name, f"{spent} of {in_words(account.cap)} spent{over}, {spends}{recovered}"))
        found += [("fault", fault) for fault in self.faults]
        if self.more:
            found.append(("fault", f"and {self.more:,} more"))
        found += [("note", note) for note in self.notes]
        faults = len(self.faults) + self.more
        return [*found, ("verdict", many(faults, "FAULT", "FAULTS") if faults else "no fault found")]

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return {
            "ledger": self.ledger,
            "entries": self.entries,
            "head": self.head,
            "populations": {name: account.to_dict() for name, account in self.populations.items()},
            "ok": self.ok,
            "faults": list(self.faults),
            "more": self.more,
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        return facts_text("Audit of a ledger", True, self.facts())


def audited(
    ledger: str,
    entries: Iterable[Entry],
    content: Content | None = None,
    witness: Lines | None = None,
) -> Audit:
    """Audit all entries of a ledger in one pass.

    Parameters
    ----------
    ledger : its id
    entries : all of them, in order
    content : gives the bytes of what was drawn, to be compared with their sha256; None where they are not at hand
    witness : the numbered lines of the witness, read before the entries were; None where it is not at hand

    Examples
    --------
    >>> first = Entry.chained("a-ledger", None, "created", "", None, {"ledger": "a-ledger"})
    >>> audited("a-ledger", [first]).ok
    True
    """
    auditor, beside = Auditor(ledger, content), _Beside(witness)
    for entry in entries:
        auditor.take(entry)
        beside.take(entry)
    return auditor.verdict(beside)


@final
class Auditor:
    """Follows a ledger entry by entry.

    Parameters
    ----------
    ledger : its id
    content : as for :func:`audited`
    """

    def __init__(self, ledger: str, content: Content | None = None) -> None:
        self.populations: dict[str, Totals] = {}
        self._ledger, self._content = ledger, content
        self._before: Entry | None = None
        self._count = 0
        self._faults: list[str] = []
        self._found = 0
        self._once: set[int] = set()  # hashes of texts: a million of them take some 60 MB
        self._data: dict[str, dict[str, str]] = {}  # by marks of records: populations, and an id in each
        self._open: dict[int, tuple[str, bool]] = {}  # spends without an outcome: whose, and whether begun

    def take(self, entry: Entry) -> None:
        """Look at the next entry."""
        self._count += 1
        self._say(entry.faults(self._ledger, self._before))
        self._before = entry
        if entry.once is not None:
            if hash(entry.once) in self._once:
                self._say([f"{entry.title} is the second of what may happen once: {entry.once!r}."])
            self._once.add(hash(entry.once))
        try:
            self._say(f"{entry.title} {fault}" for fault in self._rules(entry))
        except (KeyError, TypeError, ValueError, AttributeError, DPManifoldError):
            self._say([f"{entry.title} cannot be read: its body is not that of such an entry."])

    def verdict(self, beside: _Beside) -> Audit:
        """Return what was found."""
        beside.finish()
        self._say(beside.faults)
        notes = []
        if beside.missing:
            which = "entry is" if len(beside.missing) == 1 else f"{len(beside.missing):,} entries are"
            notes.append(f"the last {which} not in the witness yet, which is told when the ledger is next opened.")
        for places in self._data.values():
            if len(places) > 1:
                names = ", ".join(f"{known} of {population!r}" for population, known in places.items())
                notes.append(f"the same records are in several populations, whose caps add up for them: {names}.")
        head = "" if self._before is None else self._before.hash
        more = self._found - len(self._faults)
        return Audit(self._ledger, self._count, head, self.populations, tuple(self._faults), more, tuple(notes))

    def _say(self, faults: Iterable[str]) -> None:
        for fault in faults:
            self._found += 1
            if len(self._faults) < MOST:
                self._faults.append(fault)

    def _rules(self, entry: Entry) -> Iterator[str]:
        """Yield what an entry did that it was not allowed to do, and take it into the accounts."""
        facts = entry.facts
        kind = entry.kind
        if kind == "recovered":
            lost = Entry.from_dict(facts.get("entry"))
            if lost.hash != lost.hash_in(self._ledger) or lost.population != entry.population:
                yield "stands for an entry that was never in this ledger."
            kind = facts["kind"]
        match kind:
            case "created":
                if entry.seq != 1 or facts["ledger"] != self._ledger:
                    yield f"does not begin ledger {self._ledger}."
            case "population":
                yield from self._new_population(entry, facts)
            case "cap":
                yield from self._new_cap(entry, facts)
            case "grant":
                account, who = self.populations[entry.population], facts["principal"]
                account.grants[who], account.last["grant", who] = promise_from_body(facts["privacy"]), entry.seq
            case "dataset":
                if entry.population not in self.populations:
                    yield "is of a population that is not there."
                self._data.setdefault(facts["records"], {})[entry.population] = facts["id"]
            case "spend":
                yield from self._spend(entry, facts)
            case "started" | "drawn" | "lost":
                yield from self._step(entry, kind, facts)
            case "note" if entry.kind == "recovered":
                pass
            case _:
                yield "is of a kind that is not known."

    def _new_population(self, entry: Entry, facts: dict[str, Any]) -> Iterator[str]:
        if entry.population in self.populations:
            yield "makes a population that is there already."
            return
        cap = promise_from_body(facts["cap"])
        last = {("cap", ""): entry.seq}
        self.populations[entry.population] = Totals(cap, facts["unit"], nothing(cap), nothing(cap), last=last)

    def _new_cap(self, entry: Entry, facts: dict[str, Any]) -> Iterator[str]:
        account = self.populations[entry.population]
        cap = promise_from_body(facts["cap"])
        old, new = cost_of(account.cap, account.cap), cost_of(cap, account.cap)
        if type(cap) is not type(account.cap) or not fits(old, new):
            yield f"lowers the cap, or changes its kind: {account.cap} was in force."
        if entry.kind == "cap" and promise_from_body(facts["was"]) != account.cap:
            yield f"says that another cap was in force before than {account.cap}."
        if not facts["reason"]:
            yield "gives no reason."
        account.cap, account.last["cap", ""] = cap, entry.seq

    def _spend(self, entry: Entry, facts: dict[str, Any]) -> Iterator[str]:
        account = self.populations[entry.population]
        who, recovered = facts["principal"], entry.kind == "recovered"
        cost = amount_from_text(facts["cost"])
        if not (recovered and facts.get("uncounted")) and cost != cost_of(
            promise_from_body(facts["privacy"]), account.cap
        ):
            yield "does not cost what its promise costs."
        mine = added(account.mine.get(who, nothing(account.cap)), cost)
        stated = added(account.stated, cost)
        account.total = added(account.total, cost)
        account.spends += 1
        if amount_from_text(facts["spent"]) != stated:
            yield "states a total that is not the one before and its cost."
        if amount_from_text(facts["of_grant"]) != mine:
            yield f"states a total of {who} that is not the one before and its cost."
        if facts[RESTS] != account.rests(who):
            yield "does not name the cap, the grant and the spends that decided about it."
        account.last["spend", ""] = account.last["spend", who] = entry.seq
        account.stated, account.mine[who] = amount_from_text(facts["spent"]), amount_from_text(facts["of_grant"])
        if recovered:
            account.recovered += 1
            return  # paid for elsewhere and lost: it may exceed what it likes, and has no outcome
        self._open[entry.seq] = entry.population, False
        if account.over:
            yield f"goes beyond the cap {account.cap}."
        if account.grants:
            grant = account.grants.get(who)
            if grant is None:
                yield f"is by {who}, who had no grant."
            elif not fits(mine, cost_of(grant, account.cap)):
                yield f"goes beyond the grant {grant} of {who}."

    def _step(self, entry: Entry, kind: str, facts: dict[str, Any]) -> Iterator[str]:
        spend = facts["spend"]
        population, begun = self._open.get(spend, (None, False))
        if population != entry.population:
            yield f"belongs to entry {spend}, which is no spend of its population, or has an outcome already."
            return
        if kind == "started":
            if begun:
                yield f"begins the work of entry {spend} a second time."
            self._open[spend] = population, True
            return
        del self._open[spend]
        if kind == "drawn":
            if not begun:
                yield f"was drawn for entry {spend} before its work was begun."
            if self._content is not None:
                found = self._content(entry.seq)
                if found is None or sha256_of_bytes(found) != facts["sha256"]:
                    yield "has not the bytes that were drawn: its result was changed or removed."


@final
class _Beside:
    """Compares the witness's lines with entries as these pass.

    Where a ledger was reconciled, lines are left behind that the database had forgotten: each of them is named by a
    recovered entry. Any other line that is no entry of the database is a fault.

    Parameters
    ----------
    lines : all of them, or None where there is no witness at hand
    """

    def __init__(self, lines: Lines | None) -> None:
        self.faults: list[str] = []
        self._lines = None if lines is None else iter(lines)
        # Lines that are not the entry that was looked for, by their own hashes, which may be lies: with each the hash
        # of all of its fields, and what to call it.
        self._others: dict[str, tuple[int, str]] = {}
        self._recovered: set[str] = set()
        self.missing: list[Entry] = []  # entries that no line had, since the last that one had

    def take(self, entry: Entry) -> None:
        """Look for an entry among the lines."""
        self._recovered.update(lost.hash for lost in entry.stood_for())
        if self._lines is None:
            return
        if not self._found(entry):
            self.missing.append(entry)
            return
        self.faults += [f"{lacking.title} is not in the witness, and later ones are." for lacking in self.missing]
        self.missing.clear()

    def finish(self) -> None:
        """Look at the lines that are left over."""
        for number, line in self._lines or ():
            self._put_aside(number, line)
        forgotten = [line for name, (_, line) in self._others.items() if name not in self._recovered]
        self.faults += [f"{line}, is not what the database has." for line in forgotten]
        if forgotten:
            self.missing.clear()  # not late, but others in their place: said already

    def _found(self, entry: Entry) -> bool:
        same, _ = self._others.get(entry.hash, (None, ""))
        if same == hash(entry):
            del self._others[entry.hash]
            return True
        for number, line in self._lines or ():
            if line == entry:
                return True
            self._put_aside(number, line)
        return False

    def _put_aside(self, number: int, line: Entry | None) -> None:
        if line is None:
            self.faults.append(f"line {number} of the witness is no entry.")
        else:
            self._others[line.hash] = hash(line), f"{line.title} of the witness, its line {number}"
