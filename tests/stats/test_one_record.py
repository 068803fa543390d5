"""One record of another type must not change how the others are read."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, Ball, Euclidean, InvalidDataError

pytestmark = pytest.mark.security

BALL = Ball(Euclidean(2), [0.0, 0.0], 2.0)


@pytest.mark.parametrize("kind", [lambda rows: rows, lambda rows: np.array(rows, dtype=object), np.array])
@pytest.mark.parametrize("last", [["x", 1.0], [b"x", 1.0], [None, 1.0], [1 + 2j, 1.0]], ids=str)
def test_one_odd_record_leaves_the_others(last, kind):
    told = []
    X = kind([[1.0, 1.0]] * 99 + [last])
    if kind is np.array and isinstance(last[0], (str, bytes)):
        with pytest.raises(InvalidDataError, match="got one of text"):  # what the others were is not to be seen
            dpm.private_mean(X, BALL, GDP(100.0), units=EACH_RECORD, invalid="center")
        return
    release = dpm.private_mean(X, BALL, GDP(100.0), units=EACH_RECORD, invalid="center", curator=told.append, rng=0)
    assert told == [dpm.Notice(100, 0, 1)]
    np.testing.assert_allclose(release.value, [0.99, 0.99], atol=0.01)


@pytest.mark.parametrize("last", [[True, True], [True, 2]], ids=str)
def test_truth_values_are_numbers_whatever_stands_beside_them(last):
    X = np.array([[True, True]] * 99 + [last])
    release = dpm.private_mean(X, BALL, GDP(100.0), units=EACH_RECORD, invalid="center", rng=0)
    np.testing.assert_allclose(release.value, [1.0, 1.0], atol=0.02)


def test_the_refusal_tells_numbers_to_the_curator_alone():
    X = np.array([[9.0, 0.0]] * 7 + [[0.0, 0.0]] * 3)
    with pytest.raises(InvalidDataError) as silent:
        dpm.private_mean(X, BALL, GDP(1.0), units=EACH_RECORD)
    assert not any(letter.isdigit() for letter in str(silent.value))
    told = []
    with pytest.raises(InvalidDataError, match="7 of 10 records"):
        dpm.private_mean(X, BALL, GDP(1.0), units=EACH_RECORD, curator=told.append)
    assert told == [dpm.Notice(10, 7, 0)]


def test_a_clipped_share_counts_against_the_group_it_is_in():
    """A ball found from a large and a small group: whoever is outside may all be in the small one."""
    rng = np.random.default_rng(0)
    X, Y = 0.05 * rng.standard_normal((8000, 6)), 0.05 * rng.standard_normal((600, 6))
    Y[:200, 0] = 9.0
    ball = Ball(Euclidean(6), np.zeros(6), 10.0)
    for seed in range(5):
        test = dpm.private_two_sample_test(X, Y, ball, GDP(1.0), units=EACH_RECORD, refine=True, rng=seed)
        mean = test.means[1].release
        assert mean.clipping is not None
        moved = np.linalg.norm(Y.mean(axis=0) - mean.ball.clip(Y).mean(axis=0))
        assert mean.clipping.bound >= moved
        as_if_pooled = mean.clipping.bound * 600 / 8600
        assert as_if_pooled < moved  # the wrong variant: the share of all units, not of this group


def test_a_refined_fit_to_public_data_verifies():
    pytest.importorskip("sklearn")
    from dpmanifold.estimators import PrivateFrechetMean

    X = 0.05 * np.random.default_rng(0).standard_normal((2000, 2))
    model = PrivateFrechetMean(BALL, GDP(1.0), refine=True, units="each-record", public_data=True).fit(X)
    assert model.release_.steps
    assert not model.release_.private
    assert dpm.verify(model.release_).ok, dpm.verify(model.release_)
