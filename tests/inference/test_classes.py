"""What is made of class moments: means, a covariance freed of noise, scores that say what they are worth."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

import dpmanifold as dpm
from dpmanifold.inference.hotelling import denoised, edge, shifted
from dpmanifold.inference.linear_discriminant import shrunken_means, slope
from dpmanifold.linalg import from_vecd

EACH = {"units": dpm.EACH_RECORD}
BALL = dpm.Ball(dpm.Euclidean(4), np.zeros(4), 8.0, source="by design")
MEANS = np.array([[0.0, 0.0, 0.0, 0.0], [3.0, 0.0, 0.0, 0.0], [0.0, 2.5, 0.0, 0.0]])
SPREAD = np.array([1.0, 1.0, 2.0, 0.2])


def people(n=3000, seed=0, shares=(0.5, 0.3, 0.2)):
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=shares)
    return rng.normal(MEANS[y], SPREAD), y


def found(privacy=None, ball=BALL, **options):
    X, y = people()
    return dpm.private_lda(X, y, ball, privacy or dpm.GDP(1.0), classes=[0, 1, 2], **{**EACH, **options})


# -------------------------------------------------------------------- eigenvalues


def noise(d, size, rng):
    return from_vecd(size * rng.standard_normal(d * (d + 1) // 2))


def test_the_edge_is_the_largest_eigenvalue_of_noise():
    """Averages over 20 draws at d = 60, within 5 % of the limit for large d; seeded."""
    rng = np.random.default_rng(0)
    largest = np.mean([np.linalg.eigvalsh(noise(60, 0.3, rng))[-1] for _ in range(20)])
    assert largest == pytest.approx(edge(60, 0.3), rel=0.06)


def test_moving_eigenvalues_back_brings_a_noisy_matrix_nearer():
    """Mean squared error over 30 draws, d = 30: at most three quarters; moved the wrong way it is larger. Seeded."""
    rng, truth = np.random.default_rng(1), np.diag(np.geomspace(0.01, 3.0, 30))
    errors = {"released": 0.0, "denoised": 0.0, "wrong": 0.0}
    for _ in range(30):
        released = truth + noise(30, 0.08, rng)
        values, vectors = np.linalg.eigh(released)
        pushed = values - (shifted(values, 0.08) - values)
        wrong = (vectors * pushed) @ vectors.T
        for name, one in zip(errors, (released, denoised(released, 0.08), wrong), strict=True):
            errors[name] += float(((one - truth) ** 2).sum()) / 30
    assert errors["denoised"] < 0.75 * errors["released"] < errors["wrong"]


@pytest.mark.parametrize("matrix", [np.zeros((3, 3)), -np.eye(3), np.diag([1e300, 0.0, 0.0]), 1e-300 * np.eye(3)])
def test_what_comes_out_is_always_positive(matrix):
    for size in (1e-12, 1.0, 1e6):
        values = np.linalg.eigvalsh(denoised(matrix, size))
        assert np.isfinite(values).all()
        assert values[-1] > 0
        assert values[0] > -1e-12 * values[-1]


def test_without_noise_nothing_changes():
    matrix = np.diag([1.0, 2.0, 3.0])
    np.testing.assert_allclose(denoised(matrix, 1e-9), matrix, atol=1e-8)


# -------------------------------------------------------------------- means


def test_means_are_moved_most_where_classes_are_narrow_and_noise_is_large():
    rng = np.random.default_rng(2)
    covariance, priors = np.diag([1.0, 1e-4]), np.array([0.5, 0.5])
    truth = np.array([[-1.0, 0.0], [1.0, 0.0]])
    noisy = truth + 0.2 * rng.standard_normal((2, 2))
    quiet, loud = (shrunken_means(noisy, covariance, priors, np.full(2, size)) for size in (1e-6, 0.2))
    np.testing.assert_allclose(quiet, noisy, atol=1e-6)
    assert np.abs(loud[:, 1] - priors @ noisy[:, 1]).max() < 0.02
    assert np.abs(loud[:, 0] - noisy[:, 0]).max() < 0.25
    middle = priors @ noisy
    assert (np.abs(loud - middle) <= np.abs(noisy - middle) + 1e-12).all()


def test_a_class_that_noise_hides_is_moved_and_the_others_stay():
    means, priors = np.array([[0.0, 0.0], [2.0, 0.0], [40.0, 50.0]]), np.array([0.49, 0.49, 0.02])
    moved = shrunken_means(means, np.eye(2), priors, np.array([0.01, 0.01, 100.0]))
    np.testing.assert_allclose(moved[:2], means[:2], atol=0.01)
    assert np.linalg.norm(moved[2]) < 10


# -------------------------------------------------------------------- scores


def test_with_hardly_any_noise_it_is_the_usual_discriminant():
    X, y = people()
    wide = dpm.Ball(dpm.Euclidean(4), np.zeros(4), 20.0)
    model, plain = found(dpm.GDP(1e5), wide), LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    np.testing.assert_allclose(model.priors, plain.priors_, atol=1e-4)
    np.testing.assert_allclose(model.mean_coordinates, plain.means_, atol=1e-3)
    np.testing.assert_allclose(model.covariance, plain.covariance_, atol=5e-3)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=5e-3)
    assert model.slope == pytest.approx(1.0, abs=1e-3)
    assert (model.predict(X) == plain.predict(X)).mean() > 0.999


def test_probabilities_are_worth_what_they_say():
    """In 45 dimensions with noise as large as the spread; 3 seeded draws. Without the slope they are too sure."""
    rng, d = np.random.default_rng(3), 45
    ball, spread = dpm.Ball(dpm.Euclidean(d), np.zeros(d), 4.0), np.geomspace(1.0, 0.02, d)
    means = np.array([-0.2, 0.2])[:, None] * spread
    sure, right, bare = [], [], []
    for seed in range(3):
        y, y_new = rng.integers(2, size=1500), rng.integers(2, size=2000)
        X, X_new = (rng.normal(means[labels], spread) for labels in (y, y_new))
        model = dpm.private_lda(X, y, ball, dpm.GDP(1.0), classes=[0, 1], rng=seed, **EACH)
        sure.append(model.predict_proba(X_new).max(axis=1).mean())
        right.append(model.score(X_new, y_new))
        scores = (model.decision_function(X_new) - np.log(model.priors)) / model.slope
        bare.append((1 / (1 + np.exp(-np.abs(scores[:, 1] - scores[:, 0])))).mean())
    assert 0.7 < np.mean(right) < 0.99
    assert np.mean(sure) == pytest.approx(np.mean(right), abs=0.07)
    assert np.mean(bare) > np.mean(sure) + 0.01


def test_the_slope_is_always_the_same_and_1_without_noise():
    means, priors = np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([0.5, 0.5])
    found = [slope(means, np.eye(2), priors, np.full(2, size), size) for size in (1e-3, 0.2, 0.2)]
    assert found[1] == found[2]
    assert 1 >= found[0] > 0.9999 > found[1] > 0.9
    assert slope(np.zeros((2, 2)), np.eye(2), priors, np.ones(2), 1.0) == 1e-3


def test_axes_whiten_and_order():
    model = found(dpm.GDP(20.0))
    axes = model.axes
    assert axes.shape == (4, 2)
    np.testing.assert_allclose(axes.T @ model.covariance @ axes, np.eye(2), atol=1e-9)
    between = model.priors @ ((model.shrunken_means - model.priors @ model.shrunken_means) @ axes) ** 2
    assert between[0] >= between[1]
    np.testing.assert_allclose(model.separation[0, 1], 3.0, atol=0.3)


def test_known_priors_take_the_place_of_released_ones():
    model, (X, _) = found(), people()
    ours = model.decision_function(X, priors=[1.0, 1.0, 2.0])
    np.testing.assert_allclose(
        ours - np.log([0.25, 0.25, 0.5]), model.decision_function(X) - np.log(model.priors), atol=1e-9
    )
    for wrong in ([1.0, 1.0], [1.0, 0.0, 1.0], [1.0, np.nan, 1.0]):
        with pytest.raises(dpm.InvalidArgumentError, match="priors must be 3 numbers"):
            model.predict(X, priors=wrong)
    with pytest.raises(dpm.InvalidArgumentError, match="labels must have shape"):
        model.score(X, [0, 1])


def test_records_outside_the_ball_are_clipped_as_units_were():
    model = found()
    far = np.array([[1e6, 0.0, 0.0, 0.0], [8.0, 0.0, 0.0, 0.0]])
    np.testing.assert_allclose(*model.decision_function(far))
    with pytest.raises(dpm.InvalidDataError):
        model.predict([[np.nan, 0.0, 0.0, 0.0]])


def test_names_of_any_kind_come_back_as_they_are():
    X, y = people()
    named = [["a", 1, 0.5][number] for number in y]
    labels = np.empty(len(named), dtype=object)
    labels[:] = named
    model = dpm.private_lda(X, labels, BALL, dpm.GDP(5.0), classes=["a", 1, 0.5], **EACH)
    assert set(model.predict(X).tolist()) == {"a", 1, 0.5}
    again = dpm.LinearDiscriminant.from_dict(model.to_dict())
    assert again.classes == ("a", 1, 0.5)


def test_notes_say_where_a_class_may_be_empty_and_where_nothing_is_told():
    X, y = people()
    few = dpm.private_lda(X[y < 2], y[y < 2], BALL, dpm.GDP(1.0), classes=[0, 1, 2], rng=0, **EACH)
    assert any("may be without units" in note for note in few.notes())
    assert not any("may be without units" in note for note in found().notes())
    same = dpm.private_lda(X, y[::-1], BALL, dpm.GDP(1.0), classes=[0, 1, 2], rng=0, **EACH)
    assert any("hardly tells" in note for note in same.notes())
    record = found().answers()
    assert {"priors", "mean_coordinates", "mean_noise", "units_by_class", "count_noise"} <= record.keys()
    assert found().variance_shares.allowance == pytest.approx(0.0)
