"""A run without prices of its own and the venue that publishes them, both killed at any instant."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_trade_killed import command, outcome

from fix_venue import VenueProcess, orders_of, write_price_sessions
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.stores.order_log import ORDERS, read_order_log
from htfi.domain.orders import OrderFilled
from htfi.execution.fix.dictionary import load_dictionary
from htfi.execution.fix.messages import FixMessage, decode
from killable_run import KillableRuns


def plain_orders(folder: Path) -> list[Any]:
    """Order events without what names the source of the decisions."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key != "leaf_hash"}
        return value

    return [plain(one) for one in orders_of(folder)]


def symbols_of(prices: Path) -> list[str]:
    head, *rows = prices.read_text().splitlines()
    at = head.split(",").index("symbol")
    return sorted({row.split(",")[at] for row in rows})


def words_of(folder: Path) -> tuple[object, ...]:
    trade, _, *rest = command(Path(), folder / "run")
    return (trade, *rest, "--venue", folder / "fix.toml")


@contextmanager
def killed(venue: VenueProcess, run: Path, rng: random.Random, num_kills: int) -> Iterator[list[int]]:
    """A venue that is killed while the run records orders; the number of times."""
    orders = run / ORDERS
    is_over, count = threading.Event(), [0]

    def kill() -> None:
        while not is_over.is_set() and count[0] < num_kills:
            size = orders.stat().st_size if orders.exists() else 0
            while not is_over.is_set() and (orders.stat().st_size if orders.exists() else 0) <= size:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.01))
            if not is_over.is_set():
                venue.end()
                venue.start()
                count[0] += 1

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield count
    finally:
        is_over.set()
        killer.join(60)


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [40])
def test_a_run_and_a_venue_with_prices_that_are_killed_trade_as_the_run_on_paper(
    few_prices: Path, runs: KillableRuns, tmp_path: Path, num_kills: int
) -> None:
    runs.import_what_is_needed(*command(few_prices, tmp_path / "paper"))
    rng = random.Random(num_kills)
    orders = "shares_clock = true\ncancel_on_disconnect = false\nlogon_wait_s = 60.0"
    file, _ = write_price_sessions(tmp_path, symbols_of(few_prices), orders=orders)
    venue = VenueProcess(file, str(few_prices))
    venue.start()
    try:
        with killed(venue, tmp_path / "run", rng, num_kills) as count:
            ends = [runs.run(*words_of(tmp_path), after_s=rng.uniform(0.5, 1.5)) for _ in range(num_kills)]
            assert runs.run(*words_of(tmp_path)) == 0, runs.said
    finally:
        venue.end()
    assert -9 in ends
    assert count[0] > 0
    outcome(tmp_path / "run")
    assert plain_orders(tmp_path / "run") == plain_orders(tmp_path / "paper")


@pytest.mark.slow
def test_a_run_and_a_venue_with_a_clock_of_its_own_that_are_killed_have_the_same_fills(
    few_prices: Path, runs: KillableRuns, tmp_path: Path
) -> None:
    runs.import_what_is_needed(*command(few_prices, tmp_path / "paper"))
    rng = random.Random(7)
    file, _ = write_price_sessions(tmp_path, symbols_of(few_prices), orders="logon_wait_s = 60.0")
    venue = VenueProcess(file, str(few_prices), "--pace", "700000")
    venue.start()
    try:
        with killed(venue, tmp_path / "run", rng, 8) as count:
            ends = [runs.run(*words_of(tmp_path), after_s=rng.uniform(0.5, 2.0)) for _ in range(8)]
            assert runs.run(*words_of(tmp_path)) == 0, runs.said
    finally:
        venue.end()
    assert -9 in ends
    assert count[0] > 0
    outcome(tmp_path / "run")
    fills = {
        one.exec_id: one.quantity for one in read_order_log(tmp_path / "run") if isinstance(one, OrderFilled)
    }
    assert len(fills) > 5
    assert fills == fills_sent(tmp_path / "fix-XSIM-HTFI")


def fills_sent(folder: Path) -> dict[str, int]:
    """What a venue has reported as filled, by ExecID."""
    journal = MessageJournal(folder)
    try:
        messages = [decode(frame, load_dictionary("FIX44")) for frame in journal.sent_since(0, 1)]
    finally:
        journal.close()
    reports = [one for one in messages if isinstance(one, FixMessage) and one.get(150) == "F"]
    return {one.get(17): int(one.get(32)) for one in reports}
