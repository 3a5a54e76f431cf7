"""A run's folder for tests of the page: what waits for people, news in quarantine, an open breaker, orders."""

import random
import time
from pathlib import Path

from click.testing import CliRunner

import htfi
from htfi.adapters.stores.held_news import HELD_NEWS, HeldNewsFile
from htfi.apps.cli.main import cli
from htfi.domain.events import News
from htfi.domain.governance import BreakerState
from htfi.domain.time import NS_PER_S
from htfi.governance.checkpoints.config import DeadlineDefault
from htfi.governance.checkpoints.reasons import CheckpointCause, CheckpointReason
from htfi.governance.checkpoints.requests import ApprovalQuestion
from htfi.governance.checkpoints.state import asked_step
from htfi.governance.control.entries import BreakerMoved, CheckpointMoved, encode_governance
from htfi.narrative.sanitising.sanitiser import Sanitiser
from htfi.wiring.control import GovernanceLogFile

HOSTILE = "<img src=x onerror=document.title='owned'> \u202eowned\u202c"
SYMBOLS = ("AAA", "BBB")
_DAY_S = 86_400


def daily_bars(first: int, last: int, symbols: tuple[str, ...] = SYMBOLS) -> list[dict[str, object]]:
    """Days of prices, the same at each call."""
    rng = random.Random(5)
    found: list[dict[str, object]] = []
    level = dict.fromkeys(symbols, 100.0)
    for day in range(last):
        for symbol in symbols:
            level[symbol] *= 1 + rng.gauss(0.001, 0.01)
            if day >= first:
                date = time.strftime("%Y-%m-%d", time.gmtime(1_262_304_000 + _DAY_S * day))
                found.append({"date": date, "symbol": symbol, "close": round(level[symbol], 4)})
    return found


def record_forecasts(folder: Path, num_days: int = 60) -> Path:
    """A run that has ended."""
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed(daily_bars(0, num_days)))
    return folder


BEATS = "AAA beats estimates, EPS $1.40 vs $1.35 expected"
RAISES = "\U0001f600 $AAA raises its profit outlook for the year"  # the first letter is two units of UTF-16


def record_news(folder: Path, num_days: int = 40) -> Path:
    """A run with two items of news before its last bars, that has ended; one comes with markup."""
    bars = daily_bars(0, num_days)
    day = bars[-2]["date"]
    news = [
        {"ts": f"{day}T22:00:00Z", "headline": f"{BEATS} <img src=x>", "symbols": ["AAA"], "id": "n1"},
        {"ts": f"{day}T22:30:00Z", "headline": RAISES, "symbols": ["AAA"], "id": "n2"},
    ]
    with htfi.open_run(folder, interval="1d", models=None) as run:
        list(run.feed([*bars[:-2], *news, *bars[-2:]]))
    return folder


def record_orders(folder: Path, num_days: int = 60) -> Path:
    """A run that traded and has ended."""
    prices = folder.with_suffix(".csv")
    with prices.open("w") as rows:
        rows.write("ts,symbol,open,high,low,close,volume\n")
        for bar in daily_bars(0, num_days):
            close = float(str(bar["close"]))
            high, low = f"{close * 1.01:.4f}", f"{close * 0.99:.4f}"
            rows.write(f"{bar['date']}T21:00:00Z,{bar['symbol']},{close},{high},{low},{close},1000000\n")
    done = CliRunner().invoke(
        cli, ["trade", str(prices), "--out", str(folder), "--plain", "--no-report"], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return folder


def leave_for_people(folder: Path) -> Path:
    """A decision that waits, a breaker that is open and an item in quarantine; their texts are hostile."""
    now_ns = time.time_ns()
    question = ApprovalQuestion(
        "AAA/1d@2010-03-01T21:00:00Z", "AAA", now_ns, now_ns + 3_600 * NS_PER_S, 0, 1, DeadlineDefault.WITHHOLD,
        (CheckpointReason(CheckpointCause.REGIME, f"the regime is shock {HOSTILE}"),),
        f"AAA falls by 5% in a day of heavy trading.\nNews: {HOSTILE}",
    )  # fmt: skip
    step = asked_step(question)
    asked = CheckpointMoved(
        step.at_ns, 1, question.decision, "asked", seen=step.seen, detail=step.detail, question=question
    )
    trip = BreakerMoved(now_ns, 1, "bands_left", "series:BBB", BreakerState.OPEN, 5.0, 3.0, "5 of 8 left")
    log = GovernanceLogFile(folder)
    log.append_all([encode_governance(asked), encode_governance(trip)])
    log.close()
    held = HeldNewsFile(folder / HELD_NEWS)
    item = News(now_ns, now_ns, "wire", 1, "w1", HOSTILE, ("AAA",))
    held.hold(item, Sanitiser().screen(item))
    held.close()
    return folder
