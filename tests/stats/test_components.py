"""Components as they are released: what they tell, what is promised, and what verify notices.

Draws that are compared are seeded; the pair search and the replay leave nothing to chance.
"""

import copy
import json
import math

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import BudgetError, InvalidArgumentError, InvalidDataError, PromiseError
from dpmanifold.features import Signs, Squares, computed_diameter
from dpmanifold.inference.principal_components import COUNT
from dpmanifold.stats.pga import COMPONENT_SHARES
from laws import feature_laws, replay
from laws.accounts import MemoryAccount
from laws.sabotage import with_less_noise

MU = 1.0
EACH = {"units": dpm.EACH_RECORD}
SPACE = dpm.Ball(dpm.Euclidean(3), [1.0, 0.0, -1.0], 2.0, source="the range of the scale")
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.7)
TENSORS = dpm.Ball(dpm.SPD(2), np.diag([2.0, 0.5]), 1.0)
MATRICES = dpm.Ball(dpm.SPD(2, metric="riemann"), np.diag([2.0, 0.5]), 1.0)
SHAPES = dpm.Ball(dpm.KendallShapes(4), dpm.KendallShapes(4).origin, 0.35)
SEVERAL = dpm.Product([dpm.SPD(2), dpm.Sphere(2)], weights=[0.5, 2.0])
SEVERAL = dpm.Ball(SEVERAL, SEVERAL.origin, 1.0)
BALLS = [SPACE, CAP, TENSORS, MATRICES, SHAPES, SEVERAL]


def orthonormal(count, dim, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((dim, count)))[0].T


def cloud(ball, n, seed=0, spread=0.25):
    """Records with a decaying spectrum about a point that is not the centre."""
    rng, d = np.random.default_rng(seed), ball.space.dim
    c = spread * ball.radius * rng.standard_normal((n, d)) / np.arange(1, d + 1)
    c[:, 0] += 0.2 * ball.radius
    return ball.space.project(ball.space.exp_coords(ball.center, c))


def asked(ball, **options):
    return lambda X: dpm.private_pga(X, ball, dpm.GDP(MU), **EACH, confirm=True, **options)


# -------------------------------------------------------------------- feature maps

MAPS = [(Signs(10.0), 2), (Signs(10.0), 3), (Signs(10.0), 5), (Signs(0.3), 3), (Squares(orthonormal(1, 1), 1 / 3), 1),
        (Squares(orthonormal(2, 3), 1 / 3), 3), (Squares(orthonormal(3, 3), 2.0), 3)]  # fmt: skip


@pytest.mark.parametrize(("found", "dim"), MAPS, ids=lambda x: getattr(x, "name", x))
def test_the_laws_of_a_feature_map(found, dim):
    wrong = feature_laws.broken_laws(found, dim, np.random.default_rng(dim))
    if isinstance(
        found, Signs
    ):  # a direction has no length at all: longer vectors are no farther apart but for rounding
        wrong = [text for text in wrong if "degree" not in text]
    assert wrong == []


@pytest.mark.parametrize(("found", "dim"), [MAPS[2], MAPS[5]], ids=lambda x: getattr(x, "name", x))
def test_a_diameter_one_percent_too_small_is_found_out(found, dim):
    widest = feature_laws.widest_pair(found, dim, np.random.default_rng(0), 400, 400)[0]
    assert widest > 0.99 * found.diameter(dim)


@pytest.mark.parametrize(("found", "dim"), [(Signs(10.0), 45), (Squares(orthonormal(3, 45), 1 / 3), 45)])
def test_computed_features_obey_the_bound_to_the_last_bit(found, dim):
    """Basis vectors, their neighbours in doubles, denormal and huge ones, and zeros."""
    rng = np.random.default_rng(1)
    v = rng.standard_normal((300, dim))
    axes = np.eye(dim) if isinstance(found, Signs) else found.directions
    v[:100] = axes[rng.integers(0, len(axes), 100)]
    v[100:200] += 1e3 * np.eye(dim)[rng.integers(0, dim, 100)]
    v /= np.linalg.norm(v, axis=1, keepdims=True) / (1 + rng.integers(0, 3, (300, 1)) * 2**-52)
    if isinstance(found, Signs):
        v *= rng.choice([5e-324, 1e-310, 1e-200, 1.0, 1e200, 1e307], (300, 1))
        v[-1] = 0.0
    images = found.of(v)
    exact = images.astype(np.longdouble)
    lengths = np.sqrt((exact**2).sum(axis=1))
    assert lengths.max() <= found.longest(dim) + found.rounding(dim) * 2**-52
    apart = np.sqrt(((exact[:100, None] - exact[None, :100]) ** 2).sum(axis=-1)).max()
    assert 0.99 * found.diameter(dim) < apart <= computed_diameter(found, dim)


def test_squares_add_up_to_one_at_most_even_along_directions_that_are_not_orthonormal():
    found = Squares(np.array([[1.0, 1.0], [1.0, 1.0]]), 0.5)
    images = found.of(np.array([[0.6, 0.8], [0.0, 0.0]]))
    assert images[:, :3].sum(axis=1) == pytest.approx([1.0, 0.0])
    assert images[:, 3] == pytest.approx([0.0, 1.0])


@pytest.mark.parametrize("found", [Signs(10.0), Squares(orthonormal(3, 45), 1 / 3)], ids=lambda found: found.name)
def test_rows_do_not_depend_on_how_they_lie_in_memory(found):
    v = np.random.default_rng(0).standard_normal((50, 45)) / 10
    alone = np.vstack([found.of(v[i : i + 1]) for i in range(50)])
    for other in (v, np.asfortranarray(v), np.repeat(v, 2, axis=0)[::2], np.repeat(v, 2, axis=1)[:, ::2]):
        assert np.array_equal(found.of(other), alone)


def test_zero_has_no_direction_and_others_do_not_show():
    v = np.array([[0.0, 0.0], [5e-324, 0.0], [3.0, 4.0]])
    images = Signs(1.0).of(v)
    assert images[0].tolist() == [0.0] * 5
    assert images[1].tolist() == [1.0, 0.0, 1.0, 0.0, 0.0]
    assert np.array_equal(images[2], Signs(1.0).of(v[2:])[0])


# -------------------------------------------------------------------- the promise


def neighbours(ball, n):
    """Pairs of records that share all but one: at the ends of two axes, at the centre, beyond the ball, at random."""
    d, rng = ball.space.dim, np.random.default_rng(3)
    common = 0.5 * rng.standard_normal((n - 1, d)) / np.arange(1, d + 1)
    axes = np.eye(d)
    for one, other in ((axes[0], axes[1]), (axes[0], -axes[0]), (0 * axes[0], axes[1]), (rng.standard_normal((2, d)))):
        yield tuple(
            ball.space.project(
                ball.space.exp_coords(ball.center, (1 - 1e-12) * ball.radius * np.vstack([common, last]))
            )
            for last in (one, other)
        )


@pytest.mark.parametrize("ball", [SPACE, CAP, SEVERAL], ids=lambda ball: repr(ball.space))
def test_every_draw_tells_no_more_than_its_share(ball, monkeypatch):
    most = np.zeros(3)
    for pair in neighbours(ball, 30):
        *mean, signs, squares = replay.told(asked(ball), *pair, monkeypatch)  # a mean of a product has two draws
        most = np.maximum(most, [replay.mu_of(draws) for draws in (mean, [signs], [squares])])
    assert (most <= MU * np.sqrt(COMPONENT_SHARES) * (1 + 1e-9)).all()
    assert most[1] > 0.75 * MU * math.sqrt(COMPONENT_SHARES[1])  # unit vectors at 93 degrees would use all of it


def test_a_smaller_ball_is_in_the_promise(monkeypatch):
    wide = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 40.0)
    X = np.random.default_rng(0).normal(3.0, [1.0, 0.3], (300, 2))
    Y = np.vstack([X[:-1], [[-30.0, 20.0]]])
    assert replay.mu_of(replay.told(asked(wide, refine=True), X, Y, monkeypatch)) <= MU * (1 + 1e-9)


def test_too_little_noise_is_found_out(monkeypatch):
    with_less_noise(monkeypatch, 0.5)
    pair = next(neighbours(SPACE, 30))
    assert replay.mu_of(replay.told(asked(SPACE), *pair, monkeypatch)) > 1.1 * MU


def hostile(ball, n=40):
    """Yield records of which nobody thinks: all alike, far outside, denormal, huge, not a number."""
    flat = np.zeros((n, 3))
    yield "one point", flat + 0.25
    yield "the centre", flat + ball.center
    yield "outside", flat + 1e9
    yield "huge", np.where(np.arange(n)[:, None] % 2, 1e308, -1e308) + flat
    yield "denormal", flat + 5e-324 * np.arange(n)[:, None]
    yield "nan", np.where(np.arange(n)[:, None] == 3, np.nan, flat)


@pytest.mark.parametrize(("name", "X"), list(hostile(SPACE)), ids=lambda x: x if isinstance(x, str) else "")
def test_nothing_fails_behind_the_spend_whatever_the_records_are(name, X, monkeypatch):
    seen = []
    monkeypatch.setattr("dpmanifold._fallback._taken", seen.append)
    found = dpm.private_pga(X, SPACE, dpm.GDP(MU), **EACH, confirm=True, invalid="center")
    assert dpm.verify(found).ok, dpm.verify(found).wrong
    assert not seen
    assert np.isfinite(found.directions).all()
    assert np.isfinite(found.variances).all()
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))


@pytest.mark.parametrize("ball", [SPACE, CAP, SHAPES, SEVERAL], ids=lambda ball: repr(ball.space))
def test_a_unit_counts_the_same_among_others(ball):
    """Each unit's features depend on its own record alone: totals of parts add up to the total, bit for bit."""
    X, at = ball.to_frame(cloud(ball, 37)), ball.frame.exp_coords(ball.frame.origin, np.full(ball.frame.dim, 0.01))
    for features in (Signs(10.0), Squares(orthonormal(2, ball.frame.dim), 1 / 3)):
        together = features.of(ball.frame.log_coords(at, X))
        alone = np.vstack([features.of(ball.frame.log_coords(at, X[i : i + 1])) for i in range(37)])
        assert np.array_equal(together, alone)


# -------------------------------------------------------------------- asking


@pytest.mark.parametrize("ball", BALLS, ids=lambda ball: repr(ball.space))
@pytest.mark.parametrize("refine", [False, True])
def test_components_are_released_verified_written_and_read_on_every_space(ball, refine, tmp_path):
    X = cloud(ball, 400, spread=0.1)
    found = dpm.private_pga(X, ball, dpm.GDP(MU), **EACH, confirm=True, count=2, refine=refine)
    assert dpm.verify(found).ok, dpm.verify(found).wrong
    found.save(tmp_path / "found.json")
    read = dpm.load(tmp_path / "found.json")
    assert read.to_dict() == found.to_dict()
    assert found.directions @ found.directions.T == pytest.approx(np.eye(2), abs=1e-12)
    moved = found.moved(0, [-1.0, 0.0, 1.0])
    assert ball.space.dist(moved[1], found.center) < 1e-6
    scores = found.scores(moved)
    deviation = math.sqrt(found.variances[0])
    assert scores == pytest.approx(np.outer([-1.0, 0.0, 1.0], [deviation, 0.0]), abs=1e-6)


def test_directions_are_found_wherever_the_centre_lies_and_however_large_the_ball_is():
    turn = orthonormal(6, 6)
    X = np.random.default_rng(0).normal(0.0, [3.0, 2.0, 1.0, 0.3, 0.3, 0.3], (4000, 6)) @ turn
    for center, radius in ((np.zeros(6), 10.0), (np.full(6, 2.0), 15.0), (np.full(6, -20.0), 150.0)):
        ball = dpm.Ball(dpm.Euclidean(6), center, radius)
        found = dpm.private_pga(X, ball, dpm.GDP(1.0), **EACH, refine=True, confirm=True, rng=1)
        assert np.abs((found.directions * turn[:3]).sum(axis=1)).min() > 0.98


def test_people_with_several_records_count_once():
    people = np.repeat(np.arange(200), 5)
    X = SPACE.center + np.random.default_rng(0).normal(0.0, 0.2, (1000, 3))
    found = dpm.private_pga(X, SPACE, dpm.GDP(1.0), units=people)
    assert (found.n, found.release.unit, dpm.verify(found).ok) == (200, "unit", True)


def test_there_are_no_more_components_than_dimensions():
    # One seed in 20 does not tell the total from 0, and shares are then nan.
    found = dpm.private_pga(cloud(CAP, 300), CAP, dpm.GDP(1.0), **EACH, confirm=True, rng=0)
    assert found.count == 2
    assert (found.explained, found.explained_interval, found.shares.sum()) == (1.0, (1.0, 1.0), pytest.approx(1.0))


def test_wrong_questions_are_refused_before_anything_is_spent():
    budget = dpm.Budget(dpm.GDP(2.0))
    X = cloud(SPACE, 50)
    for wrong in ({"count": 0}, {"count": 1.5}, {"level": 1.0}, {"refine": "yes"}):
        with pytest.raises(InvalidArgumentError):
            dpm.private_pga(X, SPACE, dpm.GDP(1.0), **EACH, budget=budget, **wrong)
    with pytest.raises(PromiseError, match="pure"):
        dpm.private_pga(X, SPACE, dpm.PureDP(1.0), **EACH, budget=budget)
    wide = dpm.Ball(dpm.Euclidean(1500), np.zeros(1500), 1.0)
    with pytest.raises(InvalidArgumentError, match="fewer dimensions"):
        dpm.private_pga(np.zeros((9, 1500)), wide, dpm.GDP(1.0), **EACH, budget=budget)
    assert budget.spent is None or budget.spent == dpm.GDP(0.0)


def test_a_seed_is_told():
    found = dpm.private_pga(cloud(SPACE, 50), SPACE, dpm.GDP(1.0), **EACH, confirm=True, rng=0)
    assert not found.private
    assert "NOT PRIVATE" in repr(found)
    assert dpm.private_pga(cloud(SPACE, 50), SPACE, dpm.GDP(1.0), **EACH, confirm=True).private


@pytest.mark.parametrize("registered", [False, True])
def test_an_account_pays_once_before_anything_is_opened(registered):
    account, X = MemoryAccount(dpm.GDP(1.2)), cloud(SPACE, 50)
    data = account.register("study", X, SPACE, dpm.EACH_RECORD, confirm=True) if registered else X
    units = None if registered else dpm.EACH_RECORD
    ask = lambda **options: dpm.private_pga(  # noqa: E731
        data, SPACE, dpm.GDP(1.0), units=units, confirm=not registered, budget=account, **options
    )
    first, again = ask(key="a"), ask(key="a")
    assert first.to_dict() == again.to_dict()
    assert len(account.orders) == 1
    assert account.events[1:4] == (["spent", "started", "opened"] if registered else ["spent", "started", "drawn"])
    with pytest.raises(InvalidArgumentError, match="another request"):
        ask(key="a", count=2)
    with pytest.raises(BudgetError):
        ask(key="b")


def test_the_plan_foresees_the_draws():
    X = cloud(SPACE, 400)
    for refine in (False, True):
        outlook = dpm.plan(400, SPACE, dpm.GDP(1.0), statistic="pga", count=2, refine=refine)
        found = dpm.private_pga(X, SPACE, dpm.GDP(1.0), **EACH, confirm=True, count=2, refine=refine)
        drawn = [found.mean.release, found.release.steps[0], found.release]
        for step, release in zip(outlook.steps[-3:], drawn, strict=True):
            assert (step.statistic, step.share) == (release.statistic, release.share)
            assert release.scale <= step.scale * (1 + 1e-12)
    assert "components" in outlook.verdict


# -------------------------------------------------------------------- tampering


def leaves(record, path=()):
    if isinstance(record, dict):
        for name, part in record.items():
            yield from leaves(part, (*path, name))
    elif isinstance(record, list):
        for number, part in enumerate(record):
            yield from leaves(part, (*path, number))
    else:
        yield path, record


def altered(record, path, value):
    other = copy.deepcopy(record)
    part = other
    for name in path[:-1]:
        part = part[name]
    part[path[-1]] = value
    return other


def noticed(record):
    """Return whether reading or verify refuses a record."""
    try:
        return not dpm.verify(dpm.PrincipalComponents.from_dict(record)).ok
    except (InvalidDataError, InvalidArgumentError):
        return True


@pytest.mark.security
def test_every_number_and_word_that_is_altered_is_noticed():
    found = dpm.private_pga(cloud(SPACE, 60), SPACE, dpm.GDP(1.0), **EACH, confirm=True, count=2, refine=True)
    record = found.to_dict()
    free = {
        "level",
        "source",
        "notes",
        "simulated",
    }  # the level is nobody's promise; words about the ball are its maker's
    missed, tried = [], 0
    for path, value in leaves(record):
        if free & set(path) or isinstance(value, bool) or value is None:
            continue
        change = value + "x" if isinstance(value, str) else value * 2 + type(value)(5)
        tried += 1
        if not noticed(altered(record, path, change)):
            missed.append(path)
    assert tried > 100
    assert not noticed(record)
    assert missed == []


def test_a_number_of_components_that_is_none_is_refused():
    record = dpm.private_pga(cloud(SPACE, 60), SPACE, dpm.GDP(1.0), **EACH, confirm=True).to_dict()
    for count in (0.0, 2.5, 4.0, 1e308, 2.0):
        with pytest.raises(InvalidDataError):
            dpm.PrincipalComponents.from_dict(altered(record, ("release", "details", COUNT), count))


def test_what_is_no_release_of_components_is_refused():
    mean = dpm.private_mean(cloud(SPACE, 60), SPACE, dpm.GDP(1.0), **EACH, confirm=True)
    with pytest.raises(InvalidArgumentError, match="private_pga makes one"):
        dpm.PrincipalComponents(mean)
