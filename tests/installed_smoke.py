"""Whether an installed htfi works: `python installed_smoke.py MODULES`, with how many compiled ones it must hold."""

import datetime
import importlib.machinery
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import htfi

NUM_BARS = 400


def main(num_modules: int) -> None:
    package = Path(htfi.__file__).parent
    suffixes = tuple(importlib.machinery.EXTENSION_SUFFIXES)
    compiled = [file.name for file in package.rglob("*") if file.name.endswith(suffixes)]
    if len(compiled) < num_modules:
        sys.exit(f"{package}: {len(compiled)} compiled modules, expected {num_modules}: {sorted(compiled)}")
    with tempfile.TemporaryDirectory() as parent:
        quantiles = htfi.forecast(write_bars(Path(parent) / "bars.csv")).quantiles
        if not len(quantiles):
            sys.exit("htfi.forecast gave no quantiles")
        out = Path(parent) / "run"
        command = [sys.executable, "-m", "htfi", "run", "--out", str(out), "--outputs", "jsonl,parquet"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=parent)
        if not (out / "decisions.jsonl").stat().st_size:
            sys.exit("htfi run recorded no decision")
        if not (out / "decisions.parquet").stat().st_size:
            sys.exit("htfi run wrote no table of decisions")


def write_bars(path: Path) -> Path:
    """Daily closes of one symbol."""
    first = datetime.date(2020, 1, 1)
    closes = [100 + 3 * math.sin(1.7 * day) + math.cos(day * day) for day in range(NUM_BARS)]
    lines = [f"A,{first + datetime.timedelta(days=day)},{close}" for day, close in enumerate(closes)]
    path.write_text("\n".join(["symbol,ts,close", *lines]) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    main(int(sys.argv[1]))
