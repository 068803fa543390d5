"""`dpm ledger`: what a data steward does with a ledger. It shows amounts, names and times, never data."""

from __future__ import annotations

import pathlib
from typing import Annotated, Any

import typer

from dpmanifold.cli import ledger_checks as checks
from dpmanifold.cli import ledger_options as steward
from dpmanifold.cli import ledger_views as views
from dpmanifold.cli import options
from dpmanifold.cli.arguments import ball_of, class_words, classes_of, promise_of
from dpmanifold.cli.command import how_of, invalid_of, one_apart, shared_options, teller
from dpmanifold.cli.engine import at_work
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.ledger_views import say_datasets, say_grants, say_populations
from dpmanifold.cli.payer import opened, population_of
from dpmanifold.cli.records import read
from dpmanifold.cli.speech import say, say_json
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.progress import quietly

app = typer.Typer(
    help="Keep account of what is spent, for years: populations with caps, who may spend, and what was spent on what."
    "\n\n"
    "Start with dpm ledger create and dpm ledger population; then give --ledger to the private commands. "
    "docs/how-to/data-steward.md goes through a year of it. Exit codes are those of dpm; 4 is also for a ledger that "
    "does not hold.",
    no_args_is_help=True,
)


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
    secret: steward.Secret = None,
    writer: Annotated[
        str | None,
        typer.Option(metavar="ROLE", help="PostgreSQL: the role of those who spend, who may add entries and no more."),
    ] = None,
    principal: steward.Principal = None,
    as_json: options.Json = False,
) -> None:
    """Make a new ledger, with its witness and the secret key of its fingerprints. Refuses one that is there."""
    from dpmanifold.ledger import Ledger
    from dpmanifold.storage.filesystems import same_volume

    with Ledger.create(where, witness=witness, secret=secret, principal=principal, writer=writer) as ledger:
        facts = {"ledger": ledger.id, "where": ledger.name, "witness": str(ledger.witness.path),
                 "secret": str(ledger.secret)}  # fmt: skip
    if as_json:
        say_json(facts)
        return
    together = "://" not in where and same_volume(facts["where"], facts["witness"])
    lines = [
        f"Ledger {facts['ledger']}",
        f"  written      {facts['where']}",
        f"  witness      {facts['witness']}",
        f"  secret       {facts['secret']}",
        "Whoever holds the data keeps the secret to themselves, and a copy of it in a safe place.",
    ]
    if together:
        lines.append("The witness is on the ledger's own volume: restored together, the two notice nothing.")
    say("\n".join(lines))


@guarded
def population(
    name: Annotated[str, typer.Argument(help="Its name, for good: letters and digits, - _ and . between them.")],
    unit: Annotated[str, typer.Option(help="Who is protected: participant, patient, household.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    ledger: steward.Ledger = None,
    principal: steward.Principal = None,
    as_json: options.Json = False,
) -> None:
    """Make a population: the people whose cap all releases about them share, whichever data they come from."""
    cap = promise_of(epsilon, delta, mu, rho)
    with opened(ledger, principal) as book:
        if name in {one.name for one in book.populations()}:
            raise InvalidArgumentError(
                f"{name} is a population already. dpm ledger cap raises its cap; another population takes another name."
            )
        made = book.population(name, cap, unit)
        say_populations([made], as_json)


@guarded
def cap(
    reason: steward.Reason,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    ledger: steward.Ledger = None,
    population: steward.Population = None,
    principal: steward.Principal = None,
    as_json: options.Json = False,
) -> None:
    """Raise the cap of a population, of the same kind. Caps are never lowered; the reason stays in the ledger."""
    raised = promise_of(epsilon, delta, mu, rho)
    with opened(ledger, principal) as book:
        whose = population_of(book, population)
        whose.raise_cap(raised, reason)
        say_populations([population_of(book, whose.name)], as_json)


@guarded
def grant(
    who: Annotated[str, typer.Argument(help="Who may spend it: the name that --principal or their login gives.")],
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    reason: steward.Reason = "",
    ledger: steward.Ledger = None,
    population: steward.Population = None,
    principal: steward.Principal = None,
    as_json: options.Json = False,
) -> None:
    """Say how much somebody may spend in all. With the first grant, whoever has none may spend nothing.

    Grants may add up to more than the cap: what is left to somebody is the smaller of the two.
    """
    granted = promise_of(epsilon, delta, mu, rho)
    with opened(ledger, principal) as book:
        whose = population_of(book, population)
        whose.grant(who, granted, reason)
        say_grants(whose, as_json)


# What only a release needs.
_OF_RELEASES = (
    "out", "epsilon", "delta", "mu", "rho", "arithmetic", "seed", "npy", "picture", "links", "html", "force", "key",
    "dataset",
)  # fmt: skip


@shared_options(*_OF_RELEASES, leading=("name",))
def register(
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
    with opened(words["ledger"], words["principal"], words["secret"]) as book, at_work(words):
        whose = population_of(book, words["population"])
        along = (words["units"], one_apart(labels, covariate))
        given = read(words["path"], words["space"], words["size"], how_of(words), along, curator)
        ball = ball_of(given.space, words["radius"], words["center"], words["source"], words["ball"])
        which = None if labels is None else given.column(labels, "--labels")
        values = None if covariate is None else given.column(covariate, "--covariate")
        names = None if classes is None else classes_of(class_words(classes))
        with quietly(words["quiet"]):
            found = whose.register(
                name, given.records, ball, units=given.units(words["units"]), labels=which, classes=names,
                labels_public=not labels_private, covariate=values, covariate_range=covariate_range,
                covariate_public=covariate_public, invalid=invalid_of(words), curator=curator, confirm=words["confirm"],
            )  # fmt: skip
        say_datasets([one for one in whose.datasets() if one.id == found.id], words["as_json"])
        if found.unit == "record" != whose.unit and not words["as_json"]:
            say(f"Each record counts as one {whose.unit}: by this you assert that nobody has two.")


_SET_UP, _INSPECT, _AUDIT = "Set up", "Inspect", "Audit"
for _name, _command, _panel in (
    ("create", create, _SET_UP),
    ("population", population, _SET_UP),
    ("cap", cap, _SET_UP),
    ("grant", grant, _SET_UP),
    ("register", register, _SET_UP),
    ("populations", views.populations, _INSPECT),
    ("grants", views.grants, _INSPECT),
    ("datasets", views.datasets, _INSPECT),
    ("history", views.history, _INSPECT),
    ("status", views.status, _INSPECT),
    ("audit", checks.audit, _AUDIT),
    ("reconcile", checks.reconcile, _AUDIT),
    ("export", checks.export, _AUDIT),
    ("verify-export", checks.verify_export, _AUDIT),
):
    app.command(name=_name, rich_help_panel=_panel)(_command)
