"""What all results share: formats belong to one class, and methods are served by rooms that say so themselves."""

import pytest

import dpmanifold as dpm
from dpmanifold import result
from dpmanifold.stats import query


def test_a_format_belongs_to_one_class():
    with pytest.raises(dpm.InvalidArgumentError, match=r"format must be new, got .* records of Release have"):

        class Other(dpm.Result, format=dpm.Release.format):
            pass

    assert result._FORMATS[dpm.Release.format] is dpm.Release


def test_rooms_above_say_themselves_what_they_do_with_a_result():
    from dpmanifold.report import html_report

    above = {"verify": dpm.verify, "picture": dpm.plots.show, "report": html_report, "results": query._import_results}
    assert above == result._FROM_ABOVE
