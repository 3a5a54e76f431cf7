"""Bars of several series that share a market's volatility, and a file of them, for tests of the pooled learner."""

from pathlib import Path

import numpy as np

from htfi.domain.events import Bar
from htfi.domain.time import NS_PER_DAY

START = np.datetime64("2010-01-04")
STEPS = 8


def market_paths(num: int, width: int, seed: int) -> np.ndarray:
    """Log prices within each bar [T, N, STEPS + 1]: volatility that clusters, the same for all series."""
    rng = np.random.Generator(np.random.PCG64(seed))
    sigma = 0.01 * np.exp(np.cumsum(0.08 * rng.standard_normal(num)) - 0.02 * np.arange(num) / num)
    sigma = np.clip(sigma, 0.003, 0.05)
    steps = rng.standard_normal((num, width, STEPS)) * (sigma / np.sqrt(STEPS))[:, None, None]
    closes = np.cumsum(steps.sum(axis=2), axis=0)
    before = np.concatenate([np.zeros((1, width)), closes[:-1]])
    return np.concatenate([before[:, :, None], before[:, :, None] + np.cumsum(steps, axis=2)], axis=2)


def daily_bars(paths: np.ndarray) -> list[list[Bar]]:
    """The bars of each instant."""
    prices, found = 100.0 * np.exp(paths), []
    first_ns = int(START.astype("datetime64[ns]").astype(np.int64))
    for t, row in enumerate(prices):
        begin, end = first_ns + t * NS_PER_DAY, first_ns + (t + 1) * NS_PER_DAY
        found.append(
            [
                Bar(
                    end,
                    end,
                    "test",
                    t + 1,
                    f"S{n}",
                    "1d",
                    begin,
                    end,
                    *map(float, (p[0], p.max(), p.min(), p[-1])),
                )
                for n, p in enumerate(row)
            ]
        )
    return found


def write_bars(file: Path, paths: np.ndarray) -> Path:
    """A CSV of the same bars."""
    lines = ["date,symbol,open,high,low,close,volume"]
    for t, row in enumerate(100.0 * np.exp(paths)):
        for n, p in enumerate(row):
            lines.append(f"{START + t},S{n},{p[0]:.6f},{p.max():.6f},{p.min():.6f},{p[-1]:.6f},1000")
    file.write_text("\n".join(lines) + "\n")
    return file
