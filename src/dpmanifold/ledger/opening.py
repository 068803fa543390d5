"""Registered data of a ledger: what is public about them is in an entry, and they are opened once they are paid for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger.datasets import DataSet
from dpmanifold.records import ball_from_dict, ball_to_dict
from dpmanifold.stats.content import content_of
from dpmanifold.stats.curator import Curator, Notice
from dpmanifold.stats.inputs import EACH_RECORD
from dpmanifold.stats.registered import Opened, Registered
from dpmanifold.stats.registering import survey
from dpmanifold.stats.requests import names_in

if TYPE_CHECKING:
    from dpmanifold.ledger.population import Population


@final
class RegisteredData(Registered):
    """Records that are registered with a population; every private call takes them as X.

    Made by :meth:`Population.register` and :meth:`Population.dataset`.
    """

    def __init__(self, population: Population, known: DataSet, records: object, units: object, labels: object) -> None:
        self.id, self.name, self.version, self.facts = known.id, known.name, known.version, known.facts
        self.ledger, self.population = population.ledger, population.name
        self.n, self.unit, self.invalid = known.n, known.unit, str(known.about["invalid"])
        self.ball = ball_from_dict(json.loads(known.about["ball"]))
        self.space = known.space
        self._whose, self.fingerprint, self.records_mark = population, known.fingerprint, known.records
        self._records, self._units, self._labels = records, units, labels

    def check(self) -> None:
        """Refuse a ledger whose key is not there: all data would look changed; and records of units that have others.

        The latter where the same records were registered with ids since.
        """
        self._whose.fingerprint(lambda: [b""])
        self._whose.refuse_shared(self.unit, self.records_mark)

    def open(self) -> Opened:
        """Open the records and compare them with what was registered."""
        given = self._records() if callable(self._records) else self._records
        opened = Opened(given, self._units, self._labels)
        classes = names_in(self.facts["classes"]) if "classes" in self.facts else None
        content = content_of(opened.records, self.ball, opened.units, opened.labels, classes)
        if self._whose.fingerprint(content) != self.fingerprint:
            raise LedgerError(f"the records are not those that were registered as {self.id}.")
        return opened

    def __repr__(self) -> str:
        return f"RegisteredData({self.id!r}, {self.n:,} {self.unit}s, population={self.population!r})"


def register(
    population: Population,
    name: str,
    X: object,
    ball: Ball,
    units: object,
    labels: object,
    classes: Sequence[Any] | None,
    labels_public: bool,
    invalid: str,
    curator: Curator | None,
    confirm: bool,
) -> RegisteredData:
    """Register records with a population (:meth:`Population.register`)."""
    if isinstance(X, Registered):
        raise InvalidArgumentError("X is registered already. Give the records.")
    found = survey(
        X, ball, units=units, labels=labels, classes=classes, labels_public=labels_public, invalid=invalid,
        curator=curator, confirm=confirm,
    )  # fmt: skip
    if ball.simulated:
        raise InvalidArgumentError("ball was found by a simulation: no release in it would be private. Give another.")
    about = {
        "ball": json.dumps(ball_to_dict(ball), sort_keys=True),
        "invalid": invalid,
        "units": _column(units) if found.unit != "record" else None,
        "labels": _column(labels),
    }
    known = population.registered_as(found.content, found.facts, name, about)
    others = population.registered_elsewhere(known.records)
    if curator is not None and others:
        curator(Notice(0, 0, 0, elsewhere=", ".join(map(repr, others))))
    return RegisteredData(population, known, X, units, labels)


def dataset(
    population: Population, name: str, records: object, units: object, labels: object, version: int | None
) -> RegisteredData:
    """Return data that were registered before (:meth:`Population.dataset`)."""
    versions = [known for known in population.datasets() if known.name == name and known.about]
    found = next((known for known in reversed(versions) if version in (None, known.version)), None)
    if found is None:
        names = ", ".join(dict.fromkeys(known.id for known in population.datasets() if known.about)) or "none"
        asked = name if version is None else f"{name}@{version}"
        raise InvalidArgumentError(
            f"no data set {asked!r} is registered with the population {population.name!r}; there are: {names}. "
            "Register it: population.register(name, X, ball, units=...)."
        )
    if found.unit == "record":
        owners: object = EACH_RECORD
    else:
        owners = _given(units, found.about["units"], "units")
    by_class = "classes" in found.facts
    classes = _given(labels, found.about["labels"], "labels") if by_class else None
    return RegisteredData(population, found, records, owners, classes)


def _given(value: object, column: object, name: str) -> object:
    """Return what was given, or the column that was registered."""
    found = column if value is None else value
    if found is None:
        raise InvalidArgumentError(
            f"{name} were registered as an array, one entry per record: give them again, got {shown(value)}."
        )
    return found


def _column(value: object) -> str | None:
    return value if isinstance(value, str) else None
