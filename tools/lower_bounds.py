"""Print the lower bounds that both distributions declare as constraints for pip: numpy==1.26, ...

`make test-lowest` installs exactly these and runs the tests, so that a bound is a version that was seen to work.
"""

from __future__ import annotations

import pathlib
import re
import tomllib
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECTS = (ROOT / "pyproject.toml", ROOT / "papers" / "pyproject.toml")
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?P<extras>\[[^\]]*\])?(?P<bound>[<>=!~].*)?")


def lower_bounds(*projects: pathlib.Path) -> list[str]:
    """Return one line name==bound for everything that the packages, their extras and their builds ask for.

    Parameters
    ----------
    projects : files pyproject.toml; those of this repository by default

    Raises
    ------
    ValueError : a requirement has no lower bound, another form, or a second bound that disagrees
    """
    settings = [tomllib.loads(project.read_text(encoding="utf-8")) for project in projects or PROJECTS]
    ours = {each["project"]["name"] for each in settings}
    bounds: dict[str, str] = {}
    for requirement in (entry for each in settings for entry in _requirements(each)):
        found = REQUIREMENT.fullmatch(requirement.replace(" ", ""))
        if found is not None and found["name"] in ours:  # an extra that names other extras, or our other distribution
            continue
        if found is None or not re.fullmatch(r">=[0-9.]+", found["bound"] or ">=0"):
            raise ValueError(f"{requirement!r} in pyproject.toml is not of the form name>=bound.")
        if found["bound"] is None:
            raise ValueError(f"{requirement!r} in pyproject.toml has no lower bound. Write name>=bound.")
        bound = found["bound"].removeprefix(">=")
        if bounds.setdefault(found["name"].lower(), bound) != bound:
            raise ValueError(f"{found['name']} has two lower bounds in pyproject.toml. Write the same one twice.")
    return [f"{name}=={bound}" for name, bound in sorted(bounds.items())]


def _requirements(settings: dict[str, Any]) -> list[str]:
    package = settings["project"]
    extras = package.get("optional-dependencies", {}).values()
    return [
        entry for group in (package["dependencies"], *extras, settings["build-system"]["requires"]) for entry in group
    ]


if __name__ == "__main__":
    print(*lower_bounds(), sep="\n")
