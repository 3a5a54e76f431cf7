"""A run that trades at a live venue by FIX, killed: each order leaves once, and it holds what the venue has filled."""

import random
from pathlib import Path

import pytest
from test_trade_killed import command, outcome

from fix_counterparty import Counterparty, counterparty
from fix_venue import free_port, write_session
from htfi.adapters.stores.order_log import read_order_log
from htfi.domain.orders import NewOrder, OrderFilled, OrderRejected, RejectedBy
from htfi.wiring.trading import read_accounts
from killable_run import KillableRuns


def check(folder: Path, venue: Counterparty) -> int:
    """Orders and fills are the venue's, once each; how many orders never left."""
    outcome(folder)
    events = list(read_order_log(folder))
    sent = [one.get(11).partition("-")[2] for one in venue.requests if one.msg_type == "D"]
    by = {one.order_id: one.by for one in events if isinstance(one, OrderRejected)}
    recorded = [one.order_id for one in events if isinstance(one, NewOrder)]
    assert sent == [one for one in recorded if one not in by]
    assert {one.exec_id: one.quantity for one in events if isinstance(one, OrderFilled)} == {
        one.get(17): int(one.get(32)) for one in venue.sent_fills()
    }
    assert list(read_accounts(folder).open_orders()) == []
    return sum(one is RejectedBy.LINK for one in by.values())


def words_of(prices: Path, folder: Path, port: int) -> tuple[object, ...]:
    client = write_session(folder / "fix.toml", port, is_venue=False, orders="logon_wait_s = 60.0")
    return (*command(prices, folder / "run"), "--venue", client)


@pytest.mark.parametrize(
    ("point", "count", "is_any_unsent"),
    [
        pytest.param("orders", 9, False, marks=pytest.mark.slow),
        ("message is sent", 4, True),
        pytest.param("message is sent", 11, True, marks=pytest.mark.slow),
    ],
)
def test_an_order_that_was_recorded_and_never_left_is_refused_when_the_run_goes_on(
    few_prices: Path, runs: KillableRuns, tmp_path: Path, point: str, count: int, is_any_unsent: bool
) -> None:
    port = free_port()
    words = words_of(few_prices, tmp_path, port)
    runs.import_what_is_needed(*command(few_prices, tmp_path / "import"))
    with counterparty(tmp_path, port) as venue:
        assert runs.run(*words, point=point, count=count) == -9
        num_recorded = sum(isinstance(one, NewOrder) for one in read_order_log(tmp_path / "run"))
        num_unsent = num_recorded - sum(one.msg_type == "D" for one in venue.requests)
        assert (num_unsent > 0) == is_any_unsent
        assert runs.run(*words) == 0, runs.said
        assert runs.run(*words) == 0, runs.said
        assert check(tmp_path / "run", venue) == num_unsent


@pytest.mark.slow
@pytest.mark.parametrize("count", range(25, 37))
def test_a_run_killed_before_its_journal_is_written_sends_no_order_twice(
    few_prices: Path, runs: KillableRuns, tmp_path: Path, count: int
) -> None:
    port = free_port()
    words = words_of(few_prices, tmp_path, port)
    with counterparty(tmp_path, port) as venue:
        assert runs.run(*words, point="message is written", count=count) == -9
        assert runs.run(*words) == 0, runs.said
        check(tmp_path / "run", venue)


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [4, 100])
def test_a_run_killed_at_random_instants_holds_what_the_venue_has_filled(
    few_prices: Path, runs: KillableRuns, tmp_path: Path, num_kills: int
) -> None:
    rng, port = random.Random(num_kills), free_port()
    words = words_of(few_prices, tmp_path, port)
    runs.import_what_is_needed(*command(few_prices, tmp_path / "import"))
    with counterparty(tmp_path, port) as venue:
        ends = []
        for _ in range(num_kills):
            ends.append(runs.run(*words, after_s=rng.uniform(0.2, 1.2)))
            if rng.random() < 0.3:
                venue.drop()
        assert runs.run(*words) == 0, runs.said
        assert -9 in ends
        assert len(venue.requests) > 20
        check(tmp_path / "run", venue)
