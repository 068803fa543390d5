"""The true error of a shaped mean, for data that may be shown."""

import numpy as np
import pytest

import dpmanifold as dpm

BALL = dpm.Ball(dpm.SPD(2), np.diag([2.0, 0.5]), 1.0)
RNG = np.random.default_rng(0)
X = BALL.space.exp_coords(BALL.center, np.array([0.2, 0.05, 0.02]) * RNG.standard_normal((600, 3)))


@pytest.mark.parametrize("shape", [np.diag([4e-2, 2e-3, 4e-4]), "private"], ids=["public", "private"])
def test_error_is_noise_and_clipping(shape):
    release = dpm.private_mean(X, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, noise_shape=shape, rng=1)
    found = dpm.compare(release, X, units=dpm.EACH_RECORD, public=True)
    truth = dpm.frechet.mean(X, BALL.space).value
    assert release.statistic == "shaped mean"
    assert found.error == pytest.approx(float(BALL.space.dist(truth, release.value)), rel=1e-6)
    assert found.error <= found.noise + found.clipping + 1e-12
    assert found.noise < 5 * release.noise_error()
    assert 0 <= found.clipped < 0.5


def test_units_that_were_cut_in_the_norm_count():
    far = X.copy()
    far[:6] = BALL.space.exp_coords(BALL.center, np.array([0.0, 0.0, 0.9]))  # where there is hardly any spread
    shape = np.diag([4e-2, 2e-3, 4e-4])
    release = dpm.private_mean(far, BALL, dpm.GDP(1.0), units=dpm.EACH_RECORD, noise_shape=shape, rng=1)
    found = dpm.compare(release, far, units=dpm.EACH_RECORD, public=True)
    assert 6 / 600 <= found.clipped < 0.2
    assert found.clipping > 0.003
