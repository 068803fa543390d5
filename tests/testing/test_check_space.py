"""Facts that contradict each other are found by a law, and make no release."""

import mpmath as mp
import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.manifolds import SPACES, laws
from dpmanifold.manifolds.optional_properties import RankOne
from dpmanifold.testing import check_space
from dpmanifold_example.rotations import Rotations
from extension.concentrations import Concentrations
from registries import changed
from testing.wrong_spaces import WRONG, HalfOfItsText, NoRounding, TooLittleNoise, WrongRadial


class Proven(Rotations):
    """A compact group with a bi-invariant metric: Gaussian noise keeps what it keeps on flat spaces."""

    gaussian_proof = "normal-homogeneous"


# Beside those of tests/manifolds and tests/extension, which inherit the same: other scales, and spaces of others.
RIGHT = [
    dpm.Sphere(3, curvature=0.25), dpm.Sphere(2, curvature=1e6), dpm.Hyperbolic(2, curvature=-50.0), Rotations(),
    dpm.Product([dpm.Sphere(2), dpm.Euclidean(2)]), dpm.Product([Rotations(), dpm.SPD(2)]), Proven(),
]  # fmt: skip


def broken(space, reference=None):
    return {law: wrong for law, wrong in check_space(space, reference).items() if wrong is not None}


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """Forget what is found and registered in a test."""
    monkeypatch.setattr(laws, "_FOUND", {})
    changed(monkeypatch, SPACES)


@pytest.mark.parametrize("space", RIGHT, ids=repr)
def test_right_spaces_break_no_law(space, monkeypatch):
    monkeypatch.setitem(SPACES._items, "Rotations", Rotations)
    assert broken(space) == {}


@pytest.mark.security
@pytest.mark.parametrize(("space", "law"), WRONG, ids=[type(space).__name__ for space, _ in WRONG])
def test_a_wrong_fact_is_found_and_no_release_is_made(space, law):
    """By the law that is about it; before a ball is there to ask with, and whether or not it is a factor of another."""
    found = broken(space)
    assert law in found, found
    budget = dpm.Budget(dpm.GDP(1.0))
    X = np.broadcast_to(space.origin, (50, *space.shape))

    def ask(space, X):
        ball = dpm.Ball(space, space.origin, 0.3)
        return dpm.private_mean(X, ball, dpm.GDP(0.5), units=dpm.EACH_RECORD, budget=budget)

    with pytest.raises(dpm.InvalidArgumentError, match=f"contradicts itself.*{'|'.join(found)}.*check_space"):
        ask(space, X)
    whole = dpm.Product([space, dpm.Euclidean(1)])
    with pytest.raises(dpm.InvalidArgumentError, match="contradicts itself"):
        ask(whole, whole.join((X, np.zeros((50, 1)))))
    assert not budget.history


@pytest.mark.security
def test_registering_a_wrong_space_is_refused_and_leaves_no_trace():
    with pytest.raises(dpm.InvalidArgumentError, match=r"radial facts are true: rank_one closes at 6\.28"):
        SPACES.register("WrongRadial", WrongRadial)
    assert "WrongRadial" not in SPACES
    SPACES.register("Rotations", Rotations)
    assert "Rotations" in SPACES


def test_the_text_of_a_registered_space_says_all_of_it():
    SPACES.register("HalfOfItsText", HalfOfItsText)
    assert "leaves something out" in broken(HalfOfItsText(2, curvature=4.0))["text and back"]
    assert broken(HalfOfItsText(2)) == {}


def test_each_space_is_looked_at_once_and_the_librarys_own_never(monkeypatch):
    looked_at = []
    monkeypatch.setattr(laws, "what_is_wrong", lambda law, space: looked_at.append(repr(space)))
    for _ in range(3):
        dpm.Ball(dpm.Sphere(2), [1.0, 0.0, 0.0], 0.5)
        dpm.Ball(Concentrations(2, 3), np.ones((2, 3)), 0.5)
        dpm.Ball(Concentrations(1, 3), np.ones((1, 3)), 0.5)
    assert looked_at == ["Concentrations(2, 3)"] * len(laws.LAWS) + ["Concentrations(1, 3)"] * len(laws.LAWS)


def test_a_large_space_is_spared_the_matrices_and_its_example_is_not(monkeypatch):
    looked_at = []
    monkeypatch.setattr(laws, "what_is_wrong", lambda law, space: looked_at.append((law, repr(space))))
    dpm.Ball(Concentrations(20, 20), np.ones((20, 20)), 0.5)
    assert looked_at[0] == (laws.curvature_is_one_story, "Concentrations(2, 3)")
    assert {space for _, space in looked_at[1:]} == {"Concentrations(20, 20)"}
    assert len(looked_at) == len(laws.LAWS)


def test_what_a_space_raises_is_wrong_with_it():
    class Failing(Rotations):
        def hessian_spectrum(self, c):
            raise NotImplementedError("later")

    assert broken(Failing())["curvature is one story"] == "NotImplementedError: later"
    with pytest.raises(dpm.InvalidArgumentError, match="space must be a space"):
        check_space(Rotations)


# -------------------------------------------------------------------- rounding against a reference


def true_rotations(p, q):
    """Return angle and axis of the rotation between two quaternions, to 40 digits."""
    with mp.workdps(40):
        a, b = ([mp.mpf(float(x)) for x in one] for one in (p, q))
        a, b = ([x / mp.sqrt(mp.fsum(y * y for y in one)) for x in one] for one in (a, b))
        a = [a[0], -a[1], -a[2], -a[3]]
        (w, x, y, z), (e, f, g, h) = a, b
        between = [w * e - x * f - y * g - z * h, w * f + x * e + y * h - z * g,
                   w * g - x * h + y * e + z * f, w * h + x * g - y * f + z * e]  # fmt: skip
        if between[0] < 0:
            between = [-x for x in between]
        size = mp.sqrt(mp.fsum(x * x for x in between[1:]))
        angle = 2 * mp.atan2(size, between[0])
        return angle, [x / size * angle for x in between[1:]]


class Slight(Rotations):
    """Bounds of half a rounding, which no relation between computed numbers shows."""

    def dist_error(self, center, radius):
        return 0.5 * 2.0**-52

    def log_error(self, radius):
        return 0.5 * 2.0**-52


def test_a_reference_finds_bounds_that_are_a_little_too_small():
    assert broken(Rotations(), true_rotations) == {}
    assert "from the reference" in broken(Slight(), true_rotations)["rounding bounds hold"]
    assert "rounding bounds hold" in broken(NoRounding())


# -------------------------------------------------------------------- the guarantee itself


def test_draws_of_a_sampler_of_its_own_are_looked_at():
    assert "another law" in broken(TooLittleNoise(2))["exact draws have the law"]


def test_the_guarantee_itself_is_measured():
    """A sphere that ends where rotations do and is curved four times as much: its profile promises what is not kept."""

    class Promising(Rotations):
        rank_one, gaussian_proof = RankOne(1.0, 1.0, 2, 0, "sphere"), "normal-homogeneous"

    found = broken(Promising())
    assert "mu = 0.5 is promised and a test reaches 0.6" in found["the gaussian guarantee is kept"]
    assert "other triangles" in found["radial facts are true"]
