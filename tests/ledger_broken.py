"""Ledgers that are wrong, each in one way that a reader might overlook: tests of kills and races must find them out.

Calling one breaks the ledger of this process for good: it is done in a forked child, or by `monkeypatch`.
"""

from __future__ import annotations

import calendar
import os
import pathlib
import time
from types import SimpleNamespace

from dpmanifold.errors import LedgerError
from dpmanifold.ledger import Ledger, settling, standing, witness
from dpmanifold.ledger.datasets import RegisteredData
from dpmanifold.ledger.settling import Settling
from dpmanifold.ledger.standing import Standing, standing_of
from dpmanifold.ledger.stores import PostgresStore, SqliteStore, Store
from dpmanifold.privacy.amounts import added, cost_of
from dpmanifold.storage import sqlite
from dpmanifold.storage.database import Database

BROKEN = {}


def _broken(action):
    BROKEN[action.__name__] = action
    return action


@_broken
def draws_before_it_pays():
    """The work is done while the order may still be refused, or its client be killed."""
    settle = Settling.settle

    def wrong(self, order, work):
        if self.known(order) is None:
            content = work(SimpleNamespace(sequence=0))
            return settle(self, order, lambda receipt: content)
        return settle(self, order, work)

    Settling.settle = wrong


@_broken
def looks_before_it_locks():
    """Whether an order fits is asked before the transaction that pays for it."""
    settle, after = Settling.settle, Standing.after

    def wrong(self, order, work):
        found = self._ledger.store.read(lambda reader: standing_of(reader, self._ledger.id, self.name, self.principal))
        if self.known(order) is None:
            after(found, order.privacy, self.name, self.principal)
        return settle(self, order, work)

    def unchecked(self, promise, population, principal):
        cost = cost_of(promise, self.cap)
        return cost, added(self.total, cost), added(self.mine, cost)

    Settling.settle, standing.Standing.after = wrong, unchecked


@_broken
def begins_what_was_begun():
    """Whoever finds no outcome does the work, also of a spend that somebody began."""

    def start(self, writer, spend, token):
        return writer.once(f"outcome:{spend.seq}") is None

    settling._was_begun = lambda reader, spend: reader.once(f"outcome:{spend.seq}") is not None
    Settling._start = start


@_broken
def returns_what_it_did_not_keep():
    """The answer is handed out although it is not in the ledger."""

    def draw(self, writer, spend, content):
        return True

    Settling._draw = draw


@_broken
def takes_the_living_for_dead():
    """A waiter does not see who is at work."""
    SqliteStore.is_held = PostgresStore.is_held = lambda self, token: False


@_broken
def waits_for_a_clock():
    """An attempt counts as alive for a while, whatever became of its process."""

    def alive(self, started):
        begun = calendar.timegm(time.strptime(started.facts["time"][:19], "%Y-%m-%dT%H:%M:%S"))
        return time.time() < begun + 3600

    Settling._alive = alive


@_broken
def locks_by_a_file():
    """Whoever writes makes a file and removes it after; who is killed in between leaves it behind."""
    write = Store.write

    def wrong(self, ledger, action):
        path = pathlib.Path(f"{self.name}.locked")
        while True:
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL))
                break
            except FileExistsError:
                time.sleep(0.001)
        try:
            return write(self, ledger, action)
        finally:
            path.unlink()

    Store.write = wrong


@_broken
def leaves_the_witness_to_the_system():
    """The witness is written, and not synced."""
    witness.sync_file = lambda handle: None


@_broken
def leaves_commits_to_the_system():
    """A commit is written, and not synced."""
    sqlite._SYNCED = "PRAGMA synchronous=OFF"


@_broken
def opens_before_it_pays():
    """The records are looked at in order to see that they are there."""
    check = RegisteredData.check

    def wrong(self):
        self.open()
        check(self)

    RegisteredData.check = wrong


@_broken
def tells_the_witness_at_the_end():
    """The witness hears of a spend when all is done."""
    witnessed = Ledger.witnessed

    def wrong(self):
        if self.store.read(lambda reader: reader.head().kind) == "drawn":
            witnessed(self)

    Ledger.witnessed = wrong


@_broken
def keeps_its_connections_over_forks():
    """A child speaks to the server by its parent's connection."""
    Database.engine = property(lambda self: self._engine)


@_broken
def hands_out_what_it_could_not_keep():
    """It is drawn and paid for: whoever asked has it, although it could not be written down."""
    attempt = Settling._attempt

    def wrong(self, spend, cap, key, work):
        drawn = []
        try:
            return attempt(self, spend, cap, key, lambda receipt: drawn.append(work(receipt)) or drawn[0])
        except LedgerError:
            if drawn:
                return drawn[0]
            raise

    Settling._attempt = wrong
