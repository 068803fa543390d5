"""What was spent, put together for people: lines, states, sums, pages."""

import io
import json
from fractions import Fraction

import pytest
from rich.console import Console

from dpmanifold import GDP, ApproxDP
from dpmanifold.ledger.entries import Entry
from dpmanifold.ledger.history import History, promise_words
from ledger.entries_of_a_year import Year, year


def printed(history, width):
    page = io.StringIO()
    Console(width=width, file=page).print(history.table())
    return page.getvalue()


def test_every_spend_is_a_line_with_its_state():
    history = year().history()
    assert [(line.about, line.privacy, line.principal, line.state) for line in history.releases] == [
        ("mean of dti@1", "mu 0.3", "ada", "released"),
        ("variance of dti@1", "mu 0.4", "ben", "lost"),
        ("mean of dti@1", "mu 0.3", "ada", "spent"),
    ]
    assert history.releases[-1].spent == (Fraction(34, 100),)


def test_what_used_it_up_adds_up_to_what_was_spent():
    history = year().history()
    uses = history.uses()
    assert [(use.about, use.releases, use.lost) for use in uses] == [
        ("mean of dti@1", 2, 0),
        ("variance of dti@1", 1, 1),
    ]
    assert sum((use.cost[0] for use in uses), Fraction(0)) == history.releases[-1].spent[0]
    assert uses[0].share == pytest.approx(0.18)


def test_a_state_is_that_of_the_latest_step_wherever_it_stands():
    found = Year()
    number = found.spend("0.3")
    spend, started, drawn = found.entries
    assert History([spend], {number: drawn}, {"cohort": GDP(1.0)}).releases[0].state == "released"
    assert History([spend], {number: started}, {"cohort": GDP(1.0)}).releases[0].state == "started"
    assert History([spend], {}, {"cohort": GDP(1.0)}).releases[0].state == "spent"
    assert History([spend, started, drawn], {}, {"cohort": GDP(1.0)}).releases[0].state == "released"


def test_pages_name_the_next():
    found = year()
    first = found.history(found.entries[:5], more=True)
    assert first.next == 5
    assert "There is more, after entry 5." in first.sentences()
    assert found.history().next is None
    assert list(first) == found.entries[:5]
    assert first[0] == found.entries[0]
    assert repr(first) == "History(5 entries, 1 release)"


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_tells_every_event_within_the_terminal(width):
    text = printed(year().history(), width)
    assert all(len(line) <= width for line in text.splitlines())
    told = " ".join(text.split())
    for words in ("population cohort, cap mu 0.8", "data set dti@1, 412 participants", "thesis", "mu 0.4", "25.0 %",
                  "LOST: variance of dti@1", "cap raised to mu 1: second consent", "SPENT: mean"):  # fmt: skip
        assert words in told, words
    assert "started" not in told  # a step of a release is no line


def test_what_is_the_same_everywhere_is_said_once():
    found = Year()
    found.spend("0.3")
    history = found.history()
    assert "who" not in printed(history, 80)
    assert history.sentences()[0] == "All was spent by ada."
    assert "population" not in printed(history, 80)
    found.spend("0.1", population="other")
    both = found.history(other=GDP(0.2))
    assert "other" in printed(both, 80)
    assert [use.about for use in both.uses()] == ["other: mean of dti@1", "cohort: mean of dti@1"]


def test_a_recovered_spend_is_a_lost_release():
    found = Year()
    found.add(
        "recovered", kind="spend", principal="ada", key="k", label="mean", statistic="mean", datasets=["dti@1"],
        privacy={"kind": "GDP", "mu": "0.5"}, cost=["1/4"], spent=["1/4"], reason="restored",
    )  # fmt: skip
    line = found.history().releases[0]
    assert (line.state, line.recovered) == ("lost", True)
    assert "(recovered)" in printed(found.history(), 120)


def test_an_approximate_cap_is_as_full_as_its_fuller_half():
    body = {
        "principal": "ada", "key": "k", "label": "mean", "statistic": "mean", "datasets": [], "time": "2026-01-01",
        "privacy": {"kind": "ApproxDP", "epsilon": "0.1", "delta": "5e-7"}, "cost": ["1/10", "1/2000000"],
        "spent": ["1/10", "1/2000000"],
    }  # fmt: skip
    entry = Entry.chained("a-ledger", None, "spend", "cohort", None, body)
    history = History([entry], caps={"cohort": ApproxDP(1.0, 1e-6)})
    assert history.uses()[0].share == pytest.approx(0.5)
    assert history.releases[0].privacy == "epsilon 0.1, delta 5e-7"


def test_json_has_everything_and_is_json():
    history = year().history()
    record = json.loads(json.dumps(history.to_dict(), allow_nan=False))
    assert record["releases"][1]["state"] == "lost"
    assert record["entries"][1]["body"]["unit"] == "participant"
    assert record["uses"][0]["cost"] == ["9/50"]
    assert record["next"] is None


def test_words_of_promises():
    assert promise_words({"kind": "PureDP", "epsilon": (0.1).hex()}) == "epsilon 0.1"
