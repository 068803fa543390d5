"""What `dpm reproduce` does: list the experiments, run some, write their pages. Found through an entry point."""

from __future__ import annotations

import functools
import pathlib

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dpmanifold.cli.outputs import require_plots
from dpmanifold.cli.speech import say
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import same_file
from dpmanifold.progress import on_a_terminal, quietly
from dpmanifold_papers.framework import Experiment
from dpmanifold_papers.pages import write_pages
from dpmanifold_papers.registry import EXPERIMENTS
from dpmanifold_papers.runner import run_experiment


def reproduce(
    name: str,
    *,
    out: pathlib.Path,
    data: pathlib.Path | None = None,
    quick: bool = False,
    processes: int | None = None,
    pages: pathlib.Path | None = None,
) -> None:
    """Run the experiments of that name and print their tables; draws are seeded, hence NOT PRIVATE.

    Parameters
    ----------
    name : "list" (which runs nothing), "all", a paper, or paper/experiment
    out : folder for the results of all experiments
    data : folder with data sets
    quick : a version of seconds
    processes : how many run at once; all processors by default
    pages : folder for one page per paper, made from the results; none by default
    """
    if name == "list":
        for experiment in EXPERIMENTS.values():
            needs = f" (needs {', '.join(experiment.needs)})" if experiment.needs else ""
            say(f"{experiment.name:<32} {experiment.title}{needs}")
        return
    chosen = [e for e in EXPERIMENTS.values() if name in ("all", e.name, e.name.partition("/")[0])]
    if not chosen:
        raise InvalidArgumentError(f"there is no experiment {name!r}. See dpm reproduce list.")
    require_plots()
    for option, folder in (("--out", out), ("--pages", pages)):
        if data is not None and folder is not None and same_file(folder, data):
            raise InvalidArgumentError(f"{option} {folder} is the folder of the data. Give another one.")
    for experiment in chosen:
        missing = [file for file in experiment.needs if data is None or not (data / file).is_file()]
        if missing and name in ("all", experiment.name.partition("/")[0]) and data is None:
            say(f"{experiment.name}: left out, it needs {', '.join(missing)}. Give --data.")
            continue
        _run(experiment, out, quick, data, processes)
        folder = out / experiment.name.replace("/", "-")
        say(f"{experiment.name}: {folder}/results.csv, figure.png, table.md")
        say((folder / "table.md").read_text(encoding="utf-8"))
    if pages is not None:
        for page in write_pages(out, pages, quick):
            say(f"written {page}")


def _run(
    experiment: Experiment, out: pathlib.Path, quick: bool, data: pathlib.Path | None, processes: int | None
) -> None:
    """Run one experiment with a bar for whoever watches."""
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(),
        TimeRemainingColumn(), console=Console(stderr=True), disable=not on_a_terminal(), transient=True,
    ) as progress, quietly():  # fmt: skip
        bar = progress.add_task(experiment.name, total=1.0)
        run_experiment(
            experiment, out, quick=quick, data=data, processes=processes,
            progress=functools.partial(_advance, progress, bar),
        )  # fmt: skip


def _advance(progress: Progress, bar: TaskID, done: float, total: float) -> None:
    progress.update(bar, completed=done, total=total)
