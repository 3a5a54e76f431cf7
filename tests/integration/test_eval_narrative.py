"""`htfi eval narrative`: figures with ids beside placebos, real text from a staged folder, one line on bad input."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from htfi.apps.cli.main import cli
from htfi.domain.news_view import NewsView
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.config import NarrativeConfig
from htfi.narrative.question import Question, shown_items
from htfi.narrative.readers import TemplateReader
from htfi_eval.eval.narrative.real_text import RANDOM_WALK, judge_real_text, stocknet
from htfi_eval.results import read_result

SYMBOLS = ("ACME", "BOLT", "CRUX")
NUM_DAYS = 170
SUBJECTS = ("profit", "orders", "output", "margins", "deliveries", "licences")
DEEDS = ("rise far above what was planned", "fall short of what was planned", "stay where they were")


def staged(folder: Path) -> Path:
    """A folder as StockNet is staged, of simulated prices and words: texts with 'rise' come before a rise."""
    dice = np.random.Generator(np.random.PCG64(11))
    first = datetime(2014, 1, 6, 21, tzinfo=UTC)
    days = [first + timedelta(days=k) for k in range(NUM_DAYS * 7 // 5 + 7)]
    days = [day for day in days if day.weekday() < 5][:NUM_DAYS]
    texts: list[dict[str, Any]] = []
    prices: list[dict[str, Any]] = []
    for symbol in SYMBOLS:
        log_price, move = 4.0, 0.0
        for k, day in enumerate(days):
            log_price += 0.01 * dice.standard_normal() + move
            deed = int(dice.integers(3))
            move = (0.02, -0.02, 0.0)[deed]
            close = float(np.exp(log_price))
            prices.append(
                {"date": day.date(), "ts_close": day, "symbol": symbol, "open": close, "high": close * 1.004,
                 "low": close * 0.996, "close": close, "adj_close": close, "volume": 1}
            )  # fmt: skip
            plant = f"{symbol.lower()}{chr(97 + k % 26)}{chr(97 + k // 26)}"
            told = f"${symbol} {SUBJECTS[k % 6]} of {plant} {DEEDS[deed]}"
            row = {"published_at": day - timedelta(hours=3), "symbol": symbol, "tweet_id": len(texts), "text": told,
                   "followers": 5, "lang": "en", "is_retweet": False, "n_cashtags": 1}  # fmt: skip
            texts.append(row)
            texts.append({**row, "tweet_id": len(texts), "text": f"RT @a: {told} http://x.co/{k}"})
    (folder / "text_price").mkdir(parents=True)
    (folder / "panels").mkdir()
    stamp = pa.timestamp("ms", tz="UTC")
    for name, rows, column in (("prices_daily", prices, "ts_close"), ("tweets", texts, "published_at")):
        table = pa.Table.from_pylist(rows)
        place = table.column_names.index(column)
        table = table.set_column(place, column, table[column].cast(stamp))
        pq.write_table(table, folder / "text_price" / f"stocknet_{name}.parquet")
    return folder


class Reader:
    """Calls what the words say, and so is right of these texts and wrong of others'."""

    version = "reader/1"

    def __init__(self) -> None:
        self._otherwise = TemplateReader(NarrativeConfig())

    def read(self, questions: list[Question], deadline_ms: float) -> list[NewsView]:
        return [self._view(question) for question in questions]

    def _view(self, question: Question) -> NewsView:
        headline = shown_items(question)[0].headline if question.items else ""
        way = 1.0 if "rise far" in headline else -1.0 if "fall short" in headline else 0.0
        return NewsView(
            way, 2.0 * abs(way), 1.0, 0.9, (), question.as_of_ns, 86_400 * 10**9, reader="reader/1"
        )


def test_on_staged_text_words_that_tell_earn_and_others_words_do_not(tmp_path: Path) -> None:
    data = staged(tmp_path)
    prices, items = stocknet(data)
    assert prices.symbols == SYMBOLS
    found = judge_real_text(
        "stocknet", data, *_arguments(), num=300, seed=1, stage=lambda _: lambda _done, _num: None
    )
    assert found.num_texts == 2 * NUM_DAYS * len(SYMBOLS) == len(items)
    assert found.num_kept < 0.6 * found.num_texts
    losses = {name: float(told.losses[:, 0].mean()) for name, told in found.forecasts.items()}
    weights = {name: float(told.weight[-1, 0]) for name, told in found.forecasts.items()}
    assert losses["with news"] < 0.9 * losses["price only"]
    assert weights["with news"] > 0.3  # it exaggerates, so it is heeded by half
    for placebo in ("other news", "news of another time", "random"):
        assert weights[placebo] < 0.1
        assert losses[placebo] < 1.03 * losses["price only"]
    assert losses[RANDOM_WALK] > 0.9 * losses["price only"]


def _arguments() -> tuple[Any, ...]:
    return (Reader(), ForecastConfig())


@pytest.mark.slow
def test_the_command_tells_figures_beside_placebos_and_its_page_opens(tmp_path: Path) -> None:
    file, page = tmp_path / "narrative.json", tmp_path / "narrative.html"
    asked = [
        "eval",
        "narrative",
        "--worlds",
        "2",
        "--no-stocknet",
        "--trials",
        str(file.parent / "trials"),
        "--json",
        str(file),
        "--html",
        str(page),
    ]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 0, done.output
    told = json.loads(file.read_text())
    assert {"sim_event_crps_gain", "sim_shuffled_gain", "sim_ceiling_gain"} <= set(told["metrics"])
    narrators = {row["narrator"] for row in told["rows"]}
    assert {"price only", "with news", "other words, true tags", "random", "ceiling"} <= narrators
    assert len(read_result(file).charts) == 7
    assert page.read_text().startswith("<!")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--seed", "1"], "training may have used it"),
        (["--stocknet", "--data", "nowhere"], "no folder of staged data"),
        (["--target", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_told_in_one_line(options: list[str], words: str) -> None:
    done = CliRunner().invoke(cli, ["eval", "narrative", *options])
    assert done.exit_code != 0
    assert words in str(done.exception) + done.output
