"""Run experiments: in parallel, resumable, and from rows to CSV, PNG and Markdown."""

from __future__ import annotations

import csv
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from dpmanifold.files import whole_file
from dpmanifold.serialization import read_record
from dpmanifold_papers.framework import Experiment, Row, Task
from dpmanifold_papers.registry import EXPERIMENTS

Job = tuple[str, Task, pathlib.Path, pathlib.Path | None]


def run_experiment(
    experiment: Experiment,
    out: pathlib.Path,
    *,
    quick: bool = False,
    data: pathlib.Path | None = None,
    processes: int | None = None,
    progress: Callable[[float, float], object] | None = None,
) -> list[Row]:
    """Run what is missing of an experiment and write its CSV, PNG and Markdown; returns its rows.

    Each finished task is kept in `out`, so that an interrupted run goes on where it stopped, with the same numbers.

    Parameters
    ----------
    experiment : one of the registry
    out : folder for the results of all experiments
    quick : a version of seconds
    data : folder with data sets
    processes : how many run at once; all processors by default
    progress : called with the weight done and the weight in total
    """
    folder = out / experiment.name.replace("/", "-")
    parts = folder / ("quick" if quick else "full")
    parts.mkdir(parents=True, exist_ok=True)
    tasks = experiment.tasks(quick)
    files = {index: parts / f"{task.key(experiment.name)}.json" for index, task in enumerate(tasks)}
    missing = [index for index, file in files.items() if not file.exists()]
    total = sum(task.weight for task in tasks)
    done = total - sum(tasks[index].weight for index in missing)
    if progress is not None:
        progress(done, total)
    jobs = [(experiment.name, tasks[index], files[index], data) for index in missing]
    for finished in _run_all(jobs, processes or os.cpu_count() or 1):
        done += finished
        if progress is not None:
            progress(done, total)
    rows: list[Row] = [row for file in files.values() for row in read_record(file)]
    write_results(experiment, rows, folder)
    return rows


def _run_all(jobs: list[Job], processes: int) -> Iterator[float]:
    """Yield the weight of each task as it is done."""
    if processes == 1 or len(jobs) < 2:
        yield from map(_run_task, jobs)
        return
    with ProcessPoolExecutor(min(processes, len(jobs))) as pool:
        # Long tasks first, so that none is left alone at the end.
        waiting = [pool.submit(_run_task, job) for job in sorted(jobs, key=lambda job: -job[1].weight)]
        try:
            for finished in as_completed(waiting):
                yield finished.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _run_task(job: Job) -> float:
    name, task, file, data = job
    rows = EXPERIMENTS[name].run(task, data)
    with whole_file(file) as target:
        json.dump(rows, target)
    return task.weight


def write_results(experiment: Experiment, rows: list[Row], folder: pathlib.Path) -> None:
    """Write results.csv, figure.png and table.md."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    with whole_file(folder / "results.csv") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(rows)
    with whole_file(folder / "figure.png", "wb") as file:
        experiment.figure(rows).savefig(file, format="png", dpi=150)
    with whole_file(folder / "table.md") as file:
        file.write("\n\n".join(table.markdown() for table in experiment.tables(rows)) + "\n")
