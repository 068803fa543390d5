"""With invalid="center" no content of a record stops a release or changes what becomes of another record."""

from __future__ import annotations

import decimal
import fractions

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, SPD, Ball, Euclidean, Hyperbolic, InvalidDataError, KendallShapes, Sphere
from dpmanifold.stats.inputs import checked_records

pytestmark = pytest.mark.security


class Hostile:
    """Fails in its own way whatever is done with it."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("of data")

    def __float__(self):
        raise KeyError("of data")

    def __len__(self):
        raise OSError("of data")


ENDLESS: list = []
ENDLESS.append(ENDLESS)

BAD = [
    None, "text", "", b"bytes", 1.0, [], [[]], {}, {"a": 1}, set(), object(), Hostile(), [Hostile()], ENDLESS,
    [None, None, None], ["1", "2", "x"], [1j, 0, 0], [1, 2j], [[1.0], [1.0, 2.0]], [10**400, 0, 0], [True, None, True],
    np.zeros(7), np.zeros((3, 4, 5)), np.full(3, np.nan), np.full((3, 3), np.inf), np.array(["a", "b", "c"]),
    float("nan"), np.array([None] * 3), decimal.Decimal(1), [decimal.Decimal("NaN")] * 3,
    np.ma.array([0.0, 0.0, 1.0], mask=[0, 0, 1]), np.zeros(3, dtype="M8[s]"), np.zeros(2, dtype=[("x", float)]),
    np.longdouble("1e4000") * np.ones(3), range(10**6), lambda: None, Ellipsis, dpm, np.zeros((0, 3)),
]  # fmt: skip
BALLS = [
    Ball(Euclidean(3), [0.0, 0.0, 0.0], 5.0),
    Ball(Sphere(2), [0.0, 0.0, 1.0], 0.7),
    Ball(Hyperbolic(2), [1.0, 0.0, 0.0], 2.0),
    Ball(SPD(3), np.eye(3), 2.0),
    Ball(SPD(3, metric="riemann"), np.eye(3), 2.0),
    Ball(KendallShapes(3), KendallShapes(3).origin, 0.3),
]


@pytest.mark.parametrize("number", range(len(BAD)))
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_a_bad_record_in_a_list_counts_as_the_centre_and_touches_no_other(ball, number):
    good = ball.clip(ball.space.random_point(6, rng=0))
    alone, none_replaced = checked_records(list(good), ball, "center")
    assert none_replaced == 0
    for form in (list, tuple, as_objects):
        records, replaced = checked_records(form([*good[:3], BAD[number], *good[3:]]), ball, "center")
        assert replaced == 1
        np.testing.assert_array_equal(records[3], ball.center)
        np.testing.assert_array_equal(np.delete(records, 3, axis=0), alone)


def as_objects(records):
    array = np.empty(len(records), dtype=object)
    for i, record in enumerate(records):
        array[i] = record
    return array


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_a_list_gives_the_bits_that_an_array_gives(ball):
    X = ball.space.random_point(50, rng=1)
    by_array = checked_records(X, ball, "center")
    for form in (list, as_objects, lambda X: X.tolist()):
        by_list = checked_records(form(X), ball, "center")
        assert by_list[1] == by_array[1]
        assert by_list[0].tobytes() == by_array[0].tobytes()


@pytest.mark.parametrize("number", range(len(BAD)))
def test_no_private_statistic_raises(number):
    ball = BALLS[0]
    X = [*np.zeros((9, 3)), BAD[number]]
    terms = {"units": EACH_RECORD, "invalid": "center"}
    assert dpm.private_mean(X, ball, GDP(1.0), **terms).n == 10
    assert dpm.private_mean(X, ball, GDP(1.0), units=list("aabbccddee"), invalid="center").n == 5
    dpm.private_region(X, ball, GDP(1.0), **terms)
    dpm.private_two_sample_test(X, X, ball, GDP(1.0), units=(range(10), range(20, 30)), invalid="center")
    dpm.private_class_means(X, [0, 1] * 5, ball, GDP(1.0), classes=[0, 1], **terms)


def test_no_estimator_raises():
    pytest.importorskip("sklearn")
    from dpmanifold.estimators import PrivateFrechetMean, PrivateMDM

    X = [*BAD, *np.zeros((60, 3))]
    labels = ["a" if i % 2 else "b" for i in range(len(X))]
    terms = {"units": "each-record", "invalid": "center", "public_data": True}
    model = PrivateFrechetMean(BALLS[0], GDP(1.0), **terms).fit(X)
    assert model.n_features_in_ == 3
    assert model.release_.n == len(X)
    model = PrivateMDM(BALLS[0], GDP(1.0), classes=["a", "b"], **terms).fit(X, labels)
    assert model.predict(np.zeros((2, 3))).shape == (2,)


def test_numbers_are_numbers_in_whatever_form():
    ball = BALLS[0]
    X = [
        [1, 0, 0], (1.0, 0.0, 0.0), np.array([1, 0, 0], dtype=np.int8), [1 + 0j, 0, 0], [np.float16(1), 0, 0],
        [decimal.Decimal(1), fractions.Fraction(0), False], ["1", b"0", np.str_(" 0 ")], [np.array(1.0), 0, 0],
    ]  # fmt: skip
    for invalid in ("center", "raise"):
        records, replaced = checked_records(X, ball, invalid)
        assert replaced == 0
        np.testing.assert_array_equal(records, np.tile([1.0, 0.0, 0.0], (8, 1)))
    big = checked_records([[2**70, 0, 0], [1, 0, 0]], ball, "center")
    assert big[1] == 0
    assert big[0][0, 0] == 2.0**70


def test_one_complex_or_masked_record_leaves_the_others_of_its_array():
    ball = BALLS[0]
    X = np.tile([1.0, 0.0, 0.0], (5, 1)).astype(complex)
    X[2, 1] = 1j
    records, replaced = checked_records(X, ball, "center")
    assert replaced == 1
    np.testing.assert_array_equal(records[:, 0], [1, 1, 0, 1, 1])
    masked = np.ma.array(X.real, mask=False)
    masked[4, 0] = np.ma.masked
    records, replaced = checked_records(masked, ball, "center")
    assert replaced == 1
    np.testing.assert_array_equal(records[:, 0], [1, 1, 1, 1, 0])


def test_a_record_that_fails_while_it_is_read_is_refused_without_its_message():
    with pytest.raises(InvalidDataError, match="record at index 1 is not of the shape") as problem:
        checked_records([[0.0, 0.0, 0.0], Hostile()], BALLS[0], "raise")
    assert "of data" not in str(problem.value)
    assert problem.value.__cause__ is None


def test_landmarks_and_pre_shapes_may_stand_side_by_side():
    ball = BALLS[5]
    landmarks = np.random.default_rng(0).standard_normal((4, 3, 2))
    shapes = ball.space.project(landmarks)
    records, replaced = checked_records([landmarks[0], shapes[1], None, landmarks[2], shapes[3]], ball, "center")
    assert replaced == 1
    np.testing.assert_array_equal(records[[0, 1, 3, 4]], shapes)


@pytest.mark.parametrize(
    "X",
    ["text", {1: 2}, {1}, 3.0, None, np.zeros((4, 7)), np.zeros((2, 2, 3)), iter([1])],
    ids=lambda entry: type(entry).__name__,
)
def test_what_is_no_batch_at_all_is_refused(X):
    """Its type and the shape of an array are those of all records together, and no single record's."""
    with pytest.raises(InvalidDataError):
        checked_records(X, BALLS[0], "center")


@pytest.mark.parametrize("invalid", ["raise", "center"])
@pytest.mark.parametrize("ids", [EACH_RECORD, list(range(40))])
def test_an_array_with_the_axes_of_no_record_is_refused_by_its_shape(invalid, ids):
    """Before ids are counted along the wrong axis, and before every record of it counts as the centre."""
    ball = Ball(SPD(3), np.eye(3), 2.0)
    six, turned = np.tile([1.0, 0, 0, 1, 0, 1], (40, 1)), np.tile(np.eye(3)[..., None], 40)
    for X, remedy in ((six, "as_records"), (six.astype(object), "as_records"), (turned, "moveaxis")):
        with pytest.raises(InvalidDataError, match=remedy):
            dpm.private_mean(X, ball, dpm.GDP(1.0), units=ids, invalid=invalid, rng=7)
