"""Runs of algorithms, and their venues, killed at any instant: no child is lost, doubled or unknown."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_trade_killed import Outcome, outcome

from fix_counterparty import Counterparty, counterparty, trade_some, trade_some_and_cancel_all
from fix_venue import VenueProcess, free_port, orders_of, write_session
from htfi.adapters.stores.order_log import ORDERS, read_order_log
from htfi.domain.orders import NewOrder, OrderFilled, OrderRejected, ParentOrder, RejectedBy
from htfi.wiring.trading import read_accounts
from killable_run import KillableRuns
from quotes_of_two_venues import write_market

MadeOnce = Any
STEPPED = "send_prices = true\ncancel_on_disconnect = false\nlogon_wait_s = 60.0"
NAMES = ("XNYS", "XNAS")
NUM_APPENDS = 300  # of the order log in a whole run, about


@pytest.fixture(scope="module")
def market(made_once: MadeOnce) -> Path:
    def make(folder: Path) -> None:
        write_market(folder, minutes=2.1, duration_s=6.0, patience_s=1.0)

    return made_once("market_of_kills", make)


def words_of(market: Path, folder: Path, *more: object) -> tuple[object, ...]:
    return (
        "trade", market / "quotes.csv", "--bar", "5s", "--settings", market / "settings.toml", "--algorithm", "vwap",
        "--venues", market / "venues.toml", "--out", folder, "--plain", "--no-report", "--outputs", "jsonl", *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def whole(market: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on paper that nobody killed."""
    folder = tmp_path_factory.mktemp("whole")
    runs.import_what_is_needed(*words_of(market, folder))
    accounts = read_accounts(folder)
    assert len(accounts.parents) > 3
    assert sum(len(one.fills) for one in accounts.orders.values()) > 30
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [5, pytest.param(100, marks=pytest.mark.slow)])
def test_a_killed_run_on_paper_ends_as_if_it_had_not_been(
    market: Path, runs: KillableRuns, whole: Path, tmp_path: Path, num_kills: int
) -> None:
    rng, ends = random.Random(num_kills), list[int]()
    expected: Outcome = outcome(whole)
    for number in range(num_kills):
        words = words_of(market, tmp_path / str(number % (2 if num_kills < 10 else 7)))
        point = rng.choice(("orders", "order is sent", "ledger"))
        ends.append(
            runs.run(*words, point=point, count=rng.randrange(1, 6 if point == "ledger" else NUM_APPENDS))
        )
    assert ends.count(-9) >= num_kills // 2
    for folder in sorted(tmp_path.iterdir()):
        assert runs.run(*words_of(market, folder)) == 0, runs.said
        assert outcome(folder) == expected


@contextmanager
def served(folder: Path, market: Path) -> Iterator[list[VenueProcess]]:
    """The two venues as processes; the run's files are beside theirs."""
    venues: list[VenueProcess] = []
    try:
        for name in NAMES:
            port, orders = free_port(), f'{STEPPED}\nvenue = "{name}"'
            write_session(folder / f"{name}.toml", port, is_venue=False, orders=orders, name=name)
            path = write_session(folder / f"{name}-venue.toml", port, is_venue=True, orders=orders, name=name)
            more = ("--settings", str(market / "settings.toml"), "--venues", str(market / "venues.toml"))
            venues.append(VenueProcess(path, *more, name=name))
            venues[-1].start()
        yield venues
    finally:
        for venue in venues:
            venue.end()


def sessions_of(folder: Path) -> list[object]:
    return [word for name in NAMES for word in ("--venue", folder / f"{name}.toml")]


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [3, 100])
def test_a_run_and_its_two_venues_killed_at_random_instants_trade_as_on_paper(
    market: Path, runs: KillableRuns, whole: Path, tmp_path: Path, num_kills: int
) -> None:
    rng, words = random.Random(num_kills), words_of(market, tmp_path / "run", *sessions_of(tmp_path))
    orders, is_over, num_venue_kills = tmp_path / "run" / ORDERS, threading.Event(), 0

    def size() -> int:
        return orders.stat().st_size if orders.exists() else 0

    with served(tmp_path, market) as venues:

        def kill_venues() -> None:
            nonlocal num_venue_kills
            while not is_over.is_set() and num_venue_kills < num_kills:
                before = size()
                while not is_over.is_set() and size() <= before:
                    time.sleep(0.002)  # until something was recorded, so that each kill comes among orders
                time.sleep(rng.uniform(0.0, 0.02))
                if not is_over.is_set():
                    venue = rng.choice(venues)
                    venue.end()
                    venue.start()
                    num_venue_kills += 1

        killer = threading.Thread(target=kill_venues)
        killer.start()
        try:
            places = [rng.randrange(1, NUM_APPENDS) for _ in range(num_kills)]
            ends = [runs.run(*words, point="orders", count=place) for place in places]
            assert runs.run(*words) == 0, runs.said
        finally:
            is_over.set()
            killer.join(60)
    assert -9 in ends
    assert num_venue_kills > 0
    outcome(tmp_path / "run")
    assert orders_of(tmp_path / "run") == orders_of(whole)


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [4, 100])
def test_a_run_at_two_live_venues_killed_at_random_instants_holds_what_they_filled(
    market: Path, runs: KillableRuns, whole: Path, tmp_path: Path, num_kills: int
) -> None:
    rng = random.Random(num_kills)
    words = words_of(market, tmp_path / "run", *sessions_of(tmp_path))
    with ExitStack() as closing:
        venues: list[Counterparty] = []
        for name, answer in zip(NAMES, (trade_some, trade_some_and_cancel_all), strict=True):
            port, orders = free_port(), f'logon_wait_s = 60.0\nvenue = "{name}"'
            write_session(tmp_path / f"{name}.toml", port, is_venue=False, orders=orders, name=name)
            venues.append(closing.enter_context(counterparty(tmp_path, port, answer, name)))
        ends = list[int]()
        for _ in range(num_kills):
            point = rng.choice(("orders", "message is sent", "message is written"))
            ends.append(runs.run(*words, point=point, count=rng.randrange(1, NUM_APPENDS)))
            if rng.random() < 0.3:
                rng.choice(venues).drop()
        assert runs.run(*words) == 0, runs.said
        assert -9 in ends
        check(tmp_path / "run", venues)


def check(folder: Path, venues: list[Counterparty]) -> None:
    """Children and fills are the venues', once each; no parent has more than it asked for; positions are theirs."""
    outcome(folder)
    events = list(read_order_log(folder))
    accounts = read_accounts(folder)
    by = {one.order_id: one.by for one in events if isinstance(one, OrderRejected)}
    left = [one for one in events if isinstance(one, NewOrder) and one.order_id not in by]
    assert RejectedBy.VENUE not in by.values()
    assert len(left) > 20
    position = 0
    for name, venue in zip(NAMES, venues, strict=True):
        sent = [one.get(11).partition("-")[2] for one in venue.requests if one.msg_type == "D"]
        assert sent == [one.order_id for one in left if one.venue == name]
        fills = venue.sent_fills()
        position += sum((1 if one.get(54) == "1" else -1) * int(one.get(32)) for one in fills)
        own = [one for one in accounts.orders.values() if one.new.venue == name]
        recorded = {fill.exec_id: fill.quantity for one in own for fill in one.fills.values()}
        assert recorded == {one.get(17): int(one.get(32)) for one in fills}
    assert sum(one.lots for one in accounts.positions.values()) == position
    assert list(accounts.open_orders()) == []
    parents = {one.order_id: one.quantity for one in events if isinstance(one, ParentOrder)}
    assert len(parents) > 2
    assert all(accounts.parents[name].filled <= lots for name, lots in parents.items())
    assert sum(isinstance(one, OrderFilled) for one in events) > 5
