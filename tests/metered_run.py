"""`htfi run -` with metrics on, as a process of its own: rows go in, metrics come out, its end is awaited."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def bar_rows(num_days: int, symbols: Iterable[str] = ("AAA", "BBB")) -> list[str]:
    return [
        json.dumps(
            {
                "ts": f"2024-{1 + day // 28:02}-{1 + day % 28:02}T21:00:00Z",
                "symbol": symbol,
                "interval": "1d",
                "close": 100 + (day * 7 + place) % 11,
            }
        )
        for day in range(num_days)
        for place, symbol in enumerate(symbols)
    ]


def scrape(url: str, accept: str = "text/plain") -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Samples by name and labels."""
    with urllib.request.urlopen(
        urllib.request.Request(url, headers={"Accept": accept}), timeout=10
    ) as answer:
        text = answer.read().decode()
    parse = parse_openmetrics if accept == OPENMETRICS else parse_text
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in parse(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


class MeteredRun:
    """Rows by `feed`, `url` of its metrics; `end` closes its input."""

    def __init__(self, folder: Path, *options: str, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        words = ("run", "-", "--out", str(folder), "--plain", "--no-report", "--metrics", "127.0.0.1:0")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "htfi", *words, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
        )
        assert self.process.stderr is not None
        self.said = self.process.stderr.readline().decode()
        assert "metrics at port" in self.said, self.said + self.process.stderr.read().decode()
        port = self.said.partition("port ")[2].partition(",")[0]
        self.url = f"http://127.0.0.1:{port}/metrics"

    def feed(self, rows: Iterable[str]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{row}\n" for row in rows).encode())
        self.process.stdin.flush()

    def wait_for_events(self, num: int) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """The metrics once the loop has taken so many events and has released what they decide."""
        end, before = time.monotonic() + 30.0, None
        while True:
            found = scrape(self.url)
            now = (found["htfi_events_total"][()], found["htfi_ledger_entries"][()])
            if now[0] >= num and now == before:
                return found
            before = now
            assert time.monotonic() < end, f"{now} of {num} events"
            time.sleep(0.05)

    def end(self) -> str:
        assert self.process.stdin is not None
        assert self.process.stderr is not None
        self.process.stdin.close()
        said = self.process.stderr.read().decode()
        assert self.process.wait(60.0) == 0, said
        return said

    def __enter__(self) -> "MeteredRun":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for pipe in (self.process.stdin, self.process.stderr):
            if pipe is not None:
                pipe.close()
        self.process.wait(10.0)
