"""Quotes of one instrument at two venues, with the settings of runs that work orders there by algorithms."""

import random
from pathlib import Path

BEGIN_MS = 1_704_204_000_000
VENUES = """
[XNYS]
feed = "N"
take_fee_bps = 0.3
make_fee_bps = -0.1
request_ms = 0.3
report_ms = 0.3
[XNAS]
feed = "Q"
request_ms = 0.1
report_ms = 0.1
"""
SETTINGS = """
[trading]
capital = 3_000_000.0
sizing = "volatility"
max_weight = 1.0
limit_bps = 20.0
[algorithms]
duration_s = {duration_s}
patience_s = {patience_s}
[order_limits]
max_messages_per_s = 1000
max_repeated_executions = 1000
"""


def write_market(folder: Path, *, minutes: float, duration_s: float, patience_s: float) -> None:
    """quotes.csv, settings.toml and venues.toml; algorithms work an order for so long."""
    write_quotes(folder / "quotes.csv", minutes)
    (folder / "settings.toml").write_text(SETTINGS.format(duration_s=duration_s, patience_s=patience_s))
    (folder / "venues.toml").write_text(VENUES)


def write_quotes(path: Path, minutes: float) -> None:
    rng, middle, at_ms = random.Random(3), 10_000, 0
    lines = ["ts,symbol,bid,ask,bid_size,ask_size,venue"]
    while at_ms < minutes * 60_000:
        at_ms += rng.choice((400, 800, 1_500))
        middle += rng.choice((-2, -1, 0, 0, 1, 2))
        for venue in ("N", "Q"):
            bid, ask = middle - rng.choice((1, 2)), middle + rng.choice((1, 2))
            sizes = (rng.randrange(1, 20) * 100, rng.randrange(1, 20) * 100)
            lines.append(
                f"{BEGIN_MS + at_ms},AAA,{bid / 100:.2f},{ask / 100:.2f},{sizes[0]},{sizes[1]},{venue}"
            )
    path.write_text("\n".join(lines) + "\n")
