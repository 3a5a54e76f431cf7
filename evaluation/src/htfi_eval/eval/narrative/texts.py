"""Real text as questions: what is said twice is dropped, the rest is heard at the close of the session it falls into.

`narrative_stocknet` calls it. Text of others is read and forgotten: nothing here keeps it.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from htfi.domain.events import News
from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.narrative.question import MAX_CONTEXT_RETURNS, MAX_TICKERS, Question
from htfi.narrative.text import clean
from htfi.simulation.simulated_market import DECAY
from htfi_eval.eval.narrative.moments import NewsQuestion
from htfi_eval.eval.prices import Prices

Instants = NDArray[np.int64]
Array = NDArray[np.float64]

MAX_TEXTS = 3  # of one symbol and session: those of the widest reach
_MAX_CHARS = 160
_MIN_WORDS = 4
_NUM_KEY_WORDS = 8  # the longest words of a text that make it the same as another
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
    """In order of time, each thing said once: later texts with the same words, whoever they are about, are dropped.

    The words are those beside links, tags and figures, without a retweet's opening; of a long text its longest. Dropped
    too: texts of fewer than four words, and lists of more symbols than a question names.
    """
    known: set[frozenset[str]] = set()
    kept: list[PublishedText] = []
    for item in sorted(items, key=lambda one: one.published_ns):
        words = set(_NO_WORDS.sub(" ", _RETWEET.sub("", item.text).lower()).split())
        told = frozenset(sorted(words, key=lambda word: (-len(word), word))[:_NUM_KEY_WORDS])
        if len(words) < _MIN_WORDS or not 0 < len(item.symbols) <= MAX_TICKERS or told in known:
            continue
        known.add(told)
        kept.append(item)
    return kept


def session_closes(ends_ns: Instants) -> Instants:
    """When trading really ended in sessions [T] that are held to end at 16:00 New York: half days end at 13:00."""
    days = [
        datetime.fromtimestamp(end // NS_PER_S, UTC).astimezone(_NEW_YORK).date() for end in ends_ns.tolist()
    ]
    early = np.array([_is_half_day(day) for day in days])
    return ends_ns - np.where(early, 3 * 3600 * NS_PER_S, 0)


def sessions_of(published_ns: Instants, closes_ns: Instants) -> NDArray[np.intp]:
    """The session [n] at whose close each text is heard: the first that closes at or after it; T where there is none.

    What is published after a close waits for the next session, a weekend or a holiday long.
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
    prices: Prices, items: Sequence[PublishedText], num: int, horizon: int, dice: np.random.Generator
) -> list[NewsQuestion]:
    """`num` drawn symbol-sessions with text, each as a reader would be asked at its close; clusters are months."""
    closes_ns = session_closes(prices.ends_ns)
    at = sessions_of(np.array([item.published_ns for item in items], np.int64), closes_ns)
    column = {symbol: place for place, symbol in enumerate(prices.symbols)}
    heard: dict[tuple[int, int], list[PublishedText]] = {}
    for item, t in zip(items, at.tolist(), strict=True):
        for symbol in item.symbols:
            place = column.get(symbol)
            if place is not None and t + horizon < len(closes_ns) and np.isfinite(prices.close[t, place]):
                heard.setdefault((t, place), []).append(item)
    keys = sorted(heard)
    drawn = dice.choice(len(keys), min(num, len(keys)), replace=False) if keys else np.zeros(0, np.int64)
    scaled = scaled_returns(prices.close)
    months: list[int] = (
        prices.ends_ns.astype("datetime64[ns]").astype("datetime64[M]").astype(np.int64).tolist()
    )
    asked: list[NewsQuestion] = []
    places: list[int] = drawn.tolist()
    for t, place in sorted(keys[draw] for draw in places):
        context = scaled[max(t + 1 - MAX_CONTEXT_RETURNS, 0) : t + 1, place]
        question = Question(
            prices.symbols[place],
            int(closes_ns[t]),
            NS_PER_DAY,
            _news(heard[t, place]),
            tuple(context[np.isfinite(context)].tolist()),
        )
        asked.append(NewsQuestion(question, t, place, months[t]))
    return asked


def _news(items: Sequence[PublishedText]) -> tuple[News, ...]:
    """The items of the widest reach, newest first, cleaned as the wire cleans."""
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
    """Returns [T, N] in units of the EWMA volatility before each, as a question tells them; NaN at first."""
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
