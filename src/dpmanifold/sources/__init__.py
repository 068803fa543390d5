"""Records that do not lie in one array: what a source is, and how one is made of what a user gives."""

from dpmanifold.sources.base import ADAPTERS, Adapter, Block, Piece, Projected, SetApart, Source, as_source, is_a

__all__ = ["ADAPTERS", "Adapter", "Block", "Piece", "Projected", "SetApart", "Source", "as_source", "is_a"]
