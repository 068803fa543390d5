"""The ledger: a database that remembers what was spent, and a witness that remembers the database."""

from __future__ import annotations

import getpass
import os
import pathlib
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar, final

from dpmanifold._check import positive_int, shown
from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.files import Closable, closed_if_it_fails
from dpmanifold.ledger.auditing import Audit, audited
from dpmanifold.ledger.entries import Entry, promise_to_body
from dpmanifold.ledger.entry_access import Reader, Writer, found_by
from dpmanifold.ledger.export import write_export
from dpmanifold.ledger.fingerprints import fingerprint, key_check, new_key, read_key
from dpmanifold.ledger.history import History
from dpmanifold.ledger.places import Places
from dpmanifold.ledger.population import Population, cap_of, checked_label, checked_name
from dpmanifold.ledger.receipts import Compared, compared
from dpmanifold.ledger.reconciling import Reconciled, recover
from dpmanifold.ledger.stores import PostgresStore, SqliteStore, Store
from dpmanifold.ledger.witness import Witness
from dpmanifold.privacy import Promise
from dpmanifold.privacy.budget_accounts import checked_text
from dpmanifold.privacy.promises import as_promise
from dpmanifold.storage.filesystems import same_volume

T = TypeVar("T")

FORMAT = "dpmanifold ledger 2"

_LONGEST_PAGE = 100_000
_TOGETHER = (
    "the witness is on the database's own volume: if both are restored together, nothing here notices. Keep the last "
    "hash elsewhere."
)


@final
class Ledger(Closable):
    """What was spent of the privacy of populations: over scripts, crashes, colleagues and years.

    Opened, or made where there is nothing. Threads may share it. After a fork the child makes connections of its own.
    Its copy is itself; pickled, it is its path or address and the names below, never a connection.

    Whoever can write to the database can write in anybody's name: the ledger remembers, it does not ask for passwords.

    Parameters
    ----------
    where : the path of a file (SQLite), or "postgresql://..." for a database that :meth:`create` made a ledger of
    witness : the path of the witness, best on another volume; beside the file, with ".witness" after its name, where
        it is not given. It is stored when the ledger is made, and only compared later.
    secret : the path of the key that fingerprints of data are made with; beside the file, with ".key" after its name,
        where it is not given
    principal : who spends; the login name where it is not given
    reconcile : the reason for which the database and its witness are to be reconciled first (:meth:`reconcile`): one
        that was put back from a backup is refused without. What was done is in the attribute `reconciled`

    Attributes
    ----------
    id : the ledger's own, which every hash and every receipt has
    where : the path or the address it was opened with
    name : the path or the address, without a password
    principal : who spends
    witness : its witness, a file with a `path`
    secret : the path of its key

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from dpmanifold import GDP
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> with Ledger(folder / "study.db", principal="ada") as ledger:
    ...     cohort = ledger.population("cohort-2026", cap=GDP(1.0), unit="participant")
    ...     cohort.remaining
    GDP(mu=1.0)
    """

    def __init__(
        self,
        where: str | os.PathLike[str],
        *,
        witness: str | os.PathLike[str] | None = None,
        secret: str | os.PathLike[str] | None = None,
        principal: str | None = None,
        reconcile: str | None = None,
    ) -> None:
        self.principal = self._principal(principal)
        self._places = Places.of(where, witness, secret)
        self.store = store_of(self._places)
        self.where, self.name = self._places.where, self.store.name
        with closed_if_it_fails(self.store):
            self._open(reconcile)

    def _open(self, reason: str | None) -> None:
        self._places.refuse_remains()
        self.store.prepare()
        first = self._entry(1) or _created(self.store, self._places, self.principal)
        facts = first.facts
        if first.kind != "created" or facts.get("format") != FORMAT:
            raise LedgerError(
                f"the first entry is not that of a {FORMAT}. Upgrade dpmanifold, or give another database."
            )
        self.id: str = facts["ledger"]
        self._key_check: str = facts["key"]
        self.secret = self._places.secret_path(facts["witness"])
        self.witness = Witness(self._places.witness_path(facts["witness"]), self.id)
        self.reconciled = None if reason is None else self.reconcile(reason)
        self.witness.check(self._entry)
        if self.witness.writable:  # an auditor may read alone; whoever spends is refused there
            self.witnessed()

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        witness: str | os.PathLike[str] | None = None,
        secret: str | os.PathLike[str] | None = None,
        principal: str | None = None,
        reconcile: str | None = None,
    ) -> Ledger:
        """Open a ledger that is there. A mistyped path is an error, and not a fresh budget."""
        with store_of(Places.of(where, witness, secret)) as store:
            if not store.exists():
                raise InvalidArgumentError(
                    f"there is no ledger {store.name}. Give the path of one, or make it: dpm ledger create, or "
                    "Ledger.create."
                )
        return cls(where, witness=witness, secret=secret, principal=principal, reconcile=reconcile)

    @classmethod
    def create(
        cls,
        where: str | os.PathLike[str],
        *,
        witness: str | os.PathLike[str] | None = None,
        secret: str | os.PathLike[str] | None = None,
        principal: str | None = None,
        writer: str | None = None,
    ) -> Ledger:
        """Make a ledger where there is none, and return it.

        Parameters
        ----------
        where, witness, secret, principal : as for the ledger itself
        writer : on PostgreSQL, the role that will write to it, which is not the one that makes it
        """
        places = Places.of(where, witness, secret)
        with store_of(places) as store:
            if store.exists():
                raise InvalidArgumentError(f"there is a ledger {store.name} already, or another database. Open it.")
            who = cls._principal(principal)
            places.refuse_remains()
            places.refuse_remains_of_creation()
            store.make(writer)
            _created(store, places, who)
        return cls(where, witness=witness, secret=secret, principal=principal)

    @staticmethod
    def _principal(given: str | None) -> str:
        return checked_name(_login() if given is None else given, "principal")

    def population(self, name: str, cap: Promise | None = None, unit: str | None = None) -> Population:
        """Open a population, or make it.

        Parameters
        ----------
        name : of the population: the people whom the cap protects
        cap : what may be spent on them in all; may be left out for a population that is there, and must be its cap
        unit : who is protected, such as "participant"; likewise. "record" says that every record is a unit of its own,
            in whichever data set it is: then, and only then, no ids are asked for

        Raises
        ------
        InvalidArgumentError : there is none and no cap was given, or its cap or unit is another one
        """
        wanted = checked_label(name, "name")
        if cap is not None:
            as_promise(cap, "cap")
        what = None if unit is None else checked_text(unit, "unit")
        found = self.store.read(lambda reader: self._found(reader, wanted))
        if found is None:
            if cap is None or what is None:
                missing = "cap" if cap is None else "unit"
                raise InvalidArgumentError(
                    f"the ledger has no population {wanted!r}. To make it, give its cap, such as GDP(1.0), and its "
                    f'unit, such as "participant"; got no {missing}.'
                )
            found = self.change(lambda writer: self._opened(writer, wanted, cap, what))
        present, present_unit = found
        if cap is not None and cap != present:
            raise InvalidArgumentError(
                f"population {wanted!r} has the cap {present}, got {cap}. Leave cap out, or raise it with "
                "raise_cap(cap, reason)."
            )
        if what is not None and what != present_unit:
            raise InvalidArgumentError(f"a unit of population {wanted!r} is a {present_unit!r}, got {what!r}.")
        return Population(self, wanted, present_unit, self.principal)

    def populations(self) -> list[Population]:
        """Return all populations, in the order in which they were made."""
        found = self.store.read(lambda reader: reader.starting("population:"))
        return [Population(self, entry.population, entry.facts["unit"], self.principal) for entry in found]

    def history(self, population: str | None = None, *, after: int = 0, limit: int = 100) -> History:
        """Return a page of entries, and what came of the spends among them. Reading holds nobody up.

        Parameters
        ----------
        population : whose; None for all
        after : the number of the entry after which the page starts
        limit : how many at most

        Raises
        ------
        InvalidArgumentError : there is no such population
        """
        if isinstance(after, bool) or not isinstance(after, int) or after < 0:
            raise InvalidArgumentError(f"after must be a whole number of at least 0, got {shown(after)}.")
        most = min(positive_int(limit, "limit"), _LONGEST_PAGE)

        def look(reader: Reader) -> History:
            if population is not None and reader.once(f"population:{population}") is None:
                known = ", ".join(entry.population for entry in reader.starting("population:"))
                raise InvalidArgumentError(
                    f"population must be one of the ledger's ({known or 'it has none yet'}) or None, "
                    f"got {shown(population)}."
                )
            found = reader.page(after, most + 1, population)
            page = found[:most]
            spends = [entry.seq for entry in page if entry.kind == "spend"]
            steps = reader.among(f"{step}:{seq}" for seq in spends for step in ("started", "outcome"))
            whose = sorted({entry.population for entry in page if entry.population})
            caps = {name: reader.latest(name, [("cap", None)])[0] for name in whose}
            return History(
                page,
                {entry.facts["spend"]: entry for entry in steps},  # in order: the outcome comes after the start
                {name: cap_of(entry) for name, entry in caps.items() if entry is not None},
                len(found) > most,
            )

        return self.store.read(look)

    def entries(self, first: int = 1) -> Iterator[Entry]:
        """Yield all entries from a number on, in order; no transaction stays open meanwhile."""
        return self.store.pages(Reader.page, first - 1, lambda entry: entry.seq)

    def fingerprint(self, content: Iterable[bytes]) -> str:
        """Return the fingerprint of data under the ledger's key, which is read for it."""
        key = read_key(self.secret)
        if key_check(key, self.id) != self._key_check:
            raise LedgerError(
                f"the key {self.secret} is not the one that this ledger was made with: all data would look changed. "
                "Put the right file there."
            )
        return fingerprint(key, content)

    def audit(self) -> Audit:
        """Look at every entry once: hashes, sums, caps, grants, outcomes, results, and the witness line by line.

        Reading holds nobody up. What is written meanwhile is left to the next audit.
        """
        lines = self.witness.lines()  # as it is now: all of it must be in the database
        head = self.store.read(Reader.head)
        kept: dict[int, bytes] = {}
        misfiled: list[str] = []

        def entries() -> Iterator[Entry]:
            for entry, filed, content in self.store.pages(Reader.whole_rows, 0, lambda row: row[0].seq):
                if head is None or entry.seq > head.seq:
                    return
                kept.clear()
                if content is not None:
                    kept[entry.seq] = content
                if _found_by(entry) not in (filed, None):
                    misfiled.append(f"{entry.title} is filed under what it does not say.")
                yield entry

        guards = [
            f"the trigger {name} is missing, or is not the one that the ledger made: entries could be changed."
            for name in self.store.broken_guards()
        ]
        together = not self._places.is_address and same_volume(self.where, self.witness.path)
        found = audited(self.id, entries(), kept.get, lines)
        return found.with_more([*misfiled, *guards], [_TOGETHER] if together else [])

    def reconcile(self, reason: str) -> Reconciled:
        """Have the database take back what only its witness remembers: after a backup was put back, for one.

        Spends that the database had forgotten count again, even beyond the cap; then nothing is left. What was
        released for them does not come back: whoever asks again under their keys is told that it is lost. Entries that
        the database has of its own stay. Done again, it changes nothing.

        A ledger that has to be reconciled refuses to be opened: `Ledger(where, reconcile=reason)` does both.

        Parameters
        ----------
        reason : why they differ, for whoever audits the ledger
        """
        words = checked_text(reason, "reason")
        done = [Reconciled()]

        def take_back(common: int, lost: list[Entry]) -> None:
            done.append(self.write(lambda writer: recover(writer, common, lost, words, self.principal)))

        with self.store.witnessing():
            self.witness.reconcile(self.entries, take_back)
        return done[-1]

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write all entries as JSON lines, and return how many there are; :func:`verify_export` checks the file.

        Parameters
        ----------
        path : of the file, which is written whole or not at all
        """
        head = self.store.read(Reader.head)
        assert head is not None  # a ledger has its first entry
        return write_export(path, self.id, head, self.entries())

    def verify(self, release: object) -> list[str]:
        """Return what is wrong with a release as this ledger knows it, in sentences; [] if nothing is.

        It was paid for by the entry that its receipt names, and it is what was drawn then. A payment that was recovered
        counts; what was drawn for it is no longer there to be compared.

        Parameters
        ----------
        release : a release, a result made of releases, or a receipt alone
        """
        return list(self.compared(release).faults)

    def compared(self, release: object) -> Compared:
        """Hold a release against this ledger: what is wrong, and what is shown; as :meth:`verify`.

        Parameters
        ----------
        release : a release, a result made of releases, or a receipt alone
        """
        return self.store.read(lambda reader: compared(release, self.id, reader))

    def write(self, action: Callable[[Writer], T]) -> T:
        """Append in one transaction; the caller sees to the witness."""
        return self.store.write(self.id, action)

    def change(self, action: Callable[[Writer], T]) -> T:
        """Append in one transaction, and have the witness know of it; refused before where it cannot be written to."""
        self.witnessed()
        value = self.write(action)
        try:
            self.witnessed()
        except LedgerError as problem:
            raise LedgerError(
                f"{problem} What was to be recorded is in the database and stands: once that is mended, the witness "
                "gets it as well. Do not ask for it again."
            ) from None
        return value

    def witnessed(self) -> None:
        """Have the witness catch up with all that is committed."""
        with self.store.witnessing():
            self.witness.catch_up(self.entries)

    def close(self) -> None:
        """Close what is open. A ledger that is used again opens it again."""
        self.store.close()

    def __copy__(self) -> Ledger:
        return self

    def __deepcopy__(self, memo: object) -> Ledger:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self._places, self.principal, self.id)

    def __repr__(self) -> str:
        return f"Ledger({self.name!r}, principal={self.principal!r})"

    def _entry(self, seq: int) -> Entry | None:
        return self.store.read(lambda reader: reader.entry(seq))

    @staticmethod
    def _found(reader: Reader, name: str) -> tuple[Promise, str] | None:
        made = reader.once(f"population:{name}")
        if made is None:
            return None
        latest = reader.latest(name, [("cap", None)])[0]
        return cap_of(latest or made), str(made.facts["unit"])

    def _opened(self, writer: Writer, name: str, cap: Promise, unit: str) -> tuple[Promise, str]:
        there = self._found(writer, name)
        if there is not None:
            return there
        said = {"cap": promise_to_body(cap), "unit": unit, "principal": self.principal}
        return cap_of(writer.append("population", name, f"population:{name}", **said)), unit


def _created(store: Store, places: Places, principal: str) -> Entry:
    """Make a ledger in tables that are there and empty, and return its first entry; or that of whoever was faster.

    Witness and key are made before it is committed, the witness first. A creation that was cut short leaves an empty
    witness, and perhaps a key that no entry names: these are taken. A key without such a witness, a witness with lines
    and locks are of a ledger that was here: refused.
    """
    ledger = str(uuid.uuid4())

    def begin(writer: Writer) -> Entry:
        there = writer.entry(1)
        if there is not None:
            return there
        witness = places.new_witness()
        places.refuse_remains_of_creation()
        Witness(places.witness_path(witness), ledger).create()
        secret = places.secret_path(witness)
        key = read_key(secret, own=True) if secret.exists() else new_key(secret)
        return writer.append(
            "created",
            "",
            "created",
            format=FORMAT,
            ledger=ledger,
            witness=witness,
            key=key_check(key, ledger),
            principal=principal,
        )

    return store.write(ledger, begin)


def _reopened(places: Places, principal: str, wanted: str) -> Ledger:
    """Open a ledger that was pickled: the same one, and never a new one."""
    ledger = Ledger.open(places.where, witness=places.witness, secret=places.secret, principal=principal)
    if ledger.id != wanted:
        ledger.close()
        raise LedgerError(f"{ledger.name} is another ledger than the one that was pickled. Open it by its path.")
    return ledger


def store_of(places: Places) -> Store:
    """Return the store for a path or an address."""
    if not places.is_address:
        return SqliteStore(pathlib.Path(places.where))
    return PostgresStore(places.where)


def _login() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        raise InvalidArgumentError("principal must be given: this process has no login name.") from None


def _found_by(entry: Entry) -> tuple[str, str] | None:
    """Return what an entry should be found by; None where its body cannot be read, which is said elsewhere."""
    try:
        return found_by(entry)
    except (ValueError, AttributeError):
        return None
