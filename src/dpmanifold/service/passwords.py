"""Passwords, stored as Argon2id hashes: slow and large on purpose, so only so many are worked on at once."""

from __future__ import annotations

import contextlib
import secrets
import threading
import unicodedata
from collections.abc import Iterator
from typing import final

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service.errors import TooMany

SHORTEST = 12
"""Characters of a password; there is no other rule."""

ROUNDS, MEMORY, LANES = 3, 64 * 1024, 4
"""The work of one hash: passes, KiB and parallel lanes; the second recommendation of RFC 9106."""

AT_ONCE = 2
_PATIENCE = 10  # seconds that somebody waits for their turn


@final
class Passwords:
    """Makes and verifies hashes, at most two at a time: 128 MiB, however many knock.

    Examples
    --------
    >>> passwords = Passwords()
    >>> stored = passwords.hash("correct horse battery")
    >>> passwords.holds(stored, "correct horse battery"), passwords.holds(stored, "another password")
    (True, False)
    >>> passwords.holds(None, "correct horse battery")
    False
    """

    def __init__(self) -> None:
        self._hasher = PasswordHasher(time_cost=ROUNDS, memory_cost=MEMORY, parallelism=LANES, type=Type.ID)
        self._slots = threading.BoundedSemaphore(AT_ONCE)
        # Of a secret that nobody has: what is verified where there is no account, so that it takes as long.
        self._nobody = self._hasher.hash(secrets.token_bytes(32))

    def hash(self, password: str) -> str:
        """Return what is stored of a password, or refuse a short one."""
        text = _normal(password)
        if len(text) < SHORTEST:
            raise InvalidArgumentError(
                f"password must have at least {SHORTEST} characters, got {len(text)}. Several words are easy to keep."
            )
        with self._turn():
            return self._hasher.hash(_bytes(text))

    def holds(self, stored: str | None, password: str) -> bool:
        """Return whether a password is the one that was stored; the same work where none was."""
        with self._turn():
            try:
                self._hasher.verify(self._nobody if stored is None else stored, _bytes(_normal(password)))
            except (VerificationError, InvalidHashError):
                return False
        return stored is not None

    def renewed(self, stored: str, password: str) -> str | None:
        """Return a new hash of a password that holds, where the stored one was made with other work; None else."""
        if not self._hasher.check_needs_rehash(stored):
            return None
        with self._turn():
            return self._hasher.hash(_bytes(_normal(password)))

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        if not self._slots.acquire(timeout=_PATIENCE):
            raise TooMany("Too many people sign in at once. Try again in a moment.", retry_after=_PATIENCE)
        try:
            yield
        finally:
            self._slots.release()


def _normal(password: object) -> str:
    """Return a password as it is compared: a letter with an accent is the same however a keyboard composes it."""
    if not isinstance(password, str):
        raise InvalidArgumentError("password must be a text.")
    return unicodedata.normalize("NFC", password)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
