"""`htfi trade --algorithm … --venue …`: children by FIX, to one venue and to several, as on paper."""

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fix_venue import free_port, orders_of, served, write_session
from htfi.apps.cli.main import cli
from htfi.domain.errors import InvalidInput
from htfi.domain.orders import NewOrder, OrderFilled, ParentOrder
from htfi.wiring.order_record import order_events
from quotes_of_two_venues import write_market

MadeOnce = Any
STEPPED = "send_prices = true\ncancel_on_disconnect = false"
ALGORITHMS = ["twap", "pov", "shortfall", "peg", "sniper"]


def words_of(folder: Path, out: Path, *more: object) -> list[str]:
    words = [
        "trade",
        folder / "quotes.csv",
        "--bar",
        "5s",
        "--settings",
        folder / "settings.toml",
        "--plain",
    ]
    return [*map(str, words), "--no-report", "--outputs", "jsonl", "--out", str(out), *map(str, more)]


def say(*words: object) -> str:
    done = CliRunner().invoke(cli, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def paper(made_once: MadeOnce) -> Path:
    """Quotes of three minutes, worked by VWAP on paper: at one venue, and at two."""

    def make(folder: Path) -> None:
        write_market(folder, minutes=2.1, duration_s=6.0, patience_s=1.0)
        say(*words_of(folder, folder / "one", "--algorithm", "vwap"))
        say(*words_of(folder, folder / "two", "--algorithm", "vwap", "--venues", folder / "venues.toml"))

    return made_once("worked_on_paper", make)


def sessions(
    folder: Path, *names: str, version: str = "FIX.4.4", orders: str = STEPPED
) -> list[tuple[Path, Path]]:
    """Files of the venue and of the run, of each venue by name."""
    found = []
    for name in names:
        port = free_port()
        text = f'{orders}\nvenue = "{name}"' if name != "XSIM" else orders
        venue = folder / f"{name}-venue.toml"
        found.append(
            (
                write_session(venue, port, is_venue=True, version=version, orders=text, name=name),
                write_session(folder / f"{name}.toml", port, is_venue=False, version=version, orders=text, name=name),
            )
        )  # fmt: skip
    return found


@pytest.mark.parametrize(
    "algorithm", ["vwap", *[pytest.param(one, marks=pytest.mark.slow) for one in ALGORITHMS]]
)
def test_children_by_fix_are_those_on_paper_to_the_last_fill(
    paper: Path, tmp_path: Path, algorithm: str
) -> None:
    ((venue, client),) = sessions(tmp_path, "XSIM")
    with served(venue, paper / "settings.toml"):
        say(*words_of(paper, tmp_path / "run", "--algorithm", algorithm, "--venue", client))
    whole = paper / "one"
    if algorithm != "vwap":
        whole = tmp_path / "paper"
        say(*words_of(paper, whole, "--algorithm", algorithm))
    assert orders_of(tmp_path / "run") == orders_of(whole)
    events = list(order_events(tmp_path / "run"))
    assert sum(isinstance(one, ParentOrder) for one in events) > 2
    assert sum(isinstance(one, OrderFilled) for one in events) > 5
    assert "positions add up" in say("ledger", "verify", tmp_path / "run")


@pytest.mark.parametrize("version", ["FIX.4.4", pytest.param("FIX.5.0SP2", marks=pytest.mark.slow)])
def test_children_go_to_several_sessions_as_to_several_venues_on_paper(
    paper: Path, tmp_path: Path, version: str
) -> None:
    files = sessions(tmp_path, "XNYS", "XNAS", version=version)
    with ExitStack() as closing:
        for venue, _ in files:
            closing.enter_context(served(venue, paper / "settings.toml", paper / "venues.toml"))
        clients = [word for _, client in files for word in ("--venue", client)]
        more = ("--algorithm", "vwap", "--venues", paper / "venues.toml", *clients)
        say(*words_of(paper, tmp_path / "run", *more))
        recorded = orders_of(tmp_path / "run")
        assert recorded == orders_of(paper / "two")
        say(*words_of(paper, tmp_path / "run", *more))
        assert orders_of(tmp_path / "run") == recorded
    events = list(order_events(tmp_path / "run"))
    assert {one.venue for one in events if isinstance(one, NewOrder)} == {"XNYS", "XNAS"}
    parent = next(one for one in events if isinstance(one, ParentOrder))
    for command in ("list", "costs"):
        assert say("orders", command, tmp_path / "run") == say("orders", command, paper / "two")
    shown = say("orders", "show", tmp_path / "run", parent.order_id)
    assert shown == say("orders", "show", paper / "two", parent.order_id)


@pytest.mark.parametrize(
    "scope",
    [
        "algo:vwap",
        pytest.param("firm", marks=pytest.mark.slow),
        pytest.param("instrument:AAA", marks=pytest.mark.slow),
    ],
)
def test_a_mass_cancel_reaches_children_by_fix_as_on_paper(paper: Path, tmp_path: Path, scope: str) -> None:
    (tmp_path / "settings.toml").write_text((paper / "settings.toml").read_text())
    ((venue, client),) = sessions(tmp_path, "XSIM")
    quotes = (paper / "quotes.csv").read_text()
    first = "".join(quotes.splitlines(keepends=True)[:219])
    with served(venue, paper / "settings.toml") as lines:
        for folder, more in ((tmp_path / "paper", ()), (tmp_path / "run", ("--venue", client))):
            words = words_of(tmp_path, folder, "--algorithm", "vwap", *more)
            (tmp_path / "quotes.csv").write_text(first)
            say(*words)
            say("orders", "cancel-all", folder, "--scope", scope, "--by", "Ann", "--why", "a test")
            (tmp_path / "quotes.csv").write_text(quotes)
            say(*words)
    recorded, on_paper = (orders_of(tmp_path / one) for one in ("run", "paper"))
    for one in (*recorded, *on_paper):
        one.pop("exec_id", None)  # fewer numbers are given: what is filled already is not refused a cancel
    assert recorded == [one for one in on_paper if one["kind"] != "cancel_reject" or one in recorded]
    at = next(n for n, one in enumerate(recorded) if one["kind"] == "mass_cancel")
    assert recorded[at]["by"] == "Ann"
    cancels = [one for one in recorded if one["kind"] == "cancel" and one["at_ns"] == recorded[at]["at_ns"]]
    assert len(cancels) >= 2
    assert sum(line.startswith("mass cancel") for line in lines) == 1


@pytest.mark.parametrize(
    ("given", "what"),
    [
        (["XNYS"], "XNAS has no session: give its file with --venue"),
        (["XNYS", "XNYS"], "another file is of the venue XNYS too"),
        (["XNYS", "XPAR"], "orders.venue is 'XPAR': the run trades at XNYS, XNAS"),
        (["XNYS", "XSIM"], "say in orders.venue which it is of XNYS, XNAS"),
    ],
)
def test_files_that_do_not_fit_the_venues_are_one_line(
    paper: Path, tmp_path: Path, given: list[str], what: str
) -> None:
    files = [client for name in given for _, client in sessions(tmp_path, name)]
    clients = [word for client in files for word in ("--venue", client)]
    more = ("--algorithm", "vwap", "--venues", paper / "venues.toml", *clients)
    with pytest.raises(InvalidInput, match=what):
        CliRunner().invoke(cli, words_of(paper, tmp_path / "run", *more), catch_exceptions=False)
