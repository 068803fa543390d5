"""The commands that release something about private records: each a thin shell over one `private_*` function.

What they print is a function of what they release: nothing else about the records reaches the terminal.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.arguments import class_words, shape_of, shrink_of
from dpmanifold.cli.command import (
    Asked,
    how_of,
    inputs_of,
    invalid_of,
    private_command,
    question_of,
    refuse_mechanism,
    shared_options,
)
from dpmanifold.cli.engine import at_work
from dpmanifold.cli.failures import guarded, kept
from dpmanifold.cli.notice import teller
from dpmanifold.cli.outputs import Outputs, check_targets, refuse_own_shape, refuse_stdout, save_array
from dpmanifold.cli.payer import paying, refuse_simulations, with_array
from dpmanifold.cli.question import Question, describe_images, image_question
from dpmanifold.cli.records import gathered, is_pattern, read
from dpmanifold.cli.speech import say, say_json
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import sync_folder
from dpmanifold.inference import Interval, Region
from dpmanifold.progress import quietly
from dpmanifold.records import ball_to_dict, write_record
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Kind, statistic_named
from dpmanifold.stats import (
    compare,
    private_ball,
    private_interval,
    private_mean,
    private_means,
    private_region,
    private_statistic,
    private_variance,
)


def _refuse_reveal(words: dict[str, Any]) -> None:
    if words["reveal"] and invalid_of(words) != "raise":
        raise InvalidArgumentError("--reveal compares with the records themselves: it goes with --invalid raise only.")


@private_command("npy", "picture", "links", refuse=_refuse_reveal)
def mean(
    asked: Asked,
    estimand: options.Estimand = None,
    mechanism: options.Mechanism = "auto",
    refine: options.Refine = False,
    shape: options.Shape = None,
    shrink: options.Shrink = "auto",
    no_shrink: options.NoShrink = False,
    reveal: options.Reveal = False,
) -> Release:
    """Release a private mean: the Fréchet mean, or another by name."""
    refuse_own_shape(shape, asked.words["path"])
    release = private_mean(
        *asked.about, estimand=estimand, mechanism=mechanism, refine=refine, shape=shape_of(shape),
        shrink=shrink_of(shrink, no_shrink), **asked.terms,
    )  # fmt: skip
    return revealed(release, asked.question) if reveal else release


def revealed(release: Release, asked: Question) -> Release:
    """Compare a release with its data and mark it: from now on it is not private."""
    records, units = gathered(asked.given, asked.units)
    found = compare(release, records, units=units, public=True)
    details = {**release.details, "revealed error": found.error, "revealed share clipped": found.clipped}
    return replace(release, private=False, details=details)


@shared_options("npy", "picture", "html")
def means(
    words: dict[str, Any],
    labels: options.Labels,
    classes: options.Classes,
    out: Annotated[pathlib.Path, typer.Option(help="A folder: one JSON release per class.")],
    space: Annotated[str | None, typer.Option(help="As in dpm mean; not with --images.")] = None,
    images: Annotated[bool, typer.Option("--images", help="The records are images: use their descriptors.")] = False,
    eta: Annotated[float, typer.Option(help="Ridge of the descriptors.")] = 1e-6,
    estimand: options.Estimand = None,
    mechanism: options.Mechanism = "auto",
    refine: options.Refine = False,
    shape: options.Shape = None,
    shrink: options.Shrink = "auto",
    no_shrink: options.NoShrink = False,
) -> None:
    """Release one private mean per class. Labels, and who is in which class, are public."""
    words = with_array(words)
    if images and words["dataset"] is not None:
        raise InvalidArgumentError("--images makes descriptors of the data, and --dataset opens them later. Give one.")
    if images == (space is not None):
        raise InvalidArgumentError("give either --space, or --images for descriptors of images.")
    own_ball = [
        words[name] for name in ("radius", "size", "columns", "order", "coordinates", "mask", "center", "source")
    ]
    if images and own_ball != [*[None] * 7, ""]:
        raise InvalidArgumentError(
            "--images brings its own space and ball: leave out --radius, --size, --columns, --order, --coordinates, "
            "--mask, --center and --source, or give another ball with --ball."
        )
    refuse_stdout("--out", out)
    if out.exists() and not out.is_dir():
        raise InvalidArgumentError(f"--out {out} is a file. Give a folder.")
    if not out.parent.is_dir():
        raise InvalidArgumentError(f"--out {out}: the folder {out.parent} does not exist. Make it first.")
    refuse_mechanism(mechanism)
    refuse_simulations(words)
    listed = class_words(classes)
    targets = {f"--out, class {word}": target_of(out, word) for word in listed} if out.is_dir() else {}
    check_targets(targets, words["force"], inputs_of({**words, "labels": labels}))
    refuse_own_shape(shape, words["path"])
    curator = teller(words["notice"], words["quiet"], words["dataset"] is not None)
    with paying(words) as payer, at_work(words):
        if images:
            promise = (words["epsilon"], words["delta"], words["mu"], words["rho"])
            described = (_one_path(words["path"]), words["array"], eta, words["units"], words["ball"])
            question = image_question(*described, promise, words["quiet"], labels)
        else:
            question = question_of({**words, "space": space, "labels": labels}, curator, payer)
        asked = Asked(question, words, curator, payer)
        records, ball, privacy = asked.about
        with quietly(words["quiet"]):
            names = question.classes(listed)
            releases = private_means(
                records, question.labels, ball, privacy, classes=names, estimand=estimand, mechanism=mechanism,
                refine=refine, shape=shape_of(shape), shrink=shrink_of(shrink, no_shrink), **asked.terms,
            )  # fmt: skip
        _write_all(releases, out, words["as_json"], payer.remark)


def _one_path(paths: Sequence[str]) -> str:
    """Return the one file or folder of images."""
    if len(paths) != 1 or is_pattern(paths[0]):
        raise InvalidArgumentError("--images takes one file or one folder. Give the folder that holds them.")
    return paths[0]


def _write_all(releases: dict[Any, Release], out: pathlib.Path, as_json: bool, remark: str) -> None:
    """Write and print the releases of all classes."""
    record = {str(name): release.to_dict() for name, release in releases.items()}
    where = f"the {len(releases)} releases ARE written to {out}"
    with kept(lambda: write_releases(record, out), where, record, remark):
        if as_json:
            say_json(record)
            return
        lines = [in_a_line(*item) for item in releases.items()]
        say("\n".join([*lines, f"written {len(releases)} releases to {out}", *([remark] if remark else [])]))


def in_a_line(name: object, release: Release) -> str:
    """Return what a class's release says, in short."""
    mark = "" if release.private else " -- NOT PRIVATE"
    noise = "no error can be stated"
    if not release.ball.is_whole:
        noise = f"expected noise {release.noise_error():.4g}{release.caution}"
    return f"class {name}: {release.n:,} {release.unit}s, {release.privacy}, {noise}{mark}"


def target_of(folder: pathlib.Path, name: object) -> pathlib.Path:
    """Return the file of a class's release."""
    return folder / f"mean-{name}.json"


def write_releases(records: dict[str, Any], out: pathlib.Path) -> None:
    """Write one file per class: all into a folder beside, which is then moved over, so that no half of them stays."""
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as parts:
        for name, record in records.items():
            write_record(target_of(pathlib.Path(parts), name), record)
        out.mkdir(exist_ok=True)
        for name in records:
            os.replace(target_of(pathlib.Path(parts), name), target_of(out, name))
        for folder in (out, out.parent):
            sync_folder(folder)


@guarded
def descriptors(
    path: Annotated[str, typer.Argument(help="Images: idx, .npz (with --array), .npy, or a folder of PNG or JPEG.")],
    out: Annotated[pathlib.Path, typer.Option(help="The descriptors as .npy, (n, 9, 9) or (n, 11, 11).")],
    ball: Annotated[pathlib.Path | None, typer.Option(help="Write their public ball as JSON, for --ball.")] = None,
    array: options.ArrayOrKey = None,
    eta: Annotated[float, typer.Option(help="Ridge that is added to every covariance.")] = 1e-6,
    force: options.Force = False,
) -> None:
    """Turn images into covariance descriptors, one by one. NOT PRIVATE: the descriptors are data."""
    check_targets({"--out": out} | ({"--ball": ball} if ball is not None else {}), force, {"the data": path})
    found, public = describe_images(path, array, eta)
    save_array(found, out)
    if ball is not None:
        write_record(ball, ball_to_dict(public))
    say(
        f"{len(found):,} descriptors on {public.space!r} written to {out} (not private: they are data)\n"
        f"public ball: radius {public.radius:.3f}" + (f", written to {ball}" if ball else "")
    )


@private_command()
def variance(
    asked: Asked,
    about: Annotated[pathlib.Path | None, typer.Option(help="A released mean to take it about: costs less.")] = None,
) -> Release:
    """Release a private Fréchet variance."""
    return private_variance(*asked.about, about=None if about is None else Release.load(about), **asked.terms)


@private_command("npy", "picture", "links")
def region(
    asked: Asked,
    level: options.Level = 0.95,
    estimand: options.EstimandOfInference = None,
    refine: options.Refine = False,
) -> Region:
    """Release a mean with a confidence region for the population's."""
    return private_region(*asked.about, level=level, estimand=estimand, refine=refine, **asked.terms)


@private_command("picture")
def interval(asked: Asked, level: options.Level = 0.95, refine: options.Refine = False) -> Interval:
    """Release a Fréchet variance with a confidence interval for the population's."""
    return private_interval(*asked.about, level=level, refine=refine, **asked.terms)


def _refuse_statistic(words: dict[str, Any]) -> None:
    try:
        statistic = statistic_named(words["name"])
    except InvalidArgumentError:
        known = ", ".join(name.replace(" ", "-") for name in STATISTICS.names())
        raise InvalidArgumentError(f"there is no statistic {words['name']!r}. Give one of {known}.") from None
    if words["npy"] is not None and statistic.kind is Kind.BALL:
        raise InvalidArgumentError(f"--npy holds numbers, and a {statistic.name} is none. Leave it out.")


@private_command("npy", "picture", leading=("name",), refuse=_refuse_statistic)
def release(
    asked: Asked,
    name: Annotated[str, typer.Argument(help="The statistic: a name from dpm statistics.")],
    mechanism: options.Mechanism = "auto",
    refine: options.Refine = False,
) -> Release:
    """Release any statistic by name: those of dpm statistics, others' included."""
    # Not every statistic knows of smaller balls: one that does not refuses to be asked for them.
    terms = {**asked.terms, **({"refine": True} if refine else {})}
    return private_statistic(*asked.about, statistic=name, mechanism=mechanism, **terms)


@shared_options("npy", "picture", "html", "ball")
def ball(
    words: dict[str, Any],
    units: options.MaybeUnits = None,
    coverage: Annotated[float, typer.Option(help="Share of the units the new ball should hold.")] = 0.95,
    public: Annotated[bool, typer.Option("--public", help="The records are public: no promise, no noise.")] = False,
) -> None:
    """Release a small ball inside a large public one (its cost comes on top of what is made with it)."""
    out = words["out"]
    words = with_array(words)
    outputs = Outputs(out, force=words["force"]).check(inputs_of({**words, "units": units}))
    curator = teller(words["notice"], words["quiet"], words["dataset"] is not None)
    if public:
        private = [words[name] for name in ("radius", "epsilon", "delta", "mu", "rho", "seed")]
        if units is not None or any(value is not None for value in private):
            raise InvalidArgumentError("--public needs no units, radius, promise or seed: leave them out.")
        given = read(words["path"], words["space"], words["size"], how_of(words))
        found = Ball.from_public(given.space, gathered(given)[0], coverage)
        record = ball_to_dict(found)
        outputs.save(record)
        where = "" if outputs.to_stdout else f"\n  written      {out}"
        outputs.tell(record, words["as_json"], lambda: repr(found) + where)
        return
    if units is None:
        raise InvalidArgumentError("--units is missing: who owns each record (each-record, a column, a file).")
    words = {**words, "units": units}
    refuse_simulations(words)
    with paying(words) as payer, at_work(words):
        asked = Asked(question_of(words, curator, payer), words, curator, payer)
        with quietly(words["quiet"]):
            result = private_ball(*asked.about, coverage=coverage, **asked.terms)
        outputs.write(result, words["as_json"], payer.remark)
