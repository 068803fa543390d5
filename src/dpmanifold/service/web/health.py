"""Whether the parts of a service answer: yes or no, for monitors. No numbers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import final

from sqlalchemy import text
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dpmanifold.service import beats
from dpmanifold.service.service import Service
from dpmanifold.service.web.answers import as_json

_FRESH = 1.0  # seconds for which an answer stands: nobody has to sign in here, so asking often costs nothing


@final
class Health:
    """The state of a service.

    Parameters
    ----------
    service : whose
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()
        self._until, self._known = 0.0, {"database": False, "ledger": False, "worker": False}
        self.route = Route("/health", self._answer, methods=["GET"], name="health")

    def _answer(self, _: Request) -> Response:
        with self._lock:
            if time.monotonic() >= self._until:
                self._known = {
                    "database": _answers(lambda: self._service.database.value(text("SELECT 1"))),
                    "ledger": _answers(self._service.ledger.populations),
                    "worker": _answers(lambda: beats.is_alive(self._service.database)),
                }
                self._until = time.monotonic() + _FRESH
            known = dict(self._known)
        whole = all(known.values())
        # Without the worker people can still read and plan, and what they ask waits.
        reachable = known["database"] and known["ledger"]
        return as_json({"status": "ok" if whole else "degraded", **known}, 200 if reachable else 503)


def _answers(part: Callable[[], object]) -> bool:
    try:
        return part() is not False
    except Exception:  # whatever it is, it does not answer
        return False
