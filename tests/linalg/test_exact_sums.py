"""Sums as integers: exact, and blind to order, blocks, partitions and groups."""

from fractions import Fraction

import numpy as np
import pytest

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg.exact_sums import MOST_RECORDS, ExactSum


def exact_total(values, shift):
    """Return the sum of truncated values in exact arithmetic, one per column, as doubles."""
    unit = Fraction(2) ** -shift
    return [float(sum(int(Fraction(float(v)) / unit) for v in column) * unit) for column in values.T]


def sum_of(values, bound, blocks=1, group=None, groups=1):
    sums = ExactSum(values.shape[1], bound, groups)
    for rows in np.array_split(np.arange(len(values)), blocks):
        sums.add(values[rows], None if group is None else group[rows])
    return sums


@pytest.mark.parametrize("bound", [1.0, 0.75, 1.5, 3e-290, 1e290, 2.0**-1000])
def test_the_sum_is_the_exact_one_rounded_once(bound):
    rng = np.random.default_rng(1)
    values = bound * rng.uniform(-1, 1, (300, 3)) * 10.0 ** rng.uniform(-18, 0, (300, 3))
    values[0], values[1] = bound, -bound
    sums = sum_of(values, bound)
    assert sums.total()[0].tolist() == exact_total(values, sums.shift)


def test_order_blocks_and_partitions_do_not_show_where_those_of_doubles_do():
    rng = np.random.default_rng(2)
    values = rng.uniform(-1, 1, (5000, 4)) * 10.0 ** rng.uniform(-12, 0, (5000, 1))
    expected, doubles = sum_of(values, 1.0).total(), set()
    for blocks in (1, 2, 7, 64, 5000):
        mixed = values[rng.permutation(len(values))]
        np.testing.assert_array_equal(sum_of(mixed, 1.0, blocks).total(), expected)
        doubles.add(np.ascontiguousarray(mixed.T).sum(axis=1).tobytes())
        cut = int(rng.integers(len(values)))
        left, right = sum_of(mixed[:cut], 1.0), sum_of(mixed[cut:], 1.0)
        left.merge(right)
        np.testing.assert_array_equal(left.total(), expected)
    assert len(doubles) > 1, "the wrong variant, a sum of doubles, must depend on the order"


def test_groups_in_any_order_have_the_sums_they_have_alone():
    rng = np.random.default_rng(3)
    values, group = rng.uniform(-1, 1, (2000, 3)), rng.integers(0, 50, 2000)
    group[group == 7] = 8  # a group without records
    order = rng.permutation(2000)
    for blocks in (1, 13):
        total = sum_of(values[order], 1.0, blocks, group[order], 50).total()
        for g in range(50):
            np.testing.assert_array_equal(total[g], sum_of(values[group == g], 1.0).total()[0])
    assert not total[7].any()


def test_nothing_gets_longer():
    values = np.random.default_rng(4).uniform(-1, 1, (1000, 5)) * 1e-17
    for row in values:
        total = sum_of(row[None], 1.0).total()[0]
        assert (np.abs(total) <= np.abs(row)).all()
        assert (np.abs(total - row) <= 2.0**-62).all()


def test_the_words_hold_as_many_records_as_promised():
    sums = ExactSum(1, bound=1.0)
    sums.add(np.array([[1.0]]))
    sums.words *= MOST_RECORDS - 1  # numpy would wrap around silently: compared with exact arithmetic below
    assert sums.total()[0, 0] == float(MOST_RECORDS - 1)
    sums = ExactSum(1, bound=1.0)
    sums.add(np.array([[-(2.0**-62)]]))
    sums.words *= MOST_RECORDS - 1
    assert sums.total()[0, 0] == -(MOST_RECORDS - 1) * 2.0**-62


def test_what_breaks_the_bound_is_cut_to_it():
    sums = ExactSum(1, bound=1.0)
    sums.add(np.array([[5.0], [-np.inf], [np.inf], [np.nan]]))
    assert sums.total()[0, 0] == 2.0


def test_an_empty_block_changes_nothing():
    sums = ExactSum(2, 1.0, groups=3)
    sums.add(np.empty((0, 2)), np.empty(0, dtype=np.intp))
    sums.add(np.empty((0, 2)))
    assert not sums.words.any()


@pytest.mark.parametrize("bound", [0.0, -1.0, np.inf, np.nan])
def test_a_bound_that_is_none_is_refused(bound):
    with pytest.raises(InvalidArgumentError, match="bound must be"):
        ExactSum(1, bound)


def test_sums_of_different_scale_are_not_merged():
    with pytest.raises(InvalidArgumentError, match="cannot be merged"):
        ExactSum(1, 1.0).merge(ExactSum(1, 2.0))
