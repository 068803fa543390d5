"""Keys that only their owner reads, and fingerprints that do not depend on how content is cut."""

from __future__ import annotations

import hashlib
import os
import pathlib

import pytest

from dpmanifold.errors import LedgerError
from dpmanifold.ledger.fingerprints import KEY_BYTES, fingerprint, key_check, new_key, read_key

pytestmark = pytest.mark.security


def test_a_key_is_random_and_its_owners_alone(tmp_path: pathlib.Path) -> None:
    old = os.umask(0)
    try:
        one, other = new_key(tmp_path / "one"), new_key(tmp_path / "other")
    finally:
        os.umask(old)
    assert len(one) == KEY_BYTES
    assert one != other
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o600
    assert read_key(tmp_path / "one") == one


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o610])
def test_a_key_that_others_can_read_is_refused(tmp_path: pathlib.Path, mode: int) -> None:
    new_key(tmp_path / "key")
    (tmp_path / "key").chmod(mode)
    with pytest.raises(LedgerError, match=rf"mode {mode:04o}.*chmod 600"):
        read_key(tmp_path / "key")
    (tmp_path / "key").chmod(0o400)
    read_key(tmp_path / "key")


def test_what_is_no_key_is_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "key"
    with pytest.raises(LedgerError, match="is missing"):
        read_key(path)
    for length in (0, 31, 33):
        path.write_bytes(bytes(length))
        path.chmod(0o600)
        with pytest.raises(LedgerError, match="must have 32 bytes"):
            read_key(path)
    with pytest.raises(LedgerError, match="cannot be made: File exists"):
        new_key(path)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")  # a name that somebody left there
    with pytest.raises(LedgerError, match="cannot be made"):
        new_key(path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_key_that_could_not_be_written_leaves_no_file(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(LedgerError, match="No space left"):
        new_key(tmp_path / "key")
    assert list(tmp_path.iterdir()) == []


def test_a_fingerprint_is_keyed_and_only_content_counts() -> None:
    key, content = os.urandom(32), os.urandom(1000)
    whole = fingerprint(key, [content])
    assert all(fingerprint(key, [content[:cut], b"", content[cut:]]) == whole for cut in (0, 1, 63, 64, 999))
    assert fingerprint(os.urandom(32), [content]) != whole
    assert fingerprint(key, [content[:-1]]) != whole
    # The wrong way: anybody who has the content can make this one.
    assert hashlib.sha256(content).hexdigest() != whole
    assert fingerprint(key, [b"a-ledger"]) != key_check(key, "a-ledger")
    assert key_check(key, "a-ledger") != key_check(os.urandom(32), "a-ledger")
