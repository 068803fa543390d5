"""Who is who: ids of every kind in every container are refused or counted right, and equal ids always meet."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import data, frechet
from dpmanifold._merged_ids import unit_ids
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError, InvalidDataError
from dpmanifold.manifolds import Euclidean
from dpmanifold.privacy import GDP

pytestmark = pytest.mark.security

BALL = Ball(Euclidean(1), [0.0], 5.0)
SECRET = "gregory-4711"


def object_array(entries):
    array = np.empty(len(entries), dtype=object)
    array[:] = entries
    return array


def series(dtype):
    def make(entries):
        return pytest.importorskip("pandas").Series(object_array(entries), dtype=dtype)

    return make


def string_array(entries):
    if not hasattr(np.dtypes, "StringDType"):
        pytest.skip("numpy 2 has it")
    return np.array(entries, dtype=np.dtypes.StringDType())


def by_pandas(kind):
    def make(entries):
        return getattr(pytest.importorskip("pandas"), kind)(object_array(entries))

    return make


def arrow(entries):
    return pytest.importorskip("pyarrow").array(entries)


PLAIN = {
    "list": list,
    "tuple": tuple,
    "deque": collections.deque,
    "object array": object_array,
    "Series of objects": series("object"),
}
OF_TEXT = {
    **PLAIN,
    "array": np.array,
    "bytes": lambda entries: np.array([entry.encode() for entry in entries]),
    "StringDType": string_array,
    "Series": series(None),
    "Series of strings": series("string"),
    "Series of arrow strings": series("string[pyarrow]"),
    "Series of categories": series("category"),
    "Index": by_pandas("Index"),
    "Categorical": by_pandas("Categorical"),
    "arrow": arrow,
    "arrow chunks": lambda entries: pytest.importorskip("pyarrow").chunked_array([entries[:2], entries[2:]]),
    "arrow dictionary": lambda entries: arrow(entries).dictionary_encode(),
}
OF_NUMBERS = {
    **PLAIN,
    "array": np.array,
    "small array": lambda entries: np.array(entries, dtype=np.int8),
    "unsigned array": lambda entries: np.array(entries, dtype=np.uint64),
    "whole floats": lambda entries: np.array(entries, dtype=float),
    "list of whole floats": lambda entries: [float(entry) for entry in entries],
    "list of numpy's": lambda entries: list(np.array(entries)),
    "list of both": lambda entries: [float(entry) if entry % 2 else entry for entry in entries],
    "Series": series("int64"),
    "Series with room for gaps": series("Int64"),
    "Series of floats": series("float64"),
    "Series of Float64": series("Float64"),
    "Series of arrow numbers": series("int64[pyarrow]"),
    "Series of categories": series("category"),
    "Index": by_pandas("Index"),
    "arrow": arrow,
    "memory view": lambda entries: np.array(entries).data,
    "masked, none missing": lambda entries: np.ma.array(entries, mask=[False] * len(entries)),
}


@pytest.mark.parametrize("kind", OF_TEXT)
def test_text_is_counted_right_in_every_container(kind):
    found = unit_ids(OF_TEXT[kind](["bob", "ann", "bob", "Ann", "007"]), 5)
    assert list(found.names) == ["007", "Ann", "ann", "bob"]
    assert found.group.tolist() == [3, 2, 3, 1, 0]


@pytest.mark.parametrize("kind", OF_NUMBERS)
def test_numbers_are_counted_right_in_every_container(kind):
    found = unit_ids(OF_NUMBERS[kind]([7, 12, 7, 3, 0]), 5)
    assert list(found.names) == [0, 3, 7, 12]
    assert found.group.tolist() == [2, 3, 2, 1, 0]


class Answer(enum.IntEnum):
    FIRST = 1
    SECOND = 2


class Word(str):
    """Text that is never equal to itself and hashes as it likes: grouped as the text it is all the same."""

    def __eq__(self, other):
        return False

    def __hash__(self):
        return id(self)


class Number(int):
    """A number that does not say which."""

    def __int__(self):
        raise RuntimeError(SECRET)

    __index__ = __float__ = __eq__ = __hash__ = __int__


def test_numbers_of_any_size_and_subclasses_are_grouped_by_value():
    assert list(unit_ids([2**70, 1, 2**70], 3).names) == [1, 2**70]
    assert list(unit_ids([Answer.FIRST, 1, Answer.SECOND], 3).names) == [1, 2]
    assert list(unit_ids([Word("a"), Word("a"), "b"], 3).names) == ["a", "b"]
    assert list(unit_ids([Number(7), Number(7), 3], 3).names) == [3, 7]
    assert list(unit_ids(np.array([2**63, 1, 2**63], dtype=np.uint64), 3).names) == [1, 2**63]
    assert list(unit_ids([-0.0, 0, 1.0], 3).names) == [0, 1]


MISSING = [None, float("nan"), np.float32("nan"), np.datetime64("NaT", "s"), decimal.Decimal("nan")]
WORDS = ["", " ", "\t", "NA", "nan", "NaN", "NULL", "null", "None", " na ", "n/a", "<NA>", "NaT"]


@pytest.mark.parametrize("container", PLAIN)
@pytest.mark.parametrize("others", [["a", "a", "b"], [1, 1, 2], [1.0, 1.0, 2.0], [np.int64(1), 1, 2]], ids=str)
@pytest.mark.parametrize("missing", MISSING, ids=repr)
def test_a_missing_id_is_refused_by_its_index(container, others, missing):
    refused(PLAIN[container]([*others, missing]), says=["missing id at index 3"])


@pytest.mark.parametrize("container", [name for name in OF_TEXT if name not in ("bytes",)])
@pytest.mark.parametrize("word", WORDS, ids=repr)
def test_a_word_for_missing_is_refused_by_its_index(container, word):
    refused(OF_TEXT[container]([SECRET, SECRET, word, "b"]), says=["missing id at index 2"])


@pytest.mark.parametrize("dtype", ["object", "string", "string[pyarrow]", "category", None, "str"], ids=str)
def test_gaps_in_pandas_text_are_refused(dtype):
    pandas = pytest.importorskip("pandas")
    for gap in (None, np.nan, pandas.NA, pandas.NaT):
        refused(pandas.Series([SECRET, gap, "b"], dtype=dtype), says=["missing id at index 1"])
    refused(["a", pandas.NA], n=2, says=["missing id at index 1"])
    refused(object_array([1, 2, pandas.NaT]), says=["missing id at index 2"])


@pytest.mark.parametrize("dtype", ["float64", "Int64", "int64[pyarrow]", "category", "object"])
def test_gaps_in_pandas_numbers_are_refused(dtype):
    pandas = pytest.importorskip("pandas")
    refused(pandas.Series([1, None, 2], dtype=dtype), says=["missing id at index 1"])


def test_gaps_in_arrow_arrays_are_refused():
    pyarrow = pytest.importorskip("pyarrow")
    refused(pyarrow.array([1, None, 2]), says=["missing id at index 1"])
    refused(pyarrow.array(["a", None, "b"]), says=["missing id at index 1"])
    refused(pyarrow.array(["a", None, "b"]).dictionary_encode(), says=["missing id at index 1"])


@pytest.mark.parametrize("container", PLAIN)
@pytest.mark.parametrize(
    ("ids", "says"),
    [
        ([1, "01", 2, "02"], "one kind"),
        (["1", 1, "1", 1], "one kind"),
        (["a", b"a", "a", b"a"], "one kind"),
        ([1.5, "a", "a", "a"], "one kind"),
        ([True, False, True, 2], "a bool at index 0"),
        ([1, 2, np.bool_(True), 2], "index 2"),
        ([frozenset("ab"), frozenset("c"), frozenset("ba"), frozenset("c")], "a frozenset at index 0"),
        ([("a", 1), ("a", 1), ("b", 1), ("b", 1)], "a tuple at index 0"),
        ([1 + 0j, 1, 2, 3], "a complex at index 0"),
        ([decimal.Decimal(1), 1, 2, 3], "index 0"),
        ([datetime.date(2020, 1, 1)] * 4, "a date at index 0"),
        ([np.datetime64("2020-01-01")] * 4, "index 0"),
        ([np.timedelta64(3, "D")] * 4, "index 0"),
        ([object(), 1, 2, 3], "an object at index 0"),
        ([1.0, 2.0, 2.5, 3.0], "index 2"),
        ([1.0, 2.0, float("inf"), 3.0], "index 2"),
        ([1, 2, 2.0**53, 2.0**53 + 2], "index 2"),
        ([1, 2, np.float32(2**24), 5], "index 2"),
        (["7", "8", "7 ", "8"], "index 2 that differs from an earlier one only in blanks"),
        (["rené", "x", "rene\u0301", "x"], "index 2 that differs from an earlier one only in blanks"),
        ([b"a", b"\xff", b"c", b"d"], "index 1 that are not UTF-8"),
    ],
    ids=lambda entry: entry if isinstance(entry, str) else "ids",
)
def test_ids_that_leave_doubt_are_refused(container, ids, says):
    refused(PLAIN[container](ids), n=4, says=says)


UNSEEN = {
    "byte order mark": ("ann", "\ufeffann"),
    "zero width space": ("ann", "an\u200bn"),
    "zero width joiner": ("ann", "ann\u200d"),
    "soft hyphen": ("annmarie", "ann\u00admarie"),
    "direction mark": ("ann", "\u200eann"),
    "NUL": ("ann", "ann\0"),
    "NUL within": ("ann", "a\0nn"),
    "two blanks": ("ann b", "ann  b"),
    "tab": ("ann b", "ann\tb"),
    "no-break space": ("ann b", "ann\u00a0b"),
    "ideographic space": ("ann b", "ann\u3000b"),
    "zero width between blanks": ("ann b", "ann \u200b b"),
    "accent apart": ("ren\u00e9", "rene\u0301"),
    "zero width before an accent": ("ren\u00e9", "rene\u200b\u0301"),
    "full width": ("ann7", "\uff41\uff4e\uff4e\uff17"),
    "ligature": ("fin", "\ufb01n"),
    "decimal point": ("7", "7.0"),
    "decimal point alone": ("7", "7."),
    "decimal points": ("7.0", "7.00"),
    "negative": ("-7", "-7.0"),
    "decimal point in full width": ("7", "\uff17.0"),
}


@pytest.mark.parametrize("container", [*PLAIN, "arrow", "Series of strings"])
@pytest.mark.parametrize("pair", UNSEEN)
def test_spellings_that_look_the_same_are_refused_by_their_index(container, pair):
    make = {**PLAIN, "arrow": arrow, "Series of strings": series("string")}[container]
    one, other = UNSEEN[pair]
    for entries in ([one, SECRET, other, "b"], [other, SECRET, one, one]):
        with pytest.raises(InvalidArgumentError, match="units has an id at index 2 that differs from an earlier one"):
            unit_ids(make(entries), 4)
        assert len(unit_ids(make([other, SECRET, other, "b"]), 4).names) == 3  # spelt in one way, it is an id


def test_every_statistic_refuses_spellings_that_look_the_same():
    refused(["ann", SECRET, "ann\u200b"], says="index 2 that differs")
    refused([b"ann", b"b", b"\xef\xbb\xbfann"], says="index 2 that differs")


@pytest.mark.parametrize("pair", UNSEEN)
def test_one_person_in_both_groups_is_found_across_spellings(pair):
    one, other = UNSEEN[pair]
    first, second = unit_ids([one, "x"], 2), unit_ids([other, "y"], 2)
    assert first.shares_a_unit(second)
    assert second.shares_a_unit(first)
    X = np.zeros((2, 1))
    with pytest.raises(InvalidArgumentError, match="overlap"):
        dpm.private_two_sample_test(X, X, BALL, GDP(1.0), units=([one, "x"], [other, "y"]))


def test_unseen_characters_do_not_hide_a_number_from_the_other_group():
    assert unit_ids([7, 8], 2).shares_a_unit(unit_ids(["x", "\ufeff007"], 2))
    assert unit_ids(["7\u200b"], 1).shares_a_unit(unit_ids([7], 1))


@pytest.mark.parametrize(
    ("one", "other"),
    [("Bob", "bob"), ("7", "07"), ("7", "+7"), ("07.0", "7"), ("1.1", "1.10"), ("a b", "ab"), ("a-b", "ab"),
     ("é", "e"), ("7", "70"), ("v7.0", "v7"), ("a\tb", "ab")],
)  # fmt: skip
def test_what_can_be_told_apart_is_two_people(one, other):
    assert len(unit_ids([one, other, one], 3).names) == 2
    assert not unit_ids([one], 1).shares_a_unit(unit_ids([other], 1))


@pytest.mark.parametrize("word", ["\u200b", "\ufeff", "\0", "\u200bNA", "n\u00ada", "\uff2e\uff21"], ids=ascii)
def test_a_word_for_missing_is_seen_through_what_is_not_seen(word):
    refused([SECRET, "b", word], says="missing id at index 2")


def test_a_nul_at_the_end_is_lost_in_arrays_of_text_and_one_person_stays_one():
    refused(["a\0", "a"], says="index 1 that differs")
    assert list(unit_ids(np.array(["a\0", "a"]), 2).names) == ["a"]


@pytest.mark.parametrize(
    "units",
    [
        "abc", b"abc", {1, 2, 3}, {"a": 1, "b": 2, "c": 3}, iter([1, 2, 3]), (i for i in range(3)), 3, object(),
        np.array(["2020-01-01"] * 3, dtype="M8[D]"), np.ones(3, dtype=bool), np.ones(3, dtype=complex),
        np.zeros(3, dtype=[("a", int)]), np.zeros(3, dtype="m8[s]"), np.ones((3, 1)), np.array(3),
        [[1], [2], [3]], [1, 2], [], list, np.ma.array([1, 2, 3], mask=[0, 0, 1]), EnvironmentError,
    ],
    ids=lambda units: type(units).__name__,
)  # fmt: skip
def test_what_is_no_list_of_ids_is_refused(units):
    refused(units, n=3)


class Stubborn:
    """A container whose conversion fails with a message that quotes data."""

    def __len__(self):
        return 3

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError(SECRET)


def test_a_container_that_fails_says_nothing_of_its_content():
    refused(Stubborn(), says="cannot be read")


def refused(units, n=None, says=()):
    """Every way in refuses it, with nothing but an error of the argument that names it and quotes no id."""
    count = len(units) if n is None else n
    X = np.zeros((count, 1))
    ways = [
        lambda: unit_ids(units, count),
        lambda: frechet.mean(X, BALL, units=units),
        lambda: frechet.unit_means(X, BALL, units=units),
        lambda: dpm.private_mean(X, BALL, GDP(1.0), units=units),
        lambda: dpm.private_class_means(X, [0] * count, BALL, GDP(1.0), units=units, classes=[0]),
        lambda: dpm.private_two_sample_test(X, X, BALL, GDP(1.0), units=(units, np.arange(count) + 10**6)),
    ]
    if type(units).__name__ in ("generator", "list_iterator") or not hasattr(units, "__len__"):
        ways = ways[:1]
    for way in ways:
        with pytest.raises(InvalidArgumentError) as problem:
            way()
        assert problem.type is InvalidArgumentError
        message = str(problem.value)
        assert "units" in message
        assert SECRET not in message
        for part in [says] if isinstance(says, str) else says:
            assert part in message, message


# -------------------------------------------------------------------- what the ids are for


def test_equal_ids_meet_whatever_their_order():
    """Sets are ordered by inclusion only: sorted, equal ones stay apart, and 20 people would count as hundreds."""
    people = [frozenset((f"p{i}", f"q{i % 7}")) for i in range(20)]
    ids = [people[i] for i in np.random.default_rng(0).integers(0, 20, 400)]
    apart = len(np.unique(np.array(ids, dtype=object)))
    assert apart > 20, "the wrong variant would have been harmless"
    refused(ids, says="a frozenset at index 0")
    as_text = [" ".join(sorted(person)) for person in ids]
    assert len(unit_ids(as_text, 400).names) == 20


def test_every_statistic_counts_people_and_not_spellings():
    X = np.linspace(-1, 1, 40)[:, None]
    person = [f"p{i % 8}" for i in range(40)]
    for units in (person, tuple(person), np.array(person), object_array(person)):
        assert dpm.private_mean(X, BALL, GDP(1.0), units=units).n == 8
        assert dpm.private_region(X, BALL, GDP(1.0), units=units).n == 8
        assert dpm.private_variance(X, BALL, GDP(1.0), units=units).n == 8
        by_class = dpm.private_class_means(X, [0, 1] * 20, BALL, GDP(1.0), units=units, classes=[0, 1])
        assert [release.n for release in by_class.values()] == [4, 4]
        np.testing.assert_array_equal(
            frechet.unit_means(X, BALL, units=units), frechet.unit_means(X, BALL, units=np.arange(40) % 8)
        )


@pytest.mark.parametrize(
    "second", [["101", "8"], [101.0, 8.0], [b"101", b"8"], [" 101", "8"], ["0101", "8"], ["x", "101.0"]], ids=str
)
def test_one_person_in_both_groups_is_found_across_kinds(second):
    X = np.zeros((2, 1))
    with pytest.raises(InvalidArgumentError, match="overlap"):
        dpm.private_two_sample_test(X, X, BALL, GDP(1.0), units=([101, 102], second))
    assert dpm.private_two_sample_test(X, X, BALL, GDP(1.0), units=([101, 102], [7, 8])).ball == BALL


def test_each_record_may_be_said_in_words():
    X = np.linspace(-1, 1, 40)[:, None]
    for records in (X, X.tolist()):
        assert dpm.private_mean(records, BALL, GDP(1.0), units="each-record").unit == "record"
        assert dpm.private_region(records, BALL, GDP(1.0), units="each-record").n == 40
        assert dpm.private_variance_interval(records, BALL, GDP(1.0), units="each-record").n == 40
        assert dpm.private_variance(records, BALL, GDP(1.0), units="each-record").n == 40
        assert dpm.private_ball(records, BALL, GDP(1.0), units="each-record").n == 40
        dpm.private_two_sample_test(records, records, BALL, GDP(1.0), units="each-record")
        means = dpm.private_class_means(records, [0, 1] * 20, BALL, GDP(1.0), units="each-record", classes=[0, 1])
        assert means[0].n == 20
    release = dpm.private_mean(X, BALL, GDP(1.0), units="each-record")
    assert dpm.compare(release, X, units="each-record", public=True).clipped == 0.0


# -------------------------------------------------------------------- columns of files


@pytest.mark.parametrize("word", ["", " ", "NA", "NaN", "nan", "null", "None", "N/A", "<NA>", '" NA "'])
@pytest.mark.parametrize("others", [("a", "b"), ("1", "2")])
def test_missing_ids_in_a_csv_are_refused_by_their_line(tmp_path, word, others):
    path = tmp_path / "people.csv"
    path.write_text(f"person,x1\n{others[0]},1\n{word},2\n{others[1]},3\n")
    with pytest.raises(InvalidDataError, match=r"people\.csv: line 3 has nothing, or a word such as NA.*'person'"):
        data.load_column(path, "person")


@pytest.mark.parametrize("word", [None, "", "NA", "NaN", " null "])
def test_missing_ids_in_parquet_are_refused_by_their_row(tmp_path, word):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"person": ["a", "b", word]}), tmp_path / "people.parquet")
    with pytest.raises(InvalidDataError, match=r"row 2 .*'person'"):
        data.load_column(tmp_path / "people.parquet", "person")


@pytest.mark.parametrize("pair", ["zero width space", "soft hyphen", "two blanks", "decimal point"])
def test_spellings_that_look_the_same_in_a_csv_are_refused(tmp_path, pair):
    path = tmp_path / "people.csv"
    path.write_text("person,x1\n{},1\nb,2\n{},3\n".format(*UNSEEN[pair]), encoding="utf-8")
    refused(data.load_column(path, "person"), says="index 2 that differs")


def test_a_class_may_be_called_none(tmp_path):
    path = tmp_path / "findings.csv"
    path.write_text("finding\nnone\nNA\ntumour\n")
    assert data.load_column(path, "finding", labels=True).tolist() == ["none", "NA", "tumour"]
    path.write_text("finding\nnone\n \ntumour\n")
    assert data.load_column(path, "finding", labels=True).tolist() == ["none", "", "tumour"]  # no class, and its own


def test_missing_ids_in_a_tps_file_are_refused_by_their_line(tmp_path):
    path = tmp_path / "flies.tps"
    path.write_text("LM=3\n0 0\n1 0\n0 1\nID=a\nLM=3\n0 0\n2 0\n0 2\nID=NA\n")
    with pytest.raises(InvalidDataError, match="line 10"):
        data.load_landmarks(path)


def test_ids_stored_by_numpy_are_refused_by_their_index(tmp_path):
    np.save(tmp_path / "people.npy", np.array(["a", "NA", "b"]))
    refused(data.load_column(tmp_path / "people.npy"), says="missing id at index 1")
    np.save(tmp_path / "people.npy", np.array([1.0, 2.0, np.nan]))
    refused(data.load_column(tmp_path / "people.npy"), says="missing id at index 2")


def test_what_is_wrong_with_many_floats_is_said_of_all_of_them():
    ids = np.arange(150_000.0)
    ids[0] = ids[-1] = np.nan
    refused(ids, n=len(ids), says=["missing id at index 0 (and 1 more)"])
    ids[0] = 0.5
    refused(ids, n=len(ids), says=["missing id at index 149999"])


@pytest.mark.parametrize(
    "ids", [["ann", None, "bob"], ["ann", "bob ", "bob"], ["ann", 7, "bob"], np.array([1.0, 0.5, 2.0])]
)
def test_what_is_wrong_is_said_once(ids):
    """A traceback has one error, and none about parts that nobody has made."""
    with pytest.raises(InvalidArgumentError) as caught:
        unit_ids(ids, 3)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
