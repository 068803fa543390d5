"""From records to one point per unit: checked once, in bounded memory, and the order of rows leaves no trace."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, SPD, Ball, Euclidean, Hyperbolic, InvalidDataError, KendallShapes, Sphere, frechet
from dpmanifold.frechet import Records, UnitPoints, made_from
from dpmanifold.manifolds.base import Manifold
from dpmanifold.stats.curator import Told
from dpmanifold.stats.draws import hidden_mean
from dpmanifold.stats.inputs import prepare_records
from laws.data import in_ball

pytestmark = pytest.mark.security

SPACES = [
    Euclidean(3),
    SPD(2),
    SPD(3),
    SPD(9),
    SPD(3, metric="riemann"),
    SPD(5, metric="riemann"),
    Sphere(2),
    Hyperbolic(3),
    KendallShapes(5),
]
PEOPLE, ROWS = 40, 900


def question(space, seed=0):
    """A ball, records of which some lie outside, and ids in random order."""
    rng = np.random.default_rng(seed)
    radius = min(0.4, 0.7 * space.radius_limit)
    ball = Ball(space, space.random_point(rng=3) if space.radius_limit < 10 else space.origin, radius)
    wide = Ball(space, ball.center, 1.3 * radius)
    return ball, in_ball(wide, ROWS, rng), rng.integers(100, 100 + PEOPLE, ROWS)


def points_of(X, ball, units, invalid="raise"):
    return prepare_records(X, ball, units, invalid, Told(confirm=True))[0]


def same_bits(first, second):
    assert first.dtype == second.dtype
    assert first.tobytes() == second.tobytes()


# -------------------------------------------------------------------- order, blocks, kinds of ids


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_rows_in_any_order_give_the_same_bits(space):
    """Rows shuffled within people and between them: every average, and the mean that is hidden."""
    ball, X, ids = question(space)
    expected = points_of(X, ball, ids)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(ROWS)
        found = points_of(X[order], ball, ids[order])
        same_bits(found.array(), expected.array())
        same_bits(found.mean(), expected.mean())
    # The same people by text, and sorted.
    order = np.argsort(ids, kind="stable")
    same_bits(points_of(X[order], ball, [str(i) for i in ids[order]]).array(), expected.array())
    same_bits(points_of(X, ball, ids.astype(str)).array(), expected.array())


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_records_in_any_order_have_the_same_mean(space):
    ball, X, _ = question(space)
    expected = points_of(X, ball, EACH_RECORD)
    order = np.random.default_rng(1).permutation(ROWS)
    found = points_of(X[order], ball, EACH_RECORD)
    same_bits(found.mean(), expected.mean())
    at = expected.mean()
    for power in (2, 4):

        def f(block, power=power):
            return ball.frame.dist(at, block)[:, None] ** power

        same_bits(found.mean_of(f, 1.0), expected.mean_of(f, 1.0))
    same_bits(frechet.mean(X, ball).in_frame, frechet.mean(X[order], ball).in_frame)
    same_bits(frechet.mean(X, space).value, frechet.mean(X[::-1], space).value)


def test_sums_of_doubles_would_show_the_order(monkeypatch):
    """The wrong variant: added as they come, the same test fails."""
    monkeypatch.setattr(
        UnitPoints, "mean_of", lambda self, f, bound: np.add.reduce([f(block).sum(axis=0) for block in self.blocks()])
    )
    ball, X, ids = question(Euclidean(3))
    order = np.random.default_rng(0).permutation(PEOPLE)
    everybody = points_of(X, ball, ids).array()
    sums = [UnitPoints.of(p, ball).mean_of(lambda block: block, 1.0) for p in (everybody, everybody[order])]
    assert sums[0].tobytes() != sums[1].tobytes()


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_blocks_leave_no_trace(monkeypatch, space):
    ball, X, ids = question(space)
    units, records = points_of(X, ball, ids).array(), points_of(X, ball, EACH_RECORD)
    for size in (1, 100, 1000, 5000, 100_000):
        monkeypatch.setattr("dpmanifold.frechet.record_blocks._BLOCK", size)
        monkeypatch.setattr("dpmanifold.frechet.points_per_unit._GATHERED", size)
        monkeypatch.setattr("dpmanifold.frechet.record_blocks._FEWEST", 7)
        monkeypatch.setattr("dpmanifold.frechet.points_per_unit._FEWEST", 7)
        same_bits(points_of(X, ball, ids).array(), units)
        found = points_of(X, ball, EACH_RECORD)
        same_bits(found.mean(), records.mean())
        same_bits(found.array(), records.array())


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_an_average_depends_on_the_records_of_its_unit_alone(space):
    ball, X, ids = question(space)
    expected = points_of(X, ball, ids).array()
    names = np.unique(ids)
    mine = ids == names[7]
    alone = points_of(np.concatenate([X[mine], X[~mine][:3]]), ball, np.repeat([0, 1], [mine.sum(), 3]))
    same_bits(alone.array()[0], expected[7])


@pytest.mark.parametrize("space", [SPD(3, metric="riemann"), Sphere(2)], ids=repr)
def test_an_average_does_not_depend_on_who_shares_its_block(monkeypatch, space):
    """A unit with thousands of records: alone in its block, or with others before and behind it."""
    monkeypatch.setattr("dpmanifold.frechet.points_per_unit._GATHERED", 3000 * space.origin.size)
    ball, _, _ = question(space)
    X = in_ball(ball, 5000, np.random.default_rng(4))
    alone = points_of(X, ball, np.repeat([0, 1], [2500, 2500])).array()
    shared = points_of(X, ball, np.repeat([0, 1, 2, 3], [2500, 300, 2000, 200])).array()
    same_bits(alone[0], shared[0])


def test_a_unit_of_one_record_is_the_record():
    ball, X, _ = question(Euclidean(3))
    np.testing.assert_allclose(
        points_of(X, ball, np.arange(ROWS)).array(), points_of(X, ball, EACH_RECORD).array(), atol=1e-15
    )


def test_the_statistic_before_the_noise_is_the_same_for_shuffled_rows():
    """What a mechanism hides, on a flat and on a curved space; and so a seeded release."""
    for space in (SPD(3), SPD(3, metric="riemann")):
        ball, X, ids = question(space)
        order = np.random.default_rng(5).permutation(ROWS)
        mechanism = dpm.mechanisms.get("wrapped-gaussian")
        values = [
            hidden_mean(ball, mechanism, points_of(*data)) for data in ((X, ball, ids), (X[order], ball, ids[order]))
        ]
        same_bits(*values)
        releases = [
            dpm.private_mean(x, ball, dpm.GDP(1.0), units=u, rng=1, confirm=True).value
            for x, u in ((X, ids), (X[order], ids[order]))
        ]
        same_bits(*releases)


# -------------------------------------------------------------------- checked once, and what the messages say


@pytest.mark.parametrize("units", ["each-record", "ids"])
@pytest.mark.parametrize("space", [SPD(3), SPD(3, metric="riemann"), Sphere(2)], ids=repr)
def test_a_bad_record_is_refused_by_its_index_and_counts_as_the_centre_if_asked(space, units):
    ball, X, ids = question(space)
    who = EACH_RECORD if units == "each-record" else ids
    bad = X.copy()
    bad[[13, 500]] = np.nan
    with pytest.raises(InvalidDataError, match="at index 13"):
        points_of(bad, ball, who)
    centred = X.copy()
    centred[[13, 500]] = ball.center
    told = []
    found = prepare_records(bad, ball, who, "center", Told(told.append, True))[0]
    same_bits(found.array(), points_of(centred, ball, who).array())
    assert (told[0].records, told[0].replaced) == (ROWS, 2)
    expected = []
    prepare_records(centred, ball, who, "raise", Told(expected.append, True))[0]
    assert (told[0].clipped, expected[0].replaced) == (expected[0].clipped, 0)
    assert 0 < told[0].clipped < ROWS


def test_what_the_kernels_cannot_judge_is_judged_as_always():
    """Records near the edge of what is positive definite or symmetric have the verdict of the space's own check."""
    space, rng = SPD(3), np.random.default_rng(0)
    ball = Ball(space, np.eye(3), 2.0)
    turn = np.linalg.qr(rng.standard_normal((400, 3, 3)))[0]
    values = np.stack([np.ones(400), np.ones(400), 10 ** rng.uniform(-17, -13, 400)], axis=1)
    X = space.project((turn * values[:, None]) @ turn.transpose(0, 2, 1))
    X[::7, 0, 1] += 10 ** rng.uniform(-8, -4, len(X[::7]))
    valid = space.valid(X)
    assert 20 < valid.sum() < 380
    told = []
    points = prepare_records(X, ball, EACH_RECORD, "center", Told(told.append, True))[0]
    assert told[0].replaced == (~valid).sum()
    assert not points.array()[~valid].any()


@pytest.mark.parametrize("space", [SPD(3), SPD(3, metric="riemann"), Sphere(2), Euclidean(2)], ids=repr)
@pytest.mark.parametrize("units", ["each-record", "ids"])
def test_every_record_is_checked_once(monkeypatch, space, units):
    """By the space's own check, or by the pass that reads raw records; never again behind that."""
    ball, X, ids = question(space)
    looked = []
    check = Manifold.check
    monkeypatch.setattr(Manifold, "check", lambda self, p, first=0: looked.append(np.size(p)) or check(self, p, first))
    who = EACH_RECORD if units == "each-record" else ids
    dpm.private_region(X, ball, dpm.GDP(1.0), units=who, confirm=True, refine=True)
    # Centres, means and released points are looked at as well, one at a time.
    assert sum(size for size in looked if size > 50 * space.origin.size) in (0, X.size)


def test_records_are_read_and_never_written_to():
    """Writing to what is read-only raises; and a kernel, which asks nobody, leaves the bytes as they were."""
    ball, X, ids = question(SPD(3))
    before = X.tobytes()
    X.flags.writeable = False
    points_of(X, ball, ids)
    frechet.mean(X, ball)
    frechet.mean(X, SPD(3))
    assert X.tobytes() == before


@pytest.mark.parametrize("space", [SPD(3), SPD(3, metric="riemann"), Euclidean(2)], ids=repr)
@pytest.mark.parametrize("units", [False, True])
def test_classes_are_what_each_of_them_is_alone(space, units):
    """Records are looked at once for all classes, and every class is as if it were asked alone."""
    ball, X, ids = question(space)
    labels = np.where(ids % 3 == 0, "a", "b") if units else np.where(np.arange(ROWS) % 3, "a", "b")
    options = {"confirm": True, "project": True}
    both = dpm.private_class_means(
        X, labels, ball, dpm.GDP(1.0), units=ids if units else EACH_RECORD, classes=["a", "b"], rng=4, **options
    )
    source = np.random.default_rng(4)
    for name in ("a", "b"):
        mine = labels == name
        alone = dpm.private_mean(
            X[mine], ball, dpm.GDP(1.0), units=ids[mine] if units else EACH_RECORD, rng=source, **options
        )
        assert alone.n == both[name].n
        if units or space.is_flat:
            same_bits(alone.value, both[name].value)
        else:  # to the solver's tolerance: the first gradient comes with the pass over all records
            np.testing.assert_allclose(alone.value, both[name].value, atol=1e-10)


# -------------------------------------------------------------------- the type itself


def test_points_can_be_moved_joined_and_picked():
    ball = Ball(Euclidean(1), [0.0], 9.0)
    points = UnitPoints.of(np.array([[1.0], [3.0], [8.0]]), ball, "unit")
    inner = points.in_ball(Ball(Euclidean(1), [2.0], 4.0))
    np.testing.assert_allclose(inner.array(), [[-1.0], [1.0], [4.0]], rtol=1e-15)
    assert (inner.unit, inner.ball.radius) == ("unit", 4.0)
    assert points.in_ball(ball) is points
    assert points.joined(points).mean().tolist() == [4.0]
    assert len(points.joined(points)) == 6
    some = points.where(np.array([True, False, True]))
    assert (some.array().tolist(), len(some)) == ([[1.0], [8.0]], 2)
    assert repr(points).startswith("UnitPoints(3 of Ball")


def test_the_mean_is_solved_once(monkeypatch):
    ball, X, ids = question(Sphere(2))
    points = points_of(X, ball, ids)
    first = points.mean()
    monkeypatch.setattr(UnitPoints, "solved", lambda *_: pytest.fail("solved again"))
    assert points.mean() is first


def test_valid_points_need_no_check():
    ball, X, _ = question(Sphere(2))
    made = made_from(Records.valid(X, Sphere(2), replaced=3), ball)
    assert (len(made.points), made.replaced) == (ROWS, 3)
