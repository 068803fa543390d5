"""Records that do not lie in one array: what a source is, and how one is made of what a user gives."""

from dpmanifold.sources.adapters import ADAPTERS, Adapter, as_source, is_a
from dpmanifold.sources.base import Block, Piece, Projected, SetApart, Source

__all__ = ["ADAPTERS", "Adapter", "Block", "Piece", "Projected", "SetApart", "Source", "as_source", "is_a"]
