"""The witness: what a restored, copied or edited database is told, what a crash leaves, and that opening is cheap."""

from __future__ import annotations

import os
import pathlib
import resource
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from dpmanifold import GDP
from dpmanifold.errors import LedgerError
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.witness import Witness

pytestmark = pytest.mark.security

LEDGER = "a-ledger"


class Table:
    """A database in a list."""

    def __init__(self, count: int = 0) -> None:
        self.entries: list[Entry] = []
        for _ in range(count):
            self.add()

    def add(self, kind: str = "spend", **facts: object) -> Entry:
        before = self.entries[-1] if self.entries else None
        entry = Entry.chained(LEDGER, before, kind if before else "created", "", None, dict(facts))
        self.entries.append(entry)
        return entry

    def at(self, seq: int) -> Entry | None:
        return self.entries[seq - 1] if seq <= len(self.entries) else None

    def read(self, first: int) -> list[Entry]:
        return self.entries[first - 1 :]


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "study.witness"


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
def witness(path: pathlib.Path, table: Table) -> Witness:
    witness = Witness(path, LEDGER)
    witness.create()
    table.add()
    witness.catch_up(table.read)
    return witness


def test_a_database_that_is_ahead_is_caught_up(witness: Witness, table: Table) -> None:
    for _ in range(5):
        table.add(note="é" * 5000)
    witness.check(table.at)
    assert witness.catch_up(table.read) == 6
    assert witness.last() == table.entries[-1]
    assert [entry for _, entry in witness.lines()] == table.entries
    assert witness.catch_up(table.read) == 6


def test_a_database_put_back_from_a_backup_is_refused(witness: Witness, table: Table) -> None:
    table.add()
    witness.catch_up(table.read)
    del table.entries[1:]
    for refused in (lambda: witness.check(table.at), lambda: witness.catch_up(table.read)):
        with pytest.raises(LedgerError, match=r"entry 2 .spend., and the database does not.*reconcile"):
            refused()
    table.add(note="another")  # and then spent from
    for refused in (lambda: witness.check(table.at), lambda: witness.catch_up(table.read)):
        with pytest.raises(LedgerError, match=r"another entry 2 .spend. than the database.*reconcile"):
            refused()


def test_a_copy_of_the_database_is_found_out_when_it_is_spent_from(witness: Witness, table: Table) -> None:
    copy = Table()
    copy.entries = list(table.entries)
    table.add(note="here")
    copy.add(note="there")
    witness.catch_up(table.read)
    with pytest.raises(LedgerError, match="another entry 2"):
        witness.catch_up(copy.read)


def test_a_missing_or_emptied_witness_is_refused(witness: Witness, table: Table) -> None:
    table.add()
    witness.catch_up(table.read)
    os.truncate(witness.path, 0)
    for refused in (lambda: witness.check(table.at), lambda: witness.catch_up(table.read)):
        with pytest.raises(LedgerError, match="is empty, and the database is not"):
            refused()
    witness.path.unlink()
    for refused in (lambda: witness.check(table.at), lambda: witness.catch_up(table.read), lambda: witness.last()):
        with pytest.raises(LedgerError, match="is missing"):
            refused()
    assert not witness.path.exists()


def test_half_a_line_is_cut_and_written_anew(witness: Witness, table: Table) -> None:
    whole = witness.path.read_bytes()
    line = (table.add(note="x" * 9000).line() + "\n").encode()
    for length in (1, 50, 4095, 4096, 4097, len(line) - 1):
        witness.path.write_bytes(whole + line[:length])
        assert witness.last() == table.entries[0]
        witness.check(table.at)
        assert [entry for _, entry in witness.lines()] == table.entries[:1]
        assert witness.catch_up(table.read) == 2
        assert witness.path.read_bytes() == whole + line
    witness.path.write_bytes(whole + bytes(5000))  # what a power cut may leave
    assert witness.catch_up(table.read) == 2
    assert witness.path.read_bytes() == whole + line


def test_the_first_line_cut_short_is_written_anew(path: pathlib.Path) -> None:
    witness, table = Witness(path, LEDGER), Table(1)
    witness.create()
    path.write_bytes(table.entries[0].line().encode()[:20])
    witness.check(table.at)
    assert witness.catch_up(table.read) == 1
    assert witness.last() == table.entries[0]


def test_a_file_that_is_there_is_not_taken(witness: Witness, tmp_path: pathlib.Path) -> None:
    with pytest.raises(LedgerError, match="is there already"):
        witness.create()
    with pytest.raises(LedgerError, match="cannot be made"):
        Witness(tmp_path / "nowhere" / "study.witness", LEDGER).create()
    empty = Witness(tmp_path / "cut short", LEDGER)
    empty.create()
    empty.create()


def test_another_ledgers_witness_and_edited_last_lines_are_refused(witness: Witness, table: Table) -> None:
    with pytest.raises(LedgerError, match="belongs to another ledger"):
        Witness(witness.path, "another").check(table.at)
    edited = replace(table.entries[0], body='{"cap":"9"}')
    witness.path.write_text(edited.line() + "\n")
    with pytest.raises(LedgerError, match="its last line was edited"):
        witness.check(table.at)
    witness.path.write_text("what is this\n")
    with pytest.raises(LedgerError, match="last line that is no entry"):
        witness.last()


def test_an_entry_that_does_not_follow_is_not_witnessed(witness: Witness, table: Table) -> None:
    table.add()
    table.add()
    table.entries[1] = replace(table.entries[1], body='{"edited":1}')
    with pytest.raises(LedgerError, match=r"entry 2 .spend. of the database does not follow.*audit"):
        witness.catch_up(table.read)
    del table.entries[1]
    with pytest.raises(LedgerError, match=r"entry 3 .spend. of the database does not follow"):
        witness.catch_up(lambda first: [entry for entry in table.entries if entry.seq >= first])
    assert len(list(witness.lines())) == 1


def test_a_full_disk_leaves_what_was_there(witness: Witness, table: Table) -> None:
    before = witness.path.read_bytes()
    table.add(note="x" * 5000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, hard))
    try:
        with pytest.raises(LedgerError, match="cannot be written: File too large"):
            witness.catch_up(table.read)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert witness.path.read_bytes() == before
    assert witness.catch_up(table.read) == 2


def test_a_failed_sync_is_no_success_and_is_written_again(
    witness: Witness, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(handle: int) -> None:
        raise OSError(5, "Input/output error")

    before = witness.path.read_bytes()
    table.add()
    with monkeypatch.context() as patch:
        patch.setattr("dpmanifold.ledger.witness.sync_file", fails)
        with pytest.raises(LedgerError, match="cannot be written: Input/output error"):
            witness.catch_up(table.read)
    assert witness.path.read_bytes() == before


def test_what_another_wrote_is_synced_too(witness: Witness, table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    table.add()
    with witness.path.open("ab") as file:
        file.write((table.entries[1].line() + "\n").encode())
    synced: list[int] = []
    monkeypatch.setattr("dpmanifold.ledger.witness.sync_file", synced.append)
    assert witness.catch_up(table.read) == 2
    assert len(synced) == 1
    assert witness.catch_up(table.read) == 2  # and not again what this process has synced
    assert len(synced) == 1
    with witness.path.open("ab") as file:
        file.write((table.add().line() + "\n").encode())
    assert witness.catch_up(table.read) == 3
    assert len(synced) == 2
    witness.path.rename(witness.path.with_name("kept"))  # another file of the same content
    witness.path.write_bytes(witness.path.with_name("kept").read_bytes())
    assert witness.catch_up(table.read) == 3
    assert len(synced) == 3


def test_who_only_reads_a_ledger_does_not_append(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        ledger.population("cohort", cap=GDP(1.0), unit="person")
        ledger.write(lambda writer: writer.append("note", "", None))
    before = ledger.witness.path.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(Witness, "writable", False)
        with Ledger(tmp_path / "study.db", principal="eve") as ledger:
            assert len(ledger.history()) == 3
            assert "the last entry is not in the witness yet" in ledger.audit().notes[0]
    assert ledger.witness.path.read_bytes() == before
    assert ledger.witness.writable


def test_threads_append_each_entry_once(witness: Witness, table: Table) -> None:
    lock = threading.Lock()

    def spend() -> None:
        for _ in range(20):
            with lock:
                seq = table.add().seq
            assert witness.catch_up(table.read) >= seq

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [entry for _, entry in witness.lines()] == table.entries


_CHILD = """
import sys
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.witness import Witness
entries = [Entry.chained("a-ledger", None, "created", "", None, {})]
for _ in range(2000):
    entries.append(Entry.chained("a-ledger", entries[-1], "spend", "", None, {"note": "x" * 3000}))
witness = Witness(sys.argv[1], "a-ledger")
for count in range(1, 2000):
    witness.catch_up(lambda first: entries[first - 1 : max(count, first)])
    print(count, flush=True)
"""


def test_a_process_that_is_killed_leaves_a_witness_that_goes_on(path: pathlib.Path) -> None:
    witness, table = Witness(path, LEDGER), Table(1)
    witness.create()
    for _ in range(2000):
        table.add(note="x" * 3000)
    with subprocess.Popen([sys.executable, "-c", _CHILD, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while int(process.stdout.readline()) < 20:
            assert witness.catch_up(lambda first: table.entries[first - 1 : first]) <= 2000
        process.kill()
    reached = witness.catch_up(lambda first: table.entries[first - 1 : first])
    assert 20 <= reached < 2000
    assert [entry for _, entry in witness.lines()] == table.entries[:reached]
    assert witness.catch_up(table.read) == 2001


def test_opening_reads_the_end_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As often, and a few bytes, however long the witness is."""
    read: list[int] = []
    pread = os.pread

    def counting(handle: int, length: int, place: int) -> bytes:
        found = pread(handle, length, place)
        read.append(len(found))
        return found

    def reads(lines: int) -> int:
        witness, table = Witness(tmp_path / str(lines), LEDGER), Table(lines)
        witness.create()
        with witness.path.open("w") as file:
            file.writelines(entry.line() + "\n" for entry in table.entries)
        read.clear()
        witness.check(table.at)
        table.add()
        witness.catch_up(table.read)
        assert 0 < sum(read) < 20_000
        return len(read)

    monkeypatch.setattr(os, "pread", counting)
    assert reads(300) == reads(30_000)
