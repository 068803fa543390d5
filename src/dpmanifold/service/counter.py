"""Two accounts that stand before a population's own: one that only takes the order down, one that keeps to a timetable.

A private call checks everything, writes its request down and then turns to its account. The web process wants all of
this but the work, which is another process's: its account hands the order back. The worker wants the work as well, but
nobody is to see how long it took: its account lets the outcome out when the time comes, not before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NoReturn, final

from dpmanifold.ledger.population import Population
from dpmanifold.privacy.accounts import Account, Order, Receipt

Call = Callable[[Account], object]
"""A private call about registered data, with the account that pays."""


class _Before(Population):
    """A population's account that is the same but for :meth:`settle`."""

    def __init__(self, account: Population) -> None:
        super().__init__(account._ledger, account.name, account.unit, account.principal)


class _TakenDown(BaseException):
    """Carries an order out of a private call; not an Exception, so that nothing on the way takes it for a failure."""

    def __init__(self, order: Order) -> None:
        self.order = order


@final
class _Counter(_Before):
    """An account that takes orders down, and settles none."""

    def settle(self, order: Order, work: Callable[[Receipt], bytes]) -> NoReturn:
        raise _TakenDown(order)


def order_of(call: Call, account: Population) -> Order:
    """Return the order that a private call would settle, or refuse as the call itself does. Spends and opens nothing.

    Parameters
    ----------
    call : the private call, given the account that pays
    account : the population, in the name of whoever will pay
    """
    try:
        call(_Counter(account))
    except _TakenDown as taken:
        return taken.order
    raise AssertionError("a private call about registered data turns to its account")


@final
class Punctual(_Before):
    """A population's account whose work comes to light at a fixed time, whatever came of it.

    Parameters
    ----------
    account : the population, in the name of whoever pays
    due : when bytes or failure come out, in seconds since the epoch
    ready : called once the work is over, before the wait
    """

    def __init__(self, account: Population, due: float, ready: Callable[[], object]) -> None:
        super().__init__(account)
        self._due, self._ready = due, ready

    def settle(self, order: Order, work: Callable[[Receipt], bytes]) -> bytes:
        """Settle the order; its work ends when it is due."""

        def punctual(receipt: Receipt) -> bytes:
            try:
                return work(receipt)
            finally:
                self._ready()
                time.sleep(max(0.0, self._due - time.time()))

        return super().settle(order, punctual)
