"""`dpm remote` against a service of the tests: the words of the local commands, files, and exit codes."""

import inspect
import json
import pathlib
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app, remote_commands as commands
from dpmanifold.cli.main import app as main_app
from dpmanifold.remote import pending, transport
from dpmanifold.stats.query import QUERIES
from remote.fake_service import SPACE, TOKEN, FakeService, serving

pytestmark = pytest.mark.security

MEAN = ["submit", "mean", "cohort/dti", "--mu", "0.7"]


@pytest.fixture
def service():
    return FakeService()


@pytest.fixture
def url(service, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("DPM_TOKEN", "DPM_URL"):
        monkeypatch.delenv(name, raising=False)
    for room in (transport, pending):
        monkeypatch.setattr(room, "_sleep", lambda seconds: time.sleep(min(seconds, 0.01)))
    with serving(service) as where:
        yield where


@pytest.fixture
def remote(url):
    """Run a command of `dpm remote`, logged in."""
    from dpmanifold.remote.tokens import store

    store(url, TOKEN)

    def call(*words, code=0, stdin=None):
        done = CliRunner().invoke(app, ["remote", *map(str, words)], input=stdin, env={"COLUMNS": "200"})
        assert done.exit_code == code, done.output
        assert "Traceback" not in done.output
        assert TOKEN not in done.output
        return done

    return call


def stored(service):
    return list(service.rows.values())[-1]["record"]


# -------------------------------------------------------------------- releases


def test_a_mean_with_all_its_files(remote, service):
    done = remote(*MEAN, "--out", "mean.json", "--npy", "mean.npy", "--picture", "mean.png", "--html", "mean.html")
    assert json.loads(pathlib.Path("mean.json").read_text()) == stored(service)
    found = dpm.load("mean.json")
    assert np.array_equal(np.load("mean.npy"), found.value)
    assert found.privacy == dpm.GDP("0.7")
    assert pathlib.Path("mean.png").stat().st_size > 1000
    assert "<html" in pathlib.Path("mean.html").read_text()
    assert "dpm remote fetch r0 --out FILE gives it again" in done.output


@pytest.mark.parametrize("name", [query.name for query in QUERIES.own() if query.name != "class-means"])
def test_every_statistic_has_its_command(remote, service, name):
    done = remote("submit", name, "cohort/dti", "--mu", "2", "--out", "out.json", "--json")
    assert json.loads(done.stdout) == json.loads(pathlib.Path("out.json").read_text()) == stored(service)
    assert service.row("r0")["asked"][1]["options"] == {}  # what is left out means what the library means


def test_means_go_into_a_folder(remote, service):
    done = remote("submit", "class-means", "cohort/dti", "--mu", "2", "--out", "all", "--refine")
    for name, record in stored(service)["classes"]:
        assert json.loads(pathlib.Path(f"all/mean-{name}.json").read_text()) == record
    assert "class a: 350 records" in done.output
    remote("submit", "class-means", "cohort/dti", "--mu", "2", "--out", "all", code=2)  # they are there
    assert len(service.payments) == 1
    remote("submit", "class-means", "cohort/dti", "--mu", "2", "--out", "all", "--force")
    remote("fetch", "r0", "--out", "again")
    assert json.loads(pathlib.Path("again/mean-a.json").read_text())["n"] == 350


def test_a_statistic_by_name(remote):
    remote("submit", "statistic", "variance", "cohort/dti", "--mu", "2", "--out", "out.json")
    assert dpm.load("out.json").statistic == "variance"


def _declared(of, command):
    """Return what the options of a command are declared as: words, types, defaults and help."""
    told = "opts", "secondary_opts", "required", "default", "nargs", "multiple", "is_flag", "metavar", "envvar", "help"
    told += "show_default", "hidden", "rich_help_panel"
    return {
        one.name: (one.type_descriptor.annotation, *(getattr(one, name, None) for name in told))
        for one in get_command(of).commands[command].params
    }


def test_options_have_the_names_of_the_local_commands():
    local = {command.name: command.callback for command in main_app.registered_commands}
    for command in commands.submit.registered_commands:
        if command.name not in QUERIES:
            continue
        here, there = (inspect.signature(one).parameters for one in (command.callback, local[command.name]))
        new = set(here) - set(there)
        assert new <= {"dataset", "url", "no_wait", "timeout", "ball", "coordinates"}
        told = set(QUERIES.get(command.name).defaults)
        declared = [_declared(one, command.name) for one in (commands.submit, main_app)]
        assert told <= set(here), command.name
        for option in told - {"noise_shape", "about"}:
            assert declared[0][option] == declared[1][option]
        gone = {"units", "invalid", "seed", "ledger", "confirm", "notice", "labels", "classes", "reveal", "arithmetic"}
        assert not gone & set(here)


def test_options_are_sent(remote, service):
    remote("submit", "region", "cohort/dti", "--mu", "2", "--out", "a.json", "--level", "0.9", "--estimand", "tangent")
    assert service.row("r0")["asked"][1]["options"] == {"level": 0.9, "estimand": "tangent"}
    remote(*MEAN, "--shrinkage", "none", "--out", "b.json")
    assert service.row("r1")["asked"][1]["options"] == {"shrinkage": None}
    remote("submit", "variance", "cohort/dti", "--mu", "2", "--about", "r1", "--out", "c.json")
    assert service.row("r2")["asked"][1]["options"] == {"about": "r1"}
    remote("submit", "pga", "cohort/dti", "--epsilon", "2", "--delta", "1e-6", "--count", "2", "--out", "d.json")
    assert service.row("r3")["asked"][1]["privacy"] == {"kind": "ApproxDP", "epsilon": 2.0, "delta": "1e-6"}


def test_balls_are_said_in_every_way(remote, service):
    remote(*MEAN, "--radius", "1.5", "--center", "1.1", "--source", "mine", "--out", "a.json")
    assert dpm.load("a.json").ball == dpm.Ball(SPACE, 1.1 * np.eye(2), 1.5, "mine")
    remote("submit", "ball", "cohort/dti", "--mu", "3", "--out", "ball.json")
    small = dpm.load("ball.json").value
    remote(*MEAN, "--ball", "r1", "--out", "b.json")
    remote(*MEAN, "--ball", "ball.json", "--out", "c.json")
    assert dpm.load("b.json").ball.radius == dpm.load("c.json").ball.radius == small.radius
    done = remote(*MEAN, "--ball", "r1", "--radius", "1", "--out", "d.json", code=2)
    assert "leave out the others" in done.output


def test_not_waiting_and_fetching(remote, service):
    service.polls = 3
    done = remote(*MEAN, "--no-wait")
    assert "dpm remote fetch r0 --out FILE" in done.output
    assert json.loads(remote(*MEAN, "--no-wait", "--json").stdout)["id"] == "r0"  # the same one: nobody has its answer
    remote("fetch", "r0", "--out", "mean.json", "--picture", "mean.svg")
    assert json.loads(pathlib.Path("mean.json").read_text()) == stored(service)
    remote(*MEAN, "--out", "next.json")
    assert len(service.payments) == 2


def test_a_key_gives_the_same_again(remote, service):
    for name in ("a.json", "b.json"):
        remote(*MEAN, "--key", "mean-v1", "--out", name)
    assert pathlib.Path("a.json").read_text() == pathlib.Path("b.json").read_text()
    assert service.payments == ["mean-v1"]


# -------------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["submit", "mean", "cohort/dti", "--mu", "9.5", "--out", "m.json"], 4, "more than what is left"),
        (["submit", "mean", "cohort/dti", "--out", "m.json"], 2, "give one promise"),
        (MEAN, 2, "--out is missing"),
        ([*MEAN, "--out", "none/m.json"], 2, "does not exist"),
        ([*MEAN, "--no-wait", "--picture", "m.png"], 2, "go with --out"),
        ([*MEAN, "--out", "m.json", "--mechanism", "none"], 2, "--mechanism must be"),
        ([*MEAN, "--out", "m.json", "--links", "1-2", "--picture", "m.png"], 2, "--links means nothing"),
        ([*MEAN, "--out", "m.json", "--shrinkage", "much"], 2, "--shrinkage must be"),
        (["submit", "mean", "dti", "--mu", "1", "--out", "m.json"], 2, "population/name"),
        (["fetch", "none", "--out", "m.json"], 2, "nothing here"),
        (["submit", "statistic", "nothing", "cohort/dti", "--mu", "1", "--out", "m.json"], 2, "nothing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_refusals(remote, service, words, code, said):
    done = remote(*words, code=code)
    assert said in " ".join(done.output.split())
    assert not pathlib.Path("m.json").exists()
    assert service.payments == []


def test_a_lost_release_and_one_that_waits(remote, service):
    service.state = "waiting"
    done = remote(*MEAN, "--out", "m.json", code=1)
    assert "dpm remote fetch r0 --out FILE" in " ".join(done.output.split())
    service.row("r0")["state"] = "lost"
    done = remote(*MEAN, "--out", "m.json", code=1)
    assert "is lost" in done.output


def test_a_service_that_does_not_answer(remote, service):
    service.faults.extend(["after", *[503] * 6])
    done = remote(*MEAN, "--out", "m.json", code=1)
    assert repr(service.payments[0]) in done.output
    remote(*MEAN, "--out", "m.json")
    assert len(service.payments) == 1


def test_a_service_that_lies(remote, service):
    service.lie_result = lambda record: {
        name: entry / 2 if name == "scale" else entry for name, entry in record.items() if name != "answers"
    }
    done = remote(*MEAN, "--out", "m.json", code=4)
    assert "not to be relied on" in done.output
    assert not pathlib.Path("m.json").exists()


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or sys.platform == "win32", reason="needs signals")
def test_an_interrupted_command_is_given_again(remote, service, url, tmp_path):
    service.polls = 10**6
    words = ["remote", *MEAN, "--out", "m.json", "--url", url]
    # What runs the tests in the background ignores the signal, and children inherit that.
    usual = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code = f"{usual}from dpmanifold.cli import app\napp({words!r}, prog_name='dpm')"
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not service.payments and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        told = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert repr(service.payments[0]) in told
    assert "to be published at" in told
    service.rows[service.payments[0]]["polls"] = 0
    remote(*MEAN, "--out", "m.json")
    assert len(service.payments) == 1


def test_quiet_is_quiet(remote, service):
    service.polls = 2
    assert remote(*MEAN, "--out", "m.json", "--quiet").stderr == ""


# -------------------------------------------------------------------- what there is


def test_lists(remote, service):
    remote(*MEAN, "--out", "m.json", "--key", "mean-v1")
    assert "cohort/dti" in remote("datasets").output
    assert json.loads(remote("datasets", "--json").stdout)[0]["n"] == 600
    assert re.search(r"r0 .*cohort/dti.*mean.*released", remote("releases").output)
    assert json.loads(remote("releases", "--json", "--limit", "1").stdout)[0]["key"] == "mean-v1"
    assert "10.0%" in remote("history", "cohort").output
    assert len(json.loads(remote("history", "cohort", "--json").stdout)["lines"]) == 3


def test_a_service_gives_no_orders_to_the_terminal(remote, service):
    service.dataset = lambda: {**FakeService.dataset(service), "note": "\x1b[31m[red]hello"}
    assert "[31m[red]hello" in remote("datasets").output
    assert "\x1b[31m" not in remote("datasets").output


def test_a_plan(remote, service):
    found = json.loads(remote("plan", "region", "cohort/dti", "--mu", "1", "--refine", "--json").stdout)
    assert found["question"] == {
        "statistic": "region", "privacy": {"kind": "GDP", "mu": 1.0}, "options": {"refine": True}, "ball": None,
    }  # fmt: skip
    assert service.payments == []


def test_login_stores_what_works(url, tmp_path):
    def call(*words, stdin, code=0):
        done = CliRunner().invoke(app, ["remote", *words], input=stdin, env={"COLUMNS": "200"})
        assert done.exit_code == code, done.output
        assert TOKEN not in done.output
        return done

    done = call("datasets", stdin="", code=2)
    assert "--url is missing" in done.output
    call("login", url, stdin="dpm_wrong\n", code=1)
    call("login", url, stdin="\n", code=2)
    call("login", "http://data.example.org", stdin=f"{TOKEN}\n", code=2)
    path = tmp_path / "config" / "dpmanifold" / "tokens.toml"
    assert not path.exists()
    assert "ada at" in call("login", url, stdin=f"{TOKEN}\n").output
    assert path.stat().st_mode & 0o777 == 0o600
    assert "cohort/dti" in call("datasets", stdin="").output


def test_without_the_extra_it_says_what_to_install(remote, monkeypatch):
    monkeypatch.setitem(sys.modules, "httpx", None)
    done = remote("datasets", code=2)
    assert "dpmanifold[client]" in done.output
