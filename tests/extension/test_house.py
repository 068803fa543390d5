"""What keeps the next space small: outside manifolds/ nothing asks which space it has, it asks the space."""

import ast
import pathlib

import pytest

import dpmanifold
from dpmanifold.manifolds import SPACES

SOURCE = pathlib.Path(dpmanifold.__file__).parent
SPACE_NAMES = {kind.__name__ for kind in SPACES.own()}


def names_in(node):
    """Return the names a piece of code mentions: SPD, and manifolds.SPD."""
    found = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    return found | {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}


def questions_about_space(code):
    """Return the lines in which code asks whether something is a certain space."""
    lines = []
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]) if (
                names_in(kinds) & SPACE_NAMES
            ):
                lines.append(node.lineno)
            case ast.MatchClass(cls=kind) if names_in(kind) & SPACE_NAMES:
                lines.append(kind.lineno)
            case ast.Compare() if "type" in names_in(node) and names_in(node) & SPACE_NAMES:
                lines.append(node.lineno)
    return lines


def test_nothing_outside_manifolds_asks_which_space_it_has():
    files = [file for file in SOURCE.rglob("*.py") if SOURCE / "manifolds" not in file.parents]
    assert len(files) > 100
    found = [
        f"{file.relative_to(SOURCE)}:{line}"
        for file in files
        for line in questions_about_space(file.read_text("utf-8"))
    ]
    assert not found, found


@pytest.mark.parametrize(
    "code",
    [
        "isinstance(ball.space, SPD)",
        "isinstance(space, (Sphere, KendallShapes))",
        "isinstance(space, manifolds.Hyperbolic)",
        "match space:\n    case SPD(size=2 | 3):\n        pass",
        "type(space) is Euclidean",
    ],
)
def test_such_questions_are_found(code):
    assert questions_about_space(code)


def test_arguments_may_be_checked():
    assert not questions_about_space(
        "isinstance(space, Manifold)\nspace = SPD(3)\nmatch x:\n    case Release():\n        pass"
    )
