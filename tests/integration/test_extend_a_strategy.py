"""docs/extend-a-strategy.md is followed in a scratch copy: one file, one line, and a run drafts with it."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import htfi
from random_pair import write_random_pair

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "extend-a-strategy.md").read_text(encoding="utf-8")
NUM_DAYS = 48
REPORT = """
import json, sys
from pathlib import Path
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.verification import replay_reading
run, target = Path(sys.argv[1]), Path(sys.argv[2])
log = open_ledger_readonly(run)
found = [decode_entry(entry) for entry in log.entries()]
log.close()
read = [one for one in found if one.view and one.view.trace and one.view.trace.strategy == "repeat"]
problems = [problem for one in read for problem in replay_reading(one, run, target).problems]
drafted = sum(len(turn.drafted) for one in read for turn in one.view.trace.rounds)
print(json.dumps([len(read), drafted, problems]))
"""


@pytest.mark.slow
def test_a_strategy_is_one_file_and_one_line(tmp_path: Path):
    source = tmp_path / "src" / "htfi"
    shutil.copytree(Path(htfi.__file__).parent, source)
    file, line = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (source / "decoding" / "strategies" / "repeat.py").write_text(file)
    config = source / "decoding" / "config.py"
    before = config.read_text(encoding="utf-8").splitlines(keepends=True)
    after = [line if old.startswith("STRATEGIES = ") else old for old in before]
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
    config.write_text("".join(after), encoding="utf-8")

    prices, news = tmp_path / "prices.csv", tmp_path / "news.jsonl"
    rows, items = ["ts,symbol,open,high,low,close,volume"], list[str]()
    for day in range(NUM_DAYS):
        date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + 86_400 * day))
        rows.append(f"{date}T21:00:00Z,AAA,100,103,97,{100 + day % 5},9")
        if day % 2 == 0:
            headline = f"Item {day}: the outlook was cut, the price fell"
            item = {"ts": f"{date}T15:00:00Z", "id": f"n{day}", "headline": headline, "symbols": ["AAA"]}
            items.append(json.dumps(item))
    prices.write_text("\n".join(rows) + "\n")
    news.write_text("\n".join(items) + "\n")
    target, draft = write_random_pair(tmp_path / "pair")
    environment = os.environ | {
        "PYTHONPATH": str(source.parent),
        "HTFI_DECODING__STRATEGY": "repeat",
        "HTFI_PIPELINE__DEADLINE_MS": "100000",
        "HTFI_ENCODING__MODEL": "heads",
    }
    out = tmp_path / "out"
    models = ["--target", str(target), "--draft", str(draft)]
    run = [sys.executable, "-m", "htfi", "run", str(prices), str(news), *models]
    done = subprocess.run(
        [*run, "--plain", "--no-report", "--out", str(out)],
        env=environment, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = subprocess.run(
        [sys.executable, "-c", REPORT, str(out), str(target)],
        env=environment, capture_output=True, text=True, check=True, cwd=tmp_path,
    )  # fmt: skip
    num_read, num_drafted, problems = json.loads(told.stdout)
    assert num_read >= 3
    assert num_drafted > 0
    assert problems == []
