"""What a card computes, compiled for the processor: threads alone ("lane") and teams of them ("team"), one lane each.

Every path of the CUDA kernels' mathematics is here, without a card; what only a card has (shuffles, atomic additions,
barriers) is tried in tests/linalg/test_cards.py, and under compute-sanitizer by `make sanitize-card`.
"""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from dpmanifold import linalg
from dpmanifold.data import covariance_descriptors
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.linalg.native import library, passes
from linalg.families import NAMES, relative_error, with_truth

SOURCES = Path(library.__file__).with_name("src")
COMPILER = shutil.which(os.environ.get("CXX", "c++"))
SIZES = (2, 3, 4, 5, 9, 11, 16, 17, 30, 33, 64)
LANE, TEAM = 3, 4

pytestmark = [pytest.mark.slow, pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")]


@pytest.fixture(scope="module")
def handle(tmp_path_factory):
    """A library with the levels of a card, compiled here; once for all processes of a run, since it takes a minute."""
    alone = "PYTEST_XDIST_WORKER" not in os.environ
    folder = tmp_path_factory.mktemp("card") if alone else tmp_path_factory.getbasetemp().parent
    place = folder / "libdpm_card.so"
    flags = ["-std=c++17", "-O1", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast", "-fPIC", "-shared"]
    sources = [SOURCES / f"{name}.cpp" for name in ("dispatch", "level_baseline", "level_lane", "level_team")]
    with (folder / "card.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not place.exists():
            half = place.with_suffix(".half")
            subprocess.run([COMPILER, *flags, "-pthread", "-DDPM_CARD_LEVELS", "-o", half, *sources], check=True)
            half.rename(place)
    found = library.load(place)
    assert found is not None
    assert found.levels == (0, LANE, TEAM)
    return found


@pytest.fixture(params=[LANE, TEAM], ids=["lane", "team"])
def level(request, handle, monkeypatch):
    """One of the two in use."""
    monkeypatch.setattr(library, "_LIBRARY", handle)
    token = library._chosen.set(request.param)
    yield request.param
    library._chosen.reset(token)


def baseline(call):
    """What the processor's own level makes of it."""
    token = library._chosen.set(0)
    try:
        return call()
    finally:
        library._chosen.reset(token)


def spd(n, k, seed=0):
    a = np.random.default_rng(seed).standard_normal((n, k, 2 * k))
    return linalg.symmetrize(a @ a.swapaxes(1, 2) / (2 * k) + 0.02 * np.eye(k))


@pytest.mark.parametrize("k", [4, 5, 9, 11])
@pytest.mark.parametrize("name", NAMES)
def test_functions_are_as_accurate_as_lapack(level, name, k):
    """At most three times LAPACK's error, or 1e-13, against 50 digits: as of every level."""
    for function, f in ((linalg.logm, mp.log), (linalg.sqrtm, mp.sqrt), (linalg.invsqrtm, lambda x: 1 / mp.sqrt(x))):
        x, truth = with_truth(name, k, 2, f, np.random.default_rng(7))
        least = 1.0 if function is linalg.logm else 0.0
        ours = max(relative_error(a, b, least) for a, b in zip(function(x), truth, strict=True))
        with linalg.backend("numpy"):
            lapack = max(relative_error(a, b, least) for a, b in zip(function(x), truth, strict=True))
        assert ours <= max(3 * lapack, 1e-13)


@pytest.mark.parametrize("k", SIZES)
def test_a_pass_is_that_of_the_processor(level, k):
    """Functions, norms, sums by group, clipping and whitening: within rounding; statuses and marks alike."""
    x = spd(70, k)
    x[5] *= 1e200
    factor = np.tril(np.random.default_rng(1).standard_normal((k, k))) / k + 2 * np.eye(k)
    group, rows = np.arange(70) % 3, np.arange(60)[::-1].copy()
    spoiled = x.copy()
    spoiled[7] *= -1
    spoiled[8, 0, 1] = np.nan
    spoiled[9, 1, 0] += 1.0

    def everything():
        size = k * (k + 1) // 2
        logs = passes.run(x, passes.LOG, matrices=True, coordinates=True, norms=True, condition=100.0)
        found = [logs.matrices, logs.coordinates, logs.norms, logs.status]
        found.append(passes.run(x, passes.LOG, norms=True, factor=factor, power=3).norms)
        for function in (passes.ROOT, passes.INVERSE_ROOT):
            roots = passes.run(x, function, matrices=True).matrices
            found.append(roots / np.abs(roots).max(axis=(1, 2))[:, None, None])
        found.append(passes.run(logs.matrices[:5] / 3, passes.EXP, matrices=True).matrices)
        found.append(passes.run(x[:5].copy(), passes.NONE, factor=factor, lower=False, matrices=True).matrices)
        for center in (None, np.eye(k) / 7):
            sums, moved = ExactSum(size, 5.0), np.zeros((70, size))
            outcome = passes.run(
                spoiled, passes.LOG, factor=None if center is not None else factor, center=center, radius=5.0,
                tolerance=1e-6, condition=50.0, sums=sums, moved=None if center is not None else moved,
            )  # fmt: skip
            found += [outcome.status, sums.total(), np.where((outcome.status == 0)[:, None], moved, 0.0)]
        found.append(passes.run(spoiled, passes.CHECK, radius=1e-6).status)
        sums = ExactSum(size, 50.0, 3)
        factors, powers = np.stack([factor, 2 * factor, factor / 2]), np.array([0, 1, 2])
        passes.run(
            linalg.pack_triangles(np.delete(x, 5, axis=0)), passes.LOG, factor=factors, powers=powers, radius=50.0,
            group=group[:69], rows=rows, sums=sums, condition=1e4,
        )  # fmt: skip
        return [*found, sums.total()]

    for ours, theirs in zip(everything(), baseline(everything), strict=True):
        if ours.dtype == np.uint8:
            np.testing.assert_array_equal(ours, theirs)
        else:
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10 * max(1.0, np.abs(theirs).max() / 1e3))


@pytest.mark.parametrize("k", [3, 9, 16, 30])
def test_a_matrix_gets_its_bits_alone(level, k):
    """In any batch the same."""
    x = spd(20, k)
    x[3, 0, 0] *= 1e7  # beyond the small tables, in a batch of others that are not
    every = linalg.logm(x)
    for i in (0, 3, 19):
        np.testing.assert_array_equal(linalg.logm(x[i : i + 1])[0], every[i])


@pytest.mark.parametrize("k", [4, 16, 30, 64])
def test_ill_conditioned_matrices_take_larger_tables(level, k):
    """Condition numbers from 1 to 1e12 in one batch: none is marked, and each logarithm is right to its condition."""
    turn = np.linalg.qr(np.random.default_rng(k).standard_normal((13, k, k)))[0]
    logs = np.stack([np.linspace(-p, 0.0, k) * np.log(10) for p in range(13)])
    x = linalg.symmetrize((turn * np.exp(logs)[:, None, :]) @ turn.swapaxes(1, 2))
    truth = (turn * logs[:, None, :]) @ turn.swapaxes(1, 2)
    outcome = passes.run(x, passes.LOG, matrices=True)
    assert outcome.marked.size == 0
    allowed = 4 * k**2.5 * 2.3e-16 * 10.0 ** np.arange(13) + 1e-13 * k
    assert (np.linalg.norm(outcome.matrices - truth, axis=(1, 2)) <= allowed).all()
    # The wrong variant: a table that stops short of the smallest eigenvalue, as if 2^-30 were added to it.
    shifted = passes.run(x + 2.0**-30 * np.eye(k), passes.LOG, matrices=True).matrices
    assert (np.linalg.norm(shifted - truth, axis=(1, 2)) > allowed)[1:9].all()


@pytest.mark.parametrize("shape", [(5, 5), (28, 28), (31, 17), (7, 40, 3)])
def test_descriptors_are_those_of_numpy(level, shape):
    """Gray and RGB images of every kind of number."""
    images = np.random.default_rng(0).integers(0, 256, (3, *shape)).astype(np.uint8)
    for given in (images, (images / 255).astype(np.float32), images / 255):
        ours = covariance_descriptors(given)
        with linalg.backend("numpy"):
            np.testing.assert_allclose(ours, covariance_descriptors(given), rtol=0, atol=2e-14)
