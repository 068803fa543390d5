"""Private calls that an account pays for: the order of things, keys, receipts, and what is seen of a failure."""

import json
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import BudgetError, InvalidArgumentError, InvalidDataError, PromiseError, ReleaseLostError
from dpmanifold.ledger import Ledger
from dpmanifold.mechanisms import MECHANISMS, get
from dpmanifold.privacy import Receipt
from dpmanifold.statistic import STATISTICS
from dpmanifold.stats.content import content_of
from dpmanifold.stats.mean import MeanProgram
from dpmanifold.stats.registered_data import survey
from extension.shells import Shells
from laws.accounts import MemoryAccount, RecordedPopulation
from laws.pieces import ListSource
from registries import changed

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0)
EACH = dpm.EACH_RECORD
CAP = dpm.GDP(100.0)
X = np.random.default_rng(0).normal(0.0, 0.5, (60, 2))
Y = X[::-1] + 0.25
LABELS = ["a", "b"] * 30
IDS = [f"p{i // 2}" for i in range(60)]
CLASSES = ["a", "b"]


def private_class_means(X, ball, privacy, units, **rest):
    labels = rest.pop("labels", LABELS)
    return dpm.private_class_means(X, labels, ball, privacy, units=units, classes=CLASSES, **rest)


def private_statistic(X, ball, privacy, units, **rest):
    return dpm.private_statistic(X, ball, privacy, units=units, statistic="second moment", **rest)


CALLS = [
    dpm.private_mean,
    private_class_means,
    dpm.private_variance,
    dpm.private_variance_interval,
    dpm.private_region,
    private_statistic,
]


def releases_of(result):
    """Return what was drawn, whatever a call returns."""
    if isinstance(result, dict):
        return list(result.values())
    return [result.first, result.second] if isinstance(result, dpm.TwoSampleTest) else list(result.released)


def written(result):
    return [json.dumps(release.to_dict()) for release in releases_of(result)]


@pytest.fixture
def account():
    return MemoryAccount(CAP)


@pytest.fixture(params=["memory", "sqlite"])
def either(request, tmp_path):
    """An account in memory, and one of a ledger in a file."""
    if request.param == "memory":
        yield MemoryAccount(CAP)
        return
    with Ledger.create(str(tmp_path / "study.db")) as ledger:
        yield RecordedPopulation(ledger, CAP)


@pytest.fixture
def no_shells(monkeypatch):
    """Nobody has registered the statistic, whatever other tests of this process did."""
    changed(monkeypatch, STATISTICS)
    STATISTICS._items.pop("shells", None)


@pytest.fixture
def shells(no_shells):
    """A statistic of another distribution, for the length of one test."""
    return STATISTICS.register("shells", Shells())


# -------------------------------------------------------------------- keys


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("units", [EACH, IDS])
def test_the_same_request_is_drawn_once_and_answered_in_the_same_bits(account, call, units):
    first = call(X, BALL, dpm.GDP(1.0), units=units, budget=account, key="once")
    again = call(X.tolist(), BALL, dpm.GDP(1.0), units=units, budget=account, key="once")
    assert written(first) == written(again)
    assert account.events == ["registered", "spent", "started", "drawn", "registered"]
    assert account.spent == dpm.GDP(1.0)
    other = call(X, BALL, dpm.GDP(1.0), units=units, budget=account, key="twice")
    assert written(first) != written(other)
    for release in releases_of(first):
        assert release.receipt == Receipt(
            account.ledger, release.receipt.sequence, release.receipt.hash, "cohort", dpm.GDP(1.0).to_dict()
        )
        assert release.verify().ok
        assert release.private


def test_a_ball_a_test_and_a_statistic_of_others_are_paid_by_accounts_unchanged(account, shells):
    wide = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 90.0)
    many = np.concatenate([X] * 40)
    paired = (IDS, [f"q{i}" for i in IDS])
    given = {"privacy": dpm.GDP(3.0), "budget": account}
    asked = [
        partial(dpm.private_ball, many, wide, units=EACH, **given),
        partial(dpm.private_two_sample_test, X, Y, BALL, units=EACH, **given),
        partial(dpm.private_two_sample_test, X, Y, BALL, units=paired, **given),
        partial(dpm.private_statistic, X, BALL, statistic="shells", units=EACH, **given),
        partial(dpm.private_statistic, X, BALL, statistic=shells, units=EACH, **given),
    ]
    sequences = []
    for number, ask in enumerate(asked):
        first, again = ask(key=str(number)), ask(key=str(number))
        assert written(first) == written(again)
        sequences.append({release.receipt.sequence for release in releases_of(first)})
        assert first.verify().ok
    assert all(len(found) == 1 for found in sequences)
    assert [max(found) for found in sequences] == sorted({max(found) for found in sequences})
    assert account.orders[3].request == account.orders[4].request  # by name, or by the object of that name


@pytest.mark.usefixtures("no_shells")
def test_a_statistic_that_is_not_registered_is_refused_before_the_spend(account):
    with pytest.raises(InvalidArgumentError, match=r"'shells' is not registered.*register it"):
        dpm.private_statistic(X, BALL, dpm.GDP(1.0), statistic=Shells(), units=EACH, budget=account)
    assert account.spent is None


def test_another_request_under_a_key_is_refused(account):
    asked = {"units": EACH, "budget": account, "key": "mean"}
    dpm.private_mean(X, BALL, dpm.GDP(1.0), **asked)
    nearly = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], np.nextafter(3.0, 4.0))
    moved = X.copy()
    moved[7, 1] = np.nextafter(moved[7, 1], 9.0)
    others = [
        lambda: dpm.private_mean(X, nearly, dpm.GDP(1.0), **asked),
        lambda: dpm.private_mean(moved, BALL, dpm.GDP(1.0), **asked),
        lambda: dpm.private_mean(X[::-1], BALL, dpm.GDP(1.0), **asked),
        lambda: dpm.private_mean(X, BALL, dpm.GDP(np.nextafter(1.0, 2.0)), **asked),
        lambda: dpm.private_mean(X, BALL, dpm.GDP(1.0), **{**asked, "units": IDS}),
        lambda: dpm.private_mean(X, BALL, dpm.GDP(1.0), estimand="tangent", **asked),
        lambda: dpm.private_mean(X, BALL, dpm.GDP(1.0), arithmetic="float", **asked),
        lambda: dpm.private_mean(X, BALL, dpm.GDP(1.0), noise_shape=np.eye(2), **asked),
        lambda: dpm.private_variance(X, BALL, dpm.GDP(1.0), **asked),
        lambda: private_class_means(X, BALL, dpm.GDP(1.0), **asked),
    ]
    for other in others:
        with pytest.raises(InvalidArgumentError, match="another request"):
            other()
    assert account.spent == dpm.GDP(1.0)


def test_a_promise_is_the_number_that_it_states():
    account = MemoryAccount(dpm.GDP("1"))
    asked = {"units": EACH, "budget": account, "key": "mean"}
    first = dpm.private_mean(X, BALL, dpm.GDP("0.3"), **asked)
    assert written(dpm.private_mean(X, BALL, dpm.GDP("0.30"), **asked)) == written(first)
    with pytest.raises(InvalidArgumentError, match="another request"):
        dpm.private_mean(X, BALL, dpm.GDP(0.3), **asked)
    assert first.receipt.promise == dpm.GDP("0.3")
    assert first.verify().ok
    half = dpm.private_mean(X, BALL, dpm.GDP("0.5"), units=EACH, budget=account, key="half")
    assert written(dpm.private_mean(X, BALL, dpm.GDP(0.5), units=EACH, budget=account, key="half")) == written(half)


def test_what_is_no_part_of_a_request_makes_it_no_other(account):
    first = dpm.private_region(X, BALL, dpm.GDP(1.0), units=EACH, budget=account, key="region")
    said = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0, source="an atlas")
    again = dpm.private_region(
        X.tolist(), said, dpm.GDP(1.0), units="each-record", level=0.5, estimand=None, refine=False, confirm=True,
        curator=lambda notice: None, budget=account, key="region",
    )  # fmt: skip
    assert written(first) == written(again)
    assert first.level != again.level  # which is computed from what was released


def test_names_and_registered_objects_are_one_request_and_strangers_are_refused(account):
    mechanism = get("wrapped-gaussian")
    asked = {"units": EACH, "budget": account, "key": "mean"}
    first = dpm.private_mean(X, BALL, dpm.GDP(1.0), mechanism="wrapped-gaussian", **asked)
    again = dpm.private_mean(X, BALL, dpm.GDP(1.0), mechanism=mechanism, **asked)
    assert written(first) == written(again)

    stranger = type("Stranger", (type(mechanism),), {"name": "stranger"})()
    assert stranger.name not in MECHANISMS
    with pytest.raises(InvalidArgumentError, match=r"'stranger' is not registered.*register it"):
        dpm.private_mean(X, BALL, dpm.GDP(1.0), mechanism=stranger, **asked)
    assert account.spent == dpm.GDP(1.0)


def test_a_release_that_a_request_rests_on_is_part_of_it_and_a_simulated_one_is_refused(account):
    mean, other, simulated = (dpm.private_mean(X, BALL, dpm.GDP(1.0), units=EACH, rng=rng) for rng in (None, None, 0))
    asked = {"units": EACH, "budget": account, "key": "variance"}
    dpm.private_variance(X, BALL, dpm.GDP(1.0), about=mean, **asked)
    with pytest.raises(InvalidArgumentError, match="another request"):
        dpm.private_variance(X, BALL, dpm.GDP(1.0), about=other, **asked)
    with pytest.raises(InvalidArgumentError, match="about must be a private release"):
        dpm.private_variance(X, BALL, dpm.GDP(1.0), about=simulated, **asked)
    assert account.spent == dpm.GDP(1.0)


def test_without_a_key_every_call_is_a_request_of_its_own(account):
    one, two = (dpm.private_mean(X, BALL, dpm.GDP(1.0), units=EACH, budget=account) for _ in range(2))
    assert written(one) != written(two)
    assert len({order.key for order in account.orders}) == 2
    assert all(len(order.key) == 32 for order in account.orders)


# -------------------------------------------------------------------- refusals before the spend


def test_what_no_account_pays_for_is_refused_before_records_are_looked_at(account, monkeypatch):
    def never(*_, **__):
        raise AssertionError("records were looked at")

    monkeypatch.setattr("dpmanifold.stats.inputs.records_of", never)
    monkeypatch.setattr("dpmanifold.stats.by_class.records_of", never)
    simulated = replace(BALL, simulated=True)
    cases = [
        ("rng must be None where an account pays", BALL, {"budget": account, "rng": 0}),
        ("ball was found by a simulation", simulated, {"budget": account}),
        ("key must be text", BALL, {"budget": account, "key": ""}),
        ("key must be text", BALL, {"budget": account, "key": "line\nline"}),
        ("key must be text", BALL, {"budget": account, "key": 7}),
        ("key goes with an account", BALL, {"budget": dpm.Budget(CAP), "key": "mean"}),
        ("key goes with an account", BALL, {"key": "mean"}),
        ("budget must be a Budget, an account", BALL, {"budget": "study.db"}),
    ]
    for words, ball, given in cases:
        for call in CALLS:
            with pytest.raises(InvalidArgumentError, match=words):
                call(X, ball, dpm.GDP(1.0), units=EACH, **given)
        with pytest.raises(InvalidArgumentError, match=words):
            dpm.private_two_sample_test(X, Y, ball, dpm.GDP(1.0), units=EACH, **given)
    assert account.events == []


def test_errors_about_records_come_before_the_spend_in_the_words_of_every_call(account):
    bad = X.copy()
    bad[3, 0] = np.nan
    with pytest.raises(InvalidDataError, match="index 3"):
        dpm.private_mean(bad, BALL, dpm.GDP(1.0), units=EACH, budget=account)
    with pytest.raises(InvalidDataError, match="More than half"):
        dpm.private_mean(X + 50, BALL, dpm.GDP(1.0), units=EACH, budget=account)
    with pytest.raises(PromiseError):
        dpm.private_region(X, BALL, dpm.PureDP(1.0), units=EACH, budget=account)
    assert account.events == []
    told = []
    dpm.private_mean(bad, BALL, dpm.GDP(1.0), units=EACH, invalid="center", curator=told.append, budget=account)
    assert [(notice.replaced, notice.problem) for notice in told] == [(1, "")]


def test_too_much_is_refused_and_the_key_stays_free():
    account = MemoryAccount(dpm.GDP(1.0))
    with pytest.raises(BudgetError, match="more than the budget has left"):
        dpm.private_mean(X, BALL, dpm.GDP(1.5), units=EACH, budget=account, key="mean")
    assert account.spent is None
    assert dpm.private_mean(X, BALL, dpm.GDP(1.0), units=EACH, budget=account, key="mean").receipt.sequence == 1


# -------------------------------------------------------------------- registered data


@pytest.mark.parametrize("units", [EACH, IDS])
@pytest.mark.parametrize("call", CALLS)
def test_registered_data_are_opened_once_and_after_the_spend(account, call, units):
    by_class = {"labels": LABELS, "classes": CLASSES} if call is private_class_means else {}
    data = account.register("study", X, BALL, units, **by_class)
    rest = {"labels": None} if by_class else {}
    first = call(data, BALL, dpm.GDP(1.0), units=None, budget=account, key="once", **rest)
    again = call(data, BALL, dpm.GDP(1.0), units=None, budget=account, key="once", **rest)
    assert account.events == ["registered", "spent", "started", "opened", "drawn"]
    assert written(first) == written(again)
    # The same records as an array are the same data set, and the same request.
    raw = call(X, BALL, dpm.GDP(1.0), units=units, budget=account, key="once")
    assert written(raw) == written(first)
    assert len(account.orders) == 1
    assert account.orders[0].request["data"] == [data.id]


def test_every_engine_has_the_spend_before_records_are_opened(ledger_url):
    with Ledger(ledger_url, principal="ada") as ledger:
        account = RecordedPopulation(ledger, CAP)
        data = account.register("study", X, BALL, IDS, labels=LABELS, classes=CLASSES)
        for call in CALLS:
            account.events.clear()
            asked = {"units": None, "budget": account, "key": f"{call.__module__} {call.__name__}"}
            rest = {"labels": None} if call is private_class_means else {}
            first, again = (call(data, BALL, dpm.GDP("0.3"), **asked, **rest) for _ in range(2))
            assert account.events == ["spent", "started", "opened", "drawn"]
            assert written(first) == written(again)
            assert all(ledger.verify(release) == [] for release in releases_of(first))
        raw = dpm.private_mean(X, BALL, dpm.GDP("0.3"), units=IDS, budget=account, key="raw")
        assert account.events == ["spent", "started", "opened", "drawn", "registered", "spent", "started", "drawn"]
        assert ledger.verify(raw) == []
        assert ledger.audit().ok


def test_the_plan_comes_first_and_the_records_after_the_spend(account, monkeypatch):
    data, planned = account.register("study", X, BALL, EACH), MeanProgram.__init__

    def recording(*given, **options):
        account.events.append("planned")
        planned(*given, **options)

    monkeypatch.setattr(MeanProgram, "__init__", recording)
    dpm.private_mean(data, BALL, dpm.GDP(1.0), units=None, budget=account)
    assert account.events[1:] == ["planned", "spent", "started", "opened", "drawn"]


def test_two_registered_groups_are_tested(either):
    one, two = (either.register(name, Z, BALL, EACH) for name, Z in (("one", X), ("two", Y)))
    first = dpm.private_two_sample_test(one, two, BALL, dpm.GDP(1.0), units=None, budget=either, key="test")
    assert either.events[2:] == ["spent", "started", "opened", "opened", "drawn"]
    again = dpm.private_two_sample_test(X, Y, BALL, dpm.GDP(1.0), units=EACH, level=0.9, budget=either, key="test")
    assert written(first) == written(again)
    assert first.verify().ok


def test_registered_data_are_refused_before_the_spend_where_public_facts_say_so(account):
    data = account.register("study", X, BALL, IDS, labels=LABELS, classes=CLASSES)
    each = account.register("each", X, BALL, EACH)
    line = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    sphere, whole = dpm.Ball(dpm.Sphere(2), [1.0, 0.0, 0.0], 0.5), dpm.Ball.whole(dpm.Sphere(2))
    shapes = account.register("shapes", np.tile([1.0, 0.0, 0.0], (60, 1)), sphere, IDS)
    refused = [
        ("only its account may pay", lambda: dpm.private_mean(data, BALL, dpm.GDP(1.0), units=None)),
        ("only its account", lambda: dpm.private_mean(data, BALL, dpm.GDP(1.0), units=None, budget=dpm.Budget(CAP))),
        ("only its account", lambda: ask(data, BALL, budget=MemoryAccount(CAP, name="other"))),
        ("only its account", lambda: ask(data, BALL, budget=MemoryAccount(CAP, ledger="ledger-2"))),
        ("ball must be on Euclidean", lambda: ask(data, line)),
        ("needs a ball", lambda: ask(shapes, whole)),
        ("units are registered with X", lambda: ask(data, BALL, units=IDS)),
        ("units are registered with X", lambda: ask(data, BALL, units=EACH)),
        ("labels are registered", lambda: private_class_means(data, BALL, dpm.GDP(1.0), None, budget=account)),
        ("classes must be those", lambda: by_class(data, ["b", "a"])),
        ("classes must be those", lambda: by_class(each, CLASSES)),
        ("must both be registered", lambda: compared(data, X)),
        ("are registered with ids", lambda: compared(data, data)),
        ("are registered with ids", lambda: compared(data, each)),
        ("data sets of different units", lambda: compared(each, each)),
    ]

    def ask(given, ball, budget=account, units=None):
        return dpm.private_mean(given, ball, dpm.GDP(1.0), units=units, budget=budget)

    def by_class(given, names):
        return dpm.private_class_means(given, None, BALL, dpm.GDP(1.0), units=None, classes=names, budget=account)

    def compared(one, two):
        return dpm.private_two_sample_test(one, two, BALL, dpm.GDP(1.0), units=None, budget=account)

    for words, attempt in refused:
        with pytest.raises(InvalidArgumentError, match=words):
            attempt()
    with pytest.raises(PromiseError):
        dpm.private_region(data, BALL, dpm.PureDP(1.0), units=None, budget=account)
    assert account.events == ["registered"] * 3
    assert ask(each, BALL, units=EACH).receipt is not None  # said once more, and true


def test_a_smaller_ball_needs_no_other_registration(account):
    data = account.register("study", X, BALL, EACH)
    smaller = dpm.Ball(dpm.Euclidean(2), [9.0, 9.0], 0.5)
    told = []
    release = dpm.private_mean(data, smaller, dpm.GDP(1.0), units=None, curator=told.append, budget=account)
    # That all of them are clipped is a fact about the data: too late to refuse.
    assert release.receipt is not None
    assert [notice.clipped for notice in told] == [60]


# -------------------------------------------------------------------- lost


SECRET = "Ann Smith has 7 records"


def fail(data):
    def opening():
        warnings.warn(SECRET, stacklevel=1)
        raise ValueError(SECRET)

    data.opening = opening


def ended(data):
    data.replace(records=X[:-1])


def renamed(data):
    data.replace(units=[f"p{i // 3}" for i in range(60)])


@pytest.mark.parametrize("damage", [fail, ended, renamed])
def test_a_release_that_fails_behind_the_spend_is_lost_without_a_word(either, damage, capfd):
    data = either.register("study", X, BALL, IDS)
    damage(data)
    with pytest.raises(ReleaseLostError) as found:
        dpm.private_mean(data, BALL, dpm.GDP(1.0), units=None, budget=either, key="mean")
    assert str(found.value) == str(ReleaseLostError.of("mean"))
    assert either.events == ["registered", "spent", "started", "opened", "lost"]
    assert either.spent == dpm.GDP(1.0)
    # Nothing of what happened can be reached from the error, in words or as objects.
    assert found.value.__context__ is None
    assert found.value.__cause__ is None
    told = "".join(traceback.format_exception(found.value)) + "".join(capfd.readouterr())
    assert "Smith" not in told
    assert "another unit" not in told
    assert "registered:" not in told
    names = [frame.name for frame in traceback.extract_tb(found.value.__traceback__)]
    assert "open" not in names
    assert "prepare_records" not in names
    # The key is used up; another one pays anew.
    with pytest.raises(ReleaseLostError):
        dpm.private_mean(data, BALL, dpm.GDP(1.0), units=None, budget=either, key="mean")
    assert either.spent == dpm.GDP(1.0)


def test_threads_draw_quietly_and_leave_warnings_as_they_were(either):
    data = either.register("study", X, BALL, EACH)
    data.opening = lambda: warnings.warn(SECRET, stacklevel=1)
    before = list(warnings.filters)
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(dpm.private_mean, data, BALL, dpm.GDP(1.0), units=None, budget=either) for _ in range(20)]
        assert len({found.result().receipt.sequence for found in asked}) == 20
    assert warnings.filters == before


def test_an_account_that_breaks_down_leaves_its_key(account, monkeypatch):
    def broken(order, work):
        raise OSError("no space left on device")

    monkeypatch.setattr(account, "settle", broken)
    with pytest.raises(OSError, match="no space") as found:
        dpm.private_mean(X, BALL, dpm.GDP(1.0), units=EACH, budget=account, key="mean")
    assert found.value.__notes__ == ["The request has the key 'mean': ask again under it to learn what became of it."]


def test_spaces_of_every_kind_are_registered_and_opened(account):
    product = dpm.Product([dpm.SPD(2), dpm.Sphere(2)])
    rng = np.random.default_rng(1)
    parts = (dpm.SPD(2).random_point(30, rng=1) * 0.5, np.tile([1.0, 0.0, 0.0], (30, 1)))
    landmarks, shapes = dpm.KendallShapes(5), rng.normal(size=(30, 5, 2))
    cases = [
        (parts, dpm.Ball(product, product.origin, 0.7)),
        (shapes, dpm.Ball(landmarks, landmarks.random_point(1, rng=0)[0], 0.35)),
        (parts[0].tolist(), dpm.Ball(dpm.SPD(2), np.eye(2), 2.0)),
    ]
    for number, (records, ball) in enumerate(cases):
        data = account.register(str(number), records, ball, EACH, confirm=True)
        asked = {"budget": account, "key": str(number), "estimand": "tangent", "confirm": True}
        first = dpm.private_mean(data, ball, dpm.GDP(1.0), units=None, **asked)
        again = dpm.private_mean(records, ball, dpm.GDP(1.0), units=EACH, **asked)
        assert written(first) == written(again)


def test_the_reason_is_for_the_curator_whose_own_errors_do_not_show_either(account):
    data, told = account.register("study", X, BALL, EACH), []
    fail(data)

    def stubborn(notice):
        told.append(notice)
        raise KeyError(SECRET)

    for curator in (told.append, stubborn):
        with pytest.raises(ReleaseLostError) as found:
            dpm.private_mean(data, BALL, dpm.GDP(1.0), units=None, curator=curator, budget=account)
        assert account.orders[-1].key in str(found.value)
        assert found.value.__context__ is None
    assert all(str(notice).startswith(f"The release is lost: ValueError: {SECRET} (") for notice in told)
    assert len(told) == 2


def test_classes_that_changed_since_are_lost(account):
    data = account.register("study", X, BALL, IDS, labels=LABELS, classes=CLASSES)
    data.replace(labels=LABELS[::-1])
    with pytest.raises(ReleaseLostError):
        dpm.private_class_means(data, None, BALL, dpm.GDP(1.0), units=None, classes=CLASSES, budget=account)


def test_a_source_that_changes_behind_the_spend_loses_the_release(account, monkeypatch):
    def gone(*_):
        raise dpm.errors.SourceChangedError(f"{SECRET}.npy was changed")

    monkeypatch.setattr("dpmanifold.stats.mean.MeanProgram.draws", gone)
    with pytest.raises(ReleaseLostError) as found:
        dpm.private_mean(X, BALL, dpm.GDP(1.0), units=EACH, budget=account, key="mean")
    assert str(found.value) == str(ReleaseLostError.of("mean"))
    # A budget in memory belongs to whoever holds the data, and keeps its words.
    with pytest.raises(dpm.errors.SourceChangedError, match="Smith"):
        dpm.private_mean(X, BALL, dpm.GDP(1.0), units=EACH, budget=dpm.Budget(CAP))


# -------------------------------------------------------------------- bytes of records


def cut(records, block):
    """Return records as a source of three pieces, one of them empty."""
    return ListSource(records, cuts=(len(records) // 3, len(records) // 3), block=block)


def bytes_of(X, units=EACH, ball=BALL, **rest):
    return b"".join(content_of(X, ball, units, **rest)())


def test_records_give_the_same_bytes_whichever_way_they_come():
    numbers = np.arange(120, dtype=np.float32).reshape(60, 2) / 8
    same = [
        numbers.astype(np.float64),
        numbers.astype(np.float64, order="F"),
        numbers.tolist(),
        list(numbers),
        [row.astype(">f4") for row in numbers],
        [[str(float(entry)) for entry in row] for row in numbers],
        cut(numbers, 3),
        cut(numbers.astype(np.float64), 7),
    ]
    wanted = bytes_of(numbers)
    assert all(bytes_of(given) == wanted for given in same)
    ids = [f"p{i // 7}" for i in range(60)]
    whole = [i // 7 for i in range(60)]
    assert bytes_of(numbers, ids) == bytes_of(cut(numbers, 5), ids) == bytes_of(numbers, np.array(ids))
    assert bytes_of(numbers, whole) == bytes_of(cut(numbers, 5), np.array(whole, dtype=np.float64))
    assert bytes_of(numbers, whole) == bytes_of(numbers, np.array(whole, dtype=np.uint8))


def test_records_that_differ_give_other_bytes():
    moved = X.copy()
    moved[59, 1] = np.nextafter(moved[59, 1], 9.0)
    bad, worse = X.tolist(), X.tolist()
    bad[4], worse[5] = None, None
    numbers = list(range(60))
    classes = {"labels": LABELS, "classes": CLASSES}
    different = [
        bytes_of(X),
        bytes_of(moved),
        bytes_of(X[::-1]),
        bytes_of(X[:-1]),
        bytes_of(bad),
        bytes_of(worse),
        bytes_of(X, IDS),
        bytes_of(X, IDS[::-1]),
        bytes_of(X, numbers),
        bytes_of(X, [str(number) for number in numbers]),
        bytes_of(X, **classes),
        bytes_of(X, labels=LABELS[::-1], classes=CLASSES),
    ]
    assert len(set(different)) == len(different)


def test_a_survey_counts_what_is_public():
    found = survey(X, BALL, units=IDS, labels=LABELS, classes=CLASSES)
    assert found.facts == {
        "space": "Euclidean(2)",
        "n": 30,
        "unit": "unit",
        "classes": {"list": ["a", "b"]},
        "units_by_class": [30, 30],
        "touched": 2,
    }
    assert survey(cut(X, 3), BALL, units=IDS, labels=np.array(LABELS), classes=CLASSES).facts == found.facts
    with pytest.raises(InvalidArgumentError, match="labels and classes go together"):
        survey(X, BALL, units=IDS, labels=LABELS)
    with pytest.raises(InvalidDataError, match="More than half"):
        survey(X + 50, BALL, units=EACH)


# -------------------------------------------------------------------- receipts


def test_a_receipt_is_written_shown_and_checked(account, tmp_path):
    release = dpm.private_mean(X, BALL, dpm.GDP(0.5), units=EACH, budget=account)
    release.save(tmp_path / "mean.json")
    loaded = dpm.load(tmp_path / "mean.json")
    assert loaded.receipt == release.receipt
    assert loaded.receipt.promise == dpm.GDP(0.5)
    said = "entry 1 of ledger ledger-1, population cohort; total spent so far: GDP(mu=0.5)"
    assert said in repr(release)
    assert said in release.report()
    assert "GDP(mu=0.5)" in repr(release)
    region = dpm.private_region(X, BALL, dpm.GDP(0.5), units=EACH, budget=account)
    assert "entry 2 of ledger ledger-1" in repr(region)
    assert "receipt" not in dpm.private_mean(X, BALL, dpm.GDP(0.5), units=EACH).to_dict()

    record = release.to_dict()
    for damage in (
        {"hash": "0" * 63},
        {"hash": "G" * 64},
        {"sequence": 0},
        {"sequence": True},
        {"sequence": 1.0},
        {"ledger": ""},
        {"population": "two\nlines"},
        {"spent": {"kind": "GDP", "mu": -1.0}},
        {"more": 1},
    ):
        with pytest.raises(InvalidDataError, match=r"receipt|mu|promise"):
            dpm.Release.from_dict({**record, "receipt": {**record["receipt"], **damage}})
    with pytest.raises(InvalidDataError, match="receipt"):
        dpm.Release.from_dict({**record, "receipt": None})


def test_a_receipt_that_cannot_be_of_this_release_is_found_out(account):
    release = dpm.private_mean(X, BALL, dpm.GDP(0.5), units=EACH, budget=account)
    less = replace(release.receipt, spent=dpm.GDP(0.25).to_dict())
    assert "receipt: less was spent than this release promises" in replace(release, receipt=less).verify().wrong
    assert replace(release, receipt=replace(less, spent=dpm.ZCDP(0.125).to_dict())).verify().ok
    pure = replace(less, spent=dpm.PureDP(9.0).to_dict())
    assert any("no such cap" in text for text in replace(release, receipt=pure).verify().wrong)
    not_private = replace(release, private=False).verify().wrong
    assert "receipt: no account pays for what is not private" in not_private
    test = dpm.private_two_sample_test(X, Y, BALL, dpm.GDP(1.0), units=EACH, budget=account)
    other = replace(test.first.receipt, sequence=9)
    mixed = dpm.TwoSampleTest(test.first, replace(test.second, receipt=other), test.level)
    assert "the groups have different entries of 'receipt'" in mixed.verify().wrong


# -------------------------------------------------------------------- one person in both groups of a test


def test_versions_of_one_data_set_are_no_two_groups(either):
    one, two = (either.register("eeg", records, BALL, EACH) for records in (X, X + 0.01))
    for first, second in ((one, two), (one, one)):
        with pytest.raises(InvalidArgumentError, match=r"data sets of different units.*Nothing was spent"):
            dpm.private_two_sample_test(first, second, BALL, dpm.GDP(1.0), units=None, budget=either)
    assert either.spent is None
    other = either.register("controls", Y, BALL, EACH)
    assert dpm.private_two_sample_test(one, other, BALL, dpm.GDP(1.0), units=None, budget=either).private


def test_the_same_records_under_two_names_are_no_two_groups(either):
    smaller = dpm.Ball(BALL.space, BALL.center, 2.5)
    one, two = either.register("eeg", X, BALL, EACH), either.register("again", X, smaller, EACH)
    assert one.fingerprint == two.fingerprint
    with pytest.raises(InvalidArgumentError, match=r"data sets of different units.*Nothing was spent"):
        dpm.private_two_sample_test(one, two, BALL, dpm.GDP(1.0), units=None, budget=either)
    assert either.spent is None


def test_the_same_array_twice_is_no_two_groups(either):
    with pytest.raises(InvalidArgumentError, match=r"the same records twice.*Nothing was spent"):
        dpm.private_two_sample_test(X, X.tolist(), BALL, dpm.GDP(1.0), units=EACH, budget=either)
    assert either.spent is None


# -------------------------------------------------------------------- several words for one request


def requests_of(account, call, *several, given=X, ball=BALL):
    """Return the requests that a call makes with each of several keywords."""
    for words in several:
        call(given, ball, dpm.GDP(1.0), units=EACH, budget=account, **words)
    return [order.request_hash for order in account.orders]


@pytest.mark.parametrize("call", [dpm.private_mean, private_class_means, dpm.private_region])
def test_the_frechet_mean_is_asked_for_by_name_or_without(account, call):
    left_out, named, tangent = requests_of(account, call, {}, {"estimand": "frechet"}, {"estimand": "tangent"})
    assert left_out == named != tangent


def test_a_test_of_frechet_means_is_asked_for_by_name_or_without(account):
    def call(X, *rest, **words):
        return dpm.private_two_sample_test(X, Y, *rest, **words)

    left_out, named = requests_of(account, call, {}, {"estimand": "frechet"})
    assert left_out == named


def test_a_mechanism_of_another_mean_tells_the_words_apart(account):
    # With a smaller ball, a tangent mean that stands for the Fréchet mean is shared out otherwise than one by itself.
    sphere = dpm.Sphere(2)
    ball = dpm.Ball(sphere, [0.0, 0.0, 1.0], 0.7)
    points = sphere.exp_coords(ball.center, np.random.default_rng(1).normal(0.0, 0.05, (4000, 2)))
    asked = {"mechanism": "tangent-mean-gaussian", "refine": True}
    one, two = requests_of(account, dpm.private_mean, asked, {**asked, "estimand": "frechet"}, given=points, ball=ball)
    assert one != two


def test_a_point_is_the_same_in_a_list_and_in_an_array(account):
    ways = [{"about": about} for about in ([0, 0], [0.0, 0.0], np.zeros(2), np.zeros(2, np.float32))]
    assert len(set(requests_of(account, dpm.private_variance, *ways))) == 1
    assert len(set(requests_of(account, dpm.private_variance, {"about": [0.0, 0.5]}))) == 2


# -------------------------------------------------------------------- what is registered is not said again


def test_bad_records_count_as_registered_or_are_refused(either):
    data = either.register("dti", X, BALL, EACH)
    with pytest.raises(InvalidArgumentError, match=r"invalid is registered with X, as 'raise'"):
        dpm.private_mean(data, BALL, dpm.GDP(1.0), units=None, invalid="center", budget=either)
    assert either.spent is None
