"""Entries: one text for each, and none for what is no entry."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dpmanifold.ledger.entries import Entry
from dpmanifold.storage.chain import BEFORE_ALL, read_canonical

pytestmark = pytest.mark.security

LEDGER = "a-ledger"
FIRST = Entry.chained(
    LEDGER, None, "created", "", "created", {"note": "é \u2028 \x00", "many": [1, None, True, {"b": 1}]}
)
SECOND = Entry.chained(LEDGER, FIRST, "spend", "cohort", None, {})


def test_an_entry_is_one_line_of_ascii_and_back() -> None:
    for entry in (FIRST, SECOND):
        line = entry.line()
        assert line.isascii()
        assert "\n" not in line
        assert Entry.from_line(line) == entry
        assert Entry.from_dict(json.loads(line)) == entry
    assert (FIRST.seq, FIRST.prev) == (1, BEFORE_ALL)
    assert SECOND.prev == FIRST.hash


@pytest.mark.parametrize(
    "line",
    [
        "", "{}", "[]", "null", "7", '"text"', FIRST.line() + " ", " " + FIRST.line(), FIRST.line() + FIRST.line(),
        FIRST.line().replace(":", ": ", 1), FIRST.line().replace('"seq":1', '"seq":1.0'),
        FIRST.line().replace('"seq":1', '"seq":true'), FIRST.line().replace('"seq":1', '"seq":"1"'),
        FIRST.line().replace('"seq":1', '"seq":1,"seq":1'), FIRST.line().replace('"seq":1', '"seq":1,"zzz":1'),
        FIRST.line().replace('"once":"created"', '"once":1'), FIRST.line().replace('"kind":"created"', '"kind":null'),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_entry_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Entry.from_line(line)


@pytest.mark.parametrize(
    "text", ['{"a":1.5}', '{"a":NaN}', '{"a":1e3}', '{"b":1,"a":2}', '{"a":"é"}', '{"a":-0}', "1 "]
)
def test_only_canonical_text_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="not canonical JSON"):
        read_canonical(text)


def test_the_hash_covers_the_ledger_and_every_field() -> None:
    changes = {"seq": 3, "kind": "x", "population": "x", "once": "x", "body": "x", "prev": "x"}
    hashes = {SECOND.hash_in(LEDGER), SECOND.hash_in("another")}
    hashes |= {replace(SECOND, **{name: value}).hash_in(LEDGER) for name, value in changes.items()}
    assert len(hashes) == len(changes) + 2
    # A field that ends where another begins is no other field's beginning.
    assert replace(SECOND, kind="sp", population="endcohort").hash_in(LEDGER) not in hashes


def test_what_is_wrong_with_an_entry_after_another_is_named() -> None:
    third = Entry.chained(LEDGER, SECOND, "lost", "cohort", None, {"spend": 2})
    pairs = [(FIRST, None), (SECOND, FIRST), (third, SECOND)]
    assert [entry.faults(LEDGER, before) for entry, before in pairs] == [[], [], []]
    (edited,) = replace(SECOND, body='{"edited":1}').faults(LEDGER, FIRST)
    assert edited.startswith("entry 2 (spend) is not what was written")
    misplaced, unlinked = third.faults(LEDGER, FIRST)
    assert misplaced.startswith("entry 3 (lost) stands where entry 2 should")
    assert unlinked.startswith("entry 3 (lost) does not name the hash of entry 1")
    (foreign,) = FIRST.faults("another", None)
    assert foreign.startswith("entry 1 (created) is not what was written")
    assert replace(SECOND, body="[]").faults(LEDGER, FIRST)[-1].endswith("no canonical JSON of a dict.")
