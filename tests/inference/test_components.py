"""What released components say about a population: variances, shares, intervals, and what is told beside them.

Simulations are seeded: they pass or fail alike every time. With other seeds right code would fail the small coverage
test in one of two hundred at most: intervals of 25 simulations, of which 0.85 must hold, were they all one interval.
"""

import json
from dataclasses import replace

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import Signs
from dpmanifold.inference.principal_components import optimism
from dpmanifold.linalg import from_vecd

EACH = {"units": dpm.EACH_RECORD, "confirm": True}


def released(X, radius=4.0, mu=1.0, **options):
    ball = dpm.Ball(dpm.Euclidean(X.shape[1]), np.zeros(X.shape[1]), radius)
    return dpm.private_pga(X, ball, dpm.GDP(mu), **EACH, **options)


def inside_units(spectrum, n, rng):
    """Units of an elliptical law that has no tails, and its covariance over what `spectrum` says."""
    d = len(spectrum)
    z = rng.standard_normal((n, d))
    z *= rng.uniform(0.3, 1.3, (n, 1)) / np.linalg.norm(z, axis=1, keepdims=True)
    return z * np.sqrt(d * np.asarray(spectrum))


FACTOR = (1.3**3 - 0.3**3) / 3  # the mean square of a uniform number between .3 and 1.3


def without_noise(found):
    """The same releases, read as if there were no noise in them: wrong."""
    mean = found.mean.release
    step = replace(found.release.steps[0], steps=(replace(mean, scale=1e-9 * mean.scale),))
    return dpm.PrincipalComponents(replace(found.release, steps=(step,), scale=1e-9 * found.release.scale), found.level)


def coverage(spectrum, n, runs, mu=1.0, radius=2.6, read=lambda found: found, **options):
    """Return how often each interval holds what the population has along the released directions."""
    spectrum, rng, held = np.asarray(spectrum, dtype=float), np.random.default_rng(n), []
    covariance = np.diag(spectrum) * FACTOR
    for seed in range(runs):
        X = inside_units(spectrum, n, rng) + 0.2
        found = read(released(X, radius * np.sqrt(spectrum.sum()), mu, rng=seed, **options))
        along = ((found.directions @ covariance) * found.directions).sum(axis=1)
        total = np.trace(covariance)
        right = np.array([*along, total, *along / total, along.sum() / total])
        low, high = np.array([
            *found.variance_intervals, found.total_interval, *found.share_intervals, found.explained_interval
        ]).T  # fmt: skip
        held.append((low <= right + 1e-12) & (right - 1e-12 <= high))
    return np.mean(held, axis=0)


def test_intervals_hold_what_they_say_and_without_the_noise_they_do_not():
    assert coverage([4.0, 2.0, 1.0], 300, 25, count=2).mean() >= 0.85
    assert coverage([4.0, 2.0, 1.0], 300, 25, count=2, read=without_noise).mean() < 0.7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spectrum", "n", "mu", "runs"),
    [([4.0, 2.0, 1.0], 300, 1.0, 200), (1 / np.arange(1.0, 11.0), 1000, 1.0, 200), (np.ones(40), 800, 60.0, 60)],
    ids=["three", "ten", "forty alike, little noise"],
)
def test_each_interval_holds_its_level(spectrum, n, mu, runs):
    """Each of them, up to three standard errors below 0.95: one in 700 would be lower, of right intervals."""
    found = coverage(spectrum, n, runs, mu, count=2)
    assert (found >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / runs)).all(), found


@pytest.mark.slow
def test_without_the_correction_for_chance_intervals_fail_where_variances_are_equal(monkeypatch):
    monkeypatch.setattr("dpmanifold.inference.principal_components.optimism", lambda values, count, n: np.zeros(count))
    assert coverage(np.ones(40), 800, 40, 60.0, count=2)[-1] < 0.5


# -------------------------------------------------------------------- the theory


def sign_covariance(v):
    return from_vecd(Signs(1.0).of(v)[:, v.shape[1] :].mean(axis=0))


def test_signs_of_elliptical_laws_have_the_covariances_eigenvectors_in_the_same_order():
    rng, turn = np.random.default_rng(0), np.linalg.qr(np.random.default_rng(1).standard_normal((4, 4)))[0]
    z = rng.standard_normal((40_000, 4)) * [2.0, 1.5, 1.0, 0.5]
    heavy = z / np.sqrt(rng.chisquare(1, (40_000, 1)))  # has no covariance at all
    values, vectors = np.linalg.eigh(sign_covariance(heavy @ turn.T))
    assert np.abs((vectors[:, ::-1] * turn).sum(axis=0)).min() > 0.99
    assert np.diff(values[::-1]).max() < -0.05


def test_signs_of_other_laws_have_not():
    """The example of the theory page: variances 1 and 2, and signs in the other order."""
    rng = np.random.default_rng(0)
    large = np.where(rng.random(20_000) < 0.9, 0.0, np.sqrt(20.0))
    v = rng.choice([-1.0, 1.0], (20_000, 2)) * np.stack([np.ones(20_000), large], axis=1)
    assert v.var(axis=0) == pytest.approx([1.0, 2.0], abs=0.1)
    found = np.diag(sign_covariance(v))
    assert found[0] > 0.9 > 0.1 > found[1]


@pytest.mark.parametrize("spectrum", [np.ones(40), 0.9 ** np.arange(40)])
def test_what_directions_have_from_chance_is_about_what_is_said(spectrum):
    """Without noise, against the covariance itself: mean over 12 samples of 200, within a third of the effect."""
    rng, seen, said = np.random.default_rng(0), [], []
    for _ in range(12):
        v = rng.standard_normal((200, 40)) * np.sqrt(spectrum)
        values, vectors = np.linalg.eigh(v.T @ v / 200)
        top = vectors[:, :-4:-1]
        seen.append(1 - (top.T**2 @ spectrum) / values[:-4:-1])
        said.append(optimism(values[::-1], 3, 200))
    seen, said = np.mean(seen, axis=0), np.mean(said, axis=0)
    assert (np.abs(seen - said) < seen / 3).all(), (seen, said)


def test_noise_on_the_mean_is_taken_off_and_noise_on_signs_does_not_turn_directions():
    """A ball so loose that the mean is off by as much as units spread: plain signs would follow the noise."""
    X = np.random.default_rng(0).normal(0.0, np.sqrt(0.7 ** np.arange(12)), (500, 12))
    truth = np.cov(X.T)
    best = np.linalg.eigvalsh(truth)[-3:].sum()
    held = [np.trace(run.directions @ truth @ run.directions.T) / best
            for run in (released(X, 30.0, rng=seed) for seed in range(8))]  # fmt: skip
    assert np.mean(held) > 0.9


# -------------------------------------------------------------------- beside the numbers


def spread_out(n=2000, seed=0):
    return np.random.default_rng(seed).normal(0.0, [1.0, 0.6, 0.2, 0.2], (n, 4))


def test_numbers_hang_together():
    found = released(spread_out(), count=2, rng=0)
    assert found.shares == pytest.approx(found.variances / found.total)
    assert found.explained == pytest.approx(found.shares.sum())
    for value, (low, high) in zip(found.variances, found.variance_intervals, strict=True):
        assert 0 <= low <= value <= high
    assert sum(found.variance_shares) == pytest.approx(1.0)
    wider = dpm.PrincipalComponents(found.release, 0.999)
    assert (wider.variance_intervals[:, 1] > found.variance_intervals[:, 1]).all()
    assert (wider.share_intervals[:, 1] >= found.share_intervals[:, 1]).all()


@pytest.mark.parametrize(("n", "mu", "count"), [(8, 1.0, 3), (60, 0.3, 3), (300, 0.3, 3), (300, 0.3, 4), (300, 1.0, 2)])
def test_numbers_fit_each_other_whatever_the_noise(n, mu, count):
    """Variances add up to no more than the total, shares to what all have together; unknown shares say so."""
    for seed in range(6):
        found = released(spread_out(n), mu=mu, count=count, rng=seed)
        assert (found.variances >= 0).all()
        assert found.variances.sum() <= found.total * (1 + 1e-12)
        intervals = [(found.total, found.total_interval), *zip(found.variances, found.variance_intervals, strict=True)]
        if found.is_identifiable:
            assert found.shares == pytest.approx(found.variances / found.total)
            assert found.explained == pytest.approx(found.shares.sum())
            intervals += [(found.explained, found.explained_interval)]
            intervals += zip(found.shares, found.share_intervals, strict=True)
        else:
            assert np.isnan(found.shares).all()
            assert found.answers()["shares"] == [None] * count
            assert "share not known" in str(found)
        assert all(0 <= low <= value <= high for value, (low, high) in intervals)
        assert count < 4 or found.explained == 1.0
        again = dpm.PrincipalComponents.from_dict(json.loads(json.dumps(found.to_dict())))
        assert np.array_equal(again.shares, found.shares, equal_nan=True)


def test_as_many_as_dimensions_are_told_and_a_picture_says_what_it_leaves_out():
    X = np.random.default_rng(0).normal(0.0, 0.5, (500, 6))
    found = released(X, count=9, rng=0)
    assert any("6 dimensions" in note for note in found.notes())
    assert any("the first 4 are drawn" in text.get_text() for text in dpm.plots.show(found).texts)
    assert not any("are drawn" in text.get_text() for text in dpm.plots.show(released(X, count=2, rng=0)).texts)
    hidden = dpm.plots.show(released(X[:8], count=2, rng=0))
    assert any("not known" in text.get_text() for text in hidden.texts)


def test_a_matrix_is_a_table_in_a_report_and_plain_in_print():
    ball = dpm.Ball(dpm.SPD(2), np.eye(2), 2.0)
    found = dpm.private_pga(np.tile(np.eye(2), (2000, 1, 1)), ball, dpm.GDP(1.0), count=1, rng=0, **EACH)
    page = dpm.report.html_report(found)
    assert '<th>mean</th><td><table class="matrix">' in page
    assert "e-0" not in dict(found.facts())["mean"]


def test_notes_tell_of_signs_always_and_of_noise_where_it_hides_the_answer():
    clear, blurred = released(spread_out(), count=2, rng=0), released(spread_out(60), mu=0.1, rng=0)
    assert "elliptical" in clear.notes()[0]
    assert not any("turned" in note for note in clear.notes())
    assert any("noise may have turned" in note for note in blurred.notes())
    assert any("not told from 0" in note and "refine=True or a smaller ball" in note for note in blurred.notes())
    assert blurred.explained_interval == (0.0, 1.0)
    assert (clear.gaps > 1).all()


def test_wrong_components_and_deviations_are_refused():
    found = released(spread_out(), count=2, rng=0)
    for wrong in (2, -1, 0.5, "first"):
        with pytest.raises(InvalidArgumentError, match="component"):
            found.moved(wrong)
    with pytest.raises(InvalidArgumentError, match="deviations"):
        found.moved(0, [np.nan])
    assert found.moved(1, 2.0).shape == (4,)


def test_a_picture_has_what_was_asked_for():
    found = released(spread_out(), count=2, rng=0)
    figure = dpm.plots.show(found)
    assert [text.get_text() for text in figure.texts][:1] == ["2 principal components"]
    with pytest.raises(InvalidArgumentError, match="links"):
        dpm.plots.show(found, links="1-2")
    with pytest.raises(InvalidArgumentError, match="private_pga"):
        dpm.plots.components(found.release)
    assert dpm.plots.show(found.release).texts[0].get_text() == "2 principal components"


def test_a_report_is_written():
    page = dpm.report.html_report(released(spread_out(), count=2))
    assert "component 1" in page
    assert "elliptical" in page
