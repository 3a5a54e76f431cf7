"""`htfi trade --venue` against `htfi venue serve`, over loopback."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from test_trade_command import say, write_prices
from test_trade_on_quotes import DESK, write_quotes

from fix_venue import free_port, orders_of, served, write_session
from htfi.apps.cli.main import cli
from htfi.domain.errors import DependencyUnavailable, HtfiError, InvalidInput

MadeOnce = Any
STEPPED = "send_prices = true\ncancel_on_disconnect = false"


@pytest.fixture(scope="module")
def paper(made_once: MadeOnce) -> Path:
    def make(folder: Path) -> None:
        write_prices(folder / "prices.csv", 40)
        say(
            "trade",
            folder / "prices.csv",
            "--out",
            folder / "run",
            "--plain",
            "--no-report",
            "--outputs",
            "jsonl",
        )

    return made_once("paper", make)


def trade(paper: Path, folder: Path, client: Path) -> None:
    words = ["trade", paper / "prices.csv", "--venue", client, "--out", folder, "--plain", "--no-report"]
    done = CliRunner().invoke(cli, [*map(str, words), "--outputs", "jsonl"], catch_exceptions=False)
    assert done.exit_code == 0, done.output


def sessions(folder: Path, version: str = "FIX.4.4") -> tuple[Path, Path]:
    port = free_port()
    venue = write_session(folder / "venue.toml", port, is_venue=True, version=version, orders=STEPPED)
    return venue, write_session(folder / "fix.toml", port, is_venue=False, version=version, orders=STEPPED)


@pytest.mark.parametrize("version", ["FIX.4.4", "FIX.5.0SP2"])
def test_a_run_through_fix_trades_as_the_run_on_paper_to_the_last_fill(
    paper: Path, tmp_path: Path, version: str
) -> None:
    venue, client = sessions(tmp_path, version)
    with served(venue) as lines:
        trade(paper, tmp_path / "run", client)
    assert orders_of(tmp_path / "run") == orders_of(paper / "run")
    assert sum(line.startswith("filled ") for line in lines) > 10
    assert "positions add up" in say("ledger", "verify", tmp_path / "run")


@pytest.mark.slow
def test_hours_halts_and_auctions_of_a_venue_behind_fix_are_those_on_paper(tmp_path: Path) -> None:
    write_quotes(tmp_path / "quotes.csv", 40)
    desk = tmp_path / "desk.toml"
    desk.write_text(
        DESK + 'hours = "14:00-14:30 UTC"\nopening_call_s = 60.0\nband_share = 0.0005\nhalt_s = 30.0\n'
    )
    words = ("trade", tmp_path / "quotes.csv", "--bar", "60s", "--settings", desk, "--plain", "--no-report")
    say(*words, "--out", tmp_path / "paper", "--outputs", "jsonl")
    venue, client = sessions(tmp_path)
    with served(venue, desk):
        say(*words, "--out", tmp_path / "run", "--outputs", "jsonl", "--venue", client)
    recorded = orders_of(tmp_path / "run")
    assert recorded == orders_of(tmp_path / "paper")
    assert {"fill", "market", "new"} <= {str(one["kind"]) for one in recorded}
    assert {"continuous", "halted"} <= {str(one.get("phase")) for one in recorded}


def test_a_second_run_on_the_same_session_has_orders_of_its_own(paper: Path, tmp_path: Path) -> None:
    venue, client = sessions(tmp_path)
    with served(venue):
        trade(paper, tmp_path / "one", client)
        trade(paper, tmp_path / "two", client)
    one, two = orders_of(tmp_path / "one"), orders_of(tmp_path / "two")
    num_same = sum(
        first.pop("exec_id", None) == second.pop("exec_id", None)
        for first, second in zip(one, two, strict=True)
    )
    assert one == two
    assert num_same == sum(event["kind"] != "fill" for event in one)
    with pytest.raises(InvalidInput, match="trades through FIX: give --venue"):
        trade_on_paper(paper, tmp_path / "one")
    client.write_text(client.read_text().replace("sync =", 'journal = "another"\nsync ='))
    with pytest.raises(InvalidInput, match="trades by the FIX session HTFI-XSIM with the journal"):
        trade(paper, tmp_path / "one", client)


def trade_on_paper(paper: Path, folder: Path) -> None:
    CliRunner().invoke(
        cli, ["trade", str(paper / "prices.csv"), "--out", str(folder), "--plain"], catch_exceptions=False
    )


def test_a_venue_that_is_not_there_is_one_line_and_the_run_goes_on_later(paper: Path, tmp_path: Path) -> None:
    venue, client = sessions(tmp_path)
    client.write_text(client.read_text() + "logon_wait_s = 0.1\n")
    with pytest.raises(DependencyUnavailable, match=r"is down .*or start the venue with `htfi venue serve`"):
        trade(paper, tmp_path / "run", client)
    client.write_text(client.read_text().replace("logon_wait_s = 0.1", ""))
    with served(venue):
        trade(paper, tmp_path / "run", client)
    assert orders_of(tmp_path / "run") == orders_of(paper / "run")


def test_a_second_instance_of_a_session_is_refused(paper: Path, tmp_path: Path) -> None:
    venue, client = sessions(tmp_path)
    with served(venue):
        with (
            pytest.raises(DependencyUnavailable, match="another process owns this FIX session"),
            served(venue),
        ):
            raise AssertionError("a second venue listens")
        trade(paper, tmp_path / "run", client)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("initiator = true", "initiator = false"), "session.initiator is false: a run connects"),
        (("[orders]", "[order]"), "fix: unknown key 'order'.*did you mean 'orders'"),
        (
            ("send_prices = true", "send_price = true"),
            "fix.orders: unknown key 'send_price'.*did you mean 'send_prices'",
        ),
        (('version = "FIX.4.4"', 'version = "FIX.4.2"'), "give FIX.4.4 or FIX.5.0SP2"),
        (("send_prices = true", "send_prices = true\nanswer_wait_s = -1.0"), "answer_wait_s must be"),
    ],
)
def test_a_session_file_that_cannot_hold_is_one_line(
    paper: Path, tmp_path: Path, change: tuple[str, str], what: str
) -> None:
    _, client = sessions(tmp_path)
    client.write_text(client.read_text().replace(*change))
    with pytest.raises(HtfiError, match=what):
        trade(paper, tmp_path / "run", client)
