"""CSV by pyarrow and line by line: the same numbers to the last bit, the same ids, the same refusals."""

import gzip
import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import dpmanifold.data.csv_table as csv_chunks
import dpmanifold.data.csv_table as csv_table
from dpmanifold import data
from dpmanifold._ids import MISSING_WORDS
from dpmanifold.data.csv_table import Doubt, fast_rows
from dpmanifold.data.table_files import text_entries
from dpmanifold.errors import DPManifoldError


def careful_only(*arguments):
    raise Doubt
    yield


def said(function, *arguments, **options):
    """Return what a function says, bit by bit, or why it refuses."""
    try:
        found = function(*arguments, **options)
    except DPManifoldError as problem:
        return str(problem)
    return found.shape, found.dtype.kind, [repr(entry) for entry in found.ravel().tolist()]


def outcome(path, columns, name):
    """Return what a file says about numbers and ids, apart and together."""
    try:
        kept = data.open_file(path)
    except DPManifoldError as problem:
        return [str(problem)]
    kept.keep(name)
    together = [said(kept.array, columns=columns), said(kept.column, name)]
    return [said(data.load_array, path, columns=columns), said(data.load_column, path, name), *together]


def both(monkeypatch_context, path, columns=("x", "y"), name="id"):
    fast = outcome(path, list(columns), name)
    with monkeypatch_context() as patch:
        patch.setattr(csv_table, "fast_rows", careful_only)
        careful = outcome(path, list(columns), name)
    return fast, careful


NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.sampled_from(
        ["1e400", "-1e-400", "+1.5", "1.", ".5", "1_000", "nan(1)", "-nan", "+nan", "0x1p3", "1d5", "٣", "1e", "inf",
         "-Infinity", " 2.5 ", "\t3", "\x0b4", "4\u00a0", "5,5", "true", "1 2", "0" * 400 + "1", "9" * 400]
    ),
    st.tuples(
        st.sampled_from(["", "", " "]), st.sampled_from(sorted(MISSING_WORDS)), st.sampled_from([str.upper, str.title])
    ).map(lambda parts: parts[0] + parts[2](parts[1])),
)  # fmt: skip
WORDS = st.one_of(
    st.integers(-20, 20).map(str),
    st.sampled_from(["ann", " bob ", "007", "-0", "+7", "é", "a\x00b", "\u2028", "sub 1", "NA", "none", "", " ", '"']),
    st.text(alphabet='ab"\n\r,;\t é', max_size=4),
)  # fmt: skip


@st.composite
def tables(draw):
    """Lines of a small table, most of them well formed."""
    between, end = draw(st.sampled_from([",", ";", "\t"])), draw(st.sampled_from(["\n", "\r\n", "\n", "\r"]))

    def cell(text, quote):
        return '"' + text.replace('"', '""') + '"' if quote else text

    lines = [between.join(["id", "x", "y", "note"])]
    for _ in range(draw(st.integers(0, 5))):
        cells = [draw(WORDS), draw(NUMBERS), draw(NUMBERS), draw(WORDS)]
        lines.append(between.join(cell(text, draw(st.integers(0, 3)) == 0) for text in cells))
    odd = draw(st.sampled_from([None] * 6 + ["blank", "ragged", "quote", "spaces"]))
    if odd is not None:
        extra = {
            "blank": "",
            "ragged": between.join(["1", "2"]),
            "quote": f'"a"b{between}1{between}2{between}c',
            "spaces": "  ",
        }
        lines.insert(draw(st.integers(0, len(lines))), extra[odd])
    text = end.join(lines) + end * draw(st.integers(0, 3))
    raw = draw(st.sampled_from([b"", b"", b"\xef\xbb\xbf"])) + text.encode()
    return raw + draw(st.sampled_from([b""] * 8 + [b"\xff", b"\x00", b'"']))


RELAXED = {"suppress_health_check": list(HealthCheck), "deadline": None}
SMALL = given(tables(), st.sampled_from([17, 40, 2**20]), st.booleans())


def agree(folder, monkeypatch, raw, chunk, packed):
    path = folder / ("a.csv.gz" if packed else "a.csv")
    path.write_bytes(gzip.compress(raw) if packed else raw)
    with monkeypatch.context() as patch:
        patch.setattr(csv_chunks, "_CHUNK", chunk)
        fast, careful = both(monkeypatch.context, path)
    assert fast == careful


@pytest.mark.security
@settings(max_examples=100, **RELAXED)
@SMALL
def test_both_ways_agree_on_any_small_table(tmp_path, monkeypatch, raw, chunk, packed):
    agree(tmp_path, monkeypatch, raw, chunk, packed)


@pytest.mark.slow  # as above, with fifteen times as many tables
@settings(max_examples=1500, **RELAXED)
@SMALL
def test_both_ways_agree_on_many_small_tables(tmp_path, monkeypatch, raw, chunk, packed):
    agree(tmp_path, monkeypatch, raw, chunk, packed)


@pytest.mark.security
@settings(max_examples=50, **RELAXED)
@given(st.lists(st.one_of(NUMBERS, st.just("")), max_size=6), st.sampled_from(["\n", "\r\n"]))
def test_both_ways_agree_on_a_single_column(tmp_path, monkeypatch, entries, end):
    path = tmp_path / "a.csv"
    path.write_bytes((end.join(["x", *entries]) + end).encode())
    fast, careful = both(monkeypatch.context, path, ["x"], "x")
    assert fast == careful


@pytest.mark.security
def test_the_comparison_would_notice_a_reader_that_takes_more(tmp_path, monkeypatch):
    """Without the look at quotes, pyarrow takes what Python's reader refuses."""
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,x,y,note\n"a"b,1,2,c\n')
    fast, careful = both(monkeypatch.context, path)
    assert fast == careful
    monkeypatch.setattr(csv_chunks, "_quotes_match", lambda *arguments: True)
    fast, careful = both(monkeypatch.context, path)
    assert fast != careful


@pytest.mark.security
@pytest.mark.parametrize(
    "raw",
    [
        b'id,x,y\n"ann",1,2\n"b ""o"" b",3,\n',
        b"id;x;y\r\nann;1;NA\r\nbob; -2.5;1e-3\r\n\r\n\r\n",
        b"id,x,y\nann,1,2",
        b'id,x,y\n"a, b",1,2\n"new\nline",3,4\n',
        b"id,x,y\nann,1_000,abc\nbob,nan(1),true\nbob,,\xd9\xa3\n",
    ],
)
def test_usual_files_leave_no_doubt(tmp_path, monkeypatch, raw):
    """Slow would not be wrong, but nobody would see it."""
    path = tmp_path / "a.csv"
    path.write_bytes(raw)

    def no_careful(*arguments):
        pytest.fail("the careful reader was asked")

    monkeypatch.setattr(csv_table.CsvTable, "_careful_rows", no_careful)
    assert len(data.load_array(path, columns=["x", "y"])) == len(data.load_column(path, "id")) > 0


@pytest.mark.security
def test_the_careful_reader_goes_on_where_the_fast_one_stops(tmp_path, monkeypatch):
    """Rows before a doubt come by pyarrow, those after it line by line: none twice, none left out."""
    monkeypatch.setattr(csv_chunks, "_CHUNK", 64)
    rows = [f"p{i},{i}.5" for i in range(100)]
    rows[60] = '"p\r60",6_0'
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["id,x", *rows]) + "\n")
    with path.open("rb") as stream:
        fast = list(itertools.islice(fast_rows(stream, ",", 2, [1], [0]), 3))
    assert 0 < sum(len(block.numbers) for block in fast) < 60
    expected = [i + 0.5 for i in range(100)]
    expected[60] = 60.0
    np.testing.assert_array_equal(data.load_array(path, columns="x").ravel(), expected)
    assert data.load_column(path, "id").tolist() == [f"p{i}" if i != 60 else "p\r60" for i in range(100)]


@pytest.mark.security
@pytest.mark.parametrize("chunk", [10, 17, 40, 2**20])
def test_a_mark_of_byte_order_is_part_of_an_entry_wherever_a_chunk_begins(tmp_path, monkeypatch, chunk):
    """pyarrow drops it where it begins to read, which depends on what stands before it."""
    monkeypatch.setattr(csv_chunks, "_CHUNK", chunk)
    path = tmp_path / "a.csv"
    path.write_text("id,x,y,note\n" + "\ufeffann,1,2,c\n" * 9, encoding="utf-8")
    fast, careful = both(monkeypatch.context, path)
    assert fast == careful
    assert data.load_column(path, "id").tolist() == ["\ufeffann"] * 9


@pytest.mark.security
def test_long_entries_are_refused_as_before(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text(f"id,x,note\na,1,{'n' * 200_000}\n")
    fast, careful = both(monkeypatch.context, path, ["x"], "id")
    assert fast == careful
    assert "not CSV" in fast[0]


@pytest.mark.slow
def test_blanks_are_those_that_python_strips():
    """Arrow and Python agree on every character there is."""
    marks = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    stripped = text_entries(pa.array([f"{mark}a{mark}" for mark in marks]))
    assert stripped.to_pylist() == [f"{mark}a{mark}".strip() for mark in marks]
