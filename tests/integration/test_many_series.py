"""Bars of thousands of series that end together: a series takes the time and memory that it takes among a hundred."""

import json
import subprocess
import sys
from typing import NamedTuple

import pytest

NUM_MOMENTS = 3
USUAL_KB = 120.0  # of a series
# Trades of so many symbols, one in each minute, until so many moments were decided; CPU time alone, in a process alone.
SCRIPT = """
import json, random, resource, sys, tempfile, time
from pathlib import Path
from htfi.domain.events import Trade
from htfi.domain.time import NS_PER_S
from htfi.wiring.ledger import open_ledger
from htfi.wiring.outputs import DecisionJournal
from htfi.wiring.loop import build_loop
from htfi.wiring.run import deferred_garbage_collection
from htfi.wiring.settings import load_settings, override
from htfi_eval.item_feed import ItemFeed

def peak_kb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

num, num_moments = int(sys.argv[1]), int(sys.argv[2])
settings = override(override(load_settings(environment={}), "market", bar="60s"), "pipeline", group_ms=0.0)
rng, moments = random.Random(3), []
with tempfile.TemporaryDirectory() as folder, deferred_garbage_collection():
    ledger, journal = open_ledger(Path(folder), origin="a.test", durable=False), DecisionJournal(Path(folder))
    loop = build_loop(settings, ItemFeed(), ledger, journal)
    before_kb, row = peak_kb(), 0
    while len(moments) < num_moments:
        at_ns = (1_380_000_000 // 60 + row // num) * 60 * NS_PER_S + row % num
        row += 1
        price = 100 + rng.gauss(0, 0.1)
        trade = Trade(at_ns, at_ns, "trades", row, f"S{row % num:04d}", price, 1.0)
        decided, began_s = loop.recorder.num_decided, time.process_time()
        loop.step(trade)
        if loop.recorder.num_decided > decided:
            moments.append((loop.recorder.num_decided - decided, time.process_time() - began_s))
    grown_kb = peak_kb() - before_kb
    journal.close()
    verified = ledger.verify().size
    lines = (Path(folder) / "decisions.jsonl").read_bytes().count(b"\\n")
    ledger.close()
print(json.dumps([moments, grown_kb, verified, lines]))
"""


class Cost(NamedTuple):
    """Of a series: the CPU time of its decision in the quickest moment, and memory."""

    decision_s: float
    kb: float


def cost(num: int) -> Cost:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(num), str(NUM_MOMENTS)],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    moments, grown_kb, verified, lines = json.loads(done.stdout)
    assert [decided for decided, _ in moments] == [num] * NUM_MOMENTS
    assert verified == lines == num * NUM_MOMENTS
    return Cost(min(took_s for _, took_s in moments) / num, grown_kb / num)


@pytest.mark.parametrize("num", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_a_series_costs_among_thousands_what_it_costs_among_a_hundred(num: int) -> None:
    few, many = cost(100), cost(num)
    assert many.decision_s < 2 * few.decision_s
    assert many.kb < 2 * max(few.kb, USUAL_KB)  # a hundred may fit into what was taken before
