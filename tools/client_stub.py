"""Write the types of a client's private calls, as the queries give them: src/dpmanifold/remote/private_calls.pyi.

    python tools/client_stub.py

A test holds the file against what this writes.
"""

from __future__ import annotations

import pathlib
import typing

from dpmanifold.stats.query import QUERIES, Option, Query

STUB = pathlib.Path(__file__).resolve().parent.parent / "src/dpmanifold/remote/private_calls.pyi"
_TYPES = {"choice": "str", "flag": "bool", "number": "float", "fraction": "float", "whole": "int", "shape": "str"}
_RELEASE = "Release | Pending[Release] | str"


def stub() -> str:
    """Return the text of the stub."""
    results = sorted({query.result.__name__ for query in QUERIES.own()} - {"Release", "dict"}, key=str.lower)
    head = [
        "# Written by tools/client_stub.py.",
        "# ruff: noqa: D101, D102, E501",
        "# fmt: off",
        "from typing import Any, Literal, overload",
        "",
        "from dpmanifold.ball import Ball",
        "from dpmanifold.inference import (",
        *(f"    {name}," for name in results),
        ")",
        "from dpmanifold.privacy import Promise",
        "from dpmanifold.release import Release",
        "from dpmanifold.remote.pending import Pending",
        "from dpmanifold.stats.query import Query",
        "",
        "BallGiven = Ball | Release | Pending[Any] | str | None",
        "",
        "def method_of(query: Query) -> Any: ...",
        "",
        "class PrivateCalls:",
        "    def __getattr__(self, name: str) -> Any: ...",
    ]
    return "\n".join([*head, *(line for query in QUERIES.own() for line in _method(query))]) + "\n"


def _method(query: Query) -> typing.Iterator[str]:
    result = "dict[Any, Release]" if query.result is dict else query.result.__name__
    options = "".join(f"{option.name}: {_type(option)} = ..., " for option in query.options)
    for wait, returned in (("Literal[True] = ...", result), ("Literal[False]", f"Pending[{result}]")):
        yield "    @overload"
        yield f"    def {query.name.replace('-', '_')}("
        yield "        self, dataset: str, privacy: Promise, *, ball: BallGiven = ..., key: str | None = ...,"
        yield f"        wait: {wait}, timeout: float | None = ...,"
        if options:
            yield f"        {options.rstrip()}"
        yield f"    ) -> {returned}: ..."


def _type(option: Option) -> str:
    kind = _RELEASE if option.kind == "release" else _TYPES[option.kind]
    return f"{kind} | None" if option.default is None or None in option.values else kind


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
