"""Questions written down: what makes one request the same as another, in text and whole numbers alone.

An account answers a key once, so that it must be able to tell the same request from another one. Floats are written in
hexadecimal, arrays and releases as hashes, what stands in a registry by its name; an object that has no such form is
refused before anything is spent. What is left at its default is not written, so that a request stays the same when a
later version of the library has more options.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import numpy as np

from dpmanifold._check import shown
from dpmanifold.ball import Ball
from dpmanifold.errors import InvalidArgumentError
from dpmanifold.features import checked_shape
from dpmanifold.mechanisms import MECHANISMS, Mechanism, get
from dpmanifold.mechanisms.base import FRECHET
from dpmanifold.privacy import Promise
from dpmanifold.registry import is_own_class, is_own_function
from dpmanifold.release import Release, option_to_json
from dpmanifold.statistic import STATISTICS, Header, Statistic

P = TypeVar("P")

FORMAT = "dpmanifold request 2"


@dataclass(frozen=True)
class Question(Generic[P]):
    """What a private call asks: a plan with its options, and what it is called in requests.

    Attributes
    ----------
    name : of the statistic, or of what is made of several
    plan : makes the plan from what is public, given as a :class:`~dpmanifold.statistic.Header`, and the options
    options : keywords of the plan
    statistic : where it is asked by an object that no registry has: that one, for an account refuses it
    meant : options of which the library knows what they mean: none of a plan that is not its own
    """

    name: str
    plan: Callable[..., P]
    options: Mapping[str, Any] = field(default_factory=dict)
    statistic: Statistic | None = None
    meant: frozenset[str] = frozenset()

    def __call__(self, header: Header) -> P:
        """Return the plan, or refuse."""
        return self.plan(header, **self.options)

    def about(self, known: Mapping[str, Any]) -> Question[P]:
        """Return the question with what a sample says, which no option may say otherwise."""
        both = sorted(set(known) & set(self.options))
        if both:
            raise InvalidArgumentError(f"{', '.join(both)} of {self.name}: the sample says so, and no option does.")
        return replace(self, options={**known, **self.options})

    def contributed(self, *besides: object) -> list[object]:
        """Return the parts that are not the library's own, of these besides: objects, functions or classes."""
        parts = [*besides, self.statistic, getattr(self.plan, "__self__", None)]
        for option in self.options.values():
            if isinstance(option, (Mechanism, Statistic)):
                parts.append(option)
            elif isinstance(option, str) and option != "auto":
                parts.append(MECHANISMS.find(option))
        features = [getattr(part, "features", None) for part in parts]
        kinds: list[Any] = [type(part) for part in (*parts, *features)]
        every = zip((*parts, *features), kinds, strict=True)
        found = [part for part, kind in every if part is not None and not is_own_class(kind)]
        own = bool(self.meant) or is_own_function(getattr(self.plan, "__func__", self.plan))
        return found if own else [*found, self.plan]

    def _plainly(self, ball: Ball) -> dict[str, Any]:
        """Return options that can be said in several ways, in the one way that is written."""
        options = dict(self.options)
        # The Fréchet mean is meant if none is named, unless a mechanism is that has another one.
        if "estimand" in self.meant and options.get("estimand") == FRECHET and _finds_frechet(options):
            options["estimand"] = None
        about, shape = options.get("about"), options.get("noise_shape")
        if "about" in self.meant and about is not None and not isinstance(about, Release):
            options["about"] = ball.space.as_points(about, "about", batch=False)
        if "noise_shape" in self.meant and shape is not None and not isinstance(shape, str):
            options["noise_shape"] = checked_shape(shape, ball)
        return options

    def stated(self, ball: Ball) -> dict[str, Any]:
        """Return the options that a release states, all that are not left at their default; or refuse."""
        defaults, stated = _defaults(self.plan), {}
        for name, value in self._plainly(ball).items():
            if name in defaults and value is defaults[name]:
                continue
            text = option_to_json(value, name)
            if name not in defaults or text != option_to_json(defaults[name], name):
                stated[name] = value
        return stated

    def request(self, header: Header, data: Sequence[str]) -> dict[str, Any]:
        """Return the request in the words of canonical JSON.

        Parameters
        ----------
        header : what it is about
        data : the ids of the data sets
        """
        if self.statistic is not None and STATISTICS.find(self.name) is None:
            raise InvalidArgumentError(
                f"statistic {self.name!r} is not registered, and what an account stores could not be read again: "
                "register it (dpm.STATISTICS.register)."
            )
        request = {
            "format": FORMAT,
            "statistic": self.name,
            "data": list(data),
            "ball": written_ball(header.ball),
            "unit": header.unit,
            "adjacency": header.adjacency,
            "privacy": written_promise(header.privacy),
            "options": written_options(self.plan, self._plainly(header.ball)),
        }
        return request if header.arithmetic == "auto" else {**request, "arithmetic": header.arithmetic}


def asked(name: str, plan: Callable[..., P], meant: frozenset[str], /, **options: Any) -> Question[P]:
    """Return a question with these options."""
    return Question(name, plan, options, meant=meant)


def _finds_frechet(options: Mapping[str, Any]) -> bool:
    """Return whether the mechanism that is asked for has the Fréchet mean by itself; any will with "auto"."""
    asked = options.get("mechanism", "auto")
    return (isinstance(asked, str) and asked == "auto") or get(asked).estimand == FRECHET


def written_options(plan: Callable[..., object], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are not what a plan takes by default, written down.

    Examples
    --------
    >>> def plan(header, *, refine=False, coverage=0.95): ...
    >>> written_options(plan, {"refine": True, "coverage": 0.95})
    {'refine': True}
    """
    defaults, texts = _defaults(plan), {name: written(value, name) for name, value in options.items()}
    return {name: text for name, text in texts.items() if name not in defaults or text != written(defaults[name], name)}


def _defaults(plan: Callable[..., object]) -> dict[str, Any]:
    """Return what a plan takes by default."""
    taken = inspect.signature(plan).parameters.values()
    return {parameter.name: parameter.default for parameter in taken if parameter.default is not parameter.empty}


def written_ball(ball: Ball) -> dict[str, Any]:
    """Return where a ball lies; who said so is no part of a request."""
    return {"space": repr(ball.space), "center": _hashed_array(ball.center), "radius": float(ball.radius).hex()}


def written_promise(promise: Promise) -> dict[str, str]:
    """Return the kind and the exact amounts of a promise.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> written_promise(GDP(0.5)), written_promise(GDP("0.3"))
    ({'kind': 'GDP', 'mu': '1/2'}, {'kind': 'GDP', 'mu': '3/10'})
    """
    return {"kind": type(promise).__name__, **{name: str(amount) for name, amount in promise.exact.items()}}


def written(value: Any, name: str) -> Any:
    """Return one option in the words of canonical JSON; two that differ are never written alike.

    Examples
    --------
    >>> written(0.5, "weight"), written(True, "refine"), written(["a", 1], "classes")
    ({'float': '0x1.0000000000000p-1'}, True, {'list': ['a', 1]})
    >>> written(lambda x: x, "weight")
    Traceback (most recent call last):
    ...
    dpmanifold.errors.InvalidArgumentError: weight must be something that can be written down where an account pays: ...
    """
    if isinstance(value, np.generic):
        value = value.item()
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return {"float": value.hex()}
        case complex():
            return {"complex": [value.real.hex(), value.imag.hex()]}
        case Promise():
            return {"privacy": written_promise(value)}
        case Ball():
            return {"ball": written_ball(value)}
        case Release():
            return {"release": _hashed_release(value, name)}
        case Mechanism() | Statistic():
            return _name_of(value, name)
        case Mapping() if all(isinstance(key, str) for key in value):
            return {"dict": {key: written(entry, name) for key, entry in value.items()}}
        case list() | tuple():
            return {"list": [written(entry, name) for entry in value]}
    if hasattr(value, "__array__"):
        return {"array": _hashed_array(np.asarray(value), name)}
    raise InvalidArgumentError(
        f"{name} must be something that can be written down where an account pays: text, numbers, arrays, releases, or "
        f"the name of what is registered; got {shown(value)}."
    )


def names_in(record: Any) -> list[Any]:
    """Return the names that :func:`written` has written as a list: text and numbers.

    Examples
    --------
    >>> names_in(written(["a", 1, 0.5], "classes"))
    ['a', 1, 0.5]
    """
    return [float.fromhex(name["float"]) if isinstance(name, dict) else name for name in record["list"]]


def _name_of(value: Mechanism | Statistic, name: str) -> str:
    registry: Any = MECHANISMS if isinstance(value, Mechanism) else STATISTICS
    known = registry.find(value.name)
    if known is value or (type(known) is type(value) and not vars(known) and not vars(value)):
        return value.name
    raise InvalidArgumentError(
        f"{name} {value.name!r} is not registered, and an account could not tell it from another one of that name: "
        f"register it, and give its name."
    )


def _hashed_array(array: Any, name: str = "center") -> str:
    """Return the SHA-256 of the type, the shape and the bytes of an array of numbers or text."""
    if array.dtype.kind not in "biufcUS":
        if array.dtype.kind == "O":
            return hashlib.sha256(json.dumps(written(array.tolist(), name), sort_keys=True).encode()).hexdigest()
        raise InvalidArgumentError(f"{name} must be numbers where an account pays, got dtype {array.dtype}.")
    # Little-endian and in rows, whatever machine and layout it came from.
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    head = f"{plain.dtype.str} {plain.shape} ".encode("ascii")
    return hashlib.sha256(head + plain.tobytes()).hexdigest()


def _hashed_release(release: Release, name: str) -> str:
    if not release.private:
        raise InvalidArgumentError(
            f"{name} must be a private release where an account pays, got one that was simulated or is of public data."
        )
    record = json.dumps(release.to_dict(answers=False), sort_keys=True, allow_nan=False)
    return hashlib.sha256(record.encode("utf-8")).hexdigest()
