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
    """A ledger cannot be opened or cannot be trusted; the message says what to do. Nothing was spent."""


class MissingPackageError(DPManifoldError, ImportError):
    """Something needs a package that the bare install does not bring; the message says how to get it."""


class SourceChangedError(DPManifoldError, RuntimeError):
    """What records are read from is not what it was when it was opened: a file was changed or removed meanwhile."""


class ClusterError(DPManifoldError, RuntimeError):
    """Workers cannot do their part: none answer, they were lost for good, or their results would differ in bits."""
