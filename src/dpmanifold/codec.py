"""Results as JSON, from the fields that they declare: one way to write and to read them, whatever they hold.

A field is written by its type: numbers, text, truth values, releases, optional ones and tuples of them. Of a mapping
from the names of classes the values are written under the field's name, and the names, in their order, under "classes".
What the types do not allow is refused when it is read.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from dpmanifold.errors import InvalidDataError
from dpmanifold.records import entries, flag, number, reading, refuse_wrong_answers, whole_number, words
from dpmanifold.result import Result

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
