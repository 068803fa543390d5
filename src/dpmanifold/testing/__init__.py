"""For those who write a space of their own: what it states, compared with what it computes.

Not for private data, and no proof: samples of a space can show that a fact is wrong, never that a bound holds
everywhere.
"""

from dpmanifold.testing.spaces import check_space

__all__ = ["check_space"]
