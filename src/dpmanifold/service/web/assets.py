"""Static files of the pages: read once, served from memory, under an address that changes whenever one of them does."""

from __future__ import annotations

import hashlib
import pathlib
from typing import final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpmanifold.service.errors import NotFound

_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".txt": "text/plain; charset=utf-8",
}


@final
class Assets:
    """The files of a folder.

    Files may name each other by relative addresses: all of them share one digest, of everything in the folder.

    Parameters
    ----------
    folder : read once; files of other kinds than pages use are left out
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self._files = {
            path.relative_to(folder).as_posix(): (path.read_bytes(), _TYPES[path.suffix])
            for path in sorted(folder.rglob("*"))
            if path.is_file() and path.suffix in _TYPES
        }
        digest = hashlib.sha256()
        for name, (content, _) in self._files.items():
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        self._digest = digest.hexdigest()[:16]
        self.route = Route("/static/{digest}/{name:path}", self._answer, methods=["GET"], name="static")

    def url(self, name: str) -> str:
        """Return the address of a file; a name that is not there is an error of whoever wrote the template."""
        if name not in self._files:
            raise KeyError(f"there is no static file {name}; there are: {', '.join(self._files)}.")
        return f"/static/{self._digest}/{name}"

    def _answer(self, request: Request) -> Response:
        found = self._files.get(request.path_params["name"])
        if found is None or request.path_params["digest"] != self._digest:
            raise NotFound
        content, media_type = found
        return Response(content, media_type=media_type)
