"""The application of the web process: layers, routes and templates."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import secrets
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import jinja2
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Mount, Route

from dpmanifold.service.service import Service
from dpmanifold.service.web.answers import API, Errors, answer_error
from dpmanifold.service.web.api import Api
from dpmanifold.service.web.assets import Assets
from dpmanifold.service.web.health import Health
from dpmanifold.service.web.requests import RequestLog
from dpmanifold.service.web.security import KnownHosts, SecurityHeaders, WholeBody
from dpmanifold.service.web.turns import Turns

_HERE = pathlib.Path(__file__).parent


def make_app(service: Service) -> Starlette:
    """Return the application of a service.

    Parameters
    ----------
    service : what is asked; it is not closed here
    """
    settings = service.settings
    pages = _pages()
    assets = Assets(_HERE / "static")
    routes: list[Route] = [Health(service).route, assets.route, *getattr(pages, "ROUTES", ())]
    app = Starlette(
        routes=[Mount(API, app=Api(settings.title)), *routes],
        middleware=[
            Middleware(SecurityHeaders, https=settings.url.startswith("https:")),
            Middleware(RequestLog, routes={route.endpoint: route.path for route in routes}),
            Middleware(Errors),
            Middleware(KnownHosts, hosts=settings.hosts),
            Middleware(WholeBody, limit=settings.body_limit),
        ],
        exception_handlers={HTTPException: answer_error},
    )
    app.router.redirect_slashes = False  # a redirect would tell that the other address is one
    app.state.service = service
    app.state.turns = Turns()
    app.state.start_key = secrets.token_bytes(32)
    app.state.templates = _templates(assets, getattr(pages, "GLOBALS", {}))
    return app


def _templates(assets: Assets, known: Mapping[str, Any]) -> jinja2.Environment:
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    templates.globals.update({**known, "static_url": assets.url})
    return templates


def _pages() -> ModuleType | None:
    """Return the pages, which export ROUTES, and GLOBALS for their templates; None in an install that left them out."""
    name = f"{__package__}.pages"
    return importlib.import_module(name) if importlib.util.find_spec(name) is not None else None
