"""Turns at what takes computing: plans, curves and prices wait for one outside the threads that serve all the rest."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar, cast, final

import anyio
import anyio.to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from dpmanifold.service.http_errors import TooMany
from dpmanifold.service.web.sessions import current

T = TypeVar("T")
PLAN, CURVE = "plan", "curve"
AT_ONCE = 2
"""How many are computed at once."""
PATIENCE = 5.0
"""Seconds that one waits for a turn."""


@final
class Turns:
    """Who computes now: a few in all, each person one thing of a kind at a time, and the others in the order they came.

    For one event loop. Whoever waits holds no thread, so that signing in and looking things up go on.
    """

    def __init__(self) -> None:
        self._all = asyncio.Semaphore(AT_ONCE)
        self._of: dict[tuple[str, str], asyncio.Lock] = {}
        self._held: collections.Counter[tuple[str, str]] = collections.Counter()

    async def run(self, who: str, kind: str, make: Callable[[], T]) -> T:
        """Return what a call makes, in a thread, once it is somebody's turn.

        Parameters
        ----------
        who : the name of the account
        kind : of what is computed; a person's things of different kinds do not wait for each other
        make : the call

        Raises
        ------
        TooMany : there was no turn in time
        """
        async with contextlib.AsyncExitStack() as held:
            try:
                with anyio.fail_after(PATIENCE):
                    await held.enter_async_context(self._one_of(who, kind))
                    await held.enter_async_context(self._all)
            except TimeoutError:
                raise TooMany(
                    "Too much is being computed at the moment. Wait, then try again.", retry_after=math.ceil(PATIENCE)
                ) from None
            # In a thread of its own, none of those that all the rest has.
            return await anyio.to_thread.run_sync(make, limiter=anyio.CapacityLimiter(1))

    @contextlib.asynccontextmanager
    async def _one_of(self, who: str, kind: str) -> AsyncIterator[None]:
        """Hold a person's turn; what nobody holds or waits for is forgotten."""
        key = who, kind
        self._held[key] += 1
        try:
            async with self._of.setdefault(key, asyncio.Lock()):
                yield
        finally:
            self._held[key] -= 1
            if not self._held[key]:
                del self._held[key], self._of[key]


def turns_of(request: Request) -> Turns:
    """Return the turns of the application that a request is for."""
    return cast(Turns, request.app.state.turns)


def in_turn(kind: str) -> Callable[[Callable[[Request], Response]], Callable[[Request], Awaitable[Response]]]:
    """Make a page wait for the turn of whoever is signed in.

    Parameters
    ----------
    kind : of what is computed, as for :meth:`Turns.run`
    """

    def waiting(page: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
        @functools.wraps(page)
        async def answered(request: Request) -> Response:
            login = await run_in_threadpool(current, request)
            if login is None:  # nothing is computed for nobody: the page says so
                return await run_in_threadpool(page, request)
            return await turns_of(request).run(login.actor.name, kind, lambda: page(request))

        return answered

    return waiting
