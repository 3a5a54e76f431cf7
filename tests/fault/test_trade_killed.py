"""A run that trades, killed or out of disk anywhere: no order is lost, doubled or unrecorded; it ends the same."""

import random
from pathlib import Path

import pytest

from htfi.adapters.stores.order_log import ORDERS
from htfi.wiring.ledger import open_ledger_readonly
from htfi.wiring.order_record import ORDERS_FOLDER
from htfi.wiring.outputs import check_outputs
from htfi.wiring.trading import read_accounts
from killable_run import KillableRuns

Outcome = tuple[bytes, bytes, bytes]


def command(prices: Path, folder: Path) -> tuple[object, ...]:
    return ("trade", prices, "--out", folder, "--plain", "--no-report", "--outputs", "jsonl")


def outcome(folder: Path) -> Outcome:
    """Order events, root of their log, root of the decisions: after a look that all of it holds."""
    roots: list[bytes] = []
    for place in (folder, folder / ORDERS_FOLDER):
        log = open_ledger_readonly(place)
        try:
            roots.append(log.verify().root)
            if place == folder:
                held, wrong = check_outputs(folder, log)
                assert wrong == []
                assert any("positions add up" in line for line in held)
        finally:
            log.close()
    return (folder / ORDERS).read_bytes(), roots[0], roots[1]


@pytest.fixture(scope="module")
def whole(few_prices: Path, runs: KillableRuns, tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    folder = tmp_path_factory.mktemp("whole")
    runs.import_what_is_needed(*command(few_prices, folder))
    accounts = read_accounts(folder)
    assert sum(len(one.fills) for one in accounts.orders.values()) > 20
    return outcome(folder)


@pytest.mark.parametrize(
    ("point", "count"),
    [
        ("orders", 7),
        pytest.param("order is sent", 20, marks=pytest.mark.slow),
        ("ledger", 12),
        pytest.param("orders", 1, marks=pytest.mark.slow),
        pytest.param("orders", 40, marks=pytest.mark.slow),
        pytest.param("order is sent", 3, marks=pytest.mark.slow),
        pytest.param("lines", 12, marks=pytest.mark.slow),
        pytest.param("receipt", 15, marks=pytest.mark.slow),
    ],
)
def test_a_run_killed_at_a_place_ends_as_if_it_had_not_been(
    few_prices: Path, runs: KillableRuns, whole: Outcome, tmp_path: Path, point: str, count: int
) -> None:
    words = command(few_prices, tmp_path / "run")
    assert runs.run(*words, point=point, count=count) == -9
    assert runs.run(*words) == 0, runs.said
    assert outcome(tmp_path / "run") == whole


@pytest.mark.slow
@pytest.mark.parametrize("num_kills", [4, 120])
def test_a_run_killed_at_random_instants_ends_as_if_it_had_not_been(
    few_prices: Path, runs: KillableRuns, whole: Outcome, tmp_path: Path, num_kills: int
) -> None:
    rng, ends = random.Random(num_kills), []
    for number in range(num_kills):
        words = command(few_prices, tmp_path / str(number % 7))
        ends.append(runs.run(*words, after_s=rng.uniform(0.02, 0.05 + 0.8 * number / num_kills)))
    assert -9 in ends
    for folder in sorted(tmp_path.iterdir()):
        assert runs.run(*command(few_prices, folder)) == 0, runs.said
        assert outcome(folder) == whole


def test_a_cut_last_line_is_an_order_that_never_left(
    few_prices: Path, runs: KillableRuns, whole: Outcome, tmp_path: Path
) -> None:
    words = command(few_prices, tmp_path / "run")
    assert runs.run(*words, point="orders", count=30) == -9
    path = tmp_path / "run" / ORDERS
    path.write_bytes(path.read_bytes() + b'{"kind":"new","at_ns":12')
    assert runs.run(*words) == 0, runs.said
    assert outcome(tmp_path / "run") == whole


def test_a_full_disk_sends_no_order_and_is_one_line(
    few_prices: Path, runs: KillableRuns, whole: Outcome, tmp_path: Path
) -> None:
    words = command(few_prices, tmp_path / "run")
    assert runs.run(*words, point="orders", count=25, act="full") == 1
    (line,) = runs.said.splitlines()
    assert line.startswith("htfi: ")
    assert ORDERS in line
    assert "no order was sent" in line
    assert runs.run(*words) == 0, runs.said
    assert outcome(tmp_path / "run") == whole


def test_an_altered_order_stops_the_run_and_is_named_by_verify(
    few_prices: Path, runs: KillableRuns, whole: Outcome, tmp_path: Path
) -> None:
    words = command(few_prices, tmp_path / "run")
    assert runs.run(*words) == 0
    path = tmp_path / "run" / ORDERS
    whole_text = path.read_bytes()
    fill = next(line for line in whole_text.splitlines() if b'"kind":"fill"' in line)
    path.write_bytes(whole_text.replace(fill, fill.replace(b'"quantity":', b'"quantity":1'), 1))
    assert runs.run(*words) == 1
    assert "holds another event than follows from the inputs" in runs.said
    log = open_ledger_readonly(tmp_path / "run")
    try:
        wrong = check_outputs(tmp_path / "run", log)[1]
    finally:
        log.close()
    assert any(f"{ORDERS} line" in line and "not as it was recorded" in line for line in wrong)
    path.write_bytes(whole_text)
    assert outcome(tmp_path / "run") == whole
