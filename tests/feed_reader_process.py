"""A process that reads a feed and saves its place and the prices, to be killed at any moment: FOLDER URL NUM_PRICES."""

import json
import os
import sys
from pathlib import Path
from typing import Any

from htfi.adapters.stores.held_news import QuarantineFile
from htfi.domain.events import Trade
from htfi.domain.time import SystemClock
from htfi.wiring.feeds import open_feed, resolve


def read(folder: Path, url: str, num_prices: int) -> None:
    """Read until there are as many prices; every hundred items `state.json` is replaced whole."""
    state = folder / "state.json"
    saved: dict[str, Any] | None = json.loads(state.read_text()) if state.exists() else None
    quarantine = QuarantineFile(folder / "q.jsonl", saved and saved["quarantine"])
    feed = open_feed(
        resolve([url]), inbox=folder, quarantine=quarantine, clock=SystemClock(),
        position=saved and saved["feed"],
    )  # fmt: skip
    prices: list[float] = saved["prices"] if saved else []
    for number, item in enumerate(feed, 1):
        if isinstance(item, Trade):
            prices.append(item.price)
        is_done = len(prices) >= num_prices
        if number % 100 == 0 or is_done:
            state_now = {"feed": feed.position(), "quarantine": quarantine.position(), "prices": prices}
            (folder / "new").write_text(json.dumps(state_now))
            (folder / "new").replace(state)
        if is_done:
            break
    os._exit(0)


if __name__ == "__main__":
    read(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
