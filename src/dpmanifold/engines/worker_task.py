"""What travels between the driver and the workers of a cluster, and what a worker runs.

It travels sealed, so that nobody on the way shows what is inside: schedulers, dashboards and logs show the names, types
and representations of what they handle. What is sent here has one type and an empty representation, and is opened by
the task itself. A task never fails in the engine's eyes, because a failed one would be logged with its arguments: what
it raises travels back as a result, and is raised on the driver. So nothing that runs here raises, warns or logs.

A worker computes with the same bits as the driver, or not at all. Sums are exact, so that nobody can tell how work was
divided; but a logarithm may be rounded differently by another version of numpy or on another processor, and then a
release would depend on which worker took which records.
"""

from __future__ import annotations

import hashlib
import io
import math
import pickle
import platform
import sys
import traceback
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dpmanifold._check import Reticent, optional_module
from dpmanifold._version import __version__
from dpmanifold.engines.base import StaysHere
from dpmanifold.errors import ClusterError, DPManifoldError
from dpmanifold.linalg import backend, backends, level, logm
from dpmanifold.linalg.cards.presence import card_kind
from dpmanifold.linalg.native.library import interface_version, one_thread_each
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


# Sizes of the matrices that are tried: kernels and LAPACK treat these differently.
_SIZES = (3, 9, 33)


class Sameness(NamedTuple):
    """What decides the bits of a computation.

    Attributes
    ----------
    version, kernels, numpy, python : of dpmanifold, of the interface of its kernels, of numpy, of Python
    level : the backend, a name that :func:`~dpmanifold.linalg.backend` takes
    digest : of the functions of fixed numbers, as computed there
    processor : for messages
    card : the kind of card and its compiler, where the backend is a card's
    """

    version: str
    kernels: int | None
    numpy: str
    python: str
    level: str
    digest: str
    processor: str
    card: str

    @classmethod
    def here(cls) -> Sameness:
        """Return that of this process and the backend in use.

        Examples
        --------
        >>> Sameness.here() == Sameness.here()
        True
        """
        return cls(
            __version__,
            interface_version(),
            np.__version__,
            "{}.{}".format(*sys.version_info),
            level(),
            _digest(level()),
            platform.machine(),
            card_kind() if level() == "cuda" else "none",
        )

    def demand(self) -> None:
        """Refuse to work in this process where its bits would be others than those of the process that is described."""
        for what, theirs, ours in (
            ("dpmanifold", self.version, __version__),
            ("kernels of version", self.kernels, interface_version()),
            ("numpy", self.numpy, np.__version__),
            ("Python", self.python, "{}.{}".format(*sys.version_info)),
        ):
            if theirs != ours:
                raise ClusterError(
                    f"a worker has {what} {ours}, and this process {theirs}: their results could differ in bits. "
                    "Install the same packages on the workers, the scheduler and here."
                )
        if self.level not in backends():
            raise ClusterError(
                f"this process computes with {self.level}, and a worker offers {', '.join(backends())} alone. Call "
                f'from inside "with dpmanifold.linalg.backend({backends()[-1]!r})", or leave that worker out.'
            )
        if self.level == "cuda" and self.card != card_kind():
            raise ClusterError(
                f"a worker has a card of kind {card_kind()}, and this process {self.card}: their results could differ "
                "in bits. Use cards of one kind with the same CuPy and CUDA."
            )
        if self.digest != _digest(self.level):
            raise ClusterError(
                f"a worker ({platform.machine()}) rounds functions differently from this process ({self.processor}), "
                "although their packages have the same versions: their processors differ. Use machines of one kind, "
                "or set NPY_DISABLE_CPU_FEATURES and OPENBLAS_CORETYPE to the same values for the workers and here."
            )


@cache
def _digest(name: str) -> str:
    """Return a digest of what a backend, numpy, BLAS, LAPACK and the C library make of fixed numbers."""
    # Fixed numbers that need no generator: fractional parts of multiples of the golden ratio.
    numbers = np.modf(np.arange(1.0, 2001.0) * ((1 + math.sqrt(5)) / 2))[0]
    found = [
        np.exp(numbers),
        np.log(numbers),
        np.sin(7 * numbers),
        np.cos(7 * numbers),
        np.arctan2(numbers, numbers[0]),
    ]
    found += [np.arccosh(1 + numbers), np.tanh(numbers), np.einsum("i,i", numbers, numbers), numbers.sum()]
    found.append(np.array([f(x) for f in (math.exp, math.log, math.gamma, math.tanh) for x in numbers[:50].tolist()]))
    for size in _SIZES:
        block = numbers[: size * size].reshape(size, size) - 0.5
        definite = block @ block.T + np.eye(size)
        with backend(name):
            found += [definite, *np.linalg.eigh(definite), np.linalg.cholesky(definite), logm(np.stack([definite] * 9))]
    return hashlib.sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in found)).hexdigest()
