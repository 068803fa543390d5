"""The command `dpm`: a thin shell over the library, one module per kind of command."""

from __future__ import annotations

import pathlib
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dpmanifold import __version__, linalg
from dpmanifold.cli import (
    checking,
    demo,
    ledger_commands,
    private,
    public,
    remote_commands,
    results,
    service_commands,
)
from dpmanifold.cli.build import command_of, known_queries
from dpmanifold.cli.failures import FAULT, Terminated, guarded, unwinding
from dpmanifold.cli.speech import CannotPrintError, complain, finish, give_up_stdout, say, use_plain_letters
from dpmanifold.cli.study_options import Defaults, init
from dpmanifold.data.study import STUDY, Study


class _Commands(TyperGroup):
    """All commands, help texts included: on any terminal, and unwound by the signals that would kill them."""

    def main(self, *args: Any, **options: Any) -> Any:
        use_plain_letters()
        try:
            with unwinding():
                try:
                    return super().main(*args, **options)
                finally:
                    finish()
        except Terminated as ending:
            raise SystemExit(ending.code) from None
        except (OSError, CannotPrintError) as problem:  # of help texts: commands have told already
            give_up_stdout()
            complain(f"standard output cannot be written: {getattr(problem, 'strerror', None) or problem}.")
            raise SystemExit(FAULT) from None


app = typer.Typer(
    name="dpm",
    cls=_Commands,
    help="Differentially private statistics for data on curved spaces.\n\n"
    "Start with dpm demo; then dpm init, dpm check, dpm plan, dpm mean, dpm show; dpm ledger keeps account. "
    "Exit codes: 0 done, 1 a fault of the program "
    "or the machine, 2 bad arguments, 3 data refused, 4 the promise cannot be kept, or a result or a ledger does not "
    "hold, 129, 130 or 143 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        problem = linalg.why_not_available()
        say(f"dpmanifold {__version__} ({linalg.level()}{f': {problem}' if problem else ''})")
        raise typer.Exit


@app.callback()
@guarded
def main(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    study_file: Annotated[
        pathlib.Path | None,
        typer.Option(
            "--study",
            envvar="DPM_STUDY",
            metavar="FILE",
            help="A study file (dpm init): commands take from it what is not said. Default: study.toml in this folder.",
        ),
    ] = None,
) -> None:
    """Take the options that come before a command."""
    if study_file is not None or STUDY.exists():
        context.default_map = Defaults(Study.read(study_file or STUDY))


_FIRST, _DATA, _PRIVATE, _AFTER = "Before any data", "Preparing data", "Private releases", "Afterwards"
_SERVING, _PAPERS = "Serving", "The papers"
for name, command, panel in (
    ("demo", demo.demo, _FIRST),
    ("init", init, _FIRST),
    ("plan", public.plan, _FIRST),
    ("spaces", public.spaces, _FIRST),
    ("mechanisms", public.mechanisms, _FIRST),
    ("statistics", public.statistics, _FIRST),
    ("sensitivity", public.sensitivity_command, _FIRST),
    ("audit", public.audit, _FIRST),
    ("check", checking.check, _DATA),
    ("descriptors", private.descriptors, _DATA),
    *((query.name, private.OWN.get(query.name) or command_of(query), _PRIVATE) for query in known_queries()),
    ("statistic", private.statistic, _PRIVATE),
    ("verify", results.verify_command, _AFTER),
    ("show", results.show, _AFTER),
    ("predict", results.predict, _AFTER),
    ("reproduce", public.reproduce, _PAPERS),
):
    app.command(name=name, rich_help_panel=panel)(command)
app.add_typer(ledger_commands.app, name="ledger", rich_help_panel=_AFTER)
app.add_typer(service_commands.app, name="service", rich_help_panel=_SERVING)
app.add_typer(remote_commands.app, name="remote", rich_help_panel=_SERVING)
