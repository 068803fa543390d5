"""Logins and tokens: what opens the door, how long, and that it is shut at once when it should be."""

import hashlib
import itertools

import pytest
import sqlalchemy as sa

from dpmanifold import InvalidArgumentError
from dpmanifold.service import events, service_database as database_room, tables
from dpmanifold.service.accounts import Actor
from dpmanifold.service.credentials import Logins, Tokens
from dpmanifold.service.http_errors import NotFound, NotSignedIn
from service.conftest import PASSWORD, one_engine

pytestmark = pytest.mark.security

ADA, SVEN = Actor("ada", "analyst"), Actor("sven", "steward")


@pytest.fixture
def logins(accounts, database):
    return Logins(database, hours=12)


@pytest.fixture
def tokens(accounts, database):
    return Tokens(database)


def rows(database, table):
    with database.reading() as connection:
        return connection.execute(sa.select(table)).all()


def last_kinds(database, number):
    return [(event.kind, event.who) for event in events.page(database, 0, 1000)][-number:]


# ------------------------------------------------------------------------------------------------- logins


def test_a_login_is_found_by_its_cookie(logins, database):
    cookie, login = logins.begin(ADA)
    assert logins.find(cookie) == login
    assert login.actor == ADA
    other, second = logins.begin(ADA)
    assert len({cookie, other, login.csrf, second.csrf}) == 4
    assert logins.find(other) == second


def test_what_is_stored_opens_nothing(logins, database):
    cookie, _ = logins.begin(ADA)
    (row,) = rows(database, tables.logins)
    assert cookie not in row
    assert row.hash == hashlib.sha256(cookie.encode()).hexdigest()
    for value in (row.hash, row.csrf, cookie[:-1], cookie + "a", cookie.swapcase(), "", "\ud800", "\x00"):
        assert logins.find(value) is None


def test_a_login_ends_when_its_time_is_over(logins, clock, database):
    cookie, login = logins.begin(ADA)
    clock.forward(hours=11, minutes=59)
    assert logins.find(cookie) == login
    clock.forward(minutes=1)
    assert logins.find(cookie) is None
    logins.begin(SVEN)
    assert [row.account for row in rows(database, tables.logins)] == ["sven"]  # the other one was cleared away


def test_a_login_ends_at_once_when_its_owner_leaves(logins, database):
    cookie, _ = logins.begin(ADA)
    other, _ = logins.begin(ADA)
    logins.end(cookie)
    assert logins.find(cookie) is None
    assert logins.find(other) is not None
    logins.end(cookie)  # once more does nothing
    assert last_kinds(database, 2) == [("account-added", "operator"), ("signed-out", "ada")]


@pytest.mark.parametrize("how", ["close", "set", "change"])
def test_logins_end_with_the_account_and_with_the_password(accounts, logins, how):
    cookie, _ = logins.begin(ADA)
    other, _ = logins.begin(SVEN)
    {
        "close": lambda: accounts.close("ada"),
        "set": lambda: accounts.set_password("ada", "another long password"),
        "change": lambda: accounts.change_password("ada", PASSWORD, "another long password"),
    }[how]()
    assert logins.find(cookie) is None
    assert logins.find(other) is not None


def test_a_login_that_outlives_its_account_is_none(logins, database):
    """Also where something other than Accounts.close closed it."""
    cookie, _ = logins.begin(ADA)
    with database.writing() as connection:
        connection.execute(sa.update(tables.accounts).values(closed=tables.now()))
    assert logins.find(cookie) is None


@one_engine
@pytest.mark.parametrize("actor", [ADA, Actor("nobody", "analyst"), Actor("sven", "auditor")])
def test_no_login_begins_for_who_may_not_sign_in(accounts, logins, database, actor):
    accounts.close("ada")
    with pytest.raises(NotSignedIn):
        logins.begin(actor)
    assert rows(database, tables.logins) == []


@one_engine
def test_when_a_login_was_seen_is_noted_once_a_minute(logins, clock, database):
    cookie, _ = logins.begin(ADA)
    seen = [rows(database, tables.logins)[0].seen]
    for seconds in (30, 29, 2, 30):
        clock.forward(seconds=seconds)
        assert logins.find(cookie) is not None
        seen.append(rows(database, tables.logins)[0].seen)
    assert [one != before for before, one in itertools.pairwise(seen)] == [False, False, True, False]


def test_a_login_is_found_while_somebody_else_writes(logins, clock, database, database_url, monkeypatch):
    cookie, login = logins.begin(ADA)
    clock.forward(minutes=2)
    monkeypatch.setattr(database_room, "PATIENCE", 1.0)
    with database_room.Database(database_url) as own, database.writing():
        assert Logins(own, hours=12).find(cookie) == login


# ------------------------------------------------------------------------------------------------- tokens


def test_a_token_is_its_owners(tokens, database):
    view, secret = tokens.make(ADA, "notebook", 30)
    assert secret.startswith("dpm_")
    assert len(secret) == 4 + 43
    assert tokens.find(secret) == ADA
    assert tokens.listed(ADA) == [view]
    assert tokens.listed(SVEN) == []
    assert (view.label, view.revoked) == ("notebook", None)
    assert tables.moment(view.expires) - tables.moment(view.created) == tables.datetime.timedelta(days=30)
    assert last_kinds(database, 1) == [("token-made", "ada")]


@one_engine
def test_what_is_stored_of_a_token_opens_nothing(tokens, database):
    view, secret = tokens.make(ADA, "notebook", 30)
    (row,) = rows(database, tables.tokens)
    assert secret not in row
    assert row.hash == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in repr(events.page(database, 0, 100))
    wrong = [row.hash, "dpm_" + row.hash[:43], view.id, secret[4:], secret[:-1], secret + "a", secret.swapcase(),
             secret + "\n", "", "dpm_" + "\u00e9" * 43, None]  # fmt: skip
    assert [tokens.find(value) for value in wrong] == [None] * len(wrong)


def test_a_revoked_token_is_refused_at_once(tokens, database):
    view, secret = tokens.make(ADA, "notebook", 30)
    _, other = tokens.make(ADA, "cluster", 30)
    assert tokens.find(secret) == ADA
    tokens.revoke(ADA, view.id)
    assert tokens.find(secret) is None
    assert tokens.find(other) == ADA
    tokens.revoke(ADA, view.id)  # once more does nothing
    assert last_kinds(database, 2) == [("token-made", "ada"), ("token-revoked", "ada")]
    assert [one.revoked is None for one in tokens.listed(ADA)] == [True, False]  # the newest first


def test_a_token_expires(tokens, clock):
    _, secret = tokens.make(ADA, "notebook", 1)
    clock.forward(hours=23, minutes=59)
    assert tokens.find(secret) == ADA
    clock.forward(minutes=1)
    assert tokens.find(secret) is None


def test_tokens_of_others_are_not_revoked_nor_told_from_none(tokens):
    view, secret = tokens.make(ADA, "notebook", 30)
    said = []
    for actor, which in ((SVEN, view.id), (Actor("otto", "auditor"), view.id), (ADA, "nothing")):
        with pytest.raises(NotFound) as caught:
            tokens.revoke(actor, which)
        said.append(str(caught.value))
    assert len(set(said)) == 1
    assert tokens.find(secret) == ADA


@pytest.mark.parametrize("how", ["close", "set", "change"])
def test_tokens_end_with_the_account_and_with_the_password(accounts, tokens, how):
    _, secret = tokens.make(ADA, "notebook", 30)
    _, other = tokens.make(SVEN, "notebook", 30)
    {
        "close": lambda: accounts.close("ada"),
        "set": lambda: accounts.set_password("ada", "another long password"),
        "change": lambda: accounts.change_password("ada", PASSWORD, "another long password"),
    }[how]()
    assert tokens.find(secret) is None
    assert tokens.find(other) == SVEN


def test_no_token_is_made_for_a_closed_account(accounts, tokens):
    accounts.close("ada")
    with pytest.raises(NotFound):
        tokens.make(ADA, "notebook", 30)


@one_engine
@pytest.mark.parametrize("days", [0, -1, 367, 1.5, True, "30", None])
def test_a_time_that_is_none_is_refused(tokens, days):
    with pytest.raises(InvalidArgumentError, match="days must be a whole number from 1 to 366"):
        tokens.make(ADA, "notebook", days)


@one_engine
@pytest.mark.parametrize("label", ["", "  ", "a\nb", "\x1b[2J", "x" * 101, None, 3])
def test_a_label_that_is_none_is_refused(tokens, label):
    with pytest.raises(InvalidArgumentError, match="label must be a text"):
        tokens.make(ADA, label, 30)
