"""Early closes on bars within the day: a session ends with its last bar, and currencies trade on."""

import numpy as np
import pytest

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import parse_timestamp
from htfi.forecasting.known_variance.factor import KnownVariance
from htfi.forecasting.known_variance.priors import Priors

HOUR_NS = 3_600 * 1_000_000_000
WEEK_NS = 7 * 24 * HOUR_NS
CLOSE_NS = parse_timestamp("2023-11-24T18:00:00Z")  # the day after Thanksgiving, 13:00 in New York
SIZE = {"own": 1.0, "own_next": 0.5, "other": 0.0, "other_next": 0.0, "strength": 20.0}
PRIORS = Priors(
    {assets: {"bar_hours": 1.0, "kinds": {"market_half_day": SIZE}} for assets in ("fx", "other")}, "test"
)
EARLY_CLOSE = ScheduledEvent(
    time_ns=CLOSE_NS, kind="market_half_day", name="XNYS closes early", currency="USD"
)


def ahead(*series: str, event: ScheduledEvent = EARLY_CLOSE, hours: int = 2) -> list[list[float]]:
    """Factors of the band one and three bars ahead of the bar that ends `hours` before the close."""
    one = KnownVariance((1, 3), 5.0, (event,), PRIORS)
    one.grow([(name, "1h") for name in series])
    rows = np.arange(len(series))
    ends = [CLOSE_NS - WEEK_NS + step * HOUR_NS for step in range(-3, 4)]  # the hours of a usual Friday
    for end_ns in [*ends, CLOSE_NS - hours * HOUR_NS]:
        at = np.full(len(series), end_ns)
        one.of_closed(rows, at - HOUR_NS, at)
        one.ahead(rows)
    return one.standing(rows).tolist()


def test_the_last_bar_of_a_half_day_holds_its_close() -> None:
    (share,) = ahead("AAPL", hours=1)
    assert share[0] == pytest.approx(np.e)
    (before,) = ahead("AAPL", hours=2)
    assert before[0] == 1.0
    assert before[1] == pytest.approx(np.sqrt((1.0 + np.exp(2.0) + np.exp(1.0)) / 3.0))


def test_a_pair_of_currencies_trades_on_and_its_bar_begins_with_the_close() -> None:
    share, pair = ahead("AAPL", "EURUSD", hours=1)
    assert (share[0], pair[0]) == (pytest.approx(np.e), 1.0)
    assert pair == ahead("EURUSD", hours=1)[0]
    assert pair[1] == pytest.approx(np.sqrt((1.0 + np.exp(2.0) + np.exp(1.0)) / 3.0))


def test_an_early_close_within_a_bar_is_of_that_bar() -> None:
    inside = ScheduledEvent(
        time_ns=CLOSE_NS - HOUR_NS // 2, kind="market_half_day", name="closes early", currency="USD"
    )
    assert ahead("AAPL", event=inside, hours=1)[0][0] == pytest.approx(np.e)


def test_any_other_event_at_the_full_hour_is_of_the_bar_that_begins_with_it() -> None:
    priors = Priors({"other": {"bar_hours": 1.0, "kinds": {"us_cpi": SIZE}}}, "test")
    figure = ScheduledEvent(time_ns=CLOSE_NS, kind="us_cpi", name="CPI", currency="USD")
    one = KnownVariance((1,), 5.0, (figure,), priors)
    one.grow([("AAPL", "1h")])
    row, found = np.array([0]), list[float]()
    for hours in (2, 1, 0):
        at = np.array([CLOSE_NS - hours * HOUR_NS])
        one.of_closed(row, at - HOUR_NS, at)
        one.ahead(row)
        found.append(round(float(one.standing(row)[0][0]), 9))
    assert found == [1.0, 1.0, round(float(np.e), 9)]
