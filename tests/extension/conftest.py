"""What other distributions offer, for the length of one test."""

import types
from importlib import metadata

import pytest

collect_ignore = ["toy_queries.py"]  # a class of results cannot be defined twice in a process


@pytest.fixture
def offer(monkeypatch):
    """Return a function that has an item offered to a registry by an entry point of another distribution."""

    def offered(registry, name, item):
        point = types.SimpleNamespace(name=name, dist=None, value="toy:item", load=lambda: item)
        known = metadata.entry_points

        def entry_points(**selection):
            return [point] if selection.get("group") == registry._group else known(**selection)

        monkeypatch.setattr(metadata, "entry_points", entry_points)
        # As in a new process, and forgotten afterwards.
        monkeypatch.setattr(registry, "_items", dict(registry._items))
        monkeypatch.setattr(registry, "_foreign", set(registry._foreign))
        monkeypatch.setattr(registry, "_complete", False)

    return offered
