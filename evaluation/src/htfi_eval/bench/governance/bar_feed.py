"""Bars for a live run's standard input at a steady rate, of which one instant at a time can be frozen."""

import json
import threading
import time
from contextlib import suppress
from typing import IO, NamedTuple

import numpy as np

from htfi.domain.time import NS_PER_DAY, format_ns

NUM_SERIES, NUM_TOGETHER = 20, 5  # of one instant, so that time passes often, as it does in a market
MAPPING = """[[source]]
name = "bars"
stdin = true
kind = "bar"
"""
_START_NS = 631_152_000 * 10**9  # 1990: decades until the bars, a day long each, lie in the future


class FrozenBars(NamedTuple):
    """Bars that repeat those before: the instant of their end, and the monotonic time before they were written (ns)."""

    end_ns: int
    written_ns: int


class BarFeed:
    """Daily bars of `NUM_SERIES` series, `NUM_TOGETHER` at an instant, until the end of the `with` block."""

    def __init__(self, pipe: IO[bytes], bars_per_s: float) -> None:
        self._pipe, self.step_s = pipe, NUM_TOGETHER / bars_per_s
        self._ended, self._wanted, self._written = threading.Event(), threading.Event(), threading.Event()
        self._frozen = FrozenBars(0, 0)
        self._thread = threading.Thread(target=self._write, name="feeder", daemon=True)

    def __enter__(self) -> "BarFeed":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(BrokenPipeError):
            self._pipe.close()

    def freeze_once(self) -> FrozenBars:
        """Have all bars of the next instant repeat those before; once they are written."""
        self._written.clear()
        self._wanted.set()
        self._written.wait()
        return self._frozen

    def _write(self) -> None:
        rng = np.random.default_rng(5)
        prices, next_s, number = np.full(NUM_SERIES, 100.0), time.monotonic(), 0
        while not self._ended.is_set():
            first = number * NUM_TOGETHER % NUM_SERIES
            if not (is_frozen := self._wanted.is_set()):
                prices[first : first + NUM_TOGETHER] *= np.exp(rng.normal(0.0, 1e-3, NUM_TOGETHER))
            number += 1
            start_ns = _START_NS + number * NUM_TOGETHER * NS_PER_DAY // NUM_SERIES
            rows = [
                json.dumps({"symbol": f"S{k:02d}", "ts": format_ns(start_ns), "interval": "1d", "open": price,
                            "high": price * 1.001, "low": price * 0.999, "close": price, "volume": 100})
                for k, price in enumerate(prices[first : first + NUM_TOGETHER].round(4).tolist(), first)
            ]  # fmt: skip
            written_ns = time.monotonic_ns()
            try:
                self._pipe.write("".join(f"{row}\n" for row in rows).encode())
                self._pipe.flush()
            except OSError:
                break
            if is_frozen:
                self._frozen = FrozenBars(start_ns + NS_PER_DAY, written_ns)
                self._wanted.clear()
                self._written.set()
            next_s += self.step_s
            time.sleep(max(next_s - time.monotonic(), 0.0))
        self._written.set()
