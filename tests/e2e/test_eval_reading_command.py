"""`htfi eval reading` through its command, on a tiny folder of data: figures, a page, and what is missing by name."""

import json
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from examples import one_in_eight
from htfi_eval.eval.reading import command, own_lines

Htfi = Callable[..., str]
LINES = (
    ("Harbour Foods raises full-year profit forecast", "positive", None),
    ("Harbour Foods cuts full-year profit forecast as costs rise", "negative", None),
    ("Harbour Foods to hold its annual meeting in May", "neutral", None),
    ("Quarterly profit falls 40 percent at Ridgeway Steel", "negative", "Ridgeway Steel"),
    ("Ridgeway Steel wins record order worth 2 billion euros", "positive", "Ridgeway Steel"),
    ("Ridgeway Steel files its annual report", "neutral", "Ridgeway Steel"),
)
RELEASES = (("CPI m/m", "0.4%", "0.2%", 0.4, 0.2), ("Retail Sales m/m", "-0.3%", "0.1%", -0.3, 0.1))


@pytest.fixture(scope="module", autouse=True)
def own_lines_judged_once() -> Iterator[None]:
    """The project's own lines take most of the time, and do not depend on the data; one in eight by default."""
    whole = own_lines.own_lines

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_lines, "own_lines", lambda name: one_in_eight(whole(name)))
        patch.setattr(command, "judge_own_lines", cache(command.judge_own_lines))
        yield


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for folder in ("sentiment", "calendar", "text_price", "panels"):
        (tmp_path / folder).mkdir()
    texts, labels, entities = zip(*LINES, strict=True)
    sets = {"dataset": ["sentfin_1.1"] * len(LINES), "text": texts, "label": labels, "entity": entities}
    pq.write_table(pa.table(sets), tmp_path / "sentiment/financial_sentiment.parquet")
    events, actual, forecast, actual_num, forecast_num = zip(*RELEASES, strict=True)
    releases = {
        "currency": ["USD"] * 2, "event": events, "actual": actual, "forecast": forecast, "previous": ["0.1%"] * 2,
        "actual_num": actual_num, "forecast_num": forecast_num,
    }  # fmt: skip
    pq.write_table(pa.table(releases), tmp_path / "calendar/ff_merged_2007_201910.parquet")
    _write_prices_and_news(tmp_path)
    return tmp_path


def _reporter(number: int) -> str:
    """A surname like no other, so that no headline repeats another."""
    return "Mac" + "".join("aeioukrtsn"[int(digit)] for digit in f"{number * 7919:08d}")


def _write_prices_and_news(folder: Path) -> None:
    """Two firms; before every sixth open of each it has news, and it opens 4% up or down by them."""
    dice = np.random.Generator(np.random.PCG64(7))
    days = [date(2011, 1, 3) + timedelta(days=n) for n in range(490)]
    days = [day for day in days if day.weekday() < 5][:340]
    rows: list[dict[str, object]] = []
    news: list[dict[str, object]] = []
    for symbol, name in (("AAPL", "Apple Inc."), ("INTC", "Intel Corp.")):
        close = 100.0
        for n, day in enumerate(days):
            gap = 0.0
            if n >= 90 and n % 6 == (0 if symbol == "AAPL" else 3):
                sign = 1 if n // 6 % 2 else -1
                gap = 0.04 * sign
                word = "raises" if sign > 0 else "cuts"
                news.append({
                    "published_at": np.datetime64(f"{day}T11:00:00", "ms"),
                    "headline": f"{name.split()[0]} {word} full-year profit forecast - {_reporter(n)}",
                    "lead": f"{name} ( {symbol}.O ) said so on {day}.", "symbols": symbol, "body_chars": 100 + n,
                })  # fmt: skip
            first = close * (1.0 + gap)
            close = first * float(np.exp(0.005 * dice.standard_normal()))
            rows.append({
                "date": day, "symbol": symbol, "open": first, "high": max(first, close) * 1.001,
                "low": min(first, close) * 0.999, "close": close, "volume": 1_000,
            })  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows), folder / "panels/us_equities_daily_2006_2017.parquet")
    pq.write_table(pa.Table.from_pylist(news), folder / "text_price/reuters_news_2006_2013.parquet")


def _run(htfi: Htfi, data: Path, out: Path) -> dict[str, Any]:
    words = ["eval", "reading", "--quick", "--data", str(data), "--corpora", str(out / "none")]
    htfi(*words, "--json", str(out / "reading.json"), "--html", str(out / "reading.html"))
    return json.loads((out / "reading.json").read_text())


@pytest.mark.slow
def test_figures_a_page_and_what_is_missing(data: Path, tmp_path: Path, htfi: Htfi) -> None:
    told = _run(htfi, data, tmp_path)
    metrics = told["metrics"]
    assert metrics["sign_right"] == 1.0
    assert metrics["fires_on_neutral"] == 0.0
    assert metrics["surprise_right"] == 1.0
    assert 0.0 <= metrics["fires_on_irrelevant"] <= 0.1
    assert "official_held" not in metrics
    missing = " ".join(told["notes"])
    for section in ("surprises of earnings", "official documents", "StockNet", "InvestorBench"):
        assert f"{section}" in missing
    tables = {table["title"]: table["rows"] for table in told["tables"]}
    agree = next(
        row for row in tables["Prices: does the sign agree?"]
        if row["move"] == "opening gap" and row["views"] == "all views"
    )  # fmt: skip
    assert agree["events"] >= 40
    assert agree["sign agrees"].startswith("1.000")
    gains = tables["Strong items before the open, since 2010: CRPS gained over the standing forecast"]
    assert {row["source"] for row in gains} == {"all sources", "Reuters"}
    assert metrics["overnight_strong_crps_gain"] > 0.02  # days with news are eight times as wild
    page = (tmp_path / "reading.html").read_text()
    assert page.count("<svg") >= 6
    assert "Prices: does the sign agree?" in page


def test_an_empty_folder_still_gives_the_figures_of_the_projects_own_lines(
    tmp_path: Path, htfi: Htfi
) -> None:
    told = _run(htfi, tmp_path, tmp_path)
    assert "sign_right" not in told["metrics"]
    assert told["metrics"]["role_right"] > 0.0
    assert "labelled sets" in " ".join(told["notes"])
