"""Covariances of MNE's epochs are those of MNE, pyRiemann and scipy; each epoch by itself, in silence."""

import builtins
import importlib
import warnings

import mne
import numpy as np
import pandas
import pytest
from pyriemann.estimation import Covariances
from scipy.signal import butter, sosfiltfilt

import dpmanifold.data.mne_epochs as implementation
from dpmanifold import InvalidArgumentError, InvalidDataError, data
from dpmanifold.errors import MissingPackageError
from dpmanifold.sources import as_source

pytestmark = pytest.mark.security

RATE = 250.0
MONTAGE = mne.channels.make_standard_montage("biosemi16")  # of MNE's own files
EVENTS = {"left": 1, "right": 2}


def recording(n=12, samples=300, channels=16, seed=0):
    """Epochs of a head of the standard montage in volts: sources seen through the sensors' distances, and noise."""
    rng = np.random.default_rng(seed)
    names = MONTAGE.ch_names[:channels]
    places = np.array([MONTAGE.get_positions()["ch_pos"][name] for name in names])
    sources = 0.06 * rng.standard_normal((20, 3)) / np.sqrt(3)
    gains = 1 / (0.03 + np.linalg.norm(places[:, None] - sources, axis=-1)) ** 2
    waves = 1e-8 * rng.standard_normal((n, 20, samples)).cumsum(axis=-1)
    volts = gains @ waves + 1e-6 * rng.standard_normal((n, channels, samples))
    info = mne.create_info(names, RATE, "eeg", verbose="error")
    events = np.stack([np.arange(n), np.zeros(n), np.arange(n) % 2 + 1], axis=1).astype(int)
    epochs = mne.EpochsArray(volts, info, events, event_id=EVENTS, verbose="error")
    return epochs.set_montage(MONTAGE, verbose="error")


EPOCHS = recording()
VOLTS = EPOCHS.get_data(copy=True, verbose="error")


@pytest.fixture
def saved(tmp_path):
    def save(epochs=EPOCHS, name="sub-01_epo.fif"):
        epochs.save(tmp_path / name, fmt="double", overwrite=True, verbose="error")
        return tmp_path / name

    return save


# Numbers


def test_matrices_are_those_of_pyriemann():
    samples = VOLTS.shape[-1]
    expected = Covariances("cov").transform(1e6 * VOLTS) * (samples - 1) / samples
    np.testing.assert_allclose(data.from_epochs(EPOCHS, ridge_uv=0.0), expected, rtol=0, atol=1e-12 * expected.max())
    ridge = 0.25 * np.eye(16)
    np.testing.assert_allclose(data.from_epochs(EPOCHS), expected + ridge, rtol=0, atol=1e-12 * expected.max())


def test_matrices_are_those_of_mne():
    """MNE divides by one less than the number of samples, and leaves means over time to baselines."""
    found = data.from_epochs(EPOCHS, ridge_uv=0.0)
    centred = VOLTS - VOLTS.mean(axis=-1, keepdims=True)
    samples = VOLTS.shape[-1]
    for epoch, matrix in zip(centred, found, strict=True):
        one = mne.EpochsArray(epoch[None], EPOCHS.info, baseline=(None, None), verbose="error")
        theirs = mne.compute_covariance(one, method="empirical", verbose="error").data * 1e12 * (samples - 1) / samples
        np.testing.assert_allclose(matrix, theirs, rtol=0, atol=1e-12 * theirs.max())


def test_the_ball_of_amplitudes_holds_them():
    assert data.eeg_ball(16, highest_uv=200, ridge_uv=0.5).contains(data.from_epochs(EPOCHS)).all()


def test_the_band_is_a_butterworth_filter_forwards_and_backwards():
    """Away from the ends, where the two ways of going on beyond them differ, scipy's filter gives the same."""
    filtered = implementation._filtered(VOLTS, RATE, (8.0, 30.0))
    expected = sosfiltfilt(butter(4, (8.0, 30.0), "bandpass", fs=RATE, output="sos"), VOLTS)
    middle = slice(100, 200)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(filtered[..., middle], expected[..., middle], rtol=0, atol=2e-3 * scale)
    np.testing.assert_array_equal(data.from_epochs(EPOCHS, band=(8, 30)), data.eeg_covariances(filtered, scale=1e6))


def test_a_band_lets_its_own_waves_pass_and_no_others():
    time = np.arange(1000) / RATE
    waves = 1e-5 * np.sqrt(2) * np.stack([np.sin(2 * np.pi * f * time) for f in (10.0, 40.0)])[None]
    epochs = mne.EpochsArray(waves, mne.create_info(2, RATE, "eeg", verbose="error"), verbose="error")
    inside, outside = data.from_epochs(epochs, band=(8, 12), ridge_uv=0.0)[0].diagonal()
    assert 95 < inside < 105
    assert outside < 1  # -20 dB, of what begins and ends abruptly


# The reference


def test_the_average_reference_is_refused_or_taken_out():
    averaged = EPOCHS.copy().set_eeg_reference("average", projection=True, verbose="error")
    np.testing.assert_array_equal(data.from_epochs(averaged), data.from_epochs(EPOCHS))  # said, and not yet done
    averaged.apply_proj(verbose="error")
    with pytest.raises(InvalidDataError, match=r"average_reference=True, for matrices of size 15"):
        data.from_epochs(averaged)
    smaller = data.from_epochs(averaged, average_reference=True, ridge_uv=0.0)
    expected = data.remove_average_reference(data.from_epochs(EPOCHS, ridge_uv=0.0))
    np.testing.assert_allclose(smaller, expected, rtol=0, atol=1e-12 * expected.max())
    assert np.linalg.eigvalsh(smaller).min() > 0.1
    assert data.from_epochs(averaged, picks=MONTAGE.ch_names[:8]).shape == (12, 8, 8)  # these do not add up to 0


# Each epoch by itself


@pytest.mark.parametrize("band", [None, (8.0, 30.0)])
@pytest.mark.parametrize("values", [1, 10_000])
def test_an_epoch_does_not_depend_on_the_others(monkeypatch, values, band):
    alone = np.concatenate([data.from_epochs(EPOCHS[i], band=band) for i in range(len(EPOCHS))])
    monkeypatch.setattr(implementation, "_BLOCK_VALUES", values)
    np.testing.assert_array_equal(data.from_epochs(EPOCHS, band=band), alone)


@pytest.mark.parametrize("band", [None, (8.0, 30.0)])
def test_values_that_are_not_finite_stay_in_their_own_epoch(band):
    volts = VOLTS.copy()
    volts[3, 2, 50], volts[5, 0, 0] = np.nan, np.inf
    broken = mne.EpochsArray(volts, EPOCHS.info, verbose="error")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = data.from_epochs(broken, band=band)
    others = np.delete(np.arange(12), [3, 5])
    np.testing.assert_array_equal(found[others], data.from_epochs(EPOCHS, band=band)[others])
    assert not np.isfinite(found[[3, 5]]).all(axis=(1, 2)).any()


# Files, and epochs that are not loaded


@pytest.mark.parametrize("name", ["sub-01_epo.fif", "sub-01-EPO.fif.gz"])
def test_files_give_the_same_matrices(saved, name, capsys, recwarn):
    path = saved(name=name)
    np.testing.assert_array_equal(data.from_epochs(path), data.from_epochs(EPOCHS))
    np.testing.assert_array_equal(data.load_array(path, band=(8, 12)), data.from_epochs(EPOCHS, band=(8, 12)))
    assert data.load_column(path, "event").tolist() == ["left", "right"] * 6
    assert capsys.readouterr() == ("", "")
    assert [str(w.message) for w in recwarn if "mne" in str(w.filename)] == []


def test_epochs_of_a_recording_are_read_as_they_were_cut(tmp_path):
    """Baseline, rejection and decimation are those of the epochs; the epochs themselves stay unread."""
    volts = np.concatenate(VOLTS, axis=1)
    volts[2, 3 * 300 + 10] = 1.0
    raw = mne.io.RawArray(volts, EPOCHS.info, verbose="error")
    raw.save(tmp_path / "test_raw.fif", fmt="double", verbose="error")
    raw = mne.io.read_raw_fif(tmp_path / "test_raw.fif", verbose="error")
    events = np.stack([300 * np.arange(12), np.zeros(12), np.ones(12)], axis=1).astype(int)
    cut = {"tmin": 0.0, "tmax": 0.9, "baseline": (0.0, 0.1), "reject": {"eeg": 0.1}, "verbose": "error"}
    lazy = mne.Epochs(raw, events, **cut)
    loaded = mne.Epochs(raw, events, preload=True, **cut)
    found = data.from_epochs(lazy)
    np.testing.assert_array_equal(found, data.from_epochs(loaded))
    assert len(found) == 11
    assert not lazy.preload


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # how MNE 1.13 calls pandas 3
def test_metadata_are_columns(saved):
    epochs = EPOCHS.copy()
    epochs.metadata = pandas.DataFrame({"subject": ["a"] * 6 + ["b"] * 6, "trial": range(12)})
    file = data.open_file(saved(epochs))
    assert file.names == ["event", "subject", "trial"]
    assert file.column("subject").tolist() == ["a"] * 6 + ["b"] * 6
    assert file.column("trial").tolist() == list(range(12))
    with pytest.raises(InvalidArgumentError, match=r"'person' is not in 'sub-01_epo\.fif'"):
        file.column("person")


def test_damaged_files_are_refused_by_name(saved, tmp_path):
    whole = saved().read_bytes()
    for name, content in {"cut": whole[: len(whole) // 2], "none": b"", "other": b"epochs" * 100}.items():
        path = tmp_path / f"{name}-epo.fif"
        path.write_bytes(content)
        with pytest.raises(InvalidDataError, match=f"{name}-epo.fif: .*(damaged|incomplete)"):
            data.from_epochs(path)
    (tmp_path / "cut.fif").write_bytes(whole)
    with pytest.raises(InvalidArgumentError, match=r"format of 'cut\.fif' is not known"):
        data.from_epochs(tmp_path / "cut.fif")


# Refusals


def test_channels_that_are_missing_or_not_in_volts_are_refused():
    mixed = EPOCHS.copy().set_channel_types({"Fp1": "misc"}, verbose="error", on_unit_change="ignore")
    assert data.from_epochs(mixed).shape == (12, 15, 15)
    bad = EPOCHS.copy()
    bad.info["bads"] = ["Fp1", "Fp2"]
    assert data.from_epochs(bad).shape == (12, 14, 14)
    assert data.from_epochs(bad, picks=["Fp2", "Fp1"]).shape == (12, 2, 2)
    named = data.from_epochs(EPOCHS, picks=["Cz", "Fp1"])
    np.testing.assert_array_equal(named[:, ::-1, ::-1], data.from_epochs(EPOCHS, picks=["Fp1", "Cz"]))
    for epochs, options, message in [
        (mixed, {"picks": ["Fp1", "Cz"]}, "not in volts: 'Fp1'"),
        (EPOCHS, {"picks": ["Cz", "Xz"]}, "no channels 'Xz'; there are 'Fp1'"),
        (EPOCHS, {"picks": "meg"}, "picks must be a kind"),
        (EPOCHS, {"picks": ["Cz", "Cz"]}, "each once"),
        (EPOCHS, {"picks": 3}, "picks must be"),
        (EPOCHS, {"band": (12, 8)}, "0 < low < high"),
        (EPOCHS, {"band": 8}, "two frequencies"),
        (EPOCHS, {"band": (8, 200)}, "end at 125 Hz"),
        (EPOCHS, {"band": (0.5, 20)}, "no full wave"),
        (EPOCHS, {"ridge_uv": -1.0}, "ridge_uv"),
        (EPOCHS, {"average_reference": "yes"}, "average_reference"),
        (VOLTS, {}, r"data.eeg_covariances"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            data.from_epochs(epochs, **options)
    with pytest.raises(InvalidDataError, match="0 good channels of the kind 'ecog'"):
        data.from_epochs(EPOCHS, picks="ecog")


def test_without_mne_the_extra_is_named(monkeypatch, saved):
    path = saved()
    real = builtins.__import__

    def missing(name, *args, **kwargs):
        if name.partition(".")[0] == "mne":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(importlib, "import_module", missing)
    for call in (lambda: data.from_epochs(path), lambda: data.from_epochs(EPOCHS)):
        with pytest.raises(MissingPackageError, match=r"dpmanifold\[eeg\]"):
            call()


def test_epochs_given_as_records_are_refused_with_the_function_that_takes_them():
    with pytest.raises(InvalidArgumentError, match=r"object of MNE.*data\.from_epochs"):
        as_source(recording())
