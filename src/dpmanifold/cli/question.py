"""What is asked on the command line: records, ball, promise and units, read and checked."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from typing import Any

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.cli.arguments import ball_of, column_of, promise_of, records_of, units_of
from dpmanifold.cli.work import working
from dpmanifold.data.formats import loader_of
from dpmanifold.privacy import Promise

PromiseWords = tuple[float | None, float | None, float | None, float | None]


@dataclass(frozen=True)
class Question:
    """Records, ball, promise and units, as every private function takes them."""

    records: Array
    ball: Ball
    privacy: Promise
    units: Any
    labels: Any = None

    @staticmethod
    def read(
        path: str,
        key: str | None,
        columns: str | None,
        space: str,
        size: str | None,
        units: str,
        ball: tuple[float | None, str | None, str, str | None],
        promise: PromiseWords,
        normalize: bool = False,
        labels: str | None = None,
        **how: str | None,
    ) -> Question:
        """Read and check everything that was said on the command line; `how` is what else `records_of` takes.

        The file is opened once: ids that stand in it are read along with its records.
        """
        privacy = promise_of(*promise)
        file = data.open_file(path)
        for name in (units, labels):
            if name is not None:
                file.keep(name)
        records, where = records_of(file, space, size, columns, normalize, key=key, **how)
        n = len(records)
        which = None if labels is None else column_of(labels, file, n, "--labels")
        return Question(records, ball_of(where, *ball), privacy, units_of(units, file, n), which)


def image_question(
    path: str,
    key: str | None,
    eta: float,
    units: str,
    ball: str | None,
    promise: PromiseWords,
    quiet: bool = False,
    labels: str | None = None,
) -> Question:
    """Read images and turn them into descriptors, a block at a time."""
    privacy = promise_of(*promise)
    records, public = describe_images(path, key, eta, quiet)
    where = public if ball is None else ball_of(public.space, None, None, "", ball)
    # A folder, and the formats that hold nothing but images, have no columns.
    file = data.open_file(path) if loader_of(path) is not None and pathlib.Path(path).is_file() else None
    which = None if labels is None else column_of(labels, file, len(records), "--labels")
    return Question(records, where, privacy, units_of(units, file, len(records)), which)


def describe_images(path: str, key: str | None, eta: float, quiet: bool = False) -> tuple[Array, Ball]:
    """Return the descriptors of a file of images, and the public ball that holds them whatever they show."""
    pictures = data.load_images(path, key=key)
    with working("descriptors", len(pictures), quiet) as advance:
        records = data.descriptors_in_blocks(pictures, eta, progress=advance)
    channels = "gray" if records.shape[-1] == 9 else "rgb"
    return records, data.descriptor_ball(channels, eta, image_size=tuple(pictures.shape[1:3]))
