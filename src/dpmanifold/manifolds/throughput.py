"""What passes over very many records ask of a space: hooks with defaults that are right, and that some spaces beat.

Nothing here is a fact of a space's geometry. A space that overrides none of it is as private, and slower.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.manifolds.points import PointSet
from dpmanifold.manifolds.vectors import sum_and_longest

# Numbers of points that a pass works on at a time: few enough for their intermediate results to stay in the cache.
_PASS_BLOCK = 32_768


class RawSums(NamedTuple):
    """What one pass over raw records found. Data: not private.

    Attributes
    ----------
    clipped : how many of the added records lie on the edge of the ball or beyond it
    odd : which records were not added, a boolean each: they are no points, or only others can tell
    clean : whether it is known that there are none of them
    """

    clipped: int
    odd: Array
    clean: bool = False


class RawPoints(NamedTuple):
    """What one pass over raw records of a curved space found. Data: not private.

    Attributes
    ----------
    outside : the indices of records on the edge of the ball or beyond it: points that were not moved
    odd : the indices of records that are no points, or only others can tell: not moved either
    """

    outside: Array
    odd: Array


class RawFrame(NamedTuple):
    """Raw records of a curved space in the frame of a mean that is quickly found. Data: not private.

    Attributes
    ----------
    odd : the indices of records that are no points; nothing else means anything if there are any
    anchor : the mean, in the space
    stored : the points in its frame, packed as by :meth:`Manifold.pack`
    first : (1, dim), the sum of their logarithms at the origin
    """

    odd: Array
    anchor: Array
    stored: Array
    first: FloatArray


class Throughput(PointSet):
    """The part of a space that is about speed; :class:`~dpmanifold.manifolds.Manifold` inherits it."""

    dim: int
    """Dimension of the space."""

    @abstractmethod
    def log_coords(self, p: Array, q: Array) -> FloatArray:
        """Normal coordinates of `q` at `p`, shape (..., dim): coordinates of the logarithm.

        Defined everywhere: from a point on the cut locus one fixed shortest geodesic is taken.
        """

    def weighted_log(
        self, p: Array, q: Array, weights: FloatArray, reach: float = math.inf
    ) -> tuple[FloatArray, float]:
        """Weighted sum of the normal coordinates of points `q` (n, *shape) at one point, shape (dim,); and the longest.

        Minus the gradient of half the weighted mean squared distance, and the largest distance. No point is farther
        than `reach` away: where that saves work it is used, and a wrong value costs time alone.
        """
        return sum_and_longest(self.log_coords(p, q), weights)

    def clipped_sums(
        self, records: Array, center: Array, radius: float, sums: ExactSum, group: Array | None = None
    ) -> RawSums | None:
        """Check raw records, move them to coordinates at a centre, shorten these to a radius and add: in one pass.

        For flat spaces that have such a pass; None where there is none, or not for this array. What is added for a
        record depends on that record alone: its :meth:`addends`. Records that the pass cannot take are left to others.

        Parameters
        ----------
        records : (n, *shape), as a user gave them
        center, radius : of a ball; an infinite radius shortens nothing
        sums : where to add; of `dim` entries, none of which the radius may exceed
        group : (n,), the number of each record's group in `sums`; the first if left out
        """
        return None

    def addends(self, c: FloatArray) -> FloatArray:
        """Return what passes add up for coordinates (n, dim), where that is something else; also (n, dim)."""
        return c

    def from_addends(self, total: FloatArray) -> FloatArray:
        """Return the coordinates of a sum of :meth:`addends`, (..., dim)."""
        return total

    def log_sums(
        self,
        p: Array,
        stored: Array,
        bound: float,
        *,
        group: Array | None = None,
        rows: Array | None = None,
        weights: FloatArray | None = None,
    ) -> FloatArray:
        """Sums of the normal coordinates of packed points, each at its group's base point; (groups, dim).

        The bits do not depend on the order of the points (theory: rounding). Points are trusted: nothing is checked.

        Parameters
        ----------
        p, stored, bound, group, rows : as in :meth:`log_words`
        weights : (n,), factors of at least 0; 1 by default
        """
        if weights is None:
            return self.from_log_words(p, self.log_words(p, stored, bound, group=group, rows=rows))
        return self._added(p, stored, bound, group, rows, weights).total()

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
        """Exact sums of logarithms of packed points, as integers that parts of the points can be merged by.

        What the entries are is the space's own business: :meth:`from_log_words` knows. It is the same for every call,
        so that sums at the same base points with the same bound can be merged.

        Parameters
        ----------
        p : base points, (groups, *shape), or one for all groups; or what :meth:`at` makes of them
        stored : (n, ...), from :meth:`pack`
        bound : no point is farther from its base point: the scale of the sums, and what larger entries are cut to
        group : (n,), which base point each point belongs to; the only one by default
        rows : which points to add; all by default
        sums : where to add, from an earlier call; new sums, one for each base point, by default
        """
        return self._added(p, stored, bound, group, rows, None, sums)

    def at(self, p: Array) -> Any:
        """Return what :meth:`log_words` needs of base points (groups, *shape), where it is asked for many times."""
        return p

    def log_coords_at(self, at: Any, chosen: Array, p: Array, q: Array) -> FloatArray:
        """Normal coordinates of points q at p, which are the `chosen` ones of the base points that `at` was made of.

        The bits are those of :meth:`log_coords`; a space that can use what is known already is faster.
        """
        return self.log_coords(p, q)

    def from_log_words(self, p: Array, sums: ExactSum) -> FloatArray:
        """Return sums of normal coordinates, (groups, dim), from the integers of :meth:`log_words` at p."""
        return sums.total()

    def _added(
        self,
        p: Array,
        stored: Array,
        bound: float,
        group: Array | None,
        rows: Array | None,
        weights: FloatArray | None,
        sums: ExactSum | None = None,
    ) -> ExactSum:
        if sums is None:
            most = 1.0 if weights is None else float(np.max(weights))
            sums = ExactSum(self.dim, bound * most if most > 0 else bound, len(p))
        total = len(stored) if rows is None else len(rows)
        step = max(1, _PASS_BLOCK // math.prod(stored.shape[1:]))
        for start in range(0, total, step):
            part = slice(start, min(start + step, total)) if rows is None else rows[start : start + step]
            of_part = None if group is None else group[part]
            c = self.log_coords(p[0] if of_part is None or len(p) == 1 else p[of_part], self.unpack(stored[part]))
            sums.add(c if weights is None else c * weights[part, None], of_part)
        return sums

    def framed_records(self, records: Array) -> RawFrame | None:
        """Check raw records and move them to the frame of a mean of theirs, all in passes over them.

        For curved spaces that have such passes; None where there are none, or not for this array.

        Parameters
        ----------
        records : (n, *shape), as a user gave them
        """
        return None

    def moved_records(
        self, records: Array, center: Array, radius: float, out: Array, sums: ExactSum | None = None
    ) -> RawPoints | None:
        """Check raw records and move those inside a ball by the isometry that takes its centre to the origin.

        For curved spaces that have such a pass; None where there is none, or not for this array. What is written and
        added for a record depends on that record alone.

        Parameters
        ----------
        records : (n, *shape), as a user gave them
        center, radius : of the ball
        out : (n, ...), where to write them, packed as by :meth:`pack`; rows of records that were not moved mean nothing
        sums : where to add the logarithms, at the origin, of those that were moved; as :meth:`log_words` adds them.
            Nowhere, if left out
        """
        return None
