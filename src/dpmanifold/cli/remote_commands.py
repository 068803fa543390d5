"""`dpm remote`: working with a service from afar. Records are never here; what is asked and released is.

Each command that asks for a release is made from its query, as the local command is. What a local command says about
records, a steward has said when they were registered; everything else means the same here and there.
"""

from __future__ import annotations

import contextlib
import inspect
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.build import known_queries, option_parameter, option_value, planned_options, summary
from dpmanifold.cli.command import dressed, parameter, refuse_mechanism, shared_signature
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.options import promise_of
from dpmanifold.cli.outputs import Folder, Outputs, Views
from dpmanifold.cli.speech import complain, say, say_answer, say_json, say_table, table_of
from dpmanifold.data.specifications import WHOLE_SPACE, ball_of
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import space_from_text
from dpmanifold.progress import quietly
from dpmanifold.remote import Client, Pending, connect
from dpmanifold.remote.tokens import known_services, store
from dpmanifold.remote.transport import checked_url, printable
from dpmanifold.stats.query import Query, query_named

app = typer.Typer(
    help="Ask a service for releases of data that stay where they are (dpm service run).\n\n"
    "Start with dpm remote login URL and dpm remote datasets; then dpm remote plan and dpm remote submit. A command "
    "that breaks is given again as it was: it asks under the same key, and pays nothing twice. Exit codes are those "
    "of dpm; 1 is also for a service that does not answer.",
    no_args_is_help=True,
)
submit = typer.Typer(
    help="Ask a service for a release of a data set: dpm remote submit QUERY DATASET, with the options of the local "
    "command.",
    no_args_is_help=True,
)

_SERVICE = "The service"
_OUT = "What to write"
DataSet = Annotated[str, typer.Argument(metavar="DATASET", help="POPULATION/NAME, as dpm remote datasets lists them.")]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="DPM_URL",
        help="The service's address; may be left out where you have logged in at one alone.",
        rich_help_panel=_SERVICE,
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        help="Your name for this release: under it the service answers once, and the same again costs nothing.",
        rich_help_panel=_SERVICE,
    ),
]
NoWait = Annotated[
    bool,
    typer.Option("--no-wait", help="Do not wait for the publication: dpm remote fetch.", rich_help_panel=_SERVICE),
]
Timeout = Annotated[
    float | None,
    typer.Option(help="Wait so many seconds at most; also for an approval.", rich_help_panel=_SERVICE),
]
MaybeOut = Annotated[
    pathlib.Path | None,
    typer.Option(help="The release as JSON; may be left out with --no-wait.", rich_help_panel=_OUT),
]
FolderOut = Annotated[
    pathlib.Path | None,
    typer.Option(help="A folder: one JSON release per class.", rich_help_panel=_OUT),
]
BallOrId = Annotated[
    str | None,
    typer.Option(
        "--ball",
        metavar="FILE|ID",
        help="Another ball than the registered one: a file as in dpm mean, or the id of a release of a ball.",
        rich_help_panel="The public ball",
    ),
]
Coordinates = Annotated[
    str | None, typer.Option(help="Tell a mean in these coordinates, too: lonlat, decinc, poincare, ...")
]
# What all private commands say and means the same here; and when a release is asked for.
_SAME = ("epsilon", "delta", "mu", "rho", "radius", "center", "source", "quiet", "npy", "picture", "links", "html",
         "force", "as_json")  # fmt: skip
_WHEN = (
    parameter("key", Key, None),
    parameter("url", Url, None),
    parameter("no_wait", NoWait, False),
    parameter("timeout", Timeout, None),
)


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
    with connected(url) as client:
        found = client.datasets()
    rows = [
        (one["ref"], one["space"], f"{one['n']:,} {one['unit']}s", f"{one['ball']['radius']:.4g}", one["left_words"],
         f"{one['spent_share']:.0%}", "yes" if one["approval"] else "")
        for one in found
    ]  # fmt: skip
    headings = ("data set", "space", "units", "radius", "left to you", "spent by all", "approval")
    notes = [f"{_plain(one['ref'])}: {_plain(one['note'])}" for one in found if one["note"]]
    say_answer(found, as_json, _table("Data sets", headings, rows), *notes)


def _plan(
    statistic: str, dataset: str, ball: str | None, error: float | None, url: str | None, as_json: bool, **said: Any
) -> None:
    """Say what to expect of a release, what it costs and what is left then. Spends nothing.

    --json is what dpm plan --json says of the same numbers.
    """
    privacy = promise_of(said["epsilon"], said["delta"], said["mu"], said["rho"])
    names = [option.name for option in planned_options()]
    asked = {name: said[name] for name in names if said[name] is not None}
    with connected(url) as client:
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
    say_table(_table("What to expect", ("draw", "mechanism", "scale", "error", "/largest"), rows))
    parts = [found, *(found.get(name) for name in ("refined", "shaped", "prospect"))]
    told = [_plain(part["verdict"]) for part in parts if part and part.get("verdict")]
    say("\n".join(text.replace("refine=True", "--refine") for text in told))
    for caution in found.get("cautions", ()):
        say(_plain(caution))
    if "required_units" in found:
        needs = {name: value for name, value in found["required_privacy"].items() if name != "exact"}
        say(f"The error takes {found['required_units']:,} units, or the promise {_plain(needs)}.")


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
    with connected(url) as client:
        found = [one.view for one in client.releases(limit, before)]
    names = ("id", "ref", "statistic", "privacy_words", "state", "publishes")
    rows = [tuple("" if one[name] is None else one[name] for name in names) for one in found]
    rows = [(*row[:5], row[5].partition(".")[0]) for row in rows]  # to the second, in UTC; keys are in --json
    headings = ("id", "data set", "statistic", "promise", "state", "published (UTC)")
    say_answer(found, as_json, _table("Releases", headings, rows))


@guarded
def fetch(
    release: Annotated[str, typer.Argument(metavar="ID", help="The release, as dpm remote releases lists them.")],
    out: options.Out,
    picture: options.Picture = None,
    html: options.Html = None,
    timeout: Timeout = None,
    url: Url = None,
    as_json: options.Json = False,
    npy: options.Npy = None,
    links: options.Links = None,
    coordinates: Coordinates = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a release that was asked for before, once it is published; of means by class --out is a folder."""
    words = {"out": out, "npy": npy, "picture": picture, "links": links, "html": html, "coordinates": coordinates,
             "force": force}  # fmt: skip
    with connected(url) as client:
        handle = client.release(release)
        outputs = _outputs(words, query_named(handle.view.get("statistic")).result is dict)
        _receive(handle, outputs, quiet, timeout, as_json)


@guarded
def history(
    population: Annotated[str, typer.Argument(help="The population: the first part of a data set's name.")],
    url: Url = None,
    as_json: options.Json = False,
) -> None:
    """Show what used up a population's cap; who else spent is not told."""
    with connected(url) as client:
        found = client.history(population)
    rows = [
        (one["sequence"], one["time"], one["analyst"], one["what"], one["privacy"], f"{one['share']:.1%}",
         f"{one['total_share']:.1%}", one["state"])
        for one in found["lines"]
    ]  # fmt: skip
    title = f"Population {_plain(found['population'])}, cap {_plain(found['cap_words'])}"
    headings = ("entry", "time", "by", "what", "promise", "of cap", "in all", "state")
    say_answer(found, as_json, _table(title, headings, rows))


def _table(title: str, headings: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """Return a table of what a service says; what has to be typed again stays in one piece."""
    shown = [map(_plain, row) for row in rows]
    return table_of(headings, shown, whole=("id", "data set", "time"), title=Text(title))


def _plain(value: object) -> str:
    """Return text of a service as a terminal can show it."""
    return printable(str(value))


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"


# -------------------------------------------------------------------- private releases


def asking(query: Query | None) -> Callable[..., None]:
    """Return the command that asks a service for what a query releases; None: for a statistic that is named."""
    by_class = query is not None and query.result is dict
    views = ("npy", "picture") if query is None else query.views
    left_out = {"npy", "picture", "links"} - set(views) | ({"html"} if by_class else set())
    own = () if query is None else query.options
    shared = inspect.signature(shared_signature, eval_str=True).parameters
    first = [] if query is not None else [parameter("name", Annotated[str, typer.Argument(help="The statistic.")])]
    parameters = [
        *first,
        parameter("dataset", DataSet),
        parameter("out", FolderOut if by_class else MaybeOut, None),
        *(option_parameter(option, afar=True) for option in own),
        *(parameter(name, shared[name].annotation, shared[name].default) for name in _SAME if name not in left_out),
        *([parameter("coordinates", Coordinates, None)] if "links" in views else []),
        parameter("ball", BallOrId, None),
        *_WHEN,
    ]  # fmt: skip

    def run(**words: Any) -> None:
        options = {one.name: option_value(one, words[one.name], afar=True) for one in own}
        _ask(query_named(words["name"]) if query is None else query, words, options)

    words = "Release any statistic by name." if query is None else summary(query)
    return dressed(run, parameters, "statistic" if query is None else query.name, words)


def _ask(query: Query, words: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check what can be checked, ask, wait, and write."""
    privacy = promise_of(words["epsilon"], words["delta"], words["mu"], words["rho"])
    refuse_mechanism(given.get("mechanism", "auto"))
    if words["out"] is None and not words["no_wait"]:
        raise InvalidArgumentError("--out is missing: where the release is written. Or give --no-wait, and fetch it.")
    by_class = query.result is dict
    outputs = _outputs(words, by_class, given.get("mechanism", "auto"))
    with connected(words["url"]) as client:
        ball = ball_said(words, words["dataset"], client)
        if words.get("links") is not None:
            space = space_from_text(client.dataset(words["dataset"])["space"])
            Views(words["coordinates"], words["links"]).check(space, words["picture"])
        if by_class:
            _refuse_classes(outputs, client.dataset(words["dataset"])["classes"] or ())
        pending = client.ask(query.name, words["dataset"], privacy, ball=ball, key=words["key"], wait=False, **given)
        if words["no_wait"]:
            when = f"to be published at {pending.publishes}" if pending.publishes else "waits for a steward's approval"
            told = f"release {pending.id}: {when}\n  then         dpm remote fetch {pending.id} --out FILE"
            say_answer(pending.view, words["as_json"], told)
            return
        _receive(pending, outputs, words["quiet"], words["timeout"], words["as_json"])


def ball_said(words: Mapping[str, Any], dataset: str, client: Client) -> Ball | str | None:
    """Return the ball that was said, as a client takes it; None for the registered one."""
    file = words.get("ball")
    said = [words.get("radius"), words.get("center"), words.get("source") or None]
    if file is None and said == [None] * 3:
        return None
    if file is not None and file != WHOLE_SPACE and not pathlib.Path(file).exists():
        if said != [None] * 3:
            raise InvalidArgumentError("--ball brings centre, radius and source with it: leave out the others.")
        return str(file)
    space = space_from_text(client.dataset(dataset)["space"])
    return ball_of(space, words.get("radius"), words.get("center"), words.get("source") or "", file)


def _outputs(words: Mapping[str, Any], by_class: bool, mechanism: str = "auto") -> Outputs | None:
    """Return where a release goes, or refuse files that cannot be written; None where nothing is written yet."""
    named = {option: words.get(option) for option in ("npy", "picture", "html")}
    if any(name is not None for name in named.values()) and (words["out"] is None or by_class):
        raise InvalidArgumentError("--npy, --picture and --html go with --out, of one release. Leave them out.")
    if words["out"] is None:
        return None
    views = Views(words.get("coordinates"), words.get("links"))
    outputs = (Folder if by_class else Outputs)(words["out"], **named, force=words["force"], views=views)
    return outputs.check({"--ball": words.get("ball"), "--center": words.get("center")}, mechanism)


def _refuse_classes(outputs: Outputs | None, names: Iterable[object]) -> None:
    """Refuse classes that cannot be names of files, and files of theirs that are there."""
    if not isinstance(outputs, Folder):
        return
    listed = [str(name) for name in names]
    if any(set(name) & set("/\\") or not name.isprintable() for name in listed):
        raise InvalidArgumentError("the classes have names that no file can have. Ask in Python: dpmanifold.connect.")
    outputs.check_classes(listed, {})


def _receive(pending: Pending[Any], outputs: Outputs | None, quiet: bool, timeout: float | None, as_json: bool) -> None:
    """Wait for a release, write it and print it."""
    if not quiet and pending.publishes and pending.view["state"] == "pending":
        complain(f"release {pending.id}, to be published at {pending.publishes}")
    with quietly(quiet):
        result = pending.result(timeout)
    where = "FOLDER" if isinstance(outputs, Folder) else "FILE"
    remark = f"The service keeps it: dpm remote fetch {pending.id} --out {where} gives it again, at no cost."
    assert outputs is not None
    _refuse_classes(outputs, result)
    outputs.write(result, as_json, remark)


@contextlib.contextmanager
def connected(url: str | None) -> Iterator[Client]:
    """Open a client of the service that was named, or of the only one that there is a token for."""
    known = list(known_services())
    if url is None and len(known) != 1:
        which = f"one of {', '.join(known)}" if known else "there is none yet: dpm remote login URL"
        raise InvalidArgumentError(f"--url is missing: {which}. Or set DPM_URL.")
    with connect(url if url is not None else known[0]) as client:
        yield client


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
    submit.command(name=query.name)(asking(query))
submit.command(name="statistic")(asking(None))
app.add_typer(submit, name="submit")
