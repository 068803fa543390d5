"""What went wrong with records, for whoever holds them: files of the vault that its owner alone can read."""

from __future__ import annotations

import contextlib
import os
import pathlib

from dpmanifold.service import tables

NOTICES = "notices"
"""The folder of the vault."""


def write_notice(vault: pathlib.Path, name: str, text: str) -> str:
    """Write a notice about a release or a registration, and return where in the vault.

    That it cannot be written changes nothing.

    Parameters
    ----------
    vault : the worker's folder
    name : the id of what it is about, after registration- where it is one
    text : what may describe records
    """
    folder = vault / NOTICES
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(folder / f"{name}.txt", flags, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{tables.now()} {text}\n")
    return f"{NOTICES}/{name}.txt"


__all__ = ["NOTICES", "write_notice"]
