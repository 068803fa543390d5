"""Things that are found by name: the library's own, and those of others.

Another distribution adds one by an entry point in the group that the registry names: `dpmanifold.spaces`,
`dpmanifold.statistics`, `dpmanifold.queries`, `dpmanifold.mechanisms`, `dpmanifold.loaders`, `dpmanifold.sources`,
`dpmanifold.pictures`, `dpmanifold.readers`, `dpmanifold.papers`; a script by one call of `register`. Entry points are
loaded when a name is not known, or when all names are asked for: never to find what the library has itself. A name that
is registered already keeps its meaning.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from importlib import metadata

T = TypeVar("T")


def is_own(item: object) -> bool:
    """Return whether an item is an instance of one of the library's own classes, and not of somebody else's.

    Examples
    --------
    >>> is_own(Registry("colour", "dpmanifold.example")), is_own(1.5)
    (True, False)
    """
    kind: Any = type(item)
    return is_own_class(kind)


@lru_cache(maxsize=1024)
def is_own_class(kind: Any) -> bool:
    """Return whether a class is the library's own."""
    return _is_here(kind.__module__)


def is_own_function(function: object) -> bool:
    """Return whether a function, a method, a class or a part of a call is defined in the library itself.

    A function is asked where its code is from: what `functools.wraps` says can be somebody else's.
    """
    function = getattr(function, "func", function)  # of functools.partial
    function = getattr(function, "__func__", function)
    where = getattr(function, "__globals__", {}).get("__name__") or getattr(function, "__module__", None)
    return _is_here(where or "")


def _is_here(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]


class Registry(Generic[T]):
    """Items by name, in the order in which they were registered.

    Parameters
    ----------
    what : what an item is called in messages, such as "mechanism"
    group : the entry points that add to it
    kind : the class that every item must be an instance of, where there is one
    brought_by : another group, whose modules register items here when they are imported
    home : a module that registers the library's own when it is imported, where that is not done from the start
    is_own : tells whether an item is the library's own

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

    def __init__(
        self, what: str, group: str, kind: type | None = None, brought_by: str = "",
        is_own: Callable[[T], bool] = lambda item: True, home: str = "",
    ) -> None:  # fmt: skip
        self._what, self._group, self._kind, self._brought_by = what, group, kind, brought_by
        self._is_own, self._home = is_own, home
        self._items: dict[str, T] = {}
        self.held: set[int] = set()  # the identities of the items
        self._foreign: set[str] = set()
        self._complete = False
        self._lock = threading.Lock()
        self._here = threading.local()

    def register(self, name: str, item: T) -> T:
        """Add an item under a name that is still free, and return it.

        Raises InvalidArgumentError for a name that is taken: what a name means never changes.
        """
        self._check(name, item)
        self._come_home()
        with self._lock:
            if self._items.get(name, item) is not item:
                raise InvalidArgumentError(f"there is already a {self._what} {name!r}: register it under another name.")
            self._items[name] = item
            self.held.add(id(item))
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
        self._come_home()
        return [item for name, item in self._items.items() if name not in self._foreign and self._is_own(item)]

    def __iter__(self) -> Iterator[T]:
        self._load()
        return iter(list(self._items.values()))

    def __contains__(self, name: object) -> bool:
        return self.find(name) is not None

    def _check(self, name: object, item: object) -> None:
        if self._kind is not None and not isinstance(item, self._kind):
            raise InvalidArgumentError(
                f"the {self._what} {name!r} must be an instance of {self._kind.__name__}, got {shown(item)}."
            )
        if not (isinstance(name, str) and name.isprintable() and name):
            raise InvalidArgumentError(f"name of a {self._what} must be a text that can be printed, got {shown(name)}.")
        own = getattr(item, "name", name)
        if isinstance(own, str) and own != name:  # what is written under one name must be found under it
            raise InvalidArgumentError(
                f"the {self._what} {own!r} must be registered under that name, got {name!r}. An entry point is named "
                "like what it offers."
            )

    def _come_home(self) -> None:
        if self._home:
            import_module(self._home)

    def _load(self) -> None:
        """Add what other distributions offer: all of it, or nothing and an error that names what is wrong.

        No lock is held while their modules are imported, which may register things themselves: threads that come here
        together all load, and the first to finish adds.
        """
        if self._complete or getattr(self._here, "loading", False):
            return
        from importlib import metadata  # which takes a while

        self._here.loading = True
        try:
            self._come_home()
            for point in metadata.entry_points(group=self._brought_by) if self._brought_by else ():
                self._imported(point)
            offered = {name: self._imported(point, check=True) for name, point in self._offers().items()}
        finally:
            self._here.loading = False
        with self._lock:
            if not self._complete:
                for name, item in offered.items():
                    if name not in self._items:
                        self._items[name] = item
                        self.held.add(id(item))
                        self._foreign.add(name)
                self._complete = True

    def _offers(self) -> dict[str, metadata.EntryPoint]:
        """Return the entry points by name, without names that are registered here; two that differ are refused."""
        from importlib import metadata

        offers: dict[str, metadata.EntryPoint] = {}
        for point in metadata.entry_points(group=self._group):
            if point.name in self._items:
                continue
            other = offers.setdefault(point.name, point)
            if other.value != point.value:
                raise InvalidArgumentError(
                    f"the {self._what} {point.name!r} is offered twice, by {_offer(other)} and by {_offer(point)}. "
                    "Remove one of the two distributions."
                )
        return offers

    def _imported(self, point: metadata.EntryPoint, check: bool = False) -> Any:
        try:
            item = point.load()
            if check:
                self._check(point.name, item)
            return item
        except Exception as problem:
            raise InvalidArgumentError(
                f"the {self._what} {point.name!r} of {_offer(point)} cannot be loaded: {str(problem).rstrip('.')}. "
                "Repair or remove the distribution that offers it."
            ) from problem


def _offer(point: metadata.EntryPoint) -> str:
    """Return who offers it, and where it lies there."""
    return f"{point.dist.name} ({point.value})" if point.dist is not None else point.value
