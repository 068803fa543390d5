"""Plan, price, ask. Only the last spends anything, and it knows by its key what was paid for already."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from dpmanifold.privacy import cautions, in_plain_words
from dpmanifold.service.desk import Desk
from dpmanifold.service.forecasts import GRID, known_delta
from dpmanifold.service.person import ANALYST
from dpmanifold.service.questions import Question, promise_from_json
from dpmanifold.service.views import DataSetView, ReleaseView
from dpmanifold.service.web.answers import as_json
from dpmanifold.service.web.pages import pictures
from dpmanifold.service.web.pages.browsing import ref_of
from dpmanifold.service.web.pages.showing import Problem, Typed, address, kinds, number_in, show, tried
from dpmanifold.service.web.pages.words import in_form, number, percent
from dpmanifold.service.web.sessions import desk, form, see_other, signed_in
from dpmanifold.service.web.turns import CURVE, PLAN, in_turn
from dpmanifold.statistic import STATISTICS, Kind
from dpmanifold.stats.query import query_named

_LOOKED_AT = 20  # of one's latest releases, for the one that a price page has led to


@final
@dataclass(frozen=True)
class Headline:
    """The main numbers of a plan, as the record of the plan has them."""

    error: float | None
    share: float | None
    mechanism: str
    verdict: str
    on: str  # what the error is of; empty for a mean

    @staticmethod
    def of(plan: Mapping[str, Any], mechanism: str | None = None) -> Headline | None:
        """Return the numbers of the mechanism that would be taken, or of the last draw; None where nothing can be."""
        verdict = in_form(plan["verdict"])
        if "rows" in plan:
            named = [row for row in plan["rows"] if row["mechanism"] == mechanism]
            if not plan["rows"]:
                return None
            row = (named or plan["rows"])[0]
            if named:
                verdict = f"You chose {mechanism}: expect noise of {number(row['error'])}."
            return Headline(row["error"], row["of_radius"], row["mechanism"], verdict, "")
        step = _deciding(plan["steps"])
        return Headline(step["error"], step["of_range"], step["mechanism"], verdict, step["statistic"])

    @property
    def is_distance(self) -> bool:
        """Whether the error is a distance in the space, which has a place in the picture of the ball."""
        known = STATISTICS.find(self.on)
        return not self.on or (known is not None and (known.kind is Kind.POINT or bool(known.error_of)))

    @property
    def picture(self) -> Markup:
        """What it would look like."""
        return (pictures.disc if self.is_distance else pictures.band)(self.share)


def _deciding(steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the draw that the verdict is about: the last, or of its like in several groups the one with most noise."""
    last = steps[-1]
    alike = [step for step in steps if step.get("group") and step["statistic"] == last["statistic"]]
    if len({step["error"] for step in alike}) < 2:
        return last
    return max(alike, key=lambda step: float(step["error"] or 0.0))


@in_turn(PLAN)
def plan(request: Request) -> Response:
    """Show what to expect; without a query, of the first statistic at a usual promise."""
    at = desk(request)
    one = at.dataset(ref_of(request))
    first = one.statistics[0]
    said, problem = tried(lambda: Typed.read(dict(request.query_params), first))
    typed = said or Typed.read({}, first)
    question, wrong = tried(typed.question)
    found, refused = (None, None) if question is None else tried(lambda: at.plan(one.ref, question))
    problem = problem or wrong or refused
    shown = _expected(at, one, typed, question, found) if question is not None and found is not None else _NOTHING
    path = f"/plan/{one.ref}"
    promise = [(name, text) for name, text in typed.fields if name in ("kind", "amount", "delta")]
    statistics = [(name, query_named(name).title, address(path, [("statistic", name), *promise]))
                  for name in one.statistics]  # fmt: skip
    return show(
        request, "plan.html", problem=problem, title=f"Plan: {one.ref}", one=one, typed=typed, query=typed.query,
        statistics=statistics, kinds=kinds(typed, path), controls=typed.controls(),
        options_open=bool(typed.chosen() or typed.ball), amounts=" ".join(GRID), place=_place(typed.amount),
        curve_address=_curve_address(path, typed), may_ask=signed_in(request).actor.role == ANALYST, plan=found,
        **shown, **_needed(at, one, typed, question, found),
    )  # fmt: skip


_NOTHING: dict[str, Any] = {
    "head": None, "more": [], "picture": "", "price": None, "price_problem": None, "meaning": [], "cautions": [],
}  # fmt: skip


def _expected(at: Desk, one: DataSetView, typed: Typed, question: Question, found: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a page says about a plan that was made."""
    head = Headline.of(found, typed.values().get("mechanism"))
    if head is None:
        return {**_NOTHING, "price_problem": in_form(found["verdict"])}
    price, unpaid = tried(lambda: at.price(one.ref, question)) if at.actor.role == ANALYST else (None, None)
    return {
        "head": head,
        "more": [in_form(found[name]["verdict"]) for name in ("refined", "shaped") if name in found],
        "picture": head.picture,
        "price": price,
        "price_problem": None if unpaid is None else unpaid.text,
        "meaning": [in_plain_words(question.privacy), question.privacy.describe()],
        "cautions": cautions(question.privacy, one.n),
    }


def _needed(
    at: Desk, one: DataSetView, typed: Typed, question: Question | None, found: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return which promise gives the error that is wanted, where that can be told."""
    asked = {"needed": None, "needed_problem": None}
    if question is None or found is None or not typed.query.tells_needs or not typed.error:
        return asked  # only of one mean can it be told
    wanted, problem = tried(lambda: at.needed(one.ref, question, number_in({"error": typed.error}, "error")))
    if wanted is None:
        return {**asked, "needed_problem": problem.text if problem else ""}
    amounts = map(str, promise_from_json(wanted["required_privacy"]).stated.values())
    kept = [entry for entry in typed.fields if entry[0] not in ("amount", "delta")]
    where = address(f"/plan/{one.ref}", [*kept, *zip(("amount", "delta"), amounts, strict=False)])
    return {
        **asked,
        "needed": {"privacy": wanted["required_privacy"], "units": wanted["required_units"], "address": where},
    }


def _curve_address(path: str, typed: Typed) -> str:
    """Return where the numbers of the slider are; curves are of the mechanism that is taken unless one is named.

    Of a delta that no curve is made for there are none: the page asks for each plan.
    """
    if "mechanism" in typed.named_options or (typed.kind == "ApproxDP" and known_delta(typed.delta) is None):
        return ""
    return address(f"{path}/curve.json", [entry for entry in typed.fields if entry[0] != "amount"])


def _place(amount: str) -> int:
    """Return where on the slider an amount is, or the nearest to it."""
    try:
        wanted = float(amount)
    except ValueError:
        wanted = 0.0
    return min(range(len(GRID)), key=lambda place: abs(float(GRID[place]) / max(wanted, 1e-12) - 1))


@in_turn(CURVE)
def curve(request: Request) -> Response:
    """Return what to expect at each amount of the slider, with the words of the page."""
    at, ref = desk(request), ref_of(request)
    first = at.dataset(ref).statistics[0]

    def made() -> list[dict[str, Any]]:
        typed = Typed.read(dict(request.query_params), first)
        ball = {"release": typed.ball} if typed.ball else None
        delta = typed.delta if typed.kind == "ApproxDP" else None
        return at.curve(ref, typed.statistic, typed.kind, typed.values(), delta, ball).points

    points, problem = tried(made)
    if points is None:
        assert problem is not None
        return as_json({"problem": problem.text}, problem.status)
    return as_json({"points": [_with_words(point) for point in points]})


def _with_words(point: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **point,
        "error_text": number(point["error"]),
        "share_text": percent(point["of_radius"]),
        "verdict": in_form(point["verdict"]),
        "refused": point["refused"] and in_form(point["refused"]),
    }


# -------------------------------------------------------------------- price and payment


@in_turn(PLAN)
def confirm(request: Request) -> Response:
    """Show what a question costs. The key is in the address: whoever comes back finds the same one."""
    fields = dict(request.query_params)
    ref, key = fields.get("data", ""), fields.pop("key", "")
    one = desk(request, ANALYST).dataset(ref)
    typed, problem = tried(lambda: Typed.read(fields, one.statistics[0]))
    if typed is None or problem is not None:
        return see_other(address(f"/plan/{one.ref}", []))
    if not key:
        return see_other(address("/confirm", [("data", ref), *typed.fields, ("key", secrets.token_hex(8))]))
    return _price_page(request, one, typed, key)


def _price_page(request: Request, one: DataSetView, typed: Typed, key: str, problem: Problem | None = None) -> Response:
    at = desk(request, ANALYST)
    known = _asked_before(at, one.population, key)
    question, wrong = tried(typed.question)
    price, refused, verdict = None, None, ""
    if question is not None and known is None:
        price, refused = tried(lambda: at.price(one.ref, question))
        if price is not None:
            head = Headline.of(at.plan(one.ref, question), typed.values().get("mechanism"))
            verdict = "" if head is None else head.verdict
    return show(
        request, "confirm.html", problem=problem or wrong or refused, title=f"Price: {one.ref}", one=one, typed=typed,
        query=typed.query, price=price, key=key, known=known, chosen=typed.words(), verdict=verdict,
        fields=[("data", one.ref), *typed.fields], plan_address=address(f"/plan/{one.ref}", typed.fields),
        meaning=[] if question is None else [in_plain_words(question.privacy)],
    )  # fmt: skip


def _asked_before(at: Desk, population: str, key: str) -> ReleaseView | None:
    """Return the release that this key has led to, of the latest ones."""
    latest = at.releases(limit=_LOOKED_AT)
    return next((one for one in latest if (one.population, one.key) == (population, key)), None)


@in_turn(PLAN)
def ask(request: Request) -> Response:
    """Pay for a question, and go to its release. The same key again pays nothing and goes to the same release."""
    fields = form(request)
    at = desk(request)
    one = at.dataset(fields.get("data", ""))
    key = fields.get("key", "")
    typed, problem = tried(lambda: Typed.read(fields, one.statistics[0]))
    if typed is None:
        return show(request, "error.html", problem=problem, title="Refused", message="" if not problem else problem[0])
    found, problem = tried(lambda: at.ask(one.ref, typed.question(), key))
    if found is None:
        return _price_page(request, one, typed, key, problem)
    return see_other(f"/releases/{found.id}")
