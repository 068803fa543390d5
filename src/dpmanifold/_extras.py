"""Packages that the bare install does not bring. A leaf: imported where one of them is first needed."""

from __future__ import annotations

import importlib
from typing import Any

from dpmanifold.errors import MissingPackageError


def optional_module(name: str, extra: str, purpose: str) -> Any:
    """Import a module, or say which extra of dpmanifold brings it.

    Examples
    --------
    >>> optional_module("no_such_module", "plots", "this picture")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.MissingPackageError: this picture needs a package that is not installed.
    Run: pip install "dpmanifold[plots]".
    """
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingPackageError(
            f'{purpose} needs a package that is not installed. Run: pip install "dpmanifold[{extra}]".'
        ) from None
