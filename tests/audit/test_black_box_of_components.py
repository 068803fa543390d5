"""Real releases of components on neighbours, as an attacker sees them; with half the noise they are caught.

Neighbours differ in one unit at the edge, along one of two axes at right angles, which is nearly the worst for signs;
the others lie at both ends of a third axis, so that noise on the mean does not turn them. Every certificate is wrong
with probability 0.001, and all are seeded. What draws tell is computed exactly in tests/stats/test_components.py.
"""

import numpy as np
import pytest

import dpmanifold as dpm
from laws import black_box
from laws.sabotage import with_less_noise

MU, N = 2.0, 40
SPACE = dpm.Ball(dpm.Euclidean(3), [1.0, 0.0, -1.0], 2.0)
TENSORS = dpm.Ball(dpm.SPD(2, metric="riemann"), np.diag([2.0, 0.5]), 1.0)


def neighbours(ball):
    c = np.zeros((2, N, 3))
    c[:, :-1, 2] = np.where(np.arange(N - 1) % 2, 1.0, -1.0)
    c[0, -1, 0] = c[1, -1, 1] = 1.0
    return ball.space.project(ball.space.exp_coords(ball.center, (1 - 1e-9) * ball.radius * c))


def all_that_leaves(found):
    """The numbers of the mean, of the directions and of the variances along them."""
    ball = found.ball
    mean = ball.space.log_coords(ball.center, found.center)
    return np.concatenate([mean, found.release.steps[0].value, found.release.value])


def certificate(ball, runs):
    rng = np.random.default_rng(0)

    def asked(X):
        return dpm.private_pga(X, ball, dpm.GDP(MU), units=dpm.EACH_RECORD, confirm=True, rng=rng)

    return black_box.shown(asked, *neighbours(ball), runs, all_that_leaves)


@pytest.mark.slow
@pytest.mark.parametrize(("ball", "runs"), [(SPACE, 500), (TENSORS, 250)], ids=lambda x: repr(getattr(x, "space", x)))
def test_more_releases_catch_half_the_noise(ball, runs, monkeypatch):
    found = certificate(ball, runs)
    print(f"{ball.space!r}: mu certified {found.lower:.2f}, seen {found.estimate:.2f} of {MU}")
    assert 0.25 * MU < found.lower <= MU
    with_less_noise(monkeypatch, 0.5 if runs == 500 else 0.4)
    assert certificate(ball, runs).lower > MU
