"""One person's cell is the message, and everybody's records are read by it: attacks on how data are read.

Each has a data set and a neighbor that differ in one person's record. Reading by the type of a whole container moves
everybody's records, and 300 releases at GDP(0.1) are told apart without an error; a reader of cells leaves the attacker
with what the guarantee allows, 52 % of the guesses.
"""

import dask.dataframe
import numpy as np
import pandas
import polars
import pyarrow
import pytest
from scipy import stats

import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.estimators import PrivateLDA
from dpmanifold.stats.marks import checked_numbers

pytestmark = pytest.mark.security

N, RUNS, MU = 500, 300, 0.1
PLANE = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 4.0)
SHAPES = dpm.KendallShapes(3)
SHAPE_BALL = dpm.Ball(SHAPES, SHAPES.origin, 0.3)
RNG = np.random.default_rng(5)
POINTS = np.array([2.0, -1.0]) + 0.3 * RNG.normal(size=(N, 2))
AGES = 20.0 + 60.0 * RNG.random(N)
# With probability 1e-6 an attacker who is right in 52 % of the cases is right more often than this.
MOST_RIGHT = stats.binom.isf(1e-6, RUNS, stats.norm.cdf(MU / 2))


def singles(odd):
    """Numbers of single precision, as a database hands them over, one of which is odd."""
    rows = [[np.float32(x) for x in row] for row in POINTS]
    return np.array([*rows[:-1], [rows[-1][0], odd]], dtype=object if odd is None else None)


def shapes(odd):
    """Complex pre-shapes, in one of which an entry is missing."""
    normal = np.random.default_rng(6).normal(size=(N, 2))
    points = SHAPES.exp_coords(SHAPES.origin, 0.05 * normal + [0.15, 0.0]).astype(object)
    points[-1, 0] = points[-1, 0] if odd is not None else None
    return points if odd is None else points.astype(complex)


def frame(odd, column):
    made = pandas.DataFrame({"x": POINTS[:, 0], "y": POINTS[:, 1], "z": -POINTS[:, 0]}).astype({column: object})
    made.loc[N - 1, column] = odd
    return made


def ages(odd):
    return np.array([*AGES[:-1], odd])


def mean(X, ball, seed):
    return dpm.private_mean(X, ball, dpm.GDP(MU), units=dpm.EACH_RECORD, invalid="center", confirm=True, rng=seed).value


def regression(covariate, _, seed):
    found = dpm.private_regression(
        POINTS, covariate, PLANE, dpm.GDP(MU), covariate_range=(20.0, 80.0), units=dpm.EACH_RECORD, refine=False,
        invalid="center", confirm=True, rng=seed,
    )  # fmt: skip
    return found.release.value


ATTACKS = {
    "text in another column": (mean, PLANE, *(data.from_frame(frame("a", c), ["x", "y"]) for c in "yz")),
    "single precision and a gap": (mean, PLANE, singles(np.float32(0.0)), singles(None)),
    "pre-shapes and a gap": (mean, SHAPE_BALL, shapes(0), shapes(None)),
    "a complex covariate": (regression, PLANE, ages(20.0), ages(20.0 + 1j)),
}


def rightly_guessed(ask, ball, one, two, runs=RUNS):
    """How many of as many releases of both sides an attacker assigns rightly who has seen as many before."""
    seen = [
        np.array([np.ravel(ask(X, ball, 1000 * side + seed)).view(float) for seed in range(runs)])
        for side, X in enumerate((one, two))
    ]
    learned = [releases[: runs // 2] for releases in seen]
    direction = learned[1].mean(axis=0) - learned[0].mean(axis=0)
    middle = (learned[1].mean(axis=0) + learned[0].mean(axis=0)) @ direction / 2
    return sum(int(np.sum((tried[runs // 2 :] @ direction > middle) == side)) for side, tried in enumerate(seen))


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attacker_is_right_no_more_often_than_the_guarantee_allows(attack):
    assert rightly_guessed(*ATTACKS[attack]) <= MOST_RIGHT


def test_the_attack_sees_a_reader_that_goes_by_the_type_of_all(monkeypatch):
    """What it must reject: one gap makes objects of an array, and objects are not numbers."""
    monkeypatch.setattr(
        "dpmanifold._cells.real_cell", lambda cell: float(cell) if isinstance(cell, (int, float)) else np.nan
    )
    monkeypatch.setitem(dpm._cells._READERS, "f", dpm._cells.real_cell)
    assert rightly_guessed(*ATTACKS["single precision and a gap"], runs=40) == 40


def test_columns_are_refused_whatever_they_hold():
    """By default all three columns are meant, and a record has two numbers: nobody's cell changes that."""
    said = set()
    for made in (frame(0.5, "y"), frame("a", "y"), frame("a", "z"), frame(None, "x")):
        with pytest.raises(InvalidArgumentError, match=r"columns is needed: .*'x', 'y', 'z'") as refused:
            dpm.private_mean(made, PLANE, dpm.GDP(MU), units=dpm.EACH_RECORD)
        said.add(str(refused.value))
    assert len(said) == 1


# -------------------------------------------------------------------- rows that are paired


def test_labelled_objects_whose_labels_differ_are_refused():
    """One person has 60 records and 59 have one: in another order they are other people's."""
    people = pandas.DataFrame({"v": RNG.normal(size=119), "person": [0] * 60 + list(range(1, 60))})
    ball = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    mixed = people[["v"]].sample(frac=1, random_state=0)
    budget = dpm.Budget(dpm.GDP(1.0))
    with pytest.raises(InvalidArgumentError, match=r"units has the row labels.*units\.loc\[X\.index\]"):
        dpm.private_mean(mixed, ball, dpm.GDP(1.0), units=people.person, budget=budget)
    with pytest.raises(InvalidArgumentError, match="units has other row labels than X"):
        dpm.private_mean(people[["v"]], ball, dpm.GDP(1.0), units=people.person.set_axis(range(5, 124)), budget=budget)
    two = pandas.Series(people.person % 2, index=people.index)
    others = two[::-1]
    asked = {"units": people.person, "classes": [0, 1], "budget": budget}
    for ask in (dpm.private_class_means, dpm.private_k_sample_test, dpm.private_lda):
        with pytest.raises(InvalidArgumentError, match="labels has the row labels"):
            ask(people[["v"]], others, ball, dpm.GDP(1.0), **asked)
        with pytest.raises(InvalidArgumentError, match="units has the row labels"):
            ask(people[["v"]].to_numpy(), others, ball, dpm.GDP(1.0), **asked)
    with pytest.raises(InvalidArgumentError, match="covariate has the row labels"):
        dpm.private_regression(
            data.from_frame(people, "v"), others, ball, dpm.GDP(1.0), covariate_range=(0, 1), units="person"
        )
    line = dpm.Euclidean(1)
    pair = dpm.Ball(dpm.Product([line, line]), np.zeros((2, 1)), 1.0)
    parts = (mixed, mixed)
    with pytest.raises(InvalidArgumentError, match=r"units has the row labels \(index\) of factor 0 of X"):
        dpm.private_mean(parts, pair, dpm.GDP(1.0), units=people.person, budget=budget)
    with pytest.raises(InvalidArgumentError, match="factor 1 of X has the row labels"):
        dpm.private_mean((mixed, people[["v"]]), pair, dpm.GDP(1.0), units=dpm.EACH_RECORD, budget=budget)
    with pytest.raises(InvalidArgumentError, match="labels has the row labels"):
        dpm.private_k_sample_test(parts, two, pair, dpm.GDP(1.0), **asked | {"units": dpm.EACH_RECORD})
    rows = [row for _, row in mixed.iterrows()]
    with pytest.raises(InvalidArgumentError, match="units has the row labels"):
        dpm.private_mean(rows, ball, dpm.GDP(1.0), units=people.person, budget=budget)
    several = pandas.MultiIndex.from_arrays([people.index, people.index])
    with pytest.raises(InvalidArgumentError, match="units has other row labels than X"):
        dpm.private_mean(people[["v"]], ball, dpm.GDP(1.0), units=people.person.set_axis(several), budget=budget)
    model = PrivateLDA(ball, dpm.GDP(1.0), classes=[0, 1], units="each-record", budget=budget)
    with pytest.raises(InvalidArgumentError, match="y has the row labels"):
        model.fit(people[["v"]], others)
    assert budget.remaining == dpm.GDP(1.0)
    together = dpm.private_mean(mixed, ball, dpm.GDP(1.0), units=people.person.loc[mixed.index], rng=0)
    assert together.n == 60


# -------------------------------------------------------------------- quiet where it should be

QUIET = {"invalid": "center", "confirm": True, "rng": 0}


@pytest.mark.parametrize("odd", ["text", None, 1j], ids=str)
def test_a_factor_of_a_product_may_hold_anything(odd):
    space = dpm.Product([dpm.Euclidean(1)] * 2)
    ball = dpm.Ball(space, np.zeros((2, 1)), 3.0)
    one = POINTS[:, :1].astype(object)
    plain = dpm.private_mean((one, POINTS[:, 1:]), ball, dpm.GDP(1e6), units=dpm.EACH_RECORD, **QUIET)
    one[7, 0] = odd
    found = dpm.private_mean((one, POINTS[:, 1:]), ball, dpm.GDP(1e6), units=dpm.EACH_RECORD, **QUIET)
    assert np.abs(found.value - plain.value).max() < 2 * 6 / N
    with pytest.raises(InvalidDataError, match="index 7"):
        dpm.private_mean((one, POINTS[:, 1:]), ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)


def test_landmarks_may_hold_a_complex_number():
    landmarks = np.random.default_rng(1).normal(size=(40, 3, 2)).astype(complex)
    landmarks[3, 1, 0] += 1j
    ball = dpm.Ball(SHAPES, SHAPES.origin, 0.3)
    found = dpm.private_mean(landmarks, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, **QUIET)
    assert found.n == 40
    with pytest.raises(InvalidDataError, match="index 3"):
        dpm.private_mean(landmarks, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD)


def test_one_label_in_words_leaves_those_in_numbers():
    labels = (np.arange(N) % 2).astype(float)
    other = np.array([*labels[:-1], "1"])
    asked = {"classes": [0, 1], "units": dpm.EACH_RECORD, **QUIET}
    plain, found = (dpm.private_lda(POINTS, y, PLANE, dpm.GDP(1.0), **asked) for y in (labels, other))
    np.testing.assert_array_equal(plain.release.value, found.release.value)
    given = {"classes": [0, 1], "units": "each-record", "public_data": True, "random_state": 0}
    models = [PrivateLDA(PLANE, dpm.GDP(1.0), invalid=how, **given).fit(POINTS, y) for how in ("raise", "center")
              for y in (labels, other)]  # fmt: skip
    for model in models[1:]:
        np.testing.assert_array_equal(model.means_, models[0].means_)


@pytest.mark.parametrize("odd", [None, np.ma.masked, "secret-77", float("nan"), [1], b"\xff"], ids=repr)
def test_no_label_is_shown(odd):
    """scikit-learn prints the labels that it refuses."""
    labels = [*["a", "b"] * (N // 2 - 1), "a", odd]
    model = PrivateLDA(PLANE, dpm.GDP(1.0), classes=["a", "b"], units="each-record", budget=dpm.Budget(dpm.GDP(1.0)))
    with pytest.raises(InvalidDataError, match=rf"index {N - 1} is outside the public classes") as refused:
        model.fit(POINTS, labels)
    assert "secret" not in str(refused.value)
    assert model.set_params(invalid="center").fit(POINTS, labels).release_.n == N


def test_a_masked_covariate_is_missing_and_warns_of_nothing():
    for covariate in ([*AGES[:-1], np.ma.masked], np.ma.array(AGES, mask=np.arange(N) == N - 1)):
        with pytest.raises(InvalidDataError, match=f"record {N - 1}"):
            dpm.private_regression(
                POINTS, covariate, PLANE, dpm.GDP(1.0), covariate_range=(20.0, 80.0), units=dpm.EACH_RECORD
            )
        regression(covariate, None, 0)


def test_one_text_in_a_block_changes_the_type_of_that_block_alone():
    frames = [frame(0.5, "y").iloc[:250], frame("a", "y").iloc[250:]]
    found = dpm.private_mean(
        data.from_blocks(lambda: iter(frames), columns=["x", "y"]), PLANE, dpm.GDP(1.0), units=dpm.EACH_RECORD, **QUIET
    )
    assert found.n == N


# -------------------------------------------------------------------- an attacker's finds

ONE = dpm.Ball(dpm.Euclidean(1), [0.0], 10.0)
TWO_CLASSES = [*["b"] * 20, *["a"] * 19]


@pytest.mark.parametrize("odd", [None, "\ud800", "a\0", 0.5], ids=["None", "surrogate", "NUL", "0.5"])
@pytest.mark.parametrize("kind", ["categories", "objects", "dictionary"])
def test_a_label_of_any_column_leaves_the_others(kind, odd):
    x = [*[1.0] * 20, *[5.0] * 20]
    labels = [*TWO_CLASSES, odd]
    if (odd == "\ud800" and kind != "objects") or (odd == 0.5 and kind == "dictionary"):
        return  # such a column cannot be made
    if odd == "a\0" and kind == "categories":
        return  # to old versions of pandas it is the category "a"
    if kind == "dictionary":
        table = pyarrow.table({"x": x, "label": pyarrow.array(labels).dictionary_encode()})
    else:
        made = pandas.Categorical(labels) if kind == "categories" else pandas.Series(labels, dtype=object)
        table = pandas.DataFrame({"x": x, "label": made})
    found = dpm.private_lda(table, "label", ONE, dpm.GDP(1e6), classes=["b", "a"], units=dpm.EACH_RECORD, **QUIET)
    np.testing.assert_allclose(found.means.ravel(), [25 / 21, 5.0], atol=1e-3)


def test_a_ragged_record_in_an_array_of_objects_leaves_the_others():
    """It takes an axis from all of them: (n, k, 2) becomes (n, k), which are complex pre-shapes by their shape."""
    shapes = dpm.KendallShapes(4)
    ball = dpm.Ball(shapes, shapes.origin, 0.3)
    landmarks = (shapes.to_landmarks(shapes.origin) + 0.05 * RNG.normal(size=(10, 4, 2))).tolist()
    ragged = [*landmarks[:-1], [*landmarks[-1][:3], [1.0]]]
    array = np.array(ragged, dtype=object)
    assert array.shape == (10, 4)
    given = (ragged, array, data.from_blocks(lambda: iter([array])))
    values = [dpm.private_mean(X, ball, dpm.GDP(1.0), units=dpm.EACH_RECORD, **QUIET).value for X in given]
    np.testing.assert_array_equal(values[1], values[0])
    np.testing.assert_array_equal(values[2], values[0])
    matrices = [*[np.eye(2).tolist()] * 9, [[1.0, 0.0], [0.0]]]
    for X, space in (
        (np.array(matrices, dtype=object), dpm.SPD(2)),
        ((np.array(matrices, dtype=object), np.ones((10, 1))), dpm.Product([dpm.SPD(2), dpm.Euclidean(1)])),
    ):
        asked = {"units": dpm.EACH_RECORD, **QUIET}
        assert dpm.private_mean(X, dpm.Ball(space, space.origin, 2.0), dpm.GDP(1.0), **asked).n == 10


def test_numpy_arrays_of_durations_are_refused_as_those_of_text_are():
    """One duration makes durations of all whole numbers."""
    whole = np.array([[10, 20]] * 10).astype("m8[s]")
    with pytest.raises(InvalidDataError, match="one of text or dates"):
        dpm.private_mean(whole, PLANE, dpm.GDP(1.0), units=dpm.EACH_RECORD, **QUIET)
    with pytest.raises(InvalidArgumentError, match="an array of dates"):
        dpm.private_lda(POINTS[:10], whole[:, 0], PLANE, dpm.GDP(1.0), classes=[1, 10], units=dpm.EACH_RECORD, **QUIET)


def test_a_column_of_covariates_that_lost_its_axis_is_read_as_before():
    assert checked_numbers(np.array([[0.1], [0.2], [0.3]], dtype=object), 3, "center")[0].tolist() == [0.1, 0.2, 0.3]
    ragged = checked_numbers(np.array([[0.1], [0.2], [1.0, 2.0]], dtype=object), 3, "center")[0]
    np.testing.assert_array_equal(ragged, [0.1, 0.2, np.nan])
    words = checked_numbers(polars.Series([0.1, 0.2, "x"], strict=False), 3, "center")[0]
    np.testing.assert_array_equal(words, [0.1, 0.2, np.nan])


def test_truth_values_that_became_text_are_read_as_before():
    frame = pandas.DataFrame([[True, 2.0], [True, 3.0]] * 5 + [[None, 1.0]], columns=["a", "b"])
    asked = {"units": dpm.EACH_RECORD, **QUIET}
    one = dpm.private_mean(frame, PLANE, dpm.GDP(1.0), **asked)
    other = dpm.private_mean(dask.dataframe.from_pandas(frame, npartitions=1), PLANE, dpm.GDP(1.0), **asked)
    np.testing.assert_array_equal(one.value, other.value)


def test_a_dictionary_among_labels_or_parts_of_polars_is_refused_as_a_whole():
    """polars makes structs of everybody's entries, and drops them."""
    labels = polars.Series([0, 1] * 20 + [{"a": 1}], strict=False)
    X = np.zeros((41, 1))
    line = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    asked = {"units": dpm.EACH_RECORD, **QUIET}
    with pytest.raises(InvalidArgumentError, match=r"labels is of a type.*Struct"):
        dpm.private_lda(X, labels, line, dpm.GDP(1.0), classes=[0, 1], **asked)
    pair = dpm.Ball(dpm.Product([dpm.Euclidean(1)] * 2), np.zeros((2, 1)), 1.0)
    with pytest.raises(InvalidArgumentError, match=r"factor 0 of X is of a type.*Struct"):
        dpm.private_mean((polars.DataFrame({"x": labels}), X), pair, dpm.GDP(1.0), **asked)


def test_an_integer_that_numpy_does_not_have_leaves_the_others():
    whole = [0, 1] * 20 + [2**70]
    try:
        frame = polars.DataFrame({"x": [0.1] * 41, "which": whole}, strict=False)
    except OverflowError:
        pytest.skip("this polars has no integers so large")
    line = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    asked = {"units": dpm.EACH_RECORD, **QUIET}
    for X, labels in ((data.from_frame(frame, "x"), "which"), (np.full((41, 1), 0.1), frame["which"])):
        found = dpm.private_lda(X, labels, line, dpm.GDP(50.0), classes=[0, 1], **asked)
        assert abs(found.units_by_class[0] - 21) < 5, "the odd label counts as the first class"
        if isinstance(labels, str):
            dpm.private_regression(X, labels, line, dpm.GDP(1.0), covariate_range=(0, 1), **asked)


def test_lists_with_an_odd_cell_are_read_row_by_row():
    found = data.from_coordinates([[10.0, 20.0], [30.0, "x"], [1.0]], "lonlat")
    assert np.isnan(found).any(axis=1).tolist() == [False, True, True]
    assert found[0].tobytes() == data.from_coordinates([[10.0, 20.0]], "lonlat")[0].tobytes()
    records = data.as_records([[1, 0, 1], [1, None, 1]], dpm.SPD(2))
    assert np.isnan(records).any(axis=(1, 2)).tolist() == [False, True]
