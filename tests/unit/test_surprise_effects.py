from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.known_variance.event_effects import EventEffects
from htfi.forecasting.known_variance.event_facts import event_facts
from htfi.forecasting.known_variance.event_table import ScheduledLines, tabulate
from htfi.forecasting.known_variance.priors import shipped
from htfi.forecasting.known_variance.surprise_effects import ClosedBar, SurpriseEffects
from htfi.forecasting.surprises import surprises

HOUR_NS = 3600 * NS_PER_S
SYMBOLS = ("EURUSD", "USDJPY", "EURGBP")
NAMES = [f"{symbol}/1h" for symbol in SYMBOLS]
ROWS = np.arange(3, dtype=np.intp)


def releases(num: int, seed: int = 0) -> list[ScheduledEvent]:
    """Monthly payrolls whose actuals differ from a forecast of 100 by normal surprises of 50."""
    rng = np.random.default_rng(seed)
    return [
        ScheduledEvent(
            time_ns=(1 + 30 * month) * NS_PER_DAY,
            kind="us_payrolls",
            name="Non-Farm Payrolls",
            currency="USD",
            actual=100.0 + 50.0 * rng.standard_normal(),
            forecast=100.0,
        )
        for month in range(num)
    ]


def opened(events: Sequence[ScheduledEvent]) -> tuple[ScheduledLines, EventEffects, SurpriseEffects]:
    table = tabulate(events)
    effects = EventEffects(table, shipped())
    found = SurpriseEffects(effects, table, events)
    for row, symbol in enumerate(SYMBOLS):
        effects.add(row, symbol, HOUR_NS)
        found.add(row, symbol)
    return table, effects, found


def simulate(
    table: ScheduledLines, one: SurpriseEffects, events: Sequence[ScheduledEvent], *, move: float, grows: float = 0.0,
    first: int = 0, beyond: int = 1_000,
) -> None:  # fmt: skip
    """Returns of the dollar that rise by `move` σ for each usual size, whose log scale grows with that size."""
    rng = np.random.default_rng(7)
    sizes = {one.event.time_ns: one.size for one in surprises(events)}
    for place, event in enumerate(events):
        x = sizes.get(event.time_ns, 0.0)
        scale = np.exp(grows * (abs(x) - 0.8))
        noise = scale * rng.standard_normal(3)
        sigmas = move * x * np.array([-1.0, 1.0, 0.0]) + noise
        if first <= place < beyond:
            end_ns = event.time_ns + HOUR_NS
            one.learn(ClosedBar(ROWS, np.array([place]), table.kind[[place]], sigmas, end_ns))


def test_the_slope_of_each_series_is_found_with_its_sign():
    events = releases(400)
    table, _, one = opened(events)
    simulate(table, one, events, move=0.6)
    eur, jpy = (one.of_series(row, 0) for row in (0, 1))
    assert eur is not None
    assert jpy is not None
    assert eur[1].value == pytest.approx(-0.6, abs=0.15)
    assert jpy[1].value == pytest.approx(0.6, abs=0.15)
    assert eur[1].low < -0.6 < eur[1].high
    assert jpy[1].low < 0.6 < jpy[1].high
    assert one.of_class(0, 0, 0)[0].value == pytest.approx(0.6, abs=0.15)  # of the dollar
    cross = one.of_series(2, 0)
    assert cross is not None
    assert abs(cross[1].value) < 0.15


def test_a_slope_is_drawn_to_none_while_surprises_are_few():
    events = releases(400)
    values: list[float] = []
    for num in (4, 370):
        table, _, one = opened(events)
        simulate(table, one, events, move=1.0, first=30, beyond=30 + num)
        answer = one.of_series(1, 0)
        assert answer is not None
        assert answer[0] == num
        values.append(answer[1].value)
    assert 0.0 < values[0] < 0.5
    assert values[1] > 0.85


def test_the_variance_that_grows_with_the_size_is_found():
    events = releases(500)
    table, _, one = opened(events)
    simulate(table, one, events, move=0.0, grows=0.3)
    _, variance = one.of_class(0, 0, 0)
    assert variance.value == pytest.approx(np.exp(0.6), rel=0.2)
    table, _, flat = opened(events)
    simulate(table, flat, events, move=0.0)
    assert flat.of_class(0, 0, 0)[1].low < 1.0 < flat.of_class(0, 0, 0)[1].high


def test_an_actual_that_came_after_the_bar_teaches_nothing_but_is_seen():
    events = [msgspec.structs.replace(one, actual_known_ns=one.time_ns + 2 * HOUR_NS) for one in releases(20)]
    table, _, one = opened(events)
    simulate(table, one, events, move=1.0)
    assert one.of_series(0, 0) is None
    assert one.seen(0, 0, 0) == 20


def test_a_bar_without_a_forecast_teaches_nothing():
    events = releases(20)
    table, _, one = opened(events)
    one.learn(
        ClosedBar(ROWS, np.array([10]), table.kind[[10]], np.full(3, np.nan), events[10].time_ns + HOUR_NS)
    )
    assert one.of_series(0, 0) is None


def test_two_figures_of_one_bar_share_its_move():
    both = [
        one
        for event in releases(300)
        for one in (
            event,
            ScheduledEvent(time_ns=event.time_ns, kind="us_unemployment_rate", name="Unemployment Rate", currency="USD",
                           actual=4.0 + 0.1 * np.sin(event.time_ns), forecast=4.0),
        )
    ]  # fmt: skip
    table, effects, one = opened(both)
    rng = np.random.default_rng(3)
    for event in both[::2]:
        places = np.flatnonzero(table.time_ns == event.time_ns)
        assert event.actual is not None
        move = 0.8 * (event.actual - 100.0) / 50.0
        sigmas = move * np.array([-1.0, 1.0, 0.0]) + rng.standard_normal(3)
        one.learn(ClosedBar(ROWS, places, table.kind[places], sigmas, event.time_ns + HOUR_NS))
    payrolls, rate = (one.of_class(0, effects.kinds.index(kind), 0)[0] for kind in effects.kinds)
    assert payrolls.value > 0.65
    assert abs(rate.value) < 0.15


def test_it_goes_on_bit_for_bit_after_a_restore():
    events = releases(60)
    table, _, whole = opened(events)
    simulate(table, whole, events, move=0.5)
    table, _, first = opened(events)
    simulate(table, first, events, move=0.5, beyond=30)
    _, _, second = opened(events)
    second.restore(first.state())
    simulate(table, second, events, move=0.5, first=30)
    assert [second.of_series(row, 0) for row in range(3)] == [whole.of_series(row, 0) for row in range(3)]
    for part in ("own", "pool"):
        for name, column in whole.state()[part].items():
            assert (second.state()[part][name] == column).all()


def test_a_calendar_of_other_kinds_takes_what_it_shares():
    events = releases(60)
    table, _, first = opened(events)
    simulate(table, first, events, move=0.5)
    more = [*events, ScheduledEvent(time_ns=NS_PER_DAY, kind="ecb_decision", name="ECB", currency="EUR")]
    _, effects, other = opened(more)
    other.restore(first.state())
    kind = effects.kinds.index("us_payrolls")
    assert other.of_class(0, kind, 0) == first.of_class(0, 0, 0)


def test_facts_name_the_series_that_the_event_concerns():
    events = releases(60)
    table, effects, one = opened(events)
    simulate(table, one, events, move=0.9)
    (fact,) = event_facts(effects, one, table.kinds, NAMES)
    assert (fact.kind, fact.num_seen, fact.length_ns) == ("us_payrolls", 60, HOUR_NS)
    assert fact.prior_factor == fact.learnt_factor > 1.0  # the factor is learnt elsewhere
    assert {series.series for series in fact.series} == {"EURUSD/1h", "USDJPY/1h"}
