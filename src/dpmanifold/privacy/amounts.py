"""The arithmetic of budgets and ledgers: what a promise takes from a cap, added up exactly and with tolerance zero.

An amount is a tuple of fractions in the currency of the cap: (epsilon,) for PureDP, (epsilon, delta) for ApproxDP,
(rho,) for ZCDP and (mu^2,) for GDP. Sums of them are a filter: what each release takes may depend on what the
earlier ones returned (theory section 5).
"""

# Why adding up is enough although the spends are chosen on the way:
# - pure and approximate: sums of epsilon and of delta, Rogers, Roth, Ullman and Vadhan (2016), Whitehouse, Ramdas,
#   Rogers and Wu (2023);
# - zero-concentrated: the sum of rho, Feldman and Zrnic (2021) at every Rényi order, Whitehouse et al. (2023);
# - Gaussian: the sum of mu^2, Smith and Thakurta (2022), Koskela, Tobaben and Honkela (2023).
# A conversion holds for each release by itself, given the earlier ones, so that it may come before the sum. No such
# result lets a curve (GDP, zCDP) be added to an approximate cap except at a delta stated for that release.

from __future__ import annotations

import decimal
import re
from collections.abc import Sequence
from fractions import Fraction

from dpmanifold._check import shown
from dpmanifold.errors import InvalidArgumentError, PromiseError
from dpmanifold.privacy.convert import rho_of, to_gdp
from dpmanifold.privacy.exact_decimals import decimal_text, root_of, sqrt_down, sqrt_up, stated_down, stated_up
from dpmanifold.privacy.promises import GDP, ZCDP, ApproxDP, Promise, PureDP

Amount = tuple[Fraction, ...]

# A refusal by less than this share of the promise is about the last digits of floats, and the message says so.
_LAST_DIGITS = Fraction(1, 10**9)
_SHORT = 10  # characters of a number that is shown in place of one with many digits
_DIGITS = 4  # of amounts for people; whatever machines read has all of them
_RATIO = re.compile(r"(0|[1-9][0-9]*)(?:/([1-9][0-9]*))?", re.ASCII)


def cost_of(promise: Promise, cap: Promise) -> Amount:
    """Return, exactly, what a promise takes from a cap of this kind, or say why the cap cannot take it.

    Parameters
    ----------
    promise : what is spent
    cap : a promise of the cap's kind; its size makes no difference

    Examples
    --------
    >>> cost_of(GDP("0.1"), GDP("1")), cost_of(PureDP(0.5), ApproxDP(1.0, 1e-6))
    ((Fraction(1, 100),), (Fraction(1, 2), Fraction(0, 1)))
    """
    match cap, promise:
        case PureDP(), PureDP():
            return (promise.exact["epsilon"],)
        case ApproxDP(), PureDP():
            return promise.exact["epsilon"], Fraction(0)
        case ApproxDP(), ApproxDP():
            return promise.exact["epsilon"], promise.exact["delta"]
        case ZCDP(), ZCDP() | GDP() | PureDP():
            return (rho_of(promise),)
        case GDP(), GDP() | PureDP():
            return (to_gdp(promise).exact["mu"] ** 2,)
    if isinstance(cap, ApproxDP):
        remedy = "State it at a delta of its own, to_approx(promise, delta), and ask for that; or make the budget GDP"
    elif isinstance(cap, GDP) and isinstance(promise, ZCDP):
        remedy = "Make the budget ZCDP, which takes both"
    elif isinstance(cap, PureDP):
        remedy = "Ask for PureDP, or make the budget ApproxDP, ZCDP or GDP"
    else:
        remedy = "Ask for GDP or PureDP, or make the budget ApproxDP"
    raise PromiseError(
        f"promise {promise} cannot be spent from a budget of {cap}: it implies no such promise. {remedy}."
    )


def nothing(cap: Promise) -> Amount:
    """Return the amount 0 in the currency of a cap.

    Examples
    --------
    >>> nothing(GDP(1.0)), nothing(ApproxDP(1.0, 1e-6))
    ((Fraction(0, 1),), (Fraction(0, 1), Fraction(0, 1)))
    """
    return (Fraction(0),) * len(cost_of(cap, cap))


def added(first: Amount, second: Amount) -> Amount:
    """Return the sum of two amounts in one currency.

    Examples
    --------
    >>> added((Fraction(1, 4),), (Fraction(1, 2),))
    (Fraction(3, 4),)
    """
    return tuple(one + other for one, other in zip(first, second, strict=True))


def left_of(cap: Amount, total: Amount) -> Amount:
    """Return what a total leaves of a cap; 0 where it has gone beyond.

    Examples
    --------
    >>> left_of((Fraction(1), Fraction(1, 8)), (Fraction(3, 4), Fraction(1, 4)))
    (Fraction(1, 4), Fraction(0, 1))
    """
    return tuple(max(whole - used, Fraction(0)) for whole, used in zip(cap, total, strict=True))


def fits(total: Amount, cap: Amount) -> bool:
    """Return True if a total is within a cap, in every part and with tolerance zero.

    Examples
    --------
    >>> fits((Fraction(1),), (Fraction(1),)), fits((Fraction(1, 2), Fraction(2)), (Fraction(1), Fraction(1)))
    (True, False)
    """
    return all(used <= whole for used, whole in zip(total, cap, strict=True))


def share_of(cap: Promise, amount: Amount) -> float:
    """Return how much of a cap an amount is, in the part that is fuller.

    Examples
    --------
    >>> from dpmanifold.privacy import GDP
    >>> share_of(GDP(1.0), (Fraction(1, 4),))
    0.25
    """
    parts = zip(amount, cost_of(cap, cap), strict=True)
    return float(max((used / whole for used, whole in parts if whole), default=0))


def as_promise_up(cap: Promise, amount: Amount) -> Promise | None:
    """Return an amount as a promise of the cap's kind, rounded up: what was spent. None if it is nothing.

    Examples
    --------
    >>> as_promise_up(GDP(1.0), (Fraction(1, 4),)), as_promise_up(GDP(1.0), (Fraction(0),))
    (GDP(mu=0.5), None)
    """
    return _promise(cap, amount, up=True)


def as_promise_down(cap: Promise, amount: Amount) -> Promise | None:
    """Return an amount as a promise of the cap's kind, rounded down: what can be asked for. None if it is nothing.

    Examples
    --------
    >>> as_promise_down(ApproxDP(1.0, 1e-6), (Fraction(1, 4), Fraction(0)))
    PureDP(epsilon=0.25)
    """
    return _promise(cap, amount, up=False)


def amount_to_text(amount: Amount) -> list[str]:
    """Return an amount as text without loss, "n" or "n/d" for each part in lowest terms; `amount_from_text` reads it.

    Examples
    --------
    >>> amount_to_text((Fraction(1, 4), Fraction(3)))
    ['1/4', '3']
    """
    return [str(part) for part in amount]


def amount_from_text(texts: Sequence[str]) -> Amount:
    """Return the amount that `amount_to_text` wrote, and refuse whatever it does not write.

    Examples
    --------
    >>> amount_from_text(["1/4", "3"])
    (Fraction(1, 4), Fraction(3, 1))
    """
    parts = []
    for text in texts:
        found = _RATIO.fullmatch(text) if isinstance(text, str) else None
        part = Fraction(int(found[1]), int(found[2] or 1)) if found else None
        if part is None or str(part) != text:
            raise InvalidArgumentError(f'an amount must be text such as "1/4" in lowest terms, got {shown(text)}.')
        parts.append(part)
    return tuple(parts)


def refusal(promise: Promise, cap: Promise, total: Amount, whole: Amount, *, of: str = "budget") -> str:
    """Return the words for a spend that does not fit: what was asked for, what is left, why and what to write.

    Parameters
    ----------
    promise : what was asked for
    cap : the promise that must not be exceeded
    total : what was spent before it, in the cap's currency
    whole : the cap in its currency, or what a grant allows of it
    of : what the cap belongs to, such as "budget" or "grant"

    Examples
    --------
    >>> cap = PureDP(1.0)
    >>> print(refusal(PureDP(0.5), cap, (Fraction(3, 4),), cost_of(cap, cap)))
    promise PureDP(epsilon=0.5) is more than the budget has left, PureDP(epsilon=0.25) of PureDP(epsilon=1.0).
    Nothing was spent. Ask for less, or plan with a larger budget.
    """
    left = as_promise_down(cap, left_of(whole, total))
    cost = cost_of(promise, cap)
    excess = [used - most for used, most in zip(added(total, cost), whole, strict=True)]
    if all(over <= _LAST_DIGITS * more for over, more in zip(excess, cost, strict=True)):
        remedy = (
            "Only the last digits do not fit: amounts are added exactly, with no tolerance, and the float 0.1, for "
            f"one, is slightly more than a tenth. Write amounts as text, which is exact, from the first one on: "
            f"{as_typed(promise)} of {as_typed(cap)}. Or ask for what is left, or for shares that fit: "
            "split(promise, 10) gives ten."
        )
    else:
        remedy = "Plan with a larger budget." if of == "budget" else "Ask its steward for more."
        remedy = remedy if left is None else f"Ask for less, or {remedy[0].lower()}{remedy[1:]}"
    same = left is not None and str(left) == str(promise)  # a float and a typed number: only quotes tell them apart
    there = "nothing" if left is None else repr(left) if same else readable(left)
    return (
        f"promise {repr(promise) if same else promise} is more than the {of} has left, {there} of {cap}. "
        f"Nothing was spent. {remedy}"
    )


def as_typed(promise: Promise) -> str:
    """Return how to write the promise that a person meant by floats: with text, which is exact.

    Examples
    --------
    >>> print(as_typed(ApproxDP(0.1, 1e-6)))
    ApproxDP("0.1", "1e-6")
    """
    meant = (Fraction(value if isinstance(value, str) else repr(value)) for value in promise.stated.values())
    texts = (f'"{decimal_text(number)}"' for number in meant)
    return f"{type(promise).__name__}({', '.join(texts)})"


def readable(promise: Promise | None) -> str:
    """Return an amount for people: the last digits of a float as "just below" or "just above".

    Examples
    --------
    >>> readable(GDP(0.5999999999999999)), readable(PureDP(0.25))
    ('just below GDP(mu=0.6)', 'PureDP(epsilon=0.25)')
    """
    if promise is None:
        return "None"
    exact = {name: value for name, value in promise.stated.items() if isinstance(value, float)}
    if len(exact) < len(promise.stated):
        return str(promise)
    short = {name: float(f"{value:.12g}") for name, value in exact.items()}
    if short == exact or any(len(repr(value)) > _SHORT for value in short.values()):
        return str(promise)
    below, above = (all(sign * short[name] >= sign * exact[name] for name in exact) for sign in (1, -1))
    return f"just {'below' if below else 'above'} {type(promise)(*short.values())}" if below or above else str(promise)


def in_words(promise: Promise, *, up: bool = True) -> str:
    """Return a promise in a few words: numbers as they were typed, and others with four digits, rounded up or down.

    Examples
    --------
    >>> in_words(GDP("0.3")), in_words(GDP(0.5385164807134505)), in_words(GDP(0.5385164807134505), up=False)
    ('mu 0.3', 'mu 0.5386', 'mu 0.5385')
    """
    return ", ".join(f"{name} {_digits(number, up)}" for name, number in promise.stated.items())


def _digits(number: float | str, up: bool) -> str:
    if isinstance(number, str) or len(repr(number)) <= _DIGITS + 2:
        return str(number).removesuffix(".0")
    context = decimal.Context(prec=_DIGITS, rounding=decimal.ROUND_CEILING if up else decimal.ROUND_FLOOR)
    return f"{float(context.create_decimal_from_float(number)):.{_DIGITS}g}"


def _promise(kind: Promise, amount: Amount, *, up: bool) -> Promise | None:
    """State an amount without loss where a promise can, rounded where not; within the cap it is never above it."""
    found: list[float | str] = []
    for part, most, stated in zip(amount, cost_of(kind, kind), kind.stated.values(), strict=True):
        if isinstance(kind, GDP):
            number = _rounded_root(part, up)
            beyond = Fraction(number) ** 2
        else:
            number = stated_up(part) if up else stated_down(part)
            beyond = Fraction(number)
        found.append(stated if part <= most < beyond else number)
    if not Fraction(found[0]):
        return None
    if isinstance(kind, ApproxDP) and not Fraction(found[1]):
        return PureDP(found[0])
    return type(kind)(*found)


def _rounded_root(part: Fraction, up: bool) -> float | str:
    root = root_of(part)
    if root is None:
        return sqrt_up(part) if up else sqrt_down(part)
    return stated_up(root) if up else stated_down(root)
