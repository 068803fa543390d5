"""A BIDS derivatives folder as a source: an image of tensors for each participant or session, and participants.tsv.

What the names of files say is read here, and nothing but names: no package for BIDS is needed.
"""

from __future__ import annotations

import fnmatch
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dpmanifold._check import shown
from dpmanifold.data._files import PathLike, bad_file, checked_file, checked_path, listed
from dpmanifold.data.formats import open_file
from dpmanifold.data.image_source import NONZERO, ImageSource
from dpmanifold.data.nifti import SUFFIXES, StoredImage, refuse_twice
from dpmanifold.errors import Either, InvalidArgumentError, Message, Names, Public

PARTICIPANT = "participant_id"

# How images of tensors are called where no pattern is given: what people write, and what the proposal for models of
# diffusion (BEP016) calls them.
_TENSORS = ("*_tensor", "*_dti", "*_param-tensor_dwimap", "*_param-diffusivity_dwimap")
_BRAIN = "*_desc-brain_mask"
# In these, images of one kind differ; in others (space, desc, model, ...) they must not.
_WHICH_SCAN = ("sub", "ses", "acq", "dir", "run")


def is_bids(path: object) -> bool:
    """Return whether a path is a folder in the form of BIDS: one with a dataset_description.json.

    Examples
    --------
    >>> is_bids("visits.csv")
    False
    """
    return isinstance(path, (str, os.PathLike)) and os.path.isfile(os.path.join(path, "dataset_description.json"))


def from_bids(
    folder: PathLike,
    *,
    pattern: str | None = None,
    order: str | None = None,
    mask: PathLike | bool | None = True,
    participants: PathLike | bool = True,
    curator: Callable[[str], object] | None = None,
    **entities: str,
) -> ImageSource:
    r"""Return the diffusion tensors of a BIDS derivatives folder as a source, to be given as X with `units=`.

    Images are looked for in sub-\*/dwi and sub-\*/ses-\*/dwi. The unit is the participant: all sessions and runs of one
    are one person, whose average is over all voxels of all of them. Images are read a part at a time, in bounded
    memory, see :func:`from_nifti`.

    Parameters
    ----------
    folder : with sub-\* in it
    pattern : of names of files, such as "\*_desc-fit_tensor.nii.gz"; without it \*_tensor, \*_dti,
        \*_param-tensor_dwimap and \*_param-diffusivity_dwimap, .nii or .nii.gz
    order : of the six numbers: "fsl", "dipy", "mrtrix", "camino" or "row", see :func:`as_records`
    mask : True, a file \*_desc-brain_mask beside each image, of the same space; another pattern, with an asterisk in
        it; one image for all, such as an atlas region in a common space; "nonzero", see :func:`from_nifti`; None for
        all voxels
    participants : True reads participants.tsv in the folder; a path, one that lies elsewhere (that of the raw data, as
        often with derivatives); False none, and `units="participant_id"` is all there is
    curator : is told in words who has no image. Not private
    entities : what names must say, such as space="MNI152NLin6Asym", desc="fit" or ses="01"

    Returns
    -------
    ImageSource : its `names` are "participant_id" (sub-01, ...) and the others of participants.tsv, as text, for
        `units=` and `labels=`

    Raises
    ------
    InvalidArgumentError : no such folder, no image in it, images of several kinds, no mask beside one, or no
        participants.tsv
    InvalidDataError : an image is damaged or there twice, somebody is not in participants.tsv, or a file's name says
        another participant than its folder

    Examples
    --------
    >>> import tempfile
    >>> import nibabel, numpy as np
    >>> import dpmanifold as dpm
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "participants.tsv").write_text("participant_id\tgroup\nsub-01\tpatient\nsub-02\tcontrol\n")
    >>> tensor = np.broadcast_to([1.6, 0.0, 0.0, 0.4, 0.0, 0.4], (2, 2, 2, 6))
    >>> for name in ("sub-01", "sub-02"):
    ...     (folder / name / "dwi").mkdir(parents=True)
    ...     nibabel.Nifti1Image(tensor, np.eye(4)).to_filename(folder / name / "dwi" / f"{name}_tensor.nii.gz")
    >>> source = from_bids(folder, order="fsl", mask=None)
    >>> len(source), source.names
    (2, ['participant_id', 'group'])
    >>> ball = dpm.Ball(dpm.SPD(3), 0.7 * np.eye(3), 2.5)
    >>> pieces = source.bound(ball.space, units="participant_id", labels="group")
    >>> [sorted(set(block.units.tolist())) for piece in pieces for block in piece.blocks()]
    [['sub-01'], ['sub-02']]
    """
    root = checked_path(folder)
    if not root.is_dir():
        raise InvalidArgumentError(
            "`folder`: {root!r} is a file. Name the folder that has sub-* in it.", root=str(root)
        )
    found = _one_kind(_images(root, (pattern,) if pattern is not None else _TENSORS, entities), root)
    table = _participants(root, participants, found)
    refuse_twice([scan.path for scan in found])
    masks = [_mask_of(scan, mask) for scan in found]
    images = [StoredImage(scan.path, one, order) for scan, one in zip(found, masks, strict=True)]
    if curator is not None:
        _tell(
            curator, {one.name for one in _folders(root, "sub-")} | set(table.row if table is not None else ()), found
        )
    columns = {PARTICIPANT: [scan.participant for scan in found]} if table is None else table
    return ImageSource(
        images,
        columns,
        Message('every voxel belongs to a participant, and alone it is nobody. Give `units="participant_id"`.'),
    )


def _tell(curator: Callable[[str], object], everybody: set[str], scans: Iterable[_Scan]) -> None:
    """Tell the curator who has no image."""
    without = sorted(everybody - {scan.participant for scan in scans})
    if without:
        count = f"{len(without):,} of {len(everybody):,} participants"
        curator(f"{count} have no image and are left out: {listed(without)}.")


@dataclass(frozen=True)
class _Scan:
    """An image, or a mask, and what its name says: sub-01_space-MNI_tensor.nii.gz."""

    path: pathlib.Path
    entities: dict[str, str]
    suffix: str

    @property
    def participant(self) -> str:
        return f"sub-{self.entities['sub']}"

    @property
    def kind(self) -> str:
        """The name without what tells scans apart."""
        rest = [f"{key}-{value}" for key, value in self.entities.items() if key not in _WHICH_SCAN]
        return "_".join([*rest, self.suffix])


def _scan(path: pathlib.Path) -> _Scan:
    *words, suffix = _stem(path.name).split("_")
    return _Scan(path, dict(word.split("-", 1) for word in words if "-" in word), suffix)


def _stem(name: str) -> str:
    for end in sorted(SUFFIXES, key=len, reverse=True):
        if name.endswith(end):
            return name[: -len(end)]
    return name


def _folders(root: pathlib.Path, prefix: str) -> list[pathlib.Path]:
    return sorted(one for one in root.iterdir() if one.name.startswith(prefix) and one.is_dir())


def _images(root: pathlib.Path, patterns: Iterable[str], wanted: Mapping[str, str]) -> Iterator[_Scan]:
    """Yield the images whose names match, each in the folder of whom its name says."""
    for person in _folders(root, "sub-"):
        for place in (person, *_folders(person, "ses-")):
            for path in _matching(place / "dwi", patterns):
                scan = _scan(path)
                if not _lies_right(scan, person.name, place.name):
                    raise bad_file(
                        path,
                        "it lies in {relative_to!r}, and its name says another one.",
                        relative_to=str(place.relative_to(root)),
                    )
                if all(scan.entities.get(key) == value for key, value in wanted.items()):
                    yield scan


def _lies_right(scan: _Scan, person: str, place: str) -> bool:
    """Return whether a name says the participant, and the session if there is one, of the folder."""
    session = place.removeprefix("ses-") if place != person else None
    return scan.entities.get("sub") == person.removeprefix("sub-") and scan.entities.get("ses") == session


def _matching(folder: pathlib.Path, patterns: Iterable[str]) -> list[pathlib.Path]:
    """Return the images of a folder whose names match one of the patterns, with or without .nii.gz."""
    if not folder.is_dir():
        return []
    images = [path for path in sorted(folder.iterdir()) if path.name.endswith(SUFFIXES)]
    found = [
        path
        for path in images
        if any(fnmatch.fnmatchcase(name, each) for each in patterns for name in (path.name, _stem(path.name)))
    ]
    for path in found:
        if path.is_symlink() and not path.exists():
            raise bad_file(path, "its content is not here: it is a link that leads nowhere. Fetch it (datalad get).")
    stems = [_stem(path.name) for path in found]
    if len(set(stems)) < len(stems):
        twice = next(path for path in found if stems.count(_stem(path.name)) > 1)
        raise bad_file(twice, "it is there twice, with and without .gz, and would count twice. Remove one.")
    return found


def _one_kind(scans: Iterable[_Scan], root: pathlib.Path) -> list[_Scan]:
    """Return the images, at least one, which must be of one kind: one space, one model, one description."""
    found = list(scans)
    if not found:
        raise InvalidArgumentError(
            "`folder`: no image of tensors was found in sub-*/dwi or sub-*/ses-*/dwi of {root!r}. Give "
            "{remedy} the folder of the derivatives.",
            root=str(root),
            remedy=Either(Public("pattern=, or"), Public("the images by a pattern in quotes, or")),
        )
    kinds = sorted({scan.kind for scan in found})
    if len(kinds) > 1:
        raise InvalidArgumentError(
            "`folder`: there are images of several kinds, {kinds}. Choose one by {remedy}.",
            kinds=Names(kinds),
            remedy=Either(
                Public("pattern=, or by what names say, such as space= or desc="), Public("a pattern in quotes")
            ),
        )
    return found


def _mask_of(scan: _Scan, mask: PathLike | bool | None) -> PathLike | None:
    """Return the mask of an image: the one beside it, or that for all."""
    if mask is None or mask is False:
        return None
    if mask is not True and not (isinstance(mask, str) and "*" in mask):
        return mask if mask == NONZERO else checked_file(mask)
    pattern = _BRAIN if mask is True else str(mask)
    beside = [other for other in map(_scan, _matching(scan.path.parent, (pattern,))) if _is_of(other, scan)]
    if len(beside) != 1:
        raise InvalidArgumentError(
            "`mask`: {detail} of the files beside {name!r} match {pattern!r} and its space, and one must. "
            "Give `mask=` as another pattern, as one image for all, {remedy}.",
            remedy=Either(Public('as "nonzero", or as None'), Public("or as nonzero")),
            detail=Message("none") if not beside else Message("{n_beside}", n_beside=Public(len(beside))),
            name=scan.path.name,
            pattern=pattern,
        )
    return beside[0].path


def _is_of(mask: _Scan, image: _Scan) -> bool:
    """Return whether a mask's name contradicts an image's nowhere; and the space must be said by both or by none."""
    told = {key: value for key, value in mask.entities.items() if key not in ("desc", "label")}
    return mask.entities.get("space") == image.entities.get("space") and told.items() <= image.entities.items()


class _Participants(Mapping[str, list[Any]]):
    """Columns of participants.tsv, one entry per image, each read when it is asked for.

    Parameters
    ----------
    path : the table, a row for each participant
    scans : the images
    """

    def __init__(self, path: pathlib.Path, scans: Sequence[_Scan]) -> None:
        self._file, self._people = open_file(path), [scan.participant for scan in scans]
        if PARTICIPANT not in self._file.names:
            raise bad_file(
                path,
                "there is no column {participant!r}, the first that BIDS asks for. Add it.",
                participant=Public(PARTICIPANT),
            )
        everybody = self._file.column(PARTICIPANT, text=True).tolist()
        self.row = {person: row for row, person in enumerate(everybody)}
        if len(self.row) < len(everybody):
            raise bad_file(path, "somebody has two rows. Leave one.")
        for scan in scans:
            if scan.participant not in self.row:
                raise bad_file(
                    path,
                    "there is no row for {participant}, of whom there is {name!r}. Add the row, or leave the image "
                    "out.",
                    participant=scan.participant,
                    name=scan.path.name,
                )

    def __getitem__(self, name: str) -> list[Any]:
        """Return a column; what a gap counts as is for whoever asks."""
        if name == PARTICIPANT:
            return self._people
        entries = self._file.column(name, text=True, labels=True).tolist()
        return [entries[self.row[person]] for person in self._people]

    def __contains__(self, name: object) -> bool:
        return name in self._file.names

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.names)

    def __len__(self) -> int:
        return len(self._file.names)


def _participants(root: pathlib.Path, given: PathLike | bool, scans: Sequence[_Scan]) -> _Participants | None:
    """Return the table of participants, None if it is not wanted."""
    if given is False:
        return None
    path = root / "participants.tsv" if given is True else given
    if given is True and not os.path.isfile(path):
        raise InvalidArgumentError(
            "`participants`: there is no participants.tsv in {root!r}. {remedy}",
            root=str(root),
            remedy=Either(
                Public("Give the path of that of the raw data, or participants=False."),
                Message(
                    "Copy that of the raw data, or give the images by a pattern in quotes and `units` {image}.",
                    image=Public("image"),
                ),
            ),
        )
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidArgumentError(
            "`participants` must be True, False or the name of a file, got {got}.", got=shown(given)
        )
    return _Participants(checked_file(path), scans)
