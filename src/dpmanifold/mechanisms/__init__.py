"""The mechanisms: one file each, one registry (theory section 5)."""

from dpmanifold.mechanisms.base import Calibration, Forecast, Mechanism
from dpmanifold.mechanisms.profiles import profile_of
from dpmanifold.mechanisms.registry import MECHANISMS, attempt, choose, get

__all__ = ["MECHANISMS", "Calibration", "Forecast", "Mechanism", "attempt", "choose", "get", "profile_of"]
