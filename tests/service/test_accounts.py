"""Accounts: who signs in, who does not, and that an answer never tells which names there are."""

import concurrent.futures
import contextlib
import threading

import pytest
import sqlalchemy as sa
from argon2 import PasswordHasher

from dpmanifold import InvalidArgumentError
from dpmanifold.service import events, tables
from dpmanifold.service.accounts import AT_ONCE, OF_ADDRESS, OF_NAME, Accounts, Actor, Passwords, count_attempt, forgive
from dpmanifold.service.http_errors import Conflict, NotFound, NotSignedIn, ServiceError, TooMany
from service.conftest import PASSWORD, one_engine

pytestmark = pytest.mark.security

HERE = "192.0.2.7"


def kinds(database, after=0):
    return [(event.kind, event.who) for event in events.page(database, after, 1000)]


def failure_of(accounts, name, password="something else", address=HERE):
    """What an attempt is answered with."""
    with pytest.raises(ServiceError) as caught:
        accounts.signed(name, password, address)
    return caught.value


def counted(database, what):
    with database.reading() as connection:
        return list(connection.execute(sa.select(tables.failures.c.id).where(tables.failures.c.what == what)).scalars())


# ------------------------------------------------------------------------------------------------ accounts


def test_who_was_added_signs_in_with_their_role(accounts, database):
    assert accounts.signed("ada", PASSWORD, HERE) == Actor("ada", "analyst") == accounts.find("ada")
    assert accounts.signed("otto", PASSWORD, HERE).role == "auditor"
    assert kinds(database)[1:] == [("account-added", "operator")] * 3 + [("signed-in", "ada"), ("signed-in", "otto")]
    assert events.verify(database) == []


def test_a_list_has_no_passwords(accounts):
    assert [(one.name, one.role, one.closed) for one in accounts.listed()] == [
        ("ada", "analyst", None), ("otto", "auditor", None), ("sven", "steward", None),
    ]  # fmt: skip
    assert set(accounts.listed()[0].to_dict()) == {"name", "role", "created", "closed", "changed"}
    assert "argon2" not in repr(accounts.listed())


def test_what_is_stored_is_an_argon2id_hash_with_salt(accounts, database):
    with database.reading() as connection:
        stored = connection.execute(sa.select(tables.accounts.c.password)).scalars().all()
    assert len(set(stored)) == 3  # of one password
    assert all(text.startswith("$argon2id$") for text in stored)


def test_the_work_of_a_hash_is_that_of_the_recommendation(monkeypatch):
    monkeypatch.undo()  # of the quick ones
    assert "$m=65536,t=3,p=4$" in Passwords().hash(PASSWORD)


@one_engine
@pytest.mark.parametrize(
    "name", ["", ".", "..", ".ada", "-ada", "a" * 65, "ada lovelace", "ad\u00e0", "ada\n", "a/b", "a:b", "<b>", None, 3,
             "operator", "Service", "others"]
)  # fmt: skip
def test_a_name_that_is_none_is_refused(accounts, name):
    with pytest.raises(InvalidArgumentError, match="name must be"):
        accounts.add(name, "analyst", PASSWORD)


@one_engine
@pytest.mark.parametrize("name", ["a", "a" * 64, "0", "ada.b_c-d", "Grace"])
def test_a_name_may_be(accounts, name):
    accounts.add(name, "analyst", PASSWORD)
    assert accounts.find(name) == Actor(name, "analyst")


@one_engine
@pytest.mark.parametrize("role", ["operator", "", None, "Analyst", ["analyst"]])
def test_a_role_that_is_none_is_refused(accounts, role):
    with pytest.raises(InvalidArgumentError, match="role must be one of analyst, steward, auditor"):
        accounts.add("eve", role, PASSWORD)


@one_engine
@pytest.mark.parametrize("password", ["", "elevenchars", "e\u0301" * 11, None, 123456789012])
def test_a_short_password_is_refused_and_not_repeated(accounts, database, password):
    with pytest.raises(InvalidArgumentError, match="password must") as caught:
        accounts.add("eve", "analyst", password)
    if password:
        assert str(password) not in str(caught.value)
    assert accounts.find("eve") is None


@one_engine
@pytest.mark.parametrize(
    "password", ["a" * 12, " " * 12, "\u00e9" * 12, "x" * 5000, "with a \x00 in it", "\ud800" * 12]
)
def test_any_other_password_will_do(accounts, password):
    accounts.add("eve", "analyst", password)
    assert accounts.signed("eve", password, HERE).name == "eve"
    assert isinstance(failure_of(accounts, "eve", password + "x"), NotSignedIn)


@one_engine
def test_a_letter_is_the_same_however_it_is_composed(accounts):
    accounts.add("eve", "analyst", "caf\u00e9 au lait svp")
    assert accounts.signed("eve", "cafe\u0301 au lait svp", HERE).name == "eve"


@pytest.mark.parametrize("name", ["ada", "ADA", "Ada"])
def test_a_name_is_given_once(accounts, name):
    with pytest.raises(Conflict, match="is taken by the account 'ada'"):
        accounts.add(name, "steward", PASSWORD)
    assert accounts.find("ada").role == "analyst"


def test_a_name_is_not_given_again_after_it_was_closed(accounts):
    accounts.close("ada")
    with pytest.raises(Conflict, match="also after an account was closed"):
        accounts.add("ada", "analyst", PASSWORD)
    assert accounts.find("ada") is None


def test_a_closed_account_does_not_sign_in(accounts, database):
    accounts.close("ada", by="operator")
    assert accounts.listed()[0].closed is not None
    assert isinstance(failure_of(accounts, "ada", PASSWORD), NotSignedIn)
    assert kinds(database)[-2:] == [("account-closed", "operator"), ("sign-in-failed", "ada")]


@one_engine
@pytest.mark.parametrize("name", ["nobody", "closed", "?", ""])
def test_who_is_not_there_is_not_found(accounts, name):
    accounts.add("closed", "analyst", PASSWORD)
    accounts.close("closed")
    for action in (lambda: accounts.close(name), lambda: accounts.set_password(name, PASSWORD)):
        with pytest.raises(NotFound):
            action()


def test_a_password_that_is_set_takes_the_place_of_the_other(accounts, database):
    accounts.set_password("ada", "another long password")
    assert isinstance(failure_of(accounts, "ada", PASSWORD), NotSignedIn)
    assert accounts.signed("ada", "another long password", HERE).name == "ada"
    assert ("password-changed", "operator") in kinds(database)


def test_ones_own_password_is_changed_with_the_old_one(accounts, database):
    with pytest.raises(InvalidArgumentError, match="old is not the password"):
        accounts.change_password("ada", "not the old one", "another long password")
    assert accounts.signed("ada", PASSWORD, HERE).name == "ada"
    accounts.change_password("ada", PASSWORD, "another long password")
    assert isinstance(failure_of(accounts, "ada", PASSWORD), NotSignedIn)
    assert accounts.signed("ada", "another long password", HERE).name == "ada"
    assert kinds(database)[4:6] == [("signed-in", "ada"), ("password-changed", "ada")]


@one_engine
def test_old_passwords_are_not_guessed_by_changing_them(accounts):
    for _ in range(OF_NAME):
        with pytest.raises(InvalidArgumentError):
            accounts.change_password("ada", "a guess", "another long password")
    with pytest.raises(TooMany):
        accounts.change_password("ada", PASSWORD, "another long password")


@one_engine
def test_a_hash_of_other_work_is_renewed_when_its_owner_signs_in(accounts, database, monkeypatch):
    monkeypatch.setattr("dpmanifold.service.accounts.ROUNDS", 2)
    later = Accounts(database)
    assert later.signed("ada", PASSWORD, HERE).name == "ada"
    with database.reading() as connection:
        rows = connection.execute(sa.select(tables.accounts.c.name, tables.accounts.c.password)).all()
    assert {name: "t=2" in stored for name, stored in rows} == {"ada": True, "otto": False, "sven": False}
    assert later.signed("ada", PASSWORD, HERE).name == "ada"


def test_who_is_closed_while_the_password_is_verified_does_not_sign_in(accounts, monkeypatch):
    holds = Passwords.holds

    def slow(self, stored, password):
        found = holds(self, stored, password)
        accounts.close("ada")
        return found

    monkeypatch.setattr(Passwords, "holds", slow)
    assert isinstance(failure_of(accounts, "ada", PASSWORD), NotSignedIn)


# ------------------------------------------------------------------------- names are not told from others


@pytest.fixture
def work(accounts, database, monkeypatch):
    """What an attempt does, in steps: hashes verified, with how much work, and statements in the database."""
    steps = []
    verify = PasswordHasher.verify

    def counting(self, stored, password):
        steps.append("argon2 " + stored.split("$")[3])
        return verify(self, stored, password)

    def executed(connection, cursor, statement, *others):
        steps.append(statement)

    monkeypatch.setattr(PasswordHasher, "verify", counting)
    sa.event.listen(database._database.engine, "before_cursor_execute", executed)

    def attempt(name, password="something else"):
        steps.clear()
        failure = failure_of(accounts, name, password)
        return list(steps), type(failure), str(failure)

    yield attempt
    sa.event.remove(database._database.engine, "before_cursor_execute", executed)


def test_no_step_and_no_word_tells_which_names_there_are(accounts, work):
    accounts.close("otto")
    wrong, unknown, closed, unfit = work("ada"), work("nobody"), work("otto", PASSWORD), work("no name" * 50)
    assert wrong == unknown == closed == unfit
    steps, kind, said = wrong
    assert sum(step.startswith("argon2") for step in steps) == 1
    assert len(steps) > 5
    assert (kind, said) == (NotSignedIn, "The name or the password is not right.")


def test_the_comparison_sees_a_shortcut_for_unknown_names(accounts, work, monkeypatch):
    holds = Passwords.holds
    monkeypatch.setattr(
        Passwords, "holds", lambda self, stored, password: bool(stored) and holds(self, stored, password)
    )
    assert work("ada") != work("nobody")


@one_engine
def test_the_secret_of_nobody_opens_nothing(accounts, monkeypatch):
    monkeypatch.setattr(PasswordHasher, "verify", lambda self, stored, password: True)
    assert accounts.signed("ada", "x", HERE).name == "ada"
    assert isinstance(failure_of(accounts, "nobody", "x"), NotSignedIn)


def test_the_log_names_who_exists_and_nobody_else(accounts, database):
    for name in ("ada", "my-other-password", "no name at all"):
        failure_of(accounts, name)
    assert kinds(database, after=4) == [("sign-in-failed", "ada"), ("sign-in-failed", "?"), ("sign-in-failed", "?")]


# ------------------------------------------------------------------------------------------------- limits


def answers(accounts, name, number, address=HERE):
    """The answers to several wrong passwords, with how long one is told to wait, in minutes."""
    found = [failure_of(accounts, name, address=address) for _ in range(number)]
    return [(type(one), str(one), round(getattr(one, "retry_after", 0) / 60)) for one in found]


def test_after_five_failures_of_a_name_nobody_is_let_in_for_a_while(accounts, clock):
    """Not even with the right password; and a name that nobody has is answered likewise."""
    found = answers(accounts, "ada", 8)
    assert [kind for kind, _, _ in found] == [NotSignedIn] * 5 + [TooMany] * 3
    assert found[-1][2] == 15
    assert found == answers(accounts, "nobody", 8, "192.0.2.8")
    assert isinstance(failure_of(accounts, "ada", PASSWORD, "192.0.2.99"), TooMany)
    assert accounts.signed("sven", PASSWORD, HERE).name == "sven"
    clock.forward(minutes=14)
    assert 1 <= failure_of(accounts, "ada", PASSWORD).retry_after <= 60
    clock.forward(minutes=1)
    assert accounts.signed("ada", PASSWORD, HERE).name == "ada"


def test_after_twenty_failures_from_an_address_it_has_to_wait(accounts, clock):
    for number in range(OF_ADDRESS):
        assert isinstance(failure_of(accounts, f"name-{number}"), NotSignedIn)
    assert isinstance(failure_of(accounts, "ada", PASSWORD), TooMany)
    assert accounts.signed("ada", PASSWORD, "192.0.2.8").name == "ada"
    clock.forward(minutes=15)
    assert accounts.signed("ada", PASSWORD, HERE).name == "ada"


@one_engine
def test_one_network_of_ipv6_is_one_address(accounts):
    for number in range(OF_ADDRESS):
        failure_of(accounts, f"name-{number}", address=f"2001:db8::{number:x}")
    assert isinstance(failure_of(accounts, "ada", PASSWORD, "2001:db8::ffff"), TooMany)
    assert accounts.signed("ada", PASSWORD, "2001:db8:0:1::1").name == "ada"


@one_engine
def test_who_waited_as_long_as_told_is_let_in(accounts, clock):
    answers(accounts, "ada", 5)
    clock.forward(seconds=failure_of(accounts, "ada", PASSWORD).retry_after)
    assert accounts.signed("ada", PASSWORD, HERE).name == "ada"


def test_a_right_password_forgives_its_name_and_not_its_address(accounts, database):
    """Else whoever has an account could begin anew whenever they like."""
    answers(accounts, "ada", 4)
    answers(accounts, "sven", 4)
    accounts.signed("ada", PASSWORD, HERE)
    assert counted(database, "name:ada") == []
    assert len(counted(database, "name:sven")) == 4
    assert len(counted(database, f"address:{HERE}")) == 8
    assert [kind for kind, _, _ in answers(accounts, "ada", 5)] == [NotSignedIn] * 5


@one_engine
def test_refused_attempts_write_nothing(accounts, database):
    answers(accounts, "ada", 5)
    before = kinds(database)
    answers(accounts, "ada", 50)
    assert kinds(database) == before
    assert len(counted(database, "name:ada")) == 5
    assert len(counted(database, f"address:{HERE}")) == 5


def test_an_attempt_counts_before_it_is_verified(accounts, database, monkeypatch):
    seen = []
    holds = Passwords.holds

    def looking(self, stored, password):
        seen.append((len(counted(database, "name:ada")), len(counted(database, f"address:{HERE}"))))
        return holds(self, stored, password)

    monkeypatch.setattr(Passwords, "holds", looking)
    assert accounts.signed("ada", PASSWORD, HERE).name == "ada"
    assert seen == [(1, 1)]
    assert counted(database, "name:ada") == counted(database, f"address:{HERE}") == []


def verified_at_once(accounts, monkeypatch, seconds):
    """How many of twelve wrong passwords are verified when all come before the first is answered."""
    seen, arrived = [], threading.Barrier(12)

    def waiting(self, stored, password):
        seen.append(password)
        with contextlib.suppress(threading.BrokenBarrierError):
            arrived.wait(seconds)
        return False

    monkeypatch.setattr(Passwords, "holds", waiting)
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda turn: failure_of(accounts, "ada", f"guess {turn}"), range(12)))
    return len(seen)


def count_afterwards(monkeypatch):
    """Have attempts looked at before the verification, and counted when it has failed."""
    count, verified = count_attempt, Accounts._verified

    def look(connection, name, address=None):
        forgive(connection, count(connection, name, address))
        return []

    def then_count(self, name, password, address):
        found = verified(self, name, password, address)
        with contextlib.suppress(TooMany), self.database.writing() as connection:
            count(connection, name, address)
        return found

    monkeypatch.setattr("dpmanifold.service.accounts.count_attempt", look)
    monkeypatch.setattr(Accounts, "_verified", then_count)


def test_many_at_once_are_no_way_around(accounts, monkeypatch):
    assert verified_at_once(accounts, monkeypatch, 0.5) == OF_NAME


def test_counting_afterwards_would_be_a_way_around(accounts, monkeypatch):
    """What the test above must be able to see; one after the other, nobody would notice."""
    count_afterwards(monkeypatch)
    assert [kind for kind, _, _ in answers(accounts, "sven", 8)] == [NotSignedIn] * 5 + [TooMany] * 3
    assert verified_at_once(accounts, monkeypatch, 20) == 12


@one_engine
def test_two_are_verified_at_once_and_no_more(accounts, monkeypatch):
    verify, running, most, lock = PasswordHasher.verify, [0], [0], threading.Lock()

    def slow(self, stored, password):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        threading.Event().wait(0.05)
        try:
            return verify(self, stored, password)
        finally:
            with lock:
                running[0] -= 1

    monkeypatch.setattr(PasswordHasher, "verify", slow)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: accounts.signed("ada", PASSWORD, f"192.0.2.{n}"), range(4)))
    assert [actor.name for actor in found] == ["ada"] * 4
    assert most == [AT_ONCE]


@one_engine
def test_who_is_not_verified_for_want_of_a_turn_has_not_failed(accounts, database, monkeypatch):
    monkeypatch.setattr("dpmanifold.service.accounts._PATIENCE", 0.05)
    slots = accounts._passwords._slots
    with slots, slots:
        failure = failure_of(accounts, "ada", PASSWORD)
    assert isinstance(failure, TooMany)
    assert counted(database, "name:ada") == counted(database, f"address:{HERE}") == []
    assert accounts.signed("ada", PASSWORD, HERE).name == "ada"
