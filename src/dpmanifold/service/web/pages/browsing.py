"""Data sets, what used caps up, and releases: while they are on their way, and what they say."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from dpmanifold.result import Result
from dpmanifold.service.desk import array_in
from dpmanifold.service.person import ANALYST
from dpmanifold.service.views import DataSetView, PriceView
from dpmanifold.service.web.answers import as_json, document, download, picture
from dpmanifold.service.web.pages import pictures
from dpmanifold.service.web.pages.showing import USUAL, Typed, after_in, option_words, show, tried
from dpmanifold.service.web.sessions import desk, signed_in
from dpmanifold.stats.query import query_named

_LINES = 200
_ON_A_PAGE = 50
_LONGEST_WAIT = 30  # seconds between two looks of a browser without script


def datasets(request: Request) -> Response:
    """Show the data sets that somebody may see."""
    return show(request, "datasets.html", title="Data sets", datasets=desk(request).datasets())


def dataset(request: Request) -> Response:
    """Show one data set."""
    one = desk(request).dataset(ref_of(request))
    may_ask = signed_in(request).actor.role == ANALYST
    statistics = [(name, query_named(name).title) for name in one.statistics]
    price = _example(request, one) if may_ask and one.left is not None else None
    return show(request, "dataset.html", title=one.ref, one=one, statistics=statistics, may_ask=may_ask, price=price)


def _example(request: Request, one: DataSetView) -> PriceView | None:
    """Return the price of the first thing that can be asked, at a usual promise of the cap's kind."""
    kind = one.cap["kind"]
    typed = Typed.read({"kind": kind, "amount": USUAL[kind]}, one.statistics[0])
    return tried(lambda: desk(request).price(one.ref, typed.question()))[0]


def history(request: Request) -> Response:
    """Show what used a cap up."""
    start = after_in(request)
    found = desk(request).history(request.path_params["population"], after=start, limit=_LINES)
    picture = pictures.history(found.lines) if found.lines else ""
    return show(
        request, "history.html", title=f"History of {found.population}", history=found, picture=picture, first=start
    )


def ref_of(request: Request) -> str:
    """Return the data set that an address names."""
    return f"{request.path_params['population']}/{request.path_params['name']}"


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
        chosen=option_words(found.statistic, found.options), as_array=array_in(answer) is not None,
        refresh=wait if found.state == "pending" else None,
    )  # fmt: skip


def _facts(answer: Any) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return what an answer says, by class where there are classes."""
    by_class = {"": answer} if isinstance(answer, Result) else answer or {}
    return [(str(name), one.facts()) for name, one in by_class.items()]


def state(request: Request) -> Response:
    """Return what the page of a pending release looks for, and that of a new one whose picture is being drawn."""
    found = desk(request).release(request.path_params["release"])
    complete = found.pictured and found.reported
    return as_json({"state": found.state, "seconds": found.seconds, "publishes": found.publishes, "complete": complete})


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
