"""A cap on everything that is released about the same units in one process.

`Budget` is a privacy filter: how much each release spends may depend on what the earlier ones returned, and the
cap holds all the same (privacy/amounts.py). It lives in memory and in one process, and forgets everything when
that ends.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import NoReturn, final

from dpmanifold._check import shown
from dpmanifold.errors import BudgetError, InvalidArgumentError
from dpmanifold.privacy.amounts import (
    Amount,
    added,
    as_promise_down,
    as_promise_up,
    cost_of,
    fits,
    left_of,
    nothing,
    readable,
    refusal,
)
from dpmanifold.privacy.promises import Promise, as_promise


@final
@dataclass(frozen=True)
class Spend:
    """One entry of a budget's history.

    Attributes
    ----------
    label : what it was for
    promise : what it cost, as given
    """

    label: str
    promise: Promise


@final
class Budget:
    """A privacy filter: releases spend from it before they draw anything, and what would exceed the cap is refused.

    One shared object. `copy.copy`, `copy.deepcopy` and scikit-learn's `clone` return the budget itself and threads
    may spend at the same time; another process cannot share it, so pickling it and spending from it after a fork
    raise an error.

    A PureDP cap takes pure spends, and an ApproxDP cap pure and approximate ones. A GDP cap takes Gaussian and
    pure spends, a ZCDP cap these and zero-concentrated ones (theory section 5).

    Amounts are added exactly, and nothing goes beyond the cap. Text is the number it says: ten of PureDP("0.1") fill
    PureDP("1"). A float is the number it is: 0.1 is slightly more than a tenth, and ten of them do not fit.

    It forgets everything when the process ends. A :class:`~dpmanifold.ledger.Ledger` keeps the same account, by the
    same arithmetic, over scripts, crashes and years: its populations are given as `budget=` in the same way.

    Parameters
    ----------
    privacy : the cap, a promise of any kind

    Examples
    --------
    >>> from dpmanifold.privacy import PureDP
    >>> budget = Budget(PureDP(1.0))
    >>> budget.spend(PureDP(0.75), label="mean")
    >>> budget.spent, budget.remaining
    (PureDP(epsilon=0.75), PureDP(epsilon=0.25))
    >>> budget.spend(PureDP(0.5), label="variance")
    Traceback (most recent call last):
    ...
    dpmanifold...BudgetError: promise PureDP(epsilon=0.5) is more than the budget has left,
    PureDP(epsilon=0.25) of PureDP(epsilon=1.0). Nothing was spent. Ask for less, or plan with a larger budget.
    """

    def __init__(self, privacy: Promise) -> None:
        self._privacy = as_promise(privacy)
        self._cap = cost_of(self._privacy, self._privacy)
        self._total: Amount = nothing(self._privacy)
        self._history: list[Spend] = []
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def privacy(self) -> Promise:
        """The cap."""
        return self._privacy

    @property
    def spent(self) -> Promise | None:
        """What has been spent together, rounded up, so never above the cap; None at the start.

        Pure if an ApproxDP cap has lost no delta.
        """
        with self._lock:
            total = self._total
        return as_promise_up(self._privacy, total)

    @property
    def remaining(self) -> Promise | None:
        """The largest promise that can still be spent, rounded down; None once there is none.

        Pure if an ApproxDP cap has no delta left.
        """
        with self._lock:
            total = self._total
        return as_promise_down(self._privacy, left_of(self._cap, total))

    @property
    def history(self) -> tuple[Spend, ...]:
        """What was spent, in order: labels and promises, nothing else."""
        with self._lock:
            return tuple(self._history)

    def spend(self, promise: Promise, label: str = "") -> None:
        """Spend a promise, or raise and leave the budget as it was. Call it before anything is drawn.

        Parameters
        ----------
        promise : what the release is about to promise, of a kind that the cap can take
        label : what it is for; public, so nothing about the data

        Raises
        ------
        BudgetError : it is more than what is left, or this is not the process that made the budget
        PromiseError : the cap cannot take promises of this kind
        """
        if not isinstance(label, str):
            raise InvalidArgumentError(f"label must be text, got {shown(label)}. Say what the release is for.")
        cost = cost_of(as_promise(promise, "promise"), self._privacy)
        if os.getpid() != self._process:
            raise BudgetError(
                "the budget belongs to another process, from which this one was forked: spends here would not count "
                "there. Spend in the parent process, or use threads."
            )
        with self._lock:
            before = self._total
            total = added(before, cost)
            if fits(total, self._cap):
                self._total = total
                self._history.append(Spend(label, promise))
                return
        raise BudgetError(refusal(promise, self._privacy, before, self._cap))

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: object) -> Budget:
        return self

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(
            "a Budget cannot be pickled: a copy in another process or session would let the same cap be spent twice. "
            "Use threads (joblib: prefer='threads'), or give each process a share of the promise (split)."
        )

    def __repr__(self) -> str:
        return f"Budget({self._privacy!r}, spent={readable(self.spent)}, remaining={readable(self.remaining)})"
