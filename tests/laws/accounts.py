"""Accounts that write down the order of things: one in memory that does what a ledger's does, and a ledger's own."""

import dataclasses
import hashlib
import threading

from dpmanifold.errors import BudgetError, InvalidArgumentError, ReleaseLostError
from dpmanifold.privacy import Account, Receipt
from dpmanifold.privacy.amounts import added, as_promise_down, as_promise_up, cost_of, fits, left_of, nothing, refusal
from dpmanifold.privacy.budget_accounts import Mark, canonical_json
from dpmanifold.stats.marks import content_beside
from dpmanifold.stats.registered_data import Opened, Registered, survey


class MemoryAccount(Account):
    """One population of a ledger that is forgotten with the process."""

    unit = None

    def __init__(self, cap, name="cohort", ledger="ledger-1", unit="record"):
        self._cap, self._name, self._ledger, self.unit = cap, name, ledger, unit
        self._total = nothing(cap)
        self._answers, self._sets, self.orders, self.events = {}, {}, [], []
        self._lock = threading.Lock()

    @property
    def ledger(self):
        return self._ledger

    @property
    def name(self):
        return self._name

    @property
    def privacy(self):
        return self._cap

    @property
    def spent(self):
        return as_promise_up(self._cap, self._total)

    @property
    def remaining(self):
        return as_promise_down(self._cap, left_of(cost_of(self._cap, self._cap), self._total))

    def marked(self, content, facts):
        records, rest = (hashlib.sha256(piece).hexdigest() for piece in content())
        self.events.append("registered")
        return Mark(
            self._sets.setdefault((records, rest, canonical_json(facts)), f"data@{len(self._sets) + 1}"), records
        )

    def known(self, order):
        if order.key not in self._answers:
            return None
        request, stored = self._answers[order.key]
        if request != order.request_hash:
            raise InvalidArgumentError(f"key {order.key!r} stands for another request.")
        if stored is None:
            raise ReleaseLostError.of(order.key)
        return stored

    def settle(self, order, work):
        with self._lock:
            stored = self.known(order)
            if stored is not None:
                return stored
            total, whole = added(self._total, cost_of(order.privacy, self._cap)), cost_of(self._cap, self._cap)
            if not fits(total, whole):
                raise BudgetError(refusal(order.privacy, self._cap, self._total, whole))
            self._total = total
            self.orders.append(order)
            self._answers[order.key] = (order.request_hash, None)
            self.events += ["spent", "started"]
        receipt = Receipt(self._ledger, len(self.orders), order.request_hash, self._name, self.spent.to_dict())
        try:
            stored = work(receipt)
        except Exception:
            self.events.append("lost")
            raise ReleaseLostError.of(order.key) from None
        self.events.append("drawn")
        self._answers[order.key] = (order.request_hash, stored)
        return stored

    def register(self, name, X, ball, units, labels=None, classes=None, invalid="raise", confirm=False, **more):
        """Return records as registered data of this account."""
        found = survey(X, ball, units=units, labels=labels, classes=classes, invalid=invalid, confirm=confirm, **more)
        mark = self.marked(found.content, found.facts)
        opened = Opened(X, units, labels, more.get("covariate"))
        return MemoryData(self, mark, name, ball, found, invalid, classes, opened)


class MemoryData(Registered):
    """Registered records that stay in memory; `replace` changes them behind the ledger's back."""

    def __init__(self, account, mark, name, ball, found, invalid, classes, opened):
        self.id, self.records_mark = mark.id, mark.records
        self.ledger, self.population, self.name = account.ledger, account.name, name
        self.ball, self.facts, self.invalid = ball, found.facts, invalid
        self.n, self.unit = found.facts["n"], found.facts["unit"]
        self.covariate = found.covariate
        self._account, self._classes, self._opened = account, classes, opened
        self._content = b"".join(found.content())
        self.fingerprint = hashlib.sha256(self._content).hexdigest()
        self.opening = lambda: None

    def replace(self, **changes):
        """Put other records in place of the registered ones."""
        self._opened = Opened(**{**vars(self._opened), **changes})

    def open(self):
        """Open them, and see whether they are the same."""
        self._account.events.append("opened")
        self.opening()
        given = self._opened
        beside = given.units, given.labels, self._classes, given.covariate
        if b"".join(content_beside(given.records, self.ball, *beside)()) != self._content:
            raise RuntimeError("the records are others: Ann Smith has left")
        return given


class RecordedPopulation(Account):
    """A ledger's own population; when work begins, the spend and its start must stand in database and witness."""

    def __init__(self, ledger, cap, name="cohort", unit="record"):
        self._book, self._whose = ledger, ledger.population(name, cap=cap, unit=unit)
        self.orders, self.events = [], []

    ledger = property(lambda self: self._whose.ledger)
    name = property(lambda self: self._whose.name)
    unit = property(lambda self: self._whose.unit)
    privacy = property(lambda self: self._whose.privacy)
    spent = property(lambda self: self._whose.spent)
    remaining = property(lambda self: self._whose.remaining)

    def marked(self, content, facts):
        self.events.append("registered")
        return self._whose.marked(content, facts)

    def known(self, order):
        return self._whose.known(order)

    def settle(self, order, work):
        begun = []

        def recorded(receipt):
            begun.append(receipt)
            here = {(entry.kind, entry.seq): entry for entry in self._book.entries()}
            paid = here["spend", receipt.sequence]
            (started,) = (one for one in here.values() if one.kind == "started" and one.facts["spend"] == paid.seq)
            assert paid.hash == receipt.hash
            seen = {entry.hash for _, entry in self._book.witness.lines() if entry is not None}
            assert {paid.hash, started.hash} <= seen
            self.orders.append(order)
            self.events += ["spent", "started"]
            return work(receipt)

        try:
            stored = self._whose.settle(order, recorded)
        except ReleaseLostError:
            self.events += ["lost"] if begun else []
            raise
        self.events += ["drawn"] if begun else []
        return stored

    def register(self, name, X, ball, units, **rest):
        """Return records as registered data of this account."""
        self.events.append("registered")
        return RecordedData(self, self._whose.register(name, X, ball, units=units, **rest))


class RecordedData(Registered):
    """Registered data of a ledger that say when they are opened."""

    def __init__(self, account, data):
        self._account, self._data, self.opening = account, data, lambda: None
        for name in (
            "id",
            "ledger",
            "population",
            "name",
            "ball",
            "n",
            "unit",
            "invalid",
            "fingerprint",
            "records_mark",
            "facts",
            "covariate",
        ):
            setattr(self, name, getattr(data, name))

    def replace(self, **changes):
        """Put other records in place of the registered ones."""
        self._data._given = dataclasses.replace(self._data._given, **changes)

    def check(self):
        self._data.check()

    def open(self):
        self._account.events.append("opened")
        self.opening()
        return self._data.open()
