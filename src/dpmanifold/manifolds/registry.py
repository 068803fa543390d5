"""The spaces by name: what JSON calls them, and how the command line spells them.

A space is registered under the name of its class, by its class below, by `SPACES.register` in a script, or by an entry
point `dpmanifold.spaces` of another distribution. Its text is `repr(space)`: the name and the arguments. It is read
back by name and literal arguments alone; nothing is evaluated.
"""

from __future__ import annotations

import ast
import contextlib
import itertools
from typing import Any

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, Public
from dpmanifold.manifolds.base import Manifold
from dpmanifold.manifolds.euclidean import Euclidean
from dpmanifold.manifolds.hyperbolic import Hyperbolic
from dpmanifold.manifolds.kendall import KendallShapes
from dpmanifold.manifolds.laws import refuse_contradictions
from dpmanifold.manifolds.product import Product
from dpmanifold.manifolds.spd import SPD
from dpmanifold.manifolds.sphere import Sphere
from dpmanifold.registry import Registry

# A text that names a larger space is not one of ours: the square of its whole numbers' sum says about how many entries
# a point has. Those of a space with parts add up.
_LARGEST_SPACE = 2_000
_MOST_PARTS = 10_000
_LONGEST_TEXT, _LONGEST_SHOWN = 400_000, 200


class _Spaces(Registry[type[Manifold]]):
    """Looks at a space of a script when it is registered; those of entry points are looked at when they are used."""

    def register(self, name: str, item: type[Manifold]) -> type[Manifold]:
        """Add a class, or refuse one whose example contradicts itself."""
        known = name in self._items
        super().register(name, item)
        try:
            example = item(*item.example)
        except Exception:
            return item  # without one, its spaces are looked at when a ball is made
        try:
            refuse_contradictions(example)
        except InvalidArgumentError:
            if not known:
                del self._items[name]
            raise
        return item


SPACES = _Spaces("space", "dpmanifold.spaces")
"""All classes of spaces by name, those of other distributions last."""

for _space in (Euclidean, Sphere, Hyperbolic, KendallShapes, SPD, Product):
    SPACES.register(_space.__name__, _space)


def space_from_text(text: Any) -> Manifold:
    """Rebuild a space from its repr, by its name and literal arguments alone: nothing is evaluated.

    An argument is a number, a text, a tuple or list of arguments, or a space again. Lists may be written as sums and
    multiples, as in [SPD(3)] * 50.

    Parameters
    ----------
    text : what `repr(space)` wrote

    Raises
    ------
    InvalidDataError : it is not the text of a registered space, or of one too large for a release

    Examples
    --------
    >>> space_from_text('SPD(3, metric="riemann")')
    SPD(3, metric="riemann")
    >>> space_from_text("Product([SPD(3)] * 50)").dim
    300
    """
    call = None
    with contextlib.suppress(SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        usable = isinstance(text, str) and len(text) <= _LONGEST_TEXT and text == text.strip()
        call = ast.parse(text, mode="eval").body if usable else None
    if not isinstance(call, ast.Call):
        raise _no_space(text)
    try:
        if _entries(call) > _LARGEST_SPACE**2:
            raise InvalidDataError("not a space: {cut!r} is larger than a release can hold.", cut=_cut(text))
        return _built(call, text)
    except RecursionError:
        raise _no_space(text) from None


def _built(call: ast.Call, text: str) -> Manifold:
    """Return the space that a call in the text names."""
    if not isinstance(call.func, ast.Name):
        raise _no_space(text)
    name = call.func.id
    # By the class where a distribution offers it under another name: a text has the name of the class.
    kind = SPACES.find(name) or next((kind for kind in SPACES if kind.__name__ == name), None)
    if kind is None:
        raise InvalidDataError(
            "not a space: {cut!r}: none is registered as {name!r}. Install the distribution that offers it, "
            "or register its class (manifolds.SPACES).",
            cut=_cut(text),
            name=name,
        )
    arguments = [_argument(node, text) for node in call.args]
    keywords = {str(keyword.arg): _argument(keyword.value, text) for keyword in call.keywords}
    try:
        return kind(*arguments, **keywords)
    except TypeError as problem:
        # Wrong in number or in name: Python's own words about the constructor.
        raise InvalidDataError("not a space: {cut!r}: {problem}.", cut=_cut(text), problem=problem) from None


def _argument(node: ast.expr, text: str) -> Any:
    """Return an argument: a literal, a space, a tuple or list of them, or a sum or multiple of lists."""
    if isinstance(node, ast.Call):
        return _built(node, text)
    if isinstance(node, ast.BinOp):
        return _list_of(node, text)
    if isinstance(node, (ast.Tuple, ast.List)):
        found = [_argument(part, text) for part in node.elts]
        return tuple(found) if isinstance(node, ast.Tuple) else found
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise _no_space(text) from None


def _list_of(node: ast.BinOp, text: str) -> list[Any]:
    """Return the sum of two lists, or a multiple of one; other arithmetic is no argument."""
    left = _argument(node.left, text) if isinstance(node.left, (ast.List, ast.BinOp)) else None
    if isinstance(left, list) and isinstance(node.op, ast.Mult) and _times(node) is not None:
        return left * int(_times(node) or 0)
    if isinstance(left, list) and isinstance(node.op, ast.Add) and isinstance(node.right, (ast.List, ast.BinOp)):
        return [*left, *_argument(node.right, text)]
    raise _no_space(text)


def _times(node: ast.BinOp) -> int | None:
    """Return the factor of a multiple, a whole number of moderate size; None for everything else."""
    value = node.right.value if isinstance(node.right, ast.Constant) else None
    return value if isinstance(node.op, ast.Mult) and type(value) is int and 1 <= value <= _MOST_PARTS else None


def _entries(node: ast.AST) -> int:
    """Return about how many entries the points of a space have: squares of sums of whole numbers, part by part."""
    if isinstance(node, ast.BinOp) and _times(node) is not None:
        return _entries(node.left) * int(_times(node) or 0)
    below = list(ast.iter_child_nodes(node))
    inside = sum(_entries(child) for child in below)
    own = sum(abs(size) for size in map(_whole_number, below)) if isinstance(node, ast.Call) else 0
    return own**2 + inside


def _whole_number(node: ast.AST) -> int:
    """Return an argument that is a whole number, with its sign or name; 0 for anything else."""
    inner = node.value if isinstance(node, ast.keyword) else node
    inner = inner.operand if isinstance(inner, ast.UnaryOp) else inner
    return inner.value if isinstance(inner, ast.Constant) and type(inner.value) is int else 0


def _cut(text: object) -> str:
    return str(text)[:_LONGEST_SHOWN]


def _no_space(text: object) -> InvalidDataError:
    return InvalidDataError("not a space: {cut!r}.", cut=_cut(text))


def spelled(name: object) -> tuple[type[Manifold], dict[str, Any]]:
    """Return the class that a name on the command line stands for, and the keywords of its constructor.

    Examples
    --------
    >>> spelled("spd-riemann")
    (<class 'dpmanifold.manifolds.spd.SPD'>, {'metric': 'riemann'})
    """
    # Lazily: what the library has itself is found without looking at other distributions.
    for kind in itertools.chain(SPACES.own(), SPACES):
        if name in kind.spellings():
            return kind, kind.spellings()[str(name)]
    raise InvalidArgumentError(
        "`space` must be one of {examples}, got {got}.", examples=Public(", ".join(examples())), got=shown(name)
    )


def examples() -> dict[str, Manifold]:
    """Return a small space for every name on the command line.

    Examples
    --------
    >>> examples()["sphere"]
    Sphere(2)
    """
    return {name: kind(*kind.example, **keywords) for kind in SPACES for name, keywords in kind.spellings().items()}
