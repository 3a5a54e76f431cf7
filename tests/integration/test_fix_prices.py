"""Prices over a FIX session: a run by them is the run by the file of the same prices, whatever is interrupted."""

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from msgspec import structs
from test_trade_command import say, write_prices
from test_trade_on_quotes import DESK

from fix_peer import Recorder, runner_of
from fix_venue import free_port, orders_of, served, write_price_sessions, write_session
from htfi.adapters.fix import market_feed
from htfi.adapters.fix.connections import Acceptor
from htfi.adapters.fix.runner import SessionRunner
from htfi.adapters.stores.held_news import QuarantineFile
from htfi.adapters.stores.order_log import read_order_log
from htfi.apps.cli.main import cli
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput
from htfi.domain.events import Quote, Trade
from htfi.domain.orders import OrderFilled, OrderRejected
from htfi.domain.time import SystemClock
from htfi.execution.fix.config import FixSession
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed
from htfi.pipeline.intake.merged_feed import MergedFeed
from htfi.wiring.feeds import open_feed, resolve

Answer = Callable[[SessionRunner, FixMessage], None]
_UNLIKE = ("leaf_hash", "inputs", "consistency")


def plain(value: Any) -> Any:
    """A value without what names the source of a decision."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items() if key not in _UNLIKE}
    return [plain(each) for each in value] if isinstance(value, list) else value


def decisions_of(folder: Path) -> list[Any]:
    return [plain(json.loads(line)) for line in (folder / "decisions.jsonl").read_text().splitlines()]


def plain_orders(folder: Path) -> list[Any]:
    return [plain(one) for one in orders_of(folder)]


def write_ticks(path: Path, num: int, symbol: str = "AAA") -> Path:
    """Trades and quotes of two exchanges, one side of them at a time, several at one instant."""
    rng, at_ns, middle = random.Random(num), 1_704_204_000_000_000_000, 10_000
    rows: list[dict[str, object]] = []
    for number in range(num):
        at_ns += rng.choice((0, 1, 250_000_000, 1_000_000_000))
        middle += rng.choice((-1, 0, 1))
        row: dict[str, object] = {"ts": at_ns, "symbol": symbol, "venue": rng.choice("NQ")}
        if number % 3 == 0:
            rows.append(row | {"price": middle / 100, "size": rng.randrange(1, 500)})
        elif number % 3 == 1:
            rows.append(
                row | {"bid": (middle - 1) / 100, "bid_size": 100, "ask": (middle + 1) / 100, "ask_size": 7}
            )
        else:
            rows.append(row | {"ask": (middle + 2) / 100, "ask_size": 300})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@contextmanager
def feed(
    folder: Path, *sources: str, said: list[str] | None = None
) -> Iterator[tuple[MergedFeed, QuarantineFile]]:
    quarantine = QuarantineFile(folder / "q.jsonl", None)
    lines: list[str] = [] if said is None else said
    merged = open_feed(
        resolve(list(sources)),
        inbox=folder / "inbox",
        quarantine=quarantine,
        clock=SystemClock(),
        report=lines.append,
    )
    try:
        yield merged, quarantine
    finally:
        merged.close()
        quarantine.close()


def take(merged: MergedFeed, count: int = 10**9) -> list[tuple[object, ...]]:
    """What the next prices say."""
    found: list[tuple[object, ...]] = []
    for item in merged:
        if isinstance(item, Quote):
            found.append((item.available_at_ns, item.bid, item.bid_size, item.ask, item.ask_size, item.venue))
        elif isinstance(item, Trade):
            found.append((item.available_at_ns, item.price, item.size, item.venue))
        if len(found) == count:
            break
    return found


def write_sparse_quotes(path: Path) -> Path:
    """A quote every five seconds, thirty bars of 20 s."""
    rng, middle = random.Random(3), 10_000
    lines = ["ts,symbol,bid,ask,bid_size,ask_size"]
    for number in range(120):
        middle += rng.choice((-2, -1, 0, 1, 2))
        at_ms = 1_704_204_000_000 + 5_000 * number
        lines.append(f"{at_ms},AAA,{(middle - 1) / 100:.2f},{(middle + 1) / 100:.2f},4000,5000")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("version", ["FIX.4.4", "FIX.5.0SP2"])
def test_a_run_on_what_the_venue_publishes_trades_as_the_run_on_paper(tmp_path: Path, version: str) -> None:
    quotes = write_sparse_quotes(tmp_path / "quotes.csv")
    desk = tmp_path / "desk.toml"
    desk.write_text(DESK)
    words = ("trade", "--bar", "20s", "--settings", desk, "--plain", "--no-report", "--outputs", "jsonl")
    say(*words, quotes, "--out", tmp_path / "paper")
    venue, client = write_price_sessions(tmp_path, ["AAA"], version)
    with served(venue, desk, [quotes]):
        say(*words, "--venue", client, "--out", tmp_path / "run")
    assert decisions_of(tmp_path / "run") == decisions_of(tmp_path / "paper")
    assert plain_orders(tmp_path / "run") == plain_orders(tmp_path / "paper")
    assert {"fill", "market", "new"} <= {str(one["kind"]) for one in plain_orders(tmp_path / "run")}
    assert "positions add up" in say("ledger", "verify", tmp_path / "run")


def test_another_run_has_the_prices_from_the_first_on(tmp_path: Path) -> None:
    ticks = write_ticks(tmp_path / "ticks.jsonl", 50)
    venue, client = write_price_sessions(tmp_path, ["AAA"])
    with served(venue, prices=[ticks]):
        found = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            with feed(tmp_path / name, f"fix://{client}") as (merged, _):
                found.append(take(merged))
    assert len(found[0]) == 50
    assert found[0] == found[1]


def test_forecasts_on_published_bars_of_two_instruments_are_those_on_their_file(tmp_path: Path) -> None:
    write_prices(tmp_path / "prices.csv", 40)
    venue, client = write_price_sessions(tmp_path, ["AAA", "BBB"])
    words = ("run", "--plain", "--no-report", "--outputs", "jsonl")
    say(*words, tmp_path / "prices.csv", "--out", tmp_path / "file")
    with served(venue, prices=[tmp_path / "prices.csv"]):
        say(*words, f"fix://{client}", "--out", tmp_path / "run")
    assert len(decisions_of(tmp_path / "run")) > 20
    assert decisions_of(tmp_path / "run") == decisions_of(tmp_path / "file")


def test_ticks_of_several_exchanges_come_as_they_are_in_the_file(tmp_path: Path) -> None:
    ticks = write_ticks(tmp_path / "ticks.jsonl", 400)
    with feed(tmp_path, str(ticks)) as (merged, _):
        expected = take(merged)
    venue, client = write_price_sessions(tmp_path, ["AAA"])
    with served(venue, prices=[ticks]), feed(tmp_path, f"fix://{client}") as (merged, quarantine):
        assert take(merged) == expected
        assert quarantine.counts() == {}
    assert len(expected) == 400


def test_a_client_and_a_venue_that_end_anywhere_go_on_without_a_price_lost_or_twice(tmp_path: Path) -> None:
    ticks = write_ticks(tmp_path / "ticks.jsonl", 600)
    with feed(tmp_path, str(ticks)) as (merged, _):
        expected = take(merged)
    venue, client = write_price_sessions(tmp_path, ["AAA"])
    source = f"fix://{client}"
    inbox = tmp_path / "inbox" / "fix.jsonl"
    with served(venue, prices=[ticks], pace=200.0):
        with feed(tmp_path, source) as (merged, _):
            assert take(merged, 60) == expected[:60]
        assert 60 <= len(inbox.read_bytes().splitlines()) < 600
        with feed(tmp_path, source) as (merged, _):
            assert take(merged, 120) == expected[:120]
    assert len(inbox.read_bytes().splitlines()) < 600
    with (
        served(venue, prices=[ticks]),
        feed(tmp_path, source) as (merged, quarantine),
    ):  # the venue ended as well
        assert take(merged) == expected
        assert quarantine.counts() == {}
    assert len(inbox.read_bytes().splitlines()) == 600


class Prices(Recorder):
    """A counterparty that answers requests for market data as it is told."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer
        self.runner: SessionRunner | None = None

    def on_message(self, runner: SessionRunner, message: FixMessage) -> None:
        super().on_message(runner, message)
        self.runner = runner
        if message.msg_type == "V":
            self.answer(runner, message)

    def drop(self) -> None:
        """Break the connection off."""
        assert self.runner is not None
        transport = self.runner._transport
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


@contextmanager
def counterparty(
    folder: Path, answer: Answer, prices: str = ""
) -> Iterator[tuple[str, Prices, Callable[[Callable[[], None]], object]]]:
    """A venue that listens inside: the source of its prices, itself, and how to have it do something."""
    port = free_port()
    client = write_session(folder / "fix.toml", port, is_venue=False)
    client.write_text(f'{client.read_text()}[market_data]\nsymbols = ["AAA", "BBB"]\n{prices}\n')
    application = Prices(answer)
    is_listening, is_over = threading.Event(), asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        acceptor = Acceptor([runner_of(folder, FixSession("XSIM", "HTFI", initiator=False), application)])
        await acceptor.listen("127.0.0.1", port)
        is_listening.set()
        await is_over.wait()
        await acceptor.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert is_listening.wait(20)
    try:
        yield f"fix://{client}", application, loops[0].call_soon_threadsafe
    finally:
        loops[0].call_soon_threadsafe(is_over.set)
        thread.join(20)


def entry(symbol: str, price: str, **more: str) -> list[tuple[int, str]]:
    fields = {279: "0", 269: "2", 55: symbol, 270: price, 271: "5"}
    return list((fields | {int(tag[1:]): value for tag, value in more.items()}).items())


def x(request: FixMessage, *entries: list[tuple[int, str]]) -> Composed:
    body = [(262, request.get(262)), (268, str(len(entries)))]
    return "X", body + [field for one in entries for field in one]


def trade_once(runner: SessionRunner, request: FixMessage) -> None:
    symbol = request.get(55)
    runner.send(*x(request, entry(symbol, "10")))


def test_an_instrument_that_the_venue_refuses_is_said_and_the_others_come(tmp_path: Path) -> None:
    def answer(runner: SessionRunner, request: FixMessage) -> None:
        if request.get(55) == "BBB":
            runner.send("Y", [(262, request.get(262)), (281, "0"), (58, "BBB is not listed here")])
        else:
            runner.send(*x(request, entry("AAA", "10"), entry("ZZZ", "11")))

    said: list[str] = []
    with (
        counterparty(tmp_path, answer) as (source, _, _),
        feed(tmp_path, source, said=said) as (merged, quarantine),
    ):
        assert [one[1] for one in take(merged, 1)] == [10.0]
        wait_for(lambda: bool(said))
        assert quarantine.counts() in ({}, {"bad_symbol": 1})
    assert said[0].endswith("the venue refuses prices of BBB: BBB is not listed here")


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (
            [("Y", [(281, "0"), (58, "no such")])],
            "the venue refuses prices of AAA, BBB: no such: check market_data.sym",
        ),
        (
            [("j", [(45, "2"), (372, "V"), (380, "3"), (58, "no market data")])],
            "refuses a request for prices: no mark",
        ),
    ],
)
def test_a_venue_without_such_prices_is_one_line(tmp_path: Path, answer: list[Composed], what: str) -> None:
    def refuse(runner: SessionRunner, request: FixMessage) -> None:
        for kind, body in answer:
            runner.send(kind, [(262, request.get(262)), *body] if kind == "Y" else body)

    with counterparty(tmp_path, refuse) as (source, _, _), feed(tmp_path, source) as (merged, _):
        with pytest.raises(InvalidInput, match=what) as refused:
            take(merged)
        assert "\n" not in str(refused.value)


def test_a_malformed_group_is_rejected_said_and_in_the_quarantine_and_the_next_price_comes(
    tmp_path: Path,
) -> None:
    def answer(runner: SessionRunner, request: FixMessage) -> None:
        if request.get(55) == "AAA":
            kind, body = x(request, entry("AAA", "10"))
            runner.send(kind, [(tag, "3" if tag == 268 else value) for tag, value in body])
            runner.send(kind, [(tag, "ten" if tag == 270 else value) for tag, value in body])
            runner.send(kind, body)

    said: list[str] = []
    with (
        counterparty(tmp_path, answer) as (source, venue, _),
        feed(tmp_path, source, said=said) as (merged, quarantine),
    ):
        assert [one[1] for one in take(merged, 1)] == [10.0]
        assert quarantine.counts() == {"malformed": 2}
        wait_for(lambda: sum(one.msg_type == "3" for one in venue.messages) == 2)
    assert "Incorrect NumInGroup count for repeating group 268" in (tmp_path / "q.jsonl").read_text()
    assert len(said) == 1
    assert "rejected MsgSeqNum" in said[0]


def test_a_session_that_breaks_is_said_and_resubscribed_and_lost_prices_are_sent_again(
    tmp_path: Path,
) -> None:
    requests: list[FixMessage] = []

    def answer(runner: SessionRunner, request: FixMessage) -> None:
        requests.append(request)
        trade_once(runner, request)

    said: list[str] = []
    with (
        counterparty(tmp_path, answer) as (source, venue, do),
        feed(tmp_path, source, said=said) as (merged, quarantine),
    ):
        assert len(take(merged, 2)) == 2
        do(venue.drop)
        assert len(take(merged, 2)) == 2
        wait_for(lambda: len(said) == 2)
        assert quarantine.counts() == {}
    assert len({one.get(262) for one in requests}) == 4
    assert "no prices (the connection ended" in said[0]
    assert "2 instruments grows stale until it is back" in said[0]
    assert said[1].endswith("prices are back")


def test_prices_that_stop_while_the_session_stands_are_said(tmp_path: Path) -> None:
    said: list[str] = []
    with (
        counterparty(tmp_path, trade_once, "max_silence_s = 0.1") as (source, venue, do),
        feed(tmp_path, source, said=said) as (merged, _),
    ):
        assert len(take(merged, 2)) == 2
        wait_for(lambda: len(said) == 1)
        do(lambda: trade_once(venue.runner, venue.messages[0]))
        assert len(take(merged, 1)) == 1
        wait_for(lambda: len(said) >= 2)
    assert "no price has come for 0.1 s, though it is connected" in said[0]
    assert said[1].endswith("prices come again")


def test_numbers_that_the_venue_sets_anew_lose_no_price(tmp_path: Path) -> None:
    def answer(runner: SessionRunner, request: FixMessage) -> None:
        trade_once(runner, request)
        if request.get(55) == "AAA":
            runner._driver.state = structs.replace(
                runner._driver.state, next_out=runner.next_out + 5
            )  # a gap of five
            trade_once(runner, request)

    with counterparty(tmp_path, answer) as (source, _, _), feed(tmp_path, source) as (merged, quarantine):
        assert len(take(merged, 3)) == 3
        assert quarantine.counts() == {}


def test_a_venue_that_is_not_there_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_feed, "FIRST_LOGON_S", 0.3)
    _, client = write_price_sessions(tmp_path, ["AAA"])
    with feed(tmp_path, f"fix://{client}") as (merged, _), pytest.raises(DependencyUnavailable) as refused:
        take(merged)
    assert "no logon within 0.3 s (cannot connect: Connection refused)" in str(refused.value)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("[market_data]", "[prices]"), "fix: unknown key 'prices'"),
        (('symbols = ["AAA"]', ""), "market_data.symbols is empty: name the instruments"),
        (
            ('symbols = ["AAA"]', 'symbol = ["AAA"]'),
            "market_data: unknown key 'symbol': .*did you mean 'symbols'",
        ),
        (('sender = "PRICES"', ""), "orders and prices need a session each"),
        (('stamp = "row"', 'stamp = "mine"'), "stamp"),
        (("shares_clock = true", "shares_clock = true\nsend_prices = true"), "keep one"),
    ],
)
def test_a_file_that_cannot_hold_is_one_line(tmp_path: Path, change: tuple[str, str], what: str) -> None:
    _, client = write_price_sessions(tmp_path, ["AAA"])
    assert change[0] in client.read_text()
    client.write_text(client.read_text().replace(*change))
    with pytest.raises(HtfiError, match=what) as refused:
        trade(client, tmp_path / "run")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("fix:prices.toml", "is written fix://FILE"),
        ("fix://prices.toml", "prices.toml: cannot be read: No such file"),
    ],
)
def test_a_source_that_is_no_file_of_a_session_is_one_line(source: str, what: str) -> None:
    with pytest.raises(InvalidInput, match=what):
        resolve([source])


def trade(client: Path, out: Path) -> None:
    words = ["trade", "--venue", str(client), "--out", str(out), "--plain", "--no-report"]
    CliRunner().invoke(cli, words, catch_exceptions=False)


@pytest.mark.parametrize(
    ("orders", "prices", "what"),
    [
        ("send_prices = true", True, "orders.send_prices is for a venue without prices"),
        ("shares_clock = true", False, "are for a venue with prices of its own: name their files"),
    ],
)
def test_a_venue_whose_file_and_prices_do_not_agree_is_one_line(
    tmp_path: Path, orders: str, prices: bool, what: str
) -> None:
    venue, _ = write_price_sessions(tmp_path, ["AAA"], orders=orders)
    ticks = write_ticks(tmp_path / "ticks.jsonl", 5)
    with pytest.raises(InvalidInput, match=what), served(venue, prices=[ticks] if prices else []):
        raise AssertionError("the venue listens")


def test_clocks_that_are_shared_on_one_side_alone_are_one_line(tmp_path: Path) -> None:
    quotes = write_sparse_quotes(tmp_path / "quotes.csv")
    venue, client = write_price_sessions(tmp_path, ["AAA"])
    venue.write_text(venue.read_text().replace("shares_clock = true", ""))
    with served(venue, prices=[quotes]), pytest.raises(InvalidInput, match="must say the same on both sides"):
        trade(client, tmp_path / "run")


def wait_for(is_so: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if is_so():
            return
        time.sleep(0.005)
    raise AssertionError("waited in vain")


@pytest.mark.slow
def test_the_gate_refuses_orders_while_prices_are_missing(tmp_path: Path) -> None:
    """The prices end in the middle of a bar, which is decided at its end: by then they are too old."""
    settings = tmp_path / "desk.toml"
    settings.write_text(DESK + "[order_limits]\nmax_market_age_s = 0.2\n")
    runners: list[SessionRunner] = []

    def answer(runner: SessionRunner, request: FixMessage) -> None:
        runners.append(runner)

    with counterparty(tmp_path, answer, "end_at_close = true") as (source, venue, do):

        def trade_for_a_while() -> None:
            wait_for(lambda: len(runners) == 2)
            request, begin_s = venue.messages[0], time.monotonic()
            rng, middle = random.Random(1), 10_000
            while time.monotonic() - begin_s < 14.0:
                middle += rng.choice((-3, -1, 1, 3))
                price = f"{middle / 100:.2f}"
                do(lambda price=price: runners[0].send(*x(request, entry(request.get(55), price))))
                time.sleep(0.05)
            time.sleep(0.5 - (time.time() % 0.5) + 0.1)
            do(lambda: runners[0].send(*x(request, entry(request.get(55), f"{middle / 100:.2f}"))))
            do(venue.drop)
            time.sleep(2.0)
            do(lambda: runners[0].send("h", [(336, "1"), (340, "3")]))

        thread = threading.Thread(target=trade_for_a_while)
        thread.start()
        words = [
            "trade",
            source,
            "--bar",
            "500ms",
            "--settings",
            str(settings),
            "--out",
            str(tmp_path / "run"),
        ]
        done = CliRunner().invoke(cli, [*words, "--plain", "--no-report"])
        thread.join()
    assert done.exit_code == 0, done.output
    events = list(read_order_log(tmp_path / "run"))
    refused = [one for one in events if isinstance(one, OrderRejected) and "market_age" in one.reason]
    assert refused
    assert any(isinstance(one, OrderFilled) for one in events)
