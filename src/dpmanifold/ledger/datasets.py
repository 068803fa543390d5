"""Data sets of a population: versions of data by their fingerprints, with what is public about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, final

from dpmanifold.ledger.bodies import now
from dpmanifold.ledger.chain import Reader, Writer
from dpmanifold.ledger.entries import Entry
from dpmanifold.storage.chain import sha256_of

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
        columns hold units and classes; where it has a covariate also its column, its range and whether it is public
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
        said = entry.facts
        about = said.get("about", {})
        marks = said["fingerprint"], said["records"]
        return DataSet(said["id"], said["name"], said["version"], *marks, said["facts"], about)

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
    body = {
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
        "time": now(),
        **({"about": dict(about)} if about else {}),
    }
    return DataSet.of(writer.append("dataset", population, f"dataset:{population}:{name}:{version}", body))


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
    for known in versions_of(reader, population, name):
        same = known.fingerprint == marks.content and dict(known.facts) == dict(facts)
        if same and dict(known.about) == dict(about or {}):
            return known
    return None


def first_id(marks: Marks, facts: Mapping[str, Any]) -> str:
    """Return the id that data without a name get when they are registered."""
    return f"{_UNNAMED}{_digest(marks, facts)[:12]}@1"


def _digest(marks: Marks, facts: Mapping[str, Any]) -> str:
    return sha256_of([marks.content, dict(facts)])


def versions_of(reader: Reader, population: str, name: str | None = None) -> list[DataSet]:
    """Return all versions of a name, or of all names, in the order in which they were registered."""
    start = f"dataset:{population}:" if name is None else f"dataset:{population}:{name}:"
    return [DataSet.of(entry) for entry in reader.starting(start)]
