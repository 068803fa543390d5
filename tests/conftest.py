"""Settings shared by all tests."""

import functools
import gc

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from dpmanifold.linalg import backend

# Derandomised: a run is repeatable, and a failure is a failure for everyone. The laws are inherited by one class
# per space on purpose, which hypothesis would otherwise take for a mistake.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    max_examples=30,
    suppress_health_check=[HealthCheck.differing_executors],
)
settings.load_profile("repeatable")

# Sixteen thousand tests and what they import stay to the end: to walk through them again and again in search of garbage
# took a twentieth of the time. What a test itself leaves is collected as ever.
gc.disable()


def pytest_collection_finish():
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_addoption(parser):
    parser.addoption("--backend", default=None, help="numpy, native or native-LEVEL; the fastest by default")


@pytest.fixture(autouse=True, scope="session")
def _backend(request):
    """Run every test, and every fixture that several share, on the backend the command line names."""
    name = request.config.getoption("--backend")
    if name is None:
        yield
        return
    with backend(name):
        yield


@pytest.fixture(autouse=True, scope="session")
def _commands_made_once():
    """Have typer's runner make an application's commands once, not for every call: it takes longer than most calls."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.testing._get_command))
        yield
