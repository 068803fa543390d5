"""What programs can ask, as a table of endpoints: routes are made from it, and so is the OpenAPI document.

Schemas of views follow from their fields, and requests are held to theirs. They are a part of JSON Schema, as much as
there is use for: type, enum, properties, required, additionalProperties, items, minimum, maximum, minLength, maxLength,
anyOf and references to the schemas of a document.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, final

from dpmanifold._check import shown
from dpmanifold._version import __version__

Schema = dict[str, Any]
REFERENCE = "#/components/schemas/"
_PLAIN: dict[Any, Schema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    types.NoneType: {"type": "null"},
    Any: {},
}
_TYPES: dict[str, Any] = {
    "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": types.NoneType, "array": list,
    "object": dict,
}  # fmt: skip
_WORDS = {
    "string": "text", "integer": "a whole number", "number": "a number", "boolean": "true or false", "null": "null",
    "array": "a list", "object": "an object",
}  # fmt: skip


def text(longest: int = 1000, **more: Any) -> Schema:
    """Return the schema of a text."""
    return {"type": "string", "maxLength": longest, **more}


def record(required: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Schema:
    """Return the schema of an object that has these entries, may have those, and no others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(name: str, view: type) -> Schema:
    """Return the schema of an answer that is a list of views, under a name."""
    return record({name: {"type": "array", "items": reference(view.__name__)}})


def reference(name: str) -> Schema:
    """Return a reference to a schema of the document."""
    return {"$ref": f"{REFERENCE}{name}"}


def schemas_of(views: Iterable[type]) -> dict[str, Schema]:
    """Return the schemas of views and of the views inside them, by name.

    Examples
    --------
    >>> from dpmanifold.service.views import EventView
    >>> schemas_of([EventView])["EventView"]["properties"]["seq"]
    {'type': 'integer'}
    """
    found: dict[str, Schema] = {}
    for view in views:
        hints = typing.get_type_hints(view)
        names = [field.name for field in dataclasses.fields(view)]
        found[view.__name__] = record({name: _schema_of_hint(hints[name], found) for name in names})
    return found


def _schema_of_hint(hint: Any, found: dict[str, Schema]) -> Schema:
    if hint in _PLAIN:
        return dict(_PLAIN[hint])
    if dataclasses.is_dataclass(hint):
        name = typing.cast(type, hint).__name__
        if name not in found:
            found.update(schemas_of([typing.cast(type, hint)]))
        return reference(name)
    origin, inside = typing.get_origin(hint), typing.get_args(hint)
    if origin is list:
        return {"type": "array", "items": _schema_of_hint(inside[0], found)}
    if origin is dict:
        return {"type": "object"}
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_schema_of_hint(one, found) for one in inside]}
    raise TypeError(f"a view has a field of type {hint}, which JSON does not know")


def fault(value: Any, schema: Schema, known: Mapping[str, Schema], name: str = "the body") -> str | None:
    """Return what is wrong with a value, in words; None where it is as the schema says.

    Parameters
    ----------
    value : as JSON gives it
    schema : that it is held to
    known : the schemas that references name
    name : of the value, for the words

    Examples
    --------
    >>> fault({"key": 3}, record({"key": text()}), {})
    'key must be text, got 3.'
    """
    if "$ref" in schema:
        return fault(value, known[schema["$ref"].removeprefix(REFERENCE)], known, name)
    if "anyOf" in schema:
        faults = [fault(value, one, known, name) for one in schema["anyOf"]]
        return None if None in faults else faults[0]
    wanted = schema.get("type", [])
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    if kinds and not any(_is_of(value, kind) for kind in kinds):
        return f"{name} must be {' or '.join(_WORDS[kind] for kind in kinds)}, got {shown(value)}."
    if "enum" in schema and value not in schema["enum"]:
        return f"{name} must be one of {', '.join(map(str, schema['enum']))}, got {shown(value)}."
    if isinstance(value, str):
        return _fault_of_length(value, schema, name)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return _fault_of_size(value, schema, name)
    if isinstance(value, list) and "items" in schema:
        return _first(fault(one, schema["items"], known, f"{name}[{index}]") for index, one in enumerate(value))
    if isinstance(value, dict):
        return _fault_of_entries(value, schema, known, name)
    return None


def _is_of(value: Any, kind: str) -> bool:
    return kind == "boolean" if isinstance(value, bool) else isinstance(value, _TYPES[kind])


def _fault_of_length(value: str, schema: Schema, name: str) -> str | None:
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < least or (most is not None and len(value) > most):
        return f"{name} must have {least} to {most} characters, got {len(value)}."
    return None


def _fault_of_size(value: float, schema: Schema, name: str) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"{name} must be at least {schema['minimum']}, got {value}."
    if "maximum" in schema and value > schema["maximum"]:
        return f"{name} must be at most {schema['maximum']}, got {value}."
    return None


def _fault_of_entries(value: dict[str, Any], schema: Schema, known: Mapping[str, Schema], name: str) -> str | None:
    entries = schema.get("properties", {})
    missing = [key for key in schema.get("required", []) if key not in value]
    if missing:
        return f"{name} needs {', '.join(missing)}."
    unknown = [key for key in value if key not in entries]
    more = schema.get("additionalProperties", True)
    if unknown and more is False:
        return f"{name} takes {', '.join(entries) or 'nothing'}, got {shown(unknown[0][:100])} as well."
    inner = "" if name == "the body" else f"{name}."
    return _first(
        fault(one, entries.get(key, more if isinstance(more, dict) else {}), known, f"{inner}{key}")
        for key, one in value.items()
    )


def _first(faults: Iterable[str | None]) -> str | None:
    return next((one for one in faults if one is not None), None)


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


def openapi_document(title: str, endpoints: Iterable[Endpoint], schemas: Mapping[str, Schema]) -> dict[str, Any]:
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
