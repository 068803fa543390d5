"""Every exception and warning a user of dpmanifold can meet.

Each message names the argument, says what was received and what to do about it. Errors about
records (:class:`InvalidDataError`) describe the data and are meant for the curator alone.
"""


class DPManifoldError(Exception):
    """Base class: catch this to catch everything the library raises on purpose."""


class InvalidArgumentError(DPManifoldError, ValueError):
    """A public argument (a radius, a dimension, a tolerance) is not acceptable."""


class InvalidDataError(DPManifoldError, ValueError):
    """A record is not a point of the space. For the curator's eyes: the message describes data."""


class ConvergenceError(DPManifoldError, RuntimeError):
    """A solver without a ball could not reach the tolerance it was asked for."""


class SamplerError(DPManifoldError, RuntimeError):
    """A sampler broke one of its own guarantees. Nothing was drawn; please report it."""


class PromiseError(DPManifoldError, ValueError):
    """A promise cannot be kept, or cannot be converted into another one. Nothing was drawn and nothing was spent."""


class BudgetError(DPManifoldError, RuntimeError):
    """A release would spend more than is left of a budget. Nothing was drawn and nothing was spent."""


class LedgerError(DPManifoldError, RuntimeError):
    """A ledger cannot be opened, written to or trusted; the message says what to do.

    Where something was paid for before, the message says so and names its key: with it one asks again at no cost.
    """


class MissingPackageError(DPManifoldError, ImportError):
    """Something needs a package that the bare install does not bring; the message says how to get it."""


class SourceChangedError(DPManifoldError, RuntimeError):
    """What records are read from is not what it was when it was opened: a file was changed or removed meanwhile."""


class ClusterError(DPManifoldError, RuntimeError):
    """Workers cannot do their part: none answer, they were lost for good, or their results would differ in bits."""


class CardError(DPManifoldError, RuntimeError):
    """A CUDA card cannot do its part: it is not there, has no memory left, or failed. No record can cause it."""


class ReleaseLostError(DPManifoldError, RuntimeError):
    """A release was paid for and is lost: the spend stands, and nothing was released. Why is not told.

    Whatever went wrong did so behind the payment, with records at hand, and a reason could tell about them: whoever
    holds them is told it (`curator=`). Where an account paid, the message names the key of the request; under it
    nothing will ever be released.

    Examples
    --------
    >>> ReleaseLostError.of("mean-v1")  # doctest: +ELLIPSIS
    ReleaseLostError("the release under key 'mean-v1' is lost: ...")
    """

    @classmethod
    def of(cls, key: str | None = None) -> "ReleaseLostError":
        """Return the error for a key, or for a call without one, in the same words whatever went wrong."""
        if key is None:
            return cls(
                "the release is lost: it counts as paid for, and nothing was released. To ask once more is to pay once "
                "more. Why is told to whoever holds the data alone (curator=)."
            )
        return cls(
            f"the release under key {key!r} is lost: it was paid for, the spend stands, and nothing will be released "
            "under this key. To ask once more, and to pay once more, use another key."
        )
