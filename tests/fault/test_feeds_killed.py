"""A reader of standard input, killed with SIGKILL again and again, takes every row once and in order."""

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from htfi.domain.time import NS_PER_S, format_ns

T0_NS = 1_381_132_800 * NS_PER_S
NUM_ROWS = 20_000
READ = """
import json, os, sys
from pathlib import Path
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.time import SystemClock
from htfi.wiring.feeds import open_feed, resolve
folder = Path(sys.argv[1])
state = folder / "state.json"
saved = json.loads(state.read_text()) if state.exists() else None
quarantine = QuarantineFile(folder / "q.jsonl", saved and saved["quarantine"])
feed = open_feed(
    resolve(["-"]), inbox=folder, quarantine=quarantine, clock=SystemClock(), position=saved and saved["feed"]
)
prices = saved["prices"] if saved else []
def save():
    state_now = {"feed": feed.position(), "quarantine": quarantine.position(), "prices": prices}
    (folder / "new").write_text(json.dumps(state_now))
    os.replace(folder / "new", state)
for number, item in enumerate(feed, 1):
    prices.append(item.price)
    if number % 500 == 0:
        save()
save()
feed.close()
quarantine.close()
"""


def test_no_row_is_lost_or_taken_twice(tmp_path: Path) -> None:
    seed = 5
    rng = random.Random(seed)
    stream = tmp_path / "stream.jsonl"
    with stream.open("w", encoding="utf-8") as file:
        for number in range(1, NUM_ROWS + 1):
            stamp = format_ns(T0_NS + number * NS_PER_S // 50)
            file.write(
                json.dumps({"ts": stamp, "symbol": "A", "price": -1 if number % 100 == 0 else number}) + "\n"
            )
    num_killed = 0
    for _ in range(20):
        with stream.open("rb") as piped:
            child = subprocess.Popen([sys.executable, "-c", READ, str(tmp_path)], stdin=piped)
            if num_killed < 4:
                _wait_for_change(tmp_path / "state.json", child)
                time.sleep(rng.uniform(0, 0.03))
                child.send_signal(signal.SIGKILL)
            num_killed += child.wait() == -signal.SIGKILL
        if child.returncode == 0:
            break
    assert child.returncode == 0
    assert num_killed >= 1
    prices = json.loads((tmp_path / "state.json").read_text())["prices"]
    assert prices == [float(number) for number in range(1, NUM_ROWS + 1) if number % 100], f"seed {seed}"
    refused = [json.loads(line)["row"] for line in (tmp_path / "q.jsonl").read_text().splitlines()]
    assert refused == list(range(100, NUM_ROWS + 1, 100))


def _wait_for_change(path: Path, child: subprocess.Popen[bytes]) -> None:
    before = path.stat().st_mtime_ns if path.exists() else 0
    while child.poll() is None and (path.stat().st_mtime_ns if path.exists() else 0) == before:
        time.sleep(0.002)
