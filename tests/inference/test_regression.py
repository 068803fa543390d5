"""What is read off released regressions: curves, bands, tests of slope, and what is noticed if a number is altered."""

import copy
import json

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.inference.design import Design, beta_moments

CAP = dpm.Ball(dpm.Sphere(2), [0.0, 0.6, 0.8], 0.6)
RANGE = (0.0, 10.0)
ASKED = {"units": dpm.EACH_RECORD, "covariate_range": RANGE}


def drawn(ball, n, rng, slope=0.05, spread=0.1):
    """Records about a geodesic through the centre, with a slope per unit of the covariate."""
    x = rng.uniform(*RANGE, n)
    c = spread * rng.standard_normal((n, ball.space.dim))
    frame = ball.frame
    middle = np.zeros((n, ball.space.dim))
    middle[:, 0] = slope * (x - 5)
    base = frame.exp_coords(frame.origin, middle)
    return ball.from_frame(frame.exp_coords(base, c)), x


@pytest.fixture(scope="module")
def found():
    return dpm.private_regression(*drawn(CAP, 800, np.random.default_rng(0)), CAP, dpm.GDP(1.0), **ASKED, refine=True)


def test_the_curve_is_a_geodesic_with_the_slope_it_states(found):
    x = np.array([0.0, 2.5, 5.0, 10.0])
    points = found.curve(x)
    apart = CAP.space.dist(points[:-1], points[1:])
    assert np.allclose(apart, found.speed * np.diff(x))
    # 0.05 per unit, with a standard error of about 0.0016.
    assert abs(found.speed - 0.05) < 0.01
    assert found.p_value < 1e-6


def test_bands_hold_their_own_curve_and_not_what_is_far(found):
    x = np.linspace(*RANGE, 7)
    assert found.contains(found.curve(x), x).all()
    assert not found.contains(-found.curve(x), x).any()
    for simultaneous in (False, True):
        edges = found.outlines(x, 12, simultaneous)
        band = found.band(x, simultaneous)
        apart = CAP.space.dist(edges, band.points[:, None])
        assert np.all(apart <= band.radius[:, None] * (1 + 1e-6))
        assert np.all(apart.max(axis=1) >= 0.8 * band.radius)
        inside = CAP.space.exp(band.points[:, None], 0.99 * CAP.space.log(band.points[:, None], edges))
        for number in (0, 5):
            assert found.contains(inside[:, number], x, simultaneous).all()
            assert not found.contains(CAP.space.exp(
                band.points, 1.02 * CAP.space.log(band.points, edges[:, number])), x, simultaneous).any()  # fmt: skip


def test_levels_nest(found):
    wider = dpm.GeodesicRegression(found.release, RANGE, 0.99)
    assert (wider.band([5.0]).radius > found.band([5.0]).radius).all()
    assert wider.p_value == found.p_value


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda found: found.curve([11.0]), "nothing is known beyond the range"),
        (lambda found: found.contains(found.curve([1.0]), [1.0, 2.0]), "one point for each of the 2 values"),
        (lambda found: dpm.GeodesicRegression(found.release.steps[0]), "release must be of a regression"),
        (lambda found: dpm.GeodesicRegression(found.release, (1.0, 0.0)), "covariate_range must be two numbers"),
        (lambda found: dpm.GeodesicRegression(found.release, (-1e308, 1e308)), "covariate_range must be two numbers"),
        (lambda found: dpm.GeodesicRegression(found.release, level=1.0), "level"),
    ],
)
def test_what_cannot_be_asked_is_refused(found, make, words):
    with pytest.raises(dpm.InvalidArgumentError, match=words):
        make(found)


def test_moments_of_a_beta_law():
    assert np.allclose(beta_moments(0.0, 1 / 3), [1, 0, 1 / 3, 0, 1 / 5])
    assert np.allclose(beta_moments(0.2, 0.96)[1:], [0.2, 1, 0.2, 1], atol=0.01)  # nearly two points
    for noisy in ((5.0, -3.0), (-2.0, 9.0), (0.0, 0.0)):
        moments = beta_moments(*noisy)
        assert moments[2] > moments[1] ** 2
        assert np.abs(moments).max() <= 1


# -------------------------------------------------------------------- altered numbers


def numbers_in(record, path=()):
    """Yield the paths of numbers, of long lists the first and the last."""
    if isinstance(record, dict):
        for name, entry in record.items():
            yield from numbers_in(entry, (*path, name))
    elif isinstance(record, list):
        for place in sorted({0, len(record) - 1} if record else ()):
            yield from numbers_in(record[place], (*path, place))
    elif isinstance(record, (int, float)) and not isinstance(record, bool):
        yield path


def altered(record, path):
    changed = copy.deepcopy(record)
    inner = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = inner[path[-1]] + 1 if isinstance(inner[path[-1]], int) else inner[path[-1]] * 1.01 + 1e-3
    return changed


def noticed(record):
    try:
        return not dpm.GeodesicRegression.from_dict(record).verify().ok
    except dpm.DPManifoldError:
        return True


@pytest.mark.security
@pytest.mark.parametrize("public", [False, True])
def test_every_altered_number_is_noticed(public):
    rng = np.random.default_rng(0)
    ball = dpm.Ball(dpm.Euclidean(1), [1.0], 1.0, source="a range")
    x = rng.uniform(*RANGE, 300)
    X = (1 + 0.05 * (x - 5) + 0.1 * rng.standard_normal(300))[:, None]
    result = dpm.private_regression(X, x, ball, dpm.GDP(1.0), covariate_public=public, refine=True, **ASKED)
    record = json.loads(json.dumps(result.to_dict()))
    assert not noticed(record)
    assert [step["statistic"] for step in record["release"]["steps"]] == ["radius"]
    for path in list(numbers_in(record["release"], ("release",))):
        changed = altered({name: entry for name, entry in record.items() if name != "answers"}, path)
        assert noticed(changed), path
    for path in list(numbers_in(record["answers"], ("answers",))):
        assert noticed(altered(record, path)), path


def test_copies_of_words_are_noticed(found):
    record = json.loads(json.dumps(found.to_dict()))
    for name, other in (("rule", "counts"), ("mechanism", "laplace"), ("unit", "person"), ("adjacency", "nobody")):
        changed = copy.deepcopy(record)
        changed["release"][name] = other
        assert noticed(changed), name
    changed = copy.deepcopy(record)
    changed["release"]["steps"][0]["steps"] = []
    assert noticed(changed)


# -------------------------------------------------------------------- coverage


def lengths_of_errors(repetitions):
    """Squared lengths of errors of the curve at one value each, over what a 95 % band allows."""
    rng, found = np.random.default_rng(1), []
    for repetition in range(repetitions):
        value = [0.0, 3.0, 5.0, 10.0][repetition % 4]
        true = CAP.from_frame(CAP.frame.exp_coords(CAP.frame.origin, np.array([[0.05 * (value - 5), 0.0]])))
        result = dpm.private_regression(*drawn(CAP, 300, rng), CAP, dpm.GDP(1.5), rng=rng, refine=True, **ASKED)
        band = result.band([value])
        error = result._fit.curve.residuals(CAP.to_frame(true), result._t([value]))[0]
        found.append(error @ np.linalg.solve(band.covariance[0], error) / band.threshold[0])
    return np.array(found)


@pytest.mark.slow
def test_bands_cover_and_smaller_ones_do_not():
    """With 95 %, fewer than 0.91 of 240 have a probability of 0.004; of bands half as large about 0.78 hold it."""
    lengths = lengths_of_errors(240)
    assert (lengths <= 1.0).mean() >= 0.91
    assert (lengths <= 0.5).mean() < 0.91


def rejected(repetitions, **options):
    """Share of runs in which no change is rejected at 5 %: skewed residuals whose scale grows with the covariate."""
    rng, found = np.random.default_rng(2), []
    line = dpm.Ball(dpm.Euclidean(1), [0.0], 3.0)
    for _ in range(repetitions):
        t = rng.uniform(0, 1, 1000)
        residuals = (0.05 + 0.45 * t) * (rng.exponential(1.0, 1000) - 1)
        asked = {"units": dpm.EACH_RECORD, "covariate_range": (0, 1), "rng": rng, **options}
        found.append(dpm.private_regression(residuals[:, None], t, line, dpm.GDP(1.0), **asked).p_value < 0.05)
    return np.mean(found)


def test_by_default_skewed_residuals_do_not_pass_for_a_change():
    """With 5 %, more than 0.11 of 200 have a probability of 0.0003; with clipped residuals it is most of them."""
    assert rejected(200) <= 0.11
    assert rejected(200, refine=True) > 0.5


# -------------------------------------------------------------------- covariates that do not fill their range

LINE = dpm.Ball(dpm.Euclidean(1), [0.0], 3.0)


def uneven(n, seed, middle=0.7, spread=0.1, refine=False):
    """A regression on a line where the mean stays at 1.5 and the private covariate in a part of its range."""
    rng = np.random.default_rng(seed)
    t = np.clip(middle + spread * rng.standard_normal(n), -1, 1)
    asked = {"units": dpm.EACH_RECORD, "covariate_range": (-1, 1), "refine": refine, "rng": rng}
    return dpm.private_regression(1.5 + 0.3 * rng.standard_normal((n, 1)), t, LINE, dpm.GDP(1.0), **asked)


def test_where_slopes_cannot_be_told_bands_hold_all_that_curves_reach():
    found = uneven(300, 0)
    assert not found.is_identifiable
    ends = np.array([[-5.999], [5.999]])
    assert found.contains(ends, [-1.0, 1.0]).all()
    assert found.contains(ends, [1.0, -1.0], simultaneous=True).all()
    assert any("how steep the curve is cannot be told" in note for note in found.notes())
    assert found.verify().ok
    assert uneven(20_000, 0).is_identifiable


def false_alarms(repetitions, refine):
    """How often the test of slope and pointwise bands at the end are wrong."""
    found = [uneven(300, seed, *((0.7, 0.1), (0.5, 0.25))[seed % 2], refine) for seed in range(repetitions)]
    missed = [not one.contains([[1.5]], [-1.0])[0] for one in found]
    return np.mean([one.p_value < 0.05 for one in found]), np.mean(missed)


@pytest.mark.slow
def test_uneven_covariates_keep_test_and_bands_and_not_if_their_noise_is_ignored(monkeypatch):
    """At 5 % more than 0.09 of 200 have a probability of 0.005."""
    assert max(*false_alarms(200, refine=False), *false_alarms(200, refine=True)) <= 0.09
    plain = Design.of

    def as_if_exact(release, steady=False):
        found = plain(release, steady)
        return Design(found.moments, (0.0, 0.0), found.drawn)

    monkeypatch.setattr(Design, "of", staticmethod(as_if_exact))
    size, missed = false_alarms(200, refine=True)
    assert size > 0.09
    assert missed > 0.09
