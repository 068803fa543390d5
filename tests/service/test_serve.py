"""`dpm serve`: from nothing to a service, what its check finds, and how its two processes live and end together."""

import contextlib
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.request

import pytest
from typer.testing import CliRunner

from dpmanifold.cli import app
from dpmanifold.cli.failures import FAULT
from dpmanifold.cli.serve_records import read_request
from dpmanifold.service import beats, checks
from dpmanifold.service.accounts import Accounts
from dpmanifold.service.checks import FAIL, NOTE, findings
from dpmanifold.service.database import Database
from dpmanifold.service.demo import PEOPLE, set_up
from dpmanifold.service.service import Service
from dpmanifold.service.settings import Settings


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words, code=0):
        result = CliRunner().invoke(app, ["serve", *words], env={"COLUMNS": "160", "DPM_SERVICE_CONFIG": ""})
        assert result.exit_code == code, result.output
        return result.output

    return call


@pytest.fixture
def settings(run, tmp_path):
    """A service that was set up, by the command."""
    run("--init")
    return Settings.read(tmp_path / "dpm-service.toml", {"DPM_SERVICE_WEB_PORT": "1025"})


def failing(settings):
    return [one for one in findings(settings) if one.state == FAIL]


# ------------------------------------------------------------------------------------------- from nothing


def test_without_settings_it_says_how_to_begin(run):
    said = run(code=2)
    assert "dpm serve --demo" in said
    assert "dpm serve --init" in said


def test_one_thing_at_a_time(run):
    assert "exclude each other" in run("--demo", "--init", code=2)
    assert "go with --demo" in run("--port", "80", code=2)
    assert "there are no settings" in run("--only", "web", code=2)


def test_only_knows_two_processes(run, settings):
    assert "must be web or worker" in run("--only", "cook", code=2)


def test_init_makes_all_and_leaves_what_is_there(run, settings, tmp_path):
    key = (tmp_path / "vault" / "ledger.key").read_bytes()
    said = run("--init")
    assert "Written" not in said
    assert (tmp_path / "vault" / "ledger.key").read_bytes() == key
    assert (tmp_path / "vault").stat().st_mode & 0o777 == 0o700


def test_a_folder_of_a_group_makes_databases_of_a_group(run, tmp_path):
    for name in ("state", "witness"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o2770)
    run("--init")
    for name in ("state/service.db", "state/ledger.db", "witness/ledger.witness"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o660, name
    assert (tmp_path / "vault" / "ledger.key").stat().st_mode & 0o777 == 0o600


# ------------------------------------------------------------------------------------------- checks


def test_what_init_makes_holds(run, settings):
    said = run("--check") if not failing(settings) else ""
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
    assert "FAIL" in run("--check", code=4)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_a_fresh_service_has_no_fault_whatever_the_mask_is(run, tmp_path, mask):
    before = os.umask(mask)
    try:
        run("--init")
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
    assert "--init" not in found


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
        said = run(code=FAULT)
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
    assert "in the clear" in run("--check", code=4)


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


# ------------------------------------------------------------------------------------------- the demonstration


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return set_up(tmp_path_factory.mktemp("demo") / "service", read_request)


def test_a_demonstration_is_ready_to_be_asked(demo):
    assert set(demo.passwords) == set(PEOPLE)
    with Service(Settings.read(demo.config)) as service:
        for name, password in demo.passwords.items():
            assert service.accounts.signed(name, password, "here").role == PEOPLE[name]
        (seen,) = service.desk(service.accounts.find("ada")).datasets()
    assert (seen.ref, seen.n, len(seen.classes)) == ("digits/descriptors", 1797, 10)
    assert "public" in seen.note
    assert {"mean", "means", "regression"} <= set(seen.statistics)
    assert seen.granted is not None


@pytest.mark.slow
def test_a_demonstration_that_is_there_goes_on(demo, tmp_path):
    assert set_up(demo.config.parent, read_request).passwords == {}
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(Exception, match="holds something else"):
        set_up(tmp_path, read_request)


# ------------------------------------------------------------------------------------------- two processes


@contextlib.contextmanager
def serving(config, *more):
    """Run both processes, and give the one above them once the service answers."""
    command = [sys.executable, "-m", "dpmanifold.cli", "serve", "--config", str(config), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            assert line.startswith("The service is at http"), line + process.stderr.read()
            yield process
        finally:
            process.kill()


def health(config):
    with urllib.request.urlopen(f"{Settings.read(config).url}/health", timeout=10) as answer:
        return json.load(answer)


def children_of(pid):
    found = subprocess.run(["ps", "--ppid", str(pid), "-o", "pid=,args="], capture_output=True, text=True, check=False)
    lines = [line.split(None, 1) for line in found.stdout.splitlines()]
    return {"worker" if "--only worker" in words else "web": int(pid) for pid, words in lines}


@pytest.mark.slow
def test_both_run_and_end_together(demo):
    with serving(demo.config) as process:
        deadline = time.monotonic() + 30
        while not health(demo.config)["worker"] and time.monotonic() < deadline:
            time.sleep(0.1)
        assert health(demo.config) == {"status": "ok", "database": True, "ledger": True, "worker": True}
        pids = children_of(process.pid)
        assert set(pids) == {"web", "worker"}
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 0, said
        assert "run as one user of the system" in said.replace("Both processes ", "")
        assert "worker stopped" in said
    assert not any(os.path.exists(f"/proc/{pid}") for pid in pids.values())


@pytest.mark.slow
def test_when_one_ends_by_itself_so_does_the_other(demo):
    with serving(demo.config) as process:
        pids = children_of(process.pid)
        os.kill(pids["worker"], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "the worker process ended by itself" in said
    assert not os.path.exists(f"/proc/{pids['web']}")


@pytest.mark.slow
def test_when_the_one_above_is_killed_the_two_end(demo):
    with serving(demo.config) as process:
        pids = children_of(process.pid)
        process.kill()
        deadline = time.monotonic() + 30
        while any(os.path.exists(f"/proc/{pid}") for pid in pids.values()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids.values())
