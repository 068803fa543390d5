"""A public shape must be public: the records of the release themselves are refused as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.errors import InvalidArgumentError


def refuse_own_records(shape: Any, X: object) -> None:
    """Refuse a shape that is made of the records to be released: it would be written down as it is.

    An array that shares memory with the records, or equals them, is refused. What is computed from them cannot be told
    from what is public.

    Examples
    --------
    >>> X = np.zeros((5, 2))
    >>> refuse_own_records(np.eye(2), X)
    >>> refuse_own_records(X[:3], X)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: shape must be public, got the records themselves...
    """
    if shape is None or isinstance(shape, str):
        return
    own = [part for part in _parts(X) if part.size]
    if shape is X or any(_same(one, other) for one in _parts(shape) for other in own):
        raise InvalidArgumentError(
            "`shape` must be public, got the records themselves: their spread would be written into the release. Give "
            'other records, which may be shown, or `shape="private"`.'
        )


def _parts(given: object) -> list[Array]:
    parts = given if isinstance(given, tuple) else (given,)
    return [part for part in parts if isinstance(part, np.ndarray)]


def _same(one: Array, other: Array) -> bool:
    return np.may_share_memory(one, other) or (one.shape == other.shape and bool(np.array_equal(one, other)))
