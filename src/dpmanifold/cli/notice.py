"""The curator's notice on the command line: how many records were clipped or replaced, for whoever holds the data.

It is data about the data. It goes to a terminal, where somebody sits, and into no log, file or stdout unless
`--notice` says so. Registered data are opened after the spend and maybe for somebody who does not hold them: what is
known of them then, and why a release was lost, is told nowhere unless `--notice` says so.
"""

from __future__ import annotations

from collections.abc import Callable

from dpmanifold.cli.speech import complain
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.progress import on_a_terminal
from dpmanifold.stats.curator import Notice

Teller = Callable[[Notice | str], None]
"""A function that is told how many records do not count as they are, or other words: before anything is spent where the
call reads the data itself, after it where they are registered."""


def teller(wanted: bool, quiet: bool, registered: bool = False) -> Teller | None:
    """Return the function that is told, or None where nobody should be."""
    if wanted and quiet:
        raise InvalidArgumentError("--notice and --quiet contradict each other. Give one.")
    return _tell if wanted or (on_a_terminal() and not (quiet or registered)) else None


def _tell(notice: Notice | str) -> None:
    complain(f"FOR THE CURATOR ALONE, data about the data, not private: {notice}")
