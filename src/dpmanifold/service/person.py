"""Somebody who has signed in: who they are, and how data sets and releases look to them."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Row, select

from dpmanifold.ledger.datasets import DataSet, InLedger
from dpmanifold.ledger.population import Population
from dpmanifold.ledger.standing import Standing
from dpmanifold.privacy.amounts import as_promise_down, in_words, share_of
from dpmanifold.service import tables
from dpmanifold.service.accounts import Actor
from dpmanifold.service.http_errors import NotFound
from dpmanifold.service.ordering import Ref, data_set, duration, is_paused, population_named, terms_of
from dpmanifold.service.questions import promise_from_json
from dpmanifold.service.service import Service
from dpmanifold.service.views import DataSetView, ReleaseView
from dpmanifold.stats.means import MEAN_QUERY
from dpmanifold.stats.query import find_query, offered

# A row without what may be large, but for whether it is there.
LIGHT = (
    *(column for column in tables.releases.c if column.name not in ("result", "picture", "report")),
    tables.releases.c.picture.is_not(None).label("pictured"),
    tables.releases.c.report.is_not(None).label("reported"),
)
ANALYST, STEWARD, AUDITOR = "analyst", "steward", "auditor"
NOTHING = "nothing"


P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D", bound="Person")


def for_roles(*roles: str) -> Callable[[Callable[Concatenate[D, P], T]], Callable[Concatenate[D, P], T]]:
    """Make what somebody may do be there for these roles alone; for others there is nothing here."""

    def declared(act: Callable[Concatenate[D, P], T]) -> Callable[Concatenate[D, P], T]:
        @functools.wraps(act)
        def checked(person: D, /, *given: P.args, **named: P.kwargs) -> T:
            person.require(*roles)
            return act(person, *given, **named)

        return checked

    return declared


@dataclass(eq=False)
class Person:
    """Who acts, and what every role shares.

    Parameters
    ----------
    service : where
    actor : who has signed in
    """

    service: Service
    actor: Actor

    def require(self, *roles: str) -> None:
        """Go on for these roles alone; for others there is nothing here."""
        if self.actor.role not in roles:
            raise NotFound

    def population_seen(self, name: str) -> Population:
        """Return a population in this person's name; an analyst sees those with a grant."""
        found = population_named(self.service, name).as_principal(self.actor.name)
        if self.actor.role == ANALYST and found.standing().grant is None:
            raise NotFound
        return found

    def data_seen(self, ref: str) -> tuple[Population, DataSet]:
        """Return a data set that this person may see."""
        asked = Ref.read(ref)
        population = self.population_seen(asked.population)
        return population, data_set(population, asked.name, asked.version)

    def row_seen(self, release: str) -> Row[Any]:
        """Return the row of a release that this person may see: an analyst's own, for the others all."""
        found: Row[Any] | None = self.service.database.row(select(*LIGHT).where(tables.releases.c.id == release))
        if found is None or (self.actor.role == ANALYST and found.account != self.actor.name):
            raise NotFound
        return found

    def view_of_data(self, population: Population, known: DataSet, standing: Standing) -> DataSetView:
        """Return a data set as this person sees it."""
        data = InLedger(population, known)
        terms = terms_of(self.service, population.name, known.name)
        facts = known.facts
        beside = data.covariate
        by_class = data.labels_public if "classes" in facts else None
        left = as_promise_down(standing.cap, standing.left) if standing.grant is not None else None
        return DataSetView(
            ref=f"{population.name}/{known.name}",
            population=population.name,
            name=known.name,
            version=known.version,
            id=known.id,
            space=known.space,
            ball=json.loads(known.about["ball"]),
            n=known.n,
            unit=known.unit,
            protects=population.unit,
            classes=data.classes,
            units_by_class=list(facts["units_by_class"]) if by_class else None,
            labels_public=by_class,
            covariate=None if beside is None else {"range": list(beside.range), "public": beside.public},
            cap=standing.cap.to_dict(),
            cap_words=in_words(standing.cap),
            granted=None if standing.grant is None else standing.grant.to_dict(),
            left=None if left is None else left.to_dict(),
            left_words=NOTHING if left is None else in_words(left, up=False),
            spent_share=share_of(standing.cap, standing.total),
            approval=terms["approval"],
            slot=duration(MEAN_QUERY, data, data.ball.space.dim, self.service.settings.slot, terms["slot"]),
            own_slot=terms["slot"],
            note=terms["note"],
            paused=is_paused(self.service, population.name),
            statistics=[query.name for query in offered() if query.sample.fits(data)],
        )

    def view_of_release(self, row: Row[Any]) -> ReleaseView:
        """Return a release as this person sees it: nothing of what came of it before it is published."""
        question = json.loads(row.question)
        query, privacy = find_query(row.statistic), promise_from_json(question["privacy"])
        state = state_of(row)
        until = row.publishes and tables.moment(row.publishes) - tables.moment(tables.now())
        return ReleaseView(
            id=row.id,
            ref=f"{row.population}/{row.dataset.partition('@')[0]}",
            dataset=row.dataset,
            population=row.population,
            statistic=row.statistic,
            title=row.statistic if query is None else query.title,  # of a package that is gone
            options=question["options"],
            privacy=privacy.to_dict(),
            privacy_words=in_words(privacy),
            key=row.key,
            analyst=row.account,
            state=state,
            asked=row.asked,
            publishes=row.publishes,
            seconds=None if until is None else max(0.0, until.total_seconds()),
            decided_by=row.decided_by,
            decided=row.decided,
            reason=row.reason,
            receipt=json.loads(row.receipt) if state == "released" and row.receipt else None,
            pictured=state == "released" and bool(row.pictured),
            reported=state == "released" and bool(row.reported),
        )


def state_of(row: Row[Any]) -> str:
    """Return the state of a release that may be told now: until it is published, that it is pending."""
    if row.state in ("waiting", "refused"):
        return str(row.state)
    if row.state in ("released", "lost") and row.publishes is not None and row.publishes <= tables.now():
        return str(row.state)
    return "pending"
