"""A population of a ledger: the people whom one cap protects, in whatever data sets they are."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import Argument, InvalidArgumentError, Public
from dpmanifold.inference.design import Range
from dpmanifold.ledger.datasets import (
    DataSet,
    Marks,
    RegisteredData,
    dataset,
    first_id,
    found_set,
    register,
    registered,
    versions_of,
)
from dpmanifold.ledger.entries import Entry, promise_from_body, promise_to_body
from dpmanifold.ledger.entry_access import Reader, Writer
from dpmanifold.ledger.history import History
from dpmanifold.ledger.settling import Settling
from dpmanifold.ledger.standing import Standing, standing_of
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import as_promise_down, as_promise_up, cost_of, fits, left_of
from dpmanifold.privacy.budget_accounts import Mark, checked_text
from dpmanifold.privacy.promises import as_promise
from dpmanifold.stats.curator import Curator

# A population's unit is who is protected. A release about single records protects a participant only if no participant
# has two of them, and a table of records without ids does not show that: somebody has to say so. Either the
# population's unit is the record, or the steward has registered the records by name as one of each person, and they are
# asked about by that name. Whether an array happens to be what was registered is not looked at: to take one and refuse
# another would tell whoever knows all records but one what the last is.
RECORD = "record"
"""What a unit is called where every record is one, of data sets and of populations."""


@final
@dataclass(frozen=True)
class Grant:
    """How much of a population one principal may spend.

    Attributes
    ----------
    principal : who
    granted : how much in all
    spent : how much of it was spent, rounded up; None at the start
    remaining : how much can still be spent, of it and of the cap, rounded down; None where nothing can
    """

    principal: str
    granted: Promise
    spent: Promise | None
    remaining: Promise | None

    @staticmethod
    def of(principal: str, standing: Standing) -> Grant:
        """Return the grant of a principal for whom a population stands so."""
        assert standing.grant is not None
        spent, left = as_promise_up(standing.cap, standing.mine), as_promise_down(standing.cap, standing.left)
        return Grant(principal, standing.grant, spent, left)


class Population(Settling):
    """One account of a ledger: every private call takes it as `budget=`.

    Made by :meth:`Ledger.population`. It holds nothing but names: what was spent is asked of the ledger each time.
    Threads may share it, a child process may use it after a fork, and its copy is itself. Pickled, it is the names,
    and the ledger's path or address.

    Attributes
    ----------
    ledger : the id of the ledger that keeps it
    name : of the population
    unit : who is protected, such as "participant"; "record" where every record is a unit of its own
    principal : in whose name it spends
    """

    @property
    def cap(self) -> Promise:
        """The cap, as it is now."""
        return self.standing().cap

    @property
    def privacy(self) -> Promise:
        """The cap, by the name that a Budget has for it."""
        return self.cap

    @property
    def spent(self) -> Promise | None:
        """What all principals have spent together, rounded up; None at the start."""
        standing = self.standing()
        return as_promise_up(standing.cap, standing.total)

    @property
    def unspent(self) -> Promise | None:
        """What the cap leaves, whoever may spend it, rounded down; None once that is nothing."""
        standing = self.standing()
        return as_promise_down(standing.cap, left_of(standing.whole, standing.total))

    @property
    def remaining(self) -> Promise | None:
        """The largest promise that this principal can still spend, rounded down; None once there is none.

        The smaller of what the cap leaves and what the principal's grant does, where there are grants.
        """
        standing = self.standing()
        return as_promise_down(standing.cap, standing.left)

    def marked(self, content: Callable[[], Iterable[bytes]], facts: Mapping[str, Any]) -> Mark:
        """Return what the ledger knows data by; new ones are registered in the transaction of the first spend."""
        if facts["unit"] == RECORD != self.unit:
            raise InvalidArgumentError(
                "`units` must not be EACH_RECORD here: population {population!r} protects each {protected}, who "
                "may have several records. Give one id per record. If nobody has two records, say so by "
                "registering them by name, and give what is registered: population.register(name, X, ball, "
                "units=EACH_RECORD) as X; or dpm ledger dataset add, and --dataset. Nothing was spent.",
                population=Public(self.name),
                protected=Public(self.unit),
            )
        marks = self._marks(content)
        found = self._ledger.store.read(lambda reader: found_set(reader, self.name, marks, facts, None))
        if found is not None:
            return Mark(found.id, marks.records)
        return Mark(first_id(marks, facts), marks.records, {"marks": marks, "facts": dict(facts)})

    def register(
        self,
        name: str,
        X: object,
        ball: Ball,
        *,
        units: object,
        labels: object = None,
        classes: Sequence[Any] | None = None,
        labels_public: bool = True,
        covariate: object = None,
        covariate_range: Range | None = None,
        covariate_public: bool = False,
        invalid: str = "raise",
        curator: Curator | None = None,
        confirm: bool = False,
        selection: Mapping[str, Any] | None = None,
    ) -> RegisteredData:
        """Register records: read, check and count them, and write down what is public about them. Costs nothing.

        What is wrong with them is said here, to whoever holds them. The ledger keeps the space, the ball, how many
        units there are and a fingerprint under its key. Changed records under the same name are its next version.

        With units=EACH_RECORD, in a population whose unit is not the record, this call says that nobody in the
        population has two of these records: every release about them protects a single record, and nothing but your
        word makes that a person. It is refused where the same records are registered with ids.

        Parameters
        ----------
        name : of the data set
        X, ball, units, invalid, curator, confirm : as in :func:`~dpmanifold.private_mean`
        labels, classes : as in :func:`~dpmanifold.private_class_means`, for means by class
        labels_public : False if nobody may know who is in which class: the ledger then does not keep how many units a
            class has, and :func:`~dpmanifold.private_lda` alone takes the data by class
        covariate, covariate_range, covariate_public : as in :func:`~dpmanifold.private_regression`, for regressions.
            The ledger keeps the name of its column, the range and whether it is public; of its values the fingerprint
        selection : how files became the records, to be compared before they are opened again. A
            :class:`~dpmanifold.data.Selection` gives it by itself

        Returns
        -------
        what every private call takes as X, with this population as its budget
        """
        return register(
            self, checked_label(name, "name"), X, ball, selection, units=units, labels=labels, classes=classes,
            labels_public=labels_public, covariate=covariate, covariate_range=covariate_range,
            covariate_public=covariate_public, invalid=invalid, curator=curator, confirm=confirm,
        )  # fmt: skip

    def dataset(
        self,
        name: str,
        records: object,
        *,
        units: object = None,
        labels: object = None,
        covariate: object = None,
        version: int | None = None,
    ) -> RegisteredData:
        """Return data that were registered before, maybe by somebody else, to be opened once they are paid for.

        Parameters
        ----------
        name : of the data set
        records : what was registered, or a function without arguments that returns it, called after the spend; it may
            return units, labels and covariate with it, as :meth:`~dpmanifold.data.Selection.open` does
        units, labels, covariate : as they were registered; may be left out where they are columns of the records, or
            where every record is a unit
        version : which one; None for the latest
        """
        return dataset(self, checked_name(name, "name"), records, units, labels, covariate, version)

    def datasets(self) -> list[DataSet]:
        """Return the data sets that were registered, every version, in order."""
        return self._ledger.store.read(lambda reader: versions_of(reader, self.name))

    def registered_as(
        self,
        content: Callable[[], Iterable[bytes]],
        facts: Mapping[str, Any],
        name: str,
        about: Mapping[str, Any] | None = None,
    ) -> DataSet:
        """Return the data set with this content and these facts under a name; append it where there is none."""
        marks = self._marks(content)
        asked = (marks, facts, name, about)
        self.refuse_shared(str(facts["unit"]), marks.records)
        found = self._ledger.store.read(lambda reader: found_set(reader, self.name, *asked))
        if found is not None:
            return found
        return self._ledger.change(lambda writer: registered(writer, self.name, self.principal, *asked))

    def registered_elsewhere(self, records: str) -> list[str]:
        """Return the other populations with which the same records are registered, by the mark of the records."""
        found = self._ledger.store.read(lambda reader: reader.starting("dataset:"))
        others = (one.population for one in found if one.facts.get("records") == records)
        return [name for name in dict.fromkeys(others) if name != self.name]

    def refuse_shared(self, unit: str, records: str) -> None:
        """Refuse registered records as units of their own where they are registered with ids as well.

        Parameters
        ----------
        unit : what a unit of the data is
        records : the mark of the records, whoever owns them
        """
        if unit != RECORD or self.unit == RECORD:
            return
        with_ids = [one for one in self.datasets() if one.records == records and one.unit != RECORD]
        if with_ids:
            raise InvalidArgumentError(
                "`units` must not be EACH_RECORD: the same records are registered with ids, as {id}, and "
                "population {population!r} protects each {protected}. Give the ids. Nothing was spent.",
                id=Public(with_ids[0].id),
                population=Public(self.name),
                protected=Public(self.unit),
            )

    def _marks(self, content: Callable[[], Iterable[bytes]]) -> Marks:
        """Return the fingerprints of data, from one reading of them."""
        records, *rest = content()
        return Marks(self._ledger.fingerprint([records, *rest]), self._ledger.fingerprint([records]))

    def fingerprint(self, content: Callable[[], Iterable[bytes]]) -> str:
        """Return the fingerprint of data under the ledger's key."""
        return self._ledger.fingerprint(content())

    def raise_cap(self, cap: Promise, reason: str) -> None:
        """Raise the cap. The entry says why, and stays.

        Parameters
        ----------
        cap : the new one, of the same kind and more than the present one
        reason : for whoever audits the ledger
        """
        new = as_promise(cap, "cap")
        words = checked_text(reason, "reason")

        def change(writer: Writer) -> None:
            was = standing_of(writer, self._ledger.id, self.name, self.principal).cap
            if type(new) is not type(was):
                raise InvalidArgumentError(
                    "cap must be of the kind of the present one, {was}, got {new}.", was=Public(was), new=Public(new)
                )
            before, after = cost_of(was, was), cost_of(new, was)
            if before == after or not fits(before, after):
                raise InvalidArgumentError(
                    "cap must be more than the present one, {was}, got {new}.", was=Public(was), new=Public(new)
                )
            writer.append(
                "cap",
                self.name,
                None,
                cap=promise_to_body(new),
                was=promise_to_body(was),
                reason=words,
                principal=self.principal,
            )

        self._ledger.change(change)

    def grant(self, principal: str, privacy: Promise, reason: str = "") -> None:
        """Say how much a principal may spend of this population in all, what was spent before included.

        Without grants every principal may spend up to the cap. Once there is one, who has none has nothing. Grants may
        sum above the cap: what is left to a principal is the smaller of the two. A new grant takes the place of the
        one before.

        Parameters
        ----------
        principal : who may spend
        privacy : how much, of the kind of the cap
        reason : for whoever audits the ledger
        """
        who = checked_name(principal, "principal")
        amount = as_promise(privacy, "privacy")
        words = checked_text(reason, "reason") if reason else ""

        def change(writer: Writer) -> None:
            cap = standing_of(writer, self._ledger.id, self.name, self.principal).cap
            if type(amount) is not type(cap):
                raise InvalidArgumentError(
                    "privacy must be of the kind of the cap, {cap}, got {amount}.",
                    cap=Public(cap),
                    amount=Public(amount),
                )
            writer.append(
                "grant",
                self.name,
                None,
                principal=who,
                privacy=promise_to_body(amount),
                reason=words,
                by=self.principal,
            )

        self._ledger.change(change)

    def grants(self) -> list[Grant]:
        """Return the grants, one for each principal who has one."""

        def look(reader: Reader) -> list[Grant]:
            people = [entry.facts["principal"] for entry in reader.subjects(self.name, "grant")]
            return [Grant.of(who, standing_of(reader, self._ledger.id, self.name, who)) for who in people]

        return self._ledger.store.read(look)

    def as_principal(self, name: str) -> Population:
        """Return the same population for another principal."""
        return Population(self._ledger, self.name, self.unit, checked_name(name, "principal"))

    def history(self, *, after: int = 0, limit: int = 100) -> History:
        """Return a page of this population's entries; see :meth:`Ledger.history`."""
        return self._ledger.history(self.name, after=after, limit=limit)

    def standing(self) -> Standing:
        """Return how the population stands at this moment, for this principal: exact amounts, from one look."""
        return self._ledger.store.read(lambda reader: standing_of(reader, self._ledger.id, self.name, self.principal))

    def __reduce__(self) -> tuple[Any, ...]:
        return Population, (self._ledger, self.name, self.unit, self.principal)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Population) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        return f"Population({self.name!r}, of ledger {self._ledger.name!r}, principal={self.principal!r})"

    def _identity(self) -> tuple[str, str, str]:
        return self._ledger.id, self.name, self.principal


def checked_label(value: object, what: str) -> str:
    """Return a name of a population or a data set: letters and digits, with - _ and . between them.

    Examples
    --------
    >>> checked_label("cohort-2026", "name")
    'cohort-2026'
    >>> checked_label("dti@1", "name")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: name must be letters and digits, with - _ and . between them, got 'dti@1'.
    """
    name = checked_name(value, what)
    plain = all(letter.isalnum() or letter in "-_." for letter in name)
    if not (plain and name[0].isalnum() and name[-1].isalnum()):
        raise InvalidArgumentError(
            "{what} must be letters and digits, with - _ and . between them, got {got}.",
            what=Argument(what),
            got=shown(name),
        )
    return name


def checked_name(value: object, what: str) -> str:
    """Return a name of a population or a principal, or say what is wrong with it.

    Letters of any script; what looks the same because it is composed in another way is the same name (NFC).

    >>> checked_name("e\u0301tude", "name") == checked_name("\u00e9tude", "name")
    True
    """
    name = unicodedata.normalize("NFC", checked_text(value, what))
    if ":" in name or name != name.strip():
        raise InvalidArgumentError(
            "{what} must have no colon and no space at its ends, got {got}.", what=Argument(what), got=shown(value)
        )
    return name


def cap_of(entry: Entry) -> Promise:
    """Return the cap that an entry sets."""
    return promise_from_body(entry.facts["cap"])
