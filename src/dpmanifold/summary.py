"""What results say of themselves: facts as text and as a table for people, and as JSON for machines."""

from __future__ import annotations

import html
import io
import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.table import Table

# Characters in a line of a table.
_WIDTH = 92


def told(compute: Callable[[], Any]) -> Any:
    """Return what follows from a release as JSON can hold it: None for a number that is none. Never raises.

    >>> told(lambda: np.array([0.5, np.inf])), told(lambda: "privacy"), told(lambda: 1 / 0)
    ([0.5, None], 'privacy', None)
    """
    try:
        return json_safe(compute())
    except Exception:  # whatever was released, the record of it must be written
        return None


def all_told(thing: object, *names: str) -> dict[str, Any]:
    """Return attributes by name, as :func:`told` returns them."""
    return {name: told(partial(getattr, thing, name)) for name in names}


def json_safe(found: Any) -> Any:
    """Return what JSON can hold: numbers that are none become None, and arrays lists.

    >>> json_safe({"error": np.inf, "exact": True, "ends": np.array([0.5, 1.0])})
    {'error': None, 'exact': True, 'ends': [0.5, 1.0]}
    """
    if found is None or isinstance(found, (bool, str, int)):
        return found
    if isinstance(found, dict):
        return {name: json_safe(entry) for name, entry in found.items()}
    if isinstance(found, (list, tuple)) or np.ndim(found):
        return [json_safe(entry) for entry in found]
    return float(found) if math.isfinite(found) else None


def array_text(array: Any, digits: int = 5) -> str:
    """Return an array for people: rounded, and shortened if it is long; without powers of ten where it can do without.

    >>> array_text([1.0, 2e-7]), array_text([1e-6, 2e-7])
    ('[1. 0.]', '[1.e-06 2.e-07]')
    """
    array = np.asarray(array)
    plain = array.size > 0 and bool(10.0 ** (2 - digits) <= np.abs(array).max() < 1e6)
    return np.array2string(array, precision=digits, threshold=30, suppress_small=plain)


def table_text(table: Table) -> str:
    """Return a table as plain text, the same everywhere: rich would show it by itself in a notebook.

    >>> from rich.table import Table
    >>> print(table_text(Table("error", "0.1", box=None)), end="")
    error 0.1
    """
    from rich.console import Console

    page = io.StringIO()
    Console(file=page, width=_WIDTH, force_jupyter=False, force_terminal=False, color_system=None).print(table)
    return page.getvalue()


def facts_text(title: str, private: bool, facts: list[tuple[str, str]]) -> str:
    """Return facts as text for terminals; further lines of a fact stand below its first."""
    mark = "" if private else " -- NOT PRIVATE (seeded, revealed or of public data)"
    rows = [f"  {name:<12} {text}".replace("\n", "\n" + 15 * " ") for name, text in facts]
    return "\n".join([title + mark, *rows])


def facts_table(title: str, private: bool, facts: list[tuple[str, str]]) -> str:
    """Return facts as an HTML table for notebooks."""
    rows = "".join(f"<tr><th>{html.escape(a)}</th><td><pre>{html.escape(b)}</pre></td></tr>" for a, b in facts)
    mark = "" if private else " <b>NOT PRIVATE</b>"
    return f"<table><caption>{html.escape(title)}{mark}</caption>{rows}</table>"
