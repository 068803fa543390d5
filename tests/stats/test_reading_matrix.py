"""One unit's cell is replaced by whatever there is: what all other units give to a query keeps its bits.

With `invalid="center"` no cell of a record, a private label or a covariate causes a refusal; what may be refused is a
fault of a container as a whole, and is listed in `LISTED`. With `invalid="raise"` the refusal names the place.
"""

import re
import warnings

import numpy as np
import pytest

from dpmanifold.errors import DPManifoldError
from laws.tiers import lots
from stats.reading import (
    AGES,
    BESIDE,
    CONTAINERS,
    IDS,
    LABELS,
    ODD,
    OWNERS,
    QUERIES,
    ROWS,
    TABLES,
    TYPES,
    VICTIM,
    CannotBeMadeError,
    asked,
    contributions,
    of_type,
    replaced,
    with_odd,
)

pytestmark = pytest.mark.security

GROUPS = 16
PLACE = re.compile(rf"\b(index|record|row) {VICTIM}\b|\bline {VICTIM + 2}\b|\bindex \({VICTIM},")
LISTED = {
    "numpy made text or dates of every entry": "got one of text or dates|an array of dates",
    "ids say who is who, and are refused where that is in doubt": r"\bids?\b|units",
    "public labels are no one's secret": "outside the public classes",
    "a column has the type of one cell, and dropped the numbers": "of a type that is not numbers|not whole numbers",
}
IN_DOUBT, PUBLIC = "ids say who is who, and are refused where that is in doubt", "public labels are no one's secret"
OF_TEXT, OF_STRUCTS = (
    "numpy made text or dates of every entry",
    "a column has the type of one cell, and dropped the numbers",
)


HOW = ("center", "raise")


def odd_cells(lot):
    """Give the places and values of odd cells, and what is done about records that are none."""
    for group, invalid in lot:
        for place in range(group, len(ODD), GROUPS):
            yield place, ODD[place], invalid


@pytest.fixture
def base(monkeypatch, tmp_path):
    """What units give when no cell is odd, and what of it is the victim's: what another number in its place changes."""
    made = {}

    def found(container, query, units, kind="floats"):
        key = container, query, units, kind
        if key not in made:
            rows, other = (ROWS, 0.75) if kind == "floats" else (of_type(kind), TYPES[kind](-ROWS[VICTIM][1]))
            question, X, given, ball = asked(container, query, rows, tmp_path, units=units)
            before = contributions(question, X, given, ball, monkeypatch)
            question, X, given, ball = asked(container, query, with_odd(other, rows), tmp_path, units=units)
            made[key] = before, before - contributions(question, X, given, ball, monkeypatch)
        return made[key]

    return found


def others_are_the_same(known, after):
    """Whether nothing is gone but what the victim gave, and no more came than its records can give."""
    before, own = known
    assert own.total() == 1
    assert not (before - after) - own
    assert (after - before).total() <= 2


def tried(container, query, rows, folder, monkeypatch, invalid, listed, **beside):
    """What units give with one odd cell; None where the container cannot hold it or is refused as a whole."""
    try:
        question, X, given, ball = asked(container, query, rows, folder, **beside)
    except CannotBeMadeError:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return contributions(question, X, given, ball, monkeypatch, invalid)
        except DPManifoldError as refused:
            said = str(refused)
            assert "of data" not in said
            named = invalid == "raise" and PLACE.search(said)
            assert named or any(re.search(LISTED[name], said) for name in listed), said
            return None


@pytest.mark.parametrize(
    ("container", "query", "lot"), lots(CONTAINERS, QUERIES, range(GROUPS), HOW, within=2, ids=str)
)
def test_a_cell_of_a_record_leaves_all_others(container, query, lot, base, tmp_path, monkeypatch):
    listed = [OF_TEXT, OF_STRUCTS] if container == "polars" else [OF_TEXT]
    for place, odd, invalid in odd_cells(lot):
        # People, of whom the victim has two records, and records by turns.
        units = "ids" if place // GROUPS % 2 else None
        after = tried(container, query, with_odd(odd), tmp_path, monkeypatch, invalid, listed, units=units)
        if after is not None:
            others_are_the_same(base(container, query, units), after)


@pytest.mark.parametrize(
    ("container", "kind", "lot"),
    lots([one for one in CONTAINERS if one != "masked array"], TYPES, range(GROUPS), HOW, within=2, ids=str),
)
def test_a_cell_leaves_cells_of_any_type(container, kind, lot, base, tmp_path, monkeypatch):
    """Containers write and keep whole numbers, truth values, decimals and text in other ways beside an odd cell."""
    try:
        before = base(container, "mean", None, kind)
    except (CannotBeMadeError, DPManifoldError):
        pytest.skip("the container cannot hold such cells, or is refused as a whole")
    if not before[1]:
        pytest.skip("the container holds no numbers then, whoever is in it")
    listed = [OF_TEXT, OF_STRUCTS] if container in ("polars", "Arrow", "Parquet") else [OF_TEXT]
    for _, odd, invalid in odd_cells(lot):
        rows = with_odd(odd, of_type(kind))
        after = tried(container, "mean", rows, tmp_path, monkeypatch, invalid, listed, units=None)
        if after is not None:
            others_are_the_same(before, after)


BESIDE_CONTAINERS = [*BESIDE, *TABLES]


def beside(name, container, entries, odd):
    """Rows in a list with odd entries beside them, or a table that holds both."""
    cells = replaced(entries, odd)
    if container in TABLES:
        return container, {name: cells}
    try:
        return "list", {name: BESIDE[container](cells)}
    except CannotBeMadeError:
        return None, {}


def walk(name, entries, listed, container, query, lot, base, folder, monkeypatch):
    before = base("list" if container in BESIDE else container, query, "ids")
    for _, odd, invalid in odd_cells(lot):
        holder, given = beside(name, container, entries, odd)
        if holder is None:
            continue
        after = tried(holder, query, ROWS, folder, monkeypatch, invalid, listed, **given)
        if after is not None:
            others_are_the_same(before, after)


@pytest.mark.parametrize(
    ("container", "query", "lot"), lots(BESIDE_CONTAINERS, QUERIES, range(GROUPS), HOW, within=2, ids=str)
)
def test_an_id_leaves_all_others_or_is_refused(container, query, lot, base, tmp_path, monkeypatch):
    walk("ids", IDS, [IN_DOUBT], container, query, lot, base, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("container", "query", "lot"),
    lots(
        BESIDE_CONTAINERS, [q for q in QUERIES if "labels" in QUERIES[q].needs], range(GROUPS), HOW, within=2, ids=str
    ),
)
def test_a_label_leaves_all_others(container, query, lot, base, tmp_path, monkeypatch):
    public = [] if query.startswith("classes") else [PUBLIC]
    walk("labels", LABELS, public, container, query, lot, base, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("container", "query", "lot"), lots(BESIDE_CONTAINERS, ["regression"], range(GROUPS), HOW, within=2, ids=str)
)
def test_a_covariate_leaves_all_others(container, query, lot, base, tmp_path, monkeypatch):
    listed = [OF_TEXT, OF_STRUCTS] if container.startswith("polars") else [OF_TEXT]
    walk("covariate", AGES, listed, container, query, lot, base, tmp_path, monkeypatch)


def leaves_others(name, query, container, entries, other, folder, monkeypatch, **given):
    """Look at every odd cell among entries of one type; `other` is what the victim's might be instead."""

    def found(odd):
        holder, cells = beside(name, container, entries, odd)
        if holder is None:
            return None
        return tried(holder, query, ROWS, folder, monkeypatch, "center", [OF_TEXT, OF_STRUCTS], **cells, **given)

    before, changed = found(entries[VICTIM]), found(other)
    if before is None or changed is None:
        pytest.skip("the container cannot hold such cells, or is refused as a whole")
    if before == changed:
        pytest.skip("the container holds no numbers then, whoever is in it")
    for odd in ODD:
        after = found(odd)
        if after is not None:
            others_are_the_same((before, before - changed), after)


@pytest.mark.parametrize("kind", [int, bool, float, str, np.int8, np.bool_, np.float64])
@pytest.mark.parametrize("container", BESIDE_CONTAINERS)
def test_a_label_leaves_labels_of_any_type(container, kind, tmp_path, monkeypatch):
    entries, other = [kind(owner % 2) for owner in OWNERS], kind(1 - OWNERS[VICTIM] % 2)
    leaves_others("labels", "classes", container, entries, other, tmp_path, monkeypatch, classes=[0, 1])


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("container", BESIDE_CONTAINERS)
def test_a_covariate_leaves_covariates_of_any_type(container, kind, tmp_path, monkeypatch):
    entries, other = [TYPES[kind](age) for age in AGES], TYPES[kind](-AGES[VICTIM])
    leaves_others("covariate", "regression", container, entries, other, tmp_path, monkeypatch)


def test_the_matrix_sees_a_reader_that_goes_by_the_type_of_all(base, tmp_path, monkeypatch):
    """What it must reject: an array that one cell has changed is read as a whole."""
    before = base("array of objects", "mean", None)

    def by_type(entries, kind="f"):
        array = np.asarray(entries)
        plain = array.dtype.kind in "iuf"
        return array.astype(float) if plain else np.full(array.shape, np.nan)

    monkeypatch.setattr("dpmanifold._cells.numbers_of", by_type)
    after = tried("array of objects", "mean", with_odd(None), tmp_path, monkeypatch, "center", [], units=None)
    with pytest.raises(AssertionError):
        others_are_the_same(before, after)


def test_how_many_cells_there_are():
    labelled = [query for query in QUERIES if "labels" in QUERIES[query].needs]
    records = len(CONTAINERS) * len(QUERIES)
    stood_beside = len(BESIDE_CONTAINERS) * (len(QUERIES) + len(labelled) + 1)
    assert len(ODD) >= 36
    assert 2 * len(ODD) * (records + stood_beside) > 80_000
