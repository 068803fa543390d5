"""Covariates, one number per record: read from an array or a column, and a part of what a fingerprint is made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dpmanifold._cells import from_polars, numbers_of, objects, refuse_text, single
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.manifolds import Euclidean, Manifold
from dpmanifold.sources import Block, SetApart, Source, as_source
from dpmanifold.stats.content import Content, content_of
from dpmanifold.stats.inputs import column_or_ids


def checked_numbers(covariate: object, n: int, invalid: str) -> tuple[FloatArray, int]:
    """Return one number per record, and how many were none; or refuse."""
    if isinstance(covariate, str):
        raise InvalidArgumentError(
            "`covariate` must be one number per record, got the name {covariate!r}: X has no columns. Give an array.",
            covariate=covariate,
        )
    if hasattr(covariate, "__array__"):
        given = _of_one_axis(covariate, n)
        values = (
            numbers_of(objects(list(map(single, given.tolist())))) if given.dtype.kind == "O" else numbers_of(given)
        )
    elif isinstance(covariate, Sequence):
        values = numbers_of(objects(list(map(single, covariate))))
    else:
        raise InvalidArgumentError(
            "`covariate` must be one number per record, in a list or an array, got {got}.", got=shown(covariate)
        )
    if values.shape != (n,):
        raise InvalidArgumentError(
            "`covariate` must have shape ({n},), one number per record, got {shape}.",
            n=Public(n),
            shape=Public(values.shape),
        )
    missing = np.flatnonzero(np.isnan(values))
    if missing.size and invalid == "raise":
        raise InvalidDataError(
            "`covariate` must be numbers, and that of record {missing} is none. Leave the record out, or give "
            '`invalid="center"`, by which it counts as the middle of the range.',
            missing=Public(missing[0]),
        )
    return values, int(missing.size)


def _of_one_axis(covariate: Any, n: int) -> Array:
    """Return an array (n,) as it is, also of a column (n, 1)."""
    covariate = from_polars(covariate, "covariate")
    given = covariate if isinstance(covariate, np.ma.MaskedArray) else np.asarray(covariate)
    refuse_text(given, "covariate")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim > 1:
        raise InvalidArgumentError(
            "`covariate` must be one number per record, shape ({n},), got {shape}: regression is on one "
            "covariate. With q of them a record's scores are up to sqrt((1 + 3q)/4) times as long, and the "
            "noise as large: regress on one at a time, or on a public combination of them.",
            n=Public(n),
            shape=Public(given.shape),
        )
    return np.atleast_1d(given)


# -------------------------------------------------------------------- columns


def blocks_of(source: Source, space: Manifold, units: object = None, labels: object = None) -> list[Block]:
    """Return all that a source holds."""
    return [block for piece in source.bound(space, units, labels) for block in piece.blocks() if len(block.records)]


def on_a_line(source: Source) -> FloatArray:
    """Return all numbers of a source of them, (records,)."""
    return np.concatenate([np.asarray(block.records)[:, 0] for block in blocks_of(source, Euclidean(1))])


def set_apart(X: object, labels: object, covariate: object) -> object:
    """Return records without the column that holds their classes or their covariate, whoever reads them, and for what.

    Of two such columns that nobody has told from those of the records, only one can be: the other makes records too
    long, and is refused with them.
    """
    source = as_source(X)
    if source is None:
        return X
    if isinstance(labels, str):
        return SetApart(source, labels)
    if isinstance(covariate, str) and source.numbers(covariate) is None:
        return SetApart(source, covariate)
    return X


# -------------------------------------------------------------------- fingerprints


def content_beside(
    X: object, ball: Ball, units: object, labels: object, classes: list[Any] | None, covariate: object
) -> Content:
    """Return what gives the bytes for a fingerprint of records with all that is registered beside them. NOT PRIVATE.

    Parameters
    ----------
    X, ball, units, labels, classes : as in :func:`~dpmanifold.stats.content.content_of`
    covariate : one number per record, or the name of a column; None for the bytes of records without any
    """
    content = content_of(X, ball, units, labels, classes)
    return content if covariate is None else with_covariate(content, lambda: _covariate_of(X, ball, units, covariate))


def with_covariate(content: Content, values: Callable[[], FloatArray]) -> Content:
    """Return what gives the bytes for a fingerprint, the covariates among what comes after the records."""

    def extended() -> Iterator[bytes]:
        records, *rest = content()
        yield records
        plain = np.array(values(), dtype="<f8")
        plain[np.isnan(plain)] = np.nan  # of which there are many
        yield b"".join(rest) + b"covariate " + hashlib.sha256(plain.tobytes()).hexdigest().encode("ascii")

    return extended


def _covariate_of(X: object, ball: Ball, units: object, covariate: Any) -> FloatArray:
    """Return the covariate of every record, NaN where it is no number; all of them were checked before."""
    source = as_source(X) if isinstance(covariate, str) else None
    if source is not None:
        line = source.numbers(covariate)
        if line is not None:
            return on_a_line(line)
        blocks = blocks_of(source, ball.space, column_or_ids(units), covariate)
        covariate = [value for block in blocks for value in np.asarray(block.labels).tolist()]
    return checked_numbers(covariate, len(covariate), "center")[0]
