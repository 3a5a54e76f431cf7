"""`htfi trade` on quotes: fills are those of the market that an order met, by plain rules and by NautilusTrader."""

import bisect
import json
import random
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.orders import CancelRequest, Liquidity, NewOrder, OrderEvent, OrderFilled
from htfi.domain.time import NS_PER_MS
from htfi.wiring.order_record import order_events
from htfi.wiring.trading import read_accounts

BEGIN_MS = 1_704_204_000_000
LATENCY_NS = NS_PER_MS  # of [venue], of a request and of a report
TAKE_BPS, MAKE_BPS = 0.5, -0.2
DESK = f"""
[trading]
capital = 100000.0
limit_bps = 1.0
sizing = "volatility"
max_weight = 1.0
[venue]
take_fee_bps = {TAKE_BPS}
make_fee_bps = {MAKE_BPS}
"""
MadeOnce = Any


@dataclass(frozen=True)
class QuoteRow:
    at_ns: int
    bid: Decimal
    ask: Decimal
    bid_size: int
    ask_size: int


def write_quotes(path: Path, minutes: int) -> None:
    """More is shown than any order asks for, so that what orders take of a quote plays no part."""
    rng, middle, at_ms = random.Random(3), 10_000, 0
    lines = ["ts,symbol,bid,ask,bid_size,ask_size"]
    while at_ms < minutes * 60_000:
        at_ms += rng.choice((500, 1_000, 2_000, 3_000))
        middle += rng.choice((-2, -1, -1, 0, 0, 1, 1, 2))
        half = rng.choice((1, 1, 2, 3))
        sizes = (rng.randrange(20, 60) * 100, rng.randrange(20, 60) * 100)
        lines.append(
            f"{BEGIN_MS + at_ms},AAA,{(middle - half) / 100:.2f},{(middle + half) / 100:.2f},{sizes[0]},{sizes[1]}"
        )
    path.write_text("\n".join(lines) + "\n")


def read_quotes(path: Path) -> list[QuoteRow]:
    rows = [line.split(",") for line in path.read_text().splitlines()[1:]]
    return [
        QuoteRow(int(at) * NS_PER_MS, Decimal(bid), Decimal(ask), int(bid_size), int(ask_size))
        for at, _, bid, ask, bid_size, ask_size in rows
    ]


def trade(folder: Path, minutes: int) -> Path:
    write_quotes(folder / "quotes.csv", minutes)
    (folder / "desk.toml").write_text(DESK)
    words = ["trade", folder / "quotes.csv", "--bar", "60s", "--settings", folder / "desk.toml", "--plain"]
    done = CliRunner().invoke(
        cli, [str(word) for word in (*words, "--no-report", "--out", folder / "run")], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return folder / "run"


@pytest.fixture(scope="module")
def traded(made_once: MadeOnce) -> Path:
    return made_once("traded_on_quotes", lambda folder: trade(folder, 90)) / "run"


def fills_of(events: list[OrderEvent]) -> list[OrderFilled]:
    return [event for event in events if isinstance(event, OrderFilled)]


def test_an_order_meets_the_quote_that_stood_when_it_arrived(traded: Path) -> None:
    """Also one that was sent on a report between two quotes: the next quote is not known yet."""
    events = list(order_events(traded))
    quotes = read_quotes(traded.parent / "quotes.csv")
    times = [quote.at_ns for quote in quotes]
    first_fill: dict[str, OrderFilled] = {}
    for fill in fills_of(events):
        first_fill.setdefault(fill.order_id, fill)
    num_between = 0
    for new in (event for event in events if isinstance(event, NewOrder) and event.at_ns < times[-1]):
        assert new.price is not None
        arrives_ns = new.at_ns + LATENCY_NS
        quote = quotes[bisect.bisect_right(times, arrives_ns) - 1]
        crosses = new.price >= quote.ask if new.side.sign > 0 else new.price <= quote.bid
        fill = first_fill.get(new.order_id)
        took = fill is not None and fill.liquidity is Liquidity.REMOVED
        assert took == crosses, new
        if fill is not None and took:
            assert fill.price == (quote.ask if new.side.sign > 0 else quote.bid)
            assert fill.at_ns == arrives_ns + LATENCY_NS
        num_between += new.at_ns % (60_000 * NS_PER_MS) > 0
    assert len(first_fill) > 40
    assert num_between > 4


@pytest.mark.slow
def test_fills_position_fees_and_result_are_those_of_nautilus_trader(tmp_path: Path) -> None:
    """Explained differences: it rounds each fee to a cent, and its result with them."""
    run = trade(tmp_path, 600)
    events, quotes = list(order_events(run)), read_quotes(tmp_path / "quotes.csv")
    requests: list[list[Any]] = []
    for event in events:
        if isinstance(event, NewOrder | CancelRequest) and event.at_ns + LATENCY_NS <= quotes[-1].at_ns:
            is_new = isinstance(event, NewOrder)
            side, lots, price = (event.side.sign, event.quantity, str(event.price)) if is_new else (0, 0, "")
            requests.append([event.at_ns + LATENCY_NS, event.order_id, side, lots, price])
    asked = {
        "tick": "0.01",
        "take_fee": str(Decimal(str(TAKE_BPS)) / 10_000),
        "make_fee": str(Decimal(str(MAKE_BPS)) / 10_000),
        "quotes": [[one.at_ns, str(one.bid), str(one.ask), str(one.bid_size), str(one.ask_size)] for one in quotes],
        "requests": requests,
    }  # fmt: skip
    script = Path(__file__).parents[1] / "nautilus_replay.py"
    done = subprocess.run(
        [sys.executable, script],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    theirs = json.loads(done.stdout)
    ours = fills_of(events)
    assert len(ours) > 400
    assert [
        [
            one.order_id,
            one.quantity,
            str(one.price),
            one.at_ns - LATENCY_NS,
            one.liquidity is Liquidity.REMOVED,
        ]
        for one in ours
    ] == [[*fill[:4], fill[5]] for fill in theirs["fills"]]
    half_a_cent = Decimal("0.005")
    assert all(
        abs(one.fee - Decimal(fill[4])) <= half_a_cent
        for one, fill in zip(ours, theirs["fills"], strict=True)
    )
    accounts = read_accounts(run)
    (position,) = accounts.positions.values()
    assert position.lots == theirs["position"]
    realised, _, fees = accounts.money()
    middle_or_exit = (
        quotes[-1].bid if position.lots > 0 else quotes[-1].ask
    )  # it values at what closing would get
    cost = sum(
        (
            one.price * one.quantity * (1 if new.side.sign > 0 else -1)
            for one in ours
            for new in [order_of(events, one)]
        ),
        Decimal(0),
    )
    net = position.lots * middle_or_exit - cost - sum((one.fee for one in ours), Decimal(0))
    assert abs(net - Decimal(theirs["net"])) <= half_a_cent * (2 * len(ours) + 1)
    assert abs(Decimal(fees) / 10**9 - sum((one.fee for one in ours), Decimal(0))) < Decimal("0.001")
    assert realised != 0


def order_of(events: list[OrderEvent], fill: OrderFilled) -> NewOrder:
    return next(one for one in events if isinstance(one, NewOrder) and one.order_id == fill.order_id)
