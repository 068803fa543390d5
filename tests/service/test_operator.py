"""`dpm service`: the operator's commands, as they are typed."""

import json
import os
import pty
import subprocess
import sys
import time

import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from dpmanifold.cli import app
from dpmanifold.service import tables
from dpmanifold.service.accounts import Accounts
from dpmanifold.service.service_database import Database

pytestmark = pytest.mark.security

PASSWORD = "correct horse battery staple"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dpm-service.toml").write_text('[service]\ndatabase = "state/service.db"\n', encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(folder):
    def call(*words, code=0, said=None):
        result = CliRunner().invoke(app, ["service", *words], input=said, env={"COLUMNS": "160"})
        assert result.exit_code == code, result.output
        assert PASSWORD not in result.output
        return result

    return call


@pytest.fixture
def ada(run):
    run("account", "add", "ada", "--role", "analyst", "--password-stdin", said=PASSWORD + "\n")


def opened(folder):
    return Database(folder / "state" / "service.db")


def test_an_account_is_added_with_a_password_from_standard_input(run, ada, folder):
    with opened(folder) as database:
        assert Accounts(database).signed("ada", PASSWORD, "here").role == "analyst"


def test_accounts_are_listed(run, ada):
    assert json.loads(run("account", "list", "--json").stdout)[0]["name"] == "ada"
    assert "analyst" in run("account", "list").stdout


def test_an_empty_list_says_what_to_do(run):
    assert "dpm service account add" in run("account", "list").stdout
    assert json.loads(run("account", "list", "--json").stdout) == []


def test_an_account_is_closed(run, ada):
    run("account", "close", "ada")
    assert json.loads(run("account", "list", "--json").stdout)[0]["closed"] is not None
    assert "no open account 'ada'" in run("account", "close", "ada", code=2).output


def test_a_password_is_set(run, ada, folder):
    run("account", "password", "ada", "--password-stdin", said="another long password\r\n")
    with opened(folder) as database:
        assert Accounts(database).signed("ada", "another long password", "here").name == "ada"


@pytest.mark.parametrize("command", [("add", "eve", "--role", "analyst"), ("password", "ada")])
def test_a_password_is_no_argument_and_not_asked_for_without_a_terminal(run, ada, command):
    assert "--password-stdin" in run("account", *command, code=2, said=PASSWORD + "\n").output
    run("account", *command, "--password", PASSWORD[:5], code=2)


@pytest.mark.parametrize(
    ("words", "said", "about"),
    [
        (("add", "eve", "--role", "king", "--password-stdin"), PASSWORD, "--role must be one of"),
        (("add", "..", "--role", "analyst", "--password-stdin"), PASSWORD, "name must be"),
        (("add", "eve", "--role", "analyst", "--password-stdin"), "short", "at least 12 characters"),
        (("add", "ada", "--role", "analyst", "--password-stdin"), PASSWORD, "is taken"),
        (("password", "eve", "--password-stdin"), PASSWORD, "no open account 'eve'"),
    ],
)
def test_what_is_refused_is_said(run, ada, words, said, about):
    assert about in run("account", *words, code=2, said=said).output


def test_settings_that_are_not_there_are_named(run):
    assert "nowhere.toml" in run("account", "list", "--config", "nowhere.toml", code=2).output


def test_settings_are_named_by_the_environment(run, ada, folder, monkeypatch):
    monkeypatch.chdir("/")
    monkeypatch.setenv("DPM_SERVICE_CONFIG", str(folder / "dpm-service.toml"))
    assert json.loads(run("account", "list", "--json").stdout)[0]["name"] == "ada"


def test_events_are_printed_and_checked(run, ada):
    found = json.loads(run("events", "--json").stdout)
    assert found["ok"]
    assert [event["kind"] for event in found["events"]] == ["service-created", "account-added"]
    assert found["events"][1]["facts"] == {"account": "ada", "role": "analyst"}
    assert [event["seq"] for event in json.loads(run("events", "--after", "1", "--json").stdout)["events"]] == [2]
    told = run("events").stdout
    assert "account-added" in told
    assert f"The last hash is {found['events'][-1]['hash']}." in told


def test_a_log_that_was_changed_ends_with_4(run, ada, folder):
    with opened(folder) as database, database.writing() as connection:
        connection.exec_driver_sql("DROP TRIGGER service_events_stay")
        connection.execute(sa.update(tables.events).where(tables.events.c.seq == 2).values(body="{}"))
    for words in (("events",), ("events", "--json"), ("events", "--after", "2")):
        result = run(*words, code=4)
        assert "event 2 (account-added) is not what was written" in result.stdout
        assert "trigger service_events_stay is missing" in result.stdout
    assert json.loads(run("events", "--json", code=4).stdout)["ok"] is False


def typed(folder, words, *lines):
    """Run a command on a terminal, and type lines whenever it has asked for something."""
    leader, follower = pty.openpty()
    code = f"from dpmanifold.cli import app; app({words!r}, prog_name='dpm')"
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=folder, stdin=follower, stdout=follower, stderr=follower,
        env={**os.environ, "TERM": "dumb"}, start_new_session=True,
    )  # fmt: skip
    os.close(follower)
    seen, left = b"", list(lines)
    try:
        while chunk := os.read(leader, 4096):
            seen += chunk
            if chunk.rstrip().endswith(b":") and left:
                time.sleep(0.05)  # until echoing is off
                os.write(leader, left.pop(0).encode() + b"\n")
    except OSError:  # the end of a terminal
        pass
    os.close(leader)
    return process.wait(30), seen.decode()


def test_a_password_is_asked_for_twice_and_not_shown(folder):
    words = ["service", "account", "add", "ada", "--role", "steward"]
    code, seen = typed(folder, words, PASSWORD, "a slip of the finger", PASSWORD, PASSWORD)
    assert code == 0, seen
    assert seen.count("Password:") == 2  # the two did not match, and it asks again
    assert PASSWORD not in seen
    with opened(folder) as database:
        assert Accounts(database).signed("ada", PASSWORD, "here").role == "steward"
