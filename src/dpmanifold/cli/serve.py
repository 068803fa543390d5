"""`dpm serve`: a service for a team, in one command; and everything about it that is done on its host."""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import stat
import sys
import tempfile
import webbrowser
from typing import Annotated, Any

import typer

from dpmanifold._extras import optional_module
from dpmanifold.cli.endings import Terminated
from dpmanifold.cli.failures import FAULT, PROMISE_IMPOSSIBLE, fail, guarded
from dpmanifold.cli.serve_records import read_request
from dpmanifold.cli.speech import complain, say
from dpmanifold.errors import InvalidArgumentError

_DEFAULT = pathlib.Path("dpm-service.toml")
_BEGIN = (
    "there are no settings {path}. To try a service out, with public data: dpm serve --demo. To set one up: dpm serve "
    "--init, then dpm service account add NAME --role steward, then dpm serve."
)


@guarded
def serve(
    config: Annotated[
        pathlib.Path,
        typer.Option(envvar="DPM_SERVICE_CONFIG", metavar="FILE", help="The service's settings, a TOML file."),
    ] = _DEFAULT,
    demo: Annotated[
        bool, typer.Option("--demo", help="Try it out: three accounts and public data, on this machine alone.")
    ] = False,
    folder: Annotated[
        pathlib.Path | None,
        typer.Option(help="With --demo: where to keep it. Without, it is gone when the service stops."),
    ] = None,
    port: Annotated[int | None, typer.Option(help="With --demo: the port. Without, 8000 or one that is free.")] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open a browser once the service runs.")] = False,
    init: Annotated[
        bool, typer.Option("--init", help="Write settings to begin with, and make database, ledger and vault.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Say what holds and what does not. Exits with 4 if something does not.")
    ] = False,
    only: Annotated[
        str | None,
        typer.Option(metavar="web|worker", help="Run one of the two processes, as its own user of the system."),
    ] = None,
) -> None:
    """Run a service for a team: stewards register data, analysts plan and ask, auditors read. Records never leave.

    Start with dpm serve --demo. The web process cannot read records where the two processes run as two users:
    examples/serve shows how.
    """
    if demo + init + check + (only is not None) > 1:
        raise InvalidArgumentError("--demo, --init, --check and --only exclude each other. Give one.")
    if not demo and (folder is not None or port is not None):
        raise InvalidArgumentError("--folder and --port go with --demo. Leave them out: the settings say where.")
    for package in ("sqlalchemy", "starlette", "uvicorn", "jinja2", "argon2"):
        optional_module(package, "server", "a service")
    if demo:
        _demo(folder, port, open_page)
    elif init:
        _init(config)
    elif not config.exists():
        raise InvalidArgumentError(_BEGIN.format(path=config))
    elif check:
        _check(config)
    elif only is not None:
        _only(only, config)
    else:
        _both(config, open_page)


def _demo(folder: pathlib.Path | None, port: int | None, open_page: bool) -> None:
    optional_module("sklearn", "all", "the demonstration")
    from dpmanifold.service.demo import PEOPLE, set_up

    os.umask(0o077)  # whatever is made is for whoever tries it out
    with tempfile.TemporaryDirectory(prefix="dpm-demo-", ignore_cleanup_errors=True) as gone:
        place = pathlib.Path(gone) / "service" if folder is None else folder
        made = set_up(place, read_request, port)
        lines = [f"  {name:<5} {password:<18} {PEOPLE[name]}" for name, password in made.passwords.items()]
        if lines:
            say("Sign in as one of these; the passwords are not shown again.\n" + "\n".join(lines))
        else:
            say(f"The demonstration in {place} goes on, with the passwords it has.")
        _both(made.config, open_page)


def _init(config: pathlib.Path) -> None:
    from dpmanifold.service.service import Service
    from dpmanifold.service.settings import Settings

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
            f"  dpm serve --check --config {config}\n  dpm serve --config {config}"
        )


def _share(*paths: str | pathlib.Path) -> None:
    """Let a group write to files in a folder that it may write to: web and worker are two users of one group."""
    for path in map(pathlib.Path, paths):
        if path.is_file() and stat.S_IMODE(path.parent.stat().st_mode) & stat.S_IWGRP:
            path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IRGRP | stat.S_IWGRP)


def _check(config: pathlib.Path) -> None:
    from dpmanifold.service.checks import FAIL, findings
    from dpmanifold.service.settings import Settings

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
    if part == "worker":
        _with_one_thread(config)
    from dpmanifold.service.service import Service
    from dpmanifold.service.settings import Settings

    os.umask(0o007)  # files of the service are for its users
    with Service(Settings.read(config)) as service:
        _run_worker(service) if part == "worker" else _run_web(service)


def _with_one_thread(config: pathlib.Path) -> None:
    """Begin anew where libraries may have started threads: this process is to fork."""
    from dpmanifold.service.processes import ONE_THREAD, WORKER, command

    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        os.execve(sys.executable, command(WORKER, config), {**os.environ, **ONE_THREAD})


def _run_worker(service: Any) -> None:
    from dpmanifold.service.worker import Worker

    Worker(service, read_request).run()


def _run_web(service: Any) -> None:
    from dpmanifold.service import beats
    from dpmanifold.service.web.server import server_of

    beats.beat(service.database, beats.WEB)
    beats.keep_beating(service.database, beats.WEB)
    server = server_of(service)
    with contextlib.suppress(Terminated, KeyboardInterrupt):  # uvicorn raises the signal again once it has ended
        server.run()
    if not server.started:
        fail("the web process could not start: dpm serve --check says why.", FAULT)


def _both(config: pathlib.Path, open_page: bool) -> None:
    from dpmanifold.service.processes import SAME_USER, Processes
    from dpmanifold.service.settings import Settings

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
    from dpmanifold.service.settings import UNIX

    local = settings.host.startswith(UNIX)
    family = socket.AF_UNIX if local else socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        where: Any = settings.host.removeprefix(UNIX) if local else (settings.host, settings.port)
        return probe.connect_ex(where) == 0
