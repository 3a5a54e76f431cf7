"""`htfi orders reconcile`: a run against the files of its venue, in the record as one event."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_trade_command import say, write_prices
from test_trade_fix_live import Live

from fix_counterparty import counterparty
from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.domain.orders import Reconciled
from htfi.execution.fix.messages import FixMessage
from htfi.wiring.order_record import order_events
from htfi.wiring.trading import read_accounts

MadeOnce = Any


@pytest.fixture(scope="module")
def traded(made_once: MadeOnce) -> Path:
    """A run through FIX, with the drop copy and the statement of its venue."""

    def make(folder: Path) -> None:
        write_prices(folder / "prices.csv", 45)
        live = Live(folder, folder / "prices.csv")
        with counterparty(folder, live.port) as venue:
            live.trade()
            lines = [line_of(one) for one in venue.sent_fills()]
        (folder / "drop.fix").write_text("\n".join(lines))
        positions = read_accounts(live.run).positions.values()
        rows = [f"{one.account},{one.instrument},{one.lots}" for one in positions]
        (folder / "statement.csv").write_text("\n".join(["account,instrument,quantity", *rows]))

    return made_once("reconciled", make)


def line_of(message: FixMessage) -> str:
    return message.frame.decode().replace("\x01", "|")


def breaks(*words: object, status: int = 1) -> list[dict[str, str]]:
    done = CliRunner().invoke(
        cli, ["orders", "reconcile", *map(str, words), "--json"], catch_exceptions=False
    )
    assert done.exit_code == status, done.output
    return [json.loads(line) for line in done.output.splitlines()]


def test_a_run_agrees_with_its_venue_and_the_record_says_so(traded: Path) -> None:
    run = traded / "run"
    before = [one for one in order_events(run) if isinstance(one, Reconciled)]
    found = breaks(
        run, "--drop-copy", traded / "drop.fix", "--statement", traded / "statement.csv", "--with", "broker",
        status=0,
    )  # fmt: skip
    assert found == []
    *earlier, recorded = [one for one in order_events(run) if isinstance(one, Reconciled)]
    assert len(earlier) == len(before)
    assert (recorded.with_whom, recorded.num_differences) == ("broker", 0)
    assert recorded.num_fills > 5
    assert "positions add up" in say("ledger", "verify", run)


def test_what_differs_is_printed_and_the_exit_status_says_it(traded: Path, tmp_path: Path) -> None:
    run = traded / "run"
    lines = (traded / "drop.fix").read_text().splitlines()
    cut = tmp_path / "cut.fix"
    cut.write_text("\n".join(lines[1:]))
    statement = tmp_path / "statement.csv"
    statement.write_text("instrument,quantity\nAAA,0\nOTHER,7\n")
    found = breaks(run, "--drop-copy", cut, "--statement", statement)
    assert [one["break"] for one in found][:1] == ["fill they do not have"]
    assert {one["what"] for one in found if one["break"] == "position differs"} >= {"OTHER"}
    shown = CliRunner().invoke(cli, ["orders", "reconcile", str(run), "--drop-copy", str(cut)])
    assert shown.exit_code == 1
    assert "1 break." in shown.output


def test_a_run_that_was_compared_goes_on(traded: Path) -> None:
    run = traded / "run"
    breaks(run, "--statement", traded / "statement.csv", status=0)
    live = Live.__new__(Live)
    live.folder, live.run, live.prices, live.client = traded, run, traded / "prices.csv", traded / "fix.toml"
    num = len(list(order_events(run)))
    live.trade()
    assert len(list(order_events(run))) == num


def test_a_day_without_fills_has_none_to_compare(traded: Path) -> None:
    found = breaks(traded / "run", "--drop-copy", traded / "drop.fix", "--day", "1999-01-04")
    assert {one["break"] for one in found} == {"missing fill"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("exec_id,instrument\n", "the column cl_ord_id is missing"),
        ("exec_id,cl_ord_id,instrument,side,quantity,price\nE,d,A,long,1,1\n", "line 2: side is 'long'"),
        ("exec_id,cl_ord_id,instrument,side,quantity,price\nE,d,A,buy,1.5,1\n", "no whole number of lots"),
        ("exec_id,cl_ord_id,instrument,side,quantity,price\nE,d,A,buy,1,x\n", "'x' is not a number"),
    ],
)
def test_a_drop_copy_that_cannot_be_read_is_one_line(
    traded: Path, tmp_path: Path, text: str, what: str
) -> None:
    (tmp_path / "drop.csv").write_text(text)
    with pytest.raises(InvalidInput, match=what):
        breaks(traded / "run", "--drop-copy", tmp_path / "drop.csv")


def test_nothing_to_compare_with_is_one_line(traded: Path) -> None:
    with pytest.raises(InvalidInput, match="give --drop-copy or --statement"):
        breaks(traded / "run")
