"""The mechanisms: one file each, one registry (theory section 5)."""

from dpmanifold.mechanisms.base import Calibration, Forecast, Mechanism
from dpmanifold.mechanisms.registry import (
    ESTIMANDS,
    MECHANISMS,
    attempt,
    candidates,
    checked_estimand,
    choose,
    get,
    preference,
    profile_of,
    usual,
)

__all__ = [
    "ESTIMANDS",
    "MECHANISMS",
    "Calibration",
    "Forecast",
    "Mechanism",
    "attempt",
    "candidates",
    "checked_estimand",
    "choose",
    "get",
    "preference",
    "profile_of",
    "usual",
]
