"""What a command leaves behind: files that are written whole, and a summary that tells no more than they do."""

from __future__ import annotations

import fnmatch
import glob
import itertools
import os
import pathlib
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmanifold._check import Array, optional_module
from dpmanifold.cli.failures import FAULT, fail, kept, wants_traceback
from dpmanifold.cli.speech import CannotPrintError, json_text, mention, say, say_json
from dpmanifold.data import landmark_links
from dpmanifold.data.coordinates import system_of, to_coordinates
from dpmanifold.data.selected import is_pattern
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import same_file, sync_folder, whole_file
from dpmanifold.inference import ConfidenceRegion
from dpmanifold.manifolds import Manifold
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.release import Release
from dpmanifold.result import Result
from dpmanifold.serialization import write_record
from dpmanifold.statistic import Kind

PICTURES = (".png", ".svg", ".pdf")
Inputs = Mapping[str, str | os.PathLike[str] | Sequence[str] | None]
"""What a command reads, by the word that names it: files, folders, patterns, or texts that may name one."""


STDOUT = pathlib.Path("-")
"""The name that stands for standard output: the release goes there as JSON, and what people read to stderr."""
UNMARKED = "--npy holds numbers alone and could not be marked NOT PRIVATE. Leave it out."


@dataclass(frozen=True)
class Views:
    """What was said about showing a result.

    Parameters
    ----------
    coordinates : the system of coordinates in which a mean is told as well
    links : which landmarks a picture joins
    """

    coordinates: str | None = None
    links: str | None = None

    def check(self, space: Manifold, picture: pathlib.Path | None) -> None:
        """Refuse links that cannot be drawn, before anything is spent."""
        if self.links is None:
            return
        if picture is None:
            raise InvalidArgumentError("--links says which landmarks --picture joins. Give both.")
        from dpmanifold.plots import PICTURES

        if "links" not in PICTURES.get(space.picture).options:
            raise InvalidArgumentError(f"--links means nothing in a picture on {space!r}. Leave it out.")
        landmark_links(self.links, space.shape[0])

    def for_result(self, result: Result, picture: pathlib.Path | None) -> Views:
        """Refuse what a result that is there cannot be shown in."""
        mean = _mean_of(result)
        if mean is None and (self.coordinates is not None or self.links is not None):
            raise InvalidArgumentError("--coordinates and --links are about a released mean, which this is not.")
        if mean is not None:
            self.check(mean[1], picture)
            if self.coordinates is not None:
                system_of(mean[1], self.coordinates)
        return self

    def told(self, result: Result) -> list[str]:
        """Return a line with the mean in the coordinates that were named, where it is a mean and can be."""
        mean = _mean_of(result)
        if self.coordinates is None or mean is None or mean[1].check(mean[0]) is not None:
            return []  # a baseline's mean need not be a point
        value, space = mean
        try:
            words = system_of(space, self.coordinates).told(to_coordinates(value, space, self.coordinates))
        except InvalidArgumentError:  # systems of other distributions may be read and not written
            return []
        return [f"  {self.coordinates:<12} {words}"]


PLAIN = Views()


def _mean_of(result: Result) -> tuple[Array, Manifold] | None:
    """Return a released mean and its space; None for other results."""
    match result:
        case ConfidenceRegion():
            return result.center, result.space
        case Release() if result.definition.kind is Kind.POINT:
            return result.value, result.ball.space
    return None


@dataclass(frozen=True)
class Outputs:
    """Files to write, checked before anything is spent."""

    release: pathlib.Path
    npy: pathlib.Path | None = None
    picture: pathlib.Path | None = None
    html: pathlib.Path | None = None
    force: bool = False
    views: Views = PLAIN

    def check(self, inputs: Inputs, mechanism: str = "auto", marked: bool = False) -> Outputs:
        """Refuse paths that cannot be written, hold something or are read, and pictures that cannot be drawn.

        `marked` says that the result will be NOT PRIVATE, which a bare array could not show.
        """
        if self.to_stdout and (sys.stdout is None or sys.stdout.closed):
            raise InvalidArgumentError("--out - writes to standard output, which is closed. Give the name of a file.")
        out = None if self.to_stdout else self.release
        options = {"--out": out, "--npy": self.npy, "--picture": self.picture, "--html": self.html}
        check_targets({option: path for option, path in options.items() if path is not None}, self.force, inputs)
        self.refuse_unmarked(marked)
        if self.picture is not None or self.html is not None:
            require_plots()
            known = MECHANISMS.find(mechanism)
            if known is not None and known.baseline:
                raise InvalidArgumentError(f"--mechanism {mechanism} is a baseline: its value is no point to be drawn.")
        return self

    def refuse_unmarked(self, marked: bool) -> None:
        """Refuse an array of a result that is NOT PRIVATE: a bare array could not show it."""
        if self.npy is not None and marked:
            raise InvalidArgumentError(UNMARKED)

    @property
    def to_stdout(self) -> bool:
        """Whether the release goes to standard output."""
        return self.release == STDOUT

    def save(self, record: Any) -> None:
        """Write a record where it was asked for."""
        if not self.to_stdout:
            write_record(self.release, record)
            return
        try:
            say_json(record)
        except CannotPrintError:
            mention(json_text(record))  # its noise was drawn: this is the last place for it
            raise

    def tell(self, record: Any, as_json: bool, text: Callable[[], str]) -> None:
        """Print what was written: for machines, unless standard output has it already, or for people."""
        if self.to_stdout:
            mention(text())
        elif as_json:
            say_json(record)
        else:
            say(text())

    def write(self, result: Any, as_json: bool, remark: str = "") -> None:
        """Write the release, then every view of it that can be made, and print what was released, with a remark."""
        record = result.to_dict()
        where = "the release IS printed" if self.to_stdout else f"the release IS written to {self.release}"
        with kept(lambda: self.save(record), where, record, remark):
            written: list[pathlib.Path] = [] if self.to_stdout else [self.release]
            failed: list[str] = []
            for option, path, make in self._views(result):
                try:
                    make()
                except Exception:
                    failed.append(f"{option} {path}")
                    if wants_traceback():
                        traceback.print_exc()
                else:
                    written.append(path)
            behind = f"\n{remark}" if remark else ""
            self.tell(record, as_json, lambda: result_text(result, *written, views=self.views) + behind)
            if failed:
                file = "FILE" if self.to_stdout else self.release
                fail(
                    f"{where}, and the promise is spent; but {' and '.join(failed)} could not be made. Try again, "
                    f"which costs nothing, with: dpm show {file} {' '.join(failed)}",
                    FAULT,
                )

    def _views(self, result: Result) -> Iterator[tuple[str, pathlib.Path, Callable[[], None]]]:
        """Give every further file that was asked for, with what makes it."""
        value = result.number_or_array
        if self.npy is not None and value is not None:
            yield "--npy", self.npy, lambda path=self.npy: save_array(value, path)  # type: ignore[misc]
        if self.picture is not None:
            yield "--picture", self.picture, lambda path=self.picture: save_picture(result, path, self.views)  # type: ignore[misc]
        if self.html is not None:
            yield "--html", self.html, lambda path=self.html: save_report(result, path)  # type: ignore[misc]


@dataclass(frozen=True)
class Folder(Outputs):
    """A folder with the release of each class, in the place of one file."""

    def check(self, inputs: Inputs, mechanism: str = "auto", marked: bool = False) -> Outputs:
        """Refuse what can be no folder."""
        refuse_stdout("--out", self.release)
        if self.release.exists() and not self.release.is_dir():
            raise InvalidArgumentError(f"--out {self.release} is a file. Give a folder.")
        if not self.release.parent.is_dir():
            raise InvalidArgumentError(
                f"--out {self.release}: the folder {self.release.parent} does not exist. Make it first."
            )
        return self

    def check_classes(self, names: Iterable[object], inputs: Inputs) -> None:
        """Refuse files of classes that are there or are read."""
        if self.release.is_dir():
            targets = {f"--out, class {name}": _file_of(self.release, name) for name in names}
            check_targets(targets, self.force, inputs)

    def save(self, record: Any) -> None:
        """Write one file per class: first into a folder beside, so that no half of them stays."""
        out = self.release
        with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as parts:
            for name, one in record.items():
                write_record(_file_of(pathlib.Path(parts), name), one)
            out.mkdir(exist_ok=True)
            for name in record:
                os.replace(_file_of(pathlib.Path(parts), name), _file_of(out, name))
            for folder in (out, out.parent):
                sync_folder(folder)

    def write(self, result: Any, as_json: bool, remark: str = "") -> None:
        """Write and print the releases of all classes."""
        record = {str(name): release.to_dict() for name, release in result.items()}
        where = f"the {len(result)} releases ARE written to {self.release}"
        with kept(lambda: self.save(record), where, record, remark):
            if as_json:
                say_json(record)
                return
            lines = [in_a_line(*item) for item in result.items()]
            told = f"written {len(result)} releases to {self.release}"
            say("\n".join([*lines, told, *([remark] if remark else [])]))


def in_a_line(name: object, release: Release) -> str:
    """Return what a class's release says, in short."""
    mark = "" if release.private else " -- NOT PRIVATE"
    noise = "no error can be stated"
    if not release.ball.is_whole:
        noise = f"expected noise {release.noise_error():.4g}{release.caution}"
    return f"class {name}: {release.n:,} {release.unit}s, {release.privacy}, {noise}{mark}"


def _file_of(folder: pathlib.Path, name: object) -> pathlib.Path:
    """Return the file of a class's release."""
    return folder / f"mean-{name}.json"


def result_text(result: Result, *written: pathlib.Path | None, views: Views = PLAIN) -> str:
    """Return what people read of a result, and where it was written."""
    return "\n".join(
        [repr(result), *views.told(result), *(f"  written      {path}" for path in written if path is not None)]
    )


def check_targets(targets: Mapping[str, pathlib.Path], force: bool, inputs: Inputs) -> None:
    """Refuse files that cannot be written, exist, are read or are named twice; keys are the options that name them.

    What is read is never written over, `force` or not.
    """
    for option, path in targets.items():
        _refuse_input(option, path, inputs)
        check_target(option, path, force)
        if option == "--picture" and path.suffix.lower() not in PICTURES:
            raise InvalidArgumentError(f"--picture {path}: the name must end in {', '.join(PICTURES)}.")
        if option == "--html" and path.suffix.lower() not in (".html", ".htm"):
            raise InvalidArgumentError(f"--html {path}: the name must end in .html.")
    for (one, path), (other, twin) in itertools.combinations(targets.items(), 2):
        if same_file(path, twin):
            raise InvalidArgumentError(f"{one} and {other} name one file twice. Give each its own.")


def _refuse_input(option: str, path: pathlib.Path, inputs: Inputs) -> None:
    """Refuse a target that is read, by whatever name, lies in a folder that is read, or is what a pattern means."""
    for word, given in inputs.items():
        texts = [] if given is None else [given] if isinstance(given, (str, os.PathLike)) else given
        if any(_matches(path, os.fspath(text)) for text in texts):
            raise InvalidArgumentError(f"{option} {path} is one of the files that {word} means. Give another folder.")
        for source in itertools.chain.from_iterable(_files_named(os.fspath(text)) for text in texts):
            if same_file(path, source):
                raise InvalidArgumentError(
                    f"{option} {path} is the file read as {word}, and would be lost. Give another name; --force "
                    "does not change this."
                )
            if source.is_dir() and path.resolve().is_relative_to(source.resolve()):
                raise InvalidArgumentError(f"{option} {path} lies in the folder read as {word}. Give another folder.")


def refuse_own_shape(shape: str | None, data: Sequence[str]) -> None:
    """Refuse a shape that is read from the records of the release: it would be written down."""
    if shape is None:
        return
    for source in itertools.chain.from_iterable(_files_named(os.fspath(text)) for text in data):
        if same_file(pathlib.Path(shape), source):
            raise InvalidArgumentError(
                f"--noise-shape {shape} holds the records themselves: their spread would be written into the release. "
                "Give a file of other records, which may be shown, or --noise-shape private."
            )


def _files_named(text: str) -> Iterator[pathlib.Path]:
    """Give what there is under a name: FILE, the FILE of FILE:COLUMN, a folder and all in it, what a pattern means.

    Columns and numbers name nothing.
    """
    found = [name for name in (text, text.rpartition(":")[0]) if name and os.path.lexists(name)]
    for path in map(pathlib.Path, [*found, *(glob.iglob(text, recursive=True) if is_pattern(text) else [])]):
        yield path
        if path.is_dir():
            yield from path.rglob("*")


def _matches(path: pathlib.Path, text: str) -> bool:
    """Return whether a pattern means a file, were it there: the next command would read it."""
    if not is_pattern(text):
        return False
    names, wanted = pathlib.Path(os.path.abspath(path)).parts, pathlib.Path(os.path.abspath(text)).parts
    if "**" in wanted:
        first = wanted.index("**")
        return _all_match(names, wanted[:first]) and fnmatch.fnmatchcase(names[-1], wanted[-1])
    return len(names) == len(wanted) and _all_match(names, wanted)


def _all_match(names: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(names) >= len(wanted) and all(map(fnmatch.fnmatchcase, names, wanted))


def refuse_stdout(option: str, path: pathlib.Path) -> None:
    """Refuse the name of standard output where one release as JSON is not what is written."""
    if path == STDOUT:
        raise InvalidArgumentError(
            f"{option} - is the name of standard output, which takes one release as JSON. Give another name."
        )


def check_target(option: str, path: pathlib.Path, force: bool) -> None:
    """Refuse a file that cannot be written there, or exists."""
    refuse_stdout(option, path)
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


def require_plots() -> None:
    """Refuse pictures where matplotlib is missing, before anything is spent."""
    optional_module("matplotlib", "plots", "a picture")


def save_array(value: object, path: pathlib.Path) -> None:
    """Write a value as .npy."""
    with whole_file(path, "wb") as file:
        np.save(file, np.asarray(value), allow_pickle=False)


def save_picture(result: Any, path: pathlib.Path, views: Views = PLAIN) -> None:
    """Draw a result into a file."""
    from dpmanifold import plots

    save_figure(plots.show(result, **({} if views.links is None else {"links": views.links})), path)


def save_figure(figure: Any, path: pathlib.Path) -> None:
    """Write a figure, in the format of the file's name."""
    with whole_file(path, "wb") as file:
        figure.savefig(file, format=path.suffix.lower().lstrip("."))


def save_report(result: Any, path: pathlib.Path) -> None:
    """Write a result's report."""
    from dpmanifold.report import html_report

    with whole_file(path) as file:
        file.write(html_report(result))
