"""Study files on the command line: `dpm init` writes one, and every command reads what it says."""

from __future__ import annotations

import pathlib
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import typer

from dpmanifold.cli import options
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.outputs import check_target
from dpmanifold.cli.speech import complain, say, say_answer
from dpmanifold.data.dataset import Dataset
from dpmanifold.data.selection import BALL, READING, Selection
from dpmanifold.data.specifications import EACH
from dpmanifold.data.study import STUDY, Study
from dpmanifold.errors import DPManifoldError, InvalidArgumentError
from dpmanifold.manifolds import SPACES
from dpmanifold.progress import on_a_terminal
from dpmanifold.stats.pair import Pair
from dpmanifold.stats.query import QUERIES

_PLANNED = ("space", "size", *BALL)  # where --units is a number
_LEDGER = ("ledger", "population", "principal", "secret")
_TWO = ("path", "labels", "classes")  # of which two groups have their own
_ONLY = {
    "plan": _PLANNED, "sensitivity": ("space", "size", "radius"), "audit": _PLANNED, "verify": (), "show": (),
    "descriptors": (), "init": (), "predict": READING,
}  # fmt: skip
_GROUPS = {"population": ("add", "cap", "grant", "list", "grants", "history"), "dataset": ("add", "list")}
_OF_STUDY = "DEFAULT_MAP"  # as the source of a parameter is called
# Columns of which people are usually known by.
_PEOPLE = ("participant_id", "participant", "subject_id", "subject", "person", "patient", "id")


class Defaults(dict[str, Any]):
    """What a study says, for each command by the names of its options."""

    def __init__(self, study: Study) -> None:
        said, lists = study.selection.to_dict(), ("columns", "classes")
        said = {"path": said.pop("paths"), **said, **{name: ",".join(said[name]) for name in lists if name in said}}
        self._said = {**said, **{name: getattr(study, name) for name in _LEDGER if getattr(study, name) is not None}}

    def get(self, command: str, default: Any = None) -> Any:
        """Return what a command takes from the study, or a group's commands do."""
        if command == "ledger":
            groups = {group: dict.fromkeys(verbs, self._of(_LEDGER)) for group, verbs in _GROUPS.items()}
            groups["dataset"]["add"] = self._said
            return {**dict.fromkeys(("status", "audit", "reconcile", "export"), self._of(_LEDGER)), **groups}
        if command in (query.name for query in QUERIES.own() if query.sample is Pair):
            return self._of([name for name in self._said if name not in _TWO])
        return self._of(_ONLY[command]) if command in _ONLY else self._said

    def _of(self, names: Any) -> dict[str, Any]:
        return {name: self._said[name] for name in names if name in self._said}


def without_other_ball(context: typer.Context, words: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was said, without the ball of a study where another one was typed; say what is the study's."""
    sources = {name: getattr(context.get_parameter_source(name), "name", "") for name in words}
    typed = {name for name in BALL if words.get(name) and sources[name] != _OF_STUDY}
    taken = [f"--{name.replace('_', '-')}".replace("--path", "PATH") for name in words if sources[name] == _OF_STUDY]
    if taken and on_a_terminal() and not words.get("quiet"):
        complain(f"of the study file, where nothing else was said: {', '.join(taken)}.")
    others = (BALL[:3] if "ball" in typed else BALL[3:]) if typed else ()
    return {**words, **{name: None for name in others if name in words and name not in typed}}


@guarded
def init(
    path: Annotated[list[str] | None, typer.Argument(metavar="[PATH]...", help="The records, as in dpm mean.")] = None,
    space: Annotated[str | None, typer.Option(help="As in dpm mean.")] = None,
    units: Annotated[str | None, typer.Option(help="As in dpm mean.")] = None,
    columns: options.Columns = None,
    labels: Annotated[str | None, typer.Option(help="As in dpm class-means.")] = None,
    classes: Annotated[str | None, typer.Option(help="As in dpm class-means.")] = None,
    covariate: Annotated[str | None, typer.Option(help="As in dpm regression.")] = None,
    radius: options.Radius = None,
    center: options.Center = None,
    source: options.Source = "",
    ball: options.BallFile = None,
    ledger: options.Ledger = None,
    population: options.Population = None,
    out: Annotated[pathlib.Path, typer.Option("--out", "-o", help="The study file.")] = STUDY,
    size: options.Size = None,
    array: options.Array = None,
    order: options.Order = None,
    coordinates: options.Coordinates = None,
    mask: options.Mask = None,
    normalize: options.Normalize = False,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write a study file: records, units, ball and ledger, said once for all commands in this folder.

    What is left out is asked for, with the columns of the files in view. Nothing that a record holds is written.
    """
    check_target("--out", out, force)
    asks = _on_a_terminal()

    def said(option: str, given: str | None, question: str, usual: str | None = None) -> Any:
        if given is not None or asks:
            return given if given is not None else str(typer.prompt(question, usual))
        raise InvalidArgumentError(f"{option} is missing: {question}. On a terminal it is asked for.")

    paths = path or [said("PATH", None, "the records: a file, a folder or a pattern")]
    names = _columns(paths)
    if asks and names:
        say(f"columns: {', '.join(names)}")
    spellings = [name for kind in SPACES.own() for name in kind.spellings()]
    chosen = said("--space", space, f"the space: {', '.join(spellings)}, or in full such as SPD(3)")
    known = next((name for name in _PEOPLE if name in names), None)
    owner = said("--units", units, f"who owns each record: a column or a file, or {EACH} if nobody owns two", known)
    if ball is None and radius is None:
        radius = said("--radius", None, "the radius of the public ball, from public knowledge")
        center = center or (typer.prompt("its center", "", show_default=False) if asks else "") or None
        source = source or (typer.prompt("where this knowledge comes from", "", show_default=False) if asks else "")
    about = Selection(
        paths, chosen, size=size, units=owner, radius=radius, center=center, source=source, columns=columns,
        array=array, order=order, coordinates=coordinates, normalize=normalize, labels=labels, classes=classes,
        covariate=covariate, mask=mask, ball=ball,
    )  # fmt: skip
    about = replace(about, space=about.open().space, size=None)  # in full: plans read no file
    about.check()
    Study(about, ledger, population).write(out)
    say_answer(
        {"written": str(out), **about.to_dict()}, as_json,
        f"  written      {out}\n  then         dpm check; dpm plan -n UNITS --mu 1; dpm mean --mu 1 -o mean.json",
    )  # fmt: skip


def _on_a_terminal() -> bool:
    """Return whether somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def _columns(paths: list[str]) -> tuple[str, ...]:
    """Return the columns of tables or the arrays of archives; none of files that have neither."""
    try:
        return Dataset(paths).names
    except DPManifoldError:  # which dpm check says more about
        return ()
