"""The worker: the one process that opens records. It forks a child for every piece of work, and keeps to the timetable.

Three lanes, each with one child at a time. Attempts come first: one slot after the other, never two at once, and a
child that is not ready when its slot ends is killed. Registrations and what follows a release (a picture, a report, the
outcome of an attempt that was killed) have what the attempts leave of the machine.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections import Counter
from typing import Any, NamedTuple, final

from sqlalchemy import Row, and_, or_, select

from dpmanifold.errors import InvalidArgumentError, Message, Public
from dpmanifold.service import attempts, beats, registering, tables
from dpmanifold.service.errors import NotFound
from dpmanifold.service.logs import log
from dpmanifold.service.ordering import asked_before, catch_up, lost, paused_since, schedule
from dpmanifold.service.processes import Child, Work, fork
from dpmanifold.service.registering import Reader
from dpmanifold.service.service import Service

if os.name == "posix":
    import fcntl

_PAUSE = 0.05  # seconds between two looks
_CATCH_UP = 5.0  # seconds between two looks for payers that died
_GRACE = 10.0  # seconds that a child gets after its slot, to commit what it has
_LATE = (0.25, 0.1)  # how late an attempt may begin: seconds, or this share of its slot
_DRESSING = 120.0  # seconds for a picture and a report, or to find an outcome
_LOOK = 1.0  # seconds between two looks for releases without a picture, where there was none
_MOST_LOOKS = 20  # for an outcome that the ledger has
_MOST_KEPT = 1000  # numbers of tries that are remembered
_MOST_TRIES = 3  # of what fails before it begins, and of pictures
_REST = 5.0  # seconds until the outcome of an attempt is looked for again, where it could not be found
_AFTER_ERROR = 1.0  # seconds until the next try where the database does not answer


_ATTEMPT, _REGISTRATION, _AFTER = "attempt", "registration", "after"


class _Lane(NamedTuple):
    """A child at work, what it is at work on, and until when."""

    child: Child
    what: str
    until: float


@final
class Worker:
    """What a service's worker does.

    Parameters
    ----------
    service : whose; opened by this process, which must be single-threaded
    reader : knows the formats of files
    """

    def __init__(self, service: Service, reader: Reader) -> None:
        self.service, self._reader = service, reader
        self._lanes: dict[str, _Lane] = {}
        self._tries: Counter[str] = Counter()
        self._rests: dict[str, float] = {}
        self._stopping = 0
        self._next_beat = self._next_catch_up = self._next_look = 0.0
        self._lock = _locked(service)

    def run(self) -> None:
        """Work until a signal says to stop: the first lets the running attempt end, the second does not."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._stop)
        prepare()
        registering.begin_anew(self.service)
        log("worker started", process="worker")
        while not (self._stopping and _ATTEMPT not in self._lanes) and self._stopping < 2:
            try:
                self.step()
            except Exception as problem:  # in whose message there may be anything
                log("worker fault", "error", kind=type(problem).__name__, process="worker")
                time.sleep(0.0 if _ATTEMPT in self._lanes else _AFTER_ERROR)
            time.sleep(_PAUSE)
        self.close()
        log("worker stopped", process="worker")

    def close(self) -> None:
        """End all children, and let another worker take the place."""
        for lane in self._lanes.values():
            lane.child.kill()
        self._lanes.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _stop(self, number: int, frame: object) -> None:
        self._stopping += 1

    def step(self) -> None:
        """Look at everything once, and begin what is to be begun."""
        self._watch_attempt()  # whatever the database is up to: the end of a slot waits for nothing
        self._watch_others()
        self._beat()
        if not self._stopping:
            self._begin_attempt()
            self._begin_registration()
        self._begin_after()

    def _beat(self) -> None:
        now = time.monotonic()
        if now >= self._next_beat:
            beats.beat(self.service.database)
            self._next_beat = now + beats.EVERY
        if now >= self._next_catch_up:
            self._next_catch_up = now + _CATCH_UP
            if len(self._tries) > _MOST_KEPT:
                self._tries.clear()
                self._rests.clear()
            catch_up(self.service)

    # ---------------------------------------------------------------- attempts

    def _watch_attempt(self) -> None:
        """Kill an attempt that is not ready when its slot ends; one that is has a little longer to commit."""
        lane = self._lanes.get(_ATTEMPT)
        if lane is None:
            return
        if not lane.child.ended():
            late = time.time() - lane.until
            if late < 0 or (lane.child.ready() and late < _GRACE):
                return
            lane.child.kill()
        del self._lanes[_ATTEMPT]

    def _begin_attempt(self) -> None:
        """Begin the attempt whose slot has started; give one that nobody began in time another slot."""
        if _ATTEMPT in self._lanes:
            return
        now = time.time()
        held: set[str] = set()  # populations with an attempt whose outcome is not known yet
        for row in self._paid(tables.releases.c.starts <= tables.now()):
            if attempts.status_of(self.service, row) != "spent":
                held.add(row.population)
                continue
            paused = paused_since(self.service, row.population) is not None
            if self._tries[row.id] >= _MOST_TRIES or paused or row.population in held:
                continue
            starts, due = (tables.moment(text).timestamp() for text in (row.starts, row.due))
            if now - starts > max(_LATE[0], _LATE[1] * (due - starts)):
                try:
                    self._postpone(row)
                except (InvalidArgumentError, NotFound):  # a statistic that is no longer installed, for one
                    self._tries[row.id] = _MOST_TRIES  # until this process starts anew; nobody has opened its records
                    log("release cannot be begun", "error", what="release", process="worker")
                continue
            self._tries[row.id] += 1  # of one that is begun there is no second
            self._begin(_ATTEMPT, row.id, due, lambda ready: attempts.attempt(self.service, row.id, ready))  # noqa: B023
            return

    def _paid(self, condition: Any) -> list[Row[Any]]:
        """Return releases that are paid for and have no outcome yet, in the order of their slots."""
        rows = tables.releases
        wanted = select(rows.c.id, rows.c.account, rows.c.population, rows.c.dataset, rows.c.key, rows.c.starts,
                        rows.c.due, rows.c.publishes)  # fmt: skip
        in_order = wanted.where(and_(rows.c.state == "paid", condition)).order_by(rows.c.starts)
        return self.service.database.rows(in_order)

    def _postpone(self, row: Row[Any]) -> None:
        """Give a release another slot, as long as one is now: a steward may have made it longer."""
        seconds = asked_before(self.service, self.service.database.by_id(tables.releases, row.id)).seconds(self.service)
        schedule(self.service, row.id, seconds, anew=True)
        log("release postponed", what="release", process="worker")

    # ---------------------------------------------------------------- registrations, and what follows a release

    def _watch_others(self) -> None:
        """Take note of children that ended, and end those that take too long."""
        now = time.monotonic()
        for name, lane in [*self._lanes.items()]:
            in_time = lane.child.ended()
            if name != _ATTEMPT and (in_time or now > lane.until):
                lane.child.kill()
                if name == _REGISTRATION and lane.child.code != 0:
                    registering.remove_left(self.service)
                    self._refuse(lane.what, in_time)
                del self._lanes[name]

    def _refuse(self, registration: str, in_time: bool) -> None:
        why = (
            Message("Reading them ended the process: the file may be damaged, or take more memory than there is.")
            if in_time
            else Message(
                "Reading them took longer than {seconds:.0f} seconds. Register less, or have the operator allow more.",
                seconds=Public(self.service.settings.register_seconds),
            )
        )
        registering.refused(self.service, registration, why)

    def _begin_registration(self) -> None:
        wanted = None if _REGISTRATION in self._lanes else registering.begun(self.service)
        if wanted is None:
            return
        settings = self.service.settings
        self._begin(
            _REGISTRATION, wanted, time.monotonic() + settings.register_seconds,
            lambda ready: registering.registered(self.service, wanted, self._reader),
            behind=True, memory=settings.register_memory,
        )  # fmt: skip

    def _begin_after(self) -> None:
        """Find the outcome of an attempt that was killed; dress what was released."""
        if _AFTER in self._lanes:
            return
        attempt = self._lanes.get(_ATTEMPT)
        for row in self._paid(tables.releases.c.due <= tables.now()):
            status = attempts.status_of(self.service, row)
            at_work = attempt is not None and row.id == attempt.what
            if at_work or status in ("spent", "started") or self._rests.get(row.id, 0.0) > time.monotonic():
                continue
            if status is None:  # a ledger that was put back knows nothing of it; asking would pay once more
                log("release not in the ledger", "error", what="release", process="worker")
                lost(self.service, row.id, pause=False)
                continue
            self._tries[f"find {row.id}"] += 1
            if self._tries[f"find {row.id}"] > _MOST_LOOKS:  # the ledger has it, and it cannot be read: others go on
                log("release cannot be read", "error", what="release", count=_MOST_LOOKS, process="worker")
                lost(self.service, row.id)
                continue
            self._rests[row.id] = time.monotonic() + _REST
            self._follow(row.id, lambda ready: attempts.attempt(self.service, row.id, ready))  # noqa: B023
            return
        undressed = self._undressed()
        if undressed is not None:
            self._tries[f"dress {undressed}"] += 1
            self._follow(undressed, lambda ready: attempts.dress(self.service, undressed))

    def _follow(self, release: str, work: Work) -> None:
        self._begin(_AFTER, release, time.monotonic() + _DRESSING, work, behind=True)

    def _undressed(self) -> str | None:
        """Return a release without its picture or its report, the latest first; None where all have them.

        Looked for once in a while alone: there may be very many.
        """
        if time.monotonic() < self._next_look:
            return None
        rows = tables.releases
        bare = and_(rows.c.state == "released", or_(rows.c.picture.is_(None), rows.c.report.is_(None)))
        wanted = select(rows.c.id).where(bare).order_by(rows.c.publishes.desc()).limit(100)
        found = (row.id for row in self.service.database.rows(wanted))
        bare_one = next((one for one in found if self._tries[f"dress {one}"] < _MOST_TRIES), None)
        self._next_look = 0.0 if bare_one else time.monotonic() + _LOOK
        return bare_one

    def _begin(self, lane: str, what: str, until: float, work: Work, **limits: Any) -> None:
        """Have a child do something; what files are this process's alone, it closes."""
        own = [self._lock, *(one.child.pipe for one in self._lanes.values() if one.child.pipe >= 0)]
        self._lanes[lane] = _Lane(fork(work, closing=own, **limits), what, until)


def prepare() -> None:
    """Import what children need, so that they begin at once."""
    with contextlib.suppress(ImportError):  # then there are no pictures
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.figure

    from dpmanifold.stats.query import offered

    offered()


def _locked(service: Service) -> int:
    """Take the lock of the one worker, or refuse."""
    path = service.settings.vault / "worker.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as problem:
        raise InvalidArgumentError(
            f"the vault {service.settings.vault} cannot be written to: {problem.strerror}. It must be a folder of the "
            "worker's user alone."
        ) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InvalidArgumentError(f"another worker is at work in {service.settings.vault}. Stop it first.") from None
    return handle
