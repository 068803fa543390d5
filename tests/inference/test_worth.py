"""Regions, intervals, tests and joint moments that say no more than the ball did say so, everywhere."""

import json

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import InvalidDataError
from dpmanifold.inference import VarianceInterval

EACH = {"units": dpm.EACH_RECORD, "rng": 0}
BALL = dpm.Ball(dpm.SPD(2), np.eye(2), 1.0)
FLAT = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 1.0)


def flat(n=40):
    return 0.1 * np.random.default_rng(0).standard_normal((n, 3))


def curved(n=40):
    return dpm.SPD(2).exp_coords(np.eye(2), flat(n))


def asked(what, mu, n=40):
    privacy = dpm.GDP(mu)
    if what == "variance-interval":
        return dpm.private_variance_interval(curved(n), BALL, privacy, **EACH)
    if what == "curved region":
        return dpm.private_region(curved(n), BALL, privacy, **EACH)
    if what == "region":
        return dpm.private_region(flat(n), FLAT, privacy, **EACH)
    if what == "region in 20 dimensions":
        return dpm.private_region(np.zeros((n, 20)), dpm.Ball(dpm.Euclidean(20), np.zeros(20), 1.0), privacy, **EACH)
    if what == "two-sample-test":
        return dpm.private_two_sample_test(flat(n), flat(n), FLAT, privacy, units=dpm.EACH_RECORD, rng=1)
    return dpm.private_statistic(flat(n), FLAT, privacy, statistic="joint moments", **EACH)


@pytest.mark.parametrize(
    ("what", "mu", "said"),
    [
        ("variance-interval", 0.2, "it says nothing"),
        ("curved region", 0.02, "ball"),
        ("region", 0.02, "ball"),
        ("region", 0.13, "the region is as large as the ball"),
        ("region in 20 dimensions", 0.3, "half the ball or more"),
        ("two-sample-test", 0.05, "this says nothing"),
        ("two-sample-test", 0.3, "half the ball's diameter"),
        ("joint moments", 0.13, "half the ball or more"),
    ],
)
def test_what_says_no_more_than_the_ball_is_called_so(what, mu, said):
    little, much = asked(what, mu), asked(what, 3.0, n=2000)
    assert any(said in note for note in little.notes())
    assert little.notes() == little.to_dict()["answers"]["notes"]
    assert said in repr(little).replace("\n", " ")
    assert not any(said in note for note in much.notes())


@pytest.mark.parametrize("notes", [[], ["all is well"]])
def test_a_file_with_other_notes_does_not_load(notes):
    record = json.loads(json.dumps(asked("variance-interval", 0.2).to_dict()))
    record["answers"]["notes"] = notes
    with pytest.raises(InvalidDataError, match="notes"):
        VarianceInterval.from_dict(record)


def test_the_corrected_distance_of_a_test_is_without_noise_on_average():
    """60 seeded tests of means 0.5 apart; a mean more than 4 standard errors off would be a false alarm of 6e-5."""
    ball = dpm.Ball(dpm.Euclidean(10), np.zeros(10), 1.5)
    drawn, corrected = [], []
    for seed in range(60):
        X, Y = 0.2 * np.random.default_rng(seed).standard_normal((2, 40, 10))
        Y[:, 0] += 0.5
        found = dpm.private_two_sample_test(X, Y, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, rng=seed)
        drawn.append(found.distance**2)
        corrected.append(found._squared_distances[0] - found._squared_distances[1])
    assert abs(np.mean(corrected) - 0.25) < 4 * np.std(corrected) / np.sqrt(60)
    assert np.mean(drawn) - 0.25 > 4 * np.std(drawn) / np.sqrt(60)  # as it was stated before: it must be seen to be off


def test_a_test_says_that_its_distance_is_mostly_noise():
    noisy, clear = asked("two-sample-test", 1.0), asked("two-sample-test", 30.0, n=2000)
    assert any("mostly noise" in note for note in noisy.notes())
    assert noisy.bias_corrected_distance < noisy.distance
    apart = dpm.private_two_sample_test(flat(), flat() + np.array([0.4, 0.0, 0.0]), FLAT, dpm.GDP(30.0), **EACH)
    assert not any("mostly noise" in note for note in apart.notes())
    assert apart.bias_corrected_distance == pytest.approx(0.4, abs=0.05)
    assert f"about {clear.bias_corrected_distance:.4g}" in repr(clear)


def test_a_region_that_is_mostly_allowance_names_the_tangent_mean():
    cap = dpm.Ball(dpm.Sphere(5), dpm.Sphere(5).origin, 0.2)
    X = dpm.Sphere(5).exp_coords(cap.center, 0.03 * np.random.default_rng(0).standard_normal((40, 5)))
    usual = dpm.private_region(X, cap, dpm.GDP(2.0), **EACH)
    tangent = dpm.private_region(X, cap, dpm.GDP(2.0), estimand="tangent", **EACH)
    two_draws = dpm.ConfidenceRegion(dpm.private_statistic(X, cap, dpm.GDP(2.0), statistic="second moment", **EACH))
    assert two_draws.variance_shares.allowance > 0.5
    assert any('estimand="tangent"' in note for note in two_draws.notes())
    assert tangent.effective_radius < usual.effective_radius < two_draws.effective_radius
    for one_draw in (usual, tangent):  # of the first the distance is next to nothing
        assert not any('estimand="tangent"' in note for note in one_draw.notes())


def test_a_region_that_is_a_quarter_distance_names_the_tangent_mean():
    cap = dpm.Ball(dpm.Sphere(5), dpm.Sphere(5).origin, 0.75)
    X = dpm.Sphere(5).exp_coords(cap.center, 0.1 * np.random.default_rng(0).standard_normal((20, 5)))
    region = dpm.private_region(X, cap, dpm.GDP(1.0), **EACH)
    tangent = dpm.private_region(X, cap, dpm.GDP(1.0), estimand="tangent", **EACH)
    assert region.estimand == "frechet"
    assert region.gap is not None
    assert tangent.effective_radius**2 < 0.75 * region.effective_radius**2
    assert any("needs none" in note for note in region.notes())
    assert "counted as allowance" in repr(region).replace("\n", " ")
    assert not any("needs none" in note for note in tangent.notes())
