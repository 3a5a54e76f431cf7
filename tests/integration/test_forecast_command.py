"""`htfi forecast` over real files, as a person calls it."""

import json
import math
from datetime import date, timedelta

import numpy as np
import pytest
from click.testing import CliRunner

from htfi.apps.cli.forecast.command import command
from htfi.domain.errors import InvalidInput


def write_prices(path, num=120, symbols=(), bad_row=None, seed=0):
    """Business days of open, high, low, close from a seeded walk; row `bad_row` has no close."""
    rng = np.random.default_rng(seed)
    lines = ["date,symbol,open,high,low,close" if symbols else "date,open,high,low,close"]
    prices = dict.fromkeys(symbols or ("",), 100.0)
    day = date(2020, 1, 1)
    for n in range(num):
        for symbol in prices:
            start = prices[symbol]
            prices[symbol] = end = start * math.exp(0.01 * rng.standard_normal())
            cells = [start, max(start, end) * 1.002, min(start, end) * 0.998, end]
            texts = [f"{cell:.4f}" for cell in cells]
            if n == bad_row:
                texts[-1] = "none"
            lines.append(",".join([day.isoformat(), *([symbol] if symbol else []), *texts]))
        day += timedelta(days=1 if day.weekday() < 4 else 3)
    path.write_text("\n".join(lines) + "\n")
    return prices


def ask(*arguments):
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def refusal(*arguments) -> str:
    result = ask(*arguments)
    assert isinstance(result.exception, InvalidInput), result.output
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_the_answer_shows_price_bands_rationale_and_past(tmp_path):
    file = tmp_path / "acme.csv"
    last = write_prices(file)[""]
    output = ask(file).output
    assert f"acme/1d  2020-06-17 04:00:00 UTC  {last:.2f}" in output
    for part in ("1 bar", "5 bars", "22 bars", "median", "why", "random walk", "vs walk", "120 events"):
        assert part in output
    assert max(len(line) for line in output.splitlines()) <= 80


def test_json_holds_the_same_forecast_and_scores(tmp_path):
    file = tmp_path / "acme.csv"
    last = write_prices(file)[""]
    answer = json.loads(ask(file, "--json").output)
    assert answer["last_price"] == pytest.approx(last, abs=1e-4)
    assert answer["as_of"] == "2020-06-17T04:00:00Z"
    for row in answer["forecast"]["log_returns"].values():
        assert row == sorted(row)
    assert {"fused", "random_walk"} <= {row["name"] for row in answer["scores"]}
    assert answer["rationale"]


def test_horizons_can_be_chosen(tmp_path):
    file = tmp_path / "acme.csv"
    write_prices(file)
    answer = json.loads(ask(file, "--json", "--horizon", 10, "--horizon", 2).output)
    assert list(answer["forecast"]["log_returns"]) == ["2", "10"]


def test_of_several_symbols_the_others_are_named_and_one_can_be_chosen(tmp_path):
    file = tmp_path / "panel.csv"
    prices = write_prices(file, num=60, symbols=("AAA", "BBB"))
    both = ask(file).output
    assert "AAA/1d" in both
    assert "BBB/1d; choose with --symbol" in both
    chosen = json.loads(ask(file, "--symbol", "BBB", "--json").output)
    assert chosen["series"] == "BBB/1d"
    assert chosen["last_price"] == pytest.approx(prices["BBB"], abs=1e-4)


def test_a_row_that_cannot_be_read_is_shown_and_does_not_stop_the_answer(tmp_path):
    file = tmp_path / "acme.csv"
    write_prices(file, bad_row=50)
    result = ask(file)
    assert result.exit_code == 0
    assert "set aside 1 ×" in result.output
    assert "row 51" in result.output


def test_too_short_a_history_says_how_many_bars_are_needed(tmp_path):
    file = tmp_path / "short.csv"
    write_prices(file, num=8)
    assert refusal(file) == f"{file} holds 8 bars: a forecast needs 20 of one series at least"


def test_one_bar_fewer_than_needed_is_refused_and_the_needed_number_is_enough(tmp_path):
    for num in (19, 20):
        write_prices(tmp_path / f"{num}.csv", num=num)
    assert "holds 19 bars" in refusal(tmp_path / "19.csv")
    assert ask(tmp_path / "20.csv").exit_code == 0


def test_a_symbol_that_is_not_there_is_said(tmp_path):
    file = tmp_path / "panel.csv"
    write_prices(file, num=60, symbols=("AAA", "BBB"))
    assert "no price of CCC" in refusal(file, "--symbol", "CCC")


def test_an_empty_file_is_refused(tmp_path):
    file = tmp_path / "empty.csv"
    file.write_text("")
    assert str(file) in refusal(file)


def test_a_missing_file_is_refused(tmp_path):
    assert "does not exist" in refusal(tmp_path / "nothing.csv")


def test_a_live_source_is_sent_to_run():
    assert "`htfi run -` forecasts streams" in refusal("-")


def test_escape_codes_in_the_file_do_not_reach_the_terminal(tmp_path):
    file = tmp_path / "panel.csv"
    write_prices(file, num=60, symbols=("\x1b[2JAAA",), bad_row=50)
    assert "\x1b" not in ask(file).output
