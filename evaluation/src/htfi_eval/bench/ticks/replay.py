"""Replays tick files in its own process and prints the cost as JSON: `python -m htfi_eval.bench.ticks.replay`.

`htfi bench ticks` starts it for a clean figure of peak memory.
"""

import json
import resource
import sys
from pathlib import Path

from htfi.market.config import MarketConfig
from htfi.market.state import MarketState
from htfi_eval.bench.ticks.files import read_batches


def replay(files: list[Path], max_rows: int) -> int:
    """The number of rows taken in: all, or `max_rows` and the rest of their chunk where it is above 0."""
    market = MarketState(MarketConfig())
    num_rows = 0
    for batch in read_batches(files):
        market.observe_batch(batch)
        num_rows += len(batch)
        if 0 < max_rows <= num_rows:
            break
    return num_rows


def peak_bytes() -> int:
    """This process's largest resident set so far.

    Linux carries ru_maxrss over exec, so that a child of a large parent would report the parent's; VmHWM is its own.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


if __name__ == "__main__":
    num_rows = replay([Path(name) for name in sys.argv[2:]], int(sys.argv[1]))
    sys.stdout.write(json.dumps({"num_rows": num_rows, "peak_bytes": peak_bytes()}))
