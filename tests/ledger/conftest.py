"""A ledger on every engine, PostgreSQL's in a cluster of its own that lasts as long as the tests do."""

import contextlib
import itertools
import os
import pathlib
import pwd
import shlex
import shutil
import subprocess
import tempfile

import pytest

from dpmanifold import GDP
from dpmanifold.ledger import Ledger
from ledger_clients import Clients
from programs import missing

ENGINES = ("sqlite", "postgresql")
_numbers = itertools.count(1)


def _programs():
    """The folder of initdb and pg_ctl, None where PostgreSQL is not installed. Debian keeps them off the path."""
    found = shutil.which("initdb")
    candidates = [pathlib.Path(found).resolve().parent] if found else []
    candidates += sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in candidates if (folder / "pg_ctl").exists()), None)


def _as_server():
    """The beginning of a command that PostgreSQL refuses to run as root; None where nobody else can run it."""
    if os.getuid() != 0:
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        return None
    if not shutil.which("setpriv"):
        return ["runuser", "-u", "postgres", "--"]
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _memory():
    """A folder in memory, where syncing takes no time; None where the system has none, or hardly any."""
    memory = pathlib.Path("/dev/shm")
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > 2**31 else None


class Folders:
    """Folders for tests, in memory if possible: a ledger syncs whatever it writes."""

    def __init__(self, parent):
        self._parent = parent

    def mktemp(self, name):
        """Make a folder, as pytest's factory of the same name does."""
        return pathlib.Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self._parent))


@pytest.fixture(scope="session")
def tmp_path_factory():
    """Folders in place of pytest's own."""
    with tempfile.TemporaryDirectory(prefix="dpm-tests-", dir=_memory(), ignore_cleanup_errors=True) as parent:
        yield Folders(parent)


@pytest.fixture
def tmp_path(tmp_path_factory):
    """A folder of one test, which is gone after it."""
    made = tmp_path_factory.mktemp("test")
    yield made
    shutil.rmtree(made, ignore_errors=True)


class Cluster:
    """A server with a socket in a folder of its own, and no port."""

    def __init__(self, programs, prefix):
        self.programs, self.prefix = programs, prefix
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="dpm-pg-", dir=_memory() or "/tmp"))
        self.data = self.folder / "data"
        if prefix:
            shutil.chown(self.folder, "postgres", "postgres")
        self._watch()
        self.run("initdb", "--pgdata", self.data, "--username=postgres", "--auth=trust", "--no-sync",
                 "--encoding=UTF8", "--locale=C")  # fmt: skip
        self.start()

    def _watch(self):
        """Have the server ended when this process is gone, however it ended: its end closes a pipe."""
        stop = " ".join(map(shlex.quote, self._command("pg_ctl", "stop", "--mode=immediate", "--pgdata", self.data)))
        script = f"cat >/dev/null; cd /; {stop} >/dev/null 2>&1; rm -rf {shlex.quote(str(self.folder))}"
        self._watcher = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, start_new_session=True)

    def end(self):
        """Stop the server for good, and remove what it had."""
        self._watcher.stdin.close()
        self._watcher.wait()

    def _command(self, program, *arguments):
        return [*self.prefix, str(self.programs / program), *map(str, arguments)]

    def run(self, program, *arguments):
        done = subprocess.run(
            self._command(program, *arguments), capture_output=True, text=True, cwd=self.folder, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, *options):
        settings = " ".join(
            [
                "-c listen_addresses=''",
                f"-c unix_socket_directories='{self.folder}'",
                "-c max_connections=200",
                *options,
            ]
        )
        self.run("pg_ctl", "start", "--wait", "--silent", "--pgdata", self.data, "--log",
                 self.folder / "log", "--options", settings)  # fmt: skip

    def stop(self, mode="fast"):
        self.run("pg_ctl", "stop", "--wait", "--silent", "--mode", mode, "--pgdata", self.data)

    def address(self, user="postgres", schema="public"):
        return f"postgresql://{user}@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def sql(self, statement, user="postgres", schema="public"):
        """Run one statement and return its rows."""
        import psycopg

        with psycopg.connect(self.address(user, schema), autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchall() if done.description else []

    def new_schema(self):
        """Make an empty schema of the role `owner`, and return its name: cheaper than a database."""
        name = f"ledger_{next(_numbers)}"
        self.sql(f"CREATE SCHEMA {name} AUTHORIZATION owner")
        return name


@contextlib.contextmanager
def running_cluster():
    """Have a PostgreSQL with the roles `owner` and `writer`."""
    programs, prefix = _programs(), _as_server()
    if programs is None:
        missing("PostgreSQL is not installed: initdb was not found (Debian: apt-get install postgresql)")
    if prefix is None:
        missing("PostgreSQL refuses to run as root, and there is no user postgres")
    running = Cluster(programs, prefix)
    try:
        running.sql("CREATE ROLE owner LOGIN")
        running.sql("GRANT CREATE ON DATABASE postgres TO owner")
        running.sql("CREATE ROLE writer LOGIN")
        yield running
    finally:
        running.end()


@pytest.fixture(scope="session")
def cluster():
    """A running PostgreSQL."""
    with running_cluster() as running:
        yield running


@pytest.fixture
def postgres_url(cluster, tmp_path):
    """Where a new, empty ledger is on PostgreSQL."""
    schema = cluster.new_schema()
    witness = tmp_path / f"{schema}.witness"
    Ledger.create(cluster.address("owner", schema), witness=witness, writer="writer", principal="steward").close()
    return cluster.address("writer", schema)


@pytest.fixture(params=ENGINES)
def ledger_url(request, tmp_path):
    """Where a new, empty ledger is: open it with Ledger(ledger_url, principal=...)."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres_url")
    where = str(tmp_path / "study.db")
    Ledger.create(where, principal="steward").close()
    return where


@pytest.fixture(scope="session")
def clients():
    """A process that has imported all it needs, and forks clients."""
    running = Clients()
    yield running
    running.close()


@pytest.fixture
def ledger(ledger_url):
    """A new ledger of ada's."""
    with Ledger(ledger_url, principal="ada") as opened:
        yield opened


@pytest.fixture
def cohort(ledger):
    """Its one population."""
    return ledger.population("cohort", cap=GDP(1.0), unit="participant")
