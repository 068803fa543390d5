"""Budget: the cap holds under threads, copies and rounding, and a refused spend leaves no trace."""

import contextlib
import copy
import json
import math
import multiprocessing
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from dpmanifold.errors import DPManifoldError, InvalidArgumentError
from dpmanifold.privacy import (
    GDP,
    ZCDP,
    ApproxDP,
    Budget,
    BudgetError,
    PromiseError,
    PureDP,
    Spend,
    compose,
    split,
    to_approx,
    to_gdp,
    to_zcdp,
)
from dpmanifold.privacy.convert import rho_of

pytestmark = pytest.mark.security

CAPS = [PureDP(1.0), ApproxDP(1.0, 1e-5), ZCDP(1.0), GDP(1.0)]
sizes = st.floats(min_value=1e-6, max_value=50)
caps = st.one_of(
    st.builds(PureDP, sizes),
    st.builds(ZCDP, sizes),
    st.builds(GDP, sizes),
    st.builds(ApproxDP, sizes, st.floats(min_value=1e-300, max_value=0.5)),
)


def first(promise):
    return next(value for name, value in promise.to_dict().items() if name != "kind")


@pytest.mark.parametrize("cap", CAPS, ids=repr)
def test_a_new_budget_is_whole(cap):
    budget = Budget(cap)
    assert budget.privacy == cap
    assert budget.spent is None
    assert budget.remaining == cap
    assert budget.history == ()


def test_each_kind_adds_up_in_its_own_way():
    for cap, half, first in [
        (PureDP(1.0), PureDP(0.5), PureDP(0.25)),
        (ZCDP(1.0), ZCDP(0.5), ZCDP(0.25)),
        (GDP(5.0), GDP(3.0), GDP(4.0)),
    ]:
        budget = Budget(cap)
        budget.spend(first)
        assert budget.spent == first
        assert budget.remaining == (GDP(3.0) if cap == GDP(5.0) else type(cap)(0.75))
        budget.spend(half)
        assert budget.spent == compose([first, half])
    budget = Budget(ApproxDP(1.0, 2**-10))
    budget.spend(ApproxDP(0.25, 2**-11))
    assert budget.spent == ApproxDP(0.25, 2**-11)
    assert budget.remaining == ApproxDP(0.75, 2**-11)


@given(caps, st.integers(min_value=1, max_value=40))
def test_equal_shares_fit_exactly(cap, parts):
    budget = Budget(cap)
    for share in split(cap, parts):
        budget.spend(share)
    assert budget.spent <= cap


@pytest.mark.parametrize(
    ("cap", "tenth"),
    [
        (PureDP(1.0), PureDP(0.1)),
        (ZCDP(1.0), ZCDP(0.1)),
        (GDP(1.0), GDP(math.nextafter(math.sqrt(0.1), 1.0))),
        (ApproxDP(1.0, 1e-5), ApproxDP(0.1, 1e-6)),
    ],
    ids=repr,
)
def test_ten_floats_of_slightly_more_than_a_tenth_do_not_fit(cap, tenth):
    """Floats are what they are: the tenth is refused in so many words, and ten shares of `split` fit."""
    budget = Budget(cap)
    for _ in range(9):
        budget.spend(tenth)
    with pytest.raises(BudgetError, match=r"Only the last digits do not fit.*slightly more than a tenth.*split"):
        budget.spend(tenth)
    assert len(budget.history) == 9
    budget = Budget(cap)
    for share in split(cap, 10):
        budget.spend(share)
    assert budget.spent <= cap
    with pytest.raises(BudgetError, match="Ask for less"):
        budget.spend(tenth)


@pytest.mark.parametrize("cap", [*CAPS, PureDP(0.1), GDP(0.7), ZCDP(1e-9), ApproxDP(3.0, 0.3)], ids=repr)
@pytest.mark.parametrize("tiny", [1e-3, 9e-13, 1e-16, 1e-300, 5e-324])
def test_nothing_is_accepted_once_the_cap_is_spent(cap, tiny):
    budget = Budget(cap)
    budget.spend(cap)
    assert budget.spent == cap
    assert budget.remaining is None
    for more in (PureDP(tiny), type(cap)(tiny, tiny) if isinstance(cap, ApproxDP) else type(cap)(tiny)):
        with pytest.raises(BudgetError, match=r"nothing of .* Plan with a larger budget"):
            budget.spend(more)
    assert budget.spent == cap


@given(caps, st.lists(st.floats(min_value=1e-3, max_value=1.0), min_size=1, max_size=12))
def test_spent_and_remaining_are_on_the_safe_side_and_within_the_cap(cap, shares):
    """Spends that come near the cap from below: no statement exceeds it, and what is left does fit."""
    budget = Budget(cap)
    for share in shares:
        part = type(cap)(*(value * share for name, value in cap.to_dict().items() if name != "kind"))
        with contextlib.suppress(BudgetError):
            budget.spend(part)
    if budget.spent is not None:
        assert budget.spent <= cap
        assert first(budget.spent) <= first(cap)
    while (rest := budget.remaining) is not None and len(budget.history) < 20:
        budget.spend(rest)
        assert budget.spent <= cap


@given(caps, st.floats(min_value=0.01, max_value=0.99))
def test_what_remains_can_be_spent_and_nothing_after_it(cap, share):
    budget = Budget(cap)
    budget.spend(split(cap, [share, 1 - share])[0])
    budget.spend(budget.remaining)
    rest = budget.remaining
    assert rest is None or rest < split(cap, [1, 1e6])[0]
    with pytest.raises(BudgetError):
        budget.spend(split(cap, 1000)[0])


@pytest.mark.parametrize("cap", CAPS, ids=repr)
def test_a_refused_spend_leaves_no_trace(cap):
    budget = Budget(cap)
    budget.spend(split(cap, 2)[0], label="first")
    before = budget.history, budget.spent, budget.remaining
    with pytest.raises(BudgetError, match=r"is more than the budget has left, .* of .* Nothing was spent"):
        budget.spend(cap, label="second")
    for bad in (None, 1.0, "GDP"):
        with pytest.raises(InvalidArgumentError, match="promise must be a promise"):
            budget.spend(bad)
    with pytest.raises(InvalidArgumentError, match="label must be text"):
        budget.spend(split(cap, 10)[0], label=3)
    assert (budget.history, budget.spent, budget.remaining) == before


def test_an_exhausted_budget_says_so():
    budget = Budget(PureDP(1.0))
    budget.spend(PureDP(1.0))
    assert budget.remaining is None
    with pytest.raises(BudgetError, match="has left, nothing of PureDP"):
        budget.spend(PureDP(1e-3))


def test_either_part_of_an_approximate_cap_can_run_out():
    budget = Budget(ApproxDP(1.0, 1e-5))
    with pytest.raises(BudgetError):
        budget.spend(ApproxDP(0.5, 2e-5))
    with pytest.raises(BudgetError):
        budget.spend(ApproxDP(2.0, 1e-6))
    budget.spend(ApproxDP(0.5, 1e-5))
    assert budget.remaining == PureDP(0.5)
    budget.spend(PureDP(0.5))
    assert budget.remaining is None
    budget = Budget(ApproxDP(1.0, 1e-5))
    budget.spend(PureDP(0.25))
    assert budget.spent == PureDP(0.25)
    assert budget.remaining == ApproxDP(0.75, 1e-5)


def test_many_small_spends_do_not_drift():
    budget = Budget(GDP(1.0))
    step = GDP(2.0**-6)
    for _ in range(4096):
        budget.spend(step)
    assert budget.spent == GDP(1.0)
    with pytest.raises(BudgetError):
        budget.spend(GDP(1e-300))


# -------------------------------------------------------------------- kinds

ACCEPTED = [
    (PureDP(1.0), PureDP(0.5), PureDP(0.5)),
    (ApproxDP(1.0, 1e-5), ApproxDP(0.5, 1e-6), ApproxDP(0.5, 1e-6)),
    (ApproxDP(1.0, 1e-5), PureDP(0.5), PureDP(0.5)),
    (ZCDP(1.0), ZCDP(0.5), ZCDP(0.5)),
    (ZCDP(1.0), GDP(0.5), ZCDP(0.125)),
    (ZCDP(1.0), PureDP(0.5), ZCDP(0.125)),
    (GDP(1.0), GDP(0.5), GDP(0.5)),
    (GDP(1.0), PureDP(0.5), to_gdp(PureDP(0.5))),
]
REFUSED = [
    (PureDP(1.0), ApproxDP(0.5, 1e-6), "Ask for PureDP"),
    (PureDP(1.0), ZCDP(0.1), "Ask for PureDP"),
    (PureDP(1.0), GDP(0.1), "Ask for PureDP"),
    (ApproxDP(1.0, 1e-5), GDP(0.1), r"to_approx\(promise, delta\)"),
    (ApproxDP(1.0, 1e-5), ZCDP(0.1), r"to_approx\(promise, delta\)"),
    (ZCDP(1.0), ApproxDP(0.5, 1e-6), "make the budget ApproxDP"),
    (GDP(1.0), ApproxDP(0.5, 1e-6), "make the budget ApproxDP"),
    (GDP(1.0), ZCDP(0.1), "Make the budget ZCDP"),
]


@pytest.mark.parametrize(("cap", "promise", "cost"), ACCEPTED)
def test_kinds_a_cap_takes(cap, promise, cost):
    budget = Budget(cap)
    budget.spend(promise, label="it")
    assert budget.spent == cost
    assert budget.history == (Spend("it", promise),)  # as given, not as converted


@pytest.mark.parametrize(("cap", "promise", "remedy"), REFUSED)
def test_kinds_a_cap_cannot_take_are_refused_with_a_remedy(cap, promise, remedy):
    budget = Budget(cap)
    with pytest.raises(PromiseError, match=f"cannot be spent from a budget of .*{remedy}"):
        budget.spend(promise)
    assert budget.history == ()
    assert budget.spent is None


def test_the_remedy_for_an_approximate_cap_works():
    budget = Budget(ApproxDP(1.0, 1e-5))
    budget.spend(to_approx(GDP(0.1), 1e-6))
    assert budget.spent == to_approx(GDP(0.1), 1e-6)


@given(caps, st.lists(st.tuples(st.sampled_from([PureDP, ZCDP, GDP]), sizes), min_size=1, max_size=8))
def test_what_was_spent_is_what_the_history_composes_to(cap, wishes):
    """The filter charges exactly what the fixed list would cost in the kind of the cap, and lets through no more."""
    budget = Budget(cap)
    for kind, size in wishes:
        try:
            budget.spend(kind(size / 10))
        except (BudgetError, PromiseError):
            continue
    if not budget.history:
        assert budget.spent is None
        return
    # Exact amounts, so that nothing is rounded but the result: converted to floats one by one, rho would be rounded up
    # with each of them, and come out a unit in the last place larger.
    amount = {ZCDP: lambda p: Fraction(rho_of(p)), GDP: lambda p: Fraction(to_gdp(p).mu) ** 2}.get(
        type(cap), lambda p: Fraction(p.epsilon)
    )
    total = sum(amount(spend.privacy) for spend in budget.history)
    power, stated = (2, budget.spent.mu) if isinstance(cap, GDP) else (1, first(budget.spent))
    assert Fraction(math.nextafter(stated, 0.0)) ** power < total <= Fraction(stated) ** power
    assert total <= amount(cap)
    assert budget.spent <= cap


# -------------------------------------------------------------------- one shared object


def test_copies_are_the_budget_itself():
    budget = Budget(GDP(1.0))
    assert copy.copy(budget) is budget
    assert copy.deepcopy(budget) is budget
    holder = copy.deepcopy({"nested": [budget, budget]})
    assert holder["nested"][0] is holder["nested"][1] is budget


def test_clones_of_an_estimator_share_the_budget():
    base = pytest.importorskip("sklearn.base")

    class Estimator(base.BaseEstimator):
        def __init__(self, budget=None):
            self.budget = budget

    budget = Budget(GDP(1.0))
    assert base.clone(budget, safe=False) is budget
    twin = base.clone(base.clone(Estimator(budget)))
    assert twin.budget is budget
    twin.budget.spend(GDP(0.5))
    assert budget.spent == GDP(0.5)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickling_is_refused_with_the_reason(protocol):
    with pytest.raises(TypeError, match=r"cannot be pickled.*another process.*threads"):
        pickle.dumps(Budget(GDP(1.0)), protocol)


def _try_in_child(budget, results):
    try:
        budget.spend(PureDP(0.1))
        results.put("spent")
    except BudgetError as problem:
        results.put(str(problem))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
# Python 3.12 warns of forks beside threads that the test runner started; the child here touches none of them.
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_cannot_spend():
    budget = Budget(PureDP(1.0))
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    child = context.Process(target=_try_in_child, args=(budget, results))
    child.start()
    assert "belongs to another process" in results.get(timeout=30)
    child.join(timeout=30)
    budget.spend(PureDP(1.0))


@pytest.fixture
def restless_threads():
    """Switch threads as often as possible: without the lock the cap is then broken in most runs."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.usefixtures("restless_threads")
@pytest.mark.parametrize(
    ("cap", "step", "fits"),
    [
        (PureDP(1.0), PureDP(2.0**-7), 128),
        (GDP(1.0), GDP(0.125), 64),
        (ZCDP(1.0), GDP(0.25), 32),
        (ApproxDP(1.0, 2.0**-20), ApproxDP(0.001, 2.0**-27), 128),
        (PureDP(1.0), PureDP(0.01), 99),  # the float 0.01 is more than a hundredth
    ],
    ids=repr,
)
def test_threads_never_exceed_the_cap_and_never_lose_a_spend(cap, step, fits):
    budget = Budget(cap)
    start = threading.Barrier(16)

    def work(name):
        start.wait()
        done = 0
        for _ in range(50):
            try:
                copy.deepcopy(budget).spend(step, label=name)
                done += 1
            except BudgetError:
                assert budget.spent is not None
        return done

    with ThreadPoolExecutor(16) as pool:
        done = list(pool.map(work, [f"worker {i}" for i in range(16)]))
    assert sum(done) == len(budget.history) == fits
    for i, count in enumerate(done):
        assert sum(spend.label == f"worker {i}" for spend in budget.history) == count
    together = [to_zcdp(spend.privacy) if isinstance(cap, ZCDP) else spend.privacy for spend in budget.history]
    assert compose(together).implies(budget.spent)


# -------------------------------------------------------------------- what it says


def test_repr_says_what_is_left():
    budget = Budget(PureDP(1.0))
    budget.spend(PureDP(0.75))
    assert repr(budget) == ("Budget(PureDP(epsilon=1.0), spent=PureDP(epsilon=0.75), remaining=PureDP(epsilon=0.25))")


def test_history_is_a_record_of_labels_and_promises_that_cannot_be_changed():
    budget = Budget(GDP(1.0))
    budget.spend(GDP(0.5), label="mean")
    entry = budget.history[0]
    assert vars(entry) == {"label": "mean", "privacy": GDP(0.5)}
    assert json.dumps([{"label": spend.label, **spend.privacy.to_dict()} for spend in budget.history])
    with pytest.raises(AttributeError):
        budget.history = ()
    with pytest.raises(AttributeError):
        budget.privacy = GDP(100.0)


@pytest.mark.parametrize("bad", [None, 1.0, "GDP", GDP, {"mu": 1.0}])
def test_a_budget_needs_a_promise(bad):
    with pytest.raises(InvalidArgumentError, match="privacy must be a promise, got"):
        Budget(bad)


def test_budget_error_is_ours():
    assert issubclass(BudgetError, DPManifoldError)
    assert issubclass(BudgetError, RuntimeError)
