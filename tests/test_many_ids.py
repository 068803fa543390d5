"""Every character there is, and a million ids: what tests/test_ids.py shows of a few, for seconds."""

import unicodedata

import numpy as np
import pytest

from dpmanifold._ids import key_of
from dpmanifold._merged_ids import unit_ids

pytestmark = pytest.mark.slow


def test_every_character_has_a_key_that_stays():
    """A key is a fixed point, so that comparing the keys of names is comparing those of the ids."""
    for code in range(0x110000):
        mark = chr(code)
        for text in (f"a{mark}b", f"{mark}7.0", f"e{mark}\u0301"):
            key = key_of(text)
            assert key_of(key) == key, ascii(text)
            assert key_of(unicodedata.normalize("NFC", text.strip())) == key, ascii(text)


def test_a_million_ids_are_counted():
    """Which ends: a comparison of each with each would take hours."""
    numbers = np.random.default_rng(0).integers(0, 300_000, 1_000_000)
    text = [f"person-{number}" for number in numbers]
    accents = [f"rené  {number}" for number in numbers]
    for units in (numbers, numbers.tolist(), text, np.array(text), accents):
        assert len(unit_ids(units, len(numbers)).names) == len(np.unique(numbers))
