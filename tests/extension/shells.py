"""Two statistics that the library does not know: a vector and a number. Everything about them is here."""

import numpy as np

from dpmanifold.statistic import STATISTICS, Kind
from dpmanifold.stats import AveragedStatistic

SHELLS = 4


class Shells(AveragedStatistic):
    """How far from the centre the units lie: the share of them in each of four shells of equal width."""

    name, words, kind = "shells", "share of the units in each of four shells of the ball", Kind.VECTOR

    def per_unit(self, block, ball):
        """Return a 1 in the place of the point's shell."""
        away = ball.frame.dist(ball.frame.origin, block)
        return np.eye(SHELLS)[np.minimum((SHELLS * away / ball.radius).astype(int), SHELLS - 1)]

    def size(self, ball):
        """Return the number of shells."""
        return SHELLS

    def middle(self, ball):
        """Return the vector of equal shares: the nearest to all of them."""
        return np.full(SHELLS, 1 / SHELLS)

    def bound(self, ball):
        """Return the distance of a unit vector from it."""
        return float(np.sqrt(1 - 1 / SHELLS))


class NearCentre(AveragedStatistic):
    """The share of the units within half the radius."""

    name, words, kind = "near centre", "share of the units within half the radius", Kind.NUMBER

    def per_unit(self, block, ball):
        """Return 1 or 0."""
        return (ball.frame.dist(ball.frame.origin, block) <= ball.radius / 2)[:, None]

    def middle(self, ball):
        """Return one half: shares lie between 0 and 1."""
        return np.array([0.5])

    def bound(self, ball):
        """Return one half."""
        return 0.5


NEAR_CENTRE = NearCentre()


def register():
    """Register the vector: the one line that a script needs. The number comes by entry point."""
    return STATISTICS.register(Shells.name, STATISTICS.find(Shells.name) or Shells())
