"""A symbol that is renamed, prices that are not adjusted for a split: said, and mended by the setting that is named."""

import tomllib
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.pipeline.record.entry import decode_entry
from htfi.wiring.ledger import open_ledger_readonly

NUM_DAYS, RENAMED, SPLIT = 100, 60, 80


@pytest.fixture(scope="module")
def prices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OLD becomes NEW at its price, and NEW is split 4 for 1; OTHER is another series."""
    file, dice, lines = (
        tmp_path_factory.mktemp("prices") / "prices.csv",
        np.random.default_rng(3),
        list[str](),
    )
    close, day = {"X": 100.0, "OTHER": 50.0}, date(2024, 1, 1)
    for number in range(NUM_DAYS):
        day += timedelta(days=3 if day.weekday() == 4 else 1)
        for name in ("X", "OTHER"):
            symbol, ratio, volume = name, 1.0, 1000
            if name == "X":
                symbol, ratio = ("OLD" if number < RENAMED else "NEW"), (4.0 if number >= SPLIT else 1.0)
                volume *= int(ratio)
            first = close[name]
            last = close[name] = first * float(np.exp(0.01 * dice.standard_normal()))
            row = (first, max(first, last) * 1.002, min(first, last) * 0.998, last)
            lines.append(f"{day},{symbol},{','.join(f'{one / ratio:.4f}' for one in row)},{volume}")
    file.write_text("\n".join(["date,symbol,open,high,low,close,volume", *lines]) + "\n", encoding="utf-8")
    return file


def run(prices: Path, out: Path, settings: str = "") -> str:
    file = out.with_suffix(".toml")
    file.write_text(settings, encoding="utf-8")
    asked = ["run", str(prices), "--plain", "--out", str(out), "--settings", str(file), "--no-report"]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    return done.output


def last_price(folder: Path, series: str, number: int) -> float:
    """That of a decision on a series, by its number."""
    log = open_ledger_readonly(folder)
    try:
        found = [decode_entry(entry) for entry in log.entries()]
    finally:
        log.close()
    return [one.last_price for one in found if one.series == series][number]


def test_the_settings_that_the_messages_name_mend_both(prices: Path, tmp_path: Path) -> None:
    said = run(prices, tmp_path / "as_it_is")
    renames = 'market.renames = {"OLD" = "NEW"}'
    (split,) = [line for line in said.splitlines() if "adjusted for a split of 4 to 1" in line]
    splits = split.partition("or set ")[2]
    assert renames in said
    assert tomllib.loads(splits)["market"]["splits"]["NEW"] == {"2024-04-23": 4}

    out = tmp_path / "mended"
    mended = run(prices, out, f"{renames}\n{splits}\n")
    assert "adjusted for a split" not in mended
    assert "renamed" not in mended
    log = open_ledger_readonly(out)
    try:
        series = [decode_entry(entry).series for entry in log.entries()]
    finally:
        log.close()
    assert series.count("NEW/1d") == NUM_DAYS - 19  # from its 20th bar on, without a break
    assert "OLD/1d" not in series
    assert CliRunner().invoke(cli, ["report", str(tmp_path / "as_it_is")]).exit_code == 0
    page = (tmp_path / "as_it_is" / "report.html").read_text(encoding="utf-8")
    assert page.count("prices are not adjusted for a split") == 1
    assert "if it was renamed, set market.renames" in page
    before = last_price(tmp_path / "as_it_is", "OLD/1d", 0)
    assert last_price(out, "NEW/1d", 0) == pytest.approx(before / 4.0)
    assert last_price(out, "NEW/1d", -1) == last_price(tmp_path / "as_it_is", "NEW/1d", -1)
    assert '"renames":{"OLD":"NEW"}' in (out / "settings.json").read_text(encoding="utf-8")
    assert CliRunner().invoke(cli, ["ledger", "verify", str(out), "--recompute"]).exit_code == 0

    root = [line for line in mended.splitlines() if "root " in line]
    again = run(prices, tmp_path / "again", f"{renames}\n{splits}\n")
    assert [line for line in again.splitlines() if "root " in line] == root


def test_a_series_without_a_forecast_is_named_with_its_reason(prices: Path, tmp_path: Path) -> None:
    still = [f"2024-{month:02}-{day:02},STILL,5,5,5,5,10" for month in (1, 2) for day in range(1, 28)]
    short = [f"2024-03-{day:02},SHORT,5,9,1,{day},10" for day in range(1, 6)]
    file = tmp_path / "prices.csv"
    file.write_text(prices.read_text(encoding="utf-8") + "\n".join([*still, *short, ""]), encoding="utf-8")
    said = [line for line in run(file, tmp_path / "out").splitlines() if "no forecast" in line]
    assert said == [
        "htfi: no forecast of STILL/1d, whose price never moves: check the column of prices",
        "htfi: no forecast of SHORT/1d: fewer bars since its first move than forecasting.history_bars: give more "
        "history",
    ]
    assert "no forecast" not in run(prices, tmp_path / "whole")
