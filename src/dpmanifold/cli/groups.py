"""The command that compares several groups: a thin shell over `private_groups`."""

from __future__ import annotations

from dpmanifold.cli import options
from dpmanifold.cli.arguments import class_words, refuse_classes
from dpmanifold.cli.command import Asked, private_command
from dpmanifold.inference import GroupsTest
from dpmanifold.stats import private_groups


@private_command("picture", refuse=refuse_classes)
def groups(
    asked: Asked,
    labels: options.Labels,
    classes: options.Classes,
    level: options.Level = 0.95,
    estimand: options.EstimandOfInference = None,
    refine: options.Refine = False,
) -> GroupsTest:
    """Test whether several groups have the same mean, and which differ. Labels are public; nobody may be in two."""
    records, ball, privacy = asked.about
    names = asked.question.classes(class_words(classes))
    return private_groups(
        records, asked.question.labels, ball, privacy, classes=names, level=level, estimand=estimand, refine=refine,
        **asked.terms,
    )  # fmt: skip
