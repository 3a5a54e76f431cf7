"""Narrators on real text: tweets of StockNet and Reuters' headlines against daily prices. `narrative` calls it.

The data are staged beside the project and third parties' own; only figures leave this module.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.domain.decision import NewsView
from htfi.domain.time import NS_PER_DAY, NS_PER_MS
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.readers import ModelReader
from htfi_eval.eval.narrative import placebos
from htfi_eval.eval.narrative.moments import NewsMoments, gather
from htfi_eval.eval.narrative.simulated import ELSEWHERE, NEWS, OTHER_TIME, RANDOM
from htfi_eval.eval.narrative.texts import PublishedText, questions, without_repeats
from htfi_eval.eval.narrative.tilts import (
    PRICE_ONLY,
    NarratorForecasts,
    full_weight,
    price_only,
    random_walk,
    tilt_effects,
    track_record_weighted,
)
from htfi_eval.eval.price_sets import read_rows
from htfi_eval.eval.prices import Prices, load_prices
from htfi_eval.eval.walk import Tell

Stage = Callable[[str], Tell]

RANDOM_WALK, FULL_WEIGHT = "random walk", "with news, in full"


@dataclass(frozen=True, slots=True, eq=False)
class RealTextResults:
    """All narrators on the same moments of one set of text, and how many texts were left of how many."""

    name: str
    moments: NewsMoments
    forecasts: Mapping[str, NarratorForecasts]
    views: tuple[NewsView, ...]
    num_texts: int
    num_kept: int

    @property
    def title(self) -> str:
        return _TITLES[self.name]


def stocknet(data: Path) -> tuple[Prices, list[PublishedText]]:
    """Tweets, each under all symbols it was filed under, and prices adjusted for splits and dividends."""
    prices = read_rows(data / "text_price" / "stocknet_prices_daily.parquet")
    tweets = read_rows(data / "text_price" / "stocknet_tweets.parquet")
    symbols: dict[int, list[str]] = {}
    for tweet, symbol in zip(tweets["tweet_id"].tolist(), tweets["symbol"].tolist(), strict=True):
        symbols.setdefault(tweet, []).append(symbol)
    published = tweets["published_at"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    items: dict[int, PublishedText] = {}
    columns = (tweets[key].tolist() for key in ("tweet_id", "text", "followers", "lang"))
    for at_ns, tweet, text, followers, lang in zip(published.tolist(), *columns, strict=True):
        if lang == "en" and tweet not in items:
            items[tweet] = PublishedText(at_ns, tuple(sorted(set(symbols[tweet]))), text, followers)
    return _adjusted(prices), list(items.values())


def reuters(data: Path) -> tuple[Prices, list[PublishedText]]:
    """Headlines with up to a few companies, and the panel of US equities."""
    rows = read_rows(data / "text_price" / "reuters_news_2006_2013.parquet")
    prices = load_prices("us_equities", data)
    published = rows["published_at"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    known = set(prices.symbols)
    items: list[PublishedText] = []
    columns = (rows[key].tolist() for key in ("headline", "symbols", "body_chars"))
    for at_ns, headline, named, length in zip(published.tolist(), *columns, strict=True):
        symbols = tuple(sorted(set(named.split()) & known))
        if symbols:
            items.append(PublishedText(at_ns, symbols, headline, length))
    return prices, items


_AFTER_DAYS = 60  # of prices after the last text, for its outcomes
_TITLES = {"stocknet": "StockNet", "reuters": "Reuters"}
SETS: dict[str, Callable[[Path], tuple[Prices, list[PublishedText]]]] = {
    "stocknet": stocknet,
    "reuters": reuters,
}


def judge_real_text(
    name: str,
    data: Path,
    reader: ModelReader,
    config: ForecastConfig,
    num: int,
    seed: int,
    stage: Stage,
) -> RealTextResults:
    """Let all narrators speak of `num` drawn moments. Raises: DependencyUnavailable, MissingExtra."""
    dice = np.random.Generator(np.random.PCG64(seed))
    prices, found = SETS[name](data)
    items = without_repeats(found)
    last_ns = max((item.published_ns for item in items), default=0) + _AFTER_DAYS * NS_PER_DAY
    prices = prices.cut(last=str(np.datetime64(last_ns, "ns").astype("datetime64[D]")))
    asked = questions(prices, items, num, config.horizons[-1], dice)
    moments = gather(prices, asked, config, stage(f"{name}: prices"))
    right = list(moments.questions)
    symbol = np.unique([question.symbol for question in right], return_inverse=True)[1].astype(np.int64)
    said = {NEWS: placebos.read_views(right, reader, stage(f"{name}: views"))}
    wrong = {
        ELSEWHERE: placebos.mislabelled(right),
        OTHER_TIME: placebos.with_news_of(right, placebos.at_another_time(symbol, moments.instant)),
    }
    for other, others in wrong.items():
        said[other] = placebos.read_views(others, reader, stage(f"{name}: views of {other}"))
    said[RANDOM] = placebos.permuted(said[NEWS], dice)
    told = {PRICE_ONLY: price_only(moments, config)}
    for narrator, views in said.items():
        told[narrator] = track_record_weighted(
            narrator, moments, tilt_effects(views, moments, config), config
        )
    told[FULL_WEIGHT] = full_weight(FULL_WEIGHT, moments, tilt_effects(said[NEWS], moments, config), config)
    told[RANDOM_WALK] = random_walk(RANDOM_WALK, moments, config)
    return RealTextResults(name, moments, told, tuple(said[NEWS]), len(found), len(items))


def _adjusted(rows: dict[str, NDArray[Any]]) -> Prices:
    """As one grid; open, high and low are adjusted as the close is."""
    symbols, column = np.unique(rows["symbol"].astype(str), return_inverse=True)
    close_ns = rows["ts_close"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    ends_ns, row = np.unique(close_ns, return_inverse=True)
    factor = rows["adj_close"].astype(np.float64) / rows["close"]

    def grid(key: str) -> NDArray[np.float64]:
        values = rows[key].astype(np.float64) * factor
        found = np.full((len(ends_ns), len(symbols)), np.nan)
        found[row, column] = np.where(np.isfinite(values) & (values > 0.0), values, np.nan)
        return found

    names: list[str] = symbols.tolist()
    return Prices(
        "stocknet",
        tuple(names),
        "1d",
        ends_ns,
        ends_ns,
        grid("open"),
        grid("high"),
        grid("low"),
        grid("close"),
    )
