"""How many Python functions run for each series between the close of its bar and its release."""

import sys
from collections import Counter
from math import exp
from pathlib import Path
from random import Random
from types import FrameType

import pytest

from htfi.domain.decision import Receipt
from htfi.domain.events import Bar, TimePassed
from htfi.domain.time import NS_PER_DAY
from htfi.pipeline.decided import DecidedSeries
from htfi.pipeline.record.ticks import COMPILED
from htfi.wiring.ledger import open_ledger
from htfi.wiring.loop import build_loop
from htfi.wiring.settings import load_settings, override
from memory_run import ListFeed, MemoryOutlet

NUM_DAYS = 24
START_NS = 1_600_041_600 * 10**9
MAX_CALLS = (
    5  # it is made, its entry is taken, the width before is worded, the subscriber gets it; one to spare
)


def calls_of_a_moment(num_series: int, folder: Path) -> Counter[str]:
    """The calls of Python functions from the end of the last bars of so many series to their last release."""
    left = 0

    def subscribe(_receipt: Receipt, _decided: DecidedSeries) -> None:
        nonlocal left
        left -= 1
        if not left:
            sys.setprofile(None)

    settings = override(load_settings(environment={}), "pipeline", group_ms=0.0)
    ledger = open_ledger(folder, origin="htfi.tests", durable=False)
    loop = build_loop(settings, ListFeed([]), ledger, MemoryOutlet([]), subscriber=subscribe)
    rng, closes = Random(1), [100.0] * num_series
    found: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found[frame.f_code.co_qualname] += 1

    for day in range(NUM_DAYS):
        start_ns, end_ns = START_NS + day * NS_PER_DAY, START_NS + (day + 1) * NS_PER_DAY
        for place, opened in enumerate(closes):
            close = closes[place] = opened * exp(rng.gauss(0.0, 0.01))
            high, low = max(opened, close), min(opened, close)
            loop.step(
                Bar(end_ns, end_ns, "bars", day * num_series + place + 1, f"S{place:03d}", "1d", start_ns, end_ns,
                    opened, high, low, close)
            )  # fmt: skip
        left = num_series
        if day == NUM_DAYS - 1:
            sys.setprofile(count)
        try:
            loop.step(TimePassed(end_ns + 1))
        finally:
            sys.setprofile(None)
    ledger.close()
    assert left == 0, "every series was released"
    return found


@pytest.mark.skipif(not COMPILED, reason="no C compiler was at hand: compiled passes run interpreted")
def test_before_the_release_each_series_costs_a_handful_of_calls(tmp_path: Path) -> None:
    few, many = (calls_of_a_moment(num, tmp_path / str(num)) for num in (100, 200))
    more = {name: (many[name] - few[name]) / 100 for name in many if many[name] != few[name]}
    assert few["DecidedSeries.__init__"] == 100, "the calls were counted"
    assert sum(more.values()) <= MAX_CALLS, more
