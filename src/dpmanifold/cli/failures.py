"""How a command fails: a paragraph on stderr, with the remedy in words of options, and an exit code.

0 done, 1 a fault of the program or the machine, 2 bad arguments, 3 data refused, 4 the promise cannot be kept, or a
result or a ledger does not hold, 129, 130 or 143 interrupted.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import signal
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, NoReturn

import typer
from typer.models import OptionInfo

from dpmanifold.cli.speech import CannotPrintError, complain, say_json
from dpmanifold.errors import (
    BudgetError,
    CardError,
    ClusterError,
    DPManifoldError,
    Either,
    InvalidDataError,
    LedgerError,
    Message,
    PromiseError,
    ReleaseLostError,
    SourceChangedError,
    Wording,
)
from dpmanifold.stats.payment import KEY_NOTE

FAULT, BAD_ARGUMENTS, DATA_REFUSED, PROMISE_IMPOSSIBLE = 1, 2, 3, 4
# Arguments of the library that are no options: what is typed before them.
_ARGUMENTS = {"X": "the data", "paths": "PATH", "path": "PATH", "folder": "PATH"}


class OptionWording(Wording):
    """Arguments as options of a command; those that it does not have keep their names.

    Parameters
    ----------
    options : what is typed, by the name of the argument; None for any name
    """

    def __init__(self, options: dict[str, str] | None = None) -> None:
        self._options = options

    def argument(self, name: str, value: str | None) -> str:
        """Return an option, with its value as it is typed.

        Examples
        --------
        >>> OptionWording().argument("invalid", '"center"'), OptionWording().argument("covariate_range", None)
        ('--invalid center', '--covariate-range')
        """
        known = _ARGUMENTS.get(name) or f"--{name.replace('_', '-')}"
        if self._options is not None and not known.startswith("--"):
            return known
        option = known if self._options is None else self._options.get(name, super().argument(name, value))
        typed = (value or "").strip('"')
        plain = not option.startswith("--") or typed in ("", "True", "...")
        return option if plain else f"{option} {typed}"

    def either(self, said: Either) -> object:
        """Return what is not for Python."""
        return said.elsewhere


def words_of(said: str) -> str:
    """Return a message in the words of options; a text that is no message, as it is."""
    return OptionWording().message(said) if isinstance(said, Message) else said


def options_of(command: Callable[..., object]) -> dict[str, str]:
    """Return what is typed for each option of a command, by the name of the parameter."""
    found = {}
    for name, annotation in inspect.get_annotations(command, eval_str=True).items():
        for info in getattr(annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo):
                declared = [text for text in info.param_decls or () if text.startswith("--")]
                found[name] = declared[0].partition("/")[0] if declared else f"--{name.replace('_', '-')}"
    return found


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
    written, behind = False, f" {remark}" if remark else ""
    try:
        with held_back():
            write()
            written = True
        yield
    except typer.Exit:
        raise
    except (KeyboardInterrupt, Terminated) as ending:
        done = (
            f"{where[0].upper()}{where[1:]}, and the promise is spent." if written else f"Nothing was written.{behind}"
        )
        fail(f"interrupted. {done}", code_of(ending))
    except Exception as problem:
        if wants_traceback():
            traceback.print_exc()
        if written:
            fail(f"{where}, and the promise is spent; but it could not be printed{_reason(problem)}.", FAULT)
        _rescue(record, _reason(problem), behind)


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


def wants_traceback() -> bool:
    """Return whether whoever holds the data asked to see what went wrong."""
    return bool(os.environ.get("DPM_TRACEBACK"))


# -------------------------------------------------------------------- how a command is ended from outside

# Ctrl-C and SIGTERM unwind it, so that no temporary file stays.


# What ends a command by itself leaves its temporary files behind; SIGINT is Python's own to turn into an exception.
_KILLING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_INTERRUPTED = 128 + signal.SIGINT


class Terminated(SystemExit):
    """The command was told to end by a signal; its exit code is 128 plus the signal's number, as in a shell."""


def code_of(ending: BaseException) -> int:
    """Return the exit code of a command that was interrupted or terminated."""
    return int(ending.code or 0) if isinstance(ending, Terminated) else _INTERRUPTED


def _unwind(number: int, frame: FrameType | None) -> None:
    raise Terminated(128 + number)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Turn signals that would end the process at once into an exception, while the block runs."""
    wanted = [n for n in _KILLING if _is_main_thread() and signal.getsignal(n) is signal.SIG_DFL]
    for number in wanted:
        signal.signal(number, _unwind)
    try:
        yield
    finally:
        for number in wanted:
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Let signals wait until the block has ended: it is short, and nobody should have to ask how far it came."""
    waiting: list[int] = []
    numbers = [signal.SIGINT, *_KILLING] if _is_main_thread() else []
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler not in (None, signal.SIG_IGN)}
    for number in before:
        signal.signal(number, lambda number, frame: waiting.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if waiting:
        signal.raise_signal(signal.Signals(waiting[0]))


def _is_main_thread() -> bool:
    """Return whether this thread may set handlers."""
    return threading.current_thread() is threading.main_thread()
