"""A space of one's own can bring exact draws about a point."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.noise import exact_curved, exact_samplers, register_exact_sampler
from dpmanifold.noise.exact_samplers import exact_sampler


class AsOnTheSphere:
    """Draws on a space with a sphere's geometry by the sphere's sampler."""

    def __getattr__(self, name):
        return lambda space, *rest: getattr(exact_curved, name)(dpm.Sphere(space.dim), *rest)


@pytest.fixture
def directions(monkeypatch):
    """A space that is registered for one test, and the geometry of a sphere."""
    monkeypatch.setattr(exact_samplers, "_SAMPLERS", dict(exact_samplers._SAMPLERS))
    monkeypatch.setattr(dpm.manifolds.SPACES, "_items", dict(dpm.manifolds.SPACES._items))

    class Directions(dpm.Sphere):
        pass

    dpm.manifolds.SPACES.register("Directions", Directions)
    return Directions


def test_releases_on_it_are_exact_once_it_has_a_sampler_and_not_before(directions):
    ball = dpm.Ball(directions(2), [0.0, 0.0, 1.0], 0.5)
    X = np.tile([0.0, 0.0, 1.0], (50, 1))
    for registered in (False, True):
        if registered:
            register_exact_sampler(directions, AsOnTheSphere())
        release = dpm.private_mean(X, ball, dpm.PureDP(1.0), units=dpm.EACH_RECORD, mechanism="riemannian-laplace")
        assert release.is_exact is registered
        assert dpm.verify(release).ok, dpm.verify(release).wrong


def test_what_cannot_be_one_is_refused(directions):
    with pytest.raises(dpm.InvalidArgumentError, match="kind must be a subclass of Manifold, got 'Sphere'"):
        register_exact_sampler("Sphere", exact_curved)
    with pytest.raises(dpm.InvalidArgumentError, match="has no usable, size"):
        register_exact_sampler(directions, object())
    with pytest.raises(dpm.InvalidArgumentError, match="Sphere has an exact sampler already"):
        register_exact_sampler(dpm.Sphere, AsOnTheSphere())
    register_exact_sampler(directions, exact_curved)
    register_exact_sampler(directions, exact_curved)  # the same again is no other one
    assert exact_sampler(directions(2)) is exact_curved
