"""A query in one file, with one entry point, gets everything: here one of groups, and one with a covariate."""

import dataclasses
import functools
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import dpmanifold as dpm
from dpmanifold.cli.build import command_of
from dpmanifold.cli.remote_commands import asking
from dpmanifold.ledger import Ledger
from dpmanifold.service.ordering import Ref, asking as asking_of
from dpmanifold.service.questions import Question
from dpmanifold.service.web.pages.showing import Typed
from dpmanifold.stats import Parallel, Program, Terms, Units, ask, rehearsal
from dpmanifold.stats.means import CLASS_MEANS
from dpmanifold.stats.region import region_plan
from dpmanifold.stats.samples import SpanningGroups
from dpmanifold_example import contrast as contrasts, trend as trends
from dpmanifold_example.contrast import CONTRAST, Contrast, private_contrast
from dpmanifold_example.trend import TREND
from service_rooms import desk_of, furnish, service_in

BALL = dpm.Ball(dpm.Sphere(2), [0.0, 0.0, 1.0], 0.7, source="by design")
PROMISE = dpm.GDP("2")
N = 600
_RNG = np.random.default_rng(0)
AGE = _RNG.uniform(20.0, 80.0, N)
GROUP = np.where(np.arange(N) < 350, "a", "b")
X = BALL.space.exp_coords(
    BALL.center,
    np.stack([(AGE - 50) / 150, 0.2 * (GROUP == "b") + 0.0 * AGE], axis=1) + 0.1 * _RNG.standard_normal((N, 2)),
)
EACH = {"units": dpm.EACH_RECORD}
QUERIES = [CONTRAST, TREND]


pytestmark = pytest.mark.usefixtures("installed")


def test_they_come_by_entry_point(withdrawn):
    found = dpm.QUERIES.names()
    assert [name for name in found if name not in [query.name for query in dpm.QUERIES.own()]][:2] == [
        "contrast",
        "trend",
    ]
    withdrawn(dpm.QUERIES)
    assert {"contrast", "trend"} & set(dpm.QUERIES.names()) == set()
    with pytest.raises(dpm.InvalidArgumentError, match="must be one of mean"):
        dpm.plan(N, BALL, PROMISE, statistic="contrast")


def asked(query, **terms):
    if query is CONTRAST:
        return private_contrast(X, GROUP, BALL, PROMISE, **{**EACH, "classes": ["a", "b"], **terms})
    return trends.private_trend(X, AGE, BALL, PROMISE, **{**EACH, "covariate_range": (20.0, 80.0), **terms})


def test_they_answer_what_is_asked():
    (difference,), trend = asked(CONTRAST).answers().values(), asked(TREND).answers()
    assert 0.1 < difference["length"] < 0.3
    assert difference["beyond_noise"]
    assert trend["axis 1"] > 0.05 > abs(trend["axis 2"])


@pytest.mark.parametrize("privacy", [dpm.PureDP(1.0), PROMISE], ids=str)
def test_margins_are_those_of_noise_alone(privacy):
    """Of 200 contrasts of groups that are all at the center, at most 5 % are beyond: false alarm 1e-6 above 27."""
    same, labels = np.broadcast_to(BALL.center, (90, 3)), np.tile(["a", "b", "c"], 30)
    asked = {"classes": ["a", "b", "c"], "against": "rest", **EACH}
    found = [private_contrast(same, labels, BALL, privacy, rng=seed, **asked).contrasts() for seed in range(200)]
    largest = np.array([max(length / noise for length, noise in one.values()) for one in found])
    assert (largest > 1).sum() <= 27
    assert (largest > 0.3).sum() > 27, "margins that are too narrow are found"


def test_contrasts_are_against_the_first_group_or_the_rest():
    labels = np.tile(["a", "b", "c"], 200)
    shift = 0.3 * (labels == "c")
    places = BALL.space.exp_coords(BALL.center, np.stack([shift, 0 * shift], axis=1))
    exact = {"classes": ["a", "b", "c"], "rng": 1, **EACH}
    first, rest = (private_contrast(places, labels, BALL, dpm.GDP(50.0), against=a, **exact) for a in ("first", "rest"))
    assert {name: round(length, 2) for name, (length, _) in first.contrasts().items()} == {"b": 0.0, "c": 0.3}
    assert {name: round(length, 2) for name, (length, _) in rest.contrasts().items()} == {
        "a": 0.15,
        "b": 0.15,
        "c": 0.3,
    }


@pytest.mark.parametrize("wrong", [{"against": "last"}, {"level": 1.0}, {"level": 0.0}, {"level": "high"}])
def test_wrong_options_are_refused_before_anything_is_spent(wrong):
    budget = dpm.Budget(PROMISE)
    with pytest.raises(dpm.InvalidArgumentError, match=r"against|level"):
        asked(CONTRAST, budget=budget, **wrong)
    assert budget.history == ()


def test_records_of_what_cannot_be_compared_are_refused():
    found = asked(CONTRAST)
    a, b = found.released
    with pytest.raises(dpm.InvalidDataError, match="two or more"):
        Contrast({"a": a})
    with pytest.raises(dpm.InvalidDataError, match="one ball and one promise"):
        Contrast({"a": a, "b": replace(b, privacy=dpm.GDP(1.0))})
    record = found.to_dict()
    record["answers"]["b"]["length"] *= 2
    with pytest.raises(dpm.InvalidDataError):
        Contrast.from_dict(record)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_json_verify_figure_and_report(query, tmp_path):
    found = asked(query)
    found.save(tmp_path / "found.json")
    again = dpm.load(tmp_path / "found.json")
    assert type(again) is query.result
    assert again.to_dict() == found.to_dict()
    assert dpm.verify(again).ok, dpm.verify(again).wrong
    assert found.picture().axes[0].get_title() == query.title
    assert query.title in found.report()
    record = found.to_dict(answers=False)
    inner = record["groups"][0] if query is CONTRAST else record["release"]
    inner["scale"] *= 0.5
    assert not dpm.verify(query.result.from_dict(record)).ok


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_plan(query):
    n = [350, 250] if query is CONTRAST else N
    planned, made = dpm.plan(n, BALL, PROMISE, statistic=query.name), asked(query)
    assert [step.scale for step in planned.steps] == [release.scale for release in made.released]
    with pytest.raises(dpm.InvalidArgumentError, match="nonsense is no option"):
        dpm.plan(n, BALL, PROMISE, statistic=query.name, nonsense=1)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_ledger_pays_and_knows_them_again(query, tmp_path):
    with Ledger.create(str(tmp_path / "study.db")) as ledger:
        people = ledger.population("cohort", cap=dpm.GDP(9), unit="record")
        beside = {"labels": GROUP, "classes": ["a", "b"]} if query is CONTRAST else {}
        beside |= {"covariate": AGE, "covariate_range": (20.0, 80.0)} if query is TREND else {}
        data = people.register("study", X, BALL, **EACH, **beside)
        assert query.sample.fits(data)
        found = query.of_registered(data, BALL, PROMISE, budget=people, key="k")
        again = query.of_registered(data, BALL, PROMISE, budget=people, key="k")
        assert found.to_dict() == again.to_dict()
        assert ledger.compared(found).faults == ()
        assert [one.facts["statistic"] for one in ledger.entries() if one.kind == "spend"] == [query.name]
        assert dpm.verify(found).ok
        n, options = query.planned(data, {})
        assert dpm.plan(n, BALL, PROMISE, statistic=query.name, **options).steps


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_command(query, tmp_path, monkeypatch):
    import typer

    monkeypatch.chdir(tmp_path)
    app = typer.Typer()
    app.command(query.name)(command_of(query))
    app.command("other")(asking(query))
    where = ["--space", "sphere", "--center", "0,0,1", "--radius", "0.7", "--mu", "2", "--units", "each-record"]
    np.savez("x.npz", X=X, age=AGE, group=GROUP)
    beside = ["--covariate", "age", "--covariate-range", "20", "80"]
    if query is CONTRAST:
        beside = ["--labels", "group", "--classes", "a,b", "--against", "rest", "--level", "0.9"]
    words = ["x.npz", "--array", "X", *beside]
    done = CliRunner().invoke(
        app, [query.name, *words, *where, "--out", "found.json", "--picture", "found.png", "--html", "found.html"]
    )
    assert done.exit_code == 0, done.output
    assert query.title in done.output
    assert type(dpm.load("found.json")) is query.result
    assert (tmp_path / "found.png").stat().st_size > 1000
    said = CliRunner().invoke(app, ["other", "--help"]).output
    assert "DATASET" in said
    assert ("--level" in said) == (query is CONTRAST)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_client_and_service(query):
    client = dpm.connect("https://data.example.org", token="dpm_" + 43 * "x")
    method = getattr(client, query.name)
    assert method.__doc__.startswith(query.call.__doc__.partition("\n")[0])
    request = client._request(query.name, "cohort/dti", PROMISE, None, {"level": 0.9} if query is CONTRAST else {})
    question = Question.from_dict(request["question"])
    assert question.query == query
    assert question.to_dict()["options"] == ({"level": 0.9} if query is CONTRAST else {})
    typed = Typed.read({"statistic": query.name}, "mean")
    assert [option for option, *_ in typed.controls()] == list(query.options)
    with pytest.raises(dpm.InvalidArgumentError, match="takes the options"):
        client._request(query.name, "cohort/dti", PROMISE, None, {"count": 2})
    client.close()


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_service_offers_plans_prices_and_orders(query, tmp_path):
    with service_in(tmp_path) as service:
        ada = desk_of(furnish(service), "ada")
        assert query.name in ada.dataset("cohort/dti").statistics
        question = Question.from_dict({"statistic": query.name, "privacy": {"kind": "GDP", "mu": "0.5"}})
        assert ada.plan("cohort/dti", question)["statistic"] == query.name
        assert ada.price("cohort/dti", question).cost_words
        found = asking_of(service, "ada", Ref("cohort", "dti"), question)
        assert found.order("k").request["statistic"] == query.name


def test_each_is_one_of_the_names_that_messages_list():
    with pytest.raises(dpm.InvalidArgumentError, match="contrast, trend"):
        dpm.plan(N, BALL, PROMISE, statistic="no such")


@pytest.mark.security
@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_plan_that_fails_behind_the_payment_is_refused_before_it(query, monkeypatch):
    """Without a rehearsal every release would be paid for and lost."""
    statistic = contrasts.MeanCoordinates if query is CONTRAST else trends.CovariateProducts
    monkeypatch.setattr(statistic, "draws", lambda self, *_: 1 / 0)
    monkeypatch.setattr(rehearsal, "_rehearsed", set())
    budget = dpm.Budget(PROMISE)
    with pytest.raises(dpm.InvalidArgumentError, match=r"cannot be used for a .*: on public points"):
        asked(query, budget=budget)
    assert budget.history == ()


# -------------------------------------------------------------------- what a query may not do


def units_query(plan, releases=("variance",)):
    """A query of another distribution about records, with this plan."""

    def private_wrong(X, ball, privacy, *, units, budget=None):
        """Release something."""
        return ask(wrong.asked(), Units(X), ball, privacy, Terms(units, budget=budget)).releases

    wrong = dpm.Query("wrong", "Wrong", private_wrong, Units, plan, releases=releases)
    return private_wrong


class Plain(Program):
    """A variance, as the library releases it."""

    def __init__(self, header):
        self.header, self._variance = header, dpm.STATISTICS.get("variance").prepared(header)

    def steps(self):
        return self._variance.steps()

    def draws(self, units):
        return (yield from self._variance.draws(units))


class Twice(Plain):
    """Two variances of the same units, each with the whole promise; the second is what is released."""

    def draws(self, units):
        yield from self._variance.draws(units)
        return (yield from self._variance.draws(units))


class InGroups(Parallel):
    """Two releases of the same units, each with the whole promise, as if they were of two groups."""

    groups = 2

    def __init__(self, header):
        self.header, self._variance = header, dpm.STATISTICS.get("variance").prepared(header)

    def steps(self):
        return self._variance.steps()

    def branch(self, group, units, before):
        return self._variance.draws(units)


class Promising(Plain):
    """A program that costs more than is paid for, and says so."""

    def draws(self, units):
        return dpm.STATISTICS.get("variance").prepared(self.header.promising(dpm.GDP(9))).draws(units)


class Underpaid(Plain):
    """A program that costs more than is paid for, and does not say so."""

    def draws(self, units):
        drawing = dpm.STATISTICS.get("variance").prepared(self.header.promising(dpm.GDP(9))).draws(units)
        said, reply = None, None
        while True:
            try:
                said = drawing.send(reply)
            except StopIteration as end:
                return end.value
            if isinstance(said, dpm.Release):
                said = replace(said, privacy=self.header.privacy)
            reply = yield said


class Silent(Plain):
    """A program that leaves a draw out of what it returns."""

    def draws(self, units):
        release = yield from self._variance.draws(units)
        return replace(release, draws=release.draws[1:])


class Forgetful(Plain):
    """A program that makes a draw without stating it in time."""

    def draws(self, units):
        drawing = self._variance.draws(units)
        said, reply = drawing.send(None), None
        while not isinstance(said, dpm.Release):
            reply = yield said
            said = drawing.send(reply)
        release = yield replace(said, draws=())
        return release


class Touching(InGroups):
    """Two groups of which it is said that a unit may be in both."""

    touched = 2


class Elsewhere(Plain):
    """A program with another header than it is given."""

    def __init__(self, header):
        super().__init__(header.promising(dpm.GDP("0.001")))


@pytest.mark.security
@pytest.mark.parametrize(
    ("plan", "said"),
    [
        (Twice, "draws cost more than GDP"),
        (InGroups, "not subscriptable"),
        (Promising, "draws cost more than GDP"),
        (Underpaid, "draws cost more than GDP"),
        (Silent, "must be that of its last step"),
        (Forgetful, "states other outputs than were drawn for it"),
        (Touching, "in how many groups"),
        (Elsewhere, "must have the header that it is given"),
        (functools.wraps(region_plan)(lambda header: Twice(header)), "draws cost more"),
    ],
)
def test_a_plan_that_makes_other_releases_is_refused_before_the_payment(plan, said):
    budget = dpm.Budget(PROMISE)
    with pytest.raises(dpm.InvalidArgumentError, match=said):
        units_query(plan)(X, BALL, PROMISE, budget=budget, **EACH)
    assert budget.history == ()


class Telling(Plain):
    """A program that looks at the records, which it should not, and says something about one."""

    def draws(self, units):
        if not np.array_equal(units.reveal().array()[0], rehearsal.public_units(BALL, N).array()[0]):
            raise ValueError(f"the first record is {units.reveal().array()[0]}")
        return (yield from self._variance.draws(units))


@pytest.mark.security
def test_a_program_that_looks_at_records_does_so_behind_the_door():
    with pytest.raises(dpm.ReleaseLostError) as lost:
        units_query(Telling)(X, BALL, PROMISE, budget=dpm.Budget(PROMISE), **EACH)
    assert "record" not in str(lost.value)
    assert lost.value.__context__ is None


@pytest.mark.security
def test_no_option_says_otherwise_than_the_sample():
    """In how many classes somebody is decides what each class may spend."""
    labels, ids = np.tile(["a", "b"], 100), np.repeat(np.arange(100), 2)
    with pytest.raises(dpm.InvalidArgumentError, match="touched of class-means: the sample says so"):
        ask(CLASS_MEANS.asked(touched=1), SpanningGroups(X[:200], labels, ["a", "b"]), BALL, PROMISE, Terms(ids))


@pytest.mark.security
def test_verify_examines_what_a_result_is_made_of_and_not_what_it_names():
    honest = asked(CONTRAST)
    halved = {"a": replace(honest.groups["a"], scale=honest.groups["a"].scale / 2), "b": honest.groups["b"]}

    class Hiding(Contrast):
        def released_by_name(self):
            return {}

    class Empty(Contrast):
        released = ()

        def __post_init__(self):
            pass

    class Raising(Contrast):
        def released_by_name(self):
            raise KeyError("no")

    assert dpm.verify(honest).ok
    for kind in (Contrast, Hiding, Empty, Raising):
        assert not dpm.verify(kind(halved)).ok, kind

    class Posing(dpm.Release):
        released = ()

    fields = {field.name: getattr(halved["a"], field.name) for field in dataclasses.fields(halved["a"])}
    assert not dpm.verify(Posing(**fields)).ok


@pytest.mark.parametrize("name", ["plan", "ask", "Loud", "two words", "-a", ""])
def test_names_that_commands_or_clients_have_are_not_taken(name):
    with pytest.raises(dpm.InvalidArgumentError, match="name of a query"):
        dpm.QUERIES.register(name, replace(CONTRAST, name=name))


def test_a_rehearsal_is_remembered_for_the_same_call_alone():
    class Late(Plain):
        def __init__(self, header, *, boom=1):
            super().__init__(header)
            self._boom = boom

        def draws(self, units):
            return self._variance.draws(units) if self._boom < 3 else 1 / 0

    def private_late(X, ball, privacy, *, units, boom=1, budget=None):
        """Release something."""
        return ask(late.asked(boom=boom), Units(X), ball, privacy, Terms(units, budget=budget)).release

    late = dpm.Query("late", "Late", private_late, Units, Late, releases=("variance",))
    assert private_late(X, BALL, PROMISE, **EACH).statistic == "variance"
    with pytest.raises(dpm.InvalidArgumentError, match="on public points"):
        private_late(X, BALL, PROMISE, boom=5, **EACH)


@dataclasses.dataclass
class _Planned:
    """A plan with settings, which can be compared and so has no hash."""

    wanted: int = 1

    def __call__(self, header, **options):
        return CONTRAST.plan(header, **options)


def test_a_plan_may_be_an_object_without_a_hash():
    plan = _Planned()
    query = replace(CONTRAST, plan=plan)
    assert not query.is_own
    assert query.asked().contributed()[-1] is plan
