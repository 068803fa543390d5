"""A format in one file: names and places of atoms, as chemists write them (a count, a comment, then a line each)."""

import numpy as np

from dpmanifold.data import DataFile
from dpmanifold.errors import InvalidDataError


class XyzFile(DataFile):
    """Lines "name x y z" below two lines of heading."""

    suffixes = (".xyz",)
    names = ("name",)

    def __init__(self, path):
        super().__init__(path)
        self._lines = [line.split() for line in path.read_text().splitlines()[2:]]
        if any(len(line) != 4 for line in self._lines):
            raise InvalidDataError(f"{path.name}: a line has not the four entries name, x, y, z. Repair it.")

    def array(self):
        return np.array([[float(entry) for entry in line[1:]] for line in self._lines])

    def column(self, name=None, text=False, labels=False):
        return super().column(name) if name not in (None, "name") else np.array([line[0] for line in self._lines])
