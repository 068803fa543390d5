"""Programs beside Python that tests need: without one they are skipped, and in CI they fail."""

import os
from typing import NoReturn

import pytest


def missing(words: str) -> NoReturn:
    """Skip the test for want of a program; where the environment says CI=true, all must be there, and it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{words}. CI=true asks for it.", pytrace=False)
    pytest.skip(words)
