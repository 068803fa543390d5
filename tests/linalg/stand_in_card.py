"""A card that is none: CuPy's names as far as they are used, over numpy arrays and the kernels for processors.

Everything but the CUDA code runs with it, on any machine; results have the bits of the processor's kernels.
"""

import contextlib
import ctypes
import types

import numpy as np

from dpmanifold.linalg.cards import cuda_passes as card_passes, modules, presence
from dpmanifold.linalg.native import library

OPERATORS = ["__add__", "__iadd__", "__mul__", "__imul__", "__lt__", "__ge__", "__le__", "__ne__", "__and__"]


class StandInDevice(contextlib.nullcontext):
    id = 0
    attributes = types.MappingProxyType({"MultiProcessorCount": 2, "MaxSharedMemoryPerBlockOptin": 227 * 1024})


class StandInArray:
    """An array that numpy does not know for one, as those of a card."""

    device = StandInDevice()

    def __init__(self, held):
        self.held = held

    def __dlpack_device__(self):
        return (2, 0)

    def __array__(self, *args, **kwargs):
        raise TypeError("implicit conversion to a NumPy array is not allowed")

    shape = property(lambda self: self.held.shape)
    ndim = property(lambda self: self.held.ndim)
    size = property(lambda self: self.held.size)
    nbytes = property(lambda self: self.held.nbytes)
    dtype = property(lambda self: self.held.dtype)
    flags = property(lambda self: self.held.flags)
    data = property(lambda self: types.SimpleNamespace(ptr=self.held.__array_interface__["data"][0]))

    def __len__(self):
        return len(self.held)

    def __getitem__(self, key):
        return StandInArray(self.held[bare(key)])

    def __setitem__(self, key, values):
        self.held[bare(key)] = bare(values)

    def __invert__(self):
        return StandInArray(~self.held)

    def __float__(self):
        return float(self.held)

    def reshape(self, *shape):
        return StandInArray(self.held.reshape(*shape))

    def view(self, dtype):
        return StandInArray(self.held.view(dtype))

    def copy(self):
        return StandInArray(self.held.copy())

    def max(self, axis=None):
        return StandInArray(self.held.max(axis=axis))

    def min(self, axis=None):
        return StandInArray(self.held.min(axis=axis))

    def get(self, stream=None, out=None, blocking=True):
        if out is None:
            return self.held.copy()
        assert out.shape == self.shape
        assert out.dtype == self.dtype
        assert out.flags.c_contiguous
        out[...] = self.held
        return out

    def set(self, array, stream=None):
        assert array.shape == self.shape
        assert array.dtype == self.dtype
        assert array.flags.c_contiguous
        self.held[...] = array


def bare(x):
    return x.held if isinstance(x, StandInArray) else x


for name in OPERATORS:
    setattr(StandInArray, name, lambda self, other, name=name: StandInArray(getattr(self.held, name)(bare(other))))


class StandInStream:
    def __init__(self, non_blocking=False):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass

    def synchronize(self):
        pass

    def record(self):
        return None

    def wait_event(self, event):
        pass


class StandInModule:
    """Compiles nothing: a kernel is the processor's, after what it was not compiled for has been taken away."""

    def __init__(self, code, options):
        self.settings = {key: int(value) for key, _, value in (o[2:].partition("=") for o in options if o[:2] == "-D")}

    def get_global(self, name):
        assert name == "dpm_card_shape"
        return np.array([64, 8, 0, 3], dtype=np.int32)

    def get_function(self, name):
        function = {"dpm_card_pass": self._pass, "dpm_card_describe": self._describe}[name]
        started = lambda grid, block, args, shared_mem: function(*args)  # noqa: E731
        return type("Function", (), {"__call__": staticmethod(started), "kernel": types.SimpleNamespace(ptr=0)})()

    def _pass(self, one, condition):
        assert one.shape == ()
        passed = library.PassArguments.from_buffer_copy(one.tobytes())
        assert (self.settings["DPM_K"], self.settings["DPM_FUNCTION"]) == (passed.k, passed.function)
        what = self.settings["DPM_WHAT"]
        for bit, field in (
            (card_passes.FACTOR, "factor"),
            (card_passes.CENTER, "center"),
            (card_passes.MATRICES, "matrices"),
            (card_passes.COORDINATES, "coordinates"),
            (card_passes.NORMS, "norms"),
            (card_passes.WORDS, "words"),
            (card_passes.CODES, "codes"),
            (card_passes.POWERS, "powers"),
            (card_passes.MOVED, "moved"),
        ):
            assert bool(what & bit) == bool(getattr(passed, field)), field
        assert bool(what & card_passes.RADIUS) == bool(np.isfinite(passed.radius))
        passed.factor_is_lower = bool(what & card_passes.LOWER)
        passed.triangles = bool(what & card_passes.TRIANGLES)
        passed.inspect = bool(what & card_passes.INSPECT)
        handle, level = library._LIBRARY.handle, library._BEST
        marked = handle.dpm_pass(level, ctypes.byref(passed), float(condition), 1)
        counts = (ctypes.c_longlong * 2).from_address(passed.counts)
        status = np.frombuffer((ctypes.c_ubyte * passed.n).from_address(passed.status), dtype=np.uint8)
        counts[0] += marked
        counts[1] += int(np.count_nonzero(status & 8))

    def _describe(self, one):
        images = library.ImageArguments.from_buffer_copy(one.tobytes())
        assert self.settings == {"DPM_CHANNELS": images.channels, "DPM_KIND": images.kind}
        library._LIBRARY.handle.dpm_describe(library._BEST, ctypes.byref(images), 1)


class OutOfMemoryError(MemoryError):
    """By CuPy's name."""


def stand_in_cupy(memory=2**40):
    """CuPy's names; allocations beyond `memory` bytes fail as they do on a card."""

    def empty(shape, dtype=np.float64):
        held = np.empty(shape, dtype=dtype)
        if held.nbytes > memory:
            raise OutOfMemoryError("out of memory, as CuPy says it")
        held.view(np.uint8)[...] = 0xA5  # whoever reads what was never written shall notice
        return StandInArray(held)

    def zeros(shape, dtype=np.float64):
        return StandInArray(np.zeros(shape, dtype=dtype))

    def array_of(shape, dtype, memptr):
        return StandInArray(memptr[: shape[0]])

    class Names(type):
        def __instancecheck__(cls, x):
            return isinstance(x, StandInArray)

    class NDArray(metaclass=Names):
        def __new__(cls, shape, dtype, memptr):
            return array_of(shape, dtype, memptr)

    runtime = types.SimpleNamespace(
        getDevice=lambda: 0,
        deviceSynchronize=lambda: None,
        pointerGetAttributes=lambda place: types.SimpleNamespace(type=place // 4096 % 2),  # either way, by chance
    )
    cuda = types.SimpleNamespace(
        Device=lambda number=0: StandInDevice(),
        Stream=StandInStream,
        get_current_stream=StandInStream,
        alloc_pinned_memory=bytearray,
        runtime=runtime,
        driver=types.SimpleNamespace(occupancyMaxActiveBlocksPerMultiprocessor=lambda *_: 4),
    )
    return types.SimpleNamespace(
        ndarray=NDArray,
        asarray=lambda x: x if isinstance(x, StandInArray) else StandInArray(np.array(x)),
        ascontiguousarray=lambda x, dtype=None: StandInArray(np.ascontiguousarray(bare(x), dtype=dtype)),
        flatnonzero=lambda x: StandInArray(np.flatnonzero(bare(x))),
        arange=lambda n: StandInArray(np.arange(n)),
        argpartition=lambda x, kth: StandInArray(np.argpartition(bare(x), kth)),
        empty=empty,
        zeros=zeros,
        RawModule=StandInModule,
        cuda=cuda,
    )


@contextlib.contextmanager
def stand_in(monkeypatch, memory=2**40):
    """Put the stand-in in CuPy's place."""
    with monkeypatch.context() as patch:
        patch.setattr(presence, "_found", lambda: (stand_in_cupy(memory), None))
        patch.setattr(modules, "_KERNELS", {})
        patch.setattr(modules, "_source", lambda file: "")
        yield StandInArray
