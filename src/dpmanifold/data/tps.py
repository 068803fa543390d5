"""The TPS format of geometric morphometrics (tpsDig and its relatives): landmarks in the plane, specimen by specimen.

LM=3
12.5 40.0
13.0 41.5
19.0 38.0
IMAGE=fly_017.jpg
ID=17
SCALE=0.02
"""

from __future__ import annotations

import math
import pathlib
import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmanifold._check import Array, FloatArray
from dpmanifold._ids import MISSING_WORDS
from dpmanifold.data._files import DataFile, bad_file
from dpmanifold.errors import Public

_REFUSED = {
    "LM3": "landmarks in space, and shapes here are in the plane. Choose two of the axes",
    "CURVES": "curves. Append them to the landmarks (tpsUtil does), or remove them",
    "OUTLINES": "outlines. Turn them into landmarks, or remove them",
}
_COUNT = re.compile(r"[1-9][0-9]{0,8}")
_MISSING = ("na", "nan")  # in small letters; they become NaN


@dataclass
class _Specimen:
    """One specimen while it is read."""

    line: int
    size: int
    points: list[tuple[float, float]] = field(default_factory=list)
    said: dict[str, str] = field(default_factory=dict)
    scale: float = 1.0


def read_tps(path: pathlib.Path) -> tuple[FloatArray, Array]:
    r"""Return landmarks (n, k, 2), times their SCALE if stated, and the ids (n,).

    The ids are ID= if every specimen has one, otherwise IMAGE= if every specimen has one, otherwise 0, 1, 2, ...
    Coordinates written NA are NaN. Other lines NAME=value, such as COMMENT=, are passed over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "flies.tps")
    ...     _ = path.write_text("LM=3\n0 0\n1 0\n0 1\nID=a\nLM=3\n0 0\n2 0\n0 2\nID=b\nSCALE=0.5\n")
    ...     points, ids = read_tps(path)
    >>> points[1].tolist(), ids.tolist()
    ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], ['a', 'b'])
    """
    specimens = _specimens(path)
    if not specimens:
        raise bad_file(path, "it has no line such as LM=8. Check that it is a TPS file.")
    for specimen in specimens:
        if specimen.size != specimens[0].size:
            raise bad_file(
                path,
                "the specimen at line {line} has {size} landmarks, the first one {size2}. All need the same landmarks.",
                line=Public(specimen.line),
                size=Public(specimen.size),
                size2=Public(specimens[0].size),
            )
    points = np.array([specimen.points for specimen in specimens], dtype=np.float64)
    points *= np.array([specimen.scale for specimen in specimens])[:, None, None]
    for name in ("ID", "IMAGE"):
        if all(specimen.said.get(name) for specimen in specimens):
            return points, np.array([specimen.said[name] for specimen in specimens], dtype=str)
    return points, np.arange(len(specimens))


class TpsFile(DataFile):
    """Landmarks (n, k, 2) and the ids of the specimens."""

    suffixes = (".tps",)

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__(path)
        self._points, self._ids = read_tps(path)

    def array(self, **options: Any) -> Array:
        """Return the landmarks."""
        return self._points

    def ids(self) -> Array:
        """Return ID=, or IMAGE=, or 0, 1, 2, ..."""
        return self._ids


def _specimens(path: pathlib.Path) -> list[_Specimen]:
    """Read the file line by line."""
    found: list[_Specimen] = []
    number = 0
    try:
        with path.open(encoding="utf-8-sig") as stream:
            for number, raw in enumerate(stream, start=1):
                line = raw.strip()
                if not line:
                    continue
                open_now = bool(found) and len(found[-1].points) < found[-1].size
                if "=" in line:
                    if open_now:
                        raise _unfinished(path, found[-1])
                    _take_word(path, found, line, number)
                elif open_now:
                    found[-1].points.append(_point(path, line, number))
                else:
                    raise bad_file(
                        path,
                        "line {number} is neither a landmark that was announced nor NAME=value.",
                        number=Public(number),
                    )
    except UnicodeDecodeError:
        raise bad_file(path, "after line {number} it is not UTF-8. Save it as UTF-8.", number=Public(number)) from None
    if found and len(found[-1].points) < found[-1].size:
        raise _unfinished(path, found[-1])
    return found


def _take_word(path: pathlib.Path, found: list[_Specimen], line: str, number: int) -> None:
    """Take a line NAME=value."""
    name, value = (part.strip() for part in line.split("=", 1))
    name = name.upper()
    if name in _REFUSED:
        raise bad_file(
            path, "line {number} announces {refused}.", number=Public(number), refused=Public(_REFUSED[name])
        )
    if name == "LM":
        if not _COUNT.fullmatch(value):
            raise bad_file(
                path,
                "line {number} has no whole number of landmarks above 0 after LM=. Repair it.",
                number=Public(number),
            )
        found.append(_Specimen(number, int(value)))
    elif not found:
        raise bad_file(
            path,
            "line {number} says something of a specimen before the first LM=. Move it below.",
            number=Public(number),
        )
    elif name == "SCALE":
        scale = _number(path, value, number)
        if not (math.isfinite(scale) and scale > 0):
            raise bad_file(path, "line {number} has no number above 0 after SCALE=. Repair it.", number=Public(number))
        found[-1].scale = scale
    elif name in ("ID", "IMAGE"):
        if value and value.casefold() in MISSING_WORDS:
            raise bad_file(
                path,
                "line {number} has a word such as NA after {name}=. Write a name, or remove the line.",
                number=Public(number),
                name=name,
            )
        found[-1].said[name] = value


def _point(path: pathlib.Path, line: str, number: int) -> tuple[float, float]:
    """Return the two coordinates of a landmark."""
    parts = line.split()
    if len(parts) != 2:
        raise bad_file(
            path,
            "line {number} has {n_parts} numbers where a landmark has x and y. Repair it.",
            number=Public(number),
            n_parts=Public(len(parts)),
        )
    return _number(path, parts[0], number), _number(path, parts[1], number)


def _number(path: pathlib.Path, text: str, number: int) -> float:
    try:
        return math.nan if text.casefold() in _MISSING else float(text)
    except ValueError:
        # Without the cause: its message has the entry in it.
        raise bad_file(
            path, "line {number} has something that is no number. Write a decimal point.", number=Public(number)
        ) from None


def _unfinished(path: pathlib.Path, specimen: _Specimen) -> Exception:
    return bad_file(
        path,
        "the specimen at line {line} announces {size} landmarks and has {n_points}. Complete or remove it.",
        line=Public(specimen.line),
        size=Public(specimen.size),
        n_points=Public(len(specimen.points)),
    )
