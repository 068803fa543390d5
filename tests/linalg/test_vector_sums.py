"""Exact sums of logarithms on spheres, hyperbolic spaces and shapes: within the proven rounding, blind to the order."""

import numpy as np
import pytest

from dpmanifold import Hyperbolic, KendallShapes, Sphere, linalg
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg import backend, backends
from dpmanifold.linalg.vector_sums import SPHERE, tangent_sums
from dpmanifold.manifolds.base import Manifold
from linalg.test_log_sums import threads

SPACES = [
    (Sphere(1), 0.7), (Sphere(2), 0.7), (Sphere(9), 0.7), (Sphere(3, curvature=0.25), 1.4), (Hyperbolic(2), 3.0),
    (Hyperbolic(5, curvature=-2.0), 1.0), (KendallShapes(3), 0.3), (KendallShapes(8), 0.3),
]  # fmt: skip


def points_of(space, radius, n=301):
    rng = np.random.default_rng(0)
    c = rng.standard_normal((n, space.dim))
    c *= radius * rng.random((n, 1)) / np.linalg.norm(c, axis=1)[:, None]
    return space.exp_coords(space.origin, c), rng.integers(0, 5, n)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("case", SPACES, ids=repr)
def test_logarithms_stay_within_their_bound(case, level):
    """The kernels' formula is not that of `log_coords`: both are within the proven error of the truth."""
    space, radius = case
    X, _ = points_of(space, radius)
    with backend(level):
        for base in X[:3]:
            found = np.stack([space.log_sums(base[None], q[None], 2.1 * radius)[0] for q in X])
            error = np.linalg.norm(found - space.log_coords(base, X), axis=1).max()
            assert error <= 2 * space.log_error(radius)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize(("space", "radius"), SPACES, ids=lambda value: repr(value))
def test_order_groups_rows_and_threads_leave_no_trace(level, space, radius):
    X, group = points_of(space, radius)
    bases, bound, rng = X[:5], 2.1 * radius, np.random.default_rng(1)
    with backend(level):
        together = space.log_sums(bases, X, bound, group=group)
        order = rng.permutation(len(X))
        np.testing.assert_array_equal(space.log_sums(bases, X[order], bound, group=group[order]), together)
        for g in range(5):
            rows = np.flatnonzero(group == g)
            alone = space.log_sums(bases[g : g + 1], X[rows], bound)
            # The frame of one base point is that of many to the last bit but one.
            np.testing.assert_allclose(alone[0], together[g], rtol=0, atol=1e-13)
            np.testing.assert_array_equal(space.log_sums(bases[g : g + 1], X, bound, rows=rows), alone)
            some = space.log_sums(bases, X, bound, group=group, rows=rows)
            np.testing.assert_array_equal(some[g], together[g])
            assert not np.delete(some, g, axis=0).any()
        if level != "numpy":
            for number in (2, 5):
                with threads(number):
                    np.testing.assert_array_equal(space.log_sums(bases, X, bound, group=group), together)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("space", [Sphere(2), Sphere(5, curvature=4.0), KendallShapes(4)], ids=repr)
def test_points_near_the_cut_locus_go_the_way_of_log_coords(level, space):
    X = space.random_point(400, rng=0)
    base = X[0]
    if isinstance(space, Sphere):
        X[1], X[2] = -base, space.exp_coords(-base, np.full(space.dim, 1e-6))
    bound = 1.01 * space.injectivity_radius
    with backend(level):
        found, expected = space.log_sums(base[None], X, bound), Manifold.log_sums(space, base[None], X, bound)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
        for q in X[:3]:
            np.testing.assert_allclose(
                space.log_sums(base[None], q[None], bound)[0], space.log_coords(base, q), atol=1e-13
            )


@pytest.mark.skipif(not linalg.available(), reason="the compiled kernels are not installed")
def test_numbers_that_lie_outside_are_refused_before_memory_is_read():
    X, base = Sphere(2).random_point(6, rng=0), Sphere(2).random_point(2, rng=1)
    with pytest.raises(InvalidArgumentError, match="groups"):
        tangent_sums(SPHERE, base, X, 4.0, group=np.full(6, 2))
    with pytest.raises(InvalidArgumentError, match="rows"):
        tangent_sums(SPHERE, base[:1], X, 4.0, rows=np.array([6]))
    with pytest.raises(InvalidArgumentError, match="base points"):
        tangent_sums(SPHERE, base, X, 4.0)
