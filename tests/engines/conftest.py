"""One small cluster for all tests of this folder that do not break it."""

import pytest

from dpmanifold.engines import DaskEngine


@pytest.fixture(scope="session")
def cluster():
    with DaskEngine.local(2) as engine:
        yield engine
