"""What is asked on the command line: records, ball, promise and units, read and checked."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpmanifold import data
from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.cli.arguments import ball_of, classes_of, promise_of
from dpmanifold.cli.records import Given, How, read
from dpmanifold.cli.speech import working
from dpmanifold.data.formats import loader_of
from dpmanifold.privacy import Promise
from dpmanifold.sources import Source
from dpmanifold.stats.registered import Registered
from dpmanifold.stats.requests import names_in

PromiseWords = tuple[str | None, str | None, str | None, str | None]


@dataclass(frozen=True)
class Question:
    """Records, ball, promise and units, as every private function takes them."""

    given: Given
    ball: Ball
    privacy: Promise
    units: Any
    labels: Any = None

    @property
    def records(self) -> Array | Source | Registered:
        """What every private function takes first."""
        return self.given.records

    def classes(self, listed: list[str]) -> list[Any]:
        """Return the classes that were listed; of registered data as they are registered."""
        if isinstance(self.records, Registered) and "classes" in self.records.facts:
            known = {str(name): name for name in names_in(self.records.facts["classes"])}
            return [known.get(word, word) for word in listed]
        return classes_of(listed)

    @staticmethod
    def read(
        paths: Sequence[str],
        space: str,
        size: str | None,
        units: str,
        ball: tuple[float | None, str | None, str, str | None],
        promise: PromiseWords,
        how: How,
        labels: str | None = None,
        tell: Callable[[str], object] | None = None,
    ) -> Question:
        """Check everything that was said on the command line, and read what cannot be streamed.

        Files are opened once: ids that stand in them are read along with the records.
        """
        privacy = promise_of(*promise)
        given = read(paths, space, size, how, (units, labels), tell)
        which = None if labels is None else given.column(labels, "--labels")
        return Question(given, ball_of(given.space, *ball), privacy, given.units(units), which)


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
    given = Given(records, public.space, () if file is None else file.names, file)
    which = None if labels is None else given.column(labels, "--labels")
    return Question(given, where, privacy, given.units(units), which)


def describe_images(path: str, key: str | None, eta: float, quiet: bool = False) -> tuple[Array, Ball]:
    """Return the descriptors of a file of images, and the public ball that holds them whatever they show."""
    pictures = data.load_images(path, key=key)
    with working("descriptors", len(pictures), quiet) as advance:
        records = data.descriptors_in_blocks(pictures, eta, progress=advance)
    channels = "gray" if records.shape[-1] == 9 else "rgb"
    return records, data.descriptor_ball(channels, eta, image_size=tuple(pictures.shape[1:3]))
