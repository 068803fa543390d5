"""What is asked on the command line: records, ball, promise and units, read and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.cli.arguments import ball_of, promise_of, records_of, units_of
from dpmanifold.cli.work import working
from dpmanifold.privacy import Promise

PromiseWords = tuple[float | None, float | None, float | None, float | None]


@dataclass(frozen=True)
class Question:
    """Records, ball, promise and units, as every private function takes them."""

    records: Array
    ball: Ball
    privacy: Promise
    units: Any

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
        **how: str | None,
    ) -> Question:
        """Read and check everything that was said on the command line; `how` is what else `records_of` takes."""
        privacy = promise_of(*promise)
        records, where = records_of(path, key, columns, space, size, normalize, **how)
        return Question(records, ball_of(where, *ball), privacy, units_of(units, path, len(records)))


def image_question(
    path: str, key: str | None, eta: float, units: str, ball: str | None, promise: PromiseWords, quiet: bool = False
) -> Question:
    """Read images and turn them into descriptors, a block at a time."""
    privacy = promise_of(*promise)
    records, public = describe_images(path, key, eta, quiet)
    where = public if ball is None else ball_of(public.space, None, None, "", ball)
    return Question(records, where, privacy, units_of(units, path, len(records)))


def describe_images(path: str, key: str | None, eta: float, quiet: bool = False) -> tuple[Array, Ball]:
    """Return the descriptors of a file of images, and the public ball that holds them whatever they show."""
    pictures = data.load_images(path, key=key)
    with working("descriptors", len(pictures), quiet) as advance:
        records = data.descriptors_in_blocks(pictures, eta, progress=advance)
    channels = "gray" if records.shape[-1] == 9 else "rgb"
    return records, data.descriptor_ball(channels, eta, image_size=tuple(pictures.shape[1:3]))
