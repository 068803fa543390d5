"""What the private commands share: their options, written once, and the order of things.

Outputs are checked, then everything is read, then the command releases, then it is written: nothing is spent before
every refusal that can be foreseen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.arguments import EACH, promise_of
from dpmanifold.cli.engine import at_work
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.outputs import Outputs
from dpmanifold.cli.payer import NOBODY, Payer, paying, refuse_simulations, with_array
from dpmanifold.cli.question import Question
from dpmanifold.cli.records import Given, How, read
from dpmanifold.cli.registered import registered
from dpmanifold.cli.speech import complain
from dpmanifold.cli.views import Views
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.privacy import Promise
from dpmanifold.progress import on_a_terminal, quietly
from dpmanifold.result import Result
from dpmanifold.sources import Source
from dpmanifold.stats.curator import Notice
from dpmanifold.stats.registered import Registered

Teller = Callable[[Notice | str], None]
"""A function that is told how many records do not count as they are, or other words: before anything is spent where the
call reads the data itself, after it where they are registered."""


def teller(wanted: bool, quiet: bool, registered: bool = False) -> Teller | None:
    """Return the function that is told, or None where nobody should be."""
    if wanted and quiet:
        raise InvalidArgumentError("--notice and --quiet contradict each other. Give one.")
    return _tell if wanted or (on_a_terminal() and not (quiet or registered)) else None


def _tell(notice: Notice | str) -> None:
    complain(f"FOR THE CURATOR ALONE, data about the data, not private: {notice}")


_VIEWS = ("npy", "picture", "links")
# What a private command may read, and how its message calls it.
_INPUTS = {
    "path": "the data", "units": "--units", "center": "--center", "ball": "--ball",
    "about": "--about", "mask": "--mask", "labels": "--labels", "links": "--links", "shape": "--shape",
    "covariate": "--covariate",
}  # fmt: skip


def shared_signature(
    path: options.Data,
    space: options.Space,
    units: options.Units,
    out: options.Out,
    array: options.Array = None,
    columns: options.Columns = None,
    order: options.Order = None,
    coordinates: options.Coordinates = None,
    mask: options.Mask = None,
    normalize: options.Normalize = False,
    size: options.Size = None,
    radius: options.Radius = None,
    center: options.Center = None,
    source: options.Source = "",
    ball: options.BallFile = None,
    epsilon: options.Epsilon = None,
    delta: options.Delta = None,
    mu: options.Mu = None,
    rho: options.Rho = None,
    ledger: options.Ledger = None,
    population: options.Population = None,
    key: options.Key = None,
    dataset: options.DataSet = None,
    principal: options.Principal = None,
    secret: options.Secret = None,
    workers: options.Workers = None,
    dask: options.Dask = None,
    arithmetic: options.Arithmetic = "auto",
    invalid: options.Invalid = None,
    confirm: options.Confirm = False,
    notice: options.ShowNotice = False,
    quiet: options.Quiet = False,
    seed: options.Seed = None,
    npy: options.Npy = None,
    picture: options.Picture = None,
    links: options.Links = None,
    html: options.Html = None,
    force: options.Force = False,
    as_json: options.Json = False,
) -> None:
    """Hold the options that every private command has; never called."""


@dataclass(frozen=True)
class Asked:
    """What was asked: the first arguments of a `private_*` function, and the keywords they all take."""

    question: Question
    words: dict[str, Any]
    curator: Teller | None
    payer: Payer = NOBODY

    @property
    def about(self) -> tuple[Array | Source | Registered, Ball, Promise]:
        """Records, ball and promise."""
        return self.question.records, self.question.ball, self.question.privacy

    @property
    def terms(self) -> dict[str, Any]:
        """Units, arithmetic, invalid records, who is told of them, the seed of a simulation, and who pays."""
        return {
            **self.payer.terms,
            "units": self.question.units,
            "arithmetic": self.words["arithmetic"],
            "invalid": invalid_of(self.words),
            "curator": self.curator,
            "confirm": self.words["confirm"],
            "rng": self.words["seed"],
        }

    @property
    def each_record(self) -> bool:
        """Whether nobody owns two records."""
        return bool(self.words["units"] == EACH)

    def second_group(self, path: str, array: str | None, dataset: str | None) -> Question:
        """Read another file in the same way."""
        if (dataset is None) != (self.words["dataset"] is None):
            raise InvalidArgumentError(
                "--dataset and --other-dataset go together: both groups are registered, or none."
            )
        words = {**self.words, "path": [path], "array": array or self.words["array"], "dataset": dataset}
        return question_of(words, self.curator, self.payer)


def question_of(words: dict[str, Any], tell: Teller | None = None, payer: Payer = NOBODY) -> Question:
    """Read and check the records, the ball, the promise and the units; the curator may be told of images.

    Registered data are not looked at.
    """
    if words.get("dataset") is not None:
        privacy = promise_of(words["epsilon"], words["delta"], words["mu"], words["rho"])

        def opened(labels: str | None, covariate: str | None) -> Given:
            along = (words["units"], one_apart(labels, covariate))
            return read(words["path"], words["space"], words["size"], how_of(words), along, tell)

        return Question(*registered(words["dataset"], words, payer.account, opened), privacy, None)
    ball = (words["radius"], words["center"], words["source"], words.get("ball"))
    promise = (words["epsilon"], words["delta"], words["mu"], words["rho"])
    return Question.read(
        words["path"], words["space"], words["size"], words["units"], ball, promise, how_of(words), words.get("labels"),
        tell,
    )  # fmt: skip


def one_apart(labels: str | None, covariate: str | None) -> str | None:
    """Return the column besides the ids that is no part of the records, though no columns were chosen for these."""
    return covariate if labels is None else labels


def how_of(words: dict[str, Any]) -> How:
    """Return how files become records."""
    given = {**words, "key": words["array"]}
    return How(**{field.name: given[field.name] for field in fields(How)})


def invalid_of(words: dict[str, Any]) -> str:
    """Return what bad records count as; nothing is said about registered data, which know it."""
    return "raise" if words["invalid"] is None else str(words["invalid"])


def shared_options(
    *dropped: str, leading: tuple[str, ...] = ()
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that every private command has, besides its own.

    The function takes what was said for the shared ones as a dictionary, and its own options by keyword; an option of
    its own takes the place of a shared one of the same name.

    Parameters
    ----------
    dropped : shared options that it does not have
    leading : arguments of its own that come before the data
    """

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        left_out = {*dropped, *(parameter.name for parameter in own)}
        every = inspect.signature(shared_signature, eval_str=True).parameters.values()
        shared = [parameter for parameter in every if parameter.name not in left_out]

        @guarded
        def run(**words: Any) -> None:
            function({p.name: words[p.name] for p in shared}, **{p.name: words[p.name] for p in own})

        # Arguments and required options first; typer reads the signature, and the annotations.
        first = [parameter for parameter in own if parameter.name in leading]
        rest = [parameter for parameter in own if parameter.name not in leading]
        parameters = sorted([*first, shared[0], *rest, *shared[1:]], key=lambda p: p.default is not p.empty)
        parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
        return dressed(run, parameters, function.__name__, function.__doc__)

    return decorate


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def dressed(
    run: Callable[..., None], parameters: Sequence[inspect.Parameter], name: str, words: str | None
) -> Callable[..., None]:
    """Return a guarded function with the parameters that typer is to read."""
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__name__, run.__doc__ = name, words
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


def private_command(
    *views: str,
    leading: tuple[str, ...] = (),
    refuse: Callable[[dict[str, Any]], None] | None = None,
    first: Callable[[dict[str, Any]], list[str]] | None = None,
) -> Callable[[Callable[..., Result]], Callable[..., None]]:
    """Make a command of a function from what was asked, and options of its own, to a result.

    Parameters
    ----------
    views : which of "npy", "picture" and "links" the result can be written as
    leading : arguments of its own that come before the data
    refuse : raises where the options alone cannot be, before anything is read
    first : says which of the paths the question is about, where the command reads others by itself
    """

    def decorate(release: Callable[..., Result]) -> Callable[..., None]:
        def run(words: dict[str, Any], **mine: Any) -> None:
            words = with_array(words)
            files = (words["out"], words.get("npy"), words.get("picture"), words["html"], words["force"])
            outputs = Outputs(*files, Views(words["coordinates"], words.get("links")))
            marked = words["seed"] is not None or mine.get("reveal", False)
            outputs.check(inputs_of(words | mine), mine.get("mechanism", "auto"), marked)
            refuse_mechanism(mine.get("mechanism", "auto"))
            if refuse is not None:
                refuse(words | mine)
            refuse_simulations(words | mine)
            curator = teller(words["notice"], words["quiet"], words["dataset"] is not None)
            with paying(words) as payer, at_work(words):
                asked_of = {**_beside(words, mine), **words, **({} if first is None else {"path": first(words | mine)})}
                asked = Asked(question_of(asked_of, curator, payer), words, curator, payer)
                outputs.refuse_unmarked(asked.question.ball.simulated)
                outputs.views.check(asked.question.ball.space, outputs.picture)
                with quietly(words["quiet"]):
                    result = release(asked, **mine)
                outputs.write(result, words["as_json"], payer.remark)

        run.__signature__ = inspect.signature(release, eval_str=True)  # type: ignore[attr-defined]
        run.__name__, run.__doc__ = release.__name__, release.__doc__
        return shared_options(*set(_VIEWS) - set(views), leading=leading)(run)

    return decorate


def _beside(words: dict[str, Any], mine: dict[str, Any]) -> dict[str, Any]:
    """Return what a command says about columns that are read with the records.

    Labels are, by the commands that have them; a covariate where it must not be taken for a part of the records.
    Registered data know both.
    """
    labels, covariate = mine.get("labels"), mine.get("covariate")
    if words["dataset"] is not None:
        return {"labels": labels, "covariate": covariate}
    return {"labels": labels if words["columns"] is not None else one_apart(labels, covariate)}


def refuse_mechanism(name: str) -> None:
    """Refuse a mechanism that there is not, before anything is read."""
    if name != "auto" and MECHANISMS.find(name) is None:
        raise InvalidArgumentError(f"--mechanism must be auto or one of {', '.join(MECHANISMS.names())}, got {name!r}.")


def inputs_of(words: dict[str, Any]) -> dict[str, Any]:
    """Return what a command reads, by the word that names it in messages."""
    return {name: words.get(option) for option, name in _INPUTS.items()}
