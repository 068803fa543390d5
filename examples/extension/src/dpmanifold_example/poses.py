"""A format of files: who, doing what, where, and how turned, one pose a line, as trackers write them.

A line is `who task x y z qx qy qz qw`; what follows a # is a comment. It is the TUM trajectory format with two
words in the place of the time. Trackers write the real part of a quaternion last, :class:`Rotations` takes it first.
"""

import numpy as np

from dpmanifold.data import DataFile
from dpmanifold.errors import InvalidArgumentError, InvalidDataError

PARTS = {"rotation": [6, 3, 4, 5], "position": [0, 1, 2]}
"""Where the numbers of records stand in a line, behind the words."""
WORDS = ["who", "task"]


class PosesFile(DataFile):
    """Lines "who task x y z qx qy qz qw"."""

    suffixes = (".poses",)
    options = ("columns",)
    names = WORDS

    def __init__(self, path):
        super().__init__(path)
        self._lines = []
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            entries = line.partition("#")[0].split()
            if len(entries) == 9:
                self._lines.append(entries)
            elif entries:
                fault = "{file}: line {line} has not nine entries. Repair it."  # and quotes nothing of it
                raise InvalidDataError(fault, file=path.name, line=number)

    def array(self, columns=None):
        """Return poses (n, 7), points of Product([Rotations(), Euclidean(3)]); or the parts that are asked for."""
        parts = [columns] if isinstance(columns, str) else columns or list(PARTS)
        if not set(parts) <= PARTS.keys():
            raise InvalidArgumentError("`columns` of {file} must be rotation or position.", file=self.path.name)
        numbers = np.array([[_number(entry) for entry in entries[2:]] for entries in self._lines]).reshape(-1, 7)
        return np.hstack([numbers[:, PARTS[part]] for part in parts])

    def column(self, name=None, text=False, labels=False):
        """Return who each pose is of, or what they did."""
        if name not in WORDS:
            raise InvalidArgumentError("column of {file} must be who or task.", file=self.path.name)
        return np.array([entries[WORDS.index(name)] for entries in self._lines])


def _number(entry):
    """Return a number, NaN for what is none: what becomes of it is for the call to say, not for the reader."""
    try:
        return float(entry)
    except ValueError:
        return np.nan
