"""Whether a worker computes with the same bits as the driver: the same versions, kernels and rounding of functions.

Sums are exact, so that nobody can tell how work was divided; but a logarithm may be rounded differently by another
version of numpy or on another processor, and then a release would depend on which worker took which records.
"""

from __future__ import annotations

import hashlib
import math
import platform
import sys
from functools import cache
from typing import NamedTuple

import numpy as np

from dpmanifold._version import __version__
from dpmanifold.errors import ClusterError
from dpmanifold.linalg import backend, backends, level, logm
from dpmanifold.linalg.cards.presence import card_kind
from dpmanifold.linalg.native.library import interface_version

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
