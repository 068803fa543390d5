"""A cap on everything that is released about the same units in one process.

`Budget` is a privacy filter: how much each release spends may depend on what the earlier ones returned, and the
cap holds all the same. It lives in memory and in one process, and forgets everything when that ends.
"""

# Why adding up is enough although the spends are chosen on the way:
# - pure and approximate: sums of epsilon and of delta, Rogers, Roth, Ullman and Vadhan (2016), Whitehouse, Ramdas,
#   Rogers and Wu (2023);
# - zero-concentrated: the sum of rho, Feldman and Zrnic (2021) at every Rényi order, Whitehouse et al. (2023);
# - Gaussian: the sum of mu^2, Smith and Thakurta (2022), Koskela, Tobaben and Honkela (2023).
# A conversion holds for each release by itself, given the earlier ones, so that it may come before the sum. No such
# result lets a curve (GDP, zCDP) be added to an approximate cap except at a delta stated for that release.

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import NoReturn, final

from dpmanifold._check import shown
from dpmanifold.errors import BudgetError, InvalidArgumentError, PromiseError
from dpmanifold.privacy.convert import rho_of, to_gdp
from dpmanifold.privacy.promises import (
    GDP,
    ZCDP,
    ApproxDP,
    Promise,
    PureDP,
    as_promise,
    float_down,
    float_up,
    sqrt_down,
    sqrt_up,
)

# Exact, so that a million small spends add up to what they are: (epsilon,), (epsilon, delta), (rho,) or (mu^2,).
_Cost = tuple[Fraction, ...]

# A refusal by less than this share of the promise is about the last digits of floats, and the message says so.
_LAST_DIGITS = Fraction(1, 10**9)
_SHORT = 10  # characters of a number that is shown in place of one with many digits


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

    Amounts are added exactly, as the floats they are, and nothing goes beyond the cap. The float 0.1 is slightly more
    than a tenth, so that ten of them do not fit into 1: `split` gives shares that do.

    Parameters
    ----------
    privacy : the cap, a promise of any kind

    Examples
    --------
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
        self._cap = _cost(self._privacy, self._privacy)
        self._total: _Cost = (Fraction(0),) * len(self._cap)
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
        return _promise(self._privacy, total, up=True)

    @property
    def remaining(self) -> Promise | None:
        """The largest promise that can still be spent, rounded down; None once there is none.

        Pure if an ApproxDP cap has no delta left.
        """
        with self._lock:
            total = self._total
        left = tuple(cap - used for cap, used in zip(self._cap, total, strict=True))
        return _promise(self._privacy, left, up=False)

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
        cost = _cost(as_promise(promise, "promise"), self._privacy)
        if os.getpid() != self._process:
            raise BudgetError(
                "the budget belongs to another process, from which this one was forked: spends here would not count "
                "there. Spend in the parent process, or use threads."
            )
        with self._lock:
            total = tuple(used + more for used, more in zip(self._total, cost, strict=True))
            excess = [used - cap for used, cap in zip(total, self._cap, strict=True)]
            fits = max(excess) <= 0
            if fits:
                self._total = total
                self._history.append(Spend(label, promise))
        if fits:
            return
        if all(over <= _LAST_DIGITS * more for over, more in zip(excess, cost, strict=True)):
            remedy = (
                "Only the last digits do not fit: amounts are added exactly, as the floats they are, and the float "
                "0.1, for one, is slightly more than a tenth. Ask for a slightly smaller share, or for shares that "
                "fit: split(promise, 10) gives ten."
            )
        else:
            remedy = "Ask for less, or plan with a larger budget."
        left = self.remaining
        raise BudgetError(
            f"promise {promise} is more than the budget has left, {_readable(left) if left else 'nothing'} of "
            f"{self._privacy}. "
            f"Nothing was spent. {remedy}"
        )

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
        return f"Budget({self._privacy}, spent={_readable(self.spent)}, remaining={_readable(self.remaining)})"


def _cost(promise: Promise, cap: Promise) -> _Cost:
    """Return what a promise takes from a cap of this kind, or say why the cap cannot take it."""
    match cap, promise:
        case PureDP(), PureDP(epsilon):
            return (Fraction(epsilon),)
        case ApproxDP(), PureDP(epsilon):
            return Fraction(epsilon), Fraction(0)
        case ApproxDP(), ApproxDP(epsilon, delta):
            return Fraction(epsilon), Fraction(delta)
        case ZCDP(), ZCDP() | GDP() | PureDP():
            return (rho_of(promise),)
        case GDP(), GDP() | PureDP():
            return (Fraction(to_gdp(promise).mu) ** 2,)
    if isinstance(cap, ApproxDP):
        remedy = "State it at a delta of its own, to_approx(promise, delta), and ask for that; or make the budget GDP"
    elif isinstance(cap, GDP) and isinstance(promise, ZCDP):
        remedy = "Make the budget ZCDP, which takes both"
    elif isinstance(cap, PureDP):
        remedy = "Ask for PureDP, or make the budget ApproxDP, ZCDP or GDP"
    else:
        remedy = "Ask for GDP or PureDP, or make the budget ApproxDP"
    raise PromiseError(
        f"promise {promise} cannot be spent from a budget of {cap}: it implies no such promise. {remedy}."
    )


def _promise(kind: Promise, amount: _Cost, *, up: bool) -> Promise | None:
    """Return an amount as a promise of the cap's kind, or None if it is nothing."""
    number, root = (float_up, sqrt_up) if up else (float_down, sqrt_down)
    first = root(amount[0]) if isinstance(kind, GDP) else number(amount[0])
    if first == 0:
        return None
    match kind:
        case GDP():
            return GDP(first)
        case ZCDP():
            return ZCDP(first)
        case ApproxDP() if (delta := number(amount[1])) > 0:
            return ApproxDP(first, delta)
    return PureDP(first)


def _readable(promise: Promise | None) -> str:
    """Return an amount for people: the last digits of a float as "just below" or "just above".

    >>> _readable(GDP(0.5999999999999999)), _readable(PureDP(0.25))
    ('just below GDP(mu=0.6)', 'PureDP(epsilon=0.25)')
    """
    if promise is None:
        return "None"
    exact = {field.name: float(getattr(promise, field.name)) for field in fields(promise)}
    short = {name: float(f"{value:.12g}") for name, value in exact.items()}
    if short == exact or any(len(repr(value)) > _SHORT for value in short.values()):
        return str(promise)
    below, above = (all(sign * short[name] >= sign * exact[name] for name in exact) for sign in (1, -1))
    return f"just {'below' if below else 'above'} {replace(promise, **short)}" if below or above else str(promise)
