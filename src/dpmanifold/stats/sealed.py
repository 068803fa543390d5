"""After the spend: what is computed from records, or drawn about them, never raises (theory section 8).

An exception is an output. If it depends on the records it tells about them, whatever the noise would have hidden, and
the budget is gone. So there is one door between the records and a draw, and everything behind the spend goes through
it: where a computation fails, or gives numbers that are none, a fixed public value takes its place and nothing shows.

This is the second line of defence. The first is that nothing fails: every computation behind the door is total on what
the checks before the spend let through. A failure that a record could cause at will would still tell through the value
that is then released, and is a defect.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from dpmanifold.errors import CardError, ClusterError, SourceChangedError

T = TypeVar("T")

_AFTERWARDS = " The budget was spent, and nothing was released."


def sealed(compute: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """Return what `compute` gives, or, if that raises or is not finite, what `otherwise` gives.

    `otherwise` must know public numbers and random bits alone. Numpy's warnings are silenced: they tell, too. Three
    errors are let through: that a file was changed or removed since it was read, that a cluster was lost, and that a
    CUDA card failed.

    Examples
    --------
    >>> sealed(lambda: 1 / 0, lambda: 0.0)
    0.0
    >>> sealed(lambda: np.array([np.nan]), lambda: np.zeros(1))
    array([0.])
    """
    with np.errstate(all="ignore"):
        try:
            result = compute()
            if _finite(result):
                return result
        except (SourceChangedError, ClusterError, CardError) as problem:
            # No record can cause them, and what would be released instead is about nothing at all.
            raise type(problem)(str(problem).removesuffix(_AFTERWARDS) + _AFTERWARDS) from None
        except Exception as problem:  # whatever it is, it must not be seen
            _swallow(problem)
        return otherwise()


def _swallow(problem: Exception) -> None:
    """Do nothing. Tests put something in its place that shows whether anything ever fails behind the spend."""


def _finite(result: object) -> bool:
    if isinstance(result, tuple):
        return all(_finite(part) for part in result)
    if isinstance(result, (float, complex, np.ndarray, np.number)):
        return bool(np.isfinite(result).all())
    return True
