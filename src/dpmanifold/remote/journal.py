"""What was asked and not answered yet, on this machine's disk: a request that is asked again keeps its key.

A key is written down, and on the disk, before the request under it is sent. Whatever happens from then on (a broken
connection, Ctrl-C, a power cut), the same call finds the key of its request again, and the service answers a key once.
When the answer has been handed over, the request is closed, and the same call is a new release under a new key.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import sync_folder
from dpmanifold.privacy.budget_accounts import checked_text, random_key

_WAIT = 30.0  # seconds for another process that is writing
_TABLE = """CREATE TABLE IF NOT EXISTS requests
(key TEXT PRIMARY KEY, hash TEXT NOT NULL, request TEXT NOT NULL, answered INTEGER NOT NULL DEFAULT 0)"""


@dataclass(frozen=True)
class Noted:
    """A request that was written down.

    Attributes
    ----------
    key : under which it was sent, or would have been
    request : which data set was asked what
    answered : whether the answer was handed over
    """

    key: str
    request: dict[str, Any]
    answered: bool


class Journal:
    """The requests of one account of one service; processes and threads may share it.

    Examples
    --------
    >>> import tempfile
    >>> journal = Journal(pathlib.Path(tempfile.mkdtemp()) / "requests.sqlite")
    >>> key = journal.key_for({"dataset": "cohort/dti"})
    >>> journal.key_for({"dataset": "cohort/dti"}) == key
    True
    >>> journal.answered(key)
    >>> journal.key_for({"dataset": "cohort/dti"}) == key
    False
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)

    @staticmethod
    def of(url: str, account: str) -> Journal:
        """Return the journal of an account; a new token does not change it."""
        name = hashlib.sha256(f"{url}\n{account}".encode()).hexdigest()[:16]
        return Journal(state_folder() / f"requests-{name}.sqlite")

    def key_for(self, request: Mapping[str, Any], key: str | None = None) -> str:
        """Return the key to send a request under: on the disk when this returns.

        Parameters
        ----------
        request : which data set is asked what
        key : one that the user gives, which wins; else that of the same request which is not answered yet, or a new one
        """
        text = json.dumps(request, sort_keys=True, separators=(",", ":"), allow_nan=False)
        digest = hashlib.sha256(text.encode("utf-8")).hexdigest()
        with self._writing() as book:
            if key is None:
                known = book.execute(
                    "SELECT key FROM requests WHERE hash = ? AND NOT answered ORDER BY rowid", (digest,)
                ).fetchone()
                if known is not None:
                    return str(known[0])
            chosen = random_key() if key is None else checked_text(key, "key")
            # A key that was given before is open again until its answer has been handed over once more.
            book.execute(
                "INSERT INTO requests (key, hash, request) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET answered = 0 WHERE hash = excluded.hash",
                (chosen, digest, text),
            )
            return chosen

    def answered(self, key: str) -> None:
        """Say that the answer under a key was handed over."""
        with self._writing() as book:
            book.execute("UPDATE requests SET answered = 1 WHERE key = ?", (key,))

    def find(self, key: str) -> Noted | None:
        """Return what was written down under a key."""
        with self._writing() as book:
            row = book.execute("SELECT key, request, answered FROM requests WHERE key = ?", (key,)).fetchone()
        return None if row is None else Noted(row[0], json.loads(row[1]), bool(row[2]))

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """Open the file for one transaction, alone; what was written is on the disk when the block has ended."""
        try:
            self._prepare()
            book = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
            try:
                for setting in ("synchronous = EXTRA", "fullfsync = 1", "journal_mode = DELETE"):
                    book.execute(f"PRAGMA {setting}")
                book.execute("BEGIN EXCLUSIVE")
                book.execute(_TABLE)
                yield book
                book.execute("COMMIT")
            finally:
                book.close()
        except (OSError, sqlite3.Error) as problem:
            raise InvalidArgumentError(
                f"the journal {self.path} cannot be written ({problem}), and without it a lost answer could be paid "
                "for twice: nothing was sent. Make its folder writable, or name another one in XDG_STATE_HOME."
            ) from None

    def _prepare(self) -> None:
        """Make the file where there is none, for its owner alone."""
        if self.path.exists():
            return
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        sync_folder(self.path.parent)


def state_folder() -> pathlib.Path:
    """Return where programs keep what is to outlive them."""
    return _home("XDG_STATE_HOME", ".local/state")


def settings_folder() -> pathlib.Path:
    """Return where programs keep what users set."""
    return _home("XDG_CONFIG_HOME", ".config")


def _home(variable: str, usual: str) -> pathlib.Path:
    said = os.environ.get(variable, "")
    return (pathlib.Path(said) if os.path.isabs(said) else pathlib.Path.home() / usual) / "dpmanifold"
