"""The loop with hand-made ports: what is decided when, what is recorded, and in which order it leaves."""

import pytest

from htfi.domain.decision import Decision, PolicyOutcome, Receipt
from htfi.domain.errors import IntegrityError, LedgerUnavailable
from htfi.domain.events import Bar, FeedItem, News, Quote, TimePassed, Trade
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.governance.config import PolicyConfig
from htfi.governance.ledger.merkle import leaf_hash
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.loop import DecisionLoop
from htfi.pipeline.record.entry import decode_entry
from htfi.pipeline.series import split_decision_points
from htfi.wiring.settings import load_settings, override
from memory_run import MemoryLedger, loop_over

START_NS = 15_000 * NS_PER_DAY
NUM_DAYS = 40


def bar(symbol: str, day: int, close: float, row: int = 1) -> Bar:
    end_ns = START_NS + day * NS_PER_DAY
    return Bar(
        end_ns,
        end_ns,
        "bars",
        row,
        symbol,
        "1d",
        end_ns - NS_PER_DAY,
        end_ns,
        close,
        close * 1.01,
        close * 0.99,
        close,
    )


def days(*symbols: str) -> list[FeedItem]:
    return [
        bar(symbol, day, 100.0 + (day * 7919 % 13) / 10, row=day * len(symbols) + k + 1)
        for day in range(NUM_DAYS)
        for k, symbol in enumerate(symbols)
    ]


def run(loop: DecisionLoop) -> None:
    loop.run(lambda: None)


def decisions(ledger: MemoryLedger) -> list[Decision]:
    return [decode_entry(entry) for entry in ledger.entries]


def test_every_decision_is_recorded_before_it_is_released() -> None:
    loop, ledger, outlet = loop_over(days("A", "B"))
    run(loop)
    log = ledger.log
    assert ledger.size == outlet.num_released > 0
    for index in range(ledger.size):
        assert log.index(f"record {index}") < log.index(f"release {index}")
    assert len(set(log)) == len(log)


def test_a_subscriber_gets_what_is_released_before_the_sink_and_nothing_that_is_withheld() -> None:
    settings = override(load_settings(environment={}), "policy", restricted_symbols=("B",))
    loop, ledger, _ = loop_over(days("A", "B"), settings=settings)
    got: list[tuple[Receipt, DecidedSeries]] = []

    def subscribe(receipt: Receipt, decided: DecidedSeries) -> None:
        got.append((receipt, decided))
        ledger.log.append(f"subscriber {receipt.index}")

    watched: list[DecidedSeries] = []
    loop.recorder.subscriber, loop.recorder.watcher = subscribe, watched.append
    run(loop)
    found = decisions(ledger)
    assert {one.verdict.outcome is PolicyOutcome.WITHHOLD for one in found} == {True, False}
    assert [receipt.index for receipt, _ in got] == [
        index for index, one in enumerate(found) if one.verdict.outcome is not PolicyOutcome.WITHHOLD
    ]
    for receipt, decided in got:
        whole = found[receipt.index]
        assert receipt.leaf_hash == leaf_hash(ledger.entries[receipt.index]).hex()
        assert (decided.series, decided.last_price, decided.verdict) == (
            whole.series, whole.last_price, whole.verdict,
        )  # fmt: skip
        assert decided.quantiles.tolist() == whole.forecast.quantiles
        assert not decided.decision.rationale.text
        assert decided.worded() == whole
        order = [ledger.log.index(f"{act} {receipt.index}") for act in ("record", "subscriber", "release")]
        assert order == sorted(order)
    assert [one.worded() for one in watched] == found


@pytest.mark.parametrize("num_kept", [0, 7, NUM_DAYS // 2])
def test_a_subscriber_of_a_run_that_goes_on_gets_each_decision_once_from_its_index_on(num_kept: int) -> None:
    whole, expected, _ = loop_over(days("A", "B"))
    run(whole)
    loop, ledger, outlet = loop_over(days("A", "B"))
    ledger.entries = expected.entries[:num_kept]  # what a killed run had recorded: this one makes it again
    got: list[tuple[Receipt, DecidedSeries]] = []
    loop.recorder.subscriber = lambda receipt, decided: got.append((receipt, decided))
    loop.recorder.catch_up(3)
    run(loop)
    first = min(3, num_kept)
    assert [receipt.index for receipt, _ in got] == list(range(first, len(expected.entries)))
    assert [decided.worded() for _, decided in got] == decisions(expected)[first:]
    assert [receipt.leaf_hash for receipt, _ in got] == [
        receipt.leaf_hash for receipt, _ in outlet.released[first:]
    ]


def test_series_that_close_together_share_their_moment_and_inputs() -> None:
    loop, ledger, _ = loop_over(days("A", "B"))
    run(loop)
    found = decisions(ledger)
    first, second = found[0], found[1]
    assert (first.symbol, second.symbol) == ("A", "B")
    assert first.as_of_ns == second.as_of_ns
    assert first.inputs == second.inputs


def test_news_known_at_the_bars_instant_is_cited_and_later_news_is_not() -> None:
    items = days("A")
    at_ns = items[30].available_at_ns
    on_time = News(at_ns, at_ns, "wire", 1, "n1", "Fed cuts rates by half a point", ("A",))
    late = News(at_ns + 1, at_ns + 1, "wire", 2, "n2", "Oil jumps after a refinery fire", ("A",))
    loop, ledger, _ = loop_over(sorted([*items, on_time, late], key=lambda item: item.available_at_ns))
    run(loop)
    decided = next(decision for decision in decisions(ledger) if decision.as_of_ns == at_ns)
    assert decided.rationale.cited == ["n1"]


def test_a_tick_at_the_very_end_of_a_bar_belongs_to_the_next() -> None:
    settings_bar_ns = 60 * NS_PER_S
    items: list[FeedItem] = [
        Trade(
            START_NS + k * settings_bar_ns,
            START_NS + k * settings_bar_ns,
            "t",
            k + 1,
            "A",
            100.0 + k % 3,
            1.0,
        )
        for k in range(60)
    ]
    loop, ledger, _ = loop_over(items)
    run(loop)
    last = decisions(ledger)[-1]
    assert last.as_of_ns == items[-1].available_at_ns
    assert last.last_price == items[-2].price  # type: ignore[union-attr]


def test_silence_of_a_live_feed_closes_bars_and_releases() -> None:
    items: list[FeedItem] = [
        Trade(
            START_NS + k * 60 * NS_PER_S + 5,
            START_NS + k * 60 * NS_PER_S + 5,
            "t",
            k + 1,
            "A",
            100.0 + k % 3,
            1.0,
        )
        for k in range(40)
    ]
    loop, ledger, outlet = loop_over([*items, TimePassed(START_NS + 40 * 60 * NS_PER_S)], group_ms=3.6e6)
    run(loop)
    assert decisions(ledger)[-1].as_of_ns == START_NS + 40 * 60 * NS_PER_S
    assert outlet.num_released == ledger.size


def test_a_group_waits_for_its_time_and_leaves_whole_at_the_end() -> None:
    loop, ledger, outlet = loop_over(days("A"), group_ms=3.6e6)
    for item in loop.feed:
        loop.step(item)
    assert ledger.size == 0
    loop.recorder.commit(now=True)
    assert ledger.size == outlet.num_released > 0


def test_a_full_ledger_stops_the_run_and_nothing_is_released() -> None:
    loop, ledger, outlet = loop_over(days("A"))
    ledger.full = True
    with pytest.raises(LedgerUnavailable, match="none was released unrecorded"):
        run(loop)
    assert outlet.num_released == 0


def test_recorded_but_unreleased_decisions_are_released_first_on_the_next_start() -> None:
    loop, ledger, outlet = loop_over(days("A"))
    run(loop)
    kept = outlet.released[:3]
    again, second_ledger, second_outlet = loop_over(days("A"))
    second_ledger.entries, second_outlet.released = list(ledger.entries), list(kept)
    run(again)
    assert [receipt.index for receipt, _ in second_outlet.released] == list(range(ledger.size))
    assert second_ledger.entries == ledger.entries
    assert not any(line.startswith("record") for line in second_ledger.log)


def test_a_decision_that_comes_out_differently_from_the_ledger_is_refused() -> None:
    loop, ledger, outlet = loop_over(days("A"))
    run(loop)
    again, second_ledger, second_outlet = loop_over(days("A")[1:])
    second_ledger.entries, second_outlet.released = ledger.entries, outlet.released
    with pytest.raises(IntegrityError, match="differs from its entry"):
        run(again)


def test_more_released_than_recorded_is_refused() -> None:
    loop, ledger, outlet = loop_over(days("A"))
    run(loop)
    again, _, second_outlet = loop_over(days("A"))
    second_outlet.released = outlet.released
    with pytest.raises(IntegrityError, match="holds only 0"):
        run(again)
    assert ledger.size > 0


def test_stopping_leaves_the_last_moment_open_for_the_next_start() -> None:
    items = days("A")
    whole, whole_ledger, _ = loop_over(items)
    run(whole)
    loop, ledger, _ = loop_over(items)
    num_items = 0

    def stop_midway() -> None:
        nonlocal num_items
        num_items += 1
        if num_items == 30:
            loop.stop()

    loop.run(stop_midway)
    state = loop.state()
    rest, rest_ledger, rest_outlet = loop_over(items[30:])
    rest_ledger.entries = list(ledger.entries)
    rest_outlet.released = [(Receipt(k, ""), entry) for k, entry in enumerate(ledger.entries)]
    rest.restore(state)
    run(rest)
    assert 0 < ledger.size < whole_ledger.size
    assert rest_ledger.entries == whole_ledger.entries


def test_a_restored_loop_still_knows_how_many_decisions_were_withheld() -> None:
    loop, ledger, _ = loop_over(days("A"))
    loop.components.governance.policy = PolicyConfig(restricted_symbols=("A",))
    run(loop)
    again, _, _ = loop_over([])
    again.restore(loop.state())
    assert again.recorder.num_withheld == ledger.size > 0


def test_moments_go_by_instant_and_split_a_series_that_closes_twice() -> None:
    bars = [bar("A", 2, 1.0), bar("B", 1, 2.0), bar("A", 1, 3.0), bar("A", 1, 4.0)]
    moments = list(split_decision_points(bars))
    assert [
        (moment.as_of_ns // NS_PER_DAY - 15_000, [b.symbol for b in moment.bars]) for moment in moments
    ] == [
        (1, ["B", "A"]),
        (1, ["A"]),
        (2, ["A"]),
    ]


def ticks(last_price: float, last_mid: float) -> list[FeedItem]:
    """A quiet series of minute bars with quotes, whose last bar ends at another price."""
    items: list[FeedItem] = []
    for k in range(40):
        at_ns, price = START_NS + k * 60 * NS_PER_S, 100.0 + k % 3 / 10
        price, mid = (last_price, last_mid) if k == 38 else (price, price)
        items += [
            Trade(at_ns + 1, at_ns + 1, "t", 2 * k + 1, "A", price, 1.0),
            Quote(at_ns + 2, at_ns + 2, "q", 2 * k + 2, "A", mid - 0.01, 9.0, mid + 0.01, 9.0),
        ]
    return items


@pytest.mark.parametrize(
    ("mid", "outcome"), [(150.0, PolicyOutcome.CAUTION), (100.0, PolicyOutcome.WITHHOLD)]
)
def test_a_jump_is_withheld_unless_the_quotes_have_followed_it(mid: float, outcome: PolicyOutcome) -> None:
    loop, ledger, _ = loop_over(ticks(150.0, mid))
    run(loop)
    jumped = decisions(ledger)[-1]
    assert jumped.features["return_last"] > 0.2
    assert jumped.circumstances.quote_mid == pytest.approx(mid)
    assert jumped.verdict.outcome is outcome
    assert any(reason.startswith("price-jump") for reason in jumped.verdict.reasons) is (mid == 100.0)
