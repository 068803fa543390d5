"""How the radius of a ball is found: a search that knows its own noise (theory section 8).

A radius is looked for on a fixed grid: the smallest that holds a wanted number of units. Every answer is noisy, so a
search can end at a radius that holds far fewer. How many fewer is known from public numbers: with probability 0.999
at most `error`. From this follow the number of units to ask for, whether to ask at all, and by how much the radius
that was found is stretched, so that the ball holds nearly everybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import special

from dpmanifold._check import Array, FloatArray
from dpmanifold.mechanisms.base import pure_epsilon
from dpmanifold.noise.tails import Tail
from dpmanifold.privacy import Promise, PureDP, gaussian_scale, split
from dpmanifold.release import Drawn
from dpmanifold.sensitivity import Sensitivity
from dpmanifold.stats.draws import ChoiceDraw, Hidden, VectorDraw, additive
from dpmanifold.stats.program import Drawing
from dpmanifold.stats.ranges import FALSE_ALARM, MOST_DRAWS, Limits, near

# A search ends with fewer units than wanted, by more than its `error`, with at most this probability.
_FAILURE = 0.001
# Beyond this share of the units the error leaves no radius that surely holds half of them.
MOST_ERROR = 0.25
# No search asks for more than this share: the last units are the farthest ones.
_MOST_WANTED = 0.97
# Grids by the number of halvings: 2^k radii, in geometric steps down to this share of the outer radius.
_GRIDS = {6: 1 / 256, 5: 1 / 256, 4: 1 / 64, 3: 1 / 16}
# A finer grid is taken as long as its error stays below this share of the units.
_FINE_ERROR = 0.15
# Of a pure promise, the part for the choice of the radius; the rest counts the units within it.
_PURE_SHARES = (0.75, 0.25)
COUNT = Sensitivity(1.0, "number of units", "tight", "refine")


@dataclass(frozen=True)
class RadiusSearch:
    """A search for a radius, planned from public numbers alone.

    Parameters
    ----------
    dim, n : dimension of the space, number of units
    outer : the largest radius
    share : the promise of the search, the last count included
    coverage : share of the units that the ball should hold

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> search = RadiusSearch(6, 2000, 1.0, GDP(0.2), 0.99)
    >>> search.halvings, round(search.error), search.can_help
    (6, 47, True)
    >>> RadiusSearch(6, 50, 1.0, GDP(0.2), 0.99).can_help
    False
    """

    dim: int
    n: int
    outer: float
    share: Promise
    coverage: float

    # ---------------------------------------------------------------- public numbers

    @property
    def pure(self) -> bool:
        """Whether radii are chosen by the exponential mechanism, or by counts with Gaussian noise."""
        return isinstance(self.share, PureDP)

    @cached_property
    def halvings(self) -> int:
        """The finest grid whose error is small against n, or the coarsest."""
        fine = [k for k in _GRIDS if self._error(k) <= _FINE_ERROR * self.n]
        return max(fine, default=min(_GRIDS))

    def _error(self, halvings: int) -> float:
        if self.pure:
            choice = split(self.share, _PURE_SHARES)[0]
            return 2 / pure_epsilon(choice) * math.log(2**halvings / _FAILURE)
        noise = gaussian_scale(1.0, split(self.share, halvings + 1)[0])
        return noise * float(special.ndtri(1 - _FAILURE / halvings))

    @property
    def error(self) -> float:
        """With probability 0.999 the radius found holds no fewer units than wanted, less this many."""
        return self._error(self.halvings)

    @property
    def can_help(self) -> bool:
        """Whether the error is small enough that the ball holds what is wanted less a quarter of the units."""
        return self.error <= MOST_ERROR * self.n

    @property
    def wanted(self) -> float:
        """How many units the radius is asked to hold: not so many that noise leads beyond a radius that holds all."""
        return min(self.coverage * self.n, _MOST_WANTED * self.n, self.n - self.error)

    @cached_property
    def radii(self) -> FloatArray:
        """The grid; the last one is the outer radius."""
        return self.outer * np.geomspace(_GRIDS[self.halvings], 1.0, 2**self.halvings)

    @cached_property
    def stretch(self) -> float:
        """What the radius found is multiplied by: from the share it surely holds to `coverage`, on normal data.

        What it surely holds allows for one standard deviation of a count, or what the exponential mechanism exceeds
        with probability 1/6. Distances from a centre that is off spread relatively less than the reference's, so this
        stretches too much rather than too little.
        """
        typical = self.error / 6 if self.pure else self.count_noise
        held = min(max((self.wanted - typical) / self.n, 0.5), self.coverage)
        low, high = special.gammaincinv(self.dim / 2, [held, min(self.coverage, 0.999)])
        return max(1.0, math.sqrt(high / low))

    @cached_property
    def last_share(self) -> Promise:
        """The promise of the last count."""
        return split(self.share, _PURE_SHARES)[1] if self.pure else split(self.share, self.halvings + 1)[0]

    @cached_property
    def count_noise(self) -> float:
        """Scale of the noise on a count: Laplace for pure promises, else normal."""
        return additive(COUNT, self.last_share).scale

    # ---------------------------------------------------------------- the search

    def within(
        self, units: Hidden[Any], center: Array, stretched: FloatArray
    ) -> Drawing[tuple[int, tuple[Drawn, ...], Drawn]]:
        """Find a radius about a point of the frame, and count the units within it once it is stretched.

        Parameters
        ----------
        units : the units' points, or whatever else says how many lie within distances
        center : the point
        stretched : every radius that it may end with, as it is used
        """
        asked = np.concatenate([self.radii, stretched])
        counts = units.then(
            lambda points: points.within(center, asked), lambda points: np.full(len(asked), float(self.n))
        )
        found, outputs = yield from self.find(counts)
        inside: Drawn = yield self.count(counts, len(self.radii) + found, self.least_counted(found, outputs))
        return found, outputs, inside

    def find(self, counts: Hidden[FloatArray]) -> Drawing[tuple[int, tuple[Drawn, ...]]]:
        """Return the index of a radius, given how many units each of them holds, and the outputs that led there.

        Replacing one unit changes every number of units within a radius by at most one.
        """
        if self.pure:
            choice, places = split(self.share, _PURE_SHARES)[0], 2**self.halvings
            drawn: Drawn = yield ChoiceDraw(counts.then(self._missing), places, pure_epsilon(choice), choice)
            return int(drawn.numbers[0]), (drawn,)
        low, high, outputs = 0, 2**self.halvings - 1, []
        for _ in range(self.halvings):  # binary search with a fixed number of noisy counts
            middle = (low + high) // 2
            drawn = yield self.count(counts, middle)
            outputs.append(drawn)
            if float(drawn.numbers[0]) >= self.wanted:
                high = middle
            else:
                low = middle + 1
        return low, tuple(outputs)

    def count(self, counts: Hidden[FloatArray], place: int, least: float = 0.0) -> VectorDraw:
        """Return the draw of one of several numbers of units, which is known to be at least `least`."""
        return VectorDraw(
            counts.then(lambda found: found[place : place + 1]),
            additive(COUNT, self.last_share),
            self.n,
            lambda: Limits(np.full(1, least), np.full(1, float(self.n))),
        )

    def least_counted(self, found: int, outputs: Sequence[Drawn]) -> float:
        """Return what the radius that was found surely holds, by the outputs that led there; stretched, no fewer.

        Of a radius that is not the outer one: it was chosen because it holds as many units as are wanted, or seems to.
        """
        if found == 2**self.halvings - 1:
            return 0.0
        if self.pure:
            rate = pure_epsilon(split(self.share, _PURE_SHARES)[0]) / 2
            return self.wanted - (self.halvings * math.log(2) - math.log(FALSE_ALARM / MOST_DRAWS)) / rate
        low, high, seen = 0, 2**self.halvings - 1, float(self.n)
        for drawn in outputs:
            middle = (low + high) // 2
            if float(drawn.numbers[0]) >= self.wanted:
                high, seen = middle, float(drawn.numbers[0])
            else:
                low = middle + 1
        return near(seen, Tail("gaussian", self.count_noise, 1, outputs[0].grid))[0]

    def chances(self, counts: FloatArray) -> FloatArray:
        """Return the probability of ending at each radius, given how many units each of them would hold.

        Examples
        --------
        >>> from dpmanifold.privacy import GDP
        >>> search = RadiusSearch(6, 20, 1.0, GDP(1.0), 0.9)
        >>> search.chances(20 * np.minimum(1.0, 2 * search.radii)).round(2).tolist()
        [0.0, 0.0, 0.0, 0.01, 0.3, 0.68, 0.01, 0.0]
        """
        counts = self._held(counts)
        if self.pure:
            rate = pure_epsilon(split(self.share, _PURE_SHARES)[0]) / 2
            units = np.array(self._missing(counts), dtype=np.float64)
            weights = np.exp(-rate * (units - units.min()))
            return np.asarray(weights / weights.sum())
        inward = special.ndtr((counts - self.wanted) / self.count_noise)
        found = np.ones(len(counts))
        width = len(counts)
        while width > 1:  # each halving sends every run of radii to its lower or its upper half
            for low in range(0, len(counts), width):
                middle = low + width // 2
                found[low:middle] *= inward[middle - 1]
                found[middle : low + width] *= 1 - inward[middle - 1]
            width //= 2
        return found

    def _missing(self, counts: FloatArray) -> list[Fraction]:
        """Return how many units must move to make each radius the right answer."""
        wanted, held = Fraction(self.wanted), [Fraction(0), *map(Fraction, self._held(counts).tolist())]
        return [max(Fraction(0), wanted - at, below - wanted) for below, at in pairwise(held)]

    def _held(self, counts: FloatArray) -> FloatArray:
        """Return how many units each radius holds: the last stands for the outer ball, which holds all."""
        return np.append(counts[: 2**self.halvings - 1], float(self.n))
