"""Every exception and warning a user of dpmanifold can meet, as data: each surface words it in its own way.

An error holds a :class:`Message`: a literal template and the values that stand in it. A name between backticks is an
argument of the call, which Python, the command line and a form call by different names:

    InvalidArgumentError("`units` must have shape ({n},), one id per record, got {shape}.", n=n, shape=ids.shape)

A value is private unless it is marked as :class:`Public`: where others than the curator may read a message, a
:class:`Wording` leaves the private values out. A foreign exception is private as a whole, and an error that is a value
of another one is worded with it. Each message names the argument, says what was received and what to do about it.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

WITHHELD = "…"
"""What stands in place of a private value."""
_MOST_NAMES = 12


@dataclass(frozen=True)
class Public:
    """A value that anybody may read: a count, a place in a file, a limit of the library."""

    value: object


@dataclass(frozen=True)
class Argument:
    """The name of an argument of the call, where the template does not know it."""

    name: str


class Names(tuple[object, ...]):
    """Names of columns, arrays or files, of which a message shows the first dozen.

    Examples
    --------
    >>> print(Message("got {names}", names=Names(["x", "y"])))
    got 'x', 'y'
    """


@dataclass(frozen=True)
class Either:
    """What to say to whoever writes Python, and to whoever types a command or fills in a form."""

    python: object
    elsewhere: object


class Wording:
    """How a surface words messages. This one: whole, for whoever calls Python."""

    def argument(self, name: str, value: str | None) -> str:
        """Return an argument, with the value that it is to have, as Python writes it, where there is one."""
        return name if value is None else f"{name}={value}"

    def private(self, value: object, text: str) -> str:
        """Return what is shown of a private value, given the text that it has in the message."""
        return text

    def either(self, said: Either) -> object:
        """Return what is for this surface."""
        return said.python

    def value(self, value: object, text: Callable[[object], str]) -> str:
        """Return a value of a message; `text` formats it as the template says."""
        match value:
            case Public(value=Message() as said):
                return self.message(said)
            case Public():
                return text(value.value)
            case Argument():
                return self.argument(value.name, None)
            case Either():
                return self.value(self.either(value), text)
            case Message() | DPManifoldError():
                return self.message(value)
            case Names():
                shown = [self._name(name) for name in value[:_MOST_NAMES]]
                shown = [name for place, name in enumerate(shown) if name != WITHHELD or WITHHELD not in shown[:place]]
                more = len(value) - _MOST_NAMES
                return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
        return self.private(value, text(value))

    def _name(self, name: object) -> str:
        return self.message(name) if isinstance(name, Message) else self.private(name, repr(name))

    def message(self, message: Message | DPManifoldError) -> str:
        """Return a message, or that of an error, in the words of this surface."""
        found = message.message if isinstance(message, DPManifoldError) else message
        return "".join(self._parts(found))

    def _parts(self, message: Message) -> Iterator[str]:
        for literal, field, spec, conversion in message.pieces():
            for place, piece in enumerate(literal.split("`")):
                yield self.argument(*_mention(piece)) if place % 2 else piece
            if field is not None:
                text = _formatting(spec, conversion)
                yield self.value(message.values[field], text) if field in message.values else f"{{{field}}}"


def _formatting(spec: str | None, conversion: str | None) -> Callable[[object], str]:
    """Return the function that formats a value as a template says."""
    return lambda value: format(_FORMATTER.convert_field(value, conversion), spec or "")


_FORMATTER = string.Formatter()
PYTHON = Wording()


def _mention(text: str) -> tuple[str, str | None]:
    name, equals, value = text.partition("=")
    return name, value if equals else None


class Message(str):
    """A sentence as data: a text, for whoever calls Python, that knows what it was made of.

    Parameters
    ----------
    template : literal; `{name}` is a value, formatted as by `str.format`, if there are any, and a name between
        backticks an argument of the call, with a value behind an equals sign where it should have one
    values : by name

    Examples
    --------
    >>> print(Message("`radius` must be below {most:.3g}, or give `project=True`.", most=1 / 3))
    radius must be below 0.333, or give project=True.
    """

    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> Message:
        """Word it for Python."""
        made = super().__new__(cls)
        made.template, made.values = template, values
        whole = super().__new__(cls, PYTHON.message(made))
        whole.template, whole.values = template, values
        return whole

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(Message, self.template, **self.values), ()

    def saying(self, **values: object) -> Message:
        """Return it with further values, which the messages among its own are given as well."""
        own = {name: own.saying(**values) if isinstance(own, Message) else own for name, own in self.values.items()}
        return Message(self.template, **{**own, **values})

    def pieces(self) -> Iterator[tuple[str, str | None, str | None, str | None]]:
        """Yield literal text and the field behind it, as `string.Formatter.parse` does; without values, all as text."""
        return iter(_FORMATTER.parse(self.template)) if self.values else iter([(self.template, None, None, None)])

    @property
    def argument(self) -> str | None:
        """The argument that it begins with: what is wrong; None where it begins otherwise."""
        literal, field, _, _ = next(self.pieces(), ("", None, None, None))
        if literal.startswith("`"):
            return _mention(literal.split("`")[1])[0]
        first = self.values.get(field) if field is not None and not literal else None
        if isinstance(first, Argument):
            return first.name
        return first.argument if isinstance(first, (Message, DPManifoldError)) else None


def joined(messages: Iterable[Message]) -> Message:
    """Return several messages as one, a blank between them."""
    parts = {f"part{number}": message for number, message in enumerate(messages)}
    return Message(" ".join(f"{{{name}}}" for name in parts), **parts)


def message_to_record(message: Message, wording: Wording = PYTHON) -> dict[str, Any]:
    """Return a message ready for JSON: its template, and its values as texts, private ones as they are worded.

    Examples
    --------
    >>> message_to_record(Message("`radius` must be below {most:.3g}.", most=1 / 3))
    {'template': '`radius` must be below {most}.', 'values': {'most': '0.333'}}
    """
    template, values = "", {}
    for literal, field, spec, conversion in message.pieces():
        template += literal.replace("{", "{{").replace("}", "}}") if message.values else literal
        if field is not None:
            template += f"{{{field}}}"
            values[field] = _value_to_record(message.values.get(field, ""), _formatting(spec, conversion), wording)
    return {"template": template, "values": values}


def _value_to_record(value: object, text: Callable[[object], str], wording: Wording) -> Any:
    match value:
        case Argument():
            return {"argument": value.name}
        case Either():
            return _value_to_record(wording.either(value), text, wording)
        case DPManifoldError(message=Message() as said) | Public(value=Message() as said) | (Message() as said):
            return message_to_record(said, wording)
    return wording.value(value, text)


def message_from_record(record: Any) -> Message:
    """Return the message that a record holds; raise ValueError, TypeError or KeyError where it holds none.

    Examples
    --------
    >>> message_from_record({"template": "`radius` must be below {most}.", "values": {"most": "0.333"}}).argument
    'radius'
    """
    template = record["template"]
    if not (isinstance(template, str) and isinstance(record["values"], dict)):
        raise TypeError("not a message")
    if any(spec or conversion for _, _, spec, conversion in _FORMATTER.parse(template)):
        raise ValueError("not a template of texts")  # which could ask for a text of any length
    values = {str(name): _value_from_record(value) for name, value in record["values"].items()}
    return Message(template, **values)


def _value_from_record(value: Any) -> object:
    if isinstance(value, str):
        return Public(value)
    if "argument" in value:
        return Argument(str(value["argument"]))
    return message_from_record(value)


class DPManifoldError(Exception):
    """Base class: catch this to catch everything the library raises on purpose.

    Parameters
    ----------
    template, values : as in :class:`Message`

    Attributes
    ----------
    message : what is wrong, as data
    argument : the argument that is at fault, where the message begins with one
    """

    def __init__(self, template: str, /, **values: object) -> None:
        self.message = Message(template, **values)
        super().__init__(self.message)

    @property
    def argument(self) -> str | None:
        """The argument that is at fault, where the message begins with one."""
        return self.message.argument

    def __str__(self) -> str:
        return str.__str__(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        return functools.partial(type(self), self.message.template, **self.message.values), ()


class InvalidArgumentError(DPManifoldError, ValueError):
    """A public argument (a radius, a dimension, a tolerance) is not acceptable."""


class InvalidDataError(DPManifoldError, ValueError):
    """A record is not a point of the space. For the curator's eyes: the message describes data."""


class ConvergenceError(DPManifoldError, RuntimeError):
    """A solver without a ball could not reach the tolerance it was asked for."""


class SamplerError(DPManifoldError, RuntimeError):
    """A sampler broke one of its own guarantees. Nothing was drawn; please report it."""


class PromiseError(DPManifoldError, ValueError):
    """A promise cannot be kept, or cannot be converted into another one. Nothing was drawn and nothing was spent."""


class BudgetError(DPManifoldError, RuntimeError):
    """A release would spend more than is left of a budget. Nothing was drawn and nothing was spent."""


class LedgerError(DPManifoldError, RuntimeError):
    """A ledger cannot be opened, written to or trusted; the message says what to do.

    Where something was paid for before, the message says so and names its key: with it one asks again at no cost.
    """


class MissingPackageError(DPManifoldError, ImportError):
    """Something needs a package that the bare install does not bring; the message says how to get it."""


class SourceChangedError(DPManifoldError, RuntimeError):
    """What records are read from is not what it was when it was opened: a file was changed or removed meanwhile."""


class ClusterError(DPManifoldError, RuntimeError):
    """Workers cannot do their part: none answer, they were lost for good, or their results would differ in bits."""


class CardError(DPManifoldError, RuntimeError):
    """A CUDA card cannot do its part: it is not there, has no memory left, or failed. No record can cause it."""


class ReleaseLostError(DPManifoldError, RuntimeError):
    """A release was paid for and is lost: the spend stands, and nothing was released. Why is not told.

    Whatever went wrong did so behind the payment, with records at hand, and a reason could tell about them: whoever
    holds them is told it (`curator=`). Where an account paid, the message names the key of the request; under it
    nothing will ever be released.

    Examples
    --------
    >>> ReleaseLostError.of("mean-v1")  # doctest: +ELLIPSIS
    ReleaseLostError("the release under key 'mean-v1' is lost: ...")
    """

    @classmethod
    def of(cls, key: str | None = None) -> ReleaseLostError:
        """Return the error for a key, or for a call without one, in the same words whatever went wrong."""
        if key is None:
            return cls(
                "the release is lost: it counts as paid for, and nothing was released. To ask once more is to pay once "
                "more. Why is told to whoever holds the data alone (`curator=`)."
            )
        return cls(
            "the release under key {key!r} is lost: it was paid for, the spend stands, and nothing will be released "
            "under this key. To ask once more, and to pay once more, use another key.",
            key=key,
        )
