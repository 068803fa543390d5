"""A source in one file: runs of an instrument that were logged one after the other, each a list of records."""

import numpy as np

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.sources import Block, Piece, Source


class Log:
    """What another package hands its users: the runs, and who made each of them."""

    def __init__(self, runs, people):
        self.runs, self.people = runs, people


class RunPiece(Piece):
    """One run."""

    def __init__(self, number, run, person):
        self.name, self.rows = f"run {number}", len(run)
        self._run, self._person = run, person

    def blocks(self):
        """Yield the records, with who made them."""
        units = None if self._person is None else np.full(len(self._run), self._person)
        yield Block(np.asarray(self._run), units)


class LogSource(Source):
    """Records in the order of the runs; `units="person"` is who made the run."""

    def __init__(self, log):
        self._log = log

    @property
    def rows(self):
        """How many records there are."""
        return sum(map(len, self._log.runs))

    def bound(self, space, units=None, labels=None):
        """Return the pieces."""
        if units not in (None, "person") or labels is not None:
            raise InvalidArgumentError('units must be "person" for a log, which has no labels.')
        people = self._log.people if units == "person" else [None] * len(self._log.runs)
        return [RunPiece(i, *one) for i, one in enumerate(zip(self._log.runs, people, strict=True))]


def log_source(X):
    """Return a log as a source, and None of everything else."""
    return LogSource(X) if isinstance(X, Log) else None
