"""Connectivity matrices come back as nilearn made them; what is no point of SPD(k) is refused, or mended by itself."""

import numpy as np
import pytest
from nilearn.connectome import ConnectivityMeasure, sym_matrix_to_vec, vec_to_sym_matrix
from sklearn.covariance import EmpiricalCovariance

from dpmanifold import SPD, InvalidArgumentError, InvalidDataError
from dpmanifold.data import correlation_ball, from_connectivity

pytestmark = pytest.mark.security

RNG = np.random.default_rng(2)
REGIONS = 7
SERIES = [RNG.standard_normal((90, REGIONS)) @ RNG.standard_normal((REGIONS, REGIONS)) for _ in range(9)]


def measured(kind, series=SERIES, **options):
    return ConnectivityMeasure(kind=kind, standardize="zscore_sample", **options).fit_transform(series)


@pytest.mark.parametrize("kind", ["correlation", "covariance", "precision"])
def test_matrices_and_vectors_of_nilearn_are_the_same(kind):
    matrices = measured(kind)
    found = from_connectivity(matrices, kind=kind)
    np.testing.assert_allclose(found, matrices, rtol=0, atol=1e-14 * np.abs(matrices).max())
    assert SPD(REGIONS).check(found) is None
    vectors = measured(kind, vectorize=True)
    expected = vec_to_sym_matrix(vectors)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(from_connectivity(vectors, kind=kind), expected, rtol=0, atol=1e-15 * scale)
    np.testing.assert_allclose(from_connectivity(vectors, kind=kind), matrices, rtol=0, atol=1e-14 * scale)


def test_a_discarded_diagonal_is_ones():
    vectors = measured("correlation", vectorize=True, discard_diagonal=True)
    diagonal = np.full((len(vectors), REGIONS), 1 / np.sqrt(2))
    found = from_connectivity(vectors, discard_diagonal=True)
    np.testing.assert_allclose(found, vec_to_sym_matrix(vectors, diagonal), rtol=0, atol=1e-15)
    np.testing.assert_array_equal(sym_matrix_to_vec(found, discard_diagonal=True), vectors)


def test_a_matrix_does_not_depend_on_the_others():
    matrices = measured("covariance")
    for options in ({}, {"shrinkage": 0.2}, {"floor": 1.5}, {"shrinkage": 0.2, "floor": 3.0}):
        together = from_connectivity(matrices, kind="covariance", **options)
        alone = [from_connectivity(one[None], kind="covariance", **options)[0] for one in matrices]
        np.testing.assert_array_equal(together, alone)


def test_shrinkage_and_floor_by_their_formulas():
    covariances = measured("covariance")
    shrunk = from_connectivity(covariances, kind="covariance", shrinkage=0.3)
    for one, other in zip(covariances, shrunk, strict=True):
        np.testing.assert_allclose(other, 0.7 * one + 0.3 * np.trace(one) / REGIONS * np.eye(REGIONS), rtol=1e-13)
    floored = from_connectivity(covariances, kind="covariance", floor=2.0)
    for one, other in zip(covariances, floored, strict=True):
        values, vectors = np.linalg.eigh(one)
        expected = vectors @ np.diag(np.maximum(values, 2.0)) @ vectors.T
        np.testing.assert_allclose(other, expected, rtol=0, atol=1e-13 * values[-1])


def test_singular_matrices_are_refused_unless_mended():
    """Five volumes of seven regions, by the empirical estimator; and nilearn's own, which shrinks."""
    short = [x[:5] for x in SERIES]
    singular = measured("correlation", short, cov_estimator=EmpiricalCovariance())
    with pytest.raises(InvalidDataError, match=r"at index 0 \(and 8 more\) is not positive definite. Give shrinkage="):
        from_connectivity(singular)
    for options in ({"shrinkage": 0.05}, {"floor": 0.05}):
        mended = from_connectivity(singular, **options)
        assert SPD(REGIONS).check(mended) is None
        assert np.linalg.eigvalsh(mended).min() > 0.05 * (1 - 1e-12)
    assert SPD(REGIONS).check(from_connectivity(measured("correlation", short))) is None


def test_values_that_are_not_finite_stay_in_their_own_record():
    matrices = measured("correlation")
    broken = matrices.copy()
    broken[2, 1, 3] = broken[2, 3, 1] = np.nan
    broken[4] = np.nan
    found = from_connectivity(broken, shrinkage=0.1)
    others = [0, 1, 3, 5, 6, 7, 8]
    np.testing.assert_array_equal(found[others], from_connectivity(matrices, shrinkage=0.1)[others])
    assert np.isnan(found[[2, 4]]).any(axis=(1, 2)).all()


def test_single_precision_is_no_fault():
    matrices = measured("correlation")
    np.testing.assert_allclose(from_connectivity(matrices.astype(np.float32)), matrices, rtol=0, atol=1e-6)


@pytest.mark.parametrize("shrinkage", [0.01, 0.1, 0.9])
@pytest.mark.parametrize("k", [1, 2, 5, 16])
def test_the_ball_holds_every_correlation(k, shrinkage):
    """All ones, which is farthest one way, the identity, signs, and matrices of every rank between."""
    ball = correlation_ball(k, shrinkage)
    signs = np.outer(*[np.where(np.arange(k) % 2, 1.0, -1.0)] * 2)
    cases = [np.ones((k, k)), np.eye(k), signs]
    for rank in range(1, k + 1):
        loads = RNG.standard_normal((k, rank))
        loads /= np.linalg.norm(loads, axis=1, keepdims=True)
        half = np.kron(np.eye(rank), np.ones((k, k)))[:k, :k]
        cases += [loads @ loads.T, half]
    assert ball.contains(from_connectivity(cases, shrinkage=shrinkage)).all()


def test_the_ball_is_the_same_under_both_metrics_where_both_can_be():
    assert correlation_ball(5, 0.1, metric="riemann").radius == correlation_ball(5, 0.1).radius
    with pytest.raises(InvalidArgumentError, match=r'Raise the shrinkage, take fewer regions, or metric="logeuclid"'):
        correlation_ball(40, 0.01, metric="riemann")


def test_a_ball_that_is_smaller_by_a_fifth_would_not_do():
    """Groups of regions that are copies of one another go nearly to its edge."""
    for k, shrinkage in ((2, 0.1), (10, 0.1), (24, 0.05)):
        ball = correlation_ball(k, shrinkage)
        copies = np.array([np.kron(np.eye(k), np.ones((m, m)))[:k, :k] for m in range(1, k + 1)])
        farthest = ball.space.dist(ball.center, from_connectivity(copies, shrinkage=shrinkage)).max()
        assert 0.8 * ball.radius < farthest <= ball.radius


def test_what_cannot_be_used_is_refused():
    good = measured("correlation")
    skew = good.copy()
    skew[3, 0, 1] += 0.5
    for array, options, message in [
        (good, {"kind": "tangent"}, "mean of all recordings"),
        (good, {"kind": "partial correlation"}, "Give the precision"),
        (good, {"kind": "corr"}, "kind must be one of correlation, covariance, precision"),
        (good, {"kind": "covariance", "discard_diagonal": True}, "cannot be known"),
        (good, {"discard_diagonal": 1}, "discard_diagonal must be"),
        (good, {"shrinkage": 1.0}, "at least 0 and below 1"),
        (good, {"shrinkage": -0.1}, "shrinkage"),
        (good, {"floor": np.nan}, "floor must be"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            from_connectivity(array, **options)
    for array, options, message in [
        (skew, {}, "at index 3 is not symmetric"),
        (measured("covariance"), {}, r"at index 0 \(and 8 more\) has other numbers than 1"),
        (good[:, :5], {}, "square"),
        (good[0, 0], {}, r"array\[None\]"),
        (np.zeros((3, 4)), {}, "4 entries are no triangle"),
        (np.zeros((3, 4)), {"discard_diagonal": True}, "without a diagonal"),
        (1j * good, {}, "real"),
    ]:
        with pytest.raises(InvalidDataError, match=message):
            from_connectivity(array, **options)
    with pytest.raises(InvalidArgumentError, match="shrinkage"):
        correlation_ball(5, 0.0)
