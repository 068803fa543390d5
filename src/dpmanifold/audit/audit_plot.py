"""The picture of an audit: for every attack what it showed, as a share of what the promise allows."""

from __future__ import annotations

from dpmanifold.audit.findings import Audit
from dpmanifold.plots import canvas
from dpmanifold.plots.canvas import ball_line, mark_of_ball, promise_text


def picture(result: Audit) -> canvas.Figure:
    """Draw an audit: bars are what was shown with confidence, dots what was seen, the line what is allowed.

    Parameters
    ----------
    result : what `audit_mean` returned

    Examples
    --------
    >>> from dpmanifold.audit import audit_mean
    >>> from dpmanifold.ball import Ball
    >>> from dpmanifold.manifolds import Euclidean
    >>> from dpmanifold.privacy import GDP
    >>> figure = picture(audit_mean(10, Ball(Euclidean(1), [0.0], 1.0), GDP(1.0), runs=800))
    >>> figure.axes[0].get_xlabel()
    'shown, as a multiple of what the promise allows'
    """
    canvas.require(result, Audit, "picture draws an Audit", "Make one with audit_mean(n, ball, privacy).")
    footer = [
        f"{promise_text(result.privacy)} for each of {result.n:,} units. "
        f"Mechanism: {result.mechanism}, {result.arithmetic}. "
        f"{result.runs:,} releases, confidence {100 * result.confidence:g} %.",
        ball_line(result.ball),
    ]
    height = 2.3 + 0.34 * len(result.findings)
    figure = canvas.new_figure("What attacks could show", result.verdict, mark_of_ball(result.ball), footer, height)
    axes = figure.subplots()
    _bars(axes, result)
    return canvas.keyed(figure, axes)


def _bars(axes: canvas.Axes, result: Audit) -> None:
    shares = []
    for row, finding in enumerate(result.findings):
        lower, seen = finding.lower / finding.allowed, finding.estimate / finding.allowed
        color = canvas.VERMILLION if finding.refuted else canvas.ESTIMATE
        axes.barh(row, lower, height=0.55, color=color, alpha=0.85, linewidth=0)
        axes.plot(seen, row, "o", color=canvas.INK, markersize=3.5)
        text = f"{finding.measure} ≥ {finding.lower:.3g} of {finding.allowed:.3g}"
        axes.annotate(text, (max(lower, seen, 1.0), row), xytext=(7, 0), textcoords="offset points", fontsize=7.5,
                      va="center", color=canvas.INK)  # fmt: skip
        shares += [lower, seen]
    axes.bar(0, 0, color=canvas.ESTIMATE, alpha=0.85, label="shown, within the promise")
    if result.refuted:
        axes.bar(0, 0, color=canvas.VERMILLION, alpha=0.85, label="shown, REFUTES the promise")
    axes.plot([], [], "o", color=canvas.INK, markersize=3.5, label="seen")
    axes.axvline(1.0, color=canvas.BALL, linewidth=1.2, linestyle="--", label="allowed")
    axes.set_xlim(0, 1.6 * max(1.0, *shares))
    names = [f"{f.attack}, {f.data}" for f in result.findings]
    canvas.named_bars(axes, names, "shown, as a multiple of what the promise allows")
