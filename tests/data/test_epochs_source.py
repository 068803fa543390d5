"""Many files of epochs are one source: the same matrices as one by one, whoever reads which piece."""

import logging
import os
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import mne
import numpy as np
import pandas
import pytest

import dpmanifold as dpm
import dpmanifold.data.mne_epochs as blocks_of
import dpmanifold.data.mne_epochs as implementation
from dpmanifold import InvalidArgumentError, InvalidDataError, data
from dpmanifold.errors import SourceChangedError

pytestmark = pytest.mark.security

NAMES = ["Fz", "Cz", "Pz", "Oz"]
INFO = mne.create_info(NAMES, 250.0, "eeg", verbose="error")
SPACE = dpm.SPD(4)
LENGTHS = [5, 1, 9, 7]


def epochs_of(n, seed, info=INFO):
    rng = np.random.default_rng(seed)
    volts = 1e-5 * rng.standard_normal((n, len(info.ch_names), 250))
    events = np.stack([np.arange(n), np.zeros(n), np.arange(n) % 2 + 1], axis=1).astype(int)
    return mne.EpochsArray(
        volts, info, events, event_id={"rest": 1, "task": 2} if n > 1 else {"rest": 1}, verbose="error"
    )


RECORDINGS = {f"sub-{i}": epochs_of(n, i) for i, n in enumerate(LENGTHS)}


@pytest.fixture
def files(tmp_path):
    paths = {subject: tmp_path / f"{subject}_epo.fif" for subject in RECORDINGS}
    for subject, path in paths.items():
        RECORDINGS[subject].save(path, fmt="double", verbose="error")
    return paths


def gathered(pieces):
    """All blocks of all pieces, one after the other."""
    blocks = [block for piece in pieces for block in piece.blocks()]
    return [
        None if blocks[0][place] is None else np.concatenate([np.asarray(block[place]) for block in blocks])
        for place in range(3)
    ]


@pytest.mark.parametrize(("length", "values"), [(3, 1), (512, 2**20)])
def test_pieces_hold_what_each_file_holds(files, monkeypatch, capsys, length, values):
    monkeypatch.setattr(implementation, "_EPOCHS_OF_PIECE", length)
    monkeypatch.setattr(blocks_of, "_BLOCK_VALUES", values)
    source = data.from_epochs_files(files, band=(8, 30))
    assert (source.rows, source.channels, source.size, source.names) == (22, tuple(NAMES), 4, ["subject", "event"])
    pieces = source.bound(SPACE, "subject", "event")
    assert len(pieces) == sum(-(-n // length) for n in LENGTHS)
    assert sum(piece.rows for piece in pieces) == 22
    assert [piece.first % length for piece in pieces] == [0] * len(pieces)
    records, units, labels = gathered(pieces)
    expected = np.concatenate([data.from_epochs(one, band=(8, 30)) for one in RECORDINGS.values()])
    np.testing.assert_array_equal(records, expected)
    assert units.tolist() == np.repeat(list(RECORDINGS), LENGTHS).tolist()
    assert labels.tolist() == [["rest", "task"][i % 2] for n in LENGTHS for i in range(n)]
    assert capsys.readouterr() == ("", "")


def test_nothing_is_logged_by_several_threads_and_the_level_is_kept(files, monkeypatch):
    """MNE's own verbose= is one level for all threads; what it would say is how many epochs there are."""
    monkeypatch.setattr(implementation, "_EPOCHS_OF_PIECE", 2)
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    mne.utils.logger.addHandler(handler)
    monkeypatch.setattr(mne.utils.logger, "level", logging.INFO)
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1e-5)
        pieces = data.from_epochs_files(files, band=(8, 30)).bound(SPACE, "subject")
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(lambda piece: gathered([piece]), 2 * pieces))
    finally:
        sys.setswitchinterval(interval)
        mne.utils.logger.removeHandler(handler)
    assert said == []
    assert mne.utils.logger.level == logging.INFO


def test_pieces_can_be_pickled_and_tell_nothing_of_what_they_hold(files):
    for piece in data.from_epochs_files(files).bound(SPACE, "subject")[:2]:
        copy = pickle.loads(pickle.dumps(piece))
        np.testing.assert_array_equal(gathered([copy])[0], gathered([piece])[0])
        assert repr(piece) == "EpochsPiece()"
        assert len(pickle.dumps(piece)) < 2000


def test_ids_beside_the_files_are_cut_alongside(files):
    ids = np.arange(22) // 2
    _, units, labels = gathered(data.from_epochs_files(files).bound(SPACE, ids, [str(i) for i in range(22)]))
    np.testing.assert_array_equal(units, ids)
    assert labels.tolist() == [str(i) for i in range(22)]
    assert gathered(data.from_epochs_files(files).bound(SPACE))[1:] == [None, None]


def test_a_person_may_have_several_files(files):
    source = data.from_epochs_files(list(files.values()), subjects=[7, 7, 9, 9])
    assert gathered(source.bound(SPACE, "subject"))[1].tolist() == [7] * 6 + [9] * 16


def test_compressed_files_are_one_piece_each(files, tmp_path, monkeypatch):
    monkeypatch.setattr(implementation, "_EPOCHS_OF_PIECE", 2)
    path = tmp_path / "sub-9-epo.fif.gz"
    RECORDINGS["sub-2"].save(path, fmt="double", verbose="error")
    pieces = data.from_epochs_files({"a": path}).bound(SPACE, "subject")
    assert [piece.rows for piece in pieces] == [9]
    np.testing.assert_array_equal(gathered(pieces)[0], data.from_epochs(RECORDINGS["sub-2"]))


@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")  # how MNE 1.13 calls pandas 3
def test_metadata_that_all_files_have_are_columns(tmp_path):
    paths = []
    for number, names in enumerate([("site", "age"), ("site", "hand")]):
        one = epochs_of(4, number)
        one.set_montage(None, verbose="error")
        with mne.utils.use_log_level("error"):
            one.metadata = pandas.DataFrame({name: [f"{name}{number}"] * 4 for name in names})
        paths.append(tmp_path / f"{number}_epo.fif")
        one.save(paths[-1], verbose="error")
    source = data.from_epochs_files(paths, ["a", "b"])
    assert source.names == ["subject", "event", "site"]
    assert gathered(source.bound(SPACE, "subject", "site"))[2].tolist() == ["site0"] * 4 + ["site1"] * 4
    with pytest.raises(InvalidArgumentError, match="one of the columns 'subject', 'event', 'site', got 'age'"):
        source.bound(SPACE, "age")


def test_the_average_reference_leaves_one_size_less(files):
    source = data.from_epochs_files(files, average_reference=True)
    assert source.size == 3
    assert gathered(source.bound(dpm.SPD(3), "subject"))[0].shape == (22, 3, 3)
    with pytest.raises(InvalidArgumentError, match=r"points of SPD\(3\).*channels, 4, and average_reference=True"):
        source.bound(SPACE, "subject")


def test_files_that_do_not_belong_together_are_refused(files, tmp_path):
    other = tmp_path / "other_epo.fif"
    bad = RECORDINGS["sub-0"].copy()
    bad.info["bads"] = ["Cz"]
    swapped = RECORDINGS["sub-0"].copy().reorder_channels(NAMES[::-1])
    for one, message in ((bad, "without 'Cz'"), (swapped, "in another order")):
        one.save(other, overwrite=True, verbose="error")
        with pytest.raises(InvalidDataError, match=rf"other_epo\.fif: it has other good channels .*{message}"):
            data.from_epochs_files({**files, "x": other})
        named = data.from_epochs_files({**files, "x": other}, picks=["Fz", "Cz"])
        assert named.channels == ("Fz", "Cz")
    link = tmp_path / "link_epo.fif"
    os.link(files["sub-0"], link)
    with pytest.raises(InvalidArgumentError, match=r"'link_epo\.fif' twice"):
        data.from_epochs_files({**files, "x": link})


def test_wrong_arguments_are_refused(files):
    paths = list(files.values())
    for arguments, message in [
        ((paths,), "subjects="),
        ((str(paths[0]), ["a"]), "files must be"),
        ((files, ["a"]), "keys of files"),
        ((paths, ["a"]), "4 files, 1 subjects"),
        (([], []), "0 files"),
        ((paths, ["a", "b", "", "c"]), "subjects"),
        ((paths, ["a", "b", 3, "c"]), "subjects"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            data.from_epochs_files(*arguments)
    source = data.from_epochs_files(files)
    for space, units, labels, message in [
        (dpm.SPD(3), "subject", None, r"points of SPD\(4\)"),
        (SPACE, "event", None, "events are nobody"),
        (SPACE, "person", None, "units must be one of the columns"),
        (SPACE, "subject", "kind", "labels must be one of the columns"),
        (SPACE, [1, 2, 3], None, r"shape \(22,\)"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            source.bound(space, units, labels)


def test_a_file_that_changes_or_is_cut_is_refused(files):
    source = data.from_epochs_files(files)
    pieces = source.bound(SPACE, "subject")
    whole = files["sub-2"].read_bytes()
    files["sub-2"].write_bytes(whole[: len(whole) - 9000])
    with pytest.raises(SourceChangedError, match=r"sub-2_epo\.fif"):
        gathered(pieces)
    with pytest.raises(InvalidDataError, match=r"sub-2_epo\.fif: .*(damaged|incomplete)"):
        gathered(data.from_epochs_files(files).bound(SPACE, "subject"))


@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_a_mean_of_files_has_the_bits_of_a_mean_of_arrays(files, monkeypatch, metric):
    monkeypatch.setattr(implementation, "_EPOCHS_OF_PIECE", 2)
    ball = data.eeg_ball(4, highest_uv=50, ridge_uv=0.5, metric=metric)
    ids = np.repeat(list(RECORDINGS), LENGTHS)
    X = np.concatenate([data.from_epochs(one) for one in RECORDINGS.values()])
    for units, owners in (("subject", ids), (dpm.EACH_RECORD, dpm.EACH_RECORD)):
        one = dpm.private_mean(data.from_epochs_files(files), ball, dpm.GDP(1.0), units=units, rng=3)
        other = dpm.private_mean(X, ball, dpm.GDP(1.0), units=owners, rng=3)
        assert one.n == other.n
        np.testing.assert_array_equal(one.value, other.value)


def test_values_that_are_not_finite_are_passed_on(tmp_path):
    volts = RECORDINGS["sub-2"].get_data(copy=True, verbose="error")
    volts[3, 1, 10] = np.nan
    path = tmp_path / "x_epo.fif"
    mne.EpochsArray(volts, INFO, verbose="error").save(path, fmt="double", verbose="error")
    records, _, _ = gathered(data.from_epochs_files({"x": path}).bound(SPACE, "subject"))
    assert np.flatnonzero(~np.isfinite(records).all(axis=(1, 2))).tolist() == [3]
