"""Entries that are written from arrays: compiled or not the same bytes, and those of each decision by itself."""

from collections.abc import Iterator
from math import exp
from pathlib import Path
from random import Random
from typing import Any

import pytest

from htfi.domain.decision import PolicyOutcome
from htfi.domain.events import FeedItem, MacroAnnouncement, Quote, TimePassed, Trade
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.record import numeric, rows
from htfi.pipeline.record.entry import decode_entry, encode_entry
from htfi.wiring.settings import load_settings, override
from memory_run import loop_over

S = 10**9
START_NS = 1_600_041_600 * S
SYMBOLS = (
    "A",
    "policy",
    "LONGER NAME",
    "Ω",
)  # too short to be referred to, known to every entry, spelled, two bytes
NUM_MINUTES = 60


def events() -> Iterator[FeedItem]:
    """Minutes of trades and quotes; one symbol has no quotes, one jumps, and macro series are announced on the way."""
    rng, prices, row = Random(3), dict.fromkeys(SYMBOLS, 100.0), 0
    for minute in range(NUM_MINUTES):
        for step in range(4):
            for place, symbol in enumerate(SYMBOLS):
                at_ns, row = START_NS + (60 * minute + 15 * step) * S + place, row + 1
                jump = 0.2 if (minute, step, symbol) == (NUM_MINUTES - 1, 3, "Ω") else 0.0
                price = prices[symbol] = prices[symbol] * exp(rng.gauss(jump, 1e-4))
                if symbol != "A":
                    yield Quote(at_ns, at_ns, "ticks", row, symbol, price - 0.01, 5.0, price + 0.01, 7.0, "N")
                yield Trade(at_ns, at_ns, "ticks", row, symbol, price, 100.0)
        if minute % 20 == 10:
            at_ns = START_NS + 60 * (minute + 1) * S - 1
            yield MacroAnnouncement(at_ns, at_ns, "macro", minute, f"US.CPI-{minute}", minute / 7)


class _Encoded:
    """What `encode_rows` was asked, and the decisions that were made."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.decided: list[DecidedSeries] = []


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> _Encoded:
    found = _Encoded()

    def encode_rows(*asked: Any) -> list[bytes | None]:
        found.asked.append(asked)
        return rows.encode_rows(*asked)

    monkeypatch.setattr(numeric, "encode_rows", encode_rows)
    settings = override(load_settings(environment={}), "market", bar="60s")
    loop, _, _ = loop_over([], settings=settings)
    loop.recorder.watcher = found.decided.append
    for item in events():
        loop.step(item)
    loop.step(TimePassed(START_NS + 60 * NUM_MINUTES * S + 1))
    assert len(found.decided) > 20 * len(SYMBOLS)
    return found


def test_rows_are_the_entries_of_their_decisions(encoded: _Encoded) -> None:
    assert [one.entry for one in encoded.decided] == [encode_entry(one.decision) for one in encoded.decided]
    read = [decode_entry(one.entry) for one in encoded.decided]
    assert read == [one.worded() for one in encoded.decided]
    assert {one.circumstances.quote_age_ns is None for one in read} == {True, False}
    assert {one.verdict.outcome for one in read} >= {PolicyOutcome.RELEASE, PolicyOutcome.CAUTION}
    assert len({tuple(one.features) for one in read}) > 4
    assert {len(one.rationale.drivers) for one in read} >= {0, 1, 2}


def test_no_row_has_to_be_packed_by_itself_without_need(encoded: _Encoded) -> None:
    made = [entry for asked in encoded.asked for entry in rows.encode_rows(*asked)]
    assert len(made) == len(encoded.decided)
    assert None not in made


def test_the_interpreted_module_writes_the_same_bytes(encoded: _Encoded) -> None:
    source = Path(numeric.__file__).with_name("rows.py").read_text(encoding="utf-8")
    interpreted: dict[str, Any] = {"__file__": "rows.py", "__name__": "interpreted_rows"}
    exec(compile(source, "rows.py", "exec"), interpreted)
    asked = encoded.asked[-1]
    assert interpreted["encode_rows"](*asked) == rows.encode_rows(*asked)
    assert interpreted["encode_rows"] is not rows.encode_rows
