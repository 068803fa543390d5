"""Certify the one inequality of docs/theory/mean.md that is checked by machine: (6), on 0 <= a <= pi/4.

Interval arithmetic with outward rounding (arb): the interval is cut until on each piece the left side's largest value
lies below the right side's smallest by a stated margin. Takes less than a second. The page holds what this prints.

    python tools/certify_mean.py
"""

from __future__ import annotations

from fractions import Fraction

import flint

MARGIN = Fraction(7, 100)
# A little more than pi/4, so that the pieces cover it: checked below.
END = Fraction(7854, 10000)
# Pieces shorter than this are not cut again: the inequality is wrong there, or the margin too large.
SHORTEST = Fraction(1, 10**6)


def left(a: flint.arb) -> flint.arb:
    """Return 2 - pi/2 + (pi^2/4 - 2)(sin^2 a + sin a cos a)."""
    pi = flint.arb.pi()
    return 2 - pi / 2 + (pi * pi / 4 - 2) * (a.sin() ** 2 + a.sin() * a.cos())


def right(a: flint.arb) -> flint.arb:
    """Return 4(2 + c)/((1 + c)(1 + 2c)^2), c = cos a."""
    c = a.cos()
    return 4 * (2 + c) / ((1 + c) * (1 + 2 * c) ** 2)


def piece(low: Fraction, high: Fraction) -> flint.arb:
    """Return a ball of numbers that holds the interval."""
    return number((low + high) / 2) + number((high - low) / 2) * flint.arb(0, 1)


def number(value: Fraction) -> flint.arb:
    """Return a ball that holds a rational number."""
    return flint.arb(value.numerator) / flint.arb(value.denominator)


def pieces_needed(margin: Fraction = MARGIN) -> int:
    """Return into how many pieces [0, END] is cut until right - left > margin on each.

    Raises
    ------
    ArithmeticError : on a shortest piece that cannot be shown
    """
    if not flint.arb.pi() / 4 < number(END):
        raise ArithmeticError("the pieces do not cover the interval")
    pending, done = [(Fraction(0), END)], 0
    while pending:
        low, high = pending.pop()
        a = piece(low, high)
        if right(a) - left(a) > number(margin):
            done += 1
        elif high - low < SHORTEST:
            raise ArithmeticError(f"not shown on [{float(low):.6f}, {float(high):.6f}] with a margin of {margin}")
        else:
            middle = (low + high) / 2
            pending += [(low, middle), (middle, high)]
    return done


def report() -> str:
    """Return what the page states."""
    return f"(6) holds on [0, pi/4] with a margin of {float(MARGIN):g}: {pieces_needed()} intervals, outward rounding"


if __name__ == "__main__":
    print(report())
