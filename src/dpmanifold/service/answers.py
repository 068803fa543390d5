"""What was released, as the service keeps it: its receipt is found without rebuilding the rest."""

from __future__ import annotations

import json
from typing import Any


def receipt_in(stored: bytes) -> dict[str, Any] | None:
    """Return the receipt that an answer carries, without rebuilding it: all of its releases have the same one."""
    return _receipt(json.loads(stored))


def _receipt(record: Any) -> dict[str, Any] | None:
    if isinstance(record, dict):
        found = record.get("receipt")
        if isinstance(found, dict):
            return found
    inner = record.values() if isinstance(record, dict) else record if isinstance(record, list) else ()
    return next((found for found in map(_receipt, inner) if found is not None), None)
