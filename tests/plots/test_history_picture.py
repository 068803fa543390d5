"""What used it up, as a picture: layers add up to what was spent, lost ones are hatched, the cap stays in sight."""

import pytest

from dpmanifold import GDP, InvalidArgumentError, plots
from ledger.entries_of_a_year import Year, year


def top_of(axes):
    """Return the right end of the line on top of the layers."""
    return max(line.get_ydata()[-1] for line in axes.lines if line.get_linestyle() == "-")


def test_the_layers_add_up_to_what_was_spent():
    history = year().history()
    figure = history.picture()
    steps, sums = figure.axes
    assert top_of(steps) == pytest.approx(34.0)
    assert sum(bar.get_width() for bar in sums.patches) == pytest.approx(34.0)
    assert "34.0 % of the cap is spent, by 3 releases, 1 of them lost" in figure.texts[1].get_text()
    hatched = [layer for layer in steps.collections if layer.get_hatch()]
    assert len(hatched) == 1
    assert any(bar.get_hatch() and bar.get_width() == pytest.approx(16.0) for bar in sums.patches)


def test_the_cap_is_drawn_as_it_was():
    steps = year().history().picture().axes[0]
    levels = [line.get_ydata()[0] for line in steps.lines if line.get_linestyle() == "--"]
    assert levels == pytest.approx([64.0, 100.0])
    assert steps.get_ylim()[1] > 100


def test_a_later_page_starts_from_what_was_spent_before():
    found = year()
    steps = found.history(found.entries[6:]).picture().axes[0]
    assert any("spent before" in text.get_text() for text in steps.texts)
    assert top_of(steps) == pytest.approx(34.0)


def test_many_kinds_are_taken_together():
    found = Year()
    for number in range(12):
        found.spend("0.1", f"statistic {number}")
    sums = found.history().picture().axes[1]
    told = [text.get_text() for text in sums.texts]
    assert len(told) == 6
    assert told[-1] == "others, 7.0 %"


def test_several_populations_stand_below_each_other():
    found = Year()
    found.spend("0.3")
    found.spend("0.1", population="other", what="$mean$")
    figure = found.history(other=GDP(0.2)).picture()
    assert len(figure.axes) == 4
    figure.canvas.draw()
    for number in range(5):
        found.spend("0.1", population=f"p{number}")
    with pytest.raises(InvalidArgumentError, match="room for 4 populations, got 7"):
        found.history(other=GDP(0.2), **{f"p{i}": GDP(1.0) for i in range(5)}).picture()


def test_what_is_no_history_is_refused():
    with pytest.raises(InvalidArgumentError, match="draws a page of a ledger"):
        plots.history([])
    with pytest.raises(InvalidArgumentError, match="nothing to draw"):
        Year().history().picture()
