"""Who does the work of a command: this process, worker processes that are started for it, or a cluster that runs."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from dpmanifold._check import optional_module
from dpmanifold.cli.failures import held_back, wants_traceback
from dpmanifold.cli.speech import working
from dpmanifold.engines import using
from dpmanifold.errors import InvalidArgumentError

_ADDRESS = re.compile(r"[a-z]+://\S+|[^\s:/]+:[0-9]+")


@contextlib.contextmanager
def at_work(words: Mapping[str, Any]) -> Iterator[None]:
    """Have the work inside the block done by the workers that were asked for, and end those that were started.

    They read and add up; what is spent, drawn and written is by this process alone.
    """
    workers, address = words["workers"], words["dask"]
    if workers is None and address is None:
        yield
        return
    if workers is not None and address is not None:
        raise InvalidArgumentError("--workers starts processes here, and --dask uses a cluster that runs. Give one.")
    if address is not None and not _ADDRESS.fullmatch(address):
        raise InvalidArgumentError(f"--dask {address} is no address of a scheduler, such as tcp://10.0.0.1:8786.")
    optional_module("distributed", "dask", "--dask" if workers is None else "--workers")
    from dpmanifold.engines import DaskEngine

    with _silence():
        engine: DaskEngine | None = None
        try:
            with working("starting workers" if address is None else "connecting", quiet=words["quiet"]):
                if address is not None:
                    engine = DaskEngine.connect(address)
                else:
                    with held_back():  # Dask cannot end workers that have not started
                        engine = DaskEngine.local(workers)
            with using(engine):
                yield
        finally:
            if engine is not None:
                with contextlib.suppress(Exception):  # what was released is released, whatever becomes of the workers
                    engine.close()


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keep what Dask logs about its workers off the terminal: what matters comes as an error, in words of ours."""
    if wants_traceback():
        yield
        return
    dask = optional_module("dask", "dask", "--workers")
    here = logging.getLogger("distributed")
    level = here.level
    with dask.config.set({"logging": {"distributed": "critical"}}):  # of worker processes, which take it over
        here.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            here.setLevel(level)
