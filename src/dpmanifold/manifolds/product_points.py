"""Points of a product of spaces as arrays, and passes over many of them: those of the factors, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._cells import record_cells
from dpmanifold._check import Array, FloatArray, numeric_array, shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.linalg.cards import fetched
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.parts import Run, as_row, from_row, read_parts
from dpmanifold.manifolds.points import not_real, other_shape


class ProductPoints(Manifold):
    """The part of a product that is about its points; :class:`~dpmanifold.manifolds.product.Product` inherits it."""

    factors: tuple[Manifold, ...]
    weights: FloatArray
    _runs: list[Run]
    _stacked: bool
    _scale: FloatArray

    def _each(self) -> Iterator[tuple[Manifold, float]]:
        return zip(self.factors, self.weights.tolist(), strict=True)

    def split(self, p: object) -> tuple[Array, ...]:
        """Return points (..., *shape) as one array for every factor, (..., *shape_j) each.

        Examples
        --------
        >>> from dpmanifold.manifolds import SPD, Product
        >>> space = Product([SPD(2)] * 3)
        >>> [part.shape for part in space.split(space.random_point(5, rng=0))]
        [(5, 2, 2), (5, 2, 2), (5, 2, 2)]
        """
        pieces = self._pieces(self._array(p))
        return tuple(run.one(part, j) for run, part in zip(self._runs, pieces, strict=True) for j in range(run.count))

    def join(self, parts: Sequence[object]) -> Array:
        """Return points from one array for every factor, (..., *shape_j) each; undoes :meth:`split`.

        Batches broadcast. Only shapes are looked at.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean, Product, Sphere
        >>> Product([Euclidean(1), Sphere(1)]).join(([2.0], [0.0, 1.0]))
        array([2., 0., 1.])
        """
        if not isinstance(parts, (tuple, list)) or len(parts) != len(self.factors):
            number = f"{len(parts)} of them" if isinstance(parts, (tuple, list)) else shown(parts)
            raise InvalidArgumentError(
                "parts must be {n_factors} arrays, one for every factor; got {number}.",
                n_factors=Public(len(self.factors)),
                number=Public(number),
            )
        pairs = enumerate(zip(self.factors, parts, strict=True))
        arrays = [factor._array(part, f"part {j}") for j, (factor, part) in pairs]
        batches = [array.shape[: array.ndim - len(f.shape)] for f, array in zip(self.factors, arrays, strict=True)]
        try:
            batch = np.broadcast_shapes(*batches)
        except ValueError:
            usual = max(batches, key=batches.count)
            others = [f"{one} in part {j}" for j, one in enumerate(batches) if one not in (usual, ())]
            more = f" (and {len(others) - 3} more)" if len(others) > 3 else ""
            raise InvalidArgumentError(
                "parts must have batches of one shape, got {usual}, but {others}{more}. Give every part of the "
                "same people, in the same order.",
                usual=Public(usual),
                others=", ".join(others[:3]),
                more=more,
            ) from None
        whole = [np.broadcast_to(array, (*batch, *f.shape)) for f, array in zip(self.factors, arrays, strict=True)]
        return self._joined([np.stack(whole[run.first : run.first + run.count], axis=len(batch)) for run in self._runs])

    def _pieces(self, array: Array) -> list[Array]:
        """Return points as stacked points of the runs, (..., count, *shape) each."""
        if self._stacked:
            return [array]
        return [from_row(array[..., run.entries], run.shape, run.space.dtype) for run in self._runs]

    def _joined(self, pieces: list[Array]) -> Array:
        """Undo :meth:`_pieces`."""
        if self._stacked:
            return np.ascontiguousarray(pieces[0], dtype=self.dtype)
        rows = [as_row(piece, len(run.shape)) for run, piece in zip(self._runs, pieces, strict=True)]
        return np.concatenate(rows, axis=-1)

    def gathered(self, p: object) -> object:
        """Return points from a tuple with an array for every factor, whose batches broadcast; leave what is none alone.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean, Product
        >>> Product([Euclidean(1)] * 2).gathered(([[1.0], [2.0]], [3.0]))
        array([[[1.], [3.]],
               [[2.], [3.]]])
        """
        return self.join(p) if isinstance(p, tuple) and len(p) == len(self.factors) else p

    def batch(self, X: object) -> object:
        """Return records from a tuple with an array of n records for every factor; leave what is no tuple alone.

        Nothing broadcasts, and no record decides how others are read: parts are arrays, (n, *shape_j) each, of which
        every cell is read by itself; a tuple that may as well be n records is refused.

        Examples
        --------
        >>> from dpmanifold.manifolds import Euclidean, Product
        >>> Product([Euclidean(1)] * 2).batch((np.zeros((3, 1)), np.ones((3, 1)))).shape
        (3, 2, 1)
        """
        if not isinstance(X, tuple):
            return super().batch(X)
        if len(X) != len(self.factors):
            raise InvalidArgumentError(
                "`X` must be a tuple of {n_factors} arrays, one for every factor, got {n_x}. Records one by one "
                "are an array (np.stack) or a list.",
                n_factors=Public(len(self.factors)),
                n_x=Public(len(X)),
            )
        named = [f"factor {j} of X" for j in range(len(X))]
        X = tuple(
            _as_part(factor, fetched(part, name), name)
            for factor, part, name in zip(self.factors, X, named, strict=True)
        )
        sizes = [_records_in(part, factor, j) for j, (part, factor) in enumerate(zip(X, self.factors, strict=True))]
        for j, size in enumerate(sizes):
            if size != sizes[0]:
                raise InvalidArgumentError(
                    "`X` must have as many records for every factor: {sizes} for factor 0, {size} for factor {j}.",
                    sizes=Public(sizes[0]),
                    size=Public(size),
                    j=Public(j),
                )
        if all(isinstance(part, np.ndarray) and part.shape == self.shape for part in X):
            raise InvalidArgumentError(
                "a tuple of {n_x} arrays of shape {shape} may be as many records, or one array for every factor. "
                "Give one array: np.stack(X) of records, np.stack(X, axis=1) of factors.",
                n_x=Public(len(X)),
                shape=Public(self.shape),
            )
        return self.join(X)

    def _array(self, p: object, name: str = "p") -> Array:
        p = self.gathered(p)
        if not self._stacked:
            return super()._array(p, name)
        factor = self.factors[0]
        try:
            array = factor._array(p, name)
        except InvalidArgumentError:
            return super()._array(p, name)  # says which shape is meant
        return super()._array(array, name)

    def _entries_reason(self, p: object, first: int = 0) -> tuple[Array | None, Message | None]:
        """Return an array of the right shape without NaN, landmarks as pre-shapes, or the reason why not."""
        try:
            raw = numeric_array(self.gathered(p), "it")
        except (InvalidDataError, InvalidArgumentError) as problem:
            return None, problem.message
        wanted = self.record_shapes.get(raw.dtype.kind)
        if wanted is None:
            return None, not_real(raw)
        if raw.shape[max(0, raw.ndim - len(wanted)) :] != wanted:
            hint = self._form_hint(raw, "Put the batch in front, or give a tuple with an array for every factor.")
            return None, other_shape(wanted, raw, hint)
        array = self._joined(read_parts(self._runs, raw))
        return array, self._finite_reason(array, first)

    def _faults(self, array: Array) -> list[tuple[Array, Message]]:
        return [found for run, part in zip(self._runs, self._pieces(array), strict=True)
                for found in self._faults_in(run, part)]  # fmt: skip

    def _faults_in(self, run: Run, part: Array) -> Iterator[tuple[Array, Message]]:
        for bad, fault in run.space._faults(part):
            found = np.argwhere(bad)
            number = Public(run.first + int(found[0][-1]) if len(found) else run.first)
            said = Message("factor {number}, {space!r}: {fault}", number=number, space=Public(run.space), fault=fault)
            yield np.asarray(bad.any(axis=-1)), said

    def degenerate(self, p: Array) -> Array:
        """Return which records have a factor that stands for no point."""
        pieces = zip(self._runs, self._configurations(p), strict=True)
        return np.asarray(np.logical_or.reduce([run.space.degenerate(part).any(axis=-1) for run, part in pieces]))

    def project(self, p: object) -> Array:
        """Move nearly valid points onto the space, factor by factor."""
        pieces = zip(self._runs, self._configurations(p), strict=True)
        return self._joined([run.space.project(part) for run, part in pieces])

    def canonical(self, p: Array) -> Array:
        """Return the canonical arrays of the factors."""
        pieces = zip(self._runs, self._pieces(self._array(p)), strict=True)
        return self._joined([run.space.canonical(part) for run, part in pieces])

    def _configurations(self, p: object) -> list[Array]:
        """Return records as stacked records of the runs, landmarks as they are."""
        raw = np.asarray(self.gathered(p))
        return [raw] if self._stacked else self._pieces(self._array(raw))

    def _random(self, batch: tuple[int, ...], rng: np.random.Generator) -> Array:
        return self._joined([run.space._random((*batch, run.count), rng) for run in self._runs])

    # ---------------------------------------------------------------- passes over many of them

    @cached_property
    def _packed(self) -> list[tuple[slice, tuple[int, ...], np.dtype[np.generic]]]:
        """Where the packed numbers of every factor lie in a row, their shape and their type."""
        found, start = [], 0
        for factor in self.factors:
            one = factor.pack(factor.origin[None])
            width = as_row(one, one.ndim - 1).shape[1]
            found.append((slice(start, start + width), one.shape[1:], one.dtype))
            start += width
        return found

    def pack(self, points: Array) -> Array:
        """Return the packed points of the factors, one after the other in a row."""
        parts = (factor.pack(part) for factor, part in zip(self.factors, self.split(points), strict=True))
        return np.concatenate([as_row(part, part.ndim - 1) for part in parts], axis=-1)

    def unpack(self, stored: Array) -> Array:
        """Undo :meth:`pack`."""
        return self.join(
            tuple(factor.unpack(part) for factor, part in zip(self.factors, self._cut(stored), strict=True))
        )

    def _cut(self, stored: Array) -> Iterator[Array]:
        return (from_row(stored[:, where], shape, dtype) for where, shape, dtype in self._packed)

    def at(self, p: Array) -> Any:
        """Return what the factors need."""
        return _Bases([factor.at(part) for factor, part in zip(self.factors, self.split(p), strict=True)], len(p))

    def log_words(
        self,
        p: Any,
        stored: Array,
        bound: float,
        *,
        group: Array | None = None,
        rows: Array | None = None,
        sums: ExactSum | None = None,
    ) -> ExactSum:
        """Exact sums of the factors, one after the other, each at the scale of its own units."""
        bases = p if isinstance(p, _Bases) else self.at(p)
        if rows is not None:
            stored, group = stored[rows], None if group is None else group[rows]
        own = self._empty_sums(bound, bases.count if sums is None else sums.groups)
        parts = zip(self._each(), bases.each, self._cut(stored), own, strict=True)
        for (factor, a), base, part, one in parts:
            factor.log_words(base, np.ascontiguousarray(part), bound / a, group=group, sums=one)
        if sums is None:
            sums = ExactSum(sum(one.size for one in own), bound, bases.count)
        sums.count(len(stored))
        sums.words += np.concatenate([one.words for one in own], axis=-1)
        return sums

    def from_log_words(self, p: Array, sums: ExactSum) -> FloatArray:
        """Return those of the factors, times the weights."""
        found, start = [], 0
        parts = zip(self.factors, self.split(p), self._empty_sums(sums.bound, sums.groups), strict=True)
        for factor, part, own in parts:
            own.words[:] = sums.words[:, :, start : start + own.size]
            found.append(factor.from_log_words(part, own))
            start += own.size
        return np.asarray(np.concatenate(found, axis=-1) * self._scale)

    def _empty_sums(self, bound: float, groups: int) -> list[ExactSum]:
        """Return where every factor adds up: sums as it makes them itself, at the scale of its own units."""
        nothing = (np.ascontiguousarray(factor.pack(factor.origin[None])[:0]) for factor in self.factors)
        each = zip(self._each(), nothing, strict=True)
        return [factor.log_words(factor.origin[None], none, bound / a).grown(groups) for (factor, a), none in each]


def _as_part(factor: Manifold, part: object, name: str) -> object:
    """Return an array of a factor's records as numbers, one of objects record by record, NaN where it is none."""
    numbers = factor.as_numbers(part, name)
    if not isinstance(numbers, list) or isinstance(part, list):
        return numbers
    found = [record_cells(record, factor.record_shapes) for record in numbers]
    missing = np.full(factor.shape, np.nan, dtype=factor.dtype)
    with np.errstate(all="ignore"):
        return np.stack([missing if record is None else factor._array(record) for record in found])


def _records_in(part: object, factor: Manifold, number: int) -> int:
    """Return how many records of a factor an array of numbers holds, by its shape alone; or refuse it."""
    if isinstance(part, np.ndarray):
        kind = "c" if part.dtype.kind == "c" else "f"
        if part.dtype.kind in "iufc" and part.shape[1:] == factor.record_shapes.get(kind):
            return len(part)
    found = f"dtype {part.dtype}, shape {part.shape}" if isinstance(part, np.ndarray) else type(part).__name__
    raise InvalidArgumentError(
        "factor {number} of X must be an array of numbers of shape (n, {shape}) for {factor!r}, got {found}.",
        number=Public(number),
        shape=Public(", ".join(map(str, factor.shape))),
        factor=Public(factor),
        found=found,
    )


class _Bases:
    """What the factors' passes need of base points, and how many there are."""

    def __init__(self, each: list[Any], count: int) -> None:
        self.each, self.count = each, count

    def __len__(self) -> int:
        return self.count
