"""The private calls of a client: one method for each query.

Their types stand in private_calls.pyi, which tools/client_stub.py writes.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import Promise
from dpmanifold.release import Release
from dpmanifold.remote.pending import Pending
from dpmanifold.stats.query import QUERIES, Query

BallGiven = Ball | Release | Pending[Any] | str | None


class PrivateCalls:
    """The private calls of the library and of other distributions; :meth:`Client.ask` says what they share."""

    def __getattr__(self, name: str) -> Any:
        try:
            query = None if name.startswith("_") else QUERIES.find(name.replace("_", "-"))
        except InvalidArgumentError:  # another distribution's cannot be loaded, and may be this one
            query = None
        if query is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return types.MethodType(method_of(query), self)


@functools.cache
def method_of(query: Query) -> Any:
    """Return the method of a client for a query: the data set's name comes where records would."""

    def method(
        self: Any, dataset: str, privacy: Promise, *, ball: BallGiven = None, key: str | None = None, wait: bool = True,
        timeout: float | None = None, **options: Any,
    ) -> Any:  # fmt: skip
        return self.ask(query.name, dataset, privacy, ball=ball, key=key, wait=wait, timeout=timeout, **options)

    first = list(inspect.signature(method).parameters.values())[:-1]
    own = [inspect.Parameter(one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default) for one in query.options]
    method.__signature__ = inspect.Signature([*first, *own])  # type: ignore[attr-defined]
    method.__name__ = query.name.replace("-", "_")
    method.__qualname__ = f"Client.{method.__name__}"
    method.__doc__ = (
        f"{(query.call.__doc__ or query.title).partition(chr(10))[0]}\n\n    As :func:`dpmanifold."
        f"{query.call.__name__}`, of registered data; :meth:`Client.ask` says what all calls share.\n"
    )
    return method


for _query in QUERIES.own():
    setattr(PrivateCalls, _query.name.replace("-", "_"), method_of(_query))
