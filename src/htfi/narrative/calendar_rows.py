"""Drops rows of an economic calendar that come as news and cannot matter to a run, before anything reads them.

Such a row begins with a currency, and a colon ('NZD: Visitor Arrivals m/m 1.2%, previous 2.0%'). One that only states
that somebody speaks, or that a day is a holiday, reports nothing. One of an economy that is neither large nor of any
series concerns no series.
"""

import re
from collections.abc import Iterable

from htfi.domain.events import News
from htfi.narrative.facts.assets import asset_of
from htfi.narrative.facts.regions import region_of_currency

LARGE_ECONOMIES = frozenset({"US", "EA", "CN"})  # whose events move prices elsewhere
_ROW = re.compile(r"\s*(?P<currency>[A-Z]{3}): \S")
_REPORTS_NOTHING = re.compile(
    r"\b(?:Speaks|Testifies|Press Conference|Bank Holiday|Hearings|Meetings|Summit)\s*$"
)


class CalendarRowFilter:
    """The economies of a run's series, and how many rows were dropped. `series` are symbols and what they are called.

    Without any series no economy is known yet, and only rows that report nothing are dropped.
    """

    def __init__(self, series: Iterable[tuple[str, str]] = (), num_dropped: int = 0) -> None:
        self.num_dropped = num_dropped
        self._economies: set[str] = set()
        for symbol, name in series:
            self.add_series(symbol, name)

    def add_series(self, symbol: str, name: str) -> None:
        asset = asset_of(symbol, name)
        self._economies |= {asset.region, asset.quote}

    def is_pointless(self, item: News) -> bool:
        """Whether an item is a row that cannot matter. What corrects another item, was admitted by a person or has a
        body is none.
        """
        found = _ROW.match(item.headline)
        if found is None or item.body or item.corrects or item.released_by:
            return False
        economy = region_of_currency(found["currency"])
        if not economy:
            return False
        if _REPORTS_NOTHING.search(item.headline):
            return True
        is_foreign = bool(self._economies) and economy not in self._economies | LARGE_ECONOMIES
        return is_foreign and not item.symbols
