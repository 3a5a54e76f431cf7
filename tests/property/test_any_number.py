"""Whatever numbers rows hold, a run ends, and each entry is finite, is read back and is derived again."""

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from found_drivers import find_drivers
from htfi.domain.decision import decode_decision, encode_decision
from htfi.domain.errors import IntegrityError
from htfi.domain.events import (
    MAX_LOG_RETURN,
    MAX_PRICE,
    MAX_SIZE,
    MAX_VALUE,
    MIN_PRICE,
    MIN_SIZE,
    MIN_VALUE,
    Event,
    QuarantinedRow,
)
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.ledger.tiles import MAX_ENTRY_BYTES
from htfi.market.state import MAX_MACRO_FEATURES
from htfi.pipeline.audit.recompute import check_entry
from htfi.pipeline.intake.cells import MAX_SERIES_CHARS, RepairedBar
from htfi.pipeline.intake.rows import RowParser
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.record.entry import decode_entry, encode_entry, entry_json
from htfi.wiring.settings import load_settings, settings_digest
from memory_run import MemoryLedger, loop_over

START_NS = 15_000 * NS_PER_DAY
NUM_BEFORE = 24  # bars with usual numbers: a forecast needs 20
SETTINGS = load_settings(environment={})

BOUNDS = (MIN_PRICE, MAX_PRICE, MIN_SIZE, MAX_SIZE, MIN_VALUE, MAX_VALUE)
ENDS = [
    0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e-320, 1.7976931348623157e308, -1.7976931348623157e308,
    1e154, 1e-154, math.inf, -math.inf, math.nan, 1.0, -1.0, 2.0**53, 2.0**63, 10**400,
    *(bound * by for bound in BOUNDS for by in (0.999, 1.0, 1.001, -1.0)),
]  # fmt: skip
NUMBERS = st.one_of(st.sampled_from(ENDS), st.floats(), st.floats(1.0, 100.0))
PRICES = st.one_of(NUMBERS, st.sampled_from([MIN_PRICE, MAX_PRICE, 100.0]))
BAR = st.fixed_dictionaries(
    {"kind": st.just("bar"), "close": PRICES},
    optional={"open": PRICES, "high": PRICES, "low": PRICES, "volume": NUMBERS},
)
FLAT_BAR = st.builds(lambda price, volume: {"kind": "bar", "close": price, "volume": volume}, PRICES, NUMBERS)
TRADE = st.fixed_dictionaries({"kind": st.just("trade"), "price": PRICES, "size": NUMBERS})
QUOTE = st.fixed_dictionaries(
    {"kind": st.just("quote")},
    optional={"bid": PRICES, "ask": PRICES, "bid_size": NUMBERS, "ask_size": NUMBERS},
)
MACRO = st.fixed_dictionaries({"kind": st.just("macro"), "series": st.just("X"), "value": NUMBERS})
ROWS = st.lists(st.one_of(BAR, FLAT_BAR, TRADE, QUOTE, MACRO), min_size=1, max_size=12)


def usual_rows() -> Iterator[dict[str, Any]]:
    for day in range(NUM_BEFORE):
        price = 100.0 + (day * 7919 % 13) / 10
        yield {"kind": "bar", "close": price, "high": price + 1.0, "low": price - 1.0, "volume": 1000.0}
        yield {"kind": "macro", "series": "X", "value": 5.0 + day % 3}


def events_of(rows: list[dict[str, Any]]) -> list[Event]:
    parser = RowParser(SourceSpec(name="s", unit="ns", interval="1d"), "A")
    events: list[Event] = []
    for number, row in enumerate(rows, 1):
        stamped = {**row, "ts": START_NS + number * NS_PER_DAY + number % 7 * NS_PER_S, "symbol": "A"}
        found = parser.parse(stamped, number)
        if found is not None and not isinstance(found, QuarantinedRow):
            events.append(found.bar if isinstance(found, RepairedBar) else found)
    return sorted(events, key=lambda event: event.available_at_ns)


def run_over(rows: list[dict[str, Any]]) -> MemoryLedger:
    loop, ledger, _ = loop_over(events_of(rows))
    loop.run(lambda: None)
    return ledger


def numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from numbers_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from numbers_in(item)


@settings(max_examples=examples(60), deadline=None)
@given(rows=ROWS)
def test_any_numbers_leave_entries_that_are_finite_and_derived_again(rows: list[dict[str, Any]]) -> None:
    check_any_numbers(rows)


def check_any_numbers(rows: list[dict[str, Any]]) -> None:
    ledger = run_over([*usual_rows(), *rows, *({"kind": "bar", "close": 100.0 + k} for k in range(3))])
    assert ledger.size > 0
    digest = settings_digest(SETTINGS)
    for entry in ledger.entries:
        decision = decode_entry(entry)
        assert encode_entry(decision) == entry
        assert decode_decision(encode_decision(decision)) == decision
        assert all(map(math.isfinite, numbers_in(msgspec.json.decode(entry_json(entry)))))
        assert max(abs(q) for row in decision.forecast.quantiles for q in row) <= MAX_LOG_RETURN
        assert check_entry(entry, digest, SETTINGS.policy) == []


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(rows=ROWS)
def test_many_numbers_leave_entries_that_are_finite_and_derived_again(rows: list[dict[str, Any]]) -> None:
    check_any_numbers(rows)


def test_prices_at_both_ends_of_what_is_possible_are_forecast() -> None:
    swings = [
        {"kind": "bar", "close": MAX_PRICE if k % 2 else MIN_PRICE, "volume": MAX_SIZE} for k in range(30)
    ]
    ledger = run_over([*usual_rows(), *swings])
    assert ledger.size > 30
    assert check_entry(ledger.entries[-1], settings_digest(SETTINGS), SETTINGS.policy) == []


def test_a_value_that_comes_after_ages_of_none_is_no_driver() -> None:
    """What is usual has then faded to almost nothing, and the ratio to it means nothing."""
    assert find_drivers({"volume_ratio": 1.0}, {"volume_ratio": 5e-324}) == []
    assert [driver.feature for driver in find_drivers({"volume_ratio": 1.0}, {"volume_ratio": 0.1})] == [
        "volume_ratio"
    ]


def test_a_calendar_of_thousands_of_series_leaves_entries_that_the_ledger_takes() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "macro", "series": f"{k}." + "X" * MAX_SERIES_CHARS, "value": k / 3} for k in range(10)
    ]
    rows += [{"kind": "macro", "series": f"{k}.{'X' * 120}", "value": k / 3} for k in range(3_000)]
    ledger = run_over([*rows, *usual_rows()])
    assert ledger.size > 0
    assert max(map(len, ledger.entries)) < MAX_ENTRY_BYTES
    macro = [name for name in decode_entry(ledger.entries[-1]).features if name.startswith("macro_")]
    assert len(macro) == MAX_MACRO_FEATURES
    assert macro[-1] == "macro_x"
    assert macro[0].startswith(f"macro_{3_000 - MAX_MACRO_FEATURES + 1}_x")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_is_never_encoded(number: float) -> None:
    decision = decode_entry(run_over(list(usual_rows())).entries[-1])
    broken = [
        msgspec.structs.replace(decision, features=decision.features | {"x": number}),
        msgspec.structs.replace(decision, last_price=number),
        msgspec.structs.replace(
            decision, forecast=msgspec.structs.replace(decision.forecast, calibration=[1.0, number, 1.0])
        ),
        msgspec.structs.replace(
            decision, circumstances=msgspec.structs.replace(decision.circumstances, quarantine_share=number)
        ),
    ]
    for one in broken:
        with pytest.raises(IntegrityError, match="not finite"):
            encode_decision(one)
