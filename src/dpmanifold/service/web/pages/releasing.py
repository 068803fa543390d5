"""Releases: while they are on their way, and what they say."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpmanifold.ball import Ball
from dpmanifold.result import Result
from dpmanifold.service.person import ANALYST
from dpmanifold.service.web.answers import as_json, document, download, picture
from dpmanifold.service.web.pages.asking import option_words
from dpmanifold.service.web.pages.showing import show
from dpmanifold.service.web.sessions import desk, signed_in

_ON_A_PAGE = 50
_LONGEST_WAIT = 30  # seconds between two looks of a browser without script


def releases(request: Request) -> Response:
    """Show releases, the newest first: an analyst's own, for the others all."""
    found = desk(request).releases(request.query_params.get("before"), _ON_A_PAGE)
    everybody = signed_in(request).actor.role != ANALYST
    older = found[-1].id if len(found) == _ON_A_PAGE else None
    return show(request, "releases.html", title="Releases", releases=found, everybody=everybody, older=older)


def release(request: Request) -> Response:
    """Show one release."""
    at = desk(request)
    found = at.release(request.path_params["release"])
    answer = at.answer(found.id) if found.state == "released" else None
    wait = max(1, min(_LONGEST_WAIT, math.ceil(found.seconds or 1.0)))
    return show(
        request, "release.html", title=f"{found.title} of {found.ref}", release=found, answers=_facts(answer),
        chosen=option_words(found.statistic, found.options), as_array=_is_array(answer),
        refresh=wait if found.state == "pending" else None,
    )  # fmt: skip


def _facts(answer: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what an answer says, by class where there are classes."""
    by_class = {"": answer} if isinstance(answer, Result) else answer or {}
    return [(str(name), one.facts()) for name, one in by_class.items()]


def _is_array(answer: Any) -> bool:
    value = answer.number_or_array if isinstance(answer, Result) else None
    return value is not None and not isinstance(value, Ball)


def state(request: Request) -> Response:
    """Return what the page of a pending release looks for, and that of a new one whose picture is being drawn."""
    found = desk(request).release(request.path_params["release"])
    told = {"state": found.state, "seconds": found.seconds, "publishes": found.publishes}
    return as_json({**told, "complete": found.pictured and found.reported})


def image(request: Request) -> Response:
    """Return the picture."""
    return picture(desk(request).picture(request.path_params["release"]))


def report(request: Request) -> Response:
    """Return the report, a document of its own."""
    return document(desk(request).report(request.path_params["release"]))


def result(request: Request) -> Response:
    """Return what was released, as JSON to keep."""
    return download(desk(request).result(request.path_params["release"]), _name(request, "json"), "application/json")


def value(request: Request) -> Response:
    """Return the released value as a numpy array to keep."""
    return download(desk(request).array(request.path_params["release"]), _name(request, "npy"))


def _name(request: Request, ending: str) -> str:
    found = desk(request).release(request.path_params["release"])
    return f"{found.dataset}-{found.statistic}-{found.id}.{ending}"


_ONE = "/releases/{release}"
ROUTES = [
    Route("/releases", releases, methods=["GET"]),
    Route(_ONE, release, methods=["GET"]),
    Route(f"{_ONE}/state.json", state, methods=["GET"]),
    Route(f"{_ONE}/picture.png", image, methods=["GET"]),
    Route(f"{_ONE}/report.html", report, methods=["GET"]),
    Route(f"{_ONE}/result.json", result, methods=["GET"]),
    Route(f"{_ONE}/value.npy", value, methods=["GET"]),
]
