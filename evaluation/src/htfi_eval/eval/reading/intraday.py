"""Signs by the hour: Reuters' minute stamps against hourly bars of four shares and of the euro in dollars.

A stamp is that of the page and may be of its last update, so the hours before an item are shown beside those after it.
A move counts only over hours that follow one another.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from htfi.domain.time import NS_PER_DAY, NS_PER_MS
from htfi.narrative.facts.fact_reader import FactReader
from htfi.narrative.understanding import NewsText
from htfi_eval.commands import ProgressCallback
from htfi_eval.eval.narrative.real_text import PublishedText, without_repeats
from htfi_eval.eval.prices import read_rows
from htfi_eval.eval.reading.event_study import MIN_KIND, STRONG_CONFIDENCE, STRONG_RELEVANCE
from htfi_eval.eval.reading.readings import ReadItem, read_items
from htfi_eval.eval.reading.scores import Array, Interval, mean_by_day

_HOUR_NS = 3_600 * 10**9
_USUAL_HOURS = 100
_NEWS = "text_price/reuters_news_2006_2013.parquet"
_SHARES = {
    "AAPL": "Apple Inc.",
    "AIG": "American International Group",
    "BAC": "Bank of America",
    "IBM": "International Business Machines",
}
_MACRO = re.compile(
    r"\b(?:Fed|FOMC|Bernanke|Yellen|ECB|Trichet|Draghi|euro(?: zone|zone|-area)?|dollar|inflation|CPI|PPI|GDP|"
    r"payrolls?|jobless|unemployment|jobs|retail sales|factory|manufacturing|ISM|PMI|housing starts|home sales|"
    r"recession|bailout|consumer confidence|trade (?:gap|deficit)|rates?|Greece|Spain|Italy|Treasury|debt ceiling)\b"
)
# Each window, from the close of one bar to that of another, counted from the bar that holds the item.
WINDOWS = {
    "the two hours before": (-3, -1),
    "the hour of the item": (-1, 0),
    "the next hour": (0, 1),
    "the four hours after it": (1, 5),
}


@dataclass(frozen=True, slots=True)
class HourlyStudy:
    """How often a group of views has the sign of the move of one window."""

    assets: str
    group: str
    window: str
    agree: Interval
    along: Interval

    def row(self) -> dict[str, object]:
        return {
            "source": "Reuters by the hour", "phase": self.assets, "views": self.group, "move": self.window,
            "events": self.agree.num, "sign agrees": self.agree.text, "move along, usual days": self.along.text,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class HourlyBars:
    """Closes [T] of one series and the starts [T] of their bars."""

    starts_ns: NDArray[np.int64]
    closes: Array

    def move(self, bar: int, first: int, last: int) -> float:
        """The log return between two closes in usual hours; NaN where an hour between them is missing."""
        low, high = bar + first, bar + last
        if low < _USUAL_HOURS or high >= len(self.closes):
            return float("nan")
        if self.starts_ns[high] - self.starts_ns[low] != (high - low) * _HOUR_NS:
            return float("nan")
        before = np.diff(np.log(self.closes[low - _USUAL_HOURS : low + 1]))
        joined = np.diff(self.starts_ns[low - _USUAL_HOURS : low + 1]) == _HOUR_NS
        usual = float(before[joined].std()) * math.sqrt(high - low) if joined.any() else 0.0
        return float(np.log(self.closes[high] / self.closes[low])) / usual if usual > 0.0 else float("nan")

    def bar_of(self, at_ns: int) -> int | None:
        """The bar that holds an instant."""
        bar = int(np.searchsorted(self.starts_ns, at_ns, side="right")) - 1
        return bar if bar >= 0 and at_ns < self.starts_ns[bar] + _HOUR_NS else None


def study_hours(
    data: Path,
    open_reader: Callable[[Mapping[str, str]], FactReader],
    progress: Callable[[str], ProgressCallback],
    sample: int | None,
    seed: int,
) -> list[HourlyStudy] | None:
    """Shares with their own news, and the euro with what is said of the economy; None where neither is staged."""
    if not (data / _NEWS).is_file():
        return None
    found: list[HourlyStudy] = []
    shares, euro = _share_bars(data), _euro_bars(data)
    for assets, bars, names in (
        (", ".join(_SHARES), shares, _SHARES),
        ("EURUSD", euro, {"EURUSD": "Euro / US dollar"}),
    ):
        if bars:
            items = _drawn(_items(data, bars), sample, seed)
            asked = [NewsText(text, symbol=symbol, name=names[symbol]) for _, symbol, text in items]
            read = read_items(open_reader(names), asked, progress(f"by the hour: {assets}"))
            found += _studies(assets, items, read, bars, seed)
    return found or None


Item = tuple[int, str, str]  # published, symbol, text


def _studies(
    assets: str, items: Sequence[Item], read: Sequence[ReadItem], bars: Mapping[str, HourlyBars], seed: int
) -> list[HourlyStudy]:
    views = [(item, one) for item, one in zip(items, read, strict=True) if one.speaks]
    strong = [
        (item, one)
        for item, one in views
        if one.confidence >= STRONG_CONFIDENCE and one.relevance >= STRONG_RELEVANCE
    ]
    found: list[HourlyStudy] = []
    for group, chosen in (("all views", views), ("strong views", strong)):
        for window, (first, last) in WINDOWS.items():
            signed: list[float] = []
            days: list[int] = []
            for (at_ns, symbol, _), one in chosen:
                bar = bars[symbol].bar_of(at_ns)
                move = float("nan") if bar is None else bars[symbol].move(bar, first, last)
                if np.isfinite(move) and move != 0.0:
                    signed.append(float(one.direction) * float(np.clip(move, -10.0, 10.0)))
                    days.append(at_ns // NS_PER_DAY)
            if len(signed) >= MIN_KIND:
                values, when = np.array(signed), np.array(days, np.int64)
                found.append(
                    HourlyStudy(
                        assets, group, window,
                        mean_by_day((values > 0.0).astype(np.float64), when, seed), mean_by_day(values, when, seed),
                    )
                )  # fmt: skip
    return found


def _items(data: Path, bars: Mapping[str, HourlyBars]) -> list[Item]:
    """Texts under each of the series, at hours for which it has a bar; repeats dropped."""
    rows = read_rows(data / _NEWS)
    published = rows["published_at"].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    texts: list[PublishedText] = []
    columns = (published.tolist(), rows["headline"].tolist(), rows["symbols"].tolist())
    for at_ns, headline, named in zip(*columns, strict=True):
        symbols = tuple(symbol for symbol in (named or "").split() if symbol in bars)
        if "EURUSD" in bars and _MACRO.search(headline):
            symbols = ("EURUSD",)
        if symbols:
            texts.append(PublishedText(at_ns, symbols, headline, 0))
    return [
        (text.published_ns, symbol, text.text)
        for text in without_repeats(texts)
        for symbol in text.symbols
        if bars[symbol].bar_of(text.published_ns) is not None
    ]


def _drawn(items: list[Item], sample: int | None, seed: int) -> list[Item]:
    if sample is None or len(items) <= sample:
        return items
    rng = np.random.Generator(np.random.PCG64([seed, 3]))
    places: list[int] = np.sort(rng.choice(len(items), sample, replace=False)).tolist()
    return [items[place] for place in places]


def _share_bars(data: Path) -> dict[str, HourlyBars]:
    """Raw closes: a split falls between two days, which no window spans."""
    file = data / "panels" / "us_equity_hourly_1998_2021.parquet"
    if not file.is_file():
        return {}
    rows = read_rows(file)
    return {symbol: _bars(rows["ts"], rows["close"], rows["symbol"] == symbol) for symbol in _SHARES}


def _euro_bars(data: Path) -> dict[str, HourlyBars]:
    file = data / "panels" / "eurusd_hourly_bidask_2007_2018.parquet"
    if not file.is_file():
        return {}
    rows = read_rows(file)
    middle = (rows["bid_close"] + rows["ask_close"]) / 2.0
    return {"EURUSD": _bars(rows["ts"], middle, np.isfinite(middle))}


def _bars(starts: NDArray[np.datetime64], closes: Array, chosen: NDArray[np.bool_]) -> HourlyBars:
    starts_ns = starts[chosen].astype("datetime64[ms]").astype(np.int64) * NS_PER_MS
    order = np.argsort(starts_ns, kind="stable")
    return HourlyBars(starts_ns[order], np.asarray(closes, np.float64)[chosen][order])
