"""Results as JSON: written whole, and read strictly. What the library does not write is refused, not passed over.

A record is names and numbers. A key that is unknown, missing or given twice, a number that is none, a text where a
number belongs: each is refused with its place in the record, so that nothing rides along that no check looks at.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import pathlib
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import DPManifoldError, InvalidDataError
from dpmanifold.files import whole_file
from dpmanifold.manifolds import Manifold, space_from_text
from dpmanifold.sensitivity import Sensitivity

LONGEST_NAME = 200
# More numbers than any release holds.
LONGEST_VECTOR = 1_000_000
# Answers are written for people who do not compute; computed again on another machine they differ by rounding.
_ANSWER_ROUNDING = 1e-9


class Writable(Protocol):
    """Whatever writes itself as names and numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Return names and numbers, ready for JSON."""


# -------------------------------------------------------------------- files


def write_record(path: str | os.PathLike[str], record: dict[str, Any]) -> None:
    """Write names and numbers as JSON, whole or not at all."""
    text = json.dumps(record, indent=2, allow_nan=False)
    with whole_file(path) as file:
        file.write(text + "\n")


def read_record(path: str | os.PathLike[str]) -> Any:
    """Read JSON, or say that the file holds none, or names something twice."""
    try:
        return record_from_text(pathlib.Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as problem:  # not JSON, not text, or a number that no machine reads
        raise InvalidDataError(f"{os.fspath(path)} is not JSON: {problem}.") from problem


def record_from_text(text: str) -> Any:
    """Return what JSON says; an object that names a key twice says two things, and is refused.

    Examples
    --------
    >>> record_from_text('{"private": false, "private": true}')
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidDataError: the key 'private' is there twice
    """
    return json.loads(text, object_pairs_hook=_named_once)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise InvalidDataError(f"the key {name[:LONGEST_NAME]!r} is there twice")
        found[name] = value
    return found


# -------------------------------------------------------------------- one entry at a time


@contextlib.contextmanager
def reading(what: str, writer: str) -> Iterator[None]:
    """Turn whatever a record's entries break into one error that says what is damaged and what writes it."""
    try:
        yield
    except (ArithmeticError, KeyError, TypeError, ValueError) as problem:
        said = str(problem).rstrip(".")
        raise InvalidDataError(f"{what} is damaged: {said}. Write it again with {writer}.") from problem


def entries(record: Any, what: str, names: Collection[str], optional: Collection[str] = ()) -> dict[str, Any]:
    """Return a record that has these keys and no others, or say which one is missing or unknown.

    Examples
    --------
    >>> entries({"radius": 1.0, "note": "hello"}, "ball", ["radius"])
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidDataError: ball holds 'note', which the library does not write
    """
    if not isinstance(record, dict):
        raise InvalidDataError(f"{what} must be an object with names, got {shown(record)}")
    missing = [name for name in names if name not in record]
    if missing:
        raise InvalidDataError(f"{what} lacks {missing[0]!r}")
    unknown = [name for name in record if name not in names and name not in optional]
    if unknown:
        raise InvalidDataError(f"{what} holds {str(unknown[0])[:LONGEST_NAME]!r}, which the library does not write")
    return record


def number(value: Any, name: str) -> float:
    """Return a finite number; a text, a truth value or NaN is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise InvalidDataError(f"{name} must be a finite number, got {shown(value)}")
    return float(value)


def whole_number(value: Any, name: str) -> int:
    """Return a whole number that is written as one."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidDataError(f"{name} must be a whole number, got {shown(value)}")
    return value


def flag(value: Any, name: str) -> bool:
    """Return True or False."""
    if not isinstance(value, bool):
        raise InvalidDataError(f"{name} must be true or false, got {shown(value)}")
    return value


def words(value: Any, name: str) -> str:
    """Return a text that a terminal can show as it is."""
    if not isinstance(value, str) or not value.isprintable():
        raise InvalidDataError(f"{name} must be a text that can be printed, got {shown(value)}")
    return value


def numbers_by_name(record: Any, what: str, names: Collection[str]) -> dict[str, float]:
    """Return numbers under some of these names, and no others."""
    return {name: number(value, f"{what} {name!r}") for name, value in entries(record, what, (), names).items()}


def _numbers(value: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    """Return nested lists of numbers as an array of that shape."""

    def leaves(part: Any, sizes: tuple[int, ...]) -> Any:
        if not sizes:
            return number(part, name)
        if not isinstance(part, list) or len(part) != sizes[0]:
            raise InvalidDataError(f"{name} must be numbers of shape {shape}")
        return [leaves(item, sizes[1:]) for item in part]

    return np.array(leaves(value, shape), dtype=np.float64)


# -------------------------------------------------------------------- spaces, balls, bounds and values


def ball_to_dict(ball: Ball) -> dict[str, Any]:
    """Return a ball as names and numbers."""
    return {
        "space": repr(ball.space),
        "center": array_to_json(ball.center),
        "radius": ball.radius,
        "source": ball.source,
        "simulated": ball.simulated,
    }


def ball_from_dict(record: Any) -> Ball:
    """Rebuild a ball from :func:`ball_to_dict`; that of a release and of its request is the same, and read once."""
    try:
        return _ball_of_text(json.dumps(record))
    except TypeError:  # what no JSON holds, which is refused for what it is
        return _ball_of(record)


@lru_cache(maxsize=16)
def _ball_of_text(text: str) -> Ball:
    return _ball_of(json.loads(text))


def _ball_of(record: Any) -> Ball:
    known = entries(record, "ball", ("space", "center", "radius", "source", "simulated"))
    space = space_from_text(known["space"])
    if not isinstance(known["source"], str):
        raise InvalidDataError(f"ball source must be a text, got {shown(known['source'])}")
    return Ball(
        space,
        _array_from_json(known["center"], "ball center", space),
        number(known["radius"], "ball radius"),
        known["source"],
        flag(known["simulated"], "ball simulated"),
    )


def released_ball_from_dict(record: Any) -> Ball:
    """Rebuild a ball of a release: to the last bit as the library writes it, where one made by hand may be rounded."""
    ball = ball_from_dict(record)
    if ball_to_dict(ball) != record:
        raise InvalidDataError("`ball` is not written as the library writes it: its center is rounded, or its space")
    return ball


def sensitivity_from_dict(record: Any) -> Sensitivity:
    """Rebuild a bound from its names and numbers."""
    known = entries(record, "sensitivity", ("value", "statistic", "bound", "proof"))
    texts = {name: words(known[name], f"sensitivity {name}") for name in ("statistic", "bound", "proof")}
    return Sensitivity(number(known["value"], "sensitivity value"), **texts)


def array_to_json(array: Array) -> Any:
    """Return an array as lists; complex ones as two, the real and the imaginary parts."""
    if array.dtype.kind == "c":
        return [array.real.tolist(), array.imag.tolist()]
    return array.tolist()


def _array_from_json(value: Any, name: str, space: Manifold) -> Array:
    """Return one point's numbers; whether they are a point is not looked at."""
    if space.dtype.kind != "c":
        return _numbers(value, name, space.shape)
    parts = _numbers(value, name, (2, *space.shape))
    result = np.empty(space.shape, dtype=np.complex128)
    result.real, result.imag = parts
    return result


def vector_from_json(value: Any, name: str) -> FloatArray:
    """Return finite numbers in a row."""
    if not isinstance(value, list) or not 0 < len(value) <= LONGEST_VECTOR:
        raise InvalidDataError(f"{name} must be a list of numbers")
    return _numbers(value, name, (len(value),))


def value_to_json(value: Any, kind: str) -> Any:
    """Return a released value under the name of its kind: "point", "vector", "matrix", "number" or "ball"."""
    if kind == "ball":
        return {kind: ball_to_dict(value)}
    return {kind: float(value) if kind == "number" else array_to_json(np.asarray(value))}


def value_from_json(record: Any, kind: str, space: Manifold, shape: tuple[int, ...]) -> Any:
    """Return a value of this kind: finite, and of the right shape."""
    stored = entries(record, "value", [kind])[kind]
    if kind == "ball":
        return released_ball_from_dict(stored)
    if kind == "point":
        return _array_from_json(stored, "value", space)
    return number(stored, "value") if kind == "number" else _numbers(stored, "value", shape)


# -------------------------------------------------------------------- answers


def refuse_wrong_answers(record: Mapping[str, Any], result: Writable) -> None:
    """Refuse a record whose `answers` are not those that its releases give.

    Answers (a p-value, the ends of an interval) are written for whoever does not compute; they are never read back.

    Parameters
    ----------
    record : what was read
    result : what was rebuilt from the rest of the record; it writes its answers itself
    """
    if "answers" not in record:
        return
    try:
        computed = result.to_dict().get("answers")
    except (DPManifoldError, ArithmeticError, KeyError, TypeError, ValueError) as problem:
        raise InvalidDataError(f"answers cannot be computed from the releases: {problem}") from problem
    wrong = _difference(record["answers"], computed, "answers")
    if wrong is not None:
        raise InvalidDataError(f"{wrong} is not what follows from the releases")


def _difference(stated: Any, computed: Any, name: str) -> str | None:
    """Return the name of the first entry that differs by more than rounding, or None."""
    if isinstance(stated, dict) and isinstance(computed, dict):
        if stated.keys() != computed.keys():
            return name
        parts = [(stated[key], computed[key], f"{name} {key!r}") for key in stated]
    elif isinstance(stated, list) and isinstance(computed, (list, tuple)):
        if len(stated) != len(computed):
            return name
        parts = [(one, two, name) for one, two in zip(stated, computed, strict=True)]
    elif type(stated) is float or type(computed) is float:
        pair = (stated, computed)
        numeric = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in pair)
        return None if numeric and math.isclose(*pair, rel_tol=_ANSWER_ROUNDING) else name
    else:
        return None if type(stated) is type(computed) and stated == computed else name
    return next((found for part in parts if (found := _difference(*part)) is not None), None)
