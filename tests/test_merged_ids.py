"""Ids that come in pieces are grouped, ordered and refused as those of one array."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from dpmanifold._merged_ids import MergedIds, unit_ids
from dpmanifold.errors import InvalidArgumentError, SourceChangedError

pytestmark = pytest.mark.security

KINDS = {
    "small numbers": st.integers(0, 30),
    "spread numbers": st.integers(-(2**62), 2**62),
    "numbers of any size": st.integers(-(2**70), 2**70),
    "text": st.text(st.sampled_from("aB\u00e9 07.\u200b"), min_size=1, max_size=4),
}


def grouped(ids, cuts):
    """Number ids piece by piece, merge the pieces, and return names and groups in the order of the ids."""
    pieces = np.split(np.arange(len(ids)), sorted(cuts))
    merged, place = MergedIds(), []
    for i, rows in enumerate(pieces):
        one = MergedIds()
        number = np.concatenate([np.empty(0, int), *(one.add([ids[r]], f"piece {i}", k) for k, r in enumerate(rows))])
        place.append(merged.merge(pickle.loads(pickle.dumps(one)))[number])
    found = merged.sorted()
    return list(found.names), found.group[np.concatenate(place)].tolist()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_pieces_give_the_verdict_of_one_array(kind, data):
    ids = data.draw(st.lists(KINDS[kind], min_size=1, max_size=12))
    cuts = data.draw(st.lists(st.integers(0, len(ids)), max_size=3))
    try:
        expected = unit_ids(ids, len(ids))
    except InvalidArgumentError:
        with pytest.raises(InvalidArgumentError):
            grouped(ids, cuts)
        return
    assert grouped(ids, cuts) == (list(expected.names), expected.group.tolist())


@pytest.mark.parametrize("spread", [1, 10**11])
def test_many_numbers(spread):
    """A table that grows at both ends, and numbers too far apart for one."""
    rng = np.random.default_rng(0)
    ids = rng.integers(-50_000, 50_000, 30_000) * spread
    merged = MergedIds()
    number = np.concatenate([merged.add(part, "") for part in np.array_split(ids, 23)])
    found, expected = merged.sorted(), unit_ids(ids, len(ids))
    np.testing.assert_array_equal(found.group[number], expected.group)
    np.testing.assert_array_equal(found.found, expected.found)
    np.testing.assert_array_equal(merged.find(ids[::3]), number[::3])


def test_unsigned_numbers_of_all_sizes():
    ids = np.array([2**64 - 1, 5, 2**63], dtype=np.uint64)
    merged = MergedIds()
    assert merged.add(np.array([5, 6]), "a").tolist() == [0, 1]
    assert len({0, 1} | set(merged.add(ids, "b").tolist())) == 4
    assert merged.sorted().names == [5, 6, 2**63, 2**64 - 1]


def test_an_id_that_was_not_there_is_a_change():
    for ids, other in ((np.array([1, 2]), np.array([3])), (["a", "b"], ["c"]), (["a", "b"], [3]), (["a"], ["a "])):
        merged = MergedIds()
        merged.add(ids, "a")
        with pytest.raises(SourceChangedError, match="piece 4"):
            merged.find(other, "piece 4")


def test_nothing_about_ids_is_shown():
    merged = MergedIds()
    merged.add(["secret"], "a")
    assert repr(merged) == "MergedIds()"


def test_threads_that_look_ids_up_do_not_disturb_each_other():
    """Text that spells whole numbers is looked up in a table, which is filled as it is asked for."""
    names = np.arange(20_000)
    pieces = [MergedIds() for _ in range(2)]
    for one, part in zip(pieces, np.array_split(names, 2), strict=True):
        one.add(pa.array(part.astype(str)), "a")
    for _ in range(2):
        merged = MergedIds()
        for one in pieces:
            merged.merge(pickle.loads(pickle.dumps(one)))
        asked = [np.random.default_rng(seed).permutation(names)[:4000] for seed in range(40)]
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(merged.find, [pa.array(part.astype(str)) for part in asked]))
        for part, number in zip(asked, found, strict=True):
            np.testing.assert_array_equal(number, part)


def test_whole_numbers_as_text_keep_their_numbers_when_another_word_comes():
    whole, words = pa.array(["10", "9", "10"]), pa.array(["ann", "9", "7.0"])
    ids = MergedIds()
    assert ids.add(whole).tolist() == [1, 0, 1]
    assert ids.sorted().names == ["10", "9"] == pickle.loads(pickle.dumps(ids)).sorted().names
    taken = MergedIds()
    taken.merge(ids)
    assert taken.add(words).tolist() == [2, 0, 3]
    assert taken.sorted().names == ["10", "7.0", "9", "ann"]
    assert len(ids) == 2  # whose ids were taken over
    assert taken.find(ids.distinct).tolist() == [0, 1]
    again = pickle.loads(pickle.dumps(taken))
    assert again.add(whole).tolist() == [1, 0, 1]
    assert again.find(words).tolist() == [2, 0, 3]
    with pytest.raises(InvalidArgumentError, match="differs from one in another part"):
        taken.add(pa.array(["7"]))


def test_numbers_keep_their_numbers_when_they_are_sent():
    for known in ([5, 3, 2**60], [5, 3, 2**70], [5, 3]):
        ids = MergedIds()
        ids.add(np.array([4], dtype=object if 2**70 in known else np.int64))
        ids.add(np.array(known, dtype=object if 2**70 in known else np.int64))
        again = pickle.loads(pickle.dumps(ids))
        assert again.find(ids.distinct).tolist() == [0, 1, 2, 3][: len(ids)]
        assert again.add(np.array([6, 3])).tolist() == [len(ids), int(ids.find(np.array([3]))[0])]
