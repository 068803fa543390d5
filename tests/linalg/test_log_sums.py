"""Exact sums of logarithms in one pass: every backend, any order, any partition, any layout, any number of threads."""

import numpy as np
import pytest

from dpmanifold import SPD, linalg
from dpmanifold.linalg import ExactSum, backend, backends, clipped_log_sums, gradient_sums, whitened_triangles
from dpmanifold.linalg.native import library, passes
from dpmanifold.manifolds.base import POINT_TOLERANCE
from laws.tiers import pairs

NATIVE = backends()[1:]
SIZES = [1, 2, 3, 4, 5, 9, 13, 16, 30, 65]


def records(n, k, seed=0, spread=0.4):
    rng = np.random.default_rng(seed)
    return linalg.expm(linalg.from_vecd(spread * rng.standard_normal((n, k * (k + 1) // 2))))


def spoiled(x):
    """Records of every kind that the kernels treat apart, all at the front."""
    k = x.shape[-1]
    x = x.copy()
    x[0] = np.diag(np.geomspace(1, 1e8, k))  # beyond a ball's table
    x[1] = np.diag(np.geomspace(1, 1e14, k))  # near what is positive definite
    x[2] = np.diag(np.geomspace(1, 1e18, k))  # beyond it, but for one by one matrices
    x[3, 0, 0] = np.nan
    x[4, k - 1, 0] = np.inf
    x[5] = -x[5]
    x[6, 0, k - 1] += 0.1 * k  # not symmetric, but for one by one matrices
    x[7] *= 1e250
    x[8] *= 1e-250
    x[9, 0, k - 1] *= 1 + 1e-8  # symmetric to the tolerance
    return x


def threads(number):
    """Let the kernels take so many threads, whatever the work."""

    class Limit:
        def __enter__(self):
            self.handle, _ = library.current()
            self.before = self.handle.dpm_get_num_threads(), passes._WORTH_A_THREAD
            self.handle.dpm_set_num_threads(number)
            passes._WORTH_A_THREAD = 1.0

        def __exit__(self, *_):
            self.handle.dpm_set_num_threads(self.before[0])
            passes._WORTH_A_THREAD = self.before[1]

    return Limit()


@pytest.mark.parametrize(("k", "level", "groups"), pairs(SIZES, backends(), [None, 7]))
def test_clipped_sums_are_those_of_the_records_one_by_one(level, k, groups):
    n = 130 if k < 20 else 33
    x, radius = spoiled(records(n, k)), 1.5
    center = linalg.logm(records(1, k, seed=5)[0])
    group = None if groups is None else np.arange(n) * 5 % groups
    with backend(level):
        found = clipped_log_sums(x, center, radius, tolerance=POINT_TOLERANCE, group=group)
    space = SPD(k)
    good = space.valid(x)
    np.testing.assert_array_equal(found.faulty, ~good)
    with backend("numpy"):
        c = linalg.log_coordinates(linalg.symmetrize(x[good])) - linalg.to_vecd(center)
    lengths = np.linalg.norm(c, axis=1)
    c *= np.minimum(1, radius / lengths)[:, None]
    expected = np.zeros((groups or 1, space.dim))
    np.add.at(expected, np.zeros(len(c), dtype=int) if group is None else group[good], c)
    # A record of condition 1e14 is known to about 0.1 of its smallest logarithm; the radius shrinks that with the rest.
    np.testing.assert_allclose(found.totals()[:, :k], expected[:, :k], rtol=0, atol=3e-3)
    assert found.clipped == (lengths > radius * (1 - 1e-9)).sum()
    plain = np.setdiff1d(np.flatnonzero(good), [1, 2])
    with backend(level):
        found = clipped_log_sums(x[plain], center, radius, tolerance=POINT_TOLERANCE)
    keep = np.isin(np.flatnonzero(good), plain)
    np.testing.assert_allclose(found.totals()[0], c[keep].sum(axis=0), rtol=0, atol=1e-8)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 16])
def test_bits_do_not_depend_on_order_blocks_partitions_threads_or_layout(level, k):
    n = 500 if k < 10 else 150
    x, radius, rng = spoiled(records(n, k)), 1.2, np.random.default_rng(1)
    center, group = linalg.logm(records(1, k, seed=5)[0]), rng.integers(0, 11, n)

    def totals(rows=slice(None), data=x, blocks=1):
        sums = ExactSum(k * (k + 1) // 2, radius), ExactSum(k * (k + 1) // 2, radius, 11)
        for part in np.array_split(np.arange(n)[rows], blocks):
            for s, g in zip(sums, (None, group[part]), strict=True):
                clipped_log_sums(data[part], center, radius, tolerance=POINT_TOLERANCE, sums=s, group=g)
        return sums[0].total().tobytes(), sums[1].total().tobytes()

    with backend(level):
        expected = totals()
        for blocks in (1, 2, 3, 17, n):
            assert totals(rng.permutation(n), blocks=blocks) == expected
        spaced = np.repeat(x, 2, axis=0)[::2]
        for other in (np.asfortranarray(x), spaced, x.astype(">f8")):
            assert totals(data=other) == expected
        if level != "numpy":
            for number in (1, 2, 5):
                with threads(number):
                    assert totals() == expected


@pytest.mark.parametrize("level", NATIVE)
@pytest.mark.parametrize("k", [2, 3, 9])
def test_sums_of_doubles_would_depend_on_the_order(level, k):
    """The wrong variant: the same logarithms, added as doubles."""
    x = records(500, k)
    with backend(level):
        c = linalg.log_coordinates(x)
    orders = [np.random.default_rng(seed).permutation(500) for seed in range(5)]
    assert len({c[order].sum(axis=0).tobytes() for order in orders}) > 1


@pytest.mark.parametrize("level", backends())
def test_a_memory_mapped_file_and_single_precision(level, tmp_path):
    x = records(300, 3)
    np.save(tmp_path / "x.npy", x)
    with backend(level):
        expected = clipped_log_sums(x, radius=1.0, tolerance=1e-6).totals()
        mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
        np.testing.assert_array_equal(clipped_log_sums(mapped, radius=1.0, tolerance=1e-6).totals(), expected)
        single = x.astype(np.float32)
        doubles = clipped_log_sums(single.astype(np.float64), radius=1.0, tolerance=1e-6).totals()
        np.testing.assert_array_equal(clipped_log_sums(single, radius=1.0, tolerance=1e-6).totals(), doubles)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("k", [2, 3, 9])
def test_a_record_adds_the_same_whatever_stands_beside_it(level, k):
    x = spoiled(records(40, k))
    with backend(level):
        alone = [clipped_log_sums(a[None], radius=0.7, tolerance=1e-6).sums.words for a in x]
        # Neighbours that need the large table, and others that do not.
        for other in (x[0], x[20]):
            block = np.broadcast_to(other, (17, k, k)).copy()
            of_others = clipped_log_sums(np.delete(block, 3, axis=0), radius=0.7, tolerance=1e-6).sums
            for a, expected in zip(x, alone, strict=True):
                block[3] = a
                total = clipped_log_sums(block, radius=0.7, tolerance=1e-6).sums
                total.words -= of_others.words
                single = ExactSum(total.size, 0.7)
                single.words += expected
                np.testing.assert_array_equal(total.total(), single.total())


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("k", [1, 2, 3, 4, 9, 30])
def test_gradients_over_packed_points(level, k):
    n = 130 if k < 20 else 33
    x = records(n, k, spread=0.2)
    space, base = SPD(k, metric="riemann"), records(5, k, seed=3, spread=0.2)
    group = np.random.default_rng(2).integers(0, 5, n)
    stored = linalg.pack_triangles(x)
    bound = 9.0
    with backend("numpy"):
        expected = space.log_coords(base[group], x)
    factors = [linalg.affine_factor(b) for b in base]
    inverse, power = np.stack([f for f, _ in factors]), np.array([p for _, p in factors])
    with backend(level):

        def sums(*arguments, **options):
            return linalg.vecd_of_triangles(gradient_sums(*arguments, **options).total())

        one = sums(stored[group == 2], inverse[2], int(power[2]), bound)
        np.testing.assert_allclose(one[0], expected[group == 2].sum(axis=0), rtol=0, atol=1e-10)
        many = sums(stored, inverse, power, bound, group=group)
        np.testing.assert_allclose(many[2], one[0], rtol=0, atol=1e-11)
        order = np.random.default_rng(3).permutation(n)
        again = sums(stored[order], inverse, power, bound, group=group[order])
        np.testing.assert_array_equal(again, many)
        some = sums(stored, inverse, power, bound, group=group, rows=np.flatnonzero(group != 2))
        assert not some[2].any()
        np.testing.assert_array_equal(np.delete(some, 2, axis=0), np.delete(many, 2, axis=0))


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("k", [1, 2, 3, 9])
def test_whitening_keeps_points_and_leaves_far_ones_to_the_caller(level, k):
    x = spoiled(records(60, k, spread=0.9 / k))
    center = records(1, k, seed=4, spread=0.2 / k)[0]
    space, radius = SPD(k, metric="riemann"), 1.0
    inverse, power = linalg.affine_factor(center)
    places = np.random.default_rng(5).permutation(60)
    with backend(level):
        stored, found = whitened_triangles(x, inverse, power, radius, tolerance=1e-6)
        out, again = whitened_triangles(
            x, inverse, power, radius, tolerance=1e-6, out=np.empty_like(stored), places=places
        )
    np.testing.assert_array_equal(found.faulty, ~space.valid(x))
    np.testing.assert_array_equal(found.sums.total(), again.sums.total())
    inside = found.status == 0
    np.testing.assert_array_equal(out[places][inside], stored[inside])
    with backend("numpy"):
        distances = space.dist(center, linalg.symmetrize(x[inside]))
        moved = space.to_origin(center, linalg.symmetrize(x[inside]))
        total = space.log_coords(space.origin, moved).sum(axis=0)
    assert (distances <= radius).all()
    assert inside.sum() > 5
    np.testing.assert_allclose(linalg.unpack_triangles(stored[inside]), moved, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.totals()[0], total, rtol=0, atol=1e-10)


def beside_singular(k):
    """Return matrices of which every third is singular until it is whitened; the factor and the power that do so."""
    x = records(60, k, spread=0.3 / k)
    factor = np.diag(np.logspace(0, -4, k))
    x = factor @ x @ factor
    x[::3] = np.diag([1.0, *np.logspace(-2, -14, k - 1) / 100])
    x[::3, -1, -1] = 0.5 * k * 2.0**-52
    return (x + np.swapaxes(x, -1, -2)) / 2, *linalg.affine_factor(factor @ factor)


@pytest.mark.parametrize("level", backends())
@pytest.mark.parametrize("k", [2, 3, 9])
def test_what_is_faulty_does_not_depend_on_the_factor_and_adds_nothing(level, k):
    x, inverse, power = beside_singular(k)
    with backend(level):
        found = whitened_triangles(x, inverse, power, 40.0, tolerance=1e-6)[1]
        good = np.delete(x, np.s_[::3], axis=0)
        alone = whitened_triangles(good, inverse, power, 40.0, tolerance=1e-6)[1]
    np.testing.assert_array_equal(found.faulty, ~SPD(k).valid(x))
    assert found.faulty[::3].all()
    np.testing.assert_array_equal(found.sums.total(), alone.sums.total())


@pytest.mark.skipif(not NATIVE, reason="the compiled kernels are not installed")
def test_numbers_that_lie_outside_are_refused_before_memory_is_read():
    x, stored = records(6, 3), linalg.pack_triangles(records(6, 3))
    sums = ExactSum(6, 1.0, groups=2)
    for wrong in (np.full(6, 2), np.full(6, -1), np.zeros(5, dtype=int), np.zeros(6)):
        with pytest.raises(linalg.native.passes.InvalidArgumentError, match="must be"):
            passes.run(x, passes.LOG, sums=sums, group=wrong)
    with pytest.raises(linalg.native.passes.InvalidArgumentError, match="rows"):
        passes.run(stored, passes.LOG, sums=ExactSum(6, 1.0), rows=np.array([6]))
