"""By what time a table names a bar, from when the bar ended."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from htfi.domain.time import NS_PER_DAY, NS_PER_S
from htfi.pipeline.intake.spec import SourceSpec
from htfi.pipeline.scenarios.history import bar_length_ns

Stamps = NDArray[np.datetime64]

_DATE_ZONE = ZoneInfo(SourceSpec("prices").date_zone)  # where the days of tables are counted


def bar_stamps(interval: str, ends_ns: Sequence[int] | NDArray[np.int64]) -> Stamps:
    """The start of each bar that ends at `ends_ns`, without zone: the first day of bars of days, else in UTC.

    Bars of whole days that all end at midnight in New York are bars of days, as tables of dates are read. A bar without
    a length in time, such as one of 5,000 shares, is named by its end.
    """
    ends = np.asarray(ends_ns, np.int64)
    length_ns = bar_length_ns(interval)
    if length_ns % NS_PER_DAY == 0:
        unique, places = np.unique(ends, return_inverse=True)
        days = [_midnight_after(end_ns) for end_ns in unique.tolist()]
        if all(day is not None for day in days):
            first = timedelta(length_ns // NS_PER_DAY)
            starts = np.array([day - first for day in days if day is not None], "datetime64[ns]")
            return starts[places]
    begun = ends - length_ns if length_ns > 1 else ends
    return begun.astype("datetime64[ns]")


def _midnight_after(end_ns: int) -> date | None:
    """The day that begins at this instant, None for any other time of day."""
    moment = datetime.fromtimestamp(end_ns // NS_PER_S, UTC).astimezone(_DATE_ZONE)
    return moment.date() if moment.time() == time() and not end_ns % NS_PER_S else None
