"""What travels between the driver and the workers of a cluster, and what a worker runs.

It travels sealed, so that nobody on the way shows what is inside: schedulers, dashboards and logs show the names, types
and representations of what they handle. What is sent here has one type and an empty representation, and is opened by
the task itself. A task never fails in the engine's eyes, because a failed one would be logged with its arguments: what
it raises travels back as a result, and is raised on the driver. So nothing that runs here raises, warns or logs.
"""

from __future__ import annotations

import io
import pickle
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dpmanifold._check import Reticent
from dpmanifold._extras import optional_module
from dpmanifold.engines.base import StaysHere
from dpmanifold.engines.sameness import Sameness
from dpmanifold.errors import DPManifoldError
from dpmanifold.linalg import backend
from dpmanifold.linalg.native.library import one_thread_each
from dpmanifold.progress import quietly


class Sealed(Reticent):
    """An object as bytes, to be opened by who needs it.

    Examples
    --------
    >>> sealed = Sealed.of({"subject": 17})
    >>> sealed
    Sealed()
    >>> sealed.opened()
    {'subject': 17}
    """

    __slots__ = ("content",)

    def __init__(self, content: bytes) -> None:
        self.content = content

    @classmethod
    def of(cls, thing: Any) -> Sealed:
        """Seal an object; refuses one that carries what must stay here, a source of random bits for one."""
        cloudpickle = optional_module("cloudpickle", "dask", "work on a cluster")

        class Pickler(cloudpickle.Pickler):  # type: ignore[misc, name-defined]
            def reducer_override(self, part: Any) -> Any:
                if isinstance(part, StaysHere | np.random.Generator | np.random.BitGenerator):
                    raise TypeError("what draws random bits stays in its process: it is not sent to workers.")
                return super().reducer_override(part)

        file = io.BytesIO()
        Pickler(file, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
        return cls(file.getvalue())

    def opened(self) -> Any:
        """Return the object."""
        return pickle.loads(self.content)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self.content)


class Outcome(Reticent):
    """What became of a task: its result, or what it raised, sealed.

    Parameters
    ----------
    value : the result
    failure : the exception, and the lines of the program where it was raised
    seen : what each piece remembers of having been read, where it is one that does (see `SteadyPiece`)
    """

    __slots__ = ("_size", "failure", "seen", "value")

    def __init__(self, value: Any = None, failure: Sealed | None = None, seen: Any = None) -> None:
        self.value, self.failure, self.seen = value, failure, seen
        self._size: int | None = None

    @classmethod
    def of(cls, error: BaseException) -> Outcome:
        """Return the outcome of a task that raised.

        Examples
        --------
        >>> Outcome.of(ValueError("line 17 is damaged")).result()
        Traceback (most recent call last):
        ...
        ValueError: line 17 is damaged
        """
        lines = "" if isinstance(error, DPManifoldError) else "".join(traceback.format_tb(error.__traceback__))
        error.__traceback__ = error.__cause__ = error.__context__ = None
        try:
            failure = Sealed.of((error, lines))
            failure.opened()
        except Exception:  # some exceptions cannot be pickled, or not opened again
            failure = Sealed.of((RuntimeError(f"a task raised {type(error).__name__}: {error}"), lines))
        return cls(failure=failure)

    def result(self) -> Any:
        """Return the result, or raise what the task raised."""
        if self.failure is None:
            return self.value
        error, lines = self.failure.opened()
        if lines:
            error.add_note(f"Raised on a worker:\n{lines}")
        raise error

    def __reduce__(self) -> tuple[Any, ...]:
        return Outcome, (self.value, self.failure, self.seen)

    def __sizeof__(self) -> int:
        # The engine places and counts results by their size, and does not look into objects that it does not know.
        if self._size is None:
            buffers: list[pickle.PickleBuffer] = []
            try:
                rest = len(pickle.dumps(self.value, protocol=5, buffer_callback=buffers.append))
            except Exception:  # a closure, which is small
                rest = 0
            self._size = rest + sum(memoryview(buffer).nbytes for buffer in buffers)
        return object.__sizeof__(self) + self._size + (0 if self.failure is None else self.failure.__sizeof__())


class Computed(Reticent):
    """A piece of a Dask collection together with its partition, which was computed by other tasks.

    Everything but its blocks is the piece's own.
    """

    def __init__(self, piece: Any, partition: Any) -> None:
        self._piece, self._partition = piece, partition

    def blocks(self) -> Iterator[Any]:
        """Yield the records of the partition, a block at a time."""
        return iter(self._piece.blocks_of(self._partition))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._piece, name)


def run(same: Sameness, task: Sealed | Outcome, item: Sealed | Outcome, *partition: Any) -> Outcome:
    """Run a task on an item, one slot of the worker for it, with the driver's backend.

    Parameters
    ----------
    same : the driver's
    task : a function; an outcome where it was sent before (see :func:`unsealed`)
    item : what it is run on; an outcome where an earlier task made it and it was held
    partition : what a Dask collection computed for this item

    Examples
    --------
    >>> run(Sameness.here(), Sealed.of(len), Sealed.of("four")).result()
    4
    """
    return total_of(same, task, [item], *partition, extends=False)


def total_of(
    same: Sameness,
    task: Sealed | Outcome,
    items: Sequence[Sealed | Outcome] | Sealed,
    *partition: Any,
    extends: bool = True,
) -> Outcome:
    """Run a task on items one after the other, each with what it made of those before.

    Parameters
    ----------
    same, task : as in :func:`run`; the function takes a total, None at first, and an item
    items : what it is run on, several or one
    partition : what a Dask collection computed for the one item
    extends : whether it takes a total

    Examples
    --------
    >>> extend = Sealed.of(lambda total, item: (total or 0) + len(item))
    >>> total_of(Sameness.here(), extend, [Sealed.of("four"), Sealed.of("more")]).result()
    8
    """
    items = [items] if isinstance(items, Sealed) else items
    for part in (task, *items):
        if isinstance(part, Outcome) and part.failure is not None:
            return Outcome(failure=part.failure)
    total, seen = None, []
    try:
        same.demand()
        with one_thread_each(), backend(same.level), np.errstate(all="ignore"), quietly():
            function = _content(task)
            for item in items:
                thing = _content(item)
                given = Computed(thing, *partition) if partition else thing
                total = function(total, given) if extends else function(given)
                seen.append(getattr(thing, "seen", None))
        return Outcome(total, seen=seen)
    except BaseException as error:
        return Outcome.of(error)


def unsealed(same: Sameness, task: Sealed) -> Outcome:
    """Open a task once, for all items that come to a worker."""
    try:
        same.demand()
        return Outcome(task.opened())
    except BaseException as error:
        return Outcome.of(error)


def checked(kept: Outcome) -> Outcome:
    """Say whether a result that stays on the worker is there: the failure without the result."""
    return Outcome(failure=kept.failure, seen=kept.seen)


def _content(thing: Sealed | Outcome) -> Any:
    return thing.opened() if isinstance(thing, Sealed) else thing.value
