"""Narrators on real text: tweets of StockNet and Reuters' headlines against daily prices. `narrative` calls it.

The data are staged beside the project and third parties' own; only figures leave this module.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from htfi.apps.eval import narrative_placebos as placebos
from htfi.apps.eval.narrative_market import ELSEWHERE, NEWS, OTHER_TIME, RANDOM
from htfi.apps.eval.narrative_moments import Moments, gather
from htfi.apps.eval.narrative_texts import Item, first_told, questions
from htfi.apps.eval.narrative_tilts import PLAIN, Told, changes, full, heeded, plain, random_walk
from htfi.apps.eval.price_sets import read_rows
from htfi.apps.eval.prices import Prices, load_prices
from htfi.apps.eval.walk import Tell
from htfi.domain.decision import View
from htfi.domain.time import NS_PER_DAY, NS_PER_MS
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.model_reader import ModelReader

Stage = Callable[[str], Tell]

RANDOM_WALK, IN_FULL = "random walk", "with news, in full"


@dataclass(frozen=True, slots=True, eq=False)
class RealText:
    """All narrators on the same moments of one set of text, and how many texts were left of how many."""

    name: str
    moments: Moments
    told: Mapping[str, Told]
    views: tuple[View, ...]
    num_texts: int
    num_kept: int

    @property
    def title(self) -> str:
        return _TITLES[self.name]


def stocknet(data: Path) -> tuple[Prices, list[Item]]:
    """Tweets, each under all symbols it was filed under, and prices adjusted for splits and dividends."""
    prices = read_rows(data / "text_price" / "stocknet_prices_daily.parquet")
    tweets = read_rows(data / "text_price" / "stocknet_tweets.parquet")
    symbols: dict[int, list[str]] = {}
    for tweet, symbol in zip(tweets["tweet_id"].tolist(), tweets["symbol"].tolist(), strict=True):
        symbols.setdefault(tweet, []).append(symbol)
    published = tweets["published_at"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    items: dict[int, Item] = {}
    columns = (tweets[key].tolist() for key in ("tweet_id", "text", "followers", "lang"))
    for at_ns, tweet, text, followers, lang in zip(published.tolist(), *columns, strict=True):
        if lang == "en" and tweet not in items:
            items[tweet] = Item(at_ns, tuple(sorted(set(symbols[tweet]))), text, followers)
    return _adjusted(prices), list(items.values())


def reuters(data: Path) -> tuple[Prices, list[Item]]:
    """Headlines with up to a few companies, and the panel of US equities."""
    rows = read_rows(data / "text_price" / "reuters_news_2006_2013.parquet")
    prices = load_prices("us_equities", data)
    published = rows["published_at"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    known = set(prices.symbols)
    items: list[Item] = []
    columns = (rows[key].tolist() for key in ("headline", "symbols", "body_chars"))
    for at_ns, headline, named, length in zip(published.tolist(), *columns, strict=True):
        symbols = tuple(sorted(set(named.split()) & known))
        if symbols:
            items.append(Item(at_ns, symbols, headline, length))
    return prices, items


_AFTER_DAYS = 60  # of prices after the last text, for its outcomes
_TITLES = {"stocknet": "StockNet", "reuters": "Reuters"}
SETS: dict[str, Callable[[Path], tuple[Prices, list[Item]]]] = {"stocknet": stocknet, "reuters": reuters}


def judge(
    name: str,
    data: Path,
    reader: ModelReader,
    config: ForecastConfig,
    num: int,
    seed: int,
    stage: Stage,
) -> RealText:
    """Let all narrators speak of `num` drawn moments. Raises: DependencyUnavailable, MissingExtra."""
    dice = np.random.Generator(np.random.PCG64(seed))
    prices, found = SETS[name](data)
    items = first_told(found)
    last_ns = max((item.published_ns for item in items), default=0) + _AFTER_DAYS * NS_PER_DAY
    prices = prices.cut(last=str(np.datetime64(last_ns, "ns").astype("datetime64[D]")))
    asked = questions(prices, items, num, config.horizons[-1], dice)
    moments = gather(prices, asked, config, stage(f"{name}: prices"))
    right = list(moments.questions)
    symbol = np.unique([question.symbol for question in right], return_inverse=True)[1].astype(np.int64)
    said = {NEWS: placebos.read(right, reader, stage(f"{name}: views"))}
    wrong = {
        ELSEWHERE: placebos.mislabelled(right),
        OTHER_TIME: placebos.exchanged(right, placebos.at_another_time(symbol, moments.instant)),
    }
    for other, others in wrong.items():
        said[other] = placebos.read(others, reader, stage(f"{name}: views of {other}"))
    said[RANDOM] = placebos.permuted(said[NEWS], dice)
    told = {PLAIN: plain(moments, config)}
    for narrator, views in said.items():
        told[narrator] = heeded(narrator, moments, changes(views, moments, config), config)
    told[IN_FULL] = full(IN_FULL, moments, changes(said[NEWS], moments, config), config)
    told[RANDOM_WALK] = random_walk(RANDOM_WALK, moments, config)
    return RealText(name, moments, told, tuple(said[NEWS]), len(found), len(items))


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
