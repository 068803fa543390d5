"""What is computed of a record is a function of that record alone, bit for bit: not of its batch, nor its place in it.

The sensitivity of everything rests on it: were one record's image to depend on another's, one unit would move two.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpmanifold import Ball, KendallShapes, Product, Sphere
from dpmanifold.manifolds import registry
from laws.spaces import BALLS, SPACES

SIZES = (1, 2, 3, 7, 32)
# What takes a second or two to look at.
LONG = [KendallShapes(4), KendallShapes(9), *(space for space in SPACES if isinstance(space, Product))]


def maps_of(ball):
    """What happens to a batch of records on its way to a statistic; the space's own maps are in its laws."""
    return {"valid": ball.space.valid, "into_frame": ball.into_frame, "clip": ball.clip}


def depends_on_its_batch(map_of, X):
    """Return whether some record's image differs between the whole batch and a part of it, or another order of it."""
    whole = np.asarray(map_of(X))
    for size in SIZES:
        for start in range(0, len(X) - size + 1, size):
            part = np.asarray(map_of(X[start : start + size]))
            if part.tobytes() != whole[start : start + size].tobytes():
                return True
    others = (np.asarray(map_of(X[::-1]))[::-1], np.asarray(map_of(np.asfortranarray(X))))
    strided = np.asarray(map_of(X[1::3]))
    return any(other.tobytes() != whole.tobytes() for other in others) or strided.tobytes() != whole[1::3].tobytes()


@pytest.mark.parametrize(
    "space", [pytest.param(space, marks=pytest.mark.slow) if space in LONG else space for space in SPACES], ids=repr
)
def test_a_record_is_mapped_alone(space):
    ball = Ball(space, space.random_point(rng=2), min(0.9 * space.radius_limit, 1.0))
    # Where the space has few coordinates, rounding differs for few records.
    X = space.random_point(500 if isinstance(space, KendallShapes) else 100, rng=1)
    for name, map_of in maps_of(ball).items():
        assert not depends_on_its_batch(map_of, X), name
    if isinstance(space, KendallShapes):
        landmarks = np.random.default_rng(3).standard_normal((200, space.landmarks, 2))
        assert not depends_on_its_batch(space.project, landmarks)
        assert not depends_on_its_batch(ball.to_frame, landmarks)


def test_the_comparison_sees_one_bit_in_one_place():
    """A map that rounds the last record of each batch otherwise, as loops with a tail do."""

    def with_a_tail(X):
        result = 0.1 * X
        result[-1] = np.nextafter(result[-1], 1.0)
        return result

    X = Sphere(2).random_point(100, rng=0)
    assert depends_on_its_batch(with_a_tail, X)
    assert not depends_on_its_batch(lambda X: 0.1 * X, X)


def test_every_space_of_the_library_is_on_the_list():
    """The list of all tests: a space that is registered by the library alone would otherwise go untested."""
    own = {kind for kind in registry.SPACES.own() if kind.__module__.startswith("dpmanifold.")}
    assert own == {type(space) for space in SPACES} == {type(ball.space) for ball in BALLS}
