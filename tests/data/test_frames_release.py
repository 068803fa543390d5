"""Releases from every kind of source are those of the array, to the last bit; what is wrong costs nothing."""

from __future__ import annotations

import dask.array
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import dpmanifold as dpm
from data.kinds import CLASSES, NAMES, NINE, PEOPLE, TABLES, TENSORS, chosen, pandas_frame
from dpmanifold import data
from dpmanifold.engines import ThreadEngine, using
from dpmanifold.errors import BudgetError, DPManifoldError, SourceChangedError

pytestmark = pytest.mark.security

METRICS = ["logeuclid", "riemann"]
PRIVACY = dpm.GDP(1.0)
KINDS = [kind for kind in TABLES if kind not in ("RecordBatch", "blocks, frames", "zarr, shards")]


def ball_of(metric):
    return dpm.Ball(dpm.SPD(3, metric=metric), np.eye(3), 3.0, source="simulated", simulated=True)


def mean(X, ball, units, **options):
    return dpm.private_mean(X, ball, PRIVACY, units=units, rng=7, **options)


def same(one, two):
    return np.asarray(one.value).tobytes() == np.asarray(two.value).tobytes() and one.n == two.n


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", KINDS)
def test_releases_are_those_of_the_array(kind, metric):
    ball = ball_of(metric)
    wanted = mean(TENSORS, ball, PEOPLE)
    assert same(mean(chosen(kind), ball, "person"), wanted)


@pytest.mark.parametrize("metric", METRICS)
def test_each_record_and_ids_beside_the_records(metric):
    ball = ball_of(metric)
    frame = pandas_frame()[[f"x{i}" for i in range(1, 10)]]
    array = dask.array.from_array(TENSORS, chunks=(130, 3, 2))
    each, named = mean(TENSORS, ball, dpm.EACH_RECORD), mean(TENSORS, ball, NAMES)
    for source in (frame, polars.from_pandas(frame), array, data.from_blocks(lambda: iter([TENSORS[:1], TENSORS[1:]]))):
        assert same(mean(source, ball, dpm.EACH_RECORD), each)
        assert same(mean(source, ball, NAMES), named)


@pytest.mark.parametrize(
    "kind", ["pandas, categories", "polars, lazy", "Table, dictionaries", "zarr", "dask DataFrame"]
)
def test_classes_are_columns(kind):
    ball, asked = ball_of("logeuclid"), {"classes": ["case", "control"], "rng": 7}
    wanted = dpm.private_class_means(TENSORS, CLASSES, ball, PRIVACY, units=PEOPLE, **asked)
    found = dpm.private_class_means(chosen(kind), "group", ball, PRIVACY, units="person", **asked)
    assert all(same(found[name], wanted[name]) for name in asked["classes"])


def test_categories_without_records_are_nobody():
    ball = ball_of("logeuclid")
    frame = pandas_frame().drop(columns="person")
    people = [*sorted(set(NAMES)), "nobody", "NA"]
    frame["name"] = pandas.Categorical(frame["name"], categories=people)
    wanted = mean(TENSORS, ball, NAMES)
    for made in (frame, pyarrow.Table.from_pandas(frame)):
        assert same(mean(data.from_frame(made, NINE), ball, "name"), wanted)


def test_frames_of_numbers_release_what_they_did():
    """A frame was taken for the array it holds before there were sources."""
    directions = dpm.Sphere(2).exp_coords(
        np.array([0.0, 0.0, 1.0]), 0.3 * np.random.default_rng(1).normal(size=(300, 2))
    )
    ball = dpm.Ball(dpm.Sphere(2), np.array([0.0, 0.0, 1.0]), 0.7, source="simulated", simulated=True)
    ids = np.arange(300) % 150
    assert same(mean(pandas.DataFrame(directions), ball, ids), mean(directions, ball, ids))


def test_gaps_count_as_the_center_where_that_was_asked_for():
    ball = ball_of("logeuclid")
    holes = TENSORS.copy()
    holes[5, 1, 1] = np.nan
    frame = pandas_frame(holes)
    wanted = mean(holes, ball, PEOPLE, invalid="center")
    for given in (frame, frame.convert_dtypes(), polars.from_pandas(frame.drop(columns="scanned"))):
        made = data.from_frame(given, NINE)
        with pytest.raises(DPManifoldError, match="index 5"):
            mean(made, ball, "person")
        assert same(mean(made, ball, "person", invalid="center"), wanted)


def test_one_text_among_the_numbers_counts_as_the_center():
    """As it does in an array of objects: one record does not stop a release."""
    directions = np.random.default_rng(2).normal(size=(50, 2))
    frame = pandas.DataFrame(directions).astype({1: object})
    frame.iloc[7, 1] = "not a number"
    ball = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0, source="simulated", simulated=True)
    wanted = mean(np.asarray(frame), ball, dpm.EACH_RECORD, invalid="center")
    assert same(mean(frame, ball, dpm.EACH_RECORD, invalid="center"), wanted)
    with pytest.raises(DPManifoldError, match="index 7"):
        mean(frame, ball, dpm.EACH_RECORD)


def test_nothing_is_spent_on_what_is_refused():
    ball, budget = ball_of("riemann"), dpm.Budget(PRIVACY)
    frame = pandas_frame()
    blocks = iter([TENSORS])
    refused = [
        (frame, "subject"),
        (frame, "scanned"),
        (frame, "person"),
        (data.from_frame(frame, "x1..x8"), "person"),
        (frame.assign(person=frame["person"].astype(object).mask(frame.index == 3)), "person"),
        (data.from_blocks(lambda: blocks), dpm.EACH_RECORD),
        (iter([TENSORS]), dpm.EACH_RECORD),
        (dask.array.from_array(TENSORS), "person"),
    ]
    for X, units in refused:
        with pytest.raises(DPManifoldError):
            mean(X, ball, units, budget=budget)
    mean(data.from_frame(frame, NINE), ball, "person", budget=budget)
    with pytest.raises(BudgetError):
        mean(data.from_frame(frame, NINE), ball, "person", budget=budget)


def test_records_that_change_between_passes_release_nothing():
    """On a curved space, where points are not kept, they are read once more."""
    calls = []

    def make():
        calls.append(1)
        yield TENSORS if len(calls) < 3 else TENSORS[::-2]

    engine = ThreadEngine(1)
    engine.room = 0
    with using(engine), pytest.raises(SourceChangedError, match="gave other records"):
        mean(data.from_blocks(make), ball_of("riemann"), dpm.EACH_RECORD)
    assert len(calls) == 3
    with using(engine):
        again = mean(
            data.from_blocks(lambda: iter([TENSORS[:300], TENSORS[300:]])), ball_of("riemann"), dpm.EACH_RECORD
        )
    assert same(again, mean(TENSORS, ball_of("riemann"), dpm.EACH_RECORD))
