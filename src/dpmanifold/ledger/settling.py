"""From an order to its answer: pay, tell the witness, begin, work, keep what came of it. Each step once.

A spend is queued until somebody begins it, and may be begun by whoever asks again. It is begun once: who began holds
a lock, and if the lock is free while nothing was drawn, the answer is lost. Whatever happens, and whenever the process
ends, a draw is published only if it is the one that the ledger and its witness have.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from dpmanifold.errors import DPManifoldError, InvalidArgumentError, LedgerError, ReleaseLostError
from dpmanifold.ledger.datasets import registered
from dpmanifold.ledger.entries import Entry, promise_to_body
from dpmanifold.ledger.entry_access import Reader, Writer
from dpmanifold.ledger.history import LOST, RELEASED, SPENT, STARTED
from dpmanifold.ledger.standing import refuse_edited, standing_of
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import amount_from_text, amount_to_text, as_promise_up
from dpmanifold.privacy.budget_accounts import Account, Order, Receipt, checked_text
from dpmanifold.storage.chain import sha256_of_bytes

if TYPE_CHECKING:
    from dpmanifold.ledger.ledger import Ledger

_PAUSES = (0.005, 0.25)  # seconds between two looks at somebody else's attempt: the first, and the longest


class Settling(Account):
    """The orders of one principal from one population.

    Parameters
    ----------
    ledger : which keeps the population
    name : the population's name
    unit : who is protected
    principal : who orders
    """

    def __init__(self, ledger: Ledger, name: str, unit: str, principal: str) -> None:
        self._ledger, self.ledger = ledger, ledger.id
        self.name, self.unit, self.principal = name, unit, principal

    def settle(self, order: Order, work: Callable[[Receipt], bytes]) -> bytes:
        """Pay for an order and do the work, once; or return what was stored for the same key and request."""
        # A lock that cannot be had, and a witness that cannot be written to, are found out before anything is spent. In
        # this order: from here on no more sessions are needed at a time than the server has given once.
        token = secrets.token_hex(16)
        with self._ledger.store.in_plain_words():
            held = self._ledger.store.hold(token)
        try:
            self._ledger.witnessed()
            spend, cap, queued = self._ledger.write(lambda writer: self._paid(writer, order))
            with _naming(order.key):
                self._ledger.witnessed()
                if queued and self._begin(spend, token):
                    return self._attempt(spend, cap, order.key, work)
        finally:
            held.release()
        with _naming(order.key):
            while True:
                known = self._outcome(spend, order.key)
                if known is not None:
                    return known
                self._await(spend)

    def pay(self, order: Order) -> str:
        """Pay for an order now, and leave the work to whoever settles the same order later, in another process maybe.

        Returns
        -------
        what the order is after that, as :meth:`status` says it: "spent", unless it was paid for before

        Raises
        ------
        BudgetError : it is more than what is left; nothing was spent, and the key is as free as before
        InvalidArgumentError : the key stands for another request
        """
        self._ledger.witnessed()
        self._ledger.write(lambda writer: self._paid(writer, order))
        with _naming(order.key):
            self._ledger.witnessed()
        found = self.status(order.key)
        assert found is not None  # it is paid for
        return found

    def known(self, order: Order) -> bytes | None:
        """Return what was stored for this key and request, or None. Spends nothing."""
        spend = self._ledger.store.read(lambda reader: self._same(reader, order))
        return None if spend is None else self._outcome(spend, order.key)

    def status(self, key: str) -> str | None:
        """Return what became of a key of this principal.

        None: nothing was paid for under it. "spent": paid for, and begun by whoever asks again. "started": somebody is
        at work. "released": answered. "lost": paid for, and never to be answered.
        """
        once = self._once(checked_text(key, "key"))

        def look(reader: Reader) -> tuple[Entry | None, Entry | None, Entry | None]:
            spend = reader.once(once)
            if spend is None:
                return None, None, None
            return spend, reader.once(_started(spend)), reader.once(_outcome(spend))

        spend, started, outcome = self._ledger.store.read(look)
        if spend is None:
            return None
        if outcome is not None:
            return RELEASED if outcome.kind == "drawn" else LOST
        if spend.kind == "recovered" or (started is not None and not self._alive(started)):
            return LOST
        return SPENT if started is None else STARTED

    def recovered(self, key: str) -> bool:
        """Return whether the payment under a key was recovered from the witness: then its answer is lost."""
        once = self._once(checked_text(key, "key"))
        spend = self._ledger.store.read(lambda reader: reader.once(once))
        return spend is not None and spend.kind == "recovered"

    def _paid(self, writer: Writer, order: Order) -> tuple[Entry, Promise, bool]:
        """Return the entry that paid for an order, there already or new; the cap; and whether it is still queued."""
        found = self._same(writer, order)
        standing = standing_of(writer, self._ledger.id, self.name, self.principal)
        if found is not None:
            return found, standing.cap, not _was_begun(writer, found)
        cost, total, mine = standing.after(order.privacy, self.name, self.principal)
        self._register(writer, order)
        spend = writer.append(
            "spend",
            self.name,
            self._once(order.key),
            principal=self.principal,
            key=order.key,
            request=order.request_hash,
            label=order.label,
            statistic=str(order.request.get("statistic", "")),
            datasets=list(order.request.get("data", [])),
            privacy=promise_to_body(order.privacy),
            cost=amount_to_text(cost),
            spent=amount_to_text(total),
            of_grant=amount_to_text(mine),
            rests_on=standing.rests,
            token=secrets.token_hex(8),
        )
        return spend, standing.cap, True

    def _register(self, writer: Writer, order: Order) -> None:
        """Append the data sets of an order that are new, now that it is sure to be paid for."""
        for data in order.data:
            if data.new is None:
                continue
            found = registered(writer, self.name, self.principal, data.new["marks"], data.new["facts"], None)
            if found.id != data.id:
                raise InvalidArgumentError(
                    f"the data were registered as {found.id} while this was asked. Nothing was spent: ask again."
                )

    def _same(self, reader: Reader, order: Order) -> Entry | None:
        """Return the entry that paid for this key; refuse if it did for another request."""
        found = reader.once(self._once(order.key))
        if found is not None:
            refuse_edited(self._ledger.id, found)
        if found is not None and found.facts["request"] != order.request_hash:
            raise InvalidArgumentError(
                f"`key` {order.key!r} stands for another request of {self.principal!r} from population "
                f"{self.name!r}: nothing was spent. Use another key, or ask exactly as before to have the "
                "stored answer."
            )
        return found

    def _outcome(self, spend: Entry, key: str) -> bytes | None:
        """Return the stored bytes of a spend, None where nothing came of it yet; raise if it is lost."""
        if spend.kind == "recovered":  # results are never recovered
            raise ReleaseLostError.of(key)

        def look(reader: Reader) -> tuple[Entry | None, bytes | None]:
            outcome = reader.once(_outcome(spend))
            return outcome, None if outcome is None else reader.result(outcome.seq)

        outcome, content = self._ledger.store.read(look)
        if outcome is None:
            return None
        if outcome.kind != "drawn":
            raise ReleaseLostError.of(key)
        self._ledger.witnessed()  # published is what the witness has
        if content is None or sha256_of_bytes(content) != outcome.facts["sha256"]:
            raise LedgerError(
                f"the bytes of entry {outcome.seq} are not those that were drawn: the database was written to by other "
                "hands. Run the audit command (dpm ledger audit)."
            )
        return content

    def _begin(self, spend: Entry, token: str) -> bool:
        """Begin the attempt at a spend; False where somebody else was faster."""
        if not self._ledger.write(lambda writer: self._start(writer, spend, token)):
            return False
        self._ledger.witnessed()
        return True

    def _start(self, writer: Writer, spend: Entry, token: str) -> bool:
        if _was_begun(writer, spend):
            return False
        writer.append("started", self.name, _started(spend), spend=spend.seq, token=token)
        return True

    def _attempt(self, spend: Entry, cap: Promise, key: str, work: Callable[[Receipt], bytes]) -> bytes:
        """Do the work and keep what it returns; whatever it raises, the answer is lost."""
        try:
            content = work(self._receipt(spend, cap))
            if not isinstance(content, bytes):
                raise TypeError("work must return bytes")
        except BaseException as problem:
            self._lose_quietly(spend)
            if isinstance(problem, Exception):
                raise ReleaseLostError.of(key) from None
            raise
        if not self._ledger.write(lambda writer: self._draw(writer, spend, content)):
            raise ReleaseLostError.of(key)  # somebody took this attempt for dead: what was drawn is forgotten
        self._ledger.witnessed()
        return content

    def _draw(self, writer: Writer, spend: Entry, content: bytes) -> bool:
        if writer.once(_outcome(spend)) is not None:
            return False
        said = {"spend": spend.seq, "sha256": sha256_of_bytes(content), "size": len(content)}
        entry = writer.append("drawn", self.name, _outcome(spend), **said)
        writer.keep(entry.seq, content)
        return True

    def _lose(self, writer: Writer, spend: Entry) -> None:
        if writer.once(_outcome(spend)) is None:
            writer.append("lost", self.name, _outcome(spend), spend=spend.seq)

    def _lose_quietly(self, spend: Entry) -> None:
        """Say that nothing came of a spend; where even this fails, whoever asks next will."""
        with contextlib.suppress(DPManifoldError):
            self._ledger.write(lambda writer: self._lose(writer, spend))
            self._ledger.witnessed()

    def _await(self, spend: Entry) -> None:
        """Wait until an attempt of somebody else has an outcome, and say that it is lost if its holder is gone."""
        pause, longest = _PAUSES
        store = self._ledger.store
        started = store.read(lambda reader: reader.once(_started(spend)))
        while started is not None and self._alive(started):
            time.sleep(pause)
            pause = min(2 * pause, longest)
            if store.read(lambda reader: reader.once(_outcome(spend))) is not None:
                return
        self._ledger.write(lambda writer: self._lose(writer, spend))
        if started is not None:
            store.forget(str(started.facts["token"]))

    def _alive(self, started: Entry) -> bool:
        with self._ledger.store.in_plain_words():
            return self._ledger.store.is_held(str(started.facts["token"]))

    def _receipt(self, spend: Entry, cap: Promise) -> Receipt:
        spent = as_promise_up(cap, amount_from_text(spend.facts["spent"]))
        assert spent is not None  # a promise costs more than nothing
        return Receipt(self._ledger.id, spend.seq, spend.hash, self.name, spent.to_dict())

    def _once(self, key: str) -> str:
        return f"key:{self.name}:{self.principal}:{key}"


@contextlib.contextmanager
def _naming(key: str) -> Iterator[None]:
    """Name the key in errors that come after the spend."""
    try:
        yield
    except LedgerError as problem:
        raise LedgerError(
            f"{problem} The request is paid for under key {key!r}: once that is mended, ask again with it; this spends "
            "nothing more."
        ) from None


def _was_begun(reader: Reader, spend: Entry) -> bool:
    """Return whether a spend was begun, or has an outcome; a recovered one was: nobody knows what came of it."""
    return spend.kind == "recovered" or bool(reader.among([_started(spend), _outcome(spend)]))


def _started(spend: Entry) -> str:
    return f"started:{spend.seq}"


def _outcome(spend: Entry) -> str:
    return f"outcome:{spend.seq}"
