"""Nothing raises behind the spend: forced failures, and a great many configurations at the ball's edge."""

import contextlib
import functools

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, Ball, Euclidean, Hyperbolic, KendallShapes, PureDP, Sphere
from dpmanifold.mechanisms import MECHANISMS, attempt, get
from dpmanifold.stats import sealed as room

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
    """Count what is swallowed behind the spend."""
    seen = []
    monkeypatch.setattr(room, "_swallow", seen.append)
    return seen


@contextlib.contextmanager
def nothing_raises():
    try:
        yield
    except Exception as problem:
        pytest.fail(f"raised behind the spend: {problem!r}")


# -------------------------------------------------------------------- forced failures

QUESTIONS = {
    "mean": lambda X, ball, privacy, **o: dpm.private_mean(X, ball, privacy, **o),
    "refined mean": lambda X, ball, privacy, **o: dpm.private_mean(X, ball, privacy, refine=True, **o),
    "means": lambda X, ball, privacy, **o: dpm.private_means(
        X, np.arange(len(X)) % 2, ball, privacy, classes=[0, 1], **o
    )[0],
    "variance": lambda X, ball, privacy, **o: dpm.private_variance(X, ball, privacy, **o),
    "ball": lambda X, ball, privacy, **o: dpm.private_ball(X, ball, privacy, **o),
    "region": lambda X, ball, privacy, **o: dpm.private_region(X, ball, privacy, refine=True, **o),
    "interval": lambda X, ball, privacy, **o: dpm.private_interval(X, ball, privacy, refine=True, **o),
    "test": lambda X, ball, privacy, **o: dpm.private_test(X, X[::-1], ball, privacy, refine=True, **o),
    "groups": lambda X, ball, privacy, **o: dpm.private_groups(
        X, np.arange(len(X)) % 3, ball, privacy, classes=[0, 1, 2], refine=True, **o
    ),
    "classes": lambda X, ball, privacy, **o: dpm.private_classes(
        X, np.arange(len(X)) % 3, ball, privacy, classes=[0, 1, 2], refine=True, **o
    ),
    "components": lambda X, ball, privacy, **o: dpm.private_components(X, ball, privacy, refine=True, **o),
    "median": lambda X, ball, privacy, **o: dpm.private_median(X, ball, privacy, **o),
    "regression": lambda X, ball, privacy, **o: dpm.private_regression(
        X, np.linspace(0.0, 1.0, len(X)), ball, privacy, covariate_range=(0, 1), refine=True, **o
    ),
}
STEPS = {
    "solving the mean": ("dpmanifold.frechet.UnitPoints.mean", None),
    "drawing": ("dpmanifold.mechanisms.base.Mechanism.draw", None),
    "drawing exactly": ("dpmanifold.mechanisms.vector.VectorMechanism.numbers", None),
    "making a point of what was drawn": ("dpmanifold.mechanisms.wrapped._Wrapped.place", None),
    "moving the draw back": ("dpmanifold.stats.mean.to_space", None),
    "taking over points": ("dpmanifold.ball.Ball.take_over", None),
    "locating the mean": ("dpmanifold.ball.Ball.locate", None),
    "moving back from the frame": ("dpmanifold.ball.Ball.from_frame", None),
    "moments": ("dpmanifold.frechet.UnitPoints.mean_of", None),
    "distances": ("dpmanifold.frechet.UnitPoints.each", None),
    "moving points to another ball": ("dpmanifold.frechet.UnitPoints.in_ball", None),
    "counting": ("dpmanifold.stats.search.RadiusSearch._counts", None),
    "shrinking": ("dpmanifold.stats.shrinkage.Shrinkage.__call__", None),
}


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


FORCED = [
    pytest.param(question, step, failure, id=f"{question}-{step}-{failure}")
    for question in QUESTIONS
    for step in STEPS
    for failure in ("raises", "gives nothing")
]


@pytest.mark.security
@pytest.mark.parametrize(("question", "step", "failure"), FORCED)
def test_a_failure_at_any_step_leaves_the_same_kind_of_result(monkeypatch, question, step, failure):
    """With one of two neighbours a step fails, with the other it does not: what comes back has the same outline."""
    ball, X, ask, budget = FLAT, NEAR_ZERO, QUESTIONS[question], dpm.Budget(GDP(10.0))
    expected = shape_where_nothing_fails(question)
    target, behind = STEPS[step][0], []
    spend = dpm.Budget.spend

    def spending(self, *arguments, **options):
        spend(self, *arguments, **options)
        behind.append(True)

    *path, name = target.split(".")
    original = _resolve(target)

    def broken(*arguments, **options):
        if not behind:
            return original(*arguments, **options)
        if failure == "raises":
            raise ArithmeticError("a record did this")
        return np.float64(np.nan)

    monkeypatch.setattr(dpm.Budget, "spend", spending)
    monkeypatch.setattr(".".join([*path, name]), broken)
    with nothing_raises():
        result = ask(X, ball, GDP(1.0), units=EACH_RECORD, budget=budget)
    monkeypatch.undo()
    assert _without_details(shape_of(result)) == _without_details(expected)


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
def test_the_wrong_variant_is_seen(monkeypatch):
    """Were the door left open, a failing solver would show."""
    monkeypatch.setattr("dpmanifold.stats.draws.sealed", lambda compute, otherwise: compute())
    monkeypatch.setattr("dpmanifold.frechet.UnitPoints.mean", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        dpm.private_mean(
            np.full((9, 2), 0.6), Ball(Sphere(1), [1.0, 0.0], 1.0), PureDP(1.0), units=EACH_RECORD, invalid="center",
            confirm=True,
        )  # fmt: skip


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


@pytest.mark.security
@pytest.mark.parametrize("case", SPACES[1::2], ids=str)
def test_nothing_fails_at_the_edge(watched, case):
    """78 configurations on each space and all mechanisms: no exception, and not even one that was swallowed."""
    space, radius = case
    assert len(ask_everything(space, radius, 78, seed=0)) >= 4
    assert watched == []


@pytest.mark.slow  # seconds on each space: the test above in ten times as many configurations
@pytest.mark.parametrize(("space", "radius"), SPACES, ids=str)
def test_nothing_fails_at_the_edge_in_many_configurations(watched, space, radius):
    """10,000 configurations over all spaces and mechanisms."""
    assert len(ask_everything(space, radius, 770, seed=1)) >= 4
    assert watched == []


@pytest.mark.security
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
