"""Links between landmarks: which of them a picture joins by lines. Public: they belong to the anatomy, not to anybody.

Landmarks are counted from 1, as pictures number them and as morphometric programs (geomorph, MorphoJ, tpsRelw) do.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpmanifold._check import index_text, positive_int, shown
from dpmanifold.data._files import bad_file, checked_file
from dpmanifold.errors import InvalidArgumentError, Public

_CHAIN = re.compile(r"\s*\d{1,9}(\s*-\s*\d{1,9})+\s*")
_NUMBER = re.compile(r"\d{1,9}")


def landmark_links(links: object, landmarks: int | None = None) -> npt.NDArray[np.int64]:
    r"""Return links between landmarks as pairs (m, 2), counted from 1.

    Parameters
    ----------
    links : a text such as "1-2, 2-3, 3-1", in which "1-2-3-1" is the same; a file with a pair of numbers on each line,
        with blanks, tabs, commas or semicolons between them, after a line of names if there is one; or pairs (m, 2)
    landmarks : how many landmarks there are, if known: larger numbers are refused

    Raises
    ------
    InvalidArgumentError : no such file, no pairs of different landmarks, or landmarks that there are not
    InvalidDataError : a line of the file is no pair

    Examples
    --------
    >>> landmark_links("1-2-3-1, 4-5").tolist()
    [[1, 2], [2, 3], [3, 1], [4, 5]]
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "links.csv")
    ...     _ = path.write_text("from,to\n1,2\n2,3\n")
    ...     landmark_links(path).tolist()
    [[1, 2], [2, 3]]
    >>> landmark_links("1-9", landmarks=8)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: links: the pair at index 0 names landmark 9, and there are 8, counted from
    1. Correct it.
    """
    if isinstance(links, str) and all(_CHAIN.fullmatch(part) for part in links.split(",")):
        pairs = _from_text(links)
    elif isinstance(links, (str, os.PathLike)):
        pairs = _from_file(links)
    else:
        pairs = _from_pairs(links)
    count = None if landmarks is None else positive_int(landmarks, "landmarks")
    _refuse_impossible(pairs, count)
    return pairs


def _from_text(text: str) -> npt.NDArray[np.int64]:
    chains = [[int(number) for number in part.split("-")] for part in text.split(",")]
    return np.array([pair for chain in chains for pair in pairwise(chain)], dtype=np.int64)


def _from_file(path: object) -> npt.NDArray[np.int64]:
    try:
        file = checked_file(path)
    except InvalidArgumentError:
        raise InvalidArgumentError(
            "links: {got} is neither a file nor links such as '1-2, 2-3, 3-1'. Check the name.", got=shown(path)
        ) from None
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError):
        raise bad_file(file, "it cannot be read as text. Write a pair of numbers on each line.") from None
    pairs = []
    for number, line in enumerate(lines, start=1):
        words = [word.strip('"') for word in re.split(r"[\s,;]+", line.strip())]
        is_pair = len(words) == 2 and all(_NUMBER.fullmatch(word) for word in words)
        if is_pair:
            pairs.append([int(word) for word in words])
        elif words != [""] and (pairs or any(_NUMBER.fullmatch(word) for word in words)):
            raise bad_file(
                file, "line {number} is not a pair of landmarks, such as 1 2. Repair that line.", number=Public(number)
            )
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _from_pairs(links: object) -> npt.NDArray[np.int64]:
    try:
        array = np.asarray(links if isinstance(links, (np.ndarray, Sequence)) else list(links))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        array = np.empty(0)
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and bool((array == np.floor(array)).all()))
    if array.ndim != 2 or array.shape[1] != 2 or not whole:
        raise InvalidArgumentError(
            "links must be pairs of whole numbers (m, 2), a text such as '1-2, 2-3' or a file, got {got}.",
            got=shown(links),
        )
    return array.astype(np.int64)


def _refuse_impossible(pairs: npt.NDArray[np.int64], landmarks: int | None) -> None:
    if len(pairs) == 0:
        raise InvalidArgumentError("links has no pair of landmarks. Leave it out, or give some, such as '1-2, 2-3'.")
    low = np.asarray((pairs < 1).any(axis=1))
    if low.any():
        raise InvalidArgumentError(
            "links: landmarks are counted from 1, and the pair{index_text} has less.",
            index_text=Public(index_text(low)),
        )
    same = np.asarray(pairs[:, 0] == pairs[:, 1])
    if same.any():
        raise InvalidArgumentError(
            "links: the pair{index_text} joins a landmark with itself. Remove it.", index_text=Public(index_text(same))
        )
    high = np.asarray((pairs > landmarks).any(axis=1)) if landmarks is not None else np.zeros(0, dtype=bool)
    if high.any():
        raise InvalidArgumentError(
            "links: the pair{index_text} names landmark {value}, and there are {landmarks}, counted from 1. "
            "Correct it.",
            index_text=Public(index_text(high)),
            value=pairs.max(),
            landmarks=Public(landmarks),
        )


__all__ = ["landmark_links"]
