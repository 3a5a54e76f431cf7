"""Fuzzed lines: every row that was read is an event or stands in the quarantine, and memory stays flat."""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.time import NS_PER_MS, NS_PER_S, SystemClock, format_ns
from htfi.pipeline.intake.quarantine_reasons import QuarantineReason
from htfi.wiring.feeds import open_feed, resolve

T0_NS = 1_381_132_800 * NS_PER_S


def fuzzed_lines(num_lines: int, seed: int) -> Iterator[bytes]:
    """Good rows of four kinds; every second one with a byte changed, a cut, a wild value or a repeat."""
    rng = random.Random(seed)
    previous = b"{}"
    for number in range(num_lines):
        stamp = format_ns(T0_NS + (number * 10 + rng.randrange(-5, 5)) * NS_PER_MS)
        row = rng.choice([
            {"ts": stamp, "symbol": "A", "price": 1.5, "size": number},
            {"ts": stamp, "symbol": "A", "bid": 1.0, "ask": 1.5},
            {"ts": stamp, "symbol": "B", "side": "a", "price": 1.5, "venue": "P"},
            {"ts": stamp, "headline": "h", "id": str(number)},
        ])  # fmt: skip
        line = json.dumps(row).encode()
        match rng.randrange(12):
            case 0:
                place = rng.randrange(len(line))
                line = line[:place] + bytes([rng.randrange(256)]) + line[place + 1 :]
            case 1:
                line = line[: rng.randrange(len(line))]
            case 2:
                row[rng.choice(list(row))] = rng.choice(
                    [None, -1, 0, "", "x", [], {}, True, 1e308, float("nan")]
                )
                line = json.dumps(row).encode()
            case 3:
                line = previous
            case 4:
                line = line.replace(b"Z", b"")
            case 5:
                line = rng.randbytes(rng.randrange(1, 80))
            case _:
                previous = line
        yield line.replace(b"\n", b"\r") + b"\n"


@pytest.mark.parametrize("num_lines", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_every_fuzzed_row_is_an_event_or_set_aside(tmp_path: Path, num_lines: int) -> None:
    seed = 20_131_007
    path = tmp_path / "fuzzed.jsonl"
    num_blank = 0
    with path.open("wb") as file:
        for line in fuzzed_lines(num_lines, seed):
            num_blank += not line.strip()
            file.write(line)
    quarantine = QuarantineFile(tmp_path / "q.jsonl")
    feed = open_feed(resolve([str(path)]), inbox=tmp_path, quarantine=quarantine, clock=SystemClock())
    num_events, last_ns = 0, 0
    for item in feed:
        assert item.available_at_ns >= last_ns
        last_ns = item.available_at_ns
        num_events += 1
    feed.close()
    quarantine.close()
    counts = quarantine.counts()
    assert num_events + sum(counts.values()) + num_blank == num_lines, f"seed {seed}: {counts}"
    assert (tmp_path / "q.jsonl").read_bytes().count(b"\n") == sum(counts.values())
    assert num_events > num_lines // 3
    assert set(counts) <= set(QuarantineReason)
    assert {"malformed", "bad_encoding", "no_zone", "duplicate", "bad_price", "missing_field"} <= set(counts)
