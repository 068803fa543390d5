"""How a command fails: one paragraph on stderr with the remedy, and an exit code that says whose turn it is.

0 done, 1 a fault of the program, 2 bad arguments, 3 data refused, 4 the promise cannot be kept.
"""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

import typer

from dpmanifold.errors import BudgetError, DPManifoldError, InvalidDataError, PromiseError

BUG, BAD_ARGUMENTS, DATA_REFUSED, PROMISE_IMPOSSIBLE = 1, 2, 3, 4


class ViewError(Exception):
    """A release was written, and then something went wrong with a view of it."""


def fail(message: str, code: int = BAD_ARGUMENTS) -> NoReturn:
    """Say what is wrong on stderr and end the command."""
    typer.echo(f"dpm: {message}", err=True)
    raise typer.Exit(code)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Turn errors into messages and exit codes.

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
        except InvalidDataError as problem:
            fail(str(problem), DATA_REFUSED)
        except (PromiseError, BudgetError) as problem:
            fail(str(problem), PROMISE_IMPOSSIBLE)
        except DPManifoldError as problem:
            fail(str(problem), BAD_ARGUMENTS)
        except OSError as problem:
            fail(f"{problem.filename or 'a file'}: {problem.strerror or 'cannot be used'}. Check the path.")
        except MemoryError:
            fail("not enough memory. Give the data as .npy, which is read in blocks, or use a larger machine.", BUG)
        except ViewError as problem:
            fail(str(problem), BUG)
        except Exception as problem:
            if os.environ.get("DPM_TRACEBACK"):
                raise
            fail(
                f"an unexpected {type(problem).__name__}. Its message may quote data and is not shown: set "
                "DPM_TRACEBACK=1 to see it, and please report it.",
                BUG,
            )

    return run
