"""`dpm service`: a service for a team, and what its operator does on its host. They show no data."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import stat
import sys
import tempfile
import webbrowser
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmanifold._check import optional_module
from dpmanifold.cli import options
from dpmanifold.cli.failures import FAULT, PROMISE_IMPOSSIBLE, Terminated, fail, guarded
from dpmanifold.cli.speech import complain, say, say_answer, say_rows, table_of
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.service.settings import UNIX, Settings

if TYPE_CHECKING:
    from dpmanifold.service.accounts import Accounts
    from dpmanifold.service.service_database import Database

app = typer.Typer(
    help="Run a service for a team, and operate it: who may sign in, and what they did.\n\n"
    "Start with dpm service demo. These commands work on the service's own database, on its host; the service may run "
    "meanwhile.",
    no_args_is_help=True,
)
account = typer.Typer(
    help="The accounts of a service. A name is one person's for good; a closed account is never opened again.",
    no_args_is_help=True,
)

Config = Annotated[
    pathlib.Path,
    typer.Option(envvar="DPM_SERVICE_CONFIG", metavar="FILE", help="The service's settings, a TOML file."),
]
Name = Annotated[str, typer.Argument(help="The account's name: letters, digits, dots, underscores and hyphens.")]
PasswordStdin = Annotated[
    bool, typer.Option("--password-stdin", help="Read the password from standard input, one line, and do not ask.")
]
Open = Annotated[bool, typer.Option("--open", help="Open a browser once the service runs.")]
DEFAULT = pathlib.Path("dpm-service.toml")
_BEGIN = (
    "there are no settings {path}. To try a service out, with public data: dpm service demo. To set one up: dpm "
    "service init, then dpm service account add NAME --role steward, then dpm service run."
)


@guarded
def run(
    config: Config = DEFAULT,
    open_page: Open = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="web|worker", help="Run one of the two processes, as its own user of the system."),
    ] = None,
) -> None:
    """Run a service for a team: stewards register data, analysts plan and ask, auditors read. Records never leave.

    The web process cannot read records where the two processes run as two users: examples/serve shows how.
    """
    _refuse_missing_packages()
    if not config.exists():
        raise InvalidArgumentError(_BEGIN.format(path=config))
    if only is not None:
        _only(only, config)
    else:
        _both(config, open_page)


def _refuse_missing_packages() -> None:
    for package in ("sqlalchemy", "starlette", "uvicorn", "jinja2", "argon2"):
        optional_module(package, "server", "a service")


@guarded
def demo(
    folder: Annotated[
        pathlib.Path | None, typer.Option(help="Where to keep it. Without, it is gone when the service stops.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port. Without, 8000 or one that is free.")] = None,
    open_page: Open = False,
) -> None:
    """Try a service out: three accounts and public data, on this machine alone."""
    _refuse_missing_packages()
    optional_module("sklearn", "all", "the demonstration")
    from dpmanifold.service.demo_service import PEOPLE, set_up

    os.umask(0o077)  # whatever is made is for whoever tries it out
    with tempfile.TemporaryDirectory(prefix="dpm-demo-", ignore_cleanup_errors=True) as gone:
        place = pathlib.Path(gone) / "service" if folder is None else folder
        made = set_up(place, port)
        lines = [f"  {name:<5} {password:<18} {PEOPLE[name]}" for name, password in made.passwords.items()]
        if lines:
            say("Sign in as one of these; the passwords are not shown again.\n" + "\n".join(lines))
        else:
            say(f"The demonstration in {place} goes on, with the passwords it has.")
        _both(made.config, open_page)


@guarded
def init(config: Config = DEFAULT) -> None:
    """Write settings to begin with, and make database, ledger and vault. What is there stays as it is."""
    _refuse_missing_packages()
    from dpmanifold.service.service import Service

    if not config.exists():
        Settings.write_example(config)
        say(f"Written: {config}")
    settings = Settings.read(config)
    with Service.create(settings) as service:
        _share(settings.database, settings.ledger, service.ledger.witness.path)
        say(
            f"  database  {service.database.name}\n  ledger    {service.ledger.name}\n"
            f"  witness   {service.ledger.witness.path}\n  key       {service.ledger.secret}\n"
            f"  records   {settings.root}\n  vault     {settings.vault}\n"
            "Keep a copy of the key in a safe place. Next:\n"
            f"  dpm service account add NAME --role steward --config {config}\n"
            f"  dpm service check --config {config}\n  dpm service run --config {config}"
        )


def _share(*paths: str | pathlib.Path) -> None:
    """Let a group write to files in a folder that it may write to: web and worker are two users of one group."""
    for path in map(pathlib.Path, paths):
        if path.is_file() and stat.S_IMODE(path.parent.stat().st_mode) & stat.S_IWGRP:
            path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IRGRP | stat.S_IWGRP)


@guarded
def check(config: Config = DEFAULT) -> None:
    """Say what holds and what does not. Exits with 4 if something does not."""
    _refuse_missing_packages()
    if not config.exists():
        raise InvalidArgumentError(_BEGIN.format(path=config))
    from dpmanifold.service.checks import FAIL, findings

    try:
        settings = Settings.read(config)
    except InvalidArgumentError as problem:
        say(f"{FAIL}  {problem}")
        raise typer.Exit(PROMISE_IMPOSSIBLE) from None
    found = findings(settings)
    say("\n".join(map(str, found)))
    if any(one.state == FAIL for one in found):
        raise typer.Exit(PROMISE_IMPOSSIBLE)


def _only(part: str, config: pathlib.Path) -> None:
    if part not in ("web", "worker"):
        raise InvalidArgumentError(f"--only must be web or worker, got {part!r}.")
    from dpmanifold.service.processes import ONE_THREAD, WORKER, command

    if part == "worker" and any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # Begin anew where libraries may have started threads: this process is to fork.
        os.execve(sys.executable, command(WORKER, config), {**os.environ, **ONE_THREAD})
    from dpmanifold.service.service import Service

    os.umask(0o007)  # files of the service are for its users
    with Service(Settings.read(config)) as service:
        if part == "web":
            _run_web(service)
            return
        from dpmanifold.service.worker import Worker

        Worker(service).run()


def _run_web(service: Any) -> None:
    from dpmanifold.service import beats
    from dpmanifold.service.web.app import server_of

    beats.beat(service.database, beats.WEB)
    beats.keep_beating(service.database, beats.WEB)
    server = server_of(service)
    with contextlib.suppress(Terminated, KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
        server.run()
    if not server.started:
        fail("the web process could not start: dpm service check says why.", FAULT)


def _both(config: pathlib.Path, open_page: bool) -> None:
    from dpmanifold.service.processes import SAME_USER, Processes

    settings = Settings.read(config)
    if _answers(settings):  # whose password pages people would fill in
        fail(f"somebody listens at {settings.url} already. Stop them, or set web.port to another.", FAULT)

    def started() -> None:
        say(f"The service is at {settings.url} (Ctrl-C stops it).")
        complain(SAME_USER)
        if open_page:
            webbrowser.open(settings.url)

    problem = Processes(config.absolute(), complain).run(lambda: _answers(settings), started)
    if problem:
        fail(problem, FAULT)


def _answers(settings: Any) -> bool:
    """Return whether somebody listens where the web process is to."""
    local = settings.host.startswith(UNIX)
    family = socket.AF_UNIX if local else socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        where: Any = settings.host.removeprefix(UNIX) if local else (settings.host, settings.port)
        return probe.connect_ex(where) == 0


# -------------------------------------------------------------------- accounts, events, copies


@guarded
def add(
    name: Name,
    role: Annotated[str, typer.Option(metavar="analyst|steward|auditor", help="What the account is for, for good.")],
    password_stdin: PasswordStdin = False,
    config: Config = DEFAULT,
) -> None:
    """Make an account. The password is asked for, twice; it has at least 12 characters.

    An analyst plans and asks within grants, a steward registers data and grants, an auditor reads all but records.
    """
    from dpmanifold.service.tables import ROLES

    if role not in ROLES:
        raise InvalidArgumentError(f"--role must be one of {', '.join(ROLES)}, got {role!r}.")
    with _accounts(config) as accounts:
        made = accounts.add(name, role, _password(password_stdin))
    say(f"{made.name} can sign in as {made.role}.")


@guarded
def listed(config: Config = DEFAULT, as_json: options.Json = False) -> None:
    """List the accounts, closed ones included."""
    with _accounts(config) as accounts:
        found = accounts.listed()
    rows = [
        (one.name, one.role, *((when or "")[:10] for when in (one.created, one.changed, one.closed))) for one in found
    ]
    headings = ("account", "role", "made", "password set", "closed")
    nothing = "There is no account: dpm service account add."
    say_rows([one.to_dict() for one in found], as_json, headings, rows, nothing)


@guarded
def close(name: Name, config: Config = DEFAULT) -> None:
    """Close an account for good: its logins end and its tokens are revoked at once. What it asked for remains."""
    with _accounts(config, name) as accounts:
        accounts.close(name)
    say(f"{name} is closed.")


@guarded
def password(name: Name, password_stdin: PasswordStdin = False, config: Config = DEFAULT) -> None:
    """Set a password that was forgotten, or is known to others: logins end and tokens are revoked."""
    with _accounts(config, name) as accounts:
        accounts.set_password(name, _password(password_stdin))
    say(f"{name} has a new password. All logins have ended and all tokens are revoked.")


@guarded
def events(
    after: Annotated[int, typer.Option(min=0, help="Show what came after this event.")] = 0,
    config: Config = DEFAULT,
    as_json: options.Json = False,
) -> None:
    """Print the log of what people did, and check all of it. Exits with 4 if it does not hold.

    Keep the last hash elsewhere: whoever compares it later notices a log whose end was cut off.
    """
    with _database(config) as database:
        log = _module("events")
        faults, found = log.verify(database), list(log.every(database, after))
    shown = [{**one.to_dict(), "facts": _facts(one)} for one in found]
    headings = ("event", "time", "who", "what", "about")
    say_answer(
        {"ok": not faults, "faults": faults, "events": shown},
        as_json,
        table_of(headings, map(_line, found), whole=("time",), pad_edge=False),
        "\n".join([*faults, *([f"The last hash is {found[-1].hash}."] if found else [])]),
    )
    if faults:
        raise typer.Exit(PROMISE_IMPOSSIBLE)


@guarded
def backup(
    folder: Annotated[pathlib.Path, typer.Argument(help="A new folder for the copy, for its owner alone.")],
    config: Config = DEFAULT,
) -> None:
    """Copy the service's database and the ledger, each in one state; the service may run meanwhile.

    The vault, the ledger's key and its witness are no part of it. A database on a server is copied by pg_dump.
    """
    _say_copied("Copied", _module("backup").backup(_module("settings").Settings.read(config), folder))


@guarded
def restore(
    folder: Annotated[pathlib.Path, typer.Argument(help="The folder of a copy, made by dpm service backup.")],
    reason: Annotated[str, typer.Option(help="Why, for whoever audits the ledger: it stays there.")],
    config: Config = DEFAULT,
) -> None:
    """Put a copy back while the service does not run. What was spent since is recovered from the ledger's witness.

    Results that came out since are not. What was there before is set aside.
    """
    _say_copied("Put back", _module("backup").restore(_module("settings").Settings.read(config), folder, reason))


def _say_copied(what: str, copied: Any) -> None:
    say("\n".join([f"{what}: {', '.join(copied.files) or 'nothing'}.", *copied.remarks]))


def _module(name: str) -> Any:
    """Import a module of the service, or say how it is installed."""
    optional_module("sqlalchemy", "server", "a service")
    optional_module("argon2", "server", "a service")
    return optional_module(f"dpmanifold.service.{name}", "server", "a service")


@contextlib.contextmanager
def _database(config: pathlib.Path) -> Iterator[Database]:
    """Open the database that the settings name; accounts may be made before the service runs for the first time."""
    settings = _module("settings").Settings.read(config)
    if "://" not in settings.database:
        pathlib.Path(settings.database).parent.mkdir(parents=True, exist_ok=True)
    with _module("service_database").Database(settings.database) as database:
        database.prepare()
        yield database


@contextlib.contextmanager
def _accounts(config: pathlib.Path, name: str = "") -> Iterator[Accounts]:
    """Open the accounts, and say which there is not: the operator may know."""
    missing = _module("http_errors").NotFound
    try:
        with _database(config) as database:
            yield _module("accounts").Accounts(database)
    except missing:
        raise InvalidArgumentError(
            f"there is no open account {name!r}. dpm service account list shows those that there are."
        ) from None


def _password(from_stdin: bool) -> str:
    """Return a password that is in no list of commands: asked for twice, or a line of standard input."""
    if from_stdin:
        return sys.stdin.readline().removesuffix("\n").removesuffix("\r")
    if not sys.stdin.isatty():
        raise InvalidArgumentError(
            "the password cannot be asked for: standard input is no terminal. Give --password-stdin and write the "
            "password there."
        )
    return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True))


def _line(event: Any) -> tuple[str, ...]:
    about = ", ".join(f"{name} {value}" for name, value in _facts(event).items())
    return str(event.seq), event.at[:19].replace("T", " "), event.who, event.kind, about


def _facts(event: Any) -> dict[str, Any]:
    """Return what an event says, also where it is broken, which is told elsewhere."""
    try:
        return dict(event.facts)
    except ValueError:
        return {"body": event.body}


for _name, _command in (("add", add), ("list", listed), ("close", close), ("password", password)):
    account.command(name=_name)(_command)
_BEGINNING, _OPERATION = "From nothing to a service", "Operation"
for _name, _command, _panel in (
    ("demo", demo, _BEGINNING),
    ("init", init, _BEGINNING),
    ("check", check, _BEGINNING),
    ("run", run, _BEGINNING),
    ("events", events, _OPERATION),
    ("backup", backup, _OPERATION),
    ("restore", restore, _OPERATION),
):
    app.command(name=_name, rich_help_panel=_panel)(_command)
app.add_typer(account, name="account", rich_help_panel=_OPERATION)
