"""`dpm service run`: from nothing to a service, and what its check finds."""

import dataclasses
import os
import pathlib

import pytest
from typer.testing import CliRunner

from dpmanifold.cli import app
from dpmanifold.cli.failures import FAULT
from dpmanifold.service import beats, checks
from dpmanifold.service.accounts import Accounts
from dpmanifold.service.checks import FAIL, NOTE, findings
from dpmanifold.service.service_database import Database
from dpmanifold.service.settings import Settings

pytestmark = pytest.mark.security


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words, code=0):
        result = CliRunner().invoke(app, ["service", *words], env={"COLUMNS": "160", "DPM_SERVICE_CONFIG": ""})
        assert result.exit_code == code, result.output
        return result.output

    return call


@pytest.fixture
def settings(run, tmp_path):
    """A service that was set up, by the command."""
    run("init")
    return Settings.read(tmp_path / "dpm-service.toml", {"DPM_SERVICE_WEB_PORT": "1025"})


def failing(settings):
    return [one for one in findings(settings) if one.state == FAIL]


# ------------------------------------------------------------------------------------------- from nothing


def test_without_settings_it_says_how_to_begin(run):
    said = run("run", code=2)
    assert "dpm service demo" in said
    assert "dpm service init" in said


@pytest.mark.parametrize("words", [["run"], ["run", "--only", "web"], ["check"]], ids=" ".join)
def test_without_settings_nothing_is_run(run, words):
    assert "there are no settings" in run(*words, code=2)


def test_only_knows_two_processes(run, settings):
    assert "must be web or worker" in run("run", "--only", "cook", code=2)


def test_init_makes_all_and_leaves_what_is_there(run, settings, tmp_path):
    key = (tmp_path / "vault" / "ledger.key").read_bytes()
    said = run("init")
    assert "Written" not in said
    assert (tmp_path / "vault" / "ledger.key").read_bytes() == key
    assert (tmp_path / "vault").stat().st_mode & 0o777 == 0o700


def test_a_folder_of_a_group_makes_databases_of_a_group(run, tmp_path):
    for name in ("state", "witness"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o2770)
    run("init")
    for name in ("state/service.db", "state/ledger.db", "witness/ledger.witness"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o660, name
    assert (tmp_path / "vault" / "ledger.key").stat().st_mode & 0o777 == 0o600


# ------------------------------------------------------------------------------------------- checks


def test_what_init_makes_holds(run, settings):
    said = run("check") if not failing(settings) else ""
    assert "its witness agrees" in said
    assert "Nobody can sign in as analyst or steward or auditor" in said


def test_every_fault_is_found_with_a_remedy(run, settings, tmp_path):
    faults = {
        "chmod 700": lambda: settings.vault.chmod(0o755),
        "chmod 600": lambda: settings.secret.chmod(0o644),
        "chmod o-rwx": lambda: settings.root.chmod(0o777),
    }
    for remedy, break_it in faults.items():
        break_it()
        assert any(remedy in str(one) for one in failing(settings)), remedy
    settings.vault.chmod(0o700)
    settings.secret.write_bytes(b"short")
    settings.secret.chmod(0o600)
    assert any("holds no key" in str(one) for one in failing(settings))
    settings.secret.unlink()
    assert any("is not there" in str(one) for one in failing(settings))
    settings.root.chmod(0o755)
    settings.root.rmdir()
    assert any("is no folder" in str(one) for one in failing(settings))
    assert "FAIL" in run("check", code=4)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_fresh_service_has_no_fault_whatever_the_mask_is(run, tmp_path, mask):
    before = os.umask(mask)
    try:
        run("init")
    finally:
        os.umask(before)
    made = Settings.read(tmp_path / "dpm-service.toml", {"DPM_SERVICE_WEB_PORT": "1025"})
    assert failing(made) == []
    for folder in (made.root, made.vault):
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_web_user_who_can_look_at_records_fails(settings, monkeypatch):
    other = os.geteuid() + 4711
    monkeypatch.setattr(os, "geteuid", lambda: other)
    monkeypatch.setattr(os, "access", lambda *given, **more: False)
    assert not any("look into" in str(one) for one in findings(settings))
    monkeypatch.setattr(os, "access", lambda *given, **more: True)
    found = [str(one) for one in failing(settings) if "can look into" in one.what]
    assert [f"the {what} {where}" in one for one, (what, where) in
            zip(found, (("root", settings.root), ("vault", settings.vault)), strict=True)] == [True, True]  # fmt: skip
    with Database(settings.database) as database:
        database.prepare()
        beats.beat(database, beats.WEB)
        assert [one for one in failing(settings) if "can look into" in one.what]
        monkeypatch.setattr(os, "geteuid", lambda: other + 1)  # neither of the two
        assert {one.state for one in findings(settings) if "can look into" in one.what} == {NOTE}


def test_a_root_of_a_group_is_a_note(settings):
    settings.root.chmod(0o750)
    assert [one.state for one in findings(settings) if "A group can enter the root" in one.what] == [NOTE]
    assert failing(settings) == []


def test_the_key_of_a_ledger_on_a_server_is_made_by_who_owns_it(settings):
    settings.secret.unlink()
    server = dataclasses.replace(settings, ledger="postgresql://dpm@localhost:1/none")
    found = next(str(one) for one in checks._key(server))
    assert "dpm ledger create" in found
    assert "dpm service init" not in found


def test_a_ledger_without_its_witness_fails(settings):
    settings.witness.unlink()
    assert any("witness" in str(one) for one in failing(settings))


def test_missing_databases_are_not_made_by_a_check(settings):
    pathlib.Path(settings.database).unlink()
    assert any("There is no database" in str(one) for one in failing(settings))
    assert not pathlib.Path(settings.database).exists()


def test_a_port_that_is_taken_fails(settings, tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        found = findings(Settings.read(settings.path, {"DPM_SERVICE_WEB_PORT": port}))
    assert any(one.state == FAIL and "cannot be had" in one.what for one in found)


def test_a_service_does_not_pass_another_one_off_as_itself(run, settings, monkeypatch):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for name, value in {"PORT": port, "URL": f"http://127.0.0.1:{port}"}.items():
            monkeypatch.setenv(f"DPM_SERVICE_WEB_{name}", value)
        said = run("run", code=FAULT)
    assert "somebody listens" in said
    assert "The service is at" not in said


def test_tls_files_are_looked_at(settings, tmp_path):
    environ = {
        "DPM_SERVICE_WEB_CERTIFICATE": "c.pem", "DPM_SERVICE_WEB_PRIVATE_KEY": "k.pem",
        "DPM_SERVICE_WEB_URL": "https://127.0.0.1:8000",
    }  # fmt: skip
    with_tls = Settings.read(settings.path, environ)
    assert any("k.pem" in str(one) for one in failing(with_tls))
    for name in ("c.pem", "k.pem"):
        (tmp_path / name).write_text("no certificate", encoding="ascii")
    assert any("cannot be used" in str(one) for one in failing(with_tls))


def test_bad_settings_fail_the_check(run, tmp_path):
    (tmp_path / "dpm-service.toml").write_text("[web]\nhost = '0.0.0.0'\n", encoding="ascii")
    assert "in the clear" in run("check", code=4)


def test_two_users_are_told_from_one(settings, monkeypatch):
    with Database(settings.database) as database:
        beats.beat(database, beats.WEB)
        beats.beat(database, beats.WORKER)
        assert any(one.state == NOTE and "one user" in one.what for one in findings(settings))
        monkeypatch.setattr(os, "geteuid", lambda: 4002)
        beats.beat(database, beats.WEB)
    monkeypatch.undo()
    assert any("two users" in one.what and one.state == "ok" for one in findings(settings))


def test_a_clock_that_is_behind_fails(settings, monkeypatch):
    from dpmanifold.service import tables

    ahead = tables.later(tables.now(), 60)
    with Database(settings.database) as database:
        monkeypatch.setattr(tables, "now", lambda: ahead)
        Accounts(database).add("ada", "analyst", "four words of no sense")
    monkeypatch.undo()
    assert any("clock is behind" in one.what for one in failing(settings))
