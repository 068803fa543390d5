"""One small cluster for all tests of this folder that do not break it; an idle one costs a tenth of a core."""

import pytest

from dpmanifold.engines import DaskEngine, ThreadEngine
from engines.tasks import PIECES, merged, partial


@pytest.fixture(scope="package")
def cluster():
    with DaskEngine.local(2) as engine:
        yield engine


@pytest.fixture(scope="session")
def here():
    """The exact sum of the pieces' logarithms, from a serial run."""
    return merged(ThreadEngine(1).map(partial, PIECES))
