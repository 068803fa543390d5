"""Copies of a service's databases: in one state each, and put back without forgetting what was spent."""

import json
import sqlite3
import stat

import pytest
from sqlalchemy import update
from typer.testing import CliRunner

from dpmanifold import GDP
from dpmanifold.cli import app
from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.service import beats, tables
from dpmanifold.service.backup import backup, restore
from dpmanifold.service.questions import Question
from dpmanifold.service.service import Service
from service_rooms import desk_of, furnish, service_in

pytestmark = pytest.mark.security


@pytest.fixture
def service(tmp_path):
    with service_in(tmp_path / "service") as made:
        yield furnish(made)


@pytest.fixture(autouse=True)
def _folder(tmp_path):
    (tmp_path / "service").mkdir(exist_ok=True)


def ask(service, key):
    return desk_of(service, "ada").ask("cohort/dti", Question("mean", GDP("0.2")), key)


def test_a_copy_is_whole_while_others_write(service, tmp_path):
    ask(service, "one")
    with service.database.writing() as connection:
        connection.execute(update(tables.accounts).values(changed="never"))
        found = backup(service.settings, tmp_path / "copy")  # sees nothing of it, and waits for nobody
    assert found.files == ["service.db", "ledger.db"]
    assert "never put back" in " ".join(found.remarks)
    folder = tmp_path / "copy"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE((folder / name).stat().st_mode) for name in found.files} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == ["about.json", "ledger.db", "service.db"]
    for name in found.files:
        with sqlite3.connect(folder / name) as copy:
            assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            if name == "service.db":
                assert copy.execute("SELECT count(*) FROM service_accounts WHERE changed = 'never'").fetchone() == (0,)
                assert copy.execute("SELECT key FROM service_releases").fetchall() == [("one",)]
        copy.close()


def test_what_was_spent_since_is_recovered_and_the_witness_stays(service, tmp_path):
    settings = service.settings
    ask(service, "before")
    backup(settings, tmp_path / "copy")
    ask(service, "after")
    spent = service.ledger.population("cohort").spent
    witness = settings.witness.read_bytes()
    service.close()
    found = restore(settings, tmp_path / "copy", "the disk failed")
    assert "Recovered from the witness" in " ".join(found.remarks)
    assert settings.witness.read_bytes().startswith(witness)
    with Service(settings) as again:
        cohort = again.ledger.population("cohort")
        assert cohort.spent == spent
        assert cohort.as_principal("ada").status("after") == "lost"
        assert cohort.as_principal("ada").status("before") == "spent"
        assert again.ledger.audit().ok
        ask(again, "after")  # known to the ledger, and not paid for twice
        assert cohort.spent == spent
    aside = [path.name for path in (tmp_path / "service" / "state").iterdir() if ".db.20" in path.name]
    assert len(aside) >= 2


def test_an_older_ledger_is_refused_until_it_is_reconciled(service, tmp_path):
    settings = service.settings
    backup(settings, tmp_path / "copy")
    ask(service, "after")
    service.close()
    (tmp_path / "copy" / "ledger.db").replace(settings.ledger)
    for ending in ("-wal", "-shm"):
        (tmp_path / "service" / "state" / f"ledger.db{ending}").unlink(missing_ok=True)
    with pytest.raises(LedgerError, match="Reconcile them"):
        Service(settings)


def test_a_service_that_runs_is_left_alone(service, tmp_path):
    backup(service.settings, tmp_path / "copy")
    beats.beat(service.database)
    with pytest.raises(InvalidArgumentError, match="the service runs"):
        restore(service.settings, tmp_path / "copy", "a reason")


def test_what_is_no_copy_is_refused(service, tmp_path):
    with pytest.raises(InvalidArgumentError, match="no whole copy"):
        restore(service.settings, tmp_path, "a reason")
    backup(service.settings, tmp_path / "copy")
    with pytest.raises(InvalidArgumentError, match="is there already"):
        backup(service.settings, tmp_path / "copy")
    (tmp_path / "copy" / "ledger.db").unlink()
    with pytest.raises(InvalidArgumentError, match="no whole copy"):
        restore(service.settings, tmp_path / "copy", "a reason")
    with pytest.raises(InvalidArgumentError, match="reason"):
        restore(service.settings, tmp_path / "copy", " ")


def test_by_command(service, tmp_path):
    config = ["--config", str(service.settings.path)]
    made = CliRunner().invoke(app, ["service", "backup", str(tmp_path / "copy"), *config])
    assert made.exit_code == 0, made.output
    assert json.loads((tmp_path / "copy" / "about.json").read_text())["files"] == ["service.db", "ledger.db"]
    service.close()
    put = CliRunner().invoke(app, ["service", "restore", str(tmp_path / "copy"), "--reason", "a test", *config])
    assert put.exit_code == 0, put.output
    assert "nothing was to be recovered" in put.output
