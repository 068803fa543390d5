"""Settings shared by all tests."""

import collections
import functools
import gc
import math

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
# In the default run a third as many examples are tried; make test-all tries them all.
settings.register_profile("part", settings.get_profile("repeatable"), max_examples=20)


def pytest_configure(config):
    settings.load_profile("part" if "not slow" in config.option.markexpr else "repeatable")


# Of a test with many cases a third is tried by default; make test-all tries them all. Multiples of the golden ratio
# keep out of step with every list of arguments: of each of its values about a third is tried, too.
_MANY, _SHARE = 6, 1 / 3
_GOLDEN = (math.sqrt(5) - 1) / 2
# Pages whose examples take longest, of what other tests import anyway.
_LONG_PAGES = ("docs/how-to/cluster.md", "docs/how-to/eeg.md", "docs/how-to/mne.md")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Have a part of the many cases of one test in the slow tier, as laws.tiers has it for those who ask for it."""
    cases = collections.defaultdict(list)
    for item in items:
        if item.nodeid.startswith(_LONG_PAGES):
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("slow") is None and item.get_closest_marker("reference") is None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for several in cases.values():
        for number, item in enumerate(several if len(several) >= _MANY else ()):
            if number * _GOLDEN % 1 >= _SHARE:
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
