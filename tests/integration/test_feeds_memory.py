"""The memory of a replay does not grow with the length of its files."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

READ = """
import sys
from pathlib import Path
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.time import SystemClock
from htfi.wiring.feeds import open_feed, resolve
folder, path = Path(sys.argv[1]), sys.argv[2]
feed = open_feed(resolve([path]), inbox=folder, quarantine=QuarantineFile(folder / "q"), clock=SystemClock())
num_events = sum(1 for _ in feed)
feed.close()
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(num_events, status["VmHWM"].split()[0])
"""


def peak_kb(folder: Path, path: Path, num_rows: int) -> int:
    command = [sys.executable, "-c", READ, str(folder), str(path)]
    num_events, peak = map(
        int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    )
    assert num_events == num_rows
    return peak


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="this system tells no peak of one program alone"
)
@pytest.mark.parametrize(("form", "num_rows"), [("parquet", 50_000), ("jsonl", 15_000)])
def test_six_times_the_rows_take_no_more_memory(tmp_path: Path, form: str, num_rows: int) -> None:
    peaks: list[int] = []
    for times in (1, 6):
        path = tmp_path / f"t{times}.{form}"
        write(path, num_rows * times)
        peaks.append(peak_kb(tmp_path, path, num_rows * times))
    assert peaks[1] - peaks[0] < 10_000, peaks


def write(path: Path, num_rows: int) -> None:
    stamps_ms = 1_381_132_800_000 + np.arange(num_rows) * 7
    prices = 100.0 + np.arange(num_rows) % 50 / 100
    if path.suffix == ".parquet":
        columns = {"ts": pa.array(stamps_ms).cast(pa.timestamp("ms", "UTC")), "price": prices}
        columns["symbol"] = pa.array(["A", "B"] * (num_rows // 2)).dictionary_encode()
        pq.write_table(pa.table(columns), path, row_group_size=50_000)
    else:
        with path.open("w", encoding="utf-8") as file:
            for stamp_ms, price in zip(stamps_ms.tolist(), prices.tolist(), strict=True):
                file.write(json.dumps({"ts_ms": stamp_ms, "price": price, "symbol": "A"}) + "\n")
