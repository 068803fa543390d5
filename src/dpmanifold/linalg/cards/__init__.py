"""The SPD kernels on a CUDA card: arrays that lie there, and passes over them or over arrays that are sent there.

CuPy brings them (`pip install "dpmanifold[gpu]"`), and is imported when a card is first asked for. What a pass means is
said in :mod:`dpmanifold.linalg.native.passes`, which hands over to this package.
"""

from dpmanifold.linalg.cards.arrays import CardArray, fetched, on_card
from dpmanifold.linalg.cards.presence import available, why_not_available

__all__ = ["CardArray", "available", "fetched", "on_card", "why_not_available"]
