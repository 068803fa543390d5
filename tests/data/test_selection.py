"""What to read and how, as words: written down and read again, opened, registered, and compared before a spend."""

import json
import os
import pathlib

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpmanifold as dpm
from dpmanifold.data import Selection
from dpmanifold.data.selection import WORDS
from dpmanifold.errors import InvalidArgumentError, ReleaseLostError
from dpmanifold.ledger import Ledger

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0, source="an atlas")
TEXT = st.text(min_size=1, max_size=5)
FIELDS = {
    "space": TEXT, "size": st.sampled_from(["3", "5,2"]), "units": TEXT, "radius": st.floats(0.1, 9), "center": TEXT,
    "source": TEXT, "columns": st.lists(st.sampled_from(["x1", "a,b", "y*"]), min_size=1), "array": TEXT,
    "order": TEXT, "coordinates": TEXT, "normalize": st.just(True), "labels": TEXT,
    "classes": st.sampled_from([["a", "b"], ["0", "1"]]), "labels_public": st.just(True), "covariate": TEXT,
    "covariate_range": st.just([7.0, 15.0]), "covariate_public": st.just(True), "mask": TEXT,
    "ball": st.just("whole-space"), "invalid": st.sampled_from(["raise", "center"]),
}  # fmt: skip


@pytest.fixture
def study(tmp_path, monkeypatch):
    """60 records of 30 people in a folder, and in the one before it a file that nobody may read."""
    folder = tmp_path / "study"
    folder.mkdir()
    monkeypatch.chdir(folder)
    rng = np.random.default_rng(0)
    columns = [np.arange(60) // 2, np.arange(60) // 30, rng.uniform(7, 15, 60), *rng.normal(0.0, 0.5, (2, 60))]
    for path in ("people.csv", "../outside.csv"):
        np.savetxt(path, np.column_stack(columns), header="who,group,age,u,v", comments="", delimiter=",", fmt="%.6g")
    return folder


@pytest.fixture
def cohort(study):
    with Ledger.create(study / "study.db") as ledger:
        yield ledger.population("cohort", dpm.GDP("1"), "participant")


def selection(**more):
    return Selection("people.csv", BALL.space, **{"columns": "u,v", "units": "who", "ball": BALL, **more})


# ------------------------------------------------------------------------------------------- as JSON


@given(said=st.fixed_dictionaries({}, optional=FIELDS), paths=st.lists(TEXT, min_size=1))
def test_a_selection_is_what_was_written_down(said, paths):
    chosen = Selection(paths, **said)
    written = json.loads(json.dumps(chosen.to_dict()))
    assert Selection.from_dict(written) == chosen
    assert Selection.from_dict(written).to_dict() == written
    assert written == {"paths": paths, **{name: said[name] for name in WORDS if name in said}}


def test_every_field_is_tried():
    assert set(FIELDS) == set(WORDS)


def test_one_thing_is_written_in_one_way():
    full = Selection(pathlib.Path("a"), dpm.SPD(3), columns=" x1 , x2", size=3, ball=BALL, covariate_range=(0, 1))
    same = Selection(["a"], "SPD(3)", columns=("x1", "x2"), size="3", ball=BALL, covariate_range=[0, 1])
    assert full == same
    assert Selection.from_dict(json.loads(json.dumps(full.to_dict()))).ball == BALL
    assert Selection("a", units="", columns="", classes=[], source="") == Selection("a")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"column": "u"}, "a selection has no 'column'. It takes paths, space, size, units"),
        ({"units": 3}, "units must be text"),
        ({"columns": [1]}, "columns must be text"),
        ({"normalize": "yes"}, "normalize must be true or false, got 'yes'"),
        ({"radius": "wide"}, "radius must be a number"),
        ({"covariate_range": [1]}, "covariate_range must be two numbers"),
        ({"covariate_range": "x"}, "covariate_range must be two numbers"),
        ({"classes": [1.5]}, "classes must be a list of names"),
        ({"classes": "a/b,c"}, "a class must be a word without slashes"),
    ],
)
def test_what_is_of_another_kind_is_refused(wrong, words):
    with pytest.raises(InvalidArgumentError) as refused:
        Selection.from_dict({"paths": ["a"], **wrong})
    assert words in str(refused.value).replace("`", "")


def test_what_cannot_be_is_refused_before_anything_is_opened():
    wrongs = [
        {"space": "moebius"}, {"space": None}, {"space": "SPD(3)", "radius": -1}, {"space": "spd", "size": "3,3"},
        {"space": "spd", "size": "3", "ball": "nowhere.json"}, {"space": "spd", "coordinates": "lonlat"},
    ]  # fmt: skip
    for wrong in wrongs:
        with pytest.raises((InvalidArgumentError, FileNotFoundError)):
            Selection("nothing", **wrong).check()
    Selection("nothing", "spd").check()
    Selection("nothing", "spd", size="3", radius=2).check()


# ------------------------------------------------------------------------------------------- opened


def test_it_opens_to_a_source_with_all_that_is_beside(study):
    found = selection(labels="group", covariate="age").open()
    assert (found.units, found.labels, found.covariate, found.space) == ("who", "group", "age", BALL.space)
    release = dpm.private_mean(found.records, BALL, dpm.GDP(1), units=found.units, rng=0)
    whole = found.gathered()
    assert whole.records.shape == (60, 2)
    assert list(map(int, whole.labels)) == [0] * 30 + [1] * 30
    again = dpm.private_mean(whole.records, BALL, dpm.GDP(1), units=whole.units, rng=0)
    assert np.array_equal(release.value, again.value)


@pytest.mark.security
def test_nothing_outside_of_a_folder_is_opened(study):
    os.symlink(study.parent / "outside.csv", study / "link.csv")
    os.symlink(study.parent, study / "up")
    selection().open(within=study)
    np.save("center.npy", np.zeros(2))
    selection(ball=None, radius=3, center="center.npy").open(within=study)
    outside = str(study.parent / "outside.csv")
    wrong = [
        *({"paths": path} for path in ("../outside.csv", outside, "link.csv", "up/outside.csv", "../*.csv")),
        *({name: text} for name in ("units", "labels", "covariate") for text in (f"{outside}:who", "link.csv")),
        {"center": outside}, {"mask": outside}, {"ball": outside},
    ]  # fmt: skip
    for more in wrong:
        with pytest.raises(InvalidArgumentError, match="lies outside"):
            Selection(**{"paths": "people.csv", "space": "euclidean", **more}).open(within=study)


# ------------------------------------------------------------------------------------------- registered


@pytest.mark.security
def test_how_records_are_read_is_registered_with_them(cohort):
    selection(labels="group", classes="0,1", labels_public=True).register(cohort, "dti")
    saved = cohort.datasets()[-1].about["selection"]
    assert saved == {"files": "tables", "columns": ["u", "v"]}
    later = Selection("people.csv").registered(cohort, "dti")
    found = dpm.private_mean(later, later.ball, dpm.GDP("0.1"), units=None, budget=cohort)
    assert (found.n, later.ball) == (30, BALL)


WRONG = [
    {"columns": "u,age"}, {"columns": ["u", "v", "age"]}, {"columns": "v,u"}, {"normalize": True}, {"order": "fsl"},
    {"array": "x"}, {"units": "age"}, {"units": "each-record"}, {"labels": "age"}, {"covariate": "age"},
    {"space": "spd"}, {"invalid": "center"}, {"space": "Euclidean(3)"}, {"space": "euclidean", "size": "3"},
    {"coordinates": "lonlat"}, {"mask": "nonzero"},
]  # fmt: skip


@pytest.mark.security
@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_said_otherwise_is_refused_before_anything_is_spent(cohort, wrong):
    selection(labels="group", classes="0,1").register(cohort, "dti")
    with pytest.raises(InvalidArgumentError, match="dti@1"):
        Selection("people.csv", **wrong).registered(cohort, "dti")
    assert cohort.spent is None


@pytest.mark.security
@pytest.mark.parametrize("columns", ["u,age", "u,v,age", "v,u"])
def test_a_release_would_be_lost_if_nobody_compared(cohort, columns, monkeypatch):
    monkeypatch.setattr(Selection, "_as_registered", lambda self, known: self)
    selection().register(cohort, "dti")
    later = Selection("people.csv", columns=columns).registered(cohort, "dti")
    with pytest.raises(ReleaseLostError):
        dpm.private_mean(later, later.ball, dpm.GDP("0.1"), units=None, budget=cohort)
    assert cohort.spent is not None


def test_another_way_to_read_the_same_records_is_another_version(cohort, study):
    table = (study / "people.csv").read_text()
    assert selection().register(cohort, "dti").id == "dti@1"
    assert selection().register(cohort, "dti").id == "dti@1"
    (study / "people.csv").write_text(table.replace("u,v", "x,y"))
    assert selection(columns="x,y").register(cohort, "dti").id == "dti@2"
    found = selection(columns="x,y").open().gathered()
    assert cohort.register("dti", found.records, BALL, units=found.units).id == "dti@3"  # nobody knows which column
    assert Selection("people.csv").registered(cohort, "dti@2").id == "dti@2"


def test_files_of_another_sort_are_read_in_their_own_way(cohort, study):
    chosen = selection(units="each-record")
    chosen.register(cohort, "dti")
    np.save("people.npy", chosen.open().gathered().records)
    for wrong in ({"coordinates": "lonlat"}, {"units": "age"}, {"labels": "group"}):
        with pytest.raises(InvalidArgumentError):
            Selection("people.npy", **wrong).registered(cohort, "dti")
    later = Selection("people.npy").registered(cohort, "dti")
    assert dpm.private_mean(later, later.ball, dpm.GDP("0.1"), units=None, budget=cohort).n == 60
