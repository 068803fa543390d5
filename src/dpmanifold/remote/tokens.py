"""Where tokens come from: the call, the environment, or a file that only its owner reads. They are never shown."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import tempfile
import tomllib
from typing import Any

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import sync_file, sync_folder
from dpmanifold.remote.journal import settings_folder

VARIABLE = "DPM_TOKEN"


def tokens_file() -> pathlib.Path:
    """Return the file that `dpm remote login` writes."""
    return settings_folder() / "tokens.toml"


def token_for(url: str, token: str | None) -> tuple[str, str | None]:
    """Return the token for a service (the given one, the environment's, the file's) and certificates stored with it.

    Parameters
    ----------
    url : as :func:`~dpmanifold.remote.transport.checked_url` returns it
    token : where it is given
    """
    if token:
        return token, None
    stored = known_services().get(url, {})
    found = os.environ.get(VARIABLE) or stored.get("token")
    if not found:
        raise InvalidArgumentError(
            f"token is missing for {url}: make one on the service's account page, and store it with dpm remote login "
            f"{url}; or give token=, or set {VARIABLE}."
        )
    return str(found), stored.get("ca")


def known_services() -> dict[str, dict[str, Any]]:
    """Return what the file says, by address; nothing where there is none."""
    path = tokens_file()
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise InvalidArgumentError(f"{path} holds tokens and can be read by others. Run: chmod 600 {path}")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError):  # whose messages could quote a token
        raise InvalidArgumentError(f"{path} is no TOML. Remove it, and store tokens with dpm remote login.") from None
    return {url: entry for url, entry in found.items() if isinstance(entry, dict)}


def store(url: str, token: str, ca: str | None = None) -> pathlib.Path:
    """Write the token of a service into the file, for its owner alone, whole or not at all."""
    path = tokens_file()
    known = {**known_services(), url: {"token": token} | ({} if ca is None else {"ca": ca})}
    # Texts of JSON are texts of TOML.
    tables = [
        "\n".join([f"[{json.dumps(name)}]", *(f"{key} = {json.dumps(str(value))}" for key, value in entry.items())])
        for name, entry in known.items()
    ]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # which makes files of mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n\n".join(tables) + "\n")
            file.flush()
            sync_file(file.fileno())
        os.replace(beside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise
    sync_folder(path.parent)
    return path
