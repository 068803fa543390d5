"""What programs send, read strictly: JSON that says one thing, texts that can be stored, numbers that are numbers."""

from __future__ import annotations

import json
import math
import re
import urllib.parse
from collections.abc import Mapping
from typing import Any, NoReturn

from starlette.requests import Request

from dpmanifold.errors import InvalidDataError
from dpmanifold.service.errors import ServiceError
from dpmanifold.service.web.openapi import Schema, fault
from dpmanifold.service.web.security import WrongType, body_of, content_type

DEEPEST = 16
"""Brackets within brackets."""
_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_BRACKETS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_MOST_PARAMETERS = 20
_LONGEST_NUMBER = 15  # digits of a whole number in an address


def json_body(request: Request, schema: Schema, known: Mapping[str, Schema]) -> dict[str, Any]:
    """Return the object that a request sends, held to a schema."""
    if content_type(request) != "application/json":
        raise WrongType("The body must be JSON: send it with Content-Type: application/json.")
    found = parsed(body_of(request))
    wrong = fault(found, schema, known)
    if wrong is not None:
        raise ServiceError(wrong)
    return dict(found)


def parsed(body: bytes) -> Any:
    """Return what JSON says; a key that is there twice, NaN and infinities, texts that are none are refused.

    Examples
    --------
    >>> parsed(b'{"a": 1e999}')
    Traceback (most recent call last):
    ...
    dpmanifold.service.errors.ServiceError: The body must be JSON: a number is not finite.
    """
    _refuse_deep(body)
    try:
        found = json.loads(
            body.decode("utf-8"),
            object_pairs_hook=_named_once,
            parse_float=_finite,
            parse_int=_whole,
            parse_constant=_no_constant,
        )
        json.dumps(found, ensure_ascii=False).encode("utf-8")  # halves of characters are no text
    except InvalidDataError as problem:
        raise ServiceError(f"The body must be JSON: {problem}.") from None
    except UnicodeError:
        raise ServiceError("The body must be JSON, in UTF-8.") from None
    except (ValueError, RecursionError):
        raise ServiceError("The body must be JSON, as a program writes it.") from None
    _refuse_unstorable(found)
    return found


def query_of(request: Request, schemas: Mapping[str, Schema], needed: tuple[str, ...]) -> dict[str, Any]:
    """Return what stands behind the question mark, each name once and held to its schema."""
    try:
        pairs = urllib.parse.parse_qsl(
            request.scope["query_string"].decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MOST_PARAMETERS,
        )
    except ValueError:
        raise ServiceError("The part of the address behind the question mark cannot be read.") from None
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in schemas or name in found:
            raise ServiceError(f"Behind the question mark go, once each: {', '.join(schemas) or 'nothing'}.")
        whole = value.isascii() and value.isdigit() and len(value) <= _LONGEST_NUMBER
        found[name] = int(value) if whole and schemas[name].get("type") == "integer" else value
        wrong = fault(found[name], schemas[name], {}, name)
        if wrong is not None:
            raise ServiceError(wrong)
    missing = [name for name in needed if name not in found]
    if missing:
        raise ServiceError(f"Behind the question mark {', '.join(missing)} is missing.")
    _refuse_unstorable(found)
    return found


def _refuse_deep(body: bytes) -> None:
    depth = 0
    for byte in _STRINGS.sub(b"", body):
        depth += _BRACKETS.get(byte, 0)
        if depth > DEEPEST:
            raise ServiceError(f"The body may have at most {DEEPEST} brackets within brackets.")


def _refuse_unstorable(value: Any) -> None:
    """Refuse the one character that texts of databases cannot have."""
    if isinstance(value, str) and "\x00" in value:
        raise ServiceError("A text has a character that is none.")
    if isinstance(value, dict):
        for name, one in value.items():
            _refuse_unstorable(name)
            _refuse_unstorable(one)
    if isinstance(value, list):
        for one in value:
            _refuse_unstorable(one)


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidDataError("a key is there twice")
    return found


def _finite(said: str) -> float:
    number = float(said)
    if not math.isfinite(number):
        raise InvalidDataError("a number is not finite")
    return number


def _whole(said: str) -> int:
    """Return a whole number, if it has a place among the doubles: whoever takes one for a number may do so."""
    _finite(said)
    return int(said)


def _no_constant(said: str) -> NoReturn:
    raise InvalidDataError(f"{said} is no number")
