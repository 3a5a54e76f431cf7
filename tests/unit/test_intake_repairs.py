"""A bad open, high or low does not cost a sound close; what was put right is noted, a doubtful close is refused."""

from typing import Any

import pytest

from htfi.domain.events import Bar, QuarantinedRow
from htfi.pipeline.intake.cells import RepairedBar
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

PARSER = RowParser(SourceSpec("s", interval="1d"), "GS")


def parse(opened: Any, high: Any, low: Any, closed: Any) -> Any:
    return PARSER.parse({"date": "2008-09-16", "open": opened, "high": high, "low": low, "close": closed}, 7)


@pytest.mark.parametrize(
    ("cells", "prices"),
    [
        ((116.0, 133.5, 116.13, 117.0), (116.0, 133.5, 116.0)),  # Goldman Sachs, 2008-09-16
        ((10.0, 9.8, 9.5, 9.9), (10.0, 10.0, 9.5)),
        ((10.0, 9.5, 10.5, 10.2), (10.0, 10.5, 9.5)),  # high and low exchanged
        ((41.6, 13.61, 12.76, 12.83), (12.83, 13.61, 12.76)),  # the VIX, 2006-02-08
        ((116.0, 1170.0, 115.0, 116.2), (116.0, 116.2, 115.0)),
        ((116.0, 11.7, 115.5, 116.2), (116.0, 116.2, 115.5)),
        ((7.42, 7.67, 0.01, 7.6), (7.42, 7.67, 7.42)),
        ((42.0, 42.3, 0.0, 41.09), (42.0, 42.3, 41.09)),
        ((None, 3.2, 3.0, 3.1), (3.1, 3.2, 3.0)),
        (("", "nan", "-1", "3.1"), (3.1, 3.1, 3.1)),
        ((10.0, 10.0, 10.0, 10.0005), (10.0, 10.0005, 10.0)),  # rounded apart
    ],
)
def test_a_bar_with_a_sound_close_is_kept(
    cells: tuple[Any, Any, Any, Any], prices: tuple[float, float, float]
) -> None:
    found = parse(*cells)
    assert isinstance(found, RepairedBar)
    bar = found.bar
    assert type(bar) is Bar
    assert (bar.open, bar.high, bar.low, bar.close) == (*prices, float(cells[3]))
    note = found.note
    assert (note.source, note.row, note.reason) == ("s", 7, "repaired")
    assert {one.field: one.now for one in note.repairs} == {
        name: price
        for name, cell, price in zip(("open", "high", "low"), cells, prices, strict=False)
        if cell in (None, "", "nan", "-1") or cell != price
    }
    assert f"close={cells[3]}" in note.raw


def test_the_note_says_what_was_and_what_is() -> None:
    (one,) = parse(116.0, 133.5, 116.13, 117.0).note.repairs
    assert (one.field, one.was, one.now) == ("low", 116.13, 116.0)


@pytest.mark.parametrize(
    "cells",
    [
        (116.0, 117.0, 115.0, 1165.0),
        (27.5, 28.0, 27.4, 11.75),
        (61.0, 61.5, 60.0, 59.9),
        (38.19, 20.77, 35.9, 20.14),
        (15.0, 9.8, 9.5, 14.9),
    ],
)
def test_a_close_that_nothing_supports_is_refused(cells: tuple[float, float, float, float]) -> None:
    found = parse(*cells)
    assert isinstance(found, QuarantinedRow)
    assert (found.reason, found.repairs) == ("bad_bar", ())
    assert f"close {cells[3]}" in found.detail


@pytest.mark.parametrize("cells", [(10.0, 12.0, 9.0, 11.0), (0.35, 0.55, 0.07, 0.25), (5.0, 5.0, 5.0, 5.0)])
def test_a_bar_that_agrees_is_left_alone(cells: tuple[float, float, float, float]) -> None:
    found = parse(*cells)
    assert type(found) is Bar
    assert (found.open, found.high, found.low, found.close) == cells


def test_text_where_a_price_belongs_is_no_bar() -> None:
    assert parse("GS", 12.0, 9.0, 11.0).reason == "bad_number"
