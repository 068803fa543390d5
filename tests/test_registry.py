"""Things found by name: what other distributions offer is added whole, once, from any thread, or refused in words."""

import sys
import threading
import time
from importlib import metadata
from types import ModuleType, SimpleNamespace

import pytest

from dpmanifold import InvalidArgumentError
from dpmanifold.registry import Registry

GROUP = "dpmanifold.example"


class Offers:
    """Entry points of distributions that are not installed."""

    def __init__(self, monkeypatch):
        self.points = []
        self.module = ModuleType("offered_things")
        monkeypatch.setitem(sys.modules, "offered_things", self.module)
        monkeypatch.setattr(metadata, "entry_points", lambda group: list(self.points) if group == GROUP else [])

    def add(self, name, item, by="somebody", at=None):
        place = at or f"item{len(self.points)}"
        setattr(self.module, place, item)
        point = metadata.EntryPoint(name, f"offered_things:{place}", GROUP)
        self.points.append(point._for(SimpleNamespace(name=by)))


@pytest.fixture
def offers(monkeypatch):
    return Offers(monkeypatch)


def fresh(kind=int):
    return Registry("number", GROUP, kind)


def test_one_of_the_wrong_type_is_named_every_time_and_hides_no_other(offers):
    offers.add("bad", "a text", by="careless")
    offers.add("good", 7)
    numbers = fresh()
    for ask in (numbers.names, numbers.names, lambda: numbers.get("good"), lambda: list(numbers)):
        with pytest.raises(InvalidArgumentError, match=r"'bad' of careless .*instance of int"):
            ask()
    offers.points.pop(0)
    assert numbers.names() == ["good"]
    assert numbers.get("good") == 7


def test_one_that_cannot_be_imported_is_named_and_nothing_is_added(offers):
    offers.add("good", 7)
    offers.points.append(metadata.EntryPoint("broken", "no_such_module:x", GROUP))
    numbers = fresh()
    with pytest.raises(InvalidArgumentError, match="'broken' of no_such_module:x cannot be loaded"):
        numbers.names()
    assert numbers.own() == []


def test_two_distributions_with_one_name_are_refused_by_both_names(offers):
    offers.add("seven", 7, by="first")
    offers.add("seven", 8, by="second")
    for _ in range(2):
        with pytest.raises(InvalidArgumentError, match=r"'seven' is offered twice, by first .* and by second "):
            fresh().get("seven")


def test_what_is_registered_already_stands(offers):
    offers.add("seven", 8)
    numbers = fresh()
    numbers.register("seven", 7)
    assert numbers.names() == ["seven"]
    assert numbers.get("seven") == 7
    assert numbers.own() == [7]


def test_the_same_thing_offered_twice_is_one(offers):
    offers.add("seven", 7, at="here")
    offers.add("seven", 7, at="here")
    assert fresh().names() == ["seven"]


def test_a_second_thread_waits_for_what_the_first_is_loading(offers, monkeypatch):
    offers.add("good", 7)
    started, load = threading.Event(), metadata.EntryPoint.load

    def slow(point):
        started.set()
        time.sleep(0.2)
        return load(point)

    monkeypatch.setattr(metadata.EntryPoint, "load", slow)
    numbers, found = fresh(), []
    first = threading.Thread(target=lambda: found.append(numbers.get("good")))
    first.start()
    assert started.wait(10)
    assert numbers.get("good") == 7
    first.join()
    assert found == [7]


def test_what_is_imported_may_register_and_ask(offers, monkeypatch):
    """A module may do so while it is imported as an entry point."""
    offers.add("good", 7)
    numbers, load = fresh(), metadata.EntryPoint.load

    def busy(point):
        numbers.register("other", 8)
        assert numbers.names() == ["other"]
        return load(point)

    monkeypatch.setattr(metadata.EntryPoint, "load", busy)
    assert numbers.names() == ["other", "good"]
    assert numbers.own() == [8]
