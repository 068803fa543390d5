"""What stewards do, and auditors read: populations, caps, grants, registrations, decisions, audits. All is logged."""

from __future__ import annotations

import json
import pathlib
import tempfile
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Row, delete, insert, select, update

from dpmanifold._check import shown
from dpmanifold.data.selection import WORDS
from dpmanifold.errors import BudgetError, InvalidArgumentError, Message, joined, message_from_record
from dpmanifold.ledger.auditing import Totals
from dpmanifold.ledger.population import Grant, Population, checked_label
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import cost_of, in_words, share_of
from dpmanifold.privacy.budget_accounts import checked_text
from dpmanifold.service import events, tables
from dpmanifold.service.accounts import AccountView
from dpmanifold.service.http_errors import Conflict, NotFound
from dpmanifold.service.ordering import asked_before, is_paused, pay, population_named, refuse_paused
from dpmanifold.service.person import ANALYST, AUDITOR, LIGHT, NOTHING, STEWARD, Person, for_roles
from dpmanifold.service.views import (
    AuditView,
    DataSetView,
    EventView,
    GrantView,
    PopulationView,
    RegistrationView,
    ReleaseView,
)

_ELSEWHERE = ("mask", "ball", "invalid")  # what is said on the host alone
REQUEST = {
    "path": None, **{name: usual for name, usual in WORDS.items() if name not in _ELSEWHERE}, "confirm": False,
}  # fmt: skip
"""What a registration is asked with, and what is meant where it is left out: the words of `dpm ledger dataset add`."""
_NEEDED = ("path", "space", "units", "radius")
_LONGEST_NOTE = 2000


class Stewardship(Person):
    """The part of a desk for stewards, and for auditors who read. For an analyst there is nothing here."""

    @for_roles(STEWARD, AUDITOR)
    def populations(self) -> list[PopulationView]:
        """Return all populations, with grants and data sets."""
        return [self._view(one) for one in self.service.ledger.populations()]

    @for_roles(STEWARD, AUDITOR)
    def population(self, name: str) -> PopulationView:
        """Return one population."""
        return self._view(population_named(self.service, name))

    @for_roles(STEWARD)
    def make_population(self, name: str, cap: Promise, unit: str) -> PopulationView:
        """Make a population: the people whom one cap protects.

        Parameters
        ----------
        name : for good
        cap : what may be spent on them in all
        unit : who is protected, such as "participant"
        """
        wanted = checked_label(name, "name")
        if wanted in {one.name for one in self.service.ledger.populations()}:
            raise Conflict(f"{wanted} is a population already: raise its cap, or name another one.")
        made = self.service.ledger.population(wanted, cap, checked_text(unit, "unit"))
        self._log("population-made", population=wanted, cap=in_words(cap))
        return self._view(made)

    @for_roles(STEWARD)
    def raise_cap(self, name: str, cap: Promise, reason: str) -> PopulationView:
        """Raise a cap. The reason stays in the ledger for good."""
        population = population_named(self.service, name).as_principal(self.actor.name)
        population.raise_cap(cap, checked_text(reason, "reason"))
        self._log("cap-raised", population=name, cap=in_words(cap), reason=reason)
        return self._view(population)

    @for_roles(STEWARD)
    def grant(self, name: str, account: str, privacy: Promise, reason: str = "") -> PopulationView:
        """Say how much of a population an analyst may spend in all, what was spent before included."""
        population = population_named(self.service, name).as_principal(self.actor.name)
        if account not in self.analysts():
            raise InvalidArgumentError(f"account must be an analyst's, got {shown(account)}.")
        population.grant(account, privacy, reason)
        self._log("granted", population=name, account=account, privacy=in_words(privacy), reason=reason)
        return self._view(population)

    @for_roles(STEWARD, AUDITOR)
    def analysts(self) -> list[str]:
        """Return the names of analysts who can sign in."""
        return [one.name for one in self.service.accounts.listed() if one.role == ANALYST and one.closed is None]

    # ---------------------------------------------------------------- registrations

    @for_roles(STEWARD)
    def register(self, population: str, name: str, request: Mapping[str, Any]) -> RegistrationView:
        """Ask the worker to register records that lie below the root; what it finds is for stewards alone.

        Parameters
        ----------
        population, name : where, and by which name analysts will ask about them
        request : the file and how it becomes records, ball, units, classes, covariate: the entries of REQUEST
        """
        population_named(self.service, population)
        unknown = sorted(set(request) - set(REQUEST))
        if unknown:
            raise InvalidArgumentError(f"a registration takes {', '.join(REQUEST)}, got {', '.join(unknown)} as well.")
        asked = {**REQUEST, **{key: value for key, value in request.items() if value is not None}}
        vague = [key for key, usual in REQUEST.items() if isinstance(usual, bool) and not isinstance(asked[key], bool)]
        if vague:
            raise InvalidArgumentError(f"{vague[0]} must be true or false, got {shown(asked[vague[0]])}.")
        missing = [key for key in _NEEDED if asked[key] in (None, "")]
        if missing:
            raise InvalidArgumentError(f"a registration needs {', '.join(_NEEDED)}: {', '.join(missing)} is missing.")
        values = {
            "id": tables.new_id(), "steward": self.actor.name, "population": population,
            "name": checked_label(name, "name"), "request": json.dumps(asked), "state": "waiting", "message": "",
            "created": tables.now(),
        }  # fmt: skip
        with self.service.database.writing() as connection:
            connection.execute(insert(tables.registrations).values(**values))
            events.record(
                connection, "registration-asked", self.actor.name, population=population, name=str(values["name"])
            )
        return self.registration(str(values["id"]))

    @for_roles(STEWARD)
    def registrations(self) -> list[RegistrationView]:
        """Return what stewards asked to have registered, the newest first."""
        rows = select(tables.registrations).order_by(tables.registrations.c.created.desc()).limit(200)
        return [_registration(row) for row in self.service.database.rows(rows)]

    @for_roles(STEWARD)
    def registration(self, registration: str) -> RegistrationView:
        """Return one registration."""
        row = self.service.database.by_id(tables.registrations, registration)
        if row is None:
            raise NotFound
        return _registration(row)

    @for_roles(STEWARD)
    def set_terms(self, ref: str, *, approval: bool, slot: float | None = None, note: str = "") -> DataSetView:
        """Set what holds for releases of a data set.

        Parameters
        ----------
        ref : the data set
        approval : whether a steward decides on each release
        slot : how many seconds a release takes to be published, where the service's own rule is too short
        note : what analysts should know about the data, from public knowledge
        """
        population, known = self.data_seen(ref)
        if not isinstance(approval, bool):
            raise InvalidArgumentError(f"approval must be true or false, got {shown(approval)}.")
        if slot is not None and not (isinstance(slot, (int, float)) and 0 < slot <= 86_400):
            raise InvalidArgumentError(f"slot must be seconds, more than 0 and at most a day, got {shown(slot)}.")
        if not isinstance(note, str) or len(note) > _LONGEST_NOTE:
            raise InvalidArgumentError(f"note must be text of at most {_LONGEST_NOTE} characters.")
        here = (tables.terms.c.population == population.name) & (tables.terms.c.name == known.name)
        values = {"population": population.name, "name": known.name, "approval": approval, "slot": slot, "note": note}
        with self.service.database.writing() as connection:
            connection.execute(delete(tables.terms).where(here))
            connection.execute(insert(tables.terms).values(**values))
            events.record(
                connection, "terms-changed", self.actor.name, dataset=f"{population.name}/{known.name}",
                approval=int(approval), slot="" if slot is None else str(slot),
                note=note,
            )  # fmt: skip
        return self.view_of_data(population, known, population.standing())

    @for_roles(STEWARD)
    def resume(self, population: str, reason: str) -> PopulationView:
        """Let a population be asked about again, of which a release was lost; why it was is in the vault's notices.

        Parameters
        ----------
        population : whose data wait
        reason : what was found, for whoever audits the log
        """
        found = population_named(self.service, population)
        words = checked_text(reason, "reason")
        if not is_paused(self.service, population):
            raise Conflict(f"{population} is not paused.")
        with self.service.database.writing() as connection:
            connection.execute(delete(tables.pauses).where(tables.pauses.c.population == population))
            events.record(connection, "population-resumed", self.actor.name, population=population, reason=words)
        return self._view(found)

    # ---------------------------------------------------------------- decisions

    @for_roles(STEWARD, AUDITOR)
    def waiting(self) -> list[ReleaseView]:
        """Return the releases that a steward has to decide on, the oldest first."""
        rows = select(*LIGHT).where(tables.releases.c.state == "waiting").order_by(tables.releases.c.asked)
        return [self.view_of_release(row) for row in self.service.database.rows(rows)]

    @for_roles(STEWARD)
    def approve(self, release: str, reason: str = "") -> ReleaseView:
        """Let a release be paid for, in the name of whoever asked."""
        asked_for = self.row_seen(release)
        refuse_paused(self.service, asked_for.population)
        if self.service.accounts.find(asked_for.account) is None:
            raise Conflict(f"the account of {asked_for.account} is closed: refuse it. Nothing was spent.")
        asked = asked_before(self.service, asked_for)
        order = asked.order(asked_for.key)  # refuses what has become impossible meanwhile
        row = self._decided(release, "asked", "release-approved", reason)
        try:
            pay(self.service, row, asked, order)
        except BudgetError:
            self._refused_unpaid(row)
        return self.view_of_release(self.row_seen(release))

    @for_roles(STEWARD)
    def refuse(self, release: str, reason: str) -> ReleaseView:
        """Refuse a release. Nothing is spent."""
        self._decided(release, "refused", "release-refused", checked_text(reason, "reason"))
        return self.view_of_release(self.row_seen(release))

    def _decided(self, release: str, state: str, kind: str, reason: str) -> Row[Any]:
        """Write a decision down, once."""
        row = self.row_seen(release)
        words = checked_text(reason, "reason") if reason else ""
        values = {"state": state, "decided_by": self.actor.name, "decided": tables.now(), "reason": words}
        undecided = tables.release_in(release, "waiting")
        with self.service.database.writing() as connection:
            if connection.execute(update(tables.releases).where(undecided).values(**values)).rowcount != 1:
                raise Conflict("it was decided already.")
            events.record(connection, kind, self.actor.name, release=release, analyst=row.account, reason=words)
        return self.row_seen(release)

    def _refused_unpaid(self, row: Row[Any]) -> None:
        """Say that an approved release does not fit any more."""
        unpaid = tables.release_in(row.id, "asked")
        words = "It was approved, and is more than what is left by now. Nothing was spent."
        with self.service.database.writing() as connection:
            connection.execute(update(tables.releases).where(unpaid).values(state="refused", reason=words))
            events.record(connection, "release-refused", self.actor.name, release=row.id, analyst=row.account,
                          reason=words)  # fmt: skip

    # ---------------------------------------------------------------- audits

    @for_roles(AUDITOR, STEWARD)
    def audit(self) -> AuditView:
        """Look at every entry of the ledger, its witness, and every line of the audit log."""
        found = self.service.ledger.audit()
        faults = events.verify(self.service.database)
        return AuditView(
            ok=found.ok and not faults,
            entries=found.entries,
            head=found.head,
            faults=list(found.faults),
            event_faults=faults,
            notes=[*found.notes, *_recovered(found.populations)],
            populations={name: totals.to_dict() for name, totals in found.populations.items()},
        )

    @for_roles(AUDITOR)
    def events(self, after: int = 0, limit: int = 100) -> list[EventView]:
        """Return a page of the audit log, from behind a number on."""
        return [
            EventView(one.seq, one.at, one.kind, one.who, dict(one.facts))
            for one in events.page(self.service.database, after, max(1, min(limit, 1000)))
        ]

    @for_roles(AUDITOR)
    def accounts(self) -> list[AccountView]:
        """Return all accounts, without passwords."""
        return self.service.accounts.listed()

    @for_roles(AUDITOR)
    def export(self) -> bytes:
        """Return the ledger as JSON lines, which `dpm ledger verify-export` checks."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "ledger.jsonl"
            self.service.ledger.export(path)
            return path.read_bytes()

    # ---------------------------------------------------------------- views

    def _log(self, kind: str, **facts: str | int) -> None:
        with self.service.database.writing() as connection:
            events.record(connection, kind, self.actor.name, **facts)

    def _view(self, population: Population) -> PopulationView:
        standing = population.standing()
        latest = {known.name: known for known in population.datasets() if known.about}
        spent, unspent = population.spent, population.unspent
        return PopulationView(
            name=population.name,
            unit=population.unit,
            cap=standing.cap.to_dict(),
            cap_words=in_words(standing.cap),
            spent=None if spent is None else spent.to_dict(),
            spent_words=NOTHING if spent is None else in_words(spent),
            unspent=None if unspent is None else unspent.to_dict(),
            unspent_words=NOTHING if unspent is None else in_words(unspent, up=False),
            spent_share=share_of(standing.cap, standing.total),
            paused=is_paused(self.service, population.name),
            grants=[_grant(grant) for grant in population.grants()],
            datasets=[self.view_of_data(population, known, standing) for known in latest.values()],
        )


def _grant(grant: Grant) -> GrantView:
    spent, left = grant.spent, grant.remaining
    return GrantView(
        principal=grant.principal,
        granted=grant.granted.to_dict(),
        granted_words=in_words(grant.granted),
        spent=None if spent is None else spent.to_dict(),
        spent_words=NOTHING if spent is None else in_words(spent),
        left=None if left is None else left.to_dict(),
        left_words=NOTHING if left is None else in_words(left, up=False),
        share=0.0 if spent is None else min(1.0, share_of(grant.granted, cost_of(spent, grant.granted))),
    )


def _registration(row: Row[Any]) -> RegistrationView:
    return RegistrationView(
        row.id, row.steward, row.population, row.name, json.loads(row.request), row.state,
        joined(map(message_from_record, json.loads(row.message))) if row.message else Message(""),
        row.dataset, row.created, row.ended,
    )  # fmt: skip


def _recovered(populations: Mapping[str, Totals]) -> list[str]:
    """Say which spends the database had forgotten: it was put back from a backup."""
    return [
        f"{totals.recovered} of the spends of {name} were recovered from the witness, after the ledger had been put "
        "back from a backup; what they released is lost. Why it was put back stands in the export."
        for name, totals in populations.items()
        if totals.recovered
    ]
