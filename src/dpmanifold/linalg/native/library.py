"""The compiled kernels as ctypes sees them, and the choice between them and numpy.

Not for users: :mod:`dpmanifold.linalg` calls this. The library is found next to this file or not at all.
"""

from __future__ import annotations

import contextvars
import ctypes
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg.cards import presence

LIBRARY_NAME = "libdpmanifold_kernels" + {"darwin": ".dylib", "win32": ".dll"}.get(sys.platform, ".so")

# Must equal dpm_version() of the library: one left over from another version of the package is not called.
_VERSION = 5

# The last two are a card's mathematics on a processor, which only builds for tests have.
_LEVELS = ("baseline", "avx2", "avx512", "lane", "team")
_FOR_USE = 3


class PassArguments(ctypes.Structure):
    """`Pass` of src/interface.hpp, field by field."""

    _fields_ = [
        ("x", ctypes.c_void_p),
        ("n", ctypes.c_long),
        ("k", ctypes.c_int),
        ("function", ctypes.c_int),
        ("accurate", ctypes.c_int),
        ("factor_is_lower", ctypes.c_int),
        ("factor", ctypes.c_void_p),
        ("center", ctypes.c_void_p),
        ("power", ctypes.c_longlong),
        ("radius", ctypes.c_double),
        ("table", ctypes.c_void_p),
        ("matrices", ctypes.c_void_p),
        ("coordinates", ctypes.c_void_p),
        ("norms", ctypes.c_void_p),
        ("status", ctypes.c_void_p),
        ("wide", ctypes.c_void_p),
        ("inspect", ctypes.c_int),
        ("triangles", ctypes.c_int),
        ("tolerance", ctypes.c_double),
        ("rows", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("powers", ctypes.c_void_p),
        ("moved", ctypes.c_void_p),
        ("places", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("fixed", ctypes.c_double),
        ("locks", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
    ]


class GradientArguments(ctypes.Structure):
    """`Gradient` of src/interface.hpp, field by field."""

    _fields_ = [
        ("x", ctypes.c_void_p),
        ("n", ctypes.c_long),
        ("size", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("scale", ctypes.c_double),
        ("base", ctypes.c_void_p),
        ("bound", ctypes.c_double),
        ("rows", ctypes.c_void_p),
        ("codes", ctypes.c_void_p),
        ("words", ctypes.c_void_p),
        ("fixed", ctypes.c_double),
        ("status", ctypes.c_void_p),
        ("locks", ctypes.c_void_p),
    ]


class ImageArguments(ctypes.Structure):
    """`Images` of src/interface.hpp, field by field."""

    _fields_ = [
        ("pixels", ctypes.c_void_p),
        ("n", ctypes.c_long),
        ("height", ctypes.c_long),
        ("width", ctypes.c_long),
        ("channels", ctypes.c_int),
        ("kind", ctypes.c_int),
        ("eta", ctypes.c_double),
        ("columns", ctypes.c_void_p),
        ("rows", ctypes.c_void_p),
        ("out", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Library:
    """The loaded library and the numbers of the levels this machine can run, best last."""

    handle: Any
    levels: tuple[int, ...]


def load(path: Path) -> Library | None:
    """Return the library at `path`, or None if it is missing, broken or of another version.

    Examples
    --------
    >>> load(Path("no such file")) is None
    True
    """
    try:
        handle = ctypes.CDLL(str(path))
        handle.dpm_version.restype = ctypes.c_int
        if handle.dpm_version() != _VERSION:
            return None
        handle.dpm_level_name.restype = ctypes.c_char_p
        handle.dpm_poles.argtypes = [ctypes.c_int, ctypes.c_double]
        handle.dpm_pass.restype = ctypes.c_long
        handle.dpm_pass.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_double, ctypes.c_int]
        handle.dpm_gradient.restype = ctypes.c_long
        handle.dpm_gradient.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
        handle.dpm_describe.restype = ctypes.c_long
        handle.dpm_describe.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
    except (OSError, AttributeError):
        return None
    levels = tuple(i for i in range(len(_LEVELS)) if handle.dpm_level_name(i) is not None)
    return Library(handle, levels)


def obstacle(path: Path) -> str | None:
    """Return why the library at `path` is not used, with the remedy; None if there is no reason.

    Examples
    --------
    >>> obstacle(Path("no such file"))
    'the compiled kernels are not installed'
    """
    if load(path) is not None:
        return None
    if not path.exists():
        return "the compiled kernels are not installed"
    try:
        version = int(ctypes.CDLL(str(path)).dpm_version())
        found = f"the library of compiled kernels is of version {version}, not {_VERSION}"
    except (OSError, AttributeError):
        found = "the library of compiled kernels cannot be loaded"
    return f"{found}, and is not used; reinstall dpmanifold, or run make kernels in a checkout"


_PATH = Path(__file__).with_name(LIBRARY_NAME)
_LIBRARY = load(_PATH)

# The number of the level to use; None is numpy. Best level where there is a library.
_BEST = max((i for i in _LIBRARY.levels if i < _FOR_USE), default=None) if _LIBRARY is not None else None
_chosen: contextvars.ContextVar[int | None] = contextvars.ContextVar("dpmanifold_backend", default=_BEST)

# Whether somebody chose it. Arrays on a card are worked on there unless somebody wants something else.
_asked_for: contextvars.ContextVar[bool] = contextvars.ContextVar("dpmanifold_backend_asked_for", default=False)

# The number of the card's level. What has no kernel there is done as it is by default.
_CARD, _CARD_NAME = -1, "cuda"


def current() -> tuple[Any, int] | None:
    """Return the library's handle and the level to call it at, or None where numpy is to be used."""
    number = _BEST if _chosen.get() == _CARD else _chosen.get()
    return None if number is None or _LIBRARY is None else (_LIBRARY.handle, number)


def card_in_use(lies_there: bool = False) -> bool:
    """Return whether a card does the work: on arrays that lie on one, unless another backend was asked for.

    Examples
    --------
    >>> with backend("numpy"):
    ...     card_in_use(lies_there=True)
    False
    """
    return _chosen.get() == _CARD or (lies_there and not _asked_for.get())


def available() -> bool:
    """Return whether the compiled kernels are there; without them everything runs on numpy.

    Examples
    --------
    >>> available() == any(name.startswith("native") for name in backends())
    True
    """
    return _LIBRARY is not None


def interface_version() -> int | None:
    """Return the version of the compiled kernels' interface; None without kernels.

    Examples
    --------
    >>> available() == (interface_version() is not None)
    True
    """
    return _VERSION if available() else None


def why_not_available() -> str | None:
    """Return why the compiled kernels are not in use, with the remedy; None if they are there.

    Examples
    --------
    >>> available() == (why_not_available() is None)
    True
    """
    return None if available() else obstacle(_PATH)


def backends() -> tuple[str, ...]:
    """Return the names :func:`backend` takes here: "numpy", the compiled ones, the fastest last, and "cuda" for a card.

    Examples
    --------
    >>> backends()[0]
    'numpy'
    """
    return (*_on_processors(), *([_CARD_NAME] if presence.available() else []))


def _on_processors() -> tuple[str, ...]:
    levels = () if _LIBRARY is None else _LIBRARY.levels
    return ("numpy", *(f"native-{_LEVELS[i]}" for i in levels))


def level() -> str:
    """Return what is in use here and now: "numpy", "native-" and an instruction set, or "cuda".

    Examples
    --------
    >>> with backend("numpy"):
    ...     level()
    'numpy'
    """
    number = _chosen.get()
    if number == _CARD:
        return _CARD_NAME
    return "numpy" if number is None else f"native-{_LEVELS[number]}"


@contextmanager
def backend(name: str) -> Iterator[None]:
    """Use one backend inside a `with` block, in this thread (or task) alone.

    Arrays that lie on a card are worked on there without it; inside "numpy" or a compiled one they are fetched. With
    "cuda", others are sent to the card in blocks.

    Parameters
    ----------
    name : one of :func:`backends`, or "native" for the fastest of the compiled ones

    Examples
    --------
    >>> with backend("numpy"):
    ...     inside = level()
    >>> inside
    'numpy'
    """
    names = _on_processors()
    if name == "native" and available():
        name = names[-1]
    if name not in names and (name != _CARD_NAME or not presence.available()):
        raise InvalidArgumentError(
            f"backend must be one of {', '.join(backends())} on this machine, or native, got {shown(name)}."
            + ("" if available() else " The compiled kernels are not installed: reinstall with a C++ compiler.")
            + (f" {presence.why_not_available()}" if name == _CARD_NAME else "")
        )
    number = None if name == "numpy" else _CARD if name == _CARD_NAME else _LEVELS.index(name.removeprefix("native-"))
    token, asked = _chosen.set(number), _asked_for.set(True)
    try:
        yield
    finally:
        _chosen.reset(token)
        _asked_for.reset(asked)


# -------------------------------------------------------------------- how many threads the kernels may take

_LOCK = threading.Lock()
_SHARED = 0  # how many blocks of `one_thread_each` are being run


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Let every call of the kernels take one thread, where calls come from several threads at once.

    Examples
    --------
    >>> with one_thread_each():
    ...     limited(8)
    1
    """
    global _SHARED
    with _LOCK:
        _SHARED += 1
    try:
        yield
    finally:
        with _LOCK:
            _SHARED -= 1


def limited(threads: int) -> int:
    """Return how many of these threads a call may take."""
    return 1 if _SHARED else threads


def thread_limit() -> int:
    """Return how many threads the kernels take at most; without kernels, the cores there are.

    Examples
    --------
    >>> thread_limit() >= 1
    True
    """
    available = current()
    if available is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return int(available[0].dpm_get_num_threads())


def _register_with_threadpoolctl() -> None:
    """Let threadpoolctl, where it is installed, limit the kernels' threads like those of BLAS."""
    try:
        from threadpoolctl import LibController, register
    except ImportError:
        return

    class KernelController(LibController):  # type: ignore[misc]
        """The kernels' number of threads, for `threadpool_limits` and `threadpool_info`."""

        user_api = "dpmanifold"
        internal_api = "dpmanifold"
        filename_prefixes = (LIBRARY_NAME.partition(".")[0],)
        check_symbols = ("dpm_get_num_threads",)

        def get_num_threads(self) -> int:
            """Return the limit."""
            return int(self.dynlib.dpm_get_num_threads())

        def set_num_threads(self, num_threads: int) -> None:
            """Set the limit."""
            self.dynlib.dpm_set_num_threads(num_threads)

        def get_version(self) -> str:
            """Return the version of the library's interface."""
            return str(self.dynlib.dpm_version())

    register(KernelController)


if _LIBRARY is not None:
    _register_with_threadpoolctl()
