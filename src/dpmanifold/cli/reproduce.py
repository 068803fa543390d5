"""`dpm reproduce`: the papers' experiments, figure by figure."""

from __future__ import annotations

import functools
import pathlib
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from dpmanifold.cli.failures import guarded
from dpmanifold.cli.outputs import require_plots
from dpmanifold.cli.speech import say, somebody_watches
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import same_file


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
    from dpmanifold.experiments.registry import EXPERIMENTS
    from dpmanifold.experiments.runner import run_experiment

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
        with Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"), TimeElapsedColumn(),
            TimeRemainingColumn(), console=Console(stderr=True), disable=not somebody_watches(), transient=True,
        ) as progress:  # fmt: skip
            bar = progress.add_task(experiment.name, total=1.0)
            run_experiment(
                experiment, out, quick=quick, data=data, processes=processes,
                progress=functools.partial(_advance, progress, bar),
            )  # fmt: skip
        folder = out / experiment.name.replace("/", "-")
        say(f"{experiment.name}: {folder}/results.csv, figure.png, table.md")
        say((folder / "table.md").read_text(encoding="utf-8"))
    if pages is not None:
        from dpmanifold.experiments.pages import write_pages

        for page in write_pages(out, pages, quick):
            say(f"written {page}")


def _advance(progress: Progress, bar: TaskID, done: float, total: float) -> None:
    progress.update(bar, completed=done, total=total)
