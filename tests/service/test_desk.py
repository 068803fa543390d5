"""What one person may do: plans as the command line makes them, one payment for a key, nothing of others."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sqlalchemy import select, update
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli import app
from dpmanifold.errors import BudgetError, InvalidArgumentError, LedgerError, PromiseError
from dpmanifold.ledger import Population
from dpmanifold.service import tables
from dpmanifold.service.desk import MOST_UNDER_WAY
from dpmanifold.service.forecasts import GRID, Forecasts
from dpmanifold.service.http_errors import Conflict, NotFound, TooMany
from dpmanifold.service.ordering import Asking, Ref, asking, catch_up, duration, lost
from dpmanifold.service.questions import Question
from dpmanifold.stats.query import offered as offered_queries, query_named
from service_rooms import BALL, desk_of, furnish, service_in, tensors

pytestmark = pytest.mark.security

MEAN = Question("mean", dpm.GDP("0.1"))
REF = "cohort/dti"


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    with service_in(tmp_path_factory.mktemp("service")) as service:
        yield furnish(service)


@pytest.fixture
def ada(rooms):
    return desk_of(rooms, "ada")


def _spends(service, key):
    page = service.ledger.history("cohort", limit=1000)
    return [line for line in page.releases if line.key == key]


def _rows(service, **wanted):
    rows = select(tables.releases).filter_by(**wanted)
    with service.database.reading() as connection:
        return connection.execute(rows).all()


# -------------------------------------------------------------------- plans


@pytest.mark.parametrize(
    ("question", "words"),
    [
        (Question("mean", dpm.GDP("0.5")), ["--mu", "0.5"]),
        (Question("mean", dpm.PureDP("1"), {"estimand": "tangent"}), ["--epsilon", "1", "--estimand", "tangent"]),
        (Question("region", dpm.GDP("0.5")), ["--mu", "0.5", "--statistic", "region"]),
        (Question("variance", dpm.ZCDP("0.2")), ["--rho", "0.2", "--statistic", "variance"]),
    ],
)
def test_plans_are_those_of_the_command_line(ada, question, words):
    shell = CliRunner().invoke(
        app, ["plan", "--space", "spd", "--size", "2", "--radius", "2", "-n", "60", "--json", *words]
    )
    assert ada.plan(REF, question) == json.loads(shell.stdout)


def test_points_of_a_curve_are_plans(ada):
    curve = ada.curve(REF, "mean")
    assert [point["amount"] for point in curve.points] == GRID
    assert len(GRID) == 61
    point = curve.points[GRID.index("0.5")]
    plan = ada.plan(REF, Question("mean", dpm.GDP("0.5")))
    assert (point["error"], point["mechanism"]) == (plan["rows"][0]["error"], plan["rows"][0]["mechanism"])
    errors = [one["error"] for one in curve.points]
    assert errors == sorted(errors, reverse=True)


def test_a_curve_says_where_a_promise_cannot_be_kept(ada):
    pure = ada.curve(REF, "region", kind="PureDP")
    assert all("Gaussian noise" in point["refused"] for point in pure.points)


def test_what_an_error_needs_is_what_the_plan_of_it_has(ada):
    needed = ada.needed(REF, MEAN, 0.3)["required_privacy"]
    plan = ada.plan(REF, Question("mean", dpm.GDP(needed["mu"])))
    assert plan["rows"][0]["error"] == pytest.approx(0.3, rel=1e-4)
    with pytest.raises(InvalidArgumentError, match="about means"):
        ada.needed(REF, Question("region", dpm.GDP("1")), 0.3)


def test_every_statistic_of_the_house_can_be_asked_for(rooms, ada):
    offered = ada.dataset(REF).statistics
    assert offered == [query.name for query in offered_queries()]
    assert set(offered) >= {
        name.removeprefix("private_").replace("_", "-") for name in dir(dpm) if name.startswith("private_")
    } - {"statistic"}
    generous = {"privacy": dpm.GDP("20")}  # of which nothing is spent
    for name in offered:
        found = asking(rooms, "ada", Ref("cohort", "dti"), Question(name, **generous))
        assert found.order("k").request["data"] == ["dti@1"]


# -------------------------------------------------------------------- asking


def test_a_key_pays_once(rooms, ada):
    first = ada.ask(REF, MEAN, "once")
    again = ada.ask(REF, MEAN, "once")
    assert again.id == first.id
    assert again.publishes == first.publishes
    assert len(_spends(rooms, "once")) == 1 == len(_rows(rooms, key="once"))


def test_another_question_under_a_key_is_refused(rooms, ada):
    ada.ask(REF, Question("region", dpm.GDP("0.1")), "twice")
    for other in (MEAN, Question("region", dpm.GDP("0.2")), Question("region", dpm.GDP("0.1"), {"level": 0.9})):
        with pytest.raises(Conflict, match="another question"):
            ada.ask(REF, other, "twice")
    assert len(_spends(rooms, "twice")) == 1


def test_more_than_is_left_is_refused_and_binds_nothing(rooms, ada):
    with pytest.raises(BudgetError):
        ada.ask(REF, Question("mean", dpm.GDP("1.5")), "too-much")
    assert not _rows(rooms, key="too-much")
    assert not _spends(rooms, "too-much")
    assert ada.ask(REF, MEAN, "too-much").state == "pending"


def test_a_price_refuses_as_asking_does_and_spends_nothing(rooms, ada):
    before = rooms.ledger.population("cohort").spent
    price = ada.price(REF, MEAN)
    assert price.more == round(ada.dataset(REF).left["mu"] ** 2 / 0.01) - 1
    assert price.seconds >= rooms.settings.slot
    for wrong, error in [(dpm.GDP("1.5"), BudgetError), (dpm.PureDP("1"), PromiseError)]:
        with pytest.raises(error):
            ada.price(REF, Question("region", wrong))
    assert rooms.ledger.population("cohort").spent == before


def test_slots_follow_each_other(ada):
    one, two = (ada.ask(REF, MEAN, f"slot-{number}") for number in (1, 2))
    assert tables.moment(two.publishes) > tables.moment(one.publishes)
    assert (tables.moment(two.publishes) - tables.moment(one.publishes)).total_seconds() >= 10


def test_whoever_died_between_payment_and_slot_is_caught_up_with(rooms, ada):
    asked = asking(rooms, "ada", Ref("cohort", "dti"), MEAN)
    row = ada._written(asked, asked.order("died"))
    asked.account.pay(asked.order("died"))
    unpaid = ada._written(asked, asked.order("never-paid"))
    catch_up(rooms)
    assert [one.state for one in _rows(rooms, id=row.id)] == ["paid"]
    assert [one.state for one in _rows(rooms, id=unpaid.id)] == ["asked"]
    assert ada.ask(REF, MEAN, "died").id == row.id
    assert len(_spends(rooms, "died")) == 1


def test_nothing_shows_before_it_is_published(rooms, ada):
    """Wrong would be to show the state of the row, which is known when the work is over."""
    found = ada.ask(REF, MEAN, "early")
    for state in ("released", "lost"):
        with rooms.database.writing() as connection:
            connection.execute(update(tables.releases).filter_by(id=found.id).values(state=state, result=b"{}"))
        assert ada.release(found.id).state == "pending"
        with pytest.raises(NotFound):
            ada.result(found.id)
        assert {line.state for line in ada.history("cohort").lines if line.release == found.id} == {"pending"}
    with rooms.database.writing() as connection:
        past = tables.later(tables.now(), -1)
        connection.execute(update(tables.releases).filter_by(id=found.id).values(publishes=past))
    assert ada.release(found.id).state == "lost"


def test_a_lost_release_pauses_its_population_until_a_steward_has_looked(tmp_path):
    """Wrong would be to go on, or to pause one name alone: there would be a bit for every question, or every name."""
    with furnish(service_in(tmp_path)) as service:
        ada, sam, ann = (desk_of(service, name) for name in ("ada", "sam", "ann"))
        service.ledger.population("cohort").register("again", tensors(9), BALL, units=[*"abcabcabc"])
        first, queued = (ada.ask(REF, MEAN, key) for key in ("first", "queued"))
        lost(service, first.id)
        assert not ada.dataset(REF).paused  # before it is published
        _publish(service, first.id)
        spent = service.ledger.population("cohort").spent
        for ref in (REF, "cohort/again"):
            assert ada.dataset(ref).paused
            for action in (ada.price, lambda *asked: ada.ask(*asked, "second")):
                with pytest.raises(Conflict, match="paused"):
                    action(ref, MEAN)
        assert ada.ask(REF, MEAN, "queued").id == queued.id  # paid for before
        assert service.ledger.population("cohort").spent == spent
        for other in (ada, ann):
            with pytest.raises(NotFound):
                other.resume("cohort", "go on")
        with pytest.raises(InvalidArgumentError, match="reason"):
            sam.resume("cohort", "")
        sam.resume("cohort", "the disk was full")
        assert not ada.dataset(REF).paused
        assert ada.ask(REF, MEAN, "second").state == "pending"
        assert ann.events(limit=1000)[-2].kind == "population-resumed"
        with pytest.raises(Conflict, match="not paused"):
            sam.resume("cohort", "once more")


def test_what_was_recovered_is_lost_and_pauses_nobody(tmp_path):
    """Its records were never opened, so that its loss tells nothing about them."""
    with furnish(service_in(tmp_path)) as service:
        ada = desk_of(service, "ada")
        asked = ada.ask(REF, MEAN, "once more")
        lost(service, asked.id, pause=False)
        _publish(service, asked.id)
        assert ada.release(asked.id).state == "lost"
        assert not ada.dataset(REF).paused
        assert not service.ledger.population("cohort").as_principal("ada").recovered("once more")


def _publish(service, release):
    """Have the time of a release come, and of the pause that its loss is for."""
    past = tables.later(tables.now(), -1)
    with service.database.writing() as connection:
        connection.execute(update(tables.releases).filter_by(id=release).values(publishes=past))
        connection.execute(update(tables.pauses).values(since=past))


def test_a_row_that_nobody_paid_is_asked_anew(tmp_path, monkeypatch):
    """Wrong would be to pay it when it comes again: a steward may have decided otherwise meanwhile."""
    with furnish(service_in(tmp_path)) as service:
        ada, sam = desk_of(service, "ada"), desk_of(service, "sam")
        with monkeypatch.context() as patch:
            patch.setattr(Population, "pay", lambda *asked: (_ for _ in ()).throw(LedgerError("no witness")))
            for key in ("one", "two"):
                with pytest.raises(LedgerError):
                    ada.ask(REF, MEAN, key)
        sam.set_terms(REF, approval=True)
        assert ada.ask(REF, MEAN, "one").state == "waiting"
        assert not _spends(service, "one")
        with service.database.writing() as connection:
            connection.execute(tables.pauses.insert().values(population="cohort", since=tables.now()))
        with pytest.raises(Conflict, match="paused"):
            ada.ask(REF, MEAN, "two")
        with pytest.raises(Conflict, match="paused"):
            sam.approve(sam.waiting()[0].id)
        sam.resume("cohort", "a test")
        assert sam.approve(sam.waiting()[0].id).state == "pending"
        assert len(_spends(service, "one")) == 1


def test_what_costs_next_to_nothing_is_refused(rooms, ada):
    """Wrong would be to take it: there would be no end to the number of releases, each of which may be lost."""
    before = rooms.ledger.population("cohort").spent
    for action in (ada.price, lambda *asked: ada.ask(*asked, "cheap")):
        with pytest.raises(InvalidArgumentError, match="millionth of the cap"):
            action(REF, Question("mean", dpm.GDP("0.001")))
    assert rooms.ledger.population("cohort").spent == before


def test_a_queue_of_one_person_ends_somewhere(tmp_path):
    with furnish(service_in(tmp_path)) as service:
        ada = desk_of(service, "ada")
        for number in range(MOST_UNDER_WAY):
            ada.ask(REF, Question("mean", dpm.GDP("0.01")), f"k{number}")
        with pytest.raises(TooMany, match="under way"):
            ada.ask(REF, Question("mean", dpm.GDP("0.01")), "one more")
        assert not _spends(service, "one more")
        assert ada.ask(REF, Question("mean", dpm.GDP("0.01")), "k3").state == "pending"  # asked before


def test_nobody_pays_for_a_closed_account(tmp_path):
    with furnish(service_in(tmp_path)) as service:
        sam = desk_of(service, "sam")
        sam.set_terms(REF, approval=True)
        waiting = desk_of(service, "ada").ask(REF, MEAN, "closed")
        service.accounts.close("ada")
        with pytest.raises(Conflict, match="closed"):
            sam.approve(waiting.id)
        assert sam.refuse(waiting.id, "left").state == "refused"
        event = desk_of(service, "ann").events(limit=1000)[-1]
        assert (event.kind, event.facts["reason"]) == ("release-refused", "left")


def test_nothing_is_drawn_in_doubles(rooms, ada):
    """Wrong would be to leave that to whoever asks: all digits of such a draw tell more than is promised."""
    offered = next(option for option in query_named("mean").options if option.name == "mechanism").values
    assert "kng" not in offered
    assert "auto" in offered
    for mechanism in offered:
        question = Question("mean", dpm.PureDP("0.5"), {} if mechanism == "auto" else {"mechanism": mechanism})
        found = asking(rooms, "ada", Ref("cohort", "dti"), question)
        try:
            assert found.order("k").request["arithmetic"] == "exact"
        except (PromiseError, InvalidArgumentError):
            continue  # it keeps no such promise here
    with pytest.raises(InvalidArgumentError, match="mechanism must be one of"):
        Question.from_dict({**MEAN.to_dict(), "options": {"mechanism": "kng"}})
    monstrous = asking(rooms, "ada", Ref("cohort", "dti"), Question("mean", dpm.PureDP("0.5"), {"mechanism": "kng"}))
    with pytest.raises(PromiseError, match="cannot be drawn exactly"):
        monstrous.order("k")


def test_slots_grow_with_what_is_drawn():
    facts = {"n": 200, "units_by_class": [100, 100], "touched": 1}
    some = SimpleNamespace(n=200, facts=facts, covariate=None)
    mean, region = map(query_named, ("mean", "region"))
    assert duration(region, some, 1400, 10.0) > 100 > duration(mean, some, 1400, 10.0)
    assert duration(mean, some, 2, 10.0, own=60.0) == 60.0
    assert duration(region, some, 1400, 10.0, own=11.0) == duration(region, some, 1400, 10.0)


# -------------------------------------------------------------------- roles


def test_what_is_not_yours_is_not_there(rooms, ada):
    bob, sam, ann = (desk_of(rooms, name) for name in ("bob", "sam", "ann"))
    mine = ada.ask(REF, MEAN, "mine").id
    assert bob.datasets() == []
    assert bob.releases() == []
    foreign = [
        lambda: bob.dataset(REF), lambda: bob.plan(REF, MEAN), lambda: bob.ask(REF, MEAN, "k"),
        lambda: bob.price(REF, MEAN), lambda: bob.release(mine), lambda: bob.history("cohort"),
        lambda: bob.result(mine), lambda: ada.dataset("cohort/none"), lambda: ada.dataset("none/dti"),
        lambda: ada.dataset("cohort/dti@9"), lambda: ada.dataset("nonsense"),
        lambda: ada.dataset("cohort/dti@" + "1" * 5000), lambda: ada.release("none"),
        ada.populations, ada.audit, ada.events, ada.accounts, ada.export, ada.registrations, ada.waiting,
        lambda: ada.grant("cohort", "ada", dpm.GDP("2")), lambda: ada.raise_cap("cohort", dpm.GDP("9"), "more"),
        lambda: ada.approve(mine), lambda: ada.set_terms(REF, approval=False),
        lambda: sam.ask(REF, MEAN, "k"), sam.events, sam.accounts, sam.export,
        lambda: ann.ask(REF, MEAN, "k"), lambda: ann.grant("cohort", "ada", dpm.GDP("2")),
        lambda: ann.make_population("p", dpm.GDP("2"), "u"), lambda: ann.register("cohort", "x", {}), ann.registrations,
        lambda: ann.approve(mine), lambda: ann.refuse(mine, "no"), lambda: ann.set_terms(REF, approval=False),
    ]  # fmt: skip
    words = set()
    for action in foreign:
        with pytest.raises(NotFound) as problem:
            action()
        words.add(str(problem.value))
    assert len(words) == 1
    assert ann.release(mine).id == sam.release(mine).id == mine


def test_analysts_see_others_as_others(rooms, ada):
    desk_of(rooms, "sam").grant("cohort", "bob", dpm.GDP("0.5"), "another study")
    try:
        mine = ada.ask(REF, MEAN, "a-telling-key")
        lines = desk_of(rooms, "bob").history("cohort").lines
        assert {line.analyst for line in lines} == {"others"}
        assert "a-telling-key" not in json.dumps(desk_of(rooms, "bob").history("cohort").to_dict())
        assert mine.id in {line.release for line in desk_of(rooms, "ann").history("cohort").lines}
    finally:
        desk_of(rooms, "sam").grant("cohort", "bob", dpm.GDP("1e-9"), "over")


def test_a_pair_of_analysts_cannot_exceed_the_cap(tmp_path):
    with furnish(service_in(tmp_path)) as service:
        desk_of(service, "sam").grant("cohort", "ada", dpm.GDP("2"), "all")
        desk_of(service, "sam").grant("cohort", "bob", dpm.GDP("2"), "all as well")
        desk_of(service, "ada").ask(REF, Question("mean", dpm.GDP("1.5")), "most")
        with pytest.raises(BudgetError):
            desk_of(service, "bob").ask(REF, Question("mean", dpm.GDP("1.5")), "most")
        assert service.ledger.audit().ok


# -------------------------------------------------------------------- stewards


def test_a_steward_decides_where_that_is_asked_for(rooms, ada):
    sam = desk_of(rooms, "sam")
    sam.set_terms(REF, approval=True, slot=20.0, note="Ask before you plan large studies.")
    try:
        seen = ada.dataset(REF)
        assert (seen.approval, seen.slot, seen.note) == (True, 20.0, "Ask before you plan large studies.")
        good, bad = (ada.ask(REF, MEAN, key) for key in ("good", "bad"))
        assert (good.state, bad.state) == ("waiting", "waiting")
        assert not _spends(rooms, "good")
        assert [one.id for one in sam.waiting()] == [good.id, bad.id]
        assert sam.approve(good.id).state == "pending"
        assert len(_spends(rooms, "good")) == 1
        assert _spends(rooms, "good")[0].principal == "ada"
        refused = sam.refuse(bad.id, "not in the protocol")
        assert (refused.state, refused.reason) == ("refused", "not in the protocol")
        assert not _spends(rooms, "bad")
        with pytest.raises(Conflict):
            sam.approve(bad.id)
        kinds = [event.kind for event in desk_of(rooms, "ann").events(limit=1000)]
        assert {"release-approved", "release-refused", "terms-changed", "granted", "release-asked"} <= set(kinds)
    finally:
        sam.set_terms(REF, approval=False)


def test_what_does_not_fit_any_more_when_it_is_approved_is_refused(tmp_path):
    with furnish(service_in(tmp_path)) as service:
        ada, sam = desk_of(service, "ada"), desk_of(service, "sam")
        sam.set_terms(REF, approval=True)
        one, two = (ada.ask(REF, Question("mean", dpm.GDP("0.9")), key) for key in ("one", "two"))
        assert sam.approve(one.id).state == "pending"
        late = sam.approve(two.id)
        assert late.state == "refused"
        assert "Nothing was spent" in late.reason
        assert not _spends(service, "two")


def test_an_approval_that_cannot_be_paid_decides_nothing(tmp_path, monkeypatch):
    """Wrong would be to decide first: nobody could decide again, and nobody would pay."""
    with furnish(service_in(tmp_path)) as service:
        ada, sam = desk_of(service, "ada"), desk_of(service, "sam")
        sam.set_terms(REF, approval=True)
        waiting = ada.ask(REF, MEAN, "not now")
        with monkeypatch.context() as patch:
            patch.setattr(Asking, "order", lambda *asked: (_ for _ in ()).throw(PromiseError("not any more")))
            with pytest.raises(PromiseError):
                sam.approve(waiting.id)
        assert [one.id for one in sam.waiting()] == [waiting.id]
        with monkeypatch.context() as patch:
            patch.setattr(Population, "pay", lambda *asked: (_ for _ in ()).throw(LedgerError("no witness")))
            with pytest.raises(LedgerError):
                sam.approve(waiting.id)
        catch_up(service)  # which the worker does from time to time
        assert len(_spends(service, "not now")) == 1
        assert ada.release(waiting.id).publishes is not None


def test_plans_of_means_know_in_how_many_classes_somebody_is(rooms, ada):
    """Wrong would be to know a plan by the smallest class alone."""
    one = asking(rooms, "ada", Ref("cohort", "dti"), Question("class-means", dpm.GDP("1"))).data
    two = SimpleNamespace(n=one.n, facts={**one.facts, "touched": 2}, covariate=None)
    asked, forecasts = query_named("class-means"), Forecasts()
    first, second = (forecasts.plan(asked, data, BALL, dpm.GDP("1"), {})["rows"][0]["error"] for data in (one, two))
    assert second == pytest.approx(first * 2**0.5, rel=1e-3)


def test_a_release_of_a_statistic_that_is_gone_is_shown(rooms, ada):
    found = ada.ask(REF, MEAN, "gone")
    with rooms.database.writing() as connection:
        gone = {"statistic": "gone", "question": json.dumps({**MEAN.to_dict(), "statistic": "gone"})}
        connection.execute(update(tables.releases).filter_by(id=found.id).values(**gone))
    assert ada.release(found.id).title == "gone"
    assert found.id in {one.id for one in ada.releases(limit=200)}


def test_caps_are_raised_with_a_reason(rooms):
    sam = desk_of(rooms, "sam")
    with pytest.raises(InvalidArgumentError, match="reason"):
        sam.raise_cap("cohort", dpm.GDP("3"), "")
    with pytest.raises(InvalidArgumentError, match="more than the present one"):
        sam.raise_cap("cohort", dpm.GDP("1"), "less")
    assert sam.raise_cap("cohort", dpm.GDP("3"), "the board of 3 May").cap == {"kind": "GDP", "mu": 3.0}


def test_registrations_say_what_they_take(rooms):
    sam = desk_of(rooms, "sam")
    with pytest.raises(InvalidArgumentError, match="seed"):
        sam.register("cohort", "eeg", {"path": "a.csv", "seed": 1})
    with pytest.raises(InvalidArgumentError, match="labels_public must be true or false"):
        sam.register(
            "cohort", "eeg", {"path": "a.csv", "space": "spd", "units": "x", "radius": "2", "labels_public": "no"}
        )
    with pytest.raises(InvalidArgumentError, match="radius is missing"):
        sam.register("cohort", "eeg", {"path": "a.csv", "space": "spd", "units": "person"})
    asked = sam.register("cohort", "eeg", {"path": "a.csv", "space": "spd", "units": "person", "radius": "2"})
    assert (asked.state, sam.registration(asked.id).request["labels_public"]) == ("waiting", False)


# -------------------------------------------------------------------- questions


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"statistic": "mode", "privacy": {"kind": "GDP", "mu": "1"}}, "statistic must be one of"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1"}, "seed": 3}, "and nothing else"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1"}, "options": {"rng": 3}}, "takes the options"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1"}, "options": {"reveal": True}}, "the options"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1"}, "options": {"refine": 1}}, "refine must be true"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1"}, "options": {"mechanism": "none"}}, "mechanism"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1/3"}}, "mu"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": True}}, "text or numbers"),
        ({"statistic": "mean", "privacy": {"mu": 1}}, "must be a kind"),
        ({"statistic": "mean"}, "must have statistic, privacy"),
        ({"statistic": "mean", "privacy": {"kind": "GDP", "mu": "1"}, "ball": {"radius": 1}}, "ball must have"),
        ([], "question must have"),
    ],
)
def test_questions_that_are_none_are_refused(record, words):
    with pytest.raises(InvalidArgumentError, match=words):
        Question.from_dict(record)


def test_questions_go_there_and_back(ada):
    whole = Question("mean", dpm.ApproxDP("0.5", "1e-6"), {"refine": True}, {"radius": 1.5, "center": [[1, 0], [0, 1]]})
    assert Question.from_dict(json.loads(json.dumps(whole.to_dict()))) == whole
    assert Question.from_dict({**whole.to_dict(), "options": {"refine": True, "shrinkage": "auto"}}) == whole
    assert ada.plan(REF, whole) != ada.plan(REF, Question("mean", whole.privacy, {"refine": True}))


def test_a_ball_of_ones_own_is_checked(ada):
    point = np.eye(2).tolist()
    for ball in (
        {"radius": "1", "center": point}, {"radius": 10**400, "center": point}, {"radius": 1.0, "center": "I"},
        {"radius": 1.0, "center": [[10**400, 0], [0, 1]]}, {"radius": 1.0, "center": [[-1, 0], [0, 1]]},
        {"radius": 1.0, "center": [1.0]}, {"release": "none"},
    ):  # fmt: skip
        with pytest.raises((InvalidArgumentError, NotFound)):
            ada.plan(REF, Question("mean", dpm.GDP("1"), {}, ball))
