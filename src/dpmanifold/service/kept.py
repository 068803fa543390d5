"""Registered data in the service: what is public about them is known here, and who may open them is another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, final

from dpmanifold.errors import LedgerError
from dpmanifold.ledger import Population
from dpmanifold.ledger.datasets import DataSet, InLedger
from dpmanifold.stats.registered_data import Opened


class Columns(NamedTuple):
    """Records as they lie in the vault, with who owns each, its class and its covariate. NOT PRIVATE."""

    records: object
    units: object = None
    labels: object = None
    covariate: object = None


Opener = Callable[[], Columns]
"""Opens the canonical files of a data set; called after the spend."""


@final
class Kept(InLedger):
    """A registered data set of a population.

    Parameters
    ----------
    population : where it is registered
    known : what the ledger has about it
    opener : opens its canonical files; None for a process that cannot, which plans and pays alone
    """

    def __init__(self, population: Population, known: DataSet, opener: Opener | None = None) -> None:
        super().__init__(population, known)
        self._opener = opener

    def check(self) -> None:
        """Refuse single records of people who have several; where records can be opened, also a missing key."""
        super().check()
        if self._opener is not None:
            self._whose.fingerprint(lambda: [b""])

    def open(self) -> Opened:
        """Open the canonical files, and compare them with what was registered."""
        if self._opener is None:
            raise LedgerError("the records are another process's to open.")
        columns = self._opener()
        given = {name: value for name, value in columns._asdict().items() if name != "records" and value is not None}
        return self._whose.dataset(self.name, columns.records, version=self.version, **given).open()
