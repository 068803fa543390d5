"""The command that compares two groups: a thin shell over `private_test`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpmanifold.cli import options
from dpmanifold.cli.arguments import class_words, refuse_classes
from dpmanifold.cli.command import Asked, private_command
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import TwoSampleTest
from dpmanifold.stats import private_test


def _by_class(words: dict[str, Any]) -> bool:
    """Return whether both groups are classes of one registered data set."""
    return words["classes"] is not None


def _first(words: dict[str, Any]) -> list[str]:
    """Return the paths of one data set, or the first of two groups'."""
    return list(words["path"] if _by_class(words) else words["path"][:1])


def _refuse(words: dict[str, Any]) -> None:
    """Refuse neither two groups nor one data set with two classes."""
    if _by_class(words):
        refuse_classes(words)
        if words["dataset"] is None or words["other_dataset"] is not None:
            raise InvalidArgumentError(
                "--classes are those of one data set that is registered with --labels: give --dataset, and no "
                "--other-dataset. dpm groups compares the classes of data that are not registered."
            )
        return
    if words["labels"] is not None:
        raise InvalidArgumentError("--labels goes with --classes, the two classes that --dataset is registered with.")
    if len(words["path"]) != 2:
        many = len(words["path"])
        raise InvalidArgumentError(
            f"dpm test takes two groups, and got {many} {'path' if many == 1 else 'paths'}: where each group has "
            "several files, give its folder, or its pattern in quotes: dpm test 'a/*.parquet' 'b/*.parquet'. For two "
            "classes of one registered data set give --dataset and --classes."
        )


@private_command("picture", refuse=_refuse, first=_first)
def two_sample(
    asked: Asked,
    labels: Annotated[
        str | None, typer.Option(help="As in dpm groups, with --dataset; may be left out if it is a column.")
    ] = None,
    classes: Annotated[
        str | None, typer.Option(help="The two classes that --dataset is registered with, instead of two paths: a,b.")
    ] = None,
    level: options.Level = 0.95,
    estimand: options.EstimandOfInference = None,
    refine: options.Refine = False,
    other_array: Annotated[
        str | None, typer.Option("--other-array", "--other-key", help="Array inside the second .npz file.")
    ] = None,
    other_dataset: Annotated[str | None, typer.Option(metavar="NAME", help="The second group's --dataset.")] = None,
) -> TwoSampleTest:
    """Test whether two groups have the same mean. Nobody may be in both; --units is a column of both files.

    Each group has one PATH. Or both are in one data set that a ledger has registered with labels: --dataset and
    --classes say which.
    """
    records, ball, privacy = asked.about
    how: dict[str, Any] = {"level": level, "estimand": estimand, "refine": refine}
    if classes is not None:
        names = asked.question.classes(class_words(classes))
        return private_test(records, None, ball, privacy, classes=names, **how, **asked.terms)
    second = asked.second_group(asked.words["path"][1], other_array, other_dataset)
    alike = asked.each_record or asked.words["dataset"] is not None
    terms = asked.terms if alike else {**asked.terms, "units": (asked.question.units, second.units)}
    return private_test(records, second.records, ball, privacy, **how, **terms)
