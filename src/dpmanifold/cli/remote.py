"""`dpm remote`: working with a service from afar. Records are never here; what is asked and released is."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from dpmanifold.cli import options
from dpmanifold.cli.arguments import promise_of
from dpmanifold.cli.build import known_queries, planned_options
from dpmanifold.cli.command import dressed, parameter
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.remote_asking import (
    BallOrId,
    Coordinates,
    DataSet,
    Timeout,
    Url,
    Writer,
    asking,
    ball_said,
    connected,
    service_exit_codes,
)
from dpmanifold.cli.speech import say, say_json, say_table
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.stats.query import query_named

app = typer.Typer(
    help="Ask a service for releases of data that stay where they are (dpm serve).\n\n"
    "Start with dpm remote login URL and dpm remote datasets; then dpm remote plan, and one command for each "
    "statistic, with the options of the local one. A command that breaks is given again as it was: it asks under the "
    "same key, and pays nothing twice. Exit codes are those of dpm; 1 is also for a service that does not answer.",
    no_args_is_help=True,
)

_RELEASES = "Private releases"


@guarded
def login(
    url: Annotated[str, typer.Argument(metavar="URL", help="The service's address: https://...")],
    ca: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Certificates (.pem) that the service's is checked against, always then."),
    ] = None,
) -> None:
    """Store a token for a service, readable by you alone; it is asked for, or read from standard input.

    Make one on the service's account page. It is tried before it is stored.
    """
    from dpmanifold.remote import connect
    from dpmanifold.remote.tokens import store
    from dpmanifold.remote.transport import checked_url

    with service_exit_codes():
        where = checked_url(url)
        asked = sys.stdin is not None and sys.stdin.isatty()
        token = (typer.prompt("token", hide_input=True) if asked else sys.stdin.readline()).strip()
        if not token:
            raise InvalidArgumentError("a token is missing: type it, or give it on standard input.")
        with connect(where, token, ca=ca) as client:
            name = client.account
        path = store(where, token, ca)
    say(f"{_plain(name)} at {where}\n  written      {path}")


@guarded
def datasets(url: Url = None, as_json: options.Json = False) -> None:
    """List the data sets that you may ask, with what is left to you."""
    with service_exit_codes(), connected(url) as client:
        found = client.datasets()
    if as_json:
        say_json(found)
        return
    rows = [
        (one["ref"], one["space"], f"{one['n']:,} {one['unit']}s", f"{one['ball']['radius']:.4g}", one["left_words"],
         f"{one['spent_share']:.0%}", "yes" if one["approval"] else "")
        for one in found
    ]  # fmt: skip
    _say_rows("Data sets", ("data set", "space", "units", "radius", "left to you", "spent by all", "approval"), rows)
    for one in found:
        if one["note"]:
            say(f"{_plain(one['ref'])}: {_plain(one['note'])}")


@guarded
def _plan(
    statistic: str, dataset: str, ball: str | None, error: float | None, url: str | None, as_json: bool, **said: Any
) -> None:
    """Say what to expect of a release, what it costs and what is left then. Spends nothing.

    --json is what dpm plan --json says of the same numbers.
    """
    privacy = promise_of(said["epsilon"], said["delta"], said["mu"], said["rho"])
    names = [option.name for option in planned_options()]
    asked = {name: said[name] for name in names if said[name] is not None}
    with service_exit_codes(), connected(url) as client:
        chosen = ball_said({**said, "ball": ball}, dataset, client)
        found = client.plan(dataset, privacy, statistic=statistic, ball=chosen, error=error, **asked)
        if as_json:
            say_json(found)
            return
        _say_plan(found)
        _say_price(client.price(dataset, privacy, statistic=statistic, ball=chosen, **asked))


_PLAN = (
    parameter("statistic", Annotated[str, typer.Argument(help="What to plan: mean, region, ..., or a statistic.")]),
    parameter("dataset", DataSet),
    parameter("epsilon", options.Epsilon, None),
    parameter("delta", options.Delta, None),
    parameter("mu", options.Mu, None),
    parameter("rho", options.Rho, None),
    parameter("radius", options.Radius, None),
    parameter("center", options.Center, None),
    parameter("source", options.Source, ""),
    parameter("ball", BallOrId, None),
    *planned_options(afar=True),
    parameter(
        "error", Annotated[float | None, typer.Option(help="Also say what an expected error of this size needs.")], None
    ),
    parameter("url", Url, None),
    parameter("as_json", options.Json, False),
)
plan = dressed(_plan, _PLAN, "plan", _plan.__doc__)


def _say_plan(found: Mapping[str, Any]) -> None:
    """Print a plan: its draws, and what it comes to."""
    rows = []
    for one in found.get("rows") or found.get("steps") or ():
        part = one.get("of_radius", one.get("of_range"))
        what = (one.get("statistic", ""), one["mechanism"], _number(one["scale"]), _number(one["error"]))
        rows.append((*what, "-" if part is None else f"{part:.1%}"))
    _say_rows("What to expect", ("draw", "mechanism", "scale", "error", "/largest"), rows)
    parts = [found, *(found.get(name) for name in ("refined", "shaped", "prospect"))]
    told = [_plain(part["verdict"]) for part in parts if part and part.get("verdict")]
    say("\n".join(text.replace("refine=True", "--refine") for text in told))
    for caution in found.get("cautions", ()):
        say(_plain(caution))
    if "needed_units" in found:
        needs = {name: value for name, value in found["needed_promise"].items() if name != "exact"}
        say(f"The error takes {found['needed_units']:,} units, or the promise {_plain(needs)}.")


def _say_price(price: Mapping[str, Any]) -> None:
    wait = (
        "after a steward's approval" if price["approval"] else f"about {price['seconds']:.0f} seconds after it is asked"
    )
    say(
        f"It costs {_plain(price['cost_words'])}; you have {_plain(price['left_words'])}, and then "
        f"{_plain(price['after_words'])}: about {price['more']:,} more like it. It would be published {wait}."
    )


@guarded
def releases(
    limit: Annotated[int, typer.Option(min=1, max=200, help="How many at most.")] = 50,
    before: Annotated[str | None, typer.Option(metavar="ID", help="Those before this one.")] = None,
    url: Url = None,
    as_json: options.Json = False,
) -> None:
    """List what you have asked for, the newest first."""
    with service_exit_codes(), connected(url) as client:
        found = [one.view for one in client.releases(limit, before)]
    if as_json:
        say_json(found)
        return
    names = ("id", "ref", "statistic", "privacy_words", "state", "publishes")
    rows = [tuple("" if one[name] is None else one[name] for name in names) for one in found]
    rows = [(*row[:5], row[5].partition(".")[0]) for row in rows]  # to the second, in UTC; keys are in --json
    _say_rows("Releases", ("id", "data set", "statistic", "promise", "state", "published (UTC)"), rows)


@guarded
def fetch(
    release: Annotated[str, typer.Argument(metavar="ID", help="The release, as dpm remote releases lists them.")],
    out: options.Out,
    npy: options.Npy = None,
    picture: options.Picture = None,
    links: options.Links = None,
    html: options.Html = None,
    coordinates: Coordinates = None,
    force: options.Force = False,
    timeout: Timeout = None,
    quiet: options.Quiet = False,
    url: Url = None,
    as_json: options.Json = False,
) -> None:
    """Write a release that was asked for before, once it is published; of means by class --out is a folder."""
    words = {"out": out, "npy": npy, "picture": picture, "links": links, "html": html, "coordinates": coordinates,
             "force": force}  # fmt: skip
    with service_exit_codes(), connected(url) as client:
        handle = client.release(release)
        writer = Writer.of(words, query_named(handle.view.get("statistic")).result is dict)
        writer.receive(handle, quiet, timeout, as_json)


@guarded
def history(
    population: Annotated[str, typer.Argument(help="The population: the first part of a data set's name.")],
    url: Url = None,
    as_json: options.Json = False,
) -> None:
    """Show what used up a population's cap; who else spent is not told."""
    with service_exit_codes(), connected(url) as client:
        found = client.history(population)
    if as_json:
        say_json(found)
        return
    rows = [
        (one["sequence"], one["time"], one["analyst"], one["what"], one["promise"], f"{one['share']:.1%}",
         f"{one['total_share']:.1%}", one["state"])
        for one in found["lines"]
    ]  # fmt: skip
    _say_rows(
        f"Population {_plain(found['population'])}, cap {_plain(found['cap_words'])}",
        ("entry", "time", "by", "what", "promise", "of cap", "in all", "state"),
        rows,
    )


def _say_rows(title: str, headings: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    table = Table(title=Text(title), box=box.SIMPLE)
    for heading in headings:  # what has to be typed again stays in one piece
        table.add_column(heading, overflow="fold", no_wrap=heading in ("id", "name", "data set", "time"))
    for row in rows:
        table.add_row(*(Text(_plain(entry)) for entry in row))
    say_table(table)


def _plain(value: object) -> str:
    """Return text of a service as a terminal can show it."""
    from dpmanifold.remote.transport import printable

    return printable(str(value))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


for name, command in (
    ("login", login),
    ("datasets", datasets),
    ("plan", plan),
    ("releases", releases),
    ("fetch", fetch),
    ("history", history),
):
    app.command(name=name)(command)
for query in known_queries():
    app.command(name=query.name, rich_help_panel=_RELEASES)(asking(query))
app.command(name="statistic", rich_help_panel=_RELEASES)(asking(None))
