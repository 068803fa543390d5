"""Epochs of MNE-Python as covariance matrices: in memory, in a file, in many as one source. Needs mne: the extra "eeg".

Epochs are read some at a time, so that memory is that of the matrices, and nothing is fitted across them: what becomes
of an epoch depends on that epoch and on public numbers alone (:mod:`dpmanifold.data.eeg`).
"""

from __future__ import annotations

import contextlib
import math
import pathlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray, optional_module, shown
from dpmanifold._merged_ids import unit_ids
from dpmanifold.data._files import (
    DataFile,
    PathLike,
    Stamp,
    bad_file,
    checked_file,
    chosen_name,
    in_file,
    in_words,
    named_twice,
    unknown_format,
)
from dpmanifold.data.eeg import eeg_covariances, remove_average_reference
from dpmanifold.data.pieces import Beside, named_or_beside
from dpmanifold.errors import Argument, InvalidArgumentError, InvalidDataError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.progress import bar
from dpmanifold.sources import Block, Piece, Source

VOLTAGES = ("eeg", "seeg", "ecog", "dbs")
EVENT = "event"
_MICROVOLTS = 1e6  # in one volt: MNE-Python keeps volts
_FIFF_VOLT = 107  # FIFF_UNIT_V
_FIFF_AVERAGE_REFERENCE = 10  # FIFFV_PROJ_ITEM_EEG_AVREF
_BLOCK_VALUES = 2**20  # samples of epochs held at once, 8 MB
_ORDER = 4  # of the Butterworth band-pass


_QUIETLY = threading.Lock()
_quiet = {"inside": 0, "level": 0}


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Let MNE-Python log nothing but errors inside the block: what it says is about the data.

    Its own `verbose=` sets one level for the whole process and sets it back, each call by itself: of calls in several
    threads the first to end lets the others speak. Here the last one does.
    """
    mne = optional_module("mne", "eeg", "EEG")
    with _QUIETLY:
        if _quiet["inside"] == 0:
            _quiet["level"] = mne.set_log_level("ERROR", return_old_level=True)
        _quiet["inside"] += 1
    try:
        yield
    finally:
        with _QUIETLY:
            _quiet["inside"] -= 1
            if _quiet["inside"] == 0:
                mne.set_log_level(_quiet["level"])


@dataclass(frozen=True)
class Recipe:
    """How an epoch becomes a matrix: public, the same for all of them.

    Parameters
    ----------
    picks, band, ridge_uv, average_reference : as in :func:`from_epochs`
    """

    picks: str | Sequence[str] = "eeg"
    band: tuple[float, float] | None = None
    ridge_uv: float = 0.5
    average_reference: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.picks, str) and self.picks not in VOLTAGES:
            known = ", ".join(VOLTAGES)
            raise InvalidArgumentError(
                "picks must be a kind of channel ({known}) or a list of names of channels, got {picks!r}.",
                known=Public(known),
                picks=self.picks,
            )
        if not isinstance(self.picks, str):
            names = list(self.picks) if isinstance(self.picks, Sequence) else [None]
            if not names or not all(isinstance(name, str) for name in names) or len(set(names)) != len(names):
                raise InvalidArgumentError(
                    "picks must be a kind of channel or a list of names, each once, got {got}.", got=shown(self.picks)
                )
            object.__setattr__(self, "picks", tuple(names))
        if self.band is not None:
            object.__setattr__(self, "band", _checked_band(self.band))
        if not isinstance(self.average_reference, bool):
            raise InvalidArgumentError(
                "average_reference must be True or False, got {got}.", got=shown(self.average_reference)
            )
        eeg_covariances(np.zeros((0, 1, 1)), self.ridge_uv)  # refuses a ridge that is none

    def size(self, channels: Sequence[str]) -> int:
        """Return the size of the matrices."""
        return len(channels) - self.average_reference

    def channels(self, epochs: Any) -> list[str]:
        """Return the names of the channels that are taken, in their order, or say why they cannot be."""
        if isinstance(self.picks, str):
            with silence():
                found = optional_module("mne", "eeg", "EEG").pick_types(epochs.info, meg=False, **{self.picks: True})
            names = [epochs.ch_names[index] for index in found]
            if len(names) <= self.average_reference:
                raise InvalidDataError(
                    "epochs has {n_names} good channels of the kind {picks!r}. Give picks= other ones, or set their "
                    "types (epochs.set_channel_types).",
                    n_names=Public(len(names)),
                    picks=self.picks,
                )
        else:
            names = list(self.picks)
            missing = [name for name in names if name not in epochs.ch_names]
            if missing:
                raise InvalidArgumentError(
                    "picks: there are no channels {missing}; there are {ch_names}.",
                    missing=Names(missing),
                    ch_names=Names(epochs.ch_names),
                )
        self._refuse_units(epochs, names)
        if not self.average_reference:
            _refuse_average(epochs, names)
        if self.band is not None:
            _refuse_band(self.band, float(epochs.info["sfreq"]), len(epochs.times))
        return names

    def _refuse_units(self, epochs: Any, names: Sequence[str]) -> None:
        kinds = {entry["ch_name"]: int(entry["unit"]) for entry in epochs.info["chs"]}
        others = [name for name in names if kinds[name] != _FIFF_VOLT]
        if others:
            raise InvalidArgumentError(
                "picks has channels that are not in volts: {others}. Take channels of one kind; of others the "
                "matrices are made with data.eeg_covariances(epochs.get_data(picks=...), scale=...).",
                others=Names(others),
            )

    def blocks(
        self, epochs: Any, names: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield where epochs stand and their matrices, some at a time."""
        last = len(epochs) if stop is None else stop
        picks = [epochs.ch_names.index(name) for name in names]
        step = max(1, _BLOCK_VALUES // max(1, len(names) * len(epochs.times)))
        for first in range(start, last, step):
            part = slice(first, min(first + step, last))
            with silence():
                signals = epochs.get_data(picks=picks, item=part, copy=True)
            yield part, self.covariances(signals, float(epochs.info["sfreq"]))

    def covariances(self, signals: FloatArray, rate: float) -> FloatArray:
        """Return the matrices of epochs in volts, (m, channels, samples) -> (m, k, k), each by itself."""
        if self.band is not None:
            signals = _filtered(signals, rate, self.band)
        matrices = eeg_covariances(signals, self.ridge_uv, scale=_MICROVOLTS)
        return remove_average_reference(matrices) if self.average_reference else matrices


def from_epochs(
    epochs: Any,
    *,
    picks: str | Sequence[str] = "eeg",
    band: tuple[float, float] | None = None,
    ridge_uv: float = 0.5,
    average_reference: bool = False,
) -> FloatArray:
    """Return one covariance matrix per epoch of MNE-Python, (n, k, k), in microvolts^2.

    As :func:`eeg_covariances` makes them: each channel's mean over the epoch is subtracted, products are divided by the
    number of samples, and ridge_uv^2 is added on the diagonal. Epochs that are not loaded (preload=False) are read some
    at a time, with the baseline, decimation, rejection and projections they were made with; `epochs` is not changed.

    All of them belong to the people whose recordings they are: give `units=` a person's id for every epoch. For a file
    per person see :func:`from_epochs_files`.

    Parameters
    ----------
    epochs : mne.Epochs, mne.EpochsArray, what mne.read_epochs returns; or the name of a file (-epo.fif, _epo.fif, .gz)
    picks : "eeg", "seeg", "ecog" or "dbs", all good channels of that kind; or a list of names, taken in that order,
        marked bad or not. Choose by the montage, never by how the recordings look
    band : (low, high) in Hz: a Butterworth filter of order 4, run forwards and backwards over each epoch. Filtering the
        raw recording before it is cut is better at the ends. None takes the epochs as they are
    ridge_uv : rms of the ridge in microvolts, at least 0; public. The ball depends on it: give `eeg_ball` the same
    average_reference : True returns matrices of size k - 1 by :func:`remove_average_reference`, whatever the reference
        was. Without it recordings whose header says that the average reference was applied to just these channels are
        refused: they add up to 0, so that every covariance is singular. A reference that was subtracted without a
        projection (`set_eeg_reference("average", projection=False)`) leaves no trace in the header: give True

    Raises
    ------
    MissingPackageError : mne is not installed
    InvalidArgumentError : no such channels, or channels that are not in volts
    InvalidDataError : average reference, or a file that is damaged

    Notes
    -----
    Projections other than the average reference (SSP) and cleaning by ICA empty directions that were fitted to each
    recording. No fixed map removes them; the ridge is what keeps their matrices invertible.

    Examples
    --------
    >>> import mne
    >>> info = mne.create_info(["Fz", "Cz", "Pz", "Oz"], sfreq=250.0, ch_types="eeg")
    >>> volts = 1e-5 * np.random.default_rng(0).standard_normal((20, 4, 500))
    >>> epochs = mne.EpochsArray(volts, info, verbose="error")
    >>> from_epochs(epochs).shape, from_epochs(epochs, picks=["Cz", "Pz"], band=(8, 12)).shape
    ((20, 4, 4), (20, 2, 2))
    >>> from_epochs(epochs, average_reference=True).shape
    (20, 3, 3)
    """
    recipe = Recipe(picks, band, ridge_uv, average_reference)
    if isinstance(epochs, (str, pathlib.Path)):
        return EpochsFile(checked_file(epochs)).matrices(recipe)
    mne = optional_module("mne", "eeg", "from_epochs")
    if not isinstance(epochs, mne.BaseEpochs):
        raise InvalidArgumentError(
            "epochs must be epochs of MNE-Python, or a file of them, got {got}. An array goes to data.eeg_covariances.",
            got=shown(epochs),
        )
    if not epochs.preload:
        # Which epochs there are is known once those to be rejected are dropped: from a copy, on the same recording.
        with silence():
            epochs = epochs.copy()
            epochs.drop_bad()
    names = recipe.channels(epochs)
    return _filled(len(epochs), recipe.size(names), recipe.blocks(epochs, names))


def _filled(n: int, size: int, blocks: Iterator[tuple[slice, FloatArray]]) -> FloatArray:
    """Return matrices (n, size, size) that come some at a time."""
    result = np.empty((n, size, size))
    for part, matrices in blocks:
        result[part] = matrices
    return result


class EpochsFile(DataFile):
    """A file of epochs, a covariance matrix each; the events are the column "event", metadata have columns too."""

    suffixes = ("-epo.fif", "_epo.fif", "-epo.fif.gz", "_epo.fif.gz")
    options = ("picks", "band", "ridge_uv", "average_reference")

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        if not path.name.lower().endswith(self.suffixes):
            raise unknown_format(path, in_words(self.suffixes))
        mne = optional_module("mne", "eeg", f"Reading {path.name!r}")
        try:
            with silence():
                self.epochs = mne.read_epochs(path, preload=False)
        except Exception:  # whatever a damaged file makes MNE stumble over
            raise bad_file(path, "it is damaged, incomplete or holds no epochs. Copy or write it again.") from None
        metadata = self.epochs.metadata
        self._metadata = {} if metadata is None else {str(name): metadata[name] for name in metadata.columns}
        self.names = list(dict.fromkeys([EVENT, *self._metadata]))

    def array(self, **options: Any) -> FloatArray:
        """Return the covariances (n, k, k), see :func:`from_epochs`."""
        return self.matrices(Recipe(**options))

    def matrices(self, recipe: Recipe) -> FloatArray:
        """Return the covariances (n, k, k) by a recipe."""
        names = self.channels(recipe)
        return _filled(len(self.epochs), recipe.size(names), self.blocks(recipe, names))

    def channels(self, recipe: Recipe) -> list[str]:
        """Return the channels that a recipe takes of it, or refuse them in the file's name."""
        try:
            return recipe.channels(self.epochs)
        except InvalidDataError as problem:
            raise in_file(self.path.name, problem) from None
        except InvalidArgumentError as problem:
            raise InvalidArgumentError("{name}: {problem}", name=self.path.name, problem=problem) from None

    def blocks(
        self, recipe: Recipe, names: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[slice, FloatArray]]:
        """Yield where epochs stand and their matrices, some at a time, or say which cannot be read."""
        done = start
        try:
            for part, matrices in recipe.blocks(self.epochs, names, start, stop):
                yield part, matrices
                done = part.stop
        except MemoryError:
            raise
        except Exception:  # whatever a damaged file makes MNE stumble over
            raise bad_file(
                self.path,
                "epochs from {done} on (the first is 0) cannot be read: it is damaged or incomplete. Copy or write it "
                "again.",
                done=Public(done),
            ) from None

    def column(self, name: str | None = None, text: bool = False, labels: bool = False) -> Array:
        """Return the names of the events, or a column of the metadata; (n,)."""
        chosen = chosen_name(self.names, name, self.path)
        if chosen in self._metadata:
            values = self._metadata[chosen].to_numpy()
        else:
            events = {code: event for event, code in self.epochs.event_id.items()}
            values = np.array([events.get(code, str(code)) for code in self.epochs.events[:, 2].tolist()], dtype=str)
        return np.asarray(values.astype(str) if text else values)


def _checked_band(band: object) -> tuple[float, float]:
    edges = tuple(band) if isinstance(band, Sequence) and not isinstance(band, str) else ()
    if len(edges) != 2 or not all(isinstance(edge, Real) and not isinstance(edge, bool) for edge in edges):
        raise InvalidArgumentError("band must be two frequencies (low, high) in Hz, got {got}.", got=shown(band))
    low, high = map(float, edges)
    if not (0 < low < high and math.isfinite(high)):
        raise InvalidArgumentError(
            "band must have 0 < low < high, in Hz, got ({low:g}, {high:g}).", low=Public(low), high=Public(high)
        )
    return low, high


def _refuse_band(band: tuple[float, float], rate: float, samples: int) -> None:
    """Refuse a band that the sampling or the length of the epochs does not allow: both are public."""
    low, high = band
    if not high < rate / 2:
        raise InvalidArgumentError(
            "band ends at {high:g} Hz, and {rate:g} samples a second end at {rate2:g} Hz.",
            high=Public(high),
            rate=Public(rate),
            rate2=Public(rate / 2),
        )
    if samples < rate / low:
        raise InvalidArgumentError(
            "band begins at {low:g} Hz, and epochs of {samples:.4g} s hold no full wave of it. Filter the raw "
            "recording before cutting it into epochs, or raise it.",
            low=Public(low),
            samples=Public(samples / rate),
        )


def _filtered(signals: FloatArray, rate: float, band: tuple[float, float]) -> FloatArray:
    """Return epochs band-passed, each channel of each epoch by itself."""
    mne = optional_module("mne", "eeg", "band=")
    with silence(), np.errstate(all="ignore"):
        return np.asarray(
            mne.filter.filter_data(
                np.ascontiguousarray(signals), rate, *band, method="iir",
                iir_params={"order": _ORDER, "ftype": "butter", "output": "sos"},
            )
        )  # fmt: skip


def _refuse_average(epochs: Any, names: Sequence[str]) -> None:
    """Refuse epochs whose header says that the average of just these channels was subtracted."""
    for projection in epochs.info["projs"]:
        averaged = set(projection["data"]["col_names"])
        if projection["active"] and int(projection["kind"]) == _FIFF_AVERAGE_REFERENCE and averaged <= set(names):
            raise InvalidDataError(
                "epochs are in the average reference: their channels add up to 0, and every covariance is "
                "singular. Give average_reference=True, for matrices of size {n_names}, or picks= fewer channels.",
                n_names=Public(len(names) - 1),
            )


SUBJECT = "subject"
_EPOCHS_OF_PIECE = 512


def from_epochs_files(
    files: Mapping[Any, PathLike] | Sequence[PathLike],
    subjects: Sequence[Any] | None = None,
    *,
    picks: str | Sequence[str] = "eeg",
    band: tuple[float, float] | None = None,
    ridge_uv: float = 0.5,
    average_reference: bool = False,
) -> EpochsSource:
    """Return the covariances of many files of epochs as a source, which every private statistic takes as its data.

    Headers are read now, epochs when a statistic asks for them, some hundred at a time: memory does not grow with the
    recordings. Where a statistic reads them several times, so are the files.

    Its columns (`names`), for `units=` and `labels=`: "subject", who was recorded, as said here; "event", the names of
    the events; and the columns of the metadata that all files have.

    Parameters
    ----------
    files : files -epo.fif or _epo.fif (.gz, too), by subject; or a list of them, and a person may have several
    subjects : for a list, the id of each file's subject
    picks, band, ridge_uv, average_reference : as in :func:`from_epochs`. All files must have the same channels, in the
        same order. Where bad channels were marked, interpolate them (`epochs.interpolate_bads()`, each recording by
        itself), or give picks= the names of channels that all have

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import mne
    >>> import dpmanifold as dpm
    >>> rng, folder = np.random.default_rng(0), pathlib.Path(tempfile.mkdtemp())
    >>> info = mne.create_info(["Fz", "Cz", "Pz"], sfreq=250.0, ch_types="eeg")
    >>> files = {f"sub-{i:02}": folder / f"sub-{i:02}_epo.fif" for i in range(20)}
    >>> for path in files.values():
    ...     recording = mne.EpochsArray(1e-5 * rng.standard_normal((8, 3, 250)), info, verbose="error")
    ...     _ = recording.save(path, verbose="error")
    >>> source = from_epochs_files(files)
    >>> source.channels, source.rows
    (('Fz', 'Cz', 'Pz'), 160)
    >>> ball = dpm.data.eeg_ball(3, highest_uv=50)
    >>> release = dpm.private_mean(source, ball, dpm.GDP(2.0), units="subject")
    >>> release.n, release.value.shape
    (20, (3, 3))
    """
    if isinstance(files, Mapping):
        if subjects is not None:
            raise InvalidArgumentError("subjects are the keys of files already. Leave it out.")
        paths, owners = list(files.values()), list(files)
    else:
        if isinstance(files, (str, bytes)) or not isinstance(files, Sequence) or subjects is None:
            raise InvalidArgumentError(
                "files must be files by subject, such as {{'sub-01': path}}, or a list of them with subjects=, "
                "got {got}.",
                got=shown(files),
            )
        paths, owners = list(files), list(subjects)
    if not paths or len(paths) != len(owners):
        raise InvalidArgumentError(
            "subjects must name one for each file: {n_paths} files, {n_owners} subjects.",
            n_paths=Public(len(paths)),
            n_owners=Public(len(owners)),
        )
    known = unit_ids(owners, len(owners), "subjects")
    names = [known.names[number] for number in known.group.tolist()]
    return EpochsSource(paths, names, Recipe(picks, band, ridge_uv, average_reference))


@dataclass(frozen=True, repr=False)
class _Recording:
    """A file of epochs as it was when the source was opened."""

    stamp: Stamp
    subject: Any
    epochs: int
    in_one: bool  # a compressed file is read from its beginning, each time it is opened


class EpochsSource(Source):
    """Covariances of epochs in files; made by :func:`from_epochs_files`.

    Attributes
    ----------
    channels : names of the channels, in the order of the matrices' rows (before an average reference is taken out)
    size : the size of the matrices
    names : what `units=` and `labels=` can name
    rows : how many epochs there are
    """

    rows: int

    def __init__(self, paths: Sequence[PathLike], subjects: Sequence[Any], recipe: Recipe) -> None:
        found = [checked_file(path) for path in paths]
        self._recipe, self._recordings = recipe, list[_Recording]()
        twice = named_twice(found)
        if twice is not None:
            raise InvalidArgumentError("files names {name!r} twice. Give every recording once.", name=twice[1].name)
        with bar("opening", total=len(found)) as step:
            for path, subject in zip(found, subjects, strict=True):
                stamp, file = Stamp.of(path), EpochsFile(path)
                channels = tuple(file.channels(recipe))
                if not self._recordings:
                    self.channels, self.names = channels, [SUBJECT, *file.names]
                if channels != self.channels:
                    raise bad_file(
                        path,
                        "it has other good channels than the first file: {told}. Interpolate bad channels, or give "
                        "picks= the names of channels that all files have.",
                        told=_other_channels(channels, self.channels),
                    )
                self.names = [name for name in self.names if name in (SUBJECT, *file.names)]
                compressed = path.name.lower().endswith(".gz")
                self._recordings.append(_Recording(stamp, subject, len(file.epochs), compressed))
                step(1)
        self.size = recipe.size(self.channels)
        self.rows = sum(recording.epochs for recording in self._recordings)

    def bound(self, space: Manifold, units: object = None, labels: object = None) -> Sequence[Piece]:
        """Return pieces of some hundred epochs of one file each.

        Parameters
        ----------
        space : SPD(size), in any metric
        units : "subject", or a column of the metadata; or one id per epoch, in the order of the files
        labels : "event", or a column of the metadata; or one class per epoch
        """
        if tuple(space.shape) != (self.size, self.size):
            raise InvalidArgumentError(
                "`space`: these epochs become matrices of size {size}, points of SPD({size}), and the ball is on "
                "{space!r}. Give eeg_ball the number of channels, {n_channels}{detail}",
                size=Public(self.size),
                space=Public(space),
                n_channels=Public(len(self.channels)),
                detail=Message(", and average_reference=True.") if self._recipe.average_reference else Message("."),
            )
        (unit, label), beside = named_or_beside(units, labels, self.rows)
        for name, column in (("units", unit), ("labels", label)):
            if column is not None and column not in self.names:
                raise InvalidArgumentError(
                    "{name} must be one of the columns {names}, got {column!r}.",
                    name=Argument(name),
                    names=Names(self.names),
                    column=column,
                )
        if unit == EVENT:
            raise InvalidArgumentError('`units`: events are nobody. Give "subject", a column of the metadata, or ids.')
        pieces, before = list[Piece](), 0
        for recording in self._recordings:
            step = max(1, recording.epochs) if recording.in_one else _EPOCHS_OF_PIECE
            for start in range(0, recording.epochs, step):
                stop = min(start + step, recording.epochs)
                cut = beside.cut(before + start, before + stop)
                pieces.append(EpochsPiece(recording, (start, stop), self._recipe, self.channels, (unit, label), cut))
            before += recording.epochs
        return pieces


class EpochsPiece(Piece):
    """Some epochs of a file.

    Parameters
    ----------
    recording : the file
    span : where they begin and end in it
    recipe, channels : how they become matrices
    columns : which columns are units and labels, None where they are none
    beside : units and labels that are no columns, of these epochs
    """

    def __init__(
        self,
        recording: _Recording,
        span: tuple[int, int],
        recipe: Recipe,
        channels: tuple[str, ...],
        columns: tuple[str | None, str | None],
        beside: Beside,
    ) -> None:
        self._recording, self._span, self._recipe = recording, span, recipe
        self._channels, self._columns, self._beside = channels, columns, beside
        self.name, self.first = pathlib.Path(recording.stamp.path).name, span[0]
        self.rows = span[1] - span[0]

    def blocks(self) -> Iterator[Block]:
        """Yield the matrices of some epochs at a time."""
        self._recording.stamp.check()
        file = EpochsFile(pathlib.Path(self._recording.stamp.path))
        start, stop = self._span
        columns = [self._values(file, name, name == self._columns[1]) for name in self._columns]
        for part, matrices in file.blocks(self._recipe, self._channels, start, stop):
            cut = self._beside.cut(part.start - start, part.stop - start)
            units, labels = (None if values is None else values[part] for values in columns)
            yield Block(matrices, cut.units if units is None else units, cut.labels if labels is None else labels)

    def _values(self, file: EpochsFile, name: str | None, labels: bool) -> Array | None:
        """Return a column of the file, one value for each of its epochs."""
        if name is None:
            return None
        if name != SUBJECT:
            return file.column(name, labels=labels)
        kind = object if isinstance(self._recording.subject, str) else np.int64
        return np.full(self._recording.epochs, self._recording.subject, dtype=kind)


def _other_channels(found: Sequence[str], first: Sequence[str]) -> Message:
    """Say how the channels of a file differ from those of the first."""
    missing = Names(name for name in first if name not in found)
    more = Names(name for name in found if name not in first)
    if missing and more:
        return Message("without {missing} and with {more}", missing=missing, more=more)
    if missing:
        return Message("without {missing}", missing=missing)
    return Message("with {more}", more=more) if more else Message("in another order")
