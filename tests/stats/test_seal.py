"""Behind the payment: a fallback for arithmetic that fails, a loss for all else; at the ball's edge nothing fails.

That nothing else is caught, at any line, is for `test_fault_walk.py`.
"""

import contextlib
import functools
import traceback
import warnings

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, Ball, Euclidean, Hyperbolic, KendallShapes, PureDP, Sphere, _fallback, data
from dpmanifold.cli.failures import Terminated
from dpmanifold.engines import ThreadEngine, using
from dpmanifold.ledger import Ledger
from dpmanifold.mechanisms import MECHANISMS, attempt, get
from laws.accounts import MemoryAccount
from laws.tiers import pairs

SPACES = [
    (Euclidean(1), 1.0),
    (Euclidean(3), 2.0),
    (Sphere(1), 1.2),
    (Sphere(2), 0.7),
    (Sphere(5), 0.4),
    (Hyperbolic(2), 3.0),
    (Hyperbolic(3), 1.0),
    (KendallShapes(3), 0.3),
    (KendallShapes(6), 0.35),
    (dpm.SPD(2), 2.0),
    (dpm.SPD(3), 1.5),
    (dpm.SPD(2, metric="riemann"), 2.0),
    (dpm.SPD(3, metric="riemann"), 1.0),
]


@pytest.fixture
def watched(monkeypatch):
    """Collect why fallbacks are taken behind the payment."""
    seen = []
    monkeypatch.setattr(_fallback, "_taken", seen.append)
    return seen


# -------------------------------------------------------------------- failures of arithmetic

QUESTIONS = {
    "mean": lambda X, ball, privacy, **o: dpm.private_mean(X, ball, privacy, **o),
    "refined mean": lambda X, ball, privacy, **o: dpm.private_mean(X, ball, privacy, refine=True, **o),
    "means": lambda X, ball, privacy, **o: dpm.private_class_means(
        X, np.arange(len(X)) % 2, ball, privacy, classes=[0, 1], **o
    )[0],
    "variance": lambda X, ball, privacy, **o: dpm.private_variance(X, ball, privacy, **o),
    "ball": lambda X, ball, privacy, **o: dpm.private_ball(X, ball, privacy, **o),
    "region": lambda X, ball, privacy, **o: dpm.private_region(X, ball, privacy, refine=True, **o),
    "interval": lambda X, ball, privacy, **o: dpm.private_variance_interval(X, ball, privacy, refine=True, **o),
    "test": lambda X, ball, privacy, **o: dpm.private_two_sample_test(X, X[::-1], ball, privacy, refine=True, **o),
    "groups": lambda X, ball, privacy, **o: dpm.private_k_sample_test(
        X, np.arange(len(X)) % 3, ball, privacy, classes=[0, 1, 2], refine=True, **o
    ),
    "classes": lambda X, ball, privacy, **o: dpm.private_lda(
        X, np.arange(len(X)) % 3, ball, privacy, classes=[0, 1, 2], refine=True, **o
    ),
    "components": lambda X, ball, privacy, **o: dpm.private_pga(X, ball, privacy, refine=True, **o),
    "median": lambda X, ball, privacy, **o: dpm.private_median(X, ball, privacy, **o),
    "regression": lambda X, ball, privacy, **o: dpm.private_regression(
        X, np.linspace(0.0, 1.0, len(X)), ball, privacy, covariate_range=(0, 1), **o
    ),
}
MAPS = {
    "solving the mean": "dpmanifold.frechet.UnitPoints.mean",
    "averaging vectors": "dpmanifold.mechanisms.estimands._Average.vector",
    "making a point of what was drawn": "dpmanifold.mechanisms.wrapped._Wrapped.place",
    "moving the draw back": "dpmanifold.stats.mean.to_space",
    "taking over points": "dpmanifold.ball.Ball.take_over",
    "locating the mean": "dpmanifold.ball.Ball.locate",
    "moving back from the frame": "dpmanifold.ball.Ball.from_frame",
    "moments": "dpmanifold.frechet.UnitPoints.mean_of",
    "moving points to another ball": "dpmanifold.frechet.UnitPoints.in_ball",
    "counting": "dpmanifold.frechet.UnitPoints.within",
    "shrinking": "dpmanifold.stats.shrinkage.Shrinkage.__call__",
}
FAILURES = (np.linalg.LinAlgError, FloatingPointError, OverflowError, ZeroDivisionError, dpm.ConvergenceError, "nan")


def shape_of(result):
    """What everybody can see of a result apart from its numbers: its kind, its entries and their types."""

    def outline(entry):
        if isinstance(entry, dict):
            return {key: outline(value) for key, value in entry.items()}
        return [outline(value) for value in entry] if isinstance(entry, list) else type(entry).__name__

    return outline(result.to_dict())


FLAT = Ball(Euclidean(3), np.zeros(3), 5.0, source="a range")
NEAR_ZERO = 0.1 * np.random.default_rng(0).standard_normal((3000, 3))


@functools.cache
def shape_where_nothing_fails(question):
    return shape_of(QUESTIONS[question](NEAR_ZERO, FLAT, GDP(1.0), units=EACH_RECORD, budget=dpm.Budget(GDP(1.0))))


def broken_behind_the_payment(monkeypatch, target, failure):
    """Have a map fail once something was paid; what it gives, where that is not to raise, has no numbers in it."""
    behind, original, spend = [], _resolve(target), dpm.Budget.spend

    def spending(self, *arguments):
        spend(self, *arguments)
        behind.append(True)

    def broken(*arguments, **options):
        if not behind:
            return original(*arguments, **options)
        if failure != "nan":
            raise failure("a record did this")
        found = original(*arguments, **options)
        return np.full_like(found, np.nan) if isinstance(found, np.ndarray) else found

    monkeypatch.setattr(dpm.Budget, "spend", spending)
    monkeypatch.setattr(target, broken)


def named(value):
    return getattr(value, "__name__", str(value))


@pytest.mark.security
@pytest.mark.parametrize(("question", "step", "failure"), pairs(QUESTIONS, MAPS, FAILURES, ids=named))
def test_a_map_that_fails_leaves_the_same_kind_of_result(monkeypatch, question, step, failure):
    """With one of two neighbours a map fails, with the other it does not: what comes back has the same outline."""
    expected, budget = shape_where_nothing_fails(question), dpm.Budget(GDP(10.0))
    broken_behind_the_payment(monkeypatch, MAPS[step], failure)
    result = QUESTIONS[question](NEAR_ZERO, FLAT, GDP(1.0), units=EACH_RECORD, budget=budget)
    monkeypatch.undo()
    assert _without_details(shape_of(result)) == _without_details(expected)
    assert len(budget.history) == 1


def _resolve(target):
    import importlib

    parts = target.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        with contextlib.suppress(ImportError):
            found = importlib.import_module(".".join(parts[:cut]))
            for part in parts[cut:]:
                found = getattr(found, part)
            return found
    raise LookupError(target)


def _without_details(outline):
    """A draw may put the outer ball in place of the inner one, with or without a text about its source."""
    return {key: value for key, value in outline.items() if key not in ("details", "answers")}


@pytest.mark.security
@pytest.mark.parametrize("failure", FAILURES[:-1], ids=named)
def test_without_a_fallback_the_release_would_be_lost(monkeypatch, failure):
    """The wrong variant: a map without one."""
    monkeypatch.setattr("dpmanifold.stats.draws.with_fallback", lambda compute, fallback, *_: compute())
    broken_behind_the_payment(monkeypatch, "dpmanifold.frechet.UnitPoints.mean", failure)
    with pytest.raises(dpm.ReleaseLostError):
        dpm.private_mean(CAPPED, CAP, PureDP(1.0), units=EACH_RECORD, budget=dpm.Budget(PureDP(1.0)))


# -------------------------------------------------------------------- losses

SECRET = "Smith has 17.3"
CAP = Ball(Sphere(2), [0.0, 0.0, 1.0], 0.5)
CAPPED = Sphere(2).exp_coords(CAP.center, 0.1 * np.random.default_rng(0).standard_normal((200, 2)))
DRAWS = {
    "in doubles": ({"arithmetic": "float"}, "dpmanifold.mechanisms.base.Mechanism.draw"),
    "exactly": ({}, "dpmanifold.mechanisms.shared.AboutMean.numbers"),
    "a vector": ({"estimand": "tangent"}, "dpmanifold.mechanisms.shared.VectorMechanism.numbers"),
}


@pytest.mark.security
@pytest.mark.parametrize("failure", [np.linalg.LinAlgError, dpm.SamplerError, ValueError, TimeoutError], ids=named)
@pytest.mark.parametrize("way", DRAWS)
def test_a_draw_that_fails_is_not_made_again(monkeypatch, way, failure):
    """Also for numerical reasons: bits were taken, and a second draw would be one that nobody paid for."""
    options, target = DRAWS[way]
    drawn, told, original = [], [], _resolve(target)

    def broken(*arguments):
        original(*arguments)
        drawn.append(True)
        raise failure(SECRET)

    monkeypatch.setattr(target, broken)
    budget = dpm.Budget(GDP(1.0))
    with pytest.raises(dpm.ReleaseLostError) as lost:
        dpm.private_mean(CAPPED, CAP, GDP(1.0), units=EACH_RECORD, budget=budget, curator=told.append, **options)
    assert len(drawn) == len(budget.history) == 1
    assert SECRET in str(told[-1])
    assert_nothing_is_seen(lost.value)


class Panic(BaseException):
    """What libraries in other languages raise where they fail."""


def payers():
    return {"nobody": None, "a budget": dpm.Budget(GDP(5.0)), "an account": MemoryAccount(GDP(5.0))}


def fails_at_the_end(monkeypatch, problem):
    """Have a release fail when everything has been drawn."""
    original = _resolve("dpmanifold.stats.mean.MeanProgram.draws")

    def draws(*arguments):
        yield from original(*arguments)
        raise problem

    monkeypatch.setattr("dpmanifold.stats.mean.MeanProgram.draws", draws)


def assert_nothing_is_seen(error):
    assert error.__context__ is None
    assert error.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(error))
    names = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    assert not names & {"draws", "_attempted", "exhausted", "draw_about", "draw_mean"}


@pytest.mark.security
@pytest.mark.parametrize("payer", payers())
@pytest.mark.parametrize(
    "kind", [MemoryError, TimeoutError, AttributeError, KeyError, RecursionError, ExceptionGroup, Panic]
)
def test_whatever_is_not_arithmetic_is_a_loss_whoever_pays(monkeypatch, payer, kind):
    fails_at_the_end(monkeypatch, kind(SECRET, [ValueError(SECRET)]) if kind is ExceptionGroup else kind(SECRET))
    told, budget = [], payers()[payer]
    with pytest.raises(dpm.ReleaseLostError) as lost:
        dpm.private_mean(CAPPED, CAP, GDP(1.0), units=EACH_RECORD, budget=budget, curator=told.append)
    assert_nothing_is_seen(lost.value)
    assert f"{kind.__name__}: " in told[-1].problem
    assert "test_seal.py, line" in told[-1].problem
    assert budget is None or budget.spent == GDP(1.0)


@pytest.mark.security
@pytest.mark.parametrize("payer", payers())
@pytest.mark.parametrize(
    ("ending", "code"),
    [
        (KeyboardInterrupt(SECRET), ()),
        (SystemExit(SECRET), (1,)),
        (SystemExit(17), (1,)),
        (SystemExit(), (1,)),
        (SystemExit(143), (143,)),
        (Terminated(143), (143,)),
    ],
    ids=repr,
)
def test_what_ends_the_program_ends_it_and_says_nothing(monkeypatch, payer, ending, code):
    ending.__cause__ = ValueError(SECRET)
    ending.add_note(SECRET)
    fails_at_the_end(monkeypatch, ending)
    budget = payers()[payer]
    with pytest.raises(type(ending)) as found:
        dpm.private_mean(CAPPED, CAP, GDP(1.0), units=EACH_RECORD, budget=budget)
    assert_nothing_is_seen(found.value)
    assert found.value.args == code
    assert budget is None or budget.spent == GDP(1.0)


@pytest.mark.security
@pytest.mark.parametrize("kind", [dpm.errors.SourceChangedError, dpm.errors.ClusterError, dpm.errors.CardError])
@pytest.mark.parametrize("payer", payers())
def test_what_no_record_can_cause_is_told_to_whoever_pays_from_memory(monkeypatch, payer, kind):
    fails_at_the_end(monkeypatch, kind("data.npy was changed."))
    budget = payers()[payer]
    with pytest.raises(dpm.ReleaseLostError if payer == "an account" else kind) as found:
        dpm.private_mean(CAPPED, CAP, GDP(1.0), units=EACH_RECORD, budget=budget)
    if payer != "an account":
        assert str(found.value) == "data.npy was changed. The budget was spent, and nothing was released."
    assert_nothing_is_seen(found.value)


@pytest.mark.security
def test_a_curator_whose_own_function_fails_loses_nothing_more(monkeypatch):
    fails_at_the_end(monkeypatch, MemoryError(SECRET))

    def stubborn(notice):
        raise KeyError(SECRET) if notice.problem else None

    with pytest.raises(dpm.ReleaseLostError) as lost:
        dpm.private_mean(
            CAPPED, CAP, GDP(1.0), units=EACH_RECORD, curator=lambda notice: notice.problem and stubborn(notice)
        )
    assert_nothing_is_seen(lost.value)


@pytest.mark.security
def test_nothing_is_warned_of_behind_the_payment(monkeypatch, recwarn):
    original = _resolve("dpmanifold.stats.mean.MeanProgram.draws")

    def draws(*arguments):
        warnings.warn(SECRET, stacklevel=1)
        np.array([1.0]) / np.array([0.0])
        return (yield from original(*arguments))

    monkeypatch.setattr("dpmanifold.stats.mean.MeanProgram.draws", draws)
    for budget in payers().values():
        assert dpm.private_mean(CAPPED, CAP, GDP(1.0), units=EACH_RECORD, budget=budget).private
    assert not recwarn.list
    with pytest.warns(UserWarning, match="after"):
        warnings.warn("after", stacklevel=1)


@pytest.mark.security
@pytest.mark.parametrize("action", ["always", "error"])
def test_nothing_is_warned_of_in_threads_that_do_a_part_of_the_work(tmp_path, action):
    X = np.random.default_rng(0).normal(size=(400, 2))
    behind = False

    def part(records):
        def blocks():
            if behind:
                warnings.warn(SECRET, stacklevel=1)
            yield records

        return blocks

    source = data.from_blocks([part(records) for records in np.array_split(X, 4)])
    ball = Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)
    with Ledger.create(str(tmp_path / "study.db")) as ledger, using(ThreadEngine(3)):
        population = ledger.population("records", cap=GDP(9.0), unit="record")
        registered = population.register("normal", source, ball, units=EACH_RECORD)
        behind = True
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter(action)
            assert dpm.private_mean(registered, ball, GDP(1.0), units=None, budget=population).private
        assert not shown


# -------------------------------------------------------------------- the edge


def edge_configurations(space, radius, runs, seed):
    """Yield a ball and records that clip to one or few points of its edge."""
    rng = np.random.default_rng(seed)
    for _ in range(runs):
        n = int(rng.choice([2, 3, 20, 200], p=[0.4, 0.3, 0.2, 0.1]))
        center = space.random_point(rng=rng) if rng.random() < 0.7 else space.origin
        ball = Ball(space, center, radius * rng.choice([0.4, 1.0]))
        few = rng.standard_normal((int(rng.integers(1, 4)), space.dim))
        few *= (ball.radius * rng.choice([1.0, 1.0 + 1e-9, 1.2]) / np.linalg.norm(few, axis=1))[:, None]
        edge = space.project(space.exp_coords(ball.center, few))
        yield ball, edge[rng.integers(len(few), size=n)]


def ask_everything(space, radius, runs, seed):
    """Release a mean in every configuration, mechanisms in turn; returns which were asked."""
    names, asked, able = [mechanism.name for mechanism in MECHANISMS if mechanism.automatic], set(), {}

    def ways(ball, n, privacy):
        """Every mechanism that keeps the promise, in doubles and, where it can be, exactly."""
        for name in names:
            found = attempt(get(name), ball, n, privacy)
            if not isinstance(found, str):
                yield name, "float"
                if get(name).offers_exact(ball, found[0]):
                    yield name, "exact"

    for number, (ball, X) in enumerate(edge_configurations(space, radius, runs, seed)):
        privacy = [PureDP(5.0), GDP(20.0), dpm.ApproxDP(3.0, 1e-6)][number % 3]
        # Only the baselines look at the centre.
        case = (ball.radius, len(X), privacy, np.array_equal(ball.center, space.origin))
        if case not in able:
            able[case] = list(ways(ball, len(X), privacy))
        name, arithmetic = able[case][number % len(able[case])]
        budget = dpm.Budget(privacy)
        try:
            release = dpm.private_mean(
                X, ball, privacy, units=EACH_RECORD, mechanism=name, confirm=True, arithmetic=arithmetic, budget=budget,
                rng=number,
            )  # fmt: skip
        except Exception as problem:
            pytest.fail(f"{name} on {ball!r}, n = {len(X)}: {problem!r}")
        assert release.arithmetic == arithmetic
        asked.add(name)
        assert budget.spent is not None
        assert np.isfinite(release.value).all()
    return asked


@pytest.mark.parametrize("case", SPACES[1::2], ids=str)
def test_nothing_fails_at_the_edge(watched, case):
    """78 configurations on each space and all mechanisms: no loss, and not even a fallback."""
    space, radius = case
    assert len(ask_everything(space, radius, 78, seed=0)) >= 4
    assert watched == []


@pytest.mark.slow
@pytest.mark.parametrize(("space", "radius"), SPACES, ids=str)
def test_nothing_fails_at_the_edge_in_many_configurations(watched, space, radius):
    """10,000 configurations over all spaces and mechanisms."""
    assert len(ask_everything(space, radius, 770, seed=1)) >= 4
    assert watched == []


def test_a_footpoint_within_rounding_of_the_edge_is_moved_in():
    """Where all records clip to one point of the edge the solved mean may lie an ulp outside the ball."""
    failures = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        direction = rng.standard_normal(2)
        ball = Ball(Sphere(2), Sphere(2).random_point(rng=rng), 0.6)
        X = np.repeat(Sphere(2).exp_coords(ball.center, 0.9 * direction / np.linalg.norm(direction))[None], 5, axis=0)
        mean = dpm.frechet.mean(X, ball).in_frame
        failures += float(ball.frame.dist(ball.frame.origin, mean)) > ball.radius
        release = dpm.private_mean(
            X, ball, PureDP(20.0), units=EACH_RECORD, mechanism="riemannian-laplace-truncated", confirm=True, rng=seed
        )
        assert float(ball.space.dist(release.value, ball.clip(X)[0])) < 0.6  # about the edge, not about the centre
    assert failures > 0  # otherwise this would test nothing
