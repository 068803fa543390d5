"""What an experiment of a paper is: independent tasks, rows of numbers, a table and a figure.

Draws are seeded: what comes out is repeatable and NOT PRIVATE. Data are public or simulated.
"""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from dpmanifold.errors import InvalidArgumentError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


@dataclass(frozen=True)
class Task:
    """One independent piece of an experiment.

    Attributes
    ----------
    settings : names and plain values (numbers, text, lists of them): they identify the task
    weight : how long it takes, in units of the experiment's own, for the estimate of the time left
    """

    settings: dict[str, Any]
    weight: float = 1.0

    def key(self, experiment: str) -> str:
        """Return a name for its result's file, the same on every machine."""
        text = json.dumps([experiment, self.settings], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def generator(self, experiment: str) -> np.random.Generator:
        """Return the generator of this task: its seed follows from its settings."""
        return np.random.default_rng(int(self.key(experiment), 16))


@dataclass(frozen=True)
class ResultTable:
    """A table of a page: headings, rows of text, and a caption."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""

    def markdown(self) -> str:
        """Return the table as Markdown.

        Examples
        --------
        >>> print(ResultTable(["mu", "ours"], [["0.1", "0.95"]]).markdown())
        | mu | ours |
        |---|---|
        | 0.1 | 0.95 |
        """
        lines = [self.headings, *self.rows]
        text = ["| " + " | ".join(line) + " |" for line in lines]
        text.insert(1, "|" + "---|" * len(self.headings))
        return "\n".join(([f"*{self.caption}*", ""] if self.caption else []) + text)


class Experiment(ABC):
    """One experiment of a paper. Subclasses are stateless: tasks run in other processes."""

    name: str
    """paper/experiment, as in `dpm reproduce`."""
    title: str
    """One line: what is shown."""
    needs: tuple[str, ...] = ()
    """Files of the data folder that it reads."""

    @property
    def discussion(self) -> str:
        """Markdown for the page: the setting, what agrees with the paper, what does not and why.

        Kept in the file paper/experiment.md beside the code. Its numbers are those of a full run.
        """
        return text_file(f"{self.name}.md")

    @abstractmethod
    def tasks(self, quick: bool) -> list[Task]:
        """Return the tasks; with `quick`, few enough to take seconds."""

    @abstractmethod
    def run(self, task: Task, data: pathlib.Path | None) -> list[Row]:
        """Run one task and return rows of plain numbers and text."""

    @abstractmethod
    def tables(self, rows: list[Row]) -> list[ResultTable]:
        """Return the tables: paper / their formula in our code / ours, with Monte Carlo error."""

    @abstractmethod
    def figure(self, rows: list[Row]) -> Figure:
        """Return the figure, like the paper's."""


@dataclass
class Sample:
    """Numbers of repetitions, shown as a mean with its Monte Carlo error.

    Examples
    --------
    >>> print(Sample([1.0, 2.0, 3.0]))
    2 ± 0.58
    """

    values: Sequence[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(np.mean(self.values))

    @property
    def error(self) -> float:
        """Standard error of the mean; NaN for a single number."""
        n = len(self.values)
        return float(np.std(self.values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    def __str__(self) -> str:
        if not math.isfinite(self.error):
            return f"{self.mean:.4g}"
        places = 2 if self.error == 0 else max(0, 1 - math.floor(math.log10(self.error)))
        if not 1e-3 <= abs(self.mean) < 1e5 and self.mean != 0:
            return f"{self.mean:.3g} ± {self.error:.1g}"
        return f"{round(self.mean, places):g} ± {self.error:.2g}"


def group(rows: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """Return rows by the values they have under some names, in order of appearance.

    Examples
    --------
    >>> list(group([{"k": 2, "x": 1.0}, {"k": 3, "x": 2.0}], "k"))
    [(2,), (3,)]
    """
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def text_file(name: str) -> str:
    """Return a Markdown file of this package, by its path from here, such as "soto2022/shapes.md"."""
    return (resources.files(__package__) / name).read_text(encoding="utf-8").strip()


def data_file(data: pathlib.Path | None, name: str, source: str) -> pathlib.Path:
    """Return a file of the data folder, or say which file is looked for and where a user gets it."""
    if data is None or not (data / name).is_file():
        where = "no data folder was given" if data is None else f"{data} does not hold it"
        raise InvalidArgumentError(
            f"--data: this experiment reads {name} ({source}), and {where}. Give the folder that holds it with --data, "
            "or in the environment variable DPM_DATA."
        )
    return data / name
