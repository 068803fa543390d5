"""The closed forms against brute force on spheres, the steps of their proofs, and the certificate."""

import importlib.util
import pathlib
from fractions import Fraction

import numpy as np
import pytest

from dpmanifold import KendallShapes, Sphere
from dpmanifold.sensitivity import farthest_logs, farthest_means

ROOT = pathlib.Path(__file__).parents[2]
RADII = (0.2, np.pi / 8, 0.6, 0.75, 0.785)


@pytest.fixture(scope="module")
def certificate():
    found = importlib.util.spec_from_file_location("certify_mean", ROOT / "tools" / "certify_mean.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_holds_the_certificate(certificate):
    assert f"```text\n{certificate.report()}\n```" in (ROOT / "docs" / "theory" / "mean.md").read_text(encoding="utf-8")


def test_the_certificate_refuses_what_is_wrong(certificate):
    with pytest.raises(ArithmeticError, match="not shown"):
        certificate.pieces_needed(Fraction(8, 100))


def u_cot_u(u):
    return u / np.tan(u)


def u_over_sin(u):
    return u / np.sin(u)


def edge(radius, away, count):
    """Logarithms of the edge of a cap of S^2, seen from a point this far from its centre: lengths and cosines."""
    u = np.linspace(radius - away, radius + away, count + 2)[1:-1]
    return u, (np.cos(radius) - np.cos(away) * np.cos(u)) / (np.sin(away) * np.sin(u))


def random_cases(count):
    rng = np.random.default_rng(0)
    radii = rng.uniform(0.05, np.pi / 4, count)
    return zip(radii, radii * rng.uniform(0.05, 1, count), strict=True)


def test_steps_of_the_proof():
    """The Hessian's and the logarithms' half of (2), on the edge of caps, where both are sharpest."""
    for radius, away in random_cases(300):
        u, cosine = edge(radius, away, 400)
        larger = 3 / (1 + 2 * np.cos(away))
        tau = (np.sin(radius) - radius * np.cos(radius)) / (radius - np.sin(radius) * np.cos(radius))
        theta = 1 / (1 + tau * np.cos(radius) / np.cos(away))
        weighed = u_cot_u(u) + theta * np.tan(away) * u * cosine
        assert weighed.min() >= u_cot_u(radius) * larger * (1 - 1e-9)
        apart = np.sqrt(away**2 + u**2 - 2 * away * u * cosine)
        assert radius * (1 - 1e-9) <= apart.min()
        assert apart.max() <= radius * larger
        excess = (u_over_sin(away) * u_over_sin(radius + away) - u_over_sin(radius)) * np.sin(away)
        assert apart.max() ** 2 <= radius**2 + excess / np.sin(radius + away) * np.sin(radius) ** 2 + 1e-12


@pytest.mark.parametrize("radius", RADII)
def test_logarithms_are_as_far_apart_as_stated(radius):
    bound = farthest_logs(radius, 1.0)
    found = []
    for share in (0.3, 0.7, 0.9, 1.0):
        u, cosine = edge(radius, radius * share, 400)
        P = np.stack([u * cosine, u * np.sqrt(1 - cosine**2)], axis=1)
        found.append(np.sqrt(((P[:, None] - P * [1, -1]) ** 2).sum(axis=2).max()))
    assert found == sorted(found)
    assert 0.999 * bound <= found[-1] <= bound
    assert found[-1] > 2 * radius  # the flat value would not do


@pytest.mark.parametrize("space", [Sphere(3, curvature=2.0), KendallShapes(3), KendallShapes(4)], ids=repr)
def test_a_search_on_other_spaces_never_exceeds_it(space):
    """Three points of a ball, moved while that carries two logarithms farther apart: close to the bound, not beyond."""
    rng = np.random.default_rng(1)
    radius = 0.99 * space.radius_limit
    bound = farthest_logs(radius, space.curvature[1])

    def apart(places):
        lengths = np.linalg.norm(places, axis=2, keepdims=True)
        x, p, q = space.exp_coords(space.origin, radius * places / np.maximum(1, lengths))
        return np.linalg.norm(space.log_coords(x, p) - space.log_coords(x, q), axis=1)

    places = rng.standard_normal((3, 200, space.dim))
    found = apart(places)
    for step in np.geomspace(0.5, 0.01, 100):
        trial = places + step * rng.standard_normal(places.shape)
        reached = apart(trial)
        better = reached > found
        places[:, better], found[better] = trial[:, better], reached[better]
    assert 0.99 * bound <= found.max() <= bound


def test_scaling_and_flat_spaces():
    for function in (farthest_means, farthest_logs):
        assert function(0.3, 0.0) == function(0.3, -1.0) == 0.6
        assert np.isclose(function(0.3, 4.0), function(0.6, 1.0) / 2, rtol=1e-14)
        for radius in (1e-70, 1e-12, 1e-8, 1e-4, 1e-2):
            assert 2 * (1 - 1e-15) <= function(radius, 1.0) / radius <= (2 + radius**2) * (1 + 1e-15)


def test_the_larger_root_is_taken():
    """A fine grid never beats the halving."""
    for radius in (1e-3, 0.05, *RADII):
        t = np.linspace(0, radius, 100001)
        peak = (radius**2 + 4 * t**2 - 4 * u_cot_u(radius) * t * np.tan(t)).max()
        assert 2 * np.sqrt(peak) <= farthest_logs(radius, 1.0) * (1 + 4e-16) <= 2 * np.sqrt(peak) * (1 + 1e-9)
