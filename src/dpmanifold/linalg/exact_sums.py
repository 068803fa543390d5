"""Sums of bounded vectors as integers: exact, so that order, blocks, threads and partitions leave no trace."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError

# An entry becomes an integer of at most 2^62 in size, held as two of 31 bits. 2^31 of either fit a 64-bit sum with
# room for a factor of two.
_BITS, _HALF = 62, 31
_LOW = (1 << _HALF) - 1

# Exponents of powers of two that are doubles, with a margin.
_FACTOR = 1000

# Records that one sum takes; beyond it a word could overflow.
MOST_RECORDS = 2**31

IntArray = npt.NDArray[np.int64]


class ExactSum:
    """Sums of vectors, one per group, whose bits do not depend on the order in which the vectors come.

    An entry is divided by 2^(p - 62), where 2^p is the smallest power of two not below `bound`, cut to a whole number
    (toward zero: no vector gets longer) and added as an integer. Nothing else is rounded until :meth:`total`. Cutting
    costs less than 2^-61 of the bound per entry and record, at most a 256th of what rounding to a double may cost at
    that size. Up to 2^31 records fit (theory: rounding).

    Parameters
    ----------
    size : entries of a vector
    bound : what no entry exceeds in size, a public number: the integers' scale follows from it alone. What does
        exceed it, or is not a number, is cut to the bound
    groups : how many sums are kept

    Attributes
    ----------
    words : (groups, 2, size) 64-bit integers, high and low halves: all there is to send to another machine

    Examples
    --------
    >>> sums = ExactSum(2, bound=1.0)
    >>> sums.add(np.array([[0.5, 0.25], [1.0, -1.0]]))
    >>> sums.total()
    array([[ 1.5 , -0.75]])

    Other orders and partitions give the same bits, which sums of doubles do not:

    >>> values = np.array([[1.0], [1e-16], [-1.0], [1e-16]])
    >>> large, small = ExactSum(1, 1.0), ExactSum(1, 1.0)
    >>> large.add(values[::2])
    >>> small.add(values[1::2])
    >>> large.merge(small)
    >>> bool(large.total()[0, 0] > 1.9e-16), bool(values.sum() > 1.9e-16)
    (True, False)
    """

    def __init__(self, size: int, bound: float, groups: int = 1) -> None:
        if not (math.isfinite(bound) and bound > 0):
            raise InvalidArgumentError(f"bound must be a finite number above 0, got {bound!r}.")
        self.size, self.bound, self.groups = int(size), float(bound), int(groups)
        fraction, exponent = math.frexp(self.bound)
        # 2^-shift is what the integers count.
        self.shift = _BITS - (exponent - 1 if fraction == 0.5 else exponent)
        self.words: IntArray = np.zeros((self.groups, 2, self.size), dtype=np.int64)
        self.records = 0

    def count(self, records: int) -> None:
        """Note that so many records were added, or are about to be; refuse more than the integers hold.

        Examples
        --------
        >>> ExactSum(1, bound=1.0).count(2**40)
        Traceback (most recent call last):
        ...
        dpmanifold.errors.InvalidArgumentError: a sum takes at most 2147483648 records, got 1099511627776.
        """
        self.records += records
        if self.records > MOST_RECORDS:
            raise InvalidArgumentError(f"a sum takes at most {MOST_RECORDS} records, got {self.records}.")

    def add(self, values: FloatArray, group: Array | None = None, *, counted: bool = False) -> None:
        """Add vectors (m, size) to the sums of their groups: (m,) numbers from 0, in any order, or None for the first.

        `counted` says that they were counted before, by :meth:`count`.

        Examples
        --------
        >>> sums = ExactSum(1, bound=4.0, groups=2)
        >>> sums.add(np.array([[1.0], [2.0], [3.0]]), np.array([1, 0, 1]))
        >>> sums.total()
        array([[2.],
               [4.]])
        """
        self.count(0 if counted else len(values))
        high, low = self._halves(np.asarray(values, dtype=np.float64))
        if group is None:
            self.words[0, 0] += high.sum(axis=0)
            self.words[0, 1] += low.sum(axis=0)
            return
        order = np.argsort(group, kind="stable")
        named = np.asarray(group)[order]
        starts = np.flatnonzero(np.r_[True, named[1:] != named[:-1]]) if named.size else np.empty(0, np.intp)
        if starts.size:
            self.words[named[starts], 0] += np.add.reduceat(high[order], starts, axis=0)
            self.words[named[starts], 1] += np.add.reduceat(low[order], starts, axis=0)

    def _halves(self, values: FloatArray) -> tuple[IntArray, IntArray]:
        """Return the integers of vectors, split into multiples of 2^31 and what is left, at least 0."""
        # These two drop what is not a number; a power of two rounds nothing, and is faster as a factor than in ldexp.
        scaled = np.fmin(values, self.bound)
        np.fmax(scaled, -self.bound, out=scaled)
        if abs(self.shift) <= _FACTOR:
            scaled *= math.ldexp(1.0, self.shift)
        else:
            np.ldexp(scaled, self.shift, out=scaled)
        whole = scaled.astype(np.int64)  # toward zero
        return whole >> _HALF, whole & _LOW

    def merge(self, other: ExactSum, groups: Array | None = None) -> None:
        """Add another sum of the same size, bound and groups; or of others, given which group here each of them is.

        Examples
        --------
        >>> sums = ExactSum(1, bound=4.0)
        >>> sums.merge(sums)
        >>> sums.total()
        array([[0.]])
        """
        alike = self.groups == other.groups if groups is None else len(groups) == other.groups
        if not alike or (self.size, self.shift) != (other.size, other.shift):
            raise InvalidArgumentError("two sums of different sizes, bounds or groups cannot be merged.")
        self.count(other.records)
        if groups is None:
            self.words += other.words
            return
        count = len(groups)
        if count and int(groups.max()) < count:  # the first ones in another order, as each is another group
            order = np.empty(count, dtype=np.int64)
            order[groups] = np.arange(count)
            self.words[:count] += other.words.take(order, axis=0)
        else:
            self.words[groups] += other.words

    def grown(self, groups: int) -> ExactSum:
        """Return the same sums with room for more groups, which are 0; itself, if it has the room.

        Examples
        --------
        >>> ExactSum(1, bound=4.0).grown(2).total()
        array([[0.],
               [0.]])
        """
        if groups <= self.groups:
            return self
        more = ExactSum(self.size, self.bound, groups)
        more.words[: self.groups], more.records = self.words, self.records
        return more

    def cut(self, groups: int, start: int = 0) -> ExactSum:
        """Return the sums of so many groups, the first ones or from another on; a copy.

        Examples
        --------
        >>> ExactSum(1, bound=4.0, groups=3).cut(1, start=2).total()
        array([[0.]])
        """
        fewer = ExactSum(self.size, self.bound, groups)
        fewer.words[:], fewer.records = self.words[start : start + groups], self.records
        return fewer

    def total(self) -> FloatArray:
        """Return the sums, (groups, size): each rounded once, to the nearest double.

        Examples
        --------
        >>> ExactSum(2, bound=1.0).total()
        array([[0., 0.]])
        """
        high = self.words[:, 0] + (self.words[:, 1] >> _HALF)
        low = self.words[:, 1] & _LOW
        # Two doubles without rounding, the upper 43 bits and the lower 51; their sum is the one rounding there is.
        upper = (high >> 20).astype(np.float64) * 2.0**51
        lower = (((high & 0xFFFFF) << _HALF) + low).astype(np.float64)
        return np.asarray(np.ldexp(upper + lower, -self.shift))


# Records that are added at a time.
_BLOCK = 16_384


def weighted_sum(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return sum_i w_i values_i over the first axis: the products are added exactly, whatever their order.

    The scale of the integers follows from the largest entry and the largest weight: nothing here is private.

    >>> weighted_sum(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 0.5]))
    array([2., 3.])
    """
    bound = float(np.abs(values).max(initial=0.0)) * float(np.abs(weights).max(initial=0.0))
    if not (0 < bound < np.inf):
        return np.asarray((values * weights[:, None]).sum(axis=0))
    sums = ExactSum(values.shape[1], bound)
    for start in range(0, len(values), _BLOCK):
        sums.add(values[start : start + _BLOCK] * weights[start : start + _BLOCK, None])
    return np.asarray(sums.total()[0])


__all__ = ["MOST_RECORDS", "ExactSum", "IntArray"]
