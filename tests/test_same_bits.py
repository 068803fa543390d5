"""The same bits whatever the order of the records, the blocks, the partitions and the threads, on every space.

A record's image is a function of that record alone (manifolds/test_batches.py), and sums are exact, so nothing is left
that an order could change (theory: rounding). Across instruction sets the compiled logarithms round differently: there
means of matrices agree within the proven rounding, and everything that no kernel touches exactly.
"""

import contextlib
import re
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from dpmanifold import EACH_RECORD, SPD, Euclidean, frechet, linalg
from dpmanifold.frechet import default_tol
from dpmanifold.stats.curator import Told
from dpmanifold.stats.inputs import prepare_records
from laws.spaces import BALLS, SMALL_BALLS

N, PEOPLE = 2000, 70
BLOCK_SIZES = (1.0, 4.0, 0.31, 0.03, 0.006)  # times what the library takes
_SIZE_OF_A_BLOCK = re.compile(r"^_?([A-Z]+_)*(BLOCK|PIECE|CHUNK|FEWEST|FEW|GATHERED)(_[A-Z]+)*$")


# -------------------------------------------------------------------- what is computed


def prepared(X, ids, ball):
    return prepare_records(X, ball, EACH_RECORD if ids is None else ids, "raise", Told(confirm=True))[0]


def squares(points):
    """Mean of the squared distances and of the products of coordinates: second moments of all kinds."""
    frame, radius = points.ball.frame, points.ball.effective_radius

    def products(block):
        c = frame.log_coords(frame.origin, block)
        return (c[:, :, None] * c[:, None, :]).reshape(len(block), -1)

    away = points.mean_of(lambda block: frame.dist(frame.origin, block)[:, None] ** 2, radius**2)
    return [away, points.mean_of(products, radius**2)]


def found(mean):
    return [mean.in_frame, mean.value]


COMPUTED = {
    "frechet.mean of records": lambda X, ids, ball: found(frechet.mean(X, ball)),
    "frechet.mean of people": lambda X, ids, ball: found(frechet.mean(X, ball, units=ids)),
    "frechet.mean without a ball": lambda X, ids, ball: found(frechet.mean(X, ball.space)),
    "hidden mean of records": lambda X, ids, ball: [prepared(X, None, ball).mean()],
    "hidden mean of people": lambda X, ids, ball: [prepared(X, ids, ball).mean()],
    "second moments of records": lambda X, ids, ball: squares(prepared(X, None, ball)),
    "second moments of people": lambda X, ids, ball: squares(prepared(X, ids, ball)),
}


def naive_mean(X, ids, ball):
    """A sum that goes on from record to record: within rounding of the truth, but not the same bits in every order."""
    points = ball.to_frame(X)
    return [np.cumsum(ball.frame.log_coords(ball.frame.origin, points), axis=0)[-1] / len(X)]


def in_blocks(X, ids, ball):
    """A sum of sums of blocks, which a block size shows in."""
    points = ball.frame.log_coords(ball.frame.origin, ball.to_frame(X))
    step = frechet.solver._BLOCK // 4096
    return [sum(points[start : start + step].sum(axis=0) for start in range(0, len(X), step)) / len(X)]


# -------------------------------------------------------------------- what must not change it


def data(ball, n=N, seed=0):
    """Records all over the ball and a tenth of them outside, with the number of the person who owns each."""
    space, rng = ball.space, np.random.default_rng(seed)
    c = rng.standard_normal((n, space.dim))
    c *= ball.radius * (1.2 * rng.random(n) ** 0.5 / np.linalg.norm(c, axis=1))[:, None]
    return space.project(space.exp_coords(ball.center, c)), rng.integers(0, PEOPLE, n)


def orders(X, ids):
    """The same people with the same records in other orders, and under other names."""
    rng = np.random.default_rng(1)
    within = np.arange(len(X))
    for person in range(PEOPLE):
        rows = np.flatnonzero(ids == person)
        within[rows] = rng.permutation(rows)
    mixed = rng.permutation(len(X))
    grouped = np.argsort(ids, kind="stable")
    names = rng.permutation(10 * PEOPLE)[ids]
    return {
        "shuffled within people": (X[within], ids),
        "permuted": (X[mixed], ids[mixed]),
        "reversed": (X[::-1], ids[::-1]),
        "sorted by person": (X[grouped], ids[grouped]),
        "other names": (X, names),
        "names that are text": (X, np.char.add("person ", names.astype(str))),
        "another layout in memory": (np.asfortranarray(X), ids),
    }


@contextlib.contextmanager
def block_size(factor):
    """Multiply every size of a block that the library has; it has some."""
    with pytest.MonkeyPatch.context() as patch:
        changed = 0
        for name, module in list(sys.modules.items()):
            if name.startswith("dpmanifold."):
                for word, value in list(vars(module).items()):
                    if _SIZE_OF_A_BLOCK.match(word) and type(value) is int:
                        patch.setattr(module, word, max(1, round(value * factor)))
                        changed += 1
        assert changed >= 3
        yield


@contextlib.contextmanager
def threads(number):
    """Let the kernels use some threads, however little there is to do."""
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(limits=number):
        patch.setattr("dpmanifold.linalg.native.passes._WORTH_A_THREAD", 1.0)
        yield


def bits(compute, X, ids, ball):
    return b"".join(np.ascontiguousarray(part).tobytes() for part in compute(X, ids, ball))


def what_shows(compute, ball):
    """Return what of order, names, layout, block size and threads shows in the bits of a computation."""
    X, ids = data(ball)
    with threads(1):
        expected = bits(compute, X, ids, ball)
    shown = [name for name, (Y, others) in orders(X, ids).items() if bits(compute, Y, others, ball) != expected]
    for factor in BLOCK_SIZES:
        with block_size(factor):
            if bits(compute, X, ids, ball) != expected:
                shown.append(f"{factor} times the block")
    with threads(2):
        if bits(compute, X, ids, ball) != expected:
            shown.append("two threads")
    return shown


# -------------------------------------------------------------------- the tests


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize("ball", [*BALLS, *SMALL_BALLS], ids=repr)
def test_order_blocks_and_threads_do_not_show(ball, name):
    assert what_shows(COMPUTED[name], ball) == []


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_the_comparison_sees_sums_of_doubles(ball):
    assert {"permuted", "reversed", "shuffled within people"} <= set(what_shows(naive_mean, ball))
    assert any("block" in name for name in what_shows(in_blocks, ball))


@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_partitions_do_not_show(ball):
    """Parts that are prepared by themselves and joined give the bits of all of them at once."""
    X, ids = data(ball)
    for cut in (2, 700, 1501):
        assert_joined(prepared(X, None, ball), prepared(X[cut:], None, ball), prepared(X[:cut], None, ball))
    for some in (2, PEOPLE // 2):
        mine = ids < some
        parts = (prepared(X[rows], ids[rows], ball) for rows in (~mine, mine))
        assert_joined(prepared(X, ids, ball), *parts)


def assert_joined(whole, one, two):
    together = one.joined(two)
    assert [part.tobytes() for part in squares(together)] == [part.tobytes() for part in squares(whole)]
    assert together.mean().tobytes() == whole.mean().tobytes()


@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
@pytest.mark.parametrize("name", COMPUTED)
def test_threads_do_not_show_in_much_work(name, metric):
    """Enough matrices that every pass is split among threads, several times over."""
    ball = type(BALLS[0])(SPD(3, metric=metric), np.diag([2.0, 1.0, 0.5]), 1.5)
    X, ids = data(ball, 20_000)
    results = []
    for number in (1, 2, 3):
        with threads(number):
            results.append(bits(COMPUTED[name], X, ids, ball))
    assert len(set(results)) == 1


# -------------------------------------------------------------------- instruction sets


def allowed(ball, n):
    """How far two computed means may be apart (theory: rounding, solver): both tolerances, and twice what a record's
    place in the frame and its logarithm there may be off by, over the least curvature of the sum of squares."""
    frame, radius = ball.frame, ball.effective_radius
    each = ball.space.dist_error(ball.center, ball.radius) + frame.log_error(radius)
    return 2 * (default_tol(ball, n) + each) / frame.hessian_bounds(2 * radius)[0]


def mean_at(level, ball, X, ids=None):
    with linalg.backend(level):
        return prepared(X, ids, ball).mean()


@pytest.mark.parametrize("people", [False, True], ids=["records", "people"])
@pytest.mark.parametrize("ball", BALLS, ids=repr)
def test_levels_agree_exactly_or_within_the_proven_rounding(ball, people):
    X, ids = data(ball)
    ids = ids if people else None
    means = [mean_at(level, ball, X, ids) for level in linalg.backends()]
    if isinstance(ball.space, Euclidean):  # which no kernel looks at
        assert len({mean.tobytes() for mean in means}) == 1
    bound = allowed(ball, len(X))
    assert bound < 1e-9 * ball.radius
    assert max(float(ball.frame.dist(means[-1], mean)) for mean in means) <= bound


def test_the_proven_rounding_is_not_loose():
    """Matrices kept in single precision move the mean by far more than levels may differ by."""
    ball = next(ball for ball in BALLS if ball.space == SPD(3))
    X, _ = data(ball)
    one, two = (prepared(Y, None, ball).mean() for Y in (X, X.astype(np.float32).astype(np.float64)))
    assert float(ball.frame.dist(one, two)) > 10 * allowed(ball, len(X))


@pytest.mark.slow
@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
@pytest.mark.parametrize("level", linalg.backends())
def test_at_every_level_order_blocks_and_threads_do_not_show(level, metric):
    ball = type(BALLS[0])(SPD(3, metric=metric), np.diag([2.0, 1.0, 0.5]), 1.5)
    with linalg.backend(level):
        for name in ("hidden mean of records", "hidden mean of people"):
            assert what_shows(COMPUTED[name], ball) == [], name
