"""`htfi trade --algorithm … --venues …`: parents, children and fills are linked, in bounds, made again alike."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.domain.orders import NewOrder, OrderFilled, OrderRejected, ParentOrder, UrgencyChanged
from htfi.wiring.order_record import order_events
from quotes_of_two_venues import write_market

MadeOnce = Any


def run(folder: Path, out: str, *more: str) -> Any:
    words = [
        "trade", folder / "quotes.csv", "--bar", "60s", "--settings", folder / "settings.toml", "--plain",
        "--no-report", "--venues", folder / "venues.toml", "--out", folder / out, *more,
    ]  # fmt: skip
    return CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)


@pytest.fixture(scope="module")
def traded(made_once: MadeOnce) -> Path:
    def make(folder: Path) -> None:
        write_market(folder, minutes=45, duration_s=50.0, patience_s=5.0)
        done = run(folder, "run", "--algorithm", "vwap")
        assert done.exit_code == 0, done.output

    return made_once("worked", make)


def say(*words: object) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.slow
def test_children_go_to_several_venues_and_the_ledger_verifies(traded: Path) -> None:
    events = list(order_events(traded / "run"))
    parents = {one.order_id: one for one in events if isinstance(one, ParentOrder)}
    children = {one.order_id: one for one in events if isinstance(one, NewOrder)}
    fills = [one for one in events if isinstance(one, OrderFilled)]
    assert len(parents) >= 5
    assert {one.venue for one in children.values()} == {"XNYS", "XNAS"}
    assert all(one.parent_id in parents for one in children.values())
    assert fills
    for parent_id, parent in parents.items():
        filled = sum(one.quantity for one in fills if children[one.order_id].parent_id == parent_id)
        assert filled <= parent.quantity
    assert "positions add up" in say("ledger", "verify", traded / "run")


def test_every_child_keeps_to_its_parent(traded: Path) -> None:
    events = list(order_events(traded / "run"))
    parents = {one.order_id: one for one in events if isinstance(one, ParentOrder)}
    refused = {one.order_id for one in events if isinstance(one, OrderRejected)}
    sent = [one for one in events if isinstance(one, NewOrder) and one.order_id not in refused]
    assert len(sent) > 20
    for child in sent:
        parent = parents[child.parent_id]
        assert child.price is not None
        assert parent.limit_price is not None
        assert parent.at_ns <= child.at_ns <= parent.end_ns
        assert child.side.sign * (child.price - parent.limit_price) <= 0
        assert child.decision == parent.decision
    urgencies = [one for one in events if isinstance(one, UrgencyChanged)]
    assert {one.why for one in urgencies} <= {"forecast", "news"}
    assert all(-2.0 <= one.urgency <= 6.0 for one in urgencies)


def test_orders_show_tells_a_parent_with_its_children_and_their_fills(traded: Path) -> None:
    parent = next(one for one in order_events(traded / "run") if isinstance(one, ParentOrder))
    shown = json.loads(say("orders", "show", traded / "run", parent.order_id, "--json"))
    assert shown["parent"]["order_id"] == parent.order_id
    assert shown["children"]
    assert sum(one["filled"] for one in shown["children"]) == shown["filled"]
    words = say("orders", "show", traded / "run", parent.order_id)
    assert "worked by" in words
    assert f"{parent.order_id}.1" in words


@pytest.mark.slow
def test_the_same_run_sends_the_same_orders(traded: Path) -> None:
    done = run(traded, "again", "--algorithm", "vwap")
    assert done.exit_code == 0, done.output
    first, second = (list(order_events(traded / one)) for one in ("run", "again"))
    assert len(first) > 100
    assert first == second


def test_several_venues_need_an_algorithm_and_known_keys(traded: Path) -> None:
    with pytest.raises(InvalidInput, match="choose an algorithm that routes"):
        run(traded, "direct", "--algorithm", "direct")
    (traded / "wrong.toml").write_text("[XNYS]\nfees = 1\n")
    with pytest.raises(InvalidInput, match="XNYS: unknown key 'fees'"):
        run(traded, "wrong", "--algorithm", "vwap", "--venues", str(traded / "wrong.toml"))


@pytest.mark.parametrize(
    "algorithm",
    ["twap", *(pytest.param(name, marks=pytest.mark.slow) for name in ("pov", "shortfall", "peg", "sniper"))],
)
def test_every_algorithm_trades_and_verifies(traded: Path, algorithm: str) -> None:
    done = run(traded, algorithm, "--algorithm", algorithm)
    assert done.exit_code == 0, done.output
    events = list(order_events(traded / algorithm))
    assert sum(isinstance(one, OrderFilled) for one in events) > 5
    assert {one.algo for one in events if isinstance(one, NewOrder)} == {algorithm}
    assert "positions add up" in say("ledger", "verify", traded / algorithm)
