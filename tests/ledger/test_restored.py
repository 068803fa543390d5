"""Yesterday's database put back: refused by whoever opens it and by whoever has it open, before records are opened.

What was spent since is counted again once the two are reconciled, and is answered to nobody.
"""

from __future__ import annotations

import pathlib
import shutil

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import LedgerError, ReleaseLostError
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.witness import Witness
from ledger_clients import POPULATION

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0, source="an atlas")
X = np.random.default_rng(0).normal(0.0, 0.5, (60, 2))


class Files:
    """A SQLite ledger, copied as it lies there: the file and what was written ahead."""

    def __init__(self, folder):
        self.where, self._folder = str(folder / "study.db"), folder
        Ledger.create(self.where, principal="ada").close()

    def back_up(self):
        for suffix in ("", "-wal"):
            if pathlib.Path(self.where + suffix).exists():
                shutil.copy(self.where + suffix, self._folder / f"yesterday{suffix}")

    def put_back(self):
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(self.where + suffix).unlink(missing_ok=True)
            if (self._folder / f"yesterday{suffix}").exists():
                shutil.copy(self._folder / f"yesterday{suffix}", self.where + suffix)

    def end(self):
        pass


class Database:
    """A ledger in a database of its own, copied by the server or dumped."""

    def __init__(self, folder, cluster, dump):
        self._cluster, self._dump = cluster, folder / "yesterday.dump" if dump else None
        self._name = cluster.new_schema().replace("ledger", "study")
        self._new()
        create = {"witness": folder / "study.witness", "writer": "writer", "principal": "ada"}
        Ledger.create(self._address("owner"), **create).close()
        self.where = self._address("writer")

    def _new(self):
        self._cluster.sql(f"CREATE DATABASE {self._name} OWNER owner")
        if self._dump is None or not self._dump.exists():
            self._sql("ALTER SCHEMA public OWNER TO owner")

    def _sql(self, statement):
        import psycopg

        with psycopg.connect(self._address("postgres"), autocommit=True) as connection:
            connection.execute(statement)

    def _address(self, user):
        return self._cluster.address(user).replace("/postgres?", f"/{self._name}?")

    def _alone(self):
        self._cluster.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{self._name}'")

    def _run(self, program, *arguments):
        self._cluster.run(program, "--username=postgres", f"--host={self._cluster.folder}", *arguments)

    def back_up(self):
        if self._dump is None:
            self._alone()
            self._cluster.sql(f"CREATE DATABASE {self._name}_yesterday TEMPLATE {self._name}")
        else:
            kept = self._cluster.folder / f"{self._name}.dump"
            self._run("pg_dump", "--format=custom", f"--file={kept}", self._name)
            shutil.move(kept, self._dump)

    def put_back(self):
        self._cluster.sql(f"DROP DATABASE {self._name} WITH (FORCE)")
        if self._dump is None:
            self._cluster.sql(f"ALTER DATABASE {self._name}_yesterday RENAME TO {self._name}")
        else:
            self._new()
            kept = self._cluster.folder / f"{self._name}.dump"
            shutil.copy(self._dump, kept)
            kept.chmod(0o644)
            self._run("pg_restore", "--clean", "--if-exists", f"--dbname={self._name}", kept)

    def end(self):
        for name in (self._name, f"{self._name}_yesterday"):
            self._cluster.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@pytest.fixture(params=["files", "database", "dump"])
def study(request, tmp_path):
    """A place whose state can be kept and put back."""
    if request.param == "files":
        place = Files(tmp_path)
    else:
        place = Database(tmp_path, request.getfixturevalue("cluster"), request.param == "dump")
    yield place
    place.end()


class Told:
    """Records, and how often they were opened."""

    def __init__(self):
        self.times = 0

    def __call__(self):
        self.times += 1
        return X


def mean(cohort, records, key):
    return dpm.private_mean(cohort.dataset("study", records), BALL, dpm.GDP("0.1"), units=None, budget=cohort, key=key)


def opened(study):
    return Ledger.open(study.where, principal="ada")


def lived(study):
    """One release, a backup, two releases more, and the backup is put back while a client goes on; its ledger."""
    with opened(study) as ledger:
        cohort = ledger.population(POPULATION, cap=dpm.GDP("1"), unit="participant")
        cohort.register("study", X, BALL, units="each-record")
        first = mean(cohort, Told(), "first")
    study.back_up()
    going_on = opened(study)
    cohort = going_on.population(POPULATION)
    later = [mean(cohort, Told(), key) for key in ("second", "third")]
    study.put_back()
    return going_on, first, later


def refusals(study, going_on):
    """How many of three refuse: who has it open, with an old key and a new one, and who opens it."""
    records, times = Told(), 0
    for key in ("second", "fourth"):
        try:
            mean(going_on.population(POPULATION), records, key)
        except LedgerError as refused:
            times += "reconcile" in str(refused) and records.times == 0
    try:
        opened(study).close()
    except LedgerError as refused:
        times += "reconcile" in str(refused)
    return times


def test_yesterdays_database_is_refused_and_reconciled(study):
    going_on, first, later = lived(study)
    with going_on:
        assert refusals(study, going_on) == 3
    with Ledger.open(study.where, principal="ada", reconcile="a backup was put back") as ledger:
        cohort, records = ledger.population(POPULATION), Told()
        assert len(ledger.reconciled.recovered) == 6
        assert cohort.spent.exact["mu"] ** 2 <= 3 * dpm.GDP("0.1").exact["mu"] ** 2 * (1 + 2**-50)
        assert ledger.audit().populations[POPULATION].total == (3 * dpm.GDP("0.1").exact["mu"] ** 2,)
        for key in ("second", "third"):
            with pytest.raises(ReleaseLostError):
                mean(cohort, records, key)
            assert cohort.status(key) == "lost"
        assert mean(cohort, records, "first").to_dict() == first.to_dict()
        assert records.times == 0
        assert [ledger.verify(release) for release in (first, *later)] == [[], [], []]
        assert mean(cohort, records, "fourth").receipt.sequence > later[-1].receipt.sequence
        assert ledger.audit().populations[POPULATION].total == (4 * dpm.GDP("0.1").exact["mu"] ** 2,)
        assert ledger.audit().ok
    with opened(study) as ledger:
        assert ledger.audit().ok


@pytest.mark.parametrize("study", ["files"], indirect=True)
def test_without_the_witness_one_key_would_be_drawn_twice(study, monkeypatch):
    """What the test above is for: a ledger that does not ask its witness takes yesterday for today."""
    with monkeypatch.context() as patch:
        going_on, _, later = lived(study)
        patch.setattr(Witness, "check", lambda *given: None)
        patch.setattr(Witness, "catch_up", lambda *given: 0)
        with going_on:
            assert refusals(study, going_on) == 0
            again = mean(going_on.population(POPULATION), Told(), "second")
    assert again.to_dict() != later[0].to_dict()
