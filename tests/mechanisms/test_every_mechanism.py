"""Every mechanism of the library obeys the laws; one that is registered later is tested by being there."""

from dpmanifold.mechanisms import MECHANISMS
from laws.mechanism_laws import MechanismLaws

for _name in MECHANISMS:
    _title = "Test" + "".join(part.capitalize() for part in _name.split("-"))
    globals()[_title] = type(_title, (MechanismLaws,), {"name": _name})
