"""The audit of a private mean: attacks on what users call, on data made from public numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmanifold import frechet
from dpmanifold._check import Array, FloatArray, open_fraction, positive_int
from dpmanifold.audit.empirical import Certificate, Measure, advantage, certified, epsilon_of, mu_of, rho_of
from dpmanifold.audit.findings import ADVANTAGE, BLACK_BOX, LOW_BITS, TIMING, WORDS, Audit, Finding
from dpmanifold.audit.floating_point_attack import tangent_word_log_ratio, word_log_ratio
from dpmanifold.audit.low_bits import low_bit_scores
from dpmanifold.ball import Ball, require_ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import Calibration, Mechanism, choose
from dpmanifold.noise.source import Rng, as_source
from dpmanifold.privacy import GDP, ZCDP, ApproxDP, Promise, PureDP, best_guess
from dpmanifold.release import EXACT, FLOAT
from dpmanifold.stats import EACH_RECORD, private_mean
from dpmanifold.stats.draws import draw_about, fresh_bits, hidden_mean, refuse_inexact
from dpmanifold.stats.inputs import checked_question

# Certificates need 100 outputs of each of the two data sets of both pairs in either half.
LEAST_RUNS = 800
_DATA_SETS = 4

# On other spaces the doubles next to a point's logarithm are tried, in so few dimensions that it can be done.
_FEW_DIMENSIONS = 3

Progress = Callable[[int], None]
_Pair = tuple[Array, Array]


def audit_mean(
    n: int,
    ball: Ball,
    privacy: Promise,
    *,
    estimand: str | None = None,
    mechanism: str = "auto",
    arithmetic: str = "auto",
    runs: int = 10_000,
    confidence: float = 0.999,
    rng: Rng = None,
    progress: Progress | None = None,
) -> Audit:
    """Attack a private mean: how well its releases, and the time they take, tell neighbouring data sets apart.

    Two pairs of data sets are made from public numbers: everybody at one edge of the ball and one unit moved to the
    opposite edge, and generic data with one unit moved across the centre. `private_mean` is called many times on each,
    with `project=False` and `shrinkage=None`: whoever sees the draw sees more. Then

    - black box: a difference of distances from the two means, for Riemannian laws the likelihood ratio in real numbers,
      bounds the promise's own parameter from below;
    - low bits: a classifier that sees the last bits of the doubles alone (:func:`low_bit_scores`);
    - random words: on Euclidean space with normal noise (or Laplace noise and d = 1), how many random words would give
      exactly this output from either statistic, if noise were drawn in doubles (:func:`word_log_likelihood`); also for
      wrapped normal noise on other spaces of dimension 3 or less (:func:`tangent_word_log_ratio`);
    - timing: how long the draw takes, the solver not included.

    Half of the outputs picks the event, the other half tests it with Clopper-Pearson bounds. The last three bound the
    advantage, P(guess first | first) - P(guess first | second), which may be 2 best_guess(privacy) - 1 at most.

    Parameters
    ----------
    n : number of units; 10 to 100 are as good as many, and faster
    ball : public ball; means without one are not attacked
    privacy : PureDP, ApproxDP, ZCDP or GDP
    estimand : which mean, as in :func:`~dpmanifold.stats.private_mean`
    mechanism : "auto" or a name; not a baseline
    arithmetic : "auto" attacks what a release gets, "exact" and "float" one or the other
    runs : how many releases to make in all, at least 800
    confidence : that all bounds hold together
    rng : None for what users get; a seed or generator for what simulations get
    progress : called with the number of calls made so far, of 2 runs (releases, then timed draws)

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> from dpmanifold.manifolds import Euclidean
    >>> ball = Ball(Euclidean(1), [0.0], 1.0)
    >>> found = audit_mean(10, ball, GDP(1.0), runs=800)
    >>> [finding.attack for finding in found.findings if finding.data == "generic"]
    ['black box', 'low bits', 'random words', 'timing']
    """
    n, runs = positive_int(n, "n", 2), positive_int(runs, "runs", LEAST_RUNS)
    confidence = open_fraction(confidence, "confidence")
    checked_question(ball, privacy)
    require_ball(ball)
    chosen, calibration = choose(mechanism, ball, n, privacy, estimand)[:2]
    if chosen.baseline:
        raise InvalidArgumentError(
            f"mechanism {chosen.name} is a baseline: its value is no point of the space, and an audit compares points. "
            "See dpm mechanisms for the others."
        )
    refuse_inexact(arithmetic, chosen, ball, calibration)
    rng = None if rng is None else as_source(rng)  # one stream for all releases
    exact = fresh_bits(rng, ball, arithmetic).exact and chosen.offers_exact(ball, calibration)
    said = EXACT if exact else FLOAT
    done = progress or (lambda calls: None)
    target = _Target(ball, privacy, chosen, calibration, said, rng, runs // _DATA_SETS, done)
    seen = [(pair.name, *found) for pair in neighbours(ball, n) for found in target.attacked(pair)]
    each = 1 - (1 - confidence) / len(seen)
    most = 2 * best_guess(privacy) - 1  # advantage: the total variation between neighbours
    findings = []
    for data, attack, first, second in seen:
        name, measure, allowed = _bounded(privacy) if attack == BLACK_BOX else (ADVANTAGE, advantage, most)
        found: Certificate = certified(first, second, measure, confidence=each)
        findings.append(Finding(attack, data, name, allowed, found.estimate, found.lower, attack != TIMING))
    order = (BLACK_BOX, LOW_BITS, WORDS, TIMING)
    findings.sort(key=lambda finding: order.index(finding.attack))
    made = _DATA_SETS * target.each
    return Audit(ball, n, privacy, chosen.name, said, made, confidence, tuple(findings))


def _bounded(privacy: Promise) -> tuple[str, Measure, float]:
    """Return the parameter of a promise that events bound from below, how, and its value."""
    match privacy:
        case PureDP():
            return "epsilon", epsilon_of(), privacy.above[0]
        case ApproxDP():
            epsilon, delta = privacy.above
            return "epsilon", epsilon_of(delta), epsilon
        case GDP():
            return "mu", mu_of, privacy.above[0]
        case ZCDP():
            return "rho", rho_of, privacy.above[0]
    raise AssertionError("a promise is one of the four kinds")


@dataclass
class _Target:
    """A mechanism under attack; `each` is the number of releases per data set."""

    ball: Ball
    privacy: Promise
    mechanism: Mechanism
    calibration: Calibration
    arithmetic: str
    rng: Rng
    each: int
    progress: Progress
    done: int = 0

    def attacked(self, pair: Neighbours) -> list[tuple[str, FloatArray, FloatArray]]:
        """Return for every attack one number per output of either data set."""
        (one, its), (other, others) = (hidden_in_frame(X, self.ball, self.mechanism) for X in (pair.first, pair.second))
        means, points = (one, other), (its, others)
        first, second = (self._releases(X) for X in (pair.first, pair.second))
        scores = [
            (BLACK_BOX, self._loss(first, means), self._loss(second, means)),
            (LOW_BITS, *low_bit_scores(first, second, self.ball, means)),
        ]
        ratio = self._word_ratio(means)
        if ratio is not None:
            scores.append((WORDS, ratio(first), ratio(second)))
        return [*scores, (TIMING, *self._times(means, points))]

    def _releases(self, X: Array) -> Array:
        """Return values of many releases: what users call, with nothing done to the draw."""
        values = []
        for _ in range(self.each):
            release = private_mean(
                X, self.ball, self.privacy, units=EACH_RECORD, mechanism=self.mechanism.name, confirm=True,
                project=False, shrinkage=None, arithmetic=self.arithmetic, rng=self.rng,
            )  # fmt: skip
            values.append(release.value)
            self._advance()
        return np.stack(values)

    def _loss(self, values: Array, means: _Pair) -> FloatArray:
        """Return the difference of distances, or squares of them: for Riemannian laws the log likelihood ratio."""
        space = self.ball.space
        first, second = (space.dist(self.ball.from_frame(mean[None])[0], values) for mean in means)
        power = 1 if self.mechanism.noise == "laplace" else 2
        return np.asarray(second**power - first**power)

    def _word_ratio(self, means: _Pair) -> Callable[[Array], FloatArray] | None:
        """Return how random words are counted behind outputs of this mechanism on this space; None where nobody can."""
        (law, about), scale, ball = (self.mechanism.noise, self.mechanism.about), self.calibration.scale, self.ball
        if ball.space.is_vector_space and about and (law == "gaussian" or ball.space.dim == 1):
            return lambda values: word_log_ratio(values, *means, scale, law=law, center=ball.center)
        if (law, about) == ("gaussian", "center") and ball.space.dim <= _FEW_DIMENSIONS:
            return lambda values: tangent_word_log_ratio(values, ball, *means, scale)
        return None

    def _times(self, means: _Pair, points: tuple[UnitPoints, UnitPoints]) -> tuple[FloatArray, FloatArray]:
        """Time draws on both data sets in random order, so that a machine that slows down slows both."""
        bits = fresh_bits(self.rng, self.ball, self.arithmetic)
        sides = np.repeat([0, 1], self.each)
        np.random.default_rng().shuffle(sides)
        times = np.empty(sides.size)
        for i, side in enumerate(sides):
            start = time.perf_counter_ns()
            draw_about(self.ball, self.mechanism, self.calibration, means[side], points[side], bits)
            times[i] = time.perf_counter_ns() - start
            self._advance()
        return times[sides == 0], times[sides == 1]

    def _advance(self) -> None:
        self.done += 1
        self.progress(self.done)


# -------------------------------------------------------------------- two pairs of data sets


# Records lie inside by this share of the radius, so that rounding clips none of them.
_INSIDE = 1 - 1e-6
# Generic data are the same in every audit: nothing about them matters.
_SEED = 0


@dataclass(frozen=True)
class Neighbours:
    """Two data sets that differ in one unit.

    Attributes
    ----------
    name : "worst case" or "generic"
    first, second : records, shape (n, *space.shape), one per unit
    """

    name: str
    first: Array
    second: Array


def neighbours(ball: Ball, n: int, seed: int = _SEED) -> tuple[Neighbours, Neighbours]:
    """Return the worst case (everybody at one edge, one moved to the opposite edge) and generic data.

    The edge point lies in a direction in which every coordinate moves, so that every coordinate may tell. Generic data
    are drawn in the ball, and one unit is moved to the other side of the centre.

    Parameters
    ----------
    ball : the public ball
    n : number of units
    seed : of the generic data

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> worst, generic = neighbours(Ball(Euclidean(1), [0.0], 2.0), 10)
    >>> worst.first.shape, np.flatnonzero((worst.first != worst.second)[:, 0]), generic.name
    ((10, 1), array([9]), 'generic')
    """
    d, radius = ball.space.dim, _INSIDE * ball.radius
    edge = np.full((n, d), radius / np.sqrt(d))
    rng = np.random.default_rng(seed)
    inside = rng.standard_normal((n, d))
    inside *= (radius * rng.random(n) ** (1 / d) / np.linalg.norm(inside, axis=1))[:, None]
    return _with_one_moved("worst case", ball, edge), _with_one_moved("generic", ball, inside)


def _with_one_moved(name: str, ball: Ball, coords: FloatArray) -> Neighbours:
    other = coords.copy()
    other[-1] = -other[-1]
    first, second = (ball.space.project(ball.space.exp_coords(ball.center, c)) for c in (coords, other))
    return Neighbours(name, first, second)


def hidden_in_frame(X: Array, ball: Ball, mechanism: Mechanism) -> tuple[Array, frechet.UnitPoints]:
    """Return the mean that a mechanism hides and the units' points, both in the ball's frame. NOT PRIVATE.

    Examples
    --------
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.mechanisms import get
    >>> ball = Ball(Euclidean(1), [0.0], 4.0)
    >>> hidden_in_frame(np.array([[1.0], [3.0]]), ball, get("tangent-mean-gaussian"))[0]
    array([2.])
    """
    points = frechet.unit_points(X, ball, units=None)
    return hidden_mean(ball, mechanism, points), points
