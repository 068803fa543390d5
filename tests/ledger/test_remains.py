"""Files that tell of a ledger whose database is gone, links to it, and who may read what belongs to it."""

from __future__ import annotations

import os
import stat
import unicodedata

import pytest

from dpmanifold import GDP
from dpmanifold.errors import InvalidArgumentError, LedgerError
from dpmanifold.ledger import Ledger
from dpmanifold.ledger.fingerprints import new_key, read_key
from ledger_clients import POPULATION, order

pytestmark = pytest.mark.security


def spend_all(path, **places):
    with Ledger(path, principal="ada", **places) as ledger:
        cohort = ledger.population(POPULATION, cap=GDP("0.1"), unit="participant")
        cohort.settle(order("all"), lambda receipt: b"drawn")


def remove_database(path):
    for end in ("", "-wal", "-shm"):
        path.with_name(path.name + end).unlink(missing_ok=True)


@pytest.mark.parametrize("make", [Ledger, Ledger.create])
def test_a_database_that_is_gone_is_no_fresh_cap(tmp_path, make):
    """The witness is elsewhere and, as it is stored, not given again: the key and the locks tell."""
    path = tmp_path / "study.db"
    (tmp_path / "vault").mkdir()
    spend_all(path, witness=tmp_path / "vault" / "witness")
    remove_database(path)
    with pytest.raises(LedgerError, match=r"study.db is gone.*study\.db\.key.*reconcile"):
        make(path, principal="ada")
    assert not path.exists()


@pytest.mark.parametrize("left", [".key", ".witness", ".locks", "-wal", "-shm"])
def test_any_file_of_a_ledger_tells_that_it_is_gone(tmp_path, left):
    path = tmp_path / "study.db"
    (tmp_path / f"study.db{left}").touch(mode=0o600)
    for make in (Ledger, Ledger.create):
        with pytest.raises(LedgerError, match=f"gone.*study.db{left}"):
            make(path, principal="ada")
    (tmp_path / f"study.db{left}").unlink()
    Ledger(path, principal="ada").close()


def test_a_file_that_was_emptied_is_no_fresh_cap(tmp_path):
    path = tmp_path / "study.db"
    (tmp_path / "vault").mkdir()
    spend_all(path, witness=tmp_path / "vault" / "witness")
    remove_database(path)
    path.touch()
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"is gone.*key"):
            Ledger(path, principal="ada")


def test_remains_are_found_on_a_server_before_tables_are_made(tmp_path, cluster):
    address = cluster.address("postgres", cluster.new_schema())
    new_key(tmp_path / "w.key")
    for _ in range(2):
        with pytest.raises(LedgerError, match=r"no ledger.*w\.key"):
            Ledger.create(address, witness=tmp_path / "w.witness", principal="ada", writer="writer")
        assert not (tmp_path / "w.witness").exists()
    (tmp_path / "w.key").unlink()
    Ledger.create(address, witness=tmp_path / "w.witness", principal="ada", writer="writer").close()


def test_a_creation_that_was_cut_short_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "study.db"
    monkeypatch.setattr("dpmanifold.ledger.ledger.key_check", lambda key, ledger: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Ledger(path, principal="ada")
    monkeypatch.undo()
    assert (tmp_path / "study.db.key").exists()
    with Ledger(path, principal="ada") as ledger:
        assert ledger.audit().ok


def test_a_key_of_somebody_else_is_no_key_of_a_new_ledger(tmp_path, monkeypatch):
    path = tmp_path / "key"
    new_key(path)
    assert read_key(path, own=True)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(LedgerError, match="belongs to another user"):
        read_key(path, own=True)


def test_a_link_is_the_ledger_that_it_leads_to(tmp_path):
    """Attempts through a link and through the path are the same: who is at work by one is seen by the other."""
    path, link = tmp_path / "study.db", tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with pytest.raises(LedgerError, match=r"is a link to .*study\.db, which is not there"):
        Ledger(link, principal="ada")
    with Ledger(path, principal="ada") as ledger, Ledger(link, principal="ada") as same:
        assert same.id == ledger.id
        assert same.secret == ledger.secret
        cohort = ledger.population(POPULATION, cap=GDP("1"), unit="participant")
        seen = []

        def work(receipt):
            seen.append(same.population(POPULATION).status("a"))
            return b"drawn"

        cohort.settle(order("a"), work)
    assert seen == ["started"]
    assert [found.name for found in link.parent.iterdir()] == ["link.db"]


def test_names_that_look_the_same_are_the_same(tmp_path):
    composed, taken_apart = (unicodedata.normalize(form, "\u00e9tude") for form in ("NFC", "NFD"))
    with Ledger(tmp_path / "study.db", principal=taken_apart) as ledger:
        assert ledger.principal == composed
        ledger.population(composed, cap=GDP("1"), unit="participant")
        assert ledger.population(taken_apart).name == composed
        with pytest.raises(InvalidArgumentError):
            ledger.population(taken_apart, cap=GDP("2"))
        assert len(ledger.populations()) == 1


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o640), (0o077, 0o600)])
def test_others_cannot_read_the_files_of_a_ledger(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        spend_all(tmp_path / "study.db")
        with Ledger(tmp_path / "study.db", principal="ada"):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.is_file()}
    finally:
        os.umask(before)
    assert modes.pop("study.db.key") == 0o600
    assert set(modes) >= {"study.db", "study.db.witness"}
    assert set(modes.values()) == {mode}


def test_an_audit_notes_a_witness_on_the_same_volume(tmp_path, monkeypatch):
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        assert any("own volume" in note for note in ledger.audit().notes)
        monkeypatch.setattr("dpmanifold.ledger.ledger.same_volume", lambda one, other: False)
        assert not ledger.audit().notes
        assert ledger.audit().ok
