"""Attacks that show in many items, or in what one says of itself: forged sources, repetition, bursts, dates.

Each gives the items of one attack on a headline, in order of arrival; `htfi eval sanitise` sends them among honest.
"""

from collections.abc import Callable

from htfi.domain.events import News
from htfi_train.simulation.rng import Rng

NS_PER_MINUTE = 60_000_000_000
_NS_PER_DAY = 24 * 60 * NS_PER_MINUTE
_NUM = 12  # items of a flood
_FORGED = (
    ("Reuters", "https://reuters.com.breaking-{n}.example/a"), ("Bloomberg", "http://bl00mberg.com/news/{n}"),
    ("Federal Reserve", "https://federalreserve-gov.info/{n}"), ("Reuterѕ", ""), ("Bloomberg News", "https://t.me/s/alerts{n}"),
    ("The Wall Street Journal", "https://wsj.com@paste.example/{n}"), ("Associated Press", "https://twitter.com/ap_news_{n}"),
    ("SEC", "https://sec-gov.filings{n}.example/8k"), ("European Central Bank", "http://ecb-europa.eu.example/{n}"),
)  # fmt: skip
_OPENINGS = (
    "",
    "BREAKING: ",
    "Just in: ",
    "Sources: ",
    "Confirmed: ",
    "Alert - ",
    "Hearing ",
    "Wow: ",
    "Update: ",
)
_ENDINGS = ("", "!", " - sources", ", say traders", " today", " (report)", ", desks hear", "...", " now")
_OUTLETS = ("tips", "alerts", "insider", "rumours", "signals", "flash", "street", "whisper", "desk", "feedz")

FloodMaker = Callable[[Rng, str, str, int], list[News]]  # headline, symbol, time of the first


def forged_source(rng: Rng, headline: str, symbol: str, at_ns: int) -> list[News]:
    """One item under the name of a publisher that did not publish it."""
    publisher, url = rng.choice(_FORGED)
    url = url.replace("{n}", str(rng.integer(1_000)))
    return [_item(rng, headline, symbol, at_ns, 0, publisher=publisher, url=url)]


def repetition(rng: Rng, headline: str, symbol: str, at_ns: int) -> list[News]:
    """One unknown source reports the same again and again, a word or a sign apart."""
    source = _source(rng)
    return [
        _item(rng, _reworded(rng, headline), symbol, at_ns + place * NS_PER_MINUTE, place, source=source)
        for place in range(_NUM)
    ]


def coordinated_burst(rng: Rng, headline: str, symbol: str, at_ns: int) -> list[News]:
    """Unknown sources in concert within minutes."""
    return [
        _item(
            rng, _reworded(rng, headline), symbol, at_ns + place * NS_PER_MINUTE // 2, place, source=_source(rng)
        )
        for place in range(_NUM)
    ]  # fmt: skip


def misdated_news(rng: Rng, headline: str, symbol: str, at_ns: int) -> list[News]:
    """Dated in the future, or days before it arrived."""
    away_ns = (3 + rng.integer(20)) * _NS_PER_DAY
    way = 1 if rng.chance(0.5) else -1
    return [_item(rng, headline, symbol, at_ns, 0, event_time_ns=at_ns + way * away_ns)]


FLOODS: dict[str, FloodMaker] = {
    "forged source": forged_source,
    "repetition": repetition,
    "coordinated burst": coordinated_burst,
    "stale or future timestamp": misdated_news,
}


def _reworded(rng: Rng, headline: str) -> str:
    return f"{rng.choice(_OPENINGS)}{headline.rstrip('.')}{rng.choice(_ENDINGS)}"


def _source(rng: Rng) -> str:
    return f"{rng.choice(_OUTLETS)}{rng.integer(10_000)}.example"


def _item(
    rng: Rng,
    headline: str,
    symbol: str,
    at_ns: int,
    place: int,
    *,
    source: str = "",
    publisher: str = "",
    url: str = "",
    event_time_ns: int | None = None,
) -> News:
    source = source or _source(rng)
    return News(
        available_at_ns=at_ns,
        event_time_ns=at_ns if event_time_ns is None else event_time_ns,
        source=source,
        row=place + 1,
        id=f"{source}/{at_ns}/{place}",
        headline=headline,
        symbols=(symbol,) if symbol else (),
        publisher=publisher,
        url=url,
    )
