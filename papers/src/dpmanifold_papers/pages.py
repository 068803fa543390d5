"""From results to pages: one per paper, with figures, tables and what they mean."""

from __future__ import annotations

import pathlib
import shutil
from statistics import StatisticsError

from dpmanifold.files import whole_file
from dpmanifold.serialization import read_record
from dpmanifold_papers.framework import Experiment, text_file
from dpmanifold_papers.registry import EXPERIMENTS, HEADLINES, PAPERS


def write_pages(results: pathlib.Path, folder: pathlib.Path, quick: bool = False) -> list[pathlib.Path]:
    """Write a page for every paper whose experiments were run, and copy their figures; returns the pages."""
    figures = folder / "figures"
    figures.mkdir(parents=True, exist_ok=True)
    written = []
    for paper, (title, introduction) in PAPERS.items():
        mine = [e for e in EXPERIMENTS.values() if e.name.startswith(f"{paper}/")]
        ready = [e for e in mine if (results / e.name.replace("/", "-") / "table.md").exists()]
        if not ready:
            continue
        text = [f"# {title}", "", introduction.strip(), ""]
        if quick:
            text += ["**Made by a quick run: the numbers are rough.**", ""]
        for experiment in ready:
            slug = experiment.name.replace("/", "-")
            source = results / slug
            shutil.copyfile(source / "figure.png", figures / f"{slug}.png")
            table = (source / "table.md").read_text(encoding="utf-8").strip()
            text += [f"## {experiment.title}", "", f"`dpm reproduce {experiment.name}`", ""]
            text += [experiment.discussion, "", f"![{experiment.title}](figures/{slug}.png)", "", table, ""]
        page = folder / f"{paper}.md"
        with whole_file(page) as file:
            file.write("\n".join(text).rstrip() + "\n")
        written.append(page)
    written.append(_write_summary(results, folder, quick))
    return written


def _write_summary(results: pathlib.Path, folder: pathlib.Path, quick: bool) -> pathlib.Path:
    """Write the page with every paper's headlines: published, reproduced, ours."""
    # An experiment that was not run is left out, so that a headline that needs it cannot be made of nothing.
    parts = {name: _parts(results, experiment, quick) for name, experiment in EXPERIMENTS.items()}
    rows = {name: [row for file in files for row in read_record(file)] for name, files in parts.items() if files}
    text = ["# The papers in short", "", text_file("summary.md"), ""]
    for paper, claims in HEADLINES.items():
        text += [f"## [{PAPERS[paper][0]}]({paper}.md)", "", "| | published | reproduced | ours |", "|---|---|---|---|"]
        for claim, numbers in claims:
            try:
                text.append(f"| {claim} | " + " | ".join(numbers(rows)) + " |")
            except (IndexError, KeyError, ValueError, ZeroDivisionError, StatisticsError):
                text.append(f"| {claim} | not run | | |")
        text.append("")
    page = folder / "README.md"
    with whole_file(page) as file:
        file.write("\n".join(text).rstrip() + "\n")
    return page


def _parts(results: pathlib.Path, experiment: Experiment, quick: bool) -> list[pathlib.Path]:
    """Return the files of an experiment's tasks that were run."""
    folder = results / experiment.name.replace("/", "-") / ("quick" if quick else "full")
    files = [folder / f"{task.key(experiment.name)}.json" for task in experiment.tasks(quick)]
    return [file for file in files if file.exists()]
