"""Distances, logarithms, exponentials and means of SPD matrices against pyRiemann.

Agreement means |ours - theirs| <= 1e-9 (1 + |theirs|) for every one of the 200 pairs, in the Frobenius norm: an
absolute bound for small values and a relative one for large ones. pyRiemann puts the base point last.

Run with `pytest -m reference tests/reference` in an environment of its own (requirements.txt).
"""

from functools import partial

import numpy as np
import pytest

from dpmanifold import frechet
from dpmanifold.manifolds import SPD

pytestmark = pytest.mark.reference

# Older versions, with which the other tests run, keep these functions elsewhere.
pytest.importorskip("pyriemann", minversion="0.12")
from pyriemann.geometry.distance import distance_logeuclid, distance_riemann  # noqa: E402
from pyriemann.geometry.mean import mean_logeuclid, mean_riemann  # noqa: E402
from pyriemann.geometry.tangentspace import (  # noqa: E402
    exp_map_logeuclid,
    exp_map_riemann,
    log_map_logeuclid,
    log_map_riemann,
)

TOLERANCE = 1e-9
PAIRS = 200
SIZES = (2, 3, 9)

DISTANCE = {"riemann": distance_riemann, "logeuclid": distance_logeuclid}
# By default pyRiemann's affine-invariant maps leave tangent vectors whitened; C12 and Cm12 ask for the maps proper.
LOG_MAP = {"riemann": partial(log_map_riemann, C12=True), "logeuclid": log_map_logeuclid}
EXP_MAP = {"riemann": partial(exp_map_riemann, Cm12=True), "logeuclid": exp_map_logeuclid}

each_space = pytest.mark.parametrize(
    "space", [SPD(k, metric=metric) for metric in ("riemann", "logeuclid") for k in SIZES], ids=repr
)


def gap(ours: np.ndarray, theirs: np.ndarray, axes: int) -> float:
    """Return the largest |ours - theirs| / (1 + |theirs|) over a batch of numbers (axes=0) or matrices (2)."""
    assert np.shape(ours) == np.shape(theirs)
    batch = np.shape(ours)[: np.ndim(ours) - axes]
    ours, theirs = (np.reshape(x, (*batch, -1)) for x in (ours, theirs))
    norm = np.linalg.norm
    return float(np.max(norm(ours - theirs, axis=-1) / (1 + norm(theirs, axis=-1))))


def pairs(space: SPD, size: int = PAIRS) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(20240609)
    return space.random_point(size, rng=rng), space.random_point(size, rng=rng)


def their_log(space: SPD, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.stack([LOG_MAP[space.metric](b, a) for a, b in zip(p, q, strict=True)])


def their_exp(space: SPD, p: np.ndarray, v: np.ndarray) -> np.ndarray:
    return np.stack([EXP_MAP[space.metric](b, a) for a, b in zip(p, v, strict=True)])


def their_mean(space: SPD, points: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    if space.metric == "logeuclid":
        return mean_logeuclid(points, sample_weight=weights)
    return mean_riemann(points, tol=1e-12, maxiter=1000, sample_weight=weights)


@each_space
def test_distances_agree(space):
    p, q = pairs(space)
    theirs = np.array([DISTANCE[space.metric](a, b) for a, b in zip(p, q, strict=True)])
    assert gap(space.dist(p, q), theirs, axes=0) < TOLERANCE


@each_space
def test_logs_agree(space):
    p, q = pairs(space)
    assert gap(space.log(p, q), their_log(space, p, q), axes=2) < TOLERANCE


@each_space
def test_exps_agree(space):
    p, q = pairs(space)
    v = space.log(p, q) / 2
    assert gap(space.exp(p, v), their_exp(space, p, v), axes=2) < TOLERANCE


@each_space
@pytest.mark.parametrize("weighted", [False, True])
def test_means_agree(space, weighted):
    points, _ = pairs(space)
    weights = np.arange(1.0, len(points) + 1) if weighted else None
    ours = frechet.mean(points, space, weights=weights, tol=1e-12).value
    assert gap(ours, their_mean(space, points, weights), axes=2) < TOLERANCE


# -------------------------------------------------------------------- wrong variants the comparison rejects


@each_space
def test_rejects_a_distance_off_by_a_hundred_millionth(space):
    p, q = pairs(space)
    theirs = np.array([DISTANCE[space.metric](a, b) for a, b in zip(p, q, strict=True)])
    assert gap(space.dist(p, q) * (1 + 1e-8), theirs, axes=0) > TOLERANCE


@each_space
def test_rejects_a_log_with_base_and_target_swapped(space):
    p, q = pairs(space)
    assert gap(space.log(q, p), their_log(space, p, q), axes=2) > TOLERANCE


@pytest.mark.parametrize("k", SIZES)
def test_rejects_the_other_metric(k):
    space, other = SPD(k, metric="riemann"), SPD(k, metric="logeuclid")
    points, _ = pairs(space)
    assert gap(frechet.mean(points, other).value, their_mean(space, points), axes=2) > TOLERANCE
