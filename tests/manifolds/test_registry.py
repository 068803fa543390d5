"""Spaces by name: what a text may say, and that nothing in it is evaluated."""

import numpy as np
import pytest

from dpmanifold import SPD, Euclidean, Hyperbolic, InvalidArgumentError, InvalidDataError, KendallShapes, Sphere
from dpmanifold.manifolds import SPACES, space_from_text
from dpmanifold.manifolds.layouts import records_from
from dpmanifold.manifolds.registry import examples, spelled
from registries import changed

SPACES_OF_ALL_KINDS = [
    Euclidean(3), Sphere(2), Sphere(4, curvature=0.25), Hyperbolic(2), Hyperbolic(3, curvature=-2.0), KendallShapes(8),
    SPD(3), SPD(9, metric="riemann"),
]  # fmt: skip


class Pair(Euclidean):
    """A space with parts, as far as its text goes."""

    def __init__(self, first, second, weights=(1.0, 1.0)):
        super().__init__(first.dim + second.dim)
        self.parts, self.weights = (first, second), weights

    def _arguments(self):
        return f"{self.parts[0]!r}, {self.parts[1]!r}, weights={self.weights!r}"


@pytest.fixture
def pair(monkeypatch):
    changed(monkeypatch, SPACES)
    SPACES.register("Pair", Pair)


@pytest.mark.parametrize("space", SPACES_OF_ALL_KINDS, ids=repr)
def test_a_space_comes_back_from_its_text(space):
    again = space_from_text(repr(space))
    assert again == space
    assert type(again) is type(space)


def test_a_space_with_parts_comes_back_too(pair):
    for space in (Pair(Sphere(2), SPD(3)), Pair(Pair(Sphere(1), Euclidean(2), (2.0, 0.5)), Hyperbolic(2))):
        assert space_from_text(repr(space)) == space


@pytest.mark.parametrize(
    "text",
    [
        "", "SPD", "SPD(3", "3", "None", "Torus(2)", "Manifold()", "dpmanifold.SPD(3)", "SPD(3).origin", "SPD(2 + 1)",
        "SPD(__import__('os').getpid())", "SPD(*[3])", "SPD(**{'k': 3})", "SPD(3, size=2)", "SPD(3, 4, 5)", "SPD([3])",
        "SPD(k for k in [3])", "SPD(f'{3}')", "SPD(lambda: 3)", "SPD(x := 3)", "SPD(3, metric=Euclidean(2))",
        "Sphere(2)(3)", "SPD(3)" + " " * 200, "SPD(" * 90, "(" * 150 + "SPD(3)" + ")" * 40, None, 3, b"SPD(3)",
        ["SPD(3)"],
    ],
    ids=repr,
)  # fmt: skip
def test_other_texts_are_refused_and_nothing_runs(text):
    with pytest.raises((InvalidDataError, InvalidArgumentError)):
        space_from_text(text)


@pytest.mark.parametrize("text", ["SPD(2001)", "Euclidean(999999999999)", "Pair(SPD(1500), SPD(1500))"])
def test_spaces_larger_than_a_release_are_refused_before_they_are_made(pair, text):
    with pytest.raises(InvalidDataError, match="larger than a release can hold"):
        space_from_text(text)
    with pytest.raises(InvalidDataError, match="larger than a release can hold"):
        space_from_text("Pair(Euclidean(1), SPD(-2001))")


def test_every_name_on_the_command_line_means_one_space():
    names = [name for kind in SPACES for name in kind.spellings()]
    assert len(set(names)) == len(names)
    for name, space in examples().items():
        kind, keywords = spelled(name)
        assert type(space) is kind
        assert kind(*kind.example, **keywords) == space
    with pytest.raises(InvalidArgumentError, match=r"space must be one of euclidean, .*got 'torus'"):
        spelled("torus")


@pytest.mark.parametrize("space", examples().values(), ids=repr)
def test_sizes_follow_from_every_layout(space):
    for layout in space.layouts():
        assert type(space).sizes_of(layout.shape, layout.kind) == type(space).example
        values = np.zeros((5, *layout.shape), dtype="complex128" if layout.kind == "c" else "float64")
        assert records_from(space, values).shape == (5, *layout.becomes)


@pytest.mark.parametrize("space", examples().values(), ids=repr)
def test_what_people_read_is_there(space):
    assert space.describe().isprintable()
    center = space.natural_center
    assert center is None or space.check(center) is None
    point = space.random_point(rng=0)
    if point.dtype.kind == "f":
        np.testing.assert_allclose(space.read_point(point), point, rtol=1e-14)
        np.testing.assert_allclose(space.read_point(point.reshape(-1)), point, rtol=1e-14)
