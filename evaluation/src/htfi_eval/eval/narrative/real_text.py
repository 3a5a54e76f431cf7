"""Narrators on real text: StockNet's tweets and Reuters' headlines against daily prices.

Repeated texts are dropped. Each text is read at the close of the session in which it was published. The data belong to
third parties and are staged outside the project; this module returns only figures.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import News
from htfi.domain.news_view import NewsView
from htfi.domain.time import NS_PER_DAY, NS_PER_MS, NS_PER_S
from htfi.forecasting.config import ForecastConfig
from htfi.narrative.question import MAX_CONTEXT_RETURNS, MAX_TICKERS, Question
from htfi.narrative.readers import ModelReader
from htfi.narrative.text import clean
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.narrative import simulated
from htfi_eval.eval.narrative.moments import (
    PRICE_ONLY,
    NarratorForecasts,
    NewsMoments,
    NewsQuestion,
    full_weight,
    gather,
    price_only,
    random_walk,
    tilt_effects,
    track_record_weighted,
)
from htfi_eval.eval.narrative.simulated import ELSEWHERE, NEWS, OTHER_TIME, RANDOM
from htfi_eval.eval.prices import Prices, load_prices, read_rows
from htfi_train.simulation.simulated_market import DECAY

Instants = NDArray[np.int64]
Array = NDArray[np.float64]

MAX_TEXTS = 3  # per symbol and session: those of the widest reach
_MAX_CHARS = 160
_MIN_WORDS = 4
_NUM_KEY_WORDS = 8  # the longest words of a text identify its repetitions
_NEW_YORK = ZoneInfo("America/New_York")
_FIRST_BARS = 20
_RETWEET = re.compile(r"^\s*(rt\s+@\w+:?\s*)+", re.IGNORECASE)
_NO_WORDS = re.compile(r"https?://\S*|[$@#]\w+|&\w+;|[^a-z\s]+")


@dataclass(frozen=True, slots=True)
class PublishedText:
    """One text as published. `reach` ranks texts of one session: followers of who wrote it, or its length."""

    published_ns: int
    symbols: tuple[str, ...]
    text: str
    reach: int


def without_repeats(items: Sequence[PublishedText]) -> list[PublishedText]:
    """In order of time without repetitions: later texts with the same words are dropped, for any symbol.

    Links, tags, figures and a retweet's opening do not count as words; of a long text only its longest words count.
    Texts of fewer than four words and lists of more symbols than a question names are dropped too.
    """
    known: set[frozenset[str]] = set()
    kept: list[PublishedText] = []
    for item in sorted(items, key=lambda one: one.published_ns):
        words = set(_NO_WORDS.sub(" ", _RETWEET.sub("", item.text).lower()).split())
        key = frozenset(sorted(words, key=lambda word: (-len(word), word))[:_NUM_KEY_WORDS])
        if len(words) < _MIN_WORDS or not 0 < len(item.symbols) <= MAX_TICKERS or key in known:
            continue
        known.add(key)
        kept.append(item)
    return kept


def session_closes(ends_ns: Instants) -> Instants:
    """The true end of sessions [T] stored as ending at 16:00 New York: half days end at 13:00."""
    days = [
        datetime.fromtimestamp(end // NS_PER_S, UTC).astimezone(_NEW_YORK).date() for end in ends_ns.tolist()
    ]
    early = np.array([_is_half_day(day) for day in days])
    return ends_ns - np.where(early, 3 * 3600 * NS_PER_S, 0)


def sessions_of(published_ns: Instants, closes_ns: Instants) -> NDArray[np.intp]:
    """The session [n] at whose close each text is read: the first that closes at or after it; T if there is none.

    A text published after a close is read at the next one, after a weekend or holiday too.
    """
    return np.searchsorted(closes_ns, published_ns, side="left")


def _is_half_day(day: date) -> bool:
    """New York's: the days before 4 July and Christmas, where both are trading days, and after Thanksgiving."""
    if day.month == 7 and day.day == 3:
        return day.weekday() < 4
    if day.month == 12 and day.day == 24:
        return day.weekday() < 4
    is_friday = day.month == 11 and day.weekday() == 4
    return is_friday and 22 <= (day - timedelta(days=1)).day <= 28


def questions(
    prices: Prices, items: Sequence[PublishedText], num: int, horizon: int, rng: np.random.Generator
) -> list[NewsQuestion]:
    """`num` sampled symbol-sessions with text, each as a request at its close; clusters are months."""
    closes_ns = session_closes(prices.ends_ns)
    at = sessions_of(np.array([item.published_ns for item in items], np.int64), closes_ns)
    column = {symbol: place for place, symbol in enumerate(prices.symbols)}
    by_session: dict[tuple[int, int], list[PublishedText]] = {}
    for item, t in zip(items, at.tolist(), strict=True):
        for symbol in item.symbols:
            place = column.get(symbol)
            if place is not None and t + horizon < len(closes_ns) and np.isfinite(prices.close[t, place]):
                by_session.setdefault((t, place), []).append(item)
    keys = sorted(by_session)
    drawn = rng.choice(len(keys), min(num, len(keys)), replace=False) if keys else np.zeros(0, np.int64)
    scaled = scaled_returns(prices.close)
    months: list[int] = (
        prices.ends_ns.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64).tolist()
    )
    drawn_questions: list[NewsQuestion] = []
    places: list[int] = drawn.tolist()
    for t, place in sorted(keys[draw] for draw in places):
        context = scaled[max(t + 1 - MAX_CONTEXT_RETURNS, 0) : t + 1, place]
        question = Question(
            prices.symbols[place],
            int(closes_ns[t]),
            NS_PER_DAY,
            _news(by_session[t, place]),
            tuple(context[np.isfinite(context)].tolist()),
        )
        drawn_questions.append(NewsQuestion(question, t, place, months[t]))
    return drawn_questions


def _news(items: Sequence[PublishedText]) -> tuple[News, ...]:
    """The items of the widest reach, newest first, cleaned like the feed's items."""
    chosen = sorted(items, key=lambda item: -item.reach)[:MAX_TEXTS]
    chosen.sort(key=lambda item: -item.published_ns)
    return tuple(
        News(
            item.published_ns,
            item.published_ns,
            "text",
            row,
            str(row),
            clean(item.text, _MAX_CHARS),
            item.symbols,
        )
        for row, item in enumerate(chosen)
    )


def scaled_returns(close: Array) -> Array:
    """Returns [T, N] in units of the EWMA volatility before each, as in a request; NaN at first."""
    logs = np.log(close)
    scaled = np.full_like(close, np.nan)
    for place in range(close.shape[1]):
        when = np.flatnonzero(np.isfinite(logs[:, place]))
        if len(when) <= _FIRST_BARS:
            continue
        moves: list[float] = np.diff(logs[when, place]).tolist()
        variance = float(np.mean(np.square(moves[:_FIRST_BARS])))
        for t, move in zip(when[_FIRST_BARS + 1 :].tolist(), moves[_FIRST_BARS:], strict=True):
            scaled[t, place] = move / max(math.sqrt(variance), 1e-8)
            variance = DECAY * variance + (1.0 - DECAY) * move * move
    return scaled


Stage = Callable[[str], ProgressCallback]

RANDOM_WALK, FULL_WEIGHT = "random walk", "with news, full weight"


@dataclass(frozen=True, slots=True, eq=False)
class RealTextResults:
    """All narrators on the same moments of one set of texts, and the numbers of texts kept and given."""

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
    name: str, data: Path, reader: ModelReader, config: ForecastConfig, num: int, seed: int, stage: Stage
) -> RealTextResults:
    """Forecasts of all narrators at `num` sampled moments. Raises: DependencyUnavailable, MissingExtra."""
    rng = np.random.Generator(np.random.PCG64(seed))
    prices, found = SETS[name](data)
    items = without_repeats(found)
    last_ns = max((item.published_ns for item in items), default=0) + _AFTER_DAYS * NS_PER_DAY
    prices = prices.cut(last=str(np.datetime64(last_ns, "ns").astype("datetime64[D]")))
    asked = questions(prices, items, num, config.horizons[-1], rng)
    moments = gather(prices, asked, config, stage(f"{name}: prices"))
    right = list(moments.questions)
    symbol = np.unique([question.symbol for question in right], return_inverse=True)[1].astype(np.int64)
    views_by_narrator = {NEWS: simulated.read_views(right, reader, stage(f"{name}: views"))}
    wrong = {
        ELSEWHERE: simulated.mislabelled(right),
        OTHER_TIME: simulated.with_news_of(right, simulated.at_another_time(symbol, moments.instant)),
    }
    for other, others in wrong.items():
        views_by_narrator[other] = simulated.read_views(others, reader, stage(f"{name}: views of {other}"))
    views_by_narrator[RANDOM] = simulated.permuted(views_by_narrator[NEWS], rng)
    forecasts = {PRICE_ONLY: price_only(moments, config)}
    for narrator, views in views_by_narrator.items():
        forecasts[narrator] = track_record_weighted(
            narrator, moments, tilt_effects(views, moments, config), config
        )
    forecasts[FULL_WEIGHT] = full_weight(
        FULL_WEIGHT, moments, tilt_effects(views_by_narrator[NEWS], moments, config), config
    )
    forecasts[RANDOM_WALK] = random_walk(RANDOM_WALK, moments, config)
    return RealTextResults(name, moments, forecasts, tuple(views_by_narrator[NEWS]), len(found), len(items))


def _adjusted(rows: dict[str, NDArray[Any]]) -> Prices:
    """As one grid; open, high and low are adjusted like the close."""
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
