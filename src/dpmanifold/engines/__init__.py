"""Where work on many pieces is done."""

from dpmanifold.engines.base import Engine, Held, StaysHere, ThreadEngine
from dpmanifold.engines.choice import current_engine, using
from dpmanifold.engines.dask import DaskEngine

__all__ = ["DaskEngine", "Engine", "Held", "StaysHere", "ThreadEngine", "current_engine", "using"]
