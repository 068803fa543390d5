"""`dpm service`: what the operator of a service does on its host. It shows names, roles and times, never data."""

from __future__ import annotations

import contextlib
import pathlib
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpmanifold._extras import optional_module
from dpmanifold.cli import options
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.speech import say, say_json, say_table
from dpmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from dpmanifold.service.accounts import Accounts
    from dpmanifold.service.database import Database

app = typer.Typer(
    help="Operate a service (dpm serve): who may sign in, and what they did.\n\n"
    "These commands work on the service's own database, on its host; the service may run meanwhile.",
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
DEFAULT = pathlib.Path("dpm-service.toml")


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
    if as_json:
        say_json([one.to_dict() for one in found])
        return
    if not found:
        say("There is no account: dpm service account add.")
        return
    rows = [(one.name, one.role, _day(one.created), _day(one.changed), _day(one.closed)) for one in found]
    _say_rows(("account", "role", "made", "password set", "closed"), rows)


@guarded
def close(name: Name, config: Config = DEFAULT) -> None:
    """Close an account for good: its logins end and its tokens are revoked at once. What it asked for remains."""
    with _accounts(config) as accounts, _named(name):
        accounts.close(name)
    say(f"{name} is closed.")


@guarded
def password(name: Name, password_stdin: PasswordStdin = False, config: Config = DEFAULT) -> None:
    """Set a password that was forgotten, or is known to others: logins end and tokens are revoked."""
    with _accounts(config) as accounts, _named(name):
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
    if as_json:
        shown = [{**one.to_dict(), "facts": _facts(one)} for one in found]
        say_json({"ok": not faults, "faults": faults, "events": shown})
    else:
        _say_rows(("event", "time", "who", "what", "about"), [_line(one) for one in found])
        say("\n".join([*faults, *([f"The last hash is {found[-1].hash}."] if found else [])]))
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
    with _module("database").Database(settings.database) as database:
        database.prepare()
        yield database


@contextlib.contextmanager
def _accounts(config: pathlib.Path) -> Iterator[Accounts]:
    with _database(config) as database:
        yield _module("accounts").Accounts(database)


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Say which account there is not: the operator may know."""
    missing = _module("errors").NotFound
    try:
        yield
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


def _day(time: str | None) -> str:
    return "" if time is None else time[:10]


def _say_rows(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("time", "at", "name"))
    for row in rows:
        table.add_row(*map(Text, row))
    say_table(table)


for _name, _command in (("add", add), ("list", listed), ("close", close), ("password", password)):
    account.command(name=_name)(_command)
app.add_typer(account, name="account")
app.command(name="events")(events)
app.command(name="backup")(backup)
app.command(name="restore")(restore)
