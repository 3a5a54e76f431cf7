"""Times the way of `htfi run` from the start of its process to its first decision, as one who reads its output sees it.

The input is seeded: prices of one symbol and a headline on it, which models read for the first decision.
"""

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from htfi.domain.errors import DependencyUnavailable

SYMBOL = "ACME"
NUM_BARS = 30  # of a day
NEWS_BAR = 19  # on its day; its close brings the first forecast
HEADLINE = f"{SYMBOL} raises its full-year profit forecast after record quarterly sales"

# What a run does before its first item, with the times at which each stage has ended.
_STAGES = """
import time
ends_ns = [time.monotonic_ns()]
import htfi.apps.cli.run, htfi.apps.cli.view.display, htfi.wiring.run
ends_ns.append(time.monotonic_ns())
from htfi.wiring.encoder import open_encoder
from htfi.wiring.models.readers import open_model_pair
from htfi.wiring.settings import load_settings
settings = load_settings()
target, draft = open_model_pair(settings.models)
target.network, draft.draft_network
open_encoder(settings.encoding).encode(["The first text loads the encoder."])
ends_ns.append(time.monotonic_ns())
print(ends_ns)
"""


@dataclass(frozen=True, slots=True)
class StartTiming:
    """Wall seconds from the start of a process to the end of each stage, and to the first decision of two runs.

    `models_s`: the pair that reads and the encoder of news are in memory. `without_news_s`: a run of prices alone,
    which loads neither; `first_decision_s`: a run whose first decision rests on a reading by the target.
    """

    interpreter_s: float
    imports_s: float
    models_s: float
    without_news_s: float
    first_decision_s: float


def time_start() -> StartTiming:
    """Raises: DependencyUnavailable, where a run fails or its first decision is not as it should be."""
    with tempfile.TemporaryDirectory(prefix="htfi-bench-") as parent:
        folder = Path(parent)
        prices, news = write_inputs(folder)
        interpreter_s, imports_s, models_s = _stage_ends_s()
        without_news_s = _first_decision_s(folder / "prices", [prices], reads=False)
        first_decision_s = _first_decision_s(folder / "news", [prices, news], reads=True)
    return StartTiming(interpreter_s, imports_s, models_s, without_news_s, first_decision_s)


def write_inputs(folder: Path) -> tuple[Path, Path]:
    """Prices of a symbol at seeded random, and one headline on the day of the first forecast."""
    rng, price = random.Random(7), 100.0
    days = [date(2024, 1, 1) + timedelta(days=7 * (n // 5) + n % 5) for n in range(NUM_BARS)]
    rows = ["date,symbol,open,high,low,close,volume"]
    for day in days:
        opened, price = price, price * (1.0 + rng.gauss(0.0, 0.01))
        high, low = max(opened, price) * 1.002, min(opened, price) * 0.998
        rows.append(
            f"{day},{SYMBOL},{opened:.4f},{high:.4f},{low:.4f},{price:.4f},{rng.randrange(1_000, 9_000)}"
        )
    prices, news = folder / "prices.csv", folder / "news.jsonl"
    prices.write_text("\n".join([*rows, ""]))
    item = {
        "ts": f"{days[NEWS_BAR]}T12:00:00Z",
        "headline": HEADLINE,
        "source": "Reuters",
        "symbols": [SYMBOL],
    }
    news.write_text(json.dumps(item) + "\n")
    return prices, news


def _stage_ends_s() -> tuple[float, float, float]:
    began_ns = time.monotonic_ns()  # one clock for all processes
    done = subprocess.run([sys.executable, "-c", _STAGES], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DependencyUnavailable(f"opening the models failed: {_last_line(done.stderr)}")
    first_s, second_s, third_s = ((end_ns - began_ns) / 1e9 for end_ns in json.loads(done.stdout))
    return first_s, second_s, third_s


def _first_decision_s(folder: Path, files: list[Path], *, reads: bool) -> float:
    """From the start of the process to its first line. Raises: DependencyUnavailable."""
    names = [str(file) for file in files]
    began_s = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "htfi", "run", *names, "--out", str(folder), "--stdout", "--no-report"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline()
    taken_s = time.perf_counter() - began_s
    _, errors = process.communicate()
    if process.returncode or not line:
        raise DependencyUnavailable(f"htfi run on seeded prices failed: {_last_line(errors)}")
    decision: dict[str, Any] = json.loads(line)["decision"]
    if (decision["view"] is not None) is not reads:
        raise DependencyUnavailable(
            f"the first decision {decision['id']} rests on another reading than it should"
        )
    return taken_s


def _last_line(errors: str) -> str:
    return (errors.strip().splitlines() or ["no reason given"])[-1]
