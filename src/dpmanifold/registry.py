"""Things that are found by name: spaces, statistics, mechanisms, loaders. The library's own, and those of others.

Another distribution adds one by an entry point in the group that the registry names (`dpmanifold.spaces`,
`dpmanifold.statistics`, `dpmanifold.mechanisms`, `dpmanifold.loaders`); a script by one call of `register`. Entry
points are loaded when a name is not known, or when all names are asked for: never to find what the library has itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import Generic, TypeVar

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError

T = TypeVar("T")


class Registry(Generic[T]):
    """Items by name, in the order in which they were registered.

    Parameters
    ----------
    what : what an item is called in messages, such as "mechanism"
    group : the entry points that add to it
    kind : the class that every item must be an instance of, where there is one

    Examples
    --------
    >>> colours: Registry[int] = Registry("colour", "dpmanifold.example")
    >>> colours.register("red", 0xFF0000)
    16711680
    >>> colours.get("red"), colours.names()
    (16711680, ['red'])
    >>> colours.get("blue")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: colour must be one of red, got 'blue'.
    """

    def __init__(self, what: str, group: str, kind: type | None = None) -> None:
        self._what, self._group, self._kind = what, group, kind
        self._items: dict[str, T] = {}
        self._foreign: set[str] = set()
        self._complete = False

    def register(self, name: str, item: T) -> T:
        """Add an item under a name that is still free, and return it.

        Raises InvalidArgumentError for a name that is taken: what a name means never changes.
        """
        self._check(name, item)
        if self._items.get(name, item) is not item:
            raise InvalidArgumentError(f"there is already a {self._what} {name!r}: register it under another name.")
        self._items[name] = item
        return item

    def lend(self, name: str, item: T) -> T:
        """Return an item that is used without being registered: nothing else may be called by its name.

        An item of the same class is the same one if neither has anything of its own: no attributes of the instance.
        """
        self._check(name, item)
        known = self.find(name)
        same = known is None or known is item or (type(known) is type(item) and not vars(known) and not vars(item))
        if not same:
            raise InvalidArgumentError(
                f"the {self._what} has the name {name!r}, which stands for another one: give it a name of its own."
            )
        return item

    def _check(self, name: object, item: T) -> None:
        if self._kind is not None and not isinstance(item, self._kind):
            raise InvalidArgumentError(
                f"the {self._what} {name!r} must be an instance of {self._kind.__name__}, got {shown(item)}."
            )
        if not (isinstance(name, str) and name.isprintable() and name):
            raise InvalidArgumentError(f"name of a {self._what} must be a text that can be printed, got {shown(name)}.")

    def get(self, name: object) -> T:
        """Return the item of that name, or say which names there are."""
        found = self.find(name)
        if found is None:
            raise InvalidArgumentError(f"{self._what} must be one of {', '.join(self.names())}, got {shown(name)}.")
        return found

    def find(self, name: object) -> T | None:
        """Return the item of that name, or None."""
        if not isinstance(name, str):
            return None
        if name not in self._items:
            self._load()
        return self._items.get(name)

    def names(self) -> list[str]:
        """Return all names, those of other distributions last."""
        self._load()
        return list(self._items)

    def own(self) -> list[T]:
        """Return the items that were registered here, without those of other distributions."""
        return [item for name, item in self._items.items() if name not in self._foreign]

    def __iter__(self) -> Iterator[T]:
        self._load()
        return iter(list(self._items.values()))

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def _load(self) -> None:
        """Add what other distributions offer, once. One that cannot be loaded is named, with its error."""
        if self._complete:
            return
        self._complete = True
        for point in metadata.entry_points(group=self._group):
            if point.name in self._items:
                continue
            try:
                item = point.load()
            except Exception as problem:
                self._complete = False
                raise InvalidArgumentError(
                    f"the {self._what} {point.name!r} ({point.value}) cannot be loaded: {problem}. Repair or remove "
                    "the distribution that offers it."
                ) from problem
            self.register(point.name, item)
            self._foreign.add(point.name)
