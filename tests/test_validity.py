"""Whether a record counts is a fact of its space: no ball, batch, container or way of reading decides it."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.frechet.points_per_unit import made_from
from dpmanifold.ledger import Ledger
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import prepare_records, records_of
from laws.pieces import ListSource

EPS = 2.0**-52

pytestmark = pytest.mark.security


def rotations(rng, n, k):
    return np.linalg.qr(rng.standard_normal((n, k, k)))[0]


def symmetric(a):
    return a / 2 + np.swapaxes(a, -1, -2) / 2


def graded(k, span):
    """Return a centre whose eigenvalues span some powers of ten, turned."""
    turn = rotations(np.random.default_rng(k), 1, k)[0]
    return symmetric(turn @ np.diag(np.logspace(0, -span, k)) @ turn.T)


def near_singular(k, n, seed=0):
    """Return matrices whose smallest eigenvalue is about k eps times the largest, on either side.

    A third are diagonal, and a third have the eigenvectors of graded centres: whitened by one, they are harmless.
    """
    rng = np.random.default_rng([seed, k])
    share = k * EPS * 10 ** rng.uniform(-1.0, 1.5, n)
    values = -np.sort(-(10 ** rng.uniform(np.log10(share)[:, None], 0, (n, k))))
    values[:, 0], values[:, -1] = 1.0, share
    turn = rotations(rng, n, k)
    turn[::3], turn[1::3] = np.eye(k), rotations(np.random.default_rng(k), 1, k)[0]
    x = (turn * values[:, None, :]) @ np.swapaxes(turn, -1, -2)
    x[-n // 20 :] *= -1
    return symmetric(x * 2.0 ** rng.integers(-900, 900, n)[:, None, None])


def matrices(k):
    """Return such matrices, ordinary ones among them."""
    good = dpm.SPD(k).exp_coords(np.eye(k), 0.5 * np.random.default_rng(k).standard_normal((40, k * (k + 1) // 2)))
    return np.concatenate([near_singular(k, 400), good, np.zeros((1, k, k)), np.full((1, k, k), np.nan)])


def spd_balls(space):
    k = space.size
    centers = [np.eye(k), 3.7 * np.eye(k), np.diag(np.logspace(0, -8, k)), graded(k, 6), graded(k, 3) * 1e-200]
    return [dpm.Ball(space, center, radius) for center in centers for radius in (0.4, 5.0)]


def vectors(scale):
    """Return directions of about a length: too long, too short, of the wrong kind, and good."""
    rng = np.random.default_rng(0)
    unit = rng.standard_normal((300, 3))
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    off = 1 + 10 ** rng.uniform(-9, -3, 300) * rng.choice([-1, 1], 300)
    return np.concatenate([unit * off[:, None] * scale, unit * 1e-300, unit * 1e200, np.zeros((1, 3)), -unit[:5]])


def far_hyperboloid(space):
    """Return points up to the end of what doubles hold, and some beyond, a little off the hyperboloid."""
    rng = np.random.default_rng(0)
    lengths = np.concatenate([np.linspace(0, 290, 200), np.full(100, 1.0)])
    c = rng.standard_normal((300, space.dim))
    x = space.exp_coords(space.origin, c / np.linalg.norm(c, axis=1, keepdims=True) * lengths[:, None])
    x *= (1 + 10 ** rng.uniform(-16, -4, 300) * rng.choice([-1, 1], 300))[:, None]
    return np.concatenate([x, x[:50] * 1e160, -x[:50]])


def landmarks(k):
    """Return landmarks that all but coincide, far from the origin, huge, tiny."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, k, 2)) * 10 ** rng.uniform(-16, 3, 400)[:, None, None]
    x[::2] += rng.standard_normal((200, 1, 2))
    return np.concatenate([x, np.ones((1, k, 2)), x[:40] * 1e-290, x[:40] * 1e290, np.full((1, k, 2), np.inf)])


def about(space, radius, *centers):
    return [dpm.Ball(space, center, share * radius) for center in centers for share in (0.1, 1.0)]


SPHERE, SHAPES, FAR = dpm.Sphere(2), dpm.KendallShapes(4), dpm.Hyperbolic(2)
MIXED = dpm.Product([dpm.SPD(2, metric="riemann"), dpm.Sphere(2)], weights=[1.0, 0.5])


def mixed():
    """Return records of a product: near-singular matrices beside vectors that are a little off."""
    return np.concatenate([near_singular(2, 300).reshape(300, 4), vectors(1.0)[:300]], axis=1)


CASES = {
    **{f"riemann{k}": (matrices(k), spd_balls(dpm.SPD(k, metric="riemann"))) for k in (2, 3, 5, 9)},
    **{f"logeuclid{k}": (matrices(k), spd_balls(dpm.SPD(k))) for k in (2, 3, 5, 9)},
    "sphere": (vectors(1.0), about(SPHERE, 0.7, SPHERE.origin, -SPHERE.origin, SPHERE.random_point(rng=1))),
    "whole sphere": (vectors(1.0), [dpm.Ball.whole(SPHERE)]),
    "shapes": (landmarks(4), about(SHAPES, 0.3, SHAPES.origin, SHAPES.random_point(rng=1))),
    "hyperbolic": (far_hyperboloid(FAR), about(FAR, 1.0, FAR.origin, FAR.exp_coords(FAR.origin, [9.0, 3.0]))),
    "product": (mixed(), about(MIXED, 0.3, MIXED.origin, MIXED.join((np.diag([1, 1e-8]), [0.0, 0.6, 0.8])))),
}  # fmt: skip


def accepted_alone(records, ball):
    """Return which records are taken where each of them is all there is."""
    found = []
    for record in records:
        try:
            made_from(records_of(record[None], ball, "raise"), ball)
        except dpm.InvalidDataError:
            found.append(False)
        else:
            found.append(True)
    return np.array(found)


@pytest.mark.parametrize("metric", ["riemann", "logeuclid"])
def test_the_sweep_is_large_and_has_records_of_both_kinds(metric):
    """What follows would mean little if all records were valid, or none."""
    valid = np.concatenate([dpm.SPD(k).valid(CASES[f"{metric}{k}"][0]) for k in (2, 3, 5, 9)])
    assert valid.size >= 1500
    assert 200 < np.count_nonzero(valid) < valid.size - 200


@pytest.mark.parametrize("case", CASES)
def test_the_space_alone_decides(case):
    """In every ball the same records count, alone as among all of them; the others count as the centre."""
    records, balls = CASES[case]
    valid = balls[0].space.valid(records)
    assert valid.tolist() == [bool(balls[0].space.valid(record[None])[0]) for record in records]
    for ball in balls:
        some = slice(None, None, 1 + len(records) // 40)
        np.testing.assert_array_equal(accepted_alone(records[some], ball), valid[some], err_msg=repr(ball))
        made = made_from(records_of(records, ball, "center"), ball)
        assert made.replaced == np.count_nonzero(~valid), repr(ball)
        points = made.points.array()
        assert np.isfinite(points).all()
        centre = made_from(records_of(ball.center[None], ball, "raise"), ball).points.array()
        assert (points[~valid] == centre).all()
        assert (ball.frame.dist(ball.frame.origin, points) <= ball.radius * (1 + 1e-12)).all()


@pytest.mark.parametrize("case", ["riemann3", "logeuclid3", "shapes", "product"])
def test_no_container_decides(case):
    """Arrays in other orders, lists, single precision and blocks of a source count the same records."""
    records, balls = CASES[case]
    space = balls[0].space
    bad = np.count_nonzero(~space.valid(records))
    ball = balls[-1]
    for given in (records[::-1], np.asfortranarray(records), list(records)):
        assert made_from(records_of(given, ball, "center"), ball).replaced == bad
    told = []
    source = ListSource(records, cuts=(90, 200), block=37)
    prepare_records(source, ball, dpm.EACH_RECORD, "center", Told(told.append, True))
    assert told[0].replaced == bad


def test_what_was_registered_is_never_refused_later(tmp_path):
    """Registered with a ball in which it looks harmless, a singular matrix would lose a release with another ball."""
    space = dpm.SPD(2, metric="riemann")
    near, usual = dpm.Ball(space, np.diag([1.0, 1e-8]), 5.0), dpm.Ball(space, np.eye(2), 5.0)
    good = np.broadcast_to(np.diag([1.0, 1e-8]), (30, 2, 2))
    bad = np.concatenate([good[:-1], np.diag([1.0, 1.2e-16])[None]])
    with Ledger(tmp_path / "ledger.db", principal="ada") as book:
        cohort = book.population("cohort", cap=dpm.GDP(1.0), unit="participant")
        with pytest.raises(dpm.InvalidDataError, match="not positive definite"):
            cohort.register("bad", bad, near, units=dpm.EACH_RECORD)
        data = cohort.register("good", good, near, units=dpm.EACH_RECORD)
        assert dpm.private_mean(data, usual, dpm.GDP("0.001"), units=None, budget=cohort, confirm=True).private
