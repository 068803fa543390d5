"""Who owns which record, where records come in pieces: nobody is taken for somebody else, and nobody is missing."""

import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from dpmanifold._merged_ids import MergedIds, NumberIds
from dpmanifold.errors import InvalidArgumentError

pytestmark = pytest.mark.security


@pytest.mark.parametrize("first", ["1000", "ann"])  # the other one has spellings made
def test_threads_that_look_up_ids_together_find_the_right_people(monkeypatch, first):
    # Whole numbers that are written as text, as in CSV files: looked up in a table that a later pass fills.
    pieces = [np.arange(0, 40, 2), np.arange(1, 41, 2), np.arange(30, 80)]
    blocks = [pa.array(list(map(str, piece.tolist()))).dictionary_encode() for piece in pieces]
    ids = MergedIds()
    for block in [pa.array([first]).dictionary_encode(), *blocks]:
        other = MergedIds()
        other.add(block)
        ids.merge(other)
    # While one thread has the new ones numbered, the other one comes in.
    monkeypatch.setattr(NumberIds, "distinct", property(lambda table: (time.sleep(0.06), table._known)[1]))

    found = [None] * 3
    threads = [threading.Thread(target=lambda i=i: found.__setitem__(i, ids.find(blocks[i]))) for i in (0, 1)]
    for thread in threads:
        thread.start()
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    found[2] = ids.find(blocks[2])

    everybody = ids.sorted()
    for piece, number in zip(pieces, found, strict=True):
        assert [everybody.names[one] for one in everybody.group[number]] == list(map(str, piece.tolist()))


@pytest.mark.parametrize("words", [["7", None, "8"], ["ann", None, "bob"]])
def test_a_gap_in_text_of_arrow_is_nobody(words):
    for units in (pa.array(words), pa.array(words).dictionary_encode(), pa.chunked_array([words])):
        with pytest.raises(InvalidArgumentError, match="missing id at index 1"):
            MergedIds().add(units)
