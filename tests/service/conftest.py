"""A service's database on every engine, passwords that cost little, and a clock that can be put forward."""

import datetime

import pytest

from dpmanifold.service import tables
from dpmanifold.service.accounts import Accounts
from dpmanifold.service.service_database import Database
from ledger.conftest import ENGINES, running_cluster, tmp_path, tmp_path_factory

# For tests of what is the same on every engine, such as what an argument may be.
one_engine = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
__all__ = ["tmp_path", "tmp_path_factory"]  # folders in memory, for the service as for its ledger
PASSWORD = "correct horse battery staple"


@pytest.fixture(autouse=True)
def _quick_passwords(monkeypatch):
    """Hash with little work: what is tested is not how long it takes."""
    for name, value in {"ROUNDS": 1, "MEMORY": 8, "LANES": 1}.items():
        monkeypatch.setattr(f"dpmanifold.service.accounts.{name}", value)


@pytest.fixture(scope="session")
def cluster():
    """A running PostgreSQL; what needs it is skipped where it is not installed."""
    with running_cluster() as running:
        yield running


@pytest.fixture(params=ENGINES)
def database_url(request, tmp_path):
    """Where the service's tables could be; nothing is there yet."""
    if request.param == "postgresql":
        cluster = request.getfixturevalue("cluster")
        return cluster.address("owner", cluster.new_schema())
    return str(tmp_path / "service.db")


@pytest.fixture
def database(database_url):
    """The service's tables on either engine."""
    with Database(database_url) as opened:
        opened.prepare()
        yield opened


@pytest.fixture
def accounts(database):
    """Three accounts, one of each role, with one password."""
    made = Accounts(database)
    for name, role in {"ada": "analyst", "sven": "steward", "otto": "auditor"}.items():
        made.add(name, role, PASSWORD)
    return made


class Clock:
    """The service's time, which passes as it does and can be put forward."""

    def __init__(self):
        self.ahead = datetime.timedelta()

    def forward(self, **amount):
        self.ahead += datetime.timedelta(**amount)

    def now(self):
        return tables.stamp(datetime.datetime.now(datetime.UTC) + self.ahead)


@pytest.fixture
def clock(monkeypatch):
    """Put the time of the service forward: clock.forward(minutes=15)."""
    made = Clock()
    monkeypatch.setattr(tables, "now", made.now)
    return made


@pytest.fixture(scope="session")
def nursery():
    """A process that has imported everything, and forks web processes and workers."""
    from service_running import Nursery

    made = Nursery()
    yield made
    made.close()
