"""The worker: the one process that opens records. It forks a child for every piece of work, and keeps to the timetable.

Three lanes, each with one child at a time. Attempts come first: one slot after the other, never two at once, and a
child that is not ready when its slot ends is killed. Registrations and what follows a release (a picture, a report, the
outcome of an attempt that was killed) have what the attempts leave of the machine.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from sqlalchemy import Row, and_, or_, select, update

from dpmanifold import plots
from dpmanifold.codec import answer_from_bytes, answer_to_bytes
from dpmanifold.errors import InvalidArgumentError, LedgerError, Message, Public, ReleaseLostError
from dpmanifold.files import closed_if_it_fails
from dpmanifold.report import html_report
from dpmanifold.service import beats, canonical, registering, tables
from dpmanifold.service.http_errors import NotFound, Unavailable
from dpmanifold.service.logs import log
from dpmanifold.service.ordering import Punctual, asked_before, catch_up, lost, paused_since, population_named, schedule
from dpmanifold.service.processes import Child, Work, fork
from dpmanifold.service.redaction import write_notice
from dpmanifold.service.service import Service
from dpmanifold.stats.curator import Notice
from dpmanifold.storage.locks import AlreadyHeldError, Held, HeldFile

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
_NO_RECORDS = 60.0  # seconds between two looks for records that the vault has not
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
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self._lanes: dict[str, _Lane] = {}
        self._tries: Counter[str] = Counter()
        self._rests: dict[str, float] = {}
        self._stopping = 0
        self._next_beat = self._next_catch_up = self._next_look = 0.0
        self._locks: list[Held] = []
        self._has_lost = False
        with closed_if_it_fails(self):
            self._take_locks()
            registering.refuse_another_vault(service.database, service.settings.vault)
            beats.beat(service.database)

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
        if self._has_lost:
            raise Unavailable(
                "The worker has lost its lock: its connection to the database has ended, or the lock's file was "
                "removed. It began nothing after that. Start it again once the database answers."
            )

    def _take_locks(self) -> None:
        """Be the one worker of the database and of the vault, or refuse."""
        database, vault = self.service.database, self.service.settings.vault
        try:
            self._locks.append(database.hold(f"worker-{database.value(select(tables.facts.c.service))}"))
        except AlreadyHeldError:
            raise InvalidArgumentError(
                f"another worker is at work with the database {database.name}: {beats.words(database)}. Stop it first: "
                "its lock ends with its process, and half a minute later where its whole machine is gone."
            ) from None
        try:
            self._locks.append(HeldFile(vault / "worker.lock", 0o600))
        except AlreadyHeldError:
            raise InvalidArgumentError(
                f"another worker, of another database, is at work in {vault}. Stop it first, or give each its own "
                "vault (records.vault)."
            ) from None
        except OSError as problem:
            raise InvalidArgumentError(
                f"the vault {vault} cannot be written to: {problem.strerror}. It must be a folder of the worker's user "
                "alone."
            ) from None

    def _is_the_one(self) -> bool:
        """Return whether this has its locks still; without, it begins nothing more and ends."""
        if not self._has_lost and not all(lock.is_held() for lock in self._locks):
            log("worker lost its lock", "error", process="worker")
            self._has_lost = True
            self._stopping += 1
        return not self._has_lost

    def close(self) -> None:
        """End all children, and let another worker take the place."""
        for lane in self._lanes.values():
            lane.child.kill()
        self._lanes.clear()
        for lock in self._locks:
            lock.release()

    def _stop(self, number: int, frame: object) -> None:
        self._stopping += 1

    def step(self) -> None:
        """Look at everything once, and begin what is to be begun."""
        self._watch_attempt()  # whatever the database is up to: the end of a slot waits for nothing
        self._watch_others()
        if not self._is_the_one():
            return
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
            if status_of(self.service, row) != "spent":
                held.add(row.population)
                continue
            paused = paused_since(self.service, row.population) is not None
            if self._tries[row.id] >= _MOST_TRIES or paused or row.population in held:
                continue
            if self._rests.get(row.id, 0.0) > time.monotonic():
                continue
            try:
                registering.folder_of(self.service, row.population, row.dataset)
            except LedgerError:  # to begin it would be to lose it
                log("release without records in the vault", "error", what="release", process="worker")
                self._rests[row.id] = time.monotonic() + _NO_RECORDS
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
            self._begin(_ATTEMPT, row.id, due, lambda ready: attempt(self.service, row.id, ready))  # noqa: B023
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
            lambda ready: registering.registered(self.service, wanted),
            behind=True, memory=settings.register_memory,
        )  # fmt: skip

    def _begin_after(self) -> None:
        """Find the outcome of an attempt that was killed; dress what was released."""
        if _AFTER in self._lanes:
            return
        running = self._lanes.get(_ATTEMPT)
        for row in self._paid(tables.releases.c.due <= tables.now()):
            status = status_of(self.service, row)
            at_work = running is not None and row.id == running.what
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
            self._follow(row.id, lambda ready: attempt(self.service, row.id, ready))  # noqa: B023
            return
        undressed = self._undressed()
        if undressed is not None:
            self._tries[f"dress {undressed}"] += 1
            self._follow(undressed, lambda ready: dress(self.service, undressed))

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
        own = [one.child.pipe for one in self._lanes.values() if one.child.pipe >= 0]
        self._lanes[lane] = _Lane(fork(work, closing=own, **limits), what, until)


def prepare() -> None:
    """Import what children need, so that they begin at once."""
    with contextlib.suppress(ImportError):  # then there are no pictures
        import matplotlib

        matplotlib.use("Agg")
        import matplotlib.figure

    from dpmanifold.stats.query import offered

    offered()


# -------------------------------------------------------------------- one attempt at a release, in a child

# The private call is the library's own, about registered data. Its account lets the outcome out when the slot ends, so
# that neither the ledger nor a table of the service tells how long the work took. Why a release is lost is written to a
# file of the vault, for whoever holds the records, and is nowhere else.


_DOTS = 150  # of a picture per inch: sharp on a screen with two dots for one


def receipt_in(stored: bytes) -> dict[str, Any] | None:
    """Return the receipt that an answer carries, without rebuilding it: all of its releases have the same one."""
    return _receipt(json.loads(stored))


def _receipt(record: Any) -> dict[str, Any] | None:
    if isinstance(record, dict):
        found = record.get("receipt")
        if isinstance(found, dict):
            return found
    inner = record.values() if isinstance(record, dict) else record if isinstance(record, list) else ()
    return next((found for found in map(_receipt, inner) if found is not None), None)


def attempt(service: Service, release: str, ready: Callable[[], object]) -> None:
    """Answer a release that is paid for, or find out that it is lost; either comes to light when it is due.

    One that has an outcome in the ledger gets it from there, and no records are opened.

    Parameters
    ----------
    service : where
    release : its id
    ready : called when the work is over, before the wait for the end of the slot
    """
    row = service.database.by_id(tables.releases, release)
    due = tables.moment(row.due).timestamp()
    asked = asked_before(
        service, row, lambda: canonical.open_folder(registering.folder_of(service, row.population, row.dataset))
    )

    def in_time() -> None:
        _disarm()
        ready()

    account = Punctual(asked.account, due, in_time)
    _arm(due)
    try:
        answer = asked.call(account, row.key, curator=lambda notice: _told(service, release, notice))
        stored = answer_to_bytes(answer)
    except ReleaseLostError:
        stored = None
    except LedgerError:
        raise  # the ledger may answer later
    except Exception:
        write_notice(service.settings.vault, release, traceback.format_exc())
        raise
    _disarm()
    time.sleep(max(0.0, due - time.time()))
    if stored is None:
        lost(service, release, pause=not asked.account.recovered(row.key))
    else:
        outcome = {"state": "released", "result": stored, "receipt": json.dumps(receipt_in(stored))}
        once = update(tables.releases).where(tables.release_in(release, "paid")).values(**outcome)
        service.database.write(once)


def _arm(due: float) -> None:
    """Have the system end this process when the slot does, whoever else is too busy to: work that is late is lost."""
    left = due - time.time()
    if left > 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, left)


def _disarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.0)


def dress(service: Service, release: str) -> None:
    """Make the picture and the report of a release that came out."""
    answer = answer_from_bytes(service.database.by_id(tables.releases, release).result)
    made: dict[str, bytes] = {}
    for name, make in (("report", report_of), ("picture", picture_of)):
        with contextlib.suppress(Exception):  # one can be there without the other
            made[name] = make(answer)
    if made:
        service.database.write(update(tables.releases).where(tables.releases.c.id == release).values(**made))


def status_of(service: Service, row: Row[Any]) -> str | None:
    """Return what the ledger says about the key of a release."""
    try:
        return population_named(service, row.population).as_principal(row.account).status(row.key)
    except NotFound:  # a ledger that was put back may not even have its population
        return None


def _told(service: Service, release: str, notice: Notice) -> None:
    """Keep why a release is lost; what else a curator is told, stewards were when the data were registered."""
    if notice.problem:
        write_notice(service.settings.vault, release, notice.problem)


def picture_of(answer: Any) -> bytes:
    """Return the picture of an answer as PNG; of means by class, one that shows them all where there is one.

    Parameters
    ----------
    answer : a Result, or a dict of releases by class
    """
    sheet = io.BytesIO()
    _figure(answer).savefig(sheet, format="png", dpi=_DOTS)
    return sheet.getvalue()


def _figure(answer: Any) -> Any:
    try:
        return plots.show(answer)
    except InvalidArgumentError:
        if not isinstance(answer, Mapping):
            raise
        return plots.show(next(iter(answer.values())))


def report_of(answer: Any) -> bytes:
    """Return the report of an answer, one HTML page; of means by class, their reports one after the other."""
    if not isinstance(answer, Mapping):
        return html_report(answer).encode("utf-8")
    pages = [(str(name), html_report(release)) for name, release in answer.items()]
    head, _, _ = pages[0][1].partition("<body>")
    parts = [f"<h1>Class {html.escape(name)}</h1>\n{_body(page)}" for name, page in pages]
    return f"{head}<body>\n{''.join(parts)}</body></html>\n".encode()


def _body(page: str) -> str:
    """Return what stands between the tags of a page's body; text in it has no tags of its own."""
    return page.partition("<body>")[2].rpartition("</body>")[0]
