"""What an audit found: for every attack a bound from below, beside what the promise allows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpmanifold.ball import Ball
from dpmanifold.privacy import Promise
from dpmanifold.serialization import ball_to_dict
from dpmanifold.summary import facts_table, facts_text, json_safe

BLACK_BOX, LOW_BITS, WORDS, TIMING = "black box", "low bits", "random words", "timing"
ADVANTAGE = "advantage"


@dataclass(frozen=True)
class Finding:
    """One attack on one pair of neighbouring data sets.

    Attributes
    ----------
    attack : "black box", "low bits", "random words" or "timing" (of the draw, without the solver)
    data : "worst case" or "generic"
    measure : what is measured: "epsilon", "mu" or "rho" of the promise, or "advantage"
    allowed : the most that the promise allows
    estimate : what was seen
    lower : what the mechanism exceeds at the audit's confidence
    promised : whether the promise covers this at all: running time it does not

    Examples
    --------
    >>> Finding("low bits", "generic", "advantage", 0.04, 0.54, 0.49, True).refuted
    True
    """

    attack: str
    data: str
    measure: str
    allowed: float
    estimate: float
    lower: float
    promised: bool

    @property
    def refuted(self) -> bool:
        """Whether the promise cannot be true."""
        return self.promised and self.lower > self.allowed

    def __str__(self) -> str:
        said = f"{self.measure} at least {self.lower:.3g}, seen {self.estimate:.3g}, allowed {self.allowed:.3g}"
        note = "  REFUTED" if self.refuted else "" if self.promised else "  (not promised)"
        return f"{said}{note}"


@dataclass(frozen=True)
class Audit:
    """What attacks on a mechanism found. Public: no data was touched.

    An audit can refute a promise, never prove one.

    Attributes
    ----------
    ball, n, privacy, mechanism, arithmetic : what was attacked
    runs : releases that were made, over all data sets
    confidence : that no bound of the audit is wrong, all of them together
    findings : one for each attack and pair of data sets
    refuted : whether any of them exceeds what the promise allows
    verdict : the audit in one sentence
    """

    ball: Ball
    n: int
    privacy: Promise
    mechanism: str
    arithmetic: str
    runs: int
    confidence: float
    findings: tuple[Finding, ...]

    @property
    def refuted(self) -> bool:
        """Whether the promise cannot be true, at the stated confidence."""
        return any(finding.refuted for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Say what was shown, and no more."""
        broken = [f for f in self.findings if f.refuted]
        if not broken:
            return "Nothing was refuted: no bound exceeds what the promise allows. That proves nothing."
        worst = max(broken, key=lambda f: f.lower / f.allowed)
        return (
            f"REFUTED by {worst.attack} on {worst.data} data: {worst.measure} at least {worst.lower:.3g}, "
            f"allowed {worst.allowed:.3g}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything that people see, for machines."""
        return {
            "space": repr(self.ball.space),
            "ball": ball_to_dict(self.ball),
            "n": self.n,
            "privacy": self.privacy.to_dict(),
            "mechanism": self.mechanism,
            "arithmetic": self.arithmetic,
            "runs": self.runs,
            "confidence": self.confidence,
            "findings": [{**json_safe(asdict(f)), "refuted": f.refuted} for f in self.findings],
            "refuted": self.refuted,
            "verdict": self.verdict,
        }

    def _facts(self) -> list[tuple[str, str]]:
        attacks = list(dict.fromkeys(f.attack for f in self.findings))
        return [
            ("promise", str(self.privacy)),
            ("mechanism", f"{self.mechanism}, arithmetic {self.arithmetic}"),
            ("ball", repr(self.ball)),
            ("releases", f"{self.runs:,} of {self.n:,} units each, on two pairs of neighbouring data sets"),
            *((name, "\n".join(f"{f.data}: {f}" for f in self.findings if f.attack == name)) for name in attacks),
            ("confidence", f"{100 * self.confidence:g} % that all of these bounds hold"),
            ("verdict", self.verdict),
        ]

    def __repr__(self) -> str:
        return facts_text("Audit of a private mean", True, self._facts())

    def _repr_html_(self) -> str:
        return facts_table("Audit of a private mean", True, self._facts())
