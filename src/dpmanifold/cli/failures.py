"""How a command fails: one paragraph on stderr with the remedy, and an exit code that says whose turn it is.

0 done, 1 a fault of the program or the machine, 2 bad arguments, 3 data refused, 4 the promise cannot be kept, or a
result or a ledger does not hold, 129, 130 or 143 interrupted.
"""

from __future__ import annotations

import contextlib
import functools
import os
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import typer

from dpmanifold.cli.endings import Terminated, code_of, held_back
from dpmanifold.cli.speech import CannotPrintError, complain, say_json
from dpmanifold.cli.wording import OptionWording, options_of
from dpmanifold.errors import (
    BudgetError,
    CardError,
    ClusterError,
    DPManifoldError,
    InvalidDataError,
    LedgerError,
    PromiseError,
    ReleaseLostError,
    SourceChangedError,
)
from dpmanifold.stats.settling import KEY_NOTE

FAULT, BAD_ARGUMENTS, DATA_REFUSED, PROMISE_IMPOSSIBLE = 1, 2, 3, 4


def fail(message: str, code: int = BAD_ARGUMENTS) -> NoReturn:
    """Say what is wrong on stderr and end the command."""
    complain(message)
    raise typer.Exit(code)


_CODES: dict[type[DPManifoldError], int] = {
    InvalidDataError: DATA_REFUSED,
    SourceChangedError: DATA_REFUSED,
    ClusterError: FAULT,
    CardError: FAULT,
    ReleaseLostError: FAULT,
    PromiseError: PROMISE_IMPOSSIBLE,
    BudgetError: PROMISE_IMPOSSIBLE,
    LedgerError: PROMISE_IMPOSSIBLE,
}


def code_for(problem: DPManifoldError) -> int:
    """Return the exit code that says whose turn it is."""
    own: int | None = getattr(problem, "exit_code", None)
    return own or next((code for kind, code in _CODES.items() if isinstance(problem, kind)), BAD_ARGUMENTS)


def _refuse(problem: DPManifoldError, command: Callable[..., None], as_json: bool) -> NoReturn:
    """Say what is wrong in the words of the command, or as JSON on stdout where that was asked for, and end it."""
    code, words = code_for(problem), OptionWording(options_of(command)).message(problem)
    if not as_json:
        fail(words, code)
    argument = {} if problem.argument is None else {"argument": problem.argument}
    say_json({"error": {"kind": type(problem).__name__, **argument, "message": words, "exit_code": code}})
    raise typer.Exit(code)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into messages and exit codes; with --json, those of the library into JSON.

    Messages of unexpected errors may quote data, and warnings may depend on them: neither is shown. With
    DPM_TRACEBACK set in the environment the traceback comes through, for the curator.
    """

    @functools.wraps(command)
    def run(*args: Any, **options: Any) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                command(*args, **options)
        except (typer.Exit, typer.Abort):
            raise
        except DPManifoldError as problem:
            _refuse(problem, run, options.get("as_json") is True)
        except CannotPrintError as problem:
            fail(f"standard output cannot be written: {problem}.", FAULT)
        except OSError as problem:
            what = f"{problem.filename or 'a file'}: {problem.strerror or 'cannot be used'}. Check the path."
            fail(what + _key_in(problem))
        except MemoryError as problem:
            what = "not enough memory. Use a larger machine (docs/reference/data.md says what is read in blocks)."
            fail(what + _key_in(problem), FAULT)
        except (KeyboardInterrupt, Terminated) as ending:
            fail(f"interrupted.{_key_in(ending)}", code_of(ending))
        except Exception as problem:
            if wants_traceback():
                raise
            fail(
                f"an unexpected {type(problem).__name__}. Its message may quote data and is not shown: set "
                f"DPM_TRACEBACK=1 to see it, and please report it.{_key_in(problem)}",
                FAULT,
            )

    return run


@contextlib.contextmanager
def kept(write: Callable[[], None], where: str, record: Any, remark: str = "") -> Iterator[None]:
    """Write what was released before anything else is done; whatever fails afterwards is told with where it is.

    What is told is the same whatever was released, but for the system's own reason (a full disk, a closed pipe).

    Parameters
    ----------
    write : writes the release
    where : says where it is then, such as "the release IS written to mean.json"
    record : the release for machines: printed if it cannot be written, as its promise is spent
    remark : what else to say then, such as how to get it again
    """
    written = False
    try:
        with held_back():
            write()
            written = True
        yield
    except typer.Exit:
        raise
    except (KeyboardInterrupt, Terminated) as ending:
        done = _sentence(where) if written else f"Nothing was written.{_behind(remark)}"
        fail(f"interrupted. {done}", code_of(ending))
    except Exception as problem:
        if wants_traceback():
            traceback.print_exc()
        if written:
            fail(f"{where}, and the promise is spent; but it could not be printed{_reason(problem)}.", FAULT)
        _rescue(record, _reason(problem), _behind(remark))


def _rescue(record: Any, reason: str, remark: str) -> NoReturn:
    """Print a release that cannot be written: its noise was drawn, and drawing again would cost as much again."""
    try:
        say_json(record)
    except CannotPrintError:
        lost = f", and the promise is spent.{remark}" if remark else ": it is lost, and the promise is spent."
        fail(f"the release could be neither written{reason} nor printed{lost}", FAULT)
    spent = "It is printed instead, and the promise is spent: keep it."
    fail(f"the release could not be written{reason}. {spent}{remark}", FAULT)


def _reason(problem: Exception) -> str:
    """Return the system's reason, if it is one; other messages could quote data."""
    said = problem.strerror if isinstance(problem, OSError) else None
    said = str(problem) if isinstance(problem, CannotPrintError) else said
    return f" ({said})" if said else ""


def _key_in(problem: BaseException) -> str:
    """Return what an error says about the key of its request, which may be paid for; no other note is shown."""
    return "".join(f" {note}" for note in getattr(problem, "__notes__", ()) if note.startswith(KEY_NOTE))


def _behind(remark: str) -> str:
    return f" {remark}" if remark else ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}, and the promise is spent."


def wants_traceback() -> bool:
    """Return whether whoever holds the data asked to see what went wrong."""
    return bool(os.environ.get("DPM_TRACEBACK"))
