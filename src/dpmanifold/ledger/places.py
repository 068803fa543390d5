"""Where the parts of a ledger lie: its database, its witness and its key, from what was given and what was stored."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn, final

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.storage.sqlite import LOCKS


@final
@dataclass(frozen=True)
class Places:
    """What was given when a ledger was opened: paths in full, so that they mean the same wherever it is opened again.

    Attributes
    ----------
    where : a path, or an address with "://"
    witness, secret : paths; None where they were not given

    Examples
    --------
    >>> Places.of("/study/ledger.db").secret_path("ledger.db.witness").name
    'ledger.db.key'
    """

    where: str
    witness: str | None
    secret: str | None

    @staticmethod
    def of(
        where: str | os.PathLike[str],
        witness: str | os.PathLike[str] | None = None,
        secret: str | os.PathLike[str] | None = None,
    ) -> Places:
        """Read what was given."""
        if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
            raise InvalidArgumentError(f"where must be a path, or an address with ://, got {shown(where)}.")
        text = os.fspath(where)
        if "://" not in text and os.path.islink(text) and not os.path.exists(text):
            raise LedgerError(
                f"{text} is a link to {os.path.realpath(text)}, which is not there. Mount its volume, or restore it."
            )
        # Links are followed: whatever belongs to a file lies beside it, by whichever name it is opened.
        return Places(text if "://" in text else os.path.realpath(text), _full(witness), _full(secret))

    @property
    def is_address(self) -> bool:
        """Whether it is an address, not a path."""
        return "://" in self.where

    def new_witness(self) -> str:
        """Return what to store as the witness of a new ledger: a bare name lies beside the database, wherever it is."""
        if self.witness is not None:
            return self.witness
        if self.is_address:
            raise InvalidArgumentError(
                "witness must be given for a ledger on a server: the path of a file that all who write can reach, on "
                "another volume than the database."
            )
        return pathlib.Path(self.where).name + ".witness"

    def witness_path(self, stored: str) -> pathlib.Path:
        """Return where the witness is, given what was stored; refuse if another one was given."""
        path = pathlib.Path(stored) if self.is_address else pathlib.Path(self.where).parent / stored
        if self.witness is not None and os.path.realpath(self.witness) != os.path.realpath(path):
            raise LedgerError(
                f"the witness of this ledger is {path}, got {self.witness}. It was chosen when the ledger was made: "
                "leave it out."
            )
        return path

    def secret_path(self, stored: str) -> pathlib.Path:
        """Return where the key of fingerprints is: as given, or beside the database, or else beside the witness."""
        if self.secret is not None:
            return pathlib.Path(self.secret)
        beside = self.witness_path(stored) if self.is_address else pathlib.Path(self.where)
        return beside.with_name(beside.name.removesuffix(".witness") + ".key")

    @property
    def locks_path(self) -> pathlib.Path:
        """Where a ledger in a file has the locks of those at work."""
        return pathlib.Path(self.where + LOCKS)

    def refuse_remains(self) -> None:
        """Refuse to make a ledger where there is none any more: others of its files lie there without the database."""
        if self.is_address:
            return
        witness = self.new_witness()
        parts = [self.witness_path(witness), self.secret_path(witness), self.locks_path]
        parts += [pathlib.Path(self.where + end) for end in ("-wal", "-shm")]
        # Looked for before the database is: whoever makes a ledger at this moment makes the database first.
        left = [path for path in parts if os.path.lexists(path)]
        if left and not os.path.lexists(self.where):
            self.refuse_as_gone(left)

    def refuse_remains_of_creation(self) -> None:
        """Refuse to begin a ledger where other files tell that there was one.

        A creation that was cut short leaves an empty witness, and perhaps a key that no entry names: these are taken.
        A key without such a witness, a witness with lines and locks are of a ledger that was here.
        """
        stored = self.new_witness()
        witness, secret = self.witness_path(stored), self.secret_path(stored)
        lines = witness.exists() and witness.stat().st_size > 0
        telling = [(witness, lines), (secret, lines or not witness.exists()), (self.locks_path, not self.is_address)]
        left = [path for path, tells in telling if tells and os.path.lexists(path)]
        if left:
            self.refuse_as_gone(left)

    def refuse_as_gone(self, left: Sequence[pathlib.Path]) -> NoReturn:
        """Say that a ledger was here, by what is left of it."""
        where = "the database has no ledger" if self.is_address else f"the database {self.where} is gone"
        raise LedgerError(
            f"{where}, or was never there, while files of a ledger are: {', '.join(map(str, left))}. A new database "
            "would forget what was spent. Mount its volume, or restore it from a backup and reconcile it with the "
            "witness (dpm ledger reconcile). If the files are another ledger's, give other names. To begin anew, "
            "knowing that all that was spent is forgotten, remove them."
        )


def _full(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.abspath(os.fspath(path))
