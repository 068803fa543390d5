"""What others contribute is tried on public points before anything is paid: the whole call, once, at no cost."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, Ball
from dpmanifold.features import Tangent
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.noise.source import SimulationSource
from dpmanifold.statistic import STATISTICS, Kind
from dpmanifold.stats import rehearsal
from dpmanifold.stats.featured import FeatureStatistic
from dpmanifold_example.cube_laplace import CubeLaplace
from laws.accounts import MemoryAccount
from registries import changed

pytestmark = pytest.mark.security

PROMISE = GDP(5.0)
N = 400


@pytest.fixture(autouse=True)
def _nothing_was_rehearsed(monkeypatch):
    monkeypatch.setattr(rehearsal, "_rehearsed", set())


def records(ball, n=N):
    steps = 0.2 * ball.radius * np.random.default_rng(0).standard_normal((n, ball.space.dim))
    return ball.space.project(ball.space.exp_coords(ball.center, steps))


HALVES = np.arange(N) % 2
CALLS = {
    "mean": lambda X, ball, **o: dpm.private_mean(X, ball, PROMISE, **o),
    "refined mean": lambda X, ball, **o: dpm.private_mean(X, ball, PROMISE, refine=True, **o),
    "means by class": lambda X, ball, **o: dpm.private_class_means(X, HALVES, ball, PROMISE, classes=[0, 1], **o),
    "median": lambda X, ball, **o: dpm.private_median(X, ball, PROMISE, **o),
    "variance": lambda X, ball, **o: dpm.private_variance(X, ball, PROMISE, **o),
    "interval": lambda X, ball, **o: dpm.private_variance_interval(X, ball, PROMISE, **o),
    "region": lambda X, ball, **o: dpm.private_region(X, ball, PROMISE, **o),
    "two-sample test": lambda X, ball, **o: dpm.private_two_sample_test(X[::2], X[1::2], ball, PROMISE, **o),
    "groups": lambda X, ball, **o: dpm.private_k_sample_test(X, HALVES, ball, PROMISE, classes=[0, 1], **o),
    "classes": lambda X, ball, **o: dpm.private_lda(X, HALVES, ball, PROMISE, classes=[0, 1], refine=True, **o),
    "components": lambda X, ball, **o: dpm.private_pga(X, ball, PROMISE, **o),
    "regression": lambda X, ball, **o: dpm.private_regression(
        X, np.linspace(0, 1, len(X)), ball, PROMISE, covariate_range=(0, 1), **o
    ),
    "ball": lambda X, ball, **o: dpm.private_ball(X, ball, PROMISE, **o),
}


def refused(call, ball, words, **options):
    """Assert that a call is refused in these words before anything is paid, without a draw; return the error."""
    budget, source, X = dpm.Budget(PROMISE), SimulationSource(3), records(ball)
    before = SimulationSource(3).bits(4)
    with pytest.raises(dpm.InvalidArgumentError, match=words) as found:
        call(X, ball, units=EACH_RECORD, budget=budget, rng=source, **options)
    assert not budget.history
    assert np.array_equal(source.bits(4), before)
    assert "Nothing was spent" in str(found.value)
    return found.value


# -------------------------------------------------------------------- spaces


class Own(dpm.Sphere):
    """A sphere of somebody else's, which is a sphere."""


class Lawless(Own):
    """States the Gaussian law of a product, and is none: nothing that a plan looks at tells."""

    gaussian_proof, factors, weights = "product", (dpm.Sphere(2),), np.ones(1)


class Later(Own):
    """Fails at whatever a test says, once the laws of spaces were looked at."""

    failing = None

    def from_origin(self, p, q):
        if self.failing == "from_origin":
            raise AttributeError("no rotation")
        return super().from_origin(p, q)

    def from_log_words(self, x, words):
        if self.failing == "nan":
            return np.full((len(x), self.dim), np.nan)
        if self.failing == "linalg":
            raise np.linalg.LinAlgError("no decomposition")
        return super().from_log_words(x, words)


def cap(space):
    return Ball(space, space.origin, 0.6)


@pytest.fixture
def later(monkeypatch):
    """A ball on a space that fails later."""
    ball = cap(Later(2))

    def fails(at):
        monkeypatch.setattr(Later, "failing", at)
        return ball

    return fails


@pytest.mark.parametrize("options", [{}, {"arithmetic": "float"}, {"mechanism": "riemannian-gaussian"}], ids=str)
def test_a_space_that_states_a_law_and_has_none_is_refused(options):
    """A release of the centre was what came of it, for ever and in silence."""
    refused(
        CALLS["mean"], cap(Lawless(2)), r"space Lawless\(2\) cannot be used for a mean: .*AttributeError", **options
    )


def test_a_rehearsal_for_another_promise_or_another_arithmetic_is_no_rehearsal():
    ball = cap(Lawless(2))
    assert dpm.private_mean(records(ball), ball, dpm.PureDP(1.0), units=EACH_RECORD).private
    refused(CALLS["mean"], ball, r"space Lawless\(2\) cannot be used for a mean")

    class Placeless(type(MECHANISMS.get("wrapped-gaussian"))):
        """Draws in doubles, and has no point for what it draws exactly."""

        name = "placeless"

        def place(self, ball, numbers):
            return np.full(ball.frame.shape, np.nan)

    line = Ball(dpm.Hyperbolic(2), dpm.Hyperbolic(2).origin, 1.0)
    asked = {"units": EACH_RECORD, "mechanism": Placeless()}
    assert not dpm.private_mean(records(line), line, dpm.GDP(5.0), rng=0, **asked).private
    with pytest.raises(dpm.InvalidArgumentError, match="mechanism 'placeless' cannot be used"):
        dpm.private_mean(records(line), line, dpm.GDP(5.0), **asked)


def test_a_product_with_such_a_factor_is_refused():
    refused(CALLS["mean"], cap(dpm.Product([dpm.Sphere(2), Lawless(2)])), r"space Lawless\(2\) cannot be used")


# Others never come back to the space: what they release are numbers.
POINTS = ("mean", "refined mean", "means by class", "median", "variance", "interval", "ball", "classes")


@pytest.mark.parametrize("name", POINTS)
def test_a_space_without_a_step_that_comes_behind_the_payment_is_refused(later, name):
    ball = later("from_origin")
    error = refused(CALLS[name], ball, r"space Later\(2\) cannot be used .*AttributeError: no rotation")
    assert isinstance(error.__cause__, AttributeError)


@pytest.mark.parametrize("failing", ["nan", "linalg"])
def test_a_space_whose_numbers_are_none_is_refused_although_a_fallback_would_hide_it(later, failing):
    refused(CALLS["mean"], later(failing), r"space Later\(2\) cannot be used for a mean: .*a step has no numbers")


@pytest.mark.parametrize("name", CALLS)
def test_a_space_of_somebody_else_that_is_right_is_used(name):
    """It costs once what the call costs; and it is rehearsed once."""
    ball, budget, made = cap(Own(2)), dpm.Budget(GDP(100.0)), []
    call, original = CALLS[name], rehearsal.outcome_of

    def outcome_of(releases):
        made.append(releases)
        return original(releases)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rehearsal, "outcome_of", outcome_of)
        for _ in range(2):
            call(records(ball), ball, units=EACH_RECORD, budget=budget)
    assert len(made) == 1
    assert not any(release.private for release in made[0])
    assert len(budget.history) == 2


@pytest.mark.parametrize("name", CALLS)
def test_the_rehearsal_takes_none_of_the_users_bits(name):
    """What a seed gives is the same whether or not something was rehearsed before."""
    ball = cap(Own(2))
    ask = [CALLS[name](records(ball), ball, units=EACH_RECORD, rng=5) for _ in range(2)]
    first, second = ([*found.values()] if isinstance(found, dict) else [found] for found in ask)
    assert [found.to_dict() for found in first] == [found.to_dict() for found in second]


def test_the_librarys_own_is_not_rehearsed(monkeypatch):
    monkeypatch.setattr(rehearsal, "_try", lambda *_: pytest.fail("rehearsed"))
    for ball in (cap(dpm.Sphere(2)), cap(dpm.Product([dpm.Sphere(2), dpm.Euclidean(1)]))):
        assert CALLS["mean"](records(ball), ball, units=EACH_RECORD).private


def test_an_account_must_be_able_to_read_what_it_stores():
    """A space that no registry has can be released on, and not be read again: paid for, it would be lost."""
    ball, account = cap(Own(2)), MemoryAccount(GDP(100.0))
    with pytest.raises(dpm.InvalidArgumentError, match=r"space Own\(2\) cannot be used"):
        CALLS["mean"](records(ball), ball, units=EACH_RECORD, budget=account)
    assert account.spent is None


# -------------------------------------------------------------------- mechanisms

LINE = Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)


class Drawless(CubeLaplace):
    """A mechanism whose draw fails."""

    name = "drawless"

    def law(self, ball, calibration, mean, points):
        raise KeyError("table of quantiles")


class Endless(CubeLaplace):
    """A mechanism that draws no numbers."""

    name = "endless"

    def draw(self, ball, calibration, mean, points, source):
        return np.full(ball.frame.shape, np.inf)


@pytest.mark.parametrize(("mechanism", "words"), [(Drawless(), "table of quantiles"), (Endless(), "no numbers")])
def test_a_mechanism_that_cannot_draw_is_refused(mechanism, words):
    refused(
        CALLS["mean"], LINE, rf"mechanism '{mechanism.name}' cannot be used for a mean: .*{words}", mechanism=mechanism
    )


def test_a_mechanism_by_name_is_tried_too(monkeypatch):
    changed(monkeypatch, MECHANISMS, drawless=Drawless())
    refused(CALLS["mean"], LINE, "mechanism 'drawless' cannot be used", mechanism="drawless")


def test_a_mechanism_that_is_right_is_used():
    release = CALLS["mean"](records(LINE), LINE, units=EACH_RECORD, mechanism=CubeLaplace())
    assert release.mechanism == "cube-laplace"


# -------------------------------------------------------------------- statistics and maps


class Averaged(dpm.AveragedStatistic):
    """The first coordinate."""

    name, words, kind = "first", "the first coordinate", Kind.NUMBER

    def per_unit(self, block, ball):
        return block[:, :1]

    def bound(self, ball):
        return ball.radius


class Raising(Averaged):
    def per_unit(self, block, ball):
        raise KeyError("no such column")


class Unnumbered(Averaged):
    def per_unit(self, block, ball):
        return np.where(block[:, :1] > 0.5, np.nan, block[:, :1])


class Wide(Averaged):
    def per_unit(self, block, ball):
        return block


class Averageless(Averaged):
    def average(self, points):
        raise TypeError("average() takes points")


def of_statistic(statistic):
    return lambda X, ball, **o: dpm.private_statistic(X, ball, PROMISE, statistic=statistic, **o)


@pytest.mark.parametrize(
    ("statistic", "words"),
    [(Raising(), "no such column"), (Unnumbered(), "finite numbers"), (Wide(), "must return shape")],
    ids=lambda value: type(value).__name__,
)
def test_a_statistic_whose_map_is_wrong_is_refused(statistic, words):
    budget = dpm.Budget(PROMISE)
    with pytest.raises(dpm.InvalidArgumentError, match=f"per_unit of 'first'.*{words}"):
        of_statistic(statistic)(records(LINE), LINE, units=EACH_RECORD, budget=budget)
    assert not budget.history


def test_a_statistic_without_a_value_for_what_is_drawn_is_refused():
    class Valueless(Averaged):
        def value(self, numbers, ball):
            if numbers[0] != 0.0:
                raise ValueError("none for this")
            return 0.0

    refused(of_statistic(Valueless()), LINE, "statistic 'first' cannot be used for a first: .*none for this")


def test_a_statistic_that_fails_in_another_step_is_refused():
    refused(of_statistic(Averageless()), LINE, "statistic 'first' cannot be used for a first: .*takes points")
    found = of_statistic(Averaged())(records(LINE), LINE, units=EACH_RECORD)
    assert abs(found.value) < 0.5


class Mapless(Tangent):
    """A feature map of somebody else's without what turns averages into values."""

    def units(self, dim, radius):
        if dim == 2 and radius == 1.0:
            return np.full(self.size(dim), radius)
        raise NotImplementedError("other balls")


def test_a_feature_map_of_somebody_else_is_tried(monkeypatch):
    """In the smaller ball that the call finds, which no plan sees."""

    class Featured(FeatureStatistic):
        name, words = "featured", "features"

    statistic = Featured(Mapless())
    changed(monkeypatch, STATISTICS, featured=statistic)
    wide = Ball(dpm.Euclidean(2), [0.0, 0.0], 1.0)
    X = 0.01 * records(wide)
    budget = dpm.Budget(PROMISE)
    with pytest.raises(dpm.InvalidArgumentError, match="other balls"):
        dpm.private_statistic(X, wide, PROMISE, statistic=statistic, units=EACH_RECORD, refine=True, budget=budget)
    assert not budget.history
