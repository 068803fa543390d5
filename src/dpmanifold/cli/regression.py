"""The command for geodesic regressions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpmanifold.cli import options
from dpmanifold.cli.command import Asked, private_command
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.inference import Regression
from dpmanifold.stats import private_regression
from dpmanifold.stats.registered import Registered


def _refuse_missing(words: dict[str, Any]) -> None:
    """Refuse a question without its covariate, which registered data alone know by themselves."""
    for name in ("covariate", "covariate_range"):
        if words["dataset"] is None and words[name] is None:
            raise InvalidArgumentError(
                f"--{name.replace('_', '-')} is missing. Data that are registered with it know it."
            )


@private_command("npy", "picture", refuse=_refuse_missing)
def regression(
    asked: Asked,
    covariate: Annotated[
        str | None,
        typer.Option(
            help="One number per record: a column or key of the data, FILE, FILE:COLUMN. Needed, but for a column that "
            "--dataset is registered with."
        ),
    ] = None,
    covariate_range: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LOW HIGH",
            help="The covariate's range: public knowledge. Needed, but for the one that --dataset is registered with.",
        ),
    ] = None,
    covariate_public: Annotated[
        bool, typer.Option("--covariate-public", help="Covariates are public; else they are protected, too.")
    ] = False,
    level: options.Level = 0.95,
    refine: Annotated[
        bool,
        typer.Option(
            "--refine",
            help="First a coarse curve and a radius, at 30 % of the promise: less noise; bands and test can be far off "
            "where residuals are skewed or spread unevenly.",
        ),
    ] = False,
) -> Regression:
    """Release how the mean moves along a geodesic as a covariate changes, with bands and a test of slope."""
    records, ball, privacy = asked.about
    values: Any = None
    if not isinstance(records, Registered):
        values = asked.question.labels
        values = asked.question.given.column(str(covariate), "--covariate") if values is None else values
    return private_regression(
        records, values, ball, privacy, covariate_range=covariate_range,
        covariate_public=covariate_public, level=level, refine=refine, **asked.terms,
    )  # fmt: skip
