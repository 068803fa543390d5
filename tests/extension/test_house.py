"""The house's rules that only the text of the code can show: no statistic is told by its name outside its own file."""

import re
from pathlib import Path

import pytest

import dpmanifold as dpm

SOURCE = Path(dpm.__file__).parent
# Where each of the library's own statistics is defined.
HOME = {
    "mean": "stats/mean.py",
    "variance": "stats/variance.py",
    "ball": "stats/ball.py",
    "second moment": "stats/second_moment.py",
    "fourth moment": "stats/fourth_moment.py",
}
NAMES = "|".join(HOME)
TESTS = [
    rf'statistic\s*(==|!=|in|not in)\s*[\(\[{{]?\s*"({NAMES})"',
    rf'"({NAMES})"\s*(==|!=)\s*[\w.]*statistic\b',
    rf'\bcase\s+"({NAMES})"',
    r"match\s+[\w.]*\bstatistic\b",
]


def test_every_statistic_of_the_library_has_a_home():
    own = {statistic.name: type(statistic).__module__ for statistic in dpm.STATISTICS.own()}
    for name, home in HOME.items():
        assert own[name] == "dpmanifold." + home.removesuffix(".py").replace("/", ".")


def offences(text):
    return [found[0] for pattern in TESTS for found in re.finditer(pattern, text)]


def test_no_test_on_a_statistics_name_outside_its_own_file():
    found = {
        str(path.relative_to(SOURCE)): offences(path.read_text(encoding="utf-8"))
        for path in sorted(SOURCE.rglob("*.py"))
        if str(path.relative_to(SOURCE)) not in HOME.values()
    }
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "line",
    [
        'if release.statistic != "mean":',
        'if release.statistic in ("variance", "fourth moment"):',
        "    match release.statistic:",
        '        case "second moment":',
        'if "ball" == step.statistic:',
    ],
)
def test_the_search_finds_what_it_looks_for(line):
    assert offences(line)
