"""The commands that release something about private records: each a thin shell over one `private_*` function.

What they print is a function of what they release: nothing else about the records reaches the terminal.
"""

from __future__ import annotations

import pathlib
from dataclasses import replace
from typing import Annotated, Any, cast

import typer

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.cli import options
from dpmanifold.cli.build import BESIDE, command_of
from dpmanifold.cli.command import (
    Asked,
    Beside,
    Question,
    Teller,
    Words,
    inputs_of,
    invalid_of,
    parameter,
    private_command,
    question_of,
    selection_of,
)
from dpmanifold.cli.failures import guarded
from dpmanifold.cli.options import promise_of, refuse_classes
from dpmanifold.cli.outputs import Outputs, check_targets, save_array
from dpmanifold.cli.payer import Payer
from dpmanifold.cli.speech import say, working
from dpmanifold.data.formats import loader_of
from dpmanifold.data.selected import Selected, is_pattern
from dpmanifold.data.specifications import class_words
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.release import Release
from dpmanifold.serialization import ball_to_dict, write_record
from dpmanifold.statistic import STATISTICS, Kind, statistic_named
from dpmanifold.stats import compare, private_statistic
from dpmanifold.stats.ball_estimation import BALL_QUERY
from dpmanifold.stats.means import CLASS_MEANS, MEAN_QUERY
from dpmanifold.stats.query import REFINE
from dpmanifold.stats.samples import Groups


def _refuse_reveal(words: Words, outputs: Outputs) -> None:
    if words["reveal"] and invalid_of(words) != "raise":
        raise InvalidArgumentError("--reveal compares with the records themselves: it goes with --invalid raise only.")


def _revealed(release: Release, asked: Asked) -> Release:
    """Compare a release with its data and mark it, where that was asked for: from now on it is not private."""
    if not asked.words["reveal"]:
        return release
    given = cast(Selected, asked.question.given).gathered()
    found = compare(release, given.records, units=given.units, public=True)
    details = {**release.details, "revealed_error": found.error, "revealed_clipped_share": found.clipped}
    return replace(release, private=False, details=details)


mean = command_of(
    MEAN_QUERY, Beside(refuse=_refuse_reveal), [parameter("reveal", options.Reveal, False)], after=_revealed
)


# -------------------------------------------------------------------- means by class


def _refuse_class_means(words: Words, outputs: Any) -> None:
    if words["images"] and words["dataset"] is not None:
        raise InvalidArgumentError("--images makes descriptors of the data, and --dataset opens them later. Give one.")
    if words["dataset"] is None and words["images"] == (words["space"] is not None):
        raise InvalidArgumentError("give either --space, or --images for descriptors of images.")
    others = ("space", "array", "units", "labels", "classes", "normalize", "ball", "invalid")
    if words["images"] and selection_of(words).says_more_than(*others):
        raise InvalidArgumentError(
            "--images brings its own space and ball: leave out --radius, --size, --columns, --order, --coordinates, "
            "--mask, --center and --source, or give another ball with --ball."
        )
    refuse_classes(words)
    outputs.check_classes(class_words(words["classes"]), inputs_of(words))


def _question_of_images(words: Words, tell: Teller | None, payer: Payer) -> Question:
    """Read images and turn them into descriptors, a block at a time; or other records."""
    if not words["images"]:
        return question_of(words, tell, payer)
    path = words["path"][0]
    if len(words["path"]) != 1 or is_pattern(path):
        raise InvalidArgumentError("--images takes one file or one folder. Give the folder that holds them.")
    privacy = promise_of(words["epsilon"], words["delta"], words["mu"], words["rho"])
    chosen = selection_of(words)
    chosen.refuse_no_units()
    records, public = _describe_images(path, words["array"], words["eta"], words["quiet"])
    # A folder, and the formats that hold nothing but images, have no columns.
    file = data.open_file(path) if loader_of(path) is not None and pathlib.Path(path).is_file() else None
    given = Selected(records=records, space=public.space, names=() if file is None else file.names, file=file)
    ball = public if chosen.ball is None else chosen.ball_on(public.space)
    return Question(given.beside(chosen.units, chosen.labels), ball, privacy)


def _describe_images(path: str, key: str | None, eta: float, quiet: bool = False) -> tuple[Array, Ball]:
    """Return the descriptors of a file of images, and the public ball that holds them whatever they show."""
    pictures = data.load_images(path, key=key)
    with working("descriptors", len(pictures), quiet) as advance:
        records = data.descriptors_in_blocks(pictures, eta, progress=advance)
    channels = "gray" if records.shape[-1] == 9 else "rgb"
    return records, data.descriptor_ball(channels, eta, image_size=tuple(pictures.shape[1:3]))


_OF_CLASS_MEANS = replace(
    BESIDE[Groups],
    parameters=(
        *BESIDE[Groups].parameters,
        parameter("out", Annotated[pathlib.Path, typer.Option(help="A folder: one JSON release per class.")]),
        parameter("space", Annotated[str | None, typer.Option(help="As in dpm mean; not with --images.")], None),
        parameter(
            "images",
            Annotated[bool, typer.Option("--images", help="The records are images: use their descriptors.")],
            False,
        ),
        parameter("eta", Annotated[float, typer.Option(help="Ridge of the descriptors.")], 1e-6),
    ),
    refuse=_refuse_class_means,
    question=_question_of_images,
    words="Labels, and who is in which class, are public.",
)
class_means = command_of(CLASS_MEANS, _OF_CLASS_MEANS, words="Release one private mean per class.", without=("html",))


@guarded
def descriptors(
    path: Annotated[str, typer.Argument(help="Images: idx, .npz (with --array), .npy, or a folder of PNG or JPEG.")],
    out: Annotated[pathlib.Path, typer.Option(help="The descriptors as .npy, (n, 9, 9) or (n, 11, 11).")],
    ball: Annotated[pathlib.Path | None, typer.Option(help="Write their public ball as JSON, for --ball.")] = None,
    array: options.Array = None,
    eta: Annotated[float, typer.Option(help="Ridge that is added to every covariance.")] = 1e-6,
    force: options.Force = False,
) -> None:
    """Turn images into covariance descriptors, one by one. NOT PRIVATE: the descriptors are data."""
    check_targets({"--out": out} | ({"--ball": ball} if ball is not None else {}), force, {"the data": path})
    found, public = _describe_images(path, array, eta)
    save_array(found, out)
    if ball is not None:
        write_record(ball, ball_to_dict(public))
    say(
        f"{len(found):,} descriptors on {public.space!r} written to {out} (not private: they are data)\n"
        f"public ball: radius {public.radius:.3f}" + (f", written to {ball}" if ball else "")
    )


def _refuse_statistic(words: Words, outputs: Outputs) -> None:
    try:
        found = statistic_named(words["name"])
    except InvalidArgumentError:
        known = ", ".join(name.replace(" ", "-") for name in STATISTICS.names())
        raise InvalidArgumentError(f"there is no statistic {words['name']!r}. Give one of {known}.") from None
    if words["npy"] is not None and found.kind is Kind.BALL:
        raise InvalidArgumentError(f"--npy holds numbers, and a {found.name} is none. Leave it out.")


def _statistic(asked: Asked) -> Release:
    # Not every statistic knows of smaller balls: one that does not refuses to be asked for them.
    terms = {**asked.terms, **({"refine": True} if asked.words["refine"] else {})}
    return private_statistic(*asked.about, statistic=asked.words["name"], mechanism=asked.words["mechanism"], **terms)


statistic = private_command(
    _statistic,
    [
        parameter("name", Annotated[str, typer.Argument(help="The statistic: a name from dpm statistics.")]),
        parameter("mechanism", options.Mechanism, "auto"),
        parameter("refine", Annotated[bool, typer.Option("--refine", help=REFINE.help)], False),
    ],
    Beside(refuse=_refuse_statistic),
    ("npy", "picture"),
    "statistic",
    "Release any statistic by name: those of dpm statistics, others' included.",
    leading=("name",),
)


def _public_ball(words: Words, outputs: Outputs) -> bool:
    """Write the ball of public records, where it is asked for."""
    if not words["public"]:
        return False
    private = ("units", "radius", "epsilon", "delta", "mu", "rho", "seed", "picture", "html")
    if any(words[name] is not None for name in private):
        raise InvalidArgumentError(
            "--public needs no units, radius, promise or seed, and makes no picture or report: leave them out."
        )
    given = selection_of(words).open()
    found = Ball.from_public(given.space, given.gathered().records, words["coverage"])
    record = ball_to_dict(found)
    outputs.save(record)
    where = "" if outputs.to_stdout else f"\n  written      {words['out']}"
    outputs.tell(record, words["as_json"], lambda: repr(found) + where)
    return True


ball = command_of(
    BALL_QUERY,
    Beside(instead=_public_ball),
    [
        parameter(
            "public",
            Annotated[bool, typer.Option("--public", help="The records are public: no promise, no noise.")],
            False,
        )
    ],
    words="Release a small ball inside a large public one (its cost comes on top of what is made with it).",
    without=("ball",),
)

OWN = {MEAN_QUERY.name: mean, CLASS_MEANS.name: class_means, BALL_QUERY.name: ball}
"""Commands that do more than their query."""
