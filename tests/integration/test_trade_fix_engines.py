"""Whole runs by FIX against venues of other engines: what those have done is what the run holds and reconciles."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from test_fix_jspurefix import FOLDER, SOURCE, install
from test_trade_command import say, write_prices

from fix_venue import free_port, write_session
from htfi.adapters.stores.order_log import ORDERS, read_order_log
from htfi.domain.orders import NewOrder, OrderCanceled, OrderFilled, OrderRejected
from htfi.wiring.trading import read_accounts

MadeOnce = Any


@pytest.fixture(scope="module")
def prices(made_once: MadeOnce) -> Path:
    return made_once("prices_of_fix", lambda folder: write_prices(folder / "prices.csv", 45)) / "prices.csv"


def engine_command(engine: str) -> tuple[list[str], Path]:
    """How its venue is started, and where."""
    if engine == "quickfix":
        return [sys.executable, str(Path(__file__).parents[1] / "quickfix_venue.py")], FOLDER.parent
    install()
    shutil.copy(SOURCE / "venue.mjs", FOLDER / "venue.mjs")
    return ["node", "venue.mjs"], FOLDER


@contextmanager
def venue(engine: str, *words: str) -> Iterator[list[dict[str, Any]]]:
    """A venue that listens inside; what it says is in the list afterwards."""
    command, place = engine_command(engine)
    said: list[dict[str, Any]] = []
    process = subprocess.Popen([*command, *words], cwd=place, stdout=subprocess.PIPE, text=True)
    try:
        yield said
    finally:
        process.kill()
        out, _ = process.communicate()
        said += [json.loads(line) for line in out.splitlines()]


def drop_copy(path: Path, said: list[dict[str, Any]]) -> Path:
    """What the engine has filled, as the file that is reconciled."""
    lines = ["exec_id,cl_ord_id,instrument,side,quantity,price"]
    sides = {"1": "buy", "2": "sell", "5": "sell"}
    lines += [
        f"{one['fill']},{one['order']},{one['symbol']},{sides[one['side']]},{one['lots']},{one['price']}"
        for one in said
        if "fill" in one
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.slow
@pytest.mark.parametrize("break_at", [0, 4])
@pytest.mark.parametrize("behaviour", ["fill", "open"])
@pytest.mark.parametrize(
    ("engine", "version"),
    [
        ("jspurefix", "FIX.4.4"),
        ("jspurefix", "FIX.5.0SP2"),
        ("quickfix", "FIX.4.4"),
        ("quickfix", "FIX.5.0SP2"),
    ],
)
def test_a_run_at_a_venue_of_another_engine_holds_what_that_has_done(
    prices: Path, tmp_path: Path, engine: str, version: str, behaviour: str, break_at: int
) -> None:
    if engine == "quickfix":
        pytest.importorskip("quickfix")
    port, run = free_port(), tmp_path / "run"
    client = write_session(
        tmp_path / "fix.toml",
        port,
        is_venue=False,
        version=version,
        orders="logon_wait_s = 20.0\nmass_cancel = false",
    )  # the engine begins to listen meanwhile
    resets = str(engine == "jspurefix").lower()  # which begins its numbers anew with each connection
    text = (
        client.read_text().replace("reconnect_s = 0.02", "reconnect_s = 0.5").replace("_s = 0.05", "_s = 0.5")
    )
    client.write_text(  # jspurefix does not answer who is back before it has ended the session
        text.replace('target = "XSIM"', f'target = "PEER"\nreset_on_logon = {resets}')
    )
    words = ("trade", prices, "--venue", client, "--out", run, "--plain", "--no-report", "--outputs", "jsonl")
    with venue(engine, str(port), version, behaviour, str(break_at)) as said:
        say(*words)
        recorded = (run / ORDERS).read_bytes()
        say(*words)  # made again, nothing is sent
    assert (run / ORDERS).read_bytes() == recorded
    assert [one for one in said if "problem" in one] == []
    events = list(read_order_log(run))
    sent = [one["order"].partition("-")[2] for one in said if "order" in one and "fill" not in one]
    refused = {one.order_id for one in events if isinstance(one, OrderRejected)}  # by the gate
    assert sent == [
        one.order_id for one in events if isinstance(one, NewOrder) and one.order_id not in refused
    ]
    assert len(sent) > 10
    fills = {one["fill"]: one["lots"] for one in said if "fill" in one}
    assert {one.exec_id: one.quantity for one in events if isinstance(one, OrderFilled)} == fills
    assert bool(fills) == (behaviour == "fill")
    cancels = [one["cancel"].partition("-")[2] for one in said if "cancel" in one]
    assert cancels == [one.order_id for one in events if isinstance(one, OrderCanceled)]
    assert list(read_accounts(run).open_orders()) == []
    if break_at and behaviour == "open":  # what was not answered when the connection broke
        assert sent[break_at - 1] in cancels
    assert "positions add up" in say("ledger", "verify", run)
    if fills:
        assert ": 0 breaks" in say(
            "orders", "reconcile", run, "--drop-copy", drop_copy(tmp_path / "copy.csv", said)
        )
