"""A terminal for tests: what a process writes to it, as it came and as plain text."""

import os
import pty
import re
import subprocess
import sys
from typing import NamedTuple

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Seen(NamedTuple):
    """What was on the terminal, what went to stdout where that was no terminal, and the exit code."""

    raw: str
    stdout: str
    code: int

    @property
    def text(self) -> str:
        """What can be read, of every state of the screen one after the other."""
        return _CONTROL.sub("", self.raw).replace("\r", "\n")


def on_terminal(code, cwd=None, stdout=False, **changes):
    """Run Python with a terminal of 24 rows and 80 columns behind stderr, and with `stdout` behind stdout too."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **changes}
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=cwd, env=environment, stderr=follower,
        stdout=follower if stdout else subprocess.PIPE,
    )  # fmt: skip
    os.close(follower)
    written = b""
    try:
        while chunk := os.read(leader, 4096):
            written += chunk
    except OSError:  # the end of a terminal
        pass
    os.close(leader)
    told, _ = process.communicate()
    return Seen(written.decode(), (told or b"").decode(), process.returncode)
