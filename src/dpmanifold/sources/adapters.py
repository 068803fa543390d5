"""From what a user gives as X to a source, where it is one: each kind of object has an adapter, found by asking it."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from dpmanifold.linalg.cards.arrays import on_card
from dpmanifold.registry import Registry
from dpmanifold.sources.base import Source

Adapter = Callable[[object], Source | None]
"""Makes a source of an object of the kind it knows, and None of everything else; imports nothing to find out."""

ADAPTERS: Registry[Adapter] = Registry("source", "dpmanifold.sources")


def as_source(X: object) -> Source | None:
    """Return X as a source; None where it is an array or a list, to be taken as it is.

    The library's own adapters are asked first, and those of other distributions only about what none of these knows.

    Examples
    --------
    >>> as_source([[1.0], [2.0]]) is None
    True
    """
    if isinstance(X, Source):
        return X
    if isinstance(X, np.ndarray) or on_card(X):
        return None
    # Lists are the library's own: whoever has one of numbers needs no other distribution.
    adapters = ADAPTERS.own() if isinstance(X, list | tuple) else itertools.chain(ADAPTERS.own(), ADAPTERS)
    return next((found for adapter in adapters if (found := adapter(X)) is not None), None)


def is_a(X: object, package: str, *names: str) -> bool:
    """Return whether X is of a class that a package calls by one of these names; the package is not imported.

    Examples
    --------
    >>> import pathlib
    >>> is_a(pathlib.Path("x"), "pathlib", "PurePath"), is_a(3, "pandas", "DataFrame")
    (True, False)
    """
    return any(kind.__name__ in names and kind.__module__.split(".")[0] == package for kind in type(X).__mro__)


__all__ = ["ADAPTERS", "Adapter", "as_source", "is_a"]
