"""`dpm ledger`: what a data steward does with a ledger. It shows amounts, names and times, never data."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmanifold.cli import options
from dpmanifold.cli.command import selection_of, shared_options, teller
from dpmanifold.cli.failures import PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.options import at_work, promise_of
from dpmanifold.cli.outputs import check_targets, require_plots, save_picture
from dpmanifold.cli.payer import READER, opened, population_of
from dpmanifold.cli.speech import say, say_answer, say_rows
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.ledger import Audit, verify_export as verified
from dpmanifold.privacy import Promise
from dpmanifold.privacy.amounts import cost_of, in_words
from dpmanifold.progress import quietly
from dpmanifold.storage.filesystems import same_volume

if TYPE_CHECKING:
    from dpmanifold.ledger import Population
    from dpmanifold.ledger.datasets import DataSet

app = typer.Typer(
    help="Keep account of what is spent, for years: populations with caps, who may spend, and what was spent on what."
    "\n\n"
    "Start with dpm ledger create and dpm ledger population add; then give --ledger to the private commands. "
    "docs/how-to/data-steward.md goes through a year of it. Exit codes are those of dpm; 4 is also for a ledger that "
    "does not hold.",
    no_args_is_help=True,
)

_Ledger = Annotated[
    str | None,
    typer.Option("--ledger", envvar="DPM_LEDGER", metavar="PATH|URL", help="The ledger: a file, or postgresql://..."),
]
_Population = Annotated[
    str | None,
    typer.Option(envvar="DPM_POPULATION", metavar="NAME", help="Which; may be left out where there is one."),
]
_Principal = Annotated[str | None, typer.Option(metavar="NAME", help="Who does this. Default: the login name.")]
_Reason = Annotated[str, typer.Option(help="Why. It stays in the ledger for good.")]
_Secret = Annotated[
    pathlib.Path | None,
    typer.Option(
        envvar="DPM_SECRET",
        metavar="FILE",
        help="The key file under which data sets are fingerprinted. Default: PATH.key, beside the ledger.",
    ),
]


@guarded
def create(
    where: Annotated[
        str, typer.Argument(metavar="PATH|URL", help="A new file, or an empty database: postgresql://...")
    ],
    witness: Annotated[
        pathlib.Path | None,
        typer.Option(
            help="A file that is written along with every entry: put it on another disk. Default: PATH.witness."
        ),
    ] = None,
    secret: _Secret = None,
    writer: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="PostgreSQL: the role of those who spend, who may add entries and no more."),
    ] = None,
    principal: _Principal = None,
    as_json: options.Json = False,
) -> None:
    """Make a new ledger, with its witness and the secret key of its fingerprints. Refuses one that is there."""
    from dpmanifold.ledger import Ledger

    with Ledger.create(where, witness=witness, secret=secret, principal=principal, writer=writer) as ledger:
        facts = {"ledger": ledger.id, "where": ledger.name, "witness": str(ledger.witness.path),
                 "secret": str(ledger.secret)}  # fmt: skip
    together = "://" not in where and same_volume(facts["where"], facts["witness"])
    say_answer(
        facts,
        as_json,
        f"Ledger {facts['ledger']}",
        f"  written      {facts['where']}",
        f"  witness      {facts['witness']}",
        f"  secret       {facts['secret']}",
        "Whoever holds the data keeps the secret to themselves, and a copy of it in a safe place.",
        *(["The witness is on the ledger's own volume: restored together, the two notice nothing."] * together),
    )


@guarded
def add_population(
    name: Annotated[str, typer.Argument(help="Its name, for good: letters and digits, - _ and . between them.")],
    unit: Annotated[str, typer.Option(help="Who is protected: participant, patient, household.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    ledger: _Ledger = None,
    principal: _Principal = None,
    as_json: options.Json = False,
) -> None:
    """Make a population: the people whose cap all releases about them share, whichever data they come from."""
    cap = promise_of(epsilon, delta, mu, rho)
    with opened(ledger, principal) as book:
        if name in {one.name for one in book.populations()}:
            raise InvalidArgumentError(
                f"{name} is a population already. dpm ledger population cap raises its cap; another population takes "
                "another name."
            )
        _say_populations([book.population(name, cap, unit)], as_json)


@guarded
def raise_cap(
    reason: _Reason,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    ledger: _Ledger = None,
    population: _Population = None,
    principal: _Principal = None,
    as_json: options.Json = False,
) -> None:
    """Raise the cap of a population, of the same kind. Caps are never lowered; the reason stays in the ledger."""
    raised = promise_of(epsilon, delta, mu, rho)
    with opened(ledger, principal) as book:
        whose = population_of(book, population)
        whose.raise_cap(raised, reason)
        _say_populations([population_of(book, whose.name)], as_json)


@guarded
def grant(
    who: Annotated[str, typer.Argument(help="Who may spend it: the name that --principal or their login gives.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    reason: _Reason = "",
    ledger: _Ledger = None,
    population: _Population = None,
    principal: _Principal = None,
    as_json: options.Json = False,
) -> None:
    """Say how much somebody may spend in all. With the first grant, whoever has none may spend nothing.

    Grants may add up to more than the cap: what is left to somebody is the smaller of the two.
    """
    granted = promise_of(epsilon, delta, mu, rho)
    with opened(ledger, principal) as book:
        whose = population_of(book, population)
        whose.grant(who, granted, reason)
        _say_grants(whose, as_json)


# What only a release needs.
_OF_RELEASES = (
    "out", "epsilon", "delta", "mu", "rho", "arithmetic", "seed", "npy", "picture", "links", "html", "force", "key",
    "dataset",
)  # fmt: skip


@shared_options(*_OF_RELEASES, leading=("name",))
def add_dataset(
    words: dict[str, Any],
    name: Annotated[
        str, typer.Argument(help="Its name in the ledger, as of a population. A changed file becomes its next version.")
    ],
    labels: Annotated[
        str | None, typer.Option(help="As in dpm class-means: a column of classes, to ask by class.")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="As in dpm class-means: the public list of classes.")] = None,
    labels_private: Annotated[
        bool, typer.Option("--labels-private", help="Nobody may know who is in which class: for dpm lda alone.")
    ] = False,
    covariate: Annotated[
        str | None, typer.Option(help="As in dpm regression: a column of numbers, to regress on.")
    ] = None,
    covariate_range: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="LOW HIGH", help="As in dpm regression: the covariate's public range."),
    ] = None,
    covariate_public: Annotated[
        bool, typer.Option("--covariate-public", help="As in dpm regression: else covariates are protected, too.")
    ] = False,
) -> None:
    """Register data of a population: read, check and count them, before anything is spent. Costs nothing.

    The ledger keeps the space, the ball, the number of units, which is public, and a fingerprint that nobody can read
    without the ledger's key file. What is wrong with the data is said here, for whoever holds them.

    With --units each-record, in a population whose unit is not "record", you say that nobody has two of the records.
    """
    curator = teller(words["notice"], words["quiet"])
    chosen = selection_of({
        **words, "labels": labels, "classes": classes, "labels_public": not labels_private, "covariate": covariate,
        "covariate_range": covariate_range, "covariate_public": covariate_public,
    })  # fmt: skip
    with opened(words["ledger"], words["principal"], words["secret"]) as book, at_work(words), quietly(words["quiet"]):
        whose = population_of(book, words["population"])
        found = chosen.register(whose, name, curator=curator, confirm=words["confirm"])
        _say_datasets([one for one in whose.datasets() if one.id == found.id], words["as_json"])
        if found.unit == "record" != whose.unit and not words["as_json"]:
            say(f"Each record counts as one {whose.unit}: by this you assert that nobody has two.")


# -------------------------------------------------------------------- what a ledger holds


@guarded
def list_populations(ledger: _Ledger = None, as_json: options.Json = False) -> None:
    """List the populations: cap, spent, left."""
    with opened(ledger, READER) as book:
        _say_populations(book.populations(), as_json)


def _say_populations(found: Sequence[Population], as_json: bool) -> None:
    records = [
        {"name": one.name, "unit": one.unit, "cap": one.cap.to_dict(), "spent": _record(one.spent),
         "unspent": _record(one.unspent)}
        for one in found
    ]  # fmt: skip
    rows = [(one.name, one.unit, in_words(one.cap), _spent(one.spent, one.cap), _left(one.unspent)) for one in found]
    nothing = "There is no population: dpm ledger population add."
    say_rows(records, as_json, ("population", "unit", "cap", "spent", "left"), rows, nothing)


@guarded
def list_grants(ledger: _Ledger = None, population: _Population = None, as_json: options.Json = False) -> None:
    """List who may spend how much of a population's cap, and what each has left."""
    with opened(ledger, READER) as book:
        _say_grants(population_of(book, population), as_json)


def _say_grants(whose: Population, as_json: bool) -> None:
    found = whose.grants()
    records = [
        {"principal": one.principal, "granted": one.granted.to_dict(), "spent": _record(one.spent),
         "remaining": _record(one.remaining)}
        for one in found
    ]  # fmt: skip
    rows = [
        (one.principal, in_words(one.granted), _spent(one.spent, one.granted), _left(one.remaining)) for one in found
    ]
    nothing = f"There are no grants: anybody may spend the cap of {whose.name}."
    say_rows(records, as_json, ("who", "granted", "spent", "left"), rows, nothing)


@guarded
def list_datasets(ledger: _Ledger = None, population: _Population = None, as_json: options.Json = False) -> None:
    """List the data sets of a population, with all their versions."""
    with opened(ledger, READER) as book:
        _say_datasets(population_of(book, population).datasets(), as_json)


def _say_datasets(found: Sequence[DataSet], as_json: bool) -> None:
    names = ("id", "name", "version", "n", "unit", "space")
    records = [{name: getattr(one, name) for name in names} for one in found]
    rows = [(one.id, f"{one.n:,} {one.unit}s", one.space) for one in found]
    say_rows(records, as_json, ("data set", "units", "space"), rows, "There is no data set: dpm ledger dataset add.")


@guarded
def history(
    ledger: _Ledger = None,
    population: _Population = None,
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
    told = page.sentences()
    if page.next is not None:  # said last, and here in words of options
        told[-1] = f"There is more: --after {page.next}."
    say_answer(
        page.to_dict(), as_json, page.table(), *told, *([] if picture is None else [f"  written      {picture}"])
    )


@guarded
def status(
    key: Annotated[str, typer.Argument(help="The key of a release.")],
    ledger: _Ledger = None,
    population: _Population = None,
    principal: _Principal = None,
    as_json: options.Json = False,
) -> None:
    """Say what became of a key: free, spent, started, released or lost. Keys belong to who spends."""
    with opened(ledger, principal) as book:
        whose = population_of(book, population)
        state = whose.status(key) or "free"
        who = whose.principal
    record = {"key": key, "population": whose.name, "principal": who, "state": state}
    say_answer(record, as_json, f"{key} of {who}: {_STATES[state]}")


_STATES = {
    "free": "free. Nothing was spent under this key.",
    "spent": "spent, and not begun. The same command with this key takes it up, at no further cost.",
    "started": "started. Somebody is at work on it, or was ended in the middle: the same command tells which.",
    "released": "released. The same command with this key gives the same release again, at no cost.",
    "lost": "lost. The spend stands, and nothing was released: ask again under another key, at the full cost.",
}


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


# -------------------------------------------------------------------- whether it holds


@guarded
def audit(ledger: _Ledger = None, as_json: options.Json = False) -> None:
    """Read everything and recompute it: hashes, sums, caps, witness. Exits with 4 if something does not hold."""
    with opened(ledger, READER) as book:
        _say_audit(book.audit(), as_json)


def _say_audit(found: Audit, as_json: bool) -> None:
    say_answer(found.to_dict(), as_json, repr(found))
    if not found.ok:
        raise typer.Exit(PROMISE_IMPOSSIBLE)


@guarded
def reconcile(
    reason: _Reason,
    ledger: _Ledger = None,
    principal: _Principal = None,
    as_json: options.Json = False,
) -> None:
    """Mend a database that was restored from a backup: take from the witness what it has lost.

    What was spent stays spent, even beyond the cap; results are not brought back.
    """
    with opened(ledger, principal, reconcile=reason) as book:
        done = book.reconciled
    assert done is not None  # a reason was given
    recovered = [entry.seq for entry in done.recovered]
    record = {"common": done.common, "own": done.own, "recovered": recovered, "over": list(done.over)}
    say_answer(record, as_json, repr(done))


@guarded
def export(
    out: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="JSON lines: one entry each, without results.")],
    ledger: _Ledger = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Write all entries for an auditor, who needs no database and no data: dpm ledger verify-export checks the file."""
    check_targets({"FILE": out}, force, {"--ledger": ledger})
    with opened(ledger, READER) as book:
        written = book.export(out)
    record = {"written": str(out), "entries": written}
    say_answer(record, as_json, f"{written:,} entries\n  written      {out}")


@guarded
def verify_export(
    path: Annotated[pathlib.Path, typer.Argument(metavar="FILE", help="What dpm ledger export wrote.")],
    as_json: options.Json = False,
) -> None:
    """Check an export by itself: hashes, sums, caps. Exits with 4 if something does not hold."""
    _say_audit(verified(path), as_json)


_SET_UP, _INSPECT, _AUDIT = "Set up", "Inspect", "Audit"
_populations = typer.Typer(
    help="Populations: the people whose cap all releases about them share, and who may spend of it.",
    no_args_is_help=True,
)
_datasets = typer.Typer(
    help="Data sets of a population: read, checked and counted once, before anything is spent.", no_args_is_help=True
)
for _group, _name, _command, _panel in (
    (app, "create", create, _SET_UP),
    (_populations, "add", add_population, _SET_UP),
    (_populations, "cap", raise_cap, _SET_UP),
    (_populations, "grant", grant, _SET_UP),
    (_populations, "list", list_populations, _INSPECT),
    (_populations, "grants", list_grants, _INSPECT),
    (_populations, "history", history, _INSPECT),
    (_datasets, "add", add_dataset, _SET_UP),
    (_datasets, "list", list_datasets, _INSPECT),
    (app, "status", status, _AUDIT),
    (app, "audit", audit, _AUDIT),
    (app, "reconcile", reconcile, _AUDIT),
    (app, "export", export, _AUDIT),
    (app, "verify-export", verify_export, _AUDIT),
):
    _group.command(name=_name, rich_help_panel=_panel)(_command)
app.add_typer(_populations, name="population", rich_help_panel=_SET_UP)
app.add_typer(_datasets, name="dataset", rich_help_panel=_SET_UP)
