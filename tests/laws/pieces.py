"""A source of arrays in memory, cut into pieces and blocks: what files are to the library, without the files."""

import numpy as np

from dpmanifold.sources import Block, Piece, Source


class ListPiece(Piece):
    """Some rows of arrays, in blocks of some size."""

    def __init__(self, name, records, units, labels, block, rows_known):
        self.name, self.rows = name, len(records) if rows_known else None
        self.records, self.units, self.labels, self.block = records, units, labels, block
        self.read = 0

    def blocks(self):
        self.read += 1
        for start in range(0, len(self.records), self.block):
            part = slice(start, start + self.block)
            yield Block(self.records[part], *(None if a is None else a[part] for a in (self.units, self.labels)))


class ListSource(Source):
    """Arrays cut at some places; columns are "person" and "group"."""

    def __init__(self, records, person=None, group=None, *, cuts=(), block=1000, rows_known=True):
        self.records, self.columns = records, {"person": person, "group": group}
        self.edges = [0, *sorted(cuts), len(records)]
        self.block, self.rows_known = block, rows_known

    @staticmethod
    def at_random(records, person=None, group=None, *, rng, most=5, **options):
        """Rows in any order, in up to so many pieces (empty ones among them) and blocks of any size but tiny ones."""
        n = len(records)
        order, cuts = rng.permutation(n), rng.integers(0, n + 1, rng.integers(0, most))
        columns = (None if a is None else np.asarray(a)[order] for a in (person, group))
        return ListSource(records[order], *columns, cuts=cuts, block=int(rng.integers(1 + n // 4, 1 + n)), **options)

    @property
    def rows(self):
        return len(self.records) if self.rows_known else None

    def bound(self, space, units=None, labels=None):
        units, labels = (self.columns[name] if isinstance(name, str) else name for name in (units, labels))
        self.pieces = [
            ListPiece(
                f"piece {i}",
                self.records[start:end],
                None if units is None else np.asarray(units)[start:end],
                None if labels is None else np.asarray(labels)[start:end],
                self.block,
                self.rows_known,
            )
            for i, (start, end) in enumerate(zip(self.edges[:-1], self.edges[1:], strict=True))
        ]
        return self.pieces
