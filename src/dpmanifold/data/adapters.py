"""What may be given as X besides arrays and lists: one adapter for each kind of object, found without an import."""

from __future__ import annotations

from collections.abc import Iterator

from dpmanifold._check import shown
from dpmanifold.data.dask_collections import dask_source
from dpmanifold.data.frames import frame_source
from dpmanifold.data.tensorfit import tensorfit_source
from dpmanifold.data.zarrs import zarr_source
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.sources import ADAPTERS


def _refuse_iterators(X: object) -> None:
    """Refuse what can be read only once."""
    if type(X).__module__.split(".")[0] == "mne":
        raise InvalidArgumentError(
            "`X` is an object of MNE ({got}). Give covariances: data.from_epochs(epochs), or of files "
            "data.from_epochs_files(files).",
            got=shown(X),
        )
    if isinstance(X, Iterator):
        raise InvalidArgumentError(
            "`X` is an iterator ({got}), which can be read only once, and records are read several times. "
            "Give a function that makes one: data.from_blocks(lambda: ...).",
            got=shown(X),
        )


ADAPTERS.register("frame", frame_source)
ADAPTERS.register("zarr", zarr_source)
ADAPTERS.register("dask", dask_source)
ADAPTERS.register("tensorfit", tensorfit_source)
ADAPTERS.register("iterator", _refuse_iterators)

__all__: list[str] = []
