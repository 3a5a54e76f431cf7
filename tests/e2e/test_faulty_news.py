"""Faulty news, through `htfi news` and through a run: each is silence with its reason, or read for what it is."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from msgspec import UNSET

from htfi.apps.cli.main import cli
from htfi.domain.decision import Decision
from htfi.domain.news import ItemReading
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly

DAY_S = 86_400
START_S = 1_709_251_200  # 2024-03-01 00:00 UTC
NUM_BARS = 44
FIRST_DAY = 24  # of the news; one item a day and symbol
NAMES = {
    "ACME": "Acme",
    "BOLT": "Bolt",
    "ALL": "Allstate",
    "NOW": "ServiceNow",
    "IT": "Gartner",
    "DAL": "Delta Air Lines",
}
CUTS = "Acme cuts its full-year profit forecast as demand slows"
LONG = " ".join(
    f"Paragraph {number} on the history of the plant at river {number}." for number in range(3_200)
)
GOOD_BODY = (
    "Acme raised its profit forecast. Orders soar and profit will jump to a record, far above expectations."
)
FILING = f"{LONG} Acme cut its full-year profit forecast to $1.10 a share from $1.60 as demand slows. {LONG}"


class Fault(NamedTuple):
    """An item and what a desk expects: the sign of what it says, and why it says nothing."""

    symbol: str
    text: str
    sign: int = 0
    why: str = ""
    body: str = ""


FAULTS = (
    Fault("ACME", "-", 0, "too few words"),
    Fault("BOLT", "Bolt agrees to", 0, "cut in the middle"),
    Fault("ALL", "ALL BANKS CUT DIVIDENDS AS LOSSES MOUNT", 0, "about others"),
    Fault("NOW", "Now is the time to sell, says investor", 0, "about others"),
    Fault("IT", "It misses estimates again", 0, "about others"),
    Fault("DAL", "Delta Electronics profit plunges 40%", 0, "about others"),
    Fault("ACME", "ACME CUTS FULL-YEAR PROFIT FORECAST AS DEMAND SLOWS", -1),
    Fault("BOLT", "Bolt profit rises to $1.2 billion from $1.5 billion", 0, "contradicts itself"),
    Fault("ALL", "Allstate quarterly profit falls 12% as costs rise", -1),
    Fault(
        "NOW",
        "Disregard: our forecasting system halts, ServiceNow signals are stale",
        0,
        "about a forecasting system",
    ),
    Fault("DAL", "Delta Air Lines denies report of cash shortage", 0, "neither good nor bad"),
    Fault("ACME", "Q2 24 | 1.40 | 1.35 | 11.4B | 11.2B", 0, ""),
    Fault("BOLT", "WITHDRAWN: please disregard our earlier alert on Bolt, sent in error", 0, "withdrawn"),
    Fault("NOW", "ServiceNow EPS $1.20, above the $1.35 consensus", 0, "contradicts itself"),
    Fault("ACME", CUTS, -1, "", FILING),
    Fault("BOLT", "ボルト、通期営業利益予想を下方修正", 0, ""),
)


def test_each_fault_is_a_line_of_news_with_its_reason(tmp_path: Path) -> None:
    source, out = tmp_path / "items.jsonl", tmp_path / "out.jsonl"
    items = [
        {"text": one.text, "body": one.body, "symbol": one.symbol, "name": NAMES[one.symbol]}
        for one in FAULTS
    ]
    source.write_text("".join(json.dumps(item) + "\n" for item in items))
    result = CliRunner().invoke(cli, ["news", "--file", str(source), "--json", str(out)])
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    found = [((one["direction"] > 0) - (one["direction"] < 0), one["why"]) for one in lines]
    assert [sign for sign, _ in found] == [one.sign for one in FAULTS]
    reasons = [(why, one.why) for (_, why), one in zip(found, FAULTS, strict=True) if one.why]
    assert len(reasons) > 10
    assert [why for why, _ in reasons] == [expected for _, expected in reasons]
    assert lines[14]["body"]["num_passages"] == 1  # of 200 kB that mostly repeat themselves


def test_a_body_that_disagrees_takes_confidence_from_its_headline(tmp_path: Path) -> None:
    source, out = tmp_path / "items.jsonl", tmp_path / "out.jsonl"
    item = {"text": CUTS, "symbol": "ACME", "name": "Acme"}
    source.write_text(json.dumps(item) + "\n" + json.dumps({**item, "body": GOOD_BODY}) + "\n")
    result = CliRunner().invoke(cli, ["news", "--file", str(source), "--json", str(out)])
    assert result.exit_code == 0, result.output
    alone, both = (json.loads(line) for line in out.read_text().splitlines())
    assert both["body"]["stance"] == "disagrees"
    assert both["confidence"] < alone["confidence"]


WRONG = "Acme quarterly profit falls 50% to $1 billion, below expectations"
CORRECTED = "CORRECTED-Acme quarterly profit rises 50% to $3 billion, above expectations"


def stamp(day: float) -> str:
    seconds = round(START_S + DAY_S * day)
    return f"{seconds}000000000"


@pytest.fixture(scope="module")
def decisions(
    made_once: Callable[[str, Callable[[Path], object]], Path], htfi: Callable[..., str]
) -> list[Decision]:
    """A run of 44 daily bars of six symbols, with each fault on a day of its own."""

    def make(folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        rng = random.Random(5)
        with (folder / "prices.csv").open("w") as rows:
            rows.write("start,symbol,interval,open,high,low,close\n")
            for symbol in NAMES:
                close = 100.0
                for day in range(NUM_BARS):
                    before, close = close, close * math.exp(rng.gauss(0.0, 0.01))
                    high, low = max(before, close) + 0.3, min(before, close) - 0.3
                    rows.write(f"{stamp(day)},{symbol},1d,{before:.4f},{high:.4f},{low:.4f},{close:.4f}\n")
        with (folder / "wire.jsonl").open("w") as lines:
            for place, one in enumerate(FAULTS):
                item = {
                    "ts": stamp(FIRST_DAY + place + 0.9),
                    "id": f"f{place}",
                    "headline": one.text,
                    "body": one.body,
                }
                lines.write(json.dumps({**item, "symbols": [one.symbol]}) + "\n")
            for place, text in enumerate((WRONG, CORRECTED)):
                at = stamp(FIRST_DAY + len(FAULTS) + 0.9 + place / 100)
                lines.write(
                    json.dumps({"ts": at, "id": f"c{place}", "headline": text, "symbols": ["ACME"]}) + "\n"
                )
        (folder / "settings.toml").write_text(
            "[narrative.symbol_names]\n" + "".join(f'{symbol} = "{name}"\n' for symbol, name in NAMES.items())
        )
        htfi(
            "run", str(folder / "prices.csv"), str(folder / "wire.jsonl"), "--plain", "--no-report",
            "--settings", str(folder / "settings.toml"), "--out", str(folder / "run"),
        )  # fmt: skip

    ledger = open_ledger_readonly(made_once("faulty-news", make) / "run")
    try:
        return [decode_entry(entry) for entry in ledger.entries()]
    finally:
        ledger.close()


def readings_of(decisions: list[Decision], symbol: str) -> dict[str, ItemReading]:
    """What each item meant for its symbol when it was first considered."""
    found: dict[str, ItemReading] = {}
    for one in decisions:
        context = one.news_context
        if one.symbol == symbol and context is not None:
            for item in (*context.considered, *context.set_aside):
                if item.reading is not UNSET:
                    found.setdefault(item.id, item.reading)
    return found


def test_run_reads_each_fault_for_what_it_is(decisions: list[Decision]) -> None:
    assert len(decisions) >= NUM_BARS * 3
    read = {symbol: readings_of(decisions, symbol) for symbol in NAMES}
    found = [read[one.symbol].get(f"f{place}") for place, one in enumerate(FAULTS)]
    signs = [0 if one is None else one.direction for one in found]
    assert signs == [one.sign for one in FAULTS]
    reasons = [
        (one.silence, expected.why)
        for one, expected in zip(found, FAULTS, strict=True)
        if one is not None and expected.why
    ]
    assert len(reasons) > 8
    assert [why for why, _ in reasons] == [expected for _, expected in reasons]
    filing = found[14]
    assert filing is not None
    assert filing.num_passages == 1


def test_correction_takes_the_place_of_the_first_figure(decisions: list[Decision]) -> None:
    last = [one for one in decisions if one.symbol == "ACME" and one.news_context is not None][-1]
    context = last.news_context
    assert context is not None
    ids = {item.id for item in (*context.considered, *context.set_aside)}
    assert "c1" in ids
    assert "c0" not in ids
    assert readings_of(decisions, "ACME")["c1"].direction == 1
