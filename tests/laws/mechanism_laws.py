"""The laws every mechanism obeys: one suite, inherited by the test of each mechanism.

A subclass gives `name`, and `balls` and `promises` if it wants others. What a mechanism refuses it must refuse in
words; everything else is checked wherever it does not. Forecasts are compared with draws: a right one fails with
probability 1e-6 per comparison (binomial), and noise that is half as large again must be caught. Densities of
neighbours are compared where the law states a normalised one.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy import stats

from dpmanifold import EACH_RECORD, GDP, ZCDP, ApproxDP, Ball, PureDP, Release, private_mean, verify
from dpmanifold.frechet import UnitPoints
from dpmanifold.mechanisms import ESTIMANDS, attempt, get
from dpmanifold.noise import SimulationSource
from dpmanifold.sensitivity import of_mean
from dpmanifold.stats.draws import hidden_mean
from laws.data import in_ball
from laws.fit import ALARM
from laws.spaces import BALLS

UNITS, DRAWS = 40, 2000
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
            other = replace(own, value=2 * own.value, statistic="median")
            found = attempt(self.mechanism, ball, UNITS, promise, other)
            if self.mechanism.needs_points:
                assert "hides a mean" in found
            elif not isinstance(found, str):
                assert found[0].scale > calibration.scale
                assert "median" in found[0].sensitivity.statistic

    def test_neighbours_densities_differ_by_what_a_pure_promise_allows(self):
        """At many outputs, for two means as far apart as the sensitivity; a third as much noise breaks the promise."""
        promise, used, broken = PureDP(1.0), [0.0], [0.0]
        for ball in self.balls:
            found = outcome(self.name, ball, UNITS, promise)
            if isinstance(found, str) or self.mechanism.needs_points or self.mechanism.baseline:
                continue
            frame, (calibration, forecast) = ball.frame, found
            step = np.eye(frame.dim)[0] * calibration.sensitivity.value / 2
            means = frame.exp_coords(frame.origin, np.stack([step, -step]))
            for spread, kept in ((1.0, used), (1 / 3, broken)):
                narrow = replace(calibration, scale=spread * calibration.scale)
                one, two = (self.mechanism.law(ball, narrow, mean, None) for mean in means)
                if getattr(one, "normalized", False):
                    c = np.random.default_rng(9).standard_normal((2000, frame.dim))
                    along = 0.3 * c[:, :1] * step / np.linalg.norm(step)
                    x = frame.exp_coords(frame.origin, forecast.mean * np.concatenate([c, along]))
                    kept.append(float(np.abs(one.logpdf(x) - two.logpdf(x)).max()))
        assert max(used) <= promise.epsilon * (1 + 1e-6)
        assert len(used) == 1 or max(broken) > promise.epsilon

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


def fits(distances, forecast):
    """Whether distances reach the quantiles of a forecast as often as it says; not more often, where it is a bound."""
    for level in LEVELS:
        beyond = int((distances > forecast.quantile(level)).sum())
        kind = "two-sided" if forecast.exact else "greater"
        if stats.binomtest(beyond, len(distances), 1 - level, alternative=kind).pvalue < ALARM / len(LEVELS):
            return False
    return True
