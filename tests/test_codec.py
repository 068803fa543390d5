"""Results are written and read by the fields that they declare."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from dpmanifold.codec import from_record, to_record
from dpmanifold.errors import InvalidDataError

pytestmark = pytest.mark.security


@dataclass(frozen=True)
class Everything:
    """One field of every type that a result may declare."""

    number: float
    count: int
    flag: bool
    text: str
    maybe: float | None
    pair: tuple[float, float]
    many: tuple[int, ...]
    names: tuple[Any, ...]
    by_name: Mapping[Any, float]

    format = "everything 1"

    def answers(self):
        return {"twice": 2 * self.number}

    def to_dict(self):
        return to_record(self)


HONEST = Everything(0.5, 3, True, "text", None, (1.0, 2.0), (1, 2, 3), ("a", 2), {"a": 1.0, 2: 3.0})


def written():
    return json.loads(json.dumps(to_record(HONEST)))


def test_what_is_written_is_read():
    assert from_record(Everything, written()) == HONEST
    record = {name: entry for name, entry in written().items() if name != "answers"}
    assert from_record(Everything, record) == HONEST


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("format", "another 1"),
        ("number", "0.5"), ("number", True), ("number", None), ("number", float("nan")),
        ("count", 3.0), ("count", True), ("flag", 1), ("text", 7), ("text", "bell\a"), ("maybe", "none"),
        ("pair", [1.0]), ("pair", [1.0, 2.0, 3.0]), ("pair", {"low": 1.0}), ("many", [1, 2.5]), ("many", 3),
        ("names", [["a"]]), ("names", [None]), ("by_name", {"a": 1.0}), ("by_name", [1.0]), ("by_name", [1.0, "3"]),
        ("classes", ["a"]), ("classes", ["a", "a"]), ("classes", ["a", None]), ("classes", "a2"),
        ("answers", {"twice": 1.5}), ("more", 1),
    ],
)  # fmt: skip
def test_what_no_field_declares_is_refused(field, value):
    with pytest.raises(InvalidDataError):
        from_record(Everything, {**written(), field: value})


@pytest.mark.parametrize("field", [name for name in written() if name != "answers"])
def test_a_field_that_is_missing_is_refused(field):
    record = written()
    del record[field]
    with pytest.raises(InvalidDataError):
        from_record(Everything, record)
