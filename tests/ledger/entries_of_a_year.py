"""Entries as a ledger writes them, chained by hand: what histories and pictures are tested on."""

from fractions import Fraction

from dpmanifold import GDP
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.history import History


class Year:
    """A list of entries that grows."""

    def __init__(self):
        self.entries = []
        self.spent = {}

    def add(self, kind, /, population="cohort", **facts):
        """Append an entry; its number."""
        before = self.entries[-1] if self.entries else None
        facts.setdefault("time", f"2026-03-{1 + len(self.entries) % 28:02}T09:30:00Z")
        self.entries.append(Entry.chained("a-ledger", before, kind, population, None, facts))
        return self.entries[-1].seq

    def spend(self, mu, what="mean", data=("dti@1",), principal="ada", key=None, population="cohort", end="drawn"):
        """Append a spend of GDP, with what came of it."""
        total = self.spent[population] = self.spent.get(population, Fraction(0)) + Fraction(mu) ** 2
        number = self.add(
            "spend", population, principal=principal, key=key or f"key-{len(self.entries)}", label=what,
            statistic=what, datasets=list(data), privacy={"kind": "GDP", "mu": mu}, cost=[str(Fraction(mu) ** 2)],
            spent=[str(total)],
        )  # fmt: skip
        if end is not None:
            self.add("started", population, spend=number)
        if end in ("drawn", "lost"):
            self.add(end, population, spend=number)
        return number

    def history(self, entries=None, more=False, **caps):
        """Return the entries as a page, with what came of the spends among them."""
        outcomes = {e.facts["spend"]: e for e in self.entries if e.kind in ("started", "drawn", "lost")}
        return History(entries or self.entries, outcomes, {"cohort": GDP(1.0), **caps}, more)


def year():
    """Return a population's first releases: one lost, one not begun, a cap that was raised."""
    found = Year()
    found.add("created", "")
    found.add("population", cap={"kind": "GDP", "mu": "0.8"}, unit="participant")
    found.add("dataset", id="dti@1", name="dti", version=1, n=412, unit="participant")
    found.add("grant", principal="ben", privacy={"kind": "GDP", "mu": "0.5"}, reason="thesis")
    found.spend("0.3", key="mean-v1")
    found.spend("0.4", "variance", principal="ben", end="lost")
    found.add("cap", cap={"kind": "GDP", "mu": "1"}, was={"kind": "GDP", "mu": "0.8"}, reason="second consent")
    found.spend("0.3", end=None)
    return found
