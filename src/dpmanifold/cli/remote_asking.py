"""The commands that ask a service for releases: each is made from its query, as the local command is.

What a local command says about records, a steward has said when they were registered; everything else means the same
here and there.
"""

from __future__ import annotations

import contextlib
import inspect
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpmanifold.ball import Ball
from dpmanifold.cli.arguments import WHOLE_SPACE, ball_of, promise_of
from dpmanifold.cli.build import option_parameter, option_value, summary
from dpmanifold.cli.command import dressed, parameter, refuse_mechanism, shared_signature
from dpmanifold.cli.failures import FAULT, PROMISE_IMPOSSIBLE, guarded
from dpmanifold.cli.outputs import Outputs, check_targets, refuse_stdout
from dpmanifold.cli.private import target_of, write_classes
from dpmanifold.cli.speech import complain, say, say_json
from dpmanifold.cli.views import Views
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.manifolds import space_from_text
from dpmanifold.progress import quietly
from dpmanifold.stats.query import Query, query_named

if TYPE_CHECKING:
    from dpmanifold.remote import Client, Pending

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
Folder = Annotated[
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
        parameter("out", Folder if by_class else MaybeOut, None),
        *(option_parameter(option, afar=True) for option in own),
        *(parameter(name, shared[name].annotation, shared[name].default) for name in _SAME if name not in left_out),
        *([parameter("coordinates", Coordinates, None)] if "links" in views else []),
        parameter("ball", BallOrId, None),
        *_WHEN,
    ]  # fmt: skip

    @guarded
    def run(**words: Any) -> None:
        options = {option.name: words[option.name] for option in own}
        for option in own:
            if option.kind == "choice":
                options[option.name] = option_value(option, words[option.name])
        with service_exit_codes():
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
    writer = Writer.of(words, by_class, given.get("mechanism", "auto"))
    with connected(words["url"]) as client:
        ball = ball_said(words, words["dataset"], client)
        if words.get("links") is not None:
            space = space_from_text(client.dataset(words["dataset"])["space"])
            Views(words["coordinates"], words["links"]).check(space, words["picture"])
        if by_class:
            writer.check_classes(client.dataset(words["dataset"])["classes"] or ())
        pending = client.ask(query.name, words["dataset"], privacy, ball=ball, key=words["key"], wait=False, **given)
        if words["no_wait"]:
            tell_pending(pending, words["as_json"])
            return
        writer.receive(pending, words["quiet"], words["timeout"], words["as_json"])


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


@dataclass(frozen=True)
class Writer:
    """Where a release goes: files that are checked before anything is asked.

    Attributes
    ----------
    outputs : the files; None where nothing is written yet
    by_class : whether they are one for each class, in a folder
    """

    outputs: Outputs | None
    by_class: bool

    @staticmethod
    def of(words: Mapping[str, Any], by_class: bool, mechanism: str = "auto") -> Writer:
        """Refuse files that cannot be written."""
        named = {option: words.get(option) for option in ("npy", "picture", "html")}
        if any(name is not None for name in named.values()) and (words["out"] is None or by_class):
            raise InvalidArgumentError("--npy, --picture and --html go with --out, of one release. Leave them out.")
        if words["out"] is None:
            return Writer(None, by_class)
        views = Views(words.get("coordinates"), words.get("links"))
        outputs = Outputs(words["out"], **named, force=words["force"], views=views)
        if not by_class:
            outputs.check({"--ball": words.get("ball"), "--center": words.get("center")}, mechanism)
            return Writer(outputs, by_class)
        refuse_stdout("--out", outputs.release)
        if outputs.release.exists() and not outputs.release.is_dir():
            raise InvalidArgumentError(f"--out {outputs.release} is a file. Give a folder.")
        if not outputs.release.parent.is_dir():
            raise InvalidArgumentError(f"--out {outputs.release}: its folder does not exist. Make it first.")
        return Writer(outputs, by_class)

    def check_classes(self, names: Iterable[object]) -> None:
        """Refuse classes that cannot be names of files, and files of theirs that are there."""
        if self.outputs is None:
            return
        listed = [str(name) for name in names]
        if any(set(name) & set("/\\") or not name.isprintable() for name in listed):
            raise InvalidArgumentError(
                "the classes have names that no file can have. Ask in Python: dpmanifold.connect."
            )
        if self.outputs.release.is_dir():
            targets = {f"--out, class {name}": target_of(self.outputs.release, name) for name in listed}
            check_targets(targets, self.outputs.force, {})

    def receive(self, pending: Pending[Any], quiet: bool, timeout: float | None, as_json: bool) -> None:
        """Wait for a release, write it and print it."""
        if not quiet and pending.publishes and pending.view["state"] == "pending":
            complain(f"release {pending.id}, to be published at {pending.publishes}")
        with quietly(quiet):
            result = pending.result(timeout)
        where = "FOLDER" if self.by_class else "FILE"
        remark = f"The service keeps it: dpm remote fetch {pending.id} --out {where} gives it again, at no cost."
        assert self.outputs is not None
        if self.by_class:
            self.check_classes(result)
            write_classes(result, self.outputs.release, as_json, remark)
        else:
            self.outputs.write(result, as_json, remark)


def tell_pending(pending: Pending[Any], as_json: bool) -> None:
    """Say that a release was asked for, and how it is fetched."""
    if as_json:
        say_json(pending.view)
        return
    when = f"to be published at {pending.publishes}" if pending.publishes else "waits for a steward's approval"
    say(f"release {pending.id}: {when}\n  then         dpm remote fetch {pending.id} --out FILE")


@contextlib.contextmanager
def connected(url: str | None) -> Iterator[Client]:
    """Open a client of the service that was named, or of the only one that there is a token for."""
    from dpmanifold.remote import connect
    from dpmanifold.remote.tokens import known_services

    known = list(known_services())
    if url is None and len(known) != 1:
        which = f"one of {', '.join(known)}" if known else "there is none yet: dpm remote login URL"
        raise InvalidArgumentError(f"--url is missing: {which}. Or set DPM_URL.")
    with connect(url if url is not None else known[0]) as client:
        yield client


@contextlib.contextmanager
def service_exit_codes() -> Iterator[None]:
    """Give what goes wrong at a service the exit code that says whose turn it is."""
    from dpmanifold.remote import AnswerError, RemoteError

    try:
        yield
    except RemoteError as problem:
        problem.exit_code = PROMISE_IMPOSSIBLE if isinstance(problem, AnswerError) else FAULT  # type: ignore[attr-defined]
        raise
