"""Results as JSON, from the fields that they declare: one way to write and to read them, whatever they hold.

A field is written by its type: numbers, text, truth values, releases, optional ones and tuples of them. Of a mapping
from the names of classes the values are written under the field's name, and the names, in their order, under "classes".
What the types do not allow is refused when it is read.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Mapping
from typing import Any

from dpmanifold.errors import InvalidDataError
from dpmanifold.release import Release
from dpmanifold.result import Result, result_from_dict
from dpmanifold.serialization import (
    entries,
    flag,
    number,
    reading,
    record_from_text,
    refuse_wrong_answers,
    whole_number,
    words,
)

CLASSES = "classes"
_PLAIN: dict[Any, Any] = {float: number, int: whole_number, bool: flag, str: words}


def to_record(result: Any) -> dict[str, Any]:
    """Return a result's format, its fields and what people read off it, ready for JSON."""
    record: dict[str, Any] = {"format": result.format}
    for name in _fields(type(result)):
        value = getattr(result, name)
        if isinstance(value, Mapping):
            record |= {CLASSES: list(value), name: [_written(entry) for entry in value.values()]}
        else:
            record[name] = _written(value)
    return {**record, "answers": result.answers()}


def from_record(kind: type[Any], record: Any) -> Any:
    """Return the result that :func:`to_record` wrote, made of its fields and of nothing else in the record."""
    if not isinstance(record, dict) or record.get("format") != kind.format:
        raise InvalidDataError(f"not a record of format {kind.format!r}. Give a file written by save.")
    fields = _fields(kind)
    by_class = any(_is_mapping(declared) for declared in fields.values())
    with reading("the record", "save"):
        known = entries(record, "the record", ("format", *fields, *([CLASSES] if by_class else [])), ("answers",))
        values = {name: _read(known[name], declared, name) for name, declared in fields.items()}
        for name in (name for name, declared in fields.items() if _is_mapping(declared)):
            values[name] = _by_class(known[CLASSES], values[name], name)
        result = kind(**values)
        refuse_wrong_answers(known, result)
    return result


def _is_mapping(declared: Any) -> bool:
    return typing.get_origin(declared) in (Mapping, dict)


def _by_class(classes: Any, values: tuple[Any, ...], name: str) -> dict[Any, Any]:
    """Return values by the names of their classes."""
    names = _read(classes, tuple[Any, ...], CLASSES)
    found = dict(zip(names, values, strict=False))
    if not len(names) == len(values) == len(found):
        raise InvalidDataError(f"{CLASSES} and {name} must be lists, as long as each other, and no class twice")
    return found


def _fields(kind: type[Any]) -> dict[str, Any]:
    """Return the types of the fields that a class of results declares, by name."""
    hints = typing.get_type_hints(kind)
    return {field.name: hints[field.name] for field in dataclasses.fields(kind)}


def _written(value: Any) -> Any:
    if isinstance(value, Result):
        return value.to_dict(answers=False)
    return [_written(entry) for entry in value] if isinstance(value, (list, tuple)) else value


def _read(value: Any, declared: Any, name: str) -> Any:
    """Return a value of a declared type, or refuse it."""
    origin, inner = typing.get_origin(declared), typing.get_args(declared)
    if origin in (types.UnionType, typing.Union):
        rest = [one for one in inner if one is not type(None)]
        return None if value is None and len(rest) < len(inner) else _read(value, rest[0], name)
    if declared is Any:
        return _name(value, name)
    if isinstance(declared, type) and issubclass(declared, Result):
        return declared.from_dict(value)
    if declared in _PLAIN:
        return _PLAIN[declared](value, name)
    if not isinstance(value, list):
        raise InvalidDataError(f"{name} must be a list")
    if _is_mapping(declared):
        inner = (inner[1], ...)
    wanted = inner[:1] * len(value) if inner[1:] == (...,) else inner
    if len(wanted) != len(value):
        raise InvalidDataError(f"{name} must be {len(wanted)} entries")
    return tuple(_read(entry, one, name) for entry, one in zip(value, wanted, strict=True))


def _name(value: Any, name: str) -> Any:
    """Return the name of a class: text, or a number."""
    if not isinstance(value, (str, int, float)):
        raise InvalidDataError(f"{name} must be text or numbers")
    return value if isinstance(value, (str, int)) else number(value, name)


# ---------------------------------- what a private call returned: a result, or, of means by class, a release for each


MEANS = "dpmanifold class means 2"
"""The format of means by class, which are several releases."""


def answer_to_record(answer: Any) -> dict[str, Any]:
    """Return a result, or the releases of classes, ready for JSON."""
    if isinstance(answer, Result):
        return answer.to_dict()
    return {"format": MEANS, "classes": [[name, release.to_dict()] for name, release in answer.items()]}


def answer_from_record(record: Any) -> Any:
    """Return the result that a record holds; for means by class a dict of releases."""
    if isinstance(record, dict) and record.get("format") == MEANS:
        return _means(record)
    return result_from_dict(record)


def answer_to_bytes(answer: Any) -> bytes:
    """Return an answer as JSON in UTF-8."""
    return json.dumps(answer_to_record(answer), ensure_ascii=False, allow_nan=False).encode("utf-8")


def answer_from_bytes(stored: bytes) -> Any:
    """Return the answer that :func:`answer_to_bytes` wrote."""
    return answer_from_record(record_from_text(stored.decode("utf-8")))


def _means(record: dict[str, Any]) -> dict[Any, Release]:
    pairs = record.get("classes")
    named = isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
    if set(record) != {"format", "classes"} or not pairs or not named:
        raise InvalidDataError(f"a record of format {MEANS!r} has classes, each with its release.")
    if not all(isinstance(name, (str, int, float)) for name, _ in pairs):
        raise InvalidDataError("the names of classes are text or numbers.")
    found = {name: Release.from_dict(release) for name, release in pairs}
    if len(found) != len(pairs):
        raise InvalidDataError("a class is there twice.")
    return found
