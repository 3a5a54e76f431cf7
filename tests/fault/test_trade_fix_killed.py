"""A run that trades by FIX and its venue, both killed at any instant: the same orders and fills, once each."""

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_trade_killed import command, outcome

from fix_venue import VenueProcess, free_port, orders_of, write_session
from htfi.adapters.stores.order_log import ORDERS
from killable_run import KillableRuns

STEPPED = "send_prices = true\ncancel_on_disconnect = false\nlogon_wait_s = 60.0"


@pytest.fixture(scope="module")
def whole(
    few_prices: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, object]]:
    """What the run on paper records."""
    folder = tmp_path_factory.mktemp("whole")
    runs.import_what_is_needed(*command(few_prices, folder))
    outcome(folder)
    return orders_of(folder)


@pytest.fixture
def venue(tmp_path: Path) -> Iterator[VenueProcess]:
    port = free_port()
    write_session(tmp_path / "fix.toml", port, is_venue=False, orders=STEPPED)
    process = VenueProcess(write_session(tmp_path / "venue.toml", port, is_venue=True, orders=STEPPED))
    process.start()
    yield process
    process.end()


def words_of(prices: Path, folder: Path) -> tuple[object, ...]:
    return (*command(prices, folder / "run"), "--venue", folder / "fix.toml")


@pytest.mark.parametrize(
    ("point", "count"),
    [
        ("orders", 7),
        pytest.param("message is sent", 40, marks=pytest.mark.slow),
        pytest.param("message is sent", 300, marks=pytest.mark.slow),
        pytest.param("message is written", 55, marks=pytest.mark.slow),
        pytest.param("orders", 40, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_a_place_sends_each_order_once(
    few_prices: Path,
    runs: KillableRuns,
    whole: list[dict[str, object]],
    venue: VenueProcess,
    tmp_path: Path,
    point: str,
    count: int,
) -> None:
    words = words_of(few_prices, tmp_path)
    assert runs.run(*words, point=point, count=count) == -9
    assert runs.run(*words) == 0, runs.said
    outcome(tmp_path / "run")
    assert orders_of(tmp_path / "run") == whole


def test_a_full_disk_sends_nothing_and_is_one_line(
    few_prices: Path, runs: KillableRuns, whole: list[dict[str, object]], venue: VenueProcess, tmp_path: Path
) -> None:
    words = words_of(few_prices, tmp_path)
    assert runs.run(*words, point="message is sent", count=90, act="full") == 1
    (line,) = [one for one in runs.said.splitlines() if one.startswith("htfi: ")]
    assert "cannot write the FIX journal" in line
    assert "nothing was sent" in line
    assert runs.run(*words) == 0, runs.said
    assert orders_of(tmp_path / "run") == whole


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [3, pytest.param(60, marks=pytest.mark.slow)])
def test_a_venue_and_a_run_killed_at_random_instants_trade_as_if_they_had_not_been(
    few_prices: Path,
    runs: KillableRuns,
    whole: list[dict[str, object]],
    venue: VenueProcess,
    tmp_path: Path,
    num_kills: int,
) -> None:
    rng, words = random.Random(num_kills), words_of(few_prices, tmp_path)
    orders = tmp_path / "run" / ORDERS
    is_over = threading.Event()
    num_venue_kills = 0

    def kill_venue() -> None:
        nonlocal num_venue_kills
        while not is_over.is_set() and num_venue_kills < num_kills:
            size = orders.stat().st_size if orders.exists() else 0
            while not is_over.is_set() and (orders.stat().st_size if orders.exists() else 0) <= size:
                time.sleep(0.002)  # until an order was recorded, so that each kill comes among orders
            time.sleep(rng.uniform(0.0, 0.01))
            if not is_over.is_set():
                venue.end()
                venue.start()
                num_venue_kills += 1

    killer = threading.Thread(target=kill_venue)
    killer.start()
    try:
        ends = [runs.run(*words, after_s=rng.uniform(0.3, 1.5)) for _ in range(num_kills)]
        assert runs.run(*words) == 0, runs.said
    finally:
        is_over.set()
        killer.join(60)
    assert -9 in ends
    assert num_venue_kills > 0
    outcome(tmp_path / "run")
    assert orders_of(tmp_path / "run") == whole


@pytest.mark.slow
def test_what_was_open_at_the_venue_of_a_killed_run_is_cancelled_and_the_run_goes_on(
    few_prices: Path, runs: KillableRuns, tmp_path: Path
) -> None:
    port = free_port()
    write_session(
        tmp_path / "fix.toml", port, is_venue=False, orders="send_prices = true\nlogon_wait_s = 60.0"
    )
    venue = VenueProcess(write_session(tmp_path / "venue.toml", port, is_venue=True))
    venue.start()
    try:
        words = words_of(few_prices, tmp_path)
        assert runs.run(*words, point="order is sent by FIX", count=8) == -9
        assert runs.run(*words) == 0, runs.said
        outcome(tmp_path / "run")
        recorded = (tmp_path / "run" / ORDERS).read_bytes()
        cancels = [
            one for one in orders_of(tmp_path / "run") if one.get("reason") == "canceled on disconnect"
        ]
        assert cancels
        venue.end()
        venue.start()
        assert runs.run(*words) == 0, runs.said
        assert (tmp_path / "run" / ORDERS).read_bytes() == recorded
    finally:
        venue.end()
