"""What is printed, on any terminal: results on stdout, everything else on stderr.

A terminal that knows no UTF-8 gets plain letters, and a full disk or a closed pipe behind stdout gives a message.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpmanifold.progress import bar, quietly


@contextlib.contextmanager
def working(what: str, total: int | None = None, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a spinner, or with a total a bar; gives a function that takes how much is done so far.

    With `quiet` no bar of what is called inside is shown either.
    """
    so_far = 0
    with quietly(quiet), bar(what, total) as advance:

        def tell(done: int) -> None:
            nonlocal so_far
            advance(done - so_far)
            so_far = done

        yield tell


_PLAIN = "dpmanifold-plain"
_SPELT = {"≤": "<=", "≥": ">=", "±": "+-", "−": "-", "–": "-", "×": "x", "²": "^2", "…": "...", "─": "-", "·": "."}


class CannotPrintError(Exception):
    """Standard output cannot be written; the message is the system's reason."""


def use_plain_letters() -> None:
    """Make stdout and stderr spell what their encoding does not have, instead of failing."""
    codecs.register_error(_PLAIN, _spelt)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_PLAIN)


def _spelt(problem: UnicodeError) -> tuple[str | bytes, int]:
    """Spell characters with those that every encoding has: Fréchet as Frechet, others as a question mark."""
    if not isinstance(problem, UnicodeEncodeError):
        raise problem
    return "".join(_letter(c) for c in problem.object[problem.start : problem.end]), problem.end


def _letter(character: str) -> str:
    if character in _SPELT:
        return _SPELT[character]
    return unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode("ascii") or "?"


def say(text: str) -> None:
    """Print a line, or several, on stdout."""
    with _printing():
        print(text, flush=True)


@contextlib.contextmanager
def _printing() -> Iterator[None]:
    """Say why standard output cannot be written, and give it up."""
    try:
        yield
    except OSError as problem:
        give_up_stdout()
        raise CannotPrintError(problem.strerror or "it is closed") from problem


def json_text(record: Any) -> str:
    """Return a record as machines read it."""
    return json.dumps(record, indent=2, allow_nan=False)


def say_json(record: Any) -> None:
    """Print a record for machines on stdout."""
    say(json_text(record))


def say_answer(record: Any, as_json: bool, *told: Any) -> None:
    """Print an answer: a record for machines, or texts and tables for people."""
    if as_json:
        say_json(record)
        return
    for one in told:
        (say if isinstance(one, str) else say_table)(one)


def table_of(
    headings: Iterable[str],
    rows: Iterable[Iterable[object]],
    *,
    whole: Collection[str] = (),
    right: Collection[str] = (),
    overflow: Any = "fold",
    **how: Any,
) -> Table:
    """Return a table of texts, whatever they hold.

    Parameters
    ----------
    headings, rows : what stands in it
    whole, right : the headings of columns that stay in one piece, and of those that stand at the right
    overflow, how : as rich takes them
    """
    table = Table(**{"box": box.SIMPLE, **how})
    for heading in headings:
        justify: Any = "right" if heading in right else "left"
        table.add_column(heading, justify=justify, no_wrap=heading in whole, overflow=overflow)
    for row in rows:
        table.add_row(*(Text(str(entry)) for entry in row))
    return table


def say_rows(
    records: Any, as_json: bool, headings: Iterable[str], rows: Collection[Iterable[object]], nothing: str
) -> None:
    """Print records, as a table for people; or that there is nothing."""
    say_answer(records, as_json, table_of(headings, rows, pad_edge=False) if rows else nothing)


def say_table(table: Any) -> None:
    """Print what rich draws on stdout, as wide and as colourful as the terminal is."""
    terminal = Console()
    page = _Page()
    page.encoding = terminal.encoding  # without UTF-8, rich draws lines of - and |
    drawing = Console(file=page, width=terminal.width, force_terminal=terminal.is_terminal, highlight=False)
    drawing.print(table)
    say(page.getvalue().rstrip("\n"))


class _Page(io.StringIO):
    """Text that says for which encoding it is."""

    encoding = "utf-8"


def mention(text: str) -> None:
    """Print for people on stderr, where stdout is for machines."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """Print a message on stderr; where not even that can be written, the exit code must do."""
    mention(f"dpm: {text}")


def finish() -> None:
    """Write out what stdout still holds, so that nothing fails after the command has ended."""
    with _printing():
        if sys.stdout is not None:
            sys.stdout.flush()


def give_up_stdout() -> None:
    """Send to nowhere what stdout still holds: the interpreter would try again at its end, and fail loudly."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
