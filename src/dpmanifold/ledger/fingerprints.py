"""Fingerprints of data: which version of them a release was about, told to nobody who does not hold the key.

A plain hash would be a gift to whoever knows all records but one: try every value of the last, compare the hash. Under
a key of 32 random bytes (HMAC-SHA256) a fingerprint tells two versions apart and nothing else, as long as the key stays
with the curator: entries, receipts, the witness and exports have fingerprints, and neither the key nor any other hash
of records.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import hmac
import io
import os
import pathlib
import secrets
import stat
import sys
from collections.abc import Iterable
from typing import NoReturn

from dpmanifold.errors import LedgerError
from dpmanifold.files import sync_file, sync_folder

KEY_BYTES = 32
_MODE = 0o600
# What is made under one key for different ends starts differently, so that none can be taken for another.
_OF_DATA, _OF_KEY = b"dpmanifold fingerprint 1\n", b"dpmanifold key 1\n"


def new_key(path: str | os.PathLike[str]) -> bytes:
    """Make a key, write it to a new file that only its owner can read (mode 0600), and return it.

    Parameters
    ----------
    path : of a file that does not exist. Keep a copy of it in a safe place: without it no data are recognised again

    Examples
    --------
    >>> import tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "study.key"
    >>> key = new_key(path)
    >>> read_key(path) == key, oct(path.stat().st_mode & 0o777)
    (True, '0o600')
    """
    target = pathlib.Path(path)
    try:
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except OSError as problem:
        _refuse(target, f"cannot be made: {problem.strerror}. Give a new name in a folder that can be written to.")
    key = secrets.token_bytes(KEY_BYTES)
    try:
        with io.FileIO(handle, "w"):
            if os.write(handle, key) < KEY_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            sync_file(handle)
        sync_folder(target.parent)
    except OSError as problem:
        with contextlib.suppress(OSError):
            target.unlink()
        _refuse(target, f"cannot be written: {problem.strerror}. Make room.")
    return key


def read_key(path: str | os.PathLike[str], *, own: bool = False) -> bytes:
    """Return the key of a file; refuse a file that others can read, and one that holds no key.

    Parameters
    ----------
    path : of the file
    own : whether to refuse a file that belongs to somebody else, who then knows the key: before a ledger has one. Later
        the ledger tells its key from others
    """
    target = pathlib.Path(path)
    try:
        with target.open("rb") as file:
            found, status = file.read(KEY_BYTES + 1), os.fstat(file.fileno())
    except FileNotFoundError:
        _refuse(target, "is missing. Put it back from where a copy is kept: without it no data are recognised.")
    except OSError as problem:
        _refuse(target, f"cannot be read: {problem.strerror}. Whoever registers or opens data needs it; others do not.")
    mode = status.st_mode
    # Windows knows no such modes; there the folder's rights decide.
    if own and sys.platform != "win32" and status.st_uid != os.geteuid():
        _refuse(
            target, f"belongs to another user (number {status.st_uid}), who knows it. Remove it: a new one is made."
        )
    if sys.platform != "win32" and stat.S_IMODE(mode) & 0o077:
        _refuse(
            target,
            f"can be read by others than its owner (mode {stat.S_IMODE(mode):04o}): with it they could test guesses "
            f"about records. Run: chmod 600 {target}",
        )
    if len(found) != KEY_BYTES:
        _refuse(target, f"holds no key: it must have {KEY_BYTES} bytes. Put the right file there.")
    return found


def fingerprint(key: bytes, content: Iterable[bytes]) -> str:
    """Return HMAC-SHA256 of content under a key, 64 hex digits. How the content is cut does not matter.

    Parameters
    ----------
    key : 32 bytes, see :func:`read_key`
    content : bytes, piece by piece; only one piece is in memory at a time

    Examples
    --------
    >>> key, another = bytes(32), bytes(31) + b"x"
    >>> fingerprint(key, [b"one", b"two"]) == fingerprint(key, [b"onetwo"]) != fingerprint(another, [b"onetwo"])
    True
    """
    found = hmac.new(key, _OF_DATA, hashlib.sha256)
    for piece in content:
        found.update(piece)
    return found.hexdigest()


def key_check(key: bytes, ledger: str) -> str:
    """Return what a ledger remembers of its key: enough to notice another one, and nothing about the key itself.

    With another key all data would look changed, and every release of registered data would be paid for and lost.

    Examples
    --------
    >>> key_check(bytes(32), "a-ledger") == key_check(bytes(32), "another")
    False
    """
    return hmac.new(key, _OF_KEY + ledger.encode("utf-8"), hashlib.sha256).hexdigest()


def _refuse(path: pathlib.Path, fault: str) -> NoReturn:
    raise LedgerError("the key of fingerprints {path} {fault}", path=path, fault=fault)
