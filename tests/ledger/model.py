"""What a ledger must do, as simply as it can be said: a list of facts, and a second list that a witness remembers.

Nothing here knows how a ledger is kept. A fact is an object, and is the same fact wherever it stands: in a database, in
a backup of it, in the memory of the witness, or taken back from there.
"""

from collections import defaultdict
from dataclasses import dataclass, field
from fractions import Fraction

from dpmanifold.privacy import GDP


@dataclass(eq=False)
class Fact:
    """Something that an entry says; `about` is the spend that a step belongs to."""

    kind: str
    who: str = ""
    key: str = ""
    request: str = ""
    promise: object = None
    about: object = None
    content: bytes = b""


@dataclass(eq=False)
class Line:
    """A fact where it stands: as it happened, or taken back from the witness."""

    fact: Fact
    recovered: bool = False


@dataclass
class Paid:
    """What became of a key."""

    fact: Fact
    state: str
    content: bytes = b""


@dataclass
class State:
    """What a database amounts to."""

    cap: object = None
    total: Fraction = Fraction(0)
    mine: dict = field(default_factory=lambda: defaultdict(Fraction))
    grants: dict = field(default_factory=dict)
    paid: dict = field(default_factory=dict)


def cost(promise):
    """Return what a promise takes: the square of mu, or epsilon."""
    (number,) = promise.exact.values()
    return number**2 if isinstance(promise, GDP) else number


class Model:
    """A database, its backups, and what its witness remembers."""

    def __init__(self, cap):
        self.database = [Line(Fact("population", promise=cap))]
        self.remembered = [self.database[0]]

    def state(self):
        """Go through the database."""
        found = State()
        spends = {}
        for line in self.database:
            fact = line.fact
            if fact.kind in ("population", "cap"):
                found.cap = fact.promise
            elif fact.kind == "grant":
                found.grants[fact.who] = fact.promise
            elif fact.kind == "spend":
                found.total += cost(fact.promise)
                found.mine[fact.who] += cost(fact.promise)
                paid = spends[fact] = Paid(fact, "lost" if line.recovered else "spent")
                found.paid.setdefault((fact.who, fact.key), paid)
            elif fact.about in spends:
                paid = spends[fact.about]
                if paid.state in ("released", "lost"):
                    continue
                paid.state = "lost" if line.recovered else {"drawn": "released"}.get(fact.kind, fact.kind)
                paid.content = fact.content
        return found

    def expects(self, who, key, request, promise, fails, content):
        """Return what a request does: the steps that are committed, and its answer, or the name of an error."""
        state = self.state()
        paid = state.paid.get((who, key))
        steps = []
        if paid is None:
            grant = state.grants.get(who)
            if state.total + cost(promise) > cost(state.cap) or (state.grants and grant is None):
                return [], "BudgetError"
            if grant is not None and state.mine[who] + cost(promise) > cost(grant):
                return [], "BudgetError"
            paid = Paid(Fact("spend", who, key, request, promise), "spent")
            steps = [paid.fact]
        elif paid.fact.request != request:
            return [], "InvalidArgumentError"
        if paid.state == "released":
            return [], paid.content
        if paid.state == "lost":
            return [], "ReleaseLostError"
        if paid.state == "started":  # whoever began it is gone
            return [Fact("lost", about=paid.fact)], "ReleaseLostError"
        steps.append(Fact("started", about=paid.fact))
        if fails:
            return [*steps, Fact("lost", about=paid.fact)], "ReleaseLostError"
        return [*steps, Fact("drawn", about=paid.fact, content=content)], content

    def happen(self, facts):
        """Have them in the database."""
        self.database += [Line(fact) for fact in facts]

    def witness(self, count=None):
        """Have the witness remember the database, or as many of its lines."""
        there = {id(line) for line in self.remembered}
        self.remembered += [line for line in self.database[:count] if id(line) not in there]

    @property
    def refused(self):
        """Whether the witness has something last that the database has not."""
        return self.remembered[-1] not in self.database

    def reconcile(self):
        """Take back what the witness remembers and the database does not have, in the order in which it happened."""
        there = {line.fact for line in self.database}
        for line in self.remembered:
            if line.fact not in there:
                there.add(line.fact)
                self.database.append(Line(line.fact, recovered=True))
        self.database.append(Line(Fact("note")))
        self.witness()
