"""Commands made from the queries: a query's own options, what its sample is read from, and what all commands share."""

from __future__ import annotations

import inspect
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from dpmanifold.cli import options
from dpmanifold.cli.command import Asked, Beside, Words, parameter, private_command, shared_signature
from dpmanifold.cli.options import refuse_classes, shape_of
from dpmanifold.cli.outputs import Outputs, refuse_own_shape
from dpmanifold.data.specifications import EACH, class_words
from dpmanifold.errors import Argument, InvalidArgumentError, Public
from dpmanifold.release import Release
from dpmanifold.stats.pair import Pair
from dpmanifold.stats.query import QUERIES, Option, Query
from dpmanifold.stats.samples import Groups, Labelled, Sample, Units, WithCovariate

_NONE = "none"
_TYPES: dict[str, Any] = {
    "choice": str, "flag": bool, "number": float, "fraction": float, "whole": int, "shape": str,
    "release": pathlib.Path,
}  # fmt: skip
# What an option takes on this machine, and what at a service.
_HERE = {
    "shape": " Or a file with public records, taken about the center, or with second moments (d, d) in coordinates.",
    "release": " A file.",
}
_AFAR = {"release": " The id of its release."}


def option_parameter(option: Option, afar: bool = False, planned: bool = False) -> inspect.Parameter:
    """Return an option of a query as a parameter of a command.

    Parameters
    ----------
    option : of a query
    afar : whether a service is asked
    planned : whether it is for a plan, where None stands for what was not said
    """
    default = None if planned else option.default
    declared = f"--{option.name.replace('_', '-')}"
    if option.kind == "flag" and default is not False:
        declared += f"/--no-{option.name.replace('_', '-')}"
    words = option.help + (_AFAR if afar else _HERE).get(option.kind, "")
    taken = str if afar and option.kind == "release" else _TYPES[option.kind]
    panel = options.ADVANCED if option.advanced else None
    said = typer.Option(declared, help=words, rich_help_panel=panel, **_listed(option))
    return parameter(option.name, Annotated[taken | None if default is None else taken, said], default)


def _listed(option: Option) -> dict[str, Any]:
    """Return how the values of a choice are shown in help, and completed."""
    if option.kind != "choice":
        return {}

    def values() -> list[str]:
        return [_NONE if value is None else str(value) for value in option.values if value != option.default or value]

    return {"metavar": "NAME" if callable(option.choices) else "|".join(values()), "autocompletion": values}


def option_value(option: Option, word: Any, afar: bool = False) -> Any:
    """Return an option as a private call takes it, or a client; refuse a word that means nothing."""
    if option.kind == "shape" and not afar:
        return shape_of(word)
    if option.kind == "release" and word is not None and not afar:
        return Release.load(word)
    if option.kind == "choice" and option.default is not None and None in option.values:
        words = {_NONE if value is None else value: value for value in option.values}
        if word not in words:
            raise InvalidArgumentError(
                "{option} must be one of {words}, got {word!r}.",
                option=Argument(option.name),
                words=Public(", ".join(words)),
                word=word,
            )
        return words[word]
    return word


def planned_options(afar: bool = False) -> list[inspect.Parameter]:
    """Return the options of all queries that plans are told, as parameters of a command; None where not said."""
    found: dict[str, inspect.Parameter] = {}
    for query in known_queries():
        for option in query.options:
            if option.planned and option.name not in found:
                found[option.name] = option_parameter(option, afar, planned=True)
    return list(found.values())


# -------------------------------------------------------------------- what samples are read from


def _classes(asked: Asked) -> tuple[tuple[Any, ...], dict[str, Any]]:
    names = asked.question.classes(class_words(asked.words["classes"]))
    own = {name: asked.words[name] for name in ("labels_public",) if name in asked.words}
    return (asked.question.given.records, asked.question.given.labels), {"classes": names, **own}


def _with_covariate(asked: Asked) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (asked.question.given.records, asked.question.given.covariate), {
        name: asked.words[name] for name in ("covariate_range", "covariate_public")
    }


def _refuse_no_covariate(words: Words, outputs: Outputs) -> None:
    """Refuse a question without its covariate, which registered data alone know by themselves."""
    for name in ("covariate", "covariate_range"):
        if words["dataset"] is None and words[name] is None:
            raise InvalidArgumentError(
                f"--{name.replace('_', '-')} is missing. Data that are registered with it know it."
            )


def _pair(asked: Asked) -> tuple[tuple[Any, ...], dict[str, Any]]:
    records, words = asked.question.given.records, asked.words
    if words["classes"] is not None:
        return (records, None), {"classes": asked.question.classes(class_words(words["classes"]))}
    second = asked.second_group(words["path"][1], words["other_array"], words["other_dataset"])
    alike = words["units"] == EACH or words["dataset"] is not None
    return (records, second.given.records), {} if alike else {"units": (asked.question.given.units, second.given.units)}


def _first_of_pair(words: Words) -> list[str]:
    """Return the paths of one data set with two classes, or the first of two groups'."""
    return list(words["path"] if words["classes"] is not None else words["path"][:1])


def _refuse_no_pair(words: Words, outputs: Outputs) -> None:
    """Refuse neither two groups nor one data set with two classes."""
    if words["classes"] is not None:
        refuse_classes(words, outputs)
        if words["dataset"] is None or words["other_dataset"] is not None:
            raise InvalidArgumentError(
                "--classes are those of one data set that is registered with --labels: give --dataset, and no "
                "--other-dataset. dpm k-sample-test compares the classes of data that are not registered."
            )
        return
    if words["labels"] is not None:
        raise InvalidArgumentError("--labels goes with --classes, the two classes that --dataset is registered with.")
    if len(words["path"]) != 2:
        many = len(words["path"])
        raise InvalidArgumentError(
            f"two groups are compared, and {many} {'path was' if many == 1 else 'paths were'} given: where each group "
            "has several files, give its folder, or its pattern in quotes: 'a/*.parquet' 'b/*.parquet'. For two "
            "classes of one registered data set give --dataset and --classes."
        )


_LABELS = (parameter("labels", options.Labels), parameter("classes", options.Classes))
_LABELS_PUBLIC = parameter(
    "labels_public",
    Annotated[bool, typer.Option("--labels-public", help="Who is in which class may be known; else it is protected.")],
    False,
)
_COVARIATE = (
    parameter(
        "covariate",
        Annotated[
            str | None,
            typer.Option(
                help="One number per record: a column or key of the data, FILE, FILE:COLUMN. Needed, but for a column "
                "that --dataset is registered with."
            ),
        ],
        None,
    ),
    parameter(
        "covariate_range",
        Annotated[
            tuple[float, float] | None,
            typer.Option(
                metavar="LOW HIGH",
                help="The covariate's range: public knowledge. Needed, but for the one that --dataset is registered "
                "with.",
            ),
        ],
        None,
    ),
    parameter(
        "covariate_public",
        Annotated[
            bool, typer.Option("--covariate-public", help="Covariates are public; else they are protected, too.")
        ],
        False,
    ),
)
_PAIR = (
    parameter(
        "labels",
        Annotated[
            str | None,
            typer.Option(help="As in dpm k-sample-test, with --dataset; may be left out if it is a column."),
        ],
        None,
    ),
    parameter(
        "classes",
        Annotated[
            str | None, typer.Option(help="The two classes that --dataset is registered with, instead of two paths.")
        ],
        None,
    ),
    parameter(
        "other_array",
        Annotated[
            str | None,
            typer.Option("--other-array", help="Array inside the second .npz file.", rich_help_panel=options.ADVANCED),
        ],
        None,
    ),
    parameter(
        "other_dataset",
        Annotated[str | None, typer.Option(metavar="NAME", help="The second group's --dataset.")],
        None,
    ),
)
BESIDE: dict[type[Sample[Any]], Beside] = {
    Units: Beside(),
    Labelled: Beside(
        _classes, (*_LABELS, _LABELS_PUBLIC), refuse_classes, words="Labels are protected unless they are public."
    ),
    Groups: Beside(_classes, _LABELS, refuse_classes, words="Labels are public; nobody may be in two groups."),
    Pair: Beside(
        _pair, _PAIR, _refuse_no_pair, _first_of_pair,
        words="Nobody may be in both; --units is a column of both files.\n\nEach group has one PATH. Or both are in "
        "one data set that a ledger has registered with labels: --dataset and --classes say which.",
    ),
    WithCovariate: Beside(_with_covariate, _COVARIATE, _refuse_no_covariate),
}  # fmt: skip


# -------------------------------------------------------------------- commands


def summary(query: Query) -> str:
    """Return the first line of what the private call says of itself, without the page that proves it."""
    first = inspect.cleandoc(query.call.__doc__ or query.title).partition("\n")[0]
    return f"{first.partition(' (theory')[0].rstrip('.')}."


def command_of(
    query: Query,
    beside: Beside | None = None,
    extra: Sequence[inspect.Parameter] = (),
    after: Callable[[Any, Asked], Any] = lambda found, asked: found,
    words: str = "",
    without: Sequence[str] = (),
) -> Callable[..., None]:
    """Return the command of a query.

    Parameters
    ----------
    query : what is asked
    beside : what is said besides, if not what all queries of such a sample say
    extra : further options of the command
    after : makes another result of the private call's, given what was asked
    words : what help says of it, if not what the private call says
    without : shared options that it does not have
    """
    about = beside or next(BESIDE[kind] for kind in query.sample.__mro__ if kind in BESIDE)

    def release(asked: Asked) -> Any:
        before, own = about.given(asked)
        options = {option.name: option_value(option, asked.words[option.name]) for option in query.options}
        return after(query.call(*before, *asked.about[1:], **{**asked.terms, **own, **options}), asked)

    def refuse(words: Words, outputs: Outputs) -> None:
        about.refuse(words, outputs)
        for option in query.options:
            if option.kind == "shape":
                refuse_own_shape(words[option.name], words["path"])

    return private_command(
        release,
        [*about.parameters, *map(option_parameter, query.options), *extra],
        replace(about, refuse=refuse),
        query.views,
        query.name.replace("-", "_"),
        f"{words or summary(query)} {about.words}".rstrip(),
        without=without,
        by_class=query.result is dict,
    )


def known_queries() -> list[Query]:
    """Return all queries that commands can be made of: another distribution's may not be loaded, or take our words."""
    own = QUERIES.own()
    try:
        others = [query for query in QUERIES if query not in own]
    except InvalidArgumentError:  # which every command that asks for them by name says
        return own
    taken = set(inspect.signature(shared_signature).parameters) | _OF_PLANS
    ours = {option.name for query in own for option in query.options}
    return [
        *own,
        *(
            query
            for query in others
            if any(kind in BESIDE for kind in query.sample.__mro__)
            and not {option.name for option in query.options if option.name not in ours} & taken
        ),
    ]


# What `dpm plan` calls other things.
_OF_PLANS = {
    "units",
    "size",
    "statistic",
    "classes",
    "error",
    "everything",
    "labels_public",
    "covariate_public",
    "fill",
}
