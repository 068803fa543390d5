"""Data sets of a population: versions of data by their fingerprints, with what is public about them.

What is public is in an entry, and the records are opened once they are paid for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, final

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import Argument, InvalidArgumentError, LedgerError, Public
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.entry_access import Reader, Writer
from dpmanifold.serialization import ball_from_dict, ball_to_dict
from dpmanifold.stats.curator import Notice
from dpmanifold.stats.inputs import EACH_RECORD, as_batch
from dpmanifold.stats.marks import content_beside, set_apart
from dpmanifold.stats.registered_data import SELECTION, Covariate, Opened, Registered, survey
from dpmanifold.storage.chain import sha256_of

if TYPE_CHECKING:
    from dpmanifold.ledger.population import Population

_UNNAMED = "data-"  # and the beginning of the digest


class Marks(NamedTuple):
    """Fingerprints under the ledger's key: of the whole content, and of the records alone."""

    content: str
    records: str


@final
@dataclass(frozen=True)
class DataSet:
    """One version of data that a population's people are in.

    Attributes
    ----------
    id : NAME@VERSION, as requests and entries have it
    name, version : the version is counted from 1
    fingerprint : of the content, under the ledger's key
    records : of the records alone, under the same key: the same whoever owns them and whatever their classes are
    facts : what is public about it
    about : of one that was registered by name, how it is to be opened: the ball, what bad records count as, and which
        columns hold units and classes; where it has a covariate also its column, its range and whether it is public;
        where it was read from files, how they became records
    """

    id: str
    name: str
    version: int
    fingerprint: str
    records: str
    facts: Mapping[str, Any]
    about: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def of(entry: Entry) -> DataSet:
        """Return the data set that an entry registers."""
        names = ("id", "name", "version", "fingerprint", "records", "facts")
        return DataSet(**{name: entry.facts[name] for name in names}, about=entry.facts.get("about", {}))

    @property
    def n(self) -> int:
        """How many units there are."""
        return int(self.facts["n"])

    @property
    def unit(self) -> str:
        """What a unit is."""
        return str(self.facts["unit"])

    @property
    def space(self) -> str:
        """The space of its points, in text."""
        return str(self.facts.get("space", ""))


def registered(
    writer: Writer,
    population: str,
    principal: str,
    marks: Marks,
    facts: Mapping[str, Any],
    name: str | None,
    about: Mapping[str, Any] | None = None,
) -> DataSet:
    """Return the data set with these marks and facts; append it where there is none.

    Without a name it is the first version that was ever registered with them, so that a request stays the same
    request whatever is registered later. With a name it is that name's; new content, or another way to open it, makes a
    new version.
    """
    found = found_set(writer, population, marks, facts, name, about)
    if found is not None:
        return found
    digest = _digest(marks, facts)
    if name is None:
        name = _UNNAMED + digest[:12]
    version = 1 + max((known.version for known in versions_of(writer, population, name)), default=0)
    said = {
        "id": f"{name}@{version}",
        "name": name,
        "version": version,
        "fingerprint": marks.content,
        "records": marks.records,
        "digest": digest,
        "facts": dict(facts),
        "n": facts["n"],
        "unit": facts["unit"],
        "principal": principal,
        **({"about": dict(about)} if about else {}),
    }
    return DataSet.of(writer.append("dataset", population, f"dataset:{population}:{name}:{version}", **said))


def found_set(
    reader: Reader,
    population: str,
    marks: Marks,
    facts: Mapping[str, Any],
    name: str | None,
    about: Mapping[str, Any] | None = None,
) -> DataSet | None:
    """Return the data set that :func:`registered` returns where it is there; None where it is not."""
    if name is None:
        first = reader.first(population, "dataset", _digest(marks, facts))
        return None if first is None else DataSet.of(first)
    versions = versions_of(reader, population, name)
    same = (known for known in versions if (known.fingerprint, dict(known.facts)) == (marks.content, dict(facts)))
    return next((known for known in same if _opened_alike(dict(known.about), dict(about or {}))), None)


def _opened_alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether two registrations open data in one way; of arrays nobody knows how files became them."""
    chosen = one.pop(SELECTION, None), other.pop(SELECTION, None)
    return one == other and (None in chosen or chosen[0] == chosen[1])


def first_id(marks: Marks, facts: Mapping[str, Any]) -> str:
    """Return the id that data without a name get when they are registered."""
    return f"{_UNNAMED}{_digest(marks, facts)[:12]}@1"


def _digest(marks: Marks, facts: Mapping[str, Any]) -> str:
    return sha256_of([marks.content, dict(facts)])


def versions_of(reader: Reader, population: str, name: str | None = None) -> list[DataSet]:
    """Return all versions of a name, or of all names, in the order in which they were registered."""
    start = f"dataset:{population}:" if name is None else f"dataset:{population}:{name}:"
    return [DataSet.of(entry) for entry in reader.starting(start)]


# --------------------------------------------------------------------------- data that private calls take as X


class InLedger(Registered):
    """What a ledger has about a data set, for private calls that take it as X; its records are elsewhere.

    Parameters
    ----------
    population : where it is registered
    known : what the ledger has about it
    """

    def __init__(self, population: Population, known: DataSet) -> None:
        self.id, self.name, self.version, self.facts = known.id, known.name, known.version, known.facts
        self.ledger, self.population, self.about = population.ledger, population.name, known.about
        self.n, self.unit, self.invalid = known.n, known.unit, str(known.about["invalid"])
        self.ball = ball_from_dict(json.loads(known.about["ball"]))
        self.space, self.covariate = known.space, _covariate_in(known.about)
        self._whose, self.fingerprint, self.records_mark = population, known.fingerprint, known.records

    def check(self) -> None:
        """Refuse records of units that have others, where the same records were registered with ids since."""
        self._whose.refuse_shared(self.unit, self.records_mark)

    def open(self) -> Opened:
        """Refuse: who has no records plans and pays alone."""
        raise LedgerError("the records are another process's to open.")


@final
class RegisteredData(InLedger):
    """Records that are registered with a population; every private call takes them as X.

    Made by :meth:`Population.register` and :meth:`Population.dataset`.
    """

    def __init__(
        self,
        population: Population,
        known: DataSet,
        records: object,
        units: object = None,
        labels: object = None,
        covariate: object = None,
    ) -> None:
        super().__init__(population, known)
        self._given = Opened(records, units, labels, covariate)

    def check(self) -> None:
        """Refuse a ledger whose key is not there, since all data would look changed; and what others refuse."""
        self._whose.fingerprint(lambda: [b""])
        super().check()

    def open(self) -> Opened:
        """Open the records and compare them with what was registered."""
        given = self._given
        if callable(given.records):
            found = given.records()
            given = found if isinstance(found, Opened) else replace(given, records=found)
        records = set_apart(as_batch(given.records, self.ball), given.labels, given.covariate)
        opened = replace(given, records=records)
        content = content_beside(records, self.ball, opened.units, opened.labels, self.classes, opened.covariate)
        if self._whose.fingerprint(content) != self.fingerprint:
            raise LedgerError("the records are not those that were registered as {id}.", id=Public(self.id))
        return opened

    def __repr__(self) -> str:
        return f"RegisteredData({self.id!r}, {self.n:,} {self.unit}s, population={self.population!r})"


def register(
    population: Population, name: str, X: object, ball: Ball, selection: Mapping[str, Any] | None, **words: Any
) -> RegisteredData:
    """Register records with a population (:meth:`Population.register`, whose keywords these are)."""
    if isinstance(X, Registered):
        raise InvalidArgumentError("`X` is registered already. Give the records.")
    found = survey(X, ball, **words)
    if ball.simulated:
        raise InvalidArgumentError("`ball` was found by a simulation: no release in it would be private. Give another.")
    about = {
        "ball": json.dumps(ball_to_dict(ball), sort_keys=True),
        "invalid": words["invalid"],
        "units": _column(words["units"]) if found.facts["unit"] != "record" else None,
        "labels": _column(words["labels"]),
        **_covariate_written(words["covariate"], found.covariate),
        **({} if selection is None else {SELECTION: dict(selection)}),
    }
    known = population.registered_as(found.content, found.facts, name, about)
    others, curator = population.registered_elsewhere(known.records), words["curator"]
    if curator is not None and others:
        curator(Notice(0, 0, 0, elsewhere=", ".join(map(repr, others))))
    return RegisteredData(population, known, X, words["units"], words["labels"], words["covariate"])


def dataset(
    population: Population,
    name: str,
    records: object,
    units: object,
    labels: object,
    covariate: object,
    version: int | None,
) -> RegisteredData:
    """Return data that were registered before (:meth:`Population.dataset`)."""
    versions = [known for known in population.datasets() if known.name == name and known.about]
    found = next((known for known in reversed(versions) if version in (None, known.version)), None)
    if found is None:
        names = ", ".join(dict.fromkeys(known.id for known in population.datasets() if known.about)) or "none"
        asked = name if version is None else f"{name}@{version}"
        raise InvalidArgumentError(
            "no data set {asked!r} is registered with the population {name!r}; there are: {names}. Register "
            "it: population.register(name, X, ball, units=...).",
            asked=asked,
            name=Public(population.name),
            names=names,
        )
    owners = EACH_RECORD if found.unit == "record" else _given(units, found.about["units"], "units were")
    classes = _given(labels, found.about["labels"], "labels were") if "classes" in found.facts else None
    along = found.about.get(COVARIATE)
    numbers = None if along is None else _given(covariate, along["column"], "covariate was")
    return RegisteredData(population, found, records, owners, classes, numbers)


def _given(value: object, column: object, what: str) -> object:
    """Return what was given, or the column that was registered."""
    found = column if value is None else value
    if found is None:
        raise InvalidArgumentError(
            "{what} registered as an array, one entry per record: give it again, got {got}.",
            what=Argument(what),
            got=shown(value),
        )
    return found


def _column(value: object) -> str | None:
    return value if isinstance(value, str) else None


# -------------------------------------------------------------------- what is written down about a covariate

COVARIATE = "covariate"
"""Where it stands among how data are to be opened; nothing stands there for data without one."""


def _covariate_written(given: object, known: Covariate | None) -> dict[str, Any]:
    """Return what an entry says about a covariate: its column, its range, and whether it is public. No value of it."""
    if known is None:
        return {}
    ends = [repr(end) for end in known.range]  # as text, which canonical JSON has, and of the same bits
    return {COVARIATE: {"column": _column(given), "range": ends, "public": known.public}}


def _covariate_in(about: Mapping[str, Any]) -> Covariate | None:
    """Return what :func:`_covariate_written` has written."""
    if COVARIATE not in about:
        return None
    low, high = (float(end) for end in about[COVARIATE]["range"])
    return Covariate((low, high), bool(about[COVARIATE]["public"]))
