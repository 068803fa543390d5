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


def test_functions_of_rooms_above_are_found_where_they_are_said_to_be():
    from dpmanifold.report import html_report

    above = {"verify": dpm.verify, "show": dpm.plots.show, "html_report": html_report,
             "import_queries": query.import_queries}  # fmt: skip
    assert {name: result._from_above(name) for name in result._FROM_ABOVE} == above
