"""How far noise on numbers surely stays: lengths that it exceeds with a stated probability at most.

For checks of what was drawn, which must not refuse what was drawn honestly (`verify`). Laws are those of
:mod:`dpmanifold.noise.exact_vector_noise`, with the rounding to a grid.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import scipy

from dpmanifold.noise.exact_vector_noise import checked_law

# Nodes, and standard deviations of its logarithm on either side, of the sum over a chi-square number.
_NODES, _WIDE = 4000, 40.0


@dataclass(frozen=True)
class Tail:
    """Noise on a vector.

    Attributes
    ----------
    law : "gaussian", or "laplace" with a density of exp(-|z|/scale) on all of the vector
    scale : of the law
    size : how many numbers the vector has
    grid : the exponent of the grid that sums were rounded to; None where they were not

    Examples
    --------
    >>> normal, laplace = Tail("gaussian", 1.0, 3), Tail("laplace", 1.0, 3)
    >>> round(normal.length(1, 0.05), 4), round(normal.length(3, 1e-9), 3), round(laplace.length(3, 1e-9), 3)
    (1.96, 6.696, 26.672)
    """

    law: str
    scale: float
    size: int
    grid: int | None = None

    def length(self, among: int, alarm: float) -> float:
        """Return what the noise on `among` numbers is longer than with probability `alarm` at most.

        On any so many orthonormal combinations of the numbers as well: both laws are the same in all directions.
        """
        return self.scale * _length(checked_law(self.law), self.size, min(among, self.size), alarm) + self._rounded(
            among
        )

    def eigenvalue(self, rows: int, alarm: float) -> float:
        """Return what noise on the vecd of a symmetric matrix moves its eigenvalues beyond with that probability.

        At most the length of the noise. Normal noise of scale 1 has a largest eigenvalue of at most sqrt(2 rows) on
        average, by the comparison of Gaussian processes with w.g sqrt(2); and it changes by no more than the noise
        does, so that it exceeds its average by t with a probability of exp(-t^2/2) at most.
        """
        entries = rows * (rows + 1) // 2
        whole = self.length(entries, alarm)
        if self.law != "gaussian":
            return whole
        return min(whole, self.scale * (math.sqrt(2 * rows) + math.sqrt(-2 * math.log(alarm))) + self._rounded(entries))

    def _rounded(self, among: int) -> float:
        """Return how far rounding to the grid moves so many numbers at most."""
        return 0.0 if self.grid is None else math.sqrt(among) * math.ldexp(0.5, self.grid)

    def nearest(self, alarm: float) -> float:
        """Return how near two draws come with probability `alarm` at most, the second being drawn as this one says.

        Whatever the first was, and whatever numbers noise was added to in the second: both laws have most of their
        probability in a ball about the middle. Below 0 where the grid is so coarse that draws are equal more often.
        """
        law = checked_law(self.law)
        unit = (
            math.sqrt(scipy.stats.chi2.ppf(alarm, self.size))
            if law == "gaussian"
            else scipy.stats.gamma.ppf(alarm, self.size)
        )
        return self.scale * float(unit) - self._rounded(self.size)


@lru_cache(maxsize=4096)
def _length(law: str, size: int, among: int, alarm: float) -> float:
    """Return the quantile for a scale of 1."""
    if law == "gaussian":
        return math.sqrt(float(scipy.stats.chi2.isf(alarm, among)))
    whole = float(scipy.stats.gamma.isf(alarm, size))
    if among == size:
        return whole
    # The law is that of sqrt(W) N, W a chi-square number of size + 1 degrees and N normal numbers
    # (noise.exact_vector_noise).
    middle, width = math.log(size + 1.0), _WIDE * math.sqrt(2 / (size + 1.0))
    y = np.linspace(middle - width, middle + width, _NODES)
    w = np.exp(y)
    mass = scipy.stats.chi2.pdf(w, size + 1) * w * (y[1] - y[0])

    def above(t: float) -> float:
        return float(mass @ scipy.stats.chi2.sf(t * t / w, among)) - alarm

    return whole if above(whole) >= 0 else float(scipy.optimize.brentq(above, 0.0, whole, xtol=1e-9))
