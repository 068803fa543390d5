"""Records in pieces: the bits of the same records in one array, and what is refused before and after the spend."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, SPD, Ball, Budget, Euclidean, PureDP, linalg
from dpmanifold.engines import ThreadEngine, using
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, SourceChangedError
from dpmanifold.frechet import Records
from dpmanifold.linalg.exact_sums import ExactSum
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import prepare_records
from laws.pieces import ListSource
from laws.spaces import BALLS, SMALL_BALLS
from test_same_bits import data, squares

ROOMS = (0, 2**30)  # points are read again in every pass, or held


def engine(workers=1, room=2**30):
    made = ThreadEngine(workers)
    made.room = room
    return made


def prepared(X, units, ball, invalid="raise"):
    return prepare_records(X, ball, units, invalid, Told(confirm=True))[0]


def within(points):
    ball = points.ball
    return points.within(ball.frame.origin, np.linspace(0, ball.radius, 9))


def bits(points):
    """Everything that statistics ask of points: the mean, moments, counts, and the mean in a smaller ball."""
    ball = points.ball
    inner = points.in_ball(Ball(ball.space, ball.from_frame(points.mean()[None])[0], ball.radius / 2))
    parts = [points.mean(), *squares(points), within(points), inner.mean(), *squares(inner), within(inner)]
    return len(points), points.unit, b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


def names_of(ids, how):
    return {"records": None, "numbers": 7 * ids - 50, "text": np.char.add("p", ids.astype(str)),
            "sparse numbers": (ids + 1) * 10**14}[how]  # fmt: skip


# A flat one, one that the kernels add vectors of, and both metrics of matrices.
SOME_BALLS = [BALLS[i] for i in (0, 1, 4, 5)]


@pytest.mark.parametrize("how", ["records", "numbers", "text", "sparse numbers"])
@pytest.mark.parametrize("ball", [*BALLS, *SMALL_BALLS], ids=repr)
def test_partitions_orders_threads_and_held_points_do_not_show(ball, how):
    X, ids = data(ball, 1100)
    person = names_of(ids, how)
    column = EACH_RECORD if person is None else "person"
    expected = bits(prepared(X, EACH_RECORD if person is None else person, ball))
    rng = np.random.default_rng(3)
    for workers, room, known in ((1, 2**30, True), (2, 0, False)):
        source = ListSource.at_random(X, person, rng=rng, rows_known=known)
        with using(engine(workers, room)):
            assert bits(prepared(source, column, ball)) == expected


@pytest.mark.slow
@pytest.mark.parametrize("how", ["records", "numbers", "text"])
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_twenty_partitions_do_not_show(ball, how):
    X, ids = data(ball, 1500)
    person = names_of(ids, how)
    expected = bits(prepared(X, EACH_RECORD if person is None else person, ball))
    rng = np.random.default_rng(4)
    for trial in range(20):
        source = ListSource.at_random(X, person, rng=rng, most=12, rows_known=trial % 3 > 0)
        with using(engine(1 + trial % 2, ROOMS[trial // 2 % 2])):
            assert bits(prepared(source, EACH_RECORD if person is None else "person", ball)) == expected


@pytest.mark.parametrize("units", ["each-record", "person"])
def test_the_smallest_blocks_do_not_show(units):
    ball = BALLS[-1]
    X, ids = data(ball, 120)
    expected = bits(prepared(X, EACH_RECORD if units == "each-record" else ids, ball))
    assert bits(prepared(ListSource(X, ids, cuts=[1, 1, 60], block=1), units, ball)) == expected


@pytest.mark.parametrize("name", linalg.backends())
def test_threads_use_the_backend_of_the_call(name):
    ball = BALLS[-1]
    X, _ = data(ball, 300)
    with linalg.backend(name), using(engine(2)):
        found = bits(prepared(ListSource(X, cuts=[100, 200]), EACH_RECORD, ball))
        assert found == bits(prepared(X, EACH_RECORD, ball))


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_the_comparison_sees_sums_of_doubles(ball, monkeypatch):
    """The wrong variant: sums of doubles, which are right to rounding and depend on the partition."""

    def add(self, values, group=None, *, counted=False):
        self.doubles = getattr(self, "doubles", np.zeros((self.groups, self.size)))
        np.add.at(self.doubles, np.zeros(len(values), int) if group is None else group, values)

    def merge(self, other, groups=None):
        nothing = np.zeros((self.groups, self.size))
        self.doubles = getattr(self, "doubles", nothing) + getattr(other, "doubles", nothing)

    monkeypatch.setattr(ExactSum, "add", add)
    monkeypatch.setattr(ExactSum, "merge", merge)
    monkeypatch.setattr(ExactSum, "total", lambda self: getattr(self, "doubles", np.zeros((self.groups, self.size))))
    X, _ = data(ball, 1500)
    found = set()
    for seed in range(5):
        source = ListSource.at_random(X, rng=np.random.default_rng(seed))
        points = prepared(source, EACH_RECORD, ball)
        found.add(squares(points)[1].tobytes())
    assert len(found) > 1


@pytest.mark.security
@pytest.mark.parametrize("invalid", ["raise", "center"])
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_bad_records_in_pieces(ball, invalid):
    X, ids = data(ball, 300)
    X = np.array(X)
    X[17] = np.nan
    if invalid == "raise":
        with pytest.raises(InvalidDataError, match=r"^piece 1: .*at index 7\b"):
            prepared(ListSource(X, cuts=[10, 200], block=4), EACH_RECORD, ball)
        return
    rng = np.random.default_rng(0)
    for units, column in ((EACH_RECORD, EACH_RECORD), (ids, "person")):
        expected = bits(prepared(X, units, ball, invalid))
        for room in ROOMS:
            with using(engine(2, room)):
                assert bits(prepared(ListSource.at_random(X, ids, rng=rng), column, ball, invalid)) == expected


@pytest.mark.security
def test_curators_are_told_the_same_numbers():
    ball = BALLS[-1]
    X, ids = data(ball, 400)
    told = []
    for records in (X, ListSource(X, ids, cuts=[100, 150])):
        for units in (EACH_RECORD, ids):
            prepare_records(records, ball, units, "raise", Told(told.append, True))[0]
    assert len(set(told)) == 1
    assert told[0].clipped > 0


# -------------------------------------------------------------------- whole calls


def seeded(call, *arguments, **options):
    return call(*arguments, rng=5, confirm=True, **options).to_dict()


CALLS = {
    "mean": dpm.private_mean,
    "variance": dpm.private_variance,
    "ball": dpm.private_ball,
    "region": dpm.private_region,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("ball", SOME_BALLS, ids=repr)
def test_releases_are_those_of_an_array(ball, name):
    X, ids = data(ball, 4000)
    for column, person in ((EACH_RECORD, EACH_RECORD), ("person", ids)):
        expected = seeded(CALLS[name], X, ball, GDP(2.0), units=person)
        for room, known in ((0, False), (2**30, True)):
            source = ListSource.at_random(X, ids, rng=np.random.default_rng(2), rows_known=known)
            with using(engine(2, room)):
                assert seeded(CALLS[name], source, ball, GDP(2.0), units=column) == expected


@pytest.mark.parametrize("units", ["each-record", "person"])
@pytest.mark.parametrize("ball", SOME_BALLS, ids=repr)
def test_means_by_class_are_those_of_an_array(ball, units):
    X, ids = data(ball, 1500)
    group = np.random.default_rng(4).integers(0, 3, len(X))

    def releases(X, labels, units):
        options = {"units": units, "classes": [2, 0, 1], "rng": 5, "confirm": True}
        return {k: v.to_dict() for k, v in dpm.private_class_means(X, labels, ball, GDP(2.0), **options).items()}

    expected = releases(X, group, EACH_RECORD if units == "each-record" else ids)
    for room in ROOMS:
        source = ListSource.at_random(X, ids, group, rng=np.random.default_rng(2))
        with using(engine(2, room)):
            assert releases(source, "group", units) == expected


@pytest.mark.parametrize("refine", [False, True])
@pytest.mark.parametrize("ball", SOME_BALLS, ids=repr)
def test_a_test_of_two_groups_is_that_of_arrays(ball, refine):
    X, ids = data(ball, 3000)
    Y, others = data(ball, 3000, seed=9)
    others = others + 1000

    def tested(X, Y, units):
        return dpm.private_two_sample_test(
            X, Y, ball, GDP(2.0), units=units, refine=refine, rng=5, confirm=True
        ).to_dict()

    rng = np.random.default_rng(2)
    sources = [ListSource.at_random(Z, names, rng=rng) for Z, names in ((X, ids), (Y, others))]
    for units, columns in ((EACH_RECORD, EACH_RECORD), ((ids, others), "person")):
        expected = tested(X, Y, units)
        for room in ROOMS:
            with using(engine(2, room)):
                assert tested(*sources, columns) == expected


@pytest.mark.security
def test_a_person_in_both_groups_is_refused():
    ball = BALLS[0]
    X, ids = data(ball, 300)
    sources = [ListSource(X, ids), ListSource(X, ids + 60)]
    with pytest.raises(InvalidArgumentError, match="overlap"):
        dpm.private_two_sample_test(*sources, ball, GDP(1.0), units="person", confirm=True)


# -------------------------------------------------------------------- refusals, before and after the spend


@pytest.mark.security
def test_ids_that_look_alike_in_two_pieces_are_refused():
    ball, X = Ball(Euclidean(1), [0.0], 1.0), np.zeros((4, 1))
    for names in (["ann b", "bob", "ann  b", "eve"], ["7", "8", "7.0", "9"], ["ann", "bob", "ann\u200b", "eve"],
                  ["ann", "bob", "ann ", "eve"]):  # fmt: skip
        for block in (1, 4):
            with pytest.raises(InvalidArgumentError, match="only in blanks") as caught:
                prepared(ListSource(X, np.array(names, dtype=object), cuts=[2], block=block), "person", ball)
            assert "piece 1" in str(caught.value)
            assert not any(name.strip() in str(caught.value) for name in ("ann", "bob", "eve"))


@pytest.mark.security
def test_missing_ids_and_other_kinds_are_refused_with_the_piece():
    ball, X = Ball(Euclidean(1), [0.0], 1.0), np.zeros((6, 1))
    for names, said in (
        (["a", "b", "c", "d", "NA", "f"], r"units of piece 1 has a missing id at index 2"),
        (["a", "b", "c", "d", None, "f"], r"units of piece 1 has a missing id at index 2"),
        ([1, 2, "c", "d", "e", "f"], r"one kind: numbers in piece 0, text in piece 1"),
        (["a", "b", 3, 4, 5, 6], r"one kind: text in piece 0, numbers in piece 1"),
        ([1.0, 2.0, 3.0, 4.0, 5.5, 6.0], r"units of piece 1 holds a number at index 2"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            prepared(ListSource(X, np.array(names, dtype=object), cuts=[2], block=1), "person", ball)


@pytest.mark.security
def test_few_units_and_no_records_are_refused():
    ball, X = Ball(Euclidean(1), [0.0], 1.0), np.zeros((6, 1))
    with pytest.raises(InvalidDataError, match="at least 2 units, got 1"):
        prepared(ListSource(X, np.full(6, 3), cuts=[2]), "person", ball)
    with pytest.raises(InvalidDataError, match="at least 2 units"):
        prepared(ListSource(X[:0], cuts=[0]), EACH_RECORD, ball)
    with pytest.raises(InvalidArgumentError, match="units must say who owns"):
        prepared(ListSource(X), None, ball)
    with pytest.raises(InvalidArgumentError, match="one id per record"):
        prepared(X, "person", ball)
    labels = np.array([0, 0, 0, 0, 1, 1])
    with pytest.raises(InvalidDataError, match="class 2 has no records"):
        dpm.private_class_means(
            ListSource(X, None, labels), "group", ball, PureDP(1.0), units=EACH_RECORD, classes=[0, 1, 2]
        )
    with pytest.raises(InvalidDataError, match="piece 1: labels: that at index 1 is outside the public classes"):
        dpm.private_class_means(
            ListSource(X, None, labels, cuts=[3]), "group", ball, PureDP(1.0), units=EACH_RECORD, classes=[0]
        )
    with pytest.raises(InvalidDataError, match="piece 0: it has 6 records in a block, and 1 labels"):
        dpm.private_class_means(
            ListSource(X, None, labels[:1]), "group", ball, PureDP(1.0), units=EACH_RECORD, classes=[0, 1]
        )


class Fleeting(ListSource):
    """A source that changes after so many of its pieces were read."""

    def __init__(self, *arguments, change, after, **options):
        super().__init__(*arguments, **options)
        self.change, self.after = change, after

    def bound(self, space, units=None, labels=None):
        pieces = super().bound(space, units, labels)
        for piece in pieces:
            original = piece.blocks

            def blocks(original=original, piece=piece):
                if piece.read >= self.after:
                    self.change(piece)
                return original()

            piece.blocks = blocks
        return pieces


def vanish(piece):
    raise OSError("no such file")


def lose_a_record(piece):
    piece.records = piece.records[1:]


def spoil(piece):
    piece.records = np.full_like(piece.records, np.nan)


@pytest.mark.security
@pytest.mark.parametrize("change", [vanish, lose_a_record, spoil])
@pytest.mark.parametrize("units", [EACH_RECORD, "person"])
@pytest.mark.parametrize("ball", SOME_BALLS, ids=repr)
def test_a_source_that_changes_is_never_released(ball, units, change):
    """Before the spend or after it: what is left of the files is not what was asked about."""
    X, ids = data(ball, 600)
    budget = Budget(GDP(1.0))
    source = Fleeting(X, ids, cuts=[200], change=change, after=1)
    with using(engine(1, 0)):
        if ball.space.is_flat and units == "person":
            dpm.private_variance(source, ball, GDP(1.0), units=units, budget=budget, confirm=True)  # read once
            return
        with pytest.raises(SourceChangedError) as caught:
            dpm.private_variance(source, ball, GDP(1.0), units=units, budget=budget, confirm=True)
    after = units is EACH_RECORD  # averages of units are solved before the spend
    assert ("The budget was spent, and nothing was released." in str(caught.value)) == after
    assert bool(budget.spent) == after


def test_records_that_no_pass_takes_are_added_to_the_same_integers():
    """Nearly singular matrices are left to LAPACK: in one sum with the others, however they are cut."""
    space = SPD(3)
    ball = Ball(space, np.eye(3), 40.0)
    X = space.random_point(200, rng=0)
    X[::7] *= np.array([1e-14, 1.0, 1.0])[:, None] * np.array([1e-14, 1.0, 1.0])
    odd = ~space.valid(X)
    X[odd] = np.eye(3)
    expected = bits(prepared(X, EACH_RECORD, ball))
    for seed in range(4):
        source = ListSource.at_random(X, rng=np.random.default_rng(seed))
        assert bits(prepared(source, EACH_RECORD, ball)) == expected
    listed = prepare_records(list(X), ball, EACH_RECORD, "raise", Told())[0]
    assert bits(listed) == expected
    assert isinstance(Records.of(X, space), Records)
