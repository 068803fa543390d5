"""Accounts: budgets that remember, and the receipts that they give. A ledger's population is one.

A :class:`~dpmanifold.privacy.Budget` lives in one process. An account outlives it, so that it must know more than an
amount: who asked what, whether an answer was drawn, and which. Private calls hand it an :class:`Order`, written in
text and whole numbers alone so that two equal requests are equal in every bit, and the work to be done once the order
has been paid for. What comes back are bytes: those that the work returned, or those that were stored when the same
request was answered before.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, NoReturn, Self, final

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
from dpmanifold.privacy.promises import Promise, as_promise, promise_from_dict

LONGEST_KEY = 200
_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
_HASH = re.compile("[0-9a-f]{64}", re.ASCII)


@final
@dataclass(frozen=True)
class Receipt:
    """Where a release stands in a ledger: proof, for whoever sees both, that it was paid for.

    Attributes
    ----------
    ledger : the ledger's id
    sequence : the number of the entry that paid
    hash : of that entry, 64 hexadecimal digits
    population : whose cap paid
    spent : what had been spent of that cap with this release, rounded up; `Promise.to_dict`

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> receipt = Receipt("8b3d", 7, 64 * "0", "cohort", GDP(0.5).to_dict())
    >>> Receipt.from_dict(receipt.to_dict()) == receipt
    True
    """

    ledger: str
    sequence: int
    hash: str
    population: str
    spent: dict[str, Any]

    def __post_init__(self) -> None:
        checked_text(self.ledger, "receipt ledger")
        checked_text(self.population, "receipt population")
        if isinstance(self.sequence, bool) or not isinstance(self.sequence, int) or self.sequence < 1:
            raise InvalidArgumentError(f"receipt sequence must be a whole number of at least 1: {shown(self.sequence)}")
        if not isinstance(self.hash, str) or not _HASH.fullmatch(self.hash):
            raise InvalidArgumentError(f"receipt hash must be 64 hexadecimal digits, got {shown(self.hash)}.")
        promise_from_dict(self.spent)

    @property
    def promise(self) -> Promise:
        """What had been spent with this release, as a promise."""
        return promise_from_dict(self.spent)

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""
        return asdict(self)

    @staticmethod
    def from_dict(record: Any) -> Receipt:
        """Rebuild it from :meth:`to_dict`; anything else is refused."""
        names = [field.name for field in fields(Receipt)]
        if not isinstance(record, Mapping) or record.keys() != set(names):
            raise InvalidArgumentError(f"a receipt has the entries {', '.join(names)}, got {shown(record)}.")
        return Receipt(*(record[name] for name in names))

    def __str__(self) -> str:
        # For people, who find the rest in JSON: ids and hashes of full length fill a terminal.
        return f"entry {self.sequence:,} of ledger {self.ledger[:8]}, population {self.population}"


@final
@dataclass(frozen=True)
class Mark:
    """By what an account knows data.

    Attributes
    ----------
    id : of the data set, as requests have it
    records : which records they are, the same whoever owns them and whatever their classes are
    new : what the account writes down about data that it does not have, along with the first spend for them; None
        where it has them
    """

    id: str
    records: str
    new: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Order:
    """What a private call asks of an account.

    Attributes
    ----------
    privacy : what it will cost
    label : what it is for, in a few public words
    key : under which the request is answered once; a random one if the user gave none
    request : everything that makes it this request and no other: text, whole numbers, truth values, None, and lists
        and dicts of them; no floats
    data : what the account knows the data by that the request is about, where it is to write some of them down

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> Order(GDP("0.3"), "mean", "mean-v1", {"statistic": "mean", "data": ["dti@1"]}).request_hash[:8]
    'c78f523d'
    """

    privacy: Promise
    label: str
    key: str
    request: dict[str, Any]
    data: tuple[Mark, ...] = ()

    def __post_init__(self) -> None:
        as_promise(self.privacy)
        checked_text(self.label, "label")
        checked_text(self.key, "key")
        canonical_json(self.request)

    @property
    def request_hash(self) -> str:
        """SHA-256 of the request in canonical JSON, as 64 hexadecimal digits."""
        return hashlib.sha256(canonical_json(self.request).encode("ascii")).hexdigest()


class Account(ABC):
    """A budget that remembers: every private call takes one as `budget=`.

    Where it is kept, who may spend from it and how it survives a crash are its own affair. What calls rely on is the
    order of things in :meth:`settle`.

    Attributes
    ----------
    ledger : the id of the ledger that keeps it
    name : the population's name
    unit : who is protected, such as "participant"; "record" where every record is a unit of its own
    """

    ledger: str
    name: str
    unit: str

    @property
    @abstractmethod
    def privacy(self) -> Promise:
        """The cap."""

    @property
    @abstractmethod
    def spent(self) -> Promise | None:
        """What has been spent together, rounded up; None at the start."""

    @property
    @abstractmethod
    def remaining(self) -> Promise | None:
        """The largest promise that can still be spent here, rounded down; None once there is none."""

    @abstractmethod
    def marked(self, content: Callable[[], Iterable[bytes]], facts: Mapping[str, Any]) -> Mark:
        """Return what the account knows data by. Writes nothing down: new data come with the first spend for them.

        Parameters
        ----------
        content : gives the data as bytes, the records alone in the first piece, and in what follows who owns them and
            their classes
        facts : what is public about them, in the words of canonical JSON

        Raises
        ------
        InvalidArgumentError : each record is to be a unit, and a unit of this account may have several
        """

    @abstractmethod
    def known(self, order: Order) -> bytes | None:
        """Return what was stored for this key and request, or None. Spends nothing.

        Raises
        ------
        InvalidArgumentError : the key stands for another request
        ReleaseLostError : the request was paid for, and its answer is lost
        """

    @abstractmethod
    def settle(self, order: Order, work: Callable[[Receipt], bytes]) -> bytes:
        """Pay for an order and do the work, once; or return what was stored for the same key and request.

        In this order: the spend is committed, the witness has it, the work is marked as started, `work` is called once,
        and what it returns is stored and then returned. If `work` raises, or the process ends before its bytes are
        stored, the spend stands and the answer is lost for good.

        Raises
        ------
        BudgetError : it is more than what is left; nothing was spent, and the key is as free as before
        InvalidArgumentError : the key stands for another request
        ReleaseLostError : the answer is lost; no reason is given, for that would tell about data
        """

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self  # whoever clones an estimator shares its account


def random_key() -> str:
    """Return a key for a request that nobody named: 32 hexadecimal digits of the operating system's randomness."""
    return secrets.token_hex(16)


def checked_text(value: object, name: str) -> str:
    """Return a short text that can be printed on one line, or refuse anything else."""
    if not isinstance(value, str) or not value.isprintable() or not 0 < len(value) <= LONGEST_KEY:
        raise InvalidArgumentError(
            f"{name} must be text that can be printed, of 1 to {LONGEST_KEY} characters, got {shown(value)}."
        )
    return value


def canonical_json(value: Any) -> str:
    r"""Return the one way to write text, whole numbers, truth values, None, and lists and dicts of them.

    ASCII, keys sorted, no spaces. Floats are refused: write `float.hex()`.

    Examples
    --------
    >>> canonical_json({"b": [1, "é"], "a": None})
    '{"a":null,"b":[1,"\\u00e9"]}'
    """
    _refuse_uncanonical(value)
    return _CANONICAL.encode(value)


def _refuse_uncanonical(value: Any) -> None:
    if value is None or type(value) in (str, int, bool):
        return
    if isinstance(value, Mapping) and all(type(name) is str for name in value):
        for entry in value.values():
            _refuse_uncanonical(entry)
    elif isinstance(value, (list, tuple)):
        for entry in value:
            _refuse_uncanonical(entry)
    else:
        raise InvalidArgumentError(
            f"only text, whole numbers, truth values, None, and lists and dicts of them have one canonical form, got "
            f"{shown(value)}."
        )


__all__ = ["Account", "Mark", "Order", "Receipt", "canonical_json", "checked_text", "random_key"]


# -------------------------------------------------------------------- a cap in memory

# `Budget` is a privacy filter: how much each release spends may depend on what the earlier ones returned, and the cap
# holds all the same. It lives in memory and in one process, and forgets everything when that ends.


@final
@dataclass(frozen=True)
class Spend:
    """One entry of a budget's history.

    Attributes
    ----------
    label : what it was for
    privacy : what it cost, as given
    """

    label: str
    privacy: Promise


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
