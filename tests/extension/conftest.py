"""A distribution of its own, as it is installed; and what another one would offer, for the length of one test."""

import types
from importlib import metadata

import numpy as np
import pytest

import dpmanifold as dpm


@pytest.fixture(scope="session")
def installed():
    """Return the example's entry points; without them nothing here would come from outside."""
    try:
        return metadata.distribution("dpmanifold-example").entry_points
    except metadata.PackageNotFoundError:
        pytest.fail("make installs it, or: pip install --editable ./examples/extension")


@pytest.fixture
def offer(monkeypatch):
    """Return a function that has an item offered to a registry by an entry point of another distribution."""

    def offered(registry, name, item):
        point = types.SimpleNamespace(name=name, dist=None, value="toy:item", load=lambda: item)
        known = metadata.entry_points

        def entry_points(**selection):
            return [point] if selection.get("group") == registry._group else known(**selection)

        monkeypatch.setattr(metadata, "entry_points", entry_points)
        as_new(monkeypatch, registry)

    return offered


@pytest.fixture
def withdrawn(monkeypatch):
    """Return a function that takes from a registry what other distributions offer."""

    def taken(registry):
        as_new(monkeypatch, registry)
        for name in registry._foreign:
            del registry._items[name]
        monkeypatch.setattr(metadata, "entry_points", lambda **_: [])

    return taken


def as_new(monkeypatch, registry):
    """Let a registry look for entry points again, as in a new process, and forget it afterwards."""
    monkeypatch.setattr(registry, "_items", dict(registry._items))
    monkeypatch.setattr(registry, "_foreign", set(registry._foreign))
    monkeypatch.setattr(registry, "_complete", False)


@pytest.fixture(scope="session")
def walk(tmp_path_factory):
    """Return a file of 240 poses by 80 people, three each: how they hold their head, sitting and walking."""
    from dpmanifold_example.rotations import Rotations

    space, rng = dpm.Product([Rotations(), dpm.Euclidean(3)]), np.random.default_rng(0)
    walking = np.arange(240) // 3 % 2
    turned = 0.1 * rng.standard_normal((240, 6)) + 0.4 * walking[:, None] * np.eye(6)[0]
    poses = space.exp_coords(space.origin, turned)
    lines = ["# who task x y z qx qy qz qw"]
    for number, (w, qx, qy, qz, *place) in enumerate(poses.tolist()):
        who, task = f"p{number // 3}", ("sitting", "walking")[walking[number]]
        lines.append(" ".join([who, task, *map(repr, [*place, qx, qy, qz, w])]))
    path = tmp_path_factory.mktemp("walk") / "walk.poses"
    path.write_text("\n".join(lines) + "\n")
    return path, poses, np.array(["sitting", "walking"])[walking], np.array([f"p{i // 3}" for i in range(240)])
