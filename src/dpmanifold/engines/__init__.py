"""Where work on many pieces is done."""

from dpmanifold.engines.base import Engine, Held
from dpmanifold.engines.choice import current_engine, using
from dpmanifold.engines.threads import ThreadEngine

__all__ = ["Engine", "Held", "ThreadEngine", "current_engine", "using"]
