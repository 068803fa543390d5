"""Regressions on registered data: what is public about a covariate is known, and its values are opened later."""

import hashlib
import json

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold.errors import InvalidArgumentError, InvalidDataError, PromiseError, ReleaseLostError
from dpmanifold.ledger import Ledger
from dpmanifold.stats import asking
from dpmanifold.stats.registered_data import survey
from laws.accounts import MemoryAccount, RecordedPopulation
from laws.pieces import ListSource

pytestmark = pytest.mark.security

BALL = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0, source="an atlas")
CAP, EACH, RANGE = dpm.GDP(100.0), dpm.EACH_RECORD, (7.0, 15.0)
RNG = np.random.default_rng(0)
AGE = RNG.uniform(7.0, 15.0, 60)
X = np.stack([0.2 * (AGE - 11.0), np.zeros(60)], axis=1) + RNG.normal(0.0, 0.2, (60, 2))
IDS = [f"p{i // 2}" for i in range(60)]
LABELS = ["a"] * 30 + ["b"] * 30
WITH = {"covariate": AGE, "covariate_range": RANGE}


@pytest.fixture(params=["memory", "sqlite"])
def either(request, tmp_path):
    """An account in memory, and one of a ledger in a file."""
    if request.param == "memory":
        yield MemoryAccount(CAP)
        return
    with Ledger.create(str(tmp_path / "study.db")) as ledger:
        yield RecordedPopulation(ledger, CAP)


@pytest.fixture
def cohort(tmp_path):
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        yield ledger.population("cohort", cap=CAP, unit="participant")


def asked(data, account, covariate=None, ball=BALL, privacy=None, **rest):
    given = {"units": None, "covariate_range": None, "budget": account, **rest}
    return dpm.private_regression(data, covariate, ball, privacy or dpm.GDP("0.5"), **given)


def bits(result):
    return [json.dumps(release.to_dict(answers=False)) for release in result.released]


# -------------------------------------------------------------------- the order of things


@pytest.mark.parametrize("units", [EACH, IDS])
def test_a_registered_covariate_is_opened_once_and_after_the_spend(either, units):
    data = either.register("study", X, BALL, units, **WITH)
    first, again = (asked(data, either, key="once") for _ in range(2))
    assert either.events == ["registered", "spent", "started", "opened", "drawn"]
    assert bits(first) == bits(again)
    assert first.verify().ok
    assert (first.covariate_range, first.n, first.covariate_public) == (RANGE, data.n, False)
    # The same records as an array are the same data set, and the same request; in another range another one.
    raw = asked(X.tolist(), either, AGE.tolist(), units=units, covariate_range=[7, 15], key="once")
    assert bits(raw) == bits(first)
    with pytest.raises(InvalidArgumentError, match="another request"):
        asked(data, either, covariate_range=(6, 16), key="once")
    assert asked(data, either, covariate_range=(6, 16)).covariate_range == (6.0, 16.0)


@pytest.mark.parametrize("public", [False, True])
def test_what_is_drawn_is_what_is_drawn_of_arrays(monkeypatch, public):
    """With the same bits: and not with another covariate, another promise about it or another range."""
    fresh = asking.fresh_bits
    monkeypatch.setattr(asking, "fresh_bits", lambda rng, *rest: fresh(1, *rest))

    def drawn(data, covariate=None, **rest):
        words = {"covariate_range": None, "covariate_public": public, **rest}
        return bits_of(asked(data, account if covariate is None else None, covariate, **words))

    def bits_of(result):
        return [release.value.tolist() for release in result.released]

    account = MemoryAccount(CAP)
    data = account.register("study", X, BALL, IDS, **WITH, covariate_public=public)
    right = drawn(data)
    given = {"units": IDS, "covariate_range": RANGE}
    assert drawn(X, AGE, **given) == right
    assert drawn(X, AGE[::-1], **given) != right
    assert drawn(X, AGE, units=IDS, covariate_range=(6.0, 15.0)) != right
    if public:
        others = account.register("others", X, BALL, IDS, covariate=AGE[::-1], covariate_range=RANGE,
                                  covariate_public=True)  # fmt: skip
        assert drawn(others) != right


def test_every_other_statistic_takes_data_with_a_covariate(either):
    data = either.register("study", X, BALL, EACH, **WITH, labels=LABELS, classes=["a", "b"])
    how = {"units": None, "budget": either}
    assert dpm.private_mean(data, BALL, dpm.GDP(1.0), **how).n == 60
    assert set(dpm.private_class_means(data, None, BALL, dpm.GDP(1.0), classes=["a", "b"], **how)) == {"a", "b"}
    assert asked(data, either).n == 60


# -------------------------------------------------------------------- columns


def test_a_column_of_a_table_is_no_part_of_its_records(cohort):
    """Whoever asks, and for what: of a table without chosen columns all others are."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": IDS, "age": AGE, "u": X[:, 0], "v": X[:, 1], "sex": [0, 1] * 30})
    ages = cohort.register("ages", frame[["who", "age", "u", "v"]], BALL, units="who", covariate="age",
                           covariate_range=RANGE)  # fmt: skip
    assert ages.covariate == dpm.stats.registered_data.Covariate(RANGE, public=False)
    first = asked(ages, cohort, key="once")
    later = cohort.dataset("ages", lambda: frame[["who", "age", "u", "v"]])
    assert bits(asked(later, cohort, key="once")) == bits(first)
    assert bits(asked(X, cohort, AGE, units=IDS, covariate_range=RANGE, key="once")) == bits(first)
    assert dpm.private_mean(later, BALL, dpm.GDP("0.5"), units=None, budget=cohort).n == 30
    by_sex = cohort.register("sexes", frame[["who", "u", "v", "sex"]], BALL, units="who", labels="sex", classes=[0, 1])
    assert dpm.private_mean(by_sex, BALL, dpm.GDP("0.5"), units=None, budget=cohort).n == 30
    with pytest.raises(InvalidArgumentError, match="columns is needed"):  # of two such columns one alone is told apart
        cohort.register("both", frame, BALL, units="who", labels="sex", classes=[0, 1], covariate="age",
                        covariate_range=RANGE)  # fmt: skip


def test_a_source_is_known_again_by_its_columns_and_arrays_are_given_again(cohort):
    source = ListSource(X, np.array(IDS), AGE, cuts=(20,), block=7)
    cohort.register("eeg", source, BALL, units="person", covariate="group", covariate_range=RANGE)
    first = asked(cohort.dataset("eeg", lambda: source), cohort, key="once")
    assert bits(asked(X, cohort, AGE, units=IDS, covariate_range=RANGE, key="once")) == bits(first)
    cohort.register("arrays", X, BALL, units=IDS, **WITH)
    with pytest.raises(InvalidArgumentError, match="covariate was registered as an array"):
        cohort.dataset("arrays", X, units=IDS)
    assert asked(cohort.dataset("arrays", X, units=IDS, covariate=AGE), cohort).n == 30
    assert dpm.private_mean(
        cohort.dataset("arrays", X, units=IDS, covariate=AGE), BALL, dpm.GDP("0.5"), units=None, budget=cohort
    ).receipt


# -------------------------------------------------------------------- what is public


def test_an_entry_has_the_range_and_no_value(tmp_path):
    with Ledger(tmp_path / "study.db", principal="ada") as ledger:
        cohort = ledger.population("cohort", cap=CAP, unit="participant")
        for public in (False, True):
            cohort.register("study", X, BALL, units=IDS, **WITH, covariate_public=public)
        # Within the range: whatever they are, the same is written down, but for marks under the ledger's key.
        cohort.register("study", X, BALL, units=IDS, covariate=np.full(60, 11.0), covariate_range=RANGE)
        private, known, other = (entry.facts for entry in ledger.entries() if entry.kind == "dataset")
        assert private["about"]["covariate"] == {"column": None, "range": ["7.0", "15.0"], "public": False}
        assert known["about"]["covariate"]["public"]
        assert (
            private["facts"] == known["facts"] == other["facts"] == {"space": "Euclidean(2)", "n": 30, "unit": "unit"}
        )
        differ = {name for name in private if private[name] != other[name]}
        assert differ <= {"id", "version", "fingerprint", "digest", "time"}
        assert "fingerprint" in differ
        assert ledger.audit().ok


def test_another_covariate_is_another_version(cohort):
    def version(**changes):
        return cohort.register("study", X, BALL, units=IDS, **{**WITH, **changes}).version

    assert version() == 1
    assert version(covariate=AGE.tolist()) == 1
    assert version(covariate=AGE + 1e-9) == 2
    assert version(covariate_range=(6, 15)) == 3
    assert version(covariate_public=True) == 4
    assert version(covariate=None, covariate_range=None) == 5


def test_what_was_registered_before_is_known_by_the_same_bytes():
    """Fingerprints and requests that ledgers hold: those of data without a covariate, and of arrays with one."""
    points, line = np.arange(24.0).reshape(12, 2) / 16, np.arange(12.0) / 8
    ball, ids = dpm.Ball(dpm.Euclidean(2), [0.0, 0.0], 3.0), [f"p{i // 2}" for i in range(12)]
    by_class = {"labels": ["a", "b"] * 6, "classes": ["a", "b"]}

    def digest(content):
        return hashlib.sha256(b"|".join(content())).hexdigest()

    found = [
        survey(points, ball, units=ids),
        survey(points, ball, units=EACH, **by_class),
        survey(points, ball, units=ids, **by_class, labels_public=False),
    ]
    assert [digest(one.content)[:16] for one in found] == ["f973dc3e63f6da3f", "d45e5bf29ba2604a", "e50b90a945e03bd7"]
    beside = survey(points, ball, units=ids, covariate=line, covariate_range=(0, 2))
    assert digest(beside.content)[:16] == "949c0642b1978463"
    assert beside.facts == found[0].facts == {"space": "Euclidean(2)", "n": 6, "unit": "unit"}
    account = MemoryAccount(CAP)
    asked(points, account, line, ball, units=ids, covariate_range=(0, 2))
    assert account.orders[0].request_hash[:16] == "35ec3c8c5410e112"


# -------------------------------------------------------------------- refused, and lost


def test_registration_refuses_what_a_regression_would(cohort):
    def register(**changes):
        cohort.register("study", X, BALL, units=IDS, **{**WITH, **changes})

    for words, changes in (
        ("go together", {"covariate": None}),
        ("go together", {"covariate_range": None}),
        ("go together", {"covariate": None, "covariate_range": None, "covariate_public": True}),
        ("covariate_range must be two numbers", {"covariate_range": (15, 7)}),
        ("covariate_public must be True or False", {"covariate_public": "yes"}),
        (r"covariate must have shape \(60,\)", {"covariate": AGE[1:]}),
        ("X has no columns", {"covariate": "age"}),
        ("that of record 3 is none", {"covariate": np.where(np.arange(60) == 3, np.nan, AGE)}),
        ("More than half of the covariates", {"covariate": 12 * AGE}),
    ):
        with pytest.raises((InvalidArgumentError, InvalidDataError), match=words):
            register(**changes)
    assert cohort.datasets() == []
    told = []
    register(covariate=12 * AGE, confirm=True, curator=told.append)
    assert [notice.beyond for notice in told] == [60]


def test_public_facts_refuse_before_the_spend(either):
    data = either.register("study", X, BALL, EACH, **WITH)
    known = either.register("known", X, BALL, EACH, **WITH, covariate_public=True)
    without = either.register("without", X, BALL, EACH)
    either.events.clear()
    line = dpm.Ball(dpm.Euclidean(1), [0.0], 1.0)
    for words, attempt in (
        ("registered without one", lambda: asked(without, either)),
        ("covariate is registered with X", lambda: asked(data, either, AGE)),
        ("units are registered with X", lambda: asked(data, either, units=IDS)),
        ("covariate_public must be False: X is registered with a private", lambda: asked(data, either,
                                                                                         covariate_public=True)),
        ("covariate_public must be True: X is registered with a public", lambda: asked(known, either)),
        ("covariate_range must be two numbers", lambda: asked(data, either, covariate_range=(1, 1))),
        ("only its account may pay", lambda: asked(data, None)),
        ("ball must be on", lambda: asked(data, either, ball=line)),
        ("invalid is registered", lambda: asked(data, either, invalid="center")),
        ("needs Gaussian noise", lambda: asked(data, either, privacy=dpm.PureDP(1.0))),
    ):  # fmt: skip
        with pytest.raises((InvalidArgumentError, PromiseError), match=words):
            attempt()
    assert either.events == []
    assert asked(known, either, covariate_public=True).covariate_public


@pytest.mark.parametrize(
    "changes",
    [{"covariate": AGE[::-1]}, {"covariate": AGE[1:]}, {"covariate": "age"}, {"records": X[::-1]}, {"covariate": None}],
)
def test_what_changed_since_is_lost_without_a_word(either, changes):
    data = either.register("study", X, BALL, IDS, **WITH)
    data.replace(**changes)
    for call in (asked, lambda data, account, **rest: dpm.private_mean(data, BALL, dpm.GDP("0.5"), units=None,
                                                                       budget=account, **rest)):  # fmt: skip
        either.events.clear()
        with pytest.raises(ReleaseLostError) as found:
            call(data, either, key=f"lost {call is asked}")
        assert str(found.value) == str(ReleaseLostError.of(f"lost {call is asked}"))
        assert found.value.__context__ is None
        assert either.events == ["spent", "started", "opened", "lost"]


def test_bad_covariates_count_as_the_middle_then_as_now(cohort):
    gaps = np.where(np.arange(60) == 3, np.nan, AGE)
    data = cohort.register("study", X, BALL, units=IDS, covariate=gaps, covariate_range=RANGE, invalid="center")
    assert asked(data, cohort).n == 30
    with pytest.raises(ReleaseLostError):  # somebody has filled the gap
        asked(cohort.dataset("study", X, units=IDS, covariate=AGE), cohort)
