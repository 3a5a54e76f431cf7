"""What may enter a volatility: session gaps, wild prints, flat and impossible prices, late series."""

import math

import numpy as np
import pytest

from htfi.domain.errors import IntegrityError, InvalidInput
from htfi.domain.events import Bar
from htfi.forecasting.panel import BarBatch, Panel

SECOND = 10**9
HORIZONS = (1, 3)


def bar(start_s: float, close: float, *, interval: str = "60s", symbol: str = "A", **prices: float) -> Bar:
    start_ns = int(start_s * SECOND)
    shape = {"open": close, "high": close, "low": close} | prices
    return Bar(
        available_at_ns=start_ns,
        event_time_ns=start_ns,
        source="test",
        row=1,
        symbol=symbol,
        interval=interval,
        start_ns=start_ns,
        end_ns=start_ns + 60 * SECOND,
        close=close,
        **shape,
    )


def walked(*bars: Bar) -> BarBatch:
    panel = Panel(HORIZONS, 5.0)
    batches = [panel.enter([each]) for each in bars]
    assert batches[-1] is not None
    return batches[-1]


def test_return_is_from_close_to_close_within_a_session():
    batch = walked(bar(0, 100.0, open=99.0), bar(60, 101.0))
    assert batch.returns[0] == pytest.approx(math.log(1.01))
    assert batch.outcomes[0, 0] == pytest.approx(math.log(1.01))
    assert math.isnan(batch.outcomes[0, 1])


def test_first_bar_after_a_session_gap_counts_from_its_own_open():
    batch = walked(bar(0, 100.0), bar(60, 101.0), bar(50_000, 90.9, open=90.0, high=91.0, low=90.0))
    assert batch.returns[0] == pytest.approx(math.log(90.9 / 90.0))
    assert batch.outcomes[0, 0] == pytest.approx(math.log(90.9 / 90.0))


@pytest.mark.parametrize("pause_s", [60, 360])
def test_pause_of_up_to_five_bars_is_no_gap(pause_s: int):
    batch = walked(bar(0, 100.0), bar(pause_s, 100.1))
    assert batch.returns[0] == pytest.approx(math.log(1.001))


@pytest.mark.parametrize("interval", ["1d", "volume:5000", "dollar:1000000"])
def test_daily_and_untimed_bars_know_no_session_gap(interval: str):
    batch = walked(bar(0, 100.0, interval=interval), bar(10**6, 100.5, interval=interval, open=99.0))
    assert batch.returns[0] == pytest.approx(math.log(1.005))


def test_true_range_spans_the_close_before():
    batch = walked(bar(0, 100.0), bar(60, 103.0, open=102.0, high=104.0, low=102.0))
    assert batch.variance[0] == pytest.approx(math.log(1.04) ** 2 / (4 * math.log(2)), rel=1e-12)


def test_flat_bar_falls_back_to_the_squared_return():
    batch = walked(bar(0, 100.0), bar(60, 101.0))
    assert batch.variance[0] == pytest.approx(math.log(1.01) ** 2, rel=1e-12)


def test_wild_print_is_cut_for_volatility_but_not_for_scoring():
    quiet = [bar(60 * i, 100.0 * (1.001 if i % 2 else 1.0)) for i in range(60)]
    batch = walked(*quiet, bar(3600, 1000.0))
    assert abs(batch.returns[0]) <= 10.0 * batch.usual[0]
    assert batch.variance[0] <= (10.0 * batch.usual[0]) ** 2
    assert batch.outcomes[0, 0] == pytest.approx(math.log(1000.0 / 100.1), rel=1e-3)


def test_constant_price_keeps_a_positive_variance():
    batch = walked(*(bar(60 * i, 100.0) for i in range(300)))
    assert batch.variance[0] > 0.0
    assert math.isfinite(batch.log_variance[0])


def test_history_begins_with_the_first_bar_in_which_the_price_moved():
    batch = walked(*(bar(60 * i, 100.0) for i in range(30)), bar(1800, 101.0), bar(1860, 101.0))
    assert batch.age.tolist() == [1]
    assert batch.usual[0] == pytest.approx(math.log(1.01))


@pytest.mark.parametrize("close", [math.nan, math.inf, 0.0, -1.0])
def test_bar_without_a_usable_close_changes_nothing(close: float):
    panel, clean = Panel(HORIZONS, 5.0), Panel(HORIZONS, 5.0)
    for each in (panel, clean):
        each.enter([bar(0, 100.0)])
    assert panel.enter([bar(60, close)]) is None
    after, expected = panel.enter([bar(120, 101.0)]), clean.enter([bar(120, 101.0)])
    assert after is not None
    assert expected is not None
    np.testing.assert_array_equal(after.returns, expected.returns)
    np.testing.assert_array_equal(after.age, expected.age)


def test_missing_open_high_and_low_are_taken_from_the_close():
    batch = walked(bar(0, 100.0), bar(60, 101.0, open=math.nan, high=math.nan, low=-3.0))
    assert batch.variance[0] == pytest.approx(math.log(1.01) ** 2, rel=1e-12)


def test_two_bars_of_a_series_at_one_instant_are_refused():
    with pytest.raises(InvalidInput, match="two bars of one series"):
        Panel(HORIZONS, 5.0).enter([bar(0, 100.0), bar(0, 101.0)])


def test_batch_is_ordered_by_row_whatever_the_order_of_bars():
    panel = Panel(HORIZONS, 5.0)
    panel.enter([bar(0, 10.0, symbol="A"), bar(0, 20.0, symbol="B"), bar(0, 30.0, symbol="C")])
    batch = panel.enter([bar(60, 33.0, symbol="C"), bar(60, 11.0, symbol="A")])
    assert batch is not None
    assert batch.index.tolist() == [0, 2]
    np.testing.assert_allclose(batch.returns, [math.log(1.1), math.log(1.1)], rtol=1e-12)


def test_state_of_other_horizons_is_refused():
    panel = Panel(HORIZONS, 5.0)
    panel.enter([bar(0, 100.0)])
    with pytest.raises(IntegrityError, match="rows of shape"):
        Panel((1, 5), 5.0).restore(panel.state())
