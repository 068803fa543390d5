"""A question as it travels: which statistic, which promise, which options, in text and numbers.

Seeds, revealed records and float arithmetic are no part of it.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, final

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import Promise
from dpmanifold.privacy.promises import KINDS
from dpmanifold.stats.query import Query, query_named

AMOUNTS = {"GDP": "mu", "PureDP": "epsilon", "ApproxDP": "epsilon", "ZCDP": "rho"}
"""The amount that each kind of promise has, and is moved by a slider."""


@final
@dataclass(frozen=True)
class Question:
    """What is asked of a data set.

    Attributes
    ----------
    statistic : its name
    privacy : the promise
    options : those of the private call that differ from what is meant anyway
    ball : None for the registered one, {"release": id} for one that was released, or {"radius", "center", "source"}

    Examples
    --------
    >>> asked = Question.from_dict({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "0.3"}})
    >>> asked.privacy, asked.to_dict()["privacy"]
    (GDP(mu='0.3'), {'kind': 'GDP', 'mu': '0.3'})
    """

    statistic: str
    privacy: Promise
    options: Mapping[str, Any] = field(default_factory=dict)
    ball: Mapping[str, Any] | None = None

    @property
    def query(self) -> Query:
        """What it asks for."""
        return query_named(self.statistic)

    @staticmethod
    def from_dict(record: object) -> Question:
        """Read a question, or say what is wrong with it; what it does not know is refused."""
        known = _only(record, "question", ("statistic", "privacy"), ("options", "ball"))
        query = query_named(known["statistic"])
        options = known.get("options") or {}
        if not isinstance(options, Mapping) or not all(isinstance(name, str) for name in options):
            raise InvalidArgumentError(f"options must be names with values, got {shown(options)}.")
        return Question(
            query.name, promise_from_json(known["privacy"]), query.checked(options), _ball(known.get("ball"))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return it ready for JSON: amounts as text, so that nothing is rounded."""
        return {
            "statistic": self.statistic,
            "privacy": promise_to_json(self.privacy),
            "options": dict(self.options),
            "ball": None if self.ball is None else dict(self.ball),
        }


def promise_from_json(record: object, name: str = "privacy") -> Promise:
    """Return a promise that was written as its kind and its amounts, in text as they were typed or as numbers.

    Examples
    --------
    >>> promise_from_json({"kind": "ApproxDP", "epsilon": "0.5", "delta": 1e-6})
    ApproxDP(epsilon=0.5, delta=1e-06)
    """
    if not isinstance(record, Mapping) or record.get("kind") not in KINDS:
        raise InvalidArgumentError(
            f'{name} must be a kind ({", ".join(KINDS)}) with its amounts, such as {{"kind": "GDP", "mu": "0.3"}}, got '
            f"{shown(record)}."
        )
    kind = KINDS[record["kind"]]
    exact = record.get("exact", {})
    wanted = list(inspect.signature(kind).parameters)
    given = {key: value for key, value in record.items() if key not in ("kind", "exact")}
    if sorted(given) != sorted(wanted) or not isinstance(exact, Mapping) or set(exact) - set(wanted):
        raise InvalidArgumentError(f"{name} of kind {record['kind']} has {' and '.join(wanted)}, got {shown(record)}.")
    amounts = {key: exact.get(key, value) for key, value in given.items()}
    if not all(isinstance(value, (str, int, float)) and not isinstance(value, bool) for value in amounts.values()):
        raise InvalidArgumentError(f"{name} has amounts that are text or numbers, got {shown(record)}.")
    return kind(**amounts)


def promise_to_json(promise: Promise) -> dict[str, Any]:
    """Return a promise as its kind and its amounts: text where it was typed, else the number."""
    return {"kind": type(promise).__name__, **promise.stated}


def _ball(record: object) -> dict[str, Any] | None:
    if record is None:
        return None
    if isinstance(record, Mapping) and "release" in record:
        return _only(record, "ball", ("release",))
    return _only(record, "ball", ("radius", "center"), ("source",))


def _only(record: object, what: str, names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Any]:
    """Return a record that has these entries and no others, or refuse."""
    if not isinstance(record, Mapping) or not set(names) <= set(record) <= {*names, *optional}:
        rest = f", and may have {', '.join(optional)}" if optional else ""
        got = ", ".join(map(str, record)) if isinstance(record, Mapping) else shown(record)
        raise InvalidArgumentError(f"{what} must have {', '.join(names)}{rest}, and nothing else; got {got}.")
    return dict(record)
