"""One core, two ways: events and columns agree to the bit; so do a market restored, and one interpreted."""

import importlib
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from market_streams import CONFIG, SYMBOLS, Row, acquaint, run_events, snapshot, streams, to_batch, walk
from numpy.typing import NDArray

import htfi.market
from examples import examples
from htfi.domain.events import Bar
from htfi.market.kernel import COMPILED
from htfi.market.state import MarketColumns, MarketState
from htfi.pipeline.run_state import decode_state


def assert_events_equal_columns(rows: list[Row], cut: int) -> None:
    one, other = MarketState(CONFIG), MarketState(CONFIG)
    acquaint(one)
    by_event = run_events(one, rows)
    by_column = other.observe_batch(to_batch(rows[:cut])) + other.observe_batch(to_batch(rows[cut:]))
    assert by_event == by_column
    assert snapshot(one) == snapshot(other)
    for symbol in SYMBOLS:
        for clock in CONFIG.clocks:
            assert one.features(symbol, clock.interval) == other.features(symbol, clock.interval)
            assert one.regime(symbol, clock.interval) == other.regime(symbol, clock.interval)


@given(streams(), st.integers(0, 80))
@settings(deadline=None, max_examples=examples(150))
def test_events_and_columns_agree_to_the_bit_on_any_stream(rows: list[Row], cut: int) -> None:
    assert_events_equal_columns(rows, cut)


@pytest.mark.parametrize("seed", range(3))
def test_events_and_columns_agree_to_the_bit_on_a_lively_market(seed: int) -> None:
    assert_events_equal_columns(walk(seed, 6_000), 2_345)


@given(streams(), st.integers(0, 80))
@settings(deadline=None, max_examples=examples(100))
def test_restored_market_goes_on_as_if_it_had_never_stopped(rows: list[Row], cut: int) -> None:
    whole, first = MarketState(CONFIG), MarketState(CONFIG)
    run_events(whole, rows)
    run_events(first, rows[:cut])
    second = MarketState(CONFIG)
    second.restore(decode_state(snapshot(first)))
    assert snapshot(second) == snapshot(first)
    run_events(second, rows[cut:])
    assert snapshot(second) == snapshot(whole)


def test_what_is_kept_does_not_grow_with_the_stream() -> None:
    market = MarketState(CONFIG)
    rows = walk(1, 20_000, 4 * 10**9)  # hours of market time: every ring wraps
    sizes: list[int] = []
    for start in range(0, len(rows), 5_000):
        market.observe_batch(to_batch(rows[start : start + 5_000]))
        sizes.append(len(snapshot(market)))
    assert max(sizes) <= 1.01 * sizes[0]


def _columns_of(read: MarketColumns) -> tuple[NDArray[Any], ...]:
    return read.features, read.levels, read.quote_age_ns, read.quote_mid


@pytest.mark.skipif(not COMPILED, reason="no C compiler was at hand: there is only the interpreted kernel")
@pytest.mark.parametrize("seed", range(2))
def test_compiled_and_interpreted_kernels_agree_to_the_bit(seed: int, interpreted: ModuleType) -> None:
    compiled, plain = MarketState(CONFIG), interpreted.MarketState(CONFIG)
    rows = walk(seed, 3_000) + [(row[0] + 10**14, *row[1:]) for row in walk(seed + 9, 1_000, 5 * 10**9)]
    assert compiled.observe_batch(to_batch(rows)) == plain.observe_batch(to_batch(rows))
    assert snapshot(compiled) == snapshot(plain)
    for symbol in SYMBOLS:
        assert compiled.features(symbol, "60s") == plain.features(symbol, "60s")
        assert compiled.regime(symbol, "60s") == plain.regime(symbol, "60s")
    at_ns = rows[-1][0] + 1
    bars = [Bar(at_ns, at_ns, "p", 1, one, "60s", 0, at_ns, 1.0, 1.0, 1.0, 1.0) for one in (*SYMBOLS, "new")]
    read, other = compiled.read(bars, at_ns), plain.read(bars, at_ns)
    assert [read.features_at(place) for place in range(len(bars))] == [
        compiled.features(bar.symbol, "60s") for bar in bars
    ]
    assert read.regimes() == [compiled.regime(bar.symbol, "60s") for bar in bars]
    for one, two in zip(_columns_of(read), _columns_of(other), strict=True):
        assert np.array_equal(one, two, equal_nan=True)
    assert (read.quote_age_ns[:-1] >= 0).any()


@pytest.mark.skipif(not COMPILED, reason="no C compiler was at hand: there is only the interpreted kernel")
def test_compiled_and_interpreted_kernels_agree_on_broken_fields(interpreted: ModuleType) -> None:
    @given(streams())
    @settings(deadline=None, max_examples=examples(50))
    def agree(rows: list[Row]) -> None:
        compiled, plain = MarketState(CONFIG), interpreted.MarketState(CONFIG)
        assert compiled.observe_batch(to_batch(rows)) == plain.observe_batch(to_batch(rows))
        assert snapshot(compiled) == snapshot(plain)

    agree()


class _SourceOnly:
    """Finds the hot modules and what drives them as .py files, whatever was compiled beside them."""

    names = tuple(
        f"htfi.market.{name}" for name in ("regime", "samples", "book", "bars", "series", "kernel", "state")
    )

    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        if name not in self.names:
            return None
        file = str(Path(htfi.market.__path__[0]) / f"{name.rpartition('.')[2]}.py")
        return spec_from_file_location(name, file, loader=SourceFileLoader(name, file))


@pytest.fixture(scope="module")
def interpreted():
    """`htfi.market.state` and the kernel beneath it, loaded a second time from source."""
    taken = {name: sys.modules.pop(name) for name in _SourceOnly.names}
    finder = _SourceOnly()
    sys.meta_path.insert(0, finder)
    try:
        state = importlib.import_module("htfi.market.state")
        assert not sys.modules["htfi.market.kernel"].COMPILED
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(taken)
        for name, module in taken.items():
            setattr(htfi.market, name.rpartition(".")[2], module)
    return state
