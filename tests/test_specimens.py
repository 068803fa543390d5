"""Files of the present format, written once: every later version reads, verifies and writes them as they are."""

import json
import pathlib

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
    assert found.to_dict() == json.loads(path.read_text())


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
