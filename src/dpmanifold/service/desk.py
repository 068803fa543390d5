"""What one person may do. Every page and every call over the network goes through here, and so does who may do what."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any, final

import numpy as np
from sqlalchemy import Column, Row, Select, delete, func, insert, select, update

from dpmanifold.ball import Ball
from dpmanifold.codec import answer_from_bytes
from dpmanifold.errors import BudgetError, InvalidArgumentError
from dpmanifold.ledger.history import Line
from dpmanifold.ledger.standing import Standing
from dpmanifold.privacy.amounts import Amount, as_promise_down, in_words, left_of, share_of
from dpmanifold.privacy.budget_accounts import Order, checked_text
from dpmanifold.result import Result
from dpmanifold.service import events, tables
from dpmanifold.service.credentials import TokenView
from dpmanifold.service.http_errors import Conflict, NotFound, TooMany
from dpmanifold.service.ordering import Asking, Ref, asking, free_from, pay, refuse_negligible, refuse_paused, terms_of
from dpmanifold.service.person import ANALYST, LIGHT, NOTHING, state_of
from dpmanifold.service.questions import Question
from dpmanifold.service.stewardship import Stewardship
from dpmanifold.service.views import Curve, DataSetView, HistoryView, LineView, PriceView, ReleaseView
from dpmanifold.stats.query import query_named

MOST = 200
"""Rows on a page."""
MOST_UNDER_WAY = 20
"""Releases of one analyst that are not published yet."""
UNDER_WAY = ("waiting", "asked", "paid")


@final
class Desk(Stewardship):
    """A desk for whoever has signed in.

    What is not for this person raises the same error as what does not exist. Planning touches public numbers alone and
    refuses as the private calls do. Only :meth:`ask`, and a steward's approval, spend anything.
    """

    # ---------------------------------------------------------------- data sets and plans

    def datasets(self) -> list[DataSetView]:
        """Return the data sets that this person may see, each in its latest version."""
        found = []
        for population in self.service.ledger.populations():
            own = population.as_principal(self.actor.name)
            standing = own.standing()
            if self.actor.role == ANALYST and standing.grant is None:
                continue
            latest = {known.name: known for known in own.datasets() if known.about}
            found += [self.view_of_data(own, known, standing) for known in latest.values()]
        return found

    def dataset(self, ref: str) -> DataSetView:
        """Return one data set, by "population/name" or "population/name@version"."""
        population, known = self.data_seen(ref)
        return self.view_of_data(population, known, population.standing())

    def plan(self, dataset: str, question: Question) -> dict[str, Any]:
        """Return what to expect: the record that `dpm plan --json` prints for the same numbers."""
        asked = self._asking(dataset, question)
        return self.service.forecasts.plan(question.query, asked.data, asked.ball, question.privacy, asked.options)

    def needed(self, dataset: str, question: Question, error: float) -> dict[str, Any]:
        """Return which promise, and how many units, an expected error of a mean takes."""
        if not question.query.tells_needs:
            raise InvalidArgumentError(f"error is about means, got {question.statistic!r}: leave it out.")
        asked = self._asking(dataset, question)
        return self.service.forecasts.needed(asked.data, asked.ball, question.privacy, error, asked.options)

    def curve(
        self,
        dataset: str,
        statistic: str,
        kind: str = "GDP",
        options: Mapping[str, Any] | None = None,
        delta: str | None = None,
        ball: Mapping[str, Any] | None = None,
    ) -> Curve:
        """Return what to expect for each promise of a grid.

        Parameters
        ----------
        dataset : which
        statistic, options, ball : as in a question
        kind, delta : of the promises
        """
        query = query_named(statistic)
        population, known = self.data_seen(dataset)
        some = Question(statistic, population.cap, query.checked(options or {}), ball)
        found = asking(self.service, self.actor.name, Ref(population.name, known.name, known.version), some)
        return self.service.forecasts.curve(query, found.data, found.ball, kind, delta, found.options)

    # ---------------------------------------------------------------- asking

    def price(self, dataset: str, question: Question) -> PriceView:
        """Return what a question costs and leaves, or refuse as :meth:`ask` would. Spends nothing."""
        asked, order, standing = self._ordered(dataset, question, key="price")
        refuse_paused(self.service, asked.account.name)
        refuse_negligible(asked, standing)
        cost = standing.after(order.privacy, asked.account.name, self.actor.name)[0]
        left = standing.left
        after = left_of(left, cost)
        with self.service.database.reading() as connection:
            now = tables.now()
            wait = tables.moment(free_from(connection, now)) - tables.moment(now)
        return PriceView(
            ref=dataset,
            statistic=question.statistic,
            cost=question.privacy.to_dict(),
            cost_words=in_words(question.privacy),
            **_amounts(standing, left, "left"),
            **_amounts(standing, after, "after"),
            more=how_many(after, cost),
            approval=terms_of(self.service, asked.data.population, asked.data.name)["approval"],
            seconds=wait.total_seconds() + asked.seconds(self.service),
        )

    def ask(self, dataset: str, question: Question, key: str) -> ReleaseView:
        """Ask for a release, and pay for it, unless a steward decides first. The same key again costs nothing.

        Parameters
        ----------
        dataset : which
        question : what is asked
        key : under which it is answered once; one that this person uses for nothing else

        Raises
        ------
        BudgetError : it is more than what is left. Nothing was spent
        Conflict : the key stands for another question, or the population is paused
        TooMany : many releases of this person are under way
        """
        asked, order, standing = self._ordered(dataset, question, key)
        row = self.service.database.row(self._under(key, asked.account.name))
        if row is None or (row.state == "asked" and asked.account.status(key) is None):
            refuse_paused(self.service, asked.account.name)
            refuse_negligible(asked, standing)
            standing.after(order.privacy, asked.account.name, self.actor.name)  # refuses what does not fit
        if row is None:
            self._refuse_many()
            row = self._written(asked, order)
        if row.request != order.request_hash or json.loads(row.question) != question.to_dict():
            raise Conflict(f"key {key!r} stands for another question. Use another one, or ask exactly as before.")
        if row.state == "asked" and self._may_pay(row, asked):
            self._pay(row, asked, order)
        return self.release(row.id)

    def _refuse_many(self) -> None:
        """Refuse a long queue of one person: slots come one after the other, and others wait as well."""
        mine = (tables.releases.c.account == self.actor.name) & tables.releases.c.state.in_(UNDER_WAY)
        count = self.service.database.value(select(func.count()).select_from(tables.releases).where(mine))
        if count >= MOST_UNDER_WAY:
            raise TooMany(
                f"{count} of your releases are under way, and more than {MOST_UNDER_WAY} at a time are not taken. Wait "
                "until one is published. Nothing was spent.",
                retry_after=max(1, round(self.service.settings.slot)),
            )

    def _may_pay(self, row: Row[Any], asked: Asking) -> bool:
        """Return whether a row can be paid for now: one that nobody paid yet waits where a steward decides by now."""
        undecided = row.decided_by is None and asked.account.status(row.key) is None
        if not undecided or not terms_of(self.service, asked.data.population, asked.data.name)["approval"]:
            return True
        waits = update(tables.releases).where(tables.release_in(row.id, "asked")).values(state="waiting")
        self.service.database.write(waits)
        return False

    def _asking(self, ref: str, question: Question) -> Asking:
        population, known = self.data_seen(ref)
        return asking(self.service, self.actor.name, Ref(population.name, known.name, known.version), question)

    def _ordered(self, ref: str, question: Question, key: str) -> tuple[Asking, Order, Standing]:
        """Return an analyst's question with its order, and how the population stands."""
        self.require(ANALYST)
        asked = self._asking(ref, question)
        return asked, asked.order(checked_text(key, "key")), asked.account.standing()

    def _under(self, key: str, population: str) -> Select[Any]:
        """Return what finds the row of this person's key."""
        rows = tables.releases.c
        mine = (rows.account == self.actor.name) & (rows.population == population) & (rows.key == key)
        return select(tables.releases).where(mine)

    def _written(self, asked: Asking, order: Order) -> Row[Any]:
        """Write down what is asked, before anything is paid; of two at once, the first stands."""
        question, data = asked.question, asked.data
        values = {
            "id": tables.new_id(),
            "account": self.actor.name,
            "population": data.population,
            "dataset": data.id,
            "statistic": question.statistic,
            "question": json.dumps(question.to_dict()),
            "key": order.key,
            "privacy": json.dumps(question.privacy.to_dict()),
            "request": order.request_hash,
            "state": "waiting" if terms_of(self.service, data.population, data.name)["approval"] else "asked",
            "asked": tables.now(),
        }
        with self.service.database.writing() as connection:
            found = connection.execute(self._under(order.key, data.population)).one_or_none()
            if found is not None:
                return found
            connection.execute(insert(tables.releases).values(**values))
            events.record(
                connection, "release-asked", self.actor.name, release=str(values["id"]), population=data.population,
                dataset=data.id, statistic=question.statistic,
            )  # fmt: skip
            return connection.execute(self._under(order.key, data.population)).one()

    def _pay(self, row: Row[Any], asked: Asking, order: Order) -> None:
        try:
            pay(self.service, row, asked, order)
        except BudgetError:  # it fitted a moment ago: whoever was faster has it, and the key is free again
            with self.service.database.writing() as connection:
                if asked.account.status(row.key) is None:  # nobody else has paid for it meanwhile
                    connection.execute(delete(tables.releases).where(tables.release_in(row.id, "asked")))
            raise

    # ---------------------------------------------------------------- releases

    def releases(self, before: str | None = None, limit: int = 50) -> list[ReleaseView]:
        """Return releases, the newest first: an analyst's own, for the others all.

        Parameters
        ----------
        before : the id of the release after which the page starts
        limit : how many at most
        """
        rows = select(*LIGHT).order_by(tables.releases.c.asked.desc(), tables.releases.c.id)
        if self.actor.role == ANALYST:
            rows = rows.where(tables.releases.c.account == self.actor.name)
        if before is not None:
            last, mine = self.row_seen(before), tables.releases.c
            rows = rows.where((mine.asked < last.asked) | ((mine.asked == last.asked) & (mine.id > last.id)))
        return [self.view_of_release(row) for row in self.service.database.rows(rows.limit(max(1, min(limit, MOST))))]

    def release(self, release: str) -> ReleaseView:
        """Return one release."""
        return self.view_of_release(self.row_seen(release))

    def result(self, release: str) -> bytes:
        """Return what was released, as JSON."""
        return self._part(release, tables.releases.c.result)

    def answer(self, release: str) -> Any:
        """Return what was released, as the private call returned it."""
        return answer_from_bytes(self.result(release))

    def picture(self, release: str) -> bytes:
        """Return the picture of a release, a PNG."""
        return self._part(release, tables.releases.c.picture)

    def report(self, release: str) -> bytes:
        """Return the report of a release, an HTML page."""
        return self._part(release, tables.releases.c.report)

    def array(self, release: str) -> bytes:
        """Return the released value as a .npy file, where an array can hold it."""
        value = array_in(self.answer(release))
        if value is None:
            raise NotFound
        file = io.BytesIO()
        np.save(file, np.asarray(value), allow_pickle=False)
        return file.getvalue()

    def _part(self, release: str, column: Column[Any]) -> bytes:
        if state_of(self.row_seen(release)) != "released":
            raise NotFound
        content = self.service.database.value(select(column).where(tables.releases.c.id == release))
        if content is None:
            raise NotFound
        return bytes(content)

    # ---------------------------------------------------------------- what used it up

    def history(self, population: str, after: int = 0, limit: int = 200) -> HistoryView:
        """Return what used a cap up; an analyst sees who else spent as "others"."""
        whose = self.population_seen(population)
        page = whose.history(after=after, limit=max(1, min(limit, 1000)))
        cap = whose.cap
        mine = tables.releases.c
        columns: tuple[Any, ...] = (mine.id, mine.account, mine.key, mine.state, mine.publishes)
        known = (mine.population == population) & mine.key.in_({line.key for line in page.releases})
        rows = {(row.account, row.key): row for row in self.service.database.rows(select(*columns).where(known))}
        lines = [self._line(line, rows, cap_shares=(share_of(cap, line.cost), share_of(cap, line.spent)))
                 for line in page.releases]  # fmt: skip
        return HistoryView(population, cap.to_dict(), in_words(cap), lines, page.next)

    def _line(self, line: Line, rows: Mapping[tuple[str, str], Row[Any]], cap_shares: tuple[float, float]) -> LineView:
        row = rows.get((line.principal, line.key))
        mine = self.actor.role != ANALYST or line.principal == self.actor.name
        state = line.state if line.state in ("released", "lost") else "pending"
        return LineView(
            sequence=line.sequence,
            time=line.time,
            analyst=line.principal if mine else "others",
            what=line.about if mine else "",
            privacy=line.privacy,
            share=cap_shares[0],
            total_share=cap_shares[1],
            state=state if row is None else state_of(row),
            release=row.id if row is not None and mine else None,
        )

    # ---------------------------------------------------------------- one's own account

    def tokens(self) -> list[TokenView]:
        """Return this person's tokens, without their secrets."""
        return self.service.tokens.listed(self.actor)

    def make_token(self, label: str, days: int) -> tuple[TokenView, str]:
        """Make a token for programs; its secret is returned this once."""
        return self.service.tokens.make(self.actor, label, days)

    def revoke_token(self, token: str) -> None:
        """End a token, at once."""
        self.service.tokens.revoke(self.actor, token)

    def change_password(self, old: str, new: str) -> None:
        """Change the password; all logins and tokens of this person end."""
        self.service.accounts.change_password(self.actor.name, old, new)


def _amounts(standing: Standing, amount: Amount, name: str) -> dict[str, Any]:
    """Return an amount as a promise and in words, under a name."""
    found = as_promise_down(standing.cap, amount)
    return {name: None if found is None else found.to_dict(),
            f"{name}_words": NOTHING if found is None else in_words(found, up=False)}  # fmt: skip


def array_in(answer: Any) -> Any:
    """Return the released value of an answer, where an array can hold it; None for any other."""
    value = answer.number_or_array if isinstance(answer, Result) else None
    return None if isinstance(value, Ball) else value


def how_many(left: Amount, cost: Amount) -> int:
    """Return how many times a cost fits into what is left.

    Examples
    --------
    >>> from fractions import Fraction
    >>> how_many((Fraction(1, 2),), (Fraction(1, 8),))
    4
    """
    return min((int(have / one) for have, one in zip(left, cost, strict=True) if one), default=0)
