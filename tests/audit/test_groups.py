"""What private_k_sample_test tells about one unit of one group: exactly, draw by draw, and as an attacker sees it.

Labels are public, so that neighbours differ in the records of a unit, not in its group. The replay leaves nothing to
chance; certificates of the black box are wrong with probability 0.001, and seeded.
"""

import numpy as np
import pytest

import dpmanifold as dpm
from laws import black_box, replay
from laws.sabotage import with_less_noise

MU, N = 1.0, 12
PLANE = dpm.Ball(dpm.Euclidean(2), [3.0, -1.0], 2.0)
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.75)
MATRICES = dpm.Ball(dpm.SPD(2, metric="riemann"), np.diag([2.0, 0.5]), 1.0)


def neighbours(ball, n, place):
    """Yield data sets that differ in one unit, at either end of a diameter, or where second moments tell most."""
    d = ball.space.dim
    first, second = np.eye(d)[:2]
    for one, other in ((first, -first), (first, -0.25 * first + np.sqrt(15 / 16) * second)):
        # On spheres means are farthest apart if the others lie on two edges.
        for rest in (
            np.zeros((n, d)),
            np.tile(first, (n, 1)),
            np.where(np.arange(n) // 3 % 2, 1, -1)[:, None] * second,
        ):
            pair = np.stack([rest, rest])
            pair[:, place] = one, other
            yield ball.space.project(ball.space.exp_coords(ball.center, ball.radius * (1 - 1e-12) * pair))


def call(ball, mu, n=N, **options):
    labels = np.arange(n) % 3
    how = {"units": dpm.EACH_RECORD, "classes": [0, 1, 2], "confirm": True}
    return lambda X: dpm.private_k_sample_test(X, labels, ball, dpm.GDP(mu), **how, **options)


CALLS = {
    "flat": (PLANE, N, {}),
    "tangent means on the sphere": (CAP, N, {"estimand": "tangent"}),
    "means on the sphere": (CAP, N, {}),
    "means of matrices": (MATRICES, N, {}),
    "a smaller ball first": (PLANE, 600, {"refine": True}),
}
QUICK = ("flat", "tangent means on the sphere")


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CALLS]
)
def test_one_unit_tells_no_more_than_is_promised_in_all_groups_together(name, monkeypatch):
    ball, n, options = CALLS[name]
    asked = call(ball, MU, n, arithmetic="exact", rng=0, **options)

    def most():
        pairs = [pair for place in (0, n - 1) for pair in neighbours(ball, n, place)]
        return max(replay.mu_of(replay.told(asked, *pair, monkeypatch)) for pair in pairs)

    found = most()
    print(f"{name}: {found:.4f} of {MU}")
    assert 0.85 * MU < found <= MU * (1 + 1e-9)
    with_less_noise(monkeypatch, 0.8)
    assert most() > MU


def seen(result):
    """Look at the group that the unit is in."""
    return np.ravel(result.groups[1].value)


@pytest.mark.parametrize(
    ("runs", "share"),
    [pytest.param(100, 0.2, id="few runs, which see large faults"), pytest.param(400, 0.5, marks=pytest.mark.slow)],
)
def test_an_attacker_sees_no_more_and_too_little_noise_is_caught(runs, share, monkeypatch):
    asked = call(PLANE, 1.0, rng=np.random.default_rng(0))
    pair = next(neighbours(PLANE, N, 4))
    found = black_box.shown(asked, *pair, runs, seen)
    print(f"certified {found.lower:.2f}, seen {found.estimate:.2f} of 1")
    assert found.lower <= 1.0
    with_less_noise(monkeypatch, share)
    assert black_box.shown(asked, *pair, runs, seen).lower > 1.0
