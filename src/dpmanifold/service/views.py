"""What people are shown: plain facts, ready for a page and for JSON. Nothing here holds records, or what was drawn."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, final


@dataclass(frozen=True)
class View:
    """Facts for a page; :meth:`to_dict` gives the same for JSON."""

    def to_dict(self) -> dict[str, Any]:
        """Return names and values, ready for JSON."""
        return asdict(self)


Amounts = dict[str, Any]
"""A promise as `Promise.to_dict` gives it."""


@final
@dataclass(frozen=True)
class DataSetView(View):
    """A registered data set, as one person sees it.

    Attributes
    ----------
    ref : "population/name", by which it is asked about
    population, name, version, id : where it is registered; the id is name@version
    space : in text
    ball : the public ball that it was registered with
    n, unit : how many units there are, and what one is
    protects : what the population calls who is protected
    classes, units_by_class : public labels, and how many units each has; None where there are none, or not public
    labels_public : whether they are; None without classes
    covariate : what is public about a covariate; None without
    cap, granted : the population's cap, and this person's grant (None without one)
    left, left_words : what this person can still spend; None for nothing
    spent_share : how much of the cap everybody has spent together, from 0 to 1
    approval : whether a steward decides on each release
    slot : how many seconds pass from a spend to its publication at least
    own_slot : what the steward has set it to at least; None where that is left to the service
    note : what the steward says about it
    paused : whether nothing can be asked about its population, as a release was lost and no steward has looked yet
    statistics : names of what can be asked
    """

    ref: str
    population: str
    name: str
    version: int
    id: str
    space: str
    ball: dict[str, Any]
    n: int
    unit: str
    protects: str
    classes: list[Any] | None
    units_by_class: list[int] | None
    labels_public: bool | None
    covariate: dict[str, Any] | None
    cap: Amounts
    cap_words: str
    granted: Amounts | None
    left: Amounts | None
    left_words: str
    spent_share: float
    approval: bool
    slot: float
    own_slot: float | None
    note: str
    paused: bool
    statistics: list[str]


@final
@dataclass(frozen=True)
class PriceView(View):
    """What a question would cost.

    Attributes
    ----------
    ref, statistic : what is asked of which data set
    cost, cost_words : the promise that is spent
    left, left_words, after, after_words : what this person has before and after; None for nothing
    more : about how many more questions like this one fit after it
    approval : whether a steward decides first
    seconds : until it would be published, as things stand
    """

    ref: str
    statistic: str
    cost: Amounts
    cost_words: str
    left: Amounts | None
    left_words: str
    after: Amounts | None
    after_words: str
    more: int
    approval: bool
    seconds: float


@final
@dataclass(frozen=True)
class ReleaseView(View):
    """A release that was asked for.

    Attributes
    ----------
    id : its own
    ref, dataset, population : of which data
    statistic, title, options, privacy, privacy_words : what was asked
    key : under which it was asked
    analyst : by whom
    state : "waiting" for a steward, "refused" by one, "pending" until it is published, "released", or "lost": paid for,
        and never to be answered
    asked, publishes : when, in UTC; the latter is None while nothing was paid
    seconds : until it is published; 0 once it is
    decided_by, decided, reason : of a steward's decision
    receipt : of the ledger, once released
    pictured, reported : whether picture and report are there
    """

    id: str
    ref: str
    dataset: str
    population: str
    statistic: str
    title: str
    options: dict[str, Any]
    privacy: Amounts
    privacy_words: str
    key: str
    analyst: str
    state: str
    asked: str
    publishes: str | None
    seconds: float | None
    decided_by: str | None
    decided: str | None
    reason: str | None
    receipt: dict[str, Any] | None
    pictured: bool
    reported: bool


@final
@dataclass(frozen=True)
class GrantView(View):
    """How much of a population one analyst may spend, and has; `share` is what was spent of the grant, from 0 to 1."""

    principal: str
    granted: Amounts
    granted_words: str
    spent: Amounts | None
    spent_words: str
    left: Amounts | None
    left_words: str
    share: float


@final
@dataclass(frozen=True)
class PopulationView(View):
    """The people whom one cap protects: what was spent of it, whether it is paused, grants, and data sets."""

    name: str
    unit: str
    cap: Amounts
    cap_words: str
    spent: Amounts | None
    spent_words: str
    unspent: Amounts | None
    unspent_words: str
    spent_share: float
    paused: bool
    grants: list[GrantView]
    datasets: list[DataSetView]


@final
@dataclass(frozen=True)
class LineView(View):
    """One spend.

    Attributes
    ----------
    sequence, time : of its entry in the ledger
    analyst : who; "others" where that is not this person's to know
    what, privacy : for what, and how much, in words
    share, total_share : of the cap, by itself and with all before it
    state : "released", "lost", "pending"
    release : the id of the release, where this person may see it
    """

    sequence: int
    time: str
    analyst: str
    what: str
    privacy: str
    share: float
    total_share: float
    state: str
    release: str | None


@final
@dataclass(frozen=True)
class HistoryView(View):
    """What used a cap up; `after` is where the next page starts, None on the last."""

    population: str
    cap: Amounts
    cap_words: str
    lines: list[LineView]
    after: int | None


@final
@dataclass(frozen=True)
class RegistrationView(View):
    """Data that a steward asked to have registered; the message may describe them, and is for stewards alone."""

    id: str
    steward: str
    population: str
    name: str
    request: dict[str, Any]
    state: str
    message: str
    dataset: str | None
    created: str
    ended: str | None


@final
@dataclass(frozen=True)
class EventView(View):
    """A line of the audit log."""

    seq: int
    at: str
    kind: str
    who: str
    facts: dict[str, Any]


@final
@dataclass(frozen=True)
class AuditView(View):
    """What an audit found: of the ledger with its witness, and of the audit log; `head` is the last entry's hash."""

    ok: bool
    entries: int
    head: str
    faults: list[str]
    event_faults: list[str]
    notes: list[str]
    populations: dict[str, Any]


@final
@dataclass(frozen=True)
class Curve(View):
    """What to expect for each amount of a promise on a fixed grid.

    Attributes
    ----------
    statistic, kind, delta : of what, and for which kind of promise
    points : one for each amount, in order: "amount" (text), "privacy", "error" and "of_radius" (None where none can be
        stated), "mechanism", "verdict", and "refused" with the reason where the promise cannot be kept
    """

    statistic: str
    kind: str
    delta: str | None
    points: list[dict[str, Any]]
