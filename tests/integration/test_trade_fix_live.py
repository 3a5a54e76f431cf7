"""`htfi trade --venue` against a live venue: what it does to orders is what the run records, whatever breaks."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_trade_command import say, write_prices

from fix_counterparty import (
    Answer,
    Counterparty,
    acknowledged,
    counterparty,
    fill_all,
    filled,
    leave_open,
    report,
)
from fix_venue import free_port, write_session
from htfi.adapters.fix import live_venues
from htfi.adapters.fix.session_thread import SessionThread
from htfi.adapters.stores.order_log import ORDERS, read_order_log
from htfi.apps.cli.main import cli
from htfi.domain.orders import (
    AlertRaised,
    FillBusted,
    MassCancelRequest,
    OrderCanceled,
    OrderFilled,
    OrderRejected,
    RejectedBy,
)
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed
from htfi.execution.fix.resending import resend_frames
from htfi.wiring.trading import read_accounts

MadeOnce = Any


@pytest.fixture(scope="module")
def prices(made_once: MadeOnce) -> Path:
    return made_once("prices_of_fix", lambda folder: write_prices(folder / "prices.csv", 45)) / "prices.csv"


class Live:
    """A run and its venue in one folder."""

    def __init__(self, folder: Path, prices: Path, orders: str = "") -> None:
        self.folder, self.run, self.prices = folder, folder / "run", prices
        self.port = free_port()
        self.client = write_session(folder / "fix.toml", self.port, is_venue=False, orders=orders)

    def trade(self, prices: Path | None = None) -> None:
        words = [
            "trade",
            prices or self.prices,
            "--venue",
            self.client,
            "--out",
            self.run,
            "--plain",
            "--no-report",
        ]
        done = CliRunner().invoke(cli, [*map(str, words), "--outputs", "jsonl"], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        assert "positions add up" in say("ledger", "verify", self.run)

    def fills(self) -> dict[str, int]:
        """Lots by ExecID, as the run has recorded them."""
        return {one.exec_id: one.quantity for one in self.events() if isinstance(one, OrderFilled)}

    def events(self) -> list[Any]:
        return list(read_order_log(self.run))


def sold_and_bought(venue: Counterparty) -> dict[str, int]:
    return {one.get(17): int(one.get(32)) for one in venue.sent_fills()}


def test_what_the_venue_fills_is_what_the_run_holds_and_a_run_made_again_is_the_same(
    prices: Path, tmp_path: Path
) -> None:
    live = Live(tmp_path, prices)
    with counterparty(tmp_path, live.port) as venue:
        live.trade()
        assert len(live.fills()) > 10
        assert live.fills() == sold_and_bought(venue)
        before, num_requests = (live.run / ORDERS).read_bytes(), len(venue.requests)
        live.trade()
        assert (live.run / ORDERS).read_bytes() == before
        assert len(venue.requests) == num_requests
        assert venue.refused_by_client == []


def test_a_run_that_goes_on_with_more_prices_sends_only_what_is_new(prices: Path, tmp_path: Path) -> None:
    few = first_rows(prices, tmp_path, 56)
    live = Live(tmp_path, few)
    with counterparty(tmp_path, live.port) as venue:
        live.trade()
        num = len(live.fills())
        assert num > 2
        few.write_text(prices.read_text())
        live.trade()
        assert len(live.fills()) > num
        assert live.fills() == sold_and_bought(venue)


def test_a_bust_and_a_correction_after_the_runs_end_are_taken_when_it_goes_on(
    prices: Path, tmp_path: Path
) -> None:
    few = first_rows(prices, tmp_path, 56)
    live = Live(tmp_path, few)
    with counterparty(tmp_path, live.port) as venue:
        live.trade()
        first, second = venue.sent_fills()[:2]
        orders = [venue.orders[one.get(11)] for one in (first, second)]
        venue.unsent.append(report(orders[0], "B1", "H", f19=first.get(17), f32=first.get(32)))
        venue.unsent.append(report(orders[1], "B2", "G", f19=second.get(17), f32="1", f31=second.get(31)))
        few.write_text(prices.read_text())
        live.trade()
        fills = venue.sent_fills()
    busted = {one.exec_id for one in live.events() if isinstance(one, FillBusted)}
    assert busted == {first.get(17), second.get(17)}
    assert live.fills() == {one.get(17): int(one.get(32)) for one in fills} | {"B2": 1}
    stands = [one for one in fills if one.get(17) not in busted]
    held = sum(_sign(one) * int(one.get(32)) for one in stands) + _sign(second)
    assert sum(one.lots for one in read_accounts(live.run).positions.values()) == held


def _sign(fill: FixMessage) -> int:
    return 1 if fill.get(54) == "1" else -1


def first_rows(prices: Path, folder: Path, num: int) -> Path:
    path = folder / "few.csv"
    path.write_text("".join(prices.read_text().splitlines(keepends=True)[: 1 + num]))
    return path


def test_nothing_stays_open_where_a_run_ends(prices: Path, tmp_path: Path) -> None:
    live = Live(tmp_path, first_rows(prices, tmp_path, 78))  # an order was sent on the last day
    with counterparty(tmp_path, live.port, leave_open) as venue:
        live.trade()
        assert list(read_accounts(live.run).open_orders()) == []
        assert sum(isinstance(one, OrderCanceled) for one in live.events()) > 5
        assert [one.why for one in live.events() if isinstance(one, MassCancelRequest)] == ["the run ends"]
        before = (live.run / ORDERS).read_bytes()
        live.trade()
        assert (live.run / ORDERS).read_bytes() == before
        assert len({one.get(11) for one in venue.requests}) == len(venue.requests)


def test_what_was_open_when_the_connection_broke_is_cancelled(prices: Path, tmp_path: Path) -> None:
    """The venue refuses the first cancels of the first order, so that it is open when the session is back."""
    live = Live(tmp_path, prices)
    refused: list[str] = []

    def break_at_the_first(venue: Counterparty, message: FixMessage) -> list[Composed]:
        if len(venue.requests) == 1:
            venue.drop()
        order = message.get(41)
        if message.msg_type == "F" and order == venue.requests[0].get(11) and len(refused) < 6:
            refused.append(order)
            return [("9", [(37, "V"), (11, message.get(11)), (41, order), (39, "0"), (434, "1")])]
        return leave_open(venue, message)

    with counterparty(tmp_path, live.port, break_at_the_first):
        live.trade()
    causes = [one.why for one in live.events() if isinstance(one, MassCancelRequest)]
    assert "was interrupted" in causes[0]
    assert len(refused) == 6
    assert list(read_accounts(live.run).open_orders()) == []


def test_a_venue_that_refuses_every_cancel_is_asked_once_for_each_item_of_the_feed(
    prices: Path, tmp_path: Path
) -> None:
    live = Live(tmp_path, first_rows(prices, tmp_path, 64))

    def keep_open(venue: Counterparty, message: FixMessage) -> list[Composed]:
        if message.msg_type == "F":
            return [("9", [(37, "V"), (11, message.get(11)), (41, message.get(41)), (39, "0"), (434, "1")])]
        return leave_open(venue, message)

    with counterparty(tmp_path, live.port, keep_open) as venue:
        live.trade()
    cancels = [one for one in venue.requests if one.msg_type == "F"]
    assert 2 < len(cancels) <= 2 * 64


def test_an_order_that_is_never_answered_is_waited_for_once(
    prices: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = Live(tmp_path, first_rows(prices, tmp_path, 64), "answer_wait_s = 0.3")
    waits: list[float] = []
    wait = live_venues.wait_for_message

    def wait_for_message(sessions: list[SessionThread], wait_s: float) -> bool:
        has_come = wait(sessions, wait_s)
        if not has_come:
            waits.append(wait_s)
        return has_come

    monkeypatch.setattr(live_venues, "wait_for_message", wait_for_message)

    def forget_the_first(venue: Counterparty, message: FixMessage) -> list[Composed]:
        return [] if message.get(11) == venue.requests[0].get(11) else leave_open(venue, message)

    with counterparty(tmp_path, live.port, forget_the_first) as venue:
        live.trade()
    assert len(venue.requests) > 8
    assert len(waits) == 1  # in vain


def test_a_new_order_is_refused_while_the_session_is_down_and_goes_nowhere_later(
    prices: Path, tmp_path: Path
) -> None:
    live = Live(tmp_path, prices, "logon_wait_s = 0.01\nanswer_wait_s = 0.01")
    live.trade()
    rejected = [one for one in live.events() if isinstance(one, OrderRejected)]
    assert len(rejected) > 5
    assert {one.by for one in rejected} == {RejectedBy.LINK}
    assert "is down: " in rejected[0].reason
    with counterparty(tmp_path, live.port) as venue:
        live.trade()
        assert venue.requests == []
    assert "not sent: " in say("orders", "show", live.run, rejected[0].order_id)


def _twice(venue: Counterparty, message: FixMessage) -> list[Composed]:
    return [each for one in fill_all(venue, message) for each in (one, one)]


def _after_cancel(venue: Counterparty, message: FixMessage) -> list[Composed]:
    """Cancels each order without being asked, and then fills it."""
    if message.msg_type != "D":
        return fill_all(venue, message)
    number = message.sequence or 0
    return [acknowledged(message, number), report(message, f"C{number}", "4"), filled(message, number)]


def _two_executions(venue: Counterparty, message: FixMessage) -> list[Composed]:
    """Fills each order twice, under two ids."""
    answers = fill_all(venue, message)
    return (
        [*answers, filled(message, 100_000 + (message.sequence or 0))] if message.msg_type == "D" else answers
    )


def _of_others(venue: Counterparty, message: FixMessage) -> list[Composed]:
    """Fills an order that nobody sent beside each."""
    kind, body = report(message, f"O{message.sequence}", "F", f32="7", f31="9.99")
    return [
        *fill_all(venue, message),
        (kind, [(tag, "STRANGE" if tag == 11 else value) for tag, value in body]),
    ]


@pytest.mark.parametrize(
    ("answer", "num_fills", "alert"),
    [
        (_twice, 1, ""),
        (_after_cancel, 1, "OrderFilled: filled when it was canceled; it counts in the position"),
        (_two_executions, 2, "OrderFilled: filled when it was filled; it counts in the position"),
        (_of_others, 1, "an execution of an unknown order, ClOrdID STRANGE (buy AAA, 7 at 9.99"),
    ],
)
def test_a_venue_that_misbehaves_is_recorded_as_it_was_and_again_the_same(
    prices: Path, tmp_path: Path, answer: Answer, num_fills: int, alert: str
) -> None:
    live = Live(tmp_path, prices)
    with counterparty(tmp_path, live.port, answer):
        live.trade()
        before = (live.run / ORDERS).read_bytes()
        live.trade()
    assert (live.run / ORDERS).read_bytes() == before
    assert "positions add up" in say("ledger", "verify", live.run)
    accounts = read_accounts(live.run)
    assert len(accounts.orders) > 5
    assert {len(one.fills) for one in accounts.orders.values()} == {num_fills}
    alerts = [one.what for one in live.events() if isinstance(one, AlertRaised)]
    assert bool(alert) == any(alert and alert in one for one in alerts)
    assert bool(alert) == bool(alerts)


def test_reports_carry_the_venues_time_beside_the_runs(prices: Path, tmp_path: Path) -> None:
    live = Live(tmp_path, prices)
    with counterparty(tmp_path, live.port):
        live.trade()
    fills = [
        json.loads(line) for line in (live.run / ORDERS).read_text().splitlines() if '"kind":"fill"' in line
    ]
    assert len(fills) > 5
    assert all(one["turn"] > 0 for one in fills)


def _late(venue: Counterparty, message: FixMessage) -> list[Composed]:
    """Answers each request long after the run has stopped to wait for it."""
    answers = fill_all(venue, message)

    def send() -> None:
        venue.unsent += answers
        assert venue.runner is not None
        venue.flush(venue.runner)

    assert venue.loop is not None
    venue.loop.call_later(0.05, send)
    return []


def _breaks_off(venue: Counterparty, message: FixMessage) -> list[Composed]:
    """Answers, and breaks the connection off before the answers have left."""
    venue.drop()
    return fill_all(venue, message)


def _resends(venue: Counterparty, message: FixMessage) -> list[Composed]:
    """Sends everything that it has ever sent once more before each answer."""
    runner = venue.runner
    assert runner is not None
    last = runner.next_out - 1
    frames = resend_frames(runner.settings, runner.dictionary, runner.journal.sent, 1, last, time.time_ns())
    assert runner._transport is not None
    runner._transport.write(b"".join(frames))
    return fill_all(venue, message)


@pytest.mark.parametrize("answer", [_late, _breaks_off, _resends])
def test_a_venue_that_is_late_or_breaks_off_or_resends_at_each_message_fills_each_order_once(
    prices: Path, tmp_path: Path, answer: Answer
) -> None:
    waits = "logon_wait_s = 60.0\nmax_resend_age_s = 600.0\n"
    is_late = "answer_wait_s = 0.01" if answer is _late else ""
    num_rows = 320 if answer is _late else 96  # most of them come while an answer is awaited
    live = Live(tmp_path, first_rows(prices, tmp_path, num_rows), waits + is_late)
    with counterparty(tmp_path, live.port, answer) as venue:
        live.trade()
        time.sleep(0.1 if answer is _late else 0.0)
        live.trade()  # what came after its end
        assert live.fills() == sold_and_bought(venue)
        before = (live.run / ORDERS).read_bytes()
        live.trade()
        assert (live.run / ORDERS).read_bytes() == before
        orders = [one.get(11) for one in venue.requests if one.msg_type == "D"]
        assert len(orders) == len(set(orders))
    assert len(live.fills()) > 5
    assert venue.refused_by_client == []
