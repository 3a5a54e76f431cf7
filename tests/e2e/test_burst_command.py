"""500 symbols with news within one second, through the command: rungs fall and rise, the ledger says why."""

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from htfi.domain.decision import Decision
from htfi.domain.plan import LadderInputs, PlanReason, Rung
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from late_network import told

START_S = 1_709_542_800  # 2024-03-04 09:00 UTC
SYMBOLS = [f"S{place:03d}" for place in range(500)]
QUIET, BURST, AFTER, NUM_BARS = 4, 5, 7, 8
DEADLINE_MS = 250
SETTINGS = {
    "HTFI_PIPELINE__DEADLINE_MS": str(DEADLINE_MS),
    "HTFI_PIPELINE__GROUP_MS": "60000",
    "HTFI_FORECASTING__HISTORY_BARS": "5",
    "HTFI_NARRATIVE__HALF_LIFE_NS": str(20 * 10**9),  # news is forgotten after one minute
    "HTFI_ENCODING__MODEL": "none",
}


def stamp(at_s: float) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at_s))}.{round(at_s % 1 * 1e3):03d}Z"


def write_sources(folder: Path) -> Sequence[str]:
    """Minute bars of all symbols. Two have news before one bar, all within a second before the next, one after it."""
    rng = random.Random(0)
    prices, news = folder / "prices.csv", folder / "news.jsonl"
    with prices.open("w") as rows, news.open("w") as items:
        rows.write("start,symbol,interval,open,high,low,close\n")
        num = 0
        about = {QUIET: SYMBOLS[:2], BURST: SYMBOLS, AFTER: SYMBOLS[7:8]}
        for minute in range(NUM_BARS):
            for symbol in SYMBOLS:
                close = 100.0 + rng.gauss(0, 1)
                row = f"{symbol},1m,{close:.2f},{close + 1:.2f},{close - 1:.2f},{close:.2f}"
                rows.write(f"{stamp(START_S + 60 * minute)},{row}\n")
            for place, symbol in enumerate(about.get(minute, ())):
                num += 1
                at = stamp(START_S + 60 * minute + 59 + place / (len(SYMBOLS) + 1))
                item = {"ts": at, "id": f"n{num}", "headline": f"{symbol}: {told(num)}", "symbols": [symbol]}
                items.write(json.dumps({**item, "publisher": f"wire{num % 50}"}) + "\n")
    return [str(prices), str(news)]


def left_ms(decision: Decision) -> float:
    inputs = decision.plan.inputs
    assert isinstance(inputs, LadderInputs)
    return inputs.left_ms


@pytest.fixture(scope="module")
def burst(tmp_path_factory: pytest.TempPathFactory, htfi: Callable[..., str]) -> Path:
    folder = tmp_path_factory.mktemp("burst")
    out = folder / "run"
    htfi("run", *write_sources(folder), "--out", str(out), "--plain", "--no-report", **SETTINGS)
    return out


@pytest.fixture(scope="module")
def decisions(burst: Path) -> dict[int, list[Decision]]:
    """The decisions of each bar in which a reading was planned, as the ledger has them."""
    ledger = open_ledger_readonly(burst)
    try:
        found = [decode_entry(entry) for entry in ledger.entries()]
    finally:
        ledger.close()
    bars: dict[int, list[Decision]] = {QUIET: [], BURST: [], AFTER: []}
    for decision in found:
        minute = round(decision.circumstances.bar_end_ns / 1e9 - START_S) // 60 - 1
        if minute in bars and not decision.amends and isinstance(decision.plan.inputs, LadderInputs):
            bars[minute].append(decision)
    return bars


@pytest.mark.slow
def test_rungs_fall_in_the_burst_and_rise_after_it(decisions: dict[int, list[Decision]]) -> None:
    rungs = {minute: Counter(one.plan.rung for one in found) for minute, found in decisions.items()}
    assert rungs[QUIET] == {Rung.SPECULATIVE: 2}
    assert rungs[BURST] == {Rung.EDGE: 12, Rung.TEMPLATE: 488}
    assert rungs[AFTER] == {Rung.SPECULATIVE: 1}


@pytest.mark.slow
def test_the_record_names_the_load(
    burst: Path, decisions: dict[int, list[Decision]], htfi: Callable[..., str]
) -> None:
    loaded = [one for one in decisions[BURST] if PlanReason.HIGH_LOAD in one.plan.reasons]
    assert len(loaded) >= 498
    assert not any(
        PlanReason.HIGH_LOAD in one.plan.reasons for minute in (QUIET, AFTER) for one in decisions[minute]
    )
    first = max(loaded, key=left_ms)
    assert first.plan.reason_text == f"high load: 500 readings need 40,000 ms, {DEADLINE_MS} ms are left"
    shown = " ".join(htfi("ledger", "show", str(burst), first.id).split())
    assert "high load: 500 readings need 40,000 ms" in shown
    assert f"Load was high: 500 readings were due in {DEADLINE_MS} ms" in shown


@pytest.mark.slow
def test_the_ledger_verifies_with_every_rung_derived_again(burst: Path, htfi: Callable[..., str]) -> None:
    said = htfi("ledger", "verify", str(burst), "--recompute")
    num_entries = len((burst / "decisions.jsonl").read_bytes().splitlines())
    assert num_entries >= 500 * (NUM_BARS - QUIET)
    assert f"{num_entries:,} entries, each as it was recorded" in said
