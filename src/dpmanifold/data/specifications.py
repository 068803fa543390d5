"""From words to spaces, balls and classes, as commands, forms and selections say them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from dpmanifold._check import Array
from dpmanifold.ball import Ball
from dpmanifold.data.formats import load_array
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Message, Public
from dpmanifold.manifolds import Manifold, Product, space_from_text
from dpmanifold.manifolds.registry import spelled
from dpmanifold.release import Release
from dpmanifold.serialization import ball_from_dict, read_record

WHOLE_SPACE = "whole-space"
PRODUCT = "product:"  # and the name of its factors: a space for records that are stacks of so many points
EACH = "each-record"
_WHOLE = re.compile(r"-?[0-9]{1,15}")
_MOST_CLASSES = 10_000


def space_of(name: str, size: str | None, shape: tuple[int, ...] | None = None, numbers: str = "f") -> Manifold:
    """Return a space by name and size, or by its text in full; without a size, that of records of a shape.

    `numbers` is the letter of their dtype's kind.
    """
    if "(" in name:
        if size is not None:
            raise InvalidArgumentError("`space` {name} brings its size with it: leave out `size`.", name=name)
        return _in_full(name)
    if name.startswith(PRODUCT):
        return _stack(name, size, shape, numbers)
    kind, keywords = spelled(name)
    sizes = _sizes(size)
    if size is None and kind.example:  # a class without arguments has one space
        if shape is None:
            raise InvalidArgumentError(
                "`size` must be given: the dimension d, landmarks k or matrix size k; several as in 5,2."
            )
        sizes = kind.sizes_of(shape, numbers)
        if sizes is None:
            raise InvalidArgumentError(
                "`size` must be given: records of shape {shape} do not tell which {name} they are of. Or give the "
                "space in full, such as `space` {kind!r}.",
                shape=Public(shape),
                name=name,
                kind=Public(kind(*kind.example, **keywords)),
            )
    try:
        space = kind(*(sizes or ()), **keywords)
    except TypeError:
        wanted = len(kind.example)
        raise InvalidArgumentError(
            "`size` {size} does not fit {name}, which has {wanted} size{detail}: such as {kind!r}, which "
            "`space` also takes in full.",
            size=Public(size),
            name=name,
            wanted=Public(wanted),
            detail=Message("") if wanted == 1 else Message("s"),
            kind=Public(kind(*kind.example, **keywords)),
        ) from None
    if size is None and shape is not None:
        _refuse_stack(name, space, shape, numbers)
    return space


def _refuse_stack(name: str, guessed: Manifold, shape: tuple[int, ...], numbers: str) -> None:
    """Refuse records that are several points each, where the guessed space has another size than a single point."""
    if len(shape) < 2 or shape in [layout.shape for layout in guessed.layouts()]:
        return
    try:
        one = space_of(name, None, shape[1:], numbers)
    except (InvalidArgumentError, InvalidDataError):
        return
    if shape[1:] in one.record_shapes.values():
        raise InvalidDataError(
            "`space` {name}: each record holds {shape} points of {one!r}, shape {shape2}. `space` "
            "{product}{name} takes them together as one point and protects the person; or give one point per "
            "record, and in `units` the id of its person for each.",
            name=name,
            shape=Public(shape[0]),
            one=Public(one),
            shape2=Public(shape),
            product=Public(PRODUCT),
        )


def kind_of(name: str) -> type[Manifold]:
    """Return the class of a space by its name or its text in full."""
    if name.startswith(PRODUCT):
        return Product
    return type(_in_full(name)) if "(" in name else spelled(name)[0]


def _stack(name: str, size: str | None, shape: tuple[int, ...] | None, numbers: str) -> Product:
    """Return a product of equal spaces: how many is the first size, or the first axis of a record."""
    inner = name.removeprefix(PRODUCT)
    spelled(inner)
    if size is not None:
        count, _, rest = size.partition(",")
        if not (_WHOLE.fullmatch(count.strip()) and rest):
            raise InvalidArgumentError(
                "`size` of {name} is the number of factors and then theirs, as in 50,3.", name=name
            )
        return Product([space_of(inner, rest)] * int(count))
    if shape is None or len(shape) < 2:
        raise InvalidArgumentError(
            "`size` must be given for `space` {name}: the number of factors and then their size, as in 50,3.", name=name
        )
    return Product([space_of(inner, None, shape[1:], numbers)] * shape[0])


def _in_full(text: str) -> Manifold:
    try:
        return space_from_text(text)
    except InvalidDataError as problem:
        raise InvalidArgumentError("`space`: {problem}", problem=problem) from None


def _sizes(text: str | None) -> tuple[int, ...] | None:
    """Return the sizes of a space, such as 3, or 5,2 for a space with two."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(_WHOLE.fullmatch(part) for part in parts):
        raise InvalidArgumentError("`size` must be a whole number, or several as in 5,2; got {text!r}.", text=text)
    return tuple(int(part) for part in parts)


def ball_of(space: Manifold, radius: float | None, center: str | None, source: str, known: Ball | str | None) -> Ball:
    """Return the public ball: one that is known already, maybe from a file, or one about a centre."""
    if known is not None:
        if radius is not None or center is not None or source:
            raise InvalidArgumentError("`ball` brings centre, radius and source with it: leave out the others.")
        if known == WHOLE_SPACE:
            return Ball.whole(space)
        ball = read_ball(known) if isinstance(known, str) else known
        if ball.space != space:
            raise InvalidArgumentError(
                "`ball` holds a ball on {space!r}, and the records are on {space2!r}.",
                space=Public(ball.space),
                space2=Public(space),
            )
        return ball
    if radius is None:
        raise InvalidArgumentError(
            "`radius` is missing: how far records may lie from the center, from public knowledge. Or give "
            "`ball` FILE, such as one that dpm ball released, or for extrinsic means `ball` {whole_space}.",
            whole_space=Public(WHOLE_SPACE),
        )
    return Ball(space, center_of(space, center), radius, source)


def center_of(space: Manifold, text: str | None) -> Array:
    """Return a centre: coordinates, a number times the identity, or a file that holds one point.

    Without one it is the identity or zero; directions and shapes have no such point, and it must be said.
    """
    if text is None:
        center = space.natural_center
        if center is None:
            raise InvalidArgumentError(
                "`center` is missing: {space!r} has no natural middle. Give numbers such as 0,0,1, or a file with "
                "one point that may be shown (a template, an axis of the instrument).",
                space=Public(space),
            )
        return center
    try:
        numbers = np.array([float(part) for part in text.split(",")])
    except ValueError:
        numbers = np.asarray(load_array(text))
    try:
        return space.read_point(numbers)
    except InvalidDataError as problem:
        raise InvalidArgumentError(
            "`center` {text} is no point of {space!r}: {problem}", text=text, space=Public(space), problem=problem
        ) from None


def read_ball(path: str) -> Ball:
    """Return the ball a file holds: one released by `dpm ball`, or one written by `dpm ball --public`."""
    record = read_record(path)
    if isinstance(record, dict) and "space" in record and "center" in record:
        try:
            return ball_from_dict(record)
        except (KeyError, TypeError, ValueError, OverflowError) as problem:
            raise InvalidDataError(
                "{path} holds a damaged ball: {rstrip}.", path=path, rstrip=str(problem).rstrip(".")
            ) from problem
    release = Release.from_dict(record)
    if not isinstance(release.value, Ball):
        raise InvalidArgumentError(
            "`ball` {path} holds a {statistic}, not a ball.", path=path, statistic=Public(release.statistic)
        )
    return release.value


def class_words(text: str) -> list[str]:
    """Return a public list of classes as words: "a,b,c", or "0..9" for whole numbers. They become names of files."""
    first, dots, last = text.partition("..")
    if dots:
        if not (_WHOLE.fullmatch(first) and _WHOLE.fullmatch(last)) or int(last) - int(first) > _MOST_CLASSES:
            raise InvalidArgumentError(
                "`classes` {text}: expected a short range of whole numbers such as 0..9.", text=text
            )
        return [str(number) for number in range(int(first), int(last) + 1)]
    words = [part.strip() for part in text.split(",")]
    if any(not word or not word.isprintable() or word in (".", "..") or set(word) & set("/\\") for word in words):
        raise InvalidArgumentError(
            "`classes` {text}: a class must be a word without slashes, as it names a file.", text=text
        )
    return words


def classes_of(words: list[str]) -> list[Any]:
    """Return classes as they are listed: whole numbers if all of them are, else text.

    Labels, which may be private, have no say in it: they are compared one by one.
    """
    whole = all(_WHOLE.fullmatch(word) and str(int(word)) == word for word in words)
    return [int(word) for word in words] if whole else list(words)
