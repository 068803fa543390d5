"""What was asked for, as a release states it: the query with its options, of how many units, and what was decided.

Options are written as they were given, arrays and releases in full, so that whoever has the file can ask again: that is
what `verify` does with the outputs in place of draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.records import (
    array_to_json,
    ball_to_dict,
    entries,
    number,
    released_ball_from_dict,
    whole_number,
    words,
)
from dpmanifold.result import Result

R = TypeVar("R", bound=Result)


@dataclass(frozen=True, eq=False)
class Request:
    """What was asked for.

    Attributes
    ----------
    query : its name, or that of a statistic
    options : all that is not left at its default, and what the sample says
    ball : the public ball
    n : how many units, of all groups together
    group : which of several groups the release is about, from 0 on; None where there is one
    decisions : what was chosen where public or released numbers leave a choice, by name
    """

    query: str
    options: Mapping[str, Any]
    ball: Ball
    n: int
    group: int | None = None
    decisions: Mapping[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""
        record = {
            "query": self.query,
            "options": {name: option_to_json(value, name) for name, value in self.options.items()},
            "ball": ball_to_dict(self.ball),
            "n": self.n,
            "decisions": dict(self.decisions),
        }
        return record if self.group is None else {**record, "group": self.group}

    @classmethod
    def from_dict(cls, record: Any, read_release: Callable[[Any], Result]) -> Request:
        """Rebuild one from :meth:`to_dict`."""
        known = entries(record, "the request", ("query", "options", "ball", "n", "decisions"), ("group",))
        options, decisions = (entries(known[name], name, (), known[name]) for name in ("options", "decisions"))
        return Request(
            words(known["query"], "query"),
            {name: _option_from_json(value, name, read_release) for name, value in options.items()},
            released_ball_from_dict(known["ball"]),
            whole_number(known["n"], "n of the request"),
            whole_number(known["group"], "group") if "group" in known else None,
            {name: words(value, name) for name, value in decisions.items()},
        )


def option_to_json(value: Any, name: str) -> Any:
    """Return an option as JSON can hold it, or refuse what nobody could read again.

    Examples
    --------
    >>> option_to_json([1, 0.5, "a"], "counts"), option_to_json(np.eye(2), "shape")
    ([1, 0.5, 'a'], {'array': [[1.0, 0.0], [0.0, 1.0]]})
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [option_to_json(entry, name) for entry in value]
    if isinstance(value, Mapping):
        return {"by_name": {key: option_to_json(entry, name) for key, entry in value.items()}}
    if isinstance(value, Result):
        return {"release": value.to_dict(answers=False)}
    if hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biufc":
        array = np.asarray(value)
        return {"complex" if array.dtype.kind == "c" else "array": array_to_json(array)}
    stated = getattr(value, "name", None)  # of a mechanism or a statistic
    if isinstance(stated, str):
        return stated
    raise InvalidArgumentError(
        f"{name} must be something that a release can state: text, numbers, arrays, releases, or the name of what is "
        f"registered; got {shown(value)}."
    )


def _option_from_json(value: Any, name: str, read_release: Callable[[Any], Result]) -> Any:
    """Return an option that :func:`option_to_json` wrote."""
    if isinstance(value, list):
        return [_option_from_json(entry, name, read_release) for entry in value]
    if not isinstance(value, dict):
        return number(value, name) if isinstance(value, float) else value
    match list(value.items()):
        case [("release", record)]:
            return read_release(record)
        case [("array", rows)]:
            return _array(rows, name)
        case [("complex", [real, imaginary])]:
            return _array(real, name) + 1j * _array(imaginary, name)
        case [("by_name", dict(options))]:
            return {key: _option_from_json(entry, name, read_release) for key, entry in options.items()}
    raise InvalidDataError(f"option {name!r} is nothing that the library writes")


def _array(rows: Any, name: str) -> Array:
    found = np.array(rows, dtype=np.float64)
    if not np.isfinite(found).all():
        raise InvalidDataError(f"option {name!r} must hold finite numbers")
    return found
