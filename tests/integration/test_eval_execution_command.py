"""`htfi eval execution` on a made market of three venues: its figures, the same each time, and what is missing."""

import json
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi_eval.eval.execution.data import load_days

OPEN = "14:30:00"  # New York in winter
NUM_SECONDS = 740  # of a session: the windows of a quick run, and what follows them
VENUES = ("N", "T", "P")
MadeOnce = Any


def write_table(path: Path, rows: list[dict[str, Any]]) -> None:
    table: Any = import_module("pyarrow").Table.from_pylist(rows)
    import_module("pyarrow.parquet").write_table(table, path)


def write_day(
    rng: np.random.Generator, day: str, quotes: list[dict[str, Any]], prints: list[dict[str, Any]]
) -> None:
    """A walk of whole ticks. NYSE shows a wide market and much of it; two others by turns one tick, and little."""
    begin, mid = datetime.fromisoformat(f"{day}T{OPEN}").replace(tzinfo=UTC), 10_000
    for second in range(NUM_SECONDS):
        at = begin + timedelta(seconds=second)
        mid += int(rng.integers(-1, 2)) if second % 5 == 0 else 0
        tight = VENUES[1 + second // 30 % 2]
        for milliseconds, venue in enumerate(VENUES, 1):
            half, size = (1, 2) if venue == tight else (3, 8)
            quotes.append({
                "ts": at + timedelta(milliseconds=milliseconds), "exchange": venue, "bid": (mid - half) / 100,
                "bid_size": size, "ask": (mid + half) / 100, "ask_size": size + second % 2,
            })  # fmt: skip
        if second % 10 == 0:
            price = (mid + int(rng.choice((-1, 1)))) / 100
            print_at = at + timedelta(milliseconds=500)
            prints.append({"ts": print_at, "exchange": tight, "price": price, "size": 1_000, "corr": 0})


@pytest.fixture(autouse=True)
def short_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("htfi_eval.eval.execution.command.DURATION_S", 60)
    monkeypatch.setattr("htfi_eval.eval.execution.command.EVERY_S", {"TAQ": 60})


@pytest.fixture(scope="module")
def staged(made_once: MadeOnce) -> Path:
    """A folder as the staged data are: one day of tuning and one unseen."""

    def make(folder: Path) -> None:
        rng = np.random.default_rng(3)
        quotes: list[dict[str, Any]] = []
        prints: list[dict[str, Any]] = []
        for day in ("2018-01-02", "2018-01-03"):
            write_day(rng, day, quotes, prints)
        (folder / "hf").mkdir()
        (folder / "venue").mkdir()
        write_table(folder / "venue" / "taq_quotes_12venues_20180102_03.parquet", quotes)
        write_table(folder / "venue" / "taq_trades_20180102_03.parquet", prints)

    return made_once("execution-data", make)


def evaluated(staged: Path, out: Path, *words: str) -> dict[str, Any]:
    done = CliRunner().invoke(
        cli, ["eval", "execution", "TAQ", "--quick", "--data", str(staged), "--json", str(out), *words]
    )
    assert done.exit_code == 0, done.output
    return json.loads(out.read_text())


def test_routing_saves_where_no_venue_alone_has_the_best_price_and_twice_says_the_same(
    staged: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    found = evaluated(staged, tmp_path / "a.json", "--html", str(page))
    assert found == evaluated(staged, tmp_path / "b.json")
    metrics, rows = found["metrics"], found["rows"]
    assert metrics["routing_gain_worst"] == metrics["routing_gain_taq_low"] > 0
    assert metrics["routing_gain_equal_fees_worst"] > 0
    assert metrics["routing_gain_taq_low"] <= metrics["routing_gain_taq"] < 1
    assert [one["routing"] for one in rows] == ["smart", "NYSE"]
    assert {one["parents"] for one in rows} == {12}  # six windows, both sides
    smart, alone = rows
    assert smart["filled"] >= 0.99
    assert 0 < smart["shortfall, bp"] < alone["shortfall, bp"] < 5
    assert any("2018-01-03 (days unseen in tuning)" in one for one in found["notes"])
    assert "NYSE alone" in page.read_text()


def test_the_days_of_tuning_are_others(staged: Path, tmp_path: Path) -> None:
    found = evaluated(staged, tmp_path / "a.json", "--tuning")
    assert any("TAQ: 2018-01-02 (days on which constants were chosen)" in one for one in found["notes"])


@pytest.mark.parametrize(
    ("folder", "status", "words"),
    [("", 1, "has no folder 'hf'"), ("hf", 1, "taq_quotes_12venues_20180102_03.parquet does not exist")],
)
def test_missing_data_is_one_line(tmp_path: Path, folder: str, status: int, words: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    done = CliRunner().invoke(cli, ["eval", "execution", "TAQ", "--quick", "--data", str(tmp_path)])
    assert done.exit_code == status
    assert words in str(done.exception or done.output)


def test_quotes_of_one_side_make_days_of_the_other_stocks(tmp_path: Path) -> None:
    (tmp_path / "hf").mkdir()
    begin = datetime.fromisoformat("2013-10-09T13:30:00+00:00")
    quotes = [
        {
            "ts": begin + timedelta(seconds=number), "symbol": "IBM", "exchange": "N", "side": "ba"[number % 2],
            "price": 180.0 + 0.02 * (number % 2), "size": 300, "suspicious": number >= 900,
        }
        for number in range(902)
    ]  # fmt: skip
    prints = [
        {"ts": begin + timedelta(seconds=9), "symbol": name, "price": 180.01, "size": 100, "exchange": "N", "cond": "",
         "suspicious": False}
        for name in ("IBM", "SPY")
    ]  # fmt: skip
    for kind, rows in (("quotes", quotes), ("trades", prints)):
        write_table(tmp_path / "hf" / f"us_equity_ticks_{kind}_20131007_11.parquet", rows)
    (day,) = load_days(tmp_path, "IBM")
    assert (day.symbol, day.venues, len(day.items)) == ("IBM", ("N",), 901)
    assert day.best(day.close_ns) == (18_000, 18_002)
