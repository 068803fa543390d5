"""Where work on many pieces is done: here, in threads, or on the workers of a cluster.

An engine runs one function on each of many items and hands results back in whatever order they are done: everything
that is added up is added exactly, so that the order leaves no trace. Nothing is spent, drawn or written by an engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Held:
    """A result that stays where it was computed; an item for further tasks. `value` is it, or a handle of it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return "Held()"  # what it holds is data


class StaysHere:
    """What no engine sends to another process: whatever spends or draws does so in the process that was asked."""


class Engine(ABC):
    """Runs tasks on items: pieces of a source, or results that were held.

    A task is a function of one item; it can be pickled where workers are other processes, and depends on its item
    alone. Whatever a task raises is raised here, once, and nothing about items is logged anywhere.

    Attributes
    ----------
    workers : how many tasks run at a time
    room : bytes that held results may take up together, on all workers
    elsewhere : whether other processes do the work, and hold what is held
    """

    workers: int = 1
    room: int = 256 * 2**20
    elsewhere: bool = False

    @abstractmethod
    def map(self, task: Callable[[Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield what a task makes of each item (of what it holds, if it is Held), in the order in which they finish.

        `what` is said on a progress bar, with the number of items.
        """

    @abstractmethod
    def reduce(self, extend: Callable[[T | None, Any], T], items: Sequence[Any], what: str = "reading") -> Iterator[T]:
        """Yield totals, each of some of the items, and together of all of them once.

        `extend` adds an item to a total, which it may write to, and begins one where it is given None. Which items come
        together, and in which order, is for the engine to say: those that one worker reads, or holds.
        """

    @abstractmethod
    def keep(self, task: Callable[[Any], Any], items: Sequence[Any], what: str = "reading") -> list[Held]:
        """Run a task on each item and leave its results where they are, in the order of the items."""
