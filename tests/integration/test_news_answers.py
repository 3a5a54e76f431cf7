"""Decisions between two bars on the main path: numbers that follow, checked records, bars that go on as before.

The shipped encoder scores the news; no model reads it.
"""

import dataclasses
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from htfi.domain.decision import Decision, NewsTrigger, TriggerItem, encode_decision
from htfi.domain.events import Bar, FeedItem, News, Quote, Trade
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.forecasting.between_bars import remaining_ticks
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.audit.triggers import TriggerAuditor
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.news_triggers import NewsTriggers
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.pipeline.run_state import decode_state, encode_state
from htfi.wiring.settings import load_settings, override
from memory_run import MemoryLedger, loop_over

START_NS = 15_000 * NS_PER_DAY
NUM_DAYS = 45
TEXTS = (
    "Acme cuts its full-year profit guidance after weak sales",
    "Acme wins a record order worth 4 billion dollars",
    "Acme files for bankruptcy protection",
    "Regulator fines Acme 900 million dollars",
    "Acme recalls two million cars",
    "Acme doubles its dividend after record earnings",
)
SETTINGS = override(load_settings(environment={}), "encoding", model="heads")
OFF = override(SETTINGS, "triggers", enabled=False)


def days(symbols: Sequence[str] = ("A", "B")) -> list[FeedItem]:
    found: list[FeedItem] = []
    for day in range(NUM_DAYS):
        end_ns = START_NS + day * NS_PER_DAY
        for place, symbol in enumerate(symbols):
            close, row = 100.0 + (day * 7919 % 13) / 10 + place, day * len(symbols) + place + 1
            span = (end_ns - NS_PER_DAY, end_ns)
            found.append(
                Bar(end_ns, end_ns, "bars", row, symbol, "1d", *span, close, close + 1.0, close - 1.0, close)
            )
    return found


def item(row: int, day: int, seconds: float, text: str, symbols: tuple[str, ...] = ("A",)) -> News:
    at_ns = START_NS + day * NS_PER_DAY + round(seconds * NS_PER_S)
    return News(at_ns, at_ns, "wire", row, f"n{row}", text, symbols)


NEWS = [item(row + 1, 34 + row, 7_200.0, text) for row, text in enumerate(TEXTS)]


def ordered(*parts: Sequence[FeedItem]) -> list[FeedItem]:
    return sorted((one for part in parts for one in part), key=lambda one: one.available_at_ns)


def run(items: Sequence[FeedItem], made=SETTINGS) -> tuple[DecisionLoop, MemoryLedger]:
    loop, ledger, _ = loop_over(items, settings=made)
    loop.run(lambda: None)
    return loop, ledger


def decisions(ledger: MemoryLedger) -> list[Decision]:
    return [decode_entry(entry) for entry in ledger.entries]


def trigger_of(decision: Decision) -> NewsTrigger:
    assert isinstance(decision.news_trigger, NewsTrigger)
    return decision.news_trigger


@pytest.fixture(scope="module")
def whole() -> tuple[DecisionLoop, MemoryLedger]:
    return run(ordered(days(), NEWS))


def problems(entries: Sequence[bytes]) -> list[str]:
    """What an auditor finds in all of them."""
    amendments, triggers = (
        AmendmentAuditor(entries.__getitem__),
        TriggerAuditor(SETTINGS.triggers, entries.__getitem__),
    )
    found: list[str] = []
    for entry in entries:
        digest = decode_entry(entry).settings_digest
        found += check_entry(
            entry,
            digest,
            SETTINGS.policy,
            amendments,
            SETTINGS.routing,
            SETTINGS.suspicion,
            None,
            SETTINGS.sanitiser,
            SETTINGS.scheduling,
            triggers,
        )
    return found


def test_decisions_on_bars_forecast_and_learn_as_if_nothing_had_been_answered(
    whole: tuple[DecisionLoop, MemoryLedger],
) -> None:
    loop, ledger = whole
    plain_loop, plain = run(ordered(days(), NEWS), OFF)
    on_bars = [one for one in decisions(ledger) if not one.is_between_bars]
    assert len(decisions(ledger)) - len(on_bars) == loop.triggers.num_decided >= 4
    expected = decisions(plain)
    assert len(on_bars) == len(expected) > 40
    for one, other in zip(on_bars, expected, strict=True):
        assert one.forecast == other.forecast
        assert (one.id, one.features, one.regime) == (other.id, other.features, other.regime)
        assert (one.rationale, one.verdict) == (other.rationale, other.verdict)
    assert loop.components.forecaster.scores() == plain_loop.components.forecaster.scores()
    assert loop.components.forecaster.track_records() == plain_loop.components.forecaster.track_records()


def test_all_of_it_is_derived_again(whole: tuple[DecisionLoop, MemoryLedger]) -> None:
    assert problems(whole[1].entries) == []


Change = Callable[[Decision], Decision]


def with_trigger(**changes: object) -> Change:
    return lambda one: replace(one, news_trigger=replace(trigger_of(one), **changes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_trigger(replaces="A/1d@never"), "it replaces A/1d@never"),
        (with_trigger(elapsed_bars=0.5), "the part of the bar that had passed"),
        (with_trigger(items=()), "it answers no news"),
        (
            lambda one: with_trigger(items=(TriggerItem(trigger_of(one).items[0].id, ("gossip",)),))(one),
            "why n",
        ),
        (lambda one: replace(one, id=one.id.removesuffix("/news")), "not named after"),
        (lambda one: replace(one, models=one.models | {"triggers": "triggers/0"}), "rules other than"),
        (
            lambda one: replace(one, forecast=replace(one.forecast, calibration=[2.0, 2.0, 2.0])),
            "numbers do not",
        ),
    ],
)
def test_an_answer_that_does_not_follow_is_found(
    whole: tuple[DecisionLoop, MemoryLedger], change: Change, words: str
) -> None:
    entries = list(whole[1].entries)
    place = next(place for place, one in enumerate(decisions(whole[1])) if one.is_between_bars)
    entries[place] = encode_decision(change(decode_entry(entries[place])))
    assert any(words in problem for problem in problems(entries)), problems(entries)


def test_answers_in_too_quick_a_succession_are_found(whole: tuple[DecisionLoop, MemoryLedger]) -> None:
    entries = whole[1].entries
    strict = dataclasses.replace(SETTINGS.triggers, min_interval_s=86_400.0, max_per_hour=1)
    auditor = TriggerAuditor(strict, entries.__getitem__)
    one = next(one for one in decisions(whole[1]) if one.is_between_bars)
    found = [problem for entry in entries for problem in auditor.problems(decode_entry(entry))]
    assert found == []  # a day apart
    again = auditor.problems(replace(one, as_of_ns=one.as_of_ns + 40 * NS_PER_DAY))
    later = auditor.problems(replace(one, as_of_ns=one.as_of_ns + 40 * NS_PER_DAY + NS_PER_S))
    assert not any("minimum interval" in problem for problem in again)
    assert any("minimum interval" in problem for problem in later)
    assert any("in one hour" in problem for problem in later)
    without = replace(one, trigger=decisions(whole[1])[0].trigger)
    assert auditor.problems(without) == ["what triggered it is recorded in part"]


@pytest.mark.parametrize("cut", [3, 5, 8])
def test_a_run_that_goes_on_from_any_saved_state_makes_the_same_entries(
    whole: tuple[DecisionLoop, MemoryLedger], cut: int
) -> None:
    items = ordered(days(), NEWS)
    places = [place for place, one in enumerate(items) if isinstance(one, News)]
    stop = places[cut % len(places)] + 1  # right after an item, which is not judged yet
    first, ledger, _ = loop_over(items, settings=SETTINGS)
    for one in items[:stop]:
        first.step(one)
    first.recorder.commit(now=True)
    saved = decode_state(encode_state(first.state()))
    second, rest, _ = loop_over(items[stop:], settings=SETTINGS)
    rest.entries = list(ledger.entries)
    second.restore(saved)
    second.run(lambda: None)
    assert rest.entries == whole[1].entries


# --- ticks


def minutes() -> list[FeedItem]:
    """Trades and quotes of one symbol, some each minute."""
    found: list[FeedItem] = []
    for place in range(60 * 12):
        at_ns = START_NS + place * 5 * NS_PER_S + 1
        price = 100.0 + (place * 7919 % 37) / 50
        found.append(Trade(at_ns, at_ns, "trades", place + 1, "A", price, 1.0))
        found.append(
            Quote(at_ns + 2, at_ns + 2, "quotes", place + 1, "A", price - 0.01, 100.0, price + 0.01, 100.0)
        )
    return found


def test_between_bars_of_ticks_a_forecast_starts_from_the_last_price_and_spreads_less() -> None:
    news = News(START_NS + 3_045 * NS_PER_S, START_NS + 3_045 * NS_PER_S, "wire", 1, "n1", TEXTS[0], ("A",))
    _, ledger = run(ordered(minutes(), [news]))
    (answer,) = (one for one in decisions(ledger) if one.is_between_bars)
    standing = next(one for one in decisions(ledger) if one.id == trigger_of(answer).replaces)
    assert answer.circumstances.bar_end_ns == START_NS + 3_000 * NS_PER_S
    assert trigger_of(answer).elapsed_bars == 0.75
    newest = max(one.available_at_ns for one in minutes() if one.available_at_ns <= news.available_at_ns)
    (mid,) = (
        (one.bid + one.ask) / 2
        for one in minutes()
        if isinstance(one, Quote) and one.available_at_ns == newest
    )
    assert answer.last_price == mid != standing.last_price
    for name, ticks in standing.forecast.expert_ticks.items():
        assert answer.forecast.expert_ticks[name] == remaining_ticks(ticks, 0.75, answer.forecast.horizons)
    low, high = answer.forecast.central_band
    before_low, before_high = standing.forecast.central_band
    assert high - low == pytest.approx(0.5 * (before_high - before_low), rel=1e-3)
    assert problems(ledger.entries) == []


def test_news_at_the_very_instant_of_a_close_is_in_its_decision_and_is_not_answered_again() -> None:
    _, ledger = run(ordered(days(), [item(1, 40, 0.0, TEXTS[0])]))
    found = decisions(ledger)
    assert not any(one.is_between_bars for one in found)
    decided = next(one for one in found if one.as_of_ns == START_NS + 40 * NS_PER_DAY and one.symbol == "A")
    assert decided.rationale.cited == ["n1"]


# --- switched off


class NoTriggers(NewsTriggers):
    """What the loop did before there were triggers: nothing."""

    def receive(self, screened, can_move) -> None: ...

    def note_standing(self, series, bar, as_of_ns) -> None: ...


@settings(max_examples=4, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(30, NUM_DAYS - 2),
            st.integers(0, 86_399),
            st.sampled_from(TEXTS),
            st.sampled_from([("A",), ("B",), ("A", "B"), (), ("Z",)]),
        ),
        max_size=8,
    )
)
def test_a_run_whose_triggers_are_off_makes_the_bytes_of_one_without_any(drawn) -> None:
    news = [
        item(row + 1, day, float(at_s), text, about) for row, (day, at_s, text, about) in enumerate(drawn)
    ]
    items = ordered(days(), news)
    _, ledger = run(items, OFF)
    loop, expected, _ = loop_over(items, settings=OFF)
    loop.triggers = NoTriggers(loop.context.triggers)
    loop.run(lambda: None)
    assert ledger.entries == expected.entries
    assert len(expected.entries) > 40
    aside = [replace(one, symbols=()) for one in news]
    _, on = run(ordered(days(), aside))
    _, off = run(ordered(days(), aside), OFF)
    digest = decode_entry(on.entries[0]).settings_digest
    assert on.entries == [
        encode_entry(replace(decode_entry(entry), settings_digest=digest)) for entry in off.entries
    ]
