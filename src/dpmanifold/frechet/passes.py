"""Work on points or records that lie in many places: a partial result for each, merged as they come. Not private.

A pass knows nothing of engines: it makes a partial result of one item, and merges two of them. Merging adds integers,
so neither the places nor the order in which they are done leave a trace.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dpmanifold.engines import Engine
from dpmanifold.progress import bar

P = TypeVar("P")


class Pass(ABC, Generic[P]):
    """What is done in one pass; can be pickled, with functions in it by those who pickle functions."""

    @abstractmethod
    def partial(self, item: Any) -> P:
        """Return what one item gives."""

    @abstractmethod
    def merge(self, a: P, b: P) -> P:
        """Return two of them together; either may be written to."""

    def extend(self, total: P | None, item: Any) -> P:
        """Return a total with one more item, None before the first; it may be written to."""
        return self.partial(item) if total is None else self.merge(total, self.partial(item))


@dataclass(frozen=True)
class Part:
    """Items that are worked on in one place, and how to open one.

    Attributes
    ----------
    items : pieces of a source, results that an engine holds, or arrays
    opened : what a pass is given for an item: a function of it alone, to be called where the work is done
    engine : who does the work; None does it here, one item after the other
    """

    items: Sequence[Any]
    opened: Callable[[Any], Any]
    engine: Engine | None = None

    def results(self, partial: Callable[[Any], P], what: str) -> Iterator[P]:
        """Yield a partial result of each item, in any order."""
        opened = self.opened
        if self.engine is None:
            return (partial(opened(item)) for item in self.items)
        return self.engine.map(lambda value: partial(opened(value)), self.items, what)

    def totals(self, extend: Callable[[P | None, Any], P], what: str) -> Iterator[P]:
        """Yield totals of the items, each of as many as come together where the work is done."""
        opened = self.opened
        if self.engine is None:
            found: P | None = None
            for item in self.items:
                found = extend(found, opened(item))
            return iter(() if found is None else (found,))
        return self.engine.reduce(lambda total, value: extend(total, opened(value)), self.items, what)

    def then(self, more: Callable[[Any], Any]) -> Part:
        """Return the same items with one more step in opening them."""
        opened = self.opened
        return Part(self.items, lambda value: more(opened(value)), self.engine)


def run(work: Pass[P], parts: Sequence[Part], what: str = "reading") -> P | None:
    """Return what a pass over all parts gives; None where there is nothing at all.

    Examples
    --------
    >>> class Total(Pass[int]):
    ...     def partial(self, item): return item**2
    ...     def merge(self, a, b): return a + b
    >>> run(Total(), [Part([1, 2, 3], lambda item: item + 1)])
    29
    """
    total: P | None = None
    for part in parts:
        for found in part.totals(work.extend, what):
            total = found if total is None else work.merge(total, found)
    return total


def solving(parts: Sequence[Part]) -> AbstractContextManager[object]:
    """Show that a solver works on parts of an engine, without a total: the number of its passes is data."""
    return nullcontext() if all(part.engine is None for part in parts) else bar("solving")


__all__ = ["Part", "Pass", "run", "solving"]
