"""SIGKILL of a run, its simulated venue and a live counterparty at random instants: no order lost, doubled or unknown.

A round is one run from its beginning to its end, with kills of both sides meanwhile, at a simulated venue or at a live
counterparty in turn. After it the record must hold, and what both sides have must agree. Kills are drawn from the seed
of the round, which a failure names.
"""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_trade_killed import command, outcome

from fix_venue import free_port, orders_of, write_session
from htfi.adapters.fix.journal import MessageJournal
from htfi.adapters.stores.order_log import ORDERS, read_order_log
from htfi.domain.orders import NewOrder, OrderFilled, OrderRejected
from htfi.wiring.reconciliation import reconcile_run
from htfi.wiring.trading import read_accounts
from killable_run import KillableRuns
from killable_server import KillableServer, received_messages, sent_messages

STEPPED = "send_prices = true\ncancel_on_disconnect = false\nlogon_wait_s = 60.0"
LIVE = "logon_wait_s = 60.0"
RUN, VENUE, COUNTERPARTY = "run", "venue", "counterparty"


@pytest.fixture(scope="module")
def server() -> Iterator[KillableServer]:
    with KillableServer() as started:
        yield started


@pytest.fixture(scope="module")
def whole(
    few_prices: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory
) -> list[dict[str, object]]:
    """What the run on paper records."""
    folder = tmp_path_factory.mktemp("whole")
    runs.import_what_is_needed(*command(few_prices, folder))
    outcome(folder)
    return orders_of(folder)


class ServerKiller(threading.Thread):
    """Kills the server among orders, and starts it again."""

    def __init__(
        self, server: KillableServer, words: list[object], orders: Path, max_kills: int, seed: int
    ) -> None:
        super().__init__()
        self._server, self._words, self._orders, self._rng = server, words, orders, random.Random(seed)
        self._max_kills = max_kills
        self.is_over = threading.Event()
        self.num_kills = 0

    def run(self) -> None:
        while self._wait_for_orders() and self.num_kills < self._max_kills:
            time.sleep(self._rng.uniform(0.0, 0.02))
            self._server.kill()
            self._server.start(*self._words)
            self.num_kills += 1

    def _wait_for_orders(self) -> bool:
        """Until something was recorded; whether the round goes on."""
        size = self._size()
        while not self.is_over.is_set() and self._size() <= size:
            time.sleep(0.002)
        return not self.is_over.is_set()

    def _size(self) -> int:
        return self._orders.stat().st_size if self._orders.exists() else 0


def play(
    runs: KillableRuns,
    server: KillableServer,
    prices: Path,
    folder: Path,
    max_kills: int,
    *,
    is_live: bool,
    seed: int,
) -> Counter[str]:
    """One round with so many kills of each side at most; how often each was killed."""
    folder.mkdir()
    rng, port = random.Random(seed), free_port()
    client = write_session(folder / "fix.toml", port, is_venue=False, orders=LIVE if is_live else STEPPED)
    if is_live:
        serve: list[object] = ["counterparty", folder / "counterparty", port]
    else:
        venue = write_session(folder / "venue.toml", port, is_venue=True, orders=STEPPED)
        serve = ["venue", "serve", venue, "--quiet"]
    words = (*command(prices, folder / "run"), "--venue", client)
    server.start(*serve)
    killer = ServerKiller(server, serve, folder / "run" / ORDERS, max_kills, seed)
    killer.start()
    try:
        ends = [runs.run(*words, after_s=rng.uniform(0.2, 1.5)) for _ in range(max_kills)]
        assert set(ends) <= {-9, 0}, runs.said
        assert runs.run(*words) == 0, runs.said
    finally:
        killer.is_over.set()
        killer.join(60)
        server.kill()
    return Counter({RUN: ends.count(-9), COUNTERPARTY if is_live else VENUE: killer.num_kills})


def check_live(folder: Path) -> None:
    """Orders and fills are the counterparty's, once each; after reconciliation nothing differs and nothing is open."""
    journal = MessageJournal(folder / "counterparty", sync=False)
    received, sent = received_messages(journal), sent_messages(journal)
    journal.close()
    events = list(read_order_log(folder / "run"))
    refused = {one.order_id for one in events if isinstance(one, OrderRejected)}
    recorded = [one.order_id for one in events if isinstance(one, NewOrder) and one.order_id not in refused]
    assert [one.get(11).partition("-")[2] for one in received if one.msg_type == "D"] == recorded
    fills = [one for one in sent if one.get(150) == "F"]
    taken = [(one.exec_id, one.quantity) for one in events if isinstance(one, OrderFilled)]
    assert len(taken) == len(set(taken)) > 0
    assert sorted(taken) == sorted((one.get(17), int(one.get(32))) for one in fills)
    assert list(read_accounts(folder / "run").open_orders()) == []
    drop_copy = folder / "drop.fix"
    drop_copy.write_text("\n".join(one.frame.decode().replace("\x01", "|") for one in fills))
    assert reconcile_run(folder / "run", drop_copy, None, "counterparty").breaks == ()
    outcome(folder / "run")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("num_kills", "kills_a_round", "killed"),
    [
        (3, 2, {RUN, COUNTERPARTY}),
        pytest.param(500, 10, {RUN, COUNTERPARTY, VENUE}, marks=pytest.mark.slow),
    ],
)
def test_kills_of_run_venue_and_counterparty_leave_no_order_lost_doubled_or_unknown(
    few_prices: Path,
    runs: KillableRuns,
    server: KillableServer,
    whole: list[dict[str, object]],
    tmp_path: Path,
    num_kills: int,
    kills_a_round: int,
    killed: set[str],
) -> None:
    kills: Counter[str] = Counter()
    seed = 0
    while kills.total() < num_kills:
        seed += 1
        folder, is_live = tmp_path / str(seed), seed % 2 == 1
        try:
            kills += play(runs, server, few_prices, folder, kills_a_round, is_live=is_live, seed=seed)
            if is_live:
                check_live(folder)
            else:
                outcome(folder / "run")
                assert orders_of(folder / "run") == whole
        except AssertionError as error:
            error.add_note(f"round {seed}, after {dict(kills)}")
            raise
    assert set(kills) >= killed
    assert min(kills.values()) >= num_kills // 10
