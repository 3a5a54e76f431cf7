"""Whether an installed htfi works: `python installed_smoke.py MODULES`, with how many compiled ones it must hold."""

import datetime
import importlib.machinery
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow

import htfi

NUM_BARS = 400


def main(num_modules: int) -> None:
    package = Path(htfi.__file__).parent
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    compiled = [file.name for file in package.rglob("*") if file.name.endswith(suffixes)]
    if len(compiled) < num_modules:
        sys.exit(f"{package}: {len(compiled)} compiled modules, expected {num_modules}: {sorted(compiled)}")
    first = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    bars = {
        "symbol": ["A"] * NUM_BARS,
        "ts": [first + datetime.timedelta(days=day) for day in range(NUM_BARS)],
        "close": [100 + 3 * math.sin(1.7 * day) + math.cos(day * day) for day in range(NUM_BARS)],
    }
    quantiles = htfi.forecast(pyarrow.table(bars)).quantiles
    if not len(quantiles):
        sys.exit("htfi.forecast gave no quantiles")
    with tempfile.TemporaryDirectory() as parent:
        out = Path(parent) / "run"
        command = [sys.executable, "-m", "htfi", "run", "--out", str(out)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=parent)
        if not (out / "decisions.jsonl").stat().st_size:
            sys.exit("htfi run recorded no decision")


if __name__ == "__main__":
    main(int(sys.argv[1]))
