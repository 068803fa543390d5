"""Where work on many pieces is done."""

from dpmanifold.engines.base import Engine, Held, StaysHere
from dpmanifold.engines.choice import current_engine, using
from dpmanifold.engines.dask import DaskEngine
from dpmanifold.engines.threads import ThreadEngine

__all__ = ["DaskEngine", "Engine", "Held", "StaysHere", "ThreadEngine", "current_engine", "using"]
