"""The laws every noise law obeys: one suite, inherited by the test of each.

A subclass gives `make(space, at, scale)` and `vectors(law, draws)`, the drawn noise as vectors (n, dim) where it was
drawn; `spaces`, where it is defined; `scale(space)`, an ordinary one; and `length_cdf(law)`, where the lengths do not
follow the radius law that it states. Checks of draws fail for a right sampler
with probability 1e-6 each (Kolmogorov-Smirnov, or a normal limit), and a wrong variant of each must be caught.
"""

import math

import numpy as np
import pytest
from scipy import stats

from dpmanifold import InvalidArgumentError
from laws.fit import ALARM, assert_fits, rejects
from laws.spaces import BALLS

DRAWS = 4000


class NoiseLaws:
    """Laws of noise about a point."""

    spaces = tuple(ball.space for ball in BALLS)

    def make(self, space, at, scale):
        raise NotImplementedError

    def vectors(self, law, draws):
        raise NotImplementedError

    def length_cdf(self, law):
        """The distribution function of the drawn lengths; None where it is not known."""
        return law.radius.cdf

    def scale(self, space):
        """One at which the noise is about half as long as a ball's radius."""
        return 0.2 / math.sqrt(space.dim)

    def laws(self):
        for space in self.spaces:
            at = space.random_point(rng=7)
            yield space, at, self.make(space, at, self.scale(space))

    def test_draws_are_points_in_the_shape_asked_for(self):
        for space, _, law in self.laws():
            draws = law.sample((2, 3), rng=0)
            assert draws.shape == (2, 3, *space.shape)
            assert space.check(draws) is None
            assert law.sample(rng=0).shape == space.shape

    def test_the_same_seed_draws_the_same_and_another_does_not(self):
        for _, _, law in self.laws():
            assert law.sample(5, rng=1).tobytes() == law.sample(5, rng=1).tobytes() != law.sample(5, rng=2).tobytes()

    def test_lengths_follow_the_radius_law(self):
        known = [law for _, _, law in self.laws() if self.length_cdf(law) is not None]
        assert known
        for law in known:
            lengths = np.linalg.norm(self.vectors(law, law.sample(DRAWS, rng=3)), axis=1)
            assert_fits(lengths, self.length_cdf(law))
            assert rejects(1.2 * lengths, self.length_cdf(law))

    def test_directions_are_balanced(self):
        """The mean of unit vectors, whose covariance is 1/dim: dim n |mean|^2 is chi-squared with dim degrees."""
        for space, _, law in self.laws():
            vectors = self.vectors(law, law.sample(DRAWS, rng=4))
            units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
            assert balanced(units)
            tilted = np.where(units[:, :1] < 0, -units, units)
            tilted[::2] = units[::2]
            assert not balanced(tilted), f"{space!r}: half of the draws turned to one side pass"

    def test_stated_moments_are_those_of_the_radius(self):
        for _, _, law in self.laws():
            if not hasattr(law, "radius"):
                pytest.skip(f"{type(law).__name__} states no law of its radius")
            # The midpoint rule over levels: what it leaves out of the tail is below these shares.
            t = law.radius.quantile((np.arange(1000) + 0.5) / 1000)
            assert law.radius.mean() == pytest.approx(t.mean(), rel=2e-3)
            assert law.radius.moment(2) == pytest.approx((t**2).mean(), rel=1e-2)

    @pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf, "wide", None])
    def test_a_scale_that_is_none_is_refused_by_name(self, bad):
        space = self.spaces[0]
        with pytest.raises(InvalidArgumentError, match="scale"):
            self.make(space, space.origin, bad)


def balanced(units):
    n, dim = units.shape
    return stats.chi2.sf(dim * n * (units.mean(axis=0) ** 2).sum(), dim) >= ALARM
