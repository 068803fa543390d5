"""Real releases of private calls on neighbours, as an attacker sees them; with too little noise they are caught.

What `test_replay.py` computes from what was hidden, this sees from what left. Every certificate is wrong with
probability 0.001, and all are seeded.
"""

import numpy as np
import pytest

import dpmanifold as dpm
from laws import black_box
from laws.sabotage import with_less_noise

pytestmark = pytest.mark.usefixtures("solved_once")

MU, N, MANY = 2.0, 10, 200  # a search for a radius is skipped where there are few
SHAPE = np.diag([2e-2, 2e-3, 2e-4])
TENSORS = dpm.Ball(dpm.SPD(2), np.diag([2.0, 0.5]), 1.0)
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.75)
SEVERAL = dpm.Product([dpm.SPD(2), dpm.Euclidean(1)], weights=[0.5, 2.0])
SEVERAL = dpm.Ball(SEVERAL, SEVERAL.origin, 1.5)


def neighbours(ball, n, filled):
    """Most lie on two edges if the ball is to be filled, else at the centre; one is at either end of a diameter."""
    c = np.zeros((2, n, ball.space.dim))
    if filled:
        c[:, :-1, 1] = np.where(np.arange(n - 1) % 2, 1.0, -1.0)
    c[:, -1, 0] = 1.0, -1.0
    return ball.space.project(ball.space.exp_coords(ball.center, (1 - 1e-9) * ball.radius * c))


def point(release):
    return release.ball.space.log_coords(release.ball.center, release.value)


def numbers(release):
    return np.asarray(release.value)


def in_public_ball(ball):
    """What is released on another ball each time, in coordinates of the public one."""
    return lambda release: ball.space.log_coords(ball.center, release.value)


def asked(private, ball, **options):
    rng = np.random.default_rng(0)
    how = {"units": dpm.EACH_RECORD, "confirm": True, "rng": rng}
    return lambda X: private(X, ball, dpm.GDP(MU), **how, **options)


RAW = {"project": False, "shrinkage": None}
STANDS_IN = {"refine": True, "mechanism": "tangent-mean-gaussian", "estimand": "frechet"}
# What is called, on which ball, what an attacker looks at, and how many releases: a mean on a curved space is solved.
CALLS = {
    "tangent mean": (dpm.private_mean, CAP, {"estimand": "tangent", **RAW}, point, 400),
    "mean on the sphere": (dpm.private_mean, CAP, RAW, point, 220),
    "tangent mean for a Fréchet mean": (dpm.private_mean, CAP, {**STANDS_IN, **RAW}, point, 220),
    "mean with a public shape": (dpm.private_mean, TENSORS, {"noise_shape": SHAPE, "project": False}, point, 220),
    "mean with a private shape": (dpm.private_mean, TENSORS, {"noise_shape": "private", "project": False}, point, 220),
    "mean of a product": (dpm.private_mean, SEVERAL, RAW, point, 400),
    "joint moments": (dpm.private_statistic, TENSORS, {"statistic": "joint moments"}, numbers, 400),
    "median": (dpm.private_median, CAP, {"refine": False}, in_public_ball(CAP), 400),
}


def certificate(name, runs):
    private, ball, options, looked_at, most = CALLS[name]
    n = MANY if options.keys() & {"refine", "noise_shape"} else N
    # On spheres means are then farthest apart, and a smaller ball would have another radius in every release.
    pair = neighbours(ball, n, filled="refine" in options or not ball.space.is_hadamard)
    return black_box.shown(asked(private, ball, **options), *pair, min(runs, most), looked_at)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_calls_keep_their_promises_and_are_caught_with_too_little_noise(name, monkeypatch):
    found = certificate(name, 400)
    print(f"{name}: mu certified {found.lower:.2f}, seen {found.estimate:.2f} of {MU}")
    assert 0.25 * MU < found.lower <= MU
    with_less_noise(monkeypatch, 0.3)
    assert certificate(name, 400).lower > MU
