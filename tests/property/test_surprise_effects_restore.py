"""What is learnt of surprises goes on bit for bit from a state saved anywhere, whatever came."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from htfi.domain.scheduled_event import ScheduledEvent
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.known_variance.event_effects import EventEffects
from htfi.forecasting.known_variance.event_facts import event_facts
from htfi.forecasting.known_variance.event_table import ScheduledLines, tabulate
from htfi.forecasting.known_variance.priors import shipped
from htfi.forecasting.known_variance.surprise_effects import ClosedBar, SurpriseEffects

HOUR_NS = 3600 * NS_PER_S
SERIES = (("EURUSD", HOUR_NS), ("USDJPY", HOUR_NS), ("ABC", HOUR_NS), ("EURUSD", 2 * HOUR_NS))
KINDS = (("us_payrolls", "USD"), ("us_unemployment_rate", "USD"), ("ecb_decision", "EUR"))

Figure = st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False))
Days = st.lists(st.tuples(Figure, Figure, Figure), min_size=8, max_size=30)


def calendar(days: list[tuple[float | None, ...]]) -> list[ScheduledEvent]:
    return [
        ScheduledEvent(
            time_ns=day * NS_PER_DAY, kind=kind, name=kind, currency=currency, actual=actual, forecast=0.0
        )
        for day, actuals in enumerate(days)
        for (kind, currency), actual in zip(KINDS, actuals, strict=True)
    ]


def opened(
    table: ScheduledLines, events: list[ScheduledEvent], saved: SurpriseEffects | None = None
) -> tuple[EventEffects, SurpriseEffects]:
    effects = EventEffects(table, shipped())
    found = SurpriseEffects(effects, table, events)
    for row, (symbol, length_ns) in enumerate(SERIES):
        effects.add(row, symbol, length_ns)
        found.add(row, symbol)
    if saved is not None:
        found.restore(saved.state())
    return effects, found


@settings(max_examples=30, deadline=None)
@given(days=Days, cut=st.integers(0, 30), seed=st.integers(0, 1000))
def test_a_restored_state_goes_on_with_the_same_bits(
    days: list[tuple[float | None, ...]], cut: int, seed: int
) -> None:
    events, rng = calendar(days), np.random.default_rng(seed)
    table = tabulate(events)
    effects, whole = opened(table, events)
    _, parted = opened(table, events)
    for day in range(len(days)):
        if day == cut:
            _, parted = opened(table, events, parted)
        places = np.flatnonzero(table.time_ns == day * NS_PER_DAY)
        sigmas = 3.0 * rng.standard_t(2, len(SERIES))
        sigmas[rng.random(len(SERIES)) < 0.2] = np.nan
        bar = ClosedBar(
            np.arange(len(SERIES), dtype=np.intp),
            places,
            table.kind[places],
            sigmas,
            day * NS_PER_DAY + HOUR_NS,
        )
        for each in (whole, parted):
            each.learn(bar)
    names = [f"{symbol}/{length_ns}" for symbol, length_ns in SERIES]
    facts = event_facts(effects, whole, table.kinds, names)
    assert facts == event_facts(effects, parted, table.kinds, names)
    assert len(facts) > 0
    assert all(
        np.isfinite([*fact.surprise.move, *fact.surprise.variance]).all() for fact in facts if fact.surprise
    )
