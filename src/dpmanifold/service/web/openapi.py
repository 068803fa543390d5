"""What programs can ask, as a table of endpoints: routes are made from it, and so is the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from dpmanifold._version import __version__
from dpmanifold.service.web.schemas import Schema, record, reference, text

ROOT = "/api/v1"
JSON = "application/json"
ERROR = record(
    {"error": record({"kind": text(), "message": text(), "template": text(), "values": {"type": "object"}},
                     {"argument": text()})}
)  # fmt: skip
_PARAMETER = re.compile(r"\{(\w+)\}")
_SIGN_IN = "token"


@final
@dataclass(frozen=True)
class Endpoint:
    """One thing that can be asked.

    Attributes
    ----------
    method, path : by which; the path is behind :data:`ROOT`
    call : what answers, given a desk, what the path names, and by name what stands in the query and the body: a view,
        a list of views, a record, a response, or None
    name, words : its name in the document, and what it does, in one line
    roles : who may ask; for everybody else there is nothing here. None: whoever, without signing in
    answer : the schema of the answer, or the media type of a file
    body : the schema of what is sent; None where nothing is
    query : schemas of what can stand behind the question mark
    needed : which of these must
    status : of the answer
    also : another status that it can have, and why
    plans : whether what the library refuses depends on the request and on public numbers alone, and is shown
    turn : of what takes computing, its kind: it waits for a turn (:mod:`.turns`); empty for all the rest
    """

    method: str
    path: str
    call: Callable[..., Any]
    name: str
    words: str
    roles: tuple[str, ...] | None
    answer: Schema | str
    body: Schema | None = None
    query: Mapping[str, Schema] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    status: int = 200
    also: tuple[int, str] | None = None
    plans: bool = False
    turn: str = ""

    def matched(self, method: str, path: str) -> dict[str, str] | None:
        """Return the parts of an address that this endpoint answers; None for any other.

        HEAD is asked where GET can be.
        """
        if ("GET" if method == "HEAD" else method) != self.method:
            return None
        wanted, given = self.path.split("/"), path.split("/")
        if len(wanted) != len(given):
            return None
        found = {}
        for part, said in zip(wanted, given, strict=True):
            name = _PARAMETER.fullmatch(part)
            if name is None and part != said:
                return None
            if name is not None:
                found[name[1]] = said
        return found if all(found.values()) else None


def document(title: str, endpoints: Iterable[Endpoint], schemas: Mapping[str, Schema]) -> dict[str, Any]:
    """Return the OpenAPI document of endpoints.

    Parameters
    ----------
    title : of the service
    endpoints : all of them
    schemas : that references name
    """
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        paths.setdefault(f"{ROOT}{one.path}", {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__, "description": _ABOUT},
        "paths": paths,
        "components": {
            "schemas": {**schemas, "Error": ERROR},
            "securitySchemes": {_SIGN_IN: {"type": "http", "scheme": "bearer", "description": "dpm_ and 43 letters"}},
        },
        "security": [{_SIGN_IN: []}],
    }


_ABOUT = (
    "Private statistics of registered data. Promises are written as their kind and amounts, as text where they are to "
    'be exact: {"kind": "GDP", "mu": "0.3"}. What does not exist, what is somebody else\'s and what a role may '
    "not do are answered alike, with 404."
)


def _operation(one: Endpoint) -> dict[str, Any]:
    file = isinstance(one.answer, str)
    content = {one.answer: {}} if isinstance(one.answer, str) else {JSON: {"schema": one.answer}}
    answers: dict[str, Any] = {str(one.status): {"description": "A file." if file else "The answer."}}
    if one.status != 204:
        answers[str(one.status)]["content"] = content
    if one.also is not None:
        answers[str(one.also[0])] = {"description": one.also[1], "content": content}
    answers["default"] = {"description": "Refused, and why.", "content": {JSON: {"schema": reference("Error")}}}
    said: dict[str, Any] = {"operationId": one.name, "summary": one.words, "responses": answers}
    if one.roles is None:
        said["security"] = []
    else:
        said["description"] = f"For: {', '.join(one.roles)}."
        said["x-roles"] = list(one.roles)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": text()} for name in _PARAMETER.findall(one.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": name in one.needed, "schema": schema}
        for name, schema in one.query.items()
    ]
    if parameters:
        said["parameters"] = parameters
    if one.body is not None:
        said["requestBody"] = {"required": True, "content": {JSON: {"schema": one.body}}}
    return said
