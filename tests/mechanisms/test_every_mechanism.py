"""Every mechanism of the library obeys the laws; one that is added later is tested by being there."""

from dpmanifold.mechanisms import MECHANISMS
from laws.mechanism_laws import MechanismLaws

for _mechanism in MECHANISMS.own():
    _title = "Test" + "".join(part.capitalize() for part in _mechanism.name.split("-"))
    globals()[_title] = type(_title, (MechanismLaws,), {"name": _mechanism.name})


def test_all_of_them_are_here():
    assert sum(name.startswith("Test") for name in globals()) >= 14
