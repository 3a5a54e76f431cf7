"""`htfi eval venue`: doubles of recorded orders, on messages written by hand."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from htfi.domain.errors import HtfiError
from htfi_eval.eval.venue import command, follow_orders, measure_impact, read_messages

NEW, DELETE, EXECUTED = 1, 3, 4
Message = tuple[float, int, int, int, float, int, float, int, float, int]


def write(path: Path, messages: list[Message]) -> Path:
    columns = list(zip(*messages, strict=True))
    ts = pa.array([round(at * 1e9) for at in columns[0]], pa.timestamp("ns", tz="UTC"))
    names = ("event_type", "order_id", "size", "price", "direction", "bid", "bid_size", "ask", "ask_size")
    whole = {name: list(column) for name, column in zip(names, columns[1:], strict=True)}
    pq.write_table(pa.table({"ts": ts, **whole}), path)
    return path


# Order 2 joins behind the 100 shares of order 1, which is deleted; then 50 trade: 2 is filled, its double is not.
BEHIND_A_CANCEL: list[Message] = [
    (0.0, NEW, 1, 100, 10.00, 1, 10.00, 100, 10.02, 100),
    (1.0, NEW, 2, 50, 10.00, 1, 10.00, 150, 10.02, 100),
    (2.0, DELETE, 1, 100, 10.00, 1, 10.00, 50, 10.02, 100),
    (3.0, EXECUTED, 2, 50, 10.00, 1, 9.99, 10, 10.02, 100),
]
# The same without the cancel: 100 shares trade at 2 s, then 50 more.
BEHIND_TRADES: list[Message] = [
    *BEHIND_A_CANCEL[:2],
    (2.0, EXECUTED, 1, 100, 10.00, 1, 10.00, 50, 10.02, 100),
    (3.0, EXECUTED, 2, 50, 10.00, 1, 9.99, 10, 10.02, 100),
]


def test_a_cancel_ahead_fills_the_recorded_order_sooner_than_its_double(tmp_path: Path) -> None:
    (one,) = follow_orders(read_messages(write(tmp_path / "m.parquet", BEHIND_A_CANCEL)))
    assert (one.ahead, one.size) == (100, 50)
    assert one.recorded_wait_ns == 2_000_000_000
    assert one.simulated_wait_ns is None


def test_trades_ahead_fill_both_at_the_same_instant(tmp_path: Path) -> None:
    (one,) = follow_orders(read_messages(write(tmp_path / "m.parquet", BEHIND_TRADES)))
    assert one.recorded_wait_ns == one.simulated_wait_ns == 2_000_000_000


def test_an_order_is_followed_while_its_price_is_the_best(tmp_path: Path) -> None:
    undercut: Message = (1.5, NEW, 3, 10, 10.01, 1, 10.01, 10, 10.02, 100)
    found = follow_orders(
        read_messages(write(tmp_path / "m.parquet", [*BEHIND_TRADES[:2], undercut, *BEHIND_TRADES[2:]]))
    )
    behind, undercutting = found
    assert (behind.recorded_wait_ns, behind.simulated_wait_ns, behind.seen_ns) == (None, None, 500_000_000)
    assert undercutting.ahead == 0


def test_impact_is_of_the_whole_order_that_takes_in_its_favour(tmp_path: Path) -> None:
    sale: list[Message] = [
        *BEHIND_TRADES[:2],
        (2.0, EXECUTED, 1, 100, 10.00, 1, 10.00, 50, 10.02, 100),
        (2.0, EXECUTED, 2, 50, 10.00, 1, 9.98, 10, 10.02, 100),
        (9.0, NEW, 5, 50, 9.98, 1, 9.98, 60, 10.00, 100),
    ]
    messages = read_messages(write(tmp_path / "m.parquet", sale))
    found = {name: (num, mean) for name, num, mean, _ in measure_impact(messages)}
    assert found["101–300"] == (1, pytest.approx((10.01 - 9.99) / 10.01 * 1e4))
    assert sum(num for num, _ in found.values()) == 1


def test_the_command_writes_figures_and_a_page(tmp_path: Path) -> None:
    rng, messages, order_id = np.random.default_rng(1), [BEHIND_A_CANCEL[0]], 1
    shown = 100
    for step in range(1, 300):
        if rng.random() < 0.6 or shown <= 20:
            order_id, shown = order_id + 1, shown + 10
            messages.append((step, NEW, order_id, 10, 10.00, 1, 10.00, shown, 10.02, 100))
        else:
            shown -= 10
            messages.append((step, EXECUTED, max(1, order_id - 20), 10, 10.00, 1, 10.00, shown, 10.02, 100))
    path = write(tmp_path / "m.parquet", messages)
    done = CliRunner().invoke(
        command, [str(path), "--json", str(tmp_path / "v.json"), "--html", str(tmp_path / "v.html")]
    )
    assert done.exit_code == 0, done.output
    told = json.loads((tmp_path / "v.json").read_text())
    assert told["metrics"]["fill_rate_simulated"] > 0
    assert sum(row["orders"] for row in told["rows"]) == sum(message[1] == NEW for message in messages) - 1
    assert "Share of orders filled" in (tmp_path / "v.html").read_text()


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda _: None, "does not exist: name a file of messages"),
        (lambda path: pq.write_table(pa.table({"ts": [1]}), path), "has no column event_type"),
        (lambda path: write(path, BEHIND_TRADES[:1]), "no order joins a best price"),
    ],
)
def test_files_that_are_no_messages_are_one_line(tmp_path: Path, make, what: str) -> None:
    path = tmp_path / "m.parquet"
    make(path)
    with pytest.raises(HtfiError, match=what):
        CliRunner().invoke(command, [str(path)], catch_exceptions=False)
