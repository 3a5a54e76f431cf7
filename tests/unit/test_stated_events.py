"""What a decision states of scheduled events: which widened the next bar's band, and by how much."""

from math import exp
from random import Random

import msgspec
import numpy as np
import pytest
from msgspec import UNSET

from htfi.apps.display.known_events import known_events_words
from htfi.domain.decision import Decision, EventFactor, KnownEvents
from htfi.domain.events import Bar, FeedItem, TimePassed
from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.forecasting.experts import build_experts
from htfi.forecasting.forecaster import Forecaster
from htfi.forecasting.known_variance.stated_events import stated_days, stated_events
from htfi.pipeline.audit.recompute import check_entry
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.settings import load_settings, override
from memory_run import loop_over

HOUR_NS = 3600 * NS_PER_S
START_NS = 1_704_085_200 * NS_PER_S  # Monday 2024-01-01 00:00 in New York
NUM_HOURS, PAYROLLS_HOUR = 40, 35
SYMBOLS = ("EURUSD", "GBPUSD", "EURGBP")
CALENDAR = """time,currency,impact,event
2024-01-02T16:30:00Z,USD,High,Non-Farm Employment Change
"""


def bars() -> list[list[Bar]]:
    """Hours of three pairs, by the instant at which they close."""
    rng, prices, found = Random(5), dict.fromkeys(SYMBOLS, 1.0), list[list[Bar]]()
    for hour in range(NUM_HOURS):
        start_ns, end_ns, closing = START_NS + hour * HOUR_NS, START_NS + (hour + 1) * HOUR_NS, list[Bar]()
        for symbol in SYMBOLS:
            before = prices[symbol]
            price = prices[symbol] = before * exp(rng.gauss(0.0, 1e-3))
            closing.append(
                Bar(end_ns, end_ns, "prices", hour + 1, symbol, "1h", start_ns, end_ns, before,
                    max(before, price) * 1.0001, min(before, price) * 0.9999, price)
            )  # fmt: skip
        found.append(closing)
    return found


def events() -> list[ScheduledEvent]:
    at = START_NS + PAYROLLS_HOUR * HOUR_NS + 1800 * NS_PER_S
    return [ScheduledEvent(time_ns=at, kind="us_payrolls", name="NFP", currency="USD")]


def forecaster() -> Forecaster:
    return Forecaster(ForecastConfig(), build_experts(ForecastConfig()), events())


def test_a_forecaster_states_what_the_band_of_the_next_bar_was_made_for() -> None:
    one, restored, stated = forecaster(), forecaster(), dict[int, dict[int, KnownEvents]]()
    for hour, closing in enumerate(bars()):
        if hour == PAYROLLS_HOUR - 1:
            restored.restore(one.state())
        one.observe(closing)
        if found := one.known_events(one.forecast_bars(closing).rows):
            stated[hour] = found
        if hour == PAYROLLS_HOUR - 1:  # worked out once the bars have closed, and not before
            restored.observe(closing)
            assert restored.known_events(restored.forecast_bars(closing).rows) == found
    assert list(stated) == [PAYROLLS_HOUR - 1]
    known = stated[PAYROLLS_HOUR - 1][0]
    assert known.events == (EventFactor("us_payrolls", events()[0].time_ns, known.factor),)
    assert known.factor > 1.5


def test_small_changes_are_left_out_and_the_strongest_stand_first() -> None:
    variances = np.array([[1.0, 1.0, 0.0], [4.0, 1.02, 2.25], [0.25, 0.0, 0.0], [0.0, 0.0, 0.0]])
    found = stated_events(np.array([3, 5, 7, 9]), ["a", "b", "c"], [10, 20, 30], [0, 0, 1], variances, {})
    assert found == {
        5: KnownEvents(2.078, (EventFactor("a", 10, 2.0), EventFactor("c", 30, 1.5, follows=True))),
        7: KnownEvents(0.5, (EventFactor("a", 10, 0.5),)),
    }
    many = stated_events(np.array([0]), list("abcdef"), [1] * 6, [0] * 6, np.full((1, 6), 4.0), {})
    assert [one.kind for one in many[0].events] == ["a", "b", "c"]


def test_what_a_day_is_multiplies_what_its_events_make_of_it() -> None:
    half_day, eve = EventFactor("half_day", 50, 0.67032), EventFactor("before_holiday", 60, 0.95)
    found = stated_events(np.array([1, 2]), ["a"], [10], [0], np.array([[4.0], [4.0]]), {1: half_day, 2: eve})
    assert found == {
        1: KnownEvents(1.341, (EventFactor("a", 10, 2.0), EventFactor("half_day", 50, 0.67))),
        2: KnownEvents(1.9, (EventFactor("a", 10, 2.0),)),
    }
    assert stated_days({1: half_day, 2: eve}) == {1: KnownEvents(0.67, (EventFactor("half_day", 50, 0.67),))}


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> list[DecidedSeries]:
    """What a run with a calendar decides; the entries of its rows are written from arrays."""
    file = tmp_path_factory.mktemp("calendar") / "calendar.csv"
    file.write_text(CALENDAR, encoding="utf-8")
    settings = override(load_settings(environment={}), "market", bar="60m")
    settings = override(settings, "narrative", calendar=str(file))
    settings = override(settings, "prefetching", budget_ms=0.0)
    loop, _, _ = loop_over([], settings=settings)
    made: list[DecidedSeries] = []
    loop.recorder.watcher = made.append
    items: list[FeedItem] = [bar for closing in bars() for bar in closing]
    for item in items:
        loop.step(item)
    loop.step(TimePassed(START_NS + (NUM_HOURS + 1) * HOUR_NS))
    return made


def test_entries_hold_it_where_a_band_was_made_for_it_and_only_there(decided: list[DecidedSeries]) -> None:
    read = [decode_entry(one.entry) for one in decided]
    held = {one.as_of_ns for one in read if one.known_events is not UNSET}
    assert held == {START_NS + PAYROLLS_HOUR * HOUR_NS}
    assert [one.entry for one in decided] == [encode_entry(one.decision) for one in decided]
    assert read == [one.worded() for one in decided]
    assert {one.models["known_variance"].split()[0] for one in read} == {"5"}
    before = decision(read, PAYROLLS_HOUR)
    known = before.known_events
    assert known is not UNSET
    without = msgspec.structs.replace(before, known_events=UNSET)
    assert len(encode_entry(before)) - len(encode_entry(without)) < 40


def test_it_is_said_in_words(decided: list[DecidedSeries]) -> None:
    read = [decode_entry(one.entry) for one in decided]
    known = decision(read, PAYROLLS_HOUR).known_events
    assert known is not UNSET
    assert known_events_words(decision(read, PAYROLLS_HOUR)) == (
        f"the next bar's band is × {known.factor:.2f} for us payrolls at 2024-01-02 16:30 (× {known.factor:.2f})"
    )
    assert known_events_words(decision(read, PAYROLLS_HOUR - 1)) == ""


def test_the_rationale_names_it_first(decided: list[DecidedSeries]) -> None:
    before = decision([one.worded() for one in decided], PAYROLLS_HOUR)
    assert before.known_events is not UNSET
    times = f"{before.known_events.factor:.1f} times its usual width"
    said = f"The next hour holds US payrolls (16:30 UTC): its band is {times}."
    assert said in before.rationale.text.partition("With a probability")[0]
    assert before.rationale.template.startswith("event+")
    other = decision([one.worded() for one in decided], PAYROLLS_HOUR - 1)
    assert "its usual width" not in other.rationale.text


def test_an_auditor_finds_a_sentence_that_the_record_does_not_bear_out(decided: list[DecidedSeries]) -> None:
    replace, read = msgspec.structs.replace, [one.worded() for one in decided]
    before, other = decision(read, PAYROLLS_HOUR), decision(read, PAYROLLS_HOUR - 1)
    known = before.known_events
    assert known is not UNSET
    wider = replace(before, known_events=replace(known, factor=9.0))
    found = {
        "states wrongly whether something was known": [
            replace(before, known_events=UNSET), replace(other, known_events=known)
        ],
        "misstates what was known": [replace(wider, rationale=before.rationale)],
    }  # fmt: skip
    assert problems(before) == problems(other) == []
    assert all(said in problem for said, ones in found.items() for one in ones for problem in problems(one))
    assert all(problems(one) for ones in found.values() for one in ones)


def problems(one: Decision) -> list[str]:
    digest = one.settings_digest
    return check_entry(encode_entry(one), digest, load_settings(environment={}).policy)


DAYS = (  # of daily bars that close at 16:00 in New York
    ("2024-07-02", "half_day", 0.67),  # the next one is 3 July
    ("2024-07-03", None, None),  # nothing is known of 5 July
    ("2024-08-30", "gap_long", 1.139),  # Labor Day follows
    ("2024-11-26", "before_holiday", 0.887),
    ("2024-12-23", "half_day", 0.67),
    ("2024-12-26", "year_end", 0.67),
)


def closures() -> list[ScheduledEvent]:
    closed = ("2024-07-04", "2024-09-02", "2024-11-28", "2024-12-25")
    half = ("2024-07-03", "2024-11-29", "2024-12-24")
    return [
        ScheduledEvent(time_ns=day_ns(day), kind=kind, name=kind, currency="USD", is_exact=False)
        for kind, days in (("market_closed", closed), ("market_half_day", half))
        for day in days
    ]


def day_ns(day: str, hour: int = 0) -> int:
    return int(np.datetime64(day, "ns").astype(np.int64)) + hour * HOUR_NS


def test_quiet_days_and_long_gaps_are_stated_with_events() -> None:
    one = Forecaster(ForecastConfig(), build_experts(ForecastConfig()), closures())
    closed = {"2024-07-04", "2024-09-02", "2024-11-28", "2024-12-25"}
    rng, price, stated = Random(3), 100.0, dict[str, KnownEvents | None]()
    for day in np.arange("2024-05-20", "2024-12-31", dtype="datetime64[D]"):
        if np.is_busday(day) and str(day) not in closed:
            before, price = price, price * exp(rng.gauss(0.0, 0.01))
            end_ns = day_ns(str(day), 20 if str(day) < "2024-11-03" else 21)
            high, low = max(before, price) * 1.001, min(before, price) * 0.999
            bar = Bar(
                end_ns,
                end_ns,
                "prices",
                1,
                "ACME",
                "1d",
                end_ns - 7 * HOUR_NS,
                end_ns,
                before,
                high,
                low,
                price,
            )
            one.observe([bar])
            stated[str(day)] = one.known_events(one.forecast_bars([bar]).rows).get(0)
    for day, kind, factor in DAYS:
        found = stated[day]
        assert (found and (found.events[0].kind, found.factor)) == (kind and (kind, factor)), day
        if found:
            assert str(np.datetime64(found.events[0].time_ns, "ns"))[:10] > day


def session_bars(num_days: int) -> list[Bar]:
    """Hours of ACME from 14:30 to 20:30 UTC, from Monday 2024-01-08 on, without weekends."""
    rng, price, found = Random(9), 100.0, list[Bar]()
    for day in range(num_days):
        first_ns = (
            day_ns("2024-01-08") + (day // 5 * 7 + day % 5) * 24 * HOUR_NS + 14 * HOUR_NS + HOUR_NS // 2
        )
        for hour in range(6):
            start_ns, before = first_ns + hour * HOUR_NS, price
            price = before * exp(rng.gauss(0.0, 0.005))
            high, low, end_ns = max(before, price) * 1.0005, min(before, price) * 0.9995, start_ns + HOUR_NS
            found.append(
                Bar(end_ns, end_ns, "prices", 1, "ACME", "1h", start_ns, end_ns, before, high, low, price)
            )
    return found


def test_results_that_come_while_the_exchange_is_closed_widen_the_hours_of_its_next_session() -> None:
    bars = session_bars(20)
    last = 15 * 6 - 1  # of a Friday
    results = ScheduledEvent(time_ns=bars[last].end_ns + HOUR_NS, kind="earnings", name="Q4", symbol="ACME")
    stale = ScheduledEvent(
        time_ns=bars[0].start_ns - 9 * 24 * HOUR_NS, kind="earnings", name="Q3", symbol="ACME"
    )
    one = Forecaster(ForecastConfig(), build_experts(ForecastConfig()), [results, stale])
    two = Forecaster(ForecastConfig(), build_experts(ForecastConfig()), [results, stale])
    stated: dict[int, KnownEvents] = {}
    for place, bar in enumerate(bars):
        one.observe([bar])
        batch = one.forecast_bars([bar])
        if found := one.known_events(batch.rows):
            stated[place] = found[0]
        if place == last + 2:  # in the midst of the session, from what was saved
            assert np.array_equal(two.forecast_bars([bar]).quantiles, batch.quantiles)
        if place == last + 1:
            two.restore(one.state())
            two.observe([bars[place + 1]])
    assert list(stated) == list(range(last, last + 6))
    assert all(
        found.events == (EventFactor("earnings", results.time_ns, found.factor, True),)
        for found in stated.values()
    )
    factors = [found.factor for found in stated.values()]
    assert 1.5 < factors[0] < 1.8
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] > 1.1


def decision(read: list[Decision], hour: int) -> Decision:
    (found,) = [one for one in read if one.symbol == "EURUSD" and one.as_of_ns == START_NS + hour * HOUR_NS]
    return found
