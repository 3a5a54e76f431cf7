"""Which spellings of an interval are read, and as what."""

import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, QuarantinedRow
from htfi.pipeline.intake.bar_spacing import ACCEPTED_INTERVALS, read_interval
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec

SPELT = {
    "1m": "m1 M1 1m 1min 1Min 1T PERIOD_M1 60s PT1M minutely minute",
    "15m": "M15 m15 15m 15min 15T PT15M period_m15 TIMEFRAME_M15 900s 15",
    "1h": "h1 H1 1h 1H H hour hourly 60 60min 1hr PT1H PERIOD_H1",
    "4h": "H4 h4 4h 4H 240 4hours",
    "1d": "D D1 d1 1d 1D day daily P1D 24h 1440 1day",
    "7d": "W W1 1w 1W weekly P1W 7d",
    "31d": "M 1M MN1 mn1 1mo month monthly P1M",
    "92d": "3M quarterly 1q",
    "366d": "12M yearly annual 1y P1Y",
}


@pytest.mark.parametrize(("name", "spelt"), SPELT.items())
def test_one_interval_has_many_spellings_and_one_name(name: str, spelt: str) -> None:
    assert {text: read_interval(text) for text in spelt.split()} == dict.fromkeys(spelt.split(), name)


def test_a_space_may_stand_between_number_and_unit() -> None:
    assert [read_interval(text) for text in ("1 hour", "15 min", " 1 day ", "30-minutes")] == [
        "1h", "15m", "1d", "30m",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["", "res", "15M", "m", "0", "0h", "-1h", "1.5M", "soon", "M0", "h1h", "400d", "9" * 60, "volume:0"],
)
def test_what_is_no_interval_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="is not an interval"):
        read_interval(text)


@pytest.mark.parametrize(
    "column", ["res", "Timeframe", "period", "granularity", "RESOLUTION", "tf", "Bar Size"]
)
@pytest.mark.parametrize(
    ("cell", "interval"), [("PERIOD_H4", "4h"), (240, "4h"), (240.0, "4h"), ("volume:9", "volume:9")]
)
def test_a_column_states_the_interval_of_its_row(column: str, cell: object, interval: str) -> None:
    row = {"ts": "2013-10-07T14:00:00Z", "close": 1.0, column: cell}
    found = RowParser(SourceSpec("s"), "A").parse(row, 1)
    assert isinstance(found, Bar)
    assert found.interval == interval


def test_an_unknown_spelling_is_quarantined_with_the_forms_that_are_known() -> None:
    row = {"ts": "2013-10-07T14:00:00Z", "close": 1.0, "res": "hour-ish"}
    found = RowParser(SourceSpec("s"), "A").parse(row, 1)
    assert isinstance(found, QuarantinedRow)
    assert (found.reason, found.detail) == (
        "bad_interval",
        f"res: 'hour-ish' is not an interval: write one of {ACCEPTED_INTERVALS}",
    )


def test_a_column_that_only_sounds_like_one_gives_way_to_the_mapping() -> None:
    row = {"ts": "2013-10-07T14:00:00Z", "close": 1.0, "period": "2013Q4"}
    told = RowParser(SourceSpec("s", interval="1h"), "A").parse(row, 1)
    mapped = RowParser(SourceSpec("s", interval="1h", columns={"interval": "period"}), "A").parse(row, 1)
    assert isinstance(told, Bar)
    assert isinstance(mapped, QuarantinedRow)
    assert (told.interval, mapped.reason) == ("1h", "bad_interval")
