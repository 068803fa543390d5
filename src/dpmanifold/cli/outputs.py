"""What a command leaves behind: files that are written whole, and a summary that tells no more than they do."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any

import numpy as np
import typer
from rich.console import Console

from dpmanifold._extras import optional_module
from dpmanifold.cli.failures import ViewError
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import whole_file
from dpmanifold.inference import Conclusion
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.records import write_record
from dpmanifold.release import Release

PICTURES = (".png", ".svg", ".pdf")


def console() -> Console:
    """Return where results are printed; made anew, so that it follows whoever captures the output."""
    return Console(highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Outputs:
    """Files to write, checked before anything is spent."""

    release: pathlib.Path
    npy: pathlib.Path | None = None
    picture: pathlib.Path | None = None
    html: pathlib.Path | None = None
    force: bool = False

    def check(self, mechanism: str = "auto", marked: bool = False) -> Outputs:
        """Refuse paths that cannot be written or hold something, and pictures that cannot be drawn.

        `marked` says that the result will be NOT PRIVATE, which a bare array could not show.
        """
        options = {"--out": self.release, "--npy": self.npy, "--picture": self.picture, "--html": self.html}
        check_targets({option: path for option, path in options.items() if path is not None}, self.force)
        if self.npy is not None and marked:
            raise InvalidArgumentError("--npy holds numbers alone and could not be marked NOT PRIVATE. Leave it out.")
        if self.picture is not None or self.html is not None:
            require_plots()
            if mechanism in MECHANISMS and MECHANISMS[mechanism].baseline:
                raise InvalidArgumentError(f"--mechanism {mechanism} is a baseline: its value is no point to be drawn.")
        return self

    def write(self, result: Release | Conclusion, as_json: bool) -> None:
        """Write everything that was asked for, the release first, and print what was released."""
        write_record(self.release, result.to_dict())
        try:
            self._write_views(result)
        except Exception as problem:
            raise ViewError(
                f"the release IS written to {self.release}, and its promise is spent; but a further file could not be "
                f"made ({type(problem).__name__}). Try again with: dpm show {self.release}"
            ) from problem
        if as_json:
            typer.echo(json.dumps(result.to_dict(), indent=2))
            return
        show_result(result, self.release, self.npy, self.picture, self.html)

    def _write_views(self, result: Release | Conclusion) -> None:
        value = result.value if isinstance(result, Release) else getattr(result, "center", None)
        if self.npy is not None and value is not None:
            with whole_file(self.npy, "wb") as file:
                np.save(file, np.asarray(value), allow_pickle=False)
        if self.picture is not None:
            save_picture(result, self.picture)
        if self.html is not None:
            save_report(result, self.html)


def show_result(result: Release | Conclusion, *written: pathlib.Path | None) -> None:
    """Print a result and where it was written."""
    screen = console()
    screen.print(repr(result), markup=False)
    for path in written:
        if path is not None:
            screen.print(f"  written      {path}", markup=False)


def check_targets(targets: dict[str, pathlib.Path], force: bool) -> None:
    """Refuse files that cannot be written, exist, or are named twice; keys are the options that name them."""
    for option, path in targets.items():
        check_target(option, path, force)
        if option == "--picture":
            check_picture(path)
        if option == "--html" and path.suffix.lower() not in (".html", ".htm"):
            raise InvalidArgumentError(f"--html {path}: the name must end in .html.")
    if len({path.resolve() for path in targets.values()}) < len(targets):
        raise InvalidArgumentError(f"{' and '.join(targets)} name one file twice. Give each its own.")


def check_target(option: str, path: pathlib.Path, force: bool) -> None:
    """Refuse a file that cannot be written there, or exists."""
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"{option} {path}: the folder {path.parent} does not exist. Make it first.")
    if os.path.lexists(path) and not path.is_file():
        raise InvalidArgumentError(f"{option} {path} is there and is no ordinary file. Give another name.")
    if path.exists() and not force:
        raise InvalidArgumentError(f"{option} {path} exists. Give another name, or --force to overwrite it.")
    try:  # permissions, full or read-only disks, names that are too long
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}."):
            pass
    except OSError as problem:
        raise InvalidArgumentError(f"{option} {path} cannot be written: {problem.strerror}.") from None


def check_picture(path: pathlib.Path) -> None:
    """Refuse a kind of picture that cannot be made."""
    if path.suffix.lower() not in PICTURES:
        raise InvalidArgumentError(f"--picture {path}: the name must end in {', '.join(PICTURES)}.")


def require_plots() -> None:
    """Refuse pictures where matplotlib is missing, before anything is spent."""
    optional_module("matplotlib", "plots", "a picture")


def save_picture(result: Any, path: pathlib.Path) -> None:
    """Draw a result into a file."""
    from dpmanifold import plots

    save_figure(plots.show(result), path)


def save_figure(figure: Any, path: pathlib.Path) -> None:
    """Write a figure, in the format of the file's name."""
    with whole_file(path, "wb") as file:
        figure.savefig(file, format=path.suffix.lower().lstrip("."))


def save_report(result: Any, path: pathlib.Path) -> None:
    """Write a result's report."""
    from dpmanifold.report import html_report

    with whole_file(path) as file:
        file.write(html_report(result))
