"""Files of MNE's epochs, one or more per person, as one source of covariances: read some hundred epochs at a time."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifold._check import Array, shown
from dpmanifold._ids import unit_ids
from dpmanifold.data._files import PathLike, bad_file, checked_file, named_twice
from dpmanifold.data.mne_epochs import EVENT, EpochsFile, Recipe
from dpmanifold.data.pieces import Beside, named_or_beside
from dpmanifold.data.stamps import Stamp
from dpmanifold.errors import Argument, InvalidArgumentError, Message, Names, Public
from dpmanifold.manifolds import Manifold
from dpmanifold.progress import bar
from dpmanifold.sources import Block, Piece, Source

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


__all__ = ["EpochsSource", "from_epochs_files"]
