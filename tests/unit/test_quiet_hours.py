"""Hours of a holiday in New York, in which pairs of currencies move less."""

import numpy as np
import pytest

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S, parse_timestamp
from htfi.forecasting.known_variance.factor import KnownVariance
from htfi.forecasting.known_variance.priors import Priors, shipped
from htfi.forecasting.known_variance.quiet_hours import are_quiet, may_hold

HOUR_NS = 3600 * NS_PER_S
HOLIDAY_NS = parse_timestamp("2024-01-15T00:00:00Z")  # a Monday; New York's begins five hours later
TOLD = Priors({"fx": {"bar_hours": 1.0, "quiet_hours": {"market_closed": -0.5}, "kinds": {}}})
ROW = np.array([0])


def closure(**more: object) -> ScheduledEvent:
    stated = {
        "time_ns": HOLIDAY_NS,
        "kind": "market_closed",
        "name": "closed",
        "currency": "USD",
        "is_exact": False,
    }
    return ScheduledEvent(**{**stated, **more})


def factor(hour: int, *events: ScheduledEvent, series: str = "EURUSD", interval: str = "1h") -> float:
    """What is known of the bar that begins at this hour of the holiday in New York, at the end of the one before."""
    one = KnownVariance((1, 5), 5.0, events, TOLD)
    one.grow([(series, interval)])
    begin_ns = HOLIDAY_NS + (5 + hour) * HOUR_NS
    one.of_closed(ROW, np.array([begin_ns - HOUR_NS]), np.array([begin_ns]))
    found = one.ahead(ROW)
    return 1.0 if found is None else float(found[0, 0])


@pytest.mark.parametrize("hour", [8, 12, 17])
def test_working_hours_of_a_holiday_are_quiet(hour: int):
    assert factor(hour, closure()) == pytest.approx(np.exp(-0.5))
    assert factor(hour) == 1.0


@pytest.mark.parametrize(
    ("hour", "changes"),
    [
        (7, {}),
        (18, {}),
        (32, {}),  # of the next day
        (12, {"currency": "GBP"}),
        (12, {"kind": "market_half_day"}),
        (12, {"known_ns": HOLIDAY_NS + NS_PER_DAY}),  # nobody knew of it yet
        (12, {"withdrawn_ns": HOLIDAY_NS}),
    ],
)
def test_other_hours_and_days_are_as_they_were(hour: int, changes: dict[str, object]):
    assert factor(hour, closure(**changes)) == 1.0


def test_shares_and_long_bars_are_left_alone():
    assert factor(12, closure(), series="ACME") == 1.0
    assert factor(12, closure(), interval="8h") == 1.0


def test_the_bar_that_was_quiet_is_divided_by_what_was_known():
    one = KnownVariance((1,), 5.0, [closure()], TOLD)
    one.grow([("EURUSD", "1h")])
    begin_ns = HOLIDAY_NS + 17 * HOUR_NS
    found = one.of_closed(ROW, np.array([begin_ns]), np.array([begin_ns + HOUR_NS]))
    assert found is not None
    assert [float(each[0]) for each in found] == pytest.approx([np.exp(-0.5)] * 2)


def test_a_holiday_that_became_known_lately_counts_for_the_pair_that_closed_since():
    end_ns = HOLIDAY_NS + 17 * HOUR_NS
    closes = np.array([end_ns, end_ns + 60 * NS_PER_S])
    one = KnownVariance((1, 5), 5.0, [closure(known_ns=int(closes[1]))], TOLD)
    one.grow([("EURUSD", "1h"), ("GBPUSD", "1h")])
    both = np.array([0, 1])
    one.of_closed(both, closes - HOUR_NS, closes)
    coming = one.ahead(both)
    assert coming is not None
    assert coming[:, 0] == pytest.approx([1.0, np.exp(-0.5)])
    assert list(one.known_events()) == [1]


def test_only_days_between_the_bars_are_looked_for():
    days = np.array([HOLIDAY_NS // NS_PER_DAY])
    begins = HOLIDAY_NS + np.array([[8, 12, 13, 23]]) * HOUR_NS
    assert are_quiet(begins, days).tolist() == [[False, False, True, False]]
    assert may_hold(begins, days)
    assert not may_hold(begins + 2 * NS_PER_DAY, days)
    assert not may_hold(begins, days[:0])


def test_the_shipped_prior_is_of_pairs_alone():
    assert shipped().quiet_hours("fx") == {"market_closed": -0.4}
    assert shipped().quiet_hours("other") == {}
