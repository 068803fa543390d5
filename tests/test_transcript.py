"""The transcript of docs/first-release.md, command by command, as a reader would type it."""

import doctest
import os
import pathlib
import re
import subprocess
import sys

PAGE = pathlib.Path(__file__).parent.parent / "docs" / "first-release.md"


def commands(text):
    """Commands with the output that the page shows for them."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in re.split(r"(?m)^\$ ", block)[1:]:
            lines = part.splitlines(keepends=True)
            command, rest = lines[0], lines[1:]
            while rest and rest[0].startswith(">"):
                command += rest.pop(0)[2:] or "\n"
            yield command, "".join(rest)


def test_the_transcript_is_what_happens(tmp_path):
    folder = pathlib.Path(sys.executable).parent
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "120"}
    compare = doctest.OutputChecker().check_output
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    found = list(commands(PAGE.read_text()))
    assert len(found) >= 7
    for command, expected in found:
        result = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert compare(expected, result.stdout + result.stderr, flags), (
            f"$ {command}\nexpected:\n{expected}\ngot:\n{result.stdout}{result.stderr}"
        )
    assert "What was promised" in (tmp_path / "report.html").read_text()
    assert (tmp_path / "region.png").stat().st_size > 10_000
