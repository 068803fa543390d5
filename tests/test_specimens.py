"""Files of the present format, written once: every later version reads, verifies and writes them as they are."""

import json
import pathlib
import re

import pytest

import dpmanifold as dpm
from specimens.make import SPECIMENS

FOLDER = pathlib.Path(__file__).parent / "specimens"


def test_specimens_exist_of_every_query():
    files = {path.stem for path in FOLDER.glob("*.json")}
    assert files == set(SPECIMENS)
    results = {type(dpm.load(path)) for path in FOLDER.glob("*.json")}
    assert {query.result for query in dpm.QUERIES if query.is_own and query.result is not dict} <= results


@pytest.mark.parametrize("name", SPECIMENS)
def test_specimen_verifies_and_is_written_as_it_was(name):
    path = FOLDER / f"{name}.json"
    found = dpm.load(path)
    verified = dpm.verify(found)
    assert verified.ok, verified.wrong
    record, written = json.loads(path.read_text()), found.to_dict()
    # Answers are computed from the rest: another machine may round the last bit of one in another way.
    assert _rounded(written.pop("answers")) == _rounded(record.pop("answers"))
    assert written == record


def _rounded(record):
    """Return a record, its numbers as texts of twelve digits."""
    if isinstance(record, dict):
        return {name: _rounded(entry) for name, entry in record.items()}
    if isinstance(record, list):
        return [_rounded(entry) for entry in record]
    return f"{record:.12g}" if isinstance(record, float) else record


def _keys(record):
    """Yield each key of a record, but for the levels of quantiles, which are numbers."""
    entries = record if isinstance(record, list) else record.values() if isinstance(record, dict) else ()
    if isinstance(record, dict):
        yield from (key for key in record if not key.startswith("0."))
    for entry in entries:
        yield from _keys(entry)


@pytest.mark.parametrize("name", SPECIMENS)
def test_keys_are_in_snake_case(name):
    keys = set(_keys(json.loads((FOLDER / f"{name}.json").read_text())))
    assert not [key for key in keys if not re.fullmatch("[a-z][a-z0-9_]*", key)]


def _scaled(record, factor):
    """Return a record, every scale in it multiplied."""
    if isinstance(record, dict):
        return {
            name: entry * factor if name == "scale" and isinstance(entry, float) else _scaled(entry, factor)
            for name, entry in record.items()
        }
    return [_scaled(entry, factor) for entry in record] if isinstance(record, list) else record


@pytest.mark.security
@pytest.mark.parametrize("name", SPECIMENS)
def test_specimen_with_less_noise_is_refused(name):
    found = dpm.load(FOLDER / f"{name}.json")
    assert not dpm.verify(type(found).from_dict(_scaled(found.to_dict(answers=False), 0.9))).ok
