"""How mkdocstrings reads our docstrings: what follows the colon behind a name is its meaning, and not its type.

The types are in the signatures, which are checked; so the tables of the reference pages take them from there.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_SECTIONS = (
    griffe.DocstringSectionKind.parameters,
    griffe.DocstringSectionKind.other_parameters,
    griffe.DocstringSectionKind.attributes,
    griffe.DocstringSectionKind.returns,
    griffe.DocstringSectionKind.yields,
)

_ROLE = re.compile(r":(?:mod|class|func|meth|attr):`~?([^`]+)`")  # as Sphinx would link it


class Meanings(griffe.Extension):
    """Put the words behind a colon where descriptions are shown, and the signature's annotation where types are."""

    def on_object(self, *, obj: griffe.Object, loader: griffe.GriffeLoader, **kwargs: Any) -> None:
        """Mend one docstring."""
        if obj.docstring is None:
            return
        obj.docstring.parser = griffe.Parser.numpy
        obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
        for section in obj.docstring.parsed:  # kept by griffe, and shown later
            if section.kind in _SECTIONS:
                for item in section.value:
                    behind = re.search(rf"^\s*{re.escape(item.name)} : (.*)$", obj.docstring.value, re.MULTILINE)
                    if behind:  # the meaning begins on this line, and may go on below
                        item.description = f"{behind[1]} {item.description}".strip()
                        item.annotation = _declared(obj, item.name, section.kind)
            elif section.kind is griffe.DocstringSectionKind.raises:
                for item in section.value:
                    name, colon, meaning = str(item.annotation).partition(" : ")
                    if colon and not item.description:
                        item.annotation, item.description = name, meaning


def _declared(obj: griffe.Object, name: str, kind: griffe.DocstringSectionKind) -> Any:
    """Return the annotation that the code gives, or None."""
    if kind in (griffe.DocstringSectionKind.returns, griffe.DocstringSectionKind.yields):
        return getattr(obj, "returns", None)
    if isinstance(obj, griffe.Function):
        return obj.parameters[name].annotation if name in obj.parameters else None
    if isinstance(obj, griffe.Class):
        if name in obj.parameters:
            return obj.parameters[name].annotation
        member = obj.members.get(name)
        return getattr(member, "annotation", None) if isinstance(member, griffe.Attribute) else None
    return None
