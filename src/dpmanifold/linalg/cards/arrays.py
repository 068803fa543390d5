"""Arrays that lie on a CUDA card, whoever made them: CuPy, PyTorch, or anything that speaks their protocols.

Of many points there, those with the smallest hashes of their own bits can be found: which ones to try first.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array
from dpmanifold.errors import CardError, InvalidArgumentError
from dpmanifold.linalg.cards import presence
from dpmanifold.linalg.cards.presence import cupy_module, failures_told

# DLPack's numbers for memory of a CUDA card: its own, and what it shares with the host.
_CARDS = (2, 13)

# What is fetched through pinned memory, which the card writes to at the bus's full speed; more of it would be taken
# from the rest of the machine.
_PINNED_BYTES = 2**28


class CardArray:
    """An array of numbers on a CUDA card, read where it is.

    Slices stay on the card; what is picked by indices, and all of it by `np.asarray`, is fetched: so code that knows
    nothing of cards gets what it expects, a block at a time.

    Parameters
    ----------
    array : a CuPy array; :meth:`of` takes others
    """

    def __init__(self, array: Any) -> None:
        self.array = array

    @staticmethod
    def of(x: object, name: str = "x") -> CardArray:
        """Take an array on a card, without a copy; whatever still works on it is waited for."""
        if isinstance(x, CardArray):
            return x
        got = f"{name} is an array on a CUDA card, got {type(x).__name__}"
        problem = presence.why_not_available()
        if problem is not None:
            raise InvalidArgumentError(
                f"{got}, which cannot be read: {problem} Or give a numpy array: x.cpu().numpy(), cupy.asnumpy(x)."
            )
        cupy = presence.cupy_module()
        try:
            array = _taken(x, cupy)
        except CardError:
            raise
        except Exception:
            # Whatever a foreign object raises; its message may quote data.
            raise InvalidArgumentError(
                f"{got}, which CuPy cannot read. Give a dense array of float64, contiguous and without gradients."
            ) from None
        if array.dtype.kind not in "fiu":
            raise InvalidArgumentError(f"{got} of dtype {array.dtype}. Give real numbers, float64 at best.")
        return CardArray(array)

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return tuple(self.array.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self.array.ndim)

    @property
    def size(self) -> int:
        """The number of entries."""
        return int(self.array.size)

    @property
    def nbytes(self) -> int:
        """What it takes on the card."""
        return int(self.array.nbytes)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its entries."""
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def device(self) -> int:
        """The number of the card it lies on."""
        return int(self.array.device.id)

    @property
    def is_plain(self) -> bool:
        """Whether kernels can read it where it is: float64 in C order."""
        return self.dtype == np.float64 and bool(self.array.flags.c_contiguous)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"CardArray of shape {self.shape} on card {self.device}"

    def __getitem__(self, key: Any) -> Any:
        """Return a slice of the first axis, on the card; or what indices pick, on the host."""
        with presence.failures_told(), self.array.device:
            if isinstance(key, slice):
                return self if key == slice(0, len(self)) else CardArray(self.array[key])
            return on_host(self.array[_indices(key)])

    def __setitem__(self, key: Any, values: npt.ArrayLike) -> None:
        """Write values from the host."""
        with presence.failures_told(), self.array.device:
            self.array[key if isinstance(key, slice) else _indices(key)] = (
                presence.cupy_module().asarray(np.asarray(values, dtype=self.dtype))
            )  # fmt: skip
            _wait()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Fetch all of it."""
        if copy is False:
            raise ValueError("what lies on a card is copied to the host.")
        with presence.failures_told(), self.array.device:
            found = on_host(self.array)
        return found if dtype is None else found.astype(dtype, copy=False)

    def reshape(self, *shape: int) -> CardArray:
        """Return it with other axes; a view where that is possible."""
        with presence.failures_told(), self.array.device:
            return CardArray(self.array.reshape(shape))


def on_card(x: object) -> bool:
    """Return whether something is an array on a CUDA card; nothing is imported to find out.

    Examples
    --------
    >>> class Elsewhere:
    ...     def __dlpack_device__(self): return (2, 0)
    >>> on_card(Elsewhere()), on_card(np.zeros(2)), on_card([1.0])
    (True, False, False)
    """
    if isinstance(x, CardArray):
        return True
    if x is None or isinstance(x, (np.ndarray, np.generic, list, tuple, str, type)):
        return False
    try:
        # First: a tensor that keeps gradients raises where the other protocol is asked for.
        device = getattr(x, "__dlpack_device__", None)
        return hasattr(x, "__cuda_array_interface__") if device is None else int(device()[0]) in _CARDS
    except Exception:  # whatever a foreign object raises
        return False


def is_card_array(x: object) -> TypeGuard[CardArray]:
    """Return whether something is a CardArray.

    >>> is_card_array(np.zeros(2))
    False
    """
    return isinstance(x, CardArray)


def room_on_card(shape: tuple[int, ...], beside: object = None) -> Any:
    """Return room for doubles on a card: the one that another array lies on, or the one in use."""
    cupy = presence.cupy_module()
    with presence.failures_told(), beside.array.device if is_card_array(beside) else cupy.cuda.Device():
        return CardArray(cupy.empty(shape, dtype=np.float64))


def places_of(array: Any) -> Array:
    """Return where the entries of an array with one axis are not 0; looked for on the card, where it lies on one.

    >>> places_of(np.array([0, 8, 0, 8], dtype=np.uint8))
    array([1, 3])
    """
    if not is_card_array(array):
        return np.flatnonzero(array)
    with presence.failures_told(), array.array.device:
        return on_host(presence.cupy_module().flatnonzero(array.array))


def picked(array: Any, chosen: Array) -> Any:
    """Return what indices or truth values pick of the first axis; on the card, where the array lies on one.

    >>> picked(np.arange(3), np.array([True, False, True]))
    array([0, 2])
    """
    if not is_card_array(array):
        return array[chosen]
    with presence.failures_told(), array.array.device:
        return CardArray(array.array[_indices(chosen)])


def fetched(x: Any, name: str = "x") -> Any:
    """Return an array on a card as a numpy array, and anything else as it is; `name` is for messages.

    Examples
    --------
    >>> fetched([1.0])
    [1.0]
    """
    return np.asarray(CardArray.of(x, name)) if on_card(x) else x


def host_room(shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Array:
    """Return room on the host that a card writes to quickly: pinned, unless it is large."""
    nbytes = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if not 0 < nbytes <= _PINNED_BYTES:
        return np.empty(shape, dtype=dtype)
    # By allocations of CuPy's pool, which keeps them for the next call: to pin memory takes time.
    cupy = presence.cupy_module()
    memory = cupy.cuda.alloc_pinned_memory(nbytes)
    return np.ndarray(shape, dtype=dtype, buffer=memory)


def on_host(array: Any) -> Array:
    """Fetch a CuPy array of the current card."""
    if array.size == 0:
        return np.empty(array.shape, dtype=array.dtype)
    cupy = presence.cupy_module()
    array = cupy.ascontiguousarray(array)
    out = host_room(array.shape, array.dtype)
    array.get(out=out)
    return out


def _taken(x: Any, cupy: Any) -> Any:
    """Return an array on a card as CuPy's, once everything that was asked of the card is done."""
    if isinstance(x, cupy.ndarray):
        array = x
    else:
        if getattr(x, "requires_grad", False):
            x = x.detach()
        # DLPack waits for whoever still writes; of torch's tensors the quicker protocol is enough, with the wait below.
        if hasattr(x, "__dlpack__") and type(x).__module__.partition(".")[0] != "torch":
            with cupy.cuda.Device(int(x.__dlpack_device__()[1])):
                array = cupy.from_dlpack(x)
        else:
            array = cupy.asarray(x)
    # Streams differ from library to library, and not every protocol tells which one writes.
    with presence.failures_told(), array.device:
        _wait()
    return array


def _wait() -> None:
    presence.cupy_module().cuda.runtime.deviceSynchronize()


def _indices(key: Any) -> Any:
    """Return indices or truth values, which stand on the host, as CuPy takes them."""
    return presence.cupy_module().asarray(key) if isinstance(key, np.ndarray) else key


# Points whose hashes are held at a time.
_BLOCK = 2**24


def smallest(stored: CardArray, most: int) -> tuple[Array, npt.NDArray[np.uint64]]:
    """Return the points with the smallest hashes, `most` of them or a few more, and the hashes; fetched.

    The hash is that of :mod:`dpmanifold.frechet.map_reduce`, number by number.
    """
    with failures_told(), stored.array.device:
        share = min(1.0, 4 * most / max(1, len(stored)))
        while True:
            points, hashes = _below(stored, share, most)
            if len(hashes) >= min(most, len(stored)) or share == 1.0:
                return points, hashes
            share = min(1.0, 16 * share)


def _below(stored: CardArray, share: float, most: int) -> tuple[Array, npt.NDArray[np.uint64]]:
    """Return points whose hashes are within this share of all numbers, and the hashes.

    Of each block at most so many: what is fetched must not depend on how many points are alike.
    """
    cupy = cupy_module()
    numbers = stored.array.reshape(len(stored), -1)
    points, hashes = [], []
    for start in range(0, len(stored), _BLOCK):
        part = numbers[start : start + _BLOCK]
        mixed = part[:, 0].copy().view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        mixed += part[:, part.shape[1] // 2].copy().view(np.uint64)
        mixed *= np.uint64(0xD6E8FEB86659FD93)
        chosen = cupy.arange(len(mixed))
        if share < 1.0:
            chosen = cupy.flatnonzero(mixed < np.uint64(share * 2.0**63) * np.uint64(2))
        if len(chosen) > most:
            chosen = chosen[cupy.argpartition(mixed[chosen], most - 1)[:most]]
        part, mixed = part[chosen], mixed[chosen]
        points.append(on_host(part))
        hashes.append(on_host(mixed))
    return np.concatenate(points).reshape(-1, *stored.shape[1:]), np.concatenate(hashes)


__all__ = [
    "CardArray",
    "fetched",
    "host_room",
    "is_card_array",
    "on_card",
    "on_host",
    "picked",
    "places_of",
    "room_on_card",
    "smallest",
]
