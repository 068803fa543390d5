"""Classes: one draw of sums, counts and a second moment, in which neither records nor labels of a unit show."""

import copy
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats as laws

import dpmanifold as dpm
from dpmanifold import _fallback, features, frechet, linalg
from dpmanifold.features import ClassMoments
from dpmanifold.statistic import REPLACE_ONE_UNIT, REPLACE_ONE_UNIT_AND_LABELS, REPLACE_ONE_UNIT_SAME_CLASSES
from dpmanifold.stats.lda import ClassMomentsAboutCenter
from laws import replay
from laws.accounts import MemoryAccount
from laws.data import in_ball
from laws.feature_laws import _clipped
from laws.pieces import ListSource
from laws.spaces import BALLS, SMALL_BALLS

EACH = {"units": dpm.EACH_RECORD}
CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6, source="by design")
PLANE = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
NAMES = ["a", "b", "c"]


def records(n=60, ball=CAP, seed=0):
    return in_ball(ball, n, np.random.default_rng(seed))


def labels(n=60, names=NAMES):
    return np.array(names)[np.arange(n) % len(names)]


def asked(X=None, y=None, ball=CAP, privacy=None, **options):
    X = records(ball=ball) if X is None else X
    y = labels(len(X)) if y is None else y
    return dpm.private_lda(X, y, ball, privacy or dpm.GDP(1.0), **{**EACH, "classes": NAMES, **options})


def told(found):
    """Each number of a release with its noise, in standard deviations of it about 0."""
    return found.release.definition.noise_scales(found.release)


# -------------------------------------------------------------------- how far apart two units can be


def with_classes(v, number):
    return np.hstack([v, np.full((len(v), 1), float(number))])


def widest(found, dim, rng, pairs=64, rounds=100, classes=(0, 1)):
    """Return the largest distance that a search over vectors of two classes, or of one, finds."""
    v, w = (_clipped(rng.normal(size=(pairs, dim)) * rng.choice([0.5, 1e9], (pairs, 1))) for _ in range(2))
    w[: pairs // 2] = -v[: pairs // 2]

    def apart(v, w):
        one, two = (found.of(with_classes(x, number)) for x, number in zip((v, w), classes, strict=True))
        return np.linalg.norm(one - two, axis=1)

    best = apart(v, w)
    for step in np.geomspace(0.5, 1e-7, rounds):
        moved = [_clipped(x + step * rng.normal(size=x.shape)) for x in (v, w)]
        better = (new := apart(*moved)) > best
        v[better], w[better], best[better] = moved[0][better], moved[1][better], new[better]
    return float(best.max())


def claims_too_little(found, dim, share=1.0):
    """Whether the search finds a pair, of one class or of two, farther apart than a share of the stated diameter."""
    rng = np.random.default_rng(dim)
    seen = max(widest(found, dim, rng, classes=pair) for pair in ((0, 0), (0, 1)))
    assert found.count == 0 or seen > 0.99 * found.diameter(dim)  # and so near it comes
    return seen > share * found.diameter(dim) * (1 + 1e-13)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("found", [ClassMoments(3, 1.0, 0.25), ClassMoments(2, 0.5, 0.5), ClassMoments(2, 2.0, 0.5)])
def test_no_pair_with_any_labels_is_farther_apart_than_the_diameter(found, dim):
    """A brute-force search over neighbours with changed labels; seeded. A diameter 1 % too small is found out."""
    assert not claims_too_little(found, dim)
    assert claims_too_little(found, dim, share=0.99)


@pytest.mark.parametrize(("weight", "count"), [(1.0, 0.3), (0.5, 0.53), (0.75, 0.4)])
def test_a_count_that_is_not_free_is_found_out(weight, count, monkeypatch):
    """Another label then is farther off than any other record with the same label."""
    found = ClassMoments(2, weight, count)
    within = found._joint.diameter(3)
    assert found.diameter(3) > within
    monkeypatch.setattr(ClassMoments, "diameter", lambda self, dim: within)
    assert widest(found, 3, np.random.default_rng(0)) > within * 1.005


def test_with_the_weights_of_the_library_a_label_costs_nothing():
    """The diameter is that of the joint moments, which know of no label."""
    for ball in (PLANE, dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)):
        dim = ball.frame.dim
        private, public = (ClassMomentsAboutCenter.asked(ball, 4, known).features for known in (False, True))
        assert private.diameter(dim) == public.diameter(dim) == features.JointMoments(private.weight).diameter(dim)


def test_public_labels_are_for_neighbours_of_one_class():
    found = ClassMoments(2, 1.0, 0.0)
    assert found.size(3) == 2 * 3 + 6
    assert widest(found, 3, np.random.default_rng(0), classes=(0, 0)) <= found.diameter(3) * (1 + 1e-13)


def test_units_of_several_classes_are_no_farther_apart():
    """Averages of features lie in their convex hull; random ones, and those of the widest pairs' corners."""
    rng, found = np.random.default_rng(1), ClassMoments(3, 1.0, 0.25)
    for _ in range(200):
        units = []
        for _ in range(2):
            chosen = rng.permutation(3)[: rng.integers(1, 4)]
            v = _clipped(1e9 * rng.normal(size=(len(chosen), 2)))
            units.append(
                np.mean([found.of(with_classes(x[None], a))[0] for x, a in zip(v, chosen, strict=True)], axis=0)
            )
        assert np.linalg.norm(units[0] - units[1]) <= found.diameter(2)


def test_computed_features_obey_the_bound_to_the_last_bit():
    """What the program computes for the widest pairs, in exact arithmetic."""
    statistic, rng = ClassMomentsAboutCenter(2), np.random.default_rng(3)
    bound = Fraction(features.computed_diameter(statistic.features, 2)) ** 2
    over = 0
    # Of two classes those at right angles are farthest apart, of one class those at 120 degrees.
    for numbers, cosine in (((0, 1), 0.0), ((0, 0), -0.5)):
        ends = np.array([[1.0, 0.0], [cosine, math.sqrt(1 - cosine**2)]])
        for turn in rng.normal(size=40):
            turned = ends @ [[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]]
            frame = 1.5 * turned  # which the map itself cuts, as points that rounding moved out of the ball
            rows = [statistic.of_class(frame[i : i + 1], PLANE, numbers[i])[0] for i in range(2)]
            apart = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*(r.tolist() for r in rows), strict=True))
            assert apart <= bound
            over += apart > Fraction(2 + 2 + 0.5)
    assert over  # without what rounding adds, some would not


# -------------------------------------------------------------------- what a release tells


def neighbours(change, n=12):
    """Most units at two edges; one changes its record, its label, or both, by as much as it can."""
    c = np.zeros((2, n, 2))
    c[:, :-1, 1] = np.where(np.arange(n - 1) % 2, 1.0, -1.0)
    turn = {"label": 0.0, "both": np.pi / 2, "record": 2 * np.pi / 3}[change]
    c[:, -1] = [1.0, 0.0], [np.cos(turn), np.sin(turn)]
    y = np.tile(labels(n), (2, 1))
    if change != "record":
        y[:, -1] = "a", "b"
    X = CAP.space.project(CAP.space.exp_coords(CAP.center, (1 - 1e-9) * CAP.radius * c))
    return list(zip(X, y, strict=True))


@pytest.mark.parametrize("change", ["record", "label", "both"])
def test_the_draw_keeps_its_promise_whatever_of_a_unit_changes(change, monkeypatch):
    """Exactly, by what was hidden in the draw. With two thirds of the noise the promise is broken."""
    call = lambda data: asked(*data, privacy=dpm.GDP(2.0), rng=0, confirm=True, arithmetic="exact")  # noqa: E731
    kept = replay.mu_of(replay.told(call, *neighbours(change), monkeypatch))
    assert (0.7 if change == "label" else 0.999) * 2.0 < kept <= 2.0
    monkeypatch.setattr(ClassMoments, "diameter", lambda self, dim: 4.5**0.5 * 2 / 3)
    assert replay.mu_of(replay.told(call, *neighbours(change), monkeypatch)) > 2.0


@pytest.mark.parametrize("public", [False, True])
def test_refined_draws_keep_it_together(public, monkeypatch):
    """The label changes only where it is private."""
    rng, n = np.random.default_rng(0), 3000
    X = np.tile(rng.normal([0.2, 0.1], 0.02, (n, 2)), (2, 1, 1))
    X[:, -1] = [1.0, 0.0], [-1.0, 0.0]
    y = np.tile(labels(n), (2, 1))
    y[1, -1] = y[0, -1] if public else "a"
    options = {"refine": True, "labels_public": public, "rng": 0, "arithmetic": "exact"}
    call = lambda data: asked(*data, ball=PLANE, **options)  # noqa: E731
    draws = replay.told(call, *zip(X, y, strict=True), monkeypatch)
    assert len(draws) > 2
    assert replay.mu_of(draws) <= 1.0


def test_units_of_several_classes_keep_it(monkeypatch):
    """One unit with a record in each class against one with all records in one."""
    X = np.zeros((2, 30, 2))
    X[:, -3:, 0] = [1.0], [-1.0]
    y, owners = np.tile(labels(30), (2, 1)), np.repeat(np.arange(10), 3)
    y[1, -3:] = "b"
    call = lambda data: asked(*data, ball=PLANE, units=owners, rng=0, confirm=True, arithmetic="exact")  # noqa: E731
    assert 0.5 < replay.mu_of(replay.told(call, *zip(X, y, strict=True), monkeypatch)) <= 1.0


# -------------------------------------------------------------------- the value


def expected(X, y, ball, weight_of=lambda name: 1.0):
    """Sums, counts and second moment over n, by plain arithmetic."""
    v = ball.frame.log_coords(ball.frame.origin, ball.to_frame(X))
    sums = [np.append(v[y == name].sum(axis=0), (y == name).sum()) for name in NAMES]
    return np.concatenate([np.ravel(sums), linalg.to_vecd(np.einsum("ni,nj->ij", v, v))]) / len(X)


@pytest.mark.parametrize("ball", [*BALLS, *SMALL_BALLS], ids=lambda ball: repr(ball.space))
def test_a_release_is_what_it_says_on_every_space(ball):
    """Each number within 6 standard deviations of the average: a false alarm in 1e-7."""
    X = records(ball=ball)
    found = asked(X, ball=ball)
    away = (found.release.value - expected(X, labels(), ball)) / told(found)
    assert np.abs(away).max() < 6
    assert dpm.verify(found).ok, dpm.verify(found).wrong
    assert found.release.adjacency == REPLACE_ONE_UNIT_AND_LABELS
    assert found.means.shape == (3, *ball.space.shape)
    assert found.predict(X).shape == (60,)


def test_the_noise_has_the_stated_law():
    """Kolmogorov-Smirnov over 60 seeded draws, false alarm 1e-6; with the weights forgotten, rejected."""
    X = records()
    truth = expected(X, labels(), CAP)
    drawn = [asked(X, rng=seed) for seed in range(60)]
    away = np.array([(one.release.value - truth) / told(one) for one in drawn])
    assert laws.kstest(away.ravel(), laws.norm.cdf).pvalue > 1e-6
    unweighted = away * drawn[0]._map.units(2, CAP.radius)
    assert laws.kstest(unweighted.ravel(), laws.norm.cdf).pvalue < 1e-6
    assert not drawn[0].private


def test_order_blocks_and_sources_show_in_no_bit():
    X, y, owners = records(200), labels(200), np.arange(200) // 2
    rng = np.random.default_rng(0)
    order = rng.permutation(200)
    for units, column in ((dpm.EACH_RECORD, dpm.EACH_RECORD), (owners, "person")):
        given = [(X, y, units), (X[order], y[order], units if units is dpm.EACH_RECORD else owners[order])]
        values = [asked(*one[:2], units=one[2], rng=1).release.value for one in given]
        source = ListSource.at_random(X, owners, y, rng=rng)
        values.append(asked(source, "group", units=column, rng=1).release.value)
        assert all(np.array_equal(values[0], value) for value in values)


class CountedSource(ListSource):
    """Remembers how often each piece was read, however often it was opened."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.opened = []

    def bound(self, space, units=None, labels=None):
        self.opened += super().bound(space, units, labels)
        return self.pieces

    @property
    def reads(self):
        return sum(piece.read for piece in self.opened)


@pytest.mark.parametrize("ball", [PLANE, CAP])
@pytest.mark.parametrize("refine", [False, True])
def test_how_often_records_are_read_says_nothing_of_labels(ball, refine, monkeypatch):
    """Neighbours: each unit in one class, or one unit in two. Reading again for the latter alone would show it."""
    X, owners = records(80, ball), np.arange(80) // 2
    alone = np.array(["a", "b"])[owners % 2]
    mixed = alone.copy()
    mixed[79] = "c"
    reads, made = [], []
    for y in (alone, mixed):
        source = CountedSource(X, owners, y, cuts=(30,))
        asked(source, "group", ball, units="person", refine=refine)
        reads.append(source.reads)
        calls = []
        once = frechet.made_from
        monkeypatch.setattr(frechet, "made_from", lambda *a, calls=calls, once=once: calls.append(1) or once(*a))
        asked(X, y, ball, units=owners, refine=refine)
        monkeypatch.undo()
        made.append(len(calls))
    assert reads[0] == reads[1] > 2
    assert made[0] == made[1] == 2


def test_a_unit_in_several_classes_counts_for_its_part_in_each():
    """Without noise to speak of: two of its records in one class are averaged first."""
    X = np.array([[0.5, 0.0], [0.3, 0.0], [0.0, 0.4], [-0.2, 0.0]])
    found = asked(X, np.array(["a", "a", "b", "c"]), PLANE, dpm.GDP(1e6), units=[1, 1, 1, 2], confirm=True)
    np.testing.assert_allclose(found.units_by_class, [0.5, 0.5, 1.0], atol=1e-3)
    blocks = found.release.value[:9].reshape(3, 3)[:, :2] * 2
    np.testing.assert_allclose(blocks, [[0.2, 0.0], [0.0, 0.2], [-0.2, 0.0]], atol=1e-3)
    second = linalg.from_vecd(found.release.value[9:]) * 2
    np.testing.assert_allclose(second, np.diag([0.16 / 2 + 0.04, 0.16 / 2]), atol=1e-3)
    shared = asked(X, np.array(["a", "a", "b", "c"]), PLANE, units=[1, 1, 1, 2], labels_public=True, confirm=True)
    assert shared.counts == (0.5, 0.5, 1.0)


def test_public_labels_give_counts_and_the_same_noise():
    private, public = asked(), asked(labels_public=True)
    assert public.counts == (20.0, 20.0, 20.0)
    assert public.count_noise == 0 < private.count_noise
    assert public.release.scale == pytest.approx(private.release.scale, rel=1e-9)
    assert public.release.adjacency == REPLACE_ONE_UNIT_SAME_CLASSES
    assert len(private.release.value) - len(public.release.value) == 3
    assert dpm.verify(public).ok


# -------------------------------------------------------------------- nothing shows that was not drawn


def without_numbers(record):
    """Return a record with its numbers left out."""
    if isinstance(record, dict):
        return {name: without_numbers(entry) for name, entry in record.items()}
    if isinstance(record, list):
        return [without_numbers(entry) for entry in record]
    return None if isinstance(record, (int, float)) and not isinstance(record, bool) else record


@pytest.mark.parametrize(("alone", "refine"), [("a", True), ("b", False)])
def test_an_empty_class_shows_nowhere(alone, refine, monkeypatch):
    """Whoever holds the file sees the same words and the same many numbers, and nothing failed on the way."""
    monkeypatch.setattr(_fallback, "_taken", lambda problem: pytest.fail(f"behind the spend: {problem}"))
    X, y = records(1500), labels(1500)
    X = CAP.space.exp_coords(CAP.center, 0.1 * CAP.space.log_coords(CAP.center, X))
    notices = []
    given = {"refine": refine, "rng": 3, "curator": notices.append}
    full, empty, tiny = (
        asked(X, which, **given) for which in (y, np.full(1500, alone), np.where(np.arange(1500) == 7, "c", alone))
    )
    for other in (empty, tiny):
        assert without_numbers(full.release.to_dict()) == without_numbers(other.release.to_dict())
        assert dpm.verify(other).ok
        assert other.release.value.shape == full.release.value.shape
        assert np.isfinite(other.decision_function(X)).all()
        assert (other.priors > 0).all()
        # What is told of a class that may be empty follows from its noisy count.
        again = dpm.LinearDiscriminant.from_dict(json.loads(json.dumps(other.to_dict())))
        assert again.notes() == other.notes()
    assert notices == notices[:1] * len(notices)


@pytest.mark.parametrize("units", [dpm.EACH_RECORD, np.arange(40) // 2])
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308, -1e308, 5e-324, 0.0])
def test_nothing_raises_behind_the_spend_whatever_the_records_are(bad, units, monkeypatch):
    monkeypatch.setattr(_fallback, "_taken", lambda problem: pytest.fail(f"behind the spend: {problem}"))
    X = np.full((40, 2), bad)
    X[::2] = 0.25
    for refine in (False, True):
        found = asked(X, ball=PLANE, units=units, invalid="center", confirm=True, refine=refine)
        assert dpm.verify(found).ok
        assert np.isfinite(found.release.value).all()


def test_each_unit_is_mapped_by_itself_bit_for_bit():
    """One record that is no number leaves what the others count for as it is: the sums differ by that unit alone."""
    X, statistic = np.random.default_rng(0).normal(0.0, 0.4, (50, 2)), ClassMomentsAboutCenter(3)
    whole = statistic.of_class(PLANE.into_frame(X), PLANE, 1)
    parts = np.concatenate([statistic.of_class(PLANE.into_frame(X[i : i + 1]), PLANE, 1) for i in range(50)])
    assert np.array_equal(whole, parts)


# -------------------------------------------------------------------- who pays, and what is refused


def test_everything_is_refused_before_the_budget_is_spent():
    X, y, budget = records(), labels(), dpm.Budget(dpm.GDP(2.0))
    wrong = [
        ({"classes": ["a", "b"]}, dpm.InvalidDataError, "outside the public classes"),
        ({"classes": ["a"]}, dpm.InvalidArgumentError, "two or more"),
        ({"classes": ["a", "a", "b", "c"]}, dpm.InvalidArgumentError, "distinct"),
        ({"classes": "abc"}, dpm.InvalidArgumentError, "classes must be a list"),
        ({"classes": [object(), "a", "b", "c"]}, dpm.InvalidArgumentError, "text or numbers"),
        ({"privacy": dpm.PureDP(1.0)}, dpm.PromiseError, "pure"),
        ({"privacy": dpm.GDP(3.0)}, dpm.BudgetError, "more than the budget"),
        ({"labels_public": 1}, dpm.InvalidArgumentError, "labels_public must be True or False"),
        ({"labels_public": True, "classes": [*NAMES, "d"]}, dpm.InvalidDataError, "class 'd' has no records"),
        ({"y": y[:-1]}, dpm.InvalidArgumentError, "labels must have shape"),
        ({"units": None}, dpm.InvalidArgumentError, "units must say"),
        ({"refine": "yes"}, dpm.InvalidArgumentError, "refine must be True or False"),
        ({"X": X[:1], "y": y[:1]}, dpm.InvalidDataError, "at least 2 units"),
    ]
    for changes, error, words in wrong:
        with pytest.raises(error, match=words):
            asked(**{"X": X, "y": y, "budget": budget, **changes})
    assert not budget.history
    with pytest.raises(dpm.InvalidArgumentError, match="private_lda"):
        dpm.private_statistic(X, CAP, dpm.GDP(1.0), statistic="class moments", **EACH)
    asked(X, y, budget=budget)
    assert [spent.label for spent in budget.history] == ["lda"]


def test_an_account_pays_once_and_tells_requests_apart():
    account = MemoryAccount(dpm.GDP(3.0))
    X, y = records(), labels()
    first = asked(X, y, budget=account, key="one")
    again = asked(X, y, budget=account, key="one")
    assert np.array_equal(first.release.value, again.release.value)
    assert account.events.index("spent") < account.events.index("drawn")
    assert len(account.orders) == 1
    assert first.release.receipt is not None
    others = [{"refine": True}, {"labels_public": True}, {"classes": [*NAMES, "d"]}, {"classes": NAMES[::-1]}]
    for changes in others:
        with pytest.raises(dpm.InvalidArgumentError, match="another request"):
            asked(X, y, budget=account, key="one", **changes)
    with pytest.raises(dpm.InvalidArgumentError, match="another request"):
        asked(X, np.roll(y, 1), budget=account, key="one")
    assert len(account.orders) == 1
    with pytest.raises(dpm.InvalidArgumentError, match="rng must be None"):
        asked(X, y, budget=account, rng=0)


def test_what_an_account_knows_of_the_data_says_nothing_of_classes():
    facts = []
    account = MemoryAccount(dpm.GDP(3.0))
    true = account.marked
    account.marked = lambda content, known: facts.append(dict(known)) or true(content, known)
    asked(budget=account)
    assert facts == [{"space": repr(CAP.space), "n": 60, "unit": "record"}]


def test_plans_want_to_know_how_many_classes_there_are():
    with pytest.raises(dpm.InvalidArgumentError, match="classes must be given"):
        dpm.plan(300, CAP, dpm.GDP(1.0), statistic="lda")


def test_plans_foresee_the_draws():
    ball = dpm.Ball(dpm.Euclidean(3), np.zeros(3), 50.0)
    X = np.random.default_rng(0).normal(3.0, 0.5, (3000, 3))
    for options in ({}, {"refine": True}, {"labels_public": True}):
        outlook = dpm.plan(3000, ball, dpm.GDP(1.0), statistic="lda", classes=NAMES, **options)
        found = asked(X, ball=ball, **options).release
        assert [step.statistic for step in outlook.steps] == [*(s.statistic for s in found.steps), "class moments"]
        assert outlook.steps[-1].scale == pytest.approx(found.scale, rel=1e-12)
    assert dpm.plan(3000, ball, dpm.GDP(1.0), statistic="lda", classes=3).verdict.startswith("Expect noise")
    assert asked(X, ball=ball).release.noise_error() == pytest.approx(
        dpm.plan(3000, ball, dpm.GDP(1.0), statistic="lda", classes=3).steps[-1].error
    )
    with pytest.raises(dpm.InvalidArgumentError, match="classes must be"):
        dpm.plan(3000, ball, dpm.GDP(1.0), statistic="lda", classes=1)


# -------------------------------------------------------------------- files


def places(record, path=()):
    """Yield where the numbers of a record are."""
    if isinstance(record, dict):
        for name, entry in record.items():
            yield from places(entry, (*path, name))
    elif isinstance(record, list):
        for number, entry in enumerate(record):
            yield from places(entry, (*path, number))
    elif isinstance(record, (int, float)) and not isinstance(record, bool):
        yield path


def altered(record, path, factor=1.5):
    changed = copy.deepcopy(record)
    place = changed
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = place[path[-1]] * factor + 1
    return changed


def found_out(record):
    try:
        return not dpm.verify(dpm.LinearDiscriminant.from_dict(record)).ok
    except (dpm.DPManifoldError, ValueError):
        return True


@pytest.mark.security
@pytest.mark.parametrize("options", [{}, {"labels_public": True}, {"refine": True}])
def test_every_number_that_is_altered_is_noticed(options):
    """But the ball's own, the promise's and n: these agree again if changed together, and none of them alone."""
    ball = dpm.Ball(dpm.Euclidean(1), [0.0], 50.0)
    X = np.random.default_rng(0).normal(3.0, 0.5, (3000, 1))
    found = asked(X, ball=ball, **options)
    record = json.loads(json.dumps(found.to_dict()))
    again = dpm.LinearDiscriminant.from_dict(record)
    assert again.to_dict() == found.to_dict()
    assert not found_out(record)
    missed = [path for path in places(record) if not found_out(altered(record, path))]
    # Where the ball lies is the maker's word, and what was drawn for its centre may lie anywhere.
    assert all(path[-2:] == ("center", 0) or "center" in path for path in missed), missed


def test_words_that_are_altered_are_noticed():
    record = json.loads(json.dumps(asked().to_dict()))
    public = json.loads(json.dumps(asked(labels_public=True).to_dict()))
    wrong = [
        {**record, "classes": ["a", "b"]},
        {**record, "classes": ["a", "a", "b"]},
        {**record, "counts": [20.0, 20.0, 20.0]},
        {**record, "more": 1},
        {**public, "counts": None},
        {**public, "counts": [20.0, 20.0, 21.0]},
        {**public, "counts": [0.0, 30.0, 30.0]},
        {**record, "release": {**record["release"], "adjacency": REPLACE_ONE_UNIT}},
        {**record, "release": {**record["release"], "adjacency": REPLACE_ONE_UNIT_SAME_CLASSES}},
        {**public, "release": {**public["release"], "adjacency": REPLACE_ONE_UNIT_AND_LABELS}},
        {**record, "release": {**record["release"], "statistic": "joint moments"}},
    ]
    assert all(found_out(one) for one in wrong)
    for count in (2.5, 1e9, -1.0, 1.0):
        details = {**record["release"]["details"], "n_classes": count}
        assert found_out({**record, "release": {**record["release"], "details": details}})


def test_a_discriminant_is_made_of_class_moments_alone():
    other = dpm.private_mean(records(), CAP, dpm.GDP(1.0), **EACH)
    with pytest.raises(dpm.InvalidArgumentError, match="class moments"):
        dpm.LinearDiscriminant(other, ("a", "b"))
    found = asked()
    weaker = replace(found.release, scale=found.release.scale / 2)
    assert not dpm.verify(dpm.LinearDiscriminant(weaker, found.classes)).ok
    assert math.isclose(found.priors.sum(), 1.0)


# -------------------------------------------------------------------- registered data


def registered(account, y=None, units=dpm.EACH_RECORD, **more):
    X = records()
    return account.register("study", X, CAP, units, labels=labels() if y is None else y, classes=NAMES, **more)


def test_registered_data_with_private_labels_say_nothing_of_classes():
    """Not even that a class is empty; and nothing else takes them by class."""
    account = MemoryAccount(dpm.GDP(3.0))
    data = registered(account, np.full(60, "a"), labels_public=False)
    assert data.facts.keys() == {"space", "n", "unit", "classes", "labels"}
    found = dpm.private_lda(data, None, CAP, dpm.GDP(1.0), units=None, classes=NAMES, budget=account, key="one")
    assert dpm.verify(found).ok
    assert account.events[-4:] == ["spent", "started", "opened", "drawn"]
    again = dpm.private_lda(data, None, CAP, dpm.GDP(1.0), units=None, classes=NAMES, budget=account, key="one")
    assert np.array_equal(found.release.value, again.release.value)
    with pytest.raises(dpm.InvalidArgumentError, match="private labels"):
        dpm.private_class_means(data, None, CAP, dpm.GDP(1.0), units=None, classes=NAMES, budget=account)
    with pytest.raises(dpm.InvalidArgumentError, match="private labels"):
        dpm.private_lda(data, None, CAP, dpm.GDP(1.0), units=None, classes=NAMES, labels_public=True, budget=account)
    assert len(account.orders) == 1


def test_registered_data_with_public_labels_are_taken_as_such():
    account = MemoryAccount(dpm.GDP(3.0))
    ask = {"units": None, "budget": account}
    data = registered(account)
    found = dpm.private_lda(data, None, CAP, dpm.GDP(1.0), classes=NAMES, labels_public=True, **ask)
    assert found.counts == (20.0, 20.0, 20.0)
    wrong = [
        ({"classes": NAMES}, None, "public labels"),
        ({"classes": NAMES[:2], "labels_public": True}, None, "registered with"),
        ({"classes": NAMES, "labels_public": True}, labels(), "give None"),
    ]
    for options, given, words in wrong:
        with pytest.raises(dpm.InvalidArgumentError, match=words):
            dpm.private_lda(data, given, CAP, dpm.GDP(1.0), **options, **ask)
    several = registered(account, units=np.arange(60) // 4)
    with pytest.raises(dpm.InvalidArgumentError, match="several classes"):
        dpm.private_lda(several, None, CAP, dpm.GDP(1.0), classes=NAMES, labels_public=True, **ask)
    assert len(account.orders) == 1
