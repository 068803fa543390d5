"""A space of one's own gets exact draws about a point from what it states, or brings a sampler."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.noise import ExactSampler, exact_sampler
from registries import changed


@pytest.fixture
def directions(monkeypatch):
    """A space that is registered for one test, and the geometry of a sphere."""
    changed(monkeypatch, dpm.manifolds.SPACES)

    class Directions(dpm.Sphere):
        exact = True

        def __init__(self, d):
            super().__init__(d)
            if not self.exact:
                self.exact_points = None

    dpm.manifolds.SPACES.register("Directions", Directions)
    return Directions


def release_on(space):
    ball = dpm.Ball(space, [0.0, 0.0, 1.0], 0.5)
    X = np.tile([0.0, 0.0, 1.0], (50, 1))
    return dpm.private_mean(X, ball, dpm.PureDP(1.0), units=dpm.EACH_RECORD, mechanism="riemannian-laplace")


@pytest.mark.parametrize("exact", [True, False])
def test_releases_on_it_are_exact_if_it_says_how_points_are_moved(directions, exact):
    directions.exact = exact
    release = release_on(directions(2))
    assert release.is_exact is exact
    assert dpm.verify(release).ok, dpm.verify(release).wrong


def test_a_sampler_of_its_own_comes_first(directions):
    class AsOnTheSphere(ExactSampler):
        """The sphere's, and it counts."""

        size, drawn = 3, 0

        def usable(self, scale):
            return True

        def largest(self, radius):
            return 1.0

        def _drawn(self, *arguments):
            AsOnTheSphere.drawn += 1
            return exact_sampler(dpm.Sphere(2), self.law)._drawn(*arguments)

        def _placed(self, numbers):
            return exact_sampler(dpm.Sphere(2), self.law).place(numbers)

    directions.exact_sampler = lambda self, law: AsOnTheSphere(self, law)
    release = release_on(directions(2))
    assert AsOnTheSphere.drawn >= 1
    assert release.is_exact
    assert dpm.verify(release).ok, dpm.verify(release).wrong
