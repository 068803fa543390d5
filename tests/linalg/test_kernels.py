"""The compiled kernels: accuracy against 50 digits, no dependence on batch or threads, bad input found by index."""

import contextvars
import ctypes
import threading

import mpmath as mp
import numpy as np
import pytest

from dpmanifold import EACH_RECORD, GDP, SPD, Ball, frechet, linalg, private_mean
from dpmanifold.data import covariance_descriptors
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg import backend, backends
from dpmanifold.linalg.native import library, passes
from laws.tiers import pairs
from linalg.families import NAMES, exact, family, relative_error, turned, with_truth

NATIVE = backends()[1:]
SIZES = [1, 2, 3, 4, 5, 8, 9, 11]
needs_kernels = pytest.mark.skipif(not NATIVE, reason="the kernels were not built here")

# What counts as exact: below this, three times LAPACK's error is a matter of luck.
FLOOR = 1e-13

FUNCTIONS = {
    "logm": (linalg.logm, mp.log),
    "sqrtm": (linalg.sqrtm, mp.sqrt),
    "invsqrtm": (linalg.invsqrtm, lambda x: 1 / mp.sqrt(x)),
}


def spd(n, k, seed=0):
    return family("condition 1e3", k, n, np.random.default_rng(seed))


def assert_as_accurate_as_lapack(name, k, n, function="logm"):
    ours, f = FUNCTIONS[function]
    x, truth = with_truth(name, k, n, f, np.random.default_rng(7))
    # A logarithm near 0 is known to eps and not to eps times itself, by anyone.
    least = 1.0 if function == "logm" else 0.0
    with backend("numpy"):
        theirs = max(relative_error(a, b, least) for a, b in zip(ours(x), truth, strict=True))
    for level in NATIVE:
        with backend(level):
            error = max(relative_error(a, b, least) for a, b in zip(ours(x), truth, strict=True))
        assert error <= max(3 * theirs, FLOOR), f"{level}: {error:.1e}, LAPACK {theirs:.1e}"


# ---------------------------------------------------------------- accuracy


@needs_kernels
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", SIZES)
def test_logarithm_is_as_accurate_as_lapack(name, k):
    assert_as_accurate_as_lapack(name, k, 24 if name in ("diagonal", "graded") else 4)


@needs_kernels
@pytest.mark.parametrize("name", ["condition 1", "condition 1e6", "huge"])
def test_a_less_accurate_logarithm_is_noticed(monkeypatch, name):
    """Ten digits of the logarithm, as a closed formula for k = 3 has them, would not do; nor would LAPACK's tenfold."""
    right = linalg.logm

    def wrong(x):
        noise = np.random.default_rng(0).standard_normal(x.shape)
        worst = np.linalg.cond(x).max() * 2e-15
        return right(x) + (0.0 if linalg.level() == "numpy" else max(worst, 1e-10) * linalg.symmetrize(noise))

    monkeypatch.setitem(FUNCTIONS, "logm", (wrong, mp.log))
    with pytest.raises(AssertionError, match="LAPACK"):
        assert_as_accurate_as_lapack(name, 3, 4)


@needs_kernels
@pytest.mark.parametrize("function", ["sqrtm", "invsqrtm"])
@pytest.mark.parametrize("name", ["condition 1", "condition 1e6", "condition 1e12", "repeated", "tiny", "huge"])
@pytest.mark.parametrize("k", [2, 3, 4, 9])
def test_roots_are_as_accurate_as_lapack(name, k, function):
    assert_as_accurate_as_lapack(name, k, 2, function)


@pytest.mark.slow
@needs_kernels
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [16, 30, 48, 64])
def test_large_logarithms_are_as_accurate_as_lapack(name, k):
    assert_as_accurate_as_lapack(name, k, 3 if k <= 30 else 1)


@needs_kernels
@pytest.mark.parametrize(
    ("shift", "length", "k"),
    pairs([-300.0, -60.0, -1.0, 0.0, 20.0, 100.0], [0.0, 1e-8, 1.0, 10.0, 200.0], [1, 2, 3, 6, 9]),
)
def test_exponential_is_as_accurate_as_lapack(k, length, shift):
    rng = np.random.default_rng(3)
    a = linalg.symmetrize(rng.standard_normal((2, k, k)))
    a = a * (length / np.linalg.norm(a, axis=(1, 2), keepdims=True)) + shift * np.eye(k)
    truth = [exact_exponential(m) for m in a]
    with backend("numpy"):
        theirs = max(relative_error(x, y) for x, y in zip(linalg.expm(a), truth, strict=True))
    for level in NATIVE:
        with backend(level):
            error = max(relative_error(x, y) for x, y in zip(linalg.expm(a), truth, strict=True))
        assert error <= max(3 * theirs, FLOOR), level


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("scale", [1e-30, 1e-18, 1.0, 1e18])
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_means_follow_the_unit_of_measurement(level, scale, metric):
    """Tensors in square metres per second or covariances in square volts: the mean is the same, times the unit."""
    space, x = SPD(4, metric=metric), spd(50, 4)
    ball, scaled = Ball(space, x[0], 2.0), Ball(space, scale * x[0], 2.0)
    with backend(level):
        np.testing.assert_allclose(
            frechet.mean(scale * x, space).value / scale, frechet.mean(x, space).value, rtol=0, atol=1e-11
        )
        one, other = (
            private_mean(u * x, b, GDP(1.0), units=EACH_RECORD, confirm=True, rng=1).value / u
            for u, b in ((1.0, ball), (scale, scaled))
        )
    np.testing.assert_allclose(other, one, rtol=0, atol=1e-11)


def exact_exponential(a):
    with mp.workdps(60):
        values, vectors = mp.eigsy(mp.matrix(a.tolist()))
        return np.array((vectors * mp.diag([mp.exp(v) for v in values]) * vectors.T).tolist(), dtype=np.float64)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("k", [2, 5, 9])
def test_accurate_logarithm_keeps_every_digit_of_graded_matrices(level, k):
    """Eigenvalues from 1 to 1e-20: LAPACK has no digit of the small ones, one-sided Jacobi has nearly all."""
    rng = np.random.default_rng(5)
    grade = np.diag(10.0 ** -np.linspace(0, 10, k))
    x = linalg.symmetrize(grade @ family("condition 1e3", k, 3, rng) @ grade)
    with backend(level):
        found = linalg.logm(x, accurate=True)
    for a, b in zip(found, x, strict=True):
        assert relative_error(a, exact(b, mp.log)) < 5e-13


def error_of_two(level):
    """The largest error of 2 x 2 logarithms: ill-conditioned, near multiples of the identity, or neither."""
    rng = np.random.default_rng(5)
    high, turn = 10 ** rng.uniform(-5, 5, 90), rng.uniform(0, np.pi, 90)
    low = high * np.where(np.arange(90) % 3 == 0, 1 - 10 ** rng.uniform(-16, -1, 90), 10 ** rng.uniform(-12, 0, 90))
    turn[::5] *= 1e-9
    v = np.stack([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]]).transpose(2, 0, 1)
    x = linalg.symmetrize((v * np.stack([high, low], axis=1)[:, None, :]) @ v.transpose(0, 2, 1))
    with backend(level):
        found = linalg.logm(x)
    return max(relative_error(a, exact(b, mp.log), 1.0) for a, b in zip(found, x, strict=True))


@pytest.mark.parametrize("level", NATIVE)
def test_logarithms_of_two_by_two_matrices_keep_their_digits_whatever_the_condition(level):
    assert error_of_two(level) < 8 * np.finfo(float).eps


def test_eigenvalues_lose_the_digits_of_two_by_two_matrices():
    assert error_of_two("numpy") > 1e-10


@pytest.mark.parametrize("level", backends())
def test_accurate_logarithm_reaches_far_down(level):
    """Two blocks, one 1e-170 of the other: their logarithms are those of each block."""
    block = np.array([[1.0, 0.5], [0.5, 1.0]])
    x = np.zeros((4, 4))
    x[:2, :2], x[2:, 2:] = np.eye(2), 1e-170 * block
    with backend(level):
        found = linalg.logm(x, accurate=True)
    expected = linalg.logm(block) - 170 * np.log(10) * np.eye(2)
    np.testing.assert_allclose(found[2:, 2:], expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("bad", [-np.eye(4), np.full((4, 4), np.nan), np.zeros((4, 4)), np.diag([np.inf, 1, 1, 1])])
def test_accurate_functions_name_the_matrix_they_cannot_take(level, bad):
    x = spd(6, 4)
    x[3] = bad
    for function in (linalg.logm, linalg.sqrtm, linalg.invsqrtm):
        with backend(level), pytest.raises(np.linalg.LinAlgError, match="index 3 is not positive definite"):
            function(x, accurate=True)


@needs_kernels
@pytest.mark.parametrize("level", NATIVE)
def test_public_condition_bound_changes_work_and_not_the_answer(level):
    x = spd(40, 6)
    with backend(level):
        handle = library.current()[0]
        assert handle.dpm_poles(passes.LOG, 1e3) < handle.dpm_poles(passes.LOG, 1e16)
        np.testing.assert_allclose(linalg.logm(x, condition=1e3), linalg.logm(x), rtol=0, atol=1e-12)
        # A bound that is wrong costs time: what exceeds it is done again with all poles, and the rest stays as it is.
        wide = family("condition 1e9", 6, 40, np.random.default_rng(0))
        np.testing.assert_array_equal(linalg.logm(wide, condition=10.0), linalg.logm(wide))
        mixed = np.concatenate([x[:3], wide[:3]])
        found = linalg.logm(mixed, condition=1e3)
        np.testing.assert_array_equal(found[:3], linalg.logm(x[:3], condition=1e3))
        np.testing.assert_array_equal(found[3:], linalg.logm(wide[:3]))


# ---------------------------------------------------------------- agreement with numpy


@pytest.mark.parametrize("level", NATIVE)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 9, 20])
def test_fused_passes_agree_with_numpy(level, k):
    x = spd(300, k)
    base = linalg.log_euclidean_mean(x[:7])
    center = linalg.logm(base)
    weights = np.random.default_rng(1).random(300)
    inverse, power = linalg.affine_factor(base)

    def everything(condition=1e16):
        bound = {"condition": condition}
        total, distances = linalg.whitened_log_sum(inverse, x, weights, power, **bound)
        return {
            "log_norm": linalg.log_norm(x, **bound),
            "log_coordinates": linalg.log_coordinates(x, **bound),
            "log_mean": linalg.log_mean(x, **bound),
            "weighted log_mean": linalg.log_mean(x, weights, **bound),
            "log_euclidean_mean": linalg.log_euclidean_mean(x, weights / weights.sum(), **bound),
            "whitened_log_sum": total,
            "distances": distances,
            "affine distances": linalg.affine_distances(x, base, **bound),
            "coordinates": linalg.log_coordinates(x, inverse, power, **bound),
            "whitened": linalg.whitened(inverse, x, power),
            "congruence": linalg.congruence(center, x),
        }

    with backend("numpy"):
        expected = everything()
    with backend(level):
        # The second bound is wrong for most matrices: those are done again, with all poles.
        for found in (everything(), everything(condition=2.0)):
            for name, value in expected.items():
                np.testing.assert_allclose(found[name], value, rtol=1e-10, atol=1e-11, err_msg=name)


@pytest.mark.parametrize("level", NATIVE)
@pytest.mark.parametrize("k", [2, 3, 9, 30, 64])
def test_clipping_never_leaves_a_difference_outside(level, k):
    x = spd(500 if k < 10 else 50, k)
    with backend(level):
        for radius in (0.1, 1.0, 3.0):
            clipped = passes.run(x, passes.LOG, radius=radius, coordinates=True).coordinates
            assert np.linalg.norm(clipped, axis=1).max() <= radius


@pytest.mark.parametrize("level", NATIVE)
@pytest.mark.parametrize("shape", [(4, 5, 5), (3, 28, 28), (2, 9, 14), (2, 6, 7, 3), (2, 32, 32, 3)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_descriptors_agree_with_numpy(level, shape, dtype):
    images = np.random.default_rng(0).integers(0, 4, shape).astype(np.uint8) * 85
    if dtype != np.uint8:
        images = (images / 255).astype(dtype)
    with backend("numpy"):
        expected = covariance_descriptors(images)
    with backend(level):
        found = covariance_descriptors(images)
        alone = np.concatenate([covariance_descriptors(image[None]) for image in images])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(found, alone)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("accurate", [False, True])
def test_float32_input_is_converted(level, accurate):
    x = spd(5, 4).astype(np.float32)
    with backend(level):
        found = linalg.logm(x, accurate=accurate)
        np.testing.assert_array_equal(found, linalg.logm(x.astype(np.float64), accurate=accurate))
        np.testing.assert_array_equal(linalg.log_norm(x), linalg.log_norm(x.astype(np.float64)))
    assert found.dtype == np.float64


@pytest.mark.parametrize("level", backends())
def test_arrays_may_lie_in_memory_as_they_like(level):
    """Strided, reversed, unaligned, read-only: the same bits as a fresh copy, weights included."""
    x, weights = spd(20, 5), np.random.default_rng(0).random(20)
    raw = np.zeros(x.nbytes + 3, dtype=np.uint8)
    unaligned = raw[3:].view(np.float64).reshape(x.shape)
    unaligned[:] = x
    spaced = np.repeat(x, 2, axis=0)[::2]
    spaced.flags.writeable = False
    with backend(level):
        expected = linalg.log_mean(x, weights)
        for other in (unaligned, spaced, np.asfortranarray(x)):
            np.testing.assert_array_equal(linalg.log_mean(other, weights), expected)
        np.testing.assert_array_equal(linalg.log_mean(x, np.repeat(weights, 3)[::3]), expected)
        many = linalg.log_coordinates(x.reshape(2, 2, 5, 5, 5))
        np.testing.assert_array_equal(many.reshape(20, -1), linalg.log_coordinates(x))


# ---------------------------------------------------------------- bad input, by index


@needs_kernels
@pytest.mark.parametrize("level", NATIVE)
@pytest.mark.parametrize("k", [2, 3, 4, 9, 33])
@pytest.mark.parametrize("accurate", [False, True])
def test_bad_matrices_are_marked_by_index_and_leave_the_others_alone(level, k, accurate):
    x = spd(41, k)
    good = x.copy()
    x[3] = -x[3]
    x[10, 0, 0] = np.nan
    x[17, k - 1, 0] = np.inf
    x[29] = 0.0
    x[40] -= 1.5 * np.eye(k)  # the largest eigenvalue is 1
    x[40, 0, 0] = 5.0  # indefinite, then
    bad = [3, 10, 17, 29, 40]
    with backend(level):
        sums = linalg.ExactSum(k * (k + 1) // 2, 2048.0)
        found = passes.run(x, passes.LOG, matrices=True, sums=sums, accurate=accurate)
        clean = passes.run(good, passes.LOG, matrices=True, accurate=accurate)
    assert found.marked.tolist() == bad
    rest = np.setdiff1d(np.arange(41), bad)
    np.testing.assert_array_equal(found.matrices[rest], clean.matrices[rest])
    total = linalg.unpack_triangles(sums.total()[0])
    np.testing.assert_allclose(total, clean.matrices[rest].sum(axis=0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("level", backends())
def test_the_symmetric_part_is_what_must_be_positive_definite(level):
    """Mirrored entries may differ a little; here the lower triangle alone would be definite, their mean is not."""
    nearly = np.array([[1.0, 1 + 4e-7], [1 - 4e-7, 1 - 6e-7]])
    with backend(level):
        assert SPD(2).check(np.tril(nearly) + np.tril(nearly, -1).T) is None
        assert "at index 1 is not positive definite" in SPD(2).check(np.stack([np.eye(2), nearly]))


@pytest.mark.parametrize("k", [2, 3, 5, 9, 33])
def test_every_backend_accepts_the_same_matrices(k):
    """From well inside the cone to outside, across the rule's edge at k eps, in batches that mix them."""
    rng = np.random.default_rng(4)
    least = np.concatenate([10.0 ** rng.uniform(-17, -9, 60), [0.0, -1e-13, -1e-3]])
    values = np.concatenate([least[:, None], rng.uniform(0.5, 1.0, (63, k - 1))], axis=1)
    x = turned(values, rng) * 10.0 ** rng.uniform(-100, 100, (63, 1, 1))
    sure = (least > 100 * k * np.finfo(float).eps) | (least < -1e-14)  # in between, rounding of x decides
    found = []
    for level in backends():
        with backend(level):
            found.append(SPD(k).valid(x)[sure])
    np.testing.assert_array_equal(found, [least[sure] > 0] * len(found))


@pytest.mark.parametrize("level", NATIVE)
def test_a_reach_that_is_too_small_costs_time_alone(level):
    space = SPD(4, metric="riemann")
    p, q, weights = space.random_point(rng=1), space.random_point(50, rng=2), np.full(50, 0.02)
    with backend(level):
        expected, longest = space.weighted_log(p, q, weights)
        for reach in (longest, longest / 3, 0.0):
            total, again = space.weighted_log(p, q, weights, reach)
            np.testing.assert_allclose(total, expected, rtol=0, atol=1e-12)
            assert again == pytest.approx(longest, rel=1e-12)
    assert longest == pytest.approx(space.dist(p, q).max(), rel=1e-12)


WRONG_SHAPES = {
    "weights": lambda x: linalg.log_mean(x, np.ones(3)),
    "axes": lambda x: linalg.log_mean(x.reshape(2, 3, 4, 4)),
    "large factor": lambda x: linalg.whitened(np.eye(5), x),
    "small factor": lambda x: linalg.log_norm(x, np.eye(3)),
    "weights of a sum": lambda x: linalg.whitened_log_sum(np.eye(4), x, np.ones(5)),
    "not square": lambda x: passes.run(x[:, :, :3], passes.LOG, norms=True),
    "strided": lambda x: passes.run(x[::2], passes.LOG, norms=True),
    "float32": lambda x: passes.run(x.astype(np.float32), passes.LOG, norms=True),
}


@needs_kernels
@pytest.mark.parametrize("case", WRONG_SHAPES)
def test_wrong_shapes_are_refused_before_memory_is_read(case):
    with backend("native"), pytest.raises(InvalidArgumentError, match="must be"):
        WRONG_SHAPES[case](spd(6, 4))


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("function", [linalg.logm, linalg.log_coordinates, linalg.log_norm])
def test_matrices_that_are_not_square_are_refused(level, function):
    with backend(level), pytest.raises(np.linalg.LinAlgError, match="square"):
        function(spd(6, 4)[:, :, :3])


# ---------------------------------------------------------------- independence


def all_outputs(x, threads=1):
    """Every output of a pass, at a number of threads."""
    handle, _ = library.current()
    before = handle.dpm_get_num_threads()
    handle.dpm_set_num_threads(threads)
    try:
        worth, passes._WORTH_A_THREAD = passes._WORTH_A_THREAD, 1.0
        k = x.shape[-1]
        factor = np.tril(np.ones((k, k)))
        sums = linalg.ExactSum(k * (k + 1) // 2, 2048.0, groups=5)
        group, moved = np.arange(len(x)) * 7 % 5, np.empty((len(x), sums.size))
        given = {"matrices": True, "coordinates": True, "norms": True, "sums": sums, "group": group, "moved": moved}
        found = passes.run(x, passes.LOG, factor=factor, **given)
        return found.matrices, found.coordinates, found.norms, sums.total(), moved
    finally:
        passes._WORTH_A_THREAD = worth
        handle.dpm_set_num_threads(before)


@needs_kernels
@pytest.mark.parametrize("level", NATIVE)
@pytest.mark.parametrize("k", [2, 3, 4, 9, 13])
def test_results_do_not_depend_on_the_number_of_threads(level, k):
    x = spd(1301, k)
    with backend(level):
        one = all_outputs(x)
        for threads in (2, 3, 7):
            for a, b in zip(one, all_outputs(x, threads), strict=True):
                np.testing.assert_array_equal(a, b)


@needs_kernels
@pytest.mark.parametrize("level", NATIVE)
@pytest.mark.parametrize("k", [1, 2, 3, 4, 9, 13])
@pytest.mark.parametrize("accurate", [False, True])
def test_results_do_not_depend_on_the_batch(level, k, accurate):
    """Alone, in another lane, behind a matrix that converges late: the same bits."""
    x = np.concatenate([spd(9, k), family("condition 1e9", k, 9, np.random.default_rng(2))])
    with backend(level):
        for function in (linalg.logm, linalg.sqrtm, linalg.invsqrtm):
            together = function(x, accurate=accurate)
            alone = np.stack([function(a, accurate=accurate) for a in x])
            np.testing.assert_array_equal(together, alone)
            np.testing.assert_array_equal(function(x[5:], accurate=accurate), together[5:])
        small = x / np.linalg.norm(x, axis=(1, 2), keepdims=True)
        np.testing.assert_array_equal(linalg.expm(small), np.stack([linalg.expm(a) for a in small]))


# ---------------------------------------------------------------- choosing a backend


def test_backend_is_chosen_for_a_block_and_restored():
    before = linalg.level()
    with backend("numpy"):
        assert linalg.level() == "numpy"
        with pytest.raises(ValueError, match="inside"), backend(backends()[-1]):
            raise ValueError("inside")
        assert linalg.level() == "numpy"
    assert linalg.level() == before


def test_backend_does_not_leak_into_other_threads():
    seen = []
    with backend("numpy"):
        # A context of its own is what a thread starts with, up to Python 3.13 at least.
        look = contextvars.Context().run
        thread = threading.Thread(target=look, args=(lambda: seen.append(linalg.level()),))
        thread.start()
        thread.join()
    assert seen == [backends()[-1]]


def test_unknown_backend_is_refused_with_the_names_there_are():
    with pytest.raises(InvalidArgumentError, match="numpy"), backend("cuda"):
        pass


def test_without_the_library_numpy_is_used(tmp_path):
    assert library.load(tmp_path / "missing.so") is None
    broken = tmp_path / library.LIBRARY_NAME
    broken.write_bytes(b"not a library")
    assert library.load(broken) is None


@needs_kernels
def test_threadpoolctl_limits_the_kernels():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with backend("native"):
        handle = library.current()[0]
    before = handle.dpm_get_num_threads()
    with threadpoolctl.threadpool_limits(limits=3, user_api="dpmanifold"):
        assert handle.dpm_get_num_threads() == 3
    assert handle.dpm_get_num_threads() == before


@needs_kernels
def test_a_level_the_machine_lacks_is_refused():
    with backend("native"):
        handle = library.current()[0]
    arguments = library.PassArguments(n=0, k=2)
    assert handle.dpm_pass(99, ctypes.byref(arguments), 10.0, 1) == -1
