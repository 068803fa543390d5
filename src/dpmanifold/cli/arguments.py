"""From words on the command line to promises and shapes, and what is refused of classes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpmanifold import data
from dpmanifold._cells import checked_names
from dpmanifold.data.specifications import class_words
from dpmanifold.errors import InvalidArgumentError, Message
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP
from dpmanifold.stats.shaping import PRIVATE


def promise_of(epsilon: str | None, delta: str | None, mu: str | None, rho: str | None) -> Promise:
    """Return the promise that was asked for: exactly one kind, and the numbers that were typed."""
    kinds = [name for name, value in (("`epsilon`", epsilon), ("`mu`", mu), ("`rho`", rho)) if value is not None]
    if delta is not None and epsilon is None:
        raise InvalidArgumentError("`delta` needs `epsilon`: together they are an approximate promise.")
    if len(kinds) != 1:
        raise InvalidArgumentError(
            "give one promise: `epsilon` E (pure), `epsilon` E `delta` D (approximate), `mu` M (Gaussian) or "
            "`rho` R (zero-concentrated); got {detail}.",
            detail=", ".join(kinds) if kinds else Message("none"),
        )
    try:
        if epsilon is not None:
            return PureDP(_decimal(epsilon)) if delta is None else ApproxDP(_decimal(epsilon), _decimal(delta))
        return GDP(_decimal(mu)) if mu is not None else ZCDP(_decimal(rho or ""))
    except InvalidArgumentError as problem:
        raise InvalidArgumentError("--{problem}", problem=problem) from None


def _decimal(typed: str) -> str:
    """Return a typed number as promises take it: without spaces around it, and .5, 2. and 1E-6 as 0.5, 2 and 1e-6."""
    text = typed.strip().lower().removesuffix(".")
    return f"0{text}" if text.startswith(".") else text


def shape_of(text: str | None) -> Any:
    """Return a shape: None, "private", or the array that a file holds.

    Examples
    --------
    >>> shape_of("private")
    'private'
    """
    return text if text is None or text == PRIVATE else data.load_array(text)


def refuse_classes(words: Mapping[str, Any], outputs: object = None) -> None:
    """Refuse --classes that are no two or more names, before anything is read."""
    checked_names(class_words(words["classes"]))
