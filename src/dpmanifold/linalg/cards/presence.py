"""Whether CuPy and a CUDA card are there, and what to say where they are not."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
from collections.abc import Iterator
from functools import cache
from typing import Any

from dpmanifold.errors import CardError

REMEDY = 'pip install "dpmanifold[gpu]"'

# The oldest cards (their compute capability) that add integers of a whole warp in one instruction.
_OLDEST = 80

# A compiler's log may be long, and its first lines say what is wrong.
_LOG = 800


@cache
def _found() -> tuple[Any, str | None]:
    """Return CuPy, and why a card cannot be used, if one cannot."""
    if importlib.util.find_spec("cupy") is None:
        return None, f"CuPy is not installed. Run: {REMEDY}."
    try:
        cupy = importlib.import_module("cupy")
        count = int(cupy.cuda.runtime.getDeviceCount())
        ability = int(cupy.cuda.Device().compute_capability) if count else 0
    except Exception as problem:
        # A missing driver, a library of another version: CuPy's own words say which, and hold no data.
        return None, f"CuPy finds no card it can use ({str(problem)[:_LOG]}). Check the driver with nvidia-smi."
    if not count:
        return None, "CuPy finds no card. Check with nvidia-smi."
    if ability < _OLDEST:
        return None, f"the card has compute capability {ability / 10}, and {_OLDEST / 10} is needed (A100 and newer)."
    return cupy, None


def card_kind() -> str:
    """Return what decides bits on a card: its capability, and the versions of CuPy and of the compiler behind it.

    Examples
    --------
    >>> available() or card_kind() == "none"
    True
    """
    if not available():
        return "none"
    cupy = cupy_module()
    compiler = ".".join(str(part) for part in cupy.cuda.nvrtc.getVersion())
    return f"{cupy.cuda.Device().compute_capability}, CuPy {cupy.__version__}, NVRTC {compiler}"


def available() -> bool:
    """Return whether CuPy and a CUDA card are there.

    Examples
    --------
    >>> available() == (why_not_available() is None)
    True
    """
    return _found()[1] is None


def why_not_available() -> str | None:
    """Return why no card can be used, with the remedy; None if one can.

    Examples
    --------
    >>> available() or why_not_available().endswith(".")
    True
    """
    return _found()[1]


def cupy_module() -> Any:
    """Return CuPy, or say what is missing."""
    cupy, problem = _found()
    if problem is not None:
        raise CardError(f"no CUDA card can be used here: {problem}")
    return cupy


@contextlib.contextmanager
def failures_told() -> Iterator[None]:
    """Turn whatever goes wrong on a card into one error that says what to do: no record can cause it.

    Examples
    --------
    >>> with failures_told():
    ...     raise type("OutOfMemoryError", (MemoryError,), {})
    Traceback (most recent call last):
    ...
    dpmanifold.errors.CardError: the card has no memory left for this...
    """
    try:
        yield
    except Exception as problem:
        if type(problem).__name__ == "OutOfMemoryError":  # CuPy's; the host's is none of the card's business
            raise CardError(
                "the card has no memory left for this. Free what else lies there (cupy.get_default_memory_pool()"
                ".free_all_blocks(), torch.cuda.empty_cache()); on flat spaces a numpy array under "
                'linalg.backend("cuda") is sent in blocks; or use the processor: linalg.backend("native").'
            ) from None
        if type(problem).__name__ not in _FAILURES:
            raise
        raise CardError(
            f"the card could not do its part: {type(problem).__name__}, {str(problem)[:_LOG]}. "
            'The processor can: linalg.backend("native").'
        ) from None


# By name: their modules are CuPy's, which need not be there.
_FAILURES = ("CUDARuntimeError", "CUDADriverError", "CompileException", "NVRTCError", "LinkException")


__all__ = ["REMEDY", "available", "card_kind", "cupy_module", "failures_told", "why_not_available"]
