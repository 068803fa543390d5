"""The laws that every space obeys, as functions of a space: what the library's proofs take for granted.

A space states facts, and proofs combine them: a curvature with a volume, an end of geodesics with a law of noise, a
bound on rounding with a sensitivity. Facts that contradict each other break what a release promises, and nothing else
shows it. So a space of another distribution is looked at once, before the first ball on it is made; the library's own
are looked at by its tests. :func:`dpmanifold.testing.check_space` is this for people who write a space.

Laws look at seeded samples of a space: they find contradictions, and prove nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import numpy as np

from dpmanifold.errors import InvalidArgumentError, Public
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.laws.computation import (
    Reference,
    bits_do_not_depend_on_the_batch,
    embeddings_keep_their_bounds,
    exact_points_are_moved_as_points_are,
    rounding_bounds_hold,
)
from dpmanifold.manifolds.laws.geometry import (
    BrokenLawError,
    a_point_leaves_as_one_array,
    curvature_is_one_story,
    flat_spaces_are_their_coordinates,
    geodesics_stop_where_stated,
    moving_to_the_origin_is_undone,
    radial_facts_are_true,
    random_points_are_uniform,
    reflections_are_isometries,
    require,
    spheres_have_the_stated_area,
    translations_bend_squares_at_most_once,
)
from dpmanifold.registry import is_own

Law = Callable[[Manifold, np.random.Generator], None]


def text_and_back(space: Manifold, rng: np.random.Generator) -> None:
    """Read the space back from its text, as JSON does: it is the same one, and maps points to the same bits."""
    from dpmanifold.manifolds.registry import SPACES, space_from_text  # which registers spaces by these laws

    if not any(kind is type(space) for kind in SPACES):
        return
    again = space_from_text(repr(space))
    require(type(again) is type(space) and again == space, f"the text {space!r} is read as {again!r}")
    p, q = space.random_point(rng=np.random.default_rng(1)), space.random_point(8, rng=np.random.default_rng(2))
    for name in ("dist", "log_coords", "to_origin", "from_origin"):
        same = np.asarray(getattr(space, name)(p, q)).tobytes() == np.asarray(getattr(again, name)(p, q)).tobytes()
        require(same, f"read back from its text, {space!r} has another {name}: the text leaves something out")


LAWS: tuple[Law, ...] = (
    curvature_is_one_story,
    flat_spaces_are_their_coordinates,
    geodesics_stop_where_stated,
    radial_facts_are_true,
    spheres_have_the_stated_area,
    random_points_are_uniform,
    moving_to_the_origin_is_undone,
    reflections_are_isometries,
    translations_bend_squares_at_most_once,
    a_point_leaves_as_one_array,
    exact_points_are_moved_as_points_are,
    embeddings_keep_their_bounds,
    bits_do_not_depend_on_the_batch,
    rounding_bounds_hold,
    text_and_back,
)
"""What is looked at before the first ball on a space of another distribution is made."""


def what_is_wrong(law: Law, space: Manifold) -> str | None:
    """Return what a law finds wrong with a space, or None; whatever the space raises is wrong, too."""
    try:
        with np.errstate(all="ignore"):
            law(space, np.random.default_rng(0))
    except BrokenLawError as problem:
        return str(problem)
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
    return None


def words_of(law: Law) -> str:
    """Return a law's name as words.

    Examples
    --------
    >>> words_of(curvature_is_one_story)
    'curvature is one story'
    """
    return str(getattr(law, "__name__", law)).replace("_", " ")


# Dimensions beyond which matrices of them take longer than a first use may: the class's example stands for the space.
_LARGE = 150

_FOUND: dict[tuple[type[Manifold], str], str | None] = {}


def refuse_contradictions(space: Manifold) -> None:
    """Refuse a space of another distribution that breaks a law; each is looked at once in a process.

    Examples
    --------
    >>> from dpmanifold.manifolds import Sphere
    >>> refuse_contradictions(Sphere(2))
    """
    for factor in getattr(space, "factors", ()):
        refuse_contradictions(factor)
    if is_own(space):
        return
    key = type(space), repr(space)
    if key not in _FOUND:
        _FOUND[key] = _first_broken(space)
    if _FOUND[key] is not None:
        raise InvalidArgumentError(
            "{space!r} contradicts itself, and no release can be made on it. {found}. Repair the space: "
            "dpmanifold.testing.check_space lists what it breaks.",
            space=Public(space),
            found=Public(_FOUND[key]),
        )


def _first_broken(space: Manifold) -> str | None:
    """Return the first law that a space breaks, and how; None where all hold."""
    looked_at = [(law, space) for law in LAWS]
    if space.dim > _LARGE:
        looked_at = [(law, space) for law in LAWS if law is not curvature_is_one_story]
        with contextlib.suppress(Exception):  # a class without an example has no smaller space to show
            looked_at.insert(0, (curvature_is_one_story, type(space)(*type(space).example)))
    found = ((law, what_is_wrong(law, one)) for law, one in looked_at)
    return next((f"{words_of(law)}: {wrong}" for law, wrong in found if wrong is not None), None)


__all__ = ["LAWS", "Law", "Reference", "refuse_contradictions", "rounding_bounds_hold", "what_is_wrong", "words_of"]
