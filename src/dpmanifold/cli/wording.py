"""How the command line words messages of the library: arguments as the options of the command that runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from typer.models import OptionInfo

from dpmanifold.errors import Either, Message, Wording

# Arguments of the library that are no options: what is typed before them.
_ARGUMENTS = {"X": "the data", "paths": "PATH", "path": "PATH", "folder": "PATH"}


class OptionWording(Wording):
    """Arguments as options of a command; those that it does not have keep their names.

    Parameters
    ----------
    options : what is typed, by the name of the argument; None for any name
    """

    def __init__(self, options: dict[str, str] | None = None) -> None:
        self._options = options

    def argument(self, name: str, value: str | None) -> str:
        """Return an option, with its value as it is typed.

        Examples
        --------
        >>> OptionWording().argument("invalid", '"center"'), OptionWording().argument("covariate_range", None)
        ('--invalid center', '--covariate-range')
        """
        known = _ARGUMENTS.get(name) or f"--{name.replace('_', '-')}"
        if self._options is not None and not known.startswith("--"):
            return known
        option = known if self._options is None else self._options.get(name, super().argument(name, value))
        typed = (value or "").strip('"')
        plain = not option.startswith("--") or typed in ("", "True", "...")
        return option if plain else f"{option} {typed}"

    def either(self, said: Either) -> object:
        """Return what is not for Python."""
        return said.elsewhere


def words_of(said: str) -> str:
    """Return a message in the words of options; a text that is no message, as it is."""
    return OptionWording().message(said) if isinstance(said, Message) else said


def options_of(command: Callable[..., object]) -> dict[str, str]:
    """Return what is typed for each option of a command, by the name of the parameter."""
    found = {}
    for name, annotation in inspect.get_annotations(command, eval_str=True).items():
        for info in getattr(annotation, "__metadata__", ()):
            if isinstance(info, OptionInfo):
                declared = [text for text in info.param_decls or () if text.startswith("--")]
                found[name] = declared[0].partition("/")[0] if declared else f"--{name.replace('_', '-')}"
    return found


__all__ = ["OptionWording", "options_of", "words_of"]
