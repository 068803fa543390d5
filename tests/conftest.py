"""Settings shared by all tests."""

import collections
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
    max_examples=60,
    suppress_health_check=[HealthCheck.differing_executors],
)
# In the default run half as many examples are tried; make test-all tries them all.
settings.register_profile("part", settings.get_profile("repeatable"), max_examples=30)


def pytest_configure(config):
    settings.load_profile("part" if "not slow" in config.option.markexpr else "repeatable")


# Of a test with many cases every second one is tried by default; make test-all tries them all.
_MANY = 10


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Have a part of the many cases of one test in the slow tier, as laws.tiers has it for those who ask for it."""
    cases = collections.defaultdict(list)
    for item in items:
        if item.get_closest_marker("slow") is None and item.get_closest_marker("reference") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for several in cases.values():
        for item in several[1::2] if len(several) >= _MANY else ():
            item.add_marker(pytest.mark.slow)


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
