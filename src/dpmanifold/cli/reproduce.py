"""`dpm reproduce`: the papers' experiments, which come in a distribution of their own and are found by entry point."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Annotated

import typer

from dpmanifold._version import __version__
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.outputs import refuse_stdout
from dpmanifold.errors import MissingPackageError
from dpmanifold.registry import Registry

PAPERS: Registry[Callable[..., None]] = Registry("command of the papers", "dpmanifold.papers")


@guarded
def reproduce(
    name: Annotated[str, typer.Argument(help="list, all, a paper, or paper/experiment.")],
    out: Annotated[pathlib.Path, typer.Option(help="Folder for CSV, PNG and Markdown.")] = pathlib.Path("reproduced"),
    data: Annotated[pathlib.Path | None, typer.Option(envvar="DPM_DATA", help="Folder with data sets.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A version of seconds, to see that it runs.")] = False,
    processes: Annotated[
        int | None, typer.Option(min=1, help="How many run at once; all processors if left out.")
    ] = None,
    pages: Annotated[
        pathlib.Path | None, typer.Option(help="Also write one page per paper into this folder, from the results.")
    ] = None,
) -> None:
    """Rerun the papers: published / their formula / ours. Seeded, hence NOT PRIVATE; goes on where it was stopped."""
    refuse_stdout("--out", out)
    command = PAPERS.find("reproduce")
    if command is None:
        raise MissingPackageError(
            "the papers' experiments are a distribution of their own, which is not installed. Run: pip install "
            f"dpmanifold-papers=={__version__}, or, in a checkout of the repository, pip install --editable ./papers."
        )
    command(name, out=out, data=data, quick=quick, processes=processes, pages=pages)
