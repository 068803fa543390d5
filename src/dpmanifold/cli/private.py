"""The commands that release something about private records: each a thin shell over one `private_*` function.

What they print is a function of what they release: nothing else about the records reaches the terminal.
"""

from __future__ import annotations

import inspect
import os
import pathlib
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer

from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.arguments import class_words
from dpmanifold.cli.build import command_of, option_parameter, option_values
from dpmanifold.cli.command import (
    Asked,
    how_of,
    inputs_of,
    invalid_of,
    parameter,
    private_command,
    question_of,
    refuse_mechanism,
    shared_options,
    teller,
)
from dpmanifold.cli.engine import at_work
from dpmanifold.cli.failures import guarded, kept
from dpmanifold.cli.outputs import Outputs, check_targets, refuse_own_shape, refuse_stdout, save_array
from dpmanifold.cli.payer import paying, refuse_simulations, with_array
from dpmanifold.cli.question import Question, describe_images, image_question
from dpmanifold.cli.records import gathered, is_pattern, read
from dpmanifold.cli.speech import say, say_json
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.files import sync_folder
from dpmanifold.progress import quietly
from dpmanifold.records import ball_to_dict, write_record
from dpmanifold.release import Release
from dpmanifold.statistic import STATISTICS, Kind, statistic_named
from dpmanifold.stats import compare, private_ball, private_class_means, private_statistic
from dpmanifold.stats.ball import BALL_QUERY, COVERAGE
from dpmanifold.stats.means import CLASS_MEANS, MEAN_QUERY
from dpmanifold.stats.query import MECHANISM, REFINE


def _refuse_reveal(words: dict[str, Any]) -> None:
    if words["reveal"] and invalid_of(words) != "raise":
        raise InvalidArgumentError("--reveal compares with the records themselves: it goes with --invalid raise only.")


def _compared(release: Release, asked: Asked, mine: Mapping[str, Any]) -> Release:
    return revealed(release, asked.question) if mine["reveal"] else release


def revealed(release: Release, asked: Question) -> Release:
    """Compare a release with its data and mark it: from now on it is not private."""
    records, units = gathered(asked.given, asked.units)
    found = compare(release, records, units=units, public=True)
    details = {**release.details, "revealed_error": found.error, "revealed_clipped_share": found.clipped}
    return replace(release, private=False, details=details)


mean = command_of(MEAN_QUERY, [parameter("reveal", options.Reveal, False)], _refuse_reveal, _compared)


def _class_means(
    words: dict[str, Any],
    labels: str,
    classes: str,
    out: pathlib.Path,
    space: str | None,
    images: bool,
    eta: float,
    **chosen: Any,
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
    refuse_mechanism(chosen["mechanism"])
    refuse_simulations(words)
    listed = class_words(classes)
    targets = {f"--out, class {word}": target_of(out, word) for word in listed} if out.is_dir() else {}
    check_targets(targets, words["force"], inputs_of({**words, "labels": labels}))
    refuse_own_shape(chosen["shape"], words["path"])
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
            given = {**asked.terms, **option_values(CLASS_MEANS, chosen)}
            releases = private_class_means(records, question.labels, ball, privacy, classes=names, **given)
        write_classes(releases, out, words["as_json"], payer.remark)


_class_means.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        parameter("words", dict[str, Any]),
        parameter("labels", options.Labels),
        parameter("classes", options.Classes),
        parameter("out", Annotated[pathlib.Path, typer.Option(help="A folder: one JSON release per class.")]),
        parameter("space", Annotated[str | None, typer.Option(help="As in dpm mean; not with --images.")], None),
        parameter(
            "images",
            Annotated[bool, typer.Option("--images", help="The records are images: use their descriptors.")],
            False,
        ),
        parameter("eta", Annotated[float, typer.Option(help="Ridge of the descriptors.")], 1e-6),
        *map(option_parameter, CLASS_MEANS.options),
    ]
)
class_means = shared_options("npy", "picture", "html")(_class_means)


def _one_path(paths: Sequence[str]) -> str:
    """Return the one file or folder of images."""
    if len(paths) != 1 or is_pattern(paths[0]):
        raise InvalidArgumentError("--images takes one file or one folder. Give the folder that holds them.")
    return paths[0]


def write_classes(releases: Mapping[Any, Release], out: pathlib.Path, as_json: bool, remark: str) -> None:
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


def _refuse_statistic(words: dict[str, Any]) -> None:
    try:
        found = statistic_named(words["name"])
    except InvalidArgumentError:
        known = ", ".join(name.replace(" ", "-") for name in STATISTICS.names())
        raise InvalidArgumentError(f"there is no statistic {words['name']!r}. Give one of {known}.") from None
    if words["npy"] is not None and found.kind is Kind.BALL:
        raise InvalidArgumentError(f"--npy holds numbers, and a {found.name} is none. Leave it out.")


@private_command("npy", "picture", leading=("name",), refuse=_refuse_statistic)
def statistic(
    asked: Asked,
    name: Annotated[str, typer.Argument(help="The statistic: a name from dpm statistics.")],
    mechanism: Annotated[str, typer.Option(help=MECHANISM.help)] = "auto",
    refine: Annotated[bool, typer.Option("--refine", help=REFINE.help)] = False,
) -> Release:
    """Release any statistic by name: those of dpm statistics, others' included."""
    # Not every statistic knows of smaller balls: one that does not refuses to be asked for them.
    terms = {**asked.terms, **({"refine": True} if refine else {})}
    return private_statistic(*asked.about, statistic=name, mechanism=mechanism, **terms)


@shared_options("npy", "links", "ball")
def ball(
    words: dict[str, Any],
    units: options.MaybeUnits = None,
    coverage: Annotated[float, typer.Option(help=COVERAGE.help)] = 0.95,
    public: Annotated[bool, typer.Option("--public", help="The records are public: no promise, no noise.")] = False,
) -> None:
    """Release a small ball inside a large public one (its cost comes on top of what is made with it)."""
    out = words["out"]
    words = with_array(words)
    outputs = Outputs(out, None, words["picture"], words["html"], words["force"]).check(
        inputs_of({**words, "units": units})
    )
    curator = teller(words["notice"], words["quiet"], words["dataset"] is not None)
    if public:
        private = [words[name] for name in ("radius", "epsilon", "delta", "mu", "rho", "seed", "picture", "html")]
        if units is not None or any(value is not None for value in private):
            raise InvalidArgumentError(
                "--public needs no units, radius, promise or seed, and makes no picture or report: leave them out."
            )
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


OWN = {MEAN_QUERY.name: mean, CLASS_MEANS.name: class_means, BALL_QUERY.name: ball}
"""Commands that do more than their query."""
