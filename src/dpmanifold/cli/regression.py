"""The command for geodesic regressions."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dpmanifold.cli import options
from dpmanifold.cli.command import Asked, private_command
from dpmanifold.inference import Regression
from dpmanifold.stats import private_regression
from dpmanifold.stats.registered import Registered


@private_command("npy", "picture")
def regression(
    asked: Asked,
    covariate: Annotated[
        str, typer.Option(help="One number per record: a column or key of the data, FILE, FILE:COLUMN.")
    ],
    covariate_range: Annotated[
        tuple[float, float], typer.Option(metavar="LOW HIGH", help="The covariate's range: public knowledge.")
    ],
    covariate_public: Annotated[
        bool, typer.Option("--covariate-public", help="Covariates are public; else they are protected, too.")
    ] = False,
    level: options.Level = 0.95,
    refine: Annotated[
        bool, typer.Option("--refine/--no-refine", help="First a coarse curve and a radius, at 30 % of the promise.")
    ] = True,
) -> Regression:
    """Release how the mean moves along a geodesic as a covariate changes, with bands and a test of slope."""
    records, ball, privacy = asked.about
    values: Any = asked.question.labels
    if values is None:
        values = covariate if isinstance(records, Registered) else asked.question.given.column(covariate, "--covariate")
    return private_regression(
        records, values, ball, privacy, covariate_range=covariate_range,
        covariate_public=covariate_public, level=level, refine=refine, **asked.terms,
    )  # fmt: skip
