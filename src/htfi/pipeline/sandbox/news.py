"""The news of a trial: headlines with a known effect, and what a liar, a slow wire or a quarrel makes of them."""

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import msgspec
import numpy as np

from htfi.domain.decision import series_id
from htfi.domain.events import Bar, News
from htfi.domain.time import NS_PER_S
from htfi.governance.sandbox.trials import TrialNews

_HOUR_NS = 3_600 * NS_PER_S
_EVERY_BARS, _FIRST_BAR = 4, 40
_EFFECT = 1.5  # of a headline, in standard deviations of a bar
_SIGMA = 0.01
_WIRE, _OPEN_FEED = "wire", "open"


@dataclass(frozen=True, slots=True)
class TrialHeadlines:
    """Bars that headlines have moved, the items, and which way each really moved a series at which bar."""

    bars: list[Bar]
    items: list[News]
    signs: dict[tuple[str, int], float]


@cache
def headlines() -> dict[str, list[str]]:
    """Headlines that move a share 'up' and 'down', with {name} for the company."""
    return tomllib.loads(files(__package__ or "").joinpath("headlines.toml").read_text(encoding="utf-8"))


def stage_news(
    kind: TrialNews, bars: Sequence[Bar], attacks: Sequence[News], rng: np.random.Generator
) -> TrialHeadlines:
    """News on simulated bars: each true headline comes two hours before the close of a bar and moves the next one.

    Poisoned: as many lies from an open feed, which move nothing. Late: headlines after their effect. Contradictory:
    each is denied an hour later by another source, and nothing moves. Attacks: recorded items, beside true headlines.
    """
    by_series: dict[str, list[int]] = {}
    for place, bar in enumerate(bars):
        by_series.setdefault(series_id(bar.symbol, bar.interval), []).append(place)
    shifts = [0.0] * len(bars)
    items: list[News] = []
    signs: dict[tuple[str, int], float] = {}
    for series, places in by_series.items():
        for at in range(_FIRST_BAR, len(places) - 2, _EVERY_BARS):
            bar, sign = bars[places[at]], float(rng.choice((-1.0, 1.0)))
            text = _headline(rng, sign, bar.symbol)
            moves = kind is not TrialNews.CONTRADICTORY
            if moves:
                shifts[places[at + 1]] += sign * _EFFECT * _SIGMA
            sent_ns = bar.end_ns - 2 * _HOUR_NS
            if kind is TrialNews.LATE:
                sent_ns = bars[places[at + 1]].end_ns - 2 * _HOUR_NS
            elif moves:
                signs[series, at] = sign
            items.append(_item(text, bar.symbol, sent_ns, _WIRE, len(items)))
            if kind is TrialNews.CONTRADICTORY:
                denial = _headline(rng, -sign, bar.symbol)
                items.append(_item(denial, bar.symbol, sent_ns + _HOUR_NS, _OPEN_FEED, len(items)))
            if kind is TrialNews.POISONED:
                lie = bars[places[at + 2]]
                false = _headline(rng, float(rng.choice((-1.0, 1.0))), bar.symbol)
                items.append(_item(false, bar.symbol, lie.end_ns - 2 * _HOUR_NS, _OPEN_FEED, len(items)))
    if kind is TrialNews.ATTACKS:
        items += _placed(attacks, bars)
    return TrialHeadlines(_moved(bars, shifts), items, signs)


def _placed(attacks: Sequence[News], bars: Sequence[Bar]) -> list[News]:
    """Recorded attacks, each class on a day of its own: the items keep their distance to the close."""
    ends = sorted({bar.end_ns for bar in bars})[_FIRST_BAR + 1 :: 2]
    symbols = sorted({bar.symbol for bar in bars})
    groups: dict[str, list[News]] = {}
    for item in attacks:
        groups.setdefault(item.id.partition("/")[0], []).append(item)
    made: list[News] = []
    for place, (end, group) in enumerate(zip(ends, groups.values(), strict=False)):
        for item in group:
            at_ns = end - (_HOUR_NS * 24 - item.available_at_ns % (_HOUR_NS * 24))
            made.append(
                msgspec.structs.replace(
                    item, available_at_ns=at_ns, event_time_ns=at_ns, symbols=(symbols[place % len(symbols)],)
                )
            )
    return made


def _moved(bars: Sequence[Bar], shifts: Sequence[float]) -> list[Bar]:
    """Bars whose prices, and all later ones of the series, were moved by so much in logarithm."""
    total: dict[str, float] = {}
    made: list[Bar] = []
    for bar, shift in zip(bars, shifts, strict=True):
        before = math.exp(total.get(bar.symbol, 0.0))
        total[bar.symbol] = total.get(bar.symbol, 0.0) + shift
        after = math.exp(total[bar.symbol])
        opening, close = bar.open * before, bar.close * after
        made.append(
            msgspec.structs.replace(
                bar, open=opening, close=close,
                high=max(opening, close, bar.high * max(before, after)),
                low=min(opening, close, bar.low * min(before, after)),
            )
        )  # fmt: skip
    return made


def _headline(rng: np.random.Generator, sign: float, symbol: str) -> str:
    texts = headlines()["up" if sign > 0.0 else "down"]
    return texts[int(rng.integers(len(texts)))].replace("{name}", symbol)


def _item(text: str, symbol: str, at_ns: int, source: str, number: int) -> News:
    return News(
        available_at_ns=at_ns, event_time_ns=at_ns, source=source, row=number + 1, id=f"{source}-{number}",
        headline=text, symbols=(symbol,), publisher="" if source == _WIRE else "Market Desk Daily",
    )  # fmt: skip
