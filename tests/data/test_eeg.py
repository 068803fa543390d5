"""EEG covariances are maps of each epoch alone, and the public balls hold what they say they hold."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

import dpmanifold.data.eeg as implementation
from dpmanifold import SPD, InvalidArgumentError, InvalidDataError
from dpmanifold.data import drop_reference, eeg_ball, eeg_covariances, remove_average_reference

pytestmark = pytest.mark.security

RNG = np.random.default_rng(0)


def orthogonal(k, rng):
    return np.linalg.qr(rng.standard_normal((k, k)))[0]


# Covariances


def test_covariances_are_those_of_numpy_plus_the_ridge():
    epochs = RNG.standard_normal((6, 4, 50)) + 100
    expected = [np.cov(epoch, bias=True) + 0.3**2 * np.eye(4) for epoch in epochs]
    np.testing.assert_allclose(eeg_covariances(epochs, ridge_uv=0.3), expected, rtol=1e-9, atol=1e-12)


def test_volts_and_microvolts_agree():
    epochs = 20 * RNG.standard_normal((3, 4, 50))
    np.testing.assert_allclose(eeg_covariances(epochs * 1e-6, scale=1e6), eeg_covariances(epochs), rtol=1e-12)
    counts = RNG.integers(-2000, 2000, (3, 4, 50)).astype(np.int16)
    np.testing.assert_array_equal(eeg_covariances(counts, scale=0.1), eeg_covariances(counts.astype(float), scale=0.1))


@pytest.mark.parametrize("values", [1, 700, 10**9])
def test_an_epoch_does_not_depend_on_the_others(monkeypatch, values):
    epochs = RNG.standard_normal((9, 5, 33))
    alone = np.concatenate([eeg_covariances(epoch[None]) for epoch in epochs])
    monkeypatch.setattr(implementation, "_BLOCK_VALUES", values)
    np.testing.assert_array_equal(eeg_covariances(epochs), alone)
    np.testing.assert_array_equal(eeg_covariances(np.asfortranarray(epochs)), alone)
    smaller = remove_average_reference(alone)
    np.testing.assert_array_equal(smaller, [remove_average_reference(C) for C in alone])


def test_values_that_are_not_finite_stay_in_their_own_record_without_a_warning():
    epochs = RNG.standard_normal((4, 3, 20))
    clean = eeg_covariances(epochs)
    epochs[1, 0, 5], epochs[2, 1, 3], epochs[3, 2, 2] = np.nan, np.inf, 1e300
    C = eeg_covariances(epochs)
    np.testing.assert_array_equal(C[0], clean[0])
    assert not np.isfinite(C[1:]).all(axis=(1, 2)).any()
    assert not np.isfinite(remove_average_reference(C)[1:]).all(axis=(1, 2)).any()


def test_epochs_may_be_a_memory_map_and_are_not_changed(tmp_path):
    epochs = RNG.standard_normal((5, 3, 20))
    np.save(tmp_path / "x.npy", epochs)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    np.testing.assert_array_equal(eeg_covariances(mapped), eeg_covariances(epochs))
    before = epochs.copy()
    eeg_covariances(epochs, scale=1e6)
    np.testing.assert_array_equal(epochs, before)
    assert eeg_covariances(epochs[:0]).shape == (0, 3, 3)


@pytest.mark.parametrize(
    "epochs", [np.zeros((3, 4)), np.zeros((2, 3, 0)), np.zeros((2, 3, 4), complex), [["a"]], np.full((1, 1, 1), "a")]
)
def test_what_is_no_epochs_is_refused(epochs):
    for function in (eeg_covariances, drop_reference):
        with pytest.raises(InvalidDataError, match="epochs"):
            function(epochs)


@pytest.mark.parametrize(
    "options", [{"ridge_uv": -1}, {"ridge_uv": math.nan}, {"ridge_uv": "1"}, {"scale": 0}, {"scale": -1e6}]
)
def test_nonsense_amplitudes_are_refused(options):
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        eeg_covariances(np.zeros((1, 2, 3)), **options)


# References


def test_average_reference_leaves_a_singular_matrix_and_projection_mends_it():
    raw = RNG.standard_normal((7, 6, 100))
    referenced = raw - raw.mean(axis=1, keepdims=True)
    C = eeg_covariances(referenced, ridge_uv=0.0)
    assert np.abs(C @ np.ones(6)).max() < 1e-12
    assert SPD(6).check(C) is not None
    smaller = remove_average_reference(C)
    assert SPD(5).check(smaller) is None
    np.testing.assert_allclose(np.linalg.eigvalsh(smaller), np.linalg.eigvalsh(C)[:, 1:], rtol=1e-10)
    # Any other reference gives the same.
    np.testing.assert_allclose(remove_average_reference(eeg_covariances(raw, ridge_uv=0.0)), smaller, atol=1e-12)


def test_a_ridge_stays_the_same_ridge():
    raw = RNG.standard_normal((4, 6, 100))
    with_ridge = remove_average_reference(eeg_covariances(raw, ridge_uv=2.0))
    without = remove_average_reference(eeg_covariances(raw, ridge_uv=0.0))
    np.testing.assert_allclose(with_ridge, without + 4 * np.eye(5), atol=1e-12)


def test_a_mean_goes_back_to_the_channels():
    from scipy.linalg import helmert

    raw = RNG.standard_normal((1, 6, 100))
    C = eeg_covariances(raw - raw.mean(axis=1, keepdims=True), ridge_uv=0.0)[0]
    rows = helmert(6)
    np.testing.assert_allclose(rows.T @ remove_average_reference(C) @ rows, C, atol=1e-12)


def test_dropping_a_channel_keeps_rank_and_costs_at_most_the_number_of_channels():
    raw = RNG.standard_normal((7, 6, 100))
    referenced = raw - raw.mean(axis=1, keepdims=True)
    for channel in (-1, 0, 3):
        left = drop_reference(referenced, channel)
        np.testing.assert_array_equal(left, np.delete(referenced, channel, axis=1))
        smallest = np.linalg.eigvalsh(eeg_covariances(left, ridge_uv=0.0))[:, 0]
        second = np.linalg.eigvalsh(eeg_covariances(referenced, ridge_uv=0.0))[:, 1]
        assert (smallest >= second / 6).all()
    for channel in (6, -7, 1.0, True, "Cz"):
        with pytest.raises(InvalidArgumentError, match="channel"):
            drop_reference(referenced, channel)
    with pytest.raises(InvalidArgumentError, match="one channel"):
        drop_reference(np.zeros((2, 1, 5)))


@pytest.mark.parametrize("wrong", [np.zeros((3, 2)), np.zeros((1, 1)), np.zeros(4), np.zeros((2, 2), complex)])
def test_what_is_no_covariances_is_refused(wrong):
    with pytest.raises(InvalidDataError, match="covariances"):
        remove_average_reference(wrong)


# Balls


def loud_epochs(channels, highest, rng):
    """Epochs whose channels all have rms `highest` or less, from flat to all alike: the corners of what is allowed."""
    samples = 2 * channels + 2
    waves = np.linalg.qr(rng.standard_normal((samples, samples - 1)))[0].T
    waves = np.linalg.qr((waves - waves.mean(axis=1, keepdims=True)).T)[0].T[:channels] * math.sqrt(samples)
    epochs = [np.zeros((channels, samples)), highest * waves]
    for rank in range(1, channels + 1):
        # `rank` independent waves, each on its share of the channels.
        epochs.append(highest * waves[np.arange(channels) % rank] * rng.choice([-1, 1], (channels, 1)))
        few = highest * waves.copy()
        few[rank:] = 0
        epochs.append(few)
    mixed = orthogonal(channels, rng) @ (waves * 10.0 ** rng.uniform(-4, 4, (channels, 1)))
    rms = np.sqrt((mixed**2).mean(axis=1, keepdims=True))
    epochs += [highest * mixed / rms, highest * mixed / rms.max()]
    return np.array(epochs)


@given(
    channels=st.integers(2, 12),
    highest=st.floats(1.0, 500.0),
    ridge=st.floats(0.05, 5.0),
    referenced=st.booleans(),
    metric=st.sampled_from(["logeuclid", "riemann"]),
    seed=st.integers(0, 2**32),
)
def test_certain_ball_holds_every_epoch_below_its_amplitude(channels, highest, ridge, referenced, metric, seed):
    epochs = loud_epochs(channels, highest, np.random.default_rng(seed))
    if referenced:
        epochs -= epochs.mean(axis=1, keepdims=True)
        rms = np.sqrt((epochs**2).mean(axis=2)).max(axis=1)
        epochs *= np.minimum(1.0, highest / np.maximum(rms, 1e-9))[:, None, None]
    C = eeg_covariances(epochs, ridge_uv=ridge)
    C = remove_average_reference(C) if referenced else C
    options = {"highest_uv": highest, "ridge_uv": ridge, "average_reference": referenced}
    try:
        ball = eeg_ball(channels, "certain", metric=metric, **options)
    except InvalidArgumentError:
        assert metric == "riemann"  # too ill-conditioned for that metric
        ball = eeg_ball(channels, "certain", **options)
    assert ball.contains(C).all()


@given(
    channels=st.integers(1, 12),
    lowest=st.floats(0.05, 5.0),
    ratio=st.floats(1.01, 1000.0),
    ridge=st.floats(0.0, 3.0),
    referenced=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_typical_ball_holds_every_spectrum_in_its_range(channels, lowest, ratio, ridge, referenced, seed):
    rng = np.random.default_rng(seed)
    channels += referenced
    size = channels - referenced
    ball = eeg_ball(channels, lowest_uv=lowest, highest_uv=lowest * ratio, ridge_uv=ridge, average_reference=referenced)
    assert ball.space == SPD(size)
    ends = np.array([lowest, lowest * ratio])
    amplitudes = np.concatenate(
        [ends[rng.integers(0, 2, (20, size))], lowest * ratio ** rng.random((20, size)), ends[:, None] * np.ones(size)]
    )
    turns = np.array([orthogonal(size, rng) for _ in amplitudes])
    C = (turns * (amplitudes**2 + ridge**2)[:, None, :]) @ np.swapaxes(turns, 1, 2)
    distances = ball.distance_to_center(C)
    # The products above are rounded by 1e-16 of the largest eigenvalue, ratio^2 times the smallest.
    assert (distances <= ball.radius + 1e-14 * size * ratio**2).all()
    # All at one end is as far as it goes: no smaller ball would do.
    assert distances.max() >= ball.radius - 2e-4 * math.sqrt(size) - 2e-6


def test_certain_ball_is_not_much_larger_than_it_must_be():
    """Equal eigenvalues r^2 + k h^2/j on j directions are possible; some j comes within 1 %."""
    for channels, highest, ridge in [(4, 50.0, 1.0), (8, 200.0, 0.5), (22, 50.0, 1.0)]:
        ball = eeg_ball(channels, "certain", highest_uv=highest, ridge_uv=ridge)
        spectra = [
            np.r_[[ridge**2 + channels * highest**2 / j] * j, [ridge**2] * (channels - j)]
            for j in range(1, channels + 1)
        ]
        spectra.append(np.full(channels, ridge**2))
        assert ball.distance_to_center(np.array([np.diag(s) for s in spectra])).max() >= 0.99 * ball.radius


def test_average_reference_needs_the_amplitude_of_all_channels():
    """The trace of k channels lives on k - 1 directions: the ball of k - 1 channels would be too small."""
    epochs = np.zeros((1, 2, 4)) + 50 * np.array([1.0, -1.0, 1.0, -1.0]) * np.array([[1.0], [-1.0]])
    C = remove_average_reference(eeg_covariances(epochs, ridge_uv=1.0))
    assert eeg_ball(2, "certain", highest_uv=50, ridge_uv=1.0, average_reference=True).contains(C).all()
    assert not eeg_ball(1, "certain", highest_uv=50, ridge_uv=1.0).contains(C).any()


def test_projection_needs_a_smaller_ball_than_a_ridge_alone():
    for bound in ("certain", "typical"):
        assert eeg_ball(8, bound, average_reference=True).radius < eeg_ball(8, bound).radius


def test_typical_is_smaller_than_certain_and_both_shrink_with_the_ridge():
    for channels in (4, 22, 64):
        assert eeg_ball(channels, "typical").radius < eeg_ball(channels, "certain").radius
        for bound in ("typical", "certain"):
            assert eeg_ball(channels, bound, ridge_uv=1.0).radius < eeg_ball(channels, bound, ridge_uv=0.5).radius


def test_the_table_of_the_docstring():
    rows = [(8, 200, 0.5, 18.0, 16.0), (8, 50, 1, 12.1, 10.7), (22, 50, 1, 20.1, 17.8)]
    for channels, highest, ridge, certain, typical in rows:
        options = {"highest_uv": highest, "ridge_uv": ridge}
        assert f"| {channels}, {highest}, {ridge} | {certain} | {typical} |" in eeg_ball.__doc__
        assert round(eeg_ball(channels, "certain", **options).radius, 1) == certain
        assert round(eeg_ball(channels, "typical", **options).radius, 1) == typical


def test_ball_says_where_it_comes_from_and_takes_both_metrics():
    flat, curved = (eeg_ball(4, highest_uv=50, ridge_uv=1.0, metric=metric) for metric in ("logeuclid", "riemann"))
    assert curved.space == SPD(4, metric="riemann")
    assert flat.radius == curved.radius
    for word in ("4 channels", "ridge 1 uV", "0.5 and 50 uV"):
        assert word in flat.source


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"channels": 0}, "channels"),
        ({"channels": 2.5}, "channels"),
        ({"channels": 1, "average_reference": True}, "channels"),
        ({"channels": 4, "bound": "usual"}, "bound"),
        ({"channels": 4, "bound": "certain", "lowest_uv": 0.5}, "lowest_uv"),
        ({"channels": 4, "bound": "certain", "ridge_uv": 0}, "ridge_uv"),
        ({"channels": 4, "ridge_uv": -1}, "ridge_uv"),
        ({"channels": 4, "lowest_uv": 0}, "lowest_uv"),
        ({"channels": 4, "lowest_uv": 300}, "below highest_uv"),
        ({"channels": 4, "highest_uv": math.inf}, "highest_uv"),
        ({"channels": 4, "highest_uv": -5}, "highest_uv"),
        ({"channels": 4, "highest_uv": 1e9}, "microvolts"),
        ({"channels": 4, "bound": "certain", "ridge_uv": 1e-6}, "ridge"),
        ({"channels": 4, "metric": "euclid"}, "metric"),
        ({"channels": 64, "metric": "riemann"}, "fewer channels"),
    ],
)
def test_balls_refuse_nonsense(arguments, says):
    with pytest.raises(InvalidArgumentError, match=says):
        eeg_ball(**arguments)
