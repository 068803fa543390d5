"""What the reading matrix is made of: containers of records, odd cells, queries, and what each unit gives them."""

from __future__ import annotations

import csv
import datetime
import decimal
import fractions
import inspect
import itertools
from collections import Counter
from typing import NamedTuple

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.parquet

import dpmanifold as dpm
from dpmanifold import data
from dpmanifold.frechet import LabelledPoints, UnitPoints
from dpmanifold.stats.marks import MarkedPoints, Read

PEOPLE = 12
OWNERS = [*range(PEOPLE), 0, 1, 2, 3]
RECORDS = len(OWNERS)
VICTIM = 2
"""The record whose cell is replaced, one of two of its person."""
IDS = [f"p{owner}" for owner in OWNERS]
CLASSES = ["a", "b"]
LABELS = [CLASSES[owner % 2] for owner in OWNERS]
AGES = [20.0 + 4 * owner + 0.25 for owner in OWNERS]
PRIVACY = dpm.GDP(50.0)  # so that twelve people are enough for every query
BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 4.0)
ROWS = [[float(x) for x in row] for row in np.random.default_rng(0).normal(size=(RECORDS, 2))]


# What cells may be that are no floats, and what containers make of them where one cell is another thing.
TYPES = {
    "whole numbers": lambda cell: round(4 * cell),
    "truth values": lambda cell: cell > 0,
    "decimals": lambda cell: decimal.Decimal(repr(cell)),
    "fractions": lambda cell: fractions.Fraction(cell),
    "text": repr,
    "single precision": np.float32,
    "numpy's truth values": lambda cell: np.bool_(cell > 0),
}


def of_type(kind):
    """The rows with cells of another type."""
    return [[TYPES[kind](cell) for cell in row] for row in ROWS]


class Hostile:
    """Raises whatever is done with it."""

    def __float__(self):
        raise KeyError("of data")

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("of data")

    def __len__(self):
        raise OSError("of data")


ODD = [
    None, float("nan"), float("inf"), -float("inf"), -0.0, 1e-320, "text", "", " ", "007", "1.5", " 1 ", "NaN", "NA",
    "none", "True", "1_000", "0x10", "1+0j", "\u0663", "\ufeff1", "1e400", b"bytes", b"1.5", b"\xff", 1 + 0j, 1 + 2j,
    complex("nan"), np.float16(0.5), np.float32(0.1), np.float64(0.1), np.longdouble("0.1"), np.longdouble("1e4000"),
    np.int8(1), np.int64(3), np.uint64(2**63), np.complex64(1j), np.clongdouble(1), np.bool_(True), np.str_("x"),
    np.bytes_(b"x"), np.datetime64("2026-01-01"), np.timedelta64(1, "s"), np.void(b"xx"), True, 10**400, 2**70, -9,
    decimal.Decimal("0.5"), decimal.Decimal("NaN"), fractions.Fraction(1, 3), datetime.date(2026, 1, 1),
    datetime.datetime(2026, 1, 1), datetime.timedelta(1), np.ma.masked, pandas.NA, pandas.NaT, [1.0, 2.0], [], [[1.0]],
    (1.0,), np.array([1.0, 2.0]), np.array(0.5), {"a": 1}, {1}, range(3), Ellipsis, Hostile(),
]  # fmt: skip


def replaced(entries, odd, place=VICTIM):
    return [*entries[:place], odd, *entries[place + 1 :]]


def with_odd(odd, rows=ROWS):
    """The rows, with one odd cell in the second column."""
    return [*rows[:VICTIM], [rows[VICTIM][0], odd], *rows[VICTIM + 1 :]]


def objects(rows):
    array = np.empty((len(rows), len(rows[0])), dtype=object)
    for (i, row), j in itertools.product(enumerate(rows), range(len(rows[0]))):
        array[i, j] = row[j]
    return array


class CannotBeMadeError(Exception):
    """The container's own library refuses the cell."""


def _made(make, *arguments):
    try:
        return make(*arguments)
    except BaseException as problem:  # polars panics
        raise CannotBeMadeError from problem


def masked(rows):
    return np.ma.array(np.where(np.array([[cell is np.ma.masked for cell in row] for row in rows]), 0.0, _floats(rows)),
                       mask=[[not isinstance(cell, float) for cell in row] for row in rows])  # fmt: skip


def _floats(rows):
    return np.array([[cell if isinstance(cell, float) else 0.0 for cell in row] for row in rows])


def singles(rows):
    return [[np.float32(cell) if type(cell) is float else cell for cell in row] for row in rows]


def frame_of(rows, **columns):
    made = {name: [row[i] for row in rows] for i, name in enumerate("xy")} | columns
    return _made(lambda: pandas.DataFrame({name: pandas.Series(_entries(cells)) for name, cells in made.items()}))


def one_by_one(cells):
    array = np.empty(len(cells), dtype=object)
    for i, cell in enumerate(cells):
        array[i] = cell
    return array


def _entries(cells):
    return pandas.Series(one_by_one(cells)).infer_objects()


def polars_of(rows, **columns):
    made = ({name: [row[i] for row in rows] for i, name in enumerate("xy")} if rows else {}) | columns
    frame = _made(lambda: polars.DataFrame(made, strict=False))
    for name, cells in made.items():
        refuse_lost(frame[name], cells)
    return frame


def refuse_lost(series, cells):
    """Refuse what polars itself has dropped when it made a column; structs are for the library to refuse."""
    if series.dtype.is_nested():
        return
    stored = series.to_list()
    if any(_number(stored[place]) != _number(cell) for place, cell in enumerate(cells) if place != VICTIM):
        raise CannotBeMadeError


def _number(cell):
    """The number that a person sees in a cell, or what else stands there; not by the reader that is tested."""
    try:
        return float({"true": 1, "false": 0}.get(cell.lower(), cell) if isinstance(cell, str) else cell)
    except (TypeError, ValueError):
        return str(cell)


def arrow_of(rows, **columns):
    made = {name: [row[i] for row in rows] for i, name in enumerate("xy")} | columns
    return _made(lambda: pyarrow.table(made))


def spelled(rows, **columns):
    """Columns of text, in which every cell is what Python writes for it."""
    made = {name: [_spelled(row[i]) for row in rows] for i, name in enumerate("xy")}
    return pyarrow.table(made | {name: [_spelled(cell) for cell in cells] for name, cells in columns.items()})


def _spelled(cell):
    if isinstance(cell, Hostile):
        return "hostile"
    return cell if isinstance(cell, str) else cell.decode("latin-1") if isinstance(cell, bytes) else str(cell)


def csv_of(rows, folder, **columns):
    path = folder / "records.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        table = csv.writer(stream)
        table.writerow(["x", "y", *columns])
        for i, row in enumerate(rows):
            table.writerow([_spelled(cell) for cell in (*row, *(cells[i] for cells in columns.values()))])
    return data.Dataset(path, columns=["x", "y"])


def parquet_of(rows, folder, make=spelled, **columns):
    path = folder / "records.parquet"
    _made(lambda: pyarrow.parquet.write_table(make(rows, **columns), path))
    return data.Dataset(path, columns=["x", "y"])


def chosen(frame):
    return data.from_frame(frame, ["x", "y"])


# Arrays and lists, beside which ids, labels and covariates stand.
PLAIN = {
    "array": lambda rows: _made(np.array, rows),
    "array of objects": objects,
    "array of objects, single precision": lambda rows: objects(singles(rows)),
    "array, single precision": lambda rows: _made(np.array, singles(rows)),
    "array of lists": one_by_one,
    "masked array": masked,
    "list": lambda rows: rows,
    "list, single precision": singles,
    "tuple of tuples": lambda rows: tuple(tuple(row) for row in rows),
    "list of arrays": lambda rows: [_made(np.array, row) for row in rows],
    "array, one axis lost": lambda rows: _made(lambda: np.array([list(row) for row in rows], dtype=object)),
    "blocks": lambda rows: data.from_blocks(lambda: iter([objects(rows[:7]), objects(rows[7:])])),
    "parts": lambda rows: (objects(rows)[:, :1], objects(rows)[:, 1:]),
}
# Tables, in which they are columns.
TABLES = {
    "pandas": lambda rows, folder, **columns: chosen(frame_of(rows, **columns)),
    "pandas, all columns": lambda rows, folder, **columns: frame_of(rows, **columns),
    "pandas, with gaps": lambda rows, folder, **columns: chosen(_made(frame_of(rows, **columns).convert_dtypes)),
    "polars": lambda rows, folder, **columns: chosen(polars_of(rows, **columns)),
    "Arrow": lambda rows, folder, **columns: chosen(arrow_of(rows, **columns)),
    "Arrow, text": lambda rows, folder, **columns: chosen(spelled(rows, **columns)),
    "CSV": csv_of,
    "Parquet": lambda rows, folder, **columns: parquet_of(rows, folder, arrow_of, **columns),
    "Parquet, text": parquet_of,
}
CONTAINERS = [*PLAIN, *TABLES]
# One entry per record, beside an array.
BESIDE = {
    "list": list,
    "tuple": tuple,
    "array": lambda cells: _made(np.array, cells),
    "array of objects": one_by_one,
    "masked array": lambda cells: np.ma.array(
        one_by_one([None if cell is np.ma.masked else cell for cell in cells]),
        mask=[cell is np.ma.masked for cell in cells],
    ),
    "Series": lambda cells: _made(_entries, cells),
    "polars Series": lambda cells: polars_of([], cells=cells)["cells"],
    "Arrow array": lambda cells: _made(pyarrow.array, cells),
}


class Query(NamedTuple):
    """A question, and which columns it needs."""

    ask: object
    needs: tuple[str, ...] = ()


def _labelled(function, **options):
    def ask(X, ball, labels, classes=CLASSES, **terms):
        return function(X, labels, ball, PRIVACY, classes=classes, **options, **terms)

    return Query(ask, ("labels",))


def _simple(function, **options):
    return Query(lambda X, ball, **terms: function(X, ball, PRIVACY, **options, **terms))


def _test(X, ball, units, **terms):
    other = np.random.default_rng(1).normal(size=(9, 2))
    other = (other[:, :1], other[:, 1:]) if isinstance(ball.space, dpm.Product) else other
    units = units if units is dpm.EACH_RECORD else (units, [f"other {i}" for i in range(9)])
    return dpm.private_two_sample_test(X, other, ball, PRIVACY, units=units, **terms)


def _regression(X, ball, covariate, **terms):
    return dpm.private_regression(X, covariate, ball, PRIVACY, covariate_range=(20.0, 80.0), **terms)


QUERIES = {
    "mean": _simple(dpm.private_mean),
    "means": _labelled(dpm.private_class_means),
    "median": _simple(dpm.private_median),
    "variance": _simple(dpm.private_variance),
    "interval": _simple(dpm.private_variance_interval),
    "region": _simple(dpm.private_region),
    "test": Query(_test),
    "groups": _labelled(dpm.private_k_sample_test),
    "classes": _labelled(dpm.private_lda),
    "classes, public": _labelled(dpm.private_lda, labels_public=True),
    "components": _simple(dpm.private_pga, count=1),
    "regression": Query(_regression, ("covariate",)),
    "ball": _simple(dpm.private_ball),
    "statistic": _simple(dpm.private_statistic, statistic="variance"),
}
COLUMNS = {"labels": LABELS, "covariate": AGES}
_PAIR = dpm.Product([dpm.Euclidean(1)] * 2)
PAIR_BALL = dpm.Ball(_PAIR, np.zeros((2, 1)), 4.0)


def asked(container, query, rows, folder, *, units="ids", **beside):
    """Return a query's arguments for rows in a container; `beside` replaces ids, labels or covariates."""
    found = QUERIES[query]
    columns = {name: beside.get(name, COLUMNS[name]) for name in found.needs}
    ids = beside.get("ids", IDS)
    named = {"classes": beside["classes"]} if "classes" in beside else {}
    if container in PLAIN:
        given = {**columns, **named, "units": dpm.EACH_RECORD if units is None else ids}
        return found, PLAIN[container](rows), given, PAIR_BALL if container == "parts" else BALL
    inside = columns if container == "pandas, all columns" else {"labels": LABELS, "covariate": AGES, **columns}
    stored = TABLES[container](rows, folder, **inside, **({} if units is None else {"ids": ids}))
    return found, stored, {**named, **{name: name for name in columns},
                           "units": dpm.EACH_RECORD if units is None else "ids"}, BALL  # fmt: skip


class SeenError(Exception):
    """Carries what a call hands to its draw, in place of drawing."""

    def __init__(self, draw):
        super().__init__()
        self.handed = [inspect.getclosurevars(draw).nonlocals["known"].points()]


def contributions(query, X, given, ball, monkeypatch, invalid="center"):
    """Return what each unit gives to a query before noise, bit by bit, with its class or covariate: how often each."""
    with monkeypatch.context() as patch:
        patch.setattr("dpmanifold.stats.asking.settle", _seen)
        try:
            query.ask(X, ball, invalid=invalid, confirm=True, **given)
        except SeenError as seen:
            found = Counter(itertools.chain.from_iterable(map(_bits, seen.handed)))
            assert found, "nothing was handed to the draw"
            return found
    raise AssertionError("nothing was asked for")


def _seen(budget, key, privacy, label, request, draw, curator=None):
    raise SeenError(draw)


def _bits(handed):
    """Give what units contribute, one by one."""
    if isinstance(handed, LabelledPoints):
        for part in handed.parts:
            for point in part.points.array():
                yield part.number, part.several, point.tobytes()
    elif isinstance(handed, Read):
        yield from _bits(handed.points)
    elif isinstance(handed, MarkedPoints):
        for point, mark in zip(handed._points, handed._marks, strict=True):
            yield mark.tobytes(), point.tobytes()
    elif isinstance(handed, UnitPoints):
        for point in handed.array():
            yield (point.tobytes(),)
    elif isinstance(handed, (list, tuple)):
        for number, one in enumerate(handed):
            for bits in _bits(one):
                yield number, *bits
