"""Data sets, one data set, and what used its population's cap up."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpmanifold.service.person import ANALYST
from dpmanifold.service.views import DataSetView, PriceView
from dpmanifold.service.web.pages import pictures
from dpmanifold.service.web.pages.asking import USUAL, Typed
from dpmanifold.service.web.pages.showing import after_in, show, tried
from dpmanifold.service.web.sessions import desk, signed_in
from dpmanifold.stats.query import query_named

_LINES = 200


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


ROUTES = [
    Route("/", datasets, methods=["GET"]),
    Route("/data/{population}/{name}", dataset, methods=["GET"]),
    Route("/history/{population}", history, methods=["GET"]),
]
