"""The events of trials: they follow from a description alone, and are what their names say."""

import math
from typing import Any

import numpy as np
import pytest

from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, News, TimePassed
from htfi.governance.sandbox.trials import SandboxTrial, TrialFeed, TrialMarket, TrialNews
from htfi.pipeline.sandbox.trial_events import TrialEvents, disguise, make_trial_events
from htfi.wiring.sandbox.examination import recorded_attacks
from htfi_eval.eval.sanitise.recorded_attacks import recorded_items

DAY_NS = 86_400 * 10**9


def history(num: int = 200) -> list[Bar]:
    rng = np.random.default_rng(3)
    made: list[Bar] = []
    price = {"AAA": 50.0, "BBB": 2_000.0}
    for t in range(num):
        end = (15_000 + t) * DAY_NS
        shared = 0.02 * rng.normal()
        for symbol in price:
            before = price[symbol]
            price[symbol] = close = before * math.exp(shared + 0.002 * rng.normal())
            high, low = max(before, close) * 1.001, min(before, close) * 0.999
            made.append(
                Bar(
                    end + 1,
                    end,
                    "h",
                    len(made) + 1,
                    symbol,
                    "1d",
                    end - DAY_NS,
                    end,
                    before,
                    high,
                    low,
                    close,
                )
            )
    return made


def trial(**said: Any) -> SandboxTrial:
    usual: dict[str, Any] = {"name": "t", "market": TrialMarket.CALM, "seed": 5, "num_bars": 120}
    return SandboxTrial(**usual | said)


def stream(**said: Any) -> TrialEvents:
    return make_trial_events(trial(**said), history(), recorded_attacks(), 200.0)


@pytest.mark.parametrize("market", TrialMarket)
@pytest.mark.parametrize("feed", TrialFeed)
def test_same_description_gives_the_same_events(market: TrialMarket, feed: TrialFeed):
    assert stream(market=market, feed=feed) == stream(market=market, feed=feed)


@pytest.mark.parametrize("news", TrialNews)
def test_events_of_a_trial_are_usable_and_in_order(news: TrialNews):
    found = stream(news=news)
    times = [one.events[-1].available_at_ns for one in found.instants]
    assert len(times) > 100
    assert times == sorted(set(times))
    for one in found.instants:
        *events, passed = one.events
        assert isinstance(passed, TimePassed)
        assert all(event.available_at_ns < passed.available_at_ns for event in events)
        for event in events:
            if isinstance(event, Bar):
                assert (
                    0.0
                    < event.low
                    <= min(event.open, event.close)
                    <= max(event.open, event.close)
                    <= event.high
                )


def test_another_seed_gives_another_market():
    assert stream(seed=5).closes != stream(seed=6).closes


def test_closes_are_those_of_the_bars_that_each_instant_names():
    found = stream(market=TrialMarket.HISTORY)
    seen = 0
    for one in found.instants:
        bars = {f"{event.symbol}/1d": event.close for event in one.events if isinstance(event, Bar)}
        for series, place in zip(one.series, one.places, strict=True):
            assert found.closes[series][place] == bars[series]
            seen += 1
    assert seen == 2 * 120


def test_history_too_short_is_refused():
    with pytest.raises(InvalidInput, match="too short for a trial"):
        make_trial_events(trial(market=TrialMarket.HISTORY), history(30), (), 0.0)


def test_disguised_history_keeps_the_market_and_hides_the_days():
    bars = history(600)
    made = disguise(bars, np.random.Generator(np.random.PCG64(1)))
    assert len(made) == len(bars) - 2
    assert {bar.symbol for bar in made}.isdisjoint({bar.symbol for bar in bars})
    assert {bar.end_ns for bar in made}.isdisjoint({bar.end_ns for bar in bars})
    moves = {one: np.diff(np.log([bar.close for bar in made if bar.symbol == one])) for one in ("S0", "S1")}
    assert np.corrcoef(moves["S0"], moves["S1"])[0, 1] > 0.9  # they still move together
    real = np.diff(np.log([bar.close for bar in bars if bar.symbol == "AAA"]))
    aligned = min(len(real), len(moves["S0"]))
    assert abs(np.corrcoef(real[:aligned], moves["S0"][:aligned])[0, 1]) < 0.2  # and the order is another


def test_simulated_crisis_has_crashes_and_calm_has_none():
    lowest = {
        market: min(
            np.diff(np.log(closes)).min() for closes in stream(market=market, num_bars=400).closes.values()
        )
        for market in (TrialMarket.CALM, TrialMarket.CRISIS)
    }
    assert lowest[TrialMarket.CRISIS] < -0.07
    assert lowest[TrialMarket.CRISIS] < lowest[TrialMarket.CALM]


def test_true_headlines_move_the_bar_that_follows():
    plain, moved = stream(), stream(news=TrialNews.TRUE)
    assert len(moved.signs) > 20
    for (series, at), sign in moved.signs.items():
        before, after = (np.log(one.closes[series]) for one in (plain, moved))
        gained = (after[at + 1] - after[at]) - (before[at + 1] - before[at])
        assert gained == pytest.approx(0.015 * sign, abs=1e-9)


def test_poisoned_and_contradictory_news_move_nothing_of_their_own():
    true, poisoned = stream(news=TrialNews.TRUE), stream(news=TrialNews.POISONED)
    assert num_news(poisoned) > 1.5 * num_news(true)
    assert stream(news=TrialNews.CONTRADICTORY).signs == {}


def test_late_news_comes_after_the_bar_that_it_moved_began():
    late = stream(news=TrialNews.LATE)
    assert num_news(late) > 20
    assert late.signs == {}


def test_peak_load_asks_for_twice_the_peak():
    found = stream(feed=TrialFeed.PEAK)
    assert found.needed_events_per_s == 400.0
    assert sum(len(one.events) - 1 for one in found.instants if not one.series) == 2_000


def test_faulty_link_loses_and_breaks_some():
    clean, faulty = stream(num_bars=2_000), stream(num_bars=2_000, feed=TrialFeed.FAULTY)
    lost = clean.num_events - faulty.num_events
    assert 10 < lost < 100  # 1% of 4,000
    assert clean.closes == faulty.closes  # outcomes are judged by what was


def test_recorded_attacks_are_those_of_the_evaluation():
    assert list(recorded_attacks()) == recorded_items()


def test_every_class_of_attack_comes_in_the_trial():
    found = stream(news=TrialNews.ATTACKS)
    events = [event for one in found.instants for event in one.events]
    ids = {event.id.partition("/")[0] for event in events if isinstance(event, News)}
    classes = {item.id.partition("/")[0] for item in recorded_attacks()}
    assert len(classes) == 18
    assert classes <= ids


def num_news(found: TrialEvents) -> int:
    return sum(isinstance(event, News) for one in found.instants for event in one.events)
