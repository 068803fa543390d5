"""A walk through the lines that run behind a payment: which there are, and what becomes of a call that fails at one.

Lines are those of the library that the calling thread runs once a budget is spent or an account has written a payment
down. A fault is raised by the interpreter's trace function, as if the line itself had raised it.
"""

import collections
import dataclasses
import functools
import itertools
import os
import sys
import traceback

import numpy as np
import pytest

import dpmanifold as dpm
from dpmanifold import EACH_RECORD, GDP, Ball
from dpmanifold.errors import ReleaseLostError
from dpmanifold.ledger.settling import Settling
from dpmanifold.manifolds import exact_points
from dpmanifold.noise.source import SystemSource
from dpmanifold.stats import payment

ROOT = os.path.dirname(dpm.__file__)
SECRET = "Smith has 17.3"
PROMISE = GDP(8.0)
FAULTS = (MemoryError, TimeoutError, AttributeError, KeyboardInterrupt)
PAYERS = ("nobody", "budget", "ledger")


# -------------------------------------------------------------------- what is asked


def _records(space, radius, n=300):
    ball = Ball(space, space.origin, radius, source="a range")
    steps = 0.15 * radius * np.random.default_rng(0).standard_normal((n, space.dim))
    return space.project(space.exp_coords(space.origin, steps)), ball


def _question(call, space, radius, *beside, **options):
    X, ball = _records(space, radius)
    return functools.partial(call, X, *beside, ball, PROMISE, **{"units": EACH_RECORD, **options})


def _test(X, ball, privacy, **options):
    return dpm.private_two_sample_test(X[::2], X[1::2], ball, privacy, **options)


FLAT, CURVED = (dpm.Euclidean(2), 5.0), (dpm.Sphere(2), 0.7)
HALVES = np.arange(300) % 2
BY_CLASS = {"classes": [0, 1]}
QUERIES = {
    "mean": _question(dpm.private_mean, *FLAT),
    "refined mean": _question(dpm.private_mean, *FLAT, refine=True),
    "mean on a sphere": _question(dpm.private_mean, *CURVED),
    "refined mean on a sphere": _question(dpm.private_mean, *CURVED, refine=True),
    "mean on hyperbolic space": _question(dpm.private_mean, dpm.Hyperbolic(2), 1.0),
    "refined mean on hyperbolic space": _question(dpm.private_mean, dpm.Hyperbolic(2), 1.0, refine=True),
    "mean of matrices": _question(dpm.private_mean, dpm.SPD(2, metric="riemann"), 1.0),
    "refined mean of matrices": _question(dpm.private_mean, dpm.SPD(2), 1.0, refine=True),
    "mean of shapes": _question(dpm.private_mean, dpm.KendallShapes(4), 0.3),
    "refined mean of shapes": _question(dpm.private_mean, dpm.KendallShapes(4), 0.3, refine=True),
    "mean of pairs": _question(dpm.private_mean, dpm.Product([dpm.Sphere(2), dpm.Euclidean(1)]), 0.5),
    "shaped mean": _question(dpm.private_mean, *FLAT, noise_shape="private"),
    "shrunken mean": _question(dpm.private_mean, dpm.Euclidean(6), 0.01, shrinkage="james-stein"),
    "extrinsic mean": _question(dpm.private_mean, *CURVED, estimand="extrinsic"),
    "truncated law": _question(dpm.private_mean, *CURVED, mechanism="riemannian-laplace-truncated"),
    "gradient law": _question(dpm.private_mean, *FLAT, mechanism="kng"),
    "doubles": _question(dpm.private_mean, *CURVED, arithmetic="float"),
    "means": _question(dpm.private_class_means, *CURVED, HALVES, **BY_CLASS),
    "median": _question(dpm.private_median, *FLAT),
    "variance": _question(dpm.private_variance, *CURVED),
    "interval": _question(dpm.private_variance_interval, *CURVED, refine=True),
    "region": _question(dpm.private_region, *FLAT),
    "region on a sphere": _question(dpm.private_region, *CURVED, refine=True),
    "test": _question(_test, *CURVED),
    "groups": _question(dpm.private_k_sample_test, *FLAT, HALVES, **BY_CLASS, refine=True),
    "classes": _question(dpm.private_lda, *FLAT, HALVES, **BY_CLASS, refine=True),
    "components": _question(dpm.private_pga, *FLAT),
    "regression": _question(
        dpm.private_regression, *CURVED, np.linspace(0, 1, 300), covariate_range=(0, 1), refine=True
    ),
    "ball": _question(dpm.private_ball, *CURVED),
    "statistic": _question(dpm.private_statistic, *FLAT, statistic="joint moments"),
}


def _registered(call, *beside, labels=None, covariate=None, **options):
    """Return a question about records that are registered with the payer's ledger, and opened behind the payment."""
    X, ball = _records(*CURVED)
    register = {"units": [f"person {number // 2}" for number in range(len(X))], "labels": labels}
    register |= {"classes": options.get("classes"), "covariate": covariate}
    register |= {} if covariate is None else {"covariate_range": (0, 1)}

    @functools.cache
    def data(population):
        name = "by-class" if labels is not None else "with-covariate" if covariate is not None else "plain"
        return population.register(name, X, ball, **register)

    def ask(budget, **rest):
        return call(data(budget), *beside, ball, PROMISE, units=None, budget=budget, **options, **rest)

    return ask


REGISTERED = {
    "registered mean": _registered(dpm.private_mean),
    "registered means": _registered(dpm.private_class_means, None, labels=HALVES[np.arange(300) // 2], **BY_CLASS),
    "registered regression": _registered(
        dpm.private_regression, None, covariate=np.linspace(0, 1, 300), covariate_range=None
    ),
}
ALL = QUERIES | REGISTERED


# -------------------------------------------------------------------- who pays


class Books:
    """A ledger with a population of records and one of people, and what was written into it."""

    def __init__(self, ledger):
        self.ledger, self._seen = ledger, 1
        self._populations = {
            unit: ledger.population(f"{unit}s", cap=GDP(10_000.0), unit=unit) for unit in ("record", "person")
        }
        self._keys = (f"key {number}" for number in itertools.count())

    def payer(self, query):
        population = self._populations["person" if query in REGISTERED else "record"]
        return {"budget": population, "key": next(self._keys)}

    def entries(self):
        """Return the entries that were added since this was asked for."""
        found = list(self.ledger.entries(self._seen))
        self._seen += len(found)
        return found


def paid_by(payer, query, books):
    """Return the keywords of a call that this payer pays for."""
    if payer == "nobody":
        return {}
    return {"budget": dpm.Budget(PROMISE)} if payer == "budget" else books.payer(query)


# -------------------------------------------------------------------- tracing


@dataclasses.dataclass
class Drawn:
    """Counts the words that are taken from the operating system's bits, which follow a seed meanwhile."""

    seed: tuple[int, ...]
    words: int = 0

    def stand_in(self, monkeypatch):
        """Take the place of the operating system."""

        def words(source, n):
            self.words += n
            return np.random.default_rng((*self.seed, self.words)).integers(0, 2**64, n, dtype=np.uint64)

        monkeypatch.setattr(SystemSource, "_words", words)


class Armed:
    """Has a trace function from the payment on, while the block runs."""

    def __init__(self, trace, monkeypatch):
        self._trace, self._patch = trace, monkeypatch

    def __enter__(self):
        spend, pay, release = dpm.Budget.spend, Settling._paid, payment._released

        def spending(budget, *arguments):
            spend(budget, *arguments)
            self._arm()

        def paying(*arguments):
            found = pay(*arguments)
            self._arm()
            return found

        def releasing(*arguments):
            self._arm()
            return release(*arguments)

        self._patch.setattr(dpm.Budget, "spend", spending)
        self._patch.setattr(Settling, "_paid", paying)
        self._patch.setattr(payment, "_released", releasing)

    def _arm(self):
        frame = sys._getframe(2)
        while frame is not None:  # those that have begun are not asked by the interpreter
            frame.f_trace = self._trace(frame, "call", None)
            frame = frame.f_back
        sys.settrace(self._trace)

    def __exit__(self, *problem):
        sys.settrace(None)
        frame = sys._getframe(1)
        while frame is not None:
            frame.f_trace = None
            frame = frame.f_back
        # A trace function can raise where no signal can: at the end of a `with`, before the lock is given back.
        while exact_points._LOCK._is_owned():
            exact_points._LOCK.release()
        self._patch.undo()


class Recording:
    """Counts how often each line of the library runs."""

    def __init__(self):
        self.lines = collections.Counter()

    def __call__(self, frame, event, argument):
        return self._line if frame.f_code.co_filename.startswith(ROOT) else None

    def _line(self, frame, event, argument):
        if event == "line":
            self.lines[frame.f_code, frame.f_lineno] += 1
        return self._line


class Fault:
    """Raises at a line, the so-manieth time that it runs."""

    def __init__(self, place, time, kind, drawn):
        self._code, self._line, self._time, self.error = *place, time, kind(SECRET)
        self._drawn, self.words, self.fired, self.behind = drawn, None, False, False

    def __call__(self, frame, event, argument):
        return self._at if frame.f_code is self._code and not self.fired else None

    def _at(self, frame, event, argument):
        if event == "line" and frame.f_lineno == self._line and not self.fired:
            self._time -= 1
            if self._time == 0:
                self.fired, self.words = True, self._drawn.words
                self.behind = _inside(frame.f_back, payment._attempted)
                raise self.error
        return self._at


def _inside(frame, function):
    while frame is not None and frame.f_code is not function.__code__:
        frame = frame.f_back
    return frame is not None


# -------------------------------------------------------------------- walking


@functools.cache
def lines_of(query, payer, books):
    """Return every line that runs behind the payment of a query, in a fixed order, with how often it did."""
    for seed in range(2):  # the first fills caches
        recording = Recording()
        with pytest.MonkeyPatch.context() as patch:
            Drawn((seed,)).stand_in(patch)
            with Armed(recording, patch):
                ALL[query](**paid_by(payer, query, books))
    return sorted(recording.lines.items(), key=lambda item: (item[0][0].co_filename, item[0][1]))


def forget_public_choices():
    """Have everything computed again that is kept from call to call because public or released numbers give it."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == dpm.__name__:
            for item in vars(module).values():
                if callable(getattr(item, "cache_clear", None)):
                    item.cache_clear()


class Outcome:
    """What came of a call that failed at a line, and of the same call once more."""

    def __init__(self, query, fault, payer, place, time, seed, books, monkeypatch):
        self.asked, self.told = paid_by(payer, query, books), []
        self.drawn = Drawn(seed)
        self.fault = Fault(place, time, fault, self.drawn)
        call = functools.partial(ALL[query], curator=self.told.append, **self.asked)
        self.drawn.stand_in(monkeypatch)
        self.error = self.found = None
        try:
            with Armed(self.fault, monkeypatch):
                self.found = call()
        except BaseException as problem:
            if isinstance(problem, KeyboardInterrupt) and not self.fault.fired:
                raise  # of whoever runs the tests
            self.error = problem
        self.where = f"{query}, {payer}, {fault.__name__} at {place[0].co_filename[len(ROOT) :]}:{place[1]}"

    def forget(self):
        """Drop the error with all frames that it holds, as whoever handles it does."""
        for error in (self.error, self.fault.error):
            if error is not None:
                error.__traceback__ = error.__context__ = error.__cause__ = None

    def again(self, query, monkeypatch):
        """Ask once more under the same key; return what comes back, and how many words that took."""
        before = self.drawn.words
        self.drawn.stand_in(monkeypatch)
        try:
            return ALL[query](**self.asked), self.drawn.words - before
        except ReleaseLostError as lost:
            return lost, self.drawn.words - before
        finally:
            monkeypatch.undo()


def seen_in(error):
    """Return all that can be reached from an error: words, other errors, names of functions."""
    frames = list(traceback.walk_tb(error.__traceback__))
    objects = [value for frame, _ in frames for value in frame.f_locals.values()]
    return "".join(traceback.format_exception(error)), [error.__cause__, error.__context__, *objects]


def wrong_with(query, payer, outcome, books, monkeypatch, thorough=True):
    """Return what must not be of a call that failed behind its payment.

    `thorough`: ask once more under the same key, also where the ledger says that the answer is lost.
    """
    fault, error, found = outcome.fault, outcome.error, []
    if not fault.fired:
        return ["the line did not run"]
    if outcome.found is not None and not _stored(payer, outcome):
        found.append("something was released")
    if outcome.drawn.words != fault.words:
        found.append("something was drawn after the fault")
    if fault.behind and error is not None:
        found += _seen(fault, error)
        losses = [notice for notice in outcome.told if notice.problem]
        if len(losses) != isinstance(fault.error, Exception):
            found.append(f"the curator was told {len(losses)} times")
    if payer == "budget" and len(outcome.asked["budget"].history) != 1:
        found.append("the budget was not spent once")
    if payer == "ledger":
        found += _wrong_with_the_ledger(query, outcome, books, monkeypatch, thorough)
    return found


def _stored(payer, outcome):
    """Return whether a fault came when a ledger had the answer already: it may come back then as at any later time."""
    stored = payer == "ledger" and outcome.asked["budget"].status(outcome.asked["key"]) == "released"
    return stored and not outcome.fault.behind


def _seen(fault, error):
    """Return what can be seen of a fault that came up while something was computed or drawn."""
    words, objects = seen_in(error)
    ended = isinstance(fault.error, KeyboardInterrupt)
    if type(error) is not (KeyboardInterrupt if ended else ReleaseLostError):
        return [f"it ended with {error!r}"]
    found = ["its words are seen"] if SECRET in words else []
    if not ended and any(one is fault.error for one in objects):
        found.append("the error itself can be reached")
    if any(line.name in ("release", "_attempted") for line in traceback.extract_tb(error.__traceback__)):
        found.append("where it happened is seen")
    return found


def _wrong_with_the_ledger(query, outcome, books, monkeypatch, thorough):
    """Return what must not be in a ledger, before and after the same is asked under the same key."""
    population, key, began = outcome.asked["budget"], outcome.asked["key"], outcome.drawn.words > 0
    outcome.forget()
    before = population.status(key)
    if outcome.fault.behind and before == "lost" and not thorough:
        return []
    again, words = outcome.again(query, monkeypatch)
    after = population.status(key)
    if isinstance(again, ReleaseLostError):
        right = before == after == "lost" and words == 0
    elif before == "released":  # the fault came when the answer was stored already
        right = began and words == 0
    else:  # it came before anybody had begun
        right = before in (None, "spent") and after == "released" and not began and words > 0
    right = right and not (outcome.fault.behind and before != "lost")
    once = sum(entry.kind == "spend" and entry.facts["key"] == key for entry in books.entries())
    found = [] if once == 1 else [f"it was paid for {once} times"]
    return found if right else [*found, f"{before}, then {after} with {words} words: {again!r}"]
