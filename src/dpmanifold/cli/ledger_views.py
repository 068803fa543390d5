"""What a ledger holds, for its steward: populations, grants, data sets, history, keys. Reading costs nothing."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpmanifold.cli import ledger_options as steward
from dpmanifold.cli import options
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.outputs import check_targets, require_plots, save_picture
from dpmanifold.cli.payer import READER, opened, population_of
from dpmanifold.cli.speech import say, say_json, say_table
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import cost_of, in_words

if TYPE_CHECKING:
    from dpmanifold.ledger import Population
    from dpmanifold.ledger.datasets import DataSet


@guarded
def populations(ledger: steward.Ledger = None, as_json: options.Json = False) -> None:
    """List the populations: cap, spent, left."""
    with opened(ledger, READER) as book:
        say_populations(book.populations(), as_json)


def say_populations(found: Sequence[Population], as_json: bool) -> None:
    """Print populations: cap, spent, left."""
    if as_json:
        names = [{"name": one.name, "unit": one.unit, "cap": one.cap.to_dict()} for one in found]
        standing = [{"spent": _record(one.spent), "unspent": _record(one.unspent)} for one in found]
        say_json([{**name, **state} for name, state in zip(names, standing, strict=True)])
        return
    rows = [(one.name, one.unit, in_words(one.cap), _spent(one.spent, one.cap), _left(one.unspent)) for one in found]
    _say_rows(("population", "unit", "cap", "spent", "left"), rows, "There is no population: dpm ledger population.")


@guarded
def grants(ledger: steward.Ledger = None, population: steward.Population = None, as_json: options.Json = False) -> None:
    """List who may spend how much of a population's cap, and what each has left."""
    with opened(ledger, READER) as book:
        say_grants(population_of(book, population), as_json)


def say_grants(whose: Population, as_json: bool) -> None:
    """Print the grants of a population."""
    found = whose.grants()
    if as_json:
        standing = [{"spent": _record(one.spent), "remaining": _record(one.remaining)} for one in found]
        names = [{"principal": one.principal, "granted": one.granted.to_dict()} for one in found]
        say_json([{**name, **state} for name, state in zip(names, standing, strict=True)])
        return
    rows = [
        (one.principal, in_words(one.granted), _spent(one.spent, one.granted), _left(one.remaining)) for one in found
    ]
    nothing = f"There are no grants: anybody may spend the cap of {whose.name}."
    _say_rows(("who", "granted", "spent", "left"), rows, nothing)


@guarded
def datasets(
    ledger: steward.Ledger = None, population: steward.Population = None, as_json: options.Json = False
) -> None:
    """List the data sets of a population, with all their versions."""
    with opened(ledger, READER) as book:
        say_datasets(population_of(book, population).datasets(), as_json)


def say_datasets(found: Sequence[DataSet], as_json: bool) -> None:
    """Print data sets."""
    names = ("id", "name", "version", "n", "unit", "space")
    facts = [{name: getattr(one, name) for name in names} for one in found]
    if as_json:
        say_json(facts)
        return
    rows = [(one.id, f"{one.n:,} {one.unit}s", one.space) for one in found]
    _say_rows(("data set", "units", "space"), rows, "There is no data set: dpm ledger register.")


@guarded
def history(
    ledger: steward.Ledger = None,
    population: steward.Population = None,
    after: Annotated[int, typer.Option(min=0, help="Begin after this entry.")] = 0,
    limit: Annotated[int, typer.Option(min=1, help="How many entries to read at most.")] = 1000,
    picture: Annotated[
        pathlib.Path | None, typer.Option(help="What used it up, as a picture: .png, .svg, .pdf.")
    ] = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Say what used it up: every release with its promise, who asked for it and what came of it. Reading costs nothing.

    Without --population of all populations. Long ones come in pages: --after.
    """
    if picture is not None:
        check_targets({"--picture": picture}, force, {"--ledger": ledger})
        require_plots()
    with opened(ledger, READER) as book:
        whose = None if population is None else population_of(book, population).name
        page = book.history(whose, after=after, limit=limit)
    if picture is not None:
        save_picture(page, picture)
    if as_json:
        say_json(page.to_dict())
        return
    say_table(page.table())
    told = page.sentences()
    if page.next is not None:  # said last, and here in words of options
        told[-1] = f"There is more: --after {page.next}."
    say("\n".join([*told, *([] if picture is None else [f"  written      {picture}"])]))


@guarded
def status(
    key: Annotated[str, typer.Argument(help="The key of a release.")],
    ledger: steward.Ledger = None,
    population: steward.Population = None,
    principal: steward.Principal = None,
    as_json: options.Json = False,
) -> None:
    """Say what became of a key: free, spent, started, released or lost. Keys belong to who spends."""
    with opened(ledger, principal) as book:
        whose = population_of(book, population)
        state = whose.status(key) or "free"
        who = whose.principal
    if as_json:
        say_json({"key": key, "population": whose.name, "principal": who, "state": state})
        return
    say(f"{key} of {who}: {_STATES[state]}")


_STATES = {
    "free": "free. Nothing was spent under this key.",
    "spent": "spent, and not begun. The same command with this key takes it up, at no further cost.",
    "started": "started. Somebody is at work on it, or was ended in the middle: the same command tells which.",
    "released": "released. The same command with this key gives the same release again, at no cost.",
    "lost": "lost. The spend stands, and nothing was released: ask again under another key, at the full cost.",
}


def _say_rows(headings: tuple[str, ...], rows: Sequence[tuple[str, ...]], nothing: str) -> None:
    """Print a table of texts, or that there is nothing."""
    if not rows:
        say(nothing)
        return
    table = Table(box=box.SIMPLE, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    say_table(table)


def _spent(promise: Promise | None, whole: Promise) -> str:
    """Return what was spent for people, rounded up, and which share of the whole that is."""
    if promise is None:
        return "nothing"
    parts = zip(cost_of(promise, whole), cost_of(whole, whole), strict=True)
    return f"{in_words(promise, up=True)} ({max(float(100 * used / most) for used, most in parts):.1f} %)"


def _left(promise: Promise | None) -> str:
    return "nothing" if promise is None else in_words(promise, up=False)


def _record(promise: Promise | None) -> dict[str, Any] | None:
    return None if promise is None else promise.to_dict()
