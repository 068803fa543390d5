"""Which tests run when: nothing about security is left out, and of a product of parameters every pair is tried."""

import ast
import itertools
import pathlib
import subprocess
import sys

import pytest

from laws.tiers import cover, pairs
from programs import missing

ROOT = pathlib.Path(__file__).resolve().parent.parent
TESTS = ROOT / "tests"
MARKS = ["security", "slow", "whole", "reference"]


def not_met(cases, kept):
    """Return the pairs of values of two axes that occur in cases and in none that is kept."""
    found, all_ = (
        {pair for case in some for pair in itertools.combinations(enumerate(case), 2)} for some in (kept, cases)
    )
    return all_ - found


SIZES = [(3, 3, 3), (2, 2, 2, 2, 2), (7, 3, 5), (1, 4, 6, 2), (12, 10, 40, 4), (9, 1, 1)]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_a_cover_has_every_pair_and_few_cases(sizes):
    cases = list(itertools.product(*map(range, sizes)))
    kept = list(itertools.compress(cases, cover(cases)))
    assert not not_met(cases, kept)
    largest, second = sorted(sizes)[:-3:-1]
    assert len(kept) <= 2 * largest * second
    # The comparison sees one case that is missing: each was taken because it has a pair that no earlier one has, and
    # at least one of them a pair that no other one has.
    assert any(not_met(cases, [one for one in kept if one is not left_out]) for left_out in kept)


def test_what_is_kept_by_position_is_no_cover():
    cases = list(itertools.product(range(4), range(3), range(5)))
    assert not_met(cases, cases[::3])


def test_parts_of_a_product_are_covered_as_well():
    cases = [case for case in itertools.product(range(6), range(5), range(4)) if sum(case) % 3]
    kept = list(itertools.compress(cases, cover(cases)))
    assert not not_met(cases, kept)
    assert len(kept) < len(cases) / 2


def test_cases_outside_the_cover_are_marked_and_none_is_lost():
    found = pairs("abc", [1, 2, 3], [[], [0], [0, 0]], ids=str)
    assert [one.values for one in found] == list(itertools.product("abc", [1, 2, 3], [[], [0], [0, 0]]))
    assert found[0].id == "a-1-[]"
    default = [one for one in found if not one.marks]
    assert 9 <= len(default) < len(found)
    assert {mark.name for one in found for mark in one.marks} == {"whole"}


def test_one_axis_and_two_are_tried_whole():
    assert not any(one.marks for one in [*pairs(range(9)), *pairs(range(9), "abc")])
    assert pairs(range(3), []) == []


def test_nothing_about_security_is_left_out_by_default(tmp_path):
    """The expression of pyproject.toml, on a test with each set of marks."""
    sets = [some for size in range(len(MARKS) + 1) for some in itertools.combinations(MARKS, size)]
    lines = ["import pytest"]
    for some in sets:
        lines += [*(f"@pytest.mark.{mark}" for mark in some), f"def test_{'_'.join(some)}():", "    pass"]
    (tmp_path / "test_marked.py").write_text("\n".join(lines))
    words = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "--collect-only", "-q", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "pytest", *words], capture_output=True, text=True, check=True)
    selected = {line.rpartition("::test_")[2] for line in done.stdout.splitlines() if "::test_" in line}
    assert selected == {"", "security", "security_slow"}


def test_what_is_never_left_out_is_not_called_slow(request):
    """`slow` would say nothing there: a long run that is no table of security goes without `security`."""
    marks = {one.nodeid: {mark.name for mark in one.iter_markers()} for one in request.session.items}
    both = [name for name, found in marks.items() if {"security", "slow"} <= found]
    assert not both, both


# What could leave tests out, and the files that may: the one mark of products is set where products are made; which
# lines the walk of faults is a product with is known only when it runs.
DEVICES = {
    "mark.whole": {TESTS / "laws" / "tiers.py", TESTS / "stats" / "test_fault_walk.py"},
    "add_marker": set(),
    "pytest_collection_modifyitems": set(),
    "pytest_ignore_collect": set(),
    "pytest_deselected": set(),
    "pytest_runtest_setup": set(),
}


@pytest.mark.parametrize("device", DEVICES)
def test_there_is_no_other_way_to_leave_tests_out(device):
    this = pathlib.Path(__file__).resolve()
    found = {path for path in TESTS.rglob("*.py") if path != this and device in path.read_text(encoding="utf-8")}
    assert found == DEVICES[device]


CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "time"}


def asserted_clocks(source):
    """Return the lines of assertions that ask for the time: on a busy machine they fail for nothing."""
    calls = (
        (found.lineno, call.func.attr)
        for found in ast.walk(ast.parse(source))
        if isinstance(found, ast.Assert)
        for call in ast.walk(found)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
    )
    return sorted({line for line, name in calls if name in CLOCKS})


def test_no_assertion_looks_at_a_clock():
    found = {path.name: asserted_clocks(path.read_text(encoding="utf-8")) for path in TESTS.rglob("*.py")}
    assert not {name: lines for name, lines in found.items() if lines}
    assert asserted_clocks("begun = time.monotonic()\nassert time.monotonic() - begun < 2") == [2]


@pytest.mark.parametrize(("ci", "outcome"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_in_ci_nothing_is_skipped_for_want_of_a_program(monkeypatch, ci, outcome):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(outcome, match="no server"):
        missing("no server")
