"""A burst of news, 500 symbols in one second: rungs fall and rise again, the deadline holds, the record says why."""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest

from examples import one_in_eight
from htfi.domain.decision import Decision, encode_decision
from htfi.domain.events import Bar, FeedItem, News
from htfi.domain.news_view import NewsView
from htfi.domain.plan import LadderInputs, PlanReason, Rung
from htfi.domain.time import NS_PER_MS, NS_PER_S
from htfi.narrative.question import Question
from htfi.narrative.readers import TemplateReader
from htfi.pipeline.audit.recompute import AmendmentAuditor, check_entry
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import Settings, load_settings, override
from late_network import START_NS, ListFeed, ListOutlet, told

BAR_NS = 60 * NS_PER_S
NUM_SYMBOLS, HISTORY, BURST, NUM_BARS = 500, 6, 7, 11
FEWER = 100  # where what the burst is made of counts, not how large it is
SYMBOLS = [f"S{place:03d}" for place in range(NUM_SYMBOLS)]
DEADLINE_MS = 250.0


def feed(num_symbols: int, seed: int = 0) -> list[FeedItem]:
    """Minute bars of all symbols. Two have news before bar 6, all within a second before bar 7, one before bar 10."""
    dice = random.Random(seed)
    items: list[FeedItem] = []
    about = {HISTORY: SYMBOLS[:2], BURST: SYMBOLS[:num_symbols], NUM_BARS - 1: SYMBOLS[7:8]}
    num = 0
    for minute in range(NUM_BARS):
        end_ns = START_NS + minute * BAR_NS
        for place, symbol in enumerate(about.get(minute, ())):
            at_ns = end_ns - NS_PER_S + place * NS_PER_S // (num_symbols + 1)
            num += 1
            source = f"wire{num % 50}"
            items.append(News(at_ns, at_ns, source, num, f"n{num}", f"{symbol}: {told(num)}", (symbol,)))
        for place, symbol in enumerate(SYMBOLS[:num_symbols]):
            close = 100.0 + dice.gauss(0, 1)
            items.append(
                Bar(end_ns, end_ns, "bars", minute * num_symbols + place + 1, symbol, "1m", end_ns - BAR_NS,
                    end_ns, close, close + 1, close - 1, close)
            )  # fmt: skip
    return items


class Timed:
    """A reader that takes so many ms for each question, on a clock of the test's."""

    speculation_stats = None

    def __init__(self, name: str, each_ms: float, clock: "Clock") -> None:
        self.version = f"{name}@0001"
        self.each_ms = each_ms
        self._clock = clock
        self._inner = TemplateReader()

    def read(self, questions: Sequence[Question], deadline_ms: float) -> list[NewsView]:
        self._clock.spend(self.each_ms * len(questions), questions[0].as_of_ns)
        views = self._inner.read(questions, deadline_ms)
        return [
            msgspec.structs.replace(view, direction=1.0, size_sigmas=1.0, confidence=0.5, reader=self.version)
            for view in views
        ]


class Clock:
    """`used_ms`: what readings took, by decision point."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.used_ms: Counter[int] = Counter()

    def __call__(self) -> int:
        return self.now_ns

    def spend(self, ms: float, as_of_ns: int) -> None:
        self.now_ns += round(ms * NS_PER_MS)
        self.used_ms[as_of_ns] += round(ms)


def settings() -> Settings:
    found = override(load_settings(environment={}), "encoding", model="none")
    found = override(found, "forecasting", history_bars=5)
    found = override(found, "narrative", half_life_ns=40 * NS_PER_S)  # news is forgotten after two minutes
    return override(found, "pipeline", deadline_ms=DEADLINE_MS, group_ms=3.6e6)


def run(
    folder: Path,
    *,
    num_symbols: int = FEWER,
    edge_ms: float = 10.0,
    speculative_ms: float = 40.0,
    measured: bool = True,
    item_ms: float = 5.0,
    entries: Sequence[bytes] = (),
) -> tuple[list[bytes], Clock]:
    clock = Clock()
    readers = {
        Rung.TEMPLATE: TemplateReader(),
        Rung.EDGE: Timed("draft", edge_ms, clock),
        Rung.SPECULATIVE: Timed("target", speculative_ms, clock),
    }
    ledger = open_ledger(folder, origin="test.run", durable=False)
    if entries:
        ledger.append(list(entries))
    outlet = ListOutlet(entries)
    injected: Callable[[], int] | None = clock if measured else None
    loop = build_loop(
        settings(), ListFeed(feed(num_symbols)), ledger, outlet, readers=readers, reading_clock=injected
    )
    loop.run(lambda: clock.spend(item_ms, 0))
    found = [ledger.entry(index) for index in range(ledger.size)]
    ledger.close()
    return found, clock


decoded = cache(decode_entry)  # several tests read the thousands of entries of one run


def at_bar(entries: Sequence[bytes], minute: int) -> list[Decision]:
    as_of_ns = START_NS + minute * BAR_NS
    found = [decoded(entry) for entry in entries]
    return [one for one in found if one.as_of_ns == as_of_ns and not one.amends]


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[bytes], Clock]:
    return run(tmp_path_factory.mktemp("burst"), num_symbols=NUM_SYMBOLS)


def test_rungs_fall_in_the_burst_and_rise_after_it(burst: tuple[list[bytes], Clock]) -> None:
    entries, _ = burst
    rungs = {
        minute: Counter(one.plan.rung for one in at_bar(entries, minute) if one.plan.inputs is not msgspec.UNSET)
        for minute in (HISTORY, BURST, NUM_BARS - 1)
    }  # fmt: skip
    assert rungs[HISTORY] == {Rung.SPECULATIVE: 2}
    assert rungs[BURST][Rung.SPECULATIVE] == 0
    assert rungs[BURST][Rung.EDGE] == 12
    assert rungs[BURST][Rung.TEMPLATE] == NUM_SYMBOLS - 12
    assert rungs[NUM_BARS - 1] == {Rung.SPECULATIVE: 1}


def test_the_deadline_holds_at_every_decision_point(burst: tuple[list[bytes], Clock]) -> None:
    _, clock = burst
    used = {as_of_ns: ms for as_of_ns, ms in clock.used_ms.items() if as_of_ns}
    assert len(used) >= 4
    assert max(used.values()) <= DEADLINE_MS


def test_record_and_rationale_say_why(burst: tuple[list[bytes], Clock]) -> None:
    found = at_bar(burst[0], BURST)
    loaded = [one for one in found if PlanReason.HIGH_LOAD in one.plan.reasons]
    assert len(loaded) >= NUM_SYMBOLS - 2
    first = next(
        one
        for one in loaded
        if isinstance(one.plan.inputs, LadderInputs) and one.plan.inputs.left_ms == DEADLINE_MS
    )
    assert first.plan.reason_text == "high load: 500 readings need 40,000 ms, 250 ms are left"
    assert (
        "Load was high: 500 readings were due in 250 ms, so the draft model read alone."
        in first.rationale.text
    )
    last = next(one for one in loaded if one.plan.rung is Rung.TEMPLATE)
    assert "so the news was cited without a reading." in last.rationale.text
    quiet = at_bar(burst[0], HISTORY)
    assert len(quiet) == NUM_SYMBOLS
    assert not any("Load was high" in one.rationale.text for one in quiet)


def test_every_rung_is_derived_again_from_its_record(burst: tuple[list[bytes], Clock]) -> None:
    entries, _ = burst
    amendments, known = AmendmentAuditor(entries.__getitem__), settings()
    for entry in entries:
        digest = decoded(entry).settings_digest
        found = check_entry(entry, digest, known.policy, amendments, known.routing, fidelity=known.scheduling)
        assert found == []
    loaded = next(one for one in at_bar(entries, BURST) if one.plan.rung is Rung.EDGE)
    forged = msgspec.structs.replace(loaded.plan, rung=Rung.SPECULATIVE, reason_codes=(PlanReason.NORMAL,))
    entry = encode_decision(msgspec.structs.replace(loaded, plan=forged))
    problems = check_entry(entry, loaded.settings_digest, known.policy, fidelity=known.scheduling)
    assert any("does not follow from deadline and load" in problem for problem in problems)


def test_a_slow_reader_lowers_the_rung_and_a_resumed_run_takes_the_recorded_one(tmp_path: Path) -> None:
    slow, clock = run(tmp_path / "slow", edge_ms=30.0, speculative_ms=300.0, item_ms=0.0)
    last = [one.plan for one in at_bar(slow, NUM_BARS - 1) if one.plan.inputs is not msgspec.UNSET]
    assert [(one.rung, one.reasons) for one in last] == [(Rung.EDGE, (PlanReason.HIGH_LOAD,))]
    measured = {
        as_of_ns: ms for as_of_ns, ms in clock.used_ms.items() if as_of_ns > START_NS + BURST * BAR_NS
    }
    assert len(measured) >= 2
    assert max(measured.values()) <= DEADLINE_MS
    instants = [decoded(entry).as_of_ns for entry in slow]
    begun = instants.index(START_NS + BURST * BAR_NS)
    for cut in one_in_eight((begun + FEWER // 2, len(slow) - 3)):
        again, _ = run(tmp_path / f"cut {cut}", edge_ms=1.0, speculative_ms=1.0, entries=slow[:cut])
        assert again[:cut] == slow[:cut]
        assert len(again) == len(slow)


def test_two_runs_over_files_decide_alike_however_slow_the_readers(tmp_path: Path) -> None:
    one, _ = run(tmp_path / "one", edge_ms=1.0, speculative_ms=2.0, measured=False)
    other, _ = run(tmp_path / "other", edge_ms=50.0, speculative_ms=500.0, measured=False)
    assert one == other
