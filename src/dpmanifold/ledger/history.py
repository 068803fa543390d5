"""What was spent, by whom and on what: a page of a ledger's entries, put together for people.

The entries of a ledger are a journal: a spend, that its work was started, what came of it. Here they are folded into
one line per event, with the state that each release is in, and added up by what they were for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, final, overload

from rich import box
from rich.table import Table
from rich.text import Text

from dpmanifold.ledger.entries import Entry, many, promise_from_body
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import Amount, amount_from_text, amount_to_text, share_of
from dpmanifold.result import picture_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RELEASED, LOST, STARTED, SPENT = "released", "lost", "started", "spent"
# Steps of a release: its state, and no lines of their own.
_STATES = {"drawn": RELEASED, "lost": LOST, "started": STARTED}


@final
@dataclass(frozen=True)
class Line:
    """One spend, with what came of it.

    Attributes
    ----------
    sequence : the number of its entry
    time : when, in UTC
    population, principal, key : whose budget, who spent it, and under which key
    what : the statistic
    data : the data sets
    privacy : what was promised, as it was typed, such as "mu 0.3"
    cost : what it took from the cap, exactly, in the cap's currency (of GDP: mu squared)
    spent : what the population had spent after it, in the same currency
    state : "released", "lost", "started" (somebody is at work on it) or "spent" (to be taken up by its key)
    recovered : whether it was taken from the witness, after the database had lost it
    """

    sequence: int
    time: str
    population: str
    principal: str
    key: str
    what: str
    data: tuple[str, ...]
    privacy: str
    cost: Amount
    spent: Amount
    state: str
    recovered: bool = False

    @property
    def about(self) -> str:
        """What it was for: the statistic and the data."""
        return f"{self.what} of {' and '.join(self.data)}" if self.data else self.what

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON; amounts are fractions in text."""
        return {
            **vars(self),
            "data": list(self.data),
            "cost": amount_to_text(self.cost),
            "spent": amount_to_text(self.spent),
        }


@final
@dataclass(frozen=True)
class Use:
    """What all releases of one statistic from the same data took together.

    Attributes
    ----------
    about : the statistic and the data
    releases : how many there were, lost ones included
    lost : how many of them were lost
    cost : together, in the cap's currency
    share : of the cap, in the dimension that is fuller
    """

    about: str
    releases: int
    lost: int
    cost: Amount
    share: float


@final
class History(Sequence[Entry]):
    """A page of a ledger: its entries in order, and the releases among them with what came of each.

    Parameters
    ----------
    entries : in the order of the ledger
    outcomes : the latest step of each spend among them, by its sequence number: a started, drawn or lost entry,
        which may come after this page
    caps : the cap of each population now
    more : whether there are entries after this page

    Examples
    --------
    >>> from dpmanifold import GDP
    >>> spend = {"principal": "ada", "key": "k", "statistic": "mean", "datasets": ["dti@1"], "time": "2026-11-16",
    ...          "privacy": {"kind": "GDP", "mu": "0.3"}, "cost": ["9/100"], "spent": ["9/100"]}
    >>> first = Entry.chained("a-ledger", None, "spend", "cohort", None, spend)
    >>> history = History([first], caps={"cohort": GDP(0.6)})
    >>> [(line.about, line.privacy, line.state) for line in history.releases]
    [('mean of dti@1', 'mu 0.3', 'spent')]
    >>> history.uses()[0].share
    0.25
    """

    def __init__(
        self,
        entries: Iterable[Entry],
        outcomes: Mapping[int, Entry] | None = None,
        caps: Mapping[str, Promise] | None = None,
        more: bool = False,
    ) -> None:
        self._entries = tuple(entries)
        begun, ended = (
            {entry.facts["spend"]: entry for entry in self._entries if entry.kind in kinds}
            for kinds in (("started",), ("drawn", "lost"))
        )
        self._outcomes = begun | dict(outcomes or {}) | ended
        self.caps = dict(caps or {})
        self.more = more
        self.releases = tuple(self._line(entry) for entry in self._entries if entry.acts_as == "spend")

    @property
    def next(self) -> int | None:
        """What `after=` is for the next page; None where this is the last."""
        return self._entries[-1].seq if self.more and self._entries else None

    def uses(self) -> list[Use]:
        """Return what used it up: the releases by statistic and data, the largest share first."""
        found: dict[tuple[str, str], list[Line]] = {}
        for line in self.releases:
            found.setdefault((line.population, line.about), []).append(line)
        several = len({population for population, _ in found}) > 1
        uses = []
        for (population, about), lines in found.items():
            cost = tuple(sum(parts, Fraction(0)) for parts in zip(*(line.cost for line in lines), strict=True))
            lost = sum(line.state == LOST for line in lines)
            name = f"{population}: {about}" if several else about
            uses.append(Use(name, len(lines), lost, cost, share_of(self.caps[population], cost)))
        return sorted(uses, key=lambda use: -use.share)

    def raised(self, population: str) -> list[tuple[int, Promise]]:
        """Return when a cap was raised among these entries: the entry's number, and what the cap was before."""
        found = [(entry.seq, entry.facts) for entry in self if entry.kind == "cap" and entry.population == population]
        return [(sequence, promise_from_body(facts["was"])) for sequence, facts in found]

    def table(self) -> Table:
        """Return a line for each event. What is the same in all lines is left out: see :meth:`sentences`."""
        spends = {line.sequence: line for line in self.releases}
        told = [entry for entry in self if entry.seq in spends or entry.kind not in _STATES]
        who = len({line.principal for line in self.releases}) > 1
        whose = len({entry.population for entry in told if entry.population}) > 1
        table = Table(box=box.SIMPLE, pad_edge=False)
        names = [*(["population"] if whose else []), *(["who"] if who else [])]
        for heading in ("no.", "day", *names, "privacy", "spent"):
            right = heading in ("no.", "spent")
            table.add_column(heading, justify="right" if right else "left", no_wrap=heading not in names)
        table.add_column("what", overflow="fold")
        for entry in told:
            line = spends.get(entry.seq)
            first = [str(entry.seq), str(entry.facts.get("time", ""))[:10], *([entry.population] if whose else [])]
            if line is None:
                table.add_row(*map(Text, first), *([""] if who else []), "", "", Text(_event(entry)))
                continue
            spent = f"{100 * share_of(self.caps[line.population], line.spent):.1f} %"
            words = [*first, *([line.principal] if who else []), line.privacy, spent]
            style = {RELEASED: "", LOST: "red"}.get(line.state, "yellow")
            table.add_row(*map(Text, words), Text(_told(line), style=style))
        return table

    def sentences(self) -> list[str]:
        """Say what the table leaves out, and what used the caps up."""
        lines = []
        people = {line.principal for line in self.releases}
        if len(people) == 1:
            lines.append(f"All was spent by {people.pop()}.")
        for use in self.uses():
            lost = f", {use.lost} of them lost" if use.lost else ""
            lines.append(
                f"{100 * use.share:5.1f} % of the cap: {use.about} ({many(use.releases, 'release', 'releases')}{lost})"
            )
        if self.next is not None:
            lines.append(f"There is more, after entry {self.next}.")
        return lines

    def picture(self) -> Figure:
        """Return the picture of what used the caps up (:func:`dpmanifold.plots.history`); needs matplotlib."""
        return picture_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything ready for JSON: entries as they are, and the releases among them."""
        return {
            "caps": {name: cap.to_dict() for name, cap in self.caps.items()},
            "entries": [{**entry.to_dict(), "body": entry.facts} for entry in self._entries],
            "releases": [line.to_dict() for line in self.releases],
            "uses": [{**vars(use), "cost": amount_to_text(use.cost)} for use in self.uses()],
            "next": self.next,
        }

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | Sequence[Entry]:
        return self._entries[index]

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"History({many(len(self), 'entry', 'entries')}, {many(len(self.releases), 'release', 'releases')})"

    def _line(self, entry: Entry) -> Line:
        """Return the line of a spend, or of one that was recovered."""
        facts, recovered = entry.facts, entry.kind == "recovered"
        step = self._outcomes.get(entry.seq)
        state = LOST if recovered else SPENT if step is None else _STATES.get(step.kind, LOST)
        return Line(
            entry.seq, facts["time"], entry.population, facts["principal"], facts["key"],
            facts["statistic"] or facts["label"], tuple(facts["datasets"]), promise_words(facts["privacy"]),
            amount_from_text(facts["cost"]), amount_from_text(facts["spent"]), state, recovered,
        )  # fmt: skip


def promise_words(record: Mapping[str, Any]) -> str:
    """Return the parameters of a promise as they were typed; floats are written in hexadecimal there.

    >>> promise_words({"kind": "ApproxDP", "epsilon": "0.5", "delta": "1e-6"})
    'epsilon 0.5, delta 1e-6'
    >>> promise_words({"kind": "GDP", "mu": (0.25).hex()})
    'mu 0.25'
    """
    names = sorted((name for name in record if name != "kind"), key=lambda name: name == "delta")
    return ", ".join(f"{name} {_number(record[name])}" for name in names)


def _number(text: str) -> str:
    return repr(float.fromhex(text)).removesuffix(".0") if text.startswith("0x") else text


def _told(line: Line) -> str:
    """Say what was spent on: the statistic, the data, the key, and the state where nothing was released."""
    state = "" if line.state == RELEASED else f"{line.state.upper()}: "
    return f"{state}{line.about}, key {line.key}" + (" (recovered)" if line.recovered else "")


def _event(entry: Entry) -> str:
    """Say what happened that was no spend."""
    facts = entry.facts
    reason = f": {facts['reason']}" if facts.get("reason") else ""
    match entry.kind:
        case "created":
            return "the ledger was created"
        case "population":
            return f"population {entry.population}, cap {promise_words(facts['cap'])}"
        case "cap":
            return f"cap raised to {promise_words(facts['cap'])}{reason}"
        case "dataset":
            return f"data set {facts['id']}, {facts['n']:,} {facts['unit']}s"
        case "grant":
            return f"{facts['principal']} may spend {promise_words(facts['privacy'])}{reason}"
    return f"{entry.kind}{reason}"
