"""Registries that a test changes, and that are as they were when it ends."""


def changed(monkeypatch, registry, **items):
    """Let a test register items, these first: with what other distributions offer, which is looked for once."""
    registry.names()
    monkeypatch.setattr(registry, "_items", {**registry._items, **items})
