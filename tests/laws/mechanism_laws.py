"""The laws every mechanism obeys: one suite, inherited by the test of each mechanism.

A subclass gives `name`, and `balls` and `promises` if it wants others. What a mechanism refuses it must refuse in
words; everything else is checked wherever it does not. Forecasts are compared with draws: a right one fails with
probability 1e-6 per comparison (binomial), and noise that is half as large again must be caught. Densities of
neighbours are compared where their ratio is known; where it is not, as for laws truncated to a ball, the test is
skipped and says so.
"""

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import special, stats

from dpmanifold import EACH_RECORD, GDP, ZCDP, ApproxDP, Ball, PureDP, Release, private_mean, verify
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import ESTIMANDS, attempt, get
from dpmanifold.noise import SimulationSource
from dpmanifold.noise.distance import DistanceLaw
from dpmanifold.privacy.convert import gdp_delta, zcdp_log_delta
from dpmanifold.sensitivity import of_mean
from dpmanifold.stats.draws import hidden_mean
from laws.data import in_ball
from laws.fit import ALARM
from laws.spaces import BALLS

UNITS, DRAWS, LOSSES = 40, 2000, 4000
LEVELS = (0.25, 0.5, 0.9)


@cache
def outcome(name, ball, n, promise):
    """Calibration and forecast, or the reason why there is none."""
    return attempt(get(name), ball, n, promise)


class MechanismLaws:
    """Laws of a mechanism that hides a mean."""

    name = ""
    balls = BALLS
    promises = (PureDP(1.0), ApproxDP(0.5, 1e-6), ZCDP(0.5), GDP(1.0))

    @property
    def mechanism(self):
        return get(self.name)

    def offered(self, n=UNITS):
        """Every ball and promise that it takes, with what it makes of them."""
        for ball in self.balls:
            for promise in self.promises:
                found = outcome(self.name, ball, n, promise)
                if not isinstance(found, str):
                    yield ball, promise, *found

    def one_per_ball(self):
        """The first promise that it takes on each ball."""
        seen = {}
        for entry in self.offered():
            seen.setdefault(id(entry[0]), entry)
        return list(seen.values())

    def hidden(self, ball):
        """Points of units and the mean of them that this mechanism hides, in the ball's frame."""
        points = UnitPoints.of(ball.to_frame(in_ball(ball, UNITS, np.random.default_rng(0))), ball)
        return hidden_mean(ball, self.mechanism, points), points

    # ------------------------------------------------------------ public facts

    def test_it_says_what_it_is(self):
        mechanism = self.mechanism
        assert mechanism.name == self.name
        assert mechanism.title
        assert mechanism.estimand in ESTIMANDS

    def test_it_keeps_some_promise_somewhere_and_refuses_others_in_words(self):
        assert list(self.offered())
        for ball in self.balls:
            for promise in self.promises:
                found = outcome(self.name, ball, UNITS, promise)
                assert not isinstance(found, str) or len(found) > 10

    def test_a_calibration_repeats_what_it_was_made_from(self):
        for ball, promise, calibration, forecast in self.offered():
            assert calibration.mechanism == self.name
            assert calibration.privacy == promise
            assert calibration.rule
            assert 0 < calibration.scale < np.inf
            assert 0 < calibration.sensitivity.value <= 2 * ball.effective_radius * 1.001
            assert 0 < forecast.mean < np.inf
            assert (np.diff(forecast.quantile([0.1, *LEVELS])) > 0).all()

    def test_more_units_and_weaker_promises_never_need_more_noise(self):
        weaker = {
            PureDP: lambda p: PureDP(2 * p.epsilon),
            ApproxDP: lambda p: ApproxDP(2 * p.epsilon, p.delta),
            ZCDP: lambda p: ZCDP(4 * p.rho),
            GDP: lambda p: GDP(2 * p.mu),
        }
        for ball, promise, calibration, _ in self.offered():
            more = outcome(self.name, ball, 4 * UNITS, promise)
            other = outcome(self.name, ball, UNITS, weaker[type(promise)](promise))
            assert not isinstance(more, str)
            assert more[0].scale < calibration.scale
            assert isinstance(other, str) or other[0].scale < calibration.scale

    def test_smaller_balls_never_need_more_noise(self):
        for ball, promise, calibration, _ in self.offered():
            smaller = outcome(self.name, Ball(ball.space, ball.center, ball.radius / 2), UNITS, promise)
            assert not isinstance(smaller, str)
            assert smaller[0].scale < calibration.scale

    def test_a_larger_bound_needs_more_noise_or_is_refused(self):
        """Another statistic whose value is a point brings its own bound."""
        for ball, promise, calibration, _ in self.offered():
            own = of_mean(ball, UNITS) if self.mechanism.baseline else calibration.sensitivity
            other = replace(own, value=1.25 * own.value, statistic="median")
            found = attempt(self.mechanism, ball, UNITS, promise, other)
            if self.mechanism.needs_points:
                assert "hides a mean" in found
            elif not isinstance(found, str):
                assert found[0].scale > calibration.scale
                assert "median" in found[0].sensitivity.statistic

    def neighbours(self, ball, calibration):
        """Two laws whose values lie as far apart as the sensitivity; None where the ratio of densities is not known.

        The law of the output, if it states a density with its normaliser, or with one that is the same everywhere
        (noise about a point of a homogeneous space); else that of the vector which the noise is added to.
        """
        mechanism, half = self.mechanism, calibration.sensitivity.value / 2
        if mechanism.needs_points or mechanism.baseline:
            noise = getattr(mechanism.law(ball, calibration, *self.hidden(ball)), "_noise", None)
            if noise is None:
                return None
            step = np.eye(noise.space.dim)[0] * half
            return tuple(type(noise)(noise.space, value, noise.scale) for value in (step, -step))
        frame, step = ball.frame, np.eye(ball.frame.dim)[0] * half
        means = frame.exp_coords(frame.origin, np.stack([step, -step]))
        one, two = (mechanism.law(ball, calibration, mean, None) for mean in means)
        known = getattr(one, "normalized", False) or (isinstance(one, DistanceLaw) and one.ball is None)
        return (one, two) if known else None

    def compared(self, pure):
        """Balls, promises and calibrations where neighbours can be compared; without any, the test is skipped."""
        found = [
            (ball, promise, calibration)
            for ball, promise, calibration, _ in self.offered()
            if isinstance(promise, PureDP) is pure and self.neighbours(ball, calibration) is not None
        ]
        if not found:
            kept = any(isinstance(promise, PureDP) is pure for _, promise, *_ in self.offered())
            pytest.skip(
                f"{self.name}: " + ("its law states no density to compare" if kept else "keeps no such promise")
            )
        return found

    def test_neighbours_densities_differ_by_what_a_pure_promise_allows(self):
        """At outputs drawn from either, so that the largest ratio shows; a third as much noise breaks the promise."""
        for ball, promise, calibration in self.compared(pure=True):
            used, broken = (
                max(losses.max() for losses in privacy_losses(*self.neighbours(ball, narrow)))
                for narrow in (calibration, replace(calibration, scale=calibration.scale / 3))
            )
            assert used <= promise.epsilon * (1 + 1e-6), f"{ball!r}: {used}"
            assert broken > promise.epsilon, f"{ball!r}: a third of the noise passes"

    def test_neighbours_are_as_close_as_other_promises_say(self):
        """The hockey-stick divergence, by density ratios on draws: a right mechanism fails with probability 1e-6.

        A third as much noise must be caught. Where the noise is for pure DP it keeps more of other promises than was
        asked for, in many dimensions much more: there a tenth.
        """
        for ball, promise, calibration in self.compared(pure=False):
            losses = privacy_losses(*self.neighbours(ball, calibration))
            assert keeps(losses, promise), f"{ball!r}: {promise!r} is not kept"
            pure = not isinstance(outcome(self.name, ball, UNITS, PureDP(1.0)), str)
            narrow = replace(calibration, scale=calibration.scale / (10 if pure else 3))
            wrong = privacy_losses(*self.neighbours(ball, narrow))
            assert not keeps(wrong, promise), f"{ball!r}, {promise!r}: too little noise passes"

    # ------------------------------------------------------------ draws

    def test_the_same_seed_draws_the_same(self):
        for ball, _, calibration, _ in self.one_per_ball():
            about = self.hidden(ball)
            one, two = (self.mechanism.draw(ball, calibration, *about, SimulationSource(seed)) for seed in (3, 3))
            other = self.mechanism.draw(ball, calibration, *about, SimulationSource(4))
            assert one.tobytes() == two.tobytes() != other.tobytes()

    def test_exact_draws_are_multiples_of_a_public_grid_and_become_points(self):
        for ball, _, calibration, _ in self.one_per_ball():
            if self.mechanism.offers_exact(ball, calibration):
                numbers = self.mechanism.numbers(ball, calibration, *self.hidden(ball), SimulationSource(5))
                assert numbers.shape == (self.mechanism.size(ball),)
                multiples = np.ldexp(numbers, -self.mechanism.grid(ball, calibration))
                assert np.array_equal(multiples, np.rint(multiples))
                placed = self.mechanism.place(ball, numbers)
                assert ball.frame.check(placed) is None
                # Post-processing: whoever does it again comes to the same bits.
                assert self.mechanism.place(ball, numbers.copy()).tobytes() == placed.tobytes()

    def distances(self, ball, calibration):
        mean, points = self.hidden(ball)
        draws = np.asarray(self.mechanism.law(ball, calibration, mean, points).sample(DRAWS, rng=6))
        return ball.frame.dist(mean, draws)

    def test_noise_is_as_large_as_forecast_or_smaller_where_it_says_at_most(self):
        if self.mechanism.baseline:
            # What a baseline draws need be no point: tests/mechanisms and the audit look at it in its own coordinates.
            return
        for ball, _, calibration, forecast in self.one_per_ball():
            away = self.distances(ball, calibration)
            assert fits(away, forecast), f"{ball!r}: noise is not as forecast"
            if forecast.exact:
                assert not fits(1.5 * away, forecast), "noise that is half as large again passes"
            assert not fits(away + forecast.quantile(0.9), forecast), "noise beyond every quantile passes"

    # ------------------------------------------------------------ releases

    def test_a_release_verifies_and_reads_back(self, tmp_path):
        for ball, promise, calibration, _ in self.one_per_ball():
            X = in_ball(ball, UNITS, np.random.default_rng(1))
            release = private_mean(X, ball, promise, units=EACH_RECORD, mechanism=self.name)
            assert release.scale == pytest.approx(calibration.scale, rel=1e-12)
            assert verify(release).ok, verify(release).wrong
            release.save(tmp_path / "release.json")
            again = Release.load(tmp_path / "release.json")
            assert np.array_equal(again.value, release.value)
            assert verify(again).ok


def privacy_losses(one, two):
    """Log ratios of the densities, at draws from the one and, the other way round, at draws from the other."""
    x, y = (np.asarray(law.sample(LOSSES, rng=9)) for law in (one, two))
    return one.logpdf(x) - two.logpdf(x), two.logpdf(y) - one.logpdf(y)


def keeps(losses, promise):
    """Whether losses on draws can be those of a promise, at several epsilon and in both directions.

    delta(epsilon) is the mean of 1 - exp(epsilon - loss) where that is positive: a number in [0, 1]. An average of n of
    them reaches t > delta with probability at most exp(-n KL(t, delta)) (Hoeffding).
    """
    points = [(epsilon, allowed(promise, epsilon)) for epsilon in EPSILONS[type(promise)](promise)]
    alarm = ALARM / (len(points) * len(losses))
    return not any(
        exceeds(float(np.maximum(0.0, -np.expm1(epsilon - each)).mean()), delta, len(each), alarm)
        for each in losses
        for epsilon, delta in points
    )


EPSILONS = {
    ApproxDP: lambda promise: (promise.epsilon,),
    GDP: lambda promise: (0.0, promise.mu, 2 * promise.mu),
    ZCDP: lambda promise: (2 * promise.rho, 4 * promise.rho, 6 * promise.rho),
}


def allowed(promise, epsilon):
    """The delta(epsilon) that a promise allows; for zCDP a bound."""
    if isinstance(promise, ApproxDP):
        return promise.delta
    if isinstance(promise, GDP):
        return gdp_delta(promise.mu, epsilon)
    return math.exp(zcdp_log_delta(promise.rho, epsilon))


def exceeds(average, mean, n, alarm):
    divergence = special.rel_entr(average, mean) + special.rel_entr(1 - average, 1 - mean)
    return average > mean and n * divergence > -math.log(alarm)


def fits(distances, forecast):
    """Whether distances reach the quantiles of a forecast as often as it says; not more often, where it is a bound."""
    for level in LEVELS:
        beyond = int((distances > forecast.quantile(level)).sum())
        kind = "two-sided" if forecast.exact else "greater"
        if stats.binomtest(beyond, len(distances), 1 - level, alternative=kind).pvalue < ALARM / len(LEVELS):
            return False
    return True
