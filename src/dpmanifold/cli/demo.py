"""A tour on public data: scikit-learn's digits, from images to private class means, a region and a report."""

from __future__ import annotations

import pathlib
from typing import Annotated

import numpy as np
import typer

from dpmanifold import data
from dpmanifold._check import Array, optional_module
from dpmanifold.cli import options
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.outputs import refuse_stdout, require_plots, save_figure, save_picture, save_report
from dpmanifold.cli.speech import say, say_table, working
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.linalg import logm
from dpmanifold.privacy import GDP, Budget, in_plain_words
from dpmanifold.release import Release
from dpmanifold.stats import EACH_RECORD, compare, plan_mean, private_class_means, private_region, verify

# A larger ridge than the usual 1e-6 gives a smaller ball, and for digits nothing worth keeping is below it.
_ETA = 1e-3
# 1^2 + 0.75^2 = 1.25^2, of floats as well: together they are the promise.
_TOTAL, _MEANS, _REGION = GDP(1.25), GDP(1.0), GDP(0.75)


@guarded
def demo(
    out: Annotated[pathlib.Path, typer.Option(help="Folder for the releases, pictures and the report.")] = pathlib.Path(
        "dpm-demo"
    ),
    force: options.Force = False,
) -> None:
    """Take a tour: private means of scikit-learn's 1,797 digit images. They are public, so errors may be shown."""
    refuse_stdout("--out", out)
    require_plots()
    from dpmanifold import plots

    images, labels = _digits()
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not force)):
        raise InvalidArgumentError(f"--out {out} exists. Give a new folder, or --force to overwrite what is there.")
    out.mkdir(parents=True, exist_ok=True)

    _part("1. data: images become covariance matrices")
    with working("descriptors", len(images)) as advance:
        records = data.descriptors_in_blocks(images, _ETA, progress=advance)
    ball = data.descriptor_ball("gray", _ETA, image_size=(8, 8))
    say(
        f"{len(records):,} images of handwritten digits, each a point of {ball.space!r}. Whatever an image shows, its "
        f"point lies in a ball of radius {ball.radius:.2f}: that is public."
    )

    _part("2. plan: what to expect, before any data is touched")
    people = int(np.bincount(labels).min())
    plan = plan_mean(people, ball, _MEANS)
    say_table(plan.table())
    say(plan.verdict)
    save_picture(plan, out / "plan.png")

    _part("3. release: one mean per digit, each in a smaller ball found privately")
    budget = Budget(_TOTAL)
    classes = list(range(10))
    means = private_class_means(
        records, labels, ball, _MEANS, units=EACH_RECORD, classes=classes, refine=True, budget=budget
    )
    for digit, release in means.items():
        release.save(out / f"mean-{digit}.json")
    save_picture(means[0], out / "mean-0.png")
    errors = [compare(means[c], records[labels == c], units=EACH_RECORD, public=True).error for c in classes]
    forecast = float(np.mean([release.noise_error() for release in means.values()]))
    say(
        f"Balls shrank to a radius of {np.mean([r.ball.radius for r in means.values()]):.2f}. "
        f"Expected noise {forecast:.3f}; true error, which only public data may show, {np.mean(errors):.3f} on average."
    )
    private, plain = _recognised(means, records, labels)
    say(f"The nearest private mean recognises {private:.0%} of the images; without privacy it is {plain:.0%}.")

    _part("4. a confidence region for the mean of all digits")
    region = private_region(records, ball, _REGION, units=EACH_RECORD, budget=budget)
    region.save(out / "region.json")
    save_figure(plots.tangent(region), out / "region.png")
    say(repr(region).replace(repr(region.ball), "as above"))

    _part("5. check: recomputed from what the releases state")
    good = all(verify(release).ok for release in means.values()) and verify(region).ok
    say("All eleven releases are consistent." if good else "A RELEASE IS NOT CONSISTENT.")
    save_report(region, out / "region.html")
    say(f"Written to {out}: releases (.json), pictures (.png) and a report, region.html.\n")
    say(f"Promised: {_TOTAL}. {in_plain_words(_TOTAL)}")
    say(f"Cost: the whole budget of {_TOTAL}: {_MEANS} for the ten means, {_REGION} for the region.")
    say(
        f"Off by: {np.mean(errors):.2f} on average per digit, where digits lie {_apart(means):.2f} apart "
        "(shown because these images are public)."
    )


def _part(title: str) -> None:
    """Print a heading."""
    say(f"\n--- {title}")


def _digits() -> tuple[Array, Array]:
    digits = optional_module("sklearn.datasets", "demo", "the demo").load_digits()
    return digits.images / 16.0, digits.target


def _recognised(means: dict[int, Release], records: Array, labels: Array) -> tuple[float, float]:
    """Return how many images are nearest to their own private mean, and to their own true mean. NOT PRIVATE."""
    logs = logm(records).reshape(len(records), -1)
    private = np.stack([logm(means[c].value).ravel() for c in means])
    plain = np.stack([logs[labels == c].mean(axis=0) for c in means])
    right = [
        float((np.linalg.norm(logs[:, None] - centers, axis=2).argmin(axis=1) == labels).mean())
        for centers in (private, plain)
    ]
    return right[0], right[1]


def _apart(means: dict[int, Release]) -> float:
    """Return the mean distance between two released means."""
    space = next(iter(means.values())).ball.space
    points = np.stack([release.value for release in means.values()])
    distances = space.dist(points[:, None], points[None])
    return float(distances.sum() / (len(points) * (len(points) - 1)))
