"""What the functions of all pages share: templates, errors beside the form that caused them, questions as forms."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, final

from starlette.requests import Request
from starlette.responses import HTMLResponse

from dpmanifold.errors import InvalidArgumentError
from dpmanifold.privacy import Promise
from dpmanifold.service.forecasts import USUAL_DELTA
from dpmanifold.service.http_errors import Forbidden, NotFound, NotSignedIn, ServiceError, Unavailable
from dpmanifold.service.questions import AMOUNTS, Question, promise_from_json, promise_to_json
from dpmanifold.service.web.answers import planning
from dpmanifold.service.web.pages.words import KIND_WORDS, in_form
from dpmanifold.service.web.sessions import page
from dpmanifold.stats.query import Option, Query, query_named

T = TypeVar("T")
Render = Callable[..., HTMLResponse]


class Problem(NamedTuple):
    """Why a form was refused, for whoever sent it, and the status of the answer that says so."""

    text: str
    status: int


def show(
    request: Request, template: str, *, problem: Problem | None = None, render: Render = page, **context: Any
) -> HTMLResponse:
    """Render a template; one with a problem has that problem's status."""
    text, status = (None, 200) if problem is None else problem
    return render(request, template, status=status, problem=text, **context)


def tried(make: Callable[[], T]) -> tuple[T | None, Problem | None]:
    """Return what a call makes, or what to say beside the form; what is no fault of the form goes on."""
    try:
        with planning():
            return make(), None
    except (NotFound, NotSignedIn, Forbidden, Unavailable):
        raise
    except ServiceError as problem:
        return None, Problem(in_form(problem.message), problem.status)


def typed_promise(fields: Mapping[str, str]) -> Promise:
    """Return the promise that was typed: `kind`, `amount` and, for the kind that has one, `delta`."""
    kind = fields.get("kind", "")
    if kind not in AMOUNTS:
        raise InvalidArgumentError(f"kind must be one of {', '.join(AMOUNTS)}, got {kind[:40]!r}.")
    record = {"kind": kind, AMOUNTS[kind]: fields.get("amount", "").strip()}
    if kind == "ApproxDP":
        record["delta"] = fields.get("delta", "").strip()
    return promise_from_json(record)


def number_in(fields: Mapping[str, str], name: str) -> float:
    """Return a number that was typed."""
    text = fields.get(name, "").strip()
    try:
        return float(text)
    except ValueError:
        raise InvalidArgumentError(f"{name} must be a number, got {text[:40]!r}.") from None


def after_in(request: Request) -> int:
    """Return the number behind which a page of a long list starts."""
    after = request.query_params.get("after", "")
    return int(after) if after.isascii() and after.isdigit() and len(after) < 18 else 0


def whole_in(fields: Mapping[str, str], name: str) -> int:
    """Return a whole number that was typed."""
    text = fields.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise InvalidArgumentError(f"{name} must be a whole number, got {text[:40]!r}.")
    return int(text)


# -------------------------------------------------------------------- questions as forms


USUAL = {"GDP": "0.25", "PureDP": "0.5", "ApproxDP": "0.5", "ZCDP": "0.0315"}
"""Where the slider stands at first."""
_OPTION = "option-"
_NONE, _YES, _NO = "none", "yes", "no"


@final
@dataclass(frozen=True)
class Typed:
    """What stands in the form of a plan.

    Attributes
    ----------
    statistic, kind, amount, delta : as they were typed, or what the form starts with
    options : fields of options that were typed
    ball, error : the id of a release of a ball; the error that is wanted; empty for none
    """

    statistic: str
    kind: str
    amount: str
    delta: str
    options: Mapping[str, str]
    ball: str = ""
    error: str = ""

    @staticmethod
    def read(fields: Mapping[str, str], first: str) -> Typed:
        """Return what the fields of a form or an address say; what is left out is as usual.

        Parameters
        ----------
        fields : by name
        first : the statistic where none is named
        """
        kind = fields.get("kind", "") or "GDP"
        if kind not in AMOUNTS:
            raise InvalidArgumentError(f"kind must be one of {', '.join(AMOUNTS)}, got {kind[:40]!r}.")
        query = query_named(fields.get("statistic", "") or first)
        return Typed(
            statistic=query.name,
            kind=kind,
            amount=fields.get("amount", USUAL[kind]).strip(),
            delta=fields.get("delta", USUAL_DELTA).strip(),
            options={name: text for name, text in fields.items() if name.startswith(_OPTION)},
            ball=fields.get("ball", "").strip(),
            error=fields.get("error", "").strip(),
        )

    @property
    def query(self) -> Query:
        """What is asked."""
        return query_named(self.statistic)

    @property
    def amount_words(self) -> str:
        """The promise, as typed."""
        rest = f", delta {self.delta}" if self.kind == "ApproxDP" else ""
        return f"{AMOUNTS[self.kind]} {self.amount}{rest}"

    @property
    def fields(self) -> list[tuple[str, str]]:
        """The fields that say the question again."""
        found = [("statistic", self.statistic), ("kind", self.kind), ("amount", self.amount)]
        found += [("delta", self.delta)] if self.kind == "ApproxDP" else []
        found += [("ball", self.ball)] if self.ball else []
        return found + sorted(self.chosen().items())

    @property
    def _named(self) -> dict[str, Option]:
        """The options by their fields."""
        return {_OPTION + option.name: option for option in self.query.options}

    def chosen(self) -> dict[str, str]:
        """Return the fields of options that differ from what is meant anyway."""
        usual = {name: _text(option, option.default) for name, option in self._named.items()}
        return {name: text for name, text in self.options.items() if name in usual and text.strip() != usual[name]}

    @property
    def named_options(self) -> set[str]:
        """The names of options that differ from what is meant anyway."""
        return {name.removeprefix(_OPTION) for name in self.chosen()}

    def question(self) -> Question:
        """Return the question, or say what is wrong with what was typed."""
        return Question.from_dict(
            {
                "statistic": self.statistic,
                "privacy": promise_to_json(typed_promise(dict(self.fields))),
                "options": self.values(),
                "ball": {"release": self.ball} if self.ball else None,
            }
        )

    def values(self) -> dict[str, Any]:
        """Return the options that were chosen, as values."""
        chosen = [(self._named[name], text.strip()) for name, text in self.chosen().items()]
        return {option.name: _value(option, text) for option, text in chosen}

    def controls(self) -> list[tuple[Option, str, list[tuple[str, str]], str]]:
        """Return the options, with what was typed, what can be chosen, and what kind of keyboard that takes."""
        return [
            (option, self.options.get(_OPTION + option.name, _text(option, option.default)), _choices(option),
             {"number": "decimal", "fraction": "decimal", "whole": "numeric"}.get(option.kind, "text"))
            for option in self.query.options
        ]  # fmt: skip

    def words(self) -> list[tuple[str, str]]:
        """Return the options that were chosen, for people."""
        found = [_worded(self._named[name], text) for name, text in self.chosen().items()]
        return found + ([("In the released ball", self.ball)] if self.ball else [])


def option_words(statistic: str, chosen: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the options of a question that was asked, for people."""
    known = {option.name: option for option in query_named(statistic).options}
    return [_worded(known[name], _text(known[name], value)) for name, value in chosen.items()]


def address(path: str, fields: list[tuple[str, str]]) -> str:
    """Return a local address with a query."""
    return f"{urllib.parse.quote(path)}?{urllib.parse.urlencode(fields)}" if fields else urllib.parse.quote(path)


def kinds(typed: Typed, path: str) -> list[tuple[str, str, str]]:
    """Return the kinds of promise with their words, and the address of the same plan with each."""
    kept = [(name, text) for name, text in typed.fields if name not in ("kind", "amount", "delta")]
    return [(kind, words, address(path, [*kept, ("kind", kind)])) for kind, words in KIND_WORDS.items()]


def _worded(option: Option, text: str) -> tuple[str, str]:
    return option.label, dict(_choices(option)).get(text, text)


def _choices(option: Option) -> list[tuple[str, str]]:
    if option.kind == "flag":
        return [(_YES, "yes"), (_NO, "no")]
    usual = "the usual one" if option.default is None else _NONE
    return [(_text(option, choice), usual if choice is None else str(choice)) for choice in option.values]


def _text(option: Option, value: Any) -> str:
    if option.kind == "flag":
        return _YES if value else _NO
    if value is None:
        return _NONE if option.values else ""
    return str(value)


def _value(option: Option, text: str) -> Any:
    match option.kind:
        case "flag":
            return text == _YES
        case "number" | "fraction":
            return number_in({option.name: text}, option.name)
        case "whole":
            return whole_in({option.name: text}, option.name)
        case "choice" | "shape":
            return None if text == _NONE else text
    return text or None
