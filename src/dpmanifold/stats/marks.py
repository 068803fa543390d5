"""Records with a number each beside their points: a covariate in a public range, brought to [-1, 1].

It is a part of what a fingerprint is made of, and read from an array, or from a column where X has columns. All of them
are held in memory: what a record counts for depends on its own number, so that units with several records cannot be
reduced to one point each beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifold import frechet
from dpmanifold._cells import from_polars, numbers_of, objects, refuse_text, single
from dpmanifold._check import Array, FloatArray, shown
from dpmanifold._ids import UnitIds, entries_of
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.features.regression_features import Geodesic, MarkedMoments
from dpmanifold.frechet import UnitPoints
from dpmanifold.inference.design import Range, as_marks
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.manifolds import Euclidean, Manifold
from dpmanifold.manifolds.vectors import shorten
from dpmanifold.sources import Block, SetApart, Source, as_source
from dpmanifold.stats.content import Content, content_of
from dpmanifold.stats.curator import Notice, Told
from dpmanifold.stats.inputs import (
    as_batch,
    checked_invalid,
    checked_number,
    checked_units,
    column_or_ids,
    number_of_records,
    records_of,
)

# Records that are worked on together.
_BLOCK = 16_384
# Shares of a unit's records are counted in steps of this, so that sums of them are exact.
_STEPS = 2.0**20
# No unit's scores are as far from 0 as this.
_FAR = 4.0


class MarkedPoints:
    """Every record's point in a ball's frame, its covariate in [-1, 1] and its unit. Data: not private.

    Parameters
    ----------
    ball : in whose frame the points are
    points : (records, *frame.shape), validated and clipped
    marks : (records,), from -1 to 1
    ids : who owns each record; None where every record is a unit
    """

    def __init__(self, ball: Ball, points: Array, marks: FloatArray, ids: UnitIds | None = None) -> None:
        self.ball, self.unit = ball, "record" if ids is None else "unit"
        self._points, self._marks = points, marks
        self._group = None if ids is None else np.asarray(ids.group, dtype=np.int64)
        self._n = len(marks) if ids is None else len(ids)

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"MarkedPoints({self._n} of {self.ball!r})"

    @property
    def _counts(self) -> Array:
        """How many records each unit has."""
        return np.bincount(self._group, minlength=self._n) if self._group is not None else np.ones(self._n, np.int64)

    def _blocks(self, curve: Geodesic) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
        """Yield slices of the records, their residuals from a curve, and their covariates."""
        for start in range(0, len(self._marks), _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield rows, curve.residuals(self._points[rows], self._marks[rows]), self._marks[rows]

    def scored(self, curve: Geodesic, radius: float) -> Scored:
        """Return the units' average scores about a curve, residuals clipped to a radius."""
        width = 2 * self.ball.frame.dim + 2
        sums = ExactSum(width, 1.0, self._n)
        for rows, residuals, t in self._blocks(curve):
            with np.errstate(all="ignore"):
                v = shorten(np.nan_to_num(residuals / radius), 1.0)
            group = np.arange(self._n)[rows] if self._group is None else self._group[rows]
            sums.add(MarkedMoments.scores(v, t), group)
        averages = sums.total() / self._counts[:, None]
        # None is longer: rounding alone carries it on.
        averages[:, :-2] = shorten(averages[:, :-2], 1.0)
        return self._scored(averages)

    def unscored(self) -> Scored:
        """Return as many units without residuals, in the middle of the range: what stands in for what cannot be."""
        return self._scored(np.zeros((self._n, 2 * self.ball.frame.dim + 2)))

    def _scored(self, averages: FloatArray) -> Scored:
        width = averages.shape[1]
        return Scored(self.ball, UnitPoints.of(averages, Ball(Euclidean(width), np.zeros(width), _FAR), self.unit))

    def lengths(self, curve: Geodesic) -> Lengths:
        """Return how far records lie from a curve."""
        with np.errstate(all="ignore"):
            found = [np.sqrt((residuals * residuals).sum(axis=1)) for _, residuals, _ in self._blocks(curve)]
        return Lengths(np.concatenate([np.empty(0), *found]), self._group, self._counts)

    def no_lengths(self) -> Lengths:
        """Return those of as many records on the curve: what stands in for what cannot be computed."""
        return Lengths(np.zeros(len(self._marks)), self._group, self._counts)

    def design(self, powers: int) -> FloatArray:
        """Return the averages over units of t, t^2, ..., (powers,): where the covariate is public."""
        every = np.stack([self._marks**power for power in range(1, powers + 1)], axis=1)
        sums = ExactSum(powers, 1.0, self._n)
        sums.add(every, np.arange(self._n) if self._group is None else self._group)
        return np.asarray((sums.total() / self._counts[:, None]).mean(axis=0))


@dataclass(frozen=True, eq=False)
class Scored:
    """Units' average scores, as vectors, with the public ball that their records lie in."""

    ball: Ball
    units: UnitPoints


class Lengths:
    """How far records lie from a curve, counted unit by unit: each unit counts for the share of its records within.

    Parameters
    ----------
    lengths : (records,)
    group : (records,), the number of each one's unit; None where every record is a unit
    counts : (units,), how many records each has
    """

    def __init__(self, lengths: FloatArray, group: Array | None, counts: Array) -> None:
        self._lengths, self._group, self._counts = lengths, group, counts

    def within(self, center: Array, distances: FloatArray) -> FloatArray:
        """Return how many units' records lie within each of some distances: one unit changes it by at most 1.

        Examples
        --------
        >>> Lengths(np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1]), np.array([2, 1])).within(None, np.array([2.0]))
        array([1.5])
        """
        return np.array([self._within(distance) for distance in distances])

    def _within(self, distance: float) -> float:
        inside = self._lengths <= distance
        if self._group is None:
            return float(np.count_nonzero(inside))
        shares = np.bincount(self._group, weights=inside, minlength=len(self._counts)) / self._counts
        return float(np.floor(shares * _STEPS).sum() / _STEPS)


# -------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class Read:
    """Records with covariates as they were read, and the points made of them. Data.

    Attributes
    ----------
    points : what statistics are made of
    content : gives the bytes for a fingerprint
    """

    points: MarkedPoints
    content: Content


def marked_points(
    X: object, covariate: object, ball: Ball, units: object, invalid: str, told: Told, covariate_range: Range
) -> Read:
    """Return every record's point with its covariate, or refuse; what else there is to say is told."""
    checked_invalid(invalid)
    X = as_batch(X, ball, covariate=covariate, units=units)
    source = as_source(X)
    if source is not None:
        X, covariate, units = _gathered(source, ball, covariate, units)
    n = number_of_records(X)
    if n == 0:
        raise InvalidDataError("`X` is empty: a private statistic needs at least 2 units.")
    values, missing = checked_numbers(covariate, n, invalid)
    records = records_of(X, ball, invalid)
    ids = checked_units(units, n)
    checked_number(n if ids is None else len(ids))
    made = frechet.made_from(records, ball)
    beyond = int(np.count_nonzero((values < covariate_range[0]) | (values > covariate_range[1])))
    told.tell(Notice(n, made.clipped, made.replaced, beyond=beyond, unnumbered=missing))
    points = MarkedPoints(ball, made.points.array(), as_marks(values, covariate_range), ids)
    return Read(points, content_of(X, ball, units, covariates=lambda: values))


def _gathered(source: Source, ball: Ball, covariate: object, units: object) -> tuple[object, object, object]:
    """Return all records of a source at once, with their covariates and ids."""
    named, values = column_or_ids(units), covariate
    line = source.numbers(covariate) if isinstance(covariate, str) else None
    beside = covariate if isinstance(covariate, str) and line is None else None
    blocks = blocks_of(source, ball.space, named, beside)
    if not blocks:
        raise InvalidDataError("`X` is empty: a private statistic needs at least 2 units.")
    records = np.concatenate([np.asarray(block.records) for block in blocks])
    if line is not None:
        values = on_a_line(line)
    elif beside is not None:
        values = [value for block in blocks for value in np.asarray(block.labels).tolist()]
    elif source.rows is None and isinstance(values, Sized) and len(values) != len(records):
        raise InvalidArgumentError(
            "`covariate` must have shape ({n_records},), one number per record, got {n_values} of them. What "
            "is one number per image is a column of the images, by its name: data.from_nifti(paths, "
            "per_image={{...}}).",
            n_records=Public(len(records)),
            n_values=Public(len(values)),
        )
    owners = units if named is None else [name for block in blocks for name in entries_of(block.units).tolist()]
    return records, values, owners


# -------------------------------------------------------------------- one number per record


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
    covariates = None if covariate is None else lambda: _covariate_of(X, ball, units, covariate)
    return content_of(X, ball, units, labels, classes, covariates)


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
