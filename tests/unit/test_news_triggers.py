"""Which news is answered between two bars, when, and what the quiet rules leave to the bars."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from htfi.domain.decision import decision_id
from htfi.domain.errors import InvalidInput
from htfi.domain.events import Bar, News, Trade
from htfi.domain.news import NewsScores, Route, ScreenedItem, Screening
from htfi.domain.time import NS_PER_DAY, NS_PER_MS, NS_PER_S
from htfi.forecasting.between_bars import remaining_spread
from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from htfi.narrative.config import TriggersConfig
from htfi.narrative.recent_news import NewsRecord
from htfi.narrative.triggering import reasons_to_decide
from htfi.pipeline.news_triggers import NEVER_NS, AnsweredSeries, NewsTriggers
from htfi.wiring.settings import Settings, decode_settings, encode_settings, override

START_NS = 20_000 * NS_PER_DAY
STRONG = NewsScores(-0.9, 0.0, "earnings", 0.8, 0.9, 0.9, (), "encoder")
CONFIG = TriggersConfig()


def record(
    name: str = "n1",
    at_ns: int = START_NS,
    symbols: tuple[str, ...] = ("A",),
    scores: NewsScores | None = STRONG,
) -> NewsRecord:
    item = News(at_ns, at_ns, "wire", 1, name, "Acme cuts its forecast", symbols)
    screened = ScreenedItem(item, Screening.PASS, 1.0, (), name)
    return NewsRecord(screened, scores, Route.TARGET, "", 1.0, ())


# --- what matters


def test_an_item_matters_by_its_event_or_its_sentiment_with_the_reasons_in_words() -> None:
    assert reasons_to_decide(record(), "A", None, CONFIG) == ("event earnings 0.80", "sentiment -0.90")
    mild = replace(STRONG, sentiment=0.1)
    assert reasons_to_decide(record(scores=mild), "A", None, CONFIG) == ("event earnings 0.80",)
    assert reasons_to_decide(record(scores=replace(mild, event="none")), "A", None, CONFIG) == ()
    assert reasons_to_decide(record(scores=replace(mild, event_confidence=0.5)), "A", None, CONFIG) == ()


def test_a_stance_matters_of_central_banks_alone() -> None:
    stance = replace(STRONG, sentiment=0.0, event_confidence=0.1, stance=0.7)
    assert reasons_to_decide(record(scores=stance), "A", None, CONFIG) == ()
    bank = replace(stance, event="central_bank")
    assert reasons_to_decide(record(scores=bank), "A", None, CONFIG) == ("stance +0.70",)


@pytest.mark.parametrize(
    "changes",
    [
        {"most": Route.TEMPLATE},
        {"scores": None},
        {"scores": replace(STRONG, encoder="")},
        {"scores": replace(STRONG, relevance=0.4)},
        {"scores": replace(STRONG, novelty=0.1)},
        {"screened": replace(record().screened, verdict=Screening.DISCOUNT)},
        {"screened": replace(record().screened, verdict=Screening.QUARANTINE)},
        {"screened": replace(record().screened, cluster="earlier")},
        {"screened": replace(record().screened, item=replace(record().screened.item, symbols=()))},
        {"screened": replace(record().screened, item=replace(record().screened.item, symbols=("B",)))},
    ],
)
def test_what_is_set_aside_repeated_weak_or_of_another_symbol_does_not_matter(
    changes: dict[str, Any],
) -> None:
    assert reasons_to_decide(replace(record(), **changes), "A", None, CONFIG) == ()


# --- when it is answered


@dataclass
class Processor:
    """Knows the items that it was given; suspects what it is told to."""

    held: dict[str, NewsRecord] = field(default_factory=dict)
    suspected: str = ""
    num_asked: int = 0

    def records(self, names: Sequence[str]) -> dict[str, NewsRecord]:
        self.num_asked += 1
        return {name: self.held[name] for name in names if name in self.held}

    def reading(self, record: Any, symbol: str) -> None:
        """No facts are read here."""

    @property
    def suspicion_monitor(self) -> Any:
        return SimpleNamespace(suspicion=lambda symbol, _: "pumps" if symbol == self.suspected else "")


class Wire:
    """Drives triggers as the loop does: an item comes, time passes, what is due is decided."""

    def __init__(self, **settings: Any) -> None:
        self.config = TriggersConfig(**settings)
        self.triggers = NewsTriggers(self.config)
        self.news = Processor()
        self.market = MarketState(MarketConfig())
        self.answers: list[tuple[int, AnsweredSeries]] = []
        self.num = 0

    def close(self, symbol: str = "A", at_ns: int = START_NS, interval: str = "1d") -> None:
        self.pass_time(at_ns + 1)
        length_ns = NS_PER_DAY if interval == "1d" else 60 * NS_PER_S
        bar = Bar(
            at_ns, at_ns, "bars", 1, symbol, interval, at_ns - length_ns, at_ns, 99.0, 101.0, 98.0, 100.0
        )
        self.triggers.note_standing([f"{symbol}/{interval}"], [bar], at_ns)

    def item(self, at_ns: int, symbols: tuple[str, ...] = ("A",), **changes: Any) -> str:
        self.pass_time(at_ns)
        self.num += 1
        name = f"n{self.num}"
        self.news.held[name] = replace(record(name, at_ns, symbols), **changes)
        self.triggers.receive(self.news.held[name].screened, lambda _: True)
        return name

    def pass_time(self, to_ns: int) -> None:
        while (at_ns := self.triggers.next_ns) < to_ns:
            if not self.triggers.judge(self.news):  # type: ignore[arg-type]
                continue
            for one in self.triggers.take_due(at_ns, self.news, self.market):  # type: ignore[arg-type]
                self.answers.append((at_ns, one))
                series = f"{one.bar.symbol}/{one.bar.interval}"
                self.triggers.note_decided(SimpleNamespace(series=series, as_of_ns=at_ns))  # type: ignore[arg-type]

    def answered(self) -> list[tuple[float, str, tuple[str, ...]]]:
        """Seconds since the first close, symbol and items of each answer."""
        return [
            ((at_ns - START_NS) / NS_PER_S, one.bar.symbol, tuple(item.id for item in one.trigger.items))
            for at_ns, one in self.answers
        ]


def test_items_of_one_instant_make_one_decision_of_each_series_once_it_has_passed() -> None:
    wire = Wire()
    wire.close("A")
    wire.close("B")
    at_ns = START_NS + 3600 * NS_PER_S
    wire.item(at_ns, ("A", "B"))
    wire.item(at_ns)
    wire.pass_time(at_ns)
    assert wire.answers == []  # more may come of this instant
    wire.pass_time(at_ns + 1)
    assert wire.answered() == [(3600.0, "A", ("n1", "n2")), (3600.0, "B", ("n1",))]
    assert wire.answers[0][1].trigger.replaces == decision_id("A/1d", START_NS)
    assert wire.triggers.next_ns == NEVER_NS


def test_nothing_is_answered_or_scored_before_a_series_has_a_decision() -> None:
    wire = Wire()
    wire.item(START_NS - NS_PER_S)
    wire.close("A")
    wire.item(START_NS + NS_PER_S, ("Z",))
    wire.pass_time(START_NS + NS_PER_DAY)
    assert wire.answers == []
    assert wire.news.num_asked == 0


def test_a_second_item_waits_for_the_end_of_the_quiet_interval() -> None:
    wire = Wire(min_interval_s=30.0)
    wire.close()
    for seconds in (1, 2, 9, 40):
        wire.item(START_NS + seconds * NS_PER_S)
    wire.pass_time(START_NS + 3600 * NS_PER_S)
    assert wire.answered() == [(1.0, "A", ("n1",)), (31.0, "A", ("n2", "n3")), (61.0, "A", ("n4",))]


def test_a_moment_lets_the_first_item_wait_for_others() -> None:
    wire = Wire(moment_ms=1_000.0)
    wire.close()
    wire.item(START_NS + NS_PER_S)
    wire.item(START_NS + NS_PER_S + 400 * NS_PER_MS)
    wire.pass_time(START_NS + 60 * NS_PER_S)
    assert wire.answered() == [(2.0, "A", ("n1", "n2"))]


def test_a_bar_that_closes_first_answers_what_waits() -> None:
    wire = Wire(min_interval_s=7_200.0)
    wire.close()
    wire.item(START_NS + 10 * NS_PER_S)
    wire.item(START_NS + 20 * NS_PER_S)
    wire.pass_time(START_NS + 40 * NS_PER_S)
    wire.close(at_ns=START_NS + 60 * NS_PER_S)
    wire.pass_time(START_NS + NS_PER_DAY)
    assert wire.answered() == [(10.0, "A", ("n1",))]


def test_a_flood_is_judged_in_batches_and_makes_few_decisions() -> None:
    wire = Wire(min_interval_s=30.0)
    wire.close()
    for place in range(1_000):
        wire.item(START_NS + (1 + place * 60 // 1_000) * NS_PER_S + place)
    wire.pass_time(START_NS + 3600 * NS_PER_S)
    assert [round(at_s) for at_s, *_ in wire.answered()] == [1, 31, 61]
    assert wire.news.num_asked < 20
    assert sum(wire.triggers.suppressed.values()) == 0


def test_the_budget_of_an_hour_leaves_the_rest_to_the_bars_and_counts_it() -> None:
    wire = Wire(max_per_hour=2, min_interval_s=1.0)
    for symbol in "ABC":
        wire.close(symbol)
    for seconds, symbol in ((10, "A"), (20, "B"), (30, "C"), (40, "C"), (3_700, "C")):
        wire.item(START_NS + seconds * NS_PER_S, (symbol,))
    wire.pass_time(START_NS + NS_PER_DAY)
    assert [(at_s, symbol) for at_s, symbol, _ in wire.answered()] == [
        (10.0, "A"),
        (20.0, "B"),
        (3700.0, "C"),
    ]
    assert wire.triggers.suppressed == {"budget": 2}
    assert [one.trigger.num_suppressed for _, one in wire.answers] == [0, 0, 2]


def test_under_suspicion_and_on_prices_that_stopped_nothing_is_answered() -> None:
    wire = Wire()
    wire.close("A")
    wire.close("B")
    wire.news.suspected = "A"
    wire.item(START_NS + NS_PER_S)
    wire.pass_time(START_NS + 60 * NS_PER_S)
    assert wire.triggers.suppressed == {"suspicion": 1}
    wire.item(START_NS + 7 * NS_PER_DAY, ("B",))
    wire.pass_time(START_NS + 7 * NS_PER_DAY + 1)
    assert wire.answered() == [(7.0 * 86_400, "B", ("n2",))]
    wire.item(START_NS + 8 * NS_PER_DAY, ("B",))
    wire.pass_time(START_NS + 9 * NS_PER_DAY)
    assert wire.triggers.suppressed == {"suspicion": 1, "old price": 1}


def test_an_item_that_is_taken_back_while_it_waits_is_not_answered() -> None:
    wire = Wire(min_interval_s=30.0)
    wire.close()
    wire.item(START_NS + NS_PER_S)
    gone = wire.item(START_NS + 2 * NS_PER_S)
    wire.pass_time(START_NS + 3 * NS_PER_S)
    del wire.news.held[gone]
    wire.pass_time(START_NS + 3600 * NS_PER_S)
    assert wire.answered() == [(1.0, "A", ("n1",))]


def test_switched_off_nothing_is_kept_and_nothing_answered() -> None:
    wire = Wire(enabled=False)
    wire.close()
    wire.item(START_NS + NS_PER_S)
    wire.pass_time(START_NS + NS_PER_DAY)
    assert wire.answers == []
    assert wire.triggers.state()["standing"] == []


@pytest.mark.parametrize("saved_after", range(6))
def test_triggers_go_on_from_a_saved_state_as_if_they_had_never_stopped(saved_after: int) -> None:
    seconds = (1, 1, 5, 33, 34, 90)

    def run(stop: int | None) -> tuple[list[Any], dict[str, Any]]:
        wire = Wire(min_interval_s=30.0, max_per_hour=3)
        wire.close("A")
        wire.close("B")
        for place, at_s in enumerate(seconds):
            wire.item(START_NS + at_s * NS_PER_S, ("A", "B") if place % 2 else ("A",))
            if place == stop:
                saved = msgspec.msgpack.decode(msgspec.msgpack.encode(wire.triggers.state()))
                wire.triggers = NewsTriggers(wire.config)
                wire.triggers.restore(saved)
        wire.pass_time(START_NS + 3600 * NS_PER_S)
        return wire.answered(), wire.triggers.state()

    assert run(saved_after) == run(None)
    assert len(run(None)[0]) == 3


# --- from which price


def test_ticks_since_the_bar_give_the_price_and_the_part_of_it_that_has_passed() -> None:
    wire = Wire()
    wire.close("A", interval="60s")
    wire.market.observe(Trade(START_NS + 20 * NS_PER_S, START_NS, "t", 1, "A", 103.5, 1.0))
    wire.item(START_NS + 45 * NS_PER_S)
    wire.pass_time(START_NS + 46 * NS_PER_S)
    ((_, answer),) = wire.answers
    assert (answer.last_price, answer.trigger.elapsed_bars) == (103.5, 0.75)


def test_without_ticks_or_of_a_daily_bar_no_part_has_passed() -> None:
    wire = Wire()
    wire.close("A")
    wire.close("B", interval="60s")
    wire.market.observe(Trade(START_NS + 20 * NS_PER_S, START_NS, "t", 1, "A", 103.5, 1.0))
    wire.item(START_NS + 45 * NS_PER_S, ("A", "B"))
    wire.pass_time(START_NS + 46 * NS_PER_S)
    found = {one.bar.symbol: (one.last_price, one.trigger.elapsed_bars) for _, one in wire.answers}
    assert found == {"A": (103.5, 0.0), "B": (100.0, 0.0)}


def test_what_has_passed_of_a_bar_narrows_the_returns_that_are_left() -> None:
    spread = remaining_spread(np.array([0.0, 0.75, 0.99]), (1, 4))
    assert spread[0].tolist() == [1.0, 1.0]
    assert spread[1].tolist() == [0.5, np.sqrt(1 - 0.75 / 4)]
    assert spread[2, 0] == pytest.approx(np.sqrt(0.1))


# --- settings


def test_settings_at_their_defaults_leave_the_digest_as_it_was_and_others_are_recorded() -> None:
    changed = override(Settings(), "triggers", enabled=False)
    assert b"triggers" not in encode_settings(Settings())
    assert b'"triggers":{"enabled":false' in encode_settings(changed)
    assert decode_settings(encode_settings(changed)).triggers == changed.triggers
    with pytest.raises(InvalidInput, match="min_interval_s must be above 0"):
        override(Settings(), "triggers", min_interval_s=0.0)
