"""What travels between the driver and the workers of a cluster: sealed, so that nobody on the way shows what is inside.

Schedulers, dashboards and logs show the names, types and representations of what they handle. What is sent here has one
type and an empty representation, and is opened by the task itself. A task never fails in the engine's eyes, because a
failed one would be logged with its arguments: what it raises travels back as a result, and is raised on the driver.
"""

from __future__ import annotations

import io
import pickle
import traceback
from typing import Any

import numpy as np

from dpmanifold._extras import optional_module
from dpmanifold.engines.base import StaysHere
from dpmanifold.errors import DPManifoldError


class Sealed:
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

    def __reduce__(self) -> tuple[Any, ...]:
        return Sealed, (self.content,)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + len(self.content)

    def __repr__(self) -> str:
        return "Sealed()"


class Outcome:
    """What became of a task: its result, or what it raised, sealed.

    Parameters
    ----------
    value : the result
    failure : the exception, and the lines of the program where it was raised
    seen : what a piece remembers of having been read, where it is one that does (see `SteadyPiece`)
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

    def __repr__(self) -> str:
        return "Outcome()"


__all__ = ["Outcome", "Sealed"]
