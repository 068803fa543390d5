"""The CUDA kernels: compiled on the machine they run on, when they are first needed, and started."""

from __future__ import annotations

import ctypes
import hashlib
import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from dpmanifold.linalg import native
from dpmanifold.linalg.cards.presence import cupy_module

# They travel with the package, beside those for processors.
SOURCES = Path(native.__file__).with_name("src")

# What a block of threads may have of shared memory without asking for more.
_SHARED = 48 * 1024

_LOCK = threading.Lock()
_KERNELS: dict[tuple[int, str, str, tuple[str, ...], int | None], Kernel] = {}


@dataclass(frozen=True)
class Kernel:
    """A compiled kernel on one card.

    Attributes
    ----------
    function : what CuPy starts
    threads : in a block
    at_once : items that a block works on at a time
    shared : bytes of shared memory of a block
    resident : blocks that the card holds at a time
    copies : how many copies of the sums blocks add to, so that they do not wait for each other
    """

    function: Any
    threads: int
    at_once: int
    shared: int
    resident: int
    copies: int = 1

    def start(self, n: int, arguments: ctypes.Structure, *more: np.generic) -> None:
        """Start it on the current stream for n items; blocks take the rest in turns."""
        grid = min(-(-n // self.at_once), self.resident)
        # CuPy takes a structure by value as an array without axes; of bytes, since it spells fields out at every call.
        one = np.frombuffer(bytearray(arguments), dtype=f"V{ctypes.sizeof(arguments)}").reshape(())
        self.function((grid,), (self.threads,), (one, *more), shared_mem=self.shared)


def kernel(file: str, name: str, settings: dict[str, int], shared: int | None = None) -> Kernel:
    """Return a kernel of a file for the current card, compiled with these settings; kept for the next time.

    Parameters
    ----------
    file, name : where it stands, and what it is called there
    settings : what is defined for the compiler
    shared : bytes of shared memory of a block, where the file does not say; it has no sums then
    """
    cupy = cupy_module()
    options = ("-std=c++17", f"-I{SOURCES}", *(f"-D{key}={value}" for key, value in settings.items()))
    key = (int(cupy.cuda.runtime.getDevice()), file, name, options, shared)
    with _LOCK:
        if key not in _KERNELS:
            _KERNELS[key] = _compiled(file, name, options, shared)
        return _KERNELS[key]


def largest_shared() -> int:
    """Return how many bytes of shared memory a block may have on the current card."""
    attributes = cupy_module().cuda.Device().attributes
    return int(attributes["MaxSharedMemoryPerBlockOptin"])


def _compiled(file: str, name: str, options: tuple[str, ...], shared: int | None) -> Kernel:
    cupy = cupy_module()
    module = cupy.RawModule(code=_source(file), options=options)
    function = module.get_function(name)
    # Threads, items at once, shared memory and, of a file that adds, copies of the sums.
    entries = 4 if shared is None else 3
    shape = cupy.ndarray((entries,), dtype=np.int32, memptr=module.get_global("dpm_card_shape")).get().tolist()
    threads, at_once, copies = shape[0], shape[1], shape[3] if shared is None else 1
    shared = shape[2] if shared is None else shared
    if shared > _SHARED:
        # One function serves images of all sizes: what another size asked for stays.
        function.max_dynamic_shared_size_bytes = max(shared, int(function.max_dynamic_shared_size_bytes))
    per_processor = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(function.kernel.ptr, threads, shared)
    processors = int(cupy.cuda.Device().attributes["MultiProcessorCount"])
    return Kernel(function, threads, at_once, shared, max(1, int(per_processor)) * processors, copies)


@cache
def _source(file: str) -> str:
    """Return a source under the digest of everything it may include: CuPy keeps compiled code by the text alone."""
    digest = hashlib.sha256()
    for path in sorted(SOURCES.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return f"// {digest.hexdigest()}\n{(SOURCES / file).read_text(encoding='utf-8')}"


__all__ = ["SOURCES", "Kernel", "kernel", "largest_shared"]
