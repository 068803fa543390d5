"""What the private commands share: their options, written once, and the order of things.

Outputs are checked, then everything is read, then the command releases, then it is written: nothing is spent before
every refusal that can be foreseen.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import typer

from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.options import at_work, promise_of
from dpmanifold.cli.outputs import Folder, Outputs, Views
from dpmanifold.cli.payer import NOBODY, Payer, paying, refuse_contradictions
from dpmanifold.cli.speech import complain
from dpmanifold.cli.study_options import without_other_ball
from dpmanifold.data.selection import BALL, WORDS, Selection
from dpmanifold.data.specifications import classes_of
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.mechanisms import MECHANISMS
from dpmanifold.privacy import Promise
from dpmanifold.progress import on_a_terminal, quietly
from dpmanifold.stats.curator import Notice
from dpmanifold.stats.registered_data import Opened, Registered

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
    "about": "--about", "mask": "--mask", "labels": "--labels", "links": "--links", "noise_shape": "--noise-shape",
    "covariate": "--covariate",
}  # fmt: skip


def shared_signature(
    path: options.Data,
    out: options.Out,
    space: options.SpaceOfRecords = None,
    units: options.Units = None,
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
class Question:
    """Records, ball, promise and units, as every private function takes them."""

    given: Opened
    ball: Ball
    privacy: Promise

    def classes(self, listed: list[str]) -> list[Any]:
        """Return the classes that were listed; of registered data as they are registered."""
        records = self.given.records
        if isinstance(records, Registered) and records.classes is not None:
            known = {str(name): name for name in records.classes}
            return [known.get(word, word) for word in listed]
        return classes_of(listed)


@dataclass(frozen=True)
class Asked:
    """What was asked: the first arguments of a `private_*` function, and the keywords they all take."""

    question: Question
    words: dict[str, Any]
    curator: Teller | None
    payer: Payer = NOBODY

    @property
    def about(self) -> tuple[Any, Ball, Promise]:
        """Records, ball and promise."""
        return self.question.given.records, self.question.ball, self.question.privacy

    @property
    def terms(self) -> dict[str, Any]:
        """Units, arithmetic, invalid records, who is told of them, the seed of a simulation, and who pays."""
        return {
            **self.payer.terms,
            "units": self.question.given.units,
            "arithmetic": self.words["arithmetic"],
            "invalid": invalid_of(self.words),
            "curator": self.curator,
            "confirm": self.words["confirm"],
            "rng": self.words["seed"],
        }

    def second_group(self, path: str, array: str | None, dataset: str | None) -> Question:
        """Read another file in the same way."""
        if (dataset is None) != (self.words["dataset"] is None):
            raise InvalidArgumentError(
                "--dataset and --other-dataset go together: both groups are registered, or none."
            )
        words = {**self.words, "path": [path], "array": array or self.words["array"], "dataset": dataset}
        return question_of({**words, "labels": None}, self.curator, self.payer)


def question_of(words: dict[str, Any], tell: Teller | None = None, payer: Payer = NOBODY) -> Question:
    """Check everything that was said, and read what cannot be streamed; the curator may be told of images.

    Files are opened once: ids that stand in them are read along with the records. Registered data are not looked at.
    """
    privacy, chosen = promise_of(words["epsilon"], words["delta"], words["mu"], words["rho"]), selection_of(words)
    if words["dataset"] is None:
        chosen.refuse_no_units()
        given = chosen.open(tell=tell)
        return Question(given, chosen.ball_on(given.space), privacy)
    if payer.account is None:
        raise InvalidArgumentError("`dataset` names data of a ledger: give `ledger` as well, or leave it out.")
    # The accounts of the command line are populations.
    known = chosen.registered(cast(Any, payer.account), words["dataset"], tell=tell)
    has_ball = any(getattr(chosen, name) != WORDS[name] for name in BALL)
    ball = chosen.ball_on(known.ball.space) if has_ball else known.ball
    return Question(Opened(known, None), ball, privacy)


def selection_of(words: dict[str, Any]) -> Selection:
    """Return what to read, and how, as it was said."""
    return Selection(words["path"], **{name: words[name] for name in WORDS if words.get(name) is not None})


def invalid_of(words: dict[str, Any]) -> str:
    """Return what bad records count as; nothing is said about registered data, which know it."""
    return "raise" if words["invalid"] is None else str(words["invalid"])


def shared_options(*dropped: str, leading: Sequence[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
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
        names = [one.name for one in own]

        def run(words: dict[str, Any]) -> None:
            mine = {name: words.pop(name) for name in names}
            function(words, **mine)

        return with_shared(run, own, dropped, leading, function.__name__, function.__doc__)

    return decorate


def with_shared(
    run: Callable[[dict[str, Any]], None],
    own: Sequence[inspect.Parameter],
    dropped: Iterable[str],
    leading: Sequence[str],
    name: str,
    words: str | None,
) -> Callable[..., None]:
    """Return the command of a function that takes all that was said, with its own options and the shared ones."""
    left_out = {*dropped, *(one.name for one in own)}
    every = inspect.signature(shared_signature, eval_str=True).parameters.values()
    path, *shared = (one for one in every if one.name not in left_out)
    first = [one for one in own if one.name in leading]
    rest = [one for one in own if one.name not in leading]
    # Arguments and required options first.
    parameters = sorted([*first, path, *rest, *shared], key=lambda one: one.default is not one.empty)
    return dressed(lambda **said: run(said), parameters, name, words)


def parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a parameter of a command."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def dressed(
    function: Callable[..., None], parameters: Sequence[inspect.Parameter], name: str, words: str | None
) -> Callable[..., None]:
    """Return a function as a guarded command with the parameters that typer is to read."""
    run = guarded(lambda context, **words: function(**without_other_ball(context, words)))
    said = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in sorted(parameters, key=_is_advanced)]
    parameters = [parameter("context", typer.Context), *said]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__name__, run.__doc__ = name, words
    del run.__wrapped__  # type: ignore[attr-defined]
    return run


def _is_advanced(one: inspect.Parameter) -> bool:
    return any(getattr(about, "rich_help_panel", None) == options.ADVANCED for about in one.annotation.__metadata__)


Words = dict[str, Any]
"""All that was said on the command line, by the names of the parameters."""


@dataclass(frozen=True)
class Beside:
    """What a private command says besides what all of them do: above all about its sample.

    Attributes
    ----------
    given : returns what a private call is given before the ball, and by keyword
    parameters : of the command
    refuse : raises where the words alone cannot be, before anything is read
    first : says which of the paths the records are, where the command reads others by itself
    question : reads what is asked about
    instead : does what is not private, and says whether it did
    words : what help says of the sample
    """

    given: Callable[[Asked], tuple[tuple[Any, ...], dict[str, Any]]] = lambda asked: (
        (asked.question.given.records,),
        {},
    )
    parameters: Sequence[inspect.Parameter] = ()
    refuse: Callable[[Words, Any], None] = lambda words, outputs: None
    first: Callable[[Words], list[str]] = lambda words: list(words["path"])
    question: Callable[[Words, Teller | None, Payer], Question] = question_of
    instead: Callable[[Words, Outputs], bool] = lambda words, outputs: False
    words: str = ""


def private_command(
    release: Callable[[Asked], Any],
    own: Sequence[inspect.Parameter],
    beside: Beside,
    views: Sequence[str],
    name: str,
    words: str,
    *,
    without: Sequence[str] = (),
    leading: Sequence[str] = (),
    by_class: bool = False,
) -> Callable[..., None]:
    """Make a command of a function from what was asked to a result.

    Parameters
    ----------
    release : makes the result
    own : options that not every private command has
    beside : what it says besides
    views : which of "npy", "picture" and "links" the result can be written as
    name, words : of the command, and what help says of it
    without : shared options that it does not have
    leading : arguments of its own that come before the data
    by_class : whether the result is a release for each class
    """

    def run(said: Words) -> None:
        mechanism, named = said.get("mechanism", "auto"), {view: said.get(view) for view in ("npy", "picture", "html")}
        outputs = (Folder if by_class else Outputs)(
            said["out"], **named, force=said["force"], views=Views(said["coordinates"], said.get("links"))
        )
        outputs.check(inputs_of(said), mechanism, said["seed"] is not None or said.get("reveal", False))
        if beside.instead(said, outputs):
            return
        refuse_mechanism(mechanism)
        beside.refuse(said, outputs)
        refuse_contradictions(said)
        curator = teller(said["notice"], said["quiet"], said["dataset"] is not None)
        with paying(said) as payer, at_work(said):
            asked = Asked(beside.question({**said, "path": beside.first(said)}, curator, payer), said, curator, payer)
            outputs.refuse_unmarked(asked.question.ball.simulated)
            outputs.views.check(asked.question.ball.space, outputs.picture)
            with quietly(said["quiet"]):
                result = release(asked)
            outputs.write(result, said["as_json"], payer.remark)

    return with_shared(run, own, {*_VIEWS, *without} - set(views), leading, name, words)


def refuse_mechanism(name: str) -> None:
    """Refuse a mechanism that there is not, before anything is read."""
    if name != "auto" and MECHANISMS.find(name) is None:
        raise InvalidArgumentError(f"--mechanism must be auto or one of {', '.join(MECHANISMS.names())}, got {name!r}.")


def inputs_of(words: dict[str, Any]) -> dict[str, Any]:
    """Return what a command reads, by the word that names it in messages."""
    return {name: words.get(option) for option, name in _INPUTS.items()}
