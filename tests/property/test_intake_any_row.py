"""Whatever a row holds, it becomes an event that keeps its promises, or a rejection. Nothing raises."""

import math
from datetime import date, datetime
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from htfi.domain.events import Bar, Event, QuarantinedRow, Quote, Trade
from htfi.pipeline.intake.columns import ALL_FIELDS
from htfi.pipeline.intake.quarantine_reasons import MAX_RAW_CHARS, QuarantineReason
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import KINDS, SourceSpec
from htfi.pipeline.intake.times import MAX_TIME_NS, MIN_TIME_NS

TIMES = st.sampled_from(
    ["2013-10-07T14:00:00Z", "2013-10-07", "2013-10-07T14:00:00", 1_381_154_400, 1e18, -1]
)
CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=12),
    st.binary(max_size=4),
    st.sampled_from(["", "1.5", "nan", "1e999", "٣", "a", "b", "ask", "1d", "60s", "9d" * 9, *KINDS]),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.dates(),
    st.datetimes(),
    TIMES,
)
NAMES = st.one_of(
    st.sampled_from(sorted(ALL_FIELDS)), st.sampled_from(["date", "time", "volume", "title"]), st.text()
)
ANY_ROW = st.dictionaries(NAMES, CELLS, max_size=10)
PRICES = st.one_of(st.sampled_from([1.0, 2.0, "3"]), CELLS)
LIKELY_ROW = st.fixed_dictionaries(
    {"ts": st.one_of(TIMES, CELLS)},
    optional={
        "symbol": st.one_of(st.just("A"), CELLS),
        "kind": st.one_of(st.sampled_from(KINDS), CELLS),
        "interval": st.one_of(st.just("60s"), CELLS),
        "available_at": st.one_of(TIMES, CELLS),
        **dict.fromkeys(("price", "size", "bid", "ask", "open", "high", "low", "close", "value"), PRICES),
        "side": CELLS,
        "headline": CELLS,
        "series": CELLS,
    },
)
SPECS = st.builds(
    SourceSpec,
    name=st.just("s"),
    kind=st.sampled_from(["", *KINDS]),
    zone=st.sampled_from(["", "America/New_York"]),
    unit=st.sampled_from(["", "ns", "s"]),
    interval=st.sampled_from(["", "60s", "7d", "volume:10"]),
    stamp=st.sampled_from(["", "arrival"]),
    delay=st.sampled_from(["", "45d"]),
)


@settings(max_examples=examples(600), deadline=None)
@given(row=st.one_of(ANY_ROW, LIKELY_ROW), spec=SPECS)
def test_any_row_is_an_event_or_a_rejection(row: dict[str, Any], spec: SourceSpec) -> None:
    arrival_ns = 1_381_154_400_000_000_000 if spec.by_arrival else None
    found = RowParser(spec, "FILE").parse(row, 5, "", arrival_ns)
    assert found is not None
    assert (found.source, found.row) == ("s", 5)
    msgspec.json.encode(found)  # what cannot be written down would stop the run later
    if isinstance(found, QuarantinedRow):
        assert found.reason in set(QuarantineReason)
        assert len(found.raw) <= MAX_RAW_CHARS
    else:
        check_promises(found)


def check_promises(event: Event) -> None:
    assert MIN_TIME_NS <= event.event_time_ns < MAX_TIME_NS + 10**18
    match event:
        case Trade():
            assert 0 < event.price < math.inf
            assert 0 <= event.size < math.inf
        case Quote():
            prices = [price for price in (event.bid, event.ask) if price is not None]
            assert prices == sorted(prices)
            assert all(0 < price < math.inf for price in prices)
            assert prices
        case Bar():
            assert event.low <= min(event.open, event.close) <= max(event.open, event.close) <= event.high
            assert event.start_ns <= event.end_ns
        case _:
            pass


def test_the_sweep_reaches_events_of_every_kind() -> None:
    parser = RowParser(SourceSpec("s"), "FILE")
    rows: list[dict[str, Any]] = [
        {"ts": datetime.fromisoformat("2013-10-07T14:00:00+00:00"), "price": 1},
        {"ts": date(2013, 10, 7), "close": 1, "interval": "1d"},
        {"ts": 1_381_154_400, "bid": 1},
        {"ts": 1_381_154_400, "headline": "x"},
        {"ts": 1_381_154_400, "series": "x", "value": 1},
    ]
    kinds = {type(parser.parse(row, 1)).__name__ for row in rows}
    assert kinds == {"Trade", "Bar", "Quote", "News", "MacroAnnouncement"}
