"""A kind of object is one file, found by an entry point: every call that takes X takes it."""

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.sources import ADAPTERS, as_source
from dpmanifold_example.runs import Log, LogSource, log_source

pytestmark = pytest.mark.usefixtures("installed")

BALL = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.6)


@pytest.fixture
def log():
    """Return 30 runs of 10 directions each, by 15 people."""
    places = dpm.Sphere(2).exp_coords(BALL.center, 0.1 * np.random.default_rng(0).standard_normal((300, 2)))
    return Log(np.split(places, 30), [f"p{number % 15}" for number in range(30)])


def test_without_it_the_object_is_not_known(log, withdrawn):
    withdrawn(ADAPTERS)
    with pytest.raises(dpm.InvalidDataError, match="X must be a batch of records"):
        dpm.private_mean(log, BALL, dpm.GDP(1.0), units="person")


@pytest.mark.parametrize("units", ["person", dpm.EACH_RECORD])
def test_an_entry_point_adds_a_kind_of_object(log, units):
    assert isinstance(as_source(log), LogSource)
    assert log_source not in ADAPTERS.own(), "another distribution's is not the library's own"
    ids = np.repeat(log.people, 10) if units == "person" else units
    expected = dpm.private_mean(np.concatenate(log.runs), BALL, dpm.GDP(1.0), units=ids, rng=1)
    assert dpm.private_mean(log, BALL, dpm.GDP(1.0), units=units, rng=1).to_dict() == expected.to_dict()


def test_arrays_ask_nobody(offer):
    offer(ADAPTERS, "wrong", lambda X: 1 / 0)
    assert as_source(np.zeros((3, 1))) is None
    assert as_source([[1.0], [2.0]]) is None
