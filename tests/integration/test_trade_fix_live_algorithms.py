"""Algorithms at live venues by FIX: children leave once, fills are the venues', whatever venues and sessions do."""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from test_trade_fix_algorithms import say, sessions, words_of

from fix_counterparty import (
    Answer,
    Counterparty,
    counterparty,
    leave_open,
    mass_cancelled,
    report,
    trade_some,
)
from htfi.adapters.fix.settings import read_endpoint
from htfi.adapters.stores.order_log import ORDERS, read_order_log
from htfi.domain.orders import (
    CancelRejected,
    MassCancelRequest,
    NewOrder,
    OrderCanceled,
    OrderFilled,
    OrderRejected,
    ParentOrder,
    RejectedBy,
)
from htfi.execution.fix.messages import FixMessage
from htfi.execution.fix.order_codes import Composed
from htfi.wiring.trading import read_accounts
from quotes_of_two_venues import write_market

MadeOnce = Any
LIVE = "logon_wait_s = 60.0"


@pytest.fixture(scope="module")
def market(made_once: MadeOnce) -> Path:
    def make(folder: Path) -> None:
        write_market(folder, minutes=2.1, duration_s=6.0, patience_s=1.0)

    return made_once("live_market", make)


class Live:
    """A run by an algorithm, its venues, and how they answer."""

    def __init__(self, folder: Path, market: Path, *names: str, orders: str = LIVE) -> None:
        self.folder, self.market, self.run, self.names = folder, market, folder / "run", names
        self.quotes = market / "quotes.csv"
        self.clients = [client for _, client in sessions(folder, *names, orders=orders)]
        self.venues: list[Counterparty] = []

    def open(self, closing: ExitStack, *answers: Answer) -> None:
        """Have the venues listen, each with its answer."""
        for client, name, answer in zip(self.clients, self.names, answers, strict=True):
            port = read_endpoint(client).port
            self.venues.append(closing.enter_context(counterparty(self.folder, port, answer, name)))

    def words(self, algorithm: str = "twap") -> list[str]:
        listed = ["--venues", self.market / "venues.toml"] if len(self.names) > 1 else []
        clients = [word for client in self.clients for word in ("--venue", client)]
        words = words_of(self.market, self.run, "--algorithm", algorithm, *listed, *clients)
        words[1] = str(self.quotes)
        return words

    def trade(self, algorithm: str = "twap") -> list[Any]:
        """The events of the run, which add up, leave nothing open and are what the venues have."""
        say(*self.words(algorithm))
        assert "positions add up" in say("ledger", "verify", self.run)
        events = list(read_order_log(self.run))
        assert list(read_accounts(self.run).open_orders()) == []
        by = {one.order_id: one.by for one in events if isinstance(one, OrderRejected)}
        sent = [
            one.get(11).partition("-")[2] for v in self.venues for one in v.requests if one.msg_type == "D"
        ]
        left = [one.order_id for one in events if isinstance(one, NewOrder)]
        left = [one for one in left if by.get(one, RejectedBy.VENUE) is RejectedBy.VENUE]
        assert sorted(sent) == sorted(left)
        fills = {one.exec_id: one.quantity for one in events if isinstance(one, OrderFilled)}
        assert fills == {one.get(17): int(one.get(32)) for v in self.venues for one in v.sent_fills()}
        return events


def unlike(name: str) -> Callable[[Answer], Answer]:
    """Executions of a venue have ids that no other's have."""

    def of(answer: Answer) -> Answer:
        def named(venue: Counterparty, message: FixMessage) -> list[Composed]:
            return [
                (kind, [(tag, name + value if tag == 17 else value) for tag, value in body])
                for kind, body in answer(venue, message)
            ]

        return named

    return of


@pytest.mark.parametrize("algorithm", ["twap", pytest.param("peg", marks=pytest.mark.slow)])
def test_children_leave_once_and_the_run_holds_what_the_venue_filled(
    market: Path, tmp_path: Path, algorithm: str
) -> None:
    live = Live(tmp_path, market, "XSIM")
    with ExitStack() as closing:
        live.open(closing, trade_some)
        events = live.trade(algorithm)
        assert sum(isinstance(one, OrderFilled) for one in events) > 5
        assert sum(isinstance(one, OrderCanceled) for one in events) > 5
        num_requests = len(live.venues[0].requests)
        assert live.trade(algorithm) == events
        assert len(live.venues[0].requests) == num_requests
    parents = {one.order_id: one.quantity for one in events if isinstance(one, ParentOrder)}
    accounts = read_accounts(live.run)
    assert len(parents) > 2
    assert all(accounts.parents[name].filled <= lots for name, lots in parents.items())


def test_a_run_that_goes_on_with_more_quotes_ends_its_parent_where_it_did(
    market: Path, tmp_path: Path
) -> None:
    live = Live(tmp_path, market, "XSIM")
    whole = live.quotes.read_text()
    live.quotes = tmp_path / "few.csv"
    with ExitStack() as closing:
        live.open(closing, trade_some)
        for num in (240, 250, 261):
            live.quotes.write_text("".join(whole.splitlines(keepends=True)[:num]))
            earlier = live.trade()
        live.quotes.write_text(whole)
        events = live.trade()
    assert events[: len(earlier)] == earlier
    assert len(events) > len(earlier)
    ends = [one for one in events if isinstance(one, MassCancelRequest) and one.why == "the run ends"]
    assert len(ends) > 1


def test_several_sessions_each_get_their_own_children(market: Path, tmp_path: Path) -> None:
    live = Live(tmp_path, market, "XNYS", "XNAS")
    with ExitStack() as closing:
        live.open(closing, unlike("n")(trade_some), unlike("q")(trade_some))
        events = live.trade()
        assert live.trade() == events
        first, second = (len(one.sent_fills()) for one in live.venues)
    assert first > 2
    assert second > 2


def test_children_go_elsewhere_while_a_session_is_down(market: Path, tmp_path: Path) -> None:
    live = Live(tmp_path, market, "XNYS", "XNAS", orders="logon_wait_s = 0.2\nanswer_wait_s = 0.2")
    with ExitStack() as closing:
        live.names, clients = ("XNYS",), live.clients
        live.clients = clients[:1]
        live.open(closing, trade_some)
        live.names, live.clients = ("XNYS", "XNAS"), clients
        events = live.trade()
    lost = [one for one in events if isinstance(one, OrderRejected) and one.by is RejectedBy.LINK]
    assert lost
    assert sum(isinstance(one, OrderFilled) for one in events) > 5


def test_what_was_open_when_a_session_broke_is_cancelled_and_its_parent_goes_on(
    market: Path, tmp_path: Path
) -> None:
    live = Live(tmp_path, market, "XSIM")

    def break_now_and_then(venue: Counterparty, message: FixMessage) -> list[Composed]:
        if len(venue.requests) in (5, 25):
            venue.drop()
        return trade_some(venue, message)

    with ExitStack() as closing:
        live.open(closing, break_now_and_then)
        events = live.trade()
        before = (live.run / ORDERS).read_bytes()
        live.trade()
    assert (live.run / ORDERS).read_bytes() == before
    causes = [one.why for one in events if isinstance(one, MassCancelRequest)]
    assert any("was interrupted" in one for one in causes)
    parents = [one.order_id for one in events if isinstance(one, ParentOrder)]
    at = next(n for n, one in enumerate(events) if isinstance(one, MassCancelRequest))
    begun = [one.order_id for one in events[:at] if isinstance(one, ParentOrder)][-1]
    later = [one.parent_id for one in events[at:] if isinstance(one, NewOrder)]
    assert begun in later
    assert len(parents) > 2


def _answers_no_mass_cancel(venue: Counterparty, message: FixMessage) -> list[Composed]:
    return [] if message.msg_type == "q" else leave_open(venue, message)


@pytest.mark.parametrize(
    ("answer", "num_singly"),
    [
        (mass_cancelled, 0),
        pytest.param(leave_open, 2, marks=pytest.mark.slow),
        pytest.param(_answers_no_mass_cancel, 2, marks=pytest.mark.slow),
    ],
    ids=["taken", "refused", "not answered"],
)
def test_what_is_open_at_the_end_is_cancelled_by_one_message_or_singly_where_that_fails(
    market: Path, tmp_path: Path, answer: Answer, num_singly: int
) -> None:
    live = Live(tmp_path, market, "XSIM", orders="logon_wait_s = 60.0\nanswer_wait_s = 0.1")
    live.quotes = tmp_path / "few.csv"
    live.quotes.write_text("".join((market / "quotes.csv").read_text().splitlines(keepends=True)[:284]))
    with ExitStack() as closing:
        live.open(closing, answer)
        events = live.trade()
        assert live.trade() == events
        requests = live.venues[0].requests
    at = next(n for n, one in enumerate(requests) if one.msg_type == "q")
    assert [one.msg_type for one in requests[at:]].count("q") == 1
    after = [one.get(11) for one in requests[at:] if one.msg_type == "F"]
    cancelled = [one for one in events if isinstance(one, OrderCanceled)]
    assert len(after) >= num_singly
    assert bool(after) == bool(num_singly)
    assert len(cancelled) > 5
    assert all(one.cl_ord_id for one in cancelled)


def _reject_all(venue: Counterparty, message: FixMessage) -> list[Composed]:
    if message.msg_type == "D":
        return [report(message, f"R{message.sequence}", "8", f58="no")]
    return trade_some(venue, message)


def _cancel_nothing(venue: Counterparty, message: FixMessage) -> list[Composed]:
    if message.msg_type == "F" and message.get(41) in venue.orders and len(venue.requests) < 60:
        return [("9", [(37, "V"), (11, message.get(11)), (41, message.get(41)), (39, "0"), (434, "1")])]
    return trade_some(venue, message)


@pytest.mark.parametrize(
    ("answer", "kind"), [(_reject_all, OrderRejected), (_cancel_nothing, CancelRejected)]
)
def test_a_venue_that_refuses_is_asked_once_a_second(
    market: Path, tmp_path: Path, answer: Answer, kind: type[Any]
) -> None:
    live = Live(tmp_path, market, "XSIM")
    with ExitStack() as closing:
        live.open(closing, answer)
        events = live.trade()
    refused = [one for one in events if isinstance(one, kind)]
    assert 5 < len(refused) < 100
    by_order: dict[str, list[int]] = {}
    for one in refused:
        by_order.setdefault(one.order_id, []).append(one.at_ns)
    assert all(b - a >= 10**9 for times in by_order.values() for a, b in pairwise(times))
