"""The transcripts of the first release, of audits and of the data steward, command by command, as readers type them."""

import doctest
import os
import pathlib
import re
import subprocess
import sys

import pytest

DOCS = pathlib.Path(__file__).parent.parent / "docs"
PAGE, AUDITS = DOCS / "first-release.md", DOCS / "how-to" / "audit.md"
STEWARD = DOCS / "how-to" / "data-steward.md"


def commands(text):
    """Commands with the output that the page shows for them."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            lines = part.splitlines(keepends=True)
            command, rest = lines[0], lines[1:]
            while rest and rest[0].startswith(">"):
                command += rest.pop(0)[2:] or "\n"
            yield command, "".join(rest)


def typed(command, folder):
    """Run a command in a folder; what it prints."""
    bin_folder = pathlib.Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    result = subprocess.run(
        ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return result.stdout + result.stderr


@pytest.mark.slow
def test_the_transcript_is_what_happens(tmp_path):
    compare = doctest.OutputChecker().check_output
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = list(commands(PAGE.read_text()))
    assert len(found) >= 7
    for command, expected in found:
        printed = typed(command, tmp_path)
        assert compare(expected, printed, flags), f"$ {command}\nexpected:\n{expected}\ngot:\n{printed}"
    assert "What was promised" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "region.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_audit_is_what_happens(tmp_path):
    """Every line but for what chance decides: the numbers that were measured, and which rows alone would refute."""

    def fixed(text):
        return re.sub(r"at least [0-9.e-]*[0-9]|seen [0-9.e-]*[0-9]|  REFUTED$", "", text, flags=re.MULTILINE)

    found = list(commands(AUDITS.read_text()))
    assert len(found) == 2
    for command, expected in found:
        assert fixed(typed(command, tmp_path)) == fixed(expected)


@pytest.mark.slow
def test_the_stewards_year_is_what_happens(tmp_path):
    """Every line but for days, ids and hashes; the folder is called /data/study there."""

    def fixed(text):
        for found, name in (
            (re.escape(str(tmp_path)), "/data/study"),
            (r"\d{4}-\d\d-\d\d", "DAY"),
            (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{64}|(?<=of ledger )[0-9a-f]{8}", "ID"),
        ):
            text = re.sub(found, name, text)
        return text

    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = list(commands(STEWARD.read_text()))
    assert len(found) >= 30
    for command, expected in found:
        # The page has the words read once; here every command has a shell of its own.
        printed = fixed(typed(f"[ ! -f words ] || . ./words\n{command}", tmp_path))
        agrees = doctest.OutputChecker().check_output(fixed(expected), printed, flags)
        assert agrees, f"$ {command}\nexpected:\n{expected}\ngot:\n{printed}"
    assert (tmp_path / "history.png").stat().st_size > 10_000
