"""The witness: a file on another volume that has every entry of a ledger, as a second memory that is only appended to.

A database that was put back from a backup has forgotten spends; alone it cannot know. The witness has not forgotten,
and the ledger refuses to open until both agree. Each line is a whole entry, so that what the database has lost can be
told in full.

Each call opens the file anew and leaves nothing open: threads and forked processes do not disturb each other.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, final

from dpmanifold.errors import LedgerError
from dpmanifold.files import sync_file, sync_folder
from dpmanifold.ledger.entries import Entry
from dpmanifold.storage.chain import place_after
from dpmanifold.storage.locks import lock_file, unlock_file

_TAIL = 4096  # bytes read from the end at first; lines are seldom longer
_PIECE = 2**20  # bytes written, or read, at a time
_MODE = 0o640

_REMEDY = (
    "A database that was put back from a backup has forgotten what was spent since. Reconcile them (dpm ledger "
    "reconcile, or Ledger(where, reconcile=reason)): what only the witness has is then counted as spent."
)


_PUT_BACK = "Put the file back from where a copy is kept: the lines of an export after its first are such a copy."

Read = Callable[[int], Iterable[Entry]]
"""Gives a database's committed entries from a number on, in order."""


@final
class Witness:
    """The file beside a ledger that remembers all of its entries.

    Parameters
    ----------
    path : of the file; best on another volume than the database, which no backup puts back together with it
    ledger : the ledger's id

    Examples
    --------
    >>> import tempfile
    >>> first = Entry.chained("a-ledger", None, "created", "", None, {})
    >>> second = Entry.chained("a-ledger", first, "population", "cohort", None, {})
    >>> table = [first]
    >>> witness = Witness(pathlib.Path(tempfile.mkdtemp()) / "study.witness", "a-ledger")
    >>> witness.create()
    >>> witness.catch_up(lambda seq: table[seq - 1:])
    1
    >>> table.append(second)
    >>> witness.catch_up(lambda seq: table[seq - 1:])
    2
    >>> witness.last() == second
    True
    >>> del table[1]  # a backup of yesterday
    >>> witness.check(lambda seq: table[seq - 1] if seq <= len(table) else None)
    Traceback (most recent call last):
    ...
    dpmanifold.errors.LedgerError: the witness ... has entry 2 (population), and the database does not. A database ...
    """

    def __init__(self, path: str | os.PathLike[str], ledger: str) -> None:
        self.path, self.ledger = pathlib.Path(path), ledger
        self._synced: tuple[int, int, int] | None = None  # device, file and size when it was last on the disk

    def __repr__(self) -> str:
        return f"Witness({str(self.path)!r})"

    @property
    def writable(self) -> bool:
        """Whether this process may append to it: who only reads a ledger need not."""
        return os.access(self.path, os.W_OK)

    def create(self) -> None:
        """Make the file, empty. One that is there is refused, unless it is empty too: a creation that was cut short."""
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, _MODE)
        except OSError as problem:
            self._refuse(f"cannot be made: {problem.strerror}. Choose a folder that exists and can be written to.")
        with io.FileIO(handle, "r+"):
            if os.fstat(handle).st_size:
                self._refuse("is there already. Give another name; a witness serves one ledger.")
            sync_file(handle)
        sync_folder(self.path.parent)

    def last(self) -> Entry | None:
        """Return the last whole line's entry, None of an empty file. Reads the end of the file alone.

        Raises LedgerError where the file is missing, or its last line is no entry of this ledger.
        """
        with self._opened(os.O_RDONLY) as handle:
            return self._last(handle, _whole(handle))

    def check(self, entry_at: Callable[[int], Entry | None]) -> None:
        """Refuse a database that the witness contradicts: it has forgotten an entry, or has another in its place.

        Parameters
        ----------
        entry_at : gives the database's entry of a number, None where there is none. It is called after the witness was
            read and must see all that was committed until then, so that an entry that is added meanwhile is no fault.
        """
        self._compare(self.last(), entry_at)

    def catch_up(self, read: Read) -> int:
        """Append what the database has more, have it on the disk, and return the number of the last entry there.

        Refuses as :meth:`check` does. Whatever was committed before the call is on the disk when it returns.

        Parameters
        ----------
        read : gives the committed entries from a number on, in order
        """
        with self._opened(os.O_RDWR | os.O_APPEND) as handle:
            size = _whole(handle)
            last = self._last(handle, size)
            entries = iter(read(1 if last is None else last.seq))
            head = list(itertools.islice(entries, 2 if last is None else 1))
            self._compare(last, {entry.seq: entry for entry in head}.get)
            return self._append(handle, size, itertools.chain(head if last is None else [], entries), last)

    def reconcile(self, read: Read, recover: Callable[[int, list[Entry]], None]) -> None:
        """Have the database take back what only the witness remembers, and then go on with the database.

        Reads the whole file. Nobody else appends to it meanwhile. Where this is cut short, it can be done again.

        Parameters
        ----------
        read : as for :meth:`catch_up`
        recover : is given the number of the last entry that both have in common, and what the witness has after it
            and the database has not; commits what is to be remembered of these. It is not called if there are none
        """
        with self._opened(os.O_RDWR | os.O_APPEND) as handle:
            size = _whole(handle)
            if self._last(handle, size) is None:
                self._compare(None, lambda seq: next(iter(read(seq)), None))
            common, lost = self._lost(size, read)
            if lost:
                recover(common.seq, lost)
            self._append(handle, size, itertools.islice(read(common.seq), 1, None), common)

    def _lost(self, size: int, read: Read) -> tuple[Entry, list[Entry]]:
        """Return the last entry that is in both, and what follows it in the witness alone.

        A line whose number is not the next one goes back: there the ledger was reconciled before, and what stands
        between is left behind.
        """
        common: Entry | None = None
        lost: list[Entry] = []
        there = iter(read(1))
        for number, line in self._numbered(size):
            before = lost[-1] if lost else common
            if line is None or line.hash != line.hash_in(self.ledger):
                self._refuse(f"has a line {number} that is no entry of this ledger. {_PUT_BACK}")
            if before is not None and line.seq <= before.seq:
                first = before.seq - len(lost)  # the last that both have
                del lost[max(0, line.seq - first - 1) :]
                if not lost:
                    common = next(iter(read(line.seq - 1)), None) if line.seq > 1 else None
                    there = iter(read(line.seq))
                before = lost[-1] if lost else common
            if (line.seq, line.prev) != place_after(before):
                self._refuse(f"has a line {number} that does not follow the one before it. {_PUT_BACK}")
            if not lost and next(there, None) == line:
                common = line
            else:
                lost.append(line)
        if common is None:
            self._refuse("and the database have nothing in common. Give the database and the witness of one ledger.")
        return common, lost

    def lines(self) -> Iterator[tuple[int, Entry | None]]:
        """Return all whole lines that are there now, with their numbers from 1; None for a line that is no entry.

        Nothing is locked meanwhile, and memory is bounded by the longest line.
        """
        with self._opened(os.O_RDONLY) as handle:
            size = _whole(handle)
        return self._numbered(size)

    def _numbered(self, size: int) -> Iterator[tuple[int, Entry | None]]:
        with self.path.open("rb") as file:
            for number in itertools.count(1):
                if file.tell() >= size:
                    return
                yield number, _entry(file.readline())

    def _append(self, handle: int, size: int, missing: Iterable[Entry], last: Entry | None) -> int:
        """Write entries after `size` bytes of whole lines, have them on the disk; return the number of the last."""
        reached = 0 if last is None else last.seq
        if size < os.fstat(handle).st_size:
            try:
                os.ftruncate(handle, size)
            except OSError as problem:
                self._refuse(f"ends in half a line, which cannot be removed: {problem.strerror}. Remove it by hand.")
        try:
            for seq, content in self._chained(missing, last):
                _write(handle, content)
                reached = seq
            # Also where nothing was missing: whoever wrote it may have ended before it was on the disk.
            if self._synced != _state(handle):
                sync_file(handle)
                self._synced = _state(handle)
        except OSError as problem:
            # What a failed write or sync leaves behind may look whole and be on no disk: it is written again.
            with contextlib.suppress(OSError):
                os.ftruncate(handle, size)
            self._refuse(f"cannot be written: {problem.strerror}. Make room, or see to its volume.")
        return reached

    def _compare(self, last: Entry | None, entry_at: Callable[[int], Entry | None]) -> None:
        if last is None:
            # Written to before the second entry is: an empty one beside a database that has two was emptied.
            if entry_at(2) is not None:
                self._refuse(f"is empty, and the database is not. {_PUT_BACK}")
            return
        found = entry_at(last.seq)
        if found is None:
            self._refuse(f"has entry {last.seq} ({last.kind}), and the database does not. {_REMEDY}")
        if found != last:
            self._refuse(f"has another entry {last.seq} ({last.kind}) than the database. {_REMEDY}")

    def _chained(self, entries: Iterable[Entry], before: Entry | None) -> Iterator[tuple[int, bytes]]:
        """Yield entries as lines, many together, with the number of the last.

        What does not follow is refused: the database's own check, made once more where it counts.
        """
        content = bytearray()
        for entry in entries:
            if not entry.follows(self.ledger, before):
                raise LedgerError(
                    f"{entry.title} of the database does not follow the one before it: the database "
                    "was written to by other hands. Run the audit command (dpm ledger audit)."
                )
            content += entry.line().encode("ascii") + b"\n"
            before = entry
            if len(content) >= _PIECE:
                yield entry.seq, bytes(content)
                content.clear()
        if content and before is not None:
            yield before.seq, bytes(content)

    def _last(self, handle: int, size: int) -> Entry | None:
        if size == 0:
            return None
        start = _found_before(handle, size - 1) + 1
        entry = _entry(os.pread(handle, size - start, start))
        if entry is None:
            self._refuse(f"has a last line that is no entry. {_PUT_BACK}")
        if entry.hash != entry.hash_in(self.ledger):
            self._refuse("belongs to another ledger, or its last line was edited. Give the path of this ledger's.")
        return entry

    @contextlib.contextmanager
    def _opened(self, flags: int) -> Iterator[int]:
        """Open the file under a lock, shared for reading, of this call alone for writing."""
        if sys.platform == "win32":
            raise LedgerError("a ledger needs locks of files (flock), which this system does not have. Use Linux.")
        try:
            handle = os.open(self.path, flags)
        except FileNotFoundError:
            self._refuse(
                "is missing. Without it nobody can tell whether the database has forgotten a spend. Mount its volume. "
                f"{_PUT_BACK}"
            )
        except OSError as problem:
            self._refuse(f"cannot be opened: {problem.strerror}. The ledger's users need to read it and write to it.")
        # A file, which closes itself wherever a signal cuts this short: a lock that is left would never be let go of.
        with io.FileIO(handle, "r" if flags == os.O_RDONLY else "r+"):
            try:
                lock_file(handle, shared=flags == os.O_RDONLY)
            except OSError as problem:
                self._refuse(f"cannot be locked: {problem.strerror}. Put it on a volume that has locks of files.")
            try:
                yield handle
            finally:
                unlock_file(handle)

    def _refuse(self, fault: str) -> NoReturn:
        raise LedgerError(f"the witness {self.path} {fault}")


def _entry(line: bytes) -> Entry | None:
    """Return the entry of a line, None where it holds none."""
    try:
        return Entry.from_line(line.decode("ascii").removesuffix("\n"))
    except ValueError:
        return None


def _state(handle: int) -> tuple[int, int, int]:
    found = os.fstat(handle)
    return found.st_dev, found.st_ino, found.st_size


def _whole(handle: int) -> int:
    """Return how many bytes the whole lines take: what stands after the last end of a line was cut short by a crash."""
    return _found_before(handle, os.fstat(handle).st_size) + 1


def _found_before(handle: int, stop: int) -> int:
    r"""Return where the last b"\n" before byte `stop` is, -1 if there is none; from the end on, in growing pieces."""
    length = _TAIL
    while stop > 0:
        start = max(0, stop - length)
        place = os.pread(handle, stop - start, start).rfind(b"\n")
        if place >= 0:
            return start + place
        stop, length = start, min(2 * length, _PIECE)
    return -1


def _write(handle: int, content: bytes) -> None:
    """Write all of it: a single call may write less."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(handle, rest) :]
