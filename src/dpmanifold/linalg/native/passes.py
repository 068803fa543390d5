"""One pass of the compiled kernels over a batch of symmetric matrices, with numpy arrays on both sides.

Matrices are (n, k, k), k from 2 to 64, of which the lower triangles are read, or those triangles alone, packed by
rows, (n, k(k+1)/2). A pass applies a function (after a congruence, if asked), subtracts a centre, clips, and returns
whatever was asked for. Matrices that are not finite, not positive definite or too ill-conditioned for any table are
marked, never raised upon.
"""

from __future__ import annotations

import ctypes
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpmanifold._check import Array, FloatArray
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg.cards.arrays import CardArray, fetched, on_card
from dpmanifold.linalg.exact_sums import ExactSum, IntArray
from dpmanifold.linalg.native.library import ImageArguments, PassArguments, card_in_use, current, limited

if TYPE_CHECKING:
    from dpmanifold.linalg.cards.cuda_passes import Asked

# One by one matrices are numbers: numpy is exact there, and needs no help.
SMALLEST_SIZE, LARGEST_SIZE = 2, 64

# Numbers of the C enumeration Function.
NONE, LOG, ROOT, INVERSE_ROOT, EXP, CHECK, SYMMETRIZE = range(7)

# Bits of a status. The first three are faults; the last one says that a difference was longer than the radius.
UNUSABLE, NOT_FINITE, NOT_SYMMETRIC, CLIPPED = 1, 2, 4, 8
FAULTS = UNUSABLE | NOT_FINITE | NOT_SYMMETRIC

# More than any table covers: the largest one is taken, and matrices beyond 7e13 are marked. Smaller public bounds need
# fewer poles: 65 here, 33 at 1e6, 20 at 1e3.
ANY_CONDITION = 1e16

# A thread costs about as much as this many multiplications: work below it is not split.
_WORTH_A_THREAD = 5e6


class Outcome(NamedTuple):
    """What a pass returned; None for what was not asked for.

    Attributes
    ----------
    matrices : (n, k, k)
    coordinates : (n, k(k+1)/2), by vecd
    norms : (n,), Frobenius, before clipping
    marked : indices of matrices the kernels could not take; whatever was computed for them means nothing
    held : the status, here or on a card
    clips : how many were clipped, where it is known that none is marked
    """

    matrices: FloatArray | None
    coordinates: FloatArray | None
    norms: FloatArray | None
    marked: npt.NDArray[np.intp]
    held: npt.NDArray[np.uint8] | CardArray
    clips: int | None = None

    @property
    def status(self) -> npt.NDArray[np.uint8]:
        """(n,), the bits UNUSABLE, NOT_FINITE, NOT_SYMMETRIC (by CHECK and `tolerance` alone) and CLIPPED."""
        return np.asarray(self.held)


NOTHING = np.empty(0, dtype=np.intp)
ZERO = np.zeros((), dtype=np.uint8)


def usable(x: npt.NDArray[np.generic] | CardArray, accurate: bool = False) -> bool:
    """Return whether kernels are in use and take matrices of this size; `accurate` ones are those of processors.

    Examples
    --------
    >>> usable(np.zeros((5, 65, 65)))
    False
    """
    if x.ndim < 2 or x.shape[-2] != x.shape[-1] or x.dtype.kind == "c" or x.size == 0:
        return False
    if not SMALLEST_SIZE <= x.shape[-1] <= LARGEST_SIZE:
        return False
    return current() is not None or (not accurate and card_in_use(isinstance(x, CardArray)))


def usable_size(k: int, lies_there: bool = False) -> bool:
    """Return whether kernels are in use and take k x k matrices, which may lie on a card.

    Examples
    --------
    >>> usable_size(65)
    False
    """
    return SMALLEST_SIZE <= k <= LARGEST_SIZE and (current() is not None or card_in_use(lies_there))


def plain(a: Any) -> FloatArray:
    """Return `a` as the kernels read it: float64, contiguous and aligned; itself, if it is so already.

    An array on a card stays there as long as a card is in use.

    Examples
    --------
    >>> plain(np.ones((3, 2), dtype=np.float32).T).flags.c_contiguous
    True
    """
    if isinstance(a, CardArray):
        if card_in_use(lies_there=True):
            stays: Any = a
            batch: FloatArray = stays  # the passes take either
            return batch
        a = np.asarray(a)
    return np.require(a, np.float64, ["C", "A"])


def entered(x: Any, name: str = "x", accurate: bool = False) -> FloatArray:
    """Return a user's batch of matrices: a CardArray where it lies on a card whose kernels take it, else as it is.

    Arrays on a card are fetched where a backend for processors was asked for, and where matrices are too large.

    Examples
    --------
    >>> entered(np.eye(2)).shape
    (2, 2)
    """
    entering: Any = x
    if not isinstance(x, np.ndarray) and on_card(x):
        card = CardArray.of(x, name)
        entering = card if card_in_use(lies_there=True) and not accurate and usable(card) else np.asarray(card)
    batch: FloatArray = entering
    return batch


def run(
    x: FloatArray,
    function: int,
    *,
    condition: float = ANY_CONDITION,
    accurate: bool = False,
    factor: FloatArray | None = None,
    lower: bool = True,
    power: int = 0,
    powers: IntArray | None = None,
    center: FloatArray | None = None,
    radius: float = math.inf,
    tolerance: float | None = None,
    rows: IntArray | None = None,
    group: IntArray | None = None,
    matrices: bool = False,
    coordinates: bool = False,
    norms: bool = False,
    sums: ExactSum | None = None,
    moved: FloatArray | None = None,
    places: IntArray | None = None,
) -> Outcome:
    """Run one pass over C-contiguous float64 matrices; call only where :func:`usable` says so.

    Parameters
    ----------
    x : the matrices, (m, k, k), or their packed lower triangles, (m, k(k+1)/2)
    function : NONE, LOG, ROOT, INVERSE_ROOT or EXP; CHECK, for the status alone; SYMMETRIZE, for matrices alone
    condition : public bound on condition numbers; decides the number of poles. A matrix beyond it is done with the
        largest number, by itself
    accurate : one-sided Jacobi on the Cholesky factor instead (work then depends on the data)
    factor : (k, k), a congruence with it comes first; with `powers`, (groups, k, k), one for each group
    lower : whether `factor` is lower triangular
    power : the result is that of 2^-power times the matrices (LOG and NONE alone)
    powers : (groups,), the same for each group
    center : (k, k), subtracted from the function's value
    radius : differences longer than this are shortened to it; for CHECK, the share of the largest entry by which
        mirrored entries may differ
    tolerance : look at both triangles as CHECK does, with this share, and go on with the symmetric part
    rows : (n,), which matrices of packed ones to take; all by default
    group : (m,), the group of each matrix
    matrices, coordinates, norms : what to return
    sums : where to add the lower triangles of the result, packed by rows; marked matrices are left out
    moved : (places, k(k+1)/2), where to write the triangles after the congruence, packed by rows
    places : (n,), in which row of `moved` each one goes; its own by default

    Examples
    --------
    >>> if current() is not None:
    ...     found = run(np.stack([np.eye(2), -np.eye(2)]), LOG, norms=True)
    ...     assert found.norms[0] == 0 and found.marked.tolist() == [1]
    """
    triangles = x.ndim == 2
    k = size_of(x.shape[-1]) if triangles else x.shape[-1]
    size = k * (k + 1) // 2
    n = len(x) if rows is None else len(rows)
    groups = 1 if sums is None else sums.groups
    # The kernels read as much memory as these shapes promise: a wrong one must stop here.
    require(x, (len(x), size) if triangles else (len(x), k, k), "the matrices")
    if factor is not None:
        require(factor, (k, k) if powers is None else (groups, k, k), "the factor")
    if center is not None:
        require(center, (k, k), "the center")
    for numbers, length, below, name in (
        (powers, groups, None, "the powers"), (rows, n, len(x), "the rows"), (group, len(x), groups, "the groups"),
    ):  # fmt: skip
        if numbers is not None:
            require_numbers(numbers, length, below, name)
    if moved is not None:
        require(moved, (len(moved), size), "the place for moved matrices")
        require_numbers(places, n, len(moved), "the places")
    if isinstance(moved, CardArray) and not moved.is_plain:
        raise InvalidArgumentError("the place for moved matrices must be plain doubles.")
    if (rows is not None and not triangles) or (powers is not None and (group is None or factor is None)):
        raise InvalidArgumentError("rows need packed triangles, and powers need groups and factors.")
    if sums is not None and sums.size != size:
        raise InvalidArgumentError(f"the sums must have {size} entries, got {sums.size}.")
    if not accurate and card_in_use(isinstance(x, CardArray)):
        from dpmanifold.linalg.cards.cuda_passes import Asked

        asked = Asked(
            x, n, k, function, condition, factor, lower, power, powers, center, radius, tolerance,
            rows, group, sums, moved, places, matrices, coordinates, norms,
        )  # fmt: skip
        return _on_card(asked)
    found = current()
    if found is None:
        raise RuntimeError("the native kernels are not in use here: ask usable() first.")
    handle, level = found
    if isinstance(moved, CardArray):
        raise InvalidArgumentError("the place for moved matrices lies on a card, which is not in use here.")
    if isinstance(x, CardArray):
        x = plain(np.asarray(x))
    status = np.empty(n, dtype=np.uint8)
    out_matrices = np.empty((n, k, k)) if matrices else None
    out_coordinates = np.empty((n, size)) if coordinates else None
    out_norms = np.empty(n) if norms else None
    if sums is not None:
        sums.count(n)
    arguments = PassArguments(
        n=n,
        k=k,
        function=function,
        accurate=accurate,
        factor_is_lower=lower,
        power=power,
        radius=radius,
        inspect=tolerance is not None,
        triangles=triangles,
        tolerance=0.0 if tolerance is None else tolerance,
        fixed=0.0 if sums is None else math.ldexp(1.0, sums.shift),
    )
    point_at(
        arguments,
        x=x,
        factor=factor,
        center=center,
        matrices=out_matrices,
        coordinates=out_coordinates,
        norms=out_norms,
        status=status,
        rows=rows,
        codes=group,
        powers=powers,
        moved=moved,
        places=places,
        words=None if sums is None else sums.words,
    )
    work = n * k * k * (k + 60.0)
    count = checked(handle.dpm_pass(level, ctypes.byref(arguments), condition, threads(handle, work)))
    marked = np.flatnonzero(status & FAULTS) if count else NOTHING
    return Outcome(out_matrices, out_coordinates, out_norms, marked, status)


def images(
    x: FloatArray, function: int, *, factor: FloatArray | None = None, lower: bool = True, power: int = 0
) -> FloatArray:
    """Return what one pass makes of matrices (..., k, k) in any memory layout; keywords as in :func:`run`.

    Examples
    --------
    >>> if current() is not None:
    ...     assert images(np.eye(2), NONE, factor=2 * np.eye(2)).tolist() == [[4.0, 0.0], [0.0, 4.0]]
    """
    batch = plain(x).reshape(-1, *x.shape[-2:])
    found = run(batch, function, factor=factor, lower=lower, power=power, matrices=True).matrices
    assert found is not None
    return found.reshape(x.shape)


def _on_card(asked: Asked) -> Outcome:
    """Let a card do a pass that was checked."""
    from dpmanifold.linalg.cards.cuda_passes import run as run_there

    if asked.sums is not None:
        asked.sums.count(asked.n)
    if asked.n:
        return run_there(asked)
    matrices = np.empty((0, asked.k, asked.k)) if asked.matrices else None
    coordinates = np.empty((0, asked.size)) if asked.coordinates else None
    return Outcome(matrices, coordinates, np.empty(0) if asked.norms else None, NOTHING, np.empty(0, np.uint8), 0)


def longest_norm(triangles: CardArray) -> tuple[float, npt.NDArray[np.intp]]:
    """Return the largest norm of logarithms of packed triangles on a card, and which ones its kernels did not take."""
    from dpmanifold.linalg.cards.cuda_passes import Asked, longest_norm as look_there

    k, n = size_of(triangles.shape[-1]), len(triangles)
    asked = Asked(
        triangles, n, k, LOG, ANY_CONDITION, None, True, 0, None, None, math.inf, None,
        None, None, None, None, None, False, False, True,
    )  # fmt: skip
    return look_there(asked)


def size_of(entries: int) -> int:
    """Return the size of a matrix whose lower triangle has so many entries.

    >>> size_of(6)
    3
    """
    return (math.isqrt(8 * entries + 1) - 1) // 2


def describes(images: Array | CardArray) -> bool:
    """Return whether kernels are in use for these images: always, but for numpy.

    Examples
    --------
    >>> describes(np.zeros((1, 8, 8))) == (current() is not None)
    True
    """
    return current() is not None or _fits_card(images)


def _fits_card(images: Array | CardArray) -> bool:
    if not card_in_use(isinstance(images, CardArray)):
        return False
    from dpmanifold.linalg.cards.descriptor_kernels import fits

    return fits(images)


def describe(images: Array | CardArray, eta: float, columns: FloatArray, rows: FloatArray) -> FloatArray:
    """Return covariance descriptors of uint8, float32 or float64 images that were checked.

    `columns` and `rows` are the features x and y. Shapes as in :mod:`dpmanifold.data.descriptors`.

    Examples
    --------
    >>> if current() is not None:
    ...     line = np.linspace(0.0, 1.0, 8)
    ...     assert describe(np.zeros((2, 8, 8), dtype=np.uint8), 1e-6, line, line).shape == (2, 9, 9)
    """
    n, height, width = images.shape[:3]
    require(columns, (width,), "the columns")
    require(rows, (height,), "the rows")
    if _fits_card(images):
        from dpmanifold.linalg.cards.descriptor_kernels import describe as describe_there

        return describe_there(images, eta, columns, rows)
    found = current()
    if found is None:
        raise RuntimeError("the native kernels are not in use here: ask usable() first.")
    handle, level = found
    pixels = np.require(fetched(images), requirements=["C", "A"])
    channels = 1 if images.ndim == 3 else 3
    size = 9 if channels == 1 else 11
    out = np.empty((n, size, size))
    arguments = ImageArguments(
        n=n,
        height=height,
        width=width,
        channels=channels,
        kind=[np.dtype(np.uint8), np.dtype(np.float32), np.dtype(np.float64)].index(images.dtype),
        eta=eta,
    )
    point_at(arguments, pixels=pixels, columns=columns, rows=rows, out=out)
    checked(handle.dpm_describe(level, ctypes.byref(arguments), threads(handle, 100.0 * images.size)))
    return out


def require(array: FloatArray | None, shape: tuple[int, ...], name: str) -> None:
    """Refuse an array, if there is one, that is not what the kernels read: plain doubles of one shape.

    A card makes its own plain.
    """
    if array is None or (isinstance(array, CardArray) and array.shape == shape):
        return
    plain_doubles = array.dtype == np.float64 and array.shape == shape
    if not plain_doubles or not (array.flags.c_contiguous and array.flags.aligned):
        raise InvalidArgumentError(
            f"{name} must be a plain array of float64 of shape {shape}, got {array.dtype} of shape {array.shape}."
        )


def require_numbers(array: IntArray | None, length: int, below: int | None, name: str) -> None:
    """Refuse whole numbers, if there are any, that are too few or (with `below`) places outside an array."""
    if array is None:
        return
    plain_numbers = array.dtype == np.int64 and array.flags.c_contiguous and array.flags.aligned
    inside = below is None or array.size == 0 or (array.min() >= 0 and array.max() < below)
    if array.shape != (length,) or not plain_numbers or not inside:
        raise InvalidArgumentError(
            f"{name} must be {length} numbers of type int64" + ("." if below is None else f" from 0 to {below - 1}.")
        )


def point_at(arguments: ctypes.Structure, **arrays: npt.NDArray[np.generic] | None) -> None:
    """Have fields of a structure point at where the numbers of arrays stand in memory; others stay null."""
    for name, array in arrays.items():
        if array is not None:
            # Five times as fast as array.ctypes.data, which counts where matrices are few.
            setattr(arguments, name, array.__array_interface__["data"][0])


def threads(handle: ctypes.CDLL, work: float) -> int:
    """Return how many threads to use: the limit, or fewer where the work is not worth it."""
    limit = limited(int(handle.dpm_get_num_threads()))
    return limit if limit == 1 else max(1, min(limit, int(work / _WORTH_A_THREAD)))


def checked(code: int) -> int:
    """Return the number of marked records that a call returned, or raise what went wrong."""
    if code == -2:
        raise MemoryError("the native kernels found no working memory.")
    if code < 0:  # pragma: no cover - backend() offers only levels the machine has
        raise RuntimeError("this machine lacks the instruction set that was asked for.")
    return code
