"""Passes over many points of a product of spaces: those of the factors, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.manifolds.parts import as_row, from_row
from dpmanifold.manifolds.product_points import ProductPoints


class ProductPasses(ProductPoints):
    """The part of a product that is about passes; :class:`~dpmanifold.manifolds.product.Product` inherits it."""

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


class _Bases:
    """What the factors' passes need of base points, and how many there are."""

    def __init__(self, each: list[Any], count: int) -> None:
        self.each, self.count = each, count

    def __len__(self) -> int:
        return self.count
