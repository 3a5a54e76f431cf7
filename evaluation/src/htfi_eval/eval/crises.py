"""Crises by name, for figures of how forecasts did in them. Evaluations and their charts read it."""

import numpy as np
from numpy.typing import NDArray

from htfi_eval.eval.charts.chart import TimeSpan
from htfi_eval.eval.prices import Prices

CRISES = (
    TimeSpan("2008", "2008-09-01", "2009-06-30"),  # Lehman, to the end of the recession (NBER)
    TimeSpan("2011", "2011-08-01", "2011-12-31"),  # the downgrade of the United States, the euro
    TimeSpan("2015", "2015-08-01", "2016-02-29"),  # the renminbi, oil
    TimeSpan("2020", "2020-02-15", "2020-06-30"),  # Covid
)


def within(prices: Prices, span: TimeSpan, first: int = 0) -> NDArray[np.bool_]:
    """Which instants from `first` on lie in the span, [T]."""
    days = prices.ends_ns[first:].astype("datetime64[ns]").astype("datetime64[D]")
    return (days >= np.datetime64(span.first)) & (days <= np.datetime64(span.last))
